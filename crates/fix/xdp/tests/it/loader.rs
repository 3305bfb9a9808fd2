//! The loader on real interfaces: pairs of virtual Ethernet devices in network namespaces of the tests' own.
//!
//! What no test here can show, and why: a limit of locked memory that stops maps (Linux has charged them to the control
//! group since 5.11; a filter that refuses maps stands in for it), kernels without one of the features, CPUs that are
//! offline (the machine's own are left alone).

mod attaching;
mod child;
mod leaving;
mod machine;
mod refusals;

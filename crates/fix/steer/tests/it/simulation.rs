//! Steering and its balancer on simulated machines: the same seed gives the same run.

mod evenness;
mod machine;
mod order;

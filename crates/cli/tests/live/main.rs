//! The commands on this machine: processes, network namespaces, interfaces and the kernel.

#[path = "../run/mod.rs"]
mod run;

mod bench_compare;
mod bench_live;
mod bench_pps;
mod bench_scenario;
mod collect_live;
mod doctor_live;
mod doctor_trace;
mod documents;
mod envelope_live;
mod explain_live;
mod exporter_live;
mod fastpath_live;
mod killed;
mod link_live;
mod load;
mod machine;
mod names;
mod output;
mod persist_live;
mod pppoe_discover;
mod pppoe_live;
mod privilege;
mod process;
mod steer_live;
mod stream;
mod top;

//! What the doctor finds in dumps and descriptions.

mod cpus;
mod dumps;
mod fastpath;
mod findings;
mod flowtable;
mod machine;
mod overload;
mod pages;
mod pastes;
mod spread;
mod stacked;

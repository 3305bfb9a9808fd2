//! Checks and the moving of flows, in simulation.

mod check;
mod rebalance;
mod reordering;
mod simulation;

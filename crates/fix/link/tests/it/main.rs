//! What a link does in steady state.

mod allocation;

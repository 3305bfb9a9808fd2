//! Checks and the moving of flows, in simulation.

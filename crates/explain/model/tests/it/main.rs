//! The simulation against theory, and scenario files.

mod scenario;
mod simulation;

//! The concentrator against hosts: [`host`] is one, [`world`] has many of them and the wires between.

mod attacks;
mod authentication;
mod host;
mod operation;
mod restart;
mod simulation;
mod world;

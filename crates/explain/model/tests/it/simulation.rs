//! The simulation of the receive path: what theory says of it, what holds of every machine, how little it takes.

mod plans;
mod random;
mod speed;
mod theory;

//! Both ends of a PPPoE session, beside each other and attackers.

mod any_octets;
mod attacks;
mod client;
mod line;
mod peers;
mod segment;
mod simulation;

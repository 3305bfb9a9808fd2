//! What the three comparisons over a veth pair have in common. Each measures every way once a round, one after the other, so
//! that what the machine does besides meets all alike, and takes ratios round by round.

pub mod cpu;
pub mod ends;
pub mod load;
pub mod rounds;

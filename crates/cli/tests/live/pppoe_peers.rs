//! `rxlane pppoe serve` and `connect` against peers that share no code with crate `pppoe`: subscribers and a concentrator whose
//! frames are made and read by hand.

mod by_hand;
mod foreign;
mod subscribers;

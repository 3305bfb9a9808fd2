//! `rxlane pppoe serve` and `connect` against peers that share no code with crate `pppoe`: subscribers and a concentrator whose
//! frames are made and read by hand.

#[path = "pppoe_peers/by_hand/mod.rs"]
mod by_hand;
#[path = "pppoe_peers/foreign/mod.rs"]
mod foreign;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "pppoe_live/line.rs"]
mod line;
#[allow(dead_code, reason = "other tests use more of it")]
#[path = "pppoe_live/process.rs"]
mod process;
#[path = "pppoe_peers/subscribers/mod.rs"]
mod subscribers;

//! A veth pair whose receive queues are counted, in a network namespace of its own.

use testkit::netns::{Namespace, Veth, probe};
use testkit::{program, require};

/// The end that receives.
pub const WAN: &str = "wan0";
/// The end that sends.
pub const FAR: &str = "far0";

pub fn binary() -> &'static str {
    env!("CARGO_BIN_EXE_rxlane")
}

/// A namespace with the pair, four queues at each end, received in NAPI, so that queues are counted
/// (`rx_queue_0_xdp_packets`): with GRO on here and TSO off at the end that sends (Linux drivers/net/veth.c,
/// `veth_skb_is_eligible_for_gro`).
pub fn namespace() -> Option<Namespace> {
    require("ethtool", program("ethtool"))?;
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 4, mtu: 1600, ..Veth::pair(WAN, FAR) }).expect("a pair");
    namespace.run("ethtool", &["-K", WAN, "gro", "on"]).expect("GRO");
    namespace.run("ethtool", &["-K", FAR, "tso", "off"]).expect("no TSO");
    Some(namespace)
}

/// The far end sends from one queue, which is the queue that receives.
pub fn send_from_one_queue(namespace: &Namespace) {
    namespace.run("ethtool", &["-L", FAR, "tx", "1"]).expect("one queue");
}

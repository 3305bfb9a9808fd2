//! What tests of several modules have in common: a pair of interfaces, a line, headers.

use crate::counters::Counters;
use crate::datapath::Line;
use crate::framing::Framing;
use kernel::netlink::{Link, link_by_name};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;
use wire::IpProtocol;
use wire::emit::{Ipv6, Tcp};
use wire::ethernet::MacAddress;

pub(crate) const PEER: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 2]);

/// Runs `test` in a namespace of its own, with a pair of interfaces, `near0` and `far0`, and their MAC addresses.
pub(crate) fn with_pair(mtu: u32, test: impl FnOnce([Link; 2], [MacAddress; 2]) + Send) {
    let Some(()) = require("netns", probe()) else { return };
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { mtu, ..Veth::pair("near0", "far0") }).expect("a pair");
    namespace.inside(|| {
        let links = ["near0", "far0"].map(|name| link_by_name(name).expect("there"));
        let macs = links.each_ref().map(|link| link.mac.expect("an address"));
        test(links, macs);
    });
}

pub(crate) fn line(framing: Framing, parent_mtu: u32) -> Line {
    let parent_mtu = Arc::new(AtomicU32::new(parent_mtu));
    Line { framing, clamp: None, counters: Arc::new(Counters::default()), parent_mtu }
}

pub(crate) fn tcp(sequence: u32, flags: u8, checksum: u16, options: &[u8]) -> Tcp<'_> {
    Tcp {
        source_port: 80,
        destination_port: 4000,
        sequence,
        acknowledgment: 77,
        flags,
        window: 500,
        checksum,
        urgent: 0,
        options,
    }
}

pub(crate) fn ipv6(protocol: IpProtocol, length: usize) -> Ipv6 {
    Ipv6 {
        traffic_class: 0,
        flow_label: 5,
        payload_length: length as u16,
        next_header: protocol,
        hop_limit: 64,
        source: "2001:db8::1".parse().expect("an address"),
        destination: "2001:db8::2".parse().expect("an address"),
    }
}

pub(crate) fn set_down(interface: &str) {
    let set = std::process::Command::new("ip").args(["link", "set", interface, "down"]).status();
    assert!(set.expect("ip").success());
}

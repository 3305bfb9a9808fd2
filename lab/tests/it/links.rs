//! `rxlane link`, and at the other end what Debian's kernel has for the same lines: stacked `8021q` devices and PPPoE
//! interfaces. Everything that is sent has to arrive as it was, with offloads on and off at either end.

mod line;
mod offloads;

use crate::pool::{Pool, Taken};
use line::{Line, Wire};
use offloads::Offloads;
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};

/// Data paths of the link, by the words of `--datapath`.
const DATAPATHS: [&str; 2] = ["simple", "batch"];
const TAGS: [&str; 2] = ["ad:100,q:200", "q:100,q:200"];
const VETH: Wire = Wire { own: "veth0", peer: "veth1" };
const ADAPTERS: [Wire; 2] = [Wire { own: "igb0", peer: "igb1" }, Wire { own: "e1000e0", peer: "e1000e1" }];
/// Bytes of each TCP connection each way, where offloads take turns, and where they stay.
const SHORT: u32 = 150_000;
const LONG: u32 = 1_000_000;

static GUESTS: Pool = Pool::of(1);

/// A guest with a pair of each adapter and of veth, one end in the namespace `own`, the other in `peer`.
fn guest() -> Option<Taken> {
    let lab = Lab::require()?;
    Some(GUESTS.take(|| {
        let [igb, e1000e] = [("igb", Model::Igb), ("e1000e", Model::E1000e)]
            .map(|(name, model)| Nic::pair(&format!("{name}0"), &format!("{name}1"), model));
        let nics = [igb, e1000e].concat();
        let guest = lab.boot(&Spec { cpus: 2, nics, ..Spec::new(Series::V6_12) }).expect("a guest");
        line::namespaces(&guest).expect("namespaces");
        for wire in ADAPTERS {
            wire.take(&guest).expect("an adapter at each end");
        }
        guest
    }))
}

/// The encapsulation over the wire, with each of the offloads in turn.
fn speaks(guest: &Guest, wire: Wire, encapsulation: &str, datapath: &str, turns: &[Offloads], bytes: u32) {
    let Some(rxlane) = crate::steer::rxlane() else { return };
    let line = Line::up(guest, &rxlane, wire, encapsulation, datapath).expect("a line");
    let before = line.errors().expect("counters");
    line.pings().expect("answers");
    for turn in turns {
        line.set(*turn).unwrap_or_else(|error| panic!("{line}: {turn}: {error:#}"));
        if let Err(error) = line.transfer(bytes) {
            panic!("{line}: {turn}: {error:#}; {}", line::summary(&line.status().expect("a status")));
        }
    }
    let after = line.errors().expect("counters");
    let more: Vec<_> = after.iter().filter(|(name, count)| before.get(*name) != Some(count)).collect();
    assert!(more.is_empty(), "{line}: errors at an end: {more:?}");
    let status = line.status().expect("a status");
    println!("{line}: {} turns, {}", turns.len(), line::summary(&status));
    assert_eq!(
        line::refused(&status),
        Vec::<String>::new(),
        "{line}: frames that an end made and the link refused"
    );
    assert!(
        wire != VETH || encapsulation.contains("pppoe") || line::came_together(&status),
        "{line}: the kernel's super-packets never came: {status}"
    );
    line.down().expect("ended");
}

#[test]
#[ignore = "make nightly"]
fn a_link_and_stacked_vlan_devices_take_all_that_the_other_sends() {
    let Some(guest) = guest() else { return };
    for datapath in DATAPATHS {
        let [provider, stacked] = TAGS;
        speaks(&guest, VETH, provider, datapath, &Offloads::OPPOSITES, SHORT);
        speaks(&guest, VETH, stacked, datapath, &Offloads::OPPOSITES, SHORT);
        // An adapter takes an outermost tag of 0x8100 off and puts it on, and leaves one of 0x88a8 alone. Where both are
        // 0x8100 and in the frame, as the link has them, the emulated one fills no checksum in.
        let [igb, e1000e] = ADAPTERS;
        speaks(&guest, igb, provider, datapath, &Offloads::OPPOSITES, LONG);
        speaks(&guest, e1000e, stacked, datapath, &Offloads::OPPOSITES[..1], LONG);
    }
}

#[test]
#[ignore = "make nightly"]
fn a_link_and_a_pppoe_interface_take_all_that_the_other_sends() {
    let Some(guest) = guest() else { return };
    for datapath in DATAPATHS {
        speaks(&guest, VETH, "pppoe:7", datapath, &Offloads::OPPOSITES[..1], SHORT);
        speaks(&guest, VETH, "q:35,pppoe:7", datapath, &Offloads::OPPOSITES[1..], SHORT);
        speaks(&guest, VETH, "ad:100,q:200,pppoe:7", datapath, &Offloads::OPPOSITES, SHORT);
        for (encapsulation, wire) in ["q:35,pppoe:7", "ad:100,q:200,pppoe:7"].into_iter().zip(ADAPTERS) {
            speaks(&guest, wire, encapsulation, datapath, &Offloads::OPPOSITES, LONG);
        }
    }
}

#[test]
#[ignore = "make nightly"]
fn any_combination_of_offloads_is_taken() {
    let Some(guest) = guest() else { return };
    for datapath in DATAPATHS {
        for encapsulation in [TAGS[0], "ad:100,q:200,pppoe:7"] {
            speaks(&guest, VETH, encapsulation, datapath, &offloads::turns(), SHORT);
        }
    }
}

/// The older kernel, at both ends.
#[test]
#[ignore = "make nightly"]
fn a_link_on_linux_6_1_speaks_with_its_devices() {
    let Some(guest) = crate::older() else { return };
    line::namespaces(&guest).expect("namespaces");
    // Before 6.2 the kernel has no word for a super-packet of UDP, and a packet socket does not get it.
    guest.sh("ip netns exec peer ethtool -K veth1 tx-udp-segmentation off").expect("switched off");
    for datapath in DATAPATHS {
        for encapsulation in ["ad:100,q:200", "q:35,pppoe:7"] {
            speaks(&guest, VETH, encapsulation, datapath, &Offloads::OPPOSITES[..1], LONG);
        }
    }
    line::no_namespaces(&guest).expect("removed");
}

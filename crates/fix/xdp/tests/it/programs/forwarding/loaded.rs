//! The maps as the daemon writes them, and ports.

use super::agreement::probe;
use super::flows::{Encapsulation, GENERATION, PORT, UDP, flow, frame, key, next_hops, v4};
use kernel::bpf;
use rxlane_xdp::forward::{Flow, Forwarding, Key, NextHop, Session, Tag};
use rxlane_xdp::{AttachedBy, Error, Interface, Mode};
use testkit::netns::{self, Namespace, Veth};
use testkit::require;

const PLAIN: Encapsulation = Encapsulation { tags: [None; 2], session: None };

fn flow_of(port: u16) -> Key {
    key(PLAIN, UDP, v4(1, port).into(), v4(2, 443).into())
}

#[test]
fn flows_are_inserted_renewed_counted_and_removed() {
    let Some(()) = require("bpf", probe()) else { return };
    let mut forwarding = Forwarding::load(2, 4).expect("loaded");
    forwarding.set_next_hop(0, next_hops()[0].as_ref()).expect("a next hop");
    forwarding.set_port(3, Some(PORT)).expect("a port");
    forwarding.beat(GENERATION).expect("a heartbeat");
    let (one, two, three) = (flow_of(1), flow_of(2), flow_of(3));
    assert_eq!(forwarding.used(&one).expect("read"), None);
    assert!(!forwarding.remove(&one).expect("removed"));
    forwarding.insert(&one, &flow()).expect("one");
    forwarding.insert(&two, &flow()).expect("two");
    let error = forwarding.insert(&three, &flow()).expect_err("full");
    assert!(matches!(error, Error::NoSpace { flows: 2 }), "{error}");
    assert_eq!(error.to_string(), "no space: more flows than 2");

    let packet = frame(&one, b"1234");
    forwarding.beat(GENERATION).expect("a heartbeat");
    assert_eq!(forwarding.run(&packet, PORT).expect("a run").0, 4);
    let used = forwarding.used(&one).expect("read").expect("a flow");
    assert_eq!((used.packets, used.bytes), (1, 32));
    forwarding.renew(&one, &Flow { generation: GENERATION + 1, ..flow() }).expect("renewed");
    assert_eq!(forwarding.used(&one).expect("read"), Some(used));
    assert_eq!(forwarding.run(&packet, PORT).expect("a run").0, 2, "of another generation");
    forwarding.insert(&one, &flow()).expect("anew");
    assert_eq!(forwarding.used(&one).expect("read").expect("a flow").packets, 0);

    forwarding.set_port(3, None).expect("no port");
    assert_eq!(forwarding.run(&packet, PORT).expect("a run").0, 2);
    forwarding.set_port(3, Some(PORT)).expect("a port");
    forwarding.set_next_hop(0, None).expect("no next hop");
    assert_eq!(forwarding.run(&packet, PORT).expect("a run").0, 2);
    assert!(forwarding.remove(&one).expect("removed"));
    forwarding.insert(&three, &flow()).expect("space again");
}

#[test]
fn what_no_packet_can_have_is_refused() {
    let tag = Some(Tag { tpid: 0x8100, vid: 1 });
    let session = Some(Session { id: 0, peer: super::flows::PEER });
    let known = flow_of(1);
    for key in [
        Key { tags: [None, tag], ..known },
        Key { session, ..known },
        Key { protocol: 1, ..known },
        Key { destination: "[::1]:2".parse().expect("an address"), ..known },
    ] {
        assert!(matches!(key.value(), Err(Error::Plan(_))), "{key:?}");
    }
    let v6 = "[2001:db8::1]:1".parse().expect("an address");
    let translated = Flow { translated: Some((v4(1, 1), v4(2, 2))), ..flow() };
    assert!(translated.value(&Key { source: v6, destination: v6, ..known }).is_err());
    assert!(Flow { limit: 4, ..flow() }.value(&known).is_err());
    let next = next_hops()[0].expect("a next hop");
    assert!(NextHop { tags: [None, tag], ..next }.value().is_err());
}

/// The program is on a port as long as this lives, whoever else has its link open.
#[test]
fn a_port_ends_with_its_value() {
    let Some(()) = require("bpf", probe()) else { return };
    let Some(()) = require("netns", netns::probe()) else { return };
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth::pair("lan0", "host0")).expect("a pair");
    let checked = namespace.inside(|| {
        let forwarding = Forwarding::load(16, 4)?;
        let interface = Interface::find("lan0")?;
        let port = forwarding.attach(&interface, Mode::Native)?;
        assert_eq!(port.interface(), &interface);
        let program = interface.program()?.expect("a program");
        assert_eq!((program.name.as_deref(), program.mode), (Some("fastpath"), Some(Mode::Native)));
        assert!(matches!(forwarding.attach(&interface, Mode::Native), Err(Error::Foreign { .. })));
        let Some(AttachedBy::Link(id)) = program.attached_by else { panic!("{program:?}") };
        let open = bpf::link_by_id(id).expect("the link");
        drop(port);
        assert_eq!(interface.program()?, None);
        drop(open);
        let generic = forwarding.attach(&interface, Mode::Generic)?;
        drop(forwarding);
        assert!(interface.program()?.is_some(), "a port holds its program");
        drop(generic);
        assert_eq!(interface.program()?, None);
        Ok::<_, Error>(())
    });
    checked.expect("attached");
}

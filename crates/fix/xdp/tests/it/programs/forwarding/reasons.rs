//! Frames that stay with the kernel, and why.

use super::agreement::Agreement;
use super::flows::{
    Encapsulation, GENERATION, MISSING, SHORT, TCP, UDP, WITHOUT_PORT, encapsulations, flow, frame, key,
    packet_at, v4,
};
use rxlane_xdp::forward::{Flow, Key};
use rxlane_xdp::forward_layout::{HEARTBEAT_MOST_NS, Pass};
use rxlane_xdp::forward_reference::Verdict;
use std::collections::BTreeSet;
use wire::emit::checksum::internet;

const PLAIN: Encapsulation = Encapsulation { tags: [None; 2], session: None };

/// A flow of IPv4 with this source port.
fn flow_of(protocol: u8, port: u16) -> Key {
    key(PLAIN, protocol, v4(1, port).into(), v4(2, 443).into())
}

/// Changes a packet of IPv4, and makes its header's checksum right again.
fn changed(key: &Key, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(key, b"some payload");
    let ip = packet_at(key);
    frame[ip + at..ip + at + bytes.len()].copy_from_slice(bytes);
    frame[ip + 10..ip + 12].fill(0);
    let checksum = internet(&frame[ip..ip + 20]);
    frame[ip + 10..ip + 12].copy_from_slice(&checksum.to_be_bytes());
    frame
}

/// A frame of this key with bytes changed from a place on.
fn with(key: &Key, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame(key, b"some payload");
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

/// Why a frame stays with the kernel, what is special about it, and the frame.
type Staying = (Pass, &'static str, Vec<u8>);

/// Every reason but those that depend on time and memory.
fn reasons() -> (Vec<(Key, Flow)>, Vec<Staying>) {
    let (tcp, udp) = (flow_of(TCP, 1), flow_of(UDP, 1));
    let session = key(encapsulations()[4], UDP, v4(1, 1).into(), v4(2, 443).into());
    let v6 = |protocol| {
        key(
            PLAIN,
            protocol,
            "[2001:db8::1]:1".parse().expect("an address"),
            "[2001:db8::2]:2".parse().expect("one"),
        )
    };
    let to = |next_hop| Flow { next_hop, ..flow() };
    let special = [
        (flow_of(UDP, 10), Flow { generation: GENERATION + 1, ..flow() }),
        (flow_of(UDP, 11), to(MISSING)),
        (flow_of(UDP, 12), to(WITHOUT_PORT)),
        (flow_of(UDP, 13), to(SHORT)),
        (flow_of(UDP, 14), to(1_000_000)),
        (flow_of(UDP, 15), Flow { verified: true, ..flow() }),
        (flow_of(TCP, 15), Flow { verified: true, ..flow() }),
        (Key { port: 2, ..flow_of(UDP, 16) }, flow()),
        (key(PLAIN, UDP, v4(1, 17).into(), v4(2, 443).into()), flow()),
    ];
    let mut flows: Vec<(Key, Flow)> = [tcp, udp, session, v6(TCP), v6(UDP)].map(|key| (key, flow())).into();
    flows.extend(special);
    let plain = |port: u16| frame(&flow_of(UDP, port), b"some payload");
    let session_zero = {
        // Everything of it is the key of a packet without PPPoE.
        let hidden =
            key(Encapsulation { session: Some(1), ..PLAIN }, UDP, v4(1, 17).into(), v4(2, 443).into());
        let mut frame = frame(&hidden, b"some payload");
        frame[6..12].fill(0);
        frame[16..18].fill(0);
        frame
    };
    let cut = |key: &Key, length: usize| frame(key, b"some payload")[..length].to_vec();
    // Behind MAC addresses, a tag and the EtherType.
    let pppoe = 12 + 4 + 2;
    let frames = vec![
        (Pass::NoEntry, "an unknown port", plain(99)),
        (Pass::NoEntry, "another interface", plain(16)),
        (Pass::NoEntry, "another VLAN", with(&session, 15, &[36])),
        (Pass::NoEntry, "another session", with(&session, pppoe + 3, &[0x35])),
        (Pass::NotAddressed, "another access concentrator", with(&session, 11, &[9])),
        (Pass::Stale, "another generation", plain(10)),
        (Pass::NotAddressed, "another station", with(&udp, 5, &[9])),
        (Pass::NotAddressed, "all stations", with(&udp, 0, &[0xff; 6])),
        (Pass::NotAddressed, "from a group", with(&udp, 6, &[3])),
        (Pass::NotAddressed, "from nobody", with(&udp, 6, &[0; 6])),
        (Pass::NoNextHop, "an empty place", plain(11)),
        (Pass::NoNextHop, "no port", plain(12)),
        (Pass::NoNextHop, "a place beyond the last", plain(14)),
        (Pass::TooLong, "101 bytes", frame(&flow_of(UDP, 13), &[1; 73])),
        (Pass::TooLong, "1501 bytes", frame(&udp, &[1; 1473])),
        (Pass::Fragment, "the first", changed(&udp, 6, &[0x20, 0])),
        (Pass::Fragment, "the last", changed(&udp, 6, &[0, 9])),
        (Pass::IpOptions, "IHL 6", changed(&udp, 0, &[0x46])),
        (Pass::OtherProtocol, "ICMP", changed(&udp, 9, &[1])),
        (Pass::OtherProtocol, "a fragment of IPv6", with(&v6(UDP), 14 + 6, &[44])),
        (Pass::OtherProtocol, "ICMPv6", with(&v6(UDP), 14 + 6, &[58])),
        (Pass::Ttl, "TTL 1", changed(&udp, 8, &[1])),
        (Pass::Ttl, "TTL 0", changed(&udp, 8, &[0])),
        (Pass::Ttl, "hop limit 1", with(&v6(UDP), 14 + 7, &[1])),
        (Pass::TcpFlags, "SYN", with(&tcp, 47, &[0x02])),
        (Pass::TcpFlags, "SYN, ACK", with(&tcp, 47, &[0x12])),
        (Pass::TcpFlags, "FIN", with(&tcp, 47, &[0x11])),
        (Pass::TcpFlags, "RST", with(&tcp, 47, &[0x14])),
        (Pass::TcpFlags, "nothing", with(&tcp, 47, &[0])),
        (Pass::Control, "discovery", with(&udp, 12, &[0x88, 0x63])),
        (Pass::Control, "LCP", with(&session, pppoe + 6, &[0xc0, 0x21])),
        (Pass::Control, "a compressed protocol field", with(&session, pppoe + 6, &[0x21, 0x45])),
        (Pass::Pppoe, "version 2", with(&session, pppoe, &[0x21])),
        (Pass::Pppoe, "a code of discovery", with(&session, pppoe + 1, &[0xa7])),
        (Pass::Pppoe, "session 0", session_zero),
        (Pass::Pppoe, "a length beyond the frame", with(&session, pppoe + 4, &[0x40, 0])),
        (Pass::Pppoe, "a length below that of PPP", with(&session, pppoe + 4, &[0, 1])),
        (Pass::Pppoe, "padding within the session", {
            let mut frame = frame(&session, b"some payload");
            frame[pppoe + 5] += 2;
            frame.extend([0, 0]);
            frame
        }),
        (Pass::NotIp, "ARP", with(&udp, 12, &[8, 6])),
        (Pass::NotIp, "three tags", with(&session, 12, &[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0])),
        (Pass::Malformed, "a short frame", cut(&udp, 21)),
        (Pass::Malformed, "a cut header", cut(&udp, 33)),
        (Pass::Malformed, "a cut header of IPv6", cut(&v6(UDP), 53)),
        (Pass::Malformed, "a cut packet", cut(&udp, 50)),
        (Pass::Malformed, "version 5", changed(&udp, 0, &[0x55])),
        (Pass::Malformed, "IHL 4", changed(&udp, 0, &[0x44])),
        (Pass::Malformed, "version 4 as IPv6", with(&v6(UDP), 14, &[0x45])),
        (Pass::Malformed, "a length below the header's", changed(&udp, 2, &[0, 19])),
        (Pass::Malformed, "a header checksum", with(&udp, 25, &[0])),
        (Pass::Malformed, "a UDP length", with(&udp, 38, &[0, 21])),
        (Pass::Malformed, "a TCP header of 16 bytes", with(&tcp, 46, &[0x40])),
        (Pass::Malformed, "a TCP header beyond the packet", with(&tcp, 46, &[0xf0])),
        (Pass::Malformed, "no whole TCP header", changed(&tcp, 2, &[0, 39])),
        (Pass::Checksum, "UDP", with(&flow_of(UDP, 15), 45, b"!")),
        (Pass::Checksum, "TCP", with(&flow_of(TCP, 15), 60, b"!")),
        (Pass::Checksum, "UDP with padding", [with(&flow_of(UDP, 15), 45, b"!"), vec![1; 9]].concat()),
    ];
    (flows, frames)
}

#[test]
fn every_reason_has_frames() {
    let (flows, frames) = reasons();
    let mut agreement = Agreement::new(&flows);
    let mut seen = BTreeSet::new();
    for (pass, what, frame) in &frames {
        assert_eq!(agreement.check(frame), Verdict::Passed(*pass), "{pass:?}, {what}");
        seen.insert(*pass);
    }
    // What they are changed from is forwarded.
    for (key, flow) in &flows {
        if flow.generation == GENERATION && key.port == 1 && flow.next_hop == 0 {
            assert!(matches!(agreement.check_flow(key, &frame(key, b"some payload")), Verdict::Sent { .. }));
        }
    }
    agreement.finish();
    seen.extend([Pass::DaemonSilent, Pass::NoRoom]);
    assert_eq!(seen, BTreeSet::from(Pass::ALL), "the other two have tests of their own");
}

#[test]
fn a_silent_daemon_and_another_generation_stop_every_flow() {
    let udp = flow_of(UDP, 1);
    let mut agreement = Agreement::new(&[(udp, flow())]);
    let frame = frame(&udp, b"some payload");
    assert!(matches!(agreement.check_flow(&udp, &frame), Verdict::Sent { .. }));
    let now = super::agreement::now_ns();
    agreement.beat(GENERATION, now.saturating_sub(HEARTBEAT_MOST_NS + 1_000_000_000));
    assert_eq!(agreement.check(&frame), Verdict::Passed(Pass::DaemonSilent));
    agreement.beat(GENERATION + 1, now + 3_600_000_000_000);
    assert_eq!(agreement.check(&frame), Verdict::Passed(Pass::Stale));
    agreement.beat(GENERATION, now + 3_600_000_000_000);
    assert!(matches!(agreement.check_flow(&udp, &frame), Verdict::Sent { .. }));
    agreement.finish();
}

/// Another connection with the same addresses and ports may begin behind it, of which the kernel has to see everything.
#[test]
fn what_ends_or_begins_a_connection_pauses_its_direction() {
    let tcp = flow_of(TCP, 1);
    let answers = Key { source: tcp.destination, destination: tcp.source, ..tcp };
    for flags in [0x02, 0x12, 0x11, 0x14, 0x04, 0x00] {
        let mut agreement = Agreement::new(&[(tcp, flow()), (answers, flow())]);
        let usual = frame(&tcp, b"some payload");
        assert!(matches!(agreement.check_pausing(&usual), Verdict::Sent { .. }));
        let unusual = with(&tcp, 47, &[flags]);
        assert_eq!(agreement.check_pausing(&unusual), Verdict::Passed(Pass::TcpFlags), "{flags:#x}");
        assert_eq!(agreement.check_pausing(&usual), Verdict::Passed(Pass::Stale), "{flags:#x}");
        assert!(matches!(agreement.check_pausing(&frame(&answers, b"back")), Verdict::Sent { .. }));
        // Installed anew it goes on.
        agreement.check(&unusual);
        assert!(matches!(agreement.check_pausing(&usual), Verdict::Sent { .. }));
    }
}

/// The kernel always has more in front of a frame of a test run, so that only the other two can say it.
#[test]
fn without_space_in_front_a_frame_stays_as_it_is() {
    let udp = flow_of(UDP, 1);
    let mut agreement = Agreement::new(&[(udp, Flow { next_hop: 5, ..flow() })]);
    agreement.kernel = None;
    let frame = [frame(&udp, b"some payload"), vec![7; 9]].concat();
    for headroom in 0..20 {
        agreement.tables.headroom = headroom;
        let verdict = agreement.check(&frame);
        assert_eq!(verdict == Verdict::Passed(Pass::NoRoom), headroom < 16, "{headroom}: {verdict:?}");
    }
    agreement.finish();
}

#[test]
fn a_limit_drops_what_exceeds_it() {
    let (limited, other) = (flow_of(UDP, 1), flow_of(UDP, 2));
    let flows = [(limited, Flow { limit: 2, ..flow() }), (other, Flow { limit: 3, ..flow() })];
    let mut agreement = Agreement::new(&flows);
    // A byte a second, 1500 at once: what is over that is not made up for while the test runs.
    agreement.limit(2, 8, 1500);
    let thousand = frame(&limited, &[0; 972]);
    assert!(matches!(agreement.check_flow(&limited, &thousand), Verdict::Sent { .. }));
    assert!(matches!(agreement.check_flow(&limited, &thousand), Verdict::Sent { .. }));
    for _ in 0..3 {
        assert_eq!(agreement.check(&thousand), Verdict::Limited);
    }
    let unlimited = frame(&other, &[0; 972]);
    for _ in 0..5 {
        assert!(matches!(agreement.check_flow(&other, &unlimited), Verdict::Sent { .. }), "no rate was set");
    }
    agreement.finish();
}

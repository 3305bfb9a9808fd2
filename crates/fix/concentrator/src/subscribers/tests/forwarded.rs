//! What programs in XDP make of frames, compared with the workers' own parser.

use super::*;
use kernel::netlink::link_by_name;
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;
use wire::VlanPattern;
use wire::emit::checksum::{fill, internet};
use xdp::subscribers::Way;

/// `enum xdp_action`.
const DROP: u32 = 1;
const PASS: u32 = 2;
const REDIRECT: u32 = 4;

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));
const LINES: [&str; 4] = ["none", "q:35", "ad:100,q:200", "q:0"];
const ROUTER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xee]);

/// A concentrator with the programs on its interfaces, and sessions: of the first four lines one each.
struct Topology {
    namespace: Namespace,
    subscribers: Subscribers,
    registry: Registry,
    sessions: Vec<(Session, Number)>,
    local: MacAddress,
    uplink: MacAddress,
    /// Numbers of the interfaces.
    indices: [u32; 2],
}

fn six(number: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 1, number, 0, 0, 0, 7))
}

impl Topology {
    fn new() -> Option<Topology> {
        require("netns", probe())?;
        let loaded = xdp::subscribers::Programs::load(1, 1, 16);
        require("bpf", loaded.map(drop).map_err(|error| testkit::Missing(error.to_string())))?;
        let namespace = Namespace::new().expect("a namespace");
        for (near, far) in [("near0", "far0"), ("up0", "out0")] {
            namespace.veth(&Veth { mtu: 1600, ..Veth::pair(near, far) }).expect("a pair");
            namespace.run("ethtool", &["-K", near, "rxvlan", "off"]).expect("tags in frames");
            namespace.run("ethtool", &["-K", far, "gro", "on"]).expect("an end that polls");
        }
        for setting in
            ["net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=0", "net.ipv6.conf.up0.disable_ipv6=0"]
        {
            namespace.run("sysctl", &["-qw", setting]).expect("a setting");
        }
        namespace.run("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=0"]).expect("a setting");
        namespace.run("sysctl", &["-qw", "net.ipv6.conf.all.forwarding=1"]).expect("a setting");
        let config = Config {
            name: "bras0".to_owned(),
            parent: "near0".to_owned(),
            vlans: VlanPattern::Any,
            addresses: vec!["10.0.0.1/32".parse().expect("an address")],
            mtu: 1492,
            workers: 1,
            limits: LIMITS,
            uplinks: vec!["up0".to_owned()],
        };
        let (subscribers, mut registry, [local, uplink], indices) = namespace.inside(|| {
            let link = |name| link_by_name(name).expect("there");
            let (subscribers, registry) = Subscribers::up(&config).expect("up");
            let macs = ["near0", "up0"].map(|name| link(name).mac.expect("an address"));
            (subscribers, registry, macs, ["near0", "up0"].map(|name| link(name).index))
        });
        let router = ROUTER.to_string();
        for command in [
            "address add 198.51.100.1/24 dev up0",
            "-6 address add 2001:db8:ff::1/64 dev up0 nodad",
            "route add default via 198.51.100.2",
            "-6 route add default via 2001:db8:ff::2",
            "route add 10.64.0.0/16 dev bras0",
            "-6 route add 2001:db8:1::/48 dev bras0",
            &format!("neigh add 198.51.100.2 lladdr {router} dev up0 nud permanent"),
            &format!("neigh add 2001:db8:ff::2 lladdr {router} dev up0 nud permanent"),
        ] {
            namespace.run("ip", &command.split(' ').collect::<Vec<_>>()).expect(command);
        }
        let mut sessions = Vec::new();
        for (number, line) in (0..).zip(LINES) {
            let session = Session { mss_clamp: number % 2 == 0, ..session(line, number) };
            let own = registry.insert(&session).expect("room");
            registry.add_address(own, address(number).into()).expect("free");
            let prefix = Network::of(six(number), 64).expect("a prefix");
            registry.add_prefix(own, prefix).expect("free");
            sessions.push((session, own));
        }
        let forwarder = subscribers.forwarder.clone().expect("programs");
        namespace.inside(move || forwarder.attach()).expect("on the interfaces");
        Some(Topology { namespace, subscribers, registry, sessions, local, uplink, indices })
    }

    fn run(&self, way: Way, frame: &[u8]) -> (u32, Vec<u8>) {
        self.run_all(&[(way, frame.to_vec())]).remove(0)
    }

    /// All in one visit of the namespace.
    fn run_all(&self, frames: &[(Way, Vec<u8>)]) -> Vec<(u32, Vec<u8>)> {
        let [lines, uplink] = self.indices;
        let forwarder = self.subscribers.forwarder.clone().expect("programs");
        let run = |(way, frame): &(Way, Vec<u8>)| {
            forwarder.run(*way, frame, if *way == Way::FromSubscribers { lines } else { uplink })
        };
        self.namespace.inside(|| frames.iter().map(run).collect())
    }

    fn reasons(&self, way: Way) -> std::collections::BTreeMap<&'static str, u64> {
        let counts = self.registry.forwarded().expect("programs").counts[way as usize];
        xdp::subscribers_layout::Pass::ALL.iter().map(|reason| reason.name()).zip(counts.passed).collect()
    }

    /// The reason that one frame more was left for.
    #[track_caller]
    fn passed(&self, way: Way, frame: &[u8]) -> &'static str {
        let before = self.reasons(way);
        let (action, after) = self.run(way, frame);
        assert_eq!((action, &after[..]), (PASS, frame));
        let more = self.reasons(way).into_iter().find(|(reason, count)| before[reason] != *count);
        more.expect("a reason").0
    }
}

/// A packet that has passed one more router.
fn aged(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if packet[0] >> 4 == 6 {
        packet[7] -= 1;
        return packet;
    }
    packet[8] -= 1;
    packet[10..12].fill(0);
    let checksum = internet(&packet[..20]).to_be_bytes();
    packet[10..12].copy_from_slice(&checksum);
    packet
}

fn ethernet_frame(to: MacAddress, from: MacAddress, packet: &[u8]) -> Vec<u8> {
    let ethertype: [u8; 2] = if packet[0] >> 4 == 6 { [0x86, 0xdd] } else { [8, 0] };
    [&to.0[..], &from.0, &ethertype, packet].concat()
}

/// TCP with these flags, and a right checksum.
fn segment(source: IpAddr, destination: IpAddr, flags: u8) -> Vec<u8> {
    let mut packet = datagram(source, destination, &[0; 12]);
    let at = if source.is_ipv4() { 20 } else { 40 };
    let place = if source.is_ipv4() { 9 } else { 6 };
    packet[place] = 6;
    packet[at..at + 20].copy_from_slice(&[1, 2, 3, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, flags, 1, 0, 0, 0, 0, 0]);
    fill(source, destination, IpProtocol(6), &mut packet[at..]).expect("a checksum");
    if source.is_ipv4() {
        packet[10..12].fill(0);
        let checksum = internet(&packet[..20]).to_be_bytes();
        packet[10..12].copy_from_slice(&checksum);
    }
    packet
}

/// Packets of a session, and where they are from and to, of both IP versions.
fn packets(number: u16, upward: bool, payload: &[u8]) -> [Vec<u8>; 2] {
    let far6 = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xbb, 0, 0, 0, 0, 1));
    [(address(number).into(), HOST), (six(number), far6)]
        .map(|(own, far)| if upward { datagram(own, far, payload) } else { datagram(far, own, payload) })
}

#[test]
fn packets_of_every_line_leave_both_ways_and_count_for_their_session() {
    let Some(topology) = Topology::new() else { return };
    for (number, (session, own)) in (0..).zip(&topology.sessions) {
        let mut expected = Usage::default();
        for payload in [&b"up"[..], &[7; 1400]] {
            for packet in packets(number, true, payload) {
                let bare = frame(session, topology.local, &packet);
                // With padding behind it.
                for arrived in [bare.clone(), [&bare[..], &[0xee; 20]].concat()] {
                    let sent = ethernet_frame(ROUTER, topology.uplink, &aged(&packet));
                    assert_eq!(topology.run(Way::FromSubscribers, &arrived), (REDIRECT, sent), "{session:?}");
                    expected.received.frames += 1;
                    expected.received.bytes += bare.len() as u64;
                }
            }
            for packet in packets(number, false, payload) {
                let bare = ethernet_frame(topology.uplink, ROUTER, &packet);
                for arrived in [bare.clone(), [&bare[..], &[0xee; 20]].concat()] {
                    let sent = frame_to(session, topology.local, &aged(&packet));
                    expected.sent.frames += 1;
                    expected.sent.bytes += sent.len() as u64;
                    assert_eq!(topology.run(Way::ToSubscribers, &arrived), (REDIRECT, sent), "{session:?}");
                }
            }
        }
        assert_eq!(topology.registry.usage(*own), Ok(expected), "{session:?}");
    }
}

#[test]
fn what_the_programs_do_not_forward_has_its_reason() {
    let Some(mut topology) = Topology::new() else { return };
    use Way::{FromSubscribers as Up, ToSubscribers as Down};
    let (session, own) = topology.sessions[0];
    let (other, _) = topology.sessions[1];
    let up = |packet: &[u8]| frame(&session, topology.local, packet);
    let down = |packet: &[u8]| ethernet_frame(topology.uplink, ROUTER, packet);
    let [packet, packet6] = packets(0, true, b"x");
    let [back, back6] = packets(0, false, b"x");
    let with = |packet: &[u8], at: usize, value: u8| {
        let mut packet = packet.to_vec();
        packet[at] = value;
        packet[10..12].fill(0);
        let checksum = internet(&packet[..20]).to_be_bytes();
        packet[10..12].copy_from_slice(&checksum);
        packet
    };
    let far = MacAddress([2, 9, 9, 9, 9, 9]);
    let mut frames = vec![
        (Up, "not-addressed", frame(&session, far, &packet)),
        (Up, "no-session", frame(&other, topology.local, &packet)),
        (Up, "no-session", frame(&Session { id: 99, ..session }, topology.local, &packet)),
        (Up, "no-session", frame(&Session { peer: far, ..session }, topology.local, &packet)),
        (Up, "no-session", up(&datagram(address(1).into(), HOST, b"x"))),
        (Up, "no-session", up(&datagram(Ipv4Addr::new(198, 51, 100, 77).into(), HOST, b"x"))),
        (Up, "ttl", up(&with(&packet, 8, 1))),
        (Up, "malformed", up(&with(&packet, 0, 0x44))),
        (Up, "ip-options", up(&with(&packet, 0, 0x46))),
        (Up, "malformed", {
            let mut wrong = up(&packet);
            let last = wrong.len() - packet.len() + 10;
            wrong[last] ^= 1;
            wrong
        }),
        (Up, "syn", up(&segment(address(0).into(), HOST, 2))),
        (Up, "route", up(&datagram(address(0).into(), SERVER, b"x"))),
        (Up, "route", up(&datagram(address(0).into(), address(1).into(), b"x"))),
        (Up, "route", up(&datagram(address(0).into(), Ipv4Addr::new(224, 0, 0, 5).into(), b"x"))),
        (Up, "route", up(&datagram(address(0).into(), Ipv4Addr::new(127, 0, 0, 1).into(), b"x"))),
        (Down, "route", down(&datagram(IpAddr::V6(Ipv6Addr::LOCALHOST), six(0), b"x"))),
        (Up, "route", up(&datagram(six(0), IpAddr::V6(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1)), b"x"))),
        (Up, "no-neighbour", up(&datagram(address(0).into(), Ipv4Addr::new(198, 51, 100, 9).into(), b"x"))),
        (Down, "not-addressed", ethernet_frame(far, ROUTER, &back)),
        (Down, "no-session", down(&datagram(HOST, Ipv4Addr::new(10, 64, 9, 9).into(), b"x"))),
        (Down, "no-session", down(&datagram(HOST, SERVER, b"x"))),
        (Down, "ttl", down(&with(&back, 8, 1))),
        (Down, "syn", down(&segment(HOST, address(0).into(), 0x12))),
        (Down, "too-long", down(&datagram(HOST, address(0).into(), &[0; 1492 - 27]))),
        (Down, "route", down(&datagram(Ipv4Addr::LOCALHOST.into(), address(0).into(), b"x"))),
        (Down, "not-ip", {
            let mut tagged = down(&back);
            tagged[12..14].copy_from_slice(&[0x81, 0]);
            tagged
        }),
    ];
    let mut hop = up(&packet6);
    let at = hop.len() - packet6.len();
    hop[at + 7] = 1;
    frames.push((Up, "ttl", hop));
    let mut extended = down(&back6);
    extended[14 + 6] = 44;
    frames.push((Down, "ip-options", extended));
    let mut control = up(&packet);
    control[20..22].copy_from_slice(&[0xc0, 0x21]);
    frames.push((Up, "control", control));
    let mut discovery = up(&packet);
    discovery[13] = 0x63;
    frames.push((Up, "control", discovery));
    // A checksum that is left to a device: the sum of the pseudo header.
    let mut unfinished = segment(HOST, address(1).into(), 0x10);
    unfinished[36..38].fill(0);
    let sum = wire::emit::checksum::Sum::pseudo_header(HOST, address(1).into(), IpProtocol(6), 20)
        .expect("one version");
    unfinished[36..38].copy_from_slice(&sum.folded().to_be_bytes());
    frames.push((Down, "checksum", down(&unfinished)));
    for (way, reason, frame) in frames {
        assert_eq!(topology.passed(way, &frame), reason, "{frame:02x?}");
    }
    assert_eq!(topology.registry.usage(own), Ok(Usage::default()));
    // Without a clamp the daemon has nothing to do with it.
    let syn = frame(&other, topology.local, &segment(address(1).into(), HOST, 2));
    assert_eq!(topology.run(Up, &syn).0, REDIRECT);

    // A rate is that of the session, and what exceeds it counts as dropped.
    let rates = BitRates { upload: Some(8_000), download: Some(8_000) };
    topology.registry.change(own, &Session { rates, ..session }).expect("there");
    for (way, frame) in
        [(Up, up(&packets(0, true, &[0; 1000])[0])), (Down, down(&packets(0, false, &[0; 1000])[0]))]
    {
        let actions: Vec<u32> = (0..40).map(|_| topology.run(way, &frame).0).collect();
        let passed = actions.iter().filter(|action| **action == REDIRECT).count();
        assert!((14..=16).contains(&passed) && actions[39] == DROP, "{actions:?}");
    }
    let usage = topology.registry.usage(own).expect("there");
    assert_eq!(usage.received.frames + u64::from(usage.received_dropped), 40);
    assert_eq!(usage.sent.frames + u64::from(usage.sent_dropped), 40);

    // Nothing is forwarded of a session that has ended, nor of the next one at its place.
    topology.registry.remove(own).expect("there");
    let (up_frame, down_frame) = (up(&packet), down(&back));
    assert_eq!([topology.passed(Up, &up_frame), topology.passed(Down, &down_frame)], ["no-session"; 2]);
}

/// Whatever a frame is: where a program forwards it, the workers' parser finds the same packet in it, of the same session.
#[test]
fn frames_with_mistakes_are_forwarded_only_where_the_workers_would_take_them() {
    let Some(topology) = Topology::new() else { return };
    let view = topology.registry.view();
    let mut state = 0x5eed_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as usize % below
    };
    let mut forwarded = 0;
    let tries = std::env::var("RXLANE_FUZZ_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(4000);
    let frames: Vec<(Way, Vec<u8>)> = (0..tries)
        .map(|_| {
            let number = random(LINES.len());
            let (session, _) = &topology.sessions[number];
            let upward = random(2) == 0;
            let payload = vec![0x5a; random(60)];
            let packet = packets(number as u16, upward, &payload)[random(2)].clone();
            let mut arrived = if upward {
                frame(session, topology.local, &packet)
            } else {
                ethernet_frame(topology.uplink, ROUTER, &packet)
            };
            match random(4) {
                0 => arrived.truncate(random(arrived.len()).max(14)),
                1 => arrived.extend(vec![0xdd; random(40)]),
                _ => {}
            }
            for _ in 0..random(3) {
                let at = random(arrived.len().min(64));
                arrived[at] = match random(3) {
                    0 => 0,
                    1 => arrived[at] ^ 1 << random(8),
                    _ => random(256) as u8,
                };
            }
            (if upward { Way::FromSubscribers } else { Way::ToSubscribers }, arrived)
        })
        .collect();
    let outcomes = topology.run_all(&frames);
    for ((way, arrived), (action, out)) in frames.iter().zip(outcomes) {
        if action != REDIRECT {
            assert_eq!((action, &out), (PASS, arrived));
            continue;
        }
        forwarded += 1;
        if *way == Way::FromSubscribers {
            let range = packet_of(&view, arrived).unwrap_or_else(|why| panic!("{why} {arrived:02x?}"));
            assert_eq!(out[14..], aged(&arrived[range]), "{arrived:02x?}");
        } else {
            let length = link::framing::ip_length(
                if arrived[12] == 8 { IpVersion::V4 } else { IpVersion::V6 },
                &arrived[14..],
            );
            let packet = &arrived[14..14 + length.expect("whole")];
            let (mut space, mut head) = (offload::Prefix::NONE, [0; 64]);
            let length = head_of(&view, packet, &mut space, &mut head).expect("a subscriber's");
            assert_eq!(out, [&head[..length], &aged(packet)].concat(), "{arrived:02x?}");
        }
    }
    assert!(forwarded > tries / 10, "{forwarded} of {tries}");
}

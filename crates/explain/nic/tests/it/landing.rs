//! Where frames land: the facts of datasheets and field reports, put to the model frame by frame.

use nic::{Disposition, Landing, ParserDepth, Profile, Receiver, Setup, Why, builtin, lookup, schema};
use rss::{HashKey, HashType, HashUnit, Packet};
use rxlane_nic as nic;
use wire::{Link, dissect};

/// An Ethernet frame: tags by TPID, an EtherType, the rest.
fn frame(tpids: &[u16], ethertype: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    for tpid in tpids {
        frame.extend(tpid.to_be_bytes());
        frame.extend([0, 7]);
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(rest);
    frame
}

/// An IPv4 packet with 20 bytes behind the header; `flags` is the field of flags and fragment offset. The
/// addresses and ports are those of Microsoft's "Verifying the RSS Hash Calculation", first line.
fn ipv4(protocol: u8, flags: u16, options: &[u8]) -> Vec<u8> {
    let length = (40 + options.len()) as u16;
    let mut packet = vec![0x45 + (options.len() / 4) as u8, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1]);
    packet.extend(flags.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 66, 9, 149, 187, 161, 142, 100, 80]);
    packet.extend(options);
    packet.extend([0x0a, 0xea, 0x06, 0xe6]);
    match protocol {
        17 => packet.extend([0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        _ => packet.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]),
    }
    packet
}

fn tcp() -> Vec<u8> {
    ipv4(6, 0x4000, &[])
}

fn pppoe(packet: &[u8]) -> Vec<u8> {
    let mut rest = vec![0x11, 0, 0, 1];
    rest.extend(((packet.len() + 2) as u16).to_be_bytes());
    rest.extend([0, 0x21]);
    rest.extend(packet);
    rest
}

fn receiver(nic: &str, setup: &Setup) -> Receiver {
    Receiver::new(lookup(nic).unwrap(), setup).unwrap()
}

fn land(receiver: &Receiver, frame: &[u8]) -> (Disposition, Landing) {
    let dissection = dissect(Link::Ethernet, frame, frame.len());
    let disposition = receiver.disposition(&dissection);
    let landing = receiver.land(&disposition, frame, &dissection);
    (disposition, landing)
}

const MICROSOFT_TCP: u32 = 0x51cc_c178;
const MICROSOFT_IPV4: u32 = 0x323e_8fc2;

/// PPPoE on an I210 fits no hash type, index 0, tag 0 (datasheet 7.1.2.10, "A Sad Slow PPPoE Story"). Of bnxt the default
/// ring, which is ring 0, takes what no RSS rule matches (its firmware interface). The 82599 hashes no stacked frames (NTT),
/// nor in double-VLAN mode (DPDK's guide); what is not hashed goes to queue 0 (Snabb's driver, DPDK's test plan).
#[test]
fn unhashed_frames_are_on_queue_0_whatever_the_table() {
    let in_pppoe = [frame(&[], 0x8864, &pppoe(&tcp())), frame(&[0x8100], 0x8864, &pppoe(&tcp()))];
    let stacked = [frame(&[0x8100, 0x8100], 0x0800, &tcp()), frame(&[0x88a8, 0x8100], 0x0800, &tcp())];
    let arp = [frame(&[], 0x0806, &[0; 28])];
    for (names, frames) in [
        (&["i210"][..], &in_pppoe[..]),
        (&["82599", "82599+double-vlan", "x540", "x540+double-vlan"], &stacked),
        (&["bnxt"], &arp),
    ] {
        for (name, table) in
            names.iter().flat_map(|name| [None, Some(vec![3; 128])].map(|table| (name, table)))
        {
            let receiver = receiver(name, &Setup { queues: Some(4), table, ..Setup::default() });
            for frame in frames {
                let landing = land(&receiver, frame).1;
                assert_eq!(landing, Landing { hash_type: HashType::None, hash: 0, queue: Some(0) }, "{name}");
            }
        }
    }
    let i210 = receiver("i210", &Setup::default());
    let (disposition, _) = land(&i210, &in_pppoe[0]);
    assert_eq!(disposition.why.to_string(), "the parser stops at the PPPoE header");
    assert_eq!(i210.profile().claim(disposition.why.key().unwrap()).unwrap().citations[0].source, "ds");
}

/// The 7 low bits of the hash index 128 entries; the igb driver fills them in blocks. apu4 report: 0-63 → 0, 64-127 → 1;
/// `ethtool -X equal 2` makes it 0,1,0,1.
#[test]
fn the_index_is_the_low_seven_bits_into_blocks_or_stripes() {
    let striped: Vec<u16> = (0..128).map(|entry| entry % 2).collect();
    for (name, setup, queue) in [
        ("i210", Setup { queues: Some(4), ..Setup::default() }, (MICROSOFT_TCP & 0x7f) * 4 / 128),
        ("i211", Setup { table: Some(striped), ..Setup::default() }, MICROSOFT_TCP & 1),
    ] {
        let (_, landing) = land(&receiver(name, &setup), &frame(&[], 0x0800, &tcp()));
        assert_eq!((landing.hash_type, landing.hash), (HashType::TcpIpv4, MICROSOFT_TCP), "{name}");
        assert_eq!(landing.queue, Some(queue as u16), "{name}");
    }
    let default = receiver("i211", &Setup::default());
    let blocks: Vec<u16> = (0..128).map(|entry| entry / 64).collect();
    assert_eq!((default.queues(), default.table().unwrap().queues()), (2, &blocks[..]));
}

/// apu4 report: UDP is hashed on addresses only, until the ports are requested. I210 datasheet appendix A: fragments are
/// IPv4 without ports, options are walked, SNAP is skipped. X710: the PPPoE package lets UDP inside PPPoE be hashed by
/// addresses and ports (LaHaise, intel-wired-lan); the E810 hashes PPPoE once the comms package is loaded.
#[test]
fn what_is_hashed() {
    const BY_ADDRESSES: (HashType, u32) = (HashType::Ipv4, MICROSOFT_IPV4);
    const TCP: (HashType, u32) = (HashType::TcpIpv4, MICROSOFT_TCP);
    let udp = frame(&[], 0x0800, &ipv4(17, 0x4000, &[]));
    let with_ports = Setup { fields: vec!["udp4=sdfn".parse().unwrap()], ..Setup::default() };
    let microsoft = Setup { key: Some(HashKey::MICROSOFT), ..Setup::default() };
    let default = Setup::default();
    let mut snap = vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    snap.extend(tcp());
    let [first, later] = [0x2000, 0x0010].map(|flags| frame(&[], 0x0800, &ipv4(6, flags, &[])));
    let tagged = frame(&[0x8100], 0x0800, &tcp());
    let mut rows = vec![
        ("i210", &default, first.clone(), BY_ADDRESSES),
        ("i210", &default, later.clone(), BY_ADDRESSES),
        ("i210", &default, frame(&[], 0x0800, &ipv4(6, 0x4000, &[1, 1, 1, 0])), TCP),
        ("i210", &default, frame(&[], snap.len() as u16, &snap), TCP),
        ("82599", &default, tagged, TCP),
        ("e810", &microsoft, udp.clone(), (HashType::UdpIpv4, MICROSOFT_TCP)),
        ("e810", &microsoft, frame(&[], 0x8864, &pppoe(&tcp())), (HashType::None, 0)),
        ("e810+ddp-comms", &microsoft, frame(&[], 0x8864, &pppoe(&tcp())), TCP),
    ];
    for name in ["i211", "i210", "i350", "82576", "82599", "x540", "i225"] {
        rows.push((name, &default, udp.clone(), BY_ADDRESSES));
        rows.push((name, &with_ports, udp.clone(), (HashType::UdpIpv4, MICROSOFT_TCP)));
    }
    for (name, setup, frame, expected) in rows {
        let landing = land(&receiver(name, setup), &frame).1;
        assert_eq!((landing.hash_type, landing.hash), expected, "{name}: {frame:02x?}");
    }
    let i210 = receiver("i210", &default);
    assert!([first, later].iter().all(|frame| land(&i210, frame).0.depth == ParserDepth::Addresses));
    // The queue of a frame without an IP hash type is the choice of the X710's key, which hashes the EtherType.
    let inner = frame(&[], 0x8864, &pppoe(&ipv4(17, 0x4000, &[])));
    let (disposition, landing) = land(&receiver("x710", &default), &inner);
    assert_eq!((disposition.why, landing.queue), (Why::Header(schema::PPPOE), None));
    assert_eq!(land(&receiver("x710+ddp-pppoe", &default), &inner).0.depth, ParserDepth::Transport);
    let qinq = frame(&[0x8100, 0x8100], 0x0800, &tcp());
    for name in ["x710", "82599", "82599+double-vlan", "x540", "x540+double-vlan"] {
        assert_eq!(land(&receiver(name, &default), &qinq).0.depth, ParserDepth::Nothing, "{name}");
    }
}

#[test]
fn what_device_or_driver_refuse_is_refused() {
    for (setup, problem) in [
        (Setup { queues: Some(8), ..Setup::default() }, "i210 has 1 to 4 receive queues for RSS, not 8"),
        (
            Setup { fields: vec!["tcp4=sd".parse().unwrap()], ..Setup::default() },
            "i210: hash fields of tcp4 cannot be changed (those of udp4, udp6 can)",
        ),
        (
            Setup { queues: Some(2), table: Some([3; 128].into()), ..Setup::default() },
            "indirection table: entry 0 names queue 3, and there are 2",
        ),
    ] {
        let error = Receiver::new(lookup("i210").unwrap(), &setup).err().unwrap();
        assert_eq!(error.to_string(), problem);
    }
}

/// I210 datasheet 7.4.5: two tags only in double-VLAN mode, which then wants the outer tag on every frame.
#[test]
fn i210_double_vlan_mode_turns_it_round() {
    let qinq = frame(&[0x88a8, 0x8100], 0x0800, &tcp());
    let plain = frame(&[], 0x0800, &tcp());
    let usual = receiver("i210", &Setup::default());
    assert_eq!(land(&usual, &qinq).0.why, Why::Tags(vec![0x88a8, 0x8100]));
    for seen in [&plain, &frame(&[0x8100], 0x0800, &tcp())] {
        assert_eq!(land(&usual, seen).1.hash_type, HashType::TcpIpv4);
    }
    let double = receiver("i210+double-vlan", &Setup::default());
    assert_eq!(land(&double, &qinq).1.hash_type, HashType::TcpIpv4);
    assert_eq!(land(&double, &plain).1.hash_type, HashType::None);
    let (disposition, landing) = land(&double, &frame(&[0x88a8, 0x8100], 0x8864, &pppoe(&tcp())));
    assert_eq!((disposition.why, landing.queue), (Why::Header(schema::PPPOE), Some(0)));
}

/// NTT, sizes without FCS: ixgbe drops above 1518 behind 0x8100 and above 1514 otherwise, so that the TPID matters.
#[test]
fn frame_sizes_follow_the_outer_tpid() {
    let receiver = receiver("82599", &Setup::default());
    for (tpids, longest) in [(&[0x8100, 0x8100][..], 1518), (&[0x88a8, 0x8100], 1514)] {
        assert_eq!(land(&receiver, &frame(tpids, 0x0800, &tcp())).0.longest, Some(longest), "{tpids:x?}");
    }
}

/// What no source says stays unknown, and the answer names the claim that is missing.
#[test]
fn unknown_claims_give_unknown_landings() {
    let receiver = receiver("x710", &Setup::default());
    let (disposition, landing) = land(&receiver, &frame(&[0x88a8, 0x8100], 0x0800, &tcp()));
    assert_eq!((disposition.depth, landing.queue), (ParserDepth::Unknown, None));
    assert_eq!(disposition.why, Why::Lacks(schema::TAGS_THROUGH));
    assert_eq!(disposition.why.to_string(), "the profile does not say: tag stacks seen through");
    // Which queue a hash is for takes a table.
    for (claim, key) in [("table_sizes", schema::TABLE_SIZES), ("table_default", schema::TABLE_DEFAULT)] {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/profiles/x710.toml");
        let text = std::fs::read_to_string(path).expect("a profile");
        let text: String =
            text.lines().filter(|line| !line.starts_with(claim)).flat_map(|line| [line, "\n"]).collect();
        let profile = Profile::parse("x710.toml", "x710", &text).expect("a profile");
        let given = Setup { table: Some(vec![0; 512]), ..Setup::default() };
        for (setup, is_known) in [(Setup::default(), false), (given, true)] {
            let receiver = Receiver::new(profile.clone(), &setup).expect("a receiver");
            let (disposition, landing) = land(&receiver, &frame(&[], 0x0800, &tcp()));
            assert_eq!(landing.queue.is_some(), is_known, "{claim}");
            assert_eq!(receiver.unknown_queue(&disposition), (!is_known).then_some(Why::Lacks(key)));
        }
    }
}

/// The hash that is computed from the class alone is the hash unit's: over IPv4 and IPv6, with and without
/// ports, with selected fields, and with an address that an Ex type takes from an extension header.
#[test]
fn landings_are_what_the_hash_unit_says() {
    let mut v6 = vec![0x60, 0, 0, 0, 0, 20, 6, 64];
    v6.extend((0..32).map(|byte| byte * 7));
    v6.extend([1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    // Destination options with a home address option (RFC 6275 section 6.3): type 201, length 16.
    let mut home = vec![0x60, 0, 0, 0, 0, 44, 60, 64];
    home.extend((0..32).map(|byte| byte * 7));
    home.extend([6, 2, 1, 2, 0, 0, 201, 16]);
    home.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    home.extend(&v6[40..]);
    let frames = [
        frame(&[], 0x0800, &tcp()),
        frame(&[0x8100], 0x0800, &ipv4(17, 0x4000, &[])),
        frame(&[], 0x0800, &ipv4(6, 0x2000, &[])),
        frame(&[], 0x86dd, &v6),
        frame(&[], 0x86dd, &home),
    ];
    let mut seen = Vec::new();
    for fields in [&[][..], &["udp4=sdfn"], &["udp4=sdfn", "udp6=sdfn"]] {
        let fields = fields.iter().map(|text| text.parse().unwrap()).collect();
        let receiver = receiver("i210", &Setup { fields, ..Setup::default() });
        for bytes in &frames {
            let dissection = dissect(Link::Ethernet, bytes, bytes.len());
            assert!(dissection.error().is_none(), "{:?}", dissection.error());
            let (disposition, landing) = land(&receiver, bytes);
            let input = Packet {
                flow: *dissection.flow().unwrap(),
                fragment: disposition.depth == ParserDepth::Addresses,
                home_address: dissection.home_address(bytes),
                routing2_destination: dissection.routing2_destination(bytes),
            };
            let hash = |hash_type: HashType| {
                HashUnit::new(receiver.key(), [hash_type].into_iter().collect()).unwrap().hash(&input)
            };
            assert_eq!((landing.hash_type, landing.hash), hash(disposition.hash_type));
            if input.home_address.is_some() {
                assert_ne!(landing.hash, hash(HashType::TcpIpv6).1, "the home address counts");
            }
            seen.push(landing.hash_type);
        }
    }
    for hash_type in [HashType::TcpIpv4, HashType::UdpIpv4, HashType::Ipv4, HashType::TcpIpv6Ex] {
        assert!(seen.contains(&hash_type), "{hash_type}");
    }
}

/// A single queue takes everything, hashed or not.
#[test]
fn one_queue_takes_everything() {
    for nic in ["82574", "i219"] {
        let receiver = receiver(nic, &Setup::default());
        for frame in [frame(&[], 0x0800, &tcp()), frame(&[0x88a8, 0x8100], 0x8864, &pppoe(&tcp()))] {
            assert_eq!(land(&receiver, &frame).1.queue, Some(0), "{nic}");
        }
    }
}

/// Damaged frames of every kind on every device and mode: an answer, no panic, and every reason that is
/// claimed has its claim with a source.
#[test]
fn every_device_answers_for_every_frame() {
    let samples = [
        frame(&[], 0x0800, &tcp()),
        frame(&[0x88a8, 0x8100, 0x9100], 0x8864, &pppoe(&ipv4(17, 0x2000, &[1, 1, 1, 0]))),
        frame(&[0x8100], 0x8847, &[0, 1, 1, 64, 0x45]),
        frame(&[], 0x0806, &[0; 28]),
        frame(&[], 0x86dd, &[0x60, 0, 0, 0, 0, 8, 44, 64].repeat(8)),
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let profiles = builtin().unwrap().iter().flat_map(|profile| {
        let modes = profile.modes().iter().map(|mode| profile.with_mode(&mode.name).unwrap());
        std::iter::once(profile.clone()).chain(modes)
    });
    let receivers: Vec<Receiver> =
        profiles.map(|profile| Receiver::new(profile, &Setup::default()).unwrap()).collect();
    for round in 0..400 {
        let mut bytes = samples[round % samples.len()].clone();
        for _ in 0..next() % 4 {
            let at = next() as usize % bytes.len();
            bytes[at] = next() as u8;
        }
        bytes.truncate(bytes.len() - (next() as usize % 24).min(bytes.len()));
        for receiver in &receivers {
            let (disposition, landing) = land(receiver, &bytes);
            assert!(landing.queue.is_none_or(|queue| queue < receiver.queues()));
            assert!(landing.hash_type != HashType::None || landing.hash == 0);
            assert!(
                landing.queue.is_none()
                    || landing.hash_type == HashType::None
                    || landing.hash_type == disposition.hash_type
            );
            let claimed =
                disposition.why.key().filter(|_| !matches!(disposition.why, Why::Lacks(_) | Why::Tags(_)));
            if let Some(key) = claimed {
                assert!(!receiver.profile().claim(key).unwrap().citations.is_empty());
            }
        }
    }
}

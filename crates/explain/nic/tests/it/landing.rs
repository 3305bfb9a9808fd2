//! Where frames land: the facts of datasheets and field reports, put to the model frame by frame.

use nic::{Disposition, Landing, ParserDepth, Receiver, Setup, Why, builtin, lookup, schema};
use rss::{HashKey, HashType, HashTypes, HashUnit, Packet};
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

/// I210 datasheet 7.1.2.10 and "A Sad Slow PPPoE Story": PPPoE fits no hash type, index 0, tag 0.
#[test]
fn i210_pppoe_is_on_queue_0_whatever_the_table() {
    for table in [None, Some(vec![3; 128])] {
        let receiver = receiver("i210", &Setup { queues: Some(4), table, ..Setup::default() });
        for frame in [frame(&[], 0x8864, &pppoe(&tcp())), frame(&[0x8100], 0x8864, &pppoe(&tcp()))] {
            let (disposition, landing) = land(&receiver, &frame);
            assert_eq!(landing, Landing { hash_type: HashType::None, hash: 0, queue: Some(0) });
            assert_eq!(disposition.why.to_string(), "the parser stops at the PPPoE header");
            let claim = receiver.profile().claim(disposition.why.key().unwrap()).unwrap();
            assert_eq!(claim.citations[0].source, "ds");
        }
    }
}

/// The 7 low bits of the hash index 128 entries; the igb driver fills them in blocks.
#[test]
fn i210_index_is_the_low_seven_bits() {
    let receiver = receiver("i210", &Setup { queues: Some(4), ..Setup::default() });
    let (_, landing) = land(&receiver, &frame(&[], 0x0800, &tcp()));
    assert_eq!((landing.hash_type, landing.hash), (HashType::TcpIpv4, MICROSOFT_TCP));
    assert_eq!(landing.queue, Some(((MICROSOFT_TCP & 0x7f) * 4 / 128) as u16));
}

/// apu4 report: UDP is hashed on addresses only, until the ports are asked for.
#[test]
fn udp_is_hashed_on_addresses_by_default() {
    let udp = frame(&[], 0x0800, &ipv4(17, 0x4000, &[]));
    for nic in ["i211", "i210", "i350", "82576", "82599", "x540", "i225"] {
        let (_, landing) = land(&receiver(nic, &Setup::default()), &udp);
        assert_eq!((landing.hash_type, landing.hash), (HashType::Ipv4, MICROSOFT_IPV4), "{nic}");
        let four = Setup { fields: vec!["udp4=sdfn".parse().unwrap()], ..Setup::default() };
        let (_, landing) = land(&receiver(nic, &four), &udp);
        assert_eq!((landing.hash_type, landing.hash), (HashType::UdpIpv4, MICROSOFT_TCP), "{nic}");
    }
    let (_, landing) = land(&receiver("e810", &Setup::default()), &udp);
    assert_eq!(landing.hash_type, HashType::UdpIpv4);
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

/// apu4 report: the driver's table is 0-63 → 0, 64-127 → 1; `ethtool -X equal 2` makes it 0,1,0,1.
#[test]
fn i211_table_is_half_and_half() {
    let default = receiver("i211", &Setup::default());
    assert_eq!(default.queues(), 2);
    let queues = default.table().unwrap().queues();
    assert!(queues[..64].iter().all(|queue| *queue == 0) && queues[64..].iter().all(|queue| *queue == 1));
    let striped: Vec<u16> = (0..128).map(|entry| entry % 2).collect();
    let receiver = receiver("i211", &Setup { table: Some(striped), ..Setup::default() });
    let (_, landing) = land(&receiver, &frame(&[], 0x0800, &tcp()));
    assert_eq!(landing.queue, Some((MICROSOFT_TCP & 1) as u16));
}

/// I210 datasheet appendix A: fragments are IPv4 without ports, options are walked, SNAP is skipped.
#[test]
fn i210_fragments_options_and_snap() {
    let receiver = receiver("i210", &Setup::default());
    for flags in [0x2000, 0x0010] {
        let (disposition, landing) = land(&receiver, &frame(&[], 0x0800, &ipv4(6, flags, &[])));
        assert_eq!(
            (disposition.depth, landing.hash_type),
            (ParserDepth::Addresses, HashType::Ipv4),
            "{flags:04x}"
        );
        assert_eq!(landing.hash, MICROSOFT_IPV4);
    }
    let (_, landing) = land(&receiver, &frame(&[], 0x0800, &ipv4(6, 0x4000, &[1, 1, 1, 0])));
    assert_eq!((landing.hash_type, landing.hash), (HashType::TcpIpv4, MICROSOFT_TCP));
    let mut snap = vec![0xaa, 0xaa, 3, 0, 0, 0, 8, 0];
    snap.extend(tcp());
    let (_, landing) = land(&receiver, &frame(&[], snap.len() as u16, &snap));
    assert_eq!(landing.hash_type, HashType::TcpIpv4);
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
    let mut inner = tcp();
    inner = pppoe(&inner);
    let (disposition, landing) = land(&double, &frame(&[0x88a8, 0x8100], 0x8864, &inner));
    assert_eq!((disposition.why, landing.queue), (Why::Header(schema::PPPOE), Some(0)));
}

/// NTT: no RSS for stacked frames on an 82599. Snabb's driver and DPDK's test plan: what is not hashed goes to
/// queue 0, also where the table does not name it. DPDK's guide: nor does double-VLAN mode hash them.
#[test]
fn the_82599_does_not_hash_stacked_frames() {
    let stacked = [frame(&[0x8100, 0x8100], 0x0800, &tcp()), frame(&[0x88a8, 0x8100], 0x0800, &tcp())];
    for table in [None, Some(vec![3; 128])] {
        let setup = Setup { queues: Some(4), table, ..Setup::default() };
        for nic in ["82599", "82599+double-vlan", "x540", "x540+double-vlan"] {
            for bytes in &stacked {
                let (disposition, landing) = land(&receiver(nic, &setup), bytes);
                let expected = (ParserDepth::Nothing, HashType::None, Some(0));
                assert_eq!((disposition.depth, landing.hash_type, landing.queue), expected, "{nic}");
            }
        }
    }
    let usual = receiver("82599", &Setup::default());
    assert_eq!(land(&usual, &frame(&[0x8100], 0x0800, &tcp())).1.hash_type, HashType::TcpIpv4);
}

/// NTT, sizes without FCS: ixgbe drops above 1518 behind 0x8100 and above 1514 otherwise, so that the TPID matters.
#[test]
fn frame_sizes_follow_the_outer_tpid() {
    let receiver = receiver("82599", &Setup::default());
    for (tpids, longest) in [(&[0x8100, 0x8100][..], 1518), (&[0x88a8, 0x8100], 1514)] {
        assert_eq!(land(&receiver, &frame(tpids, 0x0800, &tcp())).0.longest, Some(longest), "{tpids:x?}");
    }
}

/// What no source tells stays unknown, and the answer names the claim that is missing.
#[test]
fn unknown_claims_give_unknown_landings() {
    let receiver = receiver("x710", &Setup::default());
    let (disposition, landing) = land(&receiver, &frame(&[0x88a8, 0x8100], 0x0800, &tcp()));
    assert_eq!((disposition.depth, landing.queue), (ParserDepth::Unknown, None));
    assert_eq!(disposition.why, Why::Lacks(schema::TAGS_THROUGH));
    assert_eq!(disposition.why.to_string(), "the profile does not say: tag stacks seen through");
}

/// X710: frames without an IP hash type are hashed by their EtherType, so that the queue is the key's choice;
/// the PPPoE package lets UDP inside PPPoE be hashed by its addresses and ports (LaHaise, intel-wired-lan).
#[test]
fn x710_pppoe_is_on_one_unnamed_queue_until_the_package_is_loaded() {
    let inner = frame(&[], 0x8864, &pppoe(&ipv4(17, 0x4000, &[])));
    let (disposition, landing) = land(&receiver("x710", &Setup::default()), &inner);
    assert_eq!((disposition.why, landing.queue), (Why::Header(schema::PPPOE), None));
    let (disposition, _) = land(&receiver("x710+ddp-pppoe", &Setup::default()), &inner);
    assert_eq!(disposition.depth, ParserDepth::Transport);
    let qinq = frame(&[0x8100, 0x8100], 0x0800, &tcp());
    assert_eq!(land(&receiver("x710", &Setup::default()), &qinq).0.depth, ParserDepth::Nothing);
}

/// The firmware interface of bnxt: the default ring, which is ring 0, takes what no RSS rule matches.
#[test]
fn bnxt_unhashed_frames_are_on_queue_0_whatever_the_table() {
    for table in [None, Some(vec![3; 128])] {
        let setup = Setup { queues: Some(4), table, ..Setup::default() };
        let (_, landing) = land(&receiver("bnxt", &setup), &frame(&[], 0x0806, &[0; 28]));
        assert_eq!(landing, Landing { hash_type: HashType::None, hash: 0, queue: Some(0) });
    }
}

/// The E810's PPPoE is hashed once the comms package is loaded, by the inner ports.
#[test]
fn e810_with_the_comms_package_hashes_inside_pppoe() {
    let inner = frame(&[], 0x8864, &pppoe(&tcp()));
    let (_, landing) = land(&receiver("e810", &Setup::default()), &inner);
    assert_eq!(landing.hash_type, HashType::None);
    let key = HashKey::MICROSOFT;
    let comms = receiver("e810+ddp-comms", &Setup { key: Some(key), ..Setup::default() });
    let (_, landing) = land(&comms, &inner);
    assert_eq!((landing.hash_type, landing.hash), (HashType::TcpIpv4, MICROSOFT_TCP));
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
            let mut unit = HashUnit::new(receiver.key(), types_of(&disposition)).unwrap();
            assert_eq!((landing.hash_type, landing.hash), unit.hash(&input));
            let redirected = input.home_address.is_some();
            if redirected {
                unit = HashUnit::new(receiver.key(), [HashType::TcpIpv6].into_iter().collect()).unwrap();
                assert_ne!(landing.hash, unit.hash(&input).1, "the home address counts");
            }
            seen.push(landing.hash_type);
        }
    }
    for hash_type in [HashType::TcpIpv4, HashType::UdpIpv4, HashType::Ipv4, HashType::TcpIpv6Ex] {
        assert!(seen.contains(&hash_type), "{hash_type}");
    }
}

fn types_of(disposition: &Disposition) -> HashTypes {
    [disposition.hash_type].into_iter().collect()
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
    let mut receivers = Vec::new();
    for profile in builtin().unwrap() {
        receivers.push(Receiver::new(profile.clone(), &Setup::default()).unwrap());
        for mode in profile.modes() {
            let changed = profile.with_mode(&mode.name).unwrap();
            receivers.push(Receiver::new(changed, &Setup::default()).unwrap());
        }
    }
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

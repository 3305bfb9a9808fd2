//! Layouts and numbers in C, read from the objects' BTF, against those in Rust.

use rxlane_xdp::envelope_layout;
use rxlane_xdp::forward_layout::{
    Alive, FlowKey, FlowValue, ForwardCounts, KEY_IPV4_LENGTH, Limit, NextHopValue, NextHops,
};
use rxlane_xdp::layout::{Arrivals, Bucket, Counts, Settings};
use rxlane_xdp::object;
use rxlane_xdp::subscribers_layout::{Control, OwnerValue, Port, Prefix6, SessionLine, SubscriberCounts};
use std::collections::BTreeMap;
use std::mem::{offset_of, size_of};

/// A structure: bytes, and the offset of each member.
#[derive(Debug, PartialEq, Eq)]
struct Structure {
    size: usize,
    members: BTreeMap<String, usize>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The section of a 64-bit ELF file.
fn section<'a>(object: &'a [u8], name: &str) -> &'a [u8] {
    let long = |at: usize| u64::from_ne_bytes(object[at..at + 8].try_into().expect("eight bytes")) as usize;
    let short = |at: usize| usize::from(u16::from_ne_bytes([object[at], object[at + 1]]));
    let headers = |index: usize| long(0x28) + index * short(0x3a);
    let names = long(headers(short(0x3e)) + 0x18);
    let found = (0..short(0x3c)).map(headers).find(|&header| {
        let start = names + word(object, header) as usize;
        object[start..].starts_with(name.as_bytes()) && object[start + name.len()] == 0
    });
    let header = found.unwrap_or_else(|| panic!("a section {name}"));
    &object[long(header + 0x18)..][..long(header + 0x20)]
}

/// The structures of an object by name (Documentation/bpf/btf.rst of the kernel).
fn structures(object: &[u8]) -> BTreeMap<String, Structure> {
    let btf = section(object, ".BTF");
    let header = word(btf, 4) as usize;
    let [types_at, types_length, strings_at] = [8, 12, 16].map(|at| word(btf, at) as usize);
    let string = |at: u32| {
        let rest = &btf[header + strings_at + at as usize..];
        let end = rest.iter().position(|byte| *byte == 0).expect("an end");
        String::from_utf8(rest[..end].to_vec()).expect("UTF-8")
    };
    let mut structures = BTreeMap::new();
    let (mut at, end) = (header + types_at, header + types_at + types_length);
    while at < end {
        let (name, info, size) = (string(word(btf, at)), word(btf, at + 4), word(btf, at + 8) as usize);
        let (kind, count) = (info >> 24 & 0x1f, (info & 0xffff) as usize);
        at += 12;
        let items = |width: usize| (0..count).map(move |item| at + item * width);
        at += match kind {
            // Structure or union: name, type, offset in bits of each member.
            4 | 5 => {
                let members =
                    items(12).map(|at| (string(word(btf, at)), word(btf, at + 8) as usize / 8)).collect();
                structures.insert(name, Structure { size, members });
                count * 12
            }
            // Integer, variable, declaration tag: a word. Array: three. Section: three for each.
            1 | 14 | 17 => 4,
            3 => 12,
            // Enumeration, prototype: two words for each.
            6 | 13 => count * 8,
            15 => count * 12,
            // Pointer, forward, typedef, volatile, const, restrict, function, float, type tag.
            2 | 7..=12 | 16 | 18 => 0,
            _ => panic!("BTF kind {kind}"),
        };
    }
    structures
}

macro_rules! structure {
    ($type:path { $($member:ident),* }) => {
        Structure {
            size: size_of::<$type>(),
            members: [$((stringify!($member).to_owned(), offset_of!($type, $member))),*].into(),
        }
    };
}

#[test]
fn structures_are_laid_out_alike() {
    let settings = structure!(Settings { key, classes, symmetric, cpus, spare, hold_ns });
    let bucket = structure!(Bucket { cpu, spare, lost });
    let counts = structure!(Counts { reasons, sent, sent_to, held_ns, kept, current, own_cpu, spare });
    let arrivals = structure!(Arrivals { arrived, strange, astray_ns });
    let envelope = structure!(envelope_layout::Counts { passed, refused });
    let expected = [
        (
            object::steer(),
            vec![("settings", &settings), ("bucket", &bucket), ("counts", &counts), ("arrivals", &arrivals)],
        ),
        (object::arrive(), vec![("settings", &settings), ("bucket", &bucket), ("arrivals", &arrivals)]),
        (object::steer_nofrags(), vec![("settings", &settings), ("bucket", &bucket), ("counts", &counts)]),
        (object::envelope(), vec![("envelope_counts", &envelope)]),
        (object::envelope_nofrags(), vec![("envelope_counts", &envelope)]),
        (object::arrive_nofrags(), vec![("settings", &settings), ("arrivals", &arrivals)]),
    ];
    for (object, expected) in expected {
        let found = structures(object);
        for (name, structure) in expected {
            assert_eq!(found.get(name), Some(structure), "{name}");
        }
    }
}

#[test]
fn structures_of_forwarding_are_laid_out_alike() {
    let key = structure!(FlowKey { port, outer, inner, session, protocol, ports, addresses });
    let flow = structure!(FlowValue {
        packets,
        bytes,
        used_ns,
        next_hop,
        generation,
        stations,
        flags,
        limit,
        paused,
        addresses,
        ports,
        ip_delta,
        transport_delta
    });
    let next_hop = structure!(NextHopValue { port, largest, length, is_pppoe, header });
    let both = structure!(NextHops { current, spare, both });
    let alive = structure!(Alive { heartbeat_ns, generation, spare });
    let limit = structure!(Limit { full_ns, ns_per_byte_16, burst_ns });
    let counts = structure!(ForwardCounts { fast, fast_bytes, limited, passed });
    let found = structures(object::fastpath());
    for (name, expected) in [
        ("key", &key),
        ("flow", &flow),
        ("next_hop", &next_hop),
        ("next_hops", &both),
        ("alive", &alive),
        ("limit", &limit),
        ("forward_counts", &counts),
    ] {
        assert_eq!(found.get(name), Some(expected), "{name}");
    }
    assert_eq!(found["key_ipv4"].size, KEY_IPV4_LENGTH);
}

#[test]
fn structures_of_a_concentrator_are_laid_out_alike() {
    let session =
        structure!(SessionLine { state, vlans, station, identifier, counts, buckets, dropped, spare });
    let owner = structure!(OwnerValue { place, generation });
    let prefix6 = structure!(Prefix6 { address, length });
    let port = structure!(Port { station, is_virtual, spare, interface });
    let control = structure!(Control {
        heartbeat_ns,
        lengths4,
        lengths6,
        seed,
        mask,
        interface,
        longest,
        lines,
        uplinks
    });
    let counts = structure!(SubscriberCounts { frames, bytes, limited, passed });
    let found = structures(object::subscribers());
    for (name, expected) in [
        ("session", &session),
        ("owner", &owner),
        ("prefix6", &prefix6),
        ("port", &port),
        ("control", &control),
        ("subscriber_counts", &counts),
    ] {
        assert_eq!(found.get(name), Some(expected), "{name}");
    }
    assert_eq!(session.size, 128, "two cache lines");
}

/// A structure's bytes are its fields in their order, as the maps have them.
#[test]
fn bytes_of_forwarding_stand_where_the_fields_are() {
    let flow = FlowValue { stations: [1; 12], transport_delta: [2, 3], ..FlowValue::default() }.bytes();
    assert_eq!(flow[offset_of!(FlowValue, stations)..][..12], [1; 12]);
    assert_eq!(flow[offset_of!(FlowValue, transport_delta)..], [2, 3]);
    let key = FlowKey { ports: [1; 4], addresses: [2; 32], ..FlowKey::default() }.bytes();
    assert_eq!(key[offset_of!(FlowKey, ports)..][..4], [1; 4]);
    assert_eq!(key[offset_of!(FlowKey, addresses)..], [2; 32]);
    let next = NextHopValue { is_pppoe: 1, header: [2; 32], ..NextHopValue::default() }.bytes();
    assert_eq!(next[offset_of!(NextHopValue, is_pppoe)..], [&[1][..], &[2; 32]].concat());
    let both = NextHops {
        current: 1,
        both: [NextHopValue::default(), NextHopValue { length: 9, ..NextHopValue::default() }],
        spare: 0,
    };
    assert_eq!(
        both.bytes()
            [offset_of!(NextHops, both) + size_of::<NextHopValue>() + offset_of!(NextHopValue, length)],
        9
    );
    let alive = Alive { generation: 7, ..Alive::default() }.bytes();
    assert_eq!(alive[offset_of!(Alive, generation)..][..4], 7_u32.to_ne_bytes());
    let limit = Limit { burst_ns: 7, ..Limit::default() }.bytes();
    assert_eq!(limit[offset_of!(Limit, burst_ns)..], 7_u64.to_ne_bytes());
}

use super::*;
use crate::tests::{PEER, ip, of_interface};
use proptest::prelude::*;
use wire::IpProtocol;

const LOCAL: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 1]);
const OTHER: MacAddress = MacAddress([2, 0, 0x5e, 0, 0, 3]);
const LINKS: [&str; 6] = [
    "q:35",
    "ad:100,q:200",
    "0x9100:5,q:6,q:7",
    "pppoe:7@02:00:5e:00:00:02",
    "q:35,pppoe:65534@02:00:5e:00:00:02",
    "ad:100,q:200,pppoe:7@02:00:5e:00:00:02",
];

fn framing(link: &str) -> Framing {
    crate::tests::framing(link, LOCAL)
}

/// The framing of the other end.
fn far(link: &str) -> Framing {
    crate::tests::framing(&link.replace(&PEER.to_string(), &LOCAL.to_string()), PEER)
}

/// What the interface at the far end hands over.
fn handed_over(framing: &Framing, version: IpVersion, payload: &[u8]) -> Vec<u8> {
    let packet = [ip(version, IpProtocol::UDP, payload.len()), payload.to_vec()].concat();
    of_interface(framing.form(), LOCAL, PEER, &packet)
}

fn on_the_wire(framing: &Framing, handed_over: &[u8]) -> Vec<u8> {
    let mut head = Head::new();
    let rest = framing.encapsulate(handed_over, &mut head).expect("framed");
    [head.bytes(), rest].concat()
}

fn frame(link: &str, version: IpVersion, payload: &[u8]) -> Vec<u8> {
    let far = far(link);
    on_the_wire(&far, &handed_over(&far, version, payload))
}

fn taken(framing: &Framing, frame: &[u8]) -> Result<Vec<u8>, Dropped> {
    let mut bytes = frame.to_vec();
    let range = framing.decapsulate(&mut bytes)?;
    Ok(bytes.get(range).expect("within the frame").to_vec())
}

#[test]
fn frames_are_those_that_wire_reads() {
    let stacks = ["eth/vlan/ipv4/udp", "eth/vlan/vlan/ipv4/udp", "eth/vlan/vlan/vlan/ipv4/udp"];
    let pppoe = ["eth/pppoe/ipv4/udp", "eth/vlan/pppoe/ipv4/udp", "eth/vlan/vlan/pppoe/ipv4/udp"];
    let udp = [0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4];
    for (link, stack) in LINKS.iter().zip(stacks.iter().chain(&pppoe)) {
        let frame = frame(link, IpVersion::V4, &udp);
        let dissection = wire::dissect(wire::Link::Ethernet, &frame, frame.len());
        assert_eq!(dissection.stack().to_string(), *stack, "{link}");
        assert_eq!(dissection.error(), None, "{link}");
        let encapsulation: Encapsulation = link.parse().expect("an encapsulation");
        assert_eq!(frame.len(), encapsulation.length() + 20 + udp.len(), "{link}");
    }
}

#[test]
fn what_makes_no_link_is_said() {
    let error =
        |text: &str| Framing::new(&text.parse().expect("an encapsulation"), LOCAL).expect_err("no link");
    assert_eq!(error("none"), FramingError::Nothing);
    assert_eq!(error("q:5,mpls:16"), FramingError::Mpls);
    assert_eq!(error("pppoe"), FramingError::NoSession);
    assert_eq!(error("ad:1,pppoe:7"), FramingError::NoPeer);
    assert_eq!(error("pppoe:7@ff:ff:ff:ff:ff:ff"), FramingError::GroupPeer(MacAddress::BROADCAST));
    assert!(error("pppoe:7").to_string().contains("pppoe:SESSION@MAC"));
}

#[test]
fn cut_at_any_length_it_is_refused_or_padding() {
    for link in LINKS {
        let framing = framing(link);
        for version in [IpVersion::V4, IpVersion::V6] {
            let whole = frame(link, version, b"0123456789");
            let expected = taken(&framing, &whole).expect("taken");
            for length in 0..whole.len() {
                let refused = taken(&framing, &whole[..length]).expect_err("cut");
                assert!(
                    matches!(refused, Dropped::Short | Dropped::IpLength | Dropped::PppoeLength),
                    "{link} at {length}: {refused}"
                );
            }
            let padded = [&whole[..], &[0xaa; 30]].concat();
            assert_eq!(taken(&framing, &padded).expect("taken"), expected, "{link}");
        }
    }
}

#[test]
fn tags_must_be_those_of_the_link_whatever_the_priority() {
    for link in ["ad:100,q:200", "ad:100,q:200,pppoe:7@02:00:5e:00:00:02"] {
        let framing = framing(link);
        let good = frame(link, IpVersion::V4, b"x");
        let with = |at: usize, value: u8| {
            let mut frame = good.clone();
            frame[at] = value;
            taken(&framing, &frame)
        };
        // PCP and DEI of either tag.
        for at in [14, 18] {
            assert!(with(at, good[at] | 0xf0).is_ok(), "{link}");
            assert_eq!(with(at, good[at] | 0x01), Err(Dropped::OtherVlan), "{link}");
        }
        for (at, value) in [(12, 0x81), (13, 0x00), (15, 101), (17, 0xa8), (19, 201)] {
            assert_eq!(with(at, value), Err(Dropped::OtherVlan), "{link} at {at}");
        }
        // One tag more, and one less.
        let more = [&good[..20], &[0x81, 0, 0, 1], &good[20..]].concat();
        assert_eq!(taken(&framing, &more), Err(Dropped::MoreTags));
        let less = [&good[..16], &good[20..]].concat();
        assert_eq!(taken(&framing, &less), Err(Dropped::OtherVlan));
    }
}

#[test]
fn every_field_of_pppoe_is_honoured() {
    let link = "q:35,pppoe:7@02:00:5e:00:00:02";
    let framing = framing(link);
    let good = frame(link, IpVersion::V4, b"0123");
    let with = |at: usize, bytes: &[u8]| {
        let mut frame = good.clone();
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        taken(&framing, &frame)
    };
    assert!(with(0, &LOCAL.0).is_ok());
    let cases: [(usize, &[u8], Dropped); 20] = [
        (0, &OTHER.0, Dropped::OtherStation),
        (0, &[0xff; 6], Dropped::OtherStation),
        (6, &OTHER.0, Dropped::OtherPeer),
        (6, &LOCAL.0, Dropped::OtherPeer),
        (16, &[0x88, 0x63], Dropped::NotPppoe),
        (16, &[0x08, 0x00], Dropped::NotPppoe),
        (18, &[0x12], Dropped::PppoeVersion),
        (18, &[0x21], Dropped::PppoeVersion),
        (19, &[0xa7], Dropped::PppoeCode),
        (20, &[0, 8], Dropped::OtherSession),
        (22, &[0, 27], Dropped::PppoeLength),
        (22, &[0xff, 0xff], Dropped::PppoeLength),
        (22, &[0, 25], Dropped::IpLength),
        (22, &[0, 2], Dropped::Short),
        (22, &[0, 0], Dropped::Short),
        (24, &[0x21, 0x45], Dropped::PppCompressed),
        (24, &[0xc0, 0x21], Dropped::PppControl),
        (24, &[0x80, 0x57], Dropped::PppControl),
        (24, &[0x02, 0x81], Dropped::PppProtocol),
        (24, &[0x00, 0x57], Dropped::IpVersion),
    ];
    for (at, bytes, reason) in cases {
        assert_eq!(with(at, bytes), Err(reason), "{bytes:02x?} at {at}");
    }
    // The IP header: version, IHL, total length.
    assert_eq!(with(26, &[0x65]), Err(Dropped::IpVersion));
    assert_eq!(with(26, &[0x44]), Err(Dropped::IpLength));
    assert_eq!(with(28, &[0, 25]), Err(Dropped::IpLength));
    assert_eq!(with(28, &[0, 19]), Err(Dropped::IpLength));
    // Less than PPPoE counts is padding.
    assert_eq!(with(28, &[0, 22]).map(|packet| packet.len()), Ok(22));
}

#[test]
fn frames_that_are_no_ip_pass_as_they_are() {
    let link = "ad:100,q:200";
    let framing = framing(link);
    let far = far(link);
    // ARP, and an LLC frame, whose third field is a length.
    for ethertype in [[0x08, 0x06], [0, 8]] {
        let own = [&[0xff; 6], &PEER.0[..], &ethertype, &[7; 46]].concat();
        assert_eq!(taken(&framing, &on_the_wire(&far, &own)), Ok(own));
    }
    let tagged = [&[0xff; 6], &PEER.0[..], &[0x81, 0, 0, 1, 8, 6], &[7; 46]].concat();
    assert_eq!(far.encapsulate(&tagged, &mut Head::new()), Err(Dropped::MoreTags));
    assert_eq!(far.encapsulate(&tagged[..13], &mut Head::new()), Err(Dropped::Short));
}

#[test]
fn a_packet_that_pppoe_cannot_count_is_refused() {
    let framing = framing("pppoe:7@02:00:5e:00:00:02");
    let mut packet = vec![0x45; 65_533];
    let mut head = Head::new();
    assert!(framing.encapsulate(&packet, &mut head).is_ok());
    assert_eq!(head.bytes()[18..20], [0xff, 0xff]);
    packet.push(0);
    assert_eq!(framing.encapsulate(&packet, &mut head), Err(Dropped::TooLong));
    assert_eq!(framing.encapsulate(&[0x50; 40], &mut head), Err(Dropped::IpVersion));
    assert_eq!(framing.encapsulate(&[], &mut head), Err(Dropped::IpVersion));
}

proptest! {
    #[test]
    fn what_one_end_sends_the_other_takes(
        link in prop::sample::select(&LINKS[..]),
        is_v4: bool,
        payload in prop::collection::vec(any::<u8>(), 0..1500),
        padding in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let version = if is_v4 { IpVersion::V4 } else { IpVersion::V6 };
        let far = far(link);
        let handed_over = handed_over(&far, version, &payload);
        let frame = [on_the_wire(&far, &handed_over), padding].concat();
        prop_assert_eq!(taken(&framing(link), &frame), Ok(handed_over));
    }

    #[test]
    fn any_bytes_are_refused_or_a_part_of_the_frame(
        link in prop::sample::select(&LINKS[..]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        from_good: bool,
    ) {
        if from_good {
            bytes = frame(link, IpVersion::V4, &bytes);
            for (place, value) in changes {
                let place = place.index(bytes.len());
                bytes[place] = value;
            }
        }
        let framing = framing(link);
        let before = bytes.clone();
        match framing.decapsulate(&mut bytes) {
            Ok(range) => prop_assert!(range.start <= range.end && range.end <= before.len()),
            Err(_) => prop_assert_eq!(&bytes, &before),
        }
        let mut head = Head::new();
        if let Ok(rest) = framing.encapsulate(&before, &mut head) {
            prop_assert!(before.ends_with(rest));
        }
    }
}

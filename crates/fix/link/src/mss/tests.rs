use super::*;
use crate::tests::{Unfinished, ip, pseudo, tcp};
use proptest::prelude::*;

const MTU: u32 = 1492;

/// A TCP segment over IPv4 or IPv6 with a right checksum; `options` are padded with zeros.
fn segment(version: IpVersion, flags: u8, options: &[u8]) -> Vec<u8> {
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), 0);
    let ip = |length| ip(version, IpProtocol::TCP, length);
    Unfinished::new(ip, &tcp(1, flags, &options), &[]).finished()
}

fn is_right(packet: &[u8], at: usize) -> bool {
    matches!(checksum::Sum::of(&packet[at..]).plus(pseudo(packet, at)).folded(), 0 | 0xffff)
}

const BOTH: [(IpVersion, usize, u16); 2] = [(IpVersion::V4, 20, 1452), (IpVersion::V6, 40, 1432)];

#[test]
fn syn_and_syn_ack_are_lowered_with_a_right_checksum_wherever_the_option_is() {
    for (version, at, most) in BOTH {
        for flags in [TcpFlags::SYN, TcpFlags::SYN | TcpFlags::ACK] {
            for before in 0..5 {
                let options = [&[NO_OPERATION; 8][..before], &[2, 4, 0x05, 0xb4, 4, 2, 1, 1]].concat();
                let mut packet = segment(version, flags, &options);
                assert!(is_right(&packet, at), "the test's own");
                assert!(Clamp::for_mtu(MTU).lower(&mut packet, Checksum::Whole));
                let value = at + 20 + before + 2;
                assert_eq!(packet[value..value + 2], most.to_be_bytes(), "{version:?} {before}");
                assert!(is_right(&packet, at), "{version:?} {before}");
                assert!(!Clamp::for_mtu(MTU).lower(&mut packet, Checksum::Whole), "low enough");
            }
        }
    }
}

#[test]
fn a_partial_checksum_stays() {
    for (version, at, _) in BOTH {
        let mut packet = segment(version, TcpFlags::SYN, &[2, 4, 0x23, 0x00]);
        let partial = pseudo(&packet, at).folded().to_be_bytes();
        packet[at + CHECKSUM..at + CHECKSUM + 2].copy_from_slice(&partial);
        assert!(Clamp::for_mtu(MTU).lower(&mut packet, Checksum::Partial));
        checksum::complete(&mut packet, at, CHECKSUM).expect("completed");
        assert!(is_right(&packet, at));
    }
}

#[test]
fn what_is_low_enough_no_syn_or_no_tcp_is_left() {
    let unchanged = |packet: &[u8]| {
        let mut now = packet.to_vec();
        assert!(!Clamp::for_mtu(MTU).lower(&mut now, Checksum::Whole));
        assert_eq!(now, packet);
    };
    for (version, at, most) in BOTH {
        let [high, low] = most.to_be_bytes();
        unchanged(&segment(version, TcpFlags::SYN, &[2, 4, high, low]));
        unchanged(&segment(version, TcpFlags::ACK, &[2, 4, 0x23, 0x00]));
        unchanged(&segment(version, TcpFlags::SYN, &[]));
        let mut udp = segment(version, TcpFlags::SYN, &[2, 4, 0x23, 0x00]);
        udp[if version == IpVersion::V4 { 9 } else { 6 }] = 17;
        unchanged(&udp);
        // A header that is not whole, as in a first fragment.
        let cut = segment(version, TcpFlags::SYN, &[2, 4, 0x23, 0x00]);
        for length in 0..at + 24 {
            unchanged(&cut[..length]);
        }
    }
    let mut later = segment(IpVersion::V4, TcpFlags::SYN, &[2, 4, 0x23, 0x00]);
    later[7] = 1;
    unchanged(&later);
    // Behind the end of the list there is no option.
    unchanged(&segment(IpVersion::V4, TcpFlags::SYN, &[0, 0, 0, 0, 2, 4, 0x23, 0x00]));
}

#[test]
fn first_fragments_and_extension_headers_are_looked_through() {
    let whole = segment(IpVersion::V6, TcpFlags::SYN, &[2, 4, 0x23, 0x00]);
    // Destination options, then a fragment header with offset zero and more to follow.
    let with = |fragment: [u8; 8]| {
        let mut packet = whole[..40].to_vec();
        packet[6] = 60;
        packet.extend([44, 0, 1, 4, 0, 0, 0, 0]);
        packet.extend(fragment);
        packet.extend(&whole[40..]);
        packet
    };
    let mut first = with([6, 0, 0, 1, 0, 0, 0, 1]);
    assert!(Clamp::for_mtu(MTU).lower(&mut first, Checksum::Whole));
    assert_eq!(first[78..80], 1432_u16.to_be_bytes());
    let mut later = with([6, 0, 0, 9, 0, 0, 0, 1]);
    assert!(!Clamp::for_mtu(MTU).lower(&mut later, Checksum::Whole));
    // A header that is longer than the packet, and extension headers without end.
    let mut long = whole.clone();
    (long[6], long[41]) = (60, 0xff);
    assert!(!Clamp::for_mtu(MTU).lower(&mut long, Checksum::Whole));
    let mut endless = whole[..40].to_vec();
    endless[6] = 60;
    endless.extend([60, 0, 1, 4, 0, 0, 0, 0].repeat(2000));
    assert!(!Clamp::for_mtu(MTU).lower(&mut endless, Checksum::Whole));
}

/// Attack 3: options of TCP without a length or beyond the header, in a segment whose MSS is to be lowered.
#[test]
fn options_that_do_not_add_up_leave_the_packet() {
    let large = [2, 4, 0x23, 0x00];
    let hostile: [&[u8]; 9] = [
        // Length zero and one, of any kind and of this one: a careless walk never ends.
        &[8, 0, 1, 1],
        &[8, 1, 1, 1],
        &[2, 0, 0x23, 0x00],
        &[2, 1, 0x23, 0x00],
        // Beyond the header.
        &[8, 255, 1, 1],
        &[2, 5, 0x23, 0x00],
        &[2, 3, 0x23, 0x00],
        // The last byte of the header is a kind without a length.
        &[1, 1, 1, 8],
        &[1, 1, 1, 2],
    ];
    for (version, _, _) in BOTH {
        for bad in hostile {
            for options in [bad.to_vec(), [&large, bad].concat()] {
                let packet = segment(version, TcpFlags::SYN, &options);
                let mut now = packet.clone();
                assert!(!Clamp::for_mtu(MTU).lower(&mut now, Checksum::Whole), "{options:?}");
                assert_eq!(now, packet, "{options:?}");
            }
        }
    }
}

#[test]
fn each_of_several_is_lowered() {
    // A receiver takes the last (RFC 9293 has no rule for it; Linux tcp_parse_options does).
    let mut packet = segment(IpVersion::V4, TcpFlags::SYN, &[2, 4, 0x23, 0x00].repeat(10));
    assert!(Clamp::for_mtu(MTU).lower(&mut packet, Checksum::Whole));
    assert!(packet[40..].chunks(4).all(|option| option[2..] == 1452_u16.to_be_bytes()));
    assert!(is_right(&packet, 20));
}

proptest! {
    #[test]
    fn whatever_the_options_a_right_checksum_stays_right(
        is_v4: bool,
        mtu in 0_u32..70_000,
        options in prop::collection::vec(prop_oneof![Just(1_u8), Just(2), Just(4), any::<u8>()], 0..=40),
    ) {
        let (version, at) = if is_v4 { (IpVersion::V4, 20) } else { (IpVersion::V6, 40) };
        let packet = segment(version, TcpFlags::SYN, &options);
        let mut now = packet.clone();
        let lowered = Clamp::for_mtu(mtu).lower(&mut now, Checksum::Whole);
        prop_assert_eq!(lowered, now != packet);
        prop_assert!(is_right(&now, at));
    }

    #[test]
    fn any_bytes_are_taken_without_a_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = if *first & 1 == 0 { 0x45 } else { 0x60 };
        }
        Clamp::for_mtu(MTU).lower(&mut bytes, Checksum::Whole);
    }
}

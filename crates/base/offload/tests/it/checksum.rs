//! Every way of summing gives one answer, and the answers are those of the RFCs.

use proptest::prelude::*;
use rxlane_offload::checksum::{PartialError, Path, Sum, complete, internet, update};
use std::net::{IpAddr, Ipv6Addr};
use wire::IpProtocol;
use wire::emit::checksum as plain;

/// Bytes that a mistake in a lane, a carry or a place changes.
fn bytes(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 56) as u8
        })
        .collect()
}

fn available() -> impl Iterator<Item = Path> {
    Path::ALL.into_iter().filter(|path| path.is_available())
}

#[test]
#[allow(clippy::print_stdout, reason = "says which paths the machine could test")]
fn what_was_tested_is_visible() {
    println!("paths of this processor: {:?}", available().collect::<Vec<_>>());
    for path in Path::ALL {
        let error = Sum::by_path(path, &[1]).err().map(|error| error.to_string());
        assert_eq!(error.is_none(), path.is_available(), "{path}");
        assert!(error.is_none_or(|error| error.contains(path.needs())));
    }
}

#[test]
fn every_length_and_alignment() {
    let random = bytes(2100 + 64);
    let full = vec![0xff; 2100 + 64];
    for buffer in [&random, &full] {
        for length in 0..=2100 {
            for skew in if length < 300 { 0..64 } else { length % 64..length % 64 + 1 } {
                let bytes = &buffer[skew..skew + length];
                let expected = plain::internet(bytes);
                for path in available() {
                    let sum = Sum::by_path(path, bytes).expect("available");
                    assert_eq!(sum.checksum(), expected, "{path}, {length} bytes at {skew}");
                }
                assert_eq!(internet(bytes), expected, "{length} bytes at {skew}");
            }
        }
    }
}

#[test]
fn long_bytes_of_ones_and_zeros() {
    for length in [4096, 65535, 65536, 1 << 20] {
        for (byte, folded) in [(0xff, if length % 2 == 0 { 0xffff } else { 0xff00 }), (0, 0)] {
            for path in available() {
                let sum = Sum::by_path(path, &vec![byte; length]).expect("available");
                assert_eq!(sum.folded(), folded, "{path}, {length} times {byte:#x}");
            }
        }
    }
}

#[test]
fn example_of_rfc_1624_section_4() {
    // A checksum of 0xdd2f covers 0x5555, which becomes 0x3285: equation 3 gives 0x0000.
    assert_eq!(update(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
}

#[test]
fn partial_checksums_that_do_not_fit_are_named() {
    let mut packet = bytes(40);
    let before = packet.clone();
    let start = PartialError::Start { start: 41, available: 40 };
    assert_eq!(complete(&mut packet, 41, 0), Err(start));
    for offset in [20, 22, 65534, usize::MAX - 1] {
        let field = PartialError::Field { start: 20, offset, available: 40 };
        assert_eq!(complete(&mut packet, 20, offset), Err(field));
    }
    assert_eq!(
        complete(&mut packet, 40, 0),
        Err(PartialError::Field { start: 40, offset: 0, available: 40 })
    );
    assert_eq!(complete(&mut packet, 20, 7), Err(PartialError::Odd { offset: 7 }));
    assert_eq!(packet, before);
    assert!(complete(&mut packet, 20, 18).is_ok());
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ones() {
    // The field and the rest sum to 0xffff.
    let mut packet = [0, 1, 0, 2, 0, 8, 0xff, 0xf4];
    assert_eq!(complete(&mut packet, 0, 6), Ok(0xffff));
    assert_eq!(packet[6..], [0xff, 0xff]);
    let mut packet = [0, 1, 0xff, 0xf4, 0, 8, 0, 2];
    assert_eq!(complete(&mut packet, 0, 2), Ok(0), "only for UDP");
}

fn address(version_6: bool, end: u8) -> IpAddr {
    if version_6 {
        Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0xff00, u16::from(end)).into()
    } else {
        [192, 0, 2, end].into()
    }
}

fn pseudo(source: IpAddr, destination: IpAddr, protocol: IpProtocol, length: usize) -> Sum {
    match (source, destination) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            let addresses = [a.octets(), b.octets()];
            Sum::pseudo_ipv4(addresses.as_flattened().try_into().expect("8"), protocol, length as u16)
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            let addresses = [a.octets(), b.octets()];
            Sum::pseudo_ipv6(addresses.as_flattened().try_into().expect("32"), protocol, length as u32)
        }
        _ => unreachable!("one version"),
    }
}

proptest! {
    #[test]
    fn an_update_is_as_good_as_a_new_sum(
        mut bytes in proptest::collection::vec(any::<u8>(), 4..200),
        field in any::<[u8; 8]>(),
        at in any::<proptest::sample::Index>(),
        words in 1..=4_usize,
    ) {
        let length = (2 * words).min(bytes.len() / 2 * 2);
        let at = at.index((bytes.len() - length) / 2 + 1) * 2;
        let before = internet(&bytes);
        let old = bytes[at..at + length].to_vec();
        bytes[at..at + length].copy_from_slice(&field[..length]);
        let after = internet(&bytes);
        let updated = update(before, &old, &field[..length]);
        // Equation 3 cannot distinguish the two zeros of what is left; a receiver does not either.
        prop_assert!(updated == after || (updated, after) == (0, 0xffff), "{:#x} {:#x}", updated, after);
    }

    #[test]
    fn an_update_is_equation_3_of_rfc_1624(
        numbers in proptest::array::uniform3(prop_oneof![Just(0), Just(0xffff), Just(1), any::<u16>()]),
    ) {
        let [checksum, old, new] = numbers;
        let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
        while sum > 0xffff {
            sum = (sum >> 16) + (sum & 0xffff);
        }
        prop_assert_eq!(update(checksum, &old.to_be_bytes(), &new.to_be_bytes()), !(sum as u16));
    }

    #[test]
    fn words_leave(a in proptest::collection::vec(any::<u8>(), 0..100), b in proptest::collection::vec(any::<u8>(), 0..50)) {
        let both = Sum::of(&a).plus(Sum::of(&b));
        let left = both.minus(Sum::of(&b)).folded();
        prop_assert!(left == Sum::of(&a).folded() || (left, Sum::of(&a).folded()) == (0xffff, 0));
    }

    #[test]
    fn a_completed_checksum_is_right(
        mut packet in proptest::collection::vec(any::<u8>(), 20..1600),
        version_6 in any::<bool>(),
        protocol in prop_oneof![Just((IpProtocol::TCP, 16)), Just((IpProtocol::UDP, 6)), Just((IpProtocol::ICMPV6, 2))],
        front in 0..40_usize,
    ) {
        let ((protocol, offset), length) = (protocol, packet.len());
        let (source, destination) = (address(version_6, 1), address(version_6, 2));
        let sum = pseudo(source, destination, protocol, length);
        packet[offset..offset + 2].copy_from_slice(&sum.folded().to_be_bytes());
        let mut whole = vec![0xa5; front];
        whole.extend(&packet);
        prop_assert!(complete(&mut whole, front, offset).is_ok());
        prop_assert!(plain::is_right(source, destination, protocol, &whole[front..]));
        prop_assert_eq!(sum.folded(), plain::Sum::pseudo_header(source, destination, protocol, length).unwrap().folded());
    }
}

//! What is in front of the IP header: when two frames came over one link, and when they may become one packet.

use wire::ethernet::EtherType;
use wire::mpls::ENTRY_LENGTH;
use wire::vlan::TAG_LENGTH;

/// Bytes of the two MAC addresses.
const ADDRESSES: usize = 12;
/// The bits of a tag that are not priority or drop eligibility (IEEE 802.1Q-2022 clause 9.6).
const TAG_MASK: u32 = 0xffff_0fff;
/// The bits of an MPLS entry that are not traffic class or time to live (RFC 3032 section 2.1).
const ENTRY_MASK: u32 = 0xffff_f100;
/// Bytes from the PPPoE length field to the IP header.
const BEHIND_LENGTH: usize = 4;

/// Two prefixes, from the MAC addresses to the IP header, compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Equal but for the PPPoE length, which is that of the packet.
    Same,
    /// Equal in VLANs, labels and session, but not in MAC addresses, priority, drop eligibility or an MPLS time to live:
    /// packets of one flow that must keep their order, but are no one packet.
    Alike,
    /// Others.
    Other,
}

impl Link {
    /// `tags` is the number of tags of the first.
    #[inline]
    pub(super) fn compare(first: &[u8], second: &[u8], tags: usize) -> Link {
        let (Some(one), Some(two)) = (Parts::of(first, tags), Parts::of(second, tags)) else {
            return Link::Other;
        };
        if one.ethertype != two.ethertype || one.protocol != two.protocol {
            return Link::Other;
        }
        if one.addresses == two.addresses && one.tags == two.tags && one.session == two.session {
            return Link::Same;
        }
        let is_mpls = matches!(one.ethertype, EtherType::MPLS | EtherType::MPLS_UPSTREAM);
        let session_is_alike = match is_mpls {
            true => agrees::<ENTRY_LENGTH>(one.session, two.session, ENTRY_MASK),
            false => one.session == two.session,
        };
        match agrees::<TAG_LENGTH>(one.tags, two.tags, TAG_MASK) && session_is_alike {
            true => Link::Alike,
            false => Link::Other,
        }
    }
}

/// Whether two lists of words agree in the bits of `mask`.
fn agrees<const N: usize>(one: &[u8], two: &[u8], mask: u32) -> bool {
    let words = |list: &[u8]| -> Option<u32> { Some(u32::from_be_bytes(*list.first_chunk()?) & mask) };
    one.len() == two.len() && one.chunks(N).zip(two.chunks(N)).all(|(one, two)| words(one) == words(two))
}

/// A prefix in the parts that are compared.
struct Parts<'p> {
    addresses: &'p [u8],
    tags: &'p [u8],
    /// Under the last tag.
    ethertype: EtherType,
    /// Labels, or PPPoE up to its length field.
    session: &'p [u8],
    /// The PPP protocol, by value: to compare an empty slice that points nowhere costs 100 ns where memcmp(3) loads
    /// it under an empty mask.
    protocol: Option<[u8; 2]>,
}

impl<'p> Parts<'p> {
    fn of(prefix: &'p [u8], tags: usize) -> Option<Parts<'p>> {
        let (addresses, rest) = prefix.split_at_checked(ADDRESSES)?;
        let (tags, rest) = rest.split_at_checked(tags * TAG_LENGTH)?;
        let (ethertype, session) = rest.split_first_chunk()?;
        let ethertype = EtherType(u16::from_be_bytes(*ethertype));
        let (session, protocol) = if ethertype == EtherType::PPPOE_SESSION {
            let (session, [_, _, protocol @ ..]) = session.split_last_chunk::<BEHIND_LENGTH>()?;
            (session, Some(*protocol))
        } else {
            (session, None)
        };
        Some(Parts { addresses, tags, ethertype, session, protocol })
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::unwrap_used)]
mod tests {
    use super::*;
    use wire::IpVersion;
    use wire::emit::Encapsulation;
    use wire::ethernet::MacAddress;

    fn prefix(text: &str, packet_length: usize, source: u8) -> Vec<u8> {
        let encapsulation: Encapsulation = text.parse().unwrap();
        let mut prefix = vec![0; encapsulation.length()];
        let (near, far) = (MacAddress([2; 6]), MacAddress([source; 6]));
        encapsulation.emit(near, far, IpVersion::V4, packet_length, &mut prefix).unwrap();
        prefix
    }

    #[test]
    fn length_priority_and_addresses_are_no_other_link() {
        for (text, tags) in
            [("none", 0), ("q:5", 1), ("ad:5,q:6,pppoe:7", 2), ("pppoe:7", 0), ("q:1,mpls:9", 1)]
        {
            let first = prefix(text, 100, 4);
            assert_eq!(Link::compare(&first, &prefix(text, 1400, 4), tags), Link::Same, "{text}");
            assert_eq!(Link::compare(&first, &prefix(text, 100, 6), tags), Link::Alike, "{text}");
            for tag in 0..tags {
                let mut other = first.clone();
                other[14 + 4 * tag] |= 0xa0;
                assert_eq!(Link::compare(&first, &other, tags), Link::Alike, "{text}");
                other[15 + 4 * tag] ^= 1;
                assert_eq!(Link::compare(&first, &other, tags), Link::Other, "{text}");
            }
        }
    }

    #[test]
    fn class_and_time_to_live_of_a_label_are_no_other_link() {
        // Labels stand at bytes 18 and 22.
        let first = prefix("q:1,mpls:9,mpls:10", 100, 4);
        for (at, bit, link) in [
            (20, 0x0e, Link::Alike),
            (21, 0xff, Link::Alike),
            (25, 0x01, Link::Alike),
            (20, 0x10, Link::Other),
            (23, 0x01, Link::Other),
            (24, 0x01, Link::Other),
        ] {
            let mut other = first.clone();
            other[at] ^= bit;
            assert_eq!(Link::compare(&first, &other, 1), link, "byte {at}");
        }
    }

    #[test]
    fn another_session_protocol_or_stack_is_another_link() {
        let all = [
            "none",
            "q:5",
            "ad:5",
            "q:6",
            "q:5,pppoe:7",
            "q:5,pppoe:8",
            "pppoe:7",
            "q:5,mpls:7",
            "q:5,mpls:8",
        ];
        for (place, one) in all.iter().enumerate() {
            for other in &all[place + 1..] {
                let tags = one.contains("q:") as usize + one.contains("ad:") as usize;
                let compared = Link::compare(&prefix(one, 9, 4), &prefix(other, 9, 4), tags);
                assert_eq!(compared, Link::Other, "{one} {other}");
            }
        }
    }
}

//! How long the packets of a link can be over a parent of some MTU.

use wire::emit::Encapsulation;
use wire::ethernet::{self, EtherType};
use wire::vlan::TAG_LENGTH;

/// Bytes of a frame beyond the MTU that Linux sends all the same: those of a tag, where the outermost TPID is 0x8100
/// (`packet_snd()` of net/packet/af_packet.c).
fn allowance(encapsulation: &Encapsulation) -> usize {
    let outermost = encapsulation.tags().first().map(|tag| tag.tpid);
    if outermost == Some(EtherType::VLAN) { TAG_LENGTH } else { 0 }
}

/// The MTU that a parent must have for packets of `mtu` bytes.
pub fn needed_mtu(mtu: u32, encapsulation: &Encapsulation) -> u32 {
    let more = encapsulation.overhead().saturating_sub(allowance(encapsulation));
    mtu.saturating_add(more as u32)
}

/// The longest packet that a parent of `parent_mtu` bytes lets out.
pub fn longest_mtu(parent_mtu: u32, encapsulation: &Encapsulation) -> u32 {
    let more = encapsulation.overhead().saturating_sub(allowance(encapsulation));
    parent_mtu.saturating_sub(more as u32)
}

/// The longest frame that a parent of `parent_mtu` bytes lets out, bytes without FCS.
pub fn longest_frame(parent_mtu: u32, encapsulation: &Encapsulation) -> u32 {
    parent_mtu.saturating_add((ethernet::Header::LENGTH + allowance(encapsulation)) as u32)
}

/// Bytes of the frame on the line with a packet of `mtu` bytes, FCS included.
pub fn on_the_line(mtu: u32, encapsulation: &Encapsulation) -> u32 {
    const FCS: u32 = 4;
    mtu.saturating_add(encapsulation.length() as u32 + FCS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tag_is_free_where_linux_says_so() {
        for (text, overhead, line) in [
            ("q:35", 0, 1522),
            ("q:1,q:2", 4, 1526),
            ("ad:100,q:200", 8, 1526),
            ("pppoe:7", 8, 1526),
            ("q:35,pppoe:7", 8, 1530),
            ("ad:100,q:200,pppoe:7", 16, 1534),
        ] {
            let encapsulation = text.parse().expect("an encapsulation");
            assert_eq!(needed_mtu(1500, &encapsulation), 1500 + overhead, "{text}");
            assert_eq!(longest_mtu(1500, &encapsulation), 1500 - overhead, "{text}");
            assert_eq!(on_the_line(1500, &encapsulation), line, "{text}");
        }
    }
}

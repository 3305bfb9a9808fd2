//! How long packets may be: what the interface with the lines has room for, behind as many tags as there are.

use super::Start;
use crate::event::Event;
use kernel::netlink;
use link::Error;
use link::frame_size::{longest_mtu, needed_mtu};
use link::pppoe::VlanPattern;
use wire::Vlans;
use wire::ethernet::EtherType;
use wire::vlan::{Tag, Tci};

/// The longest packet behind the tags of a line.
pub fn room_behind(tags: Vlans, parent_mtu: u32) -> u16 {
    let most = longest_mtu(parent_mtu, &VlanPattern::from(tags).encapsulation());
    u16::try_from(most).unwrap_or(u16::MAX)
}

/// Where lines have any number of tags, some may have room for less than others: what to do about it, once for all of them.
pub fn shorter_behind_tags(start: &Start, parent: &netlink::Link) -> Option<Event> {
    let wanted = start.config.discovery.max_payload;
    let tag = |tpid| Tag { tpid, tci: Tci::new(0, false, 0) };
    let tags = Vlans::of([tag(EtherType::SERVICE_VLAN), tag(EtherType::VLAN)])?;
    let most = room_behind(tags, parent.mtu);
    if start.vlans != VlanPattern::Any || wanted <= most {
        return None;
    }
    let needed = needed_mtu(wanted.into(), &VlanPattern::from(tags).encapsulation());
    let (parent, parent_mtu) = (parent.name.clone(), parent.mtu);
    Some(Event::ShorterBehindTags { parent, parent_mtu, most, wanted, needed })
}

/// The MTU of the interface, if the parent has room for it inside of as many tags as are served. Where that is any number, it
/// has to be there without tags, and each session has what its own leave.
pub fn room(start: &Start, parent: &netlink::Link) -> Result<u32, Error> {
    let wanted = u32::from(start.config.discovery.max_payload);
    let encapsulation = start.vlans.encapsulation();
    if wanted <= longest_mtu(parent.mtu, &encapsulation) {
        return Ok(wanted);
    }
    Err(Error::mtu_too_large(wanted, parent, &encapsulation))
}

//! VLAN, QinQ and PPP interfaces: what their frames measure on the wire, who below accepts them, and which
//! offloads they lost.
//!
//! # What a frame measures
//!
//! An MTU counts the network packet alone. On the wire it has 14 bytes of Ethernet header (IEEE 802.3), 4 for each
//! tag (IEEE 802.1Q, 802.1ad), 6 + 2 for PPPoE and the PPP protocol (RFC 2516, RFC 1661), and 4 of FCS, which
//! captures do not show and which [`StackedRow::frame`] leaves out. Full frames of MTU 1500 have 1518 bytes with
//! FCS, 1522 with one tag and 1526 with two; IEEE 802.3as allows envelope frames of up to 2000.
//!
//! # Who accepts them
//!
//! Linux does not count a tag against the MTU of the device below (`vlan_dev_change_mtu`), so a VLAN device needs
//! an MTU no larger than its parent's, and PPPoE needs 8 bytes more below than it offers (`pppoe_connect`). Whether
//! the network card takes the longer frame is another question, which its profile answers for the driver's
//! defaults at MTU 1500; at other MTUs only the bounds
//! that follow from it are claimed.

#![expect(missing_docs, reason = "keys of the JSON answer; what its name does not say has a comment")]

use crate::Case;
use crate::case::kind as kind_of;
use crate::frame_limit::Limit;
use host::{Interface, Kind, Quote, System};
use nic::{Key, schema};
use serde::Serialize;
use std::collections::HashSet;

pub(crate) const ETHERNET: u32 = 14;
pub(crate) const TAG: u32 = 4;
/// PPPoE header (6) and PPP protocol (2), RFC 2516 section 4 and 7.
pub(crate) const PPPOE: u32 = 8;
pub(crate) const FCS: u32 = 4;
/// The usual MTU of Ethernet, for which profiles state what a driver accepts.
pub(crate) const USUAL_MTU: u32 = 1500;
/// Layers that are followed; more is a loop.
const DEEPEST: usize = 16;

/// A stacked interface: its frames, its way down, its offloads. `None` is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StackedRow {
    pub name: String,
    pub kind: StackedKind,
    /// From the interface itself down to the last one known.
    pub chain: Vec<LayerRow>,
    /// The device whose receive path it shares; absent where the way down is not known to its end.
    pub device: Option<String>,
    /// MTU, bytes.
    pub mtu: Option<u32>,
    pub tags: Option<u32>,
    /// A full frame without FCS, as a capture shows it, bytes.
    pub frame: Option<u32>,
    /// A full frame with FCS, bytes.
    pub frame_with_fcs: Option<u32>,
    /// The longest frame with so many tags that the standards know (802.3: 1518, 802.1Q: 1522, 802.1ad: 1526), bytes
    /// with FCS.
    pub standard_with_fcs: Option<u32>,
    /// Whether every interface below has an MTU that its packets fit.
    pub parents_accept: Option<bool>,
    /// Whether the device lets full frames in, as its profile says.
    pub device_accepts: Option<bool>,
    /// The longest such frame that the device lets in, bytes without FCS, where the profile says exactly.
    pub device_limit: Option<u32>,
    /// What changes that limit, in the profile's words.
    pub limit_follows: Option<String>,
    /// Offloads here and below, where both are known.
    pub offloads: Vec<OffloadRow>,
    /// PPPoE that carries packets of 1500 bytes (RFC 4638) over this way.
    pub pppoe_1500: FullPppoe,
}

impl StackedRow {
    /// Whether its full frames are let in all the way; `None` where one of the two is not known.
    pub fn fits(&self) -> Option<bool> {
        match (self.parents_accept, self.device_accepts) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StackedKind {
    Vlan,
    Qinq,
    Pppoe,
    /// A PPP interface over something that the text does not name.
    Ppp,
}

/// An interface on the way down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerRow {
    pub name: String,
    /// TPID as people write it (`0x8100`), of a VLAN device whose text says.
    pub tpid: Option<String>,
    pub vlan: Option<u16>,
    /// MTU, bytes.
    pub mtu: Option<u32>,
}

/// An offload of a stacked interface against those below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OffloadRow {
    /// ethtool's name (`tcp-segmentation-offload`).
    pub feature: &'static str,
    /// Whether it is on here.
    pub here: bool,
    /// Whether it is on at the nearest interface below that reports it.
    pub below: bool,
    pub lost: bool,
    /// Whether nobody can turn it on here.
    pub fixed: bool,
    /// Whether the device can do it for frames with so many tags, as its profile says.
    pub device_can: Option<bool>,
}

/// Whether PPPoE with packets of 1500 bytes would pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FullPppoe {
    /// What every interface below PPPoE needs as its MTU, bytes.
    pub mtu_needed: u32,
    /// Its full frame without FCS, bytes.
    pub frame: Option<u32>,
    /// Interfaces below whose MTU has to be raised, the device first.
    pub to_raise: Vec<String>,
    /// Whether this machine can: MTU allowed by the driver, frames let in by the device. The other end has to agree.
    pub works: Option<bool>,
}

/// An interface and everything below it.
pub(crate) struct Stack<'a> {
    pub top: &'a Interface,
    /// Those below, the nearest first, by name; with what is known of each.
    pub below: Vec<(&'a str, Option<&'a Interface>)>,
    /// Whether the last one below is where frames come in by.
    pub is_complete: bool,
}

/// A feature that a stacked device can lose.
pub(crate) struct Offload {
    /// ethtool's name, and what `ethtool -K` calls it.
    pub feature: &'static str,
    pub set: &'static str,
    /// The claims for one tag and for two.
    claims: Option<[Key; 2]>,
    /// Off on every VLAN device of Linux: the work is done below, nothing is lost by it.
    pub is_below: bool,
}

const fn offload(set: &'static str, feature: &'static str, claims: Option<[Key; 2]>) -> Offload {
    Offload { feature, set, claims, is_below: false }
}

const fn below(offload: Offload) -> Offload {
    Offload { is_below: true, ..offload }
}

/// In the order in which they depend on each other: segmentation needs scatter-gather, which needs checksums.
pub(crate) static OFFLOADS: [Offload; 7] = [
    offload("tx", "tx-checksumming", Some([schema::TX_CHECKSUM_ONE_TAG, schema::TX_CHECKSUM_TWO_TAGS])),
    offload("sg", "scatter-gather", None),
    offload("tso", "tcp-segmentation-offload", Some([schema::TSO_ONE_TAG, schema::TSO_TWO_TAGS])),
    offload("gso", "generic-segmentation-offload", None),
    below(offload("gro", "generic-receive-offload", None)),
    below(offload(
        "rx",
        "rx-checksumming",
        Some([schema::RX_CHECKSUM_ONE_TAG, schema::RX_CHECKSUM_TWO_TAGS]),
    )),
    below(offload("rxhash", "receive-hashing", None)),
];

impl Offload {
    /// Whether the device can do it for frames with so many tags.
    pub fn device_can(&self, case: &Case<'_>, stack: &Stack<'_>) -> Option<bool> {
        let [one_tag, two_tags] = self.claims?;
        let key = if stack.tags()? >= 2 { two_tags } else { one_tag };
        case.agreed(stack.device()?, |profile| profile.tri(key))
    }
}

impl<'a> Stack<'a> {
    /// The stack of `top`; `None` for anything but a VLAN device or a PPP interface.
    pub fn of(case: &Case<'a>, top: &'a Interface) -> Option<Stack<'a>> {
        if !is_vlan(top) && !is_ppp(top) {
            return None;
        }
        let snapshot = case.snapshot();
        let mut below: Vec<(&str, Option<&Interface>)> = Vec::new();
        let carrier = if is_ppp(top) { session_carrier(case) } else { None };
        let mut at = top;
        while below.len() < DEEPEST {
            let Some(name) = parent(at, carrier) else { break };
            if name == top.name || below.iter().any(|(known, _)| *known == name) {
                break;
            }
            let interface = snapshot.interface(name);
            below.push((name, interface));
            match interface {
                Some(interface) => at = interface,
                None => break,
            }
        }
        let is_complete = below.last().is_some_and(|(name, interface)| ends(name, *interface));
        Some(Stack { top, below, is_complete })
    }

    /// Every stack over a device.
    pub fn over(case: &Case<'a>, device: &Interface) -> Vec<Stack<'a>> {
        let interfaces = &case.snapshot().interfaces;
        let carrier = session_carrier(case);
        let mut names: HashSet<&str> = HashSet::from([device.name.as_str()]);
        // Upwards from the device: a walk down from each of a thousand interfaces would be done for every device.
        loop {
            let before = names.len();
            let above =
                interfaces.iter().filter(|top| parent(top, carrier).is_some_and(|name| names.contains(name)));
            let above: Vec<&str> = above.map(|top| top.name.as_str()).collect();
            names.extend(above);
            if names.len() == before {
                break;
            }
        }
        let tops =
            interfaces.iter().filter(|top| top.name != device.name && names.contains(top.name.as_str()));
        tops.filter_map(|top| Stack::of(case, top))
            .filter(|stack| {
                stack.is_complete && stack.below.last().is_some_and(|(name, _)| *name == device.name)
            })
            .collect()
    }

    /// The interface at the bottom, where the way down is known to its end.
    pub fn device(&self) -> Option<&'a Interface> {
        self.below.last().filter(|_| self.is_complete).and_then(|(_, interface)| *interface)
    }

    /// Whether it is PPP over Ethernet: over what else a PPP interface could stand, no text says.
    pub fn is_pppoe(&self) -> bool {
        is_ppp(self.top) && !self.below.is_empty()
    }

    fn layers(&self) -> impl DoubleEndedIterator<Item = &'a Interface> + '_ {
        std::iter::once(self.top).chain(self.below.iter().filter_map(|(_, interface)| *interface))
    }

    /// Tags of its frames; `None` where the way down is not known to its end.
    pub fn tags(&self) -> Option<u32> {
        let tags = self.layers().filter(|layer| is_vlan(layer)).count();
        self.is_complete.then(|| u32::try_from(tags).ok()).flatten()
    }

    pub fn outer_tpid(&self) -> Option<u16> {
        match self.layers().rev().find(|layer| is_vlan(layer))?.kind.as_ref()?.value {
            Kind::Vlan { tpid, .. } => tpid,
            _ => None,
        }
    }

    /// What those below have to carry for a packet of `mtu` bytes here.
    fn needed(&self, mtu: u32) -> u32 {
        mtu.saturating_add(if is_ppp(self.top) { PPPOE } else { 0 })
    }

    /// The packet that those below have to carry, bytes: the MTU, and 8 for PPPoE.
    pub fn packet(&self) -> Option<u32> {
        Some(self.needed(*self.top.mtu.as_ref()?.get()))
    }

    /// A frame that carries a packet of `packet` bytes below all tags, without FCS.
    pub fn frame_of(&self, packet: u32) -> Option<u32> {
        Some(packet.saturating_add(ETHERNET).saturating_add(TAG.saturating_mul(self.tags()?)))
    }

    /// A full frame without FCS.
    pub fn frame(&self) -> Option<u32> {
        self.frame_of(self.packet()?)
    }

    /// What the device lets in of such frames while its MTU is `mtu`; `None` where that is not known exactly. The
    /// MTU is `least` at least.
    pub fn limit(&self, case: &Case<'_>, mtu: Option<u32>, least: u32) -> Option<Limit> {
        // Profiles speak of the Linux drivers.
        if !matches!(case.system(), None | Some(System::Linux)) {
            return None;
        }
        let (tags, outer) = (self.tags()?, self.outer_tpid());
        case.agreed(self.device()?, |profile| Some(Limit::of(profile, tags, outer, mtu, least)))
    }

    /// The lines that say what it is and how large its packets are.
    pub fn quotes(&self) -> Vec<Quote> {
        let mut quotes: Vec<Quote> = Vec::new();
        for layer in self.layers() {
            quotes.extend(
                layer
                    .kind
                    .as_ref()
                    .filter(|_| is_vlan(layer) || is_ppp(layer))
                    .map(|kind| kind.quote.clone()),
            );
            quotes.extend(layer.mtu.as_ref().map(|mtu| mtu.quote().clone()));
        }
        quotes.dedup();
        quotes
    }

    /// `eth0.35 on eth0`.
    pub fn way(&self) -> String {
        let names = std::iter::once(self.top.name.as_str()).chain(self.below.iter().map(|(name, _)| *name));
        names.collect::<Vec<_>>().join(" on ")
    }
}

/// Interfaces for which a finding about many gives commands.
pub(crate) const NAMED: usize = 8;

/// Whether it is a VLAN device.
pub(crate) fn is_vlan(interface: &Interface) -> bool {
    matches!(kind_of(interface), Some(Kind::Vlan { .. }))
}

/// Whether it is a PPP interface.
pub(crate) fn is_ppp(interface: &Interface) -> bool {
    matches!(kind_of(interface), Some(Kind::Ppp))
}

/// The interface below: what the text says, or, of a PPP interface, the one that carries all PPPoE sessions.
fn parent<'a>(interface: &'a Interface, carrier: Option<&'a str>) -> Option<&'a str> {
    let said = interface.parent.as_ref().map(|parent| parent.value.as_str());
    said.or_else(|| carrier.filter(|_| is_ppp(interface)))
}

/// The interface below that one.
pub(crate) fn parent_of<'a>(case: &Case<'a>, interface: &'a Interface) -> Option<&'a str> {
    parent(interface, session_carrier(case))
}

/// The interface on which all of the kernel's PPPoE sessions are, if there are as many as PPP interfaces without a
/// parent: then each of these is over it.
fn session_carrier<'a>(case: &Case<'a>) -> Option<&'a str> {
    let snapshot = case.snapshot();
    let sessions = &snapshot.sessions;
    let first = sessions.first()?;
    let orphans = snapshot.interfaces.iter().filter(|other| is_ppp(other) && other.parent.is_none()).count();
    let is_one = sessions.iter().all(|session| session.interface == first.interface);
    (is_one && orphans == sessions.len()).then_some(&first.interface)
}

/// Whether nothing is below: a device, or a name that does not look like a stacked one's.
fn ends(name: &str, interface: Option<&Interface>) -> bool {
    match interface.and_then(kind_of) {
        Some(Kind::Device | Kind::Veth) => true,
        Some(Kind::Vlan { .. } | Kind::Ppp | Kind::Bridge { .. } | Kind::Other(_)) => false,
        None => {
            const STACKED: [&str; 6] = ["vlan", "ppp", "br", "bond", "team", "tun"];
            !name.contains('.') && !STACKED.iter().any(|prefix| name.starts_with(prefix))
        }
    }
}

/// Every VLAN device and PPP interface of the case.
pub(crate) fn rows(case: &Case<'_>) -> Vec<StackedRow> {
    case.stacked().filter_map(|interface| Some(row(case, &Stack::of(case, interface)?))).collect()
}

fn row(case: &Case<'_>, stack: &Stack<'_>) -> StackedRow {
    let frame = stack.frame();
    let device = stack.device();
    let mtu_below = device.and_then(mtu);
    let limit = stack.packet().and_then(|packet| stack.limit(case, mtu_below, packet));
    StackedRow {
        name: stack.top.name.clone(),
        kind: kind(stack),
        chain: chain(stack),
        device: stack.below.last().filter(|_| stack.is_complete).map(|(name, _)| (*name).to_owned()),
        mtu: mtu(stack.top),
        tags: stack.tags(),
        frame,
        frame_with_fcs: frame.map(|frame| frame.saturating_add(FCS)),
        standard_with_fcs: stack.tags().map(|tags| USUAL_MTU + ETHERNET + FCS + TAG.saturating_mul(tags)),
        parents_accept: stack.packet().and_then(|packet| parents_accept(stack, packet)),
        device_accepts: frame.zip(limit).and_then(|(frame, limit)| limit.accepts(frame)),
        device_limit: limit.and_then(Limit::exact),
        limit_follows: device.and_then(|device| follows(case, device)),
        offloads: offloads(case, stack),
        pppoe_1500: full_pppoe(case, stack),
    }
}

fn kind(stack: &Stack<'_>) -> StackedKind {
    let is_on_vlan = || stack.below.iter().any(|(_, interface)| interface.is_some_and(is_vlan));
    match is_ppp(stack.top) {
        true if stack.is_pppoe() => StackedKind::Pppoe,
        true => StackedKind::Ppp,
        false if is_on_vlan() => StackedKind::Qinq,
        false => StackedKind::Vlan,
    }
}

fn chain(stack: &Stack<'_>) -> Vec<LayerRow> {
    let top = (stack.top.name.as_str(), Some(stack.top));
    std::iter::once(top)
        .chain(stack.below.iter().copied())
        .map(|(name, interface)| {
            let (tpid, vlan) = match interface.and_then(kind_of) {
                Some(Kind::Vlan { tpid, id }) => (tpid.map(|tpid| format!("0x{tpid:04x}")), *id),
                _ => (None, None),
            };
            LayerRow { name: name.to_owned(), tpid, vlan, mtu: interface.and_then(mtu) }
        })
        .collect()
}

pub(crate) fn mtu(interface: &Interface) -> Option<u32> {
    interface.mtu.as_ref().map(|mtu| *mtu.get())
}

/// Whether all interfaces below carry a packet of that size.
fn parents_accept(stack: &Stack<'_>, packet: u32) -> Option<bool> {
    let known: Vec<Option<u32>> = stack.below.iter().map(|(_, interface)| interface.and_then(mtu)).collect();
    if known.iter().flatten().any(|&mtu| mtu < packet) {
        return Some(false);
    }
    (stack.is_complete && known.iter().all(Option::is_some)).then_some(true)
}

/// What changes the limit of a device, where the profiles that fit agree.
pub(crate) fn follows(case: &Case<'_>, device: &Interface) -> Option<String> {
    case.agreed(device, |profile| profile.text(schema::FRAME_FOLLOWS)).map(str::to_owned)
}

fn offloads(case: &Case<'_>, stack: &Stack<'_>) -> Vec<OffloadRow> {
    OFFLOADS
        .iter()
        .filter_map(|offload| {
            let (here, _) = case.feature(stack.top, offload.feature)?;
            let (below, _) = feature_below(case, stack, offload.feature)?;
            Some(OffloadRow {
                feature: offload.feature,
                here: here.on,
                below,
                lost: below && !here.on,
                fixed: here.fixed,
                device_can: offload.device_can(case, stack),
            })
        })
        .collect()
}

/// Whether a feature is on at the nearest interface below that reports it, with the line.
pub(crate) fn feature_below<'a>(case: &Case<'a>, stack: &Stack<'a>, name: &str) -> Option<(bool, &'a Quote)> {
    stack.below.iter().find_map(|(_, interface)| {
        let (feature, quote) = case.feature((*interface)?, name)?;
        Some((feature.on, quote))
    })
}

/// Whether RFC 4638 would work over this stack.
pub(crate) fn full_pppoe(case: &Case<'_>, stack: &Stack<'_>) -> FullPppoe {
    let mtu_needed = USUAL_MTU + PPPOE;
    let frame = stack.frame_of(mtu_needed);
    let mut carriers: Vec<(&str, Option<&Interface>)> = stack.below.clone();
    if !is_ppp(stack.top) {
        carriers.insert(0, (stack.top.name.as_str(), Some(stack.top)));
    }
    let to_raise = carriers
        .iter()
        .rev()
        .filter(|(_, interface)| interface.and_then(mtu).is_some_and(|mtu| mtu < mtu_needed))
        .map(|(name, _)| (*name).to_owned())
        .collect();
    FullPppoe { mtu_needed, frame, to_raise, works: full_pppoe_works(case, stack, frame, mtu_needed) }
}

fn full_pppoe_works(case: &Case<'_>, stack: &Stack<'_>, frame: Option<u32>, needed: u32) -> Option<bool> {
    let device = stack.device()?;
    let present = mtu(device);
    let allowed = match (present, &device.mtu_most) {
        (Some(present), _) if present >= needed => Some(true),
        (_, Some(most)) => Some(most.value >= needed),
        (_, None) => None,
    };
    if allowed == Some(false) {
        return Some(false);
    }
    let then = present.map_or(needed, |present| present.max(needed));
    let accepted = stack.limit(case, Some(then), needed).and_then(|limit| limit.accepts(frame?));
    match (allowed, accepted) {
        (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

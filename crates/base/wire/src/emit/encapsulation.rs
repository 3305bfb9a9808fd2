//! An encapsulation: what stands between the MAC addresses and the IP header of a link, as a value.
//!
//! It is written the same way everywhere: `ad:100,q:200,pppoe:1234@02:00:5e:00:00:01`, outermost first.
//!
//! | word | means |
//! | --- | --- |
//! | `q:VID` | a tag with TPID 0x8100 |
//! | `ad:VID` | a tag with TPID 0x88a8 |
//! | `0x9100:VID` | a tag with this TPID: one of the five that [`EtherType::is_tag`] knows |
//! | `mpls:LABEL` | an MPLS label |
//! | `pppoe`, `pppoe:SESSION`, `pppoe:SESSION@MAC` | PPPoE session framing, the session id, the peer's address |
//! | `none` | nothing at all: IP right behind the MAC header |

use super::{Emit, EmitError, Ethernet, Mpls, Ppp, Pppoe as PppoeHeader, VlanTag};
use crate::ethernet::{EtherType, Header, MacAddress};
use crate::flow::IpVersion;
use crate::mpls::ENTRY_LENGTH;
use crate::ppp::PppProtocol;
use crate::pppoe::{self, Code};
use crate::vlan::{TAG_LENGTH, Tag, Tci};
use core::fmt;
use core::str::FromStr;

/// The most tags of an [`Encapsulation`]. Frames with more are read, but no link is configured so.
pub const MAX_TAGS: usize = 8;
/// The most labels of an [`Encapsulation`].
pub const MAX_LABELS: usize = 4;

/// PPPoE framing of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pppoe {
    /// Session id; `None` where it is not fixed beforehand.
    pub session: Option<u16>,
    /// MAC address of the other end; `None` where it is not fixed beforehand.
    pub peer: Option<MacAddress>,
}

/// VLAN tags, then PPPoE or MPLS labels or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encapsulation {
    tags: [Tag; MAX_TAGS],
    tag_count: u8,
    labels: [u32; MAX_LABELS],
    label_count: u8,
    pppoe: Option<Pppoe>,
}

const NO_TAG: Tag = Tag { tpid: EtherType::VLAN, tci: Tci(0) };
/// Time to live of the labels.
const LABEL_TTL: u8 = 64;

impl Encapsulation {
    /// IP right behind the MAC header.
    pub const NONE: Encapsulation = Encapsulation {
        tags: [NO_TAG; MAX_TAGS],
        tag_count: 0,
        labels: [0; MAX_LABELS],
        label_count: 0,
        pppoe: None,
    };

    /// With one more tag, inside those there are.
    pub fn with_tag(mut self, tag: Tag) -> Result<Encapsulation, EncapsulationError> {
        if !tag.tpid.is_tag() {
            return Err(EncapsulationError::Tpid(tag.tpid));
        }
        if self.pppoe.is_some() || self.label_count > 0 {
            return Err(EncapsulationError::Order);
        }
        let place = self.tags.get_mut(usize::from(self.tag_count)).ok_or(EncapsulationError::TooManyTags)?;
        *place = tag;
        self.tag_count += 1;
        Ok(self)
    }

    /// With one more MPLS label at the bottom of the stack.
    pub fn with_label(mut self, label: u32) -> Result<Encapsulation, EncapsulationError> {
        if label > 0xf_ffff {
            return Err(EncapsulationError::Label(label));
        }
        if self.pppoe.is_some() {
            return Err(EncapsulationError::Order);
        }
        let place =
            self.labels.get_mut(usize::from(self.label_count)).ok_or(EncapsulationError::TooManyLabels)?;
        *place = label;
        self.label_count += 1;
        Ok(self)
    }

    /// With PPPoE inside the tags.
    pub fn with_pppoe(mut self, pppoe: Pppoe) -> Result<Encapsulation, EncapsulationError> {
        if self.pppoe.is_some() || self.label_count > 0 {
            return Err(EncapsulationError::Order);
        }
        self.pppoe = Some(pppoe);
        Ok(self)
    }

    /// With the tags of the short notation: `35` is one tag of TPID 0x8100, `100.200` is 0x88a8 outside and
    /// 0x8100 inside, and any further tag is one more 0x8100. `tpid` replaces the outermost tag's.
    pub fn with_vlans(
        mut self,
        vlans: &str,
        tpid: Option<EtherType>,
    ) -> Result<Encapsulation, EncapsulationError> {
        let stacked = vlans.contains('.');
        for (depth, vid) in vlans.split('.').enumerate() {
            let usual = if depth == 0 && stacked { EtherType::SERVICE_VLAN } else { EtherType::VLAN };
            let tpid = tpid.filter(|_| depth == 0).unwrap_or(usual);
            self = self.with_tag(Tag { tpid, tci: Tci::new(0, false, vlan_identifier(vid)?) })?;
        }
        Ok(self)
    }

    /// The tags, outermost first.
    pub fn tags(&self) -> &[Tag] {
        self.tags.get(..usize::from(self.tag_count)).unwrap_or_default()
    }

    /// The tags, outermost first, to change their identifiers.
    pub fn tags_mut(&mut self) -> &mut [Tag] {
        self.tags.get_mut(..usize::from(self.tag_count)).unwrap_or_default()
    }

    /// The MPLS labels, outermost first.
    pub fn labels(&self) -> &[u32] {
        self.labels.get(..usize::from(self.label_count)).unwrap_or_default()
    }

    /// PPPoE, where there is any.
    pub fn pppoe(&self) -> Option<Pppoe> {
        self.pppoe
    }

    /// Changes the session id or the peer of an encapsulation that has PPPoE; leaves any other alone.
    pub fn set_pppoe(&mut self, pppoe: Pppoe) {
        if let Some(place) = &mut self.pppoe {
            *place = pppoe;
        }
    }

    /// Bytes between the MAC header and the IP header.
    pub fn overhead(&self) -> usize {
        let pppoe = if self.pppoe.is_some() { pppoe::Header::LENGTH + 2 } else { 0 };
        self.tags().len() * TAG_LENGTH + self.labels().len() * ENTRY_LENGTH + pppoe
    }

    /// Bytes before the IP header.
    pub fn length(&self) -> usize {
        Header::LENGTH + self.overhead()
    }

    /// The EtherType under the tags, for IP packets of `version`.
    pub fn ethertype(&self, version: IpVersion) -> EtherType {
        match (self.pppoe, self.label_count, version) {
            (Some(_), _, _) => EtherType::PPPOE_SESSION,
            (None, 1.., _) => EtherType::MPLS,
            (None, 0, IpVersion::V4) => EtherType::IPV4,
            (None, 0, IpVersion::V6) => EtherType::IPV6,
        }
    }

    /// Writes MAC header and tags, with `ethertype` under the last tag, and gives their length.
    pub fn emit_tagged(
        &self,
        destination: MacAddress,
        source: MacAddress,
        ethertype: EtherType,
        buffer: &mut [u8],
    ) -> Result<usize, EmitError> {
        let mut under = self.tags().iter().map(|tag| tag.tpid).chain([ethertype]);
        let first = under.next().unwrap_or(ethertype);
        let mut at = Ethernet { destination, source, ethertype: first }.emit(buffer)?;
        for (tag, ethertype) in self.tags().iter().zip(under) {
            at += VlanTag { tci: tag.tci, ethertype }.emit(rest(buffer, at))?;
        }
        Ok(at)
    }

    /// Writes everything before an IP packet of `version` and `packet_length` bytes, and gives its length.
    /// A PPPoE session that is not fixed is written as 0.
    pub fn emit(
        &self,
        destination: MacAddress,
        source: MacAddress,
        version: IpVersion,
        packet_length: usize,
        buffer: &mut [u8],
    ) -> Result<usize, EmitError> {
        let mut at = self.emit_tagged(destination, source, self.ethertype(version), buffer)?;
        for (depth, label) in self.labels().iter().enumerate() {
            let bottom = depth + 1 == self.labels().len();
            let entry = Mpls { label: *label, traffic_class: 0, bottom, ttl: LABEL_TTL };
            at += entry.emit(rest(buffer, at))?;
        }
        if let Some(pppoe) = self.pppoe {
            let payload_length = packet_length.saturating_add(2);
            super::fits(crate::error::Layer::Pppoe, crate::error::Field::Length, payload_length, 0xffff)?;
            let header = PppoeHeader {
                code: Code::SESSION,
                session: pppoe.session.unwrap_or_default(),
                payload_length: payload_length as u16,
            };
            at += header.emit(rest(buffer, at))?;
            let protocol = match version {
                IpVersion::V4 => PppProtocol::IPV4,
                IpVersion::V6 => PppProtocol::IPV6,
            };
            at += Ppp { protocol }.emit(rest(buffer, at))?;
        }
        Ok(at)
    }
}

fn rest(buffer: &mut [u8], at: usize) -> &mut [u8] {
    buffer.get_mut(at..).unwrap_or_default()
}

/// Why an encapsulation cannot be built or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncapsulationError {
    /// More than [`MAX_TAGS`] tags.
    TooManyTags,
    /// More than [`MAX_LABELS`] labels.
    TooManyLabels,
    /// Not a TPID.
    Tpid(EtherType),
    /// A label of more than 20 bits.
    Label(u32),
    /// A tag inside PPPoE or MPLS, or both of these.
    Order,
    /// A word that is none of the notation's; its place counts from 1.
    Word(usize),
    /// Not a VLAN identifier, 0 to 4094.
    VlanIdentifier,
    /// Not a session id, 1 to 65534 (RFC 2516 section 4 reserves 0xffff; 0 is for discovery).
    Session,
    /// Not a MAC address.
    MacAddress,
}

impl core::error::Error for EncapsulationError {}

impl fmt::Display for EncapsulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncapsulationError::TooManyTags => write!(f, "more than {MAX_TAGS} VLAN tags"),
            EncapsulationError::TooManyLabels => write!(f, "more than {MAX_LABELS} MPLS labels"),
            EncapsulationError::Tpid(tpid) => {
                write!(f, "{tpid:?} is no TPID: 0x8100, 0x88a8, 0x9100, 0x9200 and 0x9300 are")
            }
            EncapsulationError::Label(label) => write!(f, "MPLS label {label} exceeds 1048575"),
            EncapsulationError::Order => {
                f.write_str("tags come first, then either PPPoE or MPLS labels, outermost first")
            }
            EncapsulationError::Word(place) => write!(
                f,
                "word {place} is none of q:VID, ad:VID, 0xTPID:VID, mpls:LABEL, pppoe[:SESSION[@MAC]]"
            ),
            EncapsulationError::VlanIdentifier => f.write_str("a VLAN identifier is a number from 0 to 4094"),
            EncapsulationError::Session => f.write_str("a PPPoE session id is a number from 1 to 65534"),
            EncapsulationError::MacAddress => {
                f.write_str("a MAC address is written as six hexadecimal bytes, 02:00:5e:00:00:01")
            }
        }
    }
}

fn vlan_identifier(text: &str) -> Result<u16, EncapsulationError> {
    number(text, 4094).map(|vid| vid as u16).ok_or(EncapsulationError::VlanIdentifier)
}

/// Decimal, or hexadecimal behind 0x.
fn number(text: &str, limit: u32) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = digits.bytes().all(|digit| digit.is_ascii_alphanumeric());
    u32::from_str_radix(digits, radix).ok().filter(|value| plain && *value <= limit)
}

impl FromStr for Encapsulation {
    type Err = EncapsulationError;

    fn from_str(text: &str) -> Result<Encapsulation, EncapsulationError> {
        let mut out = Encapsulation::NONE;
        if text == "none" {
            return Ok(out);
        }
        for (place, word) in text.split(',').enumerate() {
            let (name, value) = match word.split_once(':') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            let unknown = EncapsulationError::Word(place + 1);
            out = match (name, value) {
                ("pppoe", value) => out.with_pppoe(pppoe_word(value)?)?,
                ("mpls", Some(value)) => out.with_label(number(value, u32::MAX).ok_or(unknown)?)?,
                (name, Some(value)) => {
                    let tpid = match name {
                        "q" => EtherType::VLAN,
                        "ad" => EtherType::SERVICE_VLAN,
                        _ if name.starts_with("0x") => EtherType(number(name, 0xffff).ok_or(unknown)? as u16),
                        _ => return Err(unknown),
                    };
                    out.with_tag(Tag { tpid, tci: Tci::new(0, false, vlan_identifier(value)?) })?
                }
                _ => return Err(unknown),
            };
        }
        Ok(out)
    }
}

fn pppoe_word(value: Option<&str>) -> Result<Pppoe, EncapsulationError> {
    let Some(value) = value else { return Ok(Pppoe { session: None, peer: None }) };
    let (session, peer) = match value.split_once('@') {
        Some((session, peer)) => (session, Some(peer.parse().map_err(|_| EncapsulationError::MacAddress)?)),
        None => (value, None),
    };
    let session = number(session, 65534).filter(|id| *id > 0).ok_or(EncapsulationError::Session)?;
    Ok(Pppoe { session: Some(session as u16), peer })
}

impl fmt::Display for Encapsulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for tag in self.tags() {
            f.write_str(separator)?;
            match tag.tpid {
                EtherType::VLAN => write!(f, "q:{}", tag.tci.vid())?,
                EtherType::SERVICE_VLAN => write!(f, "ad:{}", tag.tci.vid())?,
                tpid => write!(f, "{:#06x}:{}", tpid.0, tag.tci.vid())?,
            }
            separator = ",";
        }
        for label in self.labels() {
            write!(f, "{separator}mpls:{label}")?;
            separator = ",";
        }
        match self.pppoe {
            Some(Pppoe { session, peer }) => {
                write!(f, "{separator}pppoe")?;
                // The notation has no place for a peer without a session.
                if let Some(session) = session {
                    write!(f, ":{session}")?;
                    if let Some(peer) = peer {
                        write!(f, "@{peer}")?;
                    }
                }
                Ok(())
            }
            None if separator.is_empty() => f.write_str("none"),
            None => Ok(()),
        }
    }
}

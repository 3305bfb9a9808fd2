//! Ethernet frames in VLAN tags (IEEE 802.1Q, 802.1ad), and the PPPoE header (RFC 2516 section 4).

use std::fmt;

pub type Mac = [u8; 6];

pub const BROADCAST: Mac = [0xff; 6];
/// EtherTypes of both stages.
pub const DISCOVERY: u16 = 0x8863;
pub const SESSION: u16 = 0x8864;

const TPIDS: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];
/// The shortest frame without FCS.
const SHORTEST: usize = 60;

/// TPID and VID of a tag.
pub type Tag = (u16, u16);

/// A station and the tags that it is in, outermost first.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Place {
    pub mac: Mac,
    pub tags: Vec<Tag>,
}

impl Place {
    /// As `rxlane` writes tags.
    pub fn shown_tags(&self) -> String {
        let shown = self.tags.iter().map(|(tpid, vid)| match tpid {
            0x8100 => format!("q:{vid}"),
            0x88a8 => format!("ad:{vid}"),
            _ => format!("{tpid:#06x}:{vid}"),
        });
        let all: Vec<String> = shown.collect();
        if all.is_empty() { "none".to_owned() } else { all.join(",") }
    }
}

pub fn shown_mac(mac: &Mac) -> String {
    mac.map(|octet| format!("{octet:02x}")).join(":")
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", shown_mac(&self.mac), self.shown_tags())
    }
}

/// A frame of PPPoE: what the Ethernet header, the tags and the PPPoE header say.
#[derive(Debug)]
pub struct Frame<'f> {
    pub destination: Mac,
    pub source: Mac,
    pub tags: Vec<Tag>,
    /// [`DISCOVERY`] or [`SESSION`].
    pub stage: u16,
    pub code: u8,
    pub session: u16,
    /// Cut to the length that the header says.
    pub payload: &'f [u8],
}

fn word(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(octets.get(at..at + 2)?.try_into().ok()?))
}

impl<'f> Frame<'f> {
    /// `None`: it is none of PPPoE. One that is, and breaks a rule, is an error.
    pub fn read(octets: &'f [u8]) -> Option<Result<Frame<'f>, String>> {
        let destination = octets.get(..6)?.try_into().ok()?;
        let source = octets.get(6..12)?.try_into().ok()?;
        let (mut at, mut tags) = (12, Vec::new());
        let stage = loop {
            match word(octets, at)? {
                stage @ (DISCOVERY | SESSION) => break stage,
                tpid if TPIDS.contains(&tpid) => {
                    tags.push((tpid, word(octets, at + 2)? & 0x0fff));
                    at += 4;
                }
                _ => return None,
            }
        };
        let read = || {
            let header = octets.get(at + 2..at + 8).ok_or("it ends in the PPPoE header")?;
            if header[0] != 0x11 {
                return Err("version and type are not 1");
            }
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let payload =
                octets.get(at + 8..at + 8 + length).ok_or("the PPPoE length is more than there is")?;
            let (code, session) = (header[1], u16::from_be_bytes([header[2], header[3]]));
            Ok(Frame { destination, source, tags, stage, code, session, payload })
        };
        Some(read().map_err(|what| format!("{what}: {octets:02x?}")))
    }
}

/// Ethernet header with tags of a priority, and behind it what is given.
pub fn ethernet(to: &Mac, from: &Mac, tags: &[Tag], priority: u8, ethertype: u16, rest: &[u8]) -> Vec<u8> {
    let mut frame = [&to[..], &from[..]].concat();
    for (tpid, vid) in tags {
        frame.extend(tpid.to_be_bytes());
        frame.extend((u16::from(priority) << 13 | vid).to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame.extend(rest);
    // Padding is no part of anything, whatever is in it.
    while frame.len() < SHORTEST {
        frame.push(0xa5);
    }
    frame
}

/// A PPPoE header and what it is of.
pub fn pppoe(code: u8, session: u16, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("no longer than a frame");
    let mut octets = vec![0x11, code];
    octets.extend(session.to_be_bytes());
    octets.extend(length.to_be_bytes());
    octets.extend(payload);
    octets
}

//! Frames written down header by header. Lengths and the fields that announce what follows are filled in; what a
//! fixture needs wrong it sets afterwards. The tests and the example `steering_cost` use it.
#![allow(dead_code)]

use std::net::{Ipv4Addr, Ipv6Addr};

pub const SOURCE4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const DESTINATION4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub const SOURCE6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub const DESTINATION6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;

/// What announces the next header.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Announced {
    Ethertype,
    PppProtocol,
    Nothing,
}

/// Where headers start that fixtures change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Frame,
    Pppoe,
    Ip,
    Transport,
}

#[derive(Clone)]
pub struct Packet {
    bytes: Vec<u8>,
    announced: Announced,
    places: Vec<(Place, usize)>,
    changes: Vec<(Place, usize, Vec<u8>)>,
    /// Bytes behind the last header's packet that its lengths do not count.
    trailer: usize,
}

/// Its frame.
impl From<Packet> for Vec<u8> {
    fn from(packet: Packet) -> Vec<u8> {
        packet.frame()
    }
}

/// A MAC header.
pub fn eth() -> Packet {
    let bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let places = vec![(Place::Frame, 0)];
    Packet { bytes, announced: Announced::Ethertype, places, changes: Vec::new(), trailer: 0 }
}

impl Packet {
    fn push(mut self, bytes: &[u8]) -> Packet {
        self.bytes.extend_from_slice(bytes);
        self
    }

    fn starts(mut self, place: Place) -> Packet {
        self.places.push((place, self.bytes.len()));
        self
    }

    fn announce(self, ethertype: u16, ppp: u16) -> Packet {
        match self.announced {
            Announced::Ethertype => self.push(&ethertype.to_be_bytes()),
            Announced::PppProtocol => self.push(&ppp.to_be_bytes()),
            Announced::Nothing => self,
        }
    }

    pub fn tag(self, tpid: u16, tci: u16) -> Packet {
        self.push(&tpid.to_be_bytes()).push(&tci.to_be_bytes())
    }

    /// Any payload under an EtherType.
    pub fn ethertype(mut self, ethertype: u16) -> Packet {
        self = self.push(&ethertype.to_be_bytes());
        self.announced = Announced::Nothing;
        self
    }

    pub fn pppoe(self) -> Packet {
        let mut packet = self.push(&[0x88, 0x64]).starts(Place::Pppoe).push(&[0x11, 0, 0x12, 0x34, 0, 0]);
        packet.announced = Announced::PppProtocol;
        packet
    }

    pub fn ppp(mut self, protocol: u16) -> Packet {
        self = self.push(&protocol.to_be_bytes());
        self.announced = Announced::Nothing;
        self
    }

    pub fn mpls(self, label: u32, bottom: bool) -> Packet {
        let entry = label << 12 | u32::from(bottom) << 8 | 64;
        let mut packet = self.announce(0x8847, 0x0281).push(&entry.to_be_bytes());
        packet.announced = Announced::Nothing;
        packet
    }

    pub fn ipv4(self, protocol: u8) -> Packet {
        let header = [0x45, 0, 0, 0, 0, 7, 0, 0, 64, protocol, 0, 0];
        let packet = self.announce(0x0800, 0x0021).starts(Place::Ip).push(&header);
        packet.push(&SOURCE4.octets()).push(&DESTINATION4.octets()).starts(Place::Transport)
    }

    /// IPv4 with as many words of options.
    pub fn ipv4_options(self, protocol: u8, words: u8) -> Packet {
        let packet = self.ipv4(protocol).set(Place::Ip, 0, &[0x45 + words]);
        packet.push(&vec![1; usize::from(words) * 4]).starts(Place::Transport)
    }

    pub fn ipv6(self, next: u8) -> Packet {
        let header = [0x60, 0, 0, 0, 0, 0, next, 64];
        let packet = self.announce(0x86dd, 0x0057).starts(Place::Ip).push(&header);
        packet.push(&SOURCE6.octets()).push(&DESTINATION6.octets()).starts(Place::Transport)
    }

    /// An extension header of `units` times eight bytes, filled with padding options.
    pub fn extension(self, next: u8, units: usize) -> Packet {
        let filler = vec![0; units * 8 - 2];
        self.push(&[next, (units - 1) as u8]).push(&filler).starts(Place::Transport)
    }

    /// A fragment header (RFC 8200 section 4.5); the offset in units of eight bytes.
    pub fn fragment(self, next: u8, offset: u16, more: bool) -> Packet {
        let field = (offset << 3 | u16::from(more)).to_be_bytes();
        self.push(&[next, 0, field[0], field[1], 0, 0, 0, 9]).starts(Place::Transport)
    }

    /// An authentication header (RFC 4302) of `words` words.
    pub fn authentication(self, next: u8, words: usize) -> Packet {
        let rest = vec![0xaa; words * 4 - 2];
        self.push(&[next, (words - 2) as u8]).push(&rest).starts(Place::Transport)
    }

    /// A TCP header.
    pub fn tcp(self) -> Packet {
        self.ports().push(&[0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0])
    }

    /// The ports, 49152 and 443.
    pub fn ports(self) -> Packet {
        self.push(&[0xc0, 0, 1, 0xbb])
    }

    pub fn payload(self, length: usize) -> Packet {
        self.push(&vec![0xa5; length])
    }

    /// Bytes that no length counts.
    pub fn trailer(mut self, length: usize) -> Packet {
        self.trailer = length;
        self
    }

    /// Changes bytes once all lengths are filled in.
    pub fn set(mut self, place: Place, at: usize, bytes: &[u8]) -> Packet {
        self.changes.push((place, at, bytes.to_vec()));
        self
    }

    /// The same in the last IP header.
    pub fn set_ip(self, at: usize, bytes: &[u8]) -> Packet {
        self.set(Place::Ip, at, bytes)
    }

    /// The same in the PPPoE header.
    pub fn set_pppoe(self, at: usize, bytes: &[u8]) -> Packet {
        self.set(Place::Pppoe, at, bytes)
    }

    /// The frame, not padded.
    pub fn bare(mut self) -> Vec<u8> {
        let end = self.bytes.len();
        for &(place, at) in &self.places {
            let fill = |bytes: &mut Vec<u8>, field: usize, length: usize| {
                bytes[field..field + 2]
                    .copy_from_slice(&u16::try_from(length).expect("16 bits").to_be_bytes());
            };
            match place {
                Place::Pppoe => fill(&mut self.bytes, at + 4, end - at - 6),
                Place::Ip if self.bytes[at] >> 4 == 4 => fill(&mut self.bytes, at + 2, end - at),
                Place::Ip => fill(&mut self.bytes, at + 4, end - at - 40),
                Place::Frame | Place::Transport => {}
            }
        }
        self.bytes.resize(end + self.trailer, 0);
        for (place, at, bytes) in self.changes {
            let start = self.places.iter().rfind(|(found, _)| *found == place).expect("such a header").1 + at;
            self.bytes[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        self.bytes
    }

    /// The frame, padded to the least that Ethernet carries, 60 bytes without FCS.
    pub fn frame(self) -> Vec<u8> {
        let mut bytes = self.bare();
        bytes.resize(bytes.len().max(60), 0);
        bytes
    }

    /// The frame, of which only the first bytes are left.
    pub fn cut(self, length: usize) -> Vec<u8> {
        let mut bytes = self.bare();
        assert!(length < bytes.len());
        bytes.truncate(length);
        bytes
    }
}

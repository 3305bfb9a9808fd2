//! Connections of every kind that the routers know.

use super::router::{Kind, Side};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// Connections of each kind.
const EACH: u16 = 6;
/// Where the router translates to a client, for each port of the LAN one more.
pub const FORWARDED_PORT: u16 = 7777;
/// Where the client listens to what is translated.
const LISTENS: u16 = 8080;

/// What the router does with addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nat {
    None,
    /// The client's.
    Source,
    /// The client's, which the server uses to begin.
    Destination,
    /// The client's, and the server's.
    Both,
}

impl Nat {
    pub const ALL: [Nat; 4] = [Nat::None, Nat::Source, Nat::Destination, Nat::Both];

    pub const fn name(self) -> &'static str {
        match self {
            Nat::None => "none",
            Nat::Source => "masquerade",
            Nat::Destination => "DNAT",
            Nat::Both => "both",
        }
    }
}

/// A connection, as both of its ends see it.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub nat: Nat,
    pub protocol: u8,
    /// Behind which port of the LAN the client is.
    pub place: u8,
    /// Client and server as they are in frames on the LAN.
    pub inside: (SocketAddr, SocketAddr),
    /// The same in frames on the WAN.
    pub outside: (SocketAddr, SocketAddr),
}

impl Flow {
    /// Source and destination of packets that arrive at a side of the router.
    pub fn arriving(&self, at: Side) -> (SocketAddr, SocketAddr) {
        match at {
            Side::Lan(_) => self.inside,
            Side::Wan => (self.outside.1, self.outside.0),
        }
    }

    /// Those of the same packets when they leave.
    pub fn leaving(&self, at: Side) -> (SocketAddr, SocketAddr) {
        match at {
            Side::Lan(_) => self.outside,
            Side::Wan => (self.inside.1, self.inside.0),
        }
    }

    /// Whether the server has begun it.
    pub fn is_inwards(&self) -> bool {
        self.nat == Nat::Destination
    }

    pub fn is_ipv6(&self) -> bool {
        self.inside.0.is_ipv6()
    }
}

fn v4(a: u8, b: u8, c: u8) -> IpAddr {
    Ipv4Addr::new(10, a, b, c).into()
}

fn client_v6(place: u8) -> IpAddr {
    Ipv6Addr::new(0xfd01, 0, 0, u16::from(place), 0, 0, 0, 2).into()
}

fn server_v6() -> IpAddr {
    Ipv6Addr::new(0xfd03, 0, 0, 0, 0, 0, 0, 2).into()
}

/// Client and server of the frames that end a batch.
pub fn markers(place: u8) -> (SocketAddr, SocketAddr) {
    ((client_v6(place), 999).into(), (server_v6(), 999).into())
}

/// A connection of a kind, the `number`th.
fn flow(nat: Nat, protocol: u8, place: u8, number: u16) -> Flow {
    let port = 20_000 + 97 * number;
    let server: SocketAddr = (v4(3, 0, 2), 443).into();
    let (inside, outside) = match nat {
        Nat::None => {
            let client = (v4(1, place, 2), port).into();
            ((client, server), (client, server))
        }
        Nat::Source => {
            let public = if place == 0 { v4(2, 0, 1) } else { v4(2, 0, 8) };
            (((v4(1, place, 3), port).into(), server), ((public, port).into(), server))
        }
        Nat::Destination => {
            let server = (v4(3, 0, 2), port).into();
            let public = (v4(2, 0, 1), FORWARDED_PORT + u16::from(place)).into();
            (((v4(1, place, 5), LISTENS).into(), server), (public, server))
        }
        Nat::Both => {
            let named = (v4(9, 0, 1), 443).into();
            let public = (v4(2, 0, 9 + place), port).into();
            (((v4(1, place, 4), port).into(), named), (public, (v4(3, 0, 3), 443).into()))
        }
    };
    Flow { nat, protocol, place, inside, outside }
}

/// All kinds of connections, and one for markers behind each port.
pub fn every_kind(kind: Kind) -> Vec<Flow> {
    let mut flows = Vec::new();
    for place in 0..kind.lan_ports() {
        for protocol in [TCP, UDP] {
            for number in 0..EACH {
                flows.extend(Nat::ALL.map(|nat| flow(nat, protocol, place, number)));
                let pair = ((client_v6(place), 30_000 + number).into(), (server_v6(), 443).into());
                flows.push(Flow { nat: Nat::None, protocol, place, inside: pair, outside: pair });
            }
        }
        let pair = markers(place);
        flows.push(Flow { nat: Nat::None, protocol: UDP, place, inside: pair, outside: pair });
    }
    flows
}

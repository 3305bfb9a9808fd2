//! Connections as conntrack has them, as far as the fast path is concerned.

use crate::obstacle::Obstacle;
use kernel::netlink::netfilter::conntrack::{Connection, Direction, Key};
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};

/// IANA "Assigned Internet Protocol Numbers".
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
/// `TCP_CONNTRACK_ESTABLISHED`.
const ESTABLISHED: u8 = 3;

/// By what a connection is known: the direction of its first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tuple {
    /// IP protocol number.
    pub protocol: u8,
    /// Where its packets come from.
    pub source: SocketAddr,
    /// Where they go to.
    pub destination: SocketAddr,
}

/// A connection that is established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// The direction of its first packet, as it arrives.
    pub original: Tuple,
    /// The other direction, as it arrives: before addresses are translated back.
    pub reply: Tuple,
    /// The mark of the connection; 0: none.
    pub mark: u32,
}

/// A connection as a message of conntrack reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is established, and can be installed as far as it is concerned itself.
    Established(Established),
    /// It is not, or not any more; or it cannot be installed.
    Not(Tuple, Option<Obstacle>),
    /// The message does not say the state of TCP, since something else has changed.
    Unsaid(Tuple),
}

impl Found {
    /// `None`: it is of another protocol than TCP and UDP, or the message lacks attributes.
    pub fn of(connection: &Connection<'_>) -> Option<Found> {
        let protocol = connection.protocol().filter(|protocol| [TCP, UDP].contains(protocol))?;
        let original = tuple(protocol, connection.original()?)?;
        let reply = tuple(protocol, connection.reply()?)?;
        let is_established = match (protocol, connection.tcp_state()) {
            (TCP, None) if !connection.is_dying() => return Some(Found::Unsaid(original)),
            (TCP, state) => state == Some(ESTABLISHED),
            _ => connection.is_replied(),
        };
        if !is_established || connection.is_dying() {
            return Some(Found::Not(original, None));
        }
        let obstacle = if connection.has_helper() {
            Some(Obstacle::Helper)
        } else if connection.is_offloaded() || connection.zone() != 0 {
            Some(Obstacle::Elsewhere)
        } else {
            obstacle_of(&original, &reply)
        };
        let established = Established { original, reply, mark: connection.mark() };
        Some(
            obstacle.map_or(Found::Established(established), |obstacle| Found::Not(original, Some(obstacle))),
        )
    }

    /// By what the connection is known.
    pub fn tuple(&self) -> &Tuple {
        match self {
            Found::Established(established) => &established.original,
            Found::Not(tuple, _) | Found::Unsaid(tuple) => tuple,
        }
    }
}

fn obstacle_of(original: &Tuple, reply: &Tuple) -> Option<Obstacle> {
    let is_translated = original.source != reply.destination || original.destination != reply.source;
    if original.source.is_ipv6() && is_translated {
        return Some(Obstacle::TranslatedIpv6);
    }
    let is_several = |address: IpAddr| {
        address.is_multicast() || matches!(address, IpAddr::V4(address) if address.is_broadcast())
    };
    is_several(reply.source.ip()).then_some(Obstacle::Multicast)
}

fn tuple(protocol: u8, direction: Direction) -> Option<Tuple> {
    let (source, destination) = direction.ports?;
    Some(Tuple {
        protocol,
        source: SocketAddr::new(direction.source, source),
        destination: SocketAddr::new(direction.destination, destination),
    })
}

impl Tuple {
    /// As conntrack takes it.
    pub(crate) fn key(&self) -> Key {
        Key { original: self.direction(), protocol: self.protocol, zone: 0 }
    }

    fn direction(&self) -> Direction {
        Direction {
            source: self.source.ip(),
            destination: self.destination.ip(),
            ports: Some((self.source.port(), self.destination.port())),
        }
    }
}

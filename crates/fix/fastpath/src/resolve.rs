//! From a connection to what the program needs for both of its directions: the kernel is queried for routes, the
//! topology what stands in frames on that way.

use crate::connection::Established;
use crate::obstacle::Obstacle;
use crate::selectors::Selectors;
use crate::topology::{Topology, Way};
use foldhash::HashMap;
use kernel::netlink::{Found, Lookup, Routes};
use std::net::IpAddr;

/// `RTN_UNICAST` (include/uapi/linux/rtnetlink.h).
const UNICAST: u8 = 1;

/// One side of a router, as packets arrive and leave there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The interface that routes name.
    pub interface: u32,
    /// The station to which packets are sent.
    pub next: IpAddr,
    /// From that interface to the port.
    pub way: Way,
    /// The longest packet that leaves here, bytes.
    pub largest: u32,
}

/// Where the packets of a connection come from and go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Where packets of the original direction arrive, and those of the other leave.
    pub inside: Side,
    /// Where packets of the original direction leave.
    pub outside: Side,
}

/// Queries to the kernel.
pub struct Resolver<'r> {
    /// The socket for questions about routes.
    pub routes: &'r mut Routes,
    /// What stands on what.
    pub topology: &'r Topology,
    /// By what else than addresses and ports packets are routed.
    pub selectors: &'r Selectors,
}

impl Resolver<'_> {
    /// Both sides of each connection, in their order. `is_port`: whether an interface is a port of the fast path.
    pub fn resolve(
        &mut self,
        connections: &[Established],
        is_port: impl Fn(u32) -> bool + Copy,
    ) -> Vec<Result<Resolved, Obstacle>> {
        let routed = self.routed(connections, None, 0);
        let ambiguous = self.ambiguous(connections, &routed);
        let all = connections.iter().zip(routed).zip(ambiguous);
        all.map(|((connection, routed), ambiguous)| {
            let (client, server) = (connection.original.source.ip(), connection.reply.source.ip());
            // Nothing of this machine itself; a translated address may be its own.
            if self.topology.is_own(client) || self.topology.is_own(server) {
                return Err(Obstacle::Local);
            }
            // Before addresses are translated, and behind it.
            let pairs =
                [&connection.original, &connection.reply].map(|one| (one.source.ip(), one.destination.ip()));
            let protocol = connection.original.protocol;
            if pairs.iter().any(|(one, other)| self.topology.has_policy(protocol, *one, *other)) {
                return Err(Obstacle::Ipsec);
            }
            if let Some(obstacle) = ambiguous {
                return Err(obstacle);
            }
            let (to_client, to_server) = routed?;
            let forwards = |from: &Found| client.is_ipv4() || self.topology.forwards_ipv6(from.interface);
            if ![to_client, to_server].iter().all(forwards) {
                return Err(Obstacle::NoRoute);
            }
            let inside = self.side(&to_client, client, is_port)?;
            let outside = self.side(&to_server, server, is_port)?;
            Ok(Resolved { inside, outside })
        })
        .collect()
    }

    /// Of each, whether its packets may be routed otherwise than `routed` says: a mark and the TOS are the packet's, and the connection
    /// does not show them.
    fn ambiguous(&mut self, connections: &[Established], routed: &[Routed]) -> Vec<Option<Obstacle>> {
        let mut found = vec![None; connections.len()];
        for tos in self.selectors.tos() {
            let other = self.routed(connections, None, tos);
            let all = routed.iter().zip(&other).zip(&mut found);
            all.filter(|((one, other), _)| one != other).for_each(|(_, found)| *found = Some(Obstacle::Tos));
        }
        for mark in self.selectors.marks() {
            let other = self.routed(connections, Some(mark), 0);
            let all = connections.iter().zip(routed.iter().zip(&other)).zip(&mut found);
            for ((connection, (one, other)), found) in all.filter(|((_, (one, other)), _)| one != other) {
                // Who routes by marks saves them in connections: one that a rule knows is that of the packets.
                let is_saved = connection.mark != 0 && self.selectors.has_mark(connection.mark);
                let is_decided = self.has_address_of(connection, one, other)
                    || is_saved && !self.has_address_of(connection, other, one);
                if !is_decided {
                    *found = Some(Obstacle::Mark);
                }
            }
        }
        found
    }

    /// Whether a translated address decides between the ways that differ: masquerading gives a connection that of the interface by which
    /// its first packet left.
    fn has_address_of(&self, connection: &Established, one: &Routed, other: &Routed) -> bool {
        let Established { original, reply, .. } = connection;
        let Ok((to_client, to_server)) = one else { return false };
        let is_on = |address: IpAddr, found: &Found| self.topology.is_own_on(address, found.interface);
        let shows_server = original.source != reply.destination && is_on(reply.destination.ip(), to_server);
        let shows_client =
            original.destination != reply.source && is_on(original.destination.ip(), to_client);
        match other {
            Ok((client, server)) => {
                (client == to_client || shows_client) && (server == to_server || shows_server)
            }
            Err(_) => shows_client || shows_server,
        }
    }

    /// The routes to the client and to the server of each, as packets take them that come from the other side. `mark`: that of
    /// the packets; `None`: that of the connection.
    fn routed(&mut self, connections: &[Established], mark: Option<u32>, tos: u8) -> Vec<Routed> {
        let mark = |connection: &Established| mark.unwrap_or(connection.mark);
        // Many connections have few clients.
        let client = |one: &Established| (one.original.source.ip(), mark(one));
        let mut clients: Vec<(IpAddr, u32)> = connections.iter().map(client).collect();
        clients.sort_unstable();
        clients.dedup();
        let lookups: Vec<Lookup> = clients
            .iter()
            .map(|(address, mark)| Lookup { mark: *mark, tos, ..Lookup::to(*address) })
            .collect();
        let found: HashMap<(IpAddr, u32), Result<Found, Obstacle>> =
            clients.into_iter().zip(self.find(&lookups)).collect();
        let first: Vec<Result<Found, Obstacle>> = connections
            .iter()
            .map(|one| found.get(&client(one)).copied().unwrap_or(Err(Obstacle::NoRoute)))
            .collect();
        let lookups: Vec<Lookup> = connections
            .iter()
            .zip(&first)
            .map(|(one, found)| to_server(one, found.map_or(0, |found| found.interface), (mark(one), tos)))
            .collect();
        let servers = self.find(&lookups);
        let lookups: Vec<Lookup> = connections
            .iter()
            .zip(&servers)
            .map(|(one, found)| to_client(one, found.map_or(0, |found| found.interface), (mark(one), tos)))
            .collect();
        let clients = self.find(&lookups);
        let ways = first.into_iter().zip(clients).zip(servers);
        ways.map(|((first, to_client), to_server)| {
            let (first, to_client, to_server) = (first?, to_client?, to_server?);
            if to_client.interface != first.interface {
                return Err(Obstacle::Asymmetric);
            }
            Ok((to_client, to_server))
        })
        .collect()
    }

    fn find(&mut self, lookups: &[Lookup]) -> Vec<Result<Found, Obstacle>> {
        let usable = |found: Result<Found, _>| match found {
            Ok(found) if found.is_encapsulated => Err(Obstacle::Interface),
            Ok(found) if found.kind == UNICAST => Ok(found),
            Ok(_) | Err(_) => Err(Obstacle::NoRoute),
        };
        self.routes.find_all(lookups).into_iter().map(usable).collect()
    }

    fn side(&self, found: &Found, station: IpAddr, is_port: impl Fn(u32) -> bool) -> Result<Side, Obstacle> {
        let next = found.gateway.unwrap_or(station);
        let way = self.topology.way(found.interface, next, is_port)?;
        let largest = found.mtu.map_or(way.mtu, |mtu| mtu.min(way.mtu));
        Ok(Side { interface: found.interface, next, way, largest })
    }
}

/// The routes to the client and to the server.
type Routed = Result<(Found, Found), Obstacle>;

/// A packet of the client, as routing sees it: its destination is translated already, its source is not.
fn to_server(connection: &Established, input: u32, (mark, tos): (u32, u8)) -> Lookup {
    let Established { original, reply, .. } = connection;
    Lookup {
        destination: reply.source.ip(),
        source: Some(original.source.ip()),
        input: Some(input),
        mark,
        tos,
        protocol: Some(original.protocol),
        ports: Some((original.source.port(), reply.source.port())),
    }
}

/// A packet of the server, as routing sees it.
fn to_client(connection: &Established, input: u32, (mark, tos): (u32, u8)) -> Lookup {
    let Established { original, reply, .. } = connection;
    Lookup {
        destination: original.source.ip(),
        source: Some(reply.source.ip()),
        input: Some(input),
        mark,
        tos,
        protocol: Some(original.protocol),
        ports: Some((reply.source.port(), original.source.port())),
    }
}

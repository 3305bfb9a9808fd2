//! From a connection to what the program needs for both of its directions: the kernel is queried for routes, the
//! topology what stands in frames on that way.

use crate::connection::Established;
use crate::obstacle::Obstacle;
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
    /// The marks that rules of routing know.
    pub marks: &'r [u32],
}

impl Resolver<'_> {
    /// Both sides of each connection, in their order. `is_port`: whether an interface is a port of the fast path.
    pub fn resolve(
        &mut self,
        connections: &[Established],
        is_port: impl Fn(u32) -> bool + Copy,
    ) -> Vec<Result<Resolved, Obstacle>> {
        let routed = self.routed(connections, None);
        // Rules may know marks that a connection does not show: its packets have one of them, or none.
        let marked: Vec<Vec<Routed>> =
            self.marks.iter().map(|mark| self.routed(connections, Some(*mark))).collect();
        let all = connections.iter().zip(routed).enumerate();
        all.map(|(place, (connection, routed))| {
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
            let is_other = |marked: &Vec<Routed>| marked.get(place) != Some(&routed);
            if connection.mark == 0 && marked.iter().any(is_other) {
                return Err(Obstacle::Mark);
            }
            let (to_client, to_server) = routed?;
            let inside = self.side(&to_client, client, is_port)?;
            let outside = self.side(&to_server, server, is_port)?;
            Ok(Resolved { inside, outside })
        })
        .collect()
    }

    /// The routes to the client and to the server of each, as packets take them that come from the other side. `mark`: that of
    /// the packets; `None`: that of the connection.
    fn routed(&mut self, connections: &[Established], mark: Option<u32>) -> Vec<Routed> {
        let mark = |connection: &Established| mark.unwrap_or(connection.mark);
        // Many connections have few clients.
        let client = |one: &Established| (one.original.source.ip(), mark(one));
        let mut clients: Vec<(IpAddr, u32)> = connections.iter().map(client).collect();
        clients.sort_unstable();
        clients.dedup();
        let lookups: Vec<Lookup> =
            clients.iter().map(|(address, mark)| Lookup { mark: *mark, ..Lookup::to(*address) }).collect();
        let found: HashMap<(IpAddr, u32), Result<Found, Obstacle>> =
            clients.into_iter().zip(self.find(&lookups)).collect();
        let first: Vec<Result<Found, Obstacle>> = connections
            .iter()
            .map(|one| found.get(&client(one)).copied().unwrap_or(Err(Obstacle::NoRoute)))
            .collect();
        let lookups: Vec<Lookup> = connections
            .iter()
            .zip(&first)
            .map(|(one, found)| to_server(one, found.map_or(0, |found| found.interface), mark(one)))
            .collect();
        let servers = self.find(&lookups);
        let lookups: Vec<Lookup> = connections
            .iter()
            .zip(&servers)
            .map(|(one, found)| to_client(one, found.map_or(0, |found| found.interface), mark(one)))
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
fn to_server(connection: &Established, input: u32, mark: u32) -> Lookup {
    let Established { original, reply, .. } = connection;
    Lookup {
        destination: reply.source.ip(),
        source: Some(original.source.ip()),
        input: Some(input),
        mark,
        protocol: Some(original.protocol),
        ports: Some((original.source.port(), reply.source.port())),
    }
}

/// A packet of the server, as routing sees it.
fn to_client(connection: &Established, input: u32, mark: u32) -> Lookup {
    let Established { original, reply, .. } = connection;
    Lookup {
        destination: original.source.ip(),
        source: Some(reply.source.ip()),
        input: Some(input),
        mark,
        protocol: Some(original.protocol),
        ports: Some((reply.source.port(), original.source.port())),
    }
}

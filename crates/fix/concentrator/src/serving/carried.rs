//! Sessions that the data path carries, and what the kernel routes to their interface.

use crate::event::Uncarried;
use crate::subscribers::{Number, Registry, Session, Standing, Stray};
use kernel::netlink::{self, Netlink, Refusal, Route, link_local};
use pppoe::concentrator::accounting::Traffic;
use pppoe::concentrator::network::Network;
use pppoe::concentrator::pool::Range;
use pppoe::concentrator::{Id, Installed};
use std::collections::HashMap;
use std::io;
use std::net::Ipv4Addr;
use wire::ethernet::MacAddress;
use wire::{IpVersion, Vlans};

/// Bytes of a frame around an IP packet of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around(u64);

impl Around {
    /// Ethernet header, tags, PPPoE header, PPP protocol.
    pub(super) const fn of(vlans: Vlans) -> Around {
        Around(14 + 4 * vlans.count() as u64 + 6 + 2)
    }
}

/// IP packets and their bytes in frames of a session.
pub(super) const fn ip_traffic(
    Around(around): Around,
    received: link::Traffic,
    sent: link::Traffic,
) -> Traffic {
    Traffic {
        received_octets: received.bytes.saturating_sub(received.frames * around),
        received_packets: received.frames,
        sent_octets: sent.bytes.saturating_sub(sent.frames * around),
        sent_packets: sent.frames,
    }
}

/// A session that is carried.
#[derive(Debug)]
struct One {
    number: Number,
    prefixes: Vec<Network>,
    /// What the kernel has a route to the interface for, which no pool covers.
    routes: Vec<Network>,
    heard: u64,
    around: Around,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Carried {
    registry: Registry,
    routes: Routes,
    mss_clamp: bool,
    /// What the kernel has routes for, whoever has it.
    covered: Vec<Network>,
    sessions: HashMap<Id, One>,
}

impl Carried {
    pub(super) fn new(registry: Registry, routes: Routes, mss_clamp: bool, covered: Vec<Network>) -> Carried {
        Carried { registry, routes, mss_clamp, covered, sessions: HashMap::new() }
    }

    /// The same for another data path, whose interface has this number: nothing is carried yet. Error: of the socket for its routes.
    pub(super) fn anew(&self, registry: Registry, interface: u32) -> io::Result<Carried> {
        let routes = Routes::new(interface, None)?;
        Ok(Carried::new(registry, routes, self.mss_clamp, self.covered.clone()))
    }

    /// Adds all routes once more, since the interface has lost them; what could not be done.
    pub(crate) fn route_again(&mut self) -> Vec<Uncarried> {
        let Carried { routes, covered, sessions, .. } = self;
        let all = covered.iter().chain(sessions.values().flat_map(|one| &one.routes));
        all.filter_map(|network| routes.uncarried(network)).collect()
    }

    pub(crate) fn set_local(&self, local: MacAddress) {
        self.registry.set_local(local);
    }

    /// Carries a session, or changes what is carried of it; what could not be done.
    pub(super) fn install(&mut self, installed: &Installed) -> Vec<Uncarried> {
        let session = Session {
            vlans: installed.identity.place.vlans,
            peer: installed.identity.station,
            id: installed.identity.number,
            mtu: installed.mtu,
            mss_clamp: self.mss_clamp,
            identifier: installed.ipv6.map_or(0, |(_, host)| host),
            rates: installed.rates,
        };
        let mut lacking = Vec::new();
        let number = match self.sessions.get(&installed.identity.id) {
            Some(one) => {
                lacking.extend(self.registry.change(one.number, &session).err().map(Uncarried::Change));
                one.number
            }
            None => match self.registry.insert(&session) {
                Ok(number) => number,
                Err(why) => return vec![Uncarried::Session { station: installed.identity.station, why }],
            },
        };
        let prefixes = prefixes(installed);
        let before = self.sessions.remove(&installed.identity.id);
        let (had, had_routes) =
            before.as_ref().map_or((&[][..], &[][..]), |one| (&one.prefixes, &one.routes));
        let mut kept = Vec::new();
        for prefix in had.iter().filter(|prefix| !prefixes.contains(prefix)) {
            let _ = self.registry.remove_prefix(number, *prefix);
        }
        for prefix in prefixes {
            let added = if had.contains(&prefix) { Ok(()) } else { self.registry.add_prefix(number, prefix) };
            match added {
                Ok(()) => kept.push(prefix),
                // Interface identifiers are each link's own, and two hosts may have the same one.
                Err(_) if prefix.is_link_local() => {}
                Err(why) => {
                    lacking.push(Uncarried::Prefix { prefix, station: installed.identity.station, why })
                }
            }
        }
        // What is another session's already stays its own, with its route.
        let routes = self.needed_routes(installed).into_iter().filter(|network| kept.contains(network));
        let routes: Vec<Network> = routes.collect();
        for network in had_routes.iter().filter(|network| !routes.contains(network)) {
            self.routes.remove(network);
        }
        let fresh = routes.iter().filter(|network| !had_routes.contains(network));
        lacking.extend(fresh.filter_map(|network| self.routes.uncarried(network)));
        let around = Around::of(installed.identity.place.vlans);
        let heard = before.as_ref().map_or(0, |one| one.heard);
        let one = One { number, prefixes: kept, routes, heard, around };
        self.sessions.insert(installed.identity.id, one);
        lacking
    }

    /// What the kernel needs routes for: networks behind the host, and fixed addresses that are of no pool.
    fn needed_routes(&self, installed: &Installed) -> Vec<Network> {
        let host = installed.ipv4.map(|(_, host)| Network::host(host.into()));
        let fixed = host.into_iter().chain(installed.prefixes.iter());
        let is_covered = |network: &Network| self.covered.iter().any(|pool| pool.contains(network.address()));
        let fixed = fixed.filter(|network| !is_covered(network));
        // The route of a whole pool is nobody's to take along.
        let behind = installed.routes.iter().copied().filter(|network| !self.covered.contains(network));
        fixed.chain(behind).collect()
    }

    /// Carries a session no more.
    pub(super) fn remove(&mut self, id: Id) {
        let Some(one) = self.sessions.remove(&id) else { return };
        one.routes.iter().for_each(|network| self.routes.remove(network));
        // With all its prefixes.
        let _ = self.registry.remove(one.number);
    }

    /// Gives up what the table has for more sessions than there are.
    pub(super) fn shrink(&mut self) {
        self.sessions.shrink_to_fit();
    }

    /// Sessions that have sent data since the last call.
    pub(super) fn heard(&mut self) -> Vec<Id> {
        let registry = &self.registry;
        let has_sent = |(id, one): (&Id, &mut One)| {
            let heard = registry.heard(one.number).unwrap_or_default();
            (std::mem::replace(&mut one.heard, heard) != heard).then_some(*id)
        };
        self.sessions.iter_mut().filter_map(has_sent).collect()
    }

    /// How packets stand that programs in XDP forward; `None`: there are no programs.
    pub(super) fn forwarded(&self) -> Option<Standing> {
        self.registry.forwarded()
    }

    /// Who sent data of sessions that there are not.
    pub(crate) fn strays(&self) -> Vec<Stray> {
        self.registry.strays().collect()
    }

    /// Packets from a session and to it that went no further.
    pub(super) fn dropped(&self, id: Id) -> [u32; 2] {
        let usage = self.sessions.get(&id).and_then(|one| self.registry.usage(one.number).ok());
        usage.map(|usage| [usage.received_dropped, usage.sent_dropped]).unwrap_or_default()
    }

    /// What a session transferred: IP packets and their bytes.
    pub(super) fn traffic(&self, id: Id) -> Traffic {
        let usage =
            self.sessions.get(&id).and_then(|one| Some((one.around, self.registry.usage(one.number).ok()?)));
        usage.map(|(around, usage)| ip_traffic(around, usage.received, usage.sent)).unwrap_or_default()
    }
}

/// All addresses of a session.
fn prefixes(installed: &Installed) -> Vec<Network> {
    let four = installed.ipv4.map(|(_, host)| Network::host(host.into()));
    let six = installed.ipv6.map(|(_, host)| Network::host(link_local(host).into()));
    let networks = installed.prefixes.iter().chain(installed.routes.iter().copied());
    four.into_iter().chain(six).chain(networks).collect()
}

/// Routes to an interface, which go with it.
#[derive(Debug)]
pub(super) struct Routes {
    interface: u32,
    /// That of the process whose place this one takes: it has the same routes for as long as it is there.
    former: Option<u32>,
    /// Kept open: to open and to close one takes as long as to add a route.
    netlink: Netlink,
}

/// The most addresses of a range's remainder that are looked at.
const MOST_REMAINDER: usize = 256;

impl Routes {
    /// To the interface of this number, in the network namespace of the calling thread. Error: of the socket.
    pub(super) fn new(interface: u32, former: Option<u32>) -> io::Result<Routes> {
        Ok(Routes { interface, former, netlink: Netlink::route()? })
    }

    /// Routes the addresses of a range to it, and returns what was routed: the network around them where all that it has besides
    /// them leads nowhere else, as the own address and a few at its edges; otherwise the fewest networks without others.
    ///
    /// # Errors
    ///
    /// The network that was refused, and as [`Routes::add`].
    pub(crate) fn add_range(
        &mut self,
        range: &Range,
        own: Option<Ipv4Addr>,
    ) -> Result<Vec<Network>, (Network, Refusal)> {
        let all: Vec<Ipv4Addr> = range.remainder().take(MOST_REMAINDER + 1).collect();
        let is_free = |address: &Ipv4Addr| Some(*address) == own || self.is_nobodys(*address);
        let is_free = all.len() <= MOST_REMAINDER && all.iter().all(is_free);
        if let Some(network) = range.enclosing().filter(|_| is_free)
            && self.add(&network).is_ok()
        {
            return Ok(vec![network]);
        }
        let networks = range.networks();
        networks.iter().try_for_each(|network| self.add(network).map_err(|refusal| (*network, refusal)))?;
        Ok(networks)
    }

    /// Whether nothing but a default route leads to an address, or a route to this interface or its predecessor.
    fn is_nobodys(&self, address: Ipv4Addr) -> bool {
        match netlink::route_of(address.into()) {
            Ok((bits, interface)) => {
                bits == 0 || interface == self.interface || Some(interface) == self.former
            }
            Err(refusal) => refusal.error.raw_os_error() == Some(libc::ENETUNREACH),
        }
    }

    /// Routes a network to it, where it is not yet; along with the former interface, which keeps what it has.
    ///
    /// # Errors
    ///
    /// `EEXIST`: there is such a route to yet another interface. Others of rtnetlink.
    pub(super) fn add(&mut self, network: &Network) -> Result<(), Refusal> {
        let route = self.route(network);
        match self.netlink.add_route(&route) {
            Err(refusal) if refusal.error.raw_os_error() == Some(libc::EEXIST) => {
                match self.interface_of(network)? {
                    Some(interface) if interface == self.interface => Ok(()),
                    Some(interface) if Some(interface) == self.former => {
                        self.netlink.append_route(&route).or_else(|refusal| {
                            // It stands behind the former one already.
                            let is_there = refusal.error.raw_os_error() == Some(libc::EEXIST);
                            if is_there { Ok(()) } else { Err(refusal) }
                        })
                    }
                    _ => Err(refusal),
                }
            }
            added => added,
        }
    }

    /// Takes a route away. Whoever did so before has done what is requested.
    pub(super) fn remove(&mut self, network: &Network) {
        let route = self.route(network);
        let _ = self.netlink.remove_route(&route);
    }

    /// Adds a route; what is lacking otherwise.
    fn uncarried(&mut self, network: &Network) -> Option<Uncarried> {
        let why = self.add(network).err()?;
        Some(Uncarried::Route { network: *network, why })
    }

    /// The interface that this very network is routed to.
    fn interface_of(&self, network: &Network) -> Result<Option<u32>, Refusal> {
        let (bits, interface) = netlink::route_of(network.address())?;
        // A kernel that does not report the route reports the address.
        let whole = if network.address().is_ipv4() { 32 } else { 128 };
        Ok(Some(interface).filter(|_| bits == network.length() || bits == whole))
    }

    fn route(&self, network: &Network) -> Route {
        let version = if network.address().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let destination = Some((network.address(), network.length()));
        Route { version, destination, interface: self.interface, metric: 0 }
    }
}

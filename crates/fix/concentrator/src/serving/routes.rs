//! What the kernel sends to the interface of the subscribers.

use kernel::netlink::{self, Refusal, Route};
use pppoe::concentrator::network::Network;
use pppoe::concentrator::pool::Range;
use std::net::Ipv4Addr;
use wire::IpVersion;

/// Routes to an interface, which go with it.
#[derive(Clone, Copy, Debug)]
pub struct Routes {
    pub interface: u32,
    /// That of the process whose place this one takes: it has the same routes for as long as it is there.
    pub former: Option<u32>,
}

/// The most addresses beside a range that are looked at.
const BESIDE: usize = 256;

impl Routes {
    /// Routes the addresses of a range to it, and returns what was routed: the network around them where all that it has beside
    /// them leads nowhere else, as the own address and a few at its edges; otherwise the fewest networks without others.
    ///
    /// # Errors
    ///
    /// The network that was refused, and as [`Routes::add`].
    pub fn add_range(
        &self,
        range: &Range,
        own: Option<Ipv4Addr>,
    ) -> Result<Vec<Network>, (Network, Refusal)> {
        let all: Vec<Ipv4Addr> = range.beside().take(BESIDE + 1).collect();
        let is_free = |address: &Ipv4Addr| Some(*address) == own || self.is_nobodys(*address);
        let is_free = all.len() <= BESIDE && all.iter().all(is_free);
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

    /// Routes a network to it, where it is not yet; beside the former interface, which keeps what it has.
    ///
    /// # Errors
    ///
    /// `EEXIST`: there is such a route to yet another interface. Others of rtnetlink.
    pub fn add(&self, network: &Network) -> Result<(), Refusal> {
        let route = self.route(network);
        match netlink::add_route(&route) {
            Err(refusal) if refusal.error.raw_os_error() == Some(libc::EEXIST) => {
                match self.interface_of(network)? {
                    Some(interface) if interface == self.interface => Ok(()),
                    Some(interface) if Some(interface) == self.former => {
                        netlink::add_route_beside(&route).or_else(|refusal| {
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

    /// Takes a route away. Whoever did so before has done what is wanted.
    pub fn remove(&self, network: &Network) {
        let _ = netlink::remove_route(&self.route(network));
    }

    /// The interface that this very network is routed to.
    fn interface_of(&self, network: &Network) -> Result<Option<u32>, Refusal> {
        let (bits, interface) = netlink::route_of(network.address())?;
        // A kernel that does not tell of the route tells of the address.
        let whole = if network.address().is_ipv4() { 32 } else { 128 };
        Ok(Some(interface).filter(|_| bits == network.length() || bits == whole))
    }

    fn route(&self, network: &Network) -> Route {
        let version = if network.address().is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let destination = Some((network.address(), network.length()));
        Route { version, destination, interface: self.interface, metric: 0 }
    }
}

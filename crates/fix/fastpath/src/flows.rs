//! The flows that are installed, by connection, and by what may change under them.

use crate::connection::{Established, Tuple};
use crate::next_hops;
use crate::resolve::Resolved;
use foldhash::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Instant;
use xdp::forward::Key;

/// A connection with both directions in the maps of the program.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its state in conntrack.
    pub connection: Established,
    /// Under what the original direction stands in the map, and the other.
    pub keys: [Key; 2],
    /// By what next hop each of them leaves.
    pub next_hops: [next_hops::Key; 2],
    /// When its timeout was last renewed.
    pub renewed: Instant,
}

impl Installed {
    /// Whether its source is translated and its packets would leave by another interface than they do: the kernel ends a masquerade
    /// then (`nf_nat_oif_changed()` of net/netfilter/nf_nat_core.c), and nobody reports which translation is one.
    pub fn is_moved(&self, to: &Resolved) -> bool {
        let Established { original, reply, .. } = &self.connection;
        original.source != reply.destination && self.next_hops[0].interface != to.outside.interface
    }
}

/// All of them. The indices have numbers of flows, which are a fraction of a tuple's size.
#[derive(Debug, Default)]
pub struct Flows {
    installed: Vec<Option<Installed>>,
    free: Vec<u32>,
    numbers: HashMap<Tuple, u32>,
    /// By the addresses whose routes are queried.
    by_address: BTreeSet<(IpAddr, u32)>,
    by_next_hop: HashMap<next_hops::Key, HashSet<u32>>,
}

impl Flows {
    /// Connections.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// The flow of a connection.
    pub fn get(&self, tuple: &Tuple) -> Option<&Installed> {
        self.at(*self.numbers.get(tuple)?)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, tuple: &Tuple) -> Option<&mut Installed> {
        let number = *self.numbers.get(tuple)?;
        self.installed.get_mut(number as usize)?.as_mut()
    }

    fn at(&self, number: u32) -> Option<&Installed> {
        self.installed.get(number as usize)?.as_ref()
    }

    /// Adds one that is not there.
    pub fn insert(&mut self, installed: Installed) {
        let connection = installed.connection;
        let number = self.free.pop().unwrap_or_else(|| {
            self.installed.push(None);
            (self.installed.len() - 1) as u32
        });
        for address in addresses(&connection) {
            self.by_address.insert((address, number));
        }
        for key in installed.next_hops {
            self.by_next_hop.entry(key).or_default().insert(number);
        }
        self.numbers.insert(connection.original, number);
        if let Some(place) = self.installed.get_mut(number as usize) {
            *place = Some(installed);
        }
    }

    /// Takes one away.
    pub fn remove(&mut self, tuple: &Tuple) -> Option<Installed> {
        let number = self.numbers.remove(tuple)?;
        let installed = self.installed.get_mut(number as usize)?.take()?;
        self.free.push(number);
        for address in addresses(&installed.connection) {
            self.by_address.remove(&(address, number));
        }
        for key in &installed.next_hops {
            if let Some(numbers) = self.by_next_hop.get_mut(key) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_next_hop.remove(key);
                }
            }
        }
        Some(installed)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Installed> {
        self.installed.iter().flatten()
    }

    /// Those of a range of numbers, which go up to [`Flows::numbers`].
    pub fn slice(&self, numbers: std::ops::Range<usize>) -> impl Iterator<Item = &Installed> {
        self.installed.get(numbers).unwrap_or_default().iter().flatten()
    }

    /// One more than the highest number.
    pub fn numbers(&self) -> usize {
        self.installed.len()
    }

    /// Those of which packets go to an address of a network: its address and the bits of it that count.
    pub fn within(&self, (network, bits): (IpAddr, u8)) -> Vec<Tuple> {
        let (first, last) = ends(network, bits);
        let numbers = self.by_address.range((first, 0)..=(last, u32::MAX)).map(|(_, number)| *number);
        numbers.filter_map(|number| Some(self.at(number)?.connection.original)).collect()
    }

    /// Those that leave by a next hop, in either direction.
    pub fn of_next_hop(&self, key: &next_hops::Key) -> Vec<Tuple> {
        let numbers = self.by_next_hop.get(key).into_iter().flatten();
        numbers.filter_map(|number| Some(self.at(*number)?.connection.original)).collect()
    }
}

/// The addresses to which packets of a connection are routed, at either side.
fn addresses(connection: &Established) -> [IpAddr; 2] {
    [connection.original.source.ip(), connection.reply.source.ip()]
}

/// The first and the last address of a network.
fn ends(network: IpAddr, bits: u8) -> (IpAddr, IpAddr) {
    match network {
        IpAddr::V4(network) => {
            let rest = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
            let number = u32::from(network);
            (IpAddr::V4((number & !rest).into()), IpAddr::V4((number | rest).into()))
        }
        IpAddr::V6(network) => {
            let rest = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
            let number = u128::from(network);
            (IpAddr::V6((number & !rest).into()), IpAddr::V6((number | rest).into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_ends_where_its_bits_end() {
        for (network, bits, first, last) in [
            ("192.0.2.77", 24, "192.0.2.0", "192.0.2.255"),
            ("192.0.2.77", 32, "192.0.2.77", "192.0.2.77"),
            ("192.0.2.77", 0, "0.0.0.0", "255.255.255.255"),
            ("2001:db8::1", 32, "2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2001:db8::1", 128, "2001:db8::1", "2001:db8::1"),
        ] {
            let address = |text: &str| text.parse::<IpAddr>().expect("an address");
            assert_eq!(ends(address(network), bits), (address(first), address(last)), "{network}/{bits}");
        }
    }
}

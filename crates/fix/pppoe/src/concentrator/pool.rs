//! What subscribers are given: IPv4 addresses out of ranges, and IPv6 prefixes out of a larger one.
//!
//! A user gets the address they had before, where it is free. Which address is a network's or its broadcast is not guessed:
//! a range means every address in it.

mod places;

use super::network::{Network, Reserved};
use places::Places;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Addresses from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    first: Ipv4Addr,
    last: Ipv4Addr,
}

impl Range {
    const fn len(&self) -> u64 {
        self.last.to_bits() as u64 - self.first.to_bits() as u64 + 1
    }

    pub fn contains(&self, address: Ipv4Addr) -> bool {
        (self.first..=self.last).contains(&address)
    }

    /// The smallest network that has all of these addresses.
    pub fn enclosing(&self) -> Option<Network> {
        let (first, last) = (self.first.to_bits(), self.last.to_bits());
        Network::of(self.first.into(), (first ^ last).leading_zeros() as u8)
    }

    /// What [`Range::enclosing`] has beside these addresses, lowest first.
    pub fn beside(&self) -> impl Iterator<Item = Ipv4Addr> {
        let (first, last) = (self.first.to_bits(), self.last.to_bits());
        let host_bits = u32::MAX.checked_shr((first ^ last).leading_zeros()).unwrap_or(0);
        let behind = (last..last | host_bits).map(|bits| bits + 1);
        (first & !host_bits..first).chain(behind).map(Ipv4Addr::from_bits)
    }

    /// The fewest networks that have all of these addresses and no others, lowest first.
    pub fn networks(&self) -> Vec<Network> {
        let (mut at, end) = (u64::from(self.first.to_bits()), u64::from(self.last.to_bits()) + 1);
        let mut networks = Vec::new();
        while at < end {
            // The largest that begins here and does not go beyond the end.
            let aligned = if at == 0 { 32 } else { at.trailing_zeros().min(32) };
            let bits = aligned.min((end - at).ilog2());
            let address = Ipv4Addr::from_bits(at as u32);
            networks.extend(Network::of(address.into(), 32 - bits as u8));
            at += 1 << bits;
        }
        networks
    }
}

impl FromStr for Range {
    type Err = PoolError;

    /// `FIRST-LAST`, or one address alone.
    fn from_str(text: &str) -> Result<Range, PoolError> {
        let unreadable = || PoolError::Unreadable(text.to_owned());
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| unreadable());
        let (first, last) = (address(first)?, address(last)?);
        if first > last {
            return Err(PoolError::Backwards { first, last });
        }
        let range = Range { first, last };
        match range.networks().iter().find_map(Network::reserved) {
            Some(reserved) => Err(PoolError::Reserved { range, reserved }),
            None => Ok(range),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// What was given is no pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    #[error("`{0}` is no range of IPv4 addresses such as 10.0.0.2-10.0.0.254")]
    Unreadable(String),
    #[error("the range {first}-{last} ends before it begins: write {last}-{first}")]
    Backwards { first: Ipv4Addr, last: Ipv4Addr },
    /// Addresses of no host among those of a range.
    #[error("the range {range} has addresses of {reserved}, which no host can have: leave these out")]
    Reserved { range: Range, reserved: Reserved },
    /// Two ranges with an address in common.
    #[error("the ranges {0} and {1} overlap: each address may stand in one of them")]
    Overlap(Range, Range),
    /// More than a table can hold.
    #[error("the pool has {0} addresses, and may have {most}: make its ranges smaller", most = places::MOST)]
    TooMany(u64),
    #[error(
        "{0} cannot be parted into links: expected an IPv6 network of at most 64 bits such as 2001:db8::/48"
    )]
    NoPrefix(Network),
    #[error("the network {network} has addresses of {reserved}, which no link of a subscriber can have")]
    ReservedPrefix { network: Network, reserved: Reserved },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "all {given} {what} of the pool {pool} are in use{kept}; a larger pool takes more subscribers",
    kept = match kept_back { 0 => String::new(), kept => format!(", {kept} more belong to subscribers with a fixed one") }
)]
pub struct Exhausted {
    what: &'static str,
    pool: String,
    given: u32,
    kept_back: u32,
}

/// Ranges of IPv4 addresses.
#[derive(Debug)]
pub struct AddressPool {
    /// In ascending order, each with the place of its first address.
    ranges: Box<[(Range, u32)]>,
    places: Places,
    kept_back: u32,
}

impl AddressPool {
    /// Of ranges in any order.
    ///
    /// # Errors
    ///
    /// Two ranges overlap, or they have more than 2^24 addresses together.
    pub fn new(ranges: &[Range]) -> Result<AddressPool, PoolError> {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if let [one, other] = pair
                && one.last >= other.first
            {
                return Err(PoolError::Overlap(*one, *other));
            }
        }
        let total = sorted.iter().map(Range::len).sum();
        let places = u32::try_from(total).ok().filter(|total| *total <= places::MOST);
        let places = places.ok_or(PoolError::TooMany(total))?;
        let mut place = 0;
        let ranges = sorted.into_iter().map(|range| {
            let first = place;
            place += range.len() as u32;
            (range, first)
        });
        Ok(AddressPool { ranges: ranges.collect(), places: Places::new(places), kept_back: 0 })
    }

    /// Takes an address for a user: their last one where it is free.
    ///
    /// # Errors
    ///
    /// All are in use or kept back.
    pub fn take(&mut self, user: &[u8]) -> Result<Ipv4Addr, Exhausted> {
        let place = self.places.take(user).ok_or_else(|| self.exhausted())?;
        self.address(place).ok_or_else(|| self.exhausted())
    }

    /// Takes the address that a user has already. Whether it was free; what is outside the pool always is.
    pub(crate) fn take_again(&mut self, user: &[u8], address: Ipv4Addr) -> bool {
        self.place(address).is_none_or(|place| self.places.take_again(user, place))
    }

    /// Sees that an address that a user has is nobody else's, now that it is not kept back any more.
    pub fn hold(&mut self, address: Ipv4Addr) {
        if let Some(place) = self.place(address) {
            self.places.take_this(place);
        }
    }

    /// Gives an address back; one that is not of the pool, or not taken, is none of its business.
    pub fn release(&mut self, address: Ipv4Addr) {
        if let Some(place) = self.place(address) {
            self.places.release(place);
        }
    }

    /// Says whether an address belongs to one subscriber or to the concentrator, so that nobody gets it by chance.
    pub(crate) fn keep_back(&mut self, address: Ipv4Addr, is_kept: bool) {
        if let Some(place) = self.place(address)
            && self.places.keep_back(place, is_kept)
        {
            self.kept_back = if is_kept { self.kept_back + 1 } else { self.kept_back - 1 };
        }
    }

    /// Addresses that are neither in use nor kept back.
    pub const fn free(&self) -> u32 {
        self.places.free()
    }

    fn place(&self, address: Ipv4Addr) -> Option<u32> {
        let behind = self.ranges.partition_point(|(range, _)| range.first <= address);
        let (range, place) = self.ranges.get(behind.checked_sub(1)?)?;
        (address <= range.last).then(|| place + (address.to_bits() - range.first.to_bits()))
    }

    fn address(&self, place: u32) -> Option<Ipv4Addr> {
        let behind = self.ranges.partition_point(|(_, first)| *first <= place);
        let (range, first) = self.ranges.get(behind.checked_sub(1)?)?;
        Some(Ipv4Addr::from_bits(range.first.to_bits() + (place - first)))
    }

    fn exhausted(&self) -> Exhausted {
        let pool: Vec<_> = self.ranges.iter().map(|(range, _)| range.to_string()).collect();
        Exhausted {
            what: "addresses",
            pool: pool.join(", "),
            given: self.places.len() - self.kept_back,
            kept_back: self.kept_back,
        }
    }
}

/// An IPv6 network parted into links of 64 bits.
///
/// Of a network with more than 2^24 links the first so many are given.
#[derive(Debug)]
pub struct PrefixPool {
    network: Network,
    first: u64,
    places: Places,
    kept_back: u32,
}

impl PrefixPool {
    /// Of a network of IPv6.
    ///
    /// # Errors
    ///
    /// It is none, smaller than one link, or has addresses that no link can have.
    pub fn new(network: Network) -> Result<PrefixPool, PoolError> {
        let first = network.ipv6().filter(|_| network.length() <= 64).ok_or(PoolError::NoPrefix(network))?;
        if let Some(reserved) = network.reserved() {
            return Err(PoolError::ReservedPrefix { network, reserved });
        }
        let links = 1u32.checked_shl(64 - u32::from(network.length())).unwrap_or(u32::MAX);
        Ok(PrefixPool { network, first: upper(first), places: Places::new(links), kept_back: 0 })
    }

    /// Takes a prefix for a user: their last one where it is free.
    ///
    /// # Errors
    ///
    /// All are in use or kept back.
    pub fn take(&mut self, user: &[u8]) -> Result<Network, Exhausted> {
        let prefix = self.places.take(user).and_then(|place| link(self.first + u64::from(place)));
        prefix.ok_or_else(|| Exhausted {
            what: "prefixes",
            pool: self.network.to_string(),
            given: self.places.len() - self.kept_back,
            kept_back: self.kept_back,
        })
    }

    /// Takes the prefix that a user has already. Whether it was free; what is outside the pool always is.
    pub(crate) fn take_again(&mut self, user: &[u8], prefix: Network) -> bool {
        self.place(prefix).is_none_or(|place| self.places.take_again(user, place))
    }

    /// Sees that a prefix that a user has is nobody else's, now that it is not kept back any more.
    pub fn hold(&mut self, prefix: Network) {
        if let Some(place) = self.place(prefix) {
            self.places.take_this(place);
        }
    }

    /// Gives a prefix back; one that is not of the pool, or not taken, is none of its business.
    pub fn release(&mut self, prefix: Network) {
        if let Some(place) = self.place(prefix) {
            self.places.release(place);
        }
    }

    /// Whether somebody has a prefix out of this pool.
    pub(crate) fn is_lent(&self, prefix: Network) -> bool {
        self.place(prefix).is_some_and(|place| self.places.is_taken(place))
    }

    /// Says whether a prefix belongs to one subscriber, so that nobody else gets it.
    pub(crate) fn keep_back(&mut self, prefix: Network, is_kept: bool) {
        if let Some(place) = self.place(prefix)
            && self.places.keep_back(place, is_kept)
        {
            self.kept_back = if is_kept { self.kept_back + 1 } else { self.kept_back - 1 };
        }
    }

    /// Prefixes that are neither in use nor kept back.
    pub const fn free(&self) -> u32 {
        self.places.free()
    }

    fn place(&self, prefix: Network) -> Option<u32> {
        let number = upper(prefix.ipv6()?).checked_sub(self.first)?;
        u32::try_from(number).ok().filter(|place| *place < self.places.len())
    }
}

fn upper(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}

fn link(upper: u64) -> Option<Network> {
    Network::of(IpAddr::V6(Ipv6Addr::from_bits(u128::from(upper) << 64)), 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn pool(ranges: &[&str]) -> Result<AddressPool, PoolError> {
        AddressPool::new(&ranges.iter().map(|range| range.parse()).collect::<Result<Vec<_>, _>>()?)
    }

    #[test]
    fn a_range_is_the_fewest_networks() {
        let networks = |range: &str| {
            let networks = range.parse::<Range>().unwrap().networks();
            networks.iter().map(Network::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(networks("10.0.0.0-10.0.0.255"), "10.0.0.0/24");
        assert_eq!(networks("192.0.2.7"), "192.0.2.7/32");
        assert_eq!(networks("10.0.0.10-10.0.0.21"), "10.0.0.10/31 10.0.0.12/30 10.0.0.16/30 10.0.0.20/31");
        assert_eq!(networks("1.0.0.0-1.255.255.255"), "1.0.0.0/8");
    }

    #[test]
    fn a_network_around_a_range_has_a_few_more() {
        for (range, network, beside) in [
            ("10.0.0.2-10.0.0.254", "10.0.0.0/24", "10.0.0.0 10.0.0.1 10.0.0.255"),
            ("10.0.0.0-10.0.0.255", "10.0.0.0/24", ""),
            ("192.0.2.7", "192.0.2.7/32", ""),
            ("10.0.0.127-10.0.0.128", "10.0.0.0/24", ""),
        ] {
            let range: Range = range.parse().unwrap();
            assert_eq!(range.enclosing().unwrap().to_string(), network);
            let all: Vec<_> = range.beside().map(|address| address.to_string()).collect();
            assert!(all.len() == 254 || all.join(" ") == beside, "{all:?}");
        }
    }

    #[test]
    fn every_address_of_every_range_is_given_once() {
        let mut pool = pool(&["10.0.1.0-10.0.1.255", "10.0.0.250-10.0.0.255", "192.0.2.7"]).unwrap();
        let given: BTreeSet<_> = (0..263u32).map(|user| pool.take(&user.to_be_bytes()).unwrap()).collect();
        assert_eq!(given.len(), 263);
        assert_eq!(given.first(), Some(&Ipv4Addr::new(10, 0, 0, 250)));
        assert_eq!(given.last(), Some(&Ipv4Addr::new(192, 0, 2, 7)));
        assert!(given.contains(&Ipv4Addr::new(10, 0, 1, 255)));
        assert_eq!(
            pool.take(b"late").unwrap_err().to_string(),
            "all 263 addresses of the pool 10.0.0.250-10.0.0.255, 10.0.1.0-10.0.1.255, 192.0.2.7-192.0.2.7 are in use; a \
             larger pool takes more subscribers"
        );
        pool.release(Ipv4Addr::new(10, 0, 1, 9));
        assert_eq!(pool.take(b"late"), Ok(Ipv4Addr::new(10, 0, 1, 9)));
    }

    #[test]
    fn kept_addresses_are_given_to_nobody_and_not_when_they_come_back() {
        let mut pool = pool(&["10.0.0.1-10.0.0.3"]).unwrap();
        pool.keep_back([10, 0, 0, 1].into(), true);
        pool.keep_back([10, 9, 9, 9].into(), true);
        let lent = pool.take(b"a").unwrap();
        assert_eq!(lent, Ipv4Addr::new(10, 0, 0, 2));
        // It becomes somebody's own while it is lent.
        pool.keep_back(lent, true);
        pool.release(lent);
        assert_eq!(pool.take(b"a"), Ok([10, 0, 0, 3].into()));
        let error = pool.take(b"b").unwrap_err().to_string();
        assert_eq!(
            error,
            "all 1 addresses of the pool 10.0.0.1-10.0.0.3 are in use, 2 more belong to subscribers with a fixed one; a \
             larger pool takes more subscribers"
        );
        pool.keep_back(lent, false);
        assert_eq!((pool.free(), pool.take(b"b")), (1, Ok(lent)));
        // What a subscriber brings along from before.
        assert!(!pool.take_again(b"c", lent) && pool.take_again(b"c", [172, 16, 0, 1].into()));
        pool.release(lent);
        assert!(pool.take_again(b"c", lent));
    }

    #[test]
    fn what_is_no_pool_says_what_would_be_one() {
        for (ranges, expected) in [
            (
                &["10.0.0.1-10.0.0"][..],
                "`10.0.0.1-10.0.0` is no range of IPv4 addresses such as 10.0.0.2-10.0.0.254",
            ),
            (
                &["10.0.0.9-10.0.0.1"],
                "the range 10.0.0.9-10.0.0.1 ends before it begins: write 10.0.0.1-10.0.0.9",
            ),
            (
                &["10.0.0.1-10.0.0.9", "10.0.0.9-10.0.0.20"],
                "the ranges 10.0.0.1-10.0.0.9 and 10.0.0.9-10.0.0.20 overlap: each address may stand in one of them",
            ),
            (
                &["0.0.0.0-10.0.0.1"],
                "the range 0.0.0.0-10.0.0.1 has addresses of 0.0.0.0/8 (this network), which no host can have: leave these out",
            ),
            (
                &["126.0.0.1-128.0.0.1"],
                "the range 126.0.0.1-128.0.0.1 has addresses of 127.0.0.0/8 (loopback), which no host can have: leave these out",
            ),
            (
                &["1.0.0.0-2.0.0.0"],
                "the pool has 16777217 addresses, and may have 16777216: make its ranges smaller",
            ),
        ] {
            assert_eq!(pool(ranges).unwrap_err().to_string(), expected);
        }
        assert!(pool(&[]).unwrap().take(b"a").is_err());
    }

    #[test]
    fn links_of_a_prefix() {
        let mut pool = PrefixPool::new("2001:db8:1::/62".parse().unwrap()).unwrap();
        pool.keep_back("2001:db8:1:1::/64".parse().unwrap(), true);
        let given: Vec<_> = (0..3u8).map(|user| pool.take(&[user]).unwrap().to_string()).collect();
        assert_eq!(given, ["2001:db8:1::/64", "2001:db8:1:2::/64", "2001:db8:1:3::/64"]);
        assert!(pool.take(&[3]).unwrap_err().to_string().contains("prefixes of the pool 2001:db8:1::/62"));
        pool.release("2001:db8:1:2::/64".parse().unwrap());
        pool.release("2001:db8:9::/64".parse().unwrap());
        assert_eq!(pool.take(&[3]).unwrap().to_string(), "2001:db8:1:2::/64");
        for text in ["2001:db8::/65", "10.0.0.0/8"] {
            assert!(matches!(PrefixPool::new(text.parse().unwrap()), Err(PoolError::NoPrefix(_))));
        }
        for text in ["::/0", "fe80::/48", "ff00::/8"] {
            let error = PrefixPool::new(text.parse().unwrap()).unwrap_err();
            assert!(matches!(error, PoolError::ReservedPrefix { .. }), "{error}");
        }
        let mut huge = PrefixPool::new("2001:db8::/32".parse().unwrap()).unwrap();
        assert_eq!(
            (huge.free(), huge.take(b"a").unwrap().to_string()),
            (1 << 24, "2001:db8::/64".to_owned())
        );
    }
}

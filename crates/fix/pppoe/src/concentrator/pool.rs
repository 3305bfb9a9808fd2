//! What subscribers are given: IPv4 addresses out of ranges, and IPv6 prefixes out of a larger one.
//!
//! A user gets the address they had before, where it is free. Which address is a network's or its broadcast is not guessed:
//! a range means every address in it.

mod places;

use super::network::{Network, Prefixes};
use crate::Invalid;
use format::Quotable;
use places::Places;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Most places of a pool.
const MOST: u32 = 1 << 24;

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

    /// What [`Range::enclosing`] has besides these addresses, lowest first.
    pub fn remainder(&self) -> impl Iterator<Item = Ipv4Addr> {
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
    type Err = Invalid;

    /// `FIRST-LAST`, or one address alone.
    fn from_str(text: &str) -> Result<Range, Invalid> {
        let unreadable =
            || Invalid(format!("`{text}` is no range of IPv4 addresses such as 10.0.0.2-10.0.0.254"));
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| text.trim().parse::<Ipv4Addr>().map_err(|_| unreadable());
        let (first, last) = (address(first)?, address(last)?);
        if first > last {
            let text = format!("the range {first}-{last} ends before it begins: write {last}-{first}");
            return Err(Invalid(text));
        }
        let range = Range { first, last };
        match range.networks().iter().find_map(Network::reserved) {
            Some(reserved) => Err(Invalid(format!(
                "the range {range} has addresses of {reserved}, which no host can have: leave these out"
            ))),
            None => Ok(range),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// `NAME=FIRST-LAST`, or `FIRST-LAST`: a range of a pool, which has a name where somebody chooses it by that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRange {
    pub name: Option<String>,
    pub range: Range,
}

impl FromStr for NamedRange {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<NamedRange, Invalid> {
        let (name, range) = match text.split_once('=') {
            Some(("", _)) => return Err(Invalid(format!("`{text}` has no name before the `=`"))),
            Some((name, range)) => (Some(name.to_owned()), range),
            None => (None, text),
        };
        Ok(NamedRange { name, range: range.parse()? })
    }
}

/// What the places of a pool stand for.
pub(super) trait Space: fmt::Display {
    type Item: Copy;
    const WHAT: &'static str;

    /// `None`: it is outside.
    fn place(&self, item: Self::Item) -> Option<u32>;
    fn item(&self, place: u32) -> Option<Self::Item>;
}

#[derive(Debug)]
pub(super) struct Pool<S> {
    space: S,
    places: Places,
}

impl<S: Space> Pool<S> {
    /// Takes one for a user: their last one where it is free. Else why there is none.
    pub(super) fn take(&mut self, user: &[u8]) -> Result<S::Item, String> {
        let item = self.places.take(user).and_then(|place| self.space.item(place));
        item.ok_or_else(|| {
            let kept = self.places.kept_back.len();
            let given = self.places.len as usize - kept;
            let kept = match kept {
                0 => String::new(),
                kept => format!(", {kept} more belong to subscribers with a fixed one"),
            };
            let (what, pool) = (S::WHAT, &self.space);
            format!(
                "all {given} {what} of the pool {pool} are in use{kept}; a larger pool takes more subscribers"
            )
        })
    }

    /// Takes the one that a user has already. Whether it was free; what is outside the pool always is.
    pub(super) fn take_again(&mut self, user: &[u8], item: S::Item) -> bool {
        self.space.place(item).is_none_or(|place| self.places.take_again(user, place))
    }

    /// Sees that one that a user has is nobody else's, now that it is not kept back any more.
    pub(super) fn hold(&mut self, item: S::Item) {
        self.space.place(item).map(|place| self.places.take_this(place));
    }

    /// Gives one back; what is not of the pool, or not taken, is none of its business.
    pub(super) fn release(&mut self, item: S::Item) {
        self.space.place(item).into_iter().for_each(|place| self.places.release(place));
    }

    /// Whether somebody has this one out of the pool.
    pub(super) fn is_lent(&self, item: S::Item) -> bool {
        self.space.place(item).is_some_and(|place| self.places.taken.contains(&place))
    }

    /// Says whether one belongs to one subscriber or to the concentrator, so that nobody gets it by chance.
    pub(super) fn keep_back(&mut self, item: S::Item, is_kept: bool) {
        self.space.place(item).into_iter().for_each(|place| self.places.keep_back(place, is_kept));
    }

    /// How many are neither in use nor kept back.
    pub(super) const fn free(&self) -> u32 {
        self.places.free
    }
}

/// Ranges of IPv4 addresses, in ascending order, each with the place of its first address.
#[derive(Debug)]
pub(super) struct Ranges(Box<[(Range, u32)]>);

pub(super) type AddressPool = Pool<Ranges>;

impl Pool<Ranges> {
    /// Of ranges in any order, which do not overlap and have 2^24 addresses together at most.
    pub(super) fn new(ranges: &[Range]) -> Result<AddressPool, Invalid> {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            if let [one, other] = pair
                && one.last >= other.first
            {
                let text =
                    format!("the ranges {one} and {other} overlap: each address may stand in one of them");
                return Err(Invalid(text));
            }
        }
        let total: u64 = sorted.iter().map(Range::len).sum();
        let places = u32::try_from(total).ok().filter(|total| *total <= MOST);
        let too_many = || {
            Invalid(format!("the pool has {total} addresses, and may have {MOST}: make its ranges smaller"))
        };
        let places = places.ok_or_else(too_many)?;
        let mut place = 0;
        let ranges = sorted.into_iter().map(|range| {
            let first = place;
            place += range.len() as u32;
            (range, first)
        });
        Ok(Pool { space: Ranges(ranges.collect()), places: Places::new(places) })
    }
}

/// The pool of everybody, and others by their names.
#[derive(Debug)]
pub(super) struct AddressPools {
    pub(super) everybodys: AddressPool,
    named: HashMap<String, AddressPool>,
}

impl AddressPools {
    /// No two of all these ranges overlap.
    pub(super) fn new(
        everybodys: &[Range],
        named: &BTreeMap<String, Vec<Range>>,
    ) -> Result<AddressPools, Invalid> {
        let all: Vec<Range> = everybodys.iter().chain(named.values().flatten()).copied().collect();
        AddressPool::new(&all)?;
        let named = named.iter().map(|(name, ranges)| Ok((name.clone(), AddressPool::new(ranges)?)));
        Ok(AddressPools {
            everybodys: AddressPool::new(everybodys)?,
            named: named.collect::<Result<_, Invalid>>()?,
        })
    }

    fn all(&mut self) -> impl Iterator<Item = &mut AddressPool> {
        std::iter::once(&mut self.everybodys).chain(self.named.values_mut())
    }

    /// One for a user, out of the pool of this name or of everybody's. Else why there is none.
    pub(super) fn take(&mut self, user: &[u8], name: Option<&str>) -> Result<Ipv4Addr, String> {
        let pool = match name {
            None => &mut self.everybodys,
            Some(name) => self.named.get_mut(name).ok_or_else(|| {
                let name = Quotable(name.as_bytes());
                format!("there is no pool of the name \"{name}\", which the user is to have an address of (--pool {name}=FIRST-LAST)")
            })?,
        };
        pool.take(user)
    }

    /// Takes the one that a user has already. Whether it was free; what is of no pool always is.
    pub(super) fn take_again(&mut self, user: &[u8], address: Ipv4Addr) -> bool {
        self.all().all(|pool| pool.take_again(user, address))
    }

    /// As [`Pool::hold`].
    pub(super) fn hold(&mut self, address: Ipv4Addr) {
        self.all().for_each(|pool| pool.hold(address));
    }

    /// As [`Pool::release`].
    pub(super) fn release(&mut self, address: Ipv4Addr) {
        self.all().for_each(|pool| pool.release(address));
    }

    /// As [`Pool::keep_back`].
    pub(super) fn keep_back(&mut self, address: Ipv4Addr, is_kept: bool) {
        self.all().for_each(|pool| pool.keep_back(address, is_kept));
    }
}

impl Space for Ranges {
    type Item = Ipv4Addr;
    const WHAT: &'static str = "addresses";

    fn place(&self, address: Ipv4Addr) -> Option<u32> {
        let behind = self.0.partition_point(|(range, _)| range.first <= address);
        let (range, place) = self.0.get(behind.checked_sub(1)?)?;
        (address <= range.last).then(|| place + (address.to_bits() - range.first.to_bits()))
    }

    fn item(&self, place: u32) -> Option<Ipv4Addr> {
        let behind = self.0.partition_point(|(_, first)| *first <= place);
        let (range, first) = self.0.get(behind.checked_sub(1)?)?;
        Some(Ipv4Addr::from_bits(range.first.to_bits() + (place - first)))
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges: Vec<_> = self.0.iter().map(|(range, _)| range.to_string()).collect();
        f.write_str(&ranges.join(", "))
    }
}

/// An IPv6 network parted into prefixes of one length, 64 bits at most. Of one with more than 2^24 of them the first so many are given.
#[derive(Debug)]
pub(super) struct Parted {
    network: Network,
    first: u64,
    count: u32,
    /// Bits of each.
    length: u8,
}

pub(super) type PrefixPool = Pool<Parted>;

impl Pool<Parted> {
    /// Of a network of IPv6 that has at least one prefix of this many bits, and none of whose addresses is reserved.
    pub(super) fn new(network: Network, length: u8) -> Result<PrefixPool, Invalid> {
        let Some(first) = network.ipv6().filter(|_| network.length() <= length) else {
            return Err(Invalid(format!(
                "{network} cannot be parted into prefixes of {length} bits: expected an IPv6 network of at most {length} bits such as \
                 2001:db8::/{}",
                length.min(48)
            )));
        };
        if let Some(reserved) = network.reserved() {
            return Err(Invalid(format!(
                "the network {network} has addresses of {reserved}, which no subscriber can have"
            )));
        }
        let count = 1u32.checked_shl(u32::from(length - network.length())).unwrap_or(MOST).min(MOST);
        Ok(Pool { space: Parted { network, first: upper(first), count, length }, places: Places::new(count) })
    }
}

impl Parted {
    /// By how many bits the number of a prefix is shifted in the upper half of its address.
    const fn shift(&self) -> u32 {
        64u32.saturating_sub(self.length as u32)
    }
}

impl Space for Parted {
    type Item = Network;
    const WHAT: &'static str = "prefixes";

    fn place(&self, prefix: Network) -> Option<u32> {
        let number = upper(prefix.ipv6()?).checked_sub(self.first)?.checked_shr(self.shift())?;
        u32::try_from(number).ok().filter(|place| *place < self.count && prefix.length() >= self.length)
    }

    fn item(&self, place: u32) -> Option<Network> {
        let upper = self.first + (u64::from(place) << self.shift());
        Network::of(IpAddr::V6(Ipv6Addr::from_bits(u128::from(upper) << 64)), self.length)
    }
}

impl fmt::Display for Parted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.network.fmt(f)
    }
}

/// Prefixes for links, and those for the networks behind hosts.
#[derive(Debug)]
pub(super) struct PrefixPools {
    pub(super) link: Option<PrefixPool>,
    pub(super) delegated: Option<PrefixPool>,
    /// Those that hosts have because they are their user's: of no pool, perhaps, and RADIUS may name one for two users.
    pub(super) own: HashSet<Network>,
}

impl PrefixPools {
    /// Each prefix with the pool that it may be of.
    fn with(&mut self, prefixes: Prefixes) -> impl Iterator<Item = (Network, &mut PrefixPool)> {
        let link = prefixes.link.zip(self.link.as_mut());
        link.into_iter().chain(prefixes.delegated.zip(self.delegated.as_mut()))
    }

    /// What a user gets: what is theirs, else one out of each pool that there is.
    ///
    /// # Errors
    ///
    /// What there is, and for each that there is not, why.
    pub(super) fn take(&mut self, user: &[u8], own: Prefixes) -> (Prefixes, Vec<NoPrefix>) {
        let PrefixPools { link, delegated, own: all } = self;
        let mut lacking = Vec::new();
        let mut one = |own: Option<Network>, pool: Option<&mut PrefixPool>| match (own, pool) {
            (Some(own), pool) => {
                let is_lent = pool.as_ref().is_some_and(|pool| pool.is_lent(own));
                if is_lent || !all.insert(own) {
                    lacking.push(NoPrefix::InUse(own));
                    return None;
                }
                pool.into_iter().for_each(|pool| pool.hold(own));
                Some(own)
            }
            (None, Some(pool)) => pool.take(user).map_err(|why| lacking.push(NoPrefix::Empty(why))).ok(),
            (None, None) => None,
        };
        let link = one(own.link, link.as_mut());
        let delegated = one(own.delegated, delegated.as_mut());
        (Prefixes { link, delegated }, lacking)
    }

    /// Takes what a user had in another process. `own`: what is theirs, whatever the pools have.
    ///
    /// # Errors
    ///
    /// It cannot be theirs any more: why. Nothing is taken then.
    pub(super) fn take_again(&mut self, user: &[u8], had: Prefixes, own: Prefixes) -> Result<(), String> {
        let PrefixPools { link, delegated, own: all } = self;
        let mut one = |had: Option<Network>, own: Option<Network>, pool: Option<&mut PrefixPool>| {
            let changed = |had: Option<Network>| {
                let or_none =
                    |prefix: Option<Network>| prefix.map_or("none".to_owned(), |one| one.to_string());
                Err(format!("the IPv6 prefix of the user changed from {} to {}", or_none(had), or_none(own)))
            };
            let free = |prefix: Network, is_free: bool| match is_free {
                true => Ok(()),
                false => Err(format!("the IPv6 prefix {prefix} is not free any more")),
            };
            match (had, pool) {
                (had, _) if own.is_some() && had != own => changed(had),
                (Some(had), pool) if own.is_some() => {
                    free(had, all.insert(had))?;
                    pool.into_iter().for_each(|pool| pool.hold(had));
                    Ok(())
                }
                (Some(had), Some(pool)) => free(had, pool.take_again(user, had)),
                (Some(had), None) => changed(Some(had)),
                (None, _) => Ok(()),
            }
        };
        one(had.link, own.link, link.as_mut())?;
        one(had.delegated, own.delegated, delegated.as_mut())
            .inspect_err(|_| self.release(Prefixes { delegated: None, ..had }))
    }

    pub(super) fn hold(&mut self, prefixes: Prefixes) {
        self.with(prefixes).for_each(|(prefix, pool)| pool.hold(prefix));
    }

    pub(super) fn release(&mut self, prefixes: Prefixes) {
        self.with(prefixes).for_each(|(prefix, pool)| pool.release(prefix));
        prefixes.iter().for_each(|prefix| {
            self.own.remove(&prefix);
        });
    }

    pub(super) fn keep_back(&mut self, prefixes: Prefixes, is_kept: bool) {
        self.with(prefixes).for_each(|(prefix, pool)| pool.keep_back(prefix, is_kept));
    }
}

/// Why there is no prefix for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPrefix {
    /// Another session has the fixed one.
    InUse(Network),
    /// The pool has none left: in words.
    Empty(String),
}

fn upper(address: Ipv6Addr) -> u64 {
    (address.to_bits() >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::cases;
    use std::collections::BTreeSet;

    fn pool(ranges: &[&str]) -> Result<AddressPool, Invalid> {
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
        for (range, network, remainder) in [
            ("10.0.0.2-10.0.0.254", "10.0.0.0/24", "10.0.0.0 10.0.0.1 10.0.0.255"),
            ("10.0.0.0-10.0.0.255", "10.0.0.0/24", ""),
            ("192.0.2.7", "192.0.2.7/32", ""),
            ("10.0.0.127-10.0.0.128", "10.0.0.0/24", ""),
        ] {
            let range: Range = range.parse().unwrap();
            assert_eq!(range.enclosing().unwrap().to_string(), network);
            let all: Vec<_> = range.remainder().map(|address| address.to_string()).collect();
            assert!(all.len() == 254 || all.join(" ") == remainder, "{all:?}");
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
            pool.take(b"late").unwrap_err(),
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
        let error = pool.take(b"b").unwrap_err();
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
        let mistakes = "
            10.0.0.1-10.0.0
                `10.0.0.1-10.0.0` is no range of IPv4 addresses such as 10.0.0.2-10.0.0.254
            10.0.0.9-10.0.0.1
                the range 10.0.0.9-10.0.0.1 ends before it begins: write 10.0.0.1-10.0.0.9
            10.0.0.1-10.0.0.9 10.0.0.9-10.0.0.20
                the ranges 10.0.0.1-10.0.0.9 and 10.0.0.9-10.0.0.20 overlap: each address may stand in one of them
            0.0.0.0-10.0.0.1
                the range 0.0.0.0-10.0.0.1 has addresses of 0.0.0.0/8 (this network), which no host can have: leave these out
            126.0.0.1-128.0.0.1
                the range 126.0.0.1-128.0.0.1 has addresses of 127.0.0.0/8 (loopback), which no host can have: leave these out
            1.0.0.0-2.0.0.0
                the pool has 16777217 addresses, and may have 16777216: make its ranges smaller
        ";
        for [ranges, expected] in cases(mistakes) {
            let ranges: Vec<&str> = ranges.split(' ').collect();
            assert_eq!(pool(&ranges).unwrap_err().to_string(), expected);
        }
        assert!(pool(&[]).unwrap().take(b"a").is_err());
    }

    #[test]
    fn links_of_a_prefix() {
        let mut pool = PrefixPool::new("2001:db8:1::/62".parse().unwrap(), 64).unwrap();
        pool.keep_back("2001:db8:1:1::/64".parse().unwrap(), true);
        let given: Vec<_> = (0..3u8).map(|user| pool.take(&[user]).unwrap().to_string()).collect();
        assert_eq!(given, ["2001:db8:1::/64", "2001:db8:1:2::/64", "2001:db8:1:3::/64"]);
        assert!(pool.take(&[3]).unwrap_err().contains("prefixes of the pool 2001:db8:1::/62"));
        pool.release("2001:db8:1:2::/64".parse().unwrap());
        pool.release("2001:db8:9::/64".parse().unwrap());
        assert_eq!(pool.take(&[3]).unwrap().to_string(), "2001:db8:1:2::/64");
        for (text, why) in [
            ("2001:db8::/65", "cannot be parted into prefixes of 64 bits"),
            ("10.0.0.0/8", "cannot be parted into prefixes of 64 bits"),
            ("::/0", "which no subscriber can have"),
            ("fe80::/48", "which no subscriber can have"),
            ("ff00::/8", "which no subscriber can have"),
        ] {
            let error = PrefixPool::new(text.parse().unwrap(), 64).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        let mut huge = PrefixPool::new("2001:db8::/32".parse().unwrap(), 64).unwrap();
        assert_eq!(huge.free(), 1 << 24);
        assert_eq!(huge.take(b"a"), Ok("2001:db8::/64".parse().unwrap()));
    }
}

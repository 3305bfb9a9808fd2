//! How much discovery a concentrator takes part in: token buckets per host, per VLAN and per port.
//!
//! # Contract
//!
//! * A packet passes when its host, its VLAN and its port have a token each, and takes none where one of them has none: who is
//!   refused takes nothing from those it shares a VLAN or a port with, and a flood in one VLAN takes nothing from the others.
//! * The tables have a fixed size. Hosts and VLANs are distributed to their buckets by a keyed hash; two may share one, and nobody
//!   outside knows which. A flood from invented addresses fills buckets, and no more memory than all of them take.
//! * Buckets without members take none: a table is made page by page, as packets come.

use super::concentrator::Reason;
use super::place::Place;
use crate::pages::{HashKey, Pages};
use crate::{Invalid, Random, Time};
use std::fmt;
use std::str::FromStr;
use wire::ethernet::MacAddress;

/// A rate and how many may come at once before it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Packets a second.
    pub per_second: u32,
    /// Packets at once; at least one.
    pub burst: u32,
}

impl Rate {
    /// The highest, and the most at once.
    pub(crate) const MOST: u32 = 1_000_000;

    /// So many a second, and twice as many at once, or ten.
    const fn usual(per_second: u32) -> Rate {
        let twice = per_second.saturating_mul(2);
        Rate { per_second, burst: if twice < 10 { 10 } else { twice } }
    }
}

impl FromStr for Rate {
    type Err = Invalid;

    /// `PER_SECOND`, or `PER_SECOND:BURST`.
    fn from_str(text: &str) -> Result<Rate, Invalid> {
        let number = |text: &str| {
            let is_number = text.bytes().all(|digit| digit.is_ascii_digit());
            text.parse().ok().filter(|number| is_number && (1..=Rate::MOST).contains(number))
        };
        let rate = match text.split_once(':') {
            None => number(text).map(Rate::usual),
            Some((rate, burst)) => {
                number(rate).zip(number(burst)).map(|(per_second, burst)| Rate { per_second, burst })
            }
        };
        rate.ok_or_else(|| {
            Invalid(format!(
                "`{text}` is no rate: packets a second, from 1 to {most}, and with a colon how many may come at once: 2:10",
                most = Rate::MOST
            ))
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.per_second, self.burst)
    }
}

/// Rates of one kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Of one host: a MAC address in a VLAN of a port.
    pub host: Rate,
    /// Of one stack of VLAN tags of a port. Untagged frames have the port's alone.
    pub vlan: Rate,
    pub port: Rate,
}

impl Rates {
    /// What thousands of hosts that come back at once need, and what no single one does.
    pub const DEFAULT: Rates =
        Rates { host: Rate::usual(2), vlan: Rate::usual(12_000), port: Rate::usual(40_000) };
}

/// Buckets of hosts, of VLANs, of ports.
const HOSTS: usize = 1 << 16;
const VLANS: usize = 1 << 14;
const PORTS: usize = 1 << 8;

/// The tables of one kind of packet: 3 kB at the beginning and 1.3 MB at most, whatever comes.
pub(crate) struct Limits {
    rates: Rates,
    key: HashKey,
    hosts: Pages<Bucket>,
    vlans: Pages<Bucket>,
    ports: Pages<Bucket>,
}

impl std::fmt::Debug for Limits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limits").field("rates", &self.rates).finish_non_exhaustive()
    }
}

impl Limits {
    /// All buckets are full.
    pub(crate) fn new(rates: Rates, random: &mut dyn Random) -> Limits {
        Limits {
            rates,
            key: HashKey::new(random),
            hosts: Pages::new(Bucket::full(rates.host), HOSTS),
            vlans: Pages::new(Bucket::full(rates.vlan), VLANS),
            ports: Pages::new(Bucket::full(rates.port), PORTS),
        }
    }

    /// Takes the tokens of a packet, or none.
    ///
    /// # Errors
    ///
    /// Whose rate is exceeded; the packet is to be dropped.
    pub(crate) fn take(&mut self, now: Time, host: MacAddress, place: &Place) -> Result<(), Reason> {
        let Limits { rates, key, hosts, vlans, ports } = self;
        let host_at = key.hash((host.0, place)) as usize % HOSTS;
        let vlan_at = key.hash(place) as usize % VLANS;
        let vlan = if place.vlans.count() > 0 { vlans.at(vlan_at) } else { None };
        // All three have one, or none gives one.
        let buckets = [
            (hosts.at(host_at), rates.host, Reason::HostRate),
            (vlan, rates.vlan, Reason::VlanRate),
            (ports.at(place.port as usize % PORTS), rates.port, Reason::PortRate),
        ];
        let mut buckets = buckets.map(|(bucket, rate, exceeded)| Some((bucket?, rate, exceeded)));
        for (bucket, rate, exceeded) in buckets.iter_mut().flatten() {
            if !bucket.has_one(*rate, now) {
                return Err(*exceeded);
            }
        }
        buckets.into_iter().flatten().for_each(|(bucket, ..)| bucket.take());
        Ok(())
    }
}

/// A token bucket. A token is [`TOKEN`] parts, so that a slow rate fills it in small steps.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    parts: u64,
    /// When it was filled last, microseconds.
    filled: u64,
}

/// Parts of a token: a rate of one a second gives one part a microsecond.
const TOKEN: u64 = 1_000_000;

impl Bucket {
    fn full(rate: Rate) -> Bucket {
        Bucket { parts: Bucket::most(rate), filled: 0 }
    }

    fn most(rate: Rate) -> u64 {
        u64::from(rate.burst.max(1)) * TOKEN
    }

    /// Fills it with what came since the last time.
    fn has_one(&mut self, rate: Rate, now: Time) -> bool {
        let now = now.as_micros() as u64;
        let gained = now.saturating_sub(self.filled).saturating_mul(rate.per_second.into());
        self.filled = self.filled.max(now);
        self.parts = self.parts.saturating_add(gained).min(Bucket::most(rate));
        self.parts >= TOKEN
    }

    fn take(&mut self) {
        self.parts = self.parts.saturating_sub(TOKEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{mac, vlans};
    use std::time::Duration;
    use wire::Vlans;

    const RATES: Rates = Rates {
        host: Rate { per_second: 1, burst: 3 },
        vlan: Rate { per_second: 10, burst: 20 },
        port: Rate { per_second: 100, burst: 200 },
    };

    fn limits() -> Limits {
        Limits::new(RATES, &mut |bytes: &mut [u8]| bytes.fill(7))
    }

    fn place(vid: u16) -> Place {
        Place { port: 1, vlans: vlans(vid) }
    }

    fn passed(limits: &mut Limits, now: Time, hosts: u32, vid: u16, each: u32) -> u32 {
        let tries = (0..hosts).flat_map(|host| (0..each).map(move |_| host));
        tries.filter(|host| limits.take(now, mac(*host), &place(vid)).is_ok()).count() as u32
    }

    #[test]
    fn rates_are_read_as_they_are_written() {
        for (text, per_second, burst) in [("2", 2, 10), ("2:10", 2, 10), ("1000", 1000, 2000), ("7:1", 7, 1)]
        {
            let rate: Rate = text.parse().expect(text);
            assert_eq!(rate, Rate { per_second, burst });
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        assert_eq!(Rates::DEFAULT.port.to_string(), "40000:80000");
        for text in ["", "0", "-1", "+1", "1:", ":1", "1:0", "1:2:3", "1000001", "2/10", "99999999999"] {
            let error = text.parse::<Rate>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("`{text}` is no rate: ")), "{error}");
        }
    }

    #[test]
    fn a_host_has_its_burst_and_then_its_rate() {
        let mut limits = limits();
        let now = Duration::from_secs(5000);
        assert_eq!(passed(&mut limits, now, 1, 1, 10), 3);
        assert_eq!(limits.take(now, mac(0), &place(1)), Err(Reason::HostRate));
        assert_eq!(passed(&mut limits, now + Duration::from_millis(999), 1, 1, 10), 0);
        assert_eq!(passed(&mut limits, now + Duration::from_millis(2000), 1, 1, 10), 2);
        // An hour later there is a burst, and no more; and time that goes back gives nothing.
        assert_eq!(passed(&mut limits, now + Duration::from_secs(3600), 1, 1, 10), 3);
        assert_eq!(passed(&mut limits, now, 1, 1, 10), 0);
        // The same address in another VLAN is another host.
        assert_eq!(passed(&mut limits, now, 1, 2, 10), 3);
    }

    fn bytes(limits: &Limits) -> usize {
        [&limits.hosts, &limits.vlans, &limits.ports].map(Pages::bytes).iter().sum()
    }

    /// Attack 7: memory comes with the packets, and no more of it than the tables have.
    #[test]
    fn a_flood_fills_the_tables_and_no_more() {
        let mut limits = limits();
        let now = Duration::from_secs(5000);
        assert_eq!(bytes(&limits), 0);
        let _ = limits.take(now, mac(0), &Place { port: 1, vlans: Vlans::NONE });
        assert!((1..10_000).contains(&bytes(&limits)));
        for number in 0..20_000_u32 {
            let place = Place { port: number, ..place((number % 4095) as u16) };
            let _ = limits.take(now, mac(number), &place);
        }
        assert_eq!(bytes(&limits), (HOSTS + VLANS + PORTS) * size_of::<Bucket>());
        assert!(bytes(&limits) < 1_400_000, "{}", bytes(&limits));
    }

    /// Attack 7: a flood of invented addresses is held to its VLAN's rate, and other VLANs have theirs.
    #[test]
    fn a_flood_of_invented_addresses_stays_in_its_vlan() {
        let mut limits = limits();
        let now = Duration::from_secs(5000);
        assert_eq!(passed(&mut limits, now, 100_000, 666, 1), 20);
        assert_eq!(limits.take(now, mac(200_000), &place(666)), Err(Reason::VlanRate));
        for vid in 1..=9 {
            assert_eq!(passed(&mut limits, now, 20, vid, 1), 20, "VLAN {vid}");
        }
        // Many VLANs at once are held to the port's.
        assert_eq!(passed(&mut limits, now, 20, 10, 1), 0);
        assert_eq!(limits.take(now, mac(0), &place(11)), Err(Reason::PortRate));
    }
}

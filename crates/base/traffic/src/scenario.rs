//! What traffic is made of.

use crate::flow::MAX_SUBSCRIBERS;
use crate::{Arrival, Direction, Generator, Popularity, Sizes};
use wire::emit::{Encapsulation, EncapsulationError, PppoeSession};

/// Flows of one encapsulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// How many of the flows, in relation to the other classes.
    pub weight: u32,
    /// What stands between MAC and IP header. Where PPPoE leaves the session open, each subscriber has one of
    /// its own, from 1 on.
    pub encapsulation: Encapsulation,
    /// Whether each subscriber has VLAN identifiers of its own: the innermost counts from that of the
    /// encapsulation on, and the one around it counts on when the innermost is used up.
    pub tags_per_subscriber: bool,
}

impl Class {
    /// A class by itself.
    pub const fn new(encapsulation: Encapsulation) -> Class {
        Class { weight: 1, encapsulation, tags_per_subscriber: false }
    }
}

/// A traffic mix. Fields are public: take a named one and change what should differ.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "what says no more than its name")]
pub struct Scenario {
    pub classes: Vec<Class>,
    /// Number of flows, 1 to [`Scenario::MAX_FLOWS`]. Each takes up to 12 bytes of memory.
    pub flows: u32,
    /// Number of subscribers that the flows belong to, at least 1.
    pub subscribers: u32,
    /// Which way the frames go.
    pub direction: Direction,
    /// How frames spread over flows.
    pub popularity: Popularity,
    pub sizes: Sizes,
    pub arrival: Arrival,
    /// Of 100 flows, how many are IPv6.
    pub ipv6_percent: u8,
    /// Of 100 flows, how many are UDP; the others are TCP.
    pub udp_percent: u8,
    /// Of a million frames, how many are control frames: PPPoE discovery and LCP echoes where there is PPPoE,
    /// else ARP and IPv6 router solicitations.
    pub control_per_million: u32,
    /// Of a million frames, how many start a fragmented packet; its second fragment is the next frame.
    pub fragments_per_million: u32,
    /// MTU of the Ethernet link, bytes: what stands behind tags and MPLS labels. PPPoE takes eight of them
    /// (RFC 2516 section 7); 1508 leaves 1500 (RFC 4638).
    pub mtu: u16,
}

/// A scenario with a name.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// The encapsulations with their weights, in the notation of [`Encapsulation`].
    pub encapsulations: &'static [(u32, &'static str)],
    /// What it stands for, one line.
    pub summary: &'static str,
    subscribers: u32,
}

impl Named {
    /// Number of subscribers; those of more than one send upstream with VLAN identifiers of their own.
    pub const fn subscribers(&self) -> u32 {
        self.subscribers
    }
}

const fn one(name: &'static str, stack: &'static [(u32, &'static str)], summary: &'static str) -> Named {
    Named { name, encapsulations: stack, summary, subscribers: 1 }
}

/// The named scenarios.
pub static NAMED: [Named; 9] = [
    one("untagged", &[(1, "none")], "IP right behind the MAC header, as every NIC knows it"),
    one("vlan", &[(1, "q:35")], "a line with one VLAN tag"),
    one("qinq", &[(1, "ad:100,q:200")], "service and customer tag"),
    one("pppoe", &[(1, "pppoe")], "a home line: every flow inside one PPPoE session"),
    one("pppoe-vlan", &[(1, "q:35,pppoe")], "the same on a tagged line"),
    one("pppoe-qinq", &[(1, "ad:100,q:200,pppoe")], "the same behind service and customer tag"),
    one("mpls", &[(1, "mpls:16001,mpls:24001")], "a core link with two labels"),
    Named {
        name: "access",
        encapsulations: &[(1, "ad:100,q:1,pppoe")],
        summary: "1,000 subscribers with their own tags and sessions, upstream",
        subscribers: 1000,
    },
    one(
        "mixed",
        &[
            (30, "none"),
            (20, "q:35"),
            (10, "ad:100,q:200"),
            (20, "q:35,pppoe"),
            (15, "ad:100,q:200,pppoe"),
            (5, "mpls:16001"),
        ],
        "all of these on one port",
    ),
];

impl Scenario {
    /// Downstream traffic of one subscriber in `encapsulation`: 1,000 flows, Zipf, IMIX, 100,000 frames a second
    /// as a Poisson process, a quarter IPv6, a fifth UDP, 500 control frames and 500 fragmented packets in
    /// a million frames.
    pub fn new(encapsulation: Encapsulation) -> Scenario {
        Scenario {
            classes: vec![Class::new(encapsulation)],
            flows: 1000,
            subscribers: 1,
            direction: Direction::Downstream,
            popularity: Popularity::Zipf,
            sizes: Sizes::Imix,
            arrival: Arrival::Poisson { rate: 100_000 },
            ipv6_percent: 25,
            udp_percent: 20,
            control_per_million: 500,
            fragments_per_million: 500,
            mtu: 1500,
        }
    }

    /// A scenario of [`NAMED`]. Error: no such name.
    pub fn named(name: &str) -> Result<Scenario, ScenarioError> {
        let Some(named) = NAMED.iter().find(|named| named.name == name) else {
            return Err(ScenarioError::Name { name: name.to_owned() });
        };
        let own = named.subscribers > 1;
        let mut scenario = Scenario::new(Encapsulation::NONE);
        scenario.subscribers = named.subscribers;
        scenario.direction = if own { Direction::Upstream } else { Direction::Downstream };
        scenario.classes = named
            .encapsulations
            .iter()
            .map(|(weight, text)| {
                Ok(Class { weight: *weight, encapsulation: text.parse()?, tags_per_subscriber: own })
            })
            .collect::<Result<_, EncapsulationError>>()?;
        Ok(scenario)
    }

    /// The same with another number of flows.
    #[must_use]
    pub fn with_flows(mut self, flows: u32) -> Scenario {
        self.flows = flows;
        self
    }

    /// The same flows in another encapsulation.
    #[must_use]
    pub fn with_encapsulation(mut self, encapsulation: Encapsulation) -> Scenario {
        self.classes = vec![Class::new(encapsulation)];
        self
    }

    /// The same without control frames and fragments: only whole TCP and UDP packets.
    #[must_use]
    pub fn data_only(mut self) -> Scenario {
        self.control_per_million = 0;
        self.fragments_per_million = 0;
        self
    }

    /// Starts generating. Errors: a number that makes no sense.
    pub fn generate(self, seed: u64) -> Result<Generator, ScenarioError> {
        self.check()?;
        Ok(Generator::new(self, seed))
    }

    fn check(&self) -> Result<(), ScenarioError> {
        let weights: u64 = self.classes.iter().map(|class| u64::from(class.weight)).sum();
        if self.flows == 0 || self.flows > Scenario::MAX_FLOWS {
            return Err(ScenarioError::Flows { found: self.flows });
        }
        if weights == 0 || weights > u64::from(u32::MAX) {
            return Err(ScenarioError::Weights { sum: weights });
        }
        if self.subscribers == 0 || self.subscribers > MAX_SUBSCRIBERS {
            return Err(ScenarioError::Subscribers { found: self.subscribers });
        }
        if self.ipv6_percent > 100 || self.udp_percent > 100 {
            return Err(ScenarioError::Percent { found: self.ipv6_percent.max(self.udp_percent) });
        }
        if u64::from(self.control_per_million) + u64::from(self.fragments_per_million) > 1_000_000 {
            return Err(ScenarioError::PerMillion {
                control: self.control_per_million,
                fragments: self.fragments_per_million,
            });
        }
        if !(1..=Scenario::MAX_RATE).contains(&self.arrival.rate()) {
            return Err(ScenarioError::Rate { found: self.arrival.rate() });
        }
        if self.mtu < Scenario::MIN_MTU {
            return Err(ScenarioError::Mtu { found: self.mtu });
        }
        let (first, last) = (self.sizes.smallest(), self.sizes.largest());
        if first < Sizes::LEAST || first > last {
            return Err(ScenarioError::Sizes { sizes: self.sizes });
        }
        // The mix is one of packets as they are: where the longest do not fit they are as long as fits.
        let fits = u32::from(last) <= u32::from(self.mtu) + u32::from(Sizes::ETHERNET);
        if !fits && self.sizes != Sizes::Imix {
            return Err(ScenarioError::TooLong { size: last, mtu: self.mtu });
        }
        Ok(())
    }

    /// The most flows.
    pub const MAX_FLOWS: u32 = 100_000_000;
    /// The highest rate, frames a second.
    pub const MAX_RATE: u64 = 1_000_000_000;
    /// The least MTU: what every IPv4 host accepts (RFC 791 section 3.1).
    pub const MIN_MTU: u16 = 576;
}

impl Class {
    /// The encapsulation of one subscriber.
    pub(crate) fn of_subscriber(&self, subscriber: u32) -> Encapsulation {
        let mut out = self.encapsulation;
        if self.tags_per_subscriber {
            let mut carry = subscriber;
            for tag in out.tags_mut().iter_mut().rev() {
                // 1 to 4094: 0 means priority only, 4095 is reserved.
                let place = u32::from(tag.tci.vid().max(1)) - 1 + carry;
                carry = place / 4094;
                tag.tci = wire::vlan::Tci::new(tag.tci.pcp(), tag.tci.dei(), (place % 4094) as u16 + 1);
            }
        }
        match out.pppoe() {
            Some(PppoeSession { session: None, peer }) => {
                let session = (subscriber % 65534) as u16 + 1;
                out.set_pppoe(PppoeSession { session: Some(session), peer });
                out
            }
            _ => out,
        }
    }
}

/// Why a scenario generates nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum ScenarioError {
    #[error("no scenario '{name}'; there are {}", names())]
    Name { name: String },
    /// An encapsulation that cannot be.
    #[error(transparent)]
    Encapsulation(#[from] EncapsulationError),
    #[error("{found} flows; 1 to {} are possible", Scenario::MAX_FLOWS)]
    Flows { found: u32 },
    #[error("the weights of the classes sum up to {sum}, not to a number from 1 to {}", u32::MAX)]
    Weights { sum: u64 },
    #[error("{found} subscribers; 1 to {MAX_SUBSCRIBERS} are possible")]
    Subscribers { found: u32 },
    #[error("{found} % of the flows are more than all")]
    Percent { found: u8 },
    #[error("{control} control frames and {fragments} fragmented packets do not fit into a million frames")]
    PerMillion { control: u32, fragments: u32 },
    #[error("{found} frames a second; 1 to {} are possible", Scenario::MAX_RATE)]
    Rate { found: u64 },
    #[error("an MTU of {found} bytes is below {}, which every IPv4 host accepts", Scenario::MIN_MTU)]
    Mtu { found: u16 },
    #[error("frame sizes {sizes}: the least is 64 bytes with FCS, and a range goes upwards")]
    Sizes { sizes: Sizes },
    #[error(
        "frames of {size} bytes (with FCS) do not fit the MTU of {mtu}, which allows {}; raise the MTU",
        u32::from(*mtu) + 18
    )]
    TooLong { size: u16, mtu: u16 },
}

fn names() -> String {
    NAMED.map(|named| named.name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_makes_a_scenario() {
        for named in &NAMED {
            let scenario = Scenario::named(named.name);
            assert!(scenario.is_ok_and(|scenario| scenario.check().is_ok()), "{}", named.name);
        }
        let error = Scenario::named("ppoe").map_err(|error| error.to_string());
        assert_eq!(
            error,
            Err("no scenario 'ppoe'; there are untagged, vlan, qinq, pppoe, pppoe-vlan, pppoe-qinq, mpls, \
                 access, mixed"
                .to_owned())
        );
    }

    #[test]
    fn subscribers_count_through_sessions_and_tags() -> Result<(), ScenarioError> {
        let class = Class { tags_per_subscriber: true, ..Class::new("ad:100,q:4093,pppoe".parse()?) };
        let stacks: Vec<String> = (0..4).map(|s| class.of_subscriber(s).to_string()).collect();
        assert_eq!(
            stacks,
            ["ad:100,q:4093,pppoe:1", "ad:100,q:4094,pppoe:2", "ad:101,q:1,pppoe:3", "ad:101,q:2,pppoe:4"]
        );
        let fixed = Class { tags_per_subscriber: false, ..Class::new("q:35,pppoe:77".parse()?) };
        assert_eq!(fixed.of_subscriber(9).to_string(), "q:35,pppoe:77");
        Ok(())
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        let base = || Scenario::new(Encapsulation::NONE);
        let jumbo = Scenario { sizes: Sizes::Fixed(9018), ..base() };
        let small = Sizes::Range(10, 100);
        let over = Scenario { control_per_million: 1_000_000, fragments_per_million: 1, ..base() };
        assert!(matches!(over.generate(1), Err(ScenarioError::PerMillion { .. })));
        for (scenario, error) in [
            (base().with_flows(0), Some(ScenarioError::Flows { found: 0 })),
            (Scenario { classes: Vec::new(), ..base() }, Some(ScenarioError::Weights { sum: 0 })),
            (jumbo.clone(), Some(ScenarioError::TooLong { size: 9018, mtu: 1500 })),
            (Scenario { mtu: 9000, ..jumbo }, None),
            // The usual mix is cut to what fits.
            (Scenario { mtu: 1492, ..base() }, None),
            (Scenario { sizes: small, ..base() }, Some(ScenarioError::Sizes { sizes: small })),
            (
                Scenario { arrival: Arrival::Constant { rate: 0 }, ..base() },
                Some(ScenarioError::Rate { found: 0 }),
            ),
            (Scenario { mtu: 500, ..base() }, Some(ScenarioError::Mtu { found: 500 })),
            (Scenario { udp_percent: 101, ..base() }, Some(ScenarioError::Percent { found: 101 })),
            (
                Scenario { subscribers: 5_000_000, ..base() },
                Some(ScenarioError::Subscribers { found: 5_000_000 }),
            ),
        ] {
            let refused = scenario.clone().generate(1).err();
            assert_eq!(refused, error, "{scenario:?}");
        }
    }
}

//! `pps`: datagrams a second by senders, receivers, receive queues and GRO.
//!
//! As the tests on the APU do: small UDP datagrams of several flows, from threads that send to threads that receive, each of
//! which has a socket of its own. Here over a veth pair, whose end receives on the CPU that sends, unless GRO is on: then it has a
//! NAPI for each queue. Interrupt moderation, rings, hash fields and indirection tables are a card's: [`interface`] measures them
//! on a real one.

mod arrival;
mod card;
pub mod interface;
mod placement;
mod settings;

pub use settings::undo;

use super::pair::{self, Pair, WAN};
use super::report::{Factor, LeftOut, Levels, Metric};
use super::udp_load::UdpLoad;
use super::verdict::Comparison;
use super::{Error, Means, Measured, Scenario, level, levels};
use crate::pin;
use std::collections::BTreeMap;

const MTU: u16 = 1500;

/// The scenario.
#[derive(Debug)]
pub struct Pps {
    /// Octets of payload.
    pub payload: u16,
    /// Flows.
    pub flows: u16,
}

const COUNTS: [&str; 3] = ["1", "2", "4"];

fn number(cell: &Levels, factor: &str) -> u16 {
    level(cell, factor).parse().unwrap_or(1)
}

impl Scenario for Pps {
    fn name(&self) -> &'static str {
        "pps"
    }

    fn title(&self) -> &'static str {
        "Packets a second by senders, receivers and queues"
    }

    fn parameters(&self) -> BTreeMap<String, String> {
        [("payload", self.payload.to_string()), ("flows", self.flows.to_string())]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new("senders", &[("1", "one sender"), ("2", "two senders"), ("4", "four senders")]),
            Factor::new("receivers", &[("1", "one receiver"), ("2", "two receivers")]),
            Factor::new("queues", &[("1", "one queue"), ("2", "two queues")]),
            Factor::new("gro", &[("off", "GRO off"), ("on", "GRO on")]),
        ]
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::new("received", "Datagrams that programs received", "packets/s", Some(true)),
            Metric::new("sent", "Datagrams that were sent", "packets/s", None),
            Metric::new("loss", "Share of the datagrams that did not arrive", "", Some(false)),
            Metric::of_machine("cpu", "CPUs that were busy", "CPUs", None),
            Metric::of_machine("softirq", "CPUs that were busy with soft interrupts", "CPUs", None),
        ]
    }

    fn cells(&self) -> Vec<Levels> {
        let mut cells = Vec::new();
        for gro in ["off", "on"] {
            for queues in ["1", "2"] {
                for receivers in ["1", "2"] {
                    cells.extend(COUNTS.map(|senders| {
                        levels([
                            ("senders", senders),
                            ("receivers", receivers),
                            ("queues", queues),
                            ("gro", gro),
                        ])
                    }));
                }
            }
        }
        cells
    }

    fn prepare(&mut self, _means: &Means<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&["ethtool"])?;
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, means: &Means<'_>) -> Result<Measured, Error> {
        let pair = Pair::new(number(cell, "queues"), MTU)?;
        let is_coalesced = level(cell, "gro") == "on";
        if is_coalesced {
            // With it veth receives in NAPI, by queues (veth_gro_requested() of drivers/net/veth.c).
            pair.far.run("ethtool", &["-K", WAN, "gro", "on"])?;
            pair.near.run("ethtool", &["-K", WAN, "tso", "off"])?;
        } else {
            pair.far.run("ethtool", &["-K", WAN, "gro", "off"])?;
        }
        pair.give_addresses(WAN)?;
        let cpus = pin::allowed();
        // Senders from the first CPU on, receivers from the last on.
        let load = UdpLoad {
            payload: self.payload.into(),
            senders: (number(cell, "senders"), cpus.clone()),
            receivers: (number(cell, "receivers"), cpus.into_iter().rev().collect()),
            flows: self.flows,
            coalesce: is_coalesced,
            mtu: MTU,
        };
        let delivered = load.deliver(&pair, means)?;
        let mut measured = vec![("received", delivered.per_second), ("sent", delivered.sent_per_second)];
        measured.extend(delivered.loss.map(|loss| ("loss", loss)));
        if let Some(spent) = delivered.spent {
            measured.extend([("cpu", spent.busy()), ("softirq", spent.busy_with_softirq())]);
        }
        Ok(measured)
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let cell = |senders, receivers, queues, gro| {
            levels([("senders", senders), ("receivers", receivers), ("queues", queues), ("gro", gro)])
        };
        let beside = |cell: Levels, baseline: Levels| Comparison { metric: "received", cell, baseline };
        let mut comparisons = Vec::new();
        for gro in ["off", "on"] {
            comparisons.extend([
                beside(cell("2", "1", "1", gro), cell("1", "1", "1", gro)),
                beside(cell("2", "2", "1", gro), cell("2", "1", "1", gro)),
                beside(cell("2", "2", "2", gro), cell("2", "2", "1", gro)),
                beside(cell("4", "2", "2", gro), cell("2", "2", "2", gro)),
            ]);
        }
        comparisons.push(beside(cell("1", "1", "1", "on"), cell("1", "1", "1", "off")));
        comparisons
    }
}

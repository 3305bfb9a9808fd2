//! `pps`: datagrams a second by senders, receivers, receive queues and GRO.
//!
//! As the tests on the APU do: small UDP datagrams of several flows, from threads that send to threads that receive, each of
//! which has a socket of its own. Here over a veth pair, whose end receives on the CPU that sends, unless GRO is on: then it
//! has a NAPI for each queue. Interrupt moderation, rings, hash fields and indirection tables are a NIC's: [`interface`]
//! measures them on a physical one.

mod arrival;
mod card;
pub mod interface;
mod placement;
mod settings;

pub use settings::undo;

use super::design::{Comparison, Design, crossed, parameters};
use super::pair::{self, Pair, WAN};
use super::report::{Factor, LESS, LeftOut, Levels, MORE, Metric};
use super::udp_load::UdpLoad;
use super::{Error, Measured, Scenario, Tools, level};
use crate::pin;

const MTU: u16 = 1500;

#[derive(Debug)]
pub struct Pps {
    /// Bytes of payload.
    pub payload: u16,
    pub flows: u16,
}

fn number(cell: &Levels, factor: &str) -> u16 {
    level(cell, factor).parse().unwrap_or(1)
}

fn senders() -> Factor {
    Factor::new("senders", &[("1", "one sender"), ("2", "two senders"), ("4", "four senders")])
}

fn receivers() -> Factor {
    Factor::new("receivers", &[("1", "one receiver"), ("2", "two receivers")])
}

fn metrics() -> Vec<Metric> {
    vec![
        Metric::new("received", "Datagrams that programs received", "packets/s", MORE),
        Metric::new("sent", "Datagrams that were sent", "packets/s", None),
        Metric::new("loss", "Share of the datagrams that did not arrive", "", LESS),
        Metric::of_machine("cpu", "CPUs that were busy", "CPUs", None),
        Metric::of_machine("softirq", "CPUs that were busy with soft interrupts", "CPUs", None),
    ]
}

impl Scenario for Pps {
    fn design(&self) -> Design {
        let factors = [
            senders(),
            receivers(),
            Factor::new("queues", &[("1", "one queue"), ("2", "two queues")]),
            Factor::new("gro", &[("off", "GRO off"), ("on", "GRO on")]),
        ];
        let [of_senders, of_receivers, queues, gro] = &factors;
        let compare =
            |cell: &str, baseline: &str, both: &str| Comparison::new("received", cell, baseline, both);
        let mut comparisons = Vec::new();
        for gro in ["off", "on"] {
            for (cell, baseline, both) in [
                ("senders=2", "senders=1", "receivers=1 queues=1"),
                ("receivers=2", "receivers=1", "senders=2 queues=1"),
                ("queues=2", "queues=1", "senders=2 receivers=2"),
                ("senders=4", "senders=2", "receivers=2 queues=2"),
            ] {
                comparisons.push(compare(cell, baseline, &format!("{both} gro={gro}")));
            }
        }
        comparisons.push(compare("gro=on", "gro=off", "senders=1 receivers=1 queues=1"));
        Design {
            name: "pps",
            title: "Packets a second by senders, receivers and queues",
            parameters: parameters([
                ("payload", self.payload.to_string()),
                ("flows", self.flows.to_string()),
            ]),
            cells: crossed([gro, queues, of_receivers, of_senders]),
            factors: factors.into(),
            metrics: metrics(),
            comparisons,
        }
    }

    fn prepare(&mut self, _tools: &Tools<'_>) -> Result<Vec<LeftOut>, Error> {
        pair::is_possible(&["ethtool"])?;
        Ok(Vec::new())
    }

    fn measure(&self, cell: &Levels, tools: &Tools<'_>) -> Result<Measured, Error> {
        let pair = Pair::new(number(cell, "queues"), MTU)?;
        let is_coalesced = level(cell, "gro") == "on";
        pair.far.run("ethtool", &["-K", WAN, "gro", level(cell, "gro")])?;
        if is_coalesced {
            // With GRO veth receives in NAPI, by queues (veth_gro_requested() of drivers/net/veth.c).
            pair.near.run("ethtool", &["-K", WAN, "tso", "off"])?;
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
        let delivered = load.deliver(&pair, tools)?;
        let mut measured = vec![("received", delivered.per_second), ("sent", delivered.sent_per_second)];
        measured.extend(delivered.loss.map(|loss| ("loss", loss)));
        if let Some(spent) = delivered.spent {
            measured.extend([("cpu", spent.busy()), ("softirq", spent.busy_with_softirq())]);
        }
        Ok(measured)
    }
}

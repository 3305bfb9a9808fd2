//! `rxlane pppoe discover`.

mod advice;
mod report;

use crate::arguments::StackArguments;
use crate::output::{CommandResult, Outcome, Output};
use anyhow::anyhow;
use client::probe;
use link::pppoe::kernel::random;
use link::running::find_parent;
use pppoe::discovery::offer::Pin;
use pppoe::discovery::probe::Question;
use pppoe::discovery::{PLAIN_PAYLOAD, host};
use report::Report;
use std::time::Duration;
use wire::Vlans;

#[derive(clap::Args)]
#[command(after_help = "\
Sends one PADI a second and asks for no session, so that no concentrator has to remember anything. Requires root.\n\n\
Exit codes: 0 a concentrator answered that fits --ac and --service, 1 none did, or the interface is down, 2 wrong usage, \
3 a privilege is missing.\n\n\
Examples:\n  \
rxlane pppoe discover eth0\n  \
rxlane pppoe discover eth0 --vlan 7\n  \
rxlane pppoe discover eth0 --vlan 100.200 --service internet --ac bras1 --json")]
pub struct DiscoverArguments {
    /// Ethernet interface with the line.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    #[command(flatten)]
    stack: StackArguments,
    /// Service-Name to ask for; without it any.
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    service: String,
    /// Concentrator that has to answer: its AC-Name, or its MAC address. Others are listed all the same.
    #[arg(long, value_name = "NAME|MAC")]
    ac: Option<Pin>,
    /// How long to listen, seconds; a PADI goes out in each.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Largest PPP payload to ask for (PPP-Max-Payload, RFC 4638), bytes; 1492 asks for none.
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(1492..))]
    max_payload: u16,
    /// Print JSON (schema rxlane.pppoe-discover/1).
    #[arg(long)]
    json: bool,
}

impl DiscoverArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let vlans = self.vlans()?;
        let parent = find_parent(&self.interface)?;
        let question = Question {
            service: self.service.as_bytes().to_vec(),
            max_payload: Some(self.max_payload).filter(|bytes| *bytes > PLAIN_PAYLOAD),
        };
        let config = host::Config {
            service: question.service.clone(),
            max_payload: self.max_payload,
            ..host::Config::default()
        };
        config.check().map_err(|error| anyhow!("--service: {error}"))?;
        let time = Duration::from_secs(self.seconds);
        let probe = probe::run(&parent, vlans, question, time, &mut random)?;
        let report = Report::new(&self, &parent, vlans, &probe);
        out.show(self.json, &report, |out, report| report.print(out))?;
        Ok(if report.is_answered() { Outcome::Success } else { Outcome::Negative })
    }

    fn vlans(&self) -> anyhow::Result<Vlans> {
        let encapsulation = self.stack.tags()?;
        Vlans::of(encapsulation.tags().iter().copied())
            .ok_or_else(|| anyhow!("{encapsulation}: {} VLAN tags are the most", Vlans::MOST))
    }
}

//! `rxlane fastpath`: forwarding of established connections in XDP: check, up, status, flows, flush, down.

mod check;
mod flows;
mod status;
mod up;

use crate::arguments::StateArguments;
use crate::arguments::numbers::bit_rate;
use crate::output::{BAD, BOLD, CommandResult, GOOD, Outcome, Output, POOR, complain};
use crate::physical;
use anyhow::bail;
use clap::builder::NonEmptyStringValueParser;
use fastpath::status::Status;
use fastpath::{NAME, Request};
use format::plural;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use service::Kind;
use service::control::ControlError;
use std::collections::BTreeSet;
use std::io::{self, Write};

#[derive(clap::Args)]
pub struct FastpathArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say whether these ports can have a fast path, and what it would send past.
    Check(check::CheckArguments),
    /// Put the fast path on ports, and stay until it is ended; with --daemon in the background.
    Up(Box<up::UpArguments>),
    /// Show what is forwarded fast, and why the rest is not.
    Status(status::StatusArguments),
    /// List the connections that are in it.
    Flows(flows::FlowsArguments),
    /// Remove all connections from it; those that are established come back at once, resolved anew.
    Flush(FlushArguments),
    /// Take it off.
    Down(DownArguments),
}

impl FastpathArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Check(arguments) => arguments.run(out),
            Command::Up(arguments) => arguments.run(out),
            Command::Status(arguments) => arguments.run(out),
            Command::Flows(arguments) => arguments.run(out),
            Command::Flush(arguments) => arguments.run(out),
            Command::Down(arguments) => arguments.run(out),
        }
    }
}

/// What the fast path is put on: the same for `up` and `check`.
#[derive(clap::Args)]
#[group(skip)]
struct PortArguments {
    /// The interfaces between which packets are forwarded: NICs or veth, or what stands on them (ppp0, a VLAN device, a bridge).
    #[arg(value_name = "PORT", required = true, value_parser = NonEmptyStringValueParser::new())]
    ports: Vec<String>,
    /// Let the kernel run the program for each socket buffer, where a driver has no XDP: slower than without in most cases.
    #[arg(long)]
    generic: bool,
    /// As many connections as may be in it.
    #[arg(long, value_name = "N", default_value_t = 262_144, value_parser = clap::value_parser!(u32).range(1..=4_194_304))]
    flows: u32,
    /// Send no more than this towards the default route, bits a second (900M); what exceeds it is dropped.
    #[arg(long, value_name = "RATE", value_parser = bit_rate)]
    limit_upload: Option<u64>,
    /// The same for what comes from there.
    #[arg(long, value_name = "RATE", value_parser = bit_rate)]
    limit_download: Option<u64>,
    /// Send past shapers (CAKE, HTB) that stand on these interfaces.
    #[arg(long)]
    bypass_qdisc: bool,
    /// Have NICs leave VLAN tags in frames as long as the fast path is up, where they take them off.
    #[arg(long)]
    disable_rxvlan: bool,
}

impl PortArguments {
    /// The request, with what the named interfaces stand on.
    fn request(&self, state: &StateArguments) -> anyhow::Result<Request> {
        let mut ports = BTreeSet::new();
        for name in &self.ports {
            let below = physical::physical(name, &state.folder());
            if below.is_empty() {
                bail!(
                    "there is no interface `{}` in this network namespace: `ip link` names those that are there",
                    format::printable(name)
                );
            }
            ports.extend(below);
        }
        Ok(Request {
            ports: ports.into_iter().collect(),
            generic: self.generic,
            flows: self.flows as usize,
            limits: (self.limit_upload, self.limit_download),
            bypass_qdisc: self.bypass_qdisc,
            disable_rxvlan: self.disable_rxvlan,
        })
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 it was up, 1 there is none, or its process was killed or does not answer, 3 it requires root.")]
struct FlushArguments {
    /// Print JSON (schema rxlane.fastpath-flush/1).
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// How many flows were removed.
#[derive(Deserialize)]
struct Flushed {
    flows: u64,
}

impl FlushArguments {
    fn run(self, out: &mut Output) -> CommandResult {
        let flushed: Flushed = ask(&self.state, "flush")?;
        if self.json {
            out.json_of("rxlane.fastpath-flush/1", &serde_json::json!({"flows": flushed.flows}))?;
        } else {
            writeln!(
                out,
                "{} removed; what is established is resolved anew.",
                plural(flushed.flows, "connection")
            )?;
        }
        Ok(Outcome::Success)
    }
}

#[derive(clap::Args)]
#[command(after_help = "\
Waits until the program is off all ports; the kernel forwards from then on. Exit codes: 0 it is, 1 there was none, or its process was \
killed before (the program went with it, and changed settings are restored), or does not answer, or a setting is not restored, 3 it requires \
root.")]
struct DownArguments {
    /// Print JSON (schema rxlane.fastpath-down/1): the fast path as it was at its end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl DownArguments {
    fn run(self, out: &mut Output) -> CommandResult {
        let ended = self.state.instances(Kind::Fastpath)?.end_with_result::<Status, Vec<String>>(NAME);
        let (last, left) = match ended {
            Ok((last, left)) => (last, left.unwrap_or_default()),
            Err(error) => {
                not_restored(&fastpath::recover(&self.state.folder())?);
                return Err(error.into());
            }
        };
        if self.json {
            out.json(&status::Ended::new(&last, &left))?;
        } else {
            writeln!(out, "The fast path is off.")?;
            status::counted(out, &last)?;
        }
        not_restored(&left);
        Ok(if left.is_empty() { Outcome::Success } else { Outcome::Negative })
    }
}

/// What the process answers. What one that was killed has changed is restored.
fn ask<T: DeserializeOwned>(state: &StateArguments, question: &str) -> anyhow::Result<T> {
    let answer = state.instances(Kind::Fastpath)?.ask(NAME, question);
    if matches!(answer, Err(ControlError::Killed { .. })) {
        not_restored(&fastpath::recover(&state.folder())?);
    }
    Ok(answer?)
}

/// Says which settings are not what they were, and what restores them.
fn not_restored(left: &[String]) {
    left.iter().for_each(|text| complain(&format!("a setting is not restored: {text}")));
}

/// A line of a name and a text that is broken behind it.
fn item(out: &mut Output, name: &str, text: &str) -> io::Result<()> {
    out.item(11, name, text)
}

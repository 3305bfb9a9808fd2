//! `rxlane bench pps`: in namespaces, or on a physical NIC.

use super::{Common, OnNic, failed};
use crate::arguments::StateArguments;
use crate::bench_command::send::address;
use crate::output::{CommandResult, Outcome, Output};
use bench::scenario::pps::interface::PpsInterface;
use bench::scenario::pps::{Pps, undo};
use bench::udp::PORT;
use clap::builder::NonEmptyStringValueParser;
use format::printable;
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo rxlane bench pps
  sudo rxlane bench pps --level gro=off --level queues=1 --payload 32
  sudo rxlane bench pps --json > pps.json

  other-host$ rxlane bench send 192.0.2.1 --remote
  sudo rxlane bench pps --interface enp1s0 --from 192.0.2.2
  sudo rxlane bench pps --interface enp1s0 --from 192.0.2.2 --factor usecs,senders --factor ring

Without --interface everything happens in network namespaces of its own, which requires root; ethtool does a part of the work. With it, \
settings of the NIC are changed for one cell at a time and restored; on some NICs that resets the link, so that connections over it \
stand still for seconds. SIGINT (^C), SIGTERM and SIGHUP end it with what was measured so far; what a killed run changed is restored by \
a second process, and where that was killed, too, by the next run, or by --undo, but for CPUs of vectors, RPS and XPS that a \
driver forgot with a new number of queues.
Factors: senders (1, 2, 4), receivers (1, 2), queues (1, 2), gro (off, on). With --interface: senders (with --from), receivers, queues \
(as-found, 1, 2, 4), usecs (as-found, 0, 3, 10, 50, 100), ring (as-found, 256, 4096), hash (as-found, sd, sdfn), table (as-found, one, \
equal, blocks); senders, receivers and queues are crossed, and hash with table.
Exit codes: 0 every cell was measured in every round, 1 some were not, 2 wrong usage, 3 a privilege, a program, the other host or a kernel feature is \
missing.")]
pub struct PpsArguments {
    /// Bytes of payload of each datagram
    #[arg(long, value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u16).range(4..=1472))]
    payload: u16,

    /// Flows
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(4..=10000))]
    flows: u16,

    /// Measure what another host sends to this interface, by its settings
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    interface: Option<String>,

    /// The other host, where `rxlane bench send THIS-HOST --remote` runs; without it, whatever comes to UDP port 7184 is
    /// measured
    #[arg(long, value_name = "ADDRESS", requires = "interface")]
    from: Option<String>,

    /// Vary these factors, each with each, and nothing else; once for each group
    #[arg(long, alias = "vary", value_name = "FACTOR[,FACTOR]", requires = "interface", value_parser = group)]
    factor: Vec<Group>,

    /// Restore what a killed run changed, and measure nothing
    #[arg(long, conflicts_with_all = ["interface", "Common"])]
    undo: bool,

    /// With --undo: restore also what somebody else has changed since
    #[arg(long, requires = "undo")]
    force: bool,

    #[command(flatten)]
    state: StateArguments,

    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Debug)]
struct Group(Vec<String>);

fn group(text: &str) -> Result<Group, String> {
    let factors: Vec<String> = text.split(',').map(str::to_owned).collect();
    if factors.iter().any(String::is_empty) {
        return Err(format!("`{text}` is not FACTOR[,FACTOR], such as usecs,senders"));
    }
    Ok(Group(factors))
}

impl PpsArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let journal = self.state.folder().path().to_owned();
        if self.undo {
            return restore(out, &journal, self.force);
        }
        let Some(interface) = self.interface else {
            return self.common.run(out, &mut Pps { payload: self.payload, flows: self.flows }, None);
        };
        let from = self.from.as_deref().map(address).transpose()?;
        let mut scenario = PpsInterface::new(interface, from, self.payload, self.flows);
        scenario.vary = self.factor.into_iter().map(|Group(factors)| factors).collect();
        scenario.journal.clone_from(&journal);
        let prompt = scenario.from.is_none().then(|| {
            format!(
                "measuring what arrives at UDP port {PORT} of {}: on other hosts, `rxlane bench send ADDRESS-OF-THIS-HOST --rate max \
                 --seconds 3600` until this ends",
                scenario.interface
            )
        });
        self.common.run(out, &mut scenario, Some(OnNic { journal: &journal, prompt }))
    }
}

/// How long a program that a killed run had started may have the journal.
const PATIENCE: Duration = Duration::from_secs(10);

/// Restores what a killed run left, but for what somebody else has changed since, and says nothing. Whoever has the journal for
/// longer is the next run, which restores it itself.
pub fn restore_quietly(journal: &Path) {
    let start = Instant::now();
    while journal.exists() && undo(journal, false).is_err() && start.elapsed() < PATIENCE {
        sleep(Duration::from_millis(100));
    }
}

/// Restores what a killed run left. Exit 1 where something is not restored.
fn restore(out: &mut Output, journal: &Path, force: bool) -> CommandResult {
    let undone = if journal.exists() { undo(journal, force) } else { Ok(Vec::new()) };
    let undone = match undone {
        Ok(undone) => undone,
        Err(error) => return failed(error, "pps --undo"),
    };
    if undone.is_empty() {
        writeln!(out, "Nothing to restore.")?;
    }
    for one in &undone {
        writeln!(out, "{}", printable(&one.to_string()))?;
    }
    let is_kept = undone.iter().any(|one| one.outcome.is_kept());
    Ok(if is_kept { Outcome::Negative } else { Outcome::Success })
}

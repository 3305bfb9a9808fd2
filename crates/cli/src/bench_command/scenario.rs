//! `rxlane bench vlan`, `steer` and others: whole measurements in network namespaces, `pps` also between two hosts.

mod cleanup;
mod figures;
mod forward;
mod page;
mod pps;
mod text;

use super::prose;
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use crate::output_file::OutputFile;
use anyhow::{Context, anyhow, bail};
use bench::scenario::report::Report;
use bench::scenario::rounds::{self, Selection, Step};
use bench::scenario::{Error, Scenario, Tools};
use format::{printable, quoted};
use service::memory;
use service::signals::is_ignored;
use signal_hook::consts::SIGHUP;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use cleanup::{COMMAND as CLEAN_UP, CleanupArguments};
pub use figures::Scale;
pub use forward::ForwardArguments;
pub use pps::PpsArguments;

#[derive(clap::Args)]
pub struct Common {
    /// Rounds; in each every cell is measured once
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,

    /// How long each measurement takes
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value = "1", value_parser = crate::arguments::seconds(0.001, 3.2e8))]
    seconds: Duration,

    /// Only these levels of a factor, as the table names them; once for each factor
    #[arg(long, alias = "only", value_name = "FACTOR=LEVEL[,LEVEL]", value_parser = levels)]
    level: Vec<FactorLevels>,

    /// Write a page, too; `-` writes it, and only it, to standard output
    #[arg(long, alias = "page", value_name = "FILE")]
    html: Option<PathBuf>,

    /// Print JSON (schema rxlane.bench-scenario/1), which `rxlane bench compare` reads
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FactorLevels(String, Vec<String>);

fn levels(text: &str) -> Result<FactorLevels, String> {
    let wrong = || format!("`{text}` is not FACTOR=LEVEL[,LEVEL], such as offloads=on");
    let (factor, levels) = text.split_once('=').ok_or_else(wrong)?;
    let levels: Vec<String> = levels.split(',').map(str::to_owned).collect();
    if factor.is_empty() || levels.iter().any(String::is_empty) {
        return Err(wrong());
    }
    Ok(FactorLevels(factor.to_owned(), levels))
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo rxlane bench vlan
  sudo rxlane bench vlan --level tags=none,ad+q --level offloads=on --level rps=off --rounds 9
  sudo rxlane bench vlan --json > vlan.json
  sudo rxlane bench vlan --html vlan.html

Everything happens in network namespaces of its own, which requires root; iperf3 and ethtool do a part of the work. SIGINT (^C), SIGTERM and \
SIGHUP end it with what was measured so far.
Factors: tags (none, q, ad+q, q+q), by (nobody, rxlane, 8021q), offloads (on, off), rps (off, on).
Exit codes: 0 every cell was measured in every round, 1 some were not, 2 wrong usage, 3 a privilege, a program or a kernel feature is missing.")]
pub struct VlanArguments {
    #[command(flatten)]
    pub common: Common,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo rxlane bench steer
  sudo rxlane bench steer --level way=off,xdp --rounds 9 --seconds 2
  sudo rxlane bench steer --json > steer.json

Everything happens in network namespaces of its own, which requires root. SIGINT (^C), SIGTERM and SIGHUP end it with what was \
measured so far.
Factors: frames (pppoe, plain), way (off, rps, rps-all, xdp).
Exit codes: 0 every cell was measured in every round, 1 some were not, 2 wrong usage, 3 a privilege, a program or a kernel feature is missing.")]
pub struct SteerArguments {
    /// Flows on the line
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u16).range(1..=60000))]
    pub flows: u16,

    #[command(flatten)]
    pub common: Common,
}

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  sudo rxlane bench pppoe
  sudo rxlane bench pppoe --level path=bare-off,batch --rounds 9
  sudo rxlane bench pppoe --html pppoe.html

Everything happens in network namespaces of its own, which requires root; iperf3, ping and ethtool do a part of the work, pppd and \
pppoe where they are. SIGINT (^C), SIGTERM and SIGHUP end it with what was measured so far.
Factor: path (bare-off, bare, simple, batch, kernel, user), the last two with pppd, the last behind rp-pppoe's program.
Exit codes: 0 every cell was measured in every round, 1 some were not, 2 wrong usage, 3 a privilege, a program or a kernel feature is missing.")]
pub struct PppoeArguments {
    #[command(flatten)]
    pub common: Common,
}

/// What a scenario with a physical NIC needs besides.
pub struct OnNic<'a> {
    /// Where it records what it changes of this machine.
    journal: &'a Path,
    /// What the user has to do meanwhile.
    prompt: Option<String>,
}

impl Common {
    pub fn run(self, out: &mut Output, scenario: &mut dyn Scenario, nic: Option<OnNic<'_>>) -> CommandResult {
        let to_stdout = self.html.as_deref() == Some(Path::new("-"));
        if to_stdout && self.json {
            bail!("--html - and --json both want standard output; name a file for the page");
        }
        let page_file = match &self.html {
            Some(path) if path.is_dir() => {
                bail!("--html {} is a directory; name a file in it", path.display())
            }
            Some(path) if !to_stdout => Some(OutputFile::create("--html", path, &[])?),
            _ => None,
        };
        // A thread that finds no memory ends the process.
        memory::expect(memory::BEGINNING).map_err(|_| {
            let mebibytes = memory::BEGINNING >> 20;
            Lacks(format!("a scenario needs {mebibytes} MiB of memory, which this process may not have: `ulimit -v unlimited`"))
        })?;
        let stop = stop_by_signals()?;
        let rxlane = std::env::current_exe().context("this program's own file")?;
        let name = scenario.design().name;
        let _cleanup = match cleanup::Process::start(&rxlane, nic.as_ref().map(|nic| nic.journal)) {
            Ok(process) => process,
            Err(error) => return failed(error.into(), name),
        };
        let tools = Tools { rxlane, seconds: self.seconds, stop: &stop };
        let only = self.level.into_iter().map(|FactorLevels(factor, levels)| (factor, levels)).collect();
        let selection = Selection { rounds: self.rounds, only };
        let mut prompt = nic.and_then(|nic| nic.prompt);
        let mut progress = crate::progress::Progress::new();
        let report = rounds::run(scenario, &selection, &tools, &mut |step| {
            prompt.take().inspect(|prompt| complain(prompt));
            progress.show(&stage(step));
        });
        drop(progress);
        // What was removed of others, and a program of its own that was killed, may have left some.
        cleanup::clear_programs();
        let report = match report {
            Ok(outcome) => prose::report(outcome),
            Err(error) => return failed(error, name),
        };
        if to_stdout || self.json {
            // Whoever keeps them in a file sees them before, too.
            report.warnings.iter().for_each(|warning| complain(&format!("warning: {}", printable(warning))));
        }
        if to_stdout {
            out.write_all(page::render(&report).as_bytes())?;
        } else if self.json {
            out.json(&report)?;
        } else {
            text::print(out, &report)?;
        }
        out.flush()?;
        // Behind the figures, which are not lost with it.
        if let Some(file) = page_file {
            file.write(&page::render(&report))?;
            if let Some(path) = self.html.as_ref().filter(|_| !self.json) {
                writeln!(out, "\nThe page is in {}.", printable(&path.display().to_string()))?;
                out.flush()?;
            }
        }
        Ok(outcome(&report))
    }
}

/// How far a scenario has come.
fn stage(step: &Step<'_>) -> String {
    let left = step.left.map(|left| format!(", {} left", format::duration(left.as_secs_f64().round())));
    let (done, all, left) = (step.done, step.all, left.unwrap_or_default());
    format!("{done} of {all} · round {}{left} · {}", step.round, step.cell)
}

fn outcome(report: &Report) -> Outcome {
    let is_whole = report.cells.iter().all(|cell| !cell.figures.is_empty() && cell.failures.is_empty());
    if is_whole && report.complete { Outcome::Success } else { Outcome::Negative }
}

fn failed(error: Error, name: &str) -> CommandResult {
    match error {
        Error::Interrupted => {
            complain("interrupted before anything was measured; nothing is left behind");
            Ok(Outcome::Negative)
        }
        Error::Lacks(what) if !rustix::process::geteuid().is_root() => {
            Err(Lacks(format!("{what}: {}", with_sudo(name))).into())
        }
        Error::Lacks(what) => Err(Lacks(what).into()),
        Error::Wrong(what) => Err(anyhow!(what)),
        Error::Failed(why) | Error::Refused { why, .. } => {
            complain(&format!("nothing could be measured: {why}"));
            Ok(Outcome::Negative)
        }
    }
}

fn with_sudo(name: &str) -> String {
    let typed = std::env::args_os().skip(1).map(|word| printable(&quoted(&word.to_string_lossy())));
    let typed: Vec<String> = typed.collect();
    let is_whole = typed.starts_with(&["bench", name.split(' ').next().unwrap_or(name)].map(str::to_owned));
    if is_whole { format!("sudo rxlane {}", typed.join(" ")) } else { format!("sudo rxlane bench {name}") }
}

/// Set when a signal asks for the end; that of a terminal that was closed included, since namespaces must not stay.
fn stop_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = super::stop_by_signals()?;
    // nohup(1) wants a process to outlive its terminal.
    if !is_ignored(SIGHUP) {
        signal_hook::flag::register(SIGHUP, Arc::clone(&stop)).context("SIGHUP")?;
    }
    Ok(stop)
}

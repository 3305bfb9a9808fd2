//! `rxlane doctor`: what is wrong with this machine's receive path, or with the one that a text came from.

#[cfg(target_os = "linux")]
mod apply;
mod fix;
#[cfg(target_os = "linux")]
pub mod live;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub mod live;
pub mod page;
#[cfg(target_os = "linux")]
mod pasted;
#[cfg(target_os = "linux")]
mod persist;
mod remedies;
pub mod source;
pub mod text;
mod trace;

#[cfg(target_os = "linux")]
use crate::arguments::StateArguments;
use crate::arguments::seconds;
use crate::output::{CommandResult, Lacks, Outcome, Output, complain};
use crate::output_file::OutputFile;
use crate::render::prose::{Worded, worded};
use anyhow::{anyhow, bail};
use doctor::report::Verdict;
use doctor::{Case, RULES, Rule};
use format::printable;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
#[command(
    override_usage = "rxlane doctor [INTERFACE] [OPTIONS]",
    after_help = "Exit codes: 0 nothing that limits was found, 1 something was, a capture is damaged, or a setting is refused, 2 wrong usage or input, 3 it requires \
    root or another kernel.\n\n\
    Examples:\n  \
    rxlane doctor\n  \
    rxlane doctor enp1s0 --sample --seconds 10\n  \
    rxlane doctor --trace --seconds 10\n  \
    rxlane doctor enp1s0 --apply --persist\n  \
    rxlane doctor --from paste.txt --traffic line.pcap --html line.html\n  \
    ssh router 'sh -s' < collector.sh | rxlane doctor --from -    (collector.sh: rxlane collect --script)\n  \
    rxlane doctor --explain pppoe-unhashed"
)]
pub struct DoctorArguments {
    /// Judge this interface, the device below it and what stands on that device [default: all].
    #[arg(value_name = "INTERFACE")]
    interface: Option<String>,
    /// Read this instead of the machine: pasted outputs of ethtool, /proc/interrupts, netstat and many others, or a
    /// bundle of `rxlane collect`; `-` is standard input. The same counters in a second file are a second sample.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    from: Vec<PathBuf>,
    /// Captures of the traffic (pcap or pcapng): what spreads, and what a remedy would bring.
    #[arg(long, value_name = "CAPTURE", num_args = 1..)]
    traffic: Vec<PathBuf>,
    /// Sample the traffic of INTERFACE while counters are read (needs root).
    #[arg(long, requires = "interface", conflicts_with_all = ["from", "traffic"])]
    sample: bool,
    /// Count dropped packets by the kernel's reason, and sample in which functions CPU time goes, while counters are read
    /// (needs root).
    #[arg(long, conflicts_with_all = ["from", "apply"])]
    trace: bool,
    /// Time between the two samples of counters, seconds.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value = "3", value_parser = seconds(0.1, 3600.0), conflicts_with = "from")]
    seconds: std::time::Duration,
    /// Print every finding with all evidence and remedies, and the tables of queues, interrupts and CPUs.
    #[arg(long, short)]
    verbose: bool,
    /// Print JSON (schema rxlane.doctor/1).
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
    /// Write a page, too; `-` writes it, and only it, to standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Explain a finding: what it means, how it shows, how to fix it, what that costs. Without an id, list all.
    #[arg(long, alias = "why", value_name = "ID", num_args = 0..=1, default_missing_value = "",
          conflicts_with_all = ["interface", "from", "traffic", "json", "html", "apply", "undo"])]
    explain: Option<String>,
    /// Run the commands of these findings, after showing them and asking; without an id, of all but remarks.
    #[arg(long, value_name = "ID", num_args = 0.., value_delimiter = ',',
          conflicts_with_all = ["from", "json", "html", "undo"])]
    apply: Option<Vec<String>>,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
    /// Write what helped as the configuration of this machine (udev, systemd, NetworkManager, sysctl.d), so that the next boot
    /// makes it again. The machine is read once more after --apply, and findings that are still there are left out. The files are shown before.
    #[arg(long, conflicts_with_all = ["json", "html", "undo"])]
    persist: bool,
    /// With --apply: show the commands, and with --persist the files, and change nothing. With --undo: show what it would
    /// restore and remove, and change nothing. With --from: the files for that system.
    #[arg(long, conflicts_with_all = ["json", "html"])]
    dry_run: bool,
    /// Restore what --apply changed, and remove what --persist wrote.
    #[arg(long, conflicts_with_all = ["interface", "from", "traffic", "json", "html"])]
    undo: bool,
    /// With --undo: restore also what somebody else has changed since.
    #[arg(long, requires = "undo")]
    force: bool,
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    state: StateArguments,
}

impl DoctorArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if let Some(id) = &self.explain {
            return explain(out, id);
        }
        #[cfg(not(target_os = "linux"))]
        if self.undo || self.persist || self.apply.is_some() {
            return Err(lacks("settings can be changed and made persistent on Linux only"));
        }
        #[cfg(target_os = "linux")]
        if self.undo {
            let options = apply::Undoing { force: self.force, dry_run: self.dry_run };
            return apply::undo(out, &options, &self.state.folder());
        }
        self.check_persist()?;
        // Before samples are taken.
        self.apply.iter().flatten().try_for_each(|id| rule(id).map(drop))?;
        let page_file = match &self.html {
            Some(path) if path != Path::new("-") => {
                Some(OutputFile::create("--html", path, &[self.from.as_slice(), &self.traffic].concat())?)
            }
            _ => None,
        };
        let material = source::read(&self)?;
        let case = Case::new(&material.snapshot, material.traffic.as_ref(), self.interface.as_deref())?;
        self.check(&case)?;
        let mut report = doctor::diagnose(&case);
        report.trace = material.trace;
        let report = worded(&report, self.from.is_empty());
        #[cfg(target_os = "linux")]
        if let Some(ids) = &self.apply {
            let options = apply::Options {
                state: self.state.folder(),
                yes: self.yes,
                dry_run: self.dry_run,
                persist: self.persist,
            };
            return apply::apply(out, &report, ids, &options, &|| self.again());
        }
        #[cfg(target_os = "linux")]
        if self.persist {
            return pasted::print(out, &report, &material.snapshot);
        }
        if let Some(file) = page_file {
            file.write(&page::render(&report))?;
        }
        self.print(out, &report)?;
        out.flush()?;
        // The sample is whole as far as the captures are; a script has to learn that they are not.
        for problem in report.traffic.iter().flat_map(|row| &row.problems).collect::<BTreeSet<_>>() {
            complain(problem);
        }
        let is_damaged = report.traffic.iter().any(|row| row.damaged);
        let is_negative = report.verdict == Verdict::Limited || is_damaged;
        Ok(if is_negative { Outcome::Negative } else { Outcome::Success })
    }

    fn check_persist(&self) -> anyhow::Result<()> {
        match (&self.apply, self.from.is_empty(), self.persist, self.dry_run) {
            (_, false, true, false) => {
                bail!("--persist with --from writes nothing: add --dry-run, which prints the files")
            }
            (None, true, true, _) => bail!("--persist writes what helped: it goes with --apply"),
            (None, _, false, true) => {
                bail!("--dry-run goes with --apply or --undo, or with --from and --persist")
            }
            _ => Ok(()),
        }
    }

    /// The diagnosis once more, after settings were changed.
    #[cfg(target_os = "linux")]
    fn again(&self) -> anyhow::Result<persist::After> {
        let material = source::read(self)?;
        let case = Case::new(&material.snapshot, material.traffic.as_ref(), self.interface.as_deref())?;
        Ok(persist::After::of(&doctor::diagnose(&case)))
    }

    fn print(&self, out: &mut Output, report: &Worded<'_>) -> anyhow::Result<()> {
        if self.html.as_deref() == Some(Path::new("-")) {
            out.write_all(page::render(report).as_bytes())?;
        } else if self.json {
            out.json(report)?;
        } else {
            let print = if self.verbose { text::print } else { text::summary };
            print(out, report)?;
            if let Some(trace) = &report.trace {
                trace::print(out, trace, text::width(out), self.verbose)?;
            }
            if let Some(path) = &self.html {
                writeln!(out, "\nThe page is in {}.", printable(&path.display().to_string()))?;
            }
        }
        Ok(())
    }

    fn check(&self, case: &Case<'_>) -> anyhow::Result<()> {
        let snapshot = case.snapshot();
        let Some(requested) =
            self.interface.as_deref().filter(|requested| snapshot.interface(requested).is_none())
        else {
            return Ok(());
        };
        let known: Vec<&str> =
            snapshot.interfaces.iter().map(|i| i.name.as_str()).filter(|name| !name.is_empty()).collect();
        if known.is_empty() {
            bail!(
                "`{requested}`: the text names no interface at all; leave the name out to judge what is there"
            );
        }
        bail!("`{requested}`: no such interface in the text; it names {}", printable(&known.join(", ")))
    }
}

/// The rule with this id.
fn rule(id: &str) -> anyhow::Result<&'static Rule> {
    doctor::rules::by_id(id).ok_or_else(|| {
        let near = RULES.iter().map(|rule| rule.id).filter(|known| known.contains(id) || id.contains(known));
        match near.collect::<Vec<_>>().as_slice() {
            [] => anyhow!("`{id}` is no finding; `rxlane doctor --explain` lists them"),
            near => anyhow!("`{id}` is no finding; did you mean {}?", near.join(" or ")),
        }
    })
}

/// The page of a finding, or the list of all.
fn explain(out: &mut Output, id: &str) -> CommandResult {
    if id.is_empty() {
        let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or(0);
        for rule in RULES {
            out.item(width + 1, rule.id, rule.title())?;
        }
        return Ok(Outcome::Success);
    }
    for line in rule(id)?.page.lines() {
        if line.starts_with('#') {
            out.heading(line.trim_start_matches(['#', ' ']))?;
        } else {
            out.paragraph("", line)?;
        }
    }
    Ok(Outcome::Success)
}

fn lacks(error: impl std::fmt::Display) -> anyhow::Error {
    Lacks(error.to_string()).into()
}

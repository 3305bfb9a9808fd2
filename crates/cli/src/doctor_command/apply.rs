//! `--apply` and `--undo`: runs remedies, with the former values in the journal, and puts them back.

use super::lacks;
use crate::explain_command::text::printable;
use crate::output::{CommandResult, Outcome, Output};
use anyhow::{anyhow, bail};
use doctor::Report;
use doctor::report::{Certainty, Finding, Severity};
use host::journal::{Applied, Error, Journal};
use host::setting::{Setting, Tree};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// The name under which changes stand in the journal.
const BY: &str = "doctor --apply";

/// Where the journal is, and whether to ask.
pub struct Manner {
    /// A folder other than [`Journal::DIRECTORY`], for tests.
    pub journal: Option<PathBuf>,
    /// Whether to go on without asking.
    pub yes: bool,
}

/// What is going to be done.
struct Plan {
    /// Settings, in order, each once.
    settings: Vec<Setting>,
    /// Commands that are no setting which could be restored.
    left: Vec<String>,
}

/// Runs the first Linux remedy of the chosen findings.
pub fn apply(out: &mut Output, report: &Report, ids: &[String], manner: &Manner) -> CommandResult {
    let findings = chosen(report, ids)?;
    let plan = plan(out, &findings)?;
    for command in &plan.left {
        writeln!(out, "Not run, for it could not be undone: {}", printable(command))?;
    }
    if plan.settings.is_empty() {
        writeln!(out, "Nothing to apply.")?;
        return Ok(Outcome::Success);
    }
    if !manner.yes && !confirmed(out, plan.settings.len())? {
        writeln!(out, "Nothing was changed.")?;
        return Ok(Outcome::Success);
    }
    let mut journal = open(manner.journal.as_deref())?;
    for setting in &plan.settings {
        match journal.apply(setting, BY) {
            Ok(Applied::Already) => writeln!(out, "already so: {setting}")?,
            Ok(Applied::Changed { former, .. }) => writeln!(out, "done: {setting}    (before: {former})")?,
            Err(error) => {
                out.flush()?;
                return Err(failed(error).context(format!(
                    "{setting}: not done, and nothing after it; `rxlane doctor --undo` restores what was done"
                )));
            }
        }
    }
    writeln!(out, "`rxlane doctor --undo` restores the former values.")?;
    Ok(Outcome::Success)
}

/// Findings of these ids; without an id, all that are certain and more than remarks.
fn chosen<'r>(report: &'r Report, ids: &[String]) -> anyhow::Result<Vec<&'r Finding>> {
    for id in ids {
        if doctor::rules::by_id(id).is_none() {
            bail!("`{id}` is no finding; `rxlane doctor --why` lists them");
        }
        if !report.findings.iter().any(|finding| finding.id == id) {
            bail!("`{id}` was not found on this machine, so there is nothing to apply for it");
        }
    }
    let by_itself =
        |finding: &Finding| finding.severity != Severity::Info && finding.certainty == Certainty::Certain;
    let is_chosen = |finding: &&Finding| {
        if ids.is_empty() { by_itself(finding) } else { ids.iter().any(|id| id == finding.id) }
    };
    Ok(report.findings.iter().filter(is_chosen).collect())
}

/// Shows what the chosen findings want done.
fn plan(out: &mut Output, findings: &[&Finding]) -> anyhow::Result<Plan> {
    let mut plan = Plan { settings: Vec::new(), left: Vec::new() };
    for finding in findings {
        let Some(remedy) = finding.remedies.iter().find(|remedy| remedy.os == "linux") else { continue };
        writeln!(out, "{}: {}", finding.id, printable(&remedy.what))?;
        for command in &remedy.commands {
            match command.parse::<Setting>() {
                Ok(setting) => {
                    writeln!(out, "    {setting}")?;
                    if !plan.settings.contains(&setting) {
                        plan.settings.push(setting);
                    }
                }
                Err(_) => plan.left.push(command.clone()),
            }
        }
        for other in finding.remedies.iter().filter(|other| other.os == "linux" && *other != remedy) {
            writeln!(out, "    (another way, not taken: {})", printable(&other.what))?;
        }
    }
    Ok(plan)
}

fn confirmed(out: &mut Output, commands: usize) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("there is no terminal to ask on; --yes applies these {commands} commands without asking");
    }
    write!(out, "Run {commands} commands? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Restores what was changed. Exit 1 where something is not restored.
pub fn undo(out: &mut Output, force: bool, journal: Option<&Path>) -> CommandResult {
    if !journal.unwrap_or(Path::new(Journal::DIRECTORY)).exists() {
        writeln!(out, "Nothing to restore.")?;
        return Ok(Outcome::Success);
    }
    let mut journal = open(journal)?;
    for note in journal.notes() {
        writeln!(out, "{note}")?;
    }
    let undone = journal.undo(force).map_err(failed)?;
    if undone.is_empty() {
        writeln!(out, "Nothing to restore.")?;
    }
    for one in &undone {
        writeln!(out, "{}", printable(&one.to_string()))?;
    }
    let kept = undone.iter().filter(|one| one.outcome.is_kept()).count();
    if kept > 0 {
        writeln!(
            out,
            "{kept} of {} are not restored; --force overwrites what somebody else changed.",
            undone.len()
        )?;
        return Ok(Outcome::Negative);
    }
    Ok(Outcome::Success)
}

fn open(directory: Option<&Path>) -> anyhow::Result<Journal> {
    let directory = directory.unwrap_or(Path::new(Journal::DIRECTORY));
    Journal::open(directory, &Tree::live()).map_err(failed)
}

/// A failure for want of a privilege or a program is the environment's, exit 3.
fn failed(error: Error) -> anyhow::Error {
    use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
    let (is_busy, error) = (matches!(error, Error::Busy { .. }), anyhow!(error));
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match kind {
        Some(PermissionDenied) => {
            lacks(format!("{error:#}; changing settings takes root (sudo rxlane doctor …)"))
        }
        Some(NotFound | ReadOnlyFilesystem) => lacks(format!("{error:#}")),
        _ if is_busy => lacks(format!("{error:#}")),
        _ => error,
    }
}

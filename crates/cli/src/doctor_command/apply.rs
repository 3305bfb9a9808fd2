//! `--apply` and `--undo`: runs remedies, with the former values in the journal, and restores them.

use super::lacks;
use super::persist::{self, After, Applied as AppliedFinding};
use crate::output::{CommandResult, Outcome, Output};
use crate::privilege::is_root;
use crate::render::prose::{Worded, WordedFinding, WordedRemedy};
use anyhow::{anyhow, bail};
use doctor::finding::{Certainty, Severity};
use format::printable;
use host::setting::{Setting, Tree};
use service::StateDir;
use service::journal::{self, Applied, Error, Journal, Undone};
use std::io::{self, BufRead, IsTerminal, Write};

/// The name under which changes stand in the journal.
const BY: &str = "doctor --apply";

pub struct Options {
    pub state: StateDir,
    pub yes: bool,
    pub dry_run: bool,
    pub persist: bool,
}

struct Plan<'r> {
    /// Settings, in order, each once.
    settings: Vec<Setting>,
    /// Commands that are no setting which could be restored.
    left: Vec<String>,
    /// What is applied for each finding.
    findings: Vec<AppliedFinding<'r>>,
}

/// Runs the first Linux remedy of the chosen findings. `again` is the diagnosis after that.
pub fn apply(
    out: &mut Output,
    report: &Worded<'_>,
    ids: &[String],
    options: &Options,
    again: &dyn Fn() -> anyhow::Result<After>,
) -> CommandResult {
    let findings = chosen(report, ids)?;
    let plan = plan(out, &findings)?;
    let remarks: Vec<&str> = report
        .findings
        .iter()
        .filter(|finding| !findings.contains(finding) && finding.remedies.iter().any(is_applicable))
        .map(|finding| finding.id)
        .collect();
    if ids.is_empty() && !remarks.is_empty() {
        writeln!(
            out,
            "Remarks and possible findings are not applied; to apply one: --apply {}",
            remarks.join(",")
        )?;
    }
    for command in &plan.left {
        writeln!(out, "Not run, for it could not be undone: {}", printable(command))?;
    }
    let interfaces = persist::interfaces(report);
    let earlier = if options.persist { earlier(&options.state, &plan.settings)? } else { Vec::new() };
    if plan.settings.is_empty() && earlier.is_empty() {
        writeln!(out, "Nothing to apply.")?;
        return Ok(Outcome::Success);
    }
    let mut files = 0;
    if options.persist {
        match persist::prepare(&[&earlier[..], &plan.settings].concat(), &interfaces) {
            Err(end) => return end,
            Ok(prepared) => {
                prepared.print(out)?;
                if let Some(error) = persist::nothing(&prepared) {
                    out.flush()?;
                    return Err(error);
                }
                files = prepared.files();
            }
        }
    }
    if options.dry_run {
        writeln!(out, "Nothing was changed.")?;
        return Ok(Outcome::Success);
    }
    // Before asking: who may not open the journal may not change anything either.
    let mut journal = open(&options.state)?;
    if !options.yes && !confirmed(out, plan.settings.len(), files)? {
        writeln!(out, "Nothing was changed.")?;
        return Ok(Outcome::Success);
    }
    let changed = run(out, &mut journal, &plan.settings)?;
    drop(journal);
    if options.persist {
        out.flush()?;
        let (before, after) = (After::of(report), again()?);
        let losses: Vec<&str> = after.new_losses(&before).collect();
        if !losses.is_empty() {
            return restore_changed(out, &options.state, &changed, &losses);
        }
        return persist::write(out, &plan.findings, &earlier, &after, &interfaces);
    }
    if !plan.settings.is_empty() {
        writeln!(
            out,
            "These settings last until the next boot; `rxlane doctor --undo` restores the former values."
        )?;
    }
    Ok(Outcome::Success)
}

/// Restores what this call has changed, after which frames are lost that were not before.
fn restore_changed(out: &mut Output, state: &StateDir, changed: &[u64], losses: &[&str]) -> CommandResult {
    let text = format!(
        "After the change frames are lost ({}): the former values are restored, and nothing was made persistent.",
        losses.join(", ")
    );
    out.paragraph("", &text)?;
    let undone = open(state)?.undo_these(changed, false).map_err(failed)?;
    print_undone(out, &undone, &Undoing::default())?;
    Ok(Outcome::Negative)
}

/// Changes settings, and gives the numbers under which the changes are in the journal.
fn run(out: &mut Output, journal: &mut Journal, settings: &[Setting]) -> anyhow::Result<Vec<u64>> {
    let last = journal.entries().last().map(|entry| entry.number);
    for setting in settings {
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
    let numbers = journal.entries().iter().map(|entry| entry.number);
    Ok(numbers.filter(|number| Some(*number) > last).collect())
}

/// What `--apply` has changed since the last boot and is still so, without what is applied now.
fn earlier(state: &StateDir, now: &[Setting]) -> anyhow::Result<Vec<Setting>> {
    if !state.path().exists() {
        return Ok(Vec::new());
    }
    let (journal, tree) = (open(state)?, Tree::live());
    let entries = journal.entries().iter().filter(|entry| entry.by == BY && !entry.is_interrupted());
    let settings = entries.map(|entry| &entry.setting).filter(|setting| !now.contains(setting));
    // A driver may have rounded the value; what the journal could not restore is somebody else's value.
    let is_so = |setting: &&Setting| {
        setting.is_rounded_by_drivers() || setting.read(&tree).is_ok_and(|present| present.in_effect)
    };
    Ok(settings.filter(is_so).cloned().collect())
}

/// Findings of these ids; without an id, all that are certain and more than remarks.
pub fn chosen<'r>(report: &'r Worded<'r>, ids: &[String]) -> anyhow::Result<Vec<&'r WordedFinding<'r>>> {
    for id in ids {
        if !report.findings.iter().any(|finding| finding.id == id) {
            bail!("`{id}` was not found on this machine, so there is nothing to apply for it");
        }
    }
    let by_itself = |finding: &WordedFinding<'_>| {
        finding.severity != Severity::Info && finding.certainty == Certainty::Certain
    };
    let is_chosen = |finding: &&WordedFinding<'_>| {
        if ids.is_empty() { by_itself(finding) } else { ids.iter().any(|id| id == finding.id) }
    };
    Ok(report.findings.iter().filter(is_chosen).collect())
}

fn is_applicable(remedy: &WordedRemedy<'_>) -> bool {
    remedy.os == "linux" && remedy.commands.iter().any(|command| command.parse::<Setting>().is_ok())
}

fn plan<'r>(out: &mut impl Write, findings: &[&'r WordedFinding<'r>]) -> anyhow::Result<Plan<'r>> {
    let mut plan = Plan { settings: Vec::new(), left: Vec::new(), findings: Vec::new() };
    for finding in findings {
        // Of several ways the first that can be undone here; OpenWrt's own settings are what `--persist` writes.
        let on_linux =
            || finding.remedies.iter().filter(|remedy| remedy.os == "linux" && !remedy.is_question);
        let Some(remedy) = on_linux().find(|remedy| is_applicable(remedy)).or_else(|| on_linux().next())
        else {
            continue;
        };
        writeln!(out, "{}: {}", finding.id, printable(&remedy.what))?;
        let (mut own, others) = (Vec::new(), plan.settings.clone());
        for command in remedy.commands {
            match command.parse::<Setting>() {
                // What another finding sets to another value is set once, as the first of them says.
                Ok(setting) if others.iter().any(|other| other != &setting && other.replaces(&setting)) => {
                    writeln!(out, "    (not run, since it is set above: {setting})")?;
                }
                Ok(setting) => {
                    writeln!(out, "    {setting}")?;
                    own.push(setting.clone());
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
        let interface = finding.interface.as_deref();
        plan.findings.push(AppliedFinding { id: finding.id, interface, settings: own });
    }
    Ok(plan)
}

fn confirmed(out: &mut Output, commands: usize, files: usize) -> anyhow::Result<bool> {
    let commands = format::plural(commands as u64, "command");
    if !io::stdin().is_terminal() {
        bail!("there is no terminal to ask on; --yes applies {commands} without asking");
    }
    let write = if files > 0 {
        format!(", and write {} if it helps", format::plural(files as u64, "file"))
    } else {
        String::new()
    };
    write!(out, "Run {commands}{write}? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// How `--undo` undoes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undoing {
    /// Also what somebody else changed since.
    pub force: bool,
    /// Shows what would be undone, and changes nothing.
    pub dry_run: bool,
}

/// Restores what was changed, and removes what was written. Exit 1 where something is not restored or removed.
pub fn undo(out: &mut Output, options: &Undoing, state: &StateDir) -> CommandResult {
    // What is wrong with the files' record keeps no setting from its former value.
    let removed = persist::undo(out, options.dry_run);
    let restored = restore(out, options, state)?;
    let removed = removed?;
    match (removed, restored) {
        (None, None) => writeln!(out, "Nothing to restore.")?,
        _ if options.dry_run => writeln!(out, "Nothing was changed.")?,
        (Some(_), None) => {
            writeln!(out, "What the files have set since the last boot stays until the next.")?;
        }
        _ => {}
    }
    let is_negative = [removed, restored].contains(&Some(Outcome::Negative));
    Ok(if is_negative { Outcome::Negative } else { Outcome::Success })
}

/// `None`: nothing was changed.
fn restore(out: &mut Output, options: &Undoing, state: &StateDir) -> anyhow::Result<Option<Outcome>> {
    if !state.path().exists() {
        return Ok(None);
    }
    let mut opened = open(state)?;
    for note in opened.notes() {
        writeln!(out, "{note}")?;
    }
    // What steering needs is its own: `rxlane steer down` restores it.
    let undone = match options.dry_run {
        true => opened.undo_preview(BY, options.force),
        false => opened.undo_by(BY, options.force),
    };
    let undone = undone.map_err(failed)?;
    if undone.is_empty() {
        return Ok(None);
    }
    print_undone(out, &undone, options).map(Some)
}

fn print_undone(out: &mut Output, undone: &[Undone], options: &Undoing) -> anyhow::Result<Outcome> {
    for one in undone {
        let is_ahead = options.dry_run && matches!(one.outcome, journal::Outcome::Restored);
        let prefix = if is_ahead { "would run: " } else { "" };
        writeln!(out, "{prefix}{}", printable(&one.to_string()))?;
    }
    let kept = undone.iter().filter(|one| one.outcome.is_kept()).count();
    if kept > 0 {
        let are = if options.dry_run { "would not be" } else { "are not" };
        writeln!(out, "{kept} of {} {are} restored, for the reasons above.", undone.len())?;
        if !options.force && undone.iter().any(|one| matches!(one.outcome, journal::Outcome::Foreign { .. }))
        {
            writeln!(out, "--force overwrites what somebody else changed.")?;
        }
        return Ok(Outcome::Negative);
    }
    Ok(Outcome::Success)
}

fn open(state: &StateDir) -> anyhow::Result<Journal> {
    Journal::open(state, &Tree::live()).map_err(failed)
}

/// A failure for want of a privilege or a program is the environment's, exit 3.
fn failed(error: Error) -> anyhow::Error {
    use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
    let is_unsafe = matches!(error, Error::State(_));
    let (is_busy, error) = (matches!(error, Error::Busy { .. }), anyhow!(error));
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match kind {
        Some(PermissionDenied) => {
            lacks(format!("{error:#}; changing settings requires root (sudo rxlane doctor …)"))
        }
        Some(NotFound | ReadOnlyFilesystem) => lacks(format!("{error:#}")),
        _ if is_unsafe && !is_root() => {
            lacks(format!("{error:#}; changing settings requires root (sudo rxlane doctor …)"))
        }
        _ if is_busy => lacks(format!("{error:#}")),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::prose::worded;
    use doctor::Case;
    use host::text::Reader;
    use std::collections::BTreeSet;

    /// The commands that are run for these findings of a text.
    fn planned(text: &str, ids: &[&str]) -> Vec<String> {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        let snapshot = reader.finish();
        let case = Case::new(&snapshot, None, None).expect("a case");
        let report = doctor::diagnose(&case);
        let report = worded(&report, false);
        let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
        let plan = plan(&mut Vec::new(), &chosen(&report, &ids).expect("found")).expect("a plan");
        plan.settings.iter().map(Setting::command).collect()
    }

    const CPUS: &str = "$ cat /proc/interrupts\n            CPU0       CPU1       CPU2       CPU3\n";

    /// Findings on the vectors of one CPU have one plan: each vector is moved once, and each to a CPU of its own.
    #[test]
    fn a_vector_is_moved_once() {
        let others =
            " 31:   80000000  0  0  0   PCI-MSI  eth0-rx-1\n 33:   85000000  0  0  0   PCI-MSI  eth1-rx-0\n";
        let first = " 30:   90000000  0  0  0   PCI-MSI  eth0-rx-0\n";
        let elsewhere = " 32:   0  70000000  0  0   PCI-MSI  eth0-rx-2\n";
        for (id, more) in [("irq-one-cpu", ""), ("irq-collision", elsewhere)] {
            let commands = planned(&format!("{CPUS}{first}{others}{more}"), &[id, "cpu-shared"]);
            let parts = |place: usize| -> BTreeSet<&str> {
                commands.iter().filter_map(|command| command.split([' ', '/']).nth(place)).collect()
            };
            let (cpus, irqs) = (parts(1), parts(6));
            assert_eq!((cpus.len(), irqs.len()), (commands.len(), commands.len()), "{commands:?}");
            assert!(commands.len() >= 2 && irqs.contains("33"), "{commands:?}");
        }
    }
}

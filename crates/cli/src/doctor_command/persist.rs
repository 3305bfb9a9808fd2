//! `--persist`: what helped, as the system's own configuration.

use crate::output::{CommandResult, Lacks, Outcome, Output};
use crate::persisted::{
    failed, lacks, print_initramfs, print_machine, print_plan, print_removed, print_written, store,
};
use crate::render::prose::Worded;
use ::persist::{Checked, Lasting, Machine, Origin, Plan};
use doctor::report::Outcome as Judged;
use host::setting::{InterfaceName, Setting, Tree};
use std::io::{self, Write};

/// Under which the files are recorded.
const OWNER: &str = "doctor";
const WRITTEN_BY: &str = "rxlane doctor --apply --persist";

fn origin() -> Origin {
    Origin { written_by: WRITTEN_BY.to_owned(), removed_by: Some("rxlane doctor --undo".to_owned()) }
}

/// Findings that frames are lost. Others that are new after a change may only have become visible by it: GRO has a veth pair count
/// its queues, for one.
const LOSSES: [&str; 6] = [
    "ring-overflow",
    "frame-oversize",
    "interface-wedged",
    "backlog-drop",
    "checksum-double-tag",
    "transmit-hang",
];

/// A finding whose remedy was applied.
pub struct Applied<'r> {
    pub id: &'r str,
    pub interface: Option<&'r str>,
    pub settings: Vec<Setting>,
}

/// Files that would make settings last, and what is in their places.
pub struct Prepared {
    machine: Machine,
    plan: Plan,
    checked: Vec<Checked>,
}

impl Prepared {
    /// Files to write.
    pub fn files(&self) -> usize {
        self.plan.files.len()
    }

    pub fn print(&self, out: &mut Output) -> io::Result<()> {
        print_machine(out, &self.machine)?;
        print_plan(out, &self.plan, &self.checked)?;
        print_initramfs(out, self.plan.initramfs)
    }
}

/// The interfaces of a report, which is where to look for those that interrupts serve.
pub fn interfaces(report: &Worded<'_>) -> Vec<InterfaceName> {
    report.interfaces.iter().filter_map(|row| row.name.parse().ok()).collect()
}

/// What would be written for these settings, besides what was written before.
///
/// # Errors
///
/// Nothing of it can be made persistent, or a file is somebody else's.
pub fn prepare(
    settings: &[Setting],
    interfaces: &[InterfaceName],
) -> Result<Prepared, Result<Outcome, anyhow::Error>> {
    let store = store();
    let former = store.settings(OWNER).map_err(|error| Err(lacks(error)))?;
    let (_, machine, plan) = planned(&former, settings, interfaces);
    let checked = store.check(OWNER, &plan.files).map_err(failed)?;
    Ok(Prepared { machine, plan, checked })
}

/// The settings that are to last, with those that do already; the machine; and what makes them last.
fn planned(
    former: &[Lasting],
    settings: &[Setting],
    interfaces: &[InterfaceName],
) -> (Vec<Lasting>, Machine, Plan) {
    let new = persist::machine::lasting(&Tree::live(), settings, interfaces);
    let settings = Lasting::merged(former, &new);
    let mut named: Vec<InterfaceName> = Vec::new();
    for name in settings.iter().filter_map(Lasting::interface) {
        if !named.contains(name) {
            named.push(name.clone());
        }
    }
    let machine = Machine::live(&named);
    let plan = persist::plan::linux(&settings, &machine, &origin());
    (settings, machine, plan)
}

/// That nothing can be written, with the reasons.
pub fn nothing(prepared: &Prepared) -> Option<anyhow::Error> {
    let reason = prepared.plan.excluded.first().filter(|_| prepared.plan.is_empty())?;
    let reason = crate::persisted::reason(&reason.reason);
    Some(Lacks(format!("nothing of this can be made persistent here: {reason}; nothing was changed")).into())
}

/// A diagnosis after the change: the findings, and the rules that had no data.
pub struct After {
    found: Vec<(String, Option<String>)>,
    undecided: Vec<&'static str>,
}

impl After {
    pub fn of(report: &doctor::Report) -> After {
        let found = report.findings.iter();
        let found = found.map(|finding| (finding.id.to_owned(), finding.interface.clone())).collect();
        let undecided = report.rules.iter().filter(|row| row.outcome == Judged::InsufficientData);
        After { found, undecided: undecided.map(|row| row.id).collect() }
    }

    fn has(&self, id: &str, interface: Option<&str>) -> bool {
        self.found.iter().any(|(found, of)| found == id && of.as_deref() == interface)
    }

    /// Whether a finding was removed, as far as its rule could judge.
    fn helped(&self, applied: &Applied<'_>) -> bool {
        !self.has(applied.id, applied.interface) && !self.undecided.contains(&applied.id)
    }

    /// Losses that were not there before.
    pub fn new_losses<'a>(&'a self, before: &'a After) -> impl Iterator<Item = &'a str> {
        let is_new = |(id, of): &&(String, Option<String>)| {
            LOSSES.contains(&id.as_str()) && !before.has(id, of.as_deref())
        };
        self.found.iter().filter(is_new).map(|(id, _)| id.as_str())
    }
}

/// Writes the settings of the findings that the change has removed, and those of earlier calls that are still in effect.
pub fn write(
    out: &mut Output,
    applied: &[Applied<'_>],
    earlier: &[Setting],
    after: &After,
    interfaces: &[InterfaceName],
) -> CommandResult {
    let (good, bad): (Vec<&Applied<'_>>, Vec<&Applied<'_>>) =
        applied.iter().partition(|one| after.helped(one));
    let mut helped: Vec<Setting> = earlier.to_vec();
    helped.extend(good.iter().flat_map(|one| &one.settings).cloned());
    // A setting that is the remedy of two findings helped if one of them was removed.
    let left_out = |one: &&Applied<'_>| one.settings.iter().any(|setting| !helped.contains(setting));
    let left_out: Vec<&Applied<'_>> = bad.into_iter().filter(left_out).collect();
    for one in &left_out {
        let why =
            if after.undecided.contains(&one.id) { "cannot be judged any more" } else { "is still there" };
        out.paragraph(
            "",
            &format!("Not made persistent, since the finding {why} after the change: {}.", one.id),
        )?;
    }
    if helped.is_empty() {
        return Ok(Outcome::Negative);
    }
    let mut initramfs = false;
    let written = store().write(OWNER, WRITTEN_BY, |former| {
        let (settings, _, plan) = planned(former, &helped, interfaces);
        initramfs = plan.initramfs;
        (settings, plan.files)
    });
    let written = match written {
        Ok(written) => written,
        Err(error) => return failed(error),
    };
    print_written(out, &written)?;
    print_initramfs(out, initramfs)?;
    writeln!(out, "The next boot makes these settings again; `rxlane doctor --undo` removes the files.")?;
    Ok(if left_out.is_empty() { Outcome::Success } else { Outcome::Negative })
}

/// Removes what was written, or shows what that would be. `None`: nothing was written.
pub fn undo(out: &mut Output, dry_run: bool) -> anyhow::Result<Option<Outcome>> {
    let store = store();
    let removed = if dry_run { store.removal_preview(OWNER) } else { store.remove(OWNER) };
    let removed = removed.map_err(lacks)?;
    if removed.is_empty() { Ok(None) } else { Ok(Some(print_removed(out, &removed, dry_run)?)) }
}

//! What crate `persist` found, wrote and removed, in sentences.

use crate::output::{CommandResult, Lacks, Outcome, Output, QUIET};
use anyhow::anyhow;
use format::{plural, printable};
use persist::machine::{Evidence, Identity, Interface, Machine, Manager, System};
use persist::{Checked, Content, Error, Excluded, File, Plan, Reason, Removed, State, Store};
use service::StateDir;
use std::io::{self, Write};

/// The records of this machine.
pub fn store() -> Store {
    Store::at(StateDir::at(Store::DEFAULT))
}

/// What is in charge of each interface, and how that was seen.
pub fn print_machine(out: &mut Output, machine: &Machine) -> io::Result<()> {
    if let Some(sentence) = system(machine) {
        out.paragraph("", &printable(&sentence))?;
    }
    for interface in &machine.interfaces {
        if let Some(sentence) = in_charge(interface) {
            out.paragraph("", &printable(&sentence))?;
        }
    }
    Ok(())
}

fn seen(evidence: &[Evidence]) -> String {
    match evidence.first() {
        Some(Evidence { from, text }) if !text.is_empty() => format!(" ({from}: {text})"),
        Some(Evidence { from, .. }) => format!(" ({from})"),
        None => String::new(),
    }
}

fn system(machine: &Machine) -> Option<String> {
    match &machine.system {
        System::OpenWrt(_) => Some(format!("OpenWrt configures the machine{}.", seen(&machine.evidence))),
        _ => None,
    }
}

fn in_charge(interface: &Interface) -> Option<String> {
    let (name, seen) = (&interface.name, seen(&interface.evidence));
    let identity = match &interface.identity {
        Identity::PermanentAddress(address) => format!("finds it by its permanent address {address}"),
        Identity::Path(path) => format!("finds it by its place {path}"),
        Identity::Name | Identity::Renamed => "finds it by its name".to_owned(),
    };
    match &interface.manager {
        Manager::Systemd { version, link: Some(_) } => {
            Some(format!("{name}: udev of systemd {version} configures it{seen} and {identity}."))
        }
        Manager::Systemd { version: 0, .. } => None,
        Manager::Systemd { version, link: None } => {
            Some(format!("{name}: systemd {version} starts the services{seen}."))
        }
        Manager::NetworkManager => Some(format!("{name}: NetworkManager configures it{seen}.")),
        Manager::Udev => Some(format!("{name}: udev without systemd configures it{seen}.")),
        Manager::None | Manager::OtherNamespace => None,
    }
}

/// The files with their text, the commands, and what no file has. `checked` is what is in their places, if anybody looked.
pub fn print_plan(out: &mut Output, plan: &Plan, checked: &[Checked]) -> io::Result<()> {
    for file in &plan.files {
        let state = checked.iter().find(|one| one.file == *file).map(|one| one.state);
        print_file(out, file, state)?;
    }
    for lines in &plan.lines {
        writeln!(out, "Lines to add to {}:", lines.path.display())?;
        indented(out, &lines.text)?;
    }
    for (title, commands) in [("Commands:", &plan.commands), ("To take it back:", &plan.undo)] {
        if !commands.is_empty() {
            writeln!(out, "{title}")?;
            commands.iter().try_for_each(|command| writeln!(out, "    {}", printable(command)))?;
        }
    }
    print_excluded(out, &plan.excluded)
}

fn print_file(out: &mut Output, file: &File, state: Option<State>) -> io::Result<()> {
    let path = printable(&file.path.display().to_string());
    let state = match state {
        Some(State::Same) => " (as it is)",
        Some(State::Former) => " (in place of the present one)",
        Some(State::New) | None => "",
    };
    match &file.content {
        Content::Link(target) => {
            writeln!(out, "Link {path} -> {}{state}", printable(&target.display().to_string()))
        }
        Content::Text(text) => {
            writeln!(out, "File {path}, mode {:04o}{state}:", file.mode)?;
            indented(out, text)
        }
    }
}

fn indented(out: &mut Output, text: &str) -> io::Result<()> {
    for line in text.lines() {
        let line = out.styled(QUIET, printable(line));
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

fn print_excluded(out: &mut Output, excluded: &[Excluded]) -> io::Result<()> {
    excluded.iter().try_for_each(|one| {
        out.paragraph(
            "",
            &printable(&format!("Not made persistent: {}: {}", one.command, reason(&one.reason))),
        )
    })
}

/// Why no file has a setting.
pub fn reason(reason: &Reason) -> String {
    match reason {
        Reason::NoManager => "nothing was found that configures the interface at boot (systemd, NetworkManager, udev, OpenWrt); have the \
                              system's start script run the command"
            .to_owned(),
        Reason::OtherNamespace => {
            "it is set in a network namespace, which the next boot does not make; have what makes the namespace run the command".to_owned()
        }
        Reason::Name(name) => format!("{name} has a sign that means something else in a configuration file; rename the interface"),
        Reason::Vector { irq } => {
            format!("interrupt {irq} has no handler with a name of its own (/proc/irq/{irq}), by which to find it after the next boot")
        }
        Reason::BeforeUp => "udev runs before the interface is up, and its interrupts exist only then; have the script that brings it up run \
                             the command"
            .to_owned(),
        Reason::SetLater(path) => format!("{} sets it too and is read later; change it there", path.display()),
        Reason::NoFile => "no configuration file has it".to_owned(),
    }
}

/// What was written.
pub fn print_written(out: &mut Output, written: &[Checked]) -> io::Result<()> {
    for one in written {
        let what = match one.state {
            State::Same => "there already",
            State::New | State::Former => "written",
        };
        writeln!(out, "{what}: {}", printable(&one.file.path.display().to_string()))?;
    }
    Ok(())
}

/// What was removed, or with `dry_run` would be, and whether all of it.
pub fn print_removed(out: &mut Output, removed: &[Removed], dry_run: bool) -> io::Result<Outcome> {
    for one in removed {
        let path = printable(&one.path.display().to_string());
        match &one.outcome {
            persist::Outcome::Removed if dry_run => writeln!(out, "would remove: {path}")?,
            persist::Outcome::Removed => writeln!(out, "removed: {path}")?,
            persist::Outcome::Missing => writeln!(out, "removed before: {path}")?,
            persist::Outcome::Shared => writeln!(out, "left, since another interface needs it: {path}")?,
            persist::Outcome::Changed => {
                writeln!(
                    out,
                    "left alone, since somebody changed it after rxlane wrote it: {path} (rm removes it)"
                )?;
            }
            persist::Outcome::Failed(error) => writeln!(out, "not removed: {path}: {error}")?,
        }
    }
    let kept = removed.iter().filter(|one| one.is_kept()).count();
    if kept > 0 {
        let not = if dry_run { "would not be" } else { "not" };
        writeln!(out, "{} {not} removed, for the reasons above.", plural(kept as u64, "file"))?;
        return Ok(Outcome::Negative);
    }
    Ok(Outcome::Success)
}

/// A failure with its exit code: somebody else's file is a negative result, want of a privilege the environment's.
pub fn failed(error: Error) -> CommandResult {
    if error.is_negative() {
        crate::output::complain(&error.to_string());
        return Ok(Outcome::Negative);
    }
    Err(lacks(error))
}

/// The error of one who may not, or of a file system that cannot, is the environment's.
pub fn lacks(error: Error) -> anyhow::Error {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let is_denied = matches!(&error, Error::State(state) if state.is_denied())
        || matches!(&error, Error::Record(record) if record.is_denied());
    let error = anyhow!(error);
    let kind = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match kind {
        Some(PermissionDenied) => {
            Lacks(format!("{error:#}; the system's configuration is root's (sudo rxlane …)")).into()
        }
        Some(ReadOnlyFilesystem) => {
            Lacks(format!("{error:#}; mount it writable, or write the files that --dry-run shows")).into()
        }
        _ if is_denied => {
            Lacks(format!("{error:#}; the system's configuration is root's (sudo rxlane …)")).into()
        }
        _ => error,
    }
}

/// A note that `.link` files have to go into the initramfs as well.
pub fn print_initramfs(out: &mut Output, has_copies: bool) -> io::Result<()> {
    if has_copies {
        let note = "The initramfs has copies of .link files and may apply them first: `update-initramfs -u` makes it anew.";
        out.paragraph("", note)?;
    }
    Ok(())
}

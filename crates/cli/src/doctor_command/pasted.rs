//! `--from FILE --persist --dry-run`: files for the machine that a text came from, on which rxlane does not run.

use super::apply::chosen;
use crate::output::{CommandResult, Outcome, Output};
use crate::persisted::{print_machine, print_plan};
use crate::render::prose::{Worded, WordedRemedy};
use ::persist::machine::{OpenWrt, openwrt_release};
use ::persist::{Excluded, Lasting, Machine, Origin, Plan, Reason, Vector};
use format::printable;
use host::setting::{InterfaceName, Setting};
use host::{Snapshot, System};
use std::io::Write;

/// Prints the files for a remedy of each finding that is certain and more than a remark.
pub fn print(out: &mut Output, report: &Worded<'_>, snapshot: &Snapshot) -> CommandResult {
    let system = snapshot.system.as_ref().map_or(System::Linux, |system| system.value);
    let origin =
        Origin { written_by: "rxlane doctor --from FILE --persist --dry-run".to_owned(), removed_by: None };
    let mut commands: Vec<String> = Vec::new();
    for finding in chosen(report, &[])? {
        let mut remedies =
            finding.remedies.iter().filter(|remedy| remedy.os == system.name() && !remedy.is_question);
        let is_own =
            |remedy: &&WordedRemedy<'_>| remedy.commands.iter().all(|command| command.starts_with("rxlane "));
        // What the machine has itself, before what requires rxlane there.
        let Some(remedy) = remedies.clone().find(|remedy| !is_own(remedy)).or_else(|| remedies.next()) else {
            continue;
        };
        if remedy.commands.iter().all(|command| is_diagnosis(command)) {
            continue;
        }
        let before = commands.clone();
        writeln!(out, "{}: {}", finding.id, printable(&remedy.what))?;
        if let Some(caution) = &remedy.caution {
            out.paragraph("", caution)?;
        }
        for command in remedy.commands.iter().filter(|command| !is_diagnosis(command)) {
            if !commands.contains(command) && !is_set_already(command, &before) {
                commands.push(command.clone());
            }
        }
    }
    if commands.is_empty() {
        writeln!(out, "Nothing to make persistent.")?;
        return Ok(Outcome::Success);
    }
    let plan = match system {
        System::Linux => {
            let (machine, plan) = linux(&commands, snapshot, &origin);
            print_machine(out, &machine)?;
            if machine.system == persist::System::Other {
                out.paragraph("", "The text does not show what configures the interfaces at boot; these files are for systemd.")?;
            }
            plan
        }
        other => persist::plan::other(other, &commands, &origin),
    };
    print_plan(out, &plan, &[])?;
    writeln!(out, "Nothing was written.")?;
    Ok(if plan.is_empty() { Outcome::Negative } else { Outcome::Success })
}

/// Whether a command finds something out and sets nothing.
fn is_diagnosis(command: &str) -> bool {
    ["rxlane steer check ", "rxlane fastpath check "].iter().any(|one| command.starts_with(one))
}

/// Whether a finding before sets the same, as two do with a vector: the graver finding's value holds.
fn is_set_already(command: &str, before: &[String]) -> bool {
    let Ok(setting) = command.parse::<Setting>() else { return false };
    let mut before = before.iter().filter_map(|other| other.parse::<Setting>().ok());
    before.any(|other| setting.replaces(&other))
}

fn linux(commands: &[String], snapshot: &Snapshot, origin: &Origin) -> (Machine, Plan) {
    let mut settings: Vec<Lasting> = Vec::new();
    let (mut configuring, mut left) = (Vec::new(), Vec::new());
    for command in commands {
        match command.parse::<Setting>() {
            Ok(setting) => settings.push(Lasting { vector: vector(&setting, snapshot), setting }),
            // These change the configuration by themselves.
            Err(_) if ["uci ", "service ", "/etc/init.d/"].iter().any(|own| command.starts_with(own)) => {
                configuring.push(command.clone());
            }
            Err(_) => left.push(command.clone()),
        }
    }
    let mut names: Vec<InterfaceName> = Vec::new();
    for name in settings.iter().filter_map(Lasting::interface) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let machine = Machine::of_text(openwrt(snapshot), &names);
    let mut plan = persist::plan::linux(&settings, &machine, origin);
    for command in configuring {
        if !plan.commands.contains(&command) {
            plan.undo.push(taken_back(&command, snapshot));
            plan.commands.push(command);
        }
    }
    // OpenWrt's firewall has no such file.
    let left = if snapshot.is_openwrt() { left } else { persist::plan::nft_lines(&mut plan, left, origin) };
    plan.excluded.extend(left.into_iter().map(|command| Excluded { command, reason: Reason::NoFile }));
    let paths: Vec<String> =
        plan.files.iter().map(|file| host::setting::quoted(&file.path.display().to_string())).collect();
    if !paths.is_empty() {
        plan.undo.insert(0, format!("rm {}", paths.join(" ")));
    }
    (machine, plan)
}

/// The handler of an interrupt, as the text names it.
fn vector(setting: &Setting, snapshot: &Snapshot) -> Option<Vector> {
    let Setting::IrqAffinity { irq, .. } = setting else { return None };
    let number = irq.to_string();
    let interrupt = snapshot.interrupts.iter().find(|interrupt| interrupt.vector == number)?;
    let is_alone = snapshot.interrupts.iter().filter(|other| other.action == interrupt.action).count() == 1;
    let interface = interrupt.interface.as_deref()?.parse().ok().filter(|_| is_alone)?;
    Some(Vector { name: interrupt.action.clone(), interface })
}

/// What the text shows of an OpenWrt; `None`: it is none, as far as the text shows.
fn openwrt(snapshot: &Snapshot) -> Option<OpenWrt> {
    let release = snapshot.distribution.as_ref().and_then(|known| known.value.release.as_deref());
    snapshot.is_openwrt().then(|| OpenWrt {
        release: release.and_then(openwrt_release),
        packet_steering: snapshot.uci.get("network.globals.packet_steering").map(|seen| seen.get().clone()),
    })
}

/// What takes a command of uci back: the value that the text shows, or none.
fn taken_back(command: &str, snapshot: &Snapshot) -> String {
    let Some((option, _)) = command.strip_prefix("uci set ").and_then(|rest| rest.split_once('=')) else {
        return command.to_owned();
    };
    // `firewall.@defaults[0].flow_offloading` is read as `firewall.defaults.flow_offloading`.
    match snapshot.uci.get(&option.replace('@', "").replace("[0]", "")) {
        Some(former) => format!("uci set {option}={}", host::setting::quoted(former.get())),
        None => format!("uci delete {option}"),
    }
}

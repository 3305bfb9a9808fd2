//! FreeBSD and NetBSD: lines of `sysctl.conf`, `loader.conf` and `rc.conf`, from the commands of a remedy.

use crate::Origin;
use crate::plan::{Excluded, Lines, Plan, Reason};
use host::System;
use std::path::PathBuf;

const SYSCTL: &str = "/etc/sysctl.conf";
const LOADER: &str = "/boot/loader.conf";
const RC: &str = "/etc/rc.conf";

/// The file that has a command's effect at boot, and the line for it. `None`: no file has.
fn line(system: System, command: &str) -> Option<(&'static str, String)> {
    if let Some(rest) = command.strip_prefix("echo ") {
        let (value, file) = rest.split_once(" >> ")?;
        let file = [SYSCTL, LOADER, RC].into_iter().find(|known| *known == file.trim())?;
        return Some((file, value.trim_matches('\'').to_owned()));
    }
    let words: Vec<&str> = command.split_whitespace().collect();
    match words[..] {
        ["sysctl", assignment] | ["sysctl", "-w", assignment] if assignment.contains('=') => {
            Some((SYSCTL, assignment.to_owned()))
        }
        // rc.conf is read by a shell (rc.conf(5)), so a later line can add to an earlier one.
        ["ifconfig", interface, ref options @ ..] if system == System::FreeBsd && !options.is_empty() => {
            let is_name = interface.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
            let is_state = matches!(options, ["up"] | ["down"] | ["create"] | ["destroy"]);
            let variable = format!("ifconfig_{interface}");
            let line = format!("{variable}=\"${{{variable}}} {}\"", options.join(" "));
            (is_name && !is_state).then_some((RC, line))
        }
        _ => None,
    }
}

pub(crate) fn lines(system: System, commands: &[String], origin: &Origin) -> Plan {
    let mut plan = Plan::default();
    let mut all: Vec<(&str, Vec<String>)> = [LOADER, RC, SYSCTL].map(|file| (file, Vec::new())).into();
    for command in commands {
        let Some((file, line)) = line(system, command) else {
            plan.excluded.push(Excluded { command: command.clone(), reason: Reason::NoFile });
            continue;
        };
        for (_, lines) in all.iter_mut().filter(|(known, lines)| *known == file && !lines.contains(&line)) {
            lines.push(line.clone());
        }
    }
    for (file, lines) in all.into_iter().filter(|(_, lines)| !lines.is_empty()) {
        let text = format!("# rxlane: begin. {}\n{}\n# rxlane: end\n", origin.line(), lines.join("\n"));
        plan.lines.push(Lines { path: PathBuf::from(file), text });
        plan.undo.push(format!(
            "cp {file} {file}.rxlane && sed '/^# rxlane: begin/,/^# rxlane: end/d' {file}.rxlane > {file} && rm {file}.rxlane"
        ));
    }
    plan
}

//! nftables: lines of `/etc/nftables.conf`, which systemd's `nftables.service` loads at boot (Debian, Arch Linux).

use crate::Origin;
use crate::plan::{Lines, Plan};
use std::path::PathBuf;

const FILE: &str = "/etc/nftables.conf";

/// What a shell passes to nft: `nft 'add table inet rxlane'`.
fn words(command: &str) -> Option<String> {
    let quoted = command.strip_prefix("nft '")?.strip_suffix('\'')?;
    Some(quoted.replace(r"'\''", "'"))
}

/// Adds the commands of nft to the plan, and gives the others back.
pub(crate) fn lines(plan: &mut Plan, commands: Vec<String>, origin: &Origin) -> Vec<String> {
    let (own, others): (Vec<String>, Vec<String>) =
        commands.into_iter().partition(|command| words(command).is_some());
    if own.is_empty() {
        return others;
    }
    let lines: Vec<String> = own.iter().filter_map(|command| words(command)).collect();
    let text = format!(
        "# rxlane: begin. {}\n# nft refuses the whole file while a device of the flowtable is missing.\n{}\n# rxlane: end\n",
        origin.line(),
        lines.join("\n")
    );
    plan.lines.push(Lines { path: PathBuf::from(FILE), text });
    plan.undo.push(format!("sed -i '/^# rxlane: begin/,/^# rxlane: end/d' {FILE}"));
    if lines.iter().any(|line| line == "add table inet rxlane") {
        plan.undo.push("nft delete table inet rxlane".to_owned());
    }
    others
}

//! Commands whose outputs rules lack: each once, and none for what the text holds without the name of its interface.

use crate::{Case, Device};

/// Without commands for an interface of unknown name where the same ones are there for one that is named.
pub(crate) fn of_named_interfaces(case: &Case<'_>, commands: &mut Vec<String>) {
    let names: Vec<String> =
        case.devices().filter(|device| !device.name.is_empty()).map(|device| device.word()).collect();
    let general = |command: &str| -> String {
        let pieces = command.split_inclusive([' ', '/', ',']);
        let general = |piece: &str| {
            let word = piece.trim_end_matches([' ', '/', ',']);
            match names.iter().any(|name| name == word) {
                true => piece.replacen(word, "IFACE", 1),
                false => piece.to_owned(),
            }
        };
        pieces.map(general).collect()
    };
    let of_named: Vec<String> = commands
        .iter()
        .map(|command| (command, general(command)))
        .filter(|(own, general)| *own != general)
        .map(|(_, general)| general)
        .collect();
    commands.retain(|command| !of_named.contains(command));
}

/// Outputs of `ethtool` that do not name their interface: whether this one has that of the option.
fn has_unnamed(device: &Device<'_>, option: &str) -> bool {
    match option {
        "-S" => {
            let totals = &device.totals;
            let counters = [&totals.packets, &totals.bytes].into_iter().flatten().count();
            !device.queues.is_empty() || counters + totals.overflow.len() + totals.too_long.len() > 0
        }
        "-i" => device.driver.is_some(),
        _ => false,
    }
}

/// Removes what the text holds without the name of an interface, or of its only one, and gives the command that would name it.
pub(super) fn unnamed(case: &Case<'_>, commands: &mut Vec<String>) -> Option<String> {
    let devices: Vec<Device<'_>> = case.devices().collect();
    let options = ["-S", "-i"].into_iter();
    let options: Vec<&str> = options
        .filter(|option| case.snapshot().read.contains_key(&format!("ethtool {option}")))
        .filter(|option| match &devices[..] {
            [_] => true,
            several => several.iter().any(|device| device.name.is_empty() && has_unnamed(device, option)),
        })
        .collect();
    let is_there = |command: &String| {
        options.iter().any(|option| {
            let name = command.strip_prefix("ethtool ").and_then(|rest| rest.strip_prefix(option));
            name.is_some_and(|name| devices.iter().any(|device| name.trim() == device.word()))
        })
    };
    let named = commands.iter().find(|command| is_there(command) && !command.ends_with(" IFACE")).cloned();
    commands.retain(|command| !is_there(command));
    named.filter(|_| devices.len() > 1)
}

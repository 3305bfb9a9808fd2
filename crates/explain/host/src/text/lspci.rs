//! `lspci`, with or without `-nn` and `-D`: `03:00.0 Ethernet controller [0200]: Intel Corporation I210 Gigabit
//! Network Connection [8086:1533] (rev 03)`. Which interface it is, says the bus address of `ethtool -i`.

use super::kept::{Kept, PciDevice};
use super::{Line, Outcome, Tool, vector_name};
use crate::Snapshot;

pub(super) static TOOL: Tool = Tool {
    name: "lspci",
    command: |command| command.program == "lspci",
    heading: |line| device(line).is_some(),
    open: |_| Box::new(network_device),
};

/// Classes 0200 and 0280 by their names in pci.ids.
const CLASSES: [&str; 2] = ["Ethernet controller", "Network controller"];

struct Device<'a> {
    address: String,
    id: Option<String>,
    model: &'a str,
}

fn network_device(line: &Line<'_>, _snapshot: &mut Snapshot) -> Outcome {
    let text = line.trimmed();
    let Some(device) = device(text) else {
        // Other devices, and the lines of -k and -v below one.
        let is_other = address(text).is_some() || line.text.starts_with(['\t', ' ']) || text.is_empty();
        return if is_other { Outcome::Skipped } else { Outcome::Over };
    };
    let mut kept = line.kept();
    if kept.pci.len() < Kept::MOST {
        let known = PciDevice { id: device.id, model: device.model.to_owned(), quote: line.quote() };
        kept.pci.insert(device.address, known);
    }
    Outcome::Taken
}

/// The address with its domain, and what follows it.
fn address(text: &str) -> Option<(String, &str)> {
    if !text.as_bytes().first().is_some_and(u8::is_ascii_hexdigit) {
        return None;
    }
    let (word, rest) = text.split_once(' ')?;
    let address = if word.len() == 7 { format!("0000:{word}") } else { word.to_owned() };
    vector_name::is_bus_address(&address).then_some((address, rest))
}

fn device(text: &str) -> Option<Device<'_>> {
    let (address, rest) = address(text)?;
    let (class, name) = rest.split_once(": ")?;
    if !CLASSES.iter().any(|known| class.starts_with(known)) {
        return None;
    }
    let name = name.split(" (rev ").next()?.trim();
    let (model, id) = match name.rsplit_once(" [") {
        Some((model, id)) => match id.strip_suffix(']').filter(|id| is_id(id)) {
            Some(id) => (model, Some(id.to_ascii_lowercase())),
            None => (name, None),
        },
        None => (name, None),
    };
    Some(Device { address, id, model })
}

/// `8086:1533`.
fn is_id(text: &str) -> bool {
    text.split_once(':').is_some_and(|(vendor, device)| {
        [vendor, device].iter().all(|part| part.len() == 4 && part.bytes().all(|c| c.is_ascii_hexdigit()))
    })
}

//! FreeBSD's `pciconf -l -v`: PCI ids and names of devices.
//!
//! A line `igb0@pci0:1:0:0: class=0x020000 rev=0x03 hdr=0x00 vendor=0x8086 device=0x1533 …` (before 13:
//! `card=0x… chip=0x15338086`, device and vendor in one number), then with `-v` lines `vendor = '…'`,
//! `device = '…'` (`usr.sbin/pciconf/pciconf.c`, `list_devs`).

use super::{Line, Outcome, Section, Tool, freebsd_nics, sysctl_machine};
use crate::{Fact, Kind, Quote, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "pciconf -l",
    command: |command| command.program == "pciconf" && command.has_flag('l'),
    heading: |line| selector(line).is_some(),
    open: |_| Box::new(Devices { interface: None }),
};

/// Name, bus address, and what follows.
fn selector(line: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = line.split_once('@')?;
    let rest = rest.strip_prefix("pci")?;
    let (address, rest) = rest.split_once(char::is_whitespace)?;
    let is_name = !name.is_empty() && name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    let address = address.strip_suffix(':')?;
    let is_address = address.bytes().all(|c| c.is_ascii_digit() || c == b':');
    let rest = rest.trim_start();
    (is_name && is_address && rest.starts_with("class=0x")).then_some((name, address, rest))
}

/// `8086:1533` from `vendor=0x8086 device=0x1533` or `chip=0x15338086`.
pub(super) fn ids(text: &str) -> Option<String> {
    let hexadecimal = |name: &str, digits: usize| {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix("=0x"))?;
        Some(word).filter(|word| word.len() == digits && word.bytes().all(|c| c.is_ascii_hexdigit()))
    };
    let (vendor, device) = match (hexadecimal("vendor", 4), hexadecimal("device", 4)) {
        (Some(vendor), Some(device)) => (vendor, device),
        _ => {
            let (device, vendor) = hexadecimal("chip", 8)?.split_at_checked(4)?;
            (vendor, device)
        }
    };
    Some(format!("{vendor}:{device}").to_ascii_lowercase())
}

struct Devices {
    /// The network device of the line before; `None` for other devices.
    interface: Option<String>,
}

impl Section for Devices {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        let quote = line.quote();
        if let Some((name, address, rest)) = selector(text) {
            self.interface = None;
            sysctl_machine::infer(snapshot, System::FreeBsd, &quote);
            if freebsd_nics::driver(name).is_some() {
                self.interface = Some(name.to_owned());
                device(name, address, rest, &quote, snapshot);
            }
            return Outcome::Taken;
        }
        let Some((name, value)) = text.split_once('=') else {
            return if text.is_empty() { Outcome::Skipped } else { Outcome::Over };
        };
        match name.trim_end() {
            "device" => self.model(value.trim(), quote, snapshot),
            // Lines of `-v`, and of `-b`, `-c`, `-e`, which stand beneath the same device.
            "vendor" | "class" | "subclass" => {}
            _ if line.text.starts_with([' ', '\t']) => {}
            _ => return Outcome::Over,
        }
        Outcome::Taken
    }
}

impl Devices {
    fn model(&self, value: &str, quote: Quote, snapshot: &mut Snapshot) {
        let Some(name) = &self.interface else { return };
        let model = value.trim_matches('\'');
        if model.is_empty() {
            return;
        }
        let Some(interface) = snapshot.interface_mut(name, &quote) else { return };
        interface.model = Some(Fact::new(model.to_owned(), quote));
    }
}

fn device(name: &str, address: &str, rest: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let Some(interface) = snapshot.interface_mut(name, quote) else { return };
    let fact = |text: &str| Some(Fact::new(text.to_owned(), quote.clone()));
    interface.bus = fact(&format!("pci{address}"));
    interface.driver = freebsd_nics::driver(name).and_then(fact);
    interface.kind.get_or_insert_with(|| Fact::new(Kind::Device, quote.clone()));
    if let Some(ids) = ids(rest) {
        interface.pci = fact(&ids);
    }
}

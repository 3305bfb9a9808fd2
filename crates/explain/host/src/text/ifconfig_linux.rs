//! `ifconfig` of BusyBox (OpenWrt) and of net-tools before 2.0.
//!
//! An interface begins with `eth0      Link encap:Ethernet  HWaddr …`; lines beneath it are indented by ten blanks:
//! `UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1`, `RX packets:11 errors:0 dropped:0 overruns:0 frame:0`
//! (BusyBox `networking/interface.c`, `ife_print`). A PPP interface encapsulates `Point-to-Point Protocol`.

use super::command::is_interface;
use super::kept::Kept;
use super::{Line, Outcome, Section, Tool, sysctl_machine};
use crate::{Counter, Fact, Kind, Observed, Quote, Snapshot, System};
use std::collections::BTreeMap;

pub(super) static TOOL: Tool = Tool {
    name: "ifconfig",
    // A command `ifconfig` opens the reader of the other form, which hands on what it does not know.
    command: |_| false,
    heading: |line| header(line).is_some(),
    open: |_| Box::new(Listing::default()),
};

#[derive(Default)]
struct Listing {
    interface: Option<String>,
    /// The line of an IPv4 address by interface.
    addresses: BTreeMap<String, Option<Quote>>,
}

impl Section for Listing {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some((name, encapsulation)) = header(text) {
            sysctl_machine::infer(snapshot, System::Linux, &line.quote());
            self.interface = Some(name.to_owned());
            if self.addresses.len() < Snapshot::INTERFACES {
                self.addresses.entry(name.to_owned()).or_default();
            }
            if let Some(interface) = snapshot.interface_mut(name, &line.quote())
                && encapsulation.starts_with("Point-to-Point")
            {
                interface.kind.get_or_insert_with(|| Fact::new(Kind::Ppp, line.quote()));
            }
            return Outcome::Taken;
        }
        if text.is_empty() {
            return Outcome::Skipped;
        }
        let Some(name) = &self.interface else { return Outcome::Over };
        let word = text.split([' ', ':']).next().unwrap_or_default();
        match word {
            "RX" => received(name, line),
            "inet" => {
                if let Some(address @ None) = self.addresses.get_mut(name) {
                    *address = Some(line.quote());
                }
            }
            "inet6" | "TX" | "collisions" | "Interrupt" | "Base" | "Memory" | "DMA" => {}
            _ if text.contains("MTU:") => flags(name, line, snapshot),
            _ => return Outcome::Over,
        }
        Outcome::Taken
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        let has_any = self.addresses.values().any(Option::is_some);
        for interface in snapshot.interfaces.iter_mut().filter(|_| has_any) {
            if let Some(line) = self.addresses.get(&interface.name) {
                interface.note_address(line.as_ref());
            }
        }
    }
}

/// Name and encapsulation.
fn header(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once(char::is_whitespace)?;
    let encapsulation = rest.trim_start().strip_prefix("Link encap:")?;
    is_interface(name).then_some((name, encapsulation))
}

/// `UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1`; without `UP` where it is down.
fn flags(name: &str, line: &Line<'_>, snapshot: &mut Snapshot) {
    let quote = line.quote();
    let Some(interface) = snapshot.interface_mut(name, &quote) else { return };
    let up = line.trimmed().split_whitespace().any(|word| word == "UP");
    Observed::note(&mut interface.up, up, &quote);
    let mtu = number(line.trimmed(), "MTU:").and_then(|mtu| mtu.try_into().ok());
    Observed::note(&mut interface.mtu, mtu, &quote);
}

/// `RX packets:11 errors:0 dropped:0 overruns:0 frame:0`, and `RX bytes:1100 (1.0 KiB)  TX bytes:…`.
/// `overruns` are `rx_fifo_errors`, frames that a full ring lost.
fn received(name: &str, line: &Line<'_>) {
    let text = line.trimmed();
    let mut kept = line.kept();
    let Some(totals) = kept.totals_of(name, TOOL.name) else { return };
    Counter::note(&mut totals.packets, number(text, "RX packets:"), &line.quote());
    Counter::note(&mut totals.bytes, number(text, "RX bytes:"), &line.quote());
    if let Some(overruns) = number(text, "overruns:") {
        Counter::note_at(&mut totals.overflow, "fifo".to_owned(), overruns, line.quote(), Kept::MOST);
    }
}

fn number(text: &str, label: &str) -> Option<u64> {
    text.split_once(label)?.1.split_whitespace().next()?.parse().ok()
}

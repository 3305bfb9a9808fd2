//! `ethtool -n eth0 rx-flow-hash udp4`: the hash fields of a flow type (`dump_rxfhash`, ethtool.c).
//!
//! The output names the flow type and not the interface, which is the one that a command named last. Where the
//! text ends within the list, a field may be missing from it: nothing is concluded then, unless the last field
//! of all was read.

use super::{Line, Outcome, Section, Tool};
use crate::{Fact, Observed, Quote, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -n",
    command: |command| command.is("ethtool", "-n") && command.text.contains("rx-flow-hash"),
    heading: |line| line.ends_with(HEADING),
    open: |context| {
        Box::new(FlowHash { interface: context.interface().to_owned(), is_default: true, list: None })
    },
};

const HEADING: &str = "flows use these fields for computing Hash flow key:";

/// Lines and letters of ethtool(8), of the bits of `RXH_*` from 1 on (linux/ethtool.h).
pub(crate) const FIELDS: [(&str, char); 8] = [
    ("L2DA", 'm'),
    ("VLAN tag", 'v'),
    ("L3 proto", 't'),
    ("IP SA", 's'),
    ("IP DA", 'd'),
    ("L4 bytes 0 & 1 [TCP/UDP src port]", 'f'),
    ("L4 bytes 2 & 3 [TCP/UDP dst port]", 'n'),
    ("GTP TEID", 'e'),
];

struct FlowHash {
    interface: String,
    /// Whether it is the table of the device and not one of another RSS context.
    is_default: bool,
    list: Option<List>,
}

struct List {
    flow: &'static str,
    letters: String,
    quote: Quote,
}

impl Section for FlowHash {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        if let Some(flow) = text.strip_suffix(HEADING) {
            self.believe(snapshot);
            self.list =
                flow_type(flow.trim()).map(|flow| List { flow, letters: String::new(), quote: line.quote() });
            return Outcome::Taken;
        }
        if text.starts_with("For RSS context ") {
            self.is_default = false;
            return Outcome::Taken;
        }
        let Some(list) = &mut self.list else { return Outcome::Skipped };
        if let Some((_, letter)) = FIELDS.iter().find(|(field, _)| *field == text) {
            if !list.letters.contains(*letter) {
                list.letters.push(*letter);
            }
            return Outcome::Taken;
        }
        match text {
            // Some pastes have a blank line after the heading.
            "" if list.letters.is_empty() => Outcome::Skipped,
            "All matching flows discarded on RX" => {
                list.letters.push('r');
                Outcome::Taken
            }
            "None" => {
                self.believe(snapshot);
                Outcome::Taken
            }
            "" => {
                self.believe(snapshot);
                Outcome::Skipped
            }
            _ => Outcome::Over,
        }
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        if self.list.as_ref().is_some_and(|list| !list.letters.is_empty()) {
            self.believe(snapshot);
        }
    }

    fn cut(&mut self, snapshot: &mut Snapshot) {
        let Some(list) = &self.list else { return };
        if list.letters.ends_with(['n', 'e', 'r']) {
            self.believe(snapshot);
        } else {
            let what = format!("ethtool -n {} rx-flow-hash {}", self.interface, list.flow);
            snapshot.note_unread(&what, "the text ends within the list of fields");
        }
    }
}

impl FlowHash {
    fn believe(&mut self, snapshot: &mut Snapshot) {
        let Some(list) = self.list.take().filter(|_| self.is_default) else { return };
        let Some(interface) = snapshot.interface_mut(&self.interface, &list.quote) else { return };
        let fact = Fact::new(list.letters, list.quote);
        Observed::note_at(&mut interface.hash_fields, list.flow, fact, usize::MAX);
    }
}

/// ethtool's word for `UDP over IPV4`.
fn flow_type(name: &str) -> Option<&'static str> {
    Some(match name {
        "TCP over IPV4" => "tcp4",
        "UDP over IPV4" => "udp4",
        "SCTP over IPV4" => "sctp4",
        "IPSEC AH/ESP over IPV4" => "ah4",
        "TCP over IPV6" => "tcp6",
        "UDP over IPV6" => "udp6",
        "SCTP over IPV6" => "sctp6",
        "IPSEC AH/ESP over IPV6" => "ah6",
        "IPV4" => "ip4",
        "IPV6" => "ip6",
        "Ethernet" => "ether",
        _ => return None,
    })
}

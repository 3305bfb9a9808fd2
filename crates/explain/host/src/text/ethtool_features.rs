//! `ethtool -k`: features, `name: on`, `off [fixed]`, `on [requested off]`; features of a group are indented.

use super::{Fate, Line, Section, Tool, note_named};
use crate::{Fact, Feature, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -k",
    command: |command| command.is("ethtool", "-k"),
    heading: |line| HEADINGS.iter().any(|heading| line.starts_with(heading)) && line.ends_with(':'),
    open: |context| Box::new(Features { interface: context.interface().to_owned() }),
};

/// Since ethtool 3.x, and before.
const HEADINGS: [&str; 2] = ["Features for ", "Offload parameters for "];

/// Features of one interface that are kept; Linux has 64.
const MOST: usize = 128;

struct Features {
    interface: String,
}

impl Section for Features {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if let Some(interface) = HEADINGS.iter().find_map(|heading| text.strip_prefix(heading)) {
            self.interface = interface.trim_end_matches(':').to_owned();
            return Fate::Taken;
        }
        if text.is_empty() {
            return Fate::Skipped;
        }
        let Some((name, feature)) = feature(text) else { return Fate::Over };
        let quote = line.quote();
        let Some(interface) = snapshot.interface_mut(&self.interface, &quote) else { return Fate::Taken };
        let fact = Fact::new(feature, quote);
        if !note_named(&mut interface.features, &name, fact, MOST) {
            snapshot.omitted += 1;
        }
        Fate::Taken
    }
}

/// Name and state. ethtool before 2.6.38 wrote the names with blanks (`tcp segmentation offload`).
fn feature(text: &str) -> Option<(String, Feature)> {
    let (name, value) = text.split_once(':')?;
    let is_name = !name.is_empty()
        && name.len() <= 64
        && name.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, b'-' | b' '));
    let (on, remark) = value.trim().split_once(' ').unwrap_or((value.trim(), ""));
    let on = match on {
        "on" => true,
        "off" => false,
        _ => return None,
    };
    let fixed = match remark.trim() {
        "[fixed]" => true,
        "" | "[requested on]" | "[requested off]" | "[not requested]" => false,
        _ => return None,
    };
    is_name.then(|| (name.replace(' ', "-"), Feature { on, fixed }))
}

#[cfg(test)]
mod tests {
    use crate::text::Reader;
    use crate::{Feature, Snapshot};

    fn read(text: &str) -> Snapshot {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        reader.finish()
    }

    fn state(text: &str, interface: &str, feature: &str) -> Option<Feature> {
        read(text).interface(interface)?.features.get(feature).map(|observed| *observed.get())
    }

    // ethtool 6.1, netlink/features.c.
    const TEXT: &str = "Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
                        \ttx-checksum-ip-generic: on\ntcp-segmentation-offload: off\n\
                        \ttx-tcp-segmentation: off [requested on]\nreceive-hashing: off [fixed]\n";

    #[test]
    fn states_and_remarks() {
        assert_eq!(state(TEXT, "eth0", "receive-hashing"), Some(Feature { on: false, fixed: true }));
        assert_eq!(state(TEXT, "eth0", "tx-checksum-ip-generic"), Some(Feature { on: true, fixed: false }));
        assert_eq!(state(TEXT, "eth0", "tx-tcp-segmentation"), Some(Feature { on: false, fixed: false }));
        assert_eq!(state(TEXT, "eth0", "rx-gro-hw"), None);
    }

    #[test]
    fn a_grep_without_a_heading() {
        let text =
            "$ sudo ethtool -k enp4s0 | grep hashing\nreceive-hashing: on\nNow the next thing: on top.\n";
        assert_eq!(state(text, "enp4s0", "receive-hashing"), Some(Feature { on: true, fixed: false }));
        assert_eq!(read(text).interface("enp4s0").map(|interface| interface.features.len()), Some(1));
        assert_eq!(state("receive-hashing: on\n", "", "receive-hashing"), None);
    }

    #[test]
    fn several_interfaces_and_old_names() {
        let text = format!("{TEXT}Offload parameters for eth1:\ngeneric receive offload: on\n");
        assert_eq!(state(&text, "eth1", "generic-receive-offload"), Some(Feature { on: true, fixed: false }));
        assert_eq!(read(&text).interface("eth0").map(|interface| interface.features.len()), Some(7));
    }
}

//! `ethtool -c`: interrupt coalescing, numbers by ethtool's names. A driver that does not tell prints `n/a`.

use super::{Fate, Line, Section, Tool, note_named};
use crate::{Fact, Observed, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -c",
    command: |command| command.is("ethtool", "-c"),
    heading: |line| line.starts_with(HEADING) && line.ends_with(':'),
    open: |context| Box::new(Coalesce { interface: context.interface().to_owned() }),
};

const HEADING: &str = "Coalesce parameters for ";

/// Beginnings of the names of numbers (ethtool 6.1, netlink/coalesce.c).
const NAMES: [&str; 5] = ["rx-", "tx-", "stats-block-usecs", "sample-interval", "pkt-rate-"];

/// Names of one interface that are kept; ethtool has some thirty.
const MOST: usize = 64;

struct Coalesce {
    interface: String,
}

impl Section for Coalesce {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if let Some(interface) = text.strip_prefix(HEADING) {
            self.interface = interface.trim_end_matches(':').to_owned();
            return Fate::Taken;
        }
        if text.is_empty() {
            return Fate::Skipped;
        }
        if let Some(adaptive) = text.strip_prefix("Adaptive RX:") {
            return self.adaptive(adaptive, line, snapshot);
        }
        if text.starts_with("CQE mode RX:") {
            return Fate::Taken;
        }
        let Some((name, value)) = text.split_once(':') else { return Fate::Over };
        if !NAMES.iter().any(|known| name.starts_with(known)) {
            return Fate::Over;
        }
        let Ok(number) = value.trim().parse::<u64>() else { return Fate::Skipped };
        let quote = line.quote();
        let Some(interface) = snapshot.interface_mut(&self.interface, &quote) else { return Fate::Taken };
        let fact = Fact::new(number, quote);
        if !note_named(&mut interface.coalesce, name, fact, MOST) {
            snapshot.omitted += 1;
        }
        Fate::Taken
    }
}

impl Coalesce {
    /// `off  TX: off`.
    fn adaptive(&self, text: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let is_on = match text.split_whitespace().next() {
            Some("on") => true,
            Some("off") => false,
            _ => return Fate::Skipped,
        };
        let quote = line.quote();
        if let Some(interface) = snapshot.interface_mut(&self.interface, &quote) {
            Observed::note(&mut interface.adaptive_rx, Fact::new(is_on, quote));
        }
        Fate::Taken
    }
}

#[cfg(test)]
mod tests {
    use crate::text::Reader;
    use crate::{Interface, Observed};

    fn interface(text: &str) -> Option<Interface> {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        reader.finish().interface("eth0").cloned()
    }

    // ethtool 6.1 has tabs and n/a, ethtool 4.x spaces and zeros.
    const NEW: &str = "Coalesce parameters for eth0:\nAdaptive RX: n/a  TX: n/a\nstats-block-usecs:\tn/a\n\
                       sample-interval:\tn/a\n\nrx-usecs:\t3\nrx-frames:\tn/a\n\ntx-usecs:\t0\n\n\
                       CQE mode RX: n/a  TX: n/a\n";
    const OLD: &str = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: off\nstats-block-usecs: 0\n\n\
                       rx-usecs: 50\nrx-frames: 64\n";

    #[test]
    fn both_layouts() {
        let new = interface(NEW).expect("eth0");
        assert_eq!(new.coalesce.keys().collect::<Vec<_>>(), ["rx-usecs", "tx-usecs"]);
        assert_eq!((new.coalesce["rx-usecs"].get(), new.adaptive_rx), (&3, None));
        let old = interface(OLD).expect("eth0");
        assert_eq!(
            (old.coalesce["rx-frames"].get(), old.adaptive_rx.as_ref().map(Observed::get)),
            (&64, Some(&true))
        );
    }

    #[test]
    fn a_change_between_samples_is_seen() {
        let text = format!("{OLD}$ ethtool -C eth0 rx-usecs 0\n{}", OLD.replace(": 50", ": 0"));
        let usecs = &interface(&text).expect("eth0").coalesce["rx-usecs"];
        assert_eq!((usecs.get(), usecs.former().map(|fact| fact.value)), (&0, Some(50)));
    }

    #[test]
    fn prose_between_ends_it() {
        assert!(interface("rx-usecs: 3\n").is_none());
        let text = format!("{OLD}This is the default.\nrx-usecs: 7\n");
        assert_eq!(interface(&text).expect("eth0").coalesce["rx-usecs"].get(), &50);
    }
}

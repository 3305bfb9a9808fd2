//! `ethtool -g`: ring sizes.
//!
//! Two blocks, "Pre-set maximums" and "Current hardware settings", of lines `RX:` and `TX:` among others;
//! a driver that does not tell prints `n/a`.

use super::{Fate, Line, Section, Tool};
use crate::{Fact, Limited, Observed, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -g",
    command: |command| command.is("ethtool", "-g"),
    heading: |line| line.starts_with(HEADING) && line.ends_with(':'),
    open: |context| Box::new(Rings { interface: context.interface().to_owned(), block: Block::None }),
};

const HEADING: &str = "Ring parameters for ";

/// The two blocks of `-g` and `-l`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    None,
    Most,
    Current,
}

impl Block {
    /// The block that a line opens.
    pub(super) fn opened_by(text: &str) -> Option<Block> {
        match text {
            "Pre-set maximums:" => Some(Block::Most),
            "Current hardware settings:" => Some(Block::Current),
            _ => None,
        }
    }
}

struct Rings {
    interface: String,
    block: Block,
}

impl Section for Rings {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if let Some(interface) = text.strip_prefix(HEADING) {
            self.interface = interface.trim_end_matches(':').to_owned();
            self.block = Block::None;
            return Fate::Taken;
        }
        if text.is_empty() {
            return Fate::Skipped;
        }
        match Block::opened_by(text) {
            Some(block) => self.block = block,
            None => return self.entry(text, line, snapshot),
        }
        Fate::Taken
    }
}

impl Rings {
    fn entry(&self, text: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let Some((name, value)) = text.split_once(':') else { return Fate::Over };
        if !name.starts_with("RX") && !name.starts_with("TX") && !name.starts_with("CQE") {
            return Fate::Over;
        }
        let Ok(entries) = value.trim().parse::<u32>() else { return Fate::Skipped };
        let quote = line.quote();
        let Some(interface) = snapshot.interface_mut(&self.interface, &quote) else { return Fate::Taken };
        let ring = match name {
            "RX" => &mut interface.rings.rx,
            "TX" => &mut interface.rings.tx,
            _ => return Fate::Taken,
        };
        let fact = Fact::new(entries, quote);
        note(ring, self.block, fact);
        Fate::Taken
    }
}

/// Puts a number of the block into its place.
pub(super) fn note(ring: &mut Limited, block: Block, fact: Fact<u32>) {
    match block {
        Block::Most => ring.most = Some(fact),
        Block::Current => Observed::note(&mut ring.current, fact),
        // Cut off above: nobody can tell which block it is.
        Block::None => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::text::Reader;

    fn rx(text: &str, interface: &str) -> (Option<u32>, Option<u32>) {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        let snapshot = reader.finish();
        let ring =
            snapshot.interface(interface).map(|interface| interface.rings.rx.clone()).unwrap_or_default();
        (ring.current.map(|n| *n.get()), ring.most.map(|n| n.value))
    }

    // ethtool 6.1, rings.c.
    const TEXT: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\n\
                        Current hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t256\n";

    #[test]
    fn current_and_most() {
        assert_eq!(rx(TEXT, "eth0"), (Some(256), Some(4096)));
        assert_eq!(rx(&format!("$ ethtool -g eth0\n{TEXT}"), "eth0"), (Some(256), Some(4096)));
    }

    #[test]
    fn half_a_paste_is_half_known() {
        let (head, tail) = TEXT.split_once("Current").expect("two blocks");
        assert_eq!(rx(head, "eth0"), (None, Some(4096)));
        assert_eq!(rx(&format!("$ ethtool -g eth0\nCurrent{tail}"), "eth0"), (Some(256), None));
        assert_eq!(rx("RX:\t\t256\n", "eth0"), (None, None));
    }
}

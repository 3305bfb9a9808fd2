//! `ethtool -g`: ring sizes.
//!
//! Two blocks, "Pre-set maximums" and "Current hardware settings", of lines `RX:` and `TX:` among others;
//! a driver that does not tell prints `n/a`.

use super::{Context, Fate, Line, Section, Tool};
use crate::{Fact, Interface, Limited, Observed, Snapshot};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -g",
    command: |command| command.is("ethtool", "-g"),
    heading: |line| LAYOUT.is_heading(line),
    open: |context| Box::new(Blocks::new(&LAYOUT, context)),
};

static LAYOUT: Layout = Layout {
    heading: "Ring parameters for ",
    has: |name| ["RX", "TX", "CQE"].iter().any(|kind| name.starts_with(kind)),
    kind: |interface, name| (name == "RX").then_some(&mut interface.rings.rx),
};

/// What tells the outputs of `-g` and `-l` apart, which have the same two blocks.
pub(super) struct Layout {
    /// The first line up to the interface.
    pub heading: &'static str,
    /// Whether a line of a block has that name.
    pub has: fn(&str) -> bool,
    /// Where its number goes; `None` for what nobody asks for.
    pub kind: for<'a> fn(&'a mut Interface, &str) -> Option<&'a mut Limited>,
}

impl Layout {
    /// Whether a line is the first one.
    pub(super) fn is_heading(&self, line: &str) -> bool {
        line.starts_with(self.heading) && line.ends_with(':')
    }
}

/// The two blocks, while they are being read.
pub(super) struct Blocks {
    layout: &'static Layout,
    interface: String,
    block: Block,
}

#[derive(Clone, Copy)]
enum Block {
    None,
    Most,
    Current,
}

impl Blocks {
    /// Before the first line.
    pub(super) fn new(layout: &'static Layout, context: &Context) -> Blocks {
        Blocks { layout, interface: context.interface().to_owned(), block: Block::None }
    }

    fn entry(&self, text: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let Some((name, value)) = text.split_once(':').filter(|(name, _)| (self.layout.has)(name)) else {
            return Fate::Over;
        };
        let Ok(number) = value.trim().parse::<u32>() else { return Fate::Skipped };
        let quote = line.quote();
        let Some(interface) = snapshot.interface_mut(&self.interface, &quote) else { return Fate::Taken };
        if let Some(kind) = (self.layout.kind)(interface, name) {
            note(kind, self.block, Fact::new(number, quote));
        }
        Fate::Taken
    }
}

impl Section for Blocks {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Fate {
        let text = line.trimmed();
        if let Some(interface) = text.strip_prefix(self.layout.heading) {
            self.interface = interface.trim_end_matches(':').to_owned();
            self.block = Block::None;
            return Fate::Taken;
        }
        match text {
            "" => return Fate::Skipped,
            "Pre-set maximums:" => self.block = Block::Most,
            "Current hardware settings:" => self.block = Block::Current,
            _ => return self.entry(text, line, snapshot),
        }
        Fate::Taken
    }
}

/// Puts a number of the block into its place.
fn note(kind: &mut Limited, block: Block, fact: Fact<u32>) {
    match block {
        Block::Most => kind.most = Some(fact),
        Block::Current => Observed::note(&mut kind.current, fact),
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

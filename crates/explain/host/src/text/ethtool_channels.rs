//! `ethtool -l`: queues that have vectors of their own.
//!
//! The same two blocks as `-g`, with lines `RX:`, `TX:`, `Other:` and `Combined:`. ethtool prints `n/a` since 5.x
//! where the driver has no such kind, and 0 before.

use super::Tool;
use super::ethtool_rings::{Blocks, Layout};

pub(super) static TOOL: Tool = Tool {
    name: "ethtool -l",
    command: |command| command.is("ethtool", "-l"),
    heading: |line| LAYOUT.is_heading(line),
    open: |context| Box::new(Blocks::new(&LAYOUT, context)),
};

static LAYOUT: Layout = Layout {
    heading: "Channel parameters for ",
    has: |name| matches!(name, "RX" | "TX" | "Other" | "Combined"),
    kind: |interface, name| match name {
        "RX" => Some(&mut interface.channels.rx),
        "Combined" => Some(&mut interface.channels.combined),
        _ => None,
    },
};

#[cfg(test)]
mod tests {
    use crate::text::Reader;
    use crate::{Channels, Limited};

    // ethtool 6.1, netlink/channels.c; igb and ixgbe.
    const TEXT: &str = "Channel parameters for eth0:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\n\
                        Combined:\t8\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\n\
                        Combined:\t2\n";

    fn channels(text: &str) -> (Channels, Option<u32>) {
        let mut reader = Reader::new();
        reader.read("paste", text.as_bytes()).expect("memory");
        let snapshot = reader.finish();
        let interface = snapshot.interface("eth0");
        (
            interface.map(|interface| interface.channels.clone()).unwrap_or_default(),
            interface.and_then(|interface| interface.channel_count()),
        )
    }

    fn numbers(limited: &Limited) -> (Option<u32>, Option<u32>) {
        (limited.current.as_ref().map(|n| *n.get()), limited.most.as_ref().map(|n| n.value))
    }

    #[test]
    fn what_the_driver_has_not_is_unknown() {
        let (read, count) = channels(TEXT);
        assert_eq!(
            (numbers(&read.combined), numbers(&read.rx), count),
            ((Some(2), Some(8)), (None, None), Some(2))
        );
        // Before 5.x.
        let (read, count) = channels(&TEXT.replace("n/a", "0"));
        assert_eq!(
            (numbers(&read.combined), numbers(&read.rx), count),
            ((Some(2), Some(8)), (Some(0), Some(0)), Some(2))
        );
    }

    #[test]
    fn half_a_paste_is_half_known() {
        let (head, tail) = TEXT.split_once("Current").expect("two blocks");
        assert_eq!(numbers(&channels(head).0.combined), (None, Some(8)));
        let prompted = format!("$ ethtool -l eth0\nCurrent{tail}");
        assert_eq!(numbers(&channels(&prompted).0.combined), (Some(2), None));
    }
}

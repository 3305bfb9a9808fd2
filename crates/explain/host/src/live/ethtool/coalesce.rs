//! `ethtool -c`: interrupt coalescing, in the units of the names.

use super::{Ethtool, number, on_off};
use crate::live::bundle::Output;
use kernel::ethtool::{Command, Get};
use kernel::netlink::Attributes;
use std::fmt::Write as _;

/// Numbers in the order of `struct ethtool_coalesce`, which netlink's attributes repeat from 2 on.
const STRUCTURE: u16 = 22;
const FIRST_ATTRIBUTE: u16 = 2;
const ADAPTIVE_RX: u16 = 9;
const ADAPTIVE_TX: u16 = 10;
/// Behind the structure's, as netlink numbers them (Linux 5.15).
const CQE_TX: u16 = 22;
const CQE_RX: u16 = 23;

/// The lines between the two that hold switches: paragraphs of labels, each with its place in the structure.
const LINES: [&[(&str, u16)]; 5] = [
    &[("stats-block-usecs", 8), ("sample-interval", 21), ("pkt-rate-low", 11), ("pkt-rate-high", 16)],
    &[("rx-usecs", 0), ("rx-frames", 1), ("rx-usecs-irq", 2), ("rx-frames-irq", 3)],
    &[("tx-usecs", 4), ("tx-frames", 5), ("tx-usecs-irq", 6), ("tx-frames-irq", 7)],
    &[("rx-usecs-low", 12), ("rx-frame-low", 13), ("tx-usecs-low", 14), ("tx-frame-low", 15)],
    &[("rx-usecs-high", 17), ("rx-frame-high", 18), ("tx-usecs-high", 19), ("tx-frame-high", 20)],
];

impl Ethtool {
    pub(super) fn coalesce(&mut self, name: &[u8], display_name: &str) -> Output {
        self.either(
            |generic| {
                let answer = generic.get(Get::Coalesce, name)?;
                let attributes = Attributes::new(&answer);
                Ok(render(display_name, |place| {
                    let kind = place + FIRST_ATTRIBUTE;
                    match place {
                        ADAPTIVE_RX | ADAPTIVE_TX | CQE_TX | CQE_RX => attributes.u8(kind).map(u32::from),
                        _ => attributes.u32(kind),
                    }
                }))
            },
            |ioctl| {
                let numbers = ioctl.numbers(name, Command::Coalesce, &[], STRUCTURE as usize)?;
                Ok(render(display_name, |place| numbers.get(usize::from(place)).copied()))
            },
        )
    }
}

fn render(display_name: &str, at: impl Fn(u16) -> Option<u32>) -> String {
    let switch = |place| at(place).map_or("n/a", |value| on_off(value != 0));
    let mut text = format!(
        "Coalesce parameters for {display_name}:\nAdaptive RX: {}  TX: {}\n",
        switch(ADAPTIVE_RX),
        switch(ADAPTIVE_TX)
    );
    for paragraph in LINES {
        for &(label, place) in paragraph {
            let _ = writeln!(text, "{label}: {}", number(at(place)));
        }
        text.push('\n');
    }
    let _ = write!(text, "CQE mode RX: {}  TX: {}\n\n", switch(CQE_RX), switch(CQE_TX));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_the_structure_is_printed_once() {
        let text = render("eth0", |place| (place < STRUCTURE).then_some(1000 + u32::from(place)));
        for place in 0..STRUCTURE {
            let printed = text.lines().filter(|line| line.ends_with(&format!(" {}", 1000 + place))).count();
            let is_switch = place == ADAPTIVE_RX || place == ADAPTIVE_TX;
            assert_eq!(printed, usize::from(!is_switch), "{place} in\n{text}");
        }
        assert!(text.contains("\nrx-usecs: 1000\n") && text.contains("\ntx-frame-high: 1020\n"), "{text}");
        assert!(text.contains("Adaptive RX: on  TX: on\n") && text.contains("CQE mode RX: n/a  TX: n/a\n"));
    }
}

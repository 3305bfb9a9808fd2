//! `ethtool -l` and `-g`: channels, and entries of the rings, at most and now.

use super::{Ethtool, number, on_off};
use crate::live::bundle::Output;
use kernel::ethtool::{Command, Get};
use kernel::netlink::Attributes;
use std::fmt::Write as _;

const CHANNELS: [&str; 4] = ["RX:\t\t", "TX:\t\t", "Other:\t\t", "Combined:\t"];
const RINGS: [&str; 4] = ["RX:\t\t", "RX Mini:\t", "RX Jumbo:\t", "TX:\t\t"];

impl Ethtool {
    pub(super) fn channels(&mut self, name: &[u8], display_name: &str) -> Output {
        let heading = format!("Channel parameters for {display_name}:\n");
        self.either(
            |generic| {
                Ok(of_attributes(&heading, CHANNELS, Attributes::new(&generic.get(Get::Channels, name)?)))
            },
            |ioctl| Ok(of_structure(&heading, CHANNELS, &ioctl.numbers(name, Command::Channels, &[], 8)?)),
        )
    }

    pub(super) fn rings(&mut self, name: &[u8], display_name: &str) -> Output {
        let heading = format!("Ring parameters for {display_name}:\n");
        self.either(
            |generic| {
                let answer = generic.get(Get::Rings, name)?;
                let attributes = Attributes::new(&answer);
                Ok(of_attributes(&heading, RINGS, attributes) + &buffers(attributes))
            },
            |ioctl| Ok(of_structure(&heading, RINGS, &ioctl.numbers(name, Command::Rings, &[], 8)?)),
        )
    }
}

/// Attributes from 2 on (`ETHTOOL_A_CHANNELS_RX_MAX`, `ETHTOOL_A_RINGS_RX_MAX`) stand in the structure's order.
fn of_attributes(heading: &str, labels: [&str; 4], attributes: Attributes<'_>) -> String {
    blocks(heading, labels, |place| attributes.u32(place + 2))
}

/// What a device has none of at most is left out by netlink (`net/ethtool/channels.c`, `rings.c`), so it is here.
fn of_structure(heading: &str, labels: [&str; 4], numbers: &[u32]) -> String {
    let at = |place: u16| numbers.get(usize::from(place)).copied();
    blocks(heading, labels, |place| at(place).filter(|_| at(place % 4).is_some_and(|most| most > 0)))
}

fn blocks(heading: &str, labels: [&str; 4], at: impl Fn(u16) -> Option<u32>) -> String {
    let mut text = heading.to_owned();
    for (heading, first) in [("Pre-set maximums", 0), ("Current hardware settings", 4)] {
        let _ = writeln!(text, "{heading}:");
        for (label, place) in labels.into_iter().zip(first..) {
            let _ = writeln!(text, "{label}{}", number(at(place)));
        }
    }
    text
}

/// What Linux 5.17, 5.18 and 6.2 report of rings besides.
fn buffers(attributes: Attributes<'_>) -> String {
    let push = attributes.u8(13).map_or("n/a", |push| on_off(push != 0));
    let split = match attributes.u8(11) {
        Some(1) => "off",
        Some(2) => "on",
        _ => "n/a",
    };
    let (buffer, completion) = (number(attributes.u32(10)), number(attributes.u32(12)));
    format!(
        "RX Buf Len:\t\t{buffer}\nCQE Size:\t\t{completion}\nTX Push:\t\t{push}\nTCP data split:\t\t{split}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::attributes::attribute;

    #[test]
    fn both_ways_show_the_same_sizes() {
        let structure = of_structure("", RINGS, &[4096, 0, 0, 4096, 256, 0, 0, 512]);
        let sent = [(2, 4096), (5, 4096), (6, 256), (9, 512)]
            .map(|(kind, value): (u16, u32)| attribute(kind, &value.to_ne_bytes()))
            .concat();
        assert_eq!(of_attributes("", RINGS, Attributes::new(&sent)), structure);
        assert!(structure.contains("RX:\t\t256\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t512\n"), "{structure}");
        assert_eq!(of_structure("", CHANNELS, &[]).matches("n/a").count(), 8);
    }
}

//! `ethtool -g`: entries of the rings.

use super::{Ethtool, number, on_off};
use crate::live::bundle::Output;
use kernel::ethtool::{Command, Get};
use kernel::netlink::Attributes;
use std::fmt::Write as _;

impl Ethtool {
    pub(super) fn rings(&mut self, name: &[u8], shown: &str) -> Output {
        self.either(
            |generic| {
                let answer = generic.get(Get::Rings, name)?;
                Ok(of_attributes(shown, Attributes::new(&answer)))
            },
            |ioctl| Ok(of_structure(shown, &ioctl.numbers(name, Command::Rings, &[], 8)?)),
        )
    }
}

/// ETHTOOL_A_RINGS_RX_MAX (2) to _TX (9) stand in the order of `struct ethtool_ringparam`.
fn of_attributes(shown: &str, attributes: Attributes<'_>) -> String {
    let mut text = sizes(shown, |place| attributes.u32(place + 2));
    // Linux 5.17, 5.18 and 6.2 brought what follows.
    let _ = writeln!(text, "RX Buf Len:\t\t{}", number(attributes.u32(10)));
    let _ = writeln!(text, "CQE Size:\t\t{}", number(attributes.u32(12)));
    let _ = writeln!(text, "TX Push:\t\t{}", attributes.u8(13).map_or("n/a", |push| on_off(push != 0)));
    let split = match attributes.u8(11) {
        Some(1) => "off",
        Some(2) => "on",
        _ => "n/a",
    };
    let _ = writeln!(text, "TCP data split:\t\t{split}");
    text
}

/// A ring that cannot have entries is left out by netlink (`net/ethtool/rings.c`), so it is here.
fn of_structure(shown: &str, numbers: &[u32]) -> String {
    let at = |place: u16| numbers.get(usize::from(place)).copied();
    sizes(shown, |place| at(place).filter(|_| at(place % 4).is_some_and(|most| most > 0)))
}

fn sizes(shown: &str, at: impl Fn(u16) -> Option<u32>) -> String {
    let mut text = format!("Ring parameters for {shown}:\n");
    for (heading, first) in [("Pre-set maximums", 0), ("Current hardware settings", 4)] {
        let _ = writeln!(text, "{heading}:");
        for (label, place) in ["RX:\t\t", "RX Mini:\t", "RX Jumbo:\t", "TX:\t\t"].into_iter().zip(first..) {
            let _ = writeln!(text, "{label}{}", number(at(place)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::attributes::attribute;

    #[test]
    fn both_ways_show_the_same_sizes() {
        let structure = of_structure("eth0", &[4096, 0, 0, 4096, 256, 0, 0, 512]);
        let sent = [(2, 4096), (5, 4096), (6, 256), (9, 512)]
            .map(|(kind, value): (u16, u32)| attribute(kind, &value.to_ne_bytes()))
            .concat();
        let attributes = of_attributes("eth0", Attributes::new(&sent));
        assert!(attributes.starts_with(&structure), "{attributes}");
        assert!(structure.contains("RX:\t\t256\nRX Mini:\tn/a\nRX Jumbo:\tn/a\nTX:\t\t512\n"), "{structure}");
    }
}

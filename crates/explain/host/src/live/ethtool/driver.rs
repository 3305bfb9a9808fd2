//! `ethtool -i`, driver, firmware, bus address, and `ethtool -S`, the driver's counters.

use super::Ethtool;
use crate::live::bundle::{Output, printable};
use kernel::ethtool::{Command, short, word};
use kernel::netlink::until_zero;
use std::fmt::Write as _;

/// Bytes of `struct ethtool_drvinfo`.
const STRUCTURE: usize = 196;
/// Texts with their places in it, and flags with the place of the number that they stand for.
const TEXTS: [(&str, usize); 5] = [
    ("driver", 4),
    ("version", 36),
    ("firmware-version", 68),
    ("expansion-rom-version", 132),
    ("bus-info", 100),
];
const FLAGS: [(&str, usize); 5] = [
    ("supports-statistics", 180),
    ("supports-test", 184),
    ("supports-eeprom-access", 188),
    ("supports-register-dump", 192),
    ("supports-priv-flags", 176),
];

impl Ethtool {
    pub(super) fn driver(&mut self, name: &[u8]) -> Output {
        self.by_ioctl(|ioctl| {
            let answer = ioctl.bytes(name, Command::DriverInfo, &[], STRUCTURE)?;
            render(answer).ok_or_else(|| short().into())
        })
    }

    /// The command for the counters, and its output.
    pub(in crate::live) fn statistics(&mut self, name: &[u8]) -> (String, Output) {
        let output = self.by_ioctl(|ioctl| {
            let mut text = String::from("NIC statistics:\n");
            for (name, value) in ioctl.statistics(name)? {
                let _ = writeln!(text, "     {}: {value}", printable(&name));
            }
            Ok(text)
        });
        (format!("ethtool -S {}", printable(name)), output)
    }
}

fn render(answer: &[u8]) -> Option<String> {
    let mut text = String::new();
    for (label, at) in TEXTS {
        let value = printable(until_zero(answer.get(at..)?.get(..32)?));
        let _ = writeln!(text, "{label}: {value}");
    }
    for (label, at) in FLAGS {
        let _ = writeln!(text, "{label}: {}", if word(answer, at)? > 0 { "yes" } else { "no" });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_fill_their_place_end_there() {
        let mut answer = vec![b'x'; STRUCTURE];
        answer.get_mut(36..41).expect("within").copy_from_slice(b"6.18\0");
        answer.get_mut(176..196).expect("within").fill(0);
        let text = render(&answer).expect("long enough");
        assert!(text.starts_with(&format!("driver: {}\nversion: 6.18\n", "x".repeat(32))), "{text}");
        assert!(text.ends_with("supports-register-dump: no\nsupports-priv-flags: no\n"), "{text}");
        assert_eq!(render(answer.get(..STRUCTURE - 1).expect("within")), None);
    }
}

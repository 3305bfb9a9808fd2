//! `ethtool -l`: queues that have vectors of their own.

use super::{Ethtool, number};
use crate::live::bundle::Output;
use kernel::ethtool::{Command, Get};
use kernel::netlink::Attributes;

impl Ethtool {
    pub(super) fn channels(&mut self, name: &[u8], shown: &str) -> Output {
        let counts = self.either(
            |generic| {
                let answer = generic.get(Get::Channels, name)?;
                // ETHTOOL_A_CHANNELS_RX_MAX to _COMBINED_COUNT.
                Ok(std::array::from_fn(|place| Attributes::new(&answer).u32(2 + as_kind(place))))
            },
            |ioctl| Ok(of_structure(&ioctl.numbers(name, Command::Channels, &[], 8)?)),
        )?;
        Ok(render(shown, &counts))
    }
}

fn as_kind(place: usize) -> u16 {
    u16::try_from(place).unwrap_or(u16::MAX)
}

/// Largest and current numbers of receive, transmit, other and combined channels. A kind of which a driver has
/// none at most is left out by netlink (`net/ethtool/channels.c`), so it is here.
fn of_structure(numbers: &[u32]) -> [Option<u32>; 8] {
    std::array::from_fn(|place| {
        let most = numbers.get(place % 4).copied()?;
        numbers.get(place).copied().filter(|_| most > 0)
    })
}

fn render(
    shown: &str,
    &[rx_most, tx_most, other_most, combined_most, rx, tx, other, combined]: &[Option<u32>; 8],
) -> String {
    let block = |rx, tx, other, combined| {
        format!(
            "RX:\t\t{}\nTX:\t\t{}\nOther:\t\t{}\nCombined:\t{}\n",
            number(rx),
            number(tx),
            number(other),
            number(combined)
        )
    };
    format!(
        "Channel parameters for {shown}:\nPre-set maximums:\n{}Current hardware settings:\n{}",
        block(rx_most, tx_most, other_most, combined_most),
        block(rx, tx, other, combined)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_a_driver_does_not_have_is_not_applicable() {
        let text = render("eth0", &of_structure(&[0, 0, 1, 8, 0, 0, 1, 4]));
        assert!(text.contains("maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t8\n"), "{text}");
        assert!(text.ends_with("settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t4\n"), "{text}");
        assert_eq!(of_structure(&[]), [None; 8]);
    }
}

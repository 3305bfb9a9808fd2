//! What drivers log when a link comes up: `NIC Link is Up 1000 Mbps Full Duplex` (Intel's), `Link is Up - 2.5Gbps/Full` (phylib and
//! phylink), `Link is up at 100 Mbps, half duplex` (tg3), `link up, 100Mbps, full-duplex` (mii).

use super::{Line, vector_name};
use crate::{Fact, LogTopic, Observed, Quote, Snapshot};

/// The link of an interface by the kernel log.
#[derive(Debug, Default)]
pub(super) struct Logged {
    /// As it was negotiated last; `None` where it went down after that.
    last: Option<Negotiated>,
    /// The fastest that was ever negotiated, Mbit/s.
    fastest: Option<Fact<u32>>,
    /// Driver and bus address of the device.
    device: Option<(String, String, Quote)>,
}

#[derive(Clone, Debug)]
struct Negotiated {
    mbps: u32,
    full_duplex: Option<bool>,
    quote: Quote,
}

impl Logged {
    /// Notes a message with this topic, whose words stand `before` and `after` those that decide it.
    pub fn note(&mut self, topic: LogTopic, before: &str, after: &str, line: &Line<'_>) {
        if self.device.is_none() {
            self.device = device(before).map(|(driver, bus)| (driver, bus, line.quote()));
        }
        match (topic, speed(after)) {
            (LogTopic::LinkDown, _) => self.last = None,
            (LogTopic::LinkUp, Some((mbps, full_duplex))) => {
                let quote = line.quote();
                if self.fastest.as_ref().is_none_or(|fastest| fastest.value < mbps) {
                    self.fastest = Some(Fact::new(mbps, quote.clone()));
                }
                self.last = Some(Negotiated { mbps, full_duplex, quote });
            }
            _ => {}
        }
    }

    /// Gives the interface, which is made where there is none yet, what no tool shows of it.
    pub fn give(&self, name: &str, snapshot: &mut Snapshot) {
        let Some(last) = &self.last else { return };
        let Some(interface) = snapshot.interface_mut(name, &last.quote) else { return };
        if let Some((driver, bus, quote)) = &self.device {
            interface.driver.get_or_insert_with(|| Fact::new(driver.clone(), quote.clone()));
            interface.bus.get_or_insert_with(|| Fact::new(bus.clone(), quote.clone()));
        }
        let link = &mut interface.link;
        if link.speed.is_some() {
            return;
        }
        Observed::note(&mut link.speed, last.mbps, &last.quote);
        if link.full_duplex.is_none() {
            Observed::note(&mut link.full_duplex, last.full_duplex, &last.quote);
        }
        let faster = self.fastest.as_ref().filter(|fastest| fastest.value > last.mbps);
        link.supported = link.supported.take().or(faster.cloned());
    }
}

/// Mbit/s, and whether full duplex.
fn speed(words: &str) -> Option<(u32, Option<bool>)> {
    let words: Vec<&str> = words.split([' ', ',', '/', '<', '>']).filter(|word| !word.is_empty()).collect();
    let (place, mbps) = words.iter().enumerate().find_map(|(place, word)| {
        let (number, scale) = match word.strip_suffix("Mbps") {
            Some(number) => (number, 1.0),
            None => (word.strip_suffix("Gbps")?, 1000.0),
        };
        let number = if number.is_empty() { words.get(place.checked_sub(1)?)? } else { number };
        let mbps = number.parse::<f64>().ok()? * scale;
        (1.0..=10_000_000.0).contains(&mbps).then_some((place, mbps.round() as u32))
    })?;
    let duplex = words.get(place.checked_add(1)?).map(|word| word.to_ascii_lowercase());
    let full_duplex = match duplex.as_deref().unwrap_or_default() {
        "full" | "full-duplex" => Some(true),
        "half" | "half-duplex" => Some(false),
        _ => None,
    };
    Some((mbps, full_duplex))
}

/// Driver and bus address where `netdev_printk` writes them: `igb 0000:01:00.0 eth0: `.
fn device(before: &str) -> Option<(String, String)> {
    let words: Vec<&str> = before.split_whitespace().map(|word| word.trim_end_matches(':')).collect();
    let is_driver = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase())
            && word.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-'))
    };
    words.windows(2).find_map(|pair| match pair {
        &[driver, bus] if is_driver(driver) && vector_name::is_bus_address(bus) => {
            Some((driver.to_owned(), bus.to_owned()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_of_every_driver() {
        let full = Some(true);
        for (words, expected) in [
            // igb, e1000e; i40e; ixgbe; ice; atl1c.
            (" 1000 Mbps Full Duplex, Flow Control: RX/TX", Some((1000, full))),
            (", 10 Gbps Full Duplex, Flow Control: None", Some((10_000, full))),
            (" 10 Gbps, Flow Control: RX/TX", Some((10_000, None))),
            ("<100 Mbps Full Duplex>", Some((100, full))),
            // phylib and phylink; tg3 and sky2; mii.
            (" - 2.5Gbps/Full - flow control off", Some((2500, full))),
            (" - 100Mbps/Half - flow control off", Some((100, Some(false)))),
            (" at 100 Mbps, half duplex", Some((100, Some(false)))),
            (", 100Mbps, full-duplex, lpa 0x45E1", Some((100, full))),
            (" - Unknown/Unknown - flow control off", None),
            ("", None),
            (" Mbps", None),
            (" - NaNGbps/Full", None),
            (" - 99999999999Gbps/Full", None),
            (" é Mbps", None),
            (" éMbps éGbps bps Gbps", None),
        ] {
            assert_eq!(speed(words), expected, "{words}");
        }
    }

    #[test]
    fn drivers_stand_before_a_bus_address() {
        let igb = Some(("igb".to_owned(), "0000:01:00.0".to_owned()));
        assert_eq!(device("[   12.1] igb 0000:01:00.0 eth0: igb: eth0 "), igb);
        assert_eq!(device("Jul 14 14:17:50 box kernel: igb 0000:01:00.0: eth0: "), igb);
        assert_eq!(device("mt7530-mdio mdio-bus:1f lan1: "), None);
        assert_eq!(device("14:17:50 0000:01:00.0 "), None);
    }
}

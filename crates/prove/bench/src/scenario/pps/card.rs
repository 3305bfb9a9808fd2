//! What a number of `rx-usecs` means to a driver, as the profiles of crate `nic` have it from its source.

use host::Snapshot;
use nic::{OptionValue, Profile};
use std::collections::BTreeSet;

const KNOB: &str = "rx-usecs";

/// The card behind an interface, as far as profiles know it.
#[derive(Debug, Default)]
pub struct Card {
    pub driver: Option<String>,
    /// Titles of the profiles that fit.
    titles: Vec<&'static str>,
    values: Vec<Vec<OptionValue>>,
}

impl Card {
    /// Of an interface in a snapshot: by its PCI id, else by its driver.
    pub fn of(snapshot: &Snapshot, interface: &str) -> Card {
        let Some(interface) = snapshot.interface(interface) else { return Card::default() };
        let profiles = nic::builtin().unwrap_or_default();
        let by_id = interface.pci.as_ref().map(|pci| &pci.value);
        let by_id: Vec<&Profile> =
            profiles.iter().filter(|profile| by_id.is_some_and(|id| profile.pci.contains(id))).collect();
        let driver = interface.driver.as_ref().map(|driver| driver.value.clone());
        let has_driver =
            |profile: &&Profile| profile.drivers("linux").any(|known| Some(known) == driver.as_deref());
        let fitting = if by_id.is_empty() { profiles.iter().filter(has_driver).collect() } else { by_id };
        let knob = |profile: &&'static Profile| profile.device_options.iter().find(|knob| knob.name == KNOB);
        let values = fitting.iter().filter_map(knob).map(|knob| knob.values.clone()).collect();
        Card { driver, titles: fitting.iter().map(|profile| profile.title.as_str()).collect(), values }
    }

    pub fn description(&self) -> String {
        let driver = self.driver.as_deref().unwrap_or("unknown");
        match self.titles.as_slice() {
            [title] => format!("{title}, driver {driver}"),
            _ => format!("driver {driver}"),
        }
    }

    /// What so many microseconds mean; `None`: no profile says it, or they differ.
    pub fn means(&self, microseconds: u32) -> Option<&str> {
        let said =
            |values: &'_ Vec<OptionValue>| values.iter().position(|value| covers(&value.set, microseconds));
        let all: Option<Vec<&str>> =
            self.values.iter().map(|values| Some(values.get(said(values)?)?.means.as_str())).collect();
        let mut all: BTreeSet<&str> = all?.into_iter().collect();
        (all.len() == 1).then(|| all.pop_first()).flatten()
    }
}

/// Whether `3`, `10-10000` or `10 to 10000` is that number or has it between its ends.
fn covers(set: &str, number: u32) -> bool {
    let ends = set.split_once(" to ").or_else(|| set.split_once('-')).unwrap_or((set, set));
    let [start, end] = [ends.0, ends.1].map(|end| end.trim().parse::<u32>());
    start.is_ok_and(|start| start <= number) && end.is_ok_and(|end| number <= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(driver: &str) -> Card {
        let mut reader = host::text::Reader::new();
        let text = format!("$ ethtool -i eth0\ndriver: {driver}\nversion: 6.12\n");
        reader.read("test", text.as_bytes()).expect("text");
        Card::of(&reader.finish(), "eth0")
    }

    #[test]
    fn profiles_of_a_driver_say_what_a_number_means() {
        let igb = of("igb");
        assert_eq!(igb.driver.as_deref(), Some("igb"));
        assert_eq!(igb.means(0), Some("no moderation: an interrupt for every frame"));
        assert!(igb.means(3).is_some_and(|means| means.starts_with("adaptive")), "{igb:?}");
        assert_eq!(igb.means(50), Some("that many microseconds between interrupts"));
        assert_eq!((igb.means(5), of("nothing").means(3)), (None, None));
    }

    #[test]
    fn ranges_have_both_their_ends() {
        for (set, number, expected) in [
            ("3", 3, true),
            ("3", 30, false),
            ("10-10000", 10, true),
            ("10-10000", 9, false),
            ("10 to 10000", 10_000, true),
            ("on", 1, false),
        ] {
            assert_eq!(covers(set, number), expected, "{set} {number}");
        }
    }
}

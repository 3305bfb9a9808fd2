//! Which classes of frames the device spreads by itself, and which are therefore steered.
//!
//! The profile of the device says what its hash unit reads; a look at the queues while one class dominates says what
//! really happens, and has the last word. Where neither says, PPPoE, stacked tags and MPLS are taken for not spread,
//! which is true of most devices, and plain and single-tagged IP for spread.

use doctor::{Case, Spread};
use explain::Report as Mix;
use host::Interface;
use nic::spread::{self, Traffic, Verdict};
use serde::Serialize;
use xdp::layout::Class;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Unspread,
    All,
    Named(Vec<Class>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassRow {
    pub class: &'static str,
    /// Whether the device spreads it over its queues; `None` where nothing says.
    pub spread: Option<bool>,
    pub why: String,
    /// Its part of the IP frames of the sample, 0 to 1; `None` without one.
    pub share: Option<f64>,
    pub selected: bool,
    #[serde(skip)]
    of: Class,
}

impl ClassRow {
    pub const fn of(&self) -> Class {
        self.of
    }
}

/// Part of a sample above which one class explains what the queues show.
const DOMINATES: f64 = 0.8;
/// Part of the frames on one queue at which a device with several does not spread.
const SATURATED: f64 = 0.9;
/// Part of the frames on the busiest queue below which it does.
const EVEN: f64 = 0.6;
/// Evenly used CPUs that a sample's flows must be worth, so that one saturated queue is not merely one flow.
const FLOWS: f64 = 1.5;

pub fn classes(case: &Case<'_>, interface: &Interface, choice: &Choice) -> Vec<ClassRow> {
    let mix = case.sampled(interface);
    let spread = case.spread(interface);
    let rows = Class::ALL.into_iter().map(|class| {
        let share = mix.and_then(|mix| share(mix, class));
        let (spread, why) = by_queues(class, share, mix, spread.as_ref())
            .unwrap_or_else(|| by_profile(case, interface, class));
        let unspread = match spread {
            Some(spread) => !spread,
            None => matches!(class, Class::Pppoe | Class::Qinq | Class::Mpls),
        };
        let selected = match choice {
            Choice::Unspread => unspread,
            Choice::All => true,
            Choice::Named(named) => named.contains(&class),
        };
        ClassRow { class: class.name(), spread, why, share, selected, of: class }
    });
    rows.collect()
}

/// The bits of the selected classes, as [`xdp::layout::Settings::classes`] has them.
pub fn bits(rows: &[ClassRow]) -> u32 {
    rows.iter().filter(|row| row.selected).fold(0, |bits, row| bits | row.of.bit())
}

pub fn of_bits(bits: u32) -> Vec<&'static str> {
    Class::ALL.into_iter().filter(|class| bits & class.bit() != 0).map(Class::name).collect()
}

/// The class of a frame with IP in it, by its stack of headers; `None` for control traffic and what is no IP.
pub fn of_stack(stack: &str) -> Option<Class> {
    let mut words = stack.split('/');
    if !words.clone().any(|word| word == "ipv4" || word == "ipv6") {
        return None;
    }
    if words.clone().any(|word| word == "pppoe") {
        return Some(Class::Pppoe);
    }
    if words.clone().any(|word| word == "mpls") {
        return Some(Class::Mpls);
    }
    // 802.3 with LLC is no IP to the program.
    if words.any(|word| word == "llc") {
        return None;
    }
    Some(match stack.split('/').filter(|word| *word == "vlan").count() {
        0 => Class::Plain,
        1 => Class::Vlan,
        _ => Class::Qinq,
    })
}

/// Part of the sample's frames with IP that are of the class; `None` where there are none.
fn share(mix: &Mix, class: Class) -> Option<f64> {
    let frames = |is_counted: &dyn Fn(Option<Class>) -> bool| -> u64 {
        mix.stacks.iter().filter(|row| is_counted(of_stack(&row.stack))).map(|row| row.frames).sum()
    };
    let all = frames(&|found| found.is_some());
    (all > 0).then(|| frames(&|found| found == Some(class)) as f64 / all as f64)
}

/// What the queues showed while the class was most of the traffic.
fn by_queues(
    class: Class,
    share: Option<f64>,
    mix: Option<&Mix>,
    spread: Option<&Spread>,
) -> Option<(Option<bool>, String)> {
    share.filter(|share| *share >= DOMINATES)?;
    let spread = spread.filter(|spread| spread.queues.len() > 1 && spread.is_enough())?;
    let host::Basis::Between(_) = spread.shares.basis else { return None };
    let (place, largest) = spread.shares.largest()?;
    let queue = spread.queues.get(place)?;
    let flows = mix.map_or(0.0, |mix| mix.steered.effective_queues);
    let percent = largest * 100.0;
    if largest >= SATURATED && flows >= FLOWS {
        return Some((Some(false), format!("seen: queue {queue} takes {percent:.0} % of it")));
    }
    let used = spread.used();
    (largest <= EVEN && used > 1).then(|| {
        (Some(true), format!("seen: {} on {used} queues, {percent:.0} % on the busiest", class.name()))
    })
}

fn by_profile(case: &Case<'_>, interface: &Interface, class: Class) -> (Option<bool>, String) {
    if case.queue_count(interface) == Some(1) {
        return (Some(false), "there is one receive queue".to_owned());
    }
    if let Some(queue) = only_queue(interface) {
        return (Some(false), format!("the indirection table names queue {queue} alone"));
    }
    let profiles = case.profiles(interface);
    let Some(first) = profiles.first() else {
        return (None, format!("no profile of this device; most {}", usual(class)));
    };
    let mut verdicts = profiles.iter().map(|profile| verdict(profile, class));
    let Some((spread, why)) = verdicts.next() else { return (None, usual(class).to_owned()) };
    if verdicts.all(|(other, _)| other == spread) {
        let who = if profiles.len() == 1 { first.name() } else { "all that it may be".to_owned() };
        return (spread, format!("{who}: {why}"));
    }
    (None, format!("profiles of this driver differ; most {}", usual(class)))
}

fn usual(class: Class) -> &'static str {
    match class {
        Class::Plain | Class::Vlan => "devices spread it",
        Class::Qinq | Class::Pppoe | Class::Mpls => "devices do not spread it",
    }
}

fn only_queue(interface: &Interface) -> Option<u32> {
    let entries = &interface.reta.as_ref()?.get().entries;
    let first = *entries.first()?;
    entries.iter().all(|queue| *queue == first).then_some(first)
}

/// The traffic that stands for a class: the device has to spread all of it.
fn kinds(class: Class) -> &'static [&'static str] {
    match class {
        Class::Plain => &["ipv4"],
        Class::Vlan => &["vlan"],
        Class::Qinq => &["qinq", "8100.8100"],
        Class::Pppoe => &["pppoe", "vlan,pppoe"],
        Class::Mpls => &["mpls"],
    }
}

/// Whether a device spreads the class as it works by default, and why.
fn verdict(profile: &nic::Profile, class: Class) -> (Option<bool>, String) {
    let mut spread = (Some(true), "its hash reads it".to_owned());
    for words in kinds(class) {
        let Ok(traffic) = words.parse::<Traffic>() else { continue };
        match spread::judge(profile, &traffic) {
            Verdict::Yes(_) => {}
            Verdict::No(why) => return (Some(false), why.to_string()),
            Verdict::Unknown(why) => spread = (None, why.to_string()),
        }
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_has_the_class_that_the_program_sees() {
        let cases = [
            ("eth/ipv4/tcp", Some(Class::Plain)),
            ("eth/vlan/ipv6/udp", Some(Class::Vlan)),
            ("eth/vlan/vlan/ipv4/tcp", Some(Class::Qinq)),
            ("eth/vlan/vlan/vlan/ipv4", Some(Class::Qinq)),
            ("eth/vlan/pppoe/ipv4/tcp", Some(Class::Pppoe)),
            ("eth/vlan/mpls/ipv4/tcp", Some(Class::Mpls)),
            ("eth/pppoe/lcp", None),
            ("eth/pppoe-discovery", None),
            ("eth/arp", None),
            ("eth/llc/ipv4/tcp", None),
        ];
        for (stack, class) in cases {
            assert_eq!(of_stack(stack), class, "{stack}");
        }
    }

    #[test]
    fn profiles_say_what_is_spread() {
        let verdict = |nic: &str, class| verdict(&nic::lookup(nic).expect("a profile"), class).0;
        assert_eq!(verdict("i210", Class::Plain), Some(true));
        assert_eq!(verdict("i210", Class::Vlan), Some(true));
        assert_eq!(verdict("i210", Class::Qinq), Some(false));
        assert_eq!(verdict("i210", Class::Pppoe), Some(false));
        assert_eq!(verdict("e810+ddp-comms", Class::Plain), Some(true));
        assert_eq!(verdict("veth", Class::Pppoe), None);
        assert_eq!(verdict("82574", Class::Plain), Some(false));
    }

    #[test]
    fn bits_and_names_go_both_ways() {
        assert_eq!(of_bits(Class::Pppoe.bit() | Class::Plain.bit()), ["plain", "pppoe"]);
        assert_eq!(of_bits(0), Vec::<&str>::new());
    }
}

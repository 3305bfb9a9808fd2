//! What kinds of traffic a sample of frames holds.

use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
use wire::dissect::{Dissection, Link, dissect};
use wire::{Stack, Word};
use xdp::layout;

/// Samples that are counted together: the classes of one short look jump about.
const WINDOWS: usize = 40;
/// Stacks of which frames are counted one by one; more are counted together.
const MOST_STACKS: usize = 256;

/// How a frame is encapsulated: what decides whether a network card finds the flow in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// One that steering knows.
    Known(layout::Class),
    /// No IP: ARP, PPPoE discovery, LLC, and what nobody could read.
    Other,
}

impl Class {
    /// Every class, in the order in which they are displayed.
    pub const ALL: [Class; 6] = [
        Class::Known(layout::Class::Plain),
        Class::Known(layout::Class::Vlan),
        Class::Known(layout::Class::Qinq),
        Class::Known(layout::Class::Pppoe),
        Class::Known(layout::Class::Mpls),
        Class::Other,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Class::Known(class) => class.name(),
            Class::Other => "other",
        }
    }

    pub const fn meaning(self) -> &'static str {
        match self {
            Class::Known(layout::Class::Plain) => "IP, no tag",
            Class::Known(layout::Class::Vlan) => "IP, one VLAN tag",
            Class::Known(layout::Class::Qinq) => "IP, two tags or more",
            Class::Known(layout::Class::Pppoe) => "PPPoE session, any tags",
            Class::Known(layout::Class::Mpls) => "MPLS, any tags",
            Class::Other => "ARP, discovery, unread",
        }
    }

    pub fn of(dissection: &Dissection) -> Class {
        let stack = dissection.stack();
        if stack.contains(Word::Pppoe) {
            return Class::Known(layout::Class::Pppoe);
        }
        if stack.contains(Word::Mpls) {
            return Class::Known(layout::Class::Mpls);
        }
        match (dissection.shape().has_flow(), stack.tags()) {
            (false, _) => Class::Other,
            (true, 0) => Class::Known(layout::Class::Plain),
            (true, 1) => Class::Known(layout::Class::Vlan),
            (true, _) => Class::Known(layout::Class::Qinq),
        }
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The frames of one look, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub frames: u64,
    pub classes: BTreeMap<Class, u64>,
    /// Frames by stack; of more stacks than are counted, under the empty one.
    pub stacks: BTreeMap<Stack, u64>,
    /// Frames that are several TCP segments merged.
    pub merged: u64,
    /// Frames that came too fast to be looked at.
    pub missed: u64,
    pub looked: Duration,
}

impl Tally {
    /// Counts a frame: its first bytes, and its length on the wire.
    pub fn frame(&mut self, bytes: &[u8], length: usize) {
        let dissection = dissect(Link::Ethernet, bytes, length);
        self.frames += 1;
        *self.classes.entry(Class::of(&dissection)).or_default() += 1;
        let stack = dissection.stack();
        let has_room = self.stacks.len() < MOST_STACKS || self.stacks.contains_key(&stack);
        *self.stacks.entry(if has_room { stack } else { Stack::EMPTY }).or_default() += 1;
    }

    /// Frames of a class over all frames; `None` where there is no frame.
    pub fn share(&self, class: Class) -> Option<f64> {
        let frames = self.classes.get(&class).copied().unwrap_or(0);
        (self.frames > 0).then(|| frames as f64 / self.frames as f64)
    }

    fn add(&mut self, other: &Tally) {
        self.frames = self.frames.saturating_add(other.frames);
        self.merged = self.merged.saturating_add(other.merged);
        self.missed = self.missed.saturating_add(other.missed);
        self.looked = self.looked.saturating_add(other.looked);
        for (class, frames) in &other.classes {
            *self.classes.entry(*class).or_default() += frames;
        }
        for (stack, frames) in &other.stacks {
            *self.stacks.entry(*stack).or_default() += frames;
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct Windows(VecDeque<Tally>);

impl Windows {
    /// Takes a look in, and the oldest out.
    pub fn push(&mut self, tally: Tally) {
        if self.0.len() == WINDOWS {
            self.0.pop_front();
        }
        self.0.push_back(tally);
    }

    pub fn sum(&self) -> Tally {
        let mut sum = Tally::default();
        self.0.iter().for_each(|tally| sum.add(tally));
        sum
    }
}

/// What is known of the kinds of traffic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// Nobody has looked yet.
    #[default]
    Pending,
    /// Nobody wants to look (`--no-sample`).
    Off,
    /// It cannot be looked at, and why.
    Refused(String),
    Taken(Tally),
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::Scenario;

    fn tally(scenario: &str) -> Tally {
        let scenario = Scenario::named(scenario).expect("a scenario").with_flows(10);
        let mut generator = scenario.generate(1).expect("a generator");
        let mut tally = Tally::default();
        for _ in 0..200 {
            let frame = generator.next_frame();
            tally.frame(frame.bytes, frame.bytes.len());
        }
        tally
    }

    #[test]
    fn frames_are_distinguished_by_encapsulation() {
        let scenarios =
            [("vlan", layout::Class::Vlan), ("qinq", layout::Class::Qinq), ("pppoe", layout::Class::Pppoe)];
        for (scenario, class) in scenarios {
            let tally = tally(scenario);
            assert_eq!(tally.frames, 200);
            assert!(tally.share(Class::Known(class)).expect("frames") > 0.5, "{scenario}: {tally:?}");
        }
        let mut arp = Tally::default();
        arp.frame(&[[0xff_u8; 12].as_slice(), &[0x08, 0x06], &[0; 28]].concat(), 60);
        arp.frame(&[1, 2, 3], 3);
        assert_eq!(arp.classes, [(Class::Other, 2)].into());
        assert_eq!(Tally::default().share(Class::Other), None);
    }

    #[test]
    fn only_the_last_looks_count() {
        let mut windows = Windows::default();
        for frames in 1..=WINDOWS as u64 + 2 {
            windows.push(Tally { frames, ..Tally::default() });
        }
        assert_eq!(windows.sum().frames, (3..=WINDOWS as u64 + 2).sum::<u64>());
    }
}

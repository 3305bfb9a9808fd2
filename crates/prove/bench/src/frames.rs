//! Frames sent onto an interface at a rate, by several threads: the raw mode.

use crate::counts::{Counts, Shared};
use crate::gate::Gate;
use crate::machine::Watched;
use crate::pace::{Pace, sharpen_sleeps};
use crate::pin::pin;
use crate::report::Interval;
use crate::supervise::{EachSecond, Seen, Supervisor, ThreadError};
use crate::udp::share_of;
use crate::wire_size;
use foldhash::fast::FixedState;
use kernel::socket::{Transmit, TransmitError};
use std::hash::BuildHasher;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;
use wire::{Link, dissect};

/// What is due within this time is sent together.
const GRAIN: Duration = Duration::from_micros(100);

/// Frames could not be sent.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The kernel refused a frame, or the interface.
    #[error(transparent)]
    Transmit(#[from] TransmitError),
    /// No thread could be started.
    #[error(transparent)]
    Thread(#[from] ThreadError),
    /// The thread could not be bound to the CPU.
    #[error("CPU {cpu} cannot be chosen for sending: {cause}")]
    Cpu {
        /// Its number.
        cpu: u16,
        /// What the kernel said: `EINVAL` for a CPU that is not there or not allowed.
        cause: io::Error,
    },
}

/// Frames one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Frames {
    /// None yet.
    pub fn new() -> Frames {
        Frames::default()
    }

    /// Adds a frame, from the destination address on, without FCS.
    pub fn push(&mut self, frame: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(frame);
        self.places.push(start..self.bytes.len());
    }

    /// The first frames of generated traffic.
    pub fn generated(traffic: &mut traffic::Generator, count: usize) -> Frames {
        let mut frames = Frames::new();
        for _ in 0..count {
            frames.push(traffic.next_frame().octets);
        }
        frames
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// In their order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.places.iter().map(|place| self.bytes.get(place.clone()).unwrap_or_default())
    }

    /// Distributes them to so many, each flow to one, so that no flow is reordered; what has no flow goes by its addresses.
    pub fn distributed(&self, to: usize) -> Vec<Frames> {
        let mut shares = vec![Frames::new(); to.max(1)];
        let hash = FixedState::with_seed(0);
        for frame in self.iter() {
            let number = match dissect(Link::Ethernet, frame, frame.len()).flow() {
                Some(flow) => hash.hash_one(flow),
                None => hash.hash_one(frame.get(..12)),
            };
            let count = shares.len() as u64;
            if let Some(share) = shares.get_mut((number % count) as usize) {
                share.push(frame);
            }
        }
        shares
    }
}

/// What to send.
#[derive(Clone, Debug)]
pub struct Playing<'a> {
    /// The interface, in the calling thread's network namespace.
    pub interface: &'a str,
    /// What each thread sends, again and again.
    pub shares: Vec<Frames>,
    /// The CPU of each thread, in turn; none: whichever.
    pub cpus: Vec<u16>,
    /// Frames a second of all threads; `None`: as fast as they go.
    pub rate: Option<f64>,
    /// For how long.
    pub length: Option<Duration>,
    /// How many frames.
    pub count: Option<u64>,
    /// Bytes of encapsulation that the line adds to each frame.
    pub overhead: u64,
}

/// What was sent.
#[derive(Debug)]
pub struct Played {
    /// What was counted, by all threads.
    pub counts: Counts,
    /// From the first frame to the end.
    pub time: Duration,
    /// What was seen meanwhile.
    pub seen: Seen,
    /// What ended it before its time, behind some frames.
    pub ended: Option<LoadError>,
}

impl Played {
    /// All of it, or what ended it before its time.
    pub fn whole(self) -> Result<Played, LoadError> {
        match self.ended {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

/// What a thread has sent.
struct Done {
    counts: Counts,
    time: Duration,
    ended: Option<LoadError>,
}

/// What a thread sends.
struct Job<'a> {
    transmit: Transmit,
    frames: &'a Frames,
    cpu: Option<u16>,
    rate: Option<f64>,
    length: Option<Duration>,
    count: Option<u64>,
    overhead: u64,
    gate: &'a Gate,
}

/// Sends frames, until it has sent all, or the time is over, or `stop` is set. A thread's part of the rate is that of its
/// frames in all frames. Error: the interface, a CPU, or the first frame that was refused, where none had gone before: what has
/// is not lost with one that does not.
pub fn play(
    playing: &Playing<'_>,
    machine: Option<Watched>,
    stop: &AtomicBool,
    each_second: &mut EachSecond<'_>,
) -> Result<Played, LoadError> {
    let shares: Vec<&Frames> = playing.shares.iter().filter(|share| !share.is_empty()).collect();
    let all: usize = shares.iter().map(|share| share.len()).sum();
    let gate = Gate::new(shares.len() + 1);
    let mut jobs = Vec::new();
    for (number, frames) in shares.iter().copied().enumerate() {
        let part = frames.len() as f64 / all as f64;
        jobs.push(Job {
            transmit: Transmit::open(playing.interface)?,
            frames,
            cpu: playing.cpus.get(number % playing.cpus.len().max(1)).copied(),
            rate: playing.rate.map(|rate| rate * part),
            length: playing.length,
            count: playing.count.map(|count| share_of(count, number as u64, shares.len() as u64)),
            overhead: playing.overhead,
            gate: &gate,
        });
    }
    let each_second = &mut |interval: &Interval| each_second(interval);
    let supervisor =
        Supervisor { stop, length: None, is_done: &|_| false, ready: Some(&gate), machine, each_second };
    let (played, seen) = supervisor.run(jobs, Job::run)?;
    let counts = played.iter().fold(Counts::default(), |sum, done| sum.plus(&done.counts));
    let time = played.iter().map(|done| done.time).max().unwrap_or_default();
    let played = Played { counts, time, seen, ended: played.into_iter().find_map(|done| done.ended) };
    if played.counts.packets == 0 { played.whole() } else { Ok(played) }
}

impl Job<'_> {
    fn run(mut self, end: &AtomicBool, shared: &Shared) -> Result<Done, LoadError> {
        let pinned = self.cpu.map_or(Ok(()), |cpu| pin(cpu).map_err(|cause| LoadError::Cpu { cpu, cause }));
        sharpen_sleeps();
        // Whatever became of this one, the others wait for it.
        let start = self.gate.pass();
        pinned?;
        let mut pace = Pace::from(start, self.rate, GRAIN, self.length, self.count);
        let mut frames = self.frames.iter().cycle();
        let mut batch = Vec::with_capacity(Transmit::BATCH);
        let mut counts = Counts::default();
        let mut ended = None;
        while let Some(due) = pace.next(Transmit::BATCH as u64, end) {
            batch.clear();
            batch.extend(frames.by_ref().take(due as usize));
            let went = match self.transmit.send(&batch) {
                Ok(()) => batch.len(),
                // What found no room is gone: the next may find some.
                Err(error) if error.is_no_room() => {
                    counts.no_room += (batch.len() - error.sent) as u64;
                    error.sent
                }
                Err(error) => {
                    // Nobody else goes on.
                    end.store(true, Ordering::Relaxed);
                    let sent = error.sent;
                    ended = Some(error.into());
                    sent
                }
            };
            pace.sent(batch.len() as u64);
            counts.packets += went as u64;
            for frame in batch.iter().take(went) {
                counts.bytes += frame.len() as u64;
                counts.wire += wire_size::of_frame(frame.len() as u64 + self.overhead);
            }
            counts.skipped = pace.skipped();
            shared.publish(&counts);
        }
        counts.skipped = pace.skipped();
        shared.conclude(&counts);
        Ok(Done { counts, time: pace.started().elapsed(), ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::ops::ControlFlow;
    use std::process::Command;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;
    use traffic::Scenario;

    fn frames(count: usize) -> Frames {
        let scenario = Scenario::named("pppoe-qinq").expect("a scenario").with_flows(50);
        Frames::generated(&mut scenario.generate(1).expect("a generator"), count)
    }

    #[test]
    fn a_flow_stays_with_one_thread_and_in_order() {
        let all = frames(2000);
        let shares = all.distributed(3);
        assert_eq!(shares.iter().map(Frames::len).sum::<usize>(), 2000);
        let mut owner = HashMap::new();
        for (number, share) in shares.iter().enumerate() {
            assert!(share.len() > 200, "{number}: {}", share.len());
            for frame in share.iter() {
                if let Some(flow) = dissect(Link::Ethernet, frame, frame.len()).flow().cloned() {
                    assert_eq!(*owner.entry(flow).or_insert(number), number);
                }
            }
        }
        let first: Vec<&[u8]> = shares[0].iter().collect();
        let mut of_all = all.iter();
        assert!(first.iter().all(|frame| of_all.any(|other| other == *frame)));
    }

    #[test]
    fn frames_arrive_at_the_rate_and_are_counted() {
        let Some(()) = require("netns", probe()) else { return };
        let all = frames(500);
        let tried = || {
            let namespace = Namespace::new().expect("a namespace");
            namespace.veth(&Veth { mtu: 1600, ..Veth::pair("near0", "far0") }).expect("a pair");
            let played = namespace.inside(|| {
                let playing = Playing {
                    interface: "near0",
                    shares: all.distributed(2),
                    cpus: Vec::new(),
                    rate: Some(20_000.0),
                    length: Some(Duration::from_millis(500)),
                    count: None,
                    overhead: 0,
                };
                play(&playing, None, &AtomicBool::new(false), &mut |_| ControlFlow::Continue(()))
                    .expect("sent")
            });
            let (sent, skipped) = (played.counts.packets, played.counts.skipped);
            assert!((9_998..=10_002).contains(&(sent + skipped)) && skipped < 5000, "{played:?}");
            let counter = "/sys/class/net/far0/statistics/rx_packets";
            let counted = namespace.inside(|| std::fs::read_to_string(counter)).expect("a counter");
            (sent, counted.trim().parse::<u64>().expect("a number"))
        };
        // The backlog of a CPU is one for all namespaces: what other tests send may fill it.
        let mut tries = Vec::new();
        while tries.len() < 3 && tries.last().is_none_or(|(sent, counted)| sent != counted) {
            tries.push(tried());
        }
        assert!(tries.last().is_some_and(|(sent, counted)| sent == counted), "{tries:?}");
        assert!(tries.iter().all(|(sent, counted)| counted <= sent), "{tries:?}");
    }

    #[test]
    fn what_was_sent_is_not_lost_with_the_interface() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { mtu: 1600, ..Veth::pair("near0", "far0") }).expect("a pair");
        let playing = Playing {
            interface: "near0",
            shares: frames(100).distributed(2),
            cpus: Vec::new(),
            rate: Some(1000.0),
            length: Some(Duration::from_secs(60)),
            count: None,
            overhead: 0,
        };
        let played = namespace.inside(|| {
            // It goes when the first second is told; what came behind that is told, too.
            let mut is_there = true;
            let gone = &mut |_: &Interval| {
                if std::mem::take(&mut is_there) {
                    let deleted = Command::new("ip").args(["link", "del", "near0"]).status();
                    assert!(deleted.expect("ip").success());
                }
                ControlFlow::Continue(())
            };
            play(&playing, None, &AtomicBool::new(false), gone).expect("sent")
        });
        assert!(played.counts.packets > 0 && played.time < Duration::from_secs(60), "{played:?}");
        let error = played.whole().expect_err("the interface is gone").to_string();
        assert!(error.starts_with("near0: "), "{error}");
    }

    #[test]
    fn a_count_is_kept_and_a_missing_interface_named() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { mtu: 1600, ..Veth::pair("near0", "far0") }).expect("a pair");
        let mut playing = Playing {
            interface: "near0",
            shares: frames(100).distributed(3),
            cpus: Vec::new(),
            rate: None,
            length: None,
            count: Some(1001),
            overhead: 0,
        };
        let play = |playing: &Playing<'_>| {
            namespace
                .inside(|| play(playing, None, &AtomicBool::new(false), &mut |_| ControlFlow::Continue(())))
        };
        assert_eq!(play(&playing).expect("sent").counts.packets, 1001);
        playing.interface = "nothing0";
        let error = play(&playing).expect_err("no interface");
        assert!(error.to_string().starts_with("nothing0"), "{error}");
        playing.interface = "near0";
        playing.cpus = vec![4095];
        let error = play(&playing).expect_err("no such CPU");
        assert!(error.to_string().contains("CPU 4095"), "{error}");
    }
}

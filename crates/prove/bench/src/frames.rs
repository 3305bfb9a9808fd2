//! Frames sent onto an interface at a rate, by several threads: the raw mode.

use crate::counts::Counts;
use crate::machine::Watched;
use crate::pace::Pacing;
use crate::pin::CpuError;
use crate::senders::Senders;
use crate::supervise::{EachSecond, Seen, ThreadError};
use crate::wire_size;
use foldhash::fast::FixedState;
use kernel::socket::{Transmit, TransmitError};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use thiserror::Error;
use wire::{Link, dissect};

/// What is due within this time is sent together.
const GRAIN: Duration = Duration::from_micros(100);

#[derive(Debug, Error)]
pub enum LoadError {
    #[error(transparent)]
    Transmit(#[from] TransmitError),
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Cpu(#[from] CpuError),
}

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

    pub fn generated(traffic: &mut traffic::Generator, count: usize) -> Frames {
        let mut frames = Frames::new();
        for _ in 0..count {
            frames.push(traffic.next_frame().bytes);
        }
        frames
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

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

#[derive(Clone, Debug, Default)]
pub struct Playing<'a> {
    /// The interface, in the calling thread's network namespace.
    pub interface: &'a str,
    pub shares: Vec<Frames>,
    /// The CPU of each thread, in turn; none: whichever.
    pub cpus: Vec<u16>,
    /// Frames a second of all threads; `None`: as fast as they go.
    pub rate: Option<f64>,
    pub length: Option<Duration>,
    pub count: Option<u64>,
    /// Bytes of encapsulation that the line adds to each frame.
    pub overhead: u64,
}

#[derive(Debug)]
pub struct Played {
    pub counts: Counts,
    pub time: Duration,
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

/// Sends frames, until it has sent all, or the time is over, or `stop` is set. A thread's part of the rate is that of its
/// frames in all frames. Error: the interface, a CPU, or the first frame that was refused, where none was sent before: what was sent
/// is not lost with one that does not.
pub fn play(
    playing: &Playing<'_>,
    machine: Option<Watched>,
    stop: &AtomicBool,
    each_second: &mut EachSecond<'_>,
) -> Result<Played, LoadError> {
    let shares: Vec<&Frames> = playing.shares.iter().filter(|share| !share.is_empty()).collect();
    let all: usize = shares.iter().map(|share| share.len()).sum();
    let mut jobs = Vec::new();
    for frames in shares {
        jobs.push((frames.len() as f64 / all as f64, (Transmit::open(playing.interface)?, frames)));
    }
    let Playing { cpus, overhead, .. } = playing;
    let pacing = Pacing { rate: playing.rate, length: playing.length, count: playing.count, grain: GRAIN };
    let senders = Senders { cpus, pacing };
    let total =
        senders.run(jobs, machine, stop, each_second, |(mut transmit, frames), sender, end, shared| {
            let mut frames = frames.iter().cycle();
            let mut batch = Vec::with_capacity(Transmit::BATCH);
            let mut ended = None;
            let sent = sender.pace::<_, LoadError>(
                (Transmit::BATCH as u64, end, shared),
                &mut transmit,
                |_| {},
                |transmit, due, pace, counts| {
                    batch.clear();
                    batch.extend(frames.by_ref().take(due as usize));
                    let went = match transmit.send(&batch) {
                        Ok(()) => batch.len(),
                        // What found no room is dropped: the next may find some.
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
                        counts.wire += wire_size::of_frame(frame.len() as u64 + overhead);
                    }
                    Ok(())
                },
            )?;
            Ok::<_, LoadError>((sent, ended))
        })?;
    let ended = total.each.into_iter().flatten().next();
    let played = Played { counts: total.counts, time: total.time, seen: total.seen, ended };
    if played.counts.packets == 0 { played.whole() } else { Ok(played) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Interval;
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

    fn namespace() -> Option<Namespace> {
        require("netns", probe())?;
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { mtu: 1600, ..Veth::pair("near0", "far0") }).expect("a pair");
        Some(namespace)
    }

    fn play_all(playing: &Playing<'_>) -> Result<Played, LoadError> {
        play(playing, None, &AtomicBool::new(false), &mut |_| ControlFlow::Continue(()))
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
    fn what_was_sent_is_not_lost_with_the_interface() {
        let Some(namespace) = namespace() else { return };
        let playing = Playing {
            interface: "near0",
            shares: frames(100).distributed(2),
            rate: Some(1000.0),
            length: Some(Duration::from_secs(60)),
            ..Playing::default()
        };
        let played = namespace.inside(|| {
            // It is removed when the first second is reported; what came behind that is reported, too.
            let mut is_there = true;
            let remove = &mut |_: &Interval| {
                if std::mem::take(&mut is_there) {
                    let deleted = Command::new("ip").args(["link", "del", "near0"]).status();
                    assert!(deleted.expect("ip").success());
                }
                ControlFlow::Continue(())
            };
            play(&playing, None, &AtomicBool::new(false), remove).expect("sent")
        });
        assert!(played.counts.packets > 0 && played.time < Duration::from_secs(60), "{played:?}");
        let error = played.whole().expect_err("the interface was removed").to_string();
        assert!(error.starts_with("near0: "), "{error}");
    }

    #[test]
    fn frames_of_a_count_leave_and_a_missing_interface_is_named() {
        let Some(namespace) = namespace() else { return };
        let mut playing = Playing {
            interface: "near0",
            shares: frames(100).distributed(3),
            count: Some(1001),
            rate: Some(20_000.0),
            ..Playing::default()
        };
        let play = |playing: &Playing<'_>| namespace.inside(|| play_all(playing));
        let counts = play(&playing).expect("sent").counts;
        assert_eq!(counts.packets + counts.skipped, 1001, "{counts:?}");
        // What other tests send may fill the backlog, which drops then.
        let counted = ["tx_packets", "tx_dropped"].map(|counter| {
            let path = format!("/sys/class/net/near0/statistics/{counter}");
            let text = namespace.inside(|| std::fs::read_to_string(path)).expect("a counter");
            text.trim().parse::<u64>().expect("a number")
        });
        assert_eq!(counted.iter().sum::<u64>(), counts.packets);
        playing.interface = "nothing0";
        let error = play(&playing).expect_err("no interface");
        assert!(error.to_string().starts_with("nothing0"), "{error}");
        playing.interface = "near0";
        playing.cpus = vec![4095];
        let error = play(&playing).expect_err("no such CPU");
        assert!(error.to_string().contains("CPU 4095"), "{error}");
    }
}

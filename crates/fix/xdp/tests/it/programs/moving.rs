//! When a bucket changes its CPU.

use crate::programs::kernel::{PASS, Program, REDIRECT, arrive_as_ordinary, probe};
use crate::programs::packet::{TCP, eth};
use crate::programs::settings;
use kernel::cpu::{self, CpuSet};
use rxlane_xdp::layout::{Arrivals, Counts, Settings, map};
use rxlane_xdp::object;
use rxlane_xdp::reference::decide;
use std::mem::{offset_of, size_of};
use std::thread;
use std::time::Duration;
use testkit::{Missing, require};

/// Longer than a busy machine keeps a test from its CPU; nobody waits for it ([`Moving::pass_hold`]).
const HOLD: Duration = Duration::from_secs(20);

/// Whether there are two CPUs to move between.
fn two_cpus() -> Result<(), Missing> {
    match thread::available_parallelism() {
        Ok(count) if count.get() >= 2 => Ok(()),
        _ => Err(Missing("a bucket moves where there are two CPUs".to_owned())),
    }
}

/// Stays on one CPU, as the frames of a receive queue do: gives its number.
fn stay() -> u32 {
    let cpu = cpu::allowed().expect("affinity").iter().next().expect("a CPU");
    stay_on(cpu);
    cpu
}

fn stay_on(cpu: u32) {
    cpu::pin(&CpuSet::new([cpu]).expect("a CPU")).expect("affinity");
}

struct Moving {
    program: Program,
    frame: Vec<u8>,
    bucket: usize,
    old: u32,
    new: u32,
}

impl Moving {
    /// A flow whose bucket has sent one frame, which has arrived.
    fn new() -> Moving {
        stay();
        let settings = Settings { hold_ns: HOLD.as_nanos() as u64, cpus: 64, ..settings() };
        let mut program = Program::load(object::steer(), "steer", &settings, 2);
        let frame = eth().pppoe().ipv4(TCP).tcp().frame();
        let bucket = usize::from(decide(&frame, &settings).bucket().expect("a bucket"));
        assert_eq!(program.run(&frame).0, REDIRECT);
        let old = (bucket % 2) as u32;
        let mut moving = Moving { program, frame, bucket, old, new: 1 - old };
        assert_eq!(moving.send(), old);
        moving.arrived(2, 0);
        moving
    }

    /// Sends a frame and says to which CPU it went.
    fn send(&mut self) -> u32 {
        let before = self.program.sums().sent_to;
        self.program.run(&self.frame);
        let after = self.program.sums().sent_to;
        (0..)
            .zip(before.iter().zip(after))
            .find_map(|(cpu, (before, after))| (after > *before).then_some(cpu))
            .expect("a CPU")
    }

    /// Writes what arrived, and when the last frame of it went to the CPU that it should no longer go to.
    fn arrived(&mut self, frames: u64, astray_ns: u64) {
        let (bucket, old) = (self.bucket, self.old as usize);
        self.program.change::<{ size_of::<Arrivals>() }>(map::ARRIVALS, |values| {
            for (at, number) in
                [(offset_of!(Arrivals, arrived), frames), (offset_of!(Arrivals, astray_ns), astray_ns)]
            {
                let at = at + 8 * bucket;
                values[old][at..at + 8].copy_from_slice(&number.to_ne_bytes());
            }
        });
    }

    /// Moves all stamps so far into the past that a hold since then is over.
    fn pass_hold(&mut self) {
        fn earlier<const N: usize>(values: &mut [[u8; N]], at: usize) {
            for value in values {
                let word = value[at..].first_chunk_mut().expect("a word");
                let stamp = u64::from_ne_bytes(*word);
                *word = stamp.saturating_sub(2 * HOLD.as_nanos() as u64).max(stamp.min(1)).to_ne_bytes();
            }
        }
        let bucket = 8 * self.bucket;
        self.program.change::<{ size_of::<Counts>() }>(map::COUNTS, |values| {
            earlier(values, offset_of!(Counts, held_ns) + bucket);
        });
        self.program.change::<{ size_of::<Arrivals>() }>(map::ARRIVALS, |values| {
            earlier(values, offset_of!(Arrivals, astray_ns) + bucket);
        });
    }

    /// Receives a frame and says whether it stays on this CPU.
    fn keeps(&mut self) -> bool {
        let before = self.program.sums();
        let action = self.program.run(&self.frame).0;
        let after = self.program.sums();
        let kept = after.kept[self.bucket] - before.kept[self.bucket];
        assert_eq!(after.sent == before.sent, action == PASS);
        assert_eq!(kept == 1, action == PASS);
        action == PASS
    }

    fn held(&self) -> u64 {
        let at = offset_of!(Counts, held_ns) + 8 * self.bucket;
        self.program.largest::<{ size_of::<Counts>() }>(map::COUNTS, at)
    }
}

fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn moving() -> Option<Moving> {
    require("bpf", probe())?;
    require("cpus", two_cpus())?;
    Some(Moving::new())
}

#[test]
fn a_drained_bucket_moves_after_the_hold() {
    let Some(mut moving) = moving() else { return };
    let (old, new) = (moving.old, moving.new);
    moving.program.order(moving.bucket, new);
    assert_eq!((moving.send(), moving.held() > 0), (old, true), "the first frame starts the hold");
    moving.arrived(3, 0);
    moving.pass_hold();
    assert_eq!((moving.send(), moving.held()), (new, 0));
    assert_eq!(moving.send(), new);
    moving.program.order(moving.bucket, old);
    assert_eq!(moving.send(), new, "and back, with a hold of its own");
}

#[test]
fn a_bucket_with_frames_on_their_way_stays() {
    let Some(mut moving) = moving() else { return };
    let (old, new) = (moving.old, moving.new);
    moving.program.order(moving.bucket, new);
    moving.send();
    moving.pass_hold();
    assert_eq!(moving.send(), old, "two of three have arrived");
    moving.arrived(3, 0);
    assert_eq!(moving.send(), old, "three of four");
    moving.program.order_with_lost(moving.bucket, new, 1);
    assert_eq!(moving.send(), old, "three of five, one lost");
    moving.program.order_with_lost(moving.bucket, new, 2);
    assert_eq!(moving.send(), old, "three of six, two lost: one is on its way");
    moving.program.order_with_lost(moving.bucket, new, 4);
    assert_eq!(moving.send(), new, "seven, of which three arrived and four are lost");
}

#[test]
fn a_frame_that_has_just_arrived_keeps_its_bucket() {
    let Some(mut moving) = moving() else { return };
    let (old, new) = (moving.old, moving.new);
    moving.program.order(moving.bucket, new);
    moving.send();
    moving.pass_hold();
    // Its stamp may be later than the clock that this CPU reads.
    moving.arrived(3, now() + HOLD.as_nanos() as u64);
    assert_eq!(moving.send(), old);
    moving.arrived(4, now());
    assert_eq!(moving.send(), old);
    moving.arrived(5, now());
    moving.pass_hold();
    assert_eq!(moving.send(), new);
}

#[test]
fn an_order_that_is_withdrawn_leaves_no_hold() {
    let Some(mut moving) = moving() else { return };
    let (old, new) = (moving.old, moving.new);
    moving.program.order(moving.bucket, new);
    moving.send();
    moving.program.order(moving.bucket, old);
    assert_eq!((moving.send(), moving.held()), (old, 0));
    moving.pass_hold();
    moving.arrived(4, 0);
    moving.program.order(moving.bucket, new);
    assert_eq!(moving.send(), old, "the hold starts anew");
}

#[test]
fn a_bucket_leaves_the_cpu_that_receives_it_a_hold_after_its_last_frame() {
    let Some(mut moving) = moving() else { return };
    let (old, new) = (moving.old, moving.new);
    stay_on(old);
    moving.program.receive_on(old);
    assert_eq!((moving.keeps(), moving.program.astray(moving.bucket)), (true, 0), "it is where it should be");
    moving.program.order(moving.bucket, new);
    assert_eq!((moving.keeps(), moving.held() > 0), (true, true), "the hold begins");
    let stamp = moving.program.astray(moving.bucket);
    assert!(moving.keeps() && moving.program.astray(moving.bucket) >= stamp && stamp > 0);
    moving.pass_hold();
    // Nothing is on its way, but the stack may still have what it got, to coalesce it.
    moving.arrived(2, now() + HOLD.as_nanos() as u64);
    assert!(moving.keeps());
    moving.pass_hold();
    assert_eq!((moving.send(), moving.held()), (new, 0));
    moving.program.order(moving.bucket, old);
    assert_eq!(moving.send(), new, "and back, with a hold of its own");
    moving.arrived(4, 0);
    moving.pass_hold();
    assert!(moving.keeps());
}

#[test]
fn without_frags_a_bucket_stays_for_good() {
    let Some(()) = require("bpf", probe()) else { return };
    let Some(()) = require("cpus", two_cpus()) else { return };
    stay();
    let settings = Settings { hold_ns: 0, ..settings() };
    let mut program = Program::load(object::steer_nofrags(), "steer", &settings, 2);
    let frame = eth().pppoe().ipv4(TCP).tcp().frame();
    let bucket = usize::from(decide(&frame, &settings).bucket().expect("a bucket"));
    program.order(bucket, 1 - (bucket % 2) as u32);
    for sent in 1..5 {
        assert_eq!(program.run(&frame).0, REDIRECT);
        assert_eq!(program.sums().sent_to[bucket % 2], sent);
    }
}

#[test]
fn only_arrivals_that_should_be_elsewhere_are_stamped() {
    let Some(()) = require("bpf", probe()) else { return };
    let here = stay();
    let settings = settings();
    let mut program = Program::load(&arrive_as_ordinary(object::arrive()), "arrive", &settings, 1);
    let frame = eth().pppoe().ipv4(TCP).tcp().frame();
    let bucket = usize::from(decide(&frame, &settings).bucket().expect("a bucket"));
    for (ordered, stamped) in [(here, false), (here + 1, true)] {
        program.order(bucket, ordered);
        let before = now();
        assert_eq!(program.run(&frame).0, PASS);
        let stamp = program.astray(bucket);
        assert_eq!((before..=now()).contains(&stamp), stamped, "{stamp}");
        assert!(stamped || stamp == 0);
    }
}

//! Frames as they arrive: when, how long, of which flow.

use crate::frame::Frame;
use crate::plan::{self, Arrivals, FlowPlan};
use crate::schedule::NEVER;
use crate::{Lost, Time, Traffic};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;
use traffic::Sampler;

/// A frame of [`Arrivals::Given`].
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// When it arrives; not before the one before it.
    pub at: Time,
    /// Bytes without FCS.
    pub bytes: u32,
    /// Its flow, any number.
    pub flow: u32,
    /// The receive queue that it comes to, of all interfaces together, or [`REFUSED`].
    pub queue: u32,
}

/// In place of a queue: the device does not let the frame in.
pub const REFUSED: u32 = u32::MAX;

/// Preamble and gap between frames (IEEE 802.3-2022 clauses 3.1.1 and 4.4.2), and FCS.
const AROUND: u32 = 20 + 4;
/// An untagged Ethernet frame's FCS, which `Sizes` counts.
const FCS: u32 = 4;

pub(crate) const fn on_wire(bytes: u32) -> u32 {
    bytes.saturating_add(AROUND)
}

pub(crate) struct Source {
    pub(crate) plan: plan::Source,
    random: Xoshiro256PlusPlus,
    sampler: Sampler,
    number: u16,
    /// Queues between driver and stack, or one.
    inputs: u32,
    /// When the next frame should come, whether the line is free or not.
    due_at: Time,
    bytes: u32,
    flow: u32,
    to: FlowPlan,
    /// Frames left of a burst or train.
    left: u32,
    start: Time,
    /// Of a window: frames under way, those of them that are lost, when they are sent again.
    under_way: u32,
    /// When acknowledgments that are on their way arrive.
    returning: VecDeque<Time>,
    missing: u32,
    retry_at: Time,
    pub(crate) counts: Traffic,
}

impl Source {
    pub(crate) fn new(plan: plan::Source, number: u16, inputs: usize, seed: u64) -> Source {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (u64::from(number) << 32));
        let sampler = Sampler::new(plan.popularity, plan.flows.len().max(1) as u32);
        let counts = Traffic::new(plan.name.clone(), plan.payload);
        let mut source = Source {
            plan,
            random,
            sampler,
            number,
            inputs: inputs.max(1) as u32,
            due_at: 0,
            bytes: 0,
            flow: 0,
            to: FlowPlan::default(),
            left: 0,
            start: 0,
            under_way: 0,
            returning: VecDeque::new(),
            missing: 0,
            retry_at: NEVER,
            counts,
        };
        if let Arrivals::Window { frames, .. } = source.plan.arrivals {
            source.returning.reserve(frames as usize);
        }
        if let Arrivals::Poisson { gap } | Arrivals::Trains { gap, .. } = source.plan.arrivals {
            source.due_at = exponential(&mut source.random, gap);
            source.start = source.due_at;
        }
        source.draw();
        source
    }

    /// When the next frame should come.
    pub(crate) fn due(&self) -> Time {
        match self.plan.arrivals {
            Arrivals::Window { frames, .. } if self.under_way >= frames => {
                self.returning.front().map_or(self.retry_at, |back| self.retry_at.min(*back))
            }
            _ => self.due_at,
        }
    }

    /// Bytes that the next frame takes of the line, acknowledgments of a half-duplex one included.
    pub(crate) fn wire(&self) -> u32 {
        on_wire(self.bytes) + self.acknowledgment()
    }

    fn acknowledgment(&self) -> u32 {
        match self.plan.arrivals {
            Arrivals::Window { acknowledgment, .. } => acknowledgment,
            _ => 0,
        }
    }

    /// The same of all frames that were counted.
    pub(crate) fn bytes_on_wire(&self) -> u64 {
        self.counts.offered_bytes + self.counts.offered * u64::from(AROUND + self.acknowledgment())
    }

    /// The same of a source that waits for nobody.
    #[inline]
    pub(crate) fn wire_early(&self) -> Time {
        Time::from(on_wire(self.bytes))
    }

    /// The next frame, which arrives now; the one after it is drawn. `None` where an end of waiting, and no frame, was
    /// due.
    #[inline]
    pub(crate) fn take(&mut self, now: Time) -> Option<(Frame, FlowPlan)> {
        if let Arrivals::Window { frames, .. } = self.plan.arrivals {
            if now >= self.retry_at {
                self.under_way -= self.missing;
                (self.missing, self.retry_at) = (0, NEVER);
            }
            while self.returning.front().is_some_and(|back| *back <= now) {
                self.returning.pop_front();
                self.under_way -= 1;
            }
            if self.under_way >= frames {
                return None;
            }
            self.under_way += 1;
        }
        let (frame, to) = (self.frame(now), self.to);
        self.step(now);
        Some((frame, to))
    }

    #[inline(always)]
    fn frame(&self, now: Time) -> Frame {
        let (bytes, flow, input) = (self.bytes, self.flow, self.to.input as u16);
        Frame { arrived: now, bytes, flow, source: self.number, frames: 1, by: 0, input }
    }

    /// The same of a source that waits for nobody, and the queue that the frame comes to; and when the next one should come.
    #[inline]
    pub(crate) fn take_early(&mut self, now: Time) -> (Frame, u32, Time) {
        let (frame, queue) = (self.frame(now), self.to.queue);
        self.counts.offered += 1;
        self.counts.offered_bytes += u64::from(frame.bytes);
        self.step(now);
        (frame, queue, self.due_at)
    }

    #[inline]
    fn step(&mut self, now: Time) {
        match &self.plan.arrivals {
            Arrivals::Constant { gap } => self.due_at += gap,
            Arrivals::Poisson { gap } => self.due_at += exponential(&mut self.random, *gap),
            Arrivals::Window { .. } => self.due_at = now,
            Arrivals::Bursts { frames, gap, period } => {
                self.left = (if self.left == 0 { *frames } else { self.left }) - 1;
                self.due_at += gap;
                if self.left == 0 {
                    self.start += period;
                    self.due_at = self.due_at.max(self.start);
                }
            }
            Arrivals::Trains { frames, gap } => {
                self.left = (if self.left == 0 { *frames } else { self.left }) - 1;
                if self.left == 0 {
                    self.start += exponential(&mut self.random, *gap);
                    self.due_at = self.start;
                }
            }
            Arrivals::Given(_) => {}
        }
        self.draw();
    }

    #[inline(always)]
    fn draw(&mut self) {
        if let Arrivals::Given(frames) = &mut self.plan.arrivals {
            match frames.next() {
                Some(given) => {
                    (self.bytes, self.flow) = (given.bytes, given.flow);
                    self.to = FlowPlan { queue: given.queue, input: given.flow % self.inputs };
                    self.due_at = given.at.max(self.due_at);
                }
                None => self.due_at = NEVER,
            }
            return;
        }
        let size = u32::from(self.plan.sizes.draw(&mut self.random));
        self.bytes = size - FCS + self.plan.overhead;
        let train = matches!(self.plan.arrivals, Arrivals::Trains { .. }) && self.left > 0;
        if !train {
            self.flow = self.sampler.draw(&mut self.random);
            self.to = self.plan.flows.get(self.flow as usize).copied().unwrap_or_default();
        }
    }

    /// So many frames came to their end. Whether the sender may now have one to send that it did not have before.
    #[inline]
    pub(crate) fn delivered(&mut self, frames: u32, now: Time) -> bool {
        let Arrivals::Window { back, .. } = self.plan.arrivals else { return false };
        self.returning.extend(std::iter::repeat_n(now + back, frames as usize));
        true
    }

    /// So many frames were lost. As [`Source::delivered`].
    #[cold]
    pub(crate) fn lost(&mut self, frames: u32, stage: Lost, now: Time) -> bool {
        self.counts.lost[stage as usize] += u64::from(frames);
        let Arrivals::Window { retry, .. } = self.plan.arrivals else { return false };
        self.missing += frames;
        if self.retry_at == NEVER {
            self.retry_at = now + retry;
        }
        true
    }
}

/// Exponentially distributed about `mean`.
#[inline]
pub(crate) fn exponential(random: &mut impl Rng, mean: Time) -> Time {
    ((u128::from(traffic::exponential(random.next_u64())) * u128::from(mean)) >> 32) as Time
}

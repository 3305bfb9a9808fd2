//! Frames that are drawn before they arrive.
//!
//! Where no sender waits, when frames arrive and which they are depends on nothing in the machine. So they are drawn in blocks, and
//! wait in their ring, each with its time, until somebody looks at it: what a ring holds at a time is known before all that
//! happens elsewhere until then has happened, which is what lets a CPU that runs ahead ([`crate::lookahead`]) find out by itself whether
//! it has emptied its ring. Whether a frame had room is decided when its ring is looked at, from the times at which others left.
//!
//! A frame that arrives is an event only where it interrupts: the first one that comes into a ring after its vector was armed. That
//! holds for vectors that interrupt by time; one that counts frames or segments ([`Moderation::Coalesce`]) has to see each, and its
//! machine has an event for each frame.
//!
//! A frame and a CPU's event at one time: the CPU's comes first, so a CPU sees what came before its time, and of what comes at
//! its very time only the frame that has interrupted it.

use crate::Time;
use crate::answer::Lost;
use crate::engine::Engine;
use crate::plan::{Moderation, Plan};
use crate::schedule::NEVER;
use crate::source::REFUSED;

/// Frames that may be drawn and not yet looked at, in all rings.
pub(crate) const DRAWN: u32 = 256;
/// Frames that are drawn at a time, where nobody asks for more.
const BLOCK: u32 = 32;

/// Whether frames may be drawn early where CPUs may run ahead.
pub(crate) fn is_possible(plan: &Plan) -> bool {
    plan.queues.iter().all(|queue| !matches!(queue.moderation, Moderation::Coalesce { .. }))
}

impl Engine {
    /// Draws the frames that arrive before `to`, and some of those after; whether all before are there now. They always are where
    /// all that comes before `to` has happened.
    pub(crate) fn draw(&mut self, to: Time) -> bool {
        let mut more = BLOCK;
        loop {
            let due = self.arrivals.next_time();
            if due > self.until || due >= to && more == 0 {
                return true;
            }
            if self.drawn == DRAWN {
                for number in 0..self.queues.len() {
                    self.settle_ring(number, self.reached);
                }
                if self.drawn == DRAWN {
                    return due >= to;
                }
            }
            self.draw_from(self.arrivals.next_slot(), due);
            more = more.saturating_sub(1);
        }
    }

    /// A source's next frame, which is due and arrives where the line is free then.
    #[inline]
    fn draw_from(&mut self, number: usize, due: Time) {
        let source = &mut self.sources[number];
        let port = source.plan.port;
        let free =
            self.received_until[port].map_or(0, |end| end + self.plan.ports[port].byte * source.wire_early());
        if free > due {
            self.arrivals.set(number, free);
            return;
        }
        self.received_until[port] = Some(due);
        let longest = source.plan.longest;
        let (frame, queue, next) = source.take_early(due);
        self.arrivals.set(number, next.max(due));
        if frame.bytes > longest || queue == REFUSED {
            self.lose(frame, Lost::Admit);
            return;
        }
        let queue = &mut self.queues[queue as usize];
        queue.frames += 1;
        queue.ring.await_frame(frame, due, self.order);
        (self.order, self.drawn) = (self.order + 1, self.drawn + 1);
    }

    /// Decides about the frames of a ring that come before `to`; whether all of them are known.
    #[inline]
    pub(crate) fn look_at_ring(&mut self, number: usize, to: Time) -> bool {
        let known = self.arrivals.next_time() >= to || self.draw(to);
        self.settle_ring(number, to);
        known
    }

    #[inline]
    fn settle_ring(&mut self, number: usize, to: Time) {
        loop {
            let queue = &mut self.queues[number];
            let (frames, bytes) = queue.ring.settle_before(to);
            queue.vector.measure(u64::from(frames), bytes);
            self.drawn -= frames;
            if queue.ring.comes().is_none_or(|(came, _)| came >= to) {
                return;
            }
            self.settle_frame(number);
        }
    }

    /// Decides about the next frame of a ring. Whether it had room.
    fn settle_frame(&mut self, number: usize) -> bool {
        let queue = &mut self.queues[number];
        self.drawn -= 1;
        match queue.ring.settle_next() {
            Ok(bytes) => {
                queue.vector.measure(1, u64::from(bytes));
                true
            }
            Err(frame) => {
                queue.lost += 1;
                self.lose(frame, Lost::Ring);
                false
            }
        }
    }

    /// All that arrives until the end of this time has arrived.
    pub(crate) fn arrive_until(&mut self, until: Time) {
        self.draw(until + 1);
        for number in 0..self.queues.len() {
            self.settle_ring(number, until + 1);
        }
    }

    /// A vector waits for the next frame that comes into its ring.
    pub(crate) fn await_frame(&mut self, number: usize) {
        self.queues[number].awaits = true;
        self.await_frames();
    }

    /// Sets the time at which the next frame interrupts that comes into an armed vector's ring.
    fn await_frames(&mut self) {
        let mut next = (self.arrivals.next_time(), u64::MAX, None);
        let mut awaited = false;
        for number in 0..self.queues.len() {
            let queue = &mut self.queues[number];
            if !queue.awaits {
                continue;
            }
            if let Some((comes, order)) = queue.ring.comes() {
                let at = queue.vector.not_before();
                if at > comes {
                    queue.awaits = false;
                    let slot = self.vector_slot(number);
                    self.schedule.set(slot, at);
                    continue;
                }
                next = next.min((comes, order, Some(number)));
            }
            awaited = true;
        }
        self.interrupts_next = next.2;
        let slot = self.arrival_slot();
        self.schedule.set(slot, if awaited { next.0 } else { NEVER });
    }

    /// The frame arrives that interrupts, or frames have to be drawn to know which one does.
    pub(crate) fn arrive_early(&mut self) {
        match self.interrupts_next {
            Some(number) => {
                if self.settle_frame(number) {
                    self.queues[number].awaits = false;
                    self.interrupt(number);
                }
            }
            None => {
                self.draw(self.now + 1);
            }
        }
        self.await_frames();
    }
}

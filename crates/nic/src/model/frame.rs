//! A frame, and the bounded queues in which it waits.

use super::Time;

/// A frame, or several of one flow that GRO made one packet of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// When the (first) frame was whole on the wire.
    pub(super) arrived: Time,
    /// Octets without FCS; of several frames their sum.
    pub(super) octets: u32,
    /// Flow within its source.
    pub(super) flow: u32,
    /// Which source sent it.
    pub(super) source: u16,
    /// How many frames of the wire it stands for.
    pub(super) frames: u16,
    /// CPU that put it into the queue in which it waits, if a CPU did.
    pub(super) by: u16,
    /// Queue between driver and stack that its flow keeps to, where there are such.
    pub(super) input: u16,
}

/// Bursts at a queue: how many frames wait when its server turns to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// How often the server turned to it.
    pub times: u64,
    /// Frames that it found, in all.
    pub frames: u64,
    /// The most that it found.
    pub longest: u32,
}

impl Bursts {
    /// Frames found on average.
    pub fn mean(&self) -> Option<f64> {
        (self.times > 0).then(|| self.frames as f64 / self.times as f64)
    }

    #[inline]
    fn count(&mut self, frames: u32) {
        self.times += 1;
        self.frames += u64::from(frames);
        self.longest = self.longest.max(frames);
    }
}

/// A queue in which frames wait, first in first out, of fixed depth.
///
/// CPUs that run ahead ([`super::ahead`]) take frames out before their time has come, and put frames in that others
/// overtake. So a place is free again from the time at which its frame left, and whether a frame had room is decided when
/// all that came before it are there ([`Fifo::settle`]).
pub(super) struct Fifo {
    slots: Box<[Slot]>,
    /// Places by number, each the next one's predecessor, modulo the number of slots: frames from `head` on wait, those
    /// before it have left, from `free` on at a time that may be still to come. Those before `settled` had room.
    free: u32,
    head: u32,
    settled: u32,
    tail: u32,
    depth: u32,
    pub(super) peak: u32,
    pub(super) bursts: Bursts,
}

/// A place.
#[derive(Clone, Copy, Default)]
struct Slot {
    frame: Frame,
    /// When the frame came, and when it left.
    came: Time,
    left: Time,
}

impl Fifo {
    /// For frames that come in the order of time.
    pub(super) fn new(depth: u32) -> Fifo {
        Fifo::of((depth as usize).next_power_of_two(), depth)
    }

    /// For frames of CPUs that run ahead: with room for as many more of which it is not yet known whether they had room.
    pub(super) fn shared(depth: u32) -> Fifo {
        Fifo::of((2 * depth as usize).next_power_of_two(), depth)
    }

    fn of(slots: usize, depth: u32) -> Fifo {
        let slots = vec![Slot::default(); slots].into();
        Fifo { slots, free: 0, head: 0, settled: 0, tail: 0, depth, peak: 0, bursts: Bursts::default() }
    }

    #[inline]
    fn slot(&mut self, place: u32) -> &mut Slot {
        let mask = self.slots.len() - 1;
        &mut self.slots[place as usize & mask]
    }

    /// Gives up the places of frames that have left by `now`.
    #[inline]
    fn give_up(&mut self, now: Time) {
        while self.free != self.head && self.slot(self.free).left <= now {
            self.free = self.free.wrapping_add(1);
        }
        if self.free == self.tail {
            // The slots that were used last are the ones in the processor's cache.
            (self.free, self.head, self.settled, self.tail) = (0, 0, 0, 0);
        }
    }

    /// A frame comes now, after all others: whether there was room.
    #[inline]
    #[must_use]
    pub(super) fn push(&mut self, frame: Frame, now: Time) -> bool {
        self.give_up(now);
        let len = self.tail.wrapping_sub(self.free);
        if len >= self.depth {
            return false;
        }
        *self.slot(self.tail) = Slot { frame, came: now, left: 0 };
        self.tail = self.tail.wrapping_add(1);
        self.settled = self.tail;
        self.peak = self.peak.max(len + 1);
        true
    }

    /// A frame comes at `at`, put in by the CPU that it names: before those that are here and come later. Whether it had
    /// room is for [`Fifo::settle`] to say. By `reached` all has happened.
    #[inline]
    pub(super) fn insert(&mut self, frame: Frame, at: Time, reached: Time) {
        if self.head == self.tail {
            self.give_up(reached);
        }
        let mut place = self.tail;
        while place != self.settled {
            let before = *self.slot(place.wrapping_sub(1));
            if (before.came, before.frame.by) <= (at, frame.by) {
                break;
            }
            *self.slot(place) = before;
            place = place.wrapping_sub(1);
        }
        *self.slot(place) = Slot { frame, came: at, left: 0 };
        self.tail = self.tail.wrapping_add(1);
    }

    /// Whether a frame more than there are, those to come included, would have room.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.tail.wrapping_sub(self.free) < self.depth
    }

    /// Decides about frames that have come by `now`, those of CPUs beyond `by` excepted that come at that very time: their turn is
    /// later. To be called again until it gives none: one for which there was no room.
    #[inline]
    #[must_use]
    pub(super) fn settle(&mut self, now: Time, by: u16) -> Option<Frame> {
        while self.settled != self.tail {
            let Slot { frame, came, .. } = *self.slot(self.settled);
            if (came, frame.by) > (now, by) {
                break;
            }
            self.give_up(came);
            let len = self.settled.wrapping_sub(self.free);
            if len >= self.depth {
                self.take_out(self.settled);
                return Some(frame);
            }
            self.settled = self.settled.wrapping_add(1);
            self.peak = self.peak.max(len + 1);
        }
        self.give_up(now);
        None
    }

    #[cold]
    fn take_out(&mut self, mut place: u32) {
        let last = self.tail.wrapping_sub(1);
        while place != last {
            let next = place.wrapping_add(1);
            *self.slot(place) = *self.slot(next);
            place = next;
        }
        self.tail = last;
    }

    /// The first frame leaves at `now`, which may be a time to come: of those that are known to have had room.
    #[inline]
    pub(super) fn pop(&mut self, now: Time) -> Option<Frame> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slot(self.head);
        slot.left = now;
        let frame = slot.frame;
        self.head = self.head.wrapping_add(1);
        Some(frame)
    }

    /// Frames that wait and are known to have had room.
    #[inline]
    pub(super) fn len(&self) -> Time {
        Time::from(self.settled.wrapping_sub(self.head))
    }

    /// Whether none waits that is known to have had room.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.settled
    }

    /// The server turns to the queue.
    #[inline]
    pub(super) fn turn(&mut self) {
        self.bursts.count(self.settled.wrapping_sub(self.head));
    }

    /// Frames of the wire in the queue.
    pub(super) fn frames(&self) -> u64 {
        let mask = self.slots.len() - 1;
        let number = self.tail.wrapping_sub(self.head);
        let places = (0..number).map(|i| self.head.wrapping_add(i) as usize & mask);
        places.map(|place| u64::from(self.slots[place].frame.frames)).sum()
    }

    pub(super) fn start_counting(&mut self) {
        self.peak = self.settled.wrapping_sub(self.head);
        self.bursts = Bursts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flow: u32, by: u16) -> Frame {
        Frame { flow, frames: 2, by, ..Frame::default() }
    }

    #[test]
    fn frames_leave_in_their_order_and_none_enters_a_full_queue() {
        let mut queue = Fifo::new(5);
        let mut next = (0, 0);
        for round in 0..1000u32 {
            let now = Time::from(round);
            for _ in 0..round % 7 {
                let taken = queue.push(frame(next.0, 0), now);
                assert_eq!(taken, next.0 - next.1 < 5);
                next.0 += u32::from(taken);
            }
            assert_eq!(queue.frames(), 2 * u64::from(next.0 - next.1));
            for _ in 0..round % 4 {
                assert_eq!(queue.pop(now).map(|frame| frame.flow), (next.1 < next.0).then_some(next.1));
                next.1 += u32::from(next.1 < next.0);
            }
        }
        assert_eq!(queue.peak, 5);
    }

    #[test]
    fn a_place_is_free_from_the_time_at_which_its_frame_left() {
        let mut queue = Fifo::new(2);
        assert!(queue.push(frame(0, 0), 1) && queue.push(frame(1, 0), 2));
        assert!(queue.pop(10).is_some(), "taken ahead of time");
        assert!(!queue.push(frame(2, 0), 9), "there until then");
        assert!(queue.push(frame(3, 0), 10), "what leaves makes room for what comes at the same time");
        assert_eq!(queue.peak, 2);
    }

    #[test]
    fn frames_put_in_ahead_of_time_stand_in_the_order_of_time() {
        let mut queue = Fifo::shared(3);
        for (at, by) in [(50, 0), (20, 1), (50, 2), (20, 0), (40, 1)] {
            queue.insert(frame(at, by), Time::from(at), 0);
        }
        assert!(queue.is_empty(), "nothing is decided");
        assert!(queue.settle(39, 9).is_none());
        let first = queue.pop(39).unwrap();
        assert_eq!((first.flow, first.by), (20, 0));
        // At 40 one waits, 50 finds two of three places taken, and the other 50 none.
        assert!(queue.settle(49, 9).is_none());
        assert!(queue.settle(50, 1).is_none());
        let lost = queue.settle(50, 2).unwrap();
        assert_eq!((lost.flow, lost.by), (50, 2));
        assert!(queue.settle(50, 9).is_none());
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop(60)).map(|frame| (frame.flow, frame.by)).collect();
        assert_eq!((rest, queue.peak), (vec![(20, 1), (40, 1), (50, 0)], 3));
    }
}

//! A frame, and the bounded queues in which it waits.

use crate::Time;

/// A frame, or several of one flow that GRO made one packet of.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Frame {
    /// When the (first) frame was whole on the wire.
    pub(crate) arrived: Time,
    /// Bytes without FCS; of several frames their sum.
    pub(crate) bytes: u32,
    /// Flow within its source.
    pub(crate) flow: u32,
    /// Which source sent it.
    pub(crate) source: u16,
    /// How many frames of the wire it stands for.
    pub(crate) frames: u16,
    /// CPU that put it into the queue in which it waits, if a CPU did; of a place whose frame
    /// has left, the part in whose event it did.
    pub(crate) by: u16,
    /// Queue between driver and stack that its flow keeps to, where there are such.
    pub(crate) input: u16,
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
/// CPUs that run ahead ([`crate::lookahead`]) take frames out before their time has come, and put frames in that others
/// overtake. So a place is free again from the time at which its frame left, and whether a frame had room is decided when
/// all that came before it are there ([`Fifo::settle`]).
pub(crate) struct Fifo {
    slots: Box<[Slot]>,
    /// Places by number, each the next one's predecessor, modulo the number of slots: frames from `head` on wait, those
    /// before it have left, from `free` on at a time that may be still to come. Those before `settled` had room.
    free: u32,
    head: u32,
    settled: u32,
    tail: u32,
    depth: u32,
    pub(crate) peak: u32,
    pub(crate) bursts: Bursts,
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
    pub(crate) fn new(depth: u32) -> Fifo {
        Fifo::of((depth as usize).next_power_of_two(), depth)
    }

    /// For frames that are known before they come, so many at most.
    pub(crate) fn early(depth: u32, known: u32) -> Fifo {
        Fifo::of((depth as usize + known as usize).next_power_of_two(), depth)
    }

    /// For frames of CPUs that run ahead: with room for as many more of which it is not yet known whether they had room.
    pub(crate) fn shared(depth: u32) -> Fifo {
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

    /// Places before this one that are taken at `now`; or more, but fewer than ever were, so that it does not matter.
    #[inline]
    fn taken_before(&mut self, place: u32, now: Time, by: u16) -> u32 {
        let len = place.wrapping_sub(self.free);
        if len < self.peak {
            return len;
        }
        let behind = self.tail.wrapping_sub(place);
        self.give_up(now, by);
        self.tail.wrapping_sub(behind).wrapping_sub(self.free)
    }

    /// Gives up the places of frames that have left by `now`, those excepted that left in an event of a part beyond `by` at
    /// that very time: its turn is later.
    #[inline]
    pub(crate) fn give_up(&mut self, now: Time, by: u16) {
        while self.free != self.head {
            let slot = self.slot(self.free);
            if slot.left > now || slot.left == now && slot.frame.by > by {
                break;
            }
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
    pub(crate) fn push(&mut self, frame: Frame, now: Time) -> bool {
        self.enter(frame, now, u16::MAX)
    }

    /// Behind all others, where there is room at `at` for what the part `by` puts in: whether there was.
    #[inline]
    fn enter(&mut self, frame: Frame, at: Time, by: u16) -> bool {
        let len = self.taken_before(self.tail, at, by);
        if len >= self.depth {
            return false;
        }
        *self.slot(self.tail) = Slot { frame, came: at, left: 0 };
        self.tail = self.tail.wrapping_add(1);
        self.settled = self.tail;
        self.peak = self.peak.max(len + 1);
        true
    }

    /// A frame comes at `at`, put in by the CPU that it names: before those that are here and come later. Whether it had
    /// room is for [`Fifo::settle`] to say. By `reached` all has happened.
    #[inline]
    pub(crate) fn insert(&mut self, frame: Frame, at: Time, reached: Time) {
        if self.head == self.tail {
            self.give_up(reached, 0);
        }
        let mut place = self.tail;
        while place != self.settled {
            let before = self.slot(place.wrapping_sub(1));
            if before.came < at || before.came == at && before.frame.by <= frame.by {
                break;
            }
            let before = *before;
            *self.slot(place) = before;
            place = place.wrapping_sub(1);
        }
        *self.slot(place) = Slot { frame, came: at, left: 0 };
        self.tail = self.tail.wrapping_add(1);
    }

    /// A frame that comes at `at`, after all others, as the one with this number: whether it has room is for
    /// [`Fifo::settle_next`] to say.
    #[inline]
    pub(crate) fn await_frame(&mut self, frame: Frame, at: Time, order: u64) {
        *self.slot(self.tail) = Slot { frame, came: at, left: order };
        self.tail = self.tail.wrapping_add(1);
    }

    /// When the first frame comes of which it is not known whether it had room, and the number that it was given.
    #[inline]
    pub(crate) fn comes(&self) -> Option<(Time, u64)> {
        if self.settled == self.tail {
            return None;
        }
        let slot = &self.slots[self.settled as usize & (self.slots.len() - 1)];
        Some((slot.came, slot.left))
    }

    /// Decides about the frames that come before `to`, until one has no room: how many had, and their bytes.
    #[inline]
    pub(crate) fn settle_before(&mut self, to: Time) -> (u32, u64) {
        let (first, mut bytes) = (self.settled, 0);
        while self.settled != self.tail {
            let slot = self.slot(self.settled);
            let (came, of_frame) = (slot.came, slot.frame.bytes);
            if came >= to {
                break;
            }
            let len = self.taken_before(self.settled, came, u16::MAX);
            if len >= self.depth {
                break;
            }
            self.peak = self.peak.max(len + 1);
            self.settled = self.settled.wrapping_add(1);
            bytes += u64::from(of_frame);
        }
        (self.settled.wrapping_sub(first), bytes)
    }

    /// Decides about that frame: its bytes where it had room, and else the frame.
    #[inline]
    pub(crate) fn settle_next(&mut self) -> Result<u32, Frame> {
        let Slot { came, frame: Frame { bytes, .. }, .. } = *self.slot(self.settled);
        let len = self.taken_before(self.settled, came, u16::MAX);
        if len >= self.depth {
            return Err(self.take_out(self.settled));
        }
        self.settled = self.settled.wrapping_add(1);
        self.peak = self.peak.max(len + 1);
        Ok(bytes)
    }

    /// A frame comes that nothing that is here, or is yet to be put in, comes after, as far as is decided: with room that is known.
    /// Whether that is so; where not, nothing has happened.
    #[inline]
    #[must_use]
    pub(crate) fn join(&mut self, frame: Frame, at: Time) -> bool {
        if self.settled != self.tail {
            return false;
        }
        self.enter(frame, at, frame.by)
    }

    /// Whether a frame more than there are, those to come included, would have room, and another one: so no more than `depth - 1` are
    /// ever known before they come, and all that are decided about at once, and one of which that is yet to be done, fit the slots.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.tail.wrapping_sub(self.free) + 1 < self.depth
    }

    /// Decides about frames that have come by `now`, those of CPUs beyond `by` excepted that come at that very time: their turn is
    /// later. To be called again until it gives none: one for which there was no room.
    #[inline]
    #[must_use]
    pub(crate) fn settle(&mut self, now: Time, by: u16) -> Option<Frame> {
        while self.settled != self.tail {
            let Slot { came, frame: Frame { by: put_in, .. }, .. } = *self.slot(self.settled);
            if came > now || came == now && put_in > by {
                break;
            }
            let len = self.taken_before(self.settled, came, put_in);
            if len >= self.depth {
                return Some(self.take_out(self.settled));
            }
            self.settled = self.settled.wrapping_add(1);
            self.peak = self.peak.max(len + 1);
        }
        if self.is_empty() {
            self.give_up(now, by);
        }
        None
    }

    #[cold]
    fn take_out(&mut self, mut place: u32) -> Frame {
        let frame = self.slot(place).frame;
        let last = self.tail.wrapping_sub(1);
        while place != last {
            let next = place.wrapping_add(1);
            *self.slot(place) = *self.slot(next);
            place = next;
        }
        self.tail = last;
        frame
    }

    /// The first frame is taken out at `now`, which may be a time to come, in an event of part `by`: of those that are known to have
    /// had room.
    #[inline]
    pub(crate) fn pop(&mut self, now: Time, by: u16) -> Option<Frame> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slot(self.head);
        let frame = slot.frame;
        (slot.left, slot.frame.by) = (now, by);
        self.head = self.head.wrapping_add(1);
        Some(frame)
    }

    /// Frames that wait and are known to have had room.
    #[inline]
    pub(crate) fn len(&self) -> Time {
        Time::from(self.settled.wrapping_sub(self.head))
    }

    /// Whether none waits that is known to have had room.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.settled
    }

    /// The server turns to the queue.
    #[inline]
    pub(crate) fn turn(&mut self) {
        self.bursts.count(self.settled.wrapping_sub(self.head));
    }

    /// Frames of the wire in the queue.
    pub(crate) fn frames(&self) -> u64 {
        let mask = self.slots.len() - 1;
        let number = self.tail.wrapping_sub(self.head);
        let places = (0..number).map(|i| self.head.wrapping_add(i) as usize & mask);
        places.map(|place| u64::from(self.slots[place].frame.frames)).sum()
    }

    pub(crate) fn start_counting(&mut self) {
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
                assert_eq!(queue.pop(now, 0).map(|frame| frame.flow), (next.1 < next.0).then_some(next.1));
                next.1 += u32::from(next.1 < next.0);
            }
        }
        assert_eq!(queue.peak, 5);
    }

    #[test]
    fn a_place_is_free_from_the_time_at_which_its_frame_left() {
        let mut queue = Fifo::new(2);
        assert!(queue.push(frame(0, 0), 1) && queue.push(frame(1, 0), 2));
        assert!(queue.pop(10, 0).is_some(), "taken ahead of time");
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
        let first = queue.pop(39, 0).unwrap();
        assert_eq!((first.flow, first.by), (20, 0));
        // At 40 one waits, 50 finds two of three places taken, and the other 50 none.
        assert!(queue.settle(49, 9).is_none());
        assert!(queue.settle(50, 1).is_none());
        let lost = queue.settle(50, 2).unwrap();
        assert_eq!((lost.flow, lost.by), (50, 2));
        assert!(queue.settle(50, 9).is_none());
        let rest: Vec<_> =
            std::iter::from_fn(|| queue.pop(60, 0)).map(|frame| (frame.flow, frame.by)).collect();
        assert_eq!((rest, queue.peak), (vec![(20, 1), (40, 1), (50, 0)], 3));
    }

    #[test]
    fn what_leaves_makes_room_for_what_a_later_part_puts_in_at_that_time() {
        for (by, room) in [(0, false), (2, true), (3, true)] {
            let mut queue = Fifo::shared(1);
            assert!(queue.join(frame(0, 0), 10));
            assert!(queue.pop(50, 2).is_some(), "part 2 takes it out ahead of time");
            queue.insert(frame(1, by), 50, 20);
            assert_eq!(queue.settle(60, 9).is_none(), room, "part {by} comes at the same time");
        }
    }

    #[test]
    fn frames_put_in_ahead_of_time_leave_slots_for_those_that_come_before_them() {
        let mut queue = Fifo::shared(2);
        assert!(queue.has_room());
        queue.insert(frame(9, 1), 90, 0);
        assert!(!queue.has_room());
        let lost: Vec<_> = (0..4)
            .filter_map(|flow| {
                queue.insert(frame(flow, 0), 10 + Time::from(flow), 10 + Time::from(flow));
                queue.settle(10 + Time::from(flow), 9).map(|lost| lost.flow)
            })
            .collect();
        assert_eq!(lost, [2, 3]);
        assert_eq!(queue.settle(90, 9).map(|lost| lost.flow), Some(9));
        let rest: Vec<_> = std::iter::from_fn(|| queue.pop(95, 0)).map(|frame| frame.flow).collect();
        assert_eq!(rest, [0, 1]);
    }

    #[test]
    fn frames_known_before_they_come_have_room_or_not_at_their_time() {
        let mut queue = Fifo::early(2, 8);
        for flow in 0..6 {
            queue.await_frame(frame(flow, 0), 10 * Time::from(flow), u64::from(flow));
        }
        assert_eq!((queue.is_empty(), queue.comes()), (true, Some((0, 0))));
        assert_eq!(queue.settle_before(20).0, 2, "what comes at 20 is not before");
        assert_eq!(queue.pop(15, 0).map(|frame| frame.flow), Some(0));
        assert_eq!(queue.settle_before(60).0, 1, "one left before 20");
        assert_eq!(queue.settle_next().map_err(|lost| lost.flow), Err(3));
        assert_eq!((queue.comes(), queue.peak), (Some((40, 4)), 2));
    }
}

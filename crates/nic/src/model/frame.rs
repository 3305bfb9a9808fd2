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

/// A first-in first-out queue of fixed depth.
pub(super) struct Fifo {
    slots: Box<[Frame]>,
    head: u32,
    len: u32,
    depth: u32,
    pub(super) peak: u32,
    pub(super) bursts: Bursts,
}

impl Fifo {
    pub(super) fn new(depth: u32) -> Fifo {
        let slots = vec![Frame::default(); (depth as usize).next_power_of_two()].into();
        Fifo { slots, head: 0, len: 0, depth, peak: 0, bursts: Bursts::default() }
    }

    /// Whether there was room.
    #[inline]
    #[must_use]
    pub(super) fn push(&mut self, frame: Frame) -> bool {
        if self.len == self.depth {
            return false;
        }
        let mask = self.slots.len() - 1;
        self.slots[(self.head + self.len) as usize & mask] = frame;
        self.len += 1;
        self.peak = self.peak.max(self.len);
        true
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Frame> {
        if self.len == 0 {
            return None;
        }
        let mask = self.slots.len() - 1;
        let frame = self.slots[self.head as usize & mask];
        self.head = (self.head + 1) & mask as u32;
        self.len -= 1;
        Some(frame)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The server turns to the queue.
    #[inline]
    pub(super) fn turn(&mut self) {
        self.bursts.count(self.len);
    }

    /// Frames of the wire in the queue.
    pub(super) fn frames(&self) -> u64 {
        let mask = self.slots.len() - 1;
        (0..self.len).map(|i| u64::from(self.slots[(self.head + i) as usize & mask].frames)).sum()
    }

    pub(super) fn start_counting(&mut self) {
        self.peak = self.len;
        self.bursts = Bursts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_leave_in_their_order_and_none_enters_a_full_queue() {
        let mut queue = Fifo::new(5);
        let mut next = (0, 0);
        for round in 0..1000u32 {
            for _ in 0..round % 7 {
                let taken = queue.push(Frame { flow: next.0, frames: 2, ..Frame::default() });
                assert_eq!(taken, next.0 - next.1 < 5);
                next.0 += u32::from(taken);
            }
            assert_eq!(queue.frames(), 2 * u64::from(next.0 - next.1));
            for _ in 0..round % 4 {
                assert_eq!(queue.pop().map(|frame| frame.flow), (next.1 < next.0).then_some(next.1));
                next.1 += u32::from(next.1 < next.0);
            }
        }
        assert_eq!(queue.peak, 5);
    }
}

//! GRO of a receive queue: packets that frames of their flow may still join while a poll goes on.

use crate::frame::Frame;

/// Packets that are kept open (Linux's `MAX_GRO_SKBS`).
const OPEN: usize = 8;
/// The largest packet.
const LARGEST: u32 = 65_535;
/// No flow: numbers of sources have 16 bits.
const NOBODY: u64 = u64::MAX;

/// What is kept open, the oldest first from `first` on, in a circle.
pub(crate) struct Held {
    packets: [Frame; OPEN],
    /// Their flows; [`NOBODY`] where there is none.
    flows: [u64; OPEN],
    first: usize,
    number: usize,
    /// One that had to leave.
    leaving: Option<Frame>,
}

impl Held {
    pub(crate) fn new() -> Held {
        Held { packets: [Frame::default(); OPEN], flows: [NOBODY; OPEN], first: 0, number: 0, leaving: None }
    }

    /// The frame joins a packet of its flow, or is the first of one. `most` is how many frames a packet may have.
    #[inline]
    pub(crate) fn merge(&mut self, frame: Frame, most: u16) {
        let flow = u64::from(frame.source) << 32 | u64::from(frame.flow);
        // Without a branch for each: which one it is cannot be guessed.
        let found = self
            .flows
            .iter()
            .enumerate()
            .fold(0u32, |found, (at, held)| found | u32::from(*held == flow) << at);
        if found != 0 {
            self.join(frame, found.trailing_zeros() as usize, most);
            return;
        }
        if self.number == OPEN {
            self.leaving = Some(self.packets[self.first]);
            self.first = (self.first + 1) % OPEN;
            self.number -= 1;
        }
        let at = (self.first + self.number) % OPEN;
        (self.packets[at], self.flows[at]) = (frame, flow);
        self.number += 1;
    }

    fn join(&mut self, frame: Frame, at: usize, most: u16) {
        let packet = &mut self.packets[at];
        packet.bytes += frame.bytes;
        packet.frames += 1;
        if packet.frames < most && packet.bytes + frame.bytes <= LARGEST {
            return;
        }
        self.leaving = Some(*packet);
        // Those that are younger move up.
        let last = (self.first + self.number - 1) % OPEN;
        let mut at = at;
        while at != last {
            let next = (at + 1) % OPEN;
            (self.packets[at], self.flows[at]) = (self.packets[next], self.flows[next]);
            at = next;
        }
        self.flows[last] = NOBODY;
        self.number -= 1;
    }

    /// The packet that had to leave.
    #[inline]
    pub(crate) fn leave(&mut self) -> Option<Frame> {
        self.leaving.take()
    }

    /// Where the poll is over, what is left, the youngest first.
    #[inline]
    pub(crate) fn flush(&mut self) -> Option<Frame> {
        if self.number == 0 {
            return None;
        }
        self.number -= 1;
        let at = (self.first + self.number) % OPEN;
        self.flows[at] = NOBODY;
        Some(self.packets[at])
    }

    /// Whether there is no packet in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.number == 0 && self.leaving.is_none()
    }

    /// Frames of the wire in it.
    pub(crate) fn frames(&self) -> u64 {
        let held = (0..self.number).map(|at| &self.packets[(self.first + at) % OPEN]);
        held.chain(&self.leaving).map(|frame| u64::from(frame.frames)).sum()
    }
}

//! Interrupt moderation: when a vector interrupts.

use crate::Time;
use crate::plan::Moderation;

/// The vector of a receive queue.
pub(crate) struct Vector {
    moderation: Moderation,
    /// Whether it may interrupt: not while a poll that it began is going on.
    armed: bool,
    /// When it last did.
    last: Option<Time>,
    /// Frames and DMA segments since it was armed.
    frames: u32,
    segments: u32,
    /// Frames and bytes since the last interrupt, for the adaptive mode; and its interval.
    measured: (u64, u64),
    interval: Time,
}

/// In Linux's igb: 20,000 interrupts a second, in quarters of a microsecond (`IGB_20K_ITR`), and 4,000
/// (`IGB_4K_ITR`), at which it starts.
const IGB_20K: u64 = 196;
const IGB_4K: u64 = 980;
const QUARTER_MICROSECOND: Time = 250_000;

impl Vector {
    pub(crate) fn new(moderation: Moderation) -> Vector {
        let interval = match moderation {
            Moderation::Throttle { interval } => interval,
            Moderation::Adaptive => IGB_4K * QUARTER_MICROSECOND,
            _ => 0,
        };
        Vector { moderation, armed: true, last: None, frames: 0, segments: 0, measured: (0, 0), interval }
    }

    /// A frame came into the ring: when the interrupt is due, if this frame decides that.
    #[inline]
    pub(crate) fn frame(&mut self, bytes: u32, now: Time) -> Option<Time> {
        self.measure(1, u64::from(bytes));
        if !self.armed {
            return None;
        }
        self.frames += 1;
        match self.moderation {
            Moderation::Off => Some(now),
            Moderation::Throttle { .. } | Moderation::Adaptive => {
                (self.frames == 1).then(|| self.last.map_or(now, |last| now.max(last + self.interval)))
            }
            Moderation::Coalesce { after, frames, segments, segment } => {
                self.segments += bytes.div_ceil(segment);
                if self.frames >= frames || self.segments >= segments {
                    return Some(now);
                }
                (self.frames == 1).then(|| now + after)
            }
        }
    }

    /// The same where somebody else knows when the interrupt is due.
    #[inline]
    pub(crate) fn measure(&mut self, frames: u64, bytes: u64) {
        self.measured = (self.measured.0 + frames, self.measured.1 + bytes);
    }

    /// The interrupt is raised.
    pub(crate) fn fire(&mut self, now: Time) {
        self.armed = false;
        self.last = Some(now);
        if self.moderation == Moderation::Adaptive && self.measured.0 > 0 {
            // igb_update_ring_itr: gaps, FCS and preamble are 24 bytes.
            let mean = (self.measured.1 / self.measured.0 + 24).min(3000);
            let quarters = if mean > 300 && mean < 1200 { mean / 3 } else { mean / 2 };
            self.interval = quarters.max(IGB_20K) * QUARTER_MICROSECOND;
            self.measured = (0, 0);
        }
    }

    /// Before this time it does not interrupt, whatever comes.
    pub(crate) fn not_before(&self) -> Time {
        match (self.moderation, self.last) {
            (Moderation::Throttle { .. } | Moderation::Adaptive, Some(last)) => last + self.interval,
            _ => 0,
        }
    }

    /// The driver has emptied the ring and lets it interrupt again.
    pub(crate) fn arm(&mut self) {
        self.armed = true;
        (self.frames, self.segments) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Time = 1_000_000;

    #[test]
    fn a_throttled_vector_waits_since_its_last_interrupt() {
        let mut vector = Vector::new(Moderation::Throttle { interval: 50 * US });
        assert_eq!(vector.frame(60, 7 * US), Some(7 * US));
        vector.fire(7 * US);
        assert_eq!(vector.frame(60, 8 * US), None, "a poll is going on");
        vector.arm();
        assert_eq!(vector.frame(60, 20 * US), Some(57 * US));
        assert_eq!(vector.frame(60, 21 * US), None, "it is set already");
        vector.fire(57 * US);
        vector.arm();
        assert_eq!(vector.frame(60, 200 * US), Some(200 * US));
    }

    #[test]
    fn coalescing_ends_with_time_frames_or_segments() {
        let moderation = Moderation::Coalesce { after: 100 * US, frames: 4, segments: 6, segment: 1000 };
        let mut vector = Vector::new(moderation);
        assert_eq!(vector.frame(60, US), Some(101 * US));
        assert_eq!((vector.frame(60, 2 * US), vector.frame(60, 3 * US)), (None, None));
        assert_eq!(vector.frame(60, 4 * US), Some(4 * US));
        vector.fire(4 * US);
        vector.arm();
        assert_eq!(vector.frame(1500, 10 * US), Some(110 * US));
        assert_eq!(vector.frame(1500, 11 * US), None);
        assert_eq!(vector.frame(1500, 12 * US), Some(12 * US), "six segments");
    }

    #[test]
    fn igb_interrupts_20_000_times_a_second_for_small_frames_and_5_200_for_full_ones() {
        for (bytes, quarters) in [(60u32, 196u64), (1514, 769), (600, 208)] {
            let mut vector = Vector::new(Moderation::Adaptive);
            vector.frame(bytes, US);
            vector.fire(US);
            vector.arm();
            assert_eq!(vector.frame(bytes, 2 * US), Some(US + quarters * QUARTER_MICROSECOND));
        }
    }
}

//! Token buckets: how much of a session may pass.
//!
//! # Contract
//!
//! * Over any time a bucket lets its rate through, and its burst besides: [`BURST`] of the rate, [`LEAST_BURST`] bytes at least. A packet
//!   passes where anything is left, whole, however long it is, and what it takes too much is made up for.
//! * Any thread takes from a bucket; none waits (the generic cell rate algorithm, ITU-T I.371 annex A, over one word). So does the program
//!   in XDP, from the same words by the same clock (`is_within` of `bpf/subscribers.h` in crate `xdp`).

use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What may pass at once, as time at the rate: more than the 200 ms for which TCP is silent when it has lost too much (`TCP_RTO_MIN` of
/// Linux), or what would have passed in the rest of that time never does. And bytes, at least: ten packets.
const BURST: Duration = Duration::from_millis(250);
const LEAST_BURST: u64 = 15_000;
/// The longest packet, bytes.
const LONGEST: u64 = 1 << 16;
/// Ticks of the clock a second: fine enough for 100 Gbit/s, where a byte has 1280.
const TICKS: u64 = 16_000_000_000_000;

/// Now, in ticks of the monotonic clock modulo 2^64, 13 days.
#[inline]
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let nanoseconds = (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64);
    nanoseconds.wrapping_mul(TICKS / 1_000_000_000)
}

/// How much may pass one way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket<'m> {
    /// Time of a byte, ticks; 0: anything may pass.
    byte: &'m AtomicU64,
    /// When all that has passed would have at the rate, as [`now`] counts.
    due: &'m AtomicU64,
}

impl<'m> Bucket<'m> {
    /// In these two words.
    #[inline]
    pub(super) const fn of([byte, due]: &'m [AtomicU64; 2]) -> Bucket<'m> {
        Bucket { byte, due }
    }

    /// Bits a second from now on; `None`: anything may pass.
    pub(super) fn set(&self, rate: Option<u64>) {
        let byte = rate.map_or(0, |bits| (8 * TICKS / bits.max(1)).max(1));
        self.byte.store(byte, Ordering::Relaxed);
    }

    /// Forgets what has passed.
    pub(super) fn reset(&self) {
        self.due.store(now(), Ordering::Relaxed);
    }

    /// Whether a packet of so many bytes may pass at a time; it is taken then.
    #[inline]
    pub(super) fn take(&self, now: u64, bytes: u64) -> bool {
        let byte = self.byte.load(Ordering::Relaxed);
        if byte == 0 {
            return true;
        }
        let burst = (BURST.as_nanos() as u64 * (TICKS / 1_000_000_000)).max(byte.saturating_mul(LEAST_BURST));
        let cost = byte.saturating_mul(bytes);
        let mut due = self.due.load(Ordering::Relaxed);
        loop {
            // Nothing is farther ahead than that: what is, was due before the clock came around, or at another rate.
            let most = burst.saturating_add(byte.saturating_mul(LONGEST));
            let ahead = Some(due.wrapping_sub(now)).filter(|ahead| *ahead <= most).unwrap_or(0);
            if ahead > burst {
                return false;
            }
            let next = now.wrapping_add(ahead).wrapping_add(cost);
            match self.due.compare_exchange_weak(due, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(changed) => due = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that pass of packets that come at these intervals (ticks), for a second at least.
    fn passed(rate: u64, length: u64, interval: u64, start: u64) -> (u64, f64) {
        let words = Default::default();
        let bucket = Bucket::of(&words);
        bucket.set(Some(rate));
        bucket.due.store(start, Ordering::Relaxed);
        let (mut at, mut sum) = (0, 0);
        while at < TICKS {
            sum += if bucket.take(start.wrapping_add(at), length) { length } else { 0 };
            at += interval;
        }
        (sum, at as f64 / TICKS as f64)
    }

    proptest! {
        #[test]
        fn over_a_second_it_is_the_rate_and_one_burst(
            rate in 8_000u64..100_000_000_000,
            length in 40u64..65_535,
            start in any::<u64>(),
        ) {
            // Twice the rate, and no more packets than a test has time for.
            let interval = (u128::from(length) * 8 * u128::from(TICKS) / u128::from(rate) / 2) as u64;
            let interval = interval.max(TICKS / 100_000);
            let (sum, seconds) = passed(rate, length, interval, start);
            let (allowed, offered) = (rate as f64 / 8.0 * seconds, length as f64 * (seconds * TICKS as f64 / interval as f64));
            let burst = (rate as f64 / 32.0).max(LEAST_BURST as f64);
            // The first bucketful, and the packet that takes too much.
            prop_assert!(sum as f64 <= allowed * 1.001 + burst + 2.0 * length as f64, "{sum} {allowed}");
            prop_assert!(sum as f64 >= (allowed * 0.999).min(offered) - length as f64, "{sum} {allowed}");
        }
    }

    #[test]
    fn what_is_slower_than_the_rate_passes_and_a_pause_is_no_more_than_a_burst() {
        let (sum, _) = passed(8_000_000, 1000, TICKS / 999, 7);
        assert_eq!(sum, 999_000 + 1000);
        let words = Default::default();
        let bucket = Bucket::of(&words);
        assert!((0..10_000).all(|_| bucket.take(5, LONGEST)), "without a rate");
        bucket.set(Some(8_000_000));
        let hour = 3600 * TICKS;
        let burst = |now| (0..1000).take_while(|_| bucket.take(now, 1000)).count();
        assert_eq!((burst(hour), burst(2 * hour)), (251, 251));
        // Half a turn of the clock later.
        assert_eq!(burst((2 * hour).wrapping_add(1 << 63)), 251);
        // A session with a lower rate does not pay for what it had at the higher one.
        bucket.set(Some(8_000));
        assert!(bucket.take((2 * hour).wrapping_add(1 << 63).wrapping_add(TICKS), 1000));
    }
}

//! What a data path counts.

use crate::dropped::Dropped;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one data path, or of one worker of it. They are written by one thread and read by any.
#[derive(Debug, Default)]
pub struct Counters {
    /// Frames that went to the interface.
    pub(crate) received: Way,
    /// Frames that went to the parent.
    pub(crate) sent: Way,
    drops: [AtomicU64; Dropped::COUNT],
    /// Maximum segment sizes lowered.
    pub(crate) clamped: Count,
    /// Segments that super-packets of the parent were taken apart into.
    pub(crate) segments: Count,
    /// Super-packets that the kernel handed over.
    pub(crate) super_packets: Count,
    deliveries: Count,
    delivered: Count,
    /// Senders that got an ICMP message about a packet that is too long.
    pub(crate) too_big: Count,
}

#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

#[derive(Debug, Default)]
pub(crate) struct Way(Count, Count);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub frames: u64,
    /// Their bytes there, MAC addresses and encapsulation included, FCS not.
    #[serde(rename = "octets")]
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub received: Traffic,
    pub sent: Traffic,
    /// Frames and packets that went no further, by the word of the reason; those without any are left out.
    pub drops: BTreeMap<String, u64>,
    /// TCP segments whose maximum segment size was lowered.
    pub mss_clamped: u64,
    /// Segments made of received super-packets, which the kernel or the card had put together.
    pub segments: u64,
    /// Super-packets that the kernel handed to the interface; their segments are among the frames sent.
    #[serde(default)]
    pub super_packets: u64,
    /// Packets given to the kernel after received frames had been put together.
    #[serde(default)]
    pub deliveries: u64,
    #[serde(default)]
    pub delivered: u64,
    /// Senders that ICMP informed that a packet is too long for a subscriber.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub too_big_told: u64,
}

/// A link never counts what only a concentrator does.
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Traffic {
    fn add(&mut self, other: Traffic) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}

impl Counted {
    pub fn add(&mut self, other: Counted) {
        self.received.add(other.received);
        self.sent.add(other.sent);
        for (reason, count) in other.drops {
            *self.drops.entry(reason).or_default() += count;
        }
        self.mss_clamped += other.mss_clamped;
        self.segments += other.segments;
        self.super_packets += other.super_packets;
        self.deliveries += other.deliveries;
        self.delivered += other.delivered;
        self.too_big_told += other.too_big_told;
    }
}

impl Count {
    #[inline]
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Way {
    #[inline]
    pub(crate) fn add(&self, frames: u64, bytes: u64) {
        self.0.add(frames);
        self.1.add(bytes);
    }

    pub(crate) fn frames(&self) -> u64 {
        self.0.read()
    }

    fn read(&self) -> Traffic {
        Traffic { frames: self.0.read(), bytes: self.1.read() }
    }
}

impl Counters {
    /// A packet put together of so many frames was given to the kernel.
    pub(crate) fn delivered(&self, frames: u64) {
        self.deliveries.add(1);
        self.delivered.add(frames);
    }

    /// So many frames or packets went no further.
    pub fn dropped(&self, why: Dropped, count: u64) {
        if let Some(counter) = self.drops.get(why as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub fn read(&self) -> Counted {
        let drops = Dropped::ALL.iter().zip(&self.drops).filter_map(|(reason, counter)| {
            let count = counter.load(Ordering::Relaxed);
            (count > 0).then(|| (reason.word().to_owned(), count))
        });
        Counted {
            received: self.received.read(),
            sent: self.sent.read(),
            drops: drops.collect(),
            mss_clamped: self.clamped.read(),
            segments: self.segments.read(),
            super_packets: self.super_packets.read(),
            deliveries: self.deliveries.read(),
            delivered: self.delivered.read(),
            too_big_told: self.too_big.read(),
        }
    }
}

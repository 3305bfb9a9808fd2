//! What a data path counts.

use crate::dropped::Dropped;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters of one data path, or of one worker of it. They are written by one thread and read by any.
#[derive(Debug, Default)]
pub struct Counters {
    received: Way,
    sent: Way,
    drops: [AtomicU64; Dropped::COUNT],
    clamped: AtomicU64,
    segments: AtomicU64,
    super_packets: AtomicU64,
    deliveries: AtomicU64,
    delivered: AtomicU64,
    told: AtomicU64,
}

/// Frames one way.
#[derive(Debug, Default)]
struct Way {
    frames: AtomicU64,
    octets: AtomicU64,
}

/// Frames and bytes one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    pub frames: u64,
    /// Their bytes there, MAC addresses and encapsulation included, FCS not.
    pub octets: u64,
}

/// All counters at one moment.
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
    /// Senders that were told by ICMP that a packet is too long for a subscriber.
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
        self.octets += other.octets;
    }
}

impl Counted {
    /// Adds what another worker counted.
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

impl Way {
    fn add(&self, frames: u64, octets: u64) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
        self.octets.fetch_add(octets, Ordering::Relaxed);
    }

    fn read(&self) -> Traffic {
        Traffic { frames: self.frames.load(Ordering::Relaxed), octets: self.octets.load(Ordering::Relaxed) }
    }
}

impl Counters {
    /// A frame of this many bytes went to the interface.
    pub(crate) fn received(&self, octets: usize) {
        self.received.add(1, octets as u64);
    }

    /// A frame of this many bytes went to the parent.
    pub(crate) fn sent(&self, octets: usize) {
        self.sent.add(1, octets as u64);
    }

    /// So many frames of so many bytes together went to the parent.
    pub(crate) fn sent_many(&self, frames: u64, octets: u64) {
        self.sent.add(frames, octets);
    }

    /// The kernel handed over a super-packet.
    pub(crate) fn super_packet_sent(&self) {
        self.super_packets.fetch_add(1, Ordering::Relaxed);
    }

    /// A packet put together of so many frames was given to the kernel.
    pub(crate) fn delivered(&self, frames: u64) {
        self.deliveries.fetch_add(1, Ordering::Relaxed);
        self.delivered.fetch_add(frames, Ordering::Relaxed);
    }

    /// A sender was told that a packet is too long.
    pub(crate) fn too_big_told(&self) {
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    /// A frame or packet went no further.
    pub(crate) fn dropped(&self, why: Dropped) {
        self.dropped_many(why, 1);
    }

    /// Several went no further.
    pub fn dropped_many(&self, why: Dropped, count: u64) {
        if let Some(counter) = self.drops.get(why as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// A maximum segment size was lowered.
    pub(crate) fn clamped(&self) {
        self.clamped.fetch_add(1, Ordering::Relaxed);
    }

    /// A super-packet was taken apart.
    pub(crate) fn segmented(&self, segments: u64) {
        self.segments.fetch_add(segments, Ordering::Relaxed);
    }

    /// Frames that went to the interface.
    pub(crate) fn frames_received(&self) -> u64 {
        self.received.frames.load(Ordering::Relaxed)
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
            mss_clamped: self.clamped.load(Ordering::Relaxed),
            segments: self.segments.load(Ordering::Relaxed),
            super_packets: self.super_packets.load(Ordering::Relaxed),
            deliveries: self.deliveries.load(Ordering::Relaxed),
            delivered: self.delivered.load(Ordering::Relaxed),
            too_big_told: self.told.load(Ordering::Relaxed),
        }
    }
}

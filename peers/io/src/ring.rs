//! Rings of packet sockets (linux/if_packet.h, Documentation/networking/packet_mmap.rst).

use crate::packet::{receiving, sending};
use crate::sys::Mapping;
use crate::sys::socket::{PlainRing, Ring, kick, set};
use anyhow::bail;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;

const FRAME: usize = 2048;
const BLOCK: usize = 1 << 16;
const AVAILABLE: u32 = 0;
const TO_USER: u32 = 1;
const SEND_REQUEST: u32 = 1;
const WRONG_FORMAT: u32 = 4;

/// Versions with rings for both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Version {
    V2 = 1,
    V3 = 2,
}

fn share(socket: BorrowedFd<'_>, version: Version, option: i32, ring: Ring) -> std::io::Result<()> {
    set(socket, libc::SOL_PACKET, libc::PACKET_VERSION, version as u32)?;
    let Ring { block_size, block_count, frame_size, frame_count, .. } = ring;
    match version {
        Version::V2 => {
            let ring = PlainRing { block_size, block_count, frame_size, frame_count };
            set(socket, libc::SOL_PACKET, option, ring)
        }
        Version::V3 => set(socket, libc::SOL_PACKET, option, ring),
    }
}

fn slots(count: usize) -> Ring {
    Ring {
        block_size: BLOCK as u32,
        block_count: (count * FRAME / BLOCK) as u32,
        frame_size: FRAME as u32,
        frame_count: count as u32,
        ..Ring::default()
    }
}

/// PACKET_TX_RING.
pub struct Transmit {
    // Unmapped before the socket is closed.
    mapping: Mapping,
    socket: OwnedFd,
    next: usize,
    status: usize,
    length: usize,
    data: usize,
}

const SLOTS: usize = 256;

impl Transmit {
    pub fn open(interface: u32, version: Version, bypass: bool) -> anyhow::Result<Transmit> {
        let socket = sending(interface, bypass)?;
        share(socket.as_fd(), version, libc::PACKET_TX_RING, slots(SLOTS))?;
        let mapping = Mapping::shared(socket.as_fd(), SLOTS * FRAME, 0)?;
        let (status, length, header) = match version {
            Version::V2 => (
                offset_of!(libc::tpacket2_hdr, tp_status),
                offset_of!(libc::tpacket2_hdr, tp_len),
                size_of::<libc::tpacket2_hdr>(),
            ),
            Version::V3 => (
                offset_of!(libc::tpacket3_hdr, tp_status),
                offset_of!(libc::tpacket3_hdr, tp_len),
                size_of::<libc::tpacket3_hdr>(),
            ),
        };
        Ok(Transmit { mapping, socket, next: 0, status, length, data: header.next_multiple_of(16) })
    }

    /// Puts a frame into the next slot.
    pub fn put(&mut self, length: usize, write: impl FnOnce(&mut [u8])) -> anyhow::Result<()> {
        let slot = self.next * FRAME;
        for attempt in 0.. {
            match self.mapping.word(slot + self.status).load(Ordering::Acquire) {
                AVAILABLE => break,
                WRONG_FORMAT => bail!("the kernel refused a frame of {length} octets in its ring"),
                _ if attempt > 1_000_000 => bail!("a slot of the ring never came back"),
                _ => self.flush()?,
            }
        }
        write(self.mapping.octets_mut(slot + self.data, length));
        self.mapping.word(slot + self.length).store(length as u32, Ordering::Relaxed);
        self.mapping.word(slot + self.status).store(SEND_REQUEST, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        Ok(())
    }

    /// Sends what was put.
    pub fn flush(&mut self) -> anyhow::Result<()> {
        crate::packet::ready(kick(self.socket.as_fd()))?;
        Ok(())
    }
}

/// PACKET_RX_RING of TPACKET_V2: a slot a frame.
pub struct Slots {
    mapping: Mapping,
    socket: OwnedFd,
    next: usize,
}

const RECEIVE_SLOTS: usize = 4096;

impl Slots {
    pub fn open(interface: u32) -> anyhow::Result<Slots> {
        let ring = slots(RECEIVE_SLOTS);
        let socket = receiving(interface, |fd| share(fd, Version::V2, libc::PACKET_RX_RING, ring))?;
        let mapping = Mapping::shared(socket.as_fd(), RECEIVE_SLOTS * FRAME, 0)?;
        Ok(Slots { mapping, socket, next: 0 })
    }

    /// Hands up to `most` frames that are there to `look`.
    pub fn take(&mut self, most: usize, mut look: impl FnMut(&[u8])) -> u64 {
        for count in 0..most {
            let slot = self.next * FRAME;
            let status = self.mapping.word(slot + offset_of!(libc::tpacket2_hdr, tp_status));
            if status.load(Ordering::Acquire) & TO_USER == 0 {
                return count as u64;
            }
            let start = self.mapping.half(slot + offset_of!(libc::tpacket2_hdr, tp_mac));
            let length = self.mapping.word(slot + offset_of!(libc::tpacket2_hdr, tp_snaplen));
            look(self.mapping.octets(slot + usize::from(start), length.load(Ordering::Relaxed) as usize));
            status.store(AVAILABLE, Ordering::Release);
            self.next = (self.next + 1) % RECEIVE_SLOTS;
        }
        most as u64
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// PACKET_RX_RING of TPACKET_V3: blocks of frames, handed over when full or when a time is over.
pub struct Blocks {
    mapping: Mapping,
    socket: OwnedFd,
    next: usize,
    block: usize,
    count: usize,
}

const BLOCKS_OCTETS: usize = 8 << 20;
/// Where `hdr.bh1` begins in `struct tpacket_block_desc`.
const BLOCK_HEADER: usize = 8;

impl Blocks {
    /// Blocks of so many octets, handed over after so many milliseconds at the latest.
    pub fn open(interface: u32, block: usize, milliseconds: u32) -> anyhow::Result<Blocks> {
        let count = BLOCKS_OCTETS / block;
        let ring = Ring {
            block_size: block as u32,
            block_count: count as u32,
            frame_size: FRAME as u32,
            frame_count: (BLOCKS_OCTETS / FRAME) as u32,
            retire_milliseconds: milliseconds,
            ..Ring::default()
        };
        let socket = receiving(interface, |fd| share(fd, Version::V3, libc::PACKET_RX_RING, ring))?;
        let mapping = Mapping::shared(socket.as_fd(), BLOCKS_OCTETS, 0)?;
        Ok(Blocks { mapping, socket, next: 0, block, count })
    }

    /// Hands the frames of the next block that is there to `look`.
    pub fn take(&mut self, mut look: impl FnMut(&[u8])) -> u64 {
        let block = self.next * self.block;
        let header = block + BLOCK_HEADER;
        let status = self.mapping.word(header + offset_of!(libc::tpacket_hdr_v1, block_status));
        if status.load(Ordering::Acquire) & TO_USER == 0 {
            return 0;
        }
        let word = |offset: usize| self.mapping.word(offset).load(Ordering::Relaxed) as usize;
        let frames = word(header + offset_of!(libc::tpacket_hdr_v1, num_pkts));
        let mut at = block + word(header + offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt));
        for _ in 0..frames {
            let start = self.mapping.half(at + offset_of!(libc::tpacket3_hdr, tp_mac));
            let length = word(at + offset_of!(libc::tpacket3_hdr, tp_snaplen));
            look(self.mapping.octets(at + usize::from(start), length));
            at += word(at + offset_of!(libc::tpacket3_hdr, tp_next_offset));
        }
        status.store(AVAILABLE, Ordering::Release);
        self.next = (self.next + 1) % self.count;
        frames as u64
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

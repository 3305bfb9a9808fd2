//! The ring in which received frames come (TPACKET_V2; `Documentation/networking/packet_mmap.rst`): a slot a frame, and no
//! system call to take one.
//!
//! # Contract
//!
//! * A frame that is in a slot is whole, with the tag that the kernel took off back in its place.
//! * A frame that is longer than a slot, which super-packets are, waits in the queue of the socket, and its slot says so:
//!   their order is that of all slots.
//! * Slots are looked at in order, and belong to this side until [`Ring::release`].

use crate::parent::{self, Admission};
use kernel::socket::{Mapping, Packet, RingRequest};
use offload::NetHeader;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use wire::ethernet::EtherType;
use wire::vlan::{TAG_LENGTH, Tag, Tci};

/// Bytes of a ring. At 10 Gbit/s of full-size frames that is two milliseconds, at 1 Gbit/s more than twenty.
const BYTES: usize = 4 << 20;
/// Bytes that the kernel allocates in one piece.
const BLOCK: usize = 1 << 16;
/// The smallest slot, and the largest; longer frames wait in the queue of the socket.
const SLOTS: std::ops::RangeInclusive<usize> = 2048..=16_384;
/// Bytes of a slot in front of a frame: `tpacket2_hdr`, `sockaddr_ll`, room for a virtio header and a tag. The kernel says
/// where the frame is; this is only for choosing a size.
const FRONT: usize = 128;
/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;

/// The status of a slot (linux/if_packet.h).
const TO_KERNEL: u32 = 0;
const TO_USER: u32 = 1;
const WAITS_IN_QUEUE: u32 = 2;

#[derive(Debug)]
pub(crate) struct Ring {
    // Unmapped before the socket is closed.
    mapping: Mapping,
    socket: Packet,
    slot: usize,
    count: usize,
    next: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// A frame, from its destination address on, and what the kernel says about it.
    Frame {
        /// Where it is in the ring, bytes.
        start: usize,
        /// Bytes.
        length: usize,
        /// Places in it count from the start of the frame.
        header: NetHeader,
    },
    /// The next frame in the queue of the socket stands here.
    InQueue,
    /// There was no room in the queue for the frame that stood here, or it cannot be.
    Lost,
}

impl Ring {
    /// Opens a socket with a ring on the interface of this number, for the frames of `admission` over an MTU of `mtu` bytes.
    /// With `group`, the sockets of which share the frames: the first call makes it and fills it in.
    ///
    /// # Errors
    ///
    /// `EPERM` without CAP_NET_RAW, `ENOMEM`; what else a packet socket says.
    pub(crate) fn open(
        interface: u32,
        admission: &Admission,
        mtu: u32,
        group: Option<&mut Option<u16>>,
    ) -> io::Result<Ring> {
        let slot = (mtu as usize + FRONT).next_power_of_two().clamp(*SLOTS.start(), *SLOTS.end());
        let count = BYTES / slot;
        let request = RingRequest {
            block_size: BLOCK as u32,
            block_count: (BYTES / BLOCK) as u32,
            slot_size: slot as u32,
            slot_count: count as u32,
        };
        let socket = parent::receiver(
            interface,
            admission,
            |socket| socket.set_receive_ring(request),
            |socket| {
                let Some(group) = group else { return Ok(()) };
                *group = Some(socket.join_fanout(*group)?);
                Ok(())
            },
        )?;
        let mapping = Mapping::shared(socket.as_fd(), BYTES, 0)?;
        Ok(Ring { mapping, socket, slot, count, next: 0 })
    }

    /// The socket, from whose queue frames are taken that a slot says wait there.
    pub(crate) const fn socket(&self) -> &Packet {
        &self.socket
    }

    /// What is in the slot that is `ahead` of the next; `None`: the kernel has put nothing there yet. A frame's tag is put
    /// back, so a slot is looked at once.
    #[inline]
    pub(crate) fn look(&mut self, ahead: usize) -> Option<Slot> {
        if ahead >= self.count {
            return None;
        }
        let at = (self.next + ahead) % self.count * self.slot;
        let status =
            self.mapping.word(at + offset_of!(libc::tpacket2_hdr, tp_status))?.load(Ordering::Acquire);
        if status & TO_USER == 0 {
            return None;
        }
        if status & WAITS_IN_QUEUE != 0 {
            return Some(Slot::InQueue);
        }
        Some(self.frame(at, status).unwrap_or(Slot::Lost))
    }

    #[inline]
    fn frame(&mut self, at: usize, status: u32) -> Option<Slot> {
        let word = |place: usize| Some(self.mapping.word(at + place)?.load(Ordering::Relaxed));
        let half = |place: usize| {
            self.mapping.bytes(at + place, 2).first_chunk().map(|bytes| u16::from_ne_bytes(*bytes))
        };
        let length = word(offset_of!(libc::tpacket2_hdr, tp_snaplen))? as usize;
        // Longer than the slot, and there was no room in the queue.
        if word(offset_of!(libc::tpacket2_hdr, tp_len))? as usize != length {
            return None;
        }
        let offset = usize::from(half(offset_of!(libc::tpacket2_hdr, tp_mac))?);
        if offset + length > self.slot {
            return None;
        }
        let tag = match status & libc::TP_STATUS_VLAN_VALID {
            0 => None,
            _ => {
                // Kernels before 3.14 do not report it, and take off no other.
                let has_tpid = status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                let tpid = half(offset_of!(libc::tpacket2_hdr, tp_vlan_tpid)).filter(|_| has_tpid);
                let tci = Tci(half(offset_of!(libc::tpacket2_hdr, tp_vlan_tci))?);
                Some(Tag { tpid: tpid.map_or(EtherType::VLAN, EtherType), tci })
            }
        };
        let start = at + offset;
        let before = start.checked_sub(NetHeader::LENGTH)?;
        let mut header = NetHeader::parse(self.mapping.bytes(before, NetHeader::LENGTH).first_chunk()?);
        let Some(tag) = tag else { return Some(Slot::Frame { start, length, header }) };
        // The virtio header has been read: the addresses move over its end, and the tag goes behind them.
        let start = start - TAG_LENGTH;
        let front = self.mapping.bytes_mut(start, ADDRESSES + TAG_LENGTH);
        if front.len() != ADDRESSES + TAG_LENGTH {
            return None;
        }
        front.copy_within(TAG_LENGTH.., 0);
        *front.last_chunk_mut()? = crate::framing::bytes_of(tag);
        header.checksum_start = header.checksum_start.saturating_add(TAG_LENGTH as u16);
        Some(Slot::Frame { start, length: length + TAG_LENGTH, header })
    }

    /// Bytes of the ring, of frames that [`Ring::look`] has returned and that are not released.
    #[inline]
    pub(crate) fn bytes(&self, start: usize, length: usize) -> &[u8] {
        self.mapping.bytes(start, length)
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, start: usize, length: usize) -> &mut [u8] {
        self.mapping.bytes_mut(start, length)
    }

    /// Gives so many slots back to the kernel.
    #[inline]
    pub(crate) fn release(&mut self, count: usize) {
        for _ in 0..count {
            let at = self.next * self.slot;
            if let Some(status) = self.mapping.word(at + offset_of!(libc::tpacket2_hdr, tp_status)) {
                status.store(TO_KERNEL, Ordering::Release);
            }
            self.next = (self.next + 1) % self.count;
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

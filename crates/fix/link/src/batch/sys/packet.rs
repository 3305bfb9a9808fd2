//! Options of packet sockets (linux/if_packet.h) that libc lacks, and their structs.

use super::{Plain, checked, set};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// `struct tpacket_req`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RingRequest {
    pub block_size: u32,
    pub block_count: u32,
    pub slot_size: u32,
    pub slot_count: u32,
}

// SAFETY: integers of one width.
unsafe impl Plain for RingRequest {}

const PACKET_VERSION: libc::c_int = 10;
const PACKET_COPY_THRESH: libc::c_int = 7;
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_FANOUT: libc::c_int = 18;
const TPACKET_V2: u32 = 1;
/// `PACKET_FANOUT_HASH`, `PACKET_FANOUT_FLAG_UNIQUEID`, `PACKET_FANOUT_FLAG_IGNORE_OUTGOING`.
const FANOUT_HASH: u32 = 0;
const FANOUT_UNIQUE: u32 = 0x2000;
const FANOUT_IGNORE_OUTGOING: u32 = 0x4000;

/// A ring of TPACKET_V2 for what is received. Frames that are longer than a slot wait in the queue of the socket.
pub fn receive_ring(socket: BorrowedFd<'_>, request: RingRequest) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, PACKET_VERSION, TPACKET_V2)?;
    set(socket, libc::SOL_PACKET, PACKET_COPY_THRESH, 1_u32)?;
    set(socket, libc::SOL_PACKET, PACKET_RX_RING, request)
}

/// Makes a bound socket one of a group, by which frames are spread: each flow, and all fragments between two addresses,
/// stay with one socket. `None` makes a group; its number is given.
///
/// The socket's own option for that is not looked at in a group; without the flag every frame that is sent is hashed, too.
pub fn join_fanout(socket: BorrowedFd<'_>, group: Option<u16>) -> io::Result<u16> {
    let (number, unique) = group.map_or((0, FANOUT_UNIQUE), |group| (u32::from(group), 0));
    let join = |flags: u32| {
        set(socket, libc::SOL_PACKET, PACKET_FANOUT, number | (FANOUT_HASH | unique | flags) << 16)
    };
    // Kernels before 5.18 do not know it.
    join(FANOUT_IGNORE_OUTGOING).or_else(|_| join(0))?;
    let now: u32 = super::get(socket, libc::SOL_PACKET, PACKET_FANOUT)?;
    Ok(now as u16)
}

/// Sends what lies in a ring (sendto(2) without octets and address).
pub fn kick(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no octets and no address are given.
    let sent = unsafe {
        libc::sendto(socket.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
    };
    checked(sent as libc::c_long).map(drop)
}

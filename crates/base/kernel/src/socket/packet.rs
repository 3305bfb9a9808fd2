//! Packet sockets (packet(7)).

use super::filter::Instruction;
use super::sys::{self, PacketAddress};
use super::{Control, receive};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// linux/if_packet.h; libc lacks them.
const PACKET_COPY_THRESH: libc::c_int = 7;
const PACKET_VERSION: libc::c_int = 10;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_FANOUT: libc::c_int = 18;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_RX_RING: libc::c_int = 5;
const TPACKET_V2: u32 = 1;
/// `PACKET_FANOUT_HASH`, `PACKET_FANOUT_FLAG_UNIQUEID`, `PACKET_FANOUT_FLAG_IGNORE_OUTGOING`.
const FANOUT_HASH: u32 = 0;
const FANOUT_UNIQUE: u32 = 0x2000;
const FANOUT_IGNORE_OUTGOING: u32 = 0x4000;

/// A packet socket: whole Ethernet frames of one interface, from the destination address on and without FCS.
#[derive(Debug)]
pub struct Packet(OwnedFd);

/// Options that are on or off.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// `PACKET_AUXDATA`: [`Control::tag`], [`Control::is_merged`].
    Auxdata,
    /// `PACKET_VNET_HDR`: a virtio header in front of each frame, received or sent.
    NetHeader,
    /// `PACKET_IGNORE_OUTGOING`: no frames that are sent (Linux 4.20).
    IgnoreOutgoing,
    /// `SO_TIMESTAMPNS`: [`Control::time`]. It costs every frame that the machine receives a look at the clock.
    Timestamps,
}

/// `struct tpacket_req`: a ring for what is received.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RingRequest {
    /// Bytes that the kernel allocates in one piece.
    pub block_size: u32,
    /// How many of them.
    pub block_count: u32,
    /// Bytes for a frame and what stands in front of it.
    pub slot_size: u32,
    /// How many of them.
    pub slot_count: u32,
}

impl Packet {
    /// Opens a socket, which receives nothing until it is bound. Nothing waits on it: calls say `EAGAIN`. Error: `EPERM`
    /// without CAP_NET_RAW.
    pub fn open() -> io::Result<Packet> {
        Packet::with(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
    }

    /// The same, and sending waits for memory of the socket. Error: `EPERM` without CAP_NET_RAW.
    pub fn open_blocking() -> io::Result<Packet> {
        Packet::with(SocketFlags::CLOEXEC)
    }

    fn with(flags: SocketFlags) -> io::Result<Packet> {
        // Without a protocol nothing arrives until bind(2) names one together with the interface.
        Ok(Packet(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?))
    }

    /// Sends from an interface, and receives nothing. Error: `ENODEV`: there is none of this number.
    pub fn bind_to_send(&self, interface: u32) -> io::Result<()> {
        Ok(bind(&self.0, &PacketAddress { interface, protocol: 0 })?)
    }

    /// Sends from an interface and receives all its frames that the filter lets through. Error: `ENODEV`: there is none of this
    /// number.
    pub fn bind(&self, interface: u32) -> io::Result<()> {
        Ok(bind(&self.0, &PacketAddress { interface, protocol: libc::ETH_P_ALL as u16 })?)
    }

    /// Turns an option on.
    pub fn turn_on(&self, flag: Flag) -> io::Result<()> {
        let (level, name) = match flag {
            Flag::Auxdata => (libc::SOL_PACKET, libc::PACKET_AUXDATA),
            Flag::NetHeader => (libc::SOL_PACKET, PACKET_VNET_HDR),
            Flag::IgnoreOutgoing => (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING),
            Flag::Timestamps => (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        };
        sys::set(self.as_fd(), level, name, 1_u32)
    }

    /// Bytes that the kernel keeps until they are received, of which it doubles the number (socket(7)): beyond the limit of the
    /// system only with CAP_NET_ADMIN, else as much as that allows.
    pub fn set_receive_buffer(&self, bytes: usize) {
        if sockopt::set_socket_recv_buffer_size_force(&self.0, bytes).is_err() {
            let _ = sockopt::set_socket_recv_buffer_size(&self.0, bytes);
        }
    }

    /// Lets only frames reach the socket that a program accepts. Error: the program is none, or too long.
    pub fn set_filter(&self, program: &[Instruction]) -> io::Result<()> {
        sys::set_filter(self.as_fd(), program)
    }

    /// Makes the interface promiscuous as long as the socket lives. Error: `ENODEV`: there is none of this number.
    pub fn set_promiscuous(&self, interface: u32) -> io::Result<()> {
        sys::set(
            self.as_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            sys::Membership { interface, kind: libc::PACKET_MR_PROMISC as u16, ..sys::Membership::default() },
        )
    }

    /// A ring of TPACKET_V2 for what is received. Frames that are longer than a slot wait in the queue of the socket. Error:
    /// `ENOMEM`; `EINVAL`: sizes that do not fit.
    pub fn set_receive_ring(&self, request: RingRequest) -> io::Result<()> {
        let socket = self.as_fd();
        sys::set(socket, libc::SOL_PACKET, PACKET_VERSION, TPACKET_V2)?;
        sys::set(socket, libc::SOL_PACKET, PACKET_COPY_THRESH, 1_u32)?;
        sys::set(socket, libc::SOL_PACKET, PACKET_RX_RING, request)
    }

    /// Makes a bound socket one of a group, over which frames are spread: each flow, and all fragments between two addresses,
    /// stay with one socket. `None` makes a group; its number is given.
    ///
    /// The socket's own option for frames that are sent does not count in a group; without the flag each of them is hashed,
    /// too. Error: there is no such group of this interface.
    pub fn join_fanout(&self, group: Option<u16>) -> io::Result<u16> {
        let (number, unique) = group.map_or((0, FANOUT_UNIQUE), |group| (u32::from(group), 0));
        let join = |flags: u32| {
            let value = number | (FANOUT_HASH | unique | flags) << 16;
            sys::set(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT, value)
        };
        // Kernels before 5.18 do not know it.
        join(FANOUT_IGNORE_OUTGOING).or_else(|_| join(0))?;
        let now: u32 = sys::get(self.as_fd(), libc::SOL_PACKET, PACKET_FANOUT)?;
        Ok(now as u16)
    }

    /// Frames that were dropped for want of room since the socket was opened, or since this was called last
    /// (`PACKET_STATISTICS`).
    pub fn drops(&self) -> io::Result<u32> {
        let [_, drops]: [u32; 2] = sys::get(self.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        Ok(drops)
    }

    /// The type of the interface that the socket is bound to (`ARPHRD_…`).
    pub fn hardware_type(&self) -> io::Result<u16> {
        sys::hardware_type(self.as_fd())
    }

    /// The next frame, in these pieces, by one system call: its whole length, which may be more than there was room for, and
    /// its ancillary data. Error: those of recvmsg(2), `EAGAIN` if there is no frame.
    #[inline]
    pub fn receive(&self, pieces: &mut [IoSliceMut<'_>]) -> io::Result<(usize, Control)> {
        receive(self.as_fd(), pieces)
    }

    /// Another descriptor of the socket.
    pub fn try_clone(&self) -> io::Result<Packet> {
        self.0.try_clone().map(Packet)
    }
}

impl AsFd for Packet {
    /// Readable when frames are there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

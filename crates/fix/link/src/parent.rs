//! The interface below a link: a packet socket that receives only the frames of the link, and one that sends.
//!
//! # Contract
//!
//! * The kernel takes the outermost tag off a frame before a packet socket sees it; it is put back in its place, with its
//!   TPID, from what the socket tells (`PACKET_AUXDATA`), so that a received frame is as it was on the line.
//! * What the kernel put together (GRO) or left unfinished (partial checksums of a virtual interface) is told by a virtio
//!   header (`PACKET_VNET_HDR`).
//! * A filter in the kernel lets only frames of the link reach the socket. It is set before the socket is bound, so that
//!   none of others is ever in it.
//! * With tags the interface is made promiscuous as long as the socket lives: cards filter VLANs that nobody registered,
//!   and promiscuous mode is how a packet socket gets them.
//! * The sockets survive the interface going down and coming back.

pub(crate) mod filter;
pub(crate) mod sys;

pub use filter::nothing;
pub use sys::{Instruction, filter as set_filter};

use crate::dropped::Dropped;
use crate::framing::Framing;
use crate::sys::PacketAddress;
use offload::NetHeader;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::vlan::TAG_LENGTH;

/// Octets that the kernel keeps of each link until they are taken, of which it doubles the number (socket(7)); a full-size
/// frame counts about 2,300 there.
const QUEUE: usize = 4 << 20;
/// The longest frame: the largest super-packet, addresses and tags.
const LONGEST: usize = 65_536 + 128;
/// How long a frame waits for room in the queue of the interface, nanoseconds.
const PATIENCE: i64 = 20_000_000;

/// The two sockets on the parent.
#[derive(Debug)]
pub struct Parent {
    receive: OwnedFd,
    send: OwnedFd,
    buffer: Box<[u8]>,
}

/// A received frame.
#[derive(Debug)]
pub struct Received<'b> {
    /// From its destination address on, with every tag, without FCS.
    pub frame: &'b mut [u8],
    /// What the kernel says about it. Places in it count from the start of `frame`.
    pub header: NetHeader,
}

/// What came of looking for a frame.
#[derive(Debug)]
pub enum Arrival<'b> {
    Frame(Received<'b>),
    Lost(Dropped),
    Nothing,
    /// The interface went down or away; the next call finds out what else there is.
    Down,
}

impl Parent {
    /// Opens both sockets on the interface of this number, in the network namespace of the calling thread.
    pub fn open(interface: u32, framing: &Framing) -> io::Result<Parent> {
        let receive = receiver(interface, &Admission::of(framing), |_| Ok(()), |_| Ok(()))?;
        let send = sender(interface)?;
        Ok(Parent { receive, send, buffer: buffer() })
    }

    /// Another descriptor of the socket that receives, from which [`drops`] can be read.
    pub fn observer(&self) -> io::Result<OwnedFd> {
        self.receive.try_clone()
    }

    /// The next frame, by one system call.
    ///
    /// # Errors
    ///
    /// What the kernel says beyond what [`Arrival`] has.
    #[inline]
    pub fn receive(&mut self) -> io::Result<Arrival<'_>> {
        receive(&self.receive, &mut self.buffer)
    }

    /// Sends a frame given in two pieces, by one system call.
    ///
    /// # Errors
    ///
    /// Why it was not sent.
    #[inline]
    pub fn send(&self, head: &[u8], rest: &[u8]) -> Result<(), Dropped> {
        let pieces = [IoSlice::new(head), IoSlice::new(rest)];
        let mut sent = rustix::io::writev(&self.send, &pieces);
        if sent == Err(Errno::AGAIN) {
            let timeout = Timespec { tv_sec: 0, tv_nsec: PATIENCE };
            // Whatever it says, the next try tells.
            let _ = poll(&mut [PollFd::new(&self.send, PollFlags::OUT)], Some(&timeout));
            sent = rustix::io::writev(&self.send, &pieces);
        }
        sent.map(drop).map_err(refusal)
    }
}

/// What it means that the parent refuses a frame.
pub fn refusal(error: Errno) -> Dropped {
    match error {
        Errno::MSGSIZE => Dropped::ParentMtu,
        Errno::NOBUFS | Errno::AGAIN => Dropped::ParentFull,
        Errno::NETDOWN | Errno::NXIO | Errno::NODEV => Dropped::ParentDown,
        _ => Dropped::ParentRefused,
    }
}

fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Without a protocol nothing arrives until bind(2) names one together with the interface.
    Ok(socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)?)
}

/// Which frames of an interface a socket receives.
#[derive(Debug)]
pub struct Admission {
    pub program: Vec<sys::Instruction>,
    pub has_tags: bool,
    /// Whether a virtio header stands in front of each.
    pub has_header: bool,
}

impl Admission {
    pub fn of(framing: &Framing) -> Admission {
        let has_tags = !framing.encapsulation().tags().is_empty();
        Admission { program: filter::program(framing), has_tags, has_header: true }
    }
}

/// A socket that receives frames of an interface, each with its tag. `prepare` is called before it is bound, `join` when it
/// is bound and receives nothing yet.
pub fn receiver(
    interface: u32,
    admission: &Admission,
    prepare: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
    join: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    let socket = open()?;
    sys::turn_on(&socket, sys::Flag::Auxdata)?;
    if admission.has_header {
        sys::turn_on(&socket, sys::Flag::NetHeader)?;
    }
    // Kernels before 4.20 do not know it; the filter leaves out what is sent, too.
    let _ = sys::turn_on(&socket, sys::Flag::IgnoreOutgoing);
    // Beyond the limit of the system only with CAP_NET_ADMIN; else as much as it allows.
    if sockopt::set_socket_recv_buffer_size_force(&socket, QUEUE).is_err() {
        let _ = sockopt::set_socket_recv_buffer_size(&socket, QUEUE);
    }
    prepare(socket.as_fd())?;
    sys::filter(&socket, &filter::nothing())?;
    if admission.has_tags {
        sys::promiscuous(&socket, interface)?;
    }
    bind(&socket, &PacketAddress { interface, protocol: libc::ETH_P_ALL as u16 })?;
    join(socket.as_fd())?;
    sys::filter(&socket, &admission.program)?;
    Ok(socket)
}

/// A socket that sends out of an interface, and receives nothing.
pub(crate) fn sender(interface: u32) -> io::Result<OwnedFd> {
    let socket = open()?;
    bind(&socket, &PacketAddress { interface, protocol: 0 })?;
    Ok(socket)
}

/// Frames that were dropped for want of room since the socket was opened, or since this was called last.
pub fn drops(observer: &OwnedFd) -> io::Result<u32> {
    sys::drops(observer)
}

impl AsFd for Parent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receive.as_fd()
    }
}

/// Room for a frame of any length.
pub fn buffer() -> Box<[u8]> {
    vec![0; TAG_LENGTH + LONGEST].into_boxed_slice()
}

/// The next frame of a socket, by one system call, in a [`buffer`].
///
/// # Errors
///
/// What the kernel says beyond what [`Arrival`] has.
#[inline]
pub fn receive<'b>(socket: &OwnedFd, buffer: &'b mut [u8]) -> io::Result<Arrival<'b>> {
    let Some(room) = buffer.get_mut(TAG_LENGTH..) else { return Ok(Arrival::Nothing) };
    let received = match sys::receive(socket, room) {
        Ok(received) => received,
        Err(error) => return unreceived(error),
    };
    let Some(length) = received.length.checked_sub(NetHeader::LENGTH).filter(|length| *length <= room.len())
    else {
        return Ok(Arrival::Lost(Dropped::TooLong));
    };
    let mut header = NetHeader::parse(&received.header);
    let start = match received.tag {
        None => TAG_LENGTH,
        Some(tag) => {
            put_back(buffer, crate::framing::octets_of(tag));
            header.checksum_start = header.checksum_start.saturating_add(TAG_LENGTH as u16);
            0
        }
    };
    match buffer.get_mut(start..TAG_LENGTH + length) {
        Some(frame) => Ok(Arrival::Frame(Received { frame, header })),
        None => Ok(Arrival::Lost(Dropped::TooLong)),
    }
}

fn unreceived(error: io::Error) -> io::Result<Arrival<'static>> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::INTR) => Ok(Arrival::Nothing),
        // `packet_notifier()` of net/packet/af_packet.c.
        Some(Errno::NETDOWN) => Ok(Arrival::Down),
        // `virtio_net_hdr_from_skb()` does not know the kind of super-packet; the frame is gone.
        Some(Errno::INVAL) => Ok(Arrival::Lost(Dropped::SuperPacket)),
        _ => Err(error),
    }
}

/// The frame starts behind room for a tag: its addresses move there, and the tag goes behind them.
fn put_back(buffer: &mut [u8], tag: [u8; TAG_LENGTH]) {
    const ADDRESSES: usize = 12;
    if let Some(start) = buffer.get_mut(..TAG_LENGTH + ADDRESSES) {
        start.copy_within(TAG_LENGTH.., 0);
    }
    if let Some(place) = buffer.get_mut(ADDRESSES..).and_then(|rest| rest.first_chunk_mut()) {
        *place = tag;
    }
}

#[cfg(test)]
pub(crate) mod tests;

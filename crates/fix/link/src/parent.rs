//! The interface below a link: a packet socket that receives only the frames of the link, and one that sends.
//!
//! # Contract
//!
//! * The kernel takes the outermost tag off a frame before a packet socket sees it; it is put back in its place, with its
//!   TPID, from what the socket reports (`PACKET_AUXDATA`), so that a received frame is as it was on the line.
//! * What the kernel put together (GRO) or left unfinished (partial checksums of a virtual interface) is described by a virtio
//!   header (`PACKET_VNET_HDR`).
//! * A filter in the kernel lets only frames of the link reach the socket. It is set before the socket is bound, so that
//!   none of others is ever in it.
//! * With tags the interface is made promiscuous as long as the socket lives: cards filter VLANs that nobody registered,
//!   and promiscuous mode is how a packet socket gets them.
//! * The sockets survive the interface going down and coming back.

pub(crate) mod filter;

use crate::dropped::Dropped;
use crate::framing::Framing;
use kernel::socket::filter::{Instruction, all_or_none};
use kernel::socket::{BATCH, Flag, Outgoing, Packet};
use offload::NetHeader;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use service::event_loop::timespec;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::thread::sleep;
use std::time::Duration;
use wire::vlan::TAG_LENGTH;

/// Bytes that the kernel keeps of each link until they are taken, of which it doubles the number (socket(7)); a full-size
/// frame counts about 2,300 there.
const QUEUE: usize = 4 << 20;
/// The longest frame: the largest super-packet, addresses and tags.
const LONGEST: usize = 65_536 + 128;
/// How long a frame waits for room in the queue of the interface.
const PATIENCE: Duration = Duration::from_millis(20);

/// The two sockets on the parent.
#[derive(Debug)]
pub(crate) struct Parent {
    receive: Packet,
    send: Packet,
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
    pub(crate) fn open(interface: u32, framing: &Framing) -> io::Result<Parent> {
        let receive = receiver(interface, &Admission::of(framing), |_| Ok(()), |_| Ok(()))?;
        let send = sender(interface)?;
        Ok(Parent { receive, send, buffer: buffer() })
    }

    /// Another descriptor of the socket that receives, from which its drops can be read.
    pub(crate) fn observer(&self) -> io::Result<Packet> {
        self.receive.try_clone()
    }

    /// The next frame, by one system call.
    #[inline]
    pub(crate) fn receive(&mut self) -> io::Result<Arrival<'_>> {
        receive(&self.receive, &mut self.buffer)
    }

    /// Sends a frame given in two pieces, by one system call.
    #[inline]
    pub(crate) fn send(&self, head: &[u8], rest: &[u8]) -> Result<(), Dropped> {
        let pieces = [IoSlice::new(head), IoSlice::new(rest)];
        let mut sent = rustix::io::writev(&self.send, &pieces);
        if sent == Err(Errno::AGAIN) {
            wait_for_room(&self.send, Errno::AGAIN, PATIENCE);
            sent = rustix::io::writev(&self.send, &pieces);
        }
        sent.map(drop).map_err(refusal)
    }
}

/// What it means that the parent refuses a frame.
pub(crate) fn refusal(error: Errno) -> Dropped {
    match error {
        Errno::MSGSIZE => Dropped::ParentMtu,
        Errno::NOBUFS | Errno::AGAIN => Dropped::ParentFull,
        Errno::NETDOWN | Errno::NXIO | Errno::NODEV => Dropped::ParentDown,
        _ => Dropped::ParentRefused,
    }
}

/// How often frames wait for room, and how long each time: 20 ms in all.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_micros(200);

/// Sends `count` messages, of which `pieces` gives the bytes, waiting for room where there is none. `sent` gets those that went,
/// `refused` which did not, and why; those behind it are tried still.
pub(crate) fn send_all<'p, const PIECES: usize>(
    socket: &Packet,
    messages: &mut Outgoing<PIECES>,
    count: usize,
    pieces: impl Fn(usize) -> [&'p [u8]; PIECES],
    mut sent: impl FnMut(Range<usize>),
    mut refused: impl FnMut(usize, Dropped),
) {
    let (mut at, mut tries) = (0, TRIES);
    while at < count {
        let error = match messages.send(socket, (at..count).take(BATCH).map(&pieces)) {
            Ok(more) => {
                sent(at..at + more);
                at += more;
                continue;
            }
            Err(error) => error.raw_os_error().map(Errno::from_raw_os_error),
        };
        match error {
            Some(Errno::INTR) => {}
            Some(error @ (Errno::AGAIN | Errno::NOBUFS)) if tries > 0 => {
                tries -= 1;
                wait_for_room(socket, error, PAUSE);
            }
            _ => {
                refused(at, error.map_or(Dropped::ParentRefused, refusal));
                at += 1;
            }
        }
    }
}

/// Waits for room: in the memory of the socket (`EAGAIN`), or in the queue of the interface (`ENOBUFS`), which nothing reports.
fn wait_for_room(socket: &Packet, error: Errno, time: Duration) {
    if error == Errno::AGAIN {
        // Whatever it says, the next try shows.
        let _ = poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&timespec(time)));
    } else {
        sleep(time);
    }
}

/// Which frames of an interface a socket receives.
#[derive(Debug)]
pub struct Admission {
    /// Accepts them.
    pub program: Vec<Instruction>,
    /// Whether any of them have tags.
    pub has_tags: bool,
    /// Whether a virtio header stands in front of each.
    pub has_header: bool,
}

impl Admission {
    pub(crate) fn of(framing: &Framing) -> Admission {
        let has_tags = !framing.encapsulation().tags().is_empty();
        Admission { program: filter::program(framing), has_tags, has_header: true }
    }
}

/// A socket that receives frames of an interface, each with its tag. `prepare` is called before it is bound, `join` when it
/// is bound and receives nothing yet.
pub fn receiver(
    interface: u32,
    admission: &Admission,
    prepare: impl FnOnce(&Packet) -> io::Result<()>,
    join: impl FnOnce(&Packet) -> io::Result<()>,
) -> io::Result<Packet> {
    let socket = Packet::open()?;
    socket.turn_on(Flag::Auxdata)?;
    if admission.has_header {
        socket.turn_on(Flag::NetHeader)?;
    }
    // Kernels before 4.20 do not know it; the filter leaves out what is sent, too.
    let _ = socket.turn_on(Flag::IgnoreOutgoing);
    socket.set_receive_buffer(QUEUE);
    prepare(&socket)?;
    socket.set_filter(&all_or_none(false))?;
    if admission.has_tags {
        socket.set_promiscuous(interface)?;
    }
    socket.bind(interface)?;
    join(&socket)?;
    socket.set_filter(&admission.program)?;
    Ok(socket)
}

/// A socket that sends out of an interface, and receives nothing.
pub(crate) fn sender(interface: u32) -> io::Result<Packet> {
    let socket = Packet::open()?;
    socket.bind_to_send(interface)?;
    Ok(socket)
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
#[inline]
pub fn receive<'b>(socket: &Packet, buffer: &'b mut [u8]) -> io::Result<Arrival<'b>> {
    let Some(room) = buffer.get_mut(TAG_LENGTH..) else { return Ok(Arrival::Nothing) };
    let mut header = [0; NetHeader::LENGTH];
    let (length, control) = match socket.receive(&mut [IoSliceMut::new(&mut header), IoSliceMut::new(room)]) {
        Ok(received) => received,
        Err(error) => return unreceived(error),
    };
    let Some(length) = length.checked_sub(NetHeader::LENGTH).filter(|length| *length <= room.len()) else {
        return Ok(Arrival::Lost(Dropped::TooLong));
    };
    let mut header = NetHeader::parse(&header);
    let start = match control.tag {
        None => TAG_LENGTH,
        Some(tag) => {
            put_back(buffer, crate::framing::bytes_of(tag));
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
        // `virtio_net_hdr_from_skb()` does not know the kind of super-packet; the frame is lost.
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

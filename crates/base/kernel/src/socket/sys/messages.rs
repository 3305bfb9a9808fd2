//! Messages with their ancillary data: one (recvmsg(2)), or many (recvmmsg(2), sendmmsg(2)).

use super::super::Control;
use super::checked;
use std::fmt;
use std::io::{self, IoSliceMut};
use std::mem::zeroed;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr::null_mut;

/// Bytes for control messages: the auxiliary data of a frame take 40, a time 32, an int 24.
const CONTROL: usize = 96;
/// Bytes for an address: `sockaddr_in6` takes 28, `sockaddr_ll` 20.
const NAME: usize = 32;

/// Room for control messages, aligned as they want it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Aligned<const N: usize>([u8; N]);

/// Takes one message, in these pieces, without waiting for it: its whole length, which may be more than there was room for, and
/// its ancillary data. Error: those of recvmsg(2), `EAGAIN` if there is none.
#[inline]
pub fn receive(socket: BorrowedFd<'_>, pieces: &mut [IoSliceMut<'_>]) -> io::Result<(usize, Control)> {
    let mut control = Aligned([0; CONTROL]);
    // SAFETY: `msghdr` is integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    // An `IoSliceMut` is an iovec (its documentation).
    message.msg_iov = pieces.as_mut_ptr().cast();
    message.msg_iovlen = pieces.len() as _;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: the message points to the pieces and to `CONTROL` bytes, each with its length; no two share any, and all live
    // through the call.
    let length =
        unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT | libc::MSG_TRUNC) };
    let length = checked(length)?;
    #[allow(clippy::unnecessary_cast, reason = "32 bits in musl")]
    let control = control.0.get(..message.msg_controllen as usize).unwrap_or_default();
    Ok((length, Control::read(control)))
}

/// Room for messages that are received together.
pub struct Incoming {
    bytes: Box<[u8]>,
    room: usize,
    names: Box<[Aligned<NAME>]>,
    controls: Box<[Aligned<CONTROL>]>,
    vectors: Box<[libc::iovec]>,
    headers: Box<[libc::mmsghdr]>,
    /// Messages that the last call took.
    count: usize,
}

/// A received message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its first bytes, as many as there was room for; of a frame, without the tag in its ancillary data.
    pub bytes: &'a [u8],
    /// All of its bytes.
    pub length: usize,
    name: &'a [u8; NAME],
    control: &'a [u8],
}

impl Message<'_> {
    /// Its ancillary data.
    #[inline]
    pub fn control(&self) -> Control {
        Control::read(self.control)
    }

    /// Whether a frame was sent by this machine and not received (`sll_pkttype`).
    pub fn is_outgoing(&self) -> bool {
        const KIND: usize = std::mem::offset_of!(libc::sockaddr_ll, sll_pkttype);
        matches!(self.name[KIND], libc::PACKET_OUTGOING | libc::PACKET_LOOPBACK)
    }

    /// The port of the netlink socket that sent it (`nl_pid` in `struct sockaddr_nl`); 0: the kernel.
    pub fn netlink_port(&self) -> u32 {
        let [_, _, _, _, port @ .., _, _, _, _] = self.name.first_chunk::<12>().unwrap_or(&[0xff; 12]);
        u32::from_ne_bytes(*port)
    }

    /// Whether a datagram came over IPv6, and not over IPv4 (RFC 4291 section 2.5.5.2).
    #[inline]
    pub fn is_ipv6(&self) -> bool {
        let ([a, b, ..], address) = (self.name, self.name.get(8..).and_then(|rest| rest.first_chunk()));
        let is_mapped = |address: &[u8; 16]| Ipv6Addr::from(*address).to_ipv4_mapped().is_some();
        i32::from(u16::from_ne_bytes([*a, *b])) == libc::AF_INET6 && !address.is_none_or(is_mapped)
    }
}

// SAFETY: the pointers inside are written anew by each call, and lead to what the value itself owns.
unsafe impl Send for Incoming {}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({} of {} messages)", self.count, self.headers.len())
    }
}

impl Incoming {
    /// Room for `count` messages of `room` bytes each.
    pub fn new(count: usize, room: usize) -> Incoming {
        // SAFETY: both structs are integers and pointers, for which zero is a value.
        let (vector, header): (libc::iovec, libc::mmsghdr) = unsafe { (zeroed(), zeroed()) };
        Incoming {
            bytes: vec![0; count * room].into(),
            room,
            names: vec![Aligned([0; NAME]); count].into(),
            controls: vec![Aligned([0; CONTROL]); count].into(),
            vectors: vec![vector; count].into(),
            headers: vec![header; count].into(),
            count: 0,
        }
    }

    /// Takes the messages that are there; how many. Error: those of recvmmsg(2), `EAGAIN` if there is none.
    pub fn receive(&mut self, socket: impl AsFd) -> io::Result<usize> {
        self.take(socket.as_fd(), libc::MSG_DONTWAIT)
    }

    /// Waits for a message and takes what else is there; how many. Error: those of recvmmsg(2); `EAGAIN` after the socket's
    /// `SO_RCVTIMEO`.
    pub fn wait(&mut self, socket: impl AsFd) -> io::Result<usize> {
        self.take(socket.as_fd(), libc::MSG_WAITFORONE)
    }

    fn take(&mut self, socket: BorrowedFd<'_>, flags: libc::c_int) -> io::Result<usize> {
        self.count = 0;
        // Of messages without bytes there are no rooms; then their lengths are received.
        let mut rooms = self.bytes.chunks_exact_mut(self.room.max(1));
        let ancillary = self.names.iter_mut().zip(&mut self.controls);
        for ((vector, header), (name, control)) in
            self.vectors.iter_mut().zip(&mut self.headers).zip(ancillary)
        {
            let room = rooms.next().unwrap_or_default();
            *vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
            header.msg_hdr.msg_name = name.0.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = NAME as libc::socklen_t;
            header.msg_hdr.msg_iov = &raw mut *vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL as _;
        }
        let flags = flags | libc::MSG_TRUNC;
        // The types of length and flags differ between C libraries.
        // SAFETY: each header points to a name, `CONTROL` control bytes and one vector, and this to a room, each with its length;
        // no two share any, `self` owns them, and all live through the call.
        let count = unsafe {
            let (headers, length) = (self.headers.as_mut_ptr(), self.headers.len());
            libc::recvmmsg(socket.as_raw_fd(), headers, length as _, flags as _, null_mut())
        };
        self.count = checked(count as isize)?;
        Ok(self.count)
    }

    /// The messages that the last call took.
    #[inline]
    pub fn messages(&self) -> impl Iterator<Item = Message<'_>> {
        let mut rooms = self.bytes.chunks_exact(self.room.max(1));
        let ancillary = self.names.iter().zip(&self.controls);
        self.headers.iter().zip(ancillary).take(self.count).map(move |(header, (name, control))| {
            let (room, length) = (rooms.next().unwrap_or_default(), header.msg_len as usize);
            #[allow(clippy::unnecessary_cast, reason = "32 bits in musl")]
            let control = control.0.get(..header.msg_hdr.msg_controllen as usize).unwrap_or_default();
            let bytes = room.get(..length).unwrap_or(room);
            Message { bytes, length, name: &name.0, control }
        })
    }
}

/// Room for the arguments of a call that sends many messages of so many pieces each, so that none is allocated later.
pub struct Outgoing<const PIECES: usize> {
    vectors: Box<[[libc::iovec; PIECES]]>,
    headers: Box<[libc::mmsghdr]>,
}

// SAFETY: the pointers inside are written anew by each call from what it borrows, and never read outside it.
unsafe impl<const PIECES: usize> Send for Outgoing<PIECES> {}

impl<const PIECES: usize> fmt::Debug for Outgoing<PIECES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({} of {PIECES})", self.headers.len())
    }
}

impl<const PIECES: usize> Outgoing<PIECES> {
    /// Room for `count` messages.
    pub fn new(count: usize) -> Outgoing<PIECES> {
        // SAFETY: both structs are integers and pointers, for which zero is a value.
        let (vectors, header): ([libc::iovec; PIECES], libc::mmsghdr) = unsafe { (zeroed(), zeroed()) };
        Outgoing { vectors: vec![vectors; count].into(), headers: vec![header; count].into() }
    }

    /// Sends the first messages, as many as there is room for, and gives their number, at least one. Error: those of
    /// sendmmsg(2) for the first message.
    pub fn send<'f>(
        &mut self,
        socket: impl AsFd,
        messages: impl Iterator<Item = [&'f [u8]; PIECES]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for ((vectors, header), message) in self.vectors.iter_mut().zip(&mut self.headers).zip(messages) {
            for (vector, piece) in vectors.iter_mut().zip(message) {
                vector.iov_base = piece.as_ptr().cast_mut().cast();
                vector.iov_len = piece.len();
            }
            header.msg_hdr.msg_iov = vectors.as_mut_ptr();
            header.msg_hdr.msg_iovlen = PIECES as _;
            count += 1;
        }
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: the first `count` headers point to vectors of `self` and these to `messages`, all of which live through the call;
        // the kernel reads them and writes only `msg_len`.
        let sent = unsafe { libc::sendmmsg(socket, self.headers.as_mut_ptr(), count, 0) };
        checked(sent as isize)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::udp;
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    #[test]
    fn datagrams_of_both_versions_go_and_come_together() {
        for (address, is_ipv6) in [("127.0.0.1:0", false), ("[::1]:0", true)] {
            // A kernel without IPv6.
            let Ok(receiver) = UdpSocket::bind(address) else { continue };
            receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
            let sender = UdpSocket::bind(address).expect("a socket");
            sender.connect(receiver.local_addr().expect("an address")).expect("connected");
            let pieces = [[&b"head"[..], b"one"], [b"head", b"second"], [b"", b""]];
            let mut outgoing = Outgoing::<2>::new(8);
            assert_eq!(outgoing.send(&sender, pieces.into_iter()).expect("sent"), 3);
            let (mut incoming, mut got) = (Incoming::new(2, 8), Vec::new());
            while got.len() < 3 {
                incoming.wait(&receiver).expect("received");
                got.extend(incoming.messages().map(|message| {
                    assert_eq!(message.is_ipv6(), is_ipv6);
                    (message.bytes.to_vec(), message.length)
                }));
            }
            assert_eq!(got, [(b"headone".to_vec(), 7), (b"headseco".to_vec(), 10), (Vec::new(), 0)]);
            assert_eq!(incoming.receive(&receiver).expect_err("no more").kind(), io::ErrorKind::WouldBlock);
            assert_eq!(udp::drops(&receiver).expect("a counter"), 0);
        }
    }

    #[test]
    fn a_super_packet_names_its_segments() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        receiver.set_read_timeout(Some(Duration::from_secs(60))).expect("a limit");
        let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        sender.connect(receiver.local_addr().expect("an address")).expect("connected");
        udp::set_gro(&receiver).expect("GRO");
        udp::set_segment(&sender, 100).expect("GSO");
        sender.send(&[7; 250]).expect("sent");
        let (mut incoming, mut length) = (Incoming::new(4, 512), 0);
        while length < 250 {
            incoming.wait(&receiver).expect("received");
            for message in incoming.messages() {
                assert!(message.control().segment.is_none_or(|segment| segment == 100), "{message:?}");
                length += message.length;
            }
        }
        assert_eq!(length, 250);
    }

    #[test]
    fn one_message_fills_its_pieces_in_order() {
        let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (mut head, mut rest) = ([0; 2], [0; 4]);
        let mut pieces = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut rest)];
        assert_eq!(
            receive(receiver.as_fd(), &mut pieces).expect_err("nothing").kind(),
            io::ErrorKind::WouldBlock
        );
        receiver.send_to(b"abcdefgh", receiver.local_addr().expect("an address")).expect("sent");
        // The loopback interface delivers before send_to returns.
        assert_eq!(receive(receiver.as_fd(), &mut pieces).expect("a message").0, 8);
        assert_eq!((&head, &rest), (b"ab", b"cdef"));
    }
}

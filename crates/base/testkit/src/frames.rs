//! A packet socket for peers that tests emulate: whole Ethernet frames of an interface, with every tag where it was on the
//! line.
//!
//! ```no_run
//! use rxlane_testkit::frames::Frames;
//! # fn test() -> std::io::Result<()> {
//! let mut frames = Frames::open("wan0")?;
//! frames.send(&[0xff; 60])?;
//! let mut seen = 0;
//! frames.receive(&mut |frame| seen += frame.len())?;
//! # Ok(())
//! # }
//! ```

use kernel::netlink::link_by_name;
use kernel::socket::{Flag, Packet, Transmit};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes that the kernel keeps until they are received: thousands of short frames that come at once.
const QUEUE: usize = 64 << 20;
/// Room for a frame without its outermost tag.
const ROOM: usize = 9216;
/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;

/// The socket, in the network namespace in which it was opened.
#[derive(Debug)]
pub struct Frames {
    socket: Packet,
    transmit: Transmit,
    room: Box<[u8]>,
    frame: Vec<u8>,
}

impl Frames {
    /// Opens it. What leaves the interface is not received. Error: there is no such interface, or no CAP_NET_RAW.
    pub fn open(interface: &str) -> io::Result<Frames> {
        let socket = Packet::open()?;
        socket.turn_on(Flag::Auxdata)?;
        socket.turn_on(Flag::IgnoreOutgoing)?;
        socket.set_receive_buffer(QUEUE);
        socket.bind(link_by_name(interface)?.index)?;
        let transmit = Transmit::open(interface).map_err(io::Error::other)?;
        let room = vec![0; ROOM].into_boxed_slice();
        Ok(Frames { socket, transmit, room, frame: Vec::with_capacity(ROOM) })
    }

    /// Sends a frame, from its destination address on and without FCS. Error: what the kernel says: `EMSGSIZE` beyond the MTU.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.send_all(&[frame])
    }

    /// Sends frames in their order.
    pub fn send_all(&mut self, frames: &[&[u8]]) -> io::Result<()> {
        self.transmit.send(frames).map_err(io::Error::other)
    }

    /// Hands over the frames that are there, without waiting for any; how many. Error: those of recvmsg(2);
    /// [`io::ErrorKind::InvalidData`] for a frame that is longer than any of these tests.
    pub fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<usize> {
        let mut count = 0;
        loop {
            let (length, control) = match self.socket.receive(&mut [IoSliceMut::new(&mut self.room)]) {
                Ok(taken) => taken,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let bytes = self.room.get(..length).ok_or(io::ErrorKind::InvalidData)?;
            let (addresses, rest) = bytes.split_at_checked(ADDRESSES).ok_or(io::ErrorKind::InvalidData)?;
            self.frame.clear();
            self.frame.extend_from_slice(addresses);
            if let Some(tag) = control.tag {
                self.frame.extend(tag.tpid.0.to_be_bytes());
                self.frame.extend(tag.tci.0.to_be_bytes());
            }
            self.frame.extend_from_slice(rest);
            each(&self.frame);
            count += 1;
        }
    }
}

impl AsFd for Frames {
    /// Readable when frames are there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::{Namespace, Veth, probe};
    use crate::require;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    #[test]
    fn frames_arrive_with_all_their_tags() {
        let Some(()) = require("netns", probe()) else { return };
        let (left, right) = (Namespace::new().expect("a namespace"), Namespace::new().expect("another"));
        left.veth(&Veth { peer: Some(&right), ..Veth::pair("left0", "right0") }).expect("a pair");
        let mut near = left.inside(|| Frames::open("left0")).expect("a socket");
        let mut far = right.inside(|| Frames::open("right0")).expect("a socket");
        let with = |tags: &[u8]| [&[2; 12][..], tags, &[0x88, 0x63], &[7; 60]].concat();
        let sent = [
            with(&[]),
            with(&[0x81, 0, 0x60, 35]),
            with(&[0x88, 0xa8, 0, 100, 0x81, 0, 0, 200]),
            with(&[0x91, 0, 0, 1, 0x81, 0, 0, 2]),
        ];
        sent.iter().for_each(|frame| near.send(frame).expect("sent"));
        let mut received = Vec::new();
        while received.len() < sent.len() {
            let timeout = Timespec { tv_sec: 10, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&far, PollFlags::IN)], Some(&timeout)).expect("it waits");
            assert!(ready > 0, "{received:02x?}");
            far.receive(&mut |frame| received.push(frame.to_vec())).expect("received");
        }
        assert_eq!(received, sent);
        // What a socket sent itself is not received.
        assert_eq!(near.receive(&mut |_| ()).expect("nothing"), 0);
    }
}

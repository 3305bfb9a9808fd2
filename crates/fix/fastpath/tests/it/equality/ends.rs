//! The far end of a line of a router.

use kernel::netlink::link_by_name;
use kernel::socket::{Flag, Outgoing, Packet};
use offload::NetHeader;
use std::os::fd::{AsFd, BorrowedFd};
use testkit::frames::Frames;

/// A frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub bytes: Vec<u8>,
    /// The checksum is left to the device: where its sum begins, and where it is behind that.
    pub partial: Option<(u16, u16)>,
}

/// Sends and receives frames.
pub struct End {
    frames: Frames,
    partial: Packet,
    messages: Outgoing<2>,
}

impl End {
    /// In the network namespace of the calling thread.
    pub fn open(interface: &str) -> End {
        let partial = Packet::open_blocking().expect("a socket");
        partial.turn_on(Flag::NetHeader).expect("an option");
        let index = link_by_name(interface).expect("an interface").index;
        partial.bind_to_send(index).expect("bound");
        let frames = Frames::open(interface).expect("a socket");
        End { frames, partial, messages: Outgoing::new(1) }
    }

    /// In their order.
    pub fn send(&mut self, all: &[Sent]) {
        for part in all.chunk_by(|one, other| one.partial.is_some() == other.partial.is_some()) {
            if part[0].partial.is_none() {
                let bytes: Vec<&[u8]> = part.iter().map(|sent| &sent.bytes[..]).collect();
                self.frames.send_all(&bytes).expect("sent");
                continue;
            }
            for sent in part {
                let (checksum_start, checksum_offset) = sent.partial.unwrap_or_default();
                let flags = NetHeader::NEEDS_CHECKSUM;
                let header = NetHeader { flags, checksum_start, checksum_offset, ..NetHeader::default() };
                let header = header.bytes();
                let message = std::iter::once([&header[..], &sent.bytes[..]]);
                assert_eq!(self.messages.send(&self.partial, message).expect("sent"), 1);
            }
        }
    }

    /// What has arrived.
    pub fn receive(&mut self, each: &mut dyn FnMut(&[u8])) {
        self.frames.receive(each).expect("received");
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.frames.as_fd()
    }
}

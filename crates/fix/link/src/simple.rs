//! The data path `simple`: one packet or frame a system call, each way. The reference for others, and what works
//! everywhere.
//!
//! The kernel segments what it sends, and completes its checksums, since the interface offers no offloads; the parent's
//! super-packets and partial checksums are finished here.

use crate::datapath::{DataPath, Line, PathError};
use crate::dropped::Dropped;
use crate::framing::Head;
use crate::inbound::{HEADERS, Undelivered, complete, inside, lower_mss, take_apart, write};
use crate::lines::Lines;
use crate::mss::Checksum;
use crate::parent::{Arrival, Parent, Received};
use kernel::tun::Tun;
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use wire::ethernet;

/// Packets that one way may take before the other has its turn.
const TURN: usize = 64;
/// The longest packet or frame of an interface: an IP packet and MAC addresses.
const LONGEST: usize = 65_535 + ethernet::Header::LENGTH;

/// The data path. See the [module](self).
#[derive(Debug)]
pub(crate) struct Simple {
    tun: Tun,
    parent: Parent,
    head: Head,
    packet: Box<[u8]>,
    headers: Box<[u8; HEADERS]>,
}

impl Simple {
    /// Between an interface and its parent.
    pub(crate) fn new(tun: Tun, parent: Parent) -> Simple {
        let packet = vec![0; LONGEST].into_boxed_slice();
        Simple { tun, parent, head: Head::new(), packet, headers: Box::new([0; HEADERS]) }
    }
}

impl DataPath for Simple {
    fn interface(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }

    fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    fn set_carrier(&self, works: bool) -> io::Result<()> {
        self.tun.set_carrier(works)
    }

    fn send_some(&mut self, line: &Line) -> Result<(), PathError> {
        for _ in 0..TURN {
            let length = match self.tun.read(&mut self.packet) {
                Ok(length) => length,
                Err(error) => return unread(error),
            };
            let packet = self.packet.get_mut(..length).unwrap_or_default();
            if let Err(why) = send(line, &mut self.head, &self.parent, packet) {
                line.counters.dropped(why, 1);
            }
        }
        Ok(())
    }

    fn receive_some(&mut self, line: &Line) -> Result<(), PathError> {
        // A super-packet counts as the packets that it is made of.
        let mut left = TURN;
        while left > 0 {
            let received = match self.parent.receive().map_err(PathError::Parent)? {
                Arrival::Frame(received) => received,
                Arrival::Lost(why) => {
                    line.counters.dropped(why, 1);
                    left -= 1;
                    continue;
                }
                Arrival::Nothing | Arrival::Down => return Ok(()),
            };
            let packets = match take(line, &self.tun, received, &mut *self.headers) {
                Ok(packets) => packets,
                Err(Undelivered::Dropped(why)) => {
                    line.counters.dropped(why, 1);
                    1
                }
                Err(Undelivered::InterfaceRemoved) => return Err(PathError::InterfaceRemoved),
            };
            left = left.saturating_sub(packets);
        }
        Ok(())
    }
}

/// What it means that the interface cannot be read.
pub(crate) fn unread(error: io::Error) -> Result<(), PathError> {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::AGAIN | Errno::INTR) => Ok(()),
        // `tun_chr_read_iter()` of drivers/net/tun.c: no interface belongs to the descriptor any more.
        Some(Errno::BADFD) => Err(PathError::InterfaceRemoved),
        _ => Err(PathError::Interface(error)),
    }
}

/// Sends what the kernel handed to the interface.
fn send(line: &Line, head: &mut Head, parent: &Parent, from_interface: &mut [u8]) -> Result<(), Dropped> {
    lower_mss(line, (), from_interface, Checksum::Whole);
    let rest = line.framing.encapsulate(from_interface, head)?;
    parent.send(head.bytes(), rest)?;
    line.counters.sent.add(1, (head.bytes().len() + rest.len()) as u64);
    Ok(())
}

/// Hands a received frame to the kernel; how many packets it was.
fn take(line: &Line, tun: &Tun, received: Received<'_>, headers: &mut [u8]) -> Result<usize, Undelivered> {
    let Received { frame, header } = received;
    let length = frame.len();
    let range = line.framing.decapsulate(frame)?;
    let header = inside(header, &range, line)?;
    let packet = frame.get_mut(range).unwrap_or_default();
    let packets = if header.is_super_packet() {
        take_apart(line, tun, &[], &header, packet, headers)?
    } else {
        complete(&header, packet.get_mut(line.framing.network_offset()..).unwrap_or_default())?;
        lower_mss(line, (), packet, Checksum::Whole);
        write(tun, &[IoSlice::new(packet)])?;
        1
    };
    line.counters.received.add(1, length as u64);
    Ok(packets)
}

#[cfg(test)]
mod tests;

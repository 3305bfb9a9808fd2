//! The data path `batch`: super-packets between the kernel and this process, frames by the batch between this process and the
//! parent.
//!
//! # Contract
//!
//! * Out: what the kernel hands over is segmented ([`offload::Segments`]) and encapsulated; the payload is read once and
//!   not copied again, but into the memory of an XDP socket where [`Io::AfXdp`] was requested. With tags alone a packet
//!   socket takes super-packets, and the kernel or the card segments.
//! * In: the kernel copies each frame into a ring; frames of a flow that lie there are put together
//!   ([`offload::Coalescer`]) and written from where they lie.
//! * A link has one or more workers: each has a queue of the interface and a socket on the parent, among which the kernel
//!   spreads frames by inner flow. A flow, and all fragments between two addresses, stay with one worker, in order.
//! * Nothing is lost between the interface and the parent while the parent takes frames within 20 ms; what it does not
//!   take is counted.
//! * A lone frame waits for nothing. Where frames come densely, a worker looks for them every 100 µs instead of being woken.
//! * Bytes on the line and packets of the interface are those of the data path `simple`, but for what
//!   coalescing does, which segmenting undoes to the byte.
//!
//! Memory: see [`Batch::MEMORY`]. Nothing is allocated once every kind of batch has been seen.

mod frames;
mod incoming;
mod outgoing;
mod ring;
mod transmit_path;
mod xsk;

use crate::datapath::{DataPath, Line, PathError};
use crate::framing::Framing;
use crate::lines::Lines;
use crate::parent::Admission;
use incoming::Incoming;
use kernel::socket::Packet;
use kernel::tun::{Offloads, Tun};
use outgoing::Outgoing;
use ring::Ring;
use std::fmt;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use transmit_path::TransmitPath;
use xsk::Xsk;

/// How long a worker pauses where frames come densely.
const PAUSE: Duration = Duration::from_micros(100);

/// Bytes of a worker: its thread, its ring, and its buffers.
pub const WORKER: usize = service::memory::THREAD + (4 << 20) + (1 << 20);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Io {
    #[default]
    AfPacket,
    /// By the transmit rings of XDP sockets, in copy mode.
    AfXdp,
}

impl Io {
    pub const fn word(self) -> &'static str {
        match self {
            Io::AfPacket => "af-packet",
            Io::AfXdp => "af-xdp",
        }
    }
}

impl fmt::Display for Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One worker of the data path. See the [module](self).
#[derive(Debug)]
pub struct Batch<F: Lines = Framing> {
    tun: Tun,
    incoming: Incoming<F::Owner>,
    outgoing: Outgoing<F::Owner>,
}

#[derive(Clone, Copy, Debug)]
pub struct Below {
    pub index: u32,
    /// Its MTU, bytes.
    pub mtu: u32,
}

impl Batch {
    /// Bytes that a worker takes, at most: 4 MiB of ring in the kernel and as many in the queue of its socket for frames
    /// that are longer than a slot, 450 KiB for what is read and written, and 200 KiB of coalescer; with AF_XDP 2 MiB or,
    /// for frames beyond 2048 bytes, 4 MiB more.
    pub const MEMORY: usize = (4 + 8 + 1 + 4) << 20;

    /// A worker for each queue of the interface.
    pub fn workers(
        queues: Vec<Tun>,
        offloads: Offloads,
        below: Below,
        framing: &Framing,
        io: Io,
    ) -> io::Result<Vec<Batch>> {
        Batch::of(queues, offloads, below, &Admission::of(framing), |number| match io {
            Io::AfPacket => TransmitPath::packet(below.index, Some(framing)),
            Io::AfXdp => {
                let longest = below.mtu as usize + crate::framing::LONGEST_HEAD;
                Ok(TransmitPath::Xdp(Box::new(Xsk::open(below.index, number, longest)?)))
            }
        })
    }
}

impl<F: Lines> Batch<F> {
    /// A worker for each queue of the interface, for sessions of PPPoE whose frames are those of `admission`.
    pub fn of_sessions(
        queues: Vec<Tun>,
        offloads: Offloads,
        below: Below,
        admission: &Admission,
    ) -> io::Result<Vec<Batch<F>>> {
        Batch::of(queues, offloads, below, admission, |_| TransmitPath::packet(below.index, None))
    }

    fn of(
        queues: Vec<Tun>,
        offloads: Offloads,
        below: Below,
        admission: &Admission,
        transmit_path: impl Fn(u32) -> io::Result<TransmitPath>,
    ) -> io::Result<Vec<Batch<F>>> {
        let is_one = queues.len() == 1;
        let mut group = None;
        let worker = |(number, tun)| {
            let ring = Ring::open(below.index, admission, below.mtu, (!is_one).then_some(&mut group))?;
            let outgoing = Outgoing::new(transmit_path(number)?);
            Ok(Batch { tun, incoming: Incoming::new(ring, offloads), outgoing })
        };
        (0..).zip(queues).map(worker).collect()
    }

    /// Another descriptor of the socket that receives, from which its drops can be read.
    pub fn observer(&self) -> io::Result<Packet> {
        self.incoming.ring().socket().try_clone()
    }
}

impl<F: Lines> DataPath<Line<F>> for Batch<F> {
    fn interface(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }

    fn parent(&self) -> BorrowedFd<'_> {
        self.incoming.ring().as_fd()
    }

    fn set_carrier(&self, works: bool) -> io::Result<()> {
        self.tun.set_carrier(works)
    }

    fn pause(&self) -> Option<Duration> {
        self.incoming.is_dense().then_some(PAUSE)
    }

    fn begin(&self) {
        // Else they end 50 µs late.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    }

    fn send_some(&mut self, line: &Line<F>) -> Result<(), PathError> {
        self.outgoing.send_some(&self.tun, line)
    }

    fn receive_some(&mut self, line: &Line<F>) -> Result<(), PathError> {
        self.incoming.receive_some(&self.tun, line)
    }
}

#[cfg(test)]
mod tests;

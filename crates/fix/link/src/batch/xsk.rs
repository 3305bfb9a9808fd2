//! Out of the parent by the transmit ring of an XDP socket, in copy mode (`Documentation/networking/af_xdp.rst`).
//!
//! It takes no XDP program, and leaves what is received to the stack. Its frames do not pass the queueing discipline of the
//! parent, and no packet socket sees them (`__dev_direct_xmit()`). One socket can have a queue of an interface.

use super::frames::{Frame, Frames};
use crate::datapath::Line;
use crate::dropped::Dropped;
use crate::lines::Lines;
use crate::parent::refusal;
use kernel::socket::Mapping;
use rustix::io::Errno;
use rustix::net::sockopt::{
    set_xdp_tx_ring_size, set_xdp_umem_completion_ring_size, set_xdp_umem_fill_ring_size, set_xdp_umem_reg,
    xdp_mmap_offsets,
};
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XdpRingOffset,
    XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, bind, send, socket_with};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Frames of memory, and entries of each ring; a power of two.
const FRAMES: u32 = 1024;
/// Bytes of memory for a frame: the longest of an MTU of 1500 and every encapsulation, and of a page, which is the most
/// that a frame of an XDP socket can have.
const CHUNKS: [u32; 2] = [2048, 4096];
/// Frames that are handed over before the kernel is woken, which takes as many at once (`TX_BATCH_SIZE`).
const BURST: u32 = 32;
/// How often it waits for frames to come back, and how long each time: 20 ms in all.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_micros(200);
/// Between a socket that was given up and the next: the kernel gives the queue back a little later.
const AGAIN: Duration = Duration::from_millis(50);
/// How often the kernel is woken in vain before it waits.
const SPINS: u32 = 64;

/// A ring: entries between two indices, which only grow.
#[derive(Debug)]
struct Queue {
    mapping: Mapping,
    offsets: XdpRingOffset,
    entry: usize,
}

impl Queue {
    fn open(socket: BorrowedFd<'_>, offsets: XdpRingOffset, entry: usize, page: u64) -> io::Result<Queue> {
        let length = offsets.desc as usize + FRAMES as usize * entry;
        Ok(Queue { mapping: Mapping::shared(socket, length, page)?, offsets, entry })
    }

    fn read(&self, offset: u64) -> u32 {
        self.mapping.word(offset as usize).map_or(0, |word| word.load(Ordering::Acquire))
    }

    fn write(&self, offset: u64, index: u32) {
        if let Some(word) = self.mapping.word(offset as usize) {
            word.store(index, Ordering::Release);
        }
    }

    fn at(&self, index: u32) -> usize {
        self.offsets.desc as usize + (index % FRAMES) as usize * self.entry
    }
}

/// The way out of a queue, through a socket that is made anew where the parent refuses what is in its ring: entries cannot be
/// taken back, since the kernel remembers how many there were (`xskq_cons_peek_desc()`).
#[derive(Debug)]
pub(crate) struct Xsk {
    place: Place,
    open: Option<Open>,
    /// When there was no socket to be had, or the last one was given up.
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    interface: u32,
    queue: u32,
    chunk: u32,
}

#[derive(Debug)]
struct Open {
    transmit: Queue,
    completion: Queue,
    memory: Mapping,
    socket: OwnedFd,
    chunk: u32,
    /// Places in the memory that hold no frame on its way.
    free: Vec<u32>,
}

impl Xsk {
    /// For a queue of the interface of this number, and frames of up to `longest` bytes.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` where frames are longer than a page, `EBUSY` where another socket has the queue, `EINVAL` where there is
    /// none of this number; `EPERM` without CAP_NET_RAW; `EAFNOSUPPORT` where the kernel has no AF_XDP.
    pub(crate) fn open(interface: u32, queue: u32, longest: usize) -> io::Result<Xsk> {
        let chunk = CHUNKS.into_iter().find(|chunk| longest <= *chunk as usize);
        let chunk = chunk.ok_or(io::Error::from_raw_os_error(libc::EMSGSIZE))?;
        let place = Place { interface, queue, chunk };
        Ok(Xsk { place, open: Some(Open::new(place)?), since: Instant::now() })
    }

    pub(crate) fn send<F: Lines>(&mut self, line: &Line<F>, frames: &Frames<F::Owner>, read: &[u8]) {
        for burst in frames.list().chunks(BURST as usize) {
            if self.open.is_none() && self.since.elapsed() >= AGAIN {
                self.open = Open::new(self.place).ok();
                self.since = Instant::now();
            }
            let Some(open) = &mut self.open else {
                line.counters.dropped(Dropped::ParentDown, burst.len() as u64);
                continue;
            };
            if let Err(why) = open.send(line, burst, frames, read) {
                line.counters.dropped(why.1, why.0.into());
                self.open = None;
                self.since = Instant::now();
            }
        }
    }
}

impl Open {
    fn new(place: Place) -> io::Result<Open> {
        let Place { interface, queue, chunk } = place;
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let fd = socket.as_fd();
        let memory = Mapping::anonymous((FRAMES * chunk) as usize)?;
        let registered = XdpUmemReg {
            addr: memory.address(),
            len: memory.length() as u64,
            chunk_size: chunk,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        set_xdp_umem_reg(fd, registered)?;
        // A socket cannot be bound without a ring for frames to receive into; nothing is put there.
        set_xdp_umem_fill_ring_size(fd, FRAMES)?;
        set_xdp_umem_completion_ring_size(fd, FRAMES)?;
        set_xdp_tx_ring_size(fd, FRAMES)?;
        let offsets = xdp_mmap_offsets(fd)?;
        let transmit = Queue::open(fd, offsets.tx, 16, XDP_PGOFF_TX_RING)?;
        let completion = Queue::open(fd, offsets.cr, 8, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        bind(&socket, &SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, interface, queue))?;
        let free = (0..FRAMES).map(|frame| frame * chunk).collect();
        Ok(Open { transmit, completion, memory, socket, chunk, free })
    }

    fn send<F: Lines>(
        &mut self,
        line: &Line<F>,
        burst: &[Frame<F::Owner>],
        frames: &Frames<F::Owner>,
        read: &[u8],
    ) -> Result<(), (u32, Dropped)> {
        let first = self.transmit.read(self.transmit.offsets.producer);
        let (mut count, mut bytes) = (0_u32, 0_u64);
        for (number, frame) in burst.iter().enumerate() {
            let pieces = frames.pieces(frame, read);
            if let Err(why) = self.fits(line, pieces) {
                line.counters.dropped(why, 1);
                continue;
            }
            let address = match self.place() {
                Ok(address) => address,
                Err(why) => {
                    // Those behind it would wait as long, each.
                    line.counters.dropped(why, (burst.len() - number) as u64);
                    break;
                }
            };
            self.put(pieces, address, first.wrapping_add(count));
            count += 1;
            bytes += u64::from(frame.bytes);
        }
        let end = first.wrapping_add(count);
        let flushed = self.flush(end);
        let left = match flushed {
            Ok(()) => 0,
            Err(_) => end.wrapping_sub(self.transmit.read(self.transmit.offsets.consumer)).min(count),
        };
        let sent = count - left;
        // Which of them went is not reported; they are of one size but for the last.
        line.counters.sent.add(sent.into(), bytes * u64::from(sent) / u64::from(count.max(1)));
        flushed.map_err(|why| (left, why))
    }

    /// Whether a frame may leave the parent, at whose MTU nobody else looks on this way.
    fn fits<F: Lines>(&self, line: &Line<F>, pieces: [&[u8]; 2]) -> Result<(), Dropped> {
        let length: usize = pieces.iter().map(|piece| piece.len()).sum();
        match length {
            _ if length > line.longest_frame() as usize => Err(Dropped::ParentMtu),
            _ if length > self.chunk as usize => Err(Dropped::XdpFrame),
            _ => Ok(()),
        }
    }

    /// Copies a frame that [fits](Open::fits) into a free place and its entry into the ring.
    fn put(&mut self, [head, rest]: [&[u8]; 2], address: u32, index: u32) {
        let length = head.len() + rest.len();
        let bytes = self.memory.bytes_mut(address as usize, length);
        if let Some((front, back)) = bytes.split_at_mut_checked(head.len()) {
            front.copy_from_slice(head);
            back.copy_from_slice(rest);
        }
        let at = self.transmit.at(index);
        let entry = [address, 0, length as u32, 0].map(u32::to_ne_bytes);
        let place = self.transmit.mapping.bytes_mut(at, 16);
        if place.len() == 16 {
            place.copy_from_slice(entry.as_flattened());
        }
    }

    /// A place that holds no frame on its way. Where there is none it waits for one, 20 ms at most, and asks the kernel for
    /// those that are in the ring still, which nobody else does.
    fn place(&mut self) -> Result<u32, Dropped> {
        if self.free.is_empty() {
            self.reap();
        }
        for _ in 0..TRIES {
            if !self.free.is_empty() {
                break;
            }
            self.kick()?;
            self.reap();
            if self.free.is_empty() {
                sleep(PAUSE);
                self.reap();
            }
        }
        self.free.pop().ok_or(Dropped::ParentFull)
    }

    /// Lets the kernel take from the ring; it takes a bounded number a call, and may take none for the moment.
    fn kick(&self) -> Result<(), Dropped> {
        match send(&self.socket, &[], SendFlags::DONTWAIT) {
            Ok(_) | Err(Errno::AGAIN | Errno::BUSY | Errno::NOBUFS | Errno::INTR) => Ok(()),
            Err(error) => Err(refusal(error)),
        }
    }

    /// Takes back the places of frames that are sent.
    fn reap(&mut self) {
        let (mut index, end) = (
            self.completion.read(self.completion.offsets.consumer),
            self.completion.read(self.completion.offsets.producer),
        );
        while index != end {
            let bytes = self.completion.mapping.bytes(self.completion.at(index), 4).first_chunk();
            // The lower half of an address; the upper is zero in so small a memory.
            if let Some(bytes) = bytes {
                let address = u32::from_ne_bytes(*bytes);
                self.free.push(address / self.chunk * self.chunk);
            }
            index = index.wrapping_add(1);
        }
        self.completion.write(self.completion.offsets.consumer, end);
    }

    /// Hands over entries up to `end`, and waits until the kernel has taken them, 20 ms at most: what it has not taken
    /// then stays in the ring, and goes with the next.
    fn flush(&mut self, end: u32) -> Result<(), Dropped> {
        self.transmit.write(self.transmit.offsets.producer, end);
        for tried in 0..SPINS + TRIES {
            let answer = self.kick();
            self.reap();
            if self.transmit.read(self.transmit.offsets.consumer) == end {
                return Ok(());
            }
            answer?;
            if tried >= SPINS {
                sleep(PAUSE);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

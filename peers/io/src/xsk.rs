//! AF_XDP sockets in copy mode (Documentation/networking/af_xdp.rst).

use crate::packet::ready;
use crate::sys::Mapping;
use crate::sys::socket::{AllOffsets, Memory, Offsets, bind_xdp, get, kick, set};
use anyhow::{Context, bail};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

const CHUNK: usize = 2048;
/// Frames of memory, and entries of each ring.
const FRAMES: u32 = 4096;
/// Frames of memory for what comes in; the others are for what goes out.
const RECEIVE: u32 = FRAMES / 4 * 3;

/// One of the four rings: entries between two indices, which only grow.
struct Queue {
    mapping: Mapping,
    offsets: Offsets,
    entry: usize,
}

impl Queue {
    fn open(fd: BorrowedFd<'_>, offsets: Offsets, entry: usize, page: u64) -> std::io::Result<Queue> {
        let mapping = Mapping::shared(fd, offsets.descriptors as usize + FRAMES as usize * entry, page)?;
        Ok(Queue { mapping, offsets, entry })
    }

    fn producer(&self) -> u32 {
        self.mapping.word(self.offsets.producer as usize).load(Ordering::Acquire)
    }

    fn consumer(&self) -> u32 {
        self.mapping.word(self.offsets.consumer as usize).load(Ordering::Acquire)
    }

    fn produced(&self, index: u32) {
        self.mapping.word(self.offsets.producer as usize).store(index, Ordering::Release);
    }

    fn consumed(&self, index: u32) {
        self.mapping.word(self.offsets.consumer as usize).store(index, Ordering::Release);
    }

    fn at(&self, index: u32) -> usize {
        self.offsets.descriptors as usize + (index % FRAMES) as usize * self.entry
    }

    /// The lower half of an address; the upper is zero in so small a memory.
    fn address(&self, index: u32) -> u32 {
        self.mapping.word(self.at(index)).load(Ordering::Relaxed)
    }

    fn put(&mut self, index: u32, address: u32, length: u32) {
        let at = self.at(index);
        let words = [address, 0, length, 0].map(u32::to_ne_bytes);
        let octets = &words.as_flattened()[..self.entry];
        self.mapping.octets_mut(at, octets.len()).copy_from_slice(octets);
    }
}

/// A socket with memory and rings of its own.
pub struct Xsk {
    fill: Queue,
    completion: Queue,
    receive: Queue,
    transmit: Queue,
    memory: Mapping,
    socket: OwnedFd,
    free: Vec<u32>,
}

impl Xsk {
    /// Bound to queue 0 of an interface of the calling thread's namespace.
    pub fn open(interface: u32) -> anyhow::Result<Xsk> {
        let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
            .context("an XDP socket")?;
        let fd = socket.as_fd();
        let memory = Mapping::anonymous(FRAMES as usize * CHUNK)?;
        let registered = Memory {
            address: memory.address(),
            length: memory.length() as u64,
            chunk: CHUNK as u32,
            ..Memory::default()
        };
        set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, registered).context("XDP_UMEM_REG")?;
        for ring in
            [libc::XDP_UMEM_FILL_RING, libc::XDP_UMEM_COMPLETION_RING, libc::XDP_RX_RING, libc::XDP_TX_RING]
        {
            set(fd, libc::SOL_XDP, ring, FRAMES)?;
        }
        let offsets: AllOffsets = get(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS)?;
        let mut xsk = Xsk {
            fill: Queue::open(fd, offsets.fill, 8, libc::XDP_UMEM_PGOFF_FILL_RING)?,
            completion: Queue::open(fd, offsets.completion, 8, libc::XDP_UMEM_PGOFF_COMPLETION_RING)?,
            receive: Queue::open(fd, offsets.receive, 16, libc::XDP_PGOFF_RX_RING as u64)?,
            transmit: Queue::open(fd, offsets.transmit, 16, libc::XDP_PGOFF_TX_RING as u64)?,
            memory,
            free: (RECEIVE..FRAMES).map(|frame| frame * CHUNK as u32).collect(),
            socket,
        };
        for index in 0..RECEIVE {
            xsk.fill.put(index, index * CHUNK as u32, 0);
        }
        xsk.fill.produced(RECEIVE);
        xsk.bind(interface)?;
        Ok(xsk)
    }

    fn bind(&self, interface: u32) -> anyhow::Result<()> {
        for attempt in 0.. {
            match bind_xdp(self.fd(), interface, libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP) {
                // The kernel gives the queue of a closed socket back a little later.
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && attempt < 500 => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                answer => return answer.context("binding an XDP socket"),
            }
        }
        Ok(())
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends `count` frames of so many octets, and waits until the kernel has taken them.
    pub fn send(
        &mut self,
        count: u32,
        length: usize,
        mut write: impl FnMut(&mut [u8]),
    ) -> anyhow::Result<()> {
        self.reap();
        let first = self.transmit.producer();
        for index in 0..count {
            let Some(address) = self.free.pop() else { bail!("no frame of the XDP socket came back") };
            write(self.memory.octets_mut(address as usize, length));
            self.transmit.put(first.wrapping_add(index), address, length as u32);
        }
        let end = first.wrapping_add(count);
        self.transmit.produced(end);
        for attempt in 0.. {
            ready(kick(self.socket.as_fd()))?;
            if self.transmit.consumer() == end {
                break;
            }
            if attempt > 1_000_000 {
                bail!("the XDP socket sends nothing");
            }
        }
        Ok(())
    }

    fn reap(&mut self) {
        let (mut index, end) = (self.completion.consumer(), self.completion.producer());
        while index != end {
            self.free.push(self.completion.address(index));
            index = index.wrapping_add(1);
        }
        self.completion.consumed(end);
    }

    /// Hands up to `most` frames that are there to `look`.
    pub fn take(&mut self, most: u32, mut look: impl FnMut(&[u8])) -> u64 {
        let first = self.receive.consumer();
        let count = self.receive.producer().wrapping_sub(first).min(most);
        if count == 0 {
            return 0;
        }
        let fill = self.fill.producer();
        for step in 0..count {
            let at = self.receive.at(first.wrapping_add(step));
            let [address, length] =
                [at, at + 8].map(|at| self.receive.mapping.word(at).load(Ordering::Relaxed));
            look(self.memory.octets(address as usize, length as usize));
            // Back to where the chunk begins: the kernel put the frame behind its headroom.
            self.fill.put(fill.wrapping_add(step), address / CHUNK as u32 * CHUNK as u32, 0);
        }
        self.receive.consumed(first.wrapping_add(count));
        self.fill.produced(fill.wrapping_add(count));
        count.into()
    }
}

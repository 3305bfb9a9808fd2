//! Ways of receiving from an interface.

use crate::measure::{Cost, Start};
use crate::packet::{ready, receiving, wait};
use crate::ring::{Blocks, Slots};
use crate::sys::bpf::{Mode, Redirection};
use crate::sys::message::Inbox;
use crate::sys::socket::set;
use crate::xsk::Xsk;
use rustix::net::{RecvFlags, recv};
use std::hint::black_box;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// How frames are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Nobody listens: what sending and a stack without a taker cost.
    Nobody,
    Recvfrom,
    Recvmmsg(usize),
    /// The same, not told which tag the kernel took off.
    Untold(usize),
    /// PACKET_RX_RING of TPACKET_V2.
    Slots,
    /// PACKET_RX_RING of TPACKET_V3: octets of a block, milliseconds.
    Blocks(usize, u32),
    /// recvmmsg of super-packets with a virtio header, made by a sender that sends such.
    Supers(usize),
    Xdp(Mode),
    /// recvmmsg of 32 from each of two sockets between which the kernel deals flows.
    Fanout,
}

/// What a receiver does when nothing is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// The system call that takes frames waits.
    Block,
    /// poll(2).
    Poll,
    /// Asks again at once.
    Spin,
    /// Asks again for so many microseconds after the last frame, then poll(2).
    Adaptive(u64),
    /// Sleeps for so many microseconds where it took at least so many frames since it last waited, then asks again;
    /// poll(2) otherwise.
    Pause(u64, u64),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub how: How,
    pub waiting: Waiting,
}

impl Way {
    pub fn name(&self) -> String {
        let how = match self.how {
            How::Nobody => "nobody listens".to_owned(),
            How::Recvfrom => "recvfrom".to_owned(),
            How::Recvmmsg(count) => format!("recvmmsg {count}"),
            How::Untold(count) => format!("recvmmsg {count}, no PACKET_AUXDATA"),
            How::Slots => "TPACKET_V2 ring".to_owned(),
            How::Blocks(size, milliseconds) => {
                format!("TPACKET_V3 ring, {} KiB, {milliseconds} ms", size >> 10)
            }
            How::Supers(count) => format!("recvmmsg {count}, virtio super-packets"),
            How::Xdp(Mode::Native) => "AF_XDP copy, native".to_owned(),
            How::Xdp(Mode::Generic) => "AF_XDP copy, generic".to_owned(),
            How::Fanout => "fanout of two, recvmmsg 32".to_owned(),
        };
        let waiting = match self.waiting {
            Waiting::Block => "waits in the call".to_owned(),
            Waiting::Poll => "poll".to_owned(),
            Waiting::Spin => "spins".to_owned(),
            Waiting::Adaptive(microseconds) => format!("spins {microseconds} µs, then poll"),
            Waiting::Pause(microseconds, 1) => format!("sleeps {microseconds} µs, then poll"),
            Waiting::Pause(microseconds, least) => {
                format!("poll, from {least} frames on sleeps {microseconds} µs")
            }
        };
        match self.how {
            How::Nobody => how,
            _ => format!("{how}; {waiting}"),
        }
    }
}

/// How long a receiver waits at most, microseconds, so that it ends.
const PATIENCE: i64 = 20_000;
/// Frames taken at most before the next look at anything else, where a way has no batch of its own.
const MOST: usize = 64;

enum Open {
    Nobody,
    Single { socket: OwnedFd, buffer: Vec<u8> },
    Messages { socket: OwnedFd, inbox: Inbox, virtio: bool },
    Slots(Slots),
    Blocks(Blocks),
    Xdp { xsk: Box<Xsk>, _redirection: Redirection },
    Fanout { sockets: [OwnedFd; 2], inbox: Inbox },
}

/// An opened way. To be opened in the namespace of the interface.
pub struct Receiver {
    open: Open,
    waiting: Waiting,
    last: Instant,
    /// Frames since it last waited.
    since: u64,
}

/// What a data path would at least read of a frame.
fn touch(frame: &[u8]) {
    black_box(frame.first_chunk::<64>());
}

/// Frames that a super-packet in one remaining tag stands for, by its virtio header.
fn pieces(frame: &[u8]) -> u64 {
    let Some(header) = frame.first_chunk::<10>() else { return 0 };
    let size = usize::from(u16::from_ne_bytes([header[4], header[5]]));
    let headers = usize::from(u16::from_ne_bytes([header[2], header[3]]));
    match size {
        0 => 1,
        _ => (frame.len() - 10).saturating_sub(headers).div_ceil(size) as u64,
    }
}

fn messages(interface: u32, block: bool, virtio: bool, told: bool) -> anyhow::Result<OwnedFd> {
    Ok(receiving(interface, |fd| {
        if block {
            set(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, [0, PATIENCE])?;
        }
        if virtio {
            set(fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1_u32)?;
        }
        set(fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, u32::from(told))
    })?)
}

impl Receiver {
    pub fn open(interface: u32, way: &Way) -> anyhow::Result<Receiver> {
        let block = way.waiting == Waiting::Block;
        let open = match way.how {
            How::Nobody => Open::Nobody,
            How::Recvfrom => {
                Open::Single { socket: messages(interface, block, false, false)?, buffer: vec![0; 2048] }
            }
            How::Recvmmsg(count) | How::Untold(count) => {
                let told = matches!(way.how, How::Recvmmsg(_));
                let socket = messages(interface, block, false, told)?;
                Open::Messages { socket, inbox: Inbox::new(count, 2048, told), virtio: false }
            }
            How::Supers(count) => {
                let socket = messages(interface, block, true, true)?;
                Open::Messages { socket, inbox: Inbox::new(count, 66_000, true), virtio: true }
            }
            How::Slots => Open::Slots(Slots::open(interface)?),
            How::Blocks(size, milliseconds) => Open::Blocks(Blocks::open(interface, size, milliseconds)?),
            How::Xdp(mode) => {
                let xsk = Box::new(Xsk::open(interface)?);
                let redirection = Redirection::new(interface, xsk.fd(), mode)?;
                Open::Xdp { xsk, _redirection: redirection }
            }
            How::Fanout => {
                let socket = || -> anyhow::Result<OwnedFd> {
                    let socket = messages(interface, block, false, true)?;
                    // The type is PACKET_FANOUT_HASH, 0.
                    let group = std::process::id() & 0xffff;
                    set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_FANOUT, group)?;
                    Ok(socket)
                };
                Open::Fanout { sockets: [socket()?, socket()?], inbox: Inbox::new(32, 2048, true) }
            }
        };
        Ok(Receiver { open, waiting: way.waiting, last: Instant::now(), since: 0 })
    }

    /// What is there, in one call or from a ring, and how many frames that were. Waits only in a call that does.
    pub fn take(&mut self, mut look: impl FnMut(&[u8])) -> anyhow::Result<u64> {
        let flags = if self.waiting == Waiting::Block { libc::MSG_WAITFORONE } else { libc::MSG_DONTWAIT };
        let mut both = |frame: &[u8]| {
            touch(frame);
            look(frame);
        };
        Ok(match &mut self.open {
            Open::Nobody => 0,
            Open::Single { socket, buffer } => {
                let flags =
                    if self.waiting == Waiting::Block { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
                let got = recv(&*socket, buffer.as_mut_slice(), flags).map(|(length, _)| length);
                match ready(got.map_err(Into::into))? {
                    Some(length) => {
                        both(buffer.get(..length).unwrap_or_default());
                        1
                    }
                    None => 0,
                }
            }
            Open::Messages { socket, inbox, virtio } => {
                let count = ready(inbox.receive(socket.as_fd(), flags))?.unwrap_or(0);
                (0..count).for_each(|index| both(inbox.frame(index)));
                match virtio {
                    true => (0..count).map(|index| pieces(inbox.frame(index))).sum(),
                    false => count as u64,
                }
            }
            Open::Slots(slots) => slots.take(MOST, both),
            Open::Blocks(blocks) => blocks.take(both),
            Open::Xdp { xsk, .. } => xsk.take(MOST as u32, both),
            Open::Fanout { sockets, inbox } => {
                let mut frames = 0;
                for socket in sockets {
                    let count = ready(inbox.receive(socket.as_fd(), libc::MSG_DONTWAIT))?.unwrap_or(0);
                    (0..count).for_each(|index| both(inbox.frame(index)));
                    frames += count as u64;
                }
                frames
            }
        })
    }

    /// Waits as this way does after it found nothing; says whether it is worth asking again.
    pub fn idle(&mut self) -> anyhow::Result<bool> {
        match self.waiting {
            Waiting::Block => Ok(false),
            Waiting::Poll => self.wait(),
            Waiting::Spin => Ok(self.last.elapsed() < Duration::from_micros(PATIENCE as u64)),
            Waiting::Adaptive(microseconds) => {
                if self.last.elapsed() < Duration::from_micros(microseconds) {
                    std::hint::spin_loop();
                    return Ok(true);
                }
                self.wait()
            }
            Waiting::Pause(microseconds, least) if std::mem::take(&mut self.since) >= least => {
                std::thread::sleep(Duration::from_micros(microseconds));
                Ok(true)
            }
            Waiting::Pause(..) => self.wait(),
        }
    }

    fn wait(&self) -> anyhow::Result<bool> {
        let fd = match &self.open {
            Open::Nobody => return Ok(false),
            Open::Single { socket, .. } | Open::Messages { socket, .. } => socket.as_fd(),
            Open::Slots(slots) => slots.fd(),
            Open::Blocks(blocks) => blocks.fd(),
            Open::Xdp { xsk, .. } => xsk.fd(),
            Open::Fanout { sockets: [first, second], .. } => {
                return Ok(wait(&[first.as_fd(), second.as_fd()], PATIENCE)?);
            }
        };
        Ok(wait(&[fd], PATIENCE)?)
    }

    /// Takes until `stop` says so and nothing more comes; gives the frames, and what the thread spent until then.
    pub fn run(&mut self, stop: impl Fn() -> bool, mut look: impl FnMut(&[u8])) -> anyhow::Result<Cost> {
        let start = Start::now();
        let mut spent: Option<Cost> = None;
        let mut frames = 0;
        loop {
            if spent.is_none() && stop() {
                spent = Some(start.cost(0, 0));
            }
            let taken = self.take(&mut look)?;
            frames += taken;
            if taken > 0 {
                self.last = Instant::now();
                self.since += taken;
            } else if !self.idle()?
                && let Some(spent) = spent
            {
                return Ok(Cost { frames, ..spent });
            }
        }
    }
}

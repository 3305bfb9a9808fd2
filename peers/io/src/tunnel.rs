//! TUN: packets into the kernel and out of it, as super-packets and one by one.

use crate::frame::{IP_HEADERS, NO_LINK, PIECES, Source, headers, partial, virtio};
use crate::measure::{Cost, Start, pin};
use crate::packet::ready;
use crate::room::{Namespace, Room};
use crate::sys::message::{Outbox, write_pieces};
use crate::sys::socket::{bind_packet, set};
use crate::sys::tun;
use anyhow::{Context, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Octets of payload of a packet of 1500.
const PAYLOAD: usize = 1448;
const VIRTIO: usize = 10;
const OFFLOADS: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;

/// How packets are written, a super-packet's worth at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// 44 packets, each by write(2), without a virtio header.
    Singles,
    /// The same with one.
    SinglesVirtio,
    /// One write(2) of a super-packet that lies in one piece.
    Whole,
    /// The same, copied together from 44 frames before.
    Gathered,
    /// writev(2): headers, payload.
    Two,
    /// writev(2): headers, 44 pieces of payload.
    Many,
}

impl Way {
    pub const ALL: [Way; 6] =
        [Way::Singles, Way::SinglesVirtio, Way::Whole, Way::Gathered, Way::Two, Way::Many];

    pub fn name(self) -> &'static str {
        match self {
            Way::Singles => "44 writes, no virtio header",
            Way::SinglesVirtio => "44 writes, virtio header",
            Way::Whole => "1 write",
            Way::Gathered => "1 write, 44 pieces copied before",
            Way::Two => "writev, headers + payload",
            Way::Many => "writev, headers + 44 pieces",
        }
    }
}

fn device(namespace: &Namespace, name: &str, supers: bool) -> anyhow::Result<File> {
    let flags = if supers { libc::IFF_VNET_HDR } else { 0 };
    let offloads = if supers { OFFLOADS } else { 0 };
    let file = namespace
        .inside(|| tun::open(name, flags, offloads).with_context(|| format!("/dev/net/tun, {name}")))?;
    namespace.run(&format!("ip link set dev {name} up"))?;
    Ok(file)
}

/// The devices that packets are written to and read from, in the near namespace.
pub struct Tunnels {
    plain: File,
    virtio: File,
}

const PLAIN: &str = "tun0";
const OFFLOADED: &str = "tun1";

/// Whether all of it went.
fn whole(answer: std::io::Result<usize>) -> anyhow::Result<bool> {
    Ok(ready(answer)?.is_some())
}

impl Tunnels {
    pub fn new(room: &Room) -> anyhow::Result<Tunnels> {
        Ok(Tunnels { plain: device(&room.near, PLAIN, false)?, virtio: device(&room.near, OFFLOADED, true)? })
    }

    /// Writes for so long. The stack drops each packet, which is for nobody here, where it would be routed.
    pub fn write(&self, way: Way, time: Duration) -> anyhow::Result<Cost> {
        let payload = PAYLOAD * PIECES;
        let source = Source::new(NO_LINK, PAYLOAD)?;
        let mut head = headers(NO_LINK, payload, 1024)?;
        partial(&mut head, payload);
        let header = virtio(head.len(), PAYLOAD);
        let front = [&header[..], &head].concat();
        let mut super_packet = [&front, source.super_payload()].concat();
        let single = [&source.headers[..], &source.super_payload()[..PAYLOAD]].concat();
        let virtio_single = [&[0; VIRTIO][..], &single].concat();
        let mut vectors = Vec::new();
        let start = Start::now();
        let (mut frames, mut refused) = (0, 0);
        while start.elapsed() < time {
            for _ in 0..8 {
                let taken = match way {
                    Way::Singles => {
                        (0..PIECES).try_fold(true, |all, _| Ok(whole((&self.plain).write(&single))? & all))
                    }
                    Way::SinglesVirtio => (0..PIECES)
                        .try_fold(true, |all, _| Ok(whole((&self.virtio).write(&virtio_single))? & all)),
                    Way::Whole => whole((&self.virtio).write(&super_packet)),
                    Way::Gathered => {
                        let places = super_packet[front.len()..].chunks_exact_mut(PAYLOAD);
                        places
                            .zip(source.super_payload().chunks_exact(PAYLOAD))
                            .for_each(|(place, piece)| place.copy_from_slice(piece));
                        whole((&self.virtio).write(&super_packet))
                    }
                    Way::Two => {
                        let pieces = [&front[..], source.super_payload()].into_iter();
                        whole(write_pieces(self.virtio.as_fd(), &mut vectors, pieces))
                    }
                    Way::Many => {
                        let pieces = source.super_payload().chunks_exact(PAYLOAD);
                        let pieces = std::iter::once(&front[..]).chain(pieces);
                        whole(write_pieces(self.virtio.as_fd(), &mut vectors, pieces))
                    }
                }?;
                refused += u64::from(!taken);
                frames += PIECES as u64;
            }
        }
        Ok(start.cost(frames, refused))
    }

    /// Packets that a socket hands to the device as super-packets, read as they come: what handing over and what
    /// reading cost. Without offloads the kernel segments and sums on the way.
    pub fn read(&self, room: &Room, supers: bool, time: Duration) -> anyhow::Result<[Cost; 2]> {
        let (file, name) = if supers { (&self.virtio, OFFLOADED) } else { (&self.plain, PLAIN) };
        let socket = into(room, name)?;
        let payload = PAYLOAD * PIECES;
        let source = Source::new(NO_LINK, PAYLOAD)?;
        let mut head = headers(NO_LINK, payload, 1024)?;
        partial(&mut head, payload);
        let header = virtio(head.len(), PAYLOAD);
        let mut outbox = Outbox::<3>::new(1);
        let mut buffer = vec![0; 66_000];
        let mut costs = [Cost::default(); 2];
        let begin = Start::now();
        while begin.elapsed() < time {
            let start = Start::now();
            let mut sent = 0;
            for _ in 0..4 {
                let pieces = [&header[..], &head, source.super_payload()];
                sent += ready(outbox.send(socket.as_fd(), std::iter::once(pieces)))?.unwrap_or(0) * PIECES;
            }
            costs[0].add(start.cost(sent as u64, 0));
            let start = Start::now();
            let mut octets = 0;
            while let Some(length) = ready((&*file).read(&mut buffer))? {
                octets += length - IP_HEADERS - if supers { VIRTIO } else { 0 };
            }
            let read = octets.div_ceil(PAYLOAD);
            costs[1].add(start.cost(read as u64, sent.saturating_sub(read) as u64));
        }
        ensure!(costs[1].frames > 0, "nothing came out of {name}");
        Ok(costs)
    }
}

/// A packet socket that hands IPv4 to a TUN device of the near namespace.
fn into(room: &Room, name: &str) -> anyhow::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1_u32)?;
    set(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 8_u32 << 20)?;
    // The protocol is that of what is sent.
    bind_packet(socket.as_fd(), room.near.index(name)?, 0x0800)?;
    Ok(socket)
}

/// Two TUN devices, one in each namespace, and a thread that carries packets between them as they are.
pub struct Pump {
    near: File,
    far: File,
    address: String,
}

impl Pump {
    pub fn new(room: &Room, supers: bool) -> anyhow::Result<Pump> {
        let number = if supers { 3 } else { 2 };
        let name = format!("tun{number}");
        let (near, far) = (device(&room.near, &name, supers)?, device(&room.far, &name, supers)?);
        room.near.run(&format!("ip addr add 10.77.{number}.1/30 dev {name}"))?;
        room.far.run(&format!("ip addr add 10.77.{number}.2/30 dev {name}"))?;
        Ok(Pump { near, far, address: format!("10.77.{number}.2:7") })
    }

    /// One TCP connection for so long: what the carrying thread spent for 1448 octets of payload; wall clock is that
    /// of the connection.
    pub fn carry(&self, room: &Room, time: Duration) -> anyhow::Result<Cost> {
        let listener =
            room.far.inside(|| TcpListener::bind(&self.address).with_context(|| self.address.clone()))?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let carrier = scope.spawn(|| self.forward(&stop));
            let sink = scope.spawn(|| -> anyhow::Result<u64> {
                let (mut stream, _) = listener.accept()?;
                let mut buffer = vec![0; 1 << 18];
                let mut octets = 0;
                loop {
                    match stream.read(&mut buffer)? {
                        0 => return Ok(octets),
                        length => octets += length as u64,
                    }
                }
            });
            let sender = || -> anyhow::Result<f64> {
                let mut stream = room.near.inside(|| Ok(TcpStream::connect(&self.address)?))?;
                let buffer = vec![0; 1 << 18];
                let start = Instant::now();
                while start.elapsed() < time {
                    stream.write_all(&buffer)?;
                }
                stream.shutdown(Shutdown::Write)?;
                Ok(start.elapsed().as_nanos() as f64)
            };
            let wall = sender();
            let octets = match &wall {
                Ok(_) => sink.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                // Nobody connected: whoever waits in accept is let go.
                Err(_) => {
                    let _ = room.far.inside(|| Ok(TcpStream::connect(&self.address)?));
                    Ok(0)
                }
            };
            stop.store(true, Ordering::Relaxed);
            let cost = carrier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            Ok(Cost { frames: octets? / PAYLOAD as u64, wall: wall?, ..cost })
        })
    }

    fn forward(&self, stop: &AtomicBool) -> anyhow::Result<Cost> {
        pin(1)?;
        let mut buffer = vec![0; 66_000];
        let start = Start::now();
        let timeout = Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        while !stop.load(Ordering::Relaxed) {
            let mut some = false;
            for (from, to) in [(&self.near, &self.far), (&self.far, &self.near)] {
                for _ in 0..64 {
                    let Some(length) = ready((&*from).read(&mut buffer))? else { break };
                    // A packet that finds no room is lost, as on any link.
                    ready((&*to).write(&buffer[..length]))?;
                    some = true;
                }
            }
            if !some {
                let mut both = [&self.near, &self.far].map(|file| PollFd::new(file, PollFlags::IN));
                let _ = poll(&mut both, Some(&timeout));
            }
        }
        Ok(start.cost(0, 0))
    }
}

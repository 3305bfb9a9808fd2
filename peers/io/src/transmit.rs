//! Ways out of an interface.

use crate::frame::{PIECES, PPPOE, Source, TAGS, partial, virtio};
use crate::measure::{Cost, Start};
use crate::packet::{ready, sending};
use crate::receive::{self, Receiver, Waiting};
use crate::ring::{self, Version};
use crate::room::{FAR, FAR_SEGMENTED, NEAR, Room, SEGMENTED, SINK};
use crate::sys::bpf::Mode;
use crate::sys::message::Outbox;
use crate::sys::socket::set;
use crate::xsk::Xsk;
use anyhow::ensure;
use rustix::net::{SendFlags, send};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Octets of TCP payload of a frame of 1522 octets in PPPoE and two tags.
pub const LARGE: usize = 1440;
/// The same without PPPoE.
const LARGE_TAGGED: usize = 1448;

/// How frames leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum How {
    Sendto,
    Sendmmsg,
    /// Headers and payload from where they lie.
    Scattered,
    Ring(Version),
    Xdp,
    /// A super-packet of 44 frames with a virtio header, which the kernel segments, or the interface.
    Super,
}

/// A way to be measured.
#[derive(Clone, Copy)]
pub struct Way {
    pub device: &'static str,
    pub payload: usize,
    pub how: How,
    pub batch: usize,
    pub bypass: bool,
}

impl Way {
    pub fn name(&self) -> String {
        let how = match self.how {
            How::Sendto => "sendto".to_owned(),
            How::Sendmmsg => "sendmmsg".to_owned(),
            How::Scattered => "sendmmsg, headers + payload".to_owned(),
            How::Ring(version) => format!("PACKET_TX_RING {version:?}"),
            How::Xdp => "AF_XDP copy".to_owned(),
            How::Super if self.device == NEAR => "virtio GSO, nobody segments".to_owned(),
            How::Super => "virtio GSO, kernel segments".to_owned(),
        };
        let bypass = if self.bypass { ", bypass" } else { "" };
        format!("{how}, batch {}{bypass}", self.batch)
    }
}

/// All ways, the reference of each device and length first.
pub fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for device in [NEAR, SINK] {
        for payload in [LARGE, 0] {
            let mut add = |how, batches: &[usize], bypass| {
                ways.extend(batches.iter().map(|&batch| Way { device, payload, how, batch, bypass }));
            };
            add(How::Sendto, &[1], false);
            add(How::Sendto, &[1], true);
            add(How::Sendmmsg, &[1, 8, 32, 64], false);
            add(How::Sendmmsg, &[1, 8, 32, 64], true);
            if payload > 0 {
                add(How::Scattered, &[32], false);
                add(How::Scattered, &[32], true);
            }
            add(How::Ring(Version::V2), &[1, 8, 32, 64], false);
            add(How::Ring(Version::V2), &[32], true);
            add(How::Ring(Version::V3), &[1, 8, 32, 64], false);
            add(How::Xdp, &[1, 8, 32, 64], false);
            if payload > 0 {
                add(How::Super, &[PIECES], false);
            }
        }
    }
    ways.push(Way { device: SEGMENTED, payload: LARGE, how: How::Super, batch: PIECES, bypass: false });
    ways
}

/// Opened: sends one batch a call.
enum Open {
    Single { socket: OwnedFd, source: Source, buffer: Vec<u8> },
    Many { socket: OwnedFd, source: Source, buffers: Vec<u8>, outbox: Outbox<1> },
    Scattered { socket: OwnedFd, source: Source, outbox: Outbox<2> },
    Ring { ring: ring::Transmit, source: Source },
    Xdp { xsk: Box<Xsk>, source: Source },
    Super { socket: OwnedFd, source: Source, header: [u8; 10], outbox: Outbox<3> },
}

impl Open {
    fn new(way: &Way, interface: u32) -> anyhow::Result<Open> {
        let source = Source::new(PPPOE, way.payload)?;
        let socket = || sending(interface, way.bypass);
        let length = source.frame_length();
        Ok(match way.how {
            How::Sendto => Open::Single { socket: socket()?, source, buffer: vec![0; length] },
            How::Sendmmsg => Open::Many {
                socket: socket()?,
                source,
                buffers: vec![0; length * way.batch],
                outbox: Outbox::new(way.batch),
            },
            How::Scattered => Open::Scattered { socket: socket()?, source, outbox: Outbox::new(way.batch) },
            How::Ring(version) => {
                Open::Ring { ring: ring::Transmit::open(interface, version, way.bypass)?, source }
            }
            How::Xdp => Open::Xdp { xsk: Box::new(Xsk::open(interface)?), source },
            How::Super => Open::supers(socket()?, TAGS, LARGE_TAGGED)?,
        })
    }

    /// Sends super-packets in an encapsulation, cut into `piece` octets of payload each.
    fn supers(socket: OwnedFd, encapsulation: &str, piece: usize) -> anyhow::Result<Open> {
        set(socket.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1_u32)?;
        let mut source = Source::new(encapsulation, piece)?;
        let payload = piece * PIECES;
        source.headers = crate::frame::headers(encapsulation, payload, 1024)?;
        partial(&mut source.headers, payload);
        let header = virtio(source.headers.len(), piece);
        Ok(Open::Super { socket, source, header, outbox: Outbox::new(1) })
    }

    /// Frames that left; fewer than the batch where the kernel had no room.
    fn send(&mut self, batch: usize) -> anyhow::Result<u64> {
        let sent = match self {
            Open::Single { socket, source, buffer } => {
                source.write(buffer);
                let sent = send(&*socket, buffer, SendFlags::empty()).map_err(Into::into);
                ready(sent)?.map_or(0, |_| 1)
            }
            Open::Many { socket, source, buffers, outbox } => {
                let length = source.frame_length();
                buffers.chunks_exact_mut(length).for_each(|frame| source.write(frame));
                let frames = buffers.chunks_exact(length).map(|frame| [frame]);
                ready(outbox.send(socket.as_fd(), frames))?.unwrap_or(0)
            }
            Open::Scattered { socket, source, outbox } => {
                ready(outbox.send(socket.as_fd(), source.pieces(batch)))?.unwrap_or(0)
            }
            Open::Ring { ring, source } => {
                let length = source.frame_length();
                for _ in 0..batch {
                    ring.put(length, |frame| source.write(frame))?;
                }
                ring.flush()?;
                batch
            }
            Open::Xdp { xsk, source } => {
                xsk.send(batch as u32, source.frame_length(), |frame| source.write(frame))?;
                batch
            }
            Open::Super { socket, source, header, outbox } => {
                let pieces = [&header[..], &source.headers, source.super_payload()];
                ready(outbox.send(socket.as_fd(), std::iter::once(pieces)))?.unwrap_or(0) * PIECES
            }
        };
        Ok(sent as u64)
    }
}

/// Whether the frames of every way arrive as they should: whole, or as segments that lost nothing.
pub fn check(room: &Room) -> anyhow::Result<()> {
    for way in ways().iter().filter(|way| way.device != SINK) {
        // Nobody cuts a super-packet here.
        if way.how == How::Super && way.device == NEAR {
            continue;
        }
        let far = if way.device == NEAR { FAR } else { FAR_SEGMENTED };
        let interface = room.far.index(far)?;
        let taker = receive::Way { how: receive::How::Xdp(Mode::Generic), waiting: Waiting::Poll };
        let mut receiver = room.far.inside(|| Receiver::open(interface, &taker))?;
        let mut open = Open::new(way, room.near.index(way.device)?)?;
        let sent = open.send(way.batch)?;
        let (encapsulation, payload) = match way.how {
            How::Super => (TAGS, LARGE_TAGGED),
            _ => (PPPOE, way.payload),
        };
        let mut expected = crate::frame::headers(encapsulation, payload, 1024)?;
        let headers = expected.len();
        expected.resize(headers + payload, 0);
        let (mut taken, mut right) = (0, 0);
        let start = Start::now();
        while taken < sent && start.elapsed() < Duration::from_secs(1) {
            taken += receiver.take(|frame| {
                // Segments differ in identification, sequence number and checksums.
                let same = match way.how {
                    How::Super => frame.len() == expected.len() && frame[..26] == expected[..26],
                    _ => frame == expected,
                };
                right += u64::from(same);
            })?;
        }
        ensure!(
            sent == way.batch as u64 && (taken, right) == (sent, sent),
            "{} out of {}: {sent} sent, {taken} arrived, {right} of them right",
            way.name(),
            way.device
        );
    }
    Ok(())
}

/// What the kernel says to a super-packet that it would have to segment behind PPPoE.
pub fn behind_pppoe(room: &Room) -> anyhow::Result<String> {
    let socket = sending(room.near.index(SEGMENTED)?, false)?;
    let before = room.near.counters(SEGMENTED)?[2];
    let answer = Open::supers(socket, PPPOE, LARGE)?.send(PIECES);
    let left = room.near.counters(SEGMENTED)?[2] - before;
    Ok(match answer {
        Ok(_) => format!("taken, {left} of {PIECES} frames left"),
        Err(error) => format!("refused ({error}), {left} of {PIECES} frames left"),
    })
}

/// Sends for so long and gives what it cost.
pub fn measure(room: &Room, way: &Way, time: Duration) -> anyhow::Result<Cost> {
    let mut open = Open::new(way, room.near.index(way.device)?)?;
    let warm = Start::now();
    while warm.elapsed() < time / 16 {
        open.send(way.batch)?;
    }
    let before = room.near.counters(way.device)?;
    let start = Start::now();
    let mut frames = 0;
    // The clock is asked every few hundred frames.
    while start.elapsed() < time {
        for _ in 0..(256 / way.batch).max(1) {
            frames += open.send(way.batch)?;
        }
    }
    let cost = start.cost(frames, 0);
    let after = room.near.counters(way.device)?;
    ensure!(frames > 0, "{}: nothing was sent", way.name());
    let sent = if way.device == SINK { 0 } else { 2 };
    let counted = after[sent] - before[sent];
    // A super-packet counts as one where nobody cuts it.
    let lost = match way.how {
        How::Super => after[3] - before[3],
        _ => frames.saturating_sub(counted),
    };
    Ok(Cost { lost, ..cost })
}

/// Sends frames of 64 flows, made before, past the queueing discipline: the load of the receivers.
pub struct Load {
    socket: OwnedFd,
    frames: Vec<Vec<u8>>,
    outbox: Outbox<1>,
    open: Option<Open>,
}

/// Frames that [`Load`] sends a call.
pub const LOAD: usize = 64;

impl Load {
    /// Frames of so much payload, or super-packets.
    pub fn new(interface: u32, payload: usize, supers: bool) -> anyhow::Result<Load> {
        let frames = (0..LOAD as u16)
            .map(|flow| {
                let mut frame = crate::frame::headers(PPPOE, payload, 1024 + flow)?;
                frame.resize(frame.len() + payload, 0);
                Ok(frame)
            })
            .collect::<anyhow::Result<_>>()?;
        let socket = sending(interface, !supers)?;
        let open = match supers {
            true => Some(Open::supers(sending(interface, false)?, TAGS, LARGE_TAGGED)?),
            false => None,
        };
        Ok(Load { socket, frames, outbox: Outbox::new(LOAD), open })
    }

    /// What it sends in a call, where it sends single frames.
    pub fn frames(&self) -> &[Vec<u8>] {
        &self.frames
    }

    /// Sends and gives how many.
    pub fn send(&mut self) -> anyhow::Result<u64> {
        match &mut self.open {
            Some(open) => open.send(PIECES),
            None => {
                let frames = self.frames.iter().map(|frame| [&frame[..]]);
                Ok(ready(self.outbox.send(self.socket.as_fd(), frames))?.unwrap_or(0) as u64)
            }
        }
    }
}

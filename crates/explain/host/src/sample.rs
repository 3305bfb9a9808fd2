//! A live sample of the traffic that an interface receives, written as a capture file.
//!
//! # Contract
//!
//! * Frames come from a packet socket (packet(7)) bound to the interface. Only received ones are taken, also those for
//!   other stations where the interface lets them in; it is not made promiscuous.
//! * A sample ends with its time, its number of frames, or its bytes ([`Limits`]), whichever is first. Memory is
//!   that of 32 frames of [`Limits::snap`] bytes, and 8 MiB in the kernel.
//! * A VLAN tag that the device or the kernel took off a frame (`rx-vlan-offload`; `skb_vlan_untag()` of net/core/dev.c)
//!   is put back in its place, with its TPID.
//! * The file is a pcap of version 2.4 with nanoseconds and link type Ethernet; each record tells the frame's full
//!   length. Where the machine was too slow, [`Sample::dropped`] says so.
//!
//! # What a sample is not
//!
//! The socket sees frames after GRO: segments that the kernel or the device has merged are one long frame, so neither
//! the number nor the lengths of TCP frames are those of the wire ([`Sample::merged`]). It does not see what an XDP
//! program kept, or what the device dropped. Which queue a frame came by is not told either.
//!
//! # Deliberately not here
//!
//! Reading the file: crate `capture`. The path of packets: crate `link`.

mod pcap;

use crate::setting::InterfaceName;
use kernel::socket::{Flag, Incoming, Packet};
use pcap::Frame;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt;
use std::io::{self, Write};
use std::time::{Duration, Instant};
use thiserror::Error;

/// How much to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long.
    pub duration: Duration,
    /// Most frames.
    pub frames: u64,
    /// Most bytes of the file.
    pub octets: u64,
    /// Bytes kept of each frame, 64 to 65535; others are taken for the nearest. 256 holds every header that is
    /// looked at.
    pub snap: u32,
}

impl Default for Limits {
    /// Three seconds, a million frames, 64 MiB, 256 bytes of each.
    fn default() -> Limits {
        Limits { duration: Duration::from_secs(3), frames: 1_000_000, octets: 64 << 20, snap: 256 }
    }
}

/// Why a sample ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The time was over.
    Time,
    /// It has as many frames as it may.
    Frames,
    /// It has as many bytes as it may.
    Octets,
    /// The interface went down, or away.
    Down,
}

/// What was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Frames in the file.
    pub frames: u64,
    /// Their bytes, tags included and FCS not, before they were cut to [`Limits::snap`].
    pub octets: u64,
    /// Frames that the kernel dropped since this program was too slow to take them.
    pub dropped: u64,
    /// Frames, of those in the file, that hold several TCP segments.
    pub merged: u64,
    /// Frames, of those in the file, whose outermost VLAN tag was taken off and put back.
    pub tags: u64,
    /// How long it took.
    pub elapsed: Duration,
    /// Why it ended.
    pub end: End,
}

/// Why there is no sample.
#[derive(Debug, Error)]
pub enum Error {
    /// The process may not open packet sockets.
    #[error("sampling {interface} takes CAP_NET_RAW: run rxlane as root")]
    Privilege {
        /// The interface.
        interface: InterfaceName,
        /// `PermissionDenied`.
        #[source]
        source: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface {interface}")]
    NoInterface {
        /// The interface.
        interface: InterfaceName,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The interface is down.
    #[error("{interface} is down and receives nothing (ip link set dev {interface} up)")]
    Down {
        /// The interface.
        interface: InterfaceName,
    },
    /// What the interface receives are no Ethernet frames.
    #[error("{interface} has no Ethernet frames (ARPHRD type {kind}); sample the Ethernet device below it")]
    NotEthernet {
        /// The interface.
        interface: InterfaceName,
        /// Its type (linux/if_arp.h).
        kind: u16,
    },
    /// The kernel refused something else.
    #[error("cannot {what} for {interface}")]
    Socket {
        /// The interface.
        interface: InterfaceName,
        /// What was tried.
        what: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The capture cannot be written.
    #[error("cannot write the sample")]
    Write(#[source] io::Error),
}

/// Samples what `interface` receives, in the network namespace of the calling thread, and writes it to `file`.
///
/// # Errors
///
/// [`Error::Privilege`] without `CAP_NET_RAW`; its other variants say what is wrong with the interface.
/// An interface that goes down in the midst of a sample ends it without an error.
pub fn sample(interface: &InterfaceName, limits: &Limits, file: &mut dyn Write) -> Result<Sample, Error> {
    let socket = open(interface)?;
    let begin = Instant::now();
    let snap = limits.snap.clamp(64, 65_535);
    let mut taken = Taken::new(pcap::Writer::new(file, snap).map_err(Error::Write)?, *limits);
    let mut batch = Incoming::new(SLOTS, snap as usize);
    let failed = |what, source| Error::Socket { interface: interface.clone(), what, source };
    let end = loop {
        let Some(left) = limits.duration.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) else {
            break End::Time;
        };
        if !wait(&socket, left).map_err(|error| failed("wait for frames", error))? {
            continue;
        }
        match batch.receive(&socket) {
            Ok(_) => {}
            Err(error) if is_down(&error) => break End::Down,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                continue;
            }
            Err(error) => return Err(failed("receive frames", error)),
        }
        if let Some(end) = taken.take(&batch)? {
            break end;
        }
    };
    let dropped = socket.drops().map_err(|error| failed("read the drops of the socket", error))?;
    taken.file.finish().map_err(Error::Write)?;
    Ok(Sample { dropped: dropped.into(), elapsed: begin.elapsed(), end, ..taken.sample })
}

/// A packet socket that receives from the interface, and from no other at any time.
fn open(interface: &InterfaceName) -> Result<Packet, Error> {
    let failed = |what| move |source: io::Error| Error::Socket { interface: interface.clone(), what, source };
    let socket = Packet::open().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::Privilege { interface: interface.clone(), source },
        _ => failed("open a packet socket")(source),
    })?;
    let index = name_to_index(&socket, interface.as_str()).map_err(io::Error::from);
    let index = index.map_err(|source| Error::NoInterface { interface: interface.clone(), source })?;
    socket.turn_on(Flag::Auxdata).map_err(failed("ask for VLAN tags"))?;
    socket.turn_on(Flag::Timestamps).map_err(failed("ask for timestamps"))?;
    // Kernels before 4.20 do not know it; such frames are told apart when they come.
    let _ = socket.turn_on(Flag::IgnoreOutgoing);
    socket.set_receive_buffer(BUFFER);
    socket.bind(index).map_err(failed("bind a packet socket"))?;
    let state = sockopt::socket_error(&socket).map_err(io::Error::from);
    if state.map_err(failed("read the state of the socket"))?.is_err() {
        return Err(Error::Down { interface: interface.clone() });
    }
    match socket.hardware_type().map_err(failed("read the type"))? {
        ARPHRD_ETHER | ARPHRD_LOOPBACK => Ok(socket),
        kind => Err(Error::NotEthernet { interface: interface.clone(), kind }),
    }
}

/// linux/if_arp.h; the frames of the loopback interface have Ethernet headers, too.
const ARPHRD_ETHER: u16 = 1;
const ARPHRD_LOOPBACK: u16 = 772;
/// Bytes that the kernel keeps until they are taken. A full-size frame counts about 2,300 there.
const BUFFER: usize = 8 << 20;
/// Frames taken at once.
const SLOTS: usize = 32;

/// Whether something happened within the time.
fn wait(socket: &Packet, time: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 3600, tv_nsec: 0 });
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A socket whose interface goes down or away has one of these errors (`packet_notifier()` in
/// net/packet/af_packet.c).
fn is_down(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NETDOWN.raw_os_error())
}

/// What was taken so far.
struct Taken<'a> {
    file: pcap::Writer<'a>,
    limits: Limits,
    sample: Sample,
}

impl Taken<'_> {
    fn new(file: pcap::Writer<'_>, limits: Limits) -> Taken<'_> {
        let (elapsed, end) = (Duration::ZERO, End::Time);
        let sample = Sample { frames: 0, octets: 0, dropped: 0, merged: 0, tags: 0, elapsed, end };
        Taken { file, limits, sample }
    }

    /// Writes the frames of a batch. `Some`: that was all that may be.
    fn take(&mut self, batch: &Incoming) -> Result<Option<End>, Error> {
        for message in batch.messages().filter(|message| !message.is_outgoing()) {
            let frame = Frame { bytes: message.bytes, length: message.length, control: message.control() };
            if self.sample.frames >= self.limits.frames {
                return Ok(Some(End::Frames));
            }
            let length = self.file.length_with(&frame);
            if self.file.written() + length > self.limits.octets {
                return Ok(Some(End::Octets));
            }
            self.sample.octets += self.file.write(&frame).map_err(Error::Write)?;
            self.sample.frames += 1;
            self.sample.merged += u64::from(frame.control.is_merged);
            self.sample.tags += u64::from(frame.control.tag.is_some());
        }
        Ok((self.sample.frames >= self.limits.frames).then_some(End::Frames))
    }
}

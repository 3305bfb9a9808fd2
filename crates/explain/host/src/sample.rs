//! A live sample of the traffic that an interface receives, written as a capture file.
//!
//! # Contract
//!
//! * Frames come from a packet socket (packet(7)) bound to the interface. Only received ones are taken, also those for
//!   other stations where the interface lets them in; it is not made promiscuous.
//! * A sample ends with its time, its number of frames, or its bytes ([`Limits`]), whichever is first, or when who watches it
//!   says so ([`sample_with`]). Memory is that of 32 frames of [`Limits::snap`] bytes, and 8 MiB in the kernel.
//! * A VLAN tag that the device or the kernel took off a frame (`rx-vlan-offload`; `skb_vlan_untag()` of net/core/dev.c)
//!   is put back in its place, with its TPID.
//! * The file is a pcap of version 2.4 with nanoseconds and link type Ethernet; each record has the frame's full
//!   length, its header the most that crate `capture` reads. Where the machine was too slow, [`Sample::dropped`] says so.
//!
//! # What a sample is not
//!
//! The socket sees frames after GRO: segments that the kernel or the device has merged are one long frame, so neither
//! the number nor the lengths of TCP frames are those of the wire ([`Sample::merged`]). It does not see what an XDP
//! program kept, or what the device dropped. Which queue a frame came by is not recorded either.
//!
//! # Deliberately not here
//!
//! Reading the file: crate `capture`. The path of packets: crate `link`.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

use crate::setting::InterfaceName;
use capture::{LinkType, Resolution, Writer};
use kernel::socket::filter::Instruction;
use kernel::socket::{Flag, Incoming, Message, Packet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt;
use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub duration: Duration,
    /// Most frames.
    pub frames: u64,
    /// Most bytes of the file.
    pub bytes: u64,
    /// Bytes kept of each frame, 64 to 65535; others are taken for the nearest. 256 holds every header that is
    /// looked at.
    pub snap: u32,
}

impl Default for Limits {
    /// Three seconds, a million frames, 64 MiB, 256 bytes of each.
    fn default() -> Limits {
        Limits { duration: Duration::from_secs(3), frames: 1_000_000, bytes: 64 << 20, snap: 256 }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Time,
    Frames,
    /// It has as many bytes as it may.
    Bytes,
    /// The interface went down, or away.
    Down,
    /// The caller ended it.
    Requested,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pub frames: u64,
    /// Their bytes, tags included and FCS not, before they were cut to [`Limits::snap`].
    pub bytes: u64,
    /// Frames that the kernel dropped since this program was too slow to take them.
    pub dropped: u64,
    /// Frames, of those in the file, that hold several TCP segments.
    pub merged: u64,
    /// Frames, of those in the file, whose outermost VLAN tag was taken off and put back.
    pub tags: u64,
    /// How long it took.
    pub elapsed: Duration,
    pub end: End,
}

/// Why there is no sample.
#[derive(Debug, Error)]
pub enum Error {
    /// The process may not open packet sockets.
    #[error("sampling {interface} takes CAP_NET_RAW: run rxlane as root")]
    Privilege {
        interface: InterfaceName,
        /// `PermissionDenied`.
        #[source]
        source: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface {interface}")]
    NoInterface {
        interface: InterfaceName,
        #[source]
        source: io::Error,
    },
    #[error("{interface} is down and receives nothing (ip link set dev {interface} up)")]
    Down { interface: InterfaceName },
    /// What the interface receives are no Ethernet frames.
    #[error("{interface} has no Ethernet frames (ARPHRD type {kind}); sample the Ethernet device below it")]
    NotEthernet {
        interface: InterfaceName,
        /// Its type (linux/if_arp.h).
        kind: u16,
    },
    /// The kernel refused something else.
    #[error("cannot {what} for {interface}")]
    Socket {
        interface: InterfaceName,
        /// What was tried.
        what: &'static str,
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
    sample_with(interface, limits, file, &mut |_| true)
}

/// The same. `watch` sees what was taken so far, several times a second and after every signal; false ends the sample.
///
/// # Errors
///
/// Those of [`sample`].
pub fn sample_with(
    interface: &InterfaceName,
    limits: &Limits,
    file: &mut dyn Write,
    watch: &mut dyn FnMut(&Sample) -> bool,
) -> Result<Sample, Error> {
    let file = Writer::pcap(file, LinkType::Ethernet, Resolution::Nanoseconds).map_err(Error::Write)?;
    take(interface, None, Taken::new(file, HEADER, RECORD, limits), watch)
}

/// Writes what an interface receives and sends, and a filter lets through, as pcapng: also frames that this machine sends by other
/// packet sockets, and none that an XDP program kept. What is buffered is written out whenever nothing arrives.
///
/// # Errors
///
/// Those of [`sample`].
pub fn mirror(
    interface: &InterfaceName,
    filter: &[Instruction],
    limits: &Limits,
    file: &mut dyn Write,
    watch: &mut dyn FnMut(&Sample) -> bool,
) -> Result<Sample, Error> {
    let file = Writer::pcapng(file, LinkType::Ethernet, Resolution::Nanoseconds).map_err(Error::Write)?;
    take(interface, Some(filter), Taken::new(file, PCAPNG_HEADER, PCAPNG_RECORD, limits), watch)
}

/// `filter`: frames of both directions that it lets through; `None`: all that are received.
fn take(
    interface: &InterfaceName,
    filter: Option<&[Instruction]>,
    mut taken: Taken<'_>,
    watch: &mut dyn FnMut(&Sample) -> bool,
) -> Result<Sample, Error> {
    let socket = open(interface, filter)?;
    let begin = Instant::now();
    let limits = taken.limits;
    let mut batch = Incoming::new(SLOTS, limits.snap as usize);
    let failed = |what, source| Error::Socket { interface: interface.clone(), what, source };
    let end = loop {
        let Some(left) = limits.duration.checked_sub(begin.elapsed()).filter(|left| !left.is_zero()) else {
            break End::Time;
        };
        taken.sample.elapsed = begin.elapsed();
        if !watch(&taken.sample) {
            break End::Requested;
        }
        if !wait(&socket, left.min(TICK)).map_err(|error| failed("wait for frames", error))? {
            taken.file.flush().map_err(Error::Write)?;
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
        if let Some(end) = taken.take(&batch, filter.is_some())? {
            break end;
        }
    };
    let dropped = socket.drops().map_err(|error| failed("read the drops of the socket", error))?;
    taken.file.finish().map_err(Error::Write)?;
    Ok(Sample { dropped: dropped.into(), elapsed: begin.elapsed(), end, ..taken.sample })
}

/// A packet socket that receives from the interface, and from no other at any time.
fn open(interface: &InterfaceName, filter: Option<&[Instruction]>) -> Result<Packet, Error> {
    let failed = |what| move |source: io::Error| Error::Socket { interface: interface.clone(), what, source };
    let socket = Packet::open().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => Error::Privilege { interface: interface.clone(), source },
        _ => failed("open a packet socket")(source),
    })?;
    let index = name_to_index(&socket, interface.as_str()).map_err(io::Error::from);
    let index = index.map_err(|source| Error::NoInterface { interface: interface.clone(), source })?;
    socket.turn_on(Flag::Auxdata).map_err(failed("ask for VLAN tags"))?;
    socket.turn_on(Flag::Timestamps).map_err(failed("ask for timestamps"))?;
    match filter {
        Some(filter) => socket.set_filter(filter).map_err(failed("filter frames"))?,
        // Kernels before 4.20 do not know it; such frames are distinguished when they come.
        None => drop(socket.turn_on(Flag::IgnoreOutgoing)),
    }
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
/// How long nothing may arrive before who watches is called again.
const TICK: Duration = Duration::from_millis(100);
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

/// Bytes of the file's header, and of a record's (draft-ietf-opsawg-pcap, sections 4 and 5).
const HEADER: u64 = 24;
const RECORD: u64 = 16;
/// The same of pcapng, with the most that a record is padded by (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3).
const PCAPNG_HEADER: u64 = 60;
const PCAPNG_RECORD: u64 = 35;
/// Where a VLAN tag stands: behind both addresses (IEEE 802.1Q-2022, clause 9.1).
const ADDRESSES: usize = 12;

/// What was taken so far.
struct Taken<'a> {
    file: Writer<&'a mut dyn Write>,
    limits: Limits,
    /// Bytes of the file.
    written: u64,
    /// Bytes of a record without its frame, at most.
    record: u64,
    frame: Vec<u8>,
    sample: Sample,
}

impl<'a> Taken<'a> {
    fn new(file: Writer<&'a mut dyn Write>, written: u64, record: u64, limits: &Limits) -> Taken<'a> {
        let (elapsed, end) = (Duration::ZERO, End::Time);
        let sample = Sample { frames: 0, bytes: 0, dropped: 0, merged: 0, tags: 0, elapsed, end };
        let limits = Limits { snap: limits.snap.clamp(64, 65_535), ..*limits };
        Taken { file, limits, written, record, frame: Vec::new(), sample }
    }

    /// Writes the frames of a batch, with those that this machine sends or without. `Some`: that was all that may be.
    fn take(&mut self, batch: &Incoming, with_sent: bool) -> Result<Option<End>, Error> {
        for message in batch.messages().filter(|message| with_sent || !message.is_outgoing()) {
            if self.sample.frames >= self.limits.frames {
                return Ok(Some(End::Frames));
            }
            if !self.write(&message).map_err(Error::Write)? {
                return Ok(Some(End::Bytes));
            }
        }
        Ok((self.sample.frames >= self.limits.frames).then_some(End::Frames))
    }

    /// Writes a frame, its tag put back; false where the file has no room for it.
    fn write(&mut self, message: &Message<'_>) -> io::Result<bool> {
        let control = message.control();
        let (addresses, rest) = message.bytes.split_at(message.bytes.len().min(ADDRESSES));
        let mut length = u32::try_from(message.length).unwrap_or(u32::MAX);
        self.frame.clear();
        self.frame.extend(addresses);
        if let Some(tag) = control.tag.filter(|_| addresses.len() == ADDRESSES) {
            self.frame.extend(tag.tpid.0.to_be_bytes());
            self.frame.extend(tag.tci.0.to_be_bytes());
            length = length.saturating_add(4);
        }
        self.frame.extend(rest);
        self.frame.truncate(self.limits.snap as usize);
        let written = self.written + self.record + self.frame.len() as u64;
        if written > self.limits.bytes {
            return Ok(false);
        }
        let since = control.time.or_else(|| SystemTime::now().duration_since(UNIX_EPOCH).ok());
        let time = i64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX);
        self.file.write(time, &self.frame, length)?;
        self.written = written;
        self.sample.frames += 1;
        self.sample.bytes += u64::from(length);
        self.sample.merged += u64::from(control.is_merged);
        self.sample.tags += u64::from(control.tag.is_some());
        Ok(true)
    }
}

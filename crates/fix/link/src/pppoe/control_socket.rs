//! The socket for everything of PPPoE that is no data of a session: discovery, and what PPP negotiates.
//!
//! # Contract
//!
//! * Received: frames of the discovery stage (EtherType 0x8863) for this station or for all, and frames of the session stage
//!   (0x8864) for this station whose PPP protocol is neither IP (0x0021, 0x0057) nor compressed, and of IPv6 Router Solicitations and
//!   datagrams to servers of DHCPv6, which the data path gets, too. A filter in the kernel leaves everything else out, so that data of
//!   sessions costs this socket nothing but the filter.
//! * The tag that the kernel takes off a frame counts as its outermost (`PACKET_AUXDATA`). Frames of other lines than the
//!   [`VlanPattern`] has, and of more tags than [`Vlans::MOST`], are left out; so is what is longer than [`ControlSocket::LONGEST`].
//! * Nothing behind the EtherType has been looked at but that protocol field. Bytes behind a PPPoE length may be padding.
//! * Sent: a frame for each packet, padded to 60 bytes (IEEE 802.3 clause 4.2.3.3, without FCS). Many frames share a system
//!   call, each way.
//! * With tags the interface is promiscuous as long as the socket lives ([`crate::parent`]).
//! * Nothing is allocated after [`ControlSocket::open`], which takes 300 KiB.
//!
//! RFC 2516 sections 4 to 7.

use super::filter::{FrameSet, program};
use crate::dropped::Dropped;
use crate::parent::{self, Admission};
use kernel::socket::filter::{Instruction, all_or_none};
use kernel::socket::{BATCH, Flag, Incoming, Outgoing, Packet};
use rustix::io::Errno;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::ethernet::{EtherType, MacAddress};
use wire::ppp::PppProtocol;
use wire::pppoe::{self, Stage};
use wire::vlan::{TAG_LENGTH, Tag, Tci};
use wire::{VlanPattern, Vlans};

/// Bytes of both MAC addresses.
const ADDRESSES: usize = 12;
/// The shortest frame, without FCS.
const SHORTEST: usize = 60;
/// The socket. See the [module](self).
#[derive(Debug)]
pub struct ControlSocket {
    socket: Packet,
    local: MacAddress,
    vlans: VlanPattern,
    inbox: Incoming,
    outbox: Outbox,
    messages: Outgoing<1>,
}

/// A received frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlFrame<'b> {
    pub destination: MacAddress,
    pub source: MacAddress,
    pub vlans: Vlans,
    pub stage: Stage,
    /// From the PPPoE header to the end of the frame, padding included.
    pub payload: &'b [u8],
    /// When the kernel received it, since 1970 by the clock that can be set; `None` unless [`ControlSocket::enable_timestamps`].
    pub time: Option<Duration>,
}

/// Frames that a [`ControlSocket`] lost: that came while its queue was full. There is one of these for a socket, since the kernel
/// forgets what it counted (packet(7), `PACKET_STATISTICS`).
#[derive(Debug)]
pub struct Losses {
    socket: Packet,
    before: AtomicU64,
}

impl Losses {
    /// How many so far.
    pub fn count(&self) -> u64 {
        // What cannot be read is counted the next time.
        let more = self.socket.drops().unwrap_or_default();
        self.before.fetch_add(more.into(), Ordering::Relaxed) + u64::from(more)
    }
}

/// Frames that could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    pub count: usize,
    pub why: Dropped,
}

/// Frames that are to be sent.
#[derive(Debug)]
struct Outbox {
    bytes: Box<[u8]>,
    used: usize,
    frames: Vec<Range<usize>>,
}

impl ControlSocket {
    /// Frames that a system call takes at most.
    pub const BATCH: usize = BATCH;
    /// How often somebody who has other things to do calls it on end, at most.
    pub const BATCHES: usize = 16;
    /// The longest frame either way, bytes from the destination address on, the tag that the kernel takes off not counted.
    pub const LONGEST: usize = 2048;

    /// Opens it on the interface of this number and MAC address, in the network namespace of the calling thread, for the lines
    /// of `vlans`.
    pub fn open(interface: u32, local: MacAddress, vlans: VlanPattern) -> io::Result<ControlSocket> {
        let program = program(FrameSet::Control, local, &vlans);
        ControlSocket::with(program, interface, local, vlans)
    }

    /// The same, and it receives nothing until [`ControlSocket::set_local`].
    pub fn deaf(interface: u32, local: MacAddress, vlans: VlanPattern) -> io::Result<ControlSocket> {
        ControlSocket::with(all_or_none(false).into(), interface, local, vlans)
    }

    fn with(
        program: Vec<Instruction>,
        interface: u32,
        local: MacAddress,
        vlans: VlanPattern,
    ) -> io::Result<ControlSocket> {
        let admission = Admission { program, has_tags: vlans.has_tags(), has_header: false };
        let socket = parent::receiver(interface, &admission, |_| Ok(()), |_| Ok(()))?;
        let (inbox, messages) = (Incoming::new(BATCH, ControlSocket::LONGEST), Outgoing::new(BATCH));
        Ok(ControlSocket { socket, local, vlans, inbox, outbox: Outbox::new(), messages })
    }

    /// MAC address of this station.
    pub const fn local(&self) -> MacAddress {
        self.local
    }

    /// Receives what is for this MAC address from now on: another one, since the interface has got it, or the first.
    pub fn set_local(&mut self, local: MacAddress) -> io::Result<()> {
        self.socket.set_filter(&program(FrameSet::Control, local, &self.vlans))?;
        self.local = local;
        Ok(())
    }

    /// From now on frames have the time at which the kernel received them. It costs every frame that the machine receives a
    /// look at the clock.
    pub fn enable_timestamps(&self) -> io::Result<()> {
        self.socket.turn_on(Flag::Timestamps)
    }

    /// Hands over the frames that are there, [`ControlSocket::BATCH`] at most, by one system call; how many frames that call
    /// took. Fewer than the batch: there are no more.
    ///
    /// # Errors
    ///
    /// Those of recvmmsg(2), but for what passes: that there is no frame, or that the interface went down.
    pub fn receive(&mut self, mut each: impl FnMut(&ControlFrame<'_>)) -> io::Result<usize> {
        let count = match self.inbox.receive(&self.socket) {
            Ok(count) => count,
            Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
                Some(Errno::AGAIN | Errno::INTR | Errno::NETDOWN) => return Ok(0),
                _ => return Err(error),
            },
        };
        for message in self.inbox.messages() {
            let control = message.control();
            let is_whole = message.length <= ControlSocket::LONGEST;
            let frame = is_whole.then(|| ControlFrame::of(message.bytes, control.tag)).flatten();
            let frame = frame.map(|frame| ControlFrame { time: control.time, ..frame });
            if let Some(frame) = frame.filter(|frame| frame.is_for(self.local) && self.vlans.has(frame.vlans))
            {
                each(&frame);
            }
        }
        Ok(count)
    }

    /// What counts frames that were dropped for want of room in the queue of the socket, from any thread.
    pub fn losses(&self) -> io::Result<Losses> {
        Ok(Losses { socket: self.socket.try_clone()?, before: AtomicU64::new(0) })
    }

    /// Adds a frame to those that [`ControlSocket::flush`] sends, which is called where there is no room for it; its error
    /// is then about those before. `payload` is from the PPPoE header on.
    ///
    /// # Errors
    ///
    /// [`Unsent`]; a frame that is too long ([`ControlSocket::LONGEST`]) is one.
    pub fn put(
        &mut self,
        destination: MacAddress,
        vlans: Vlans,
        stage: Stage,
        payload: &[u8],
    ) -> Result<(), Unsent> {
        let length = ADDRESSES + vlans.count() * TAG_LENGTH + 2 + payload.len();
        if length > ControlSocket::LONGEST {
            return Err(Unsent { count: 1, why: Dropped::TooLong });
        }
        let flushed = if self.outbox.is_full() { self.flush() } else { Ok(()) };
        self.outbox.put(destination, self.local, vlans, stage, payload);
        flushed
    }

    /// Sends what has been [put](ControlSocket::put). Where the queue of the interface is full, it waits for room, 20 ms at
    /// most.
    ///
    /// # Errors
    ///
    /// Frames that the interface did not take; all others are sent.
    pub fn flush(&mut self) -> Result<(), Unsent> {
        let Outbox { bytes, frames, .. } = &self.outbox;
        let mut unsent: Option<Unsent> = None;
        let pieces =
            |at: usize| [frames.get(at).and_then(|frame| bytes.get(frame.clone())).unwrap_or_default()];
        parent::send_all(
            &self.socket,
            &mut self.messages,
            frames.len(),
            pieces,
            |_| {},
            |_, why| {
                unsent = Some(Unsent { count: unsent.map_or(0, |unsent| unsent.count) + 1, why });
            },
        );
        self.outbox.clear();
        unsent.map_or(Ok(()), Err)
    }

    /// Sends a frame at once.
    pub fn send(
        &mut self,
        destination: MacAddress,
        vlans: Vlans,
        stage: Stage,
        payload: &[u8],
    ) -> Result<(), Unsent> {
        self.put(destination, vlans, stage, payload)?;
        self.flush()
    }
}

impl AsFd for ControlSocket {
    /// Readable when frames are there.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<'b> ControlFrame<'b> {
    /// Of a frame whose outermost tag may stand outside its bytes. `None`: it is no frame of PPPoE, is data of a session, has too many
    /// tags, or ends inside a header.
    fn of(bytes: &'b [u8], outer: Option<Tag>) -> Option<ControlFrame<'b>> {
        let (addresses, mut rest) = bytes.split_first_chunk::<ADDRESSES>()?;
        let (destination, source) = addresses.split_first_chunk()?;
        let mut vlans = Vlans::of(outer)?;
        let stage = loop {
            let (ethertype, behind) = rest.split_first_chunk()?;
            let ethertype = EtherType(u16::from_be_bytes(*ethertype));
            rest = behind;
            match ethertype {
                EtherType::PPPOE_DISCOVERY => break Stage::Discovery,
                EtherType::PPPOE_SESSION => break Stage::Session,
                tpid => {
                    let (tci, behind) = rest.split_first_chunk()?;
                    vlans = vlans.with(Tag { tpid, tci: Tci(u16::from_be_bytes(*tci)) })?;
                    rest = behind;
                }
            }
        };
        if rest.len() < pppoe::Header::LENGTH || stage == Stage::Session && !is_control(rest) {
            return None;
        }
        let (destination, source) = (MacAddress(*destination), MacAddress(*source.first_chunk()?));
        Some(ControlFrame { destination, source, vlans, stage, payload: rest, time: None })
    }

    fn is_for(&self, local: MacAddress) -> bool {
        self.destination == local
            || self.stage == Stage::Discovery && self.destination == MacAddress::BROADCAST
    }
}

/// Next header ICMPv6 and the hop limit of what has come over no router (RFC 4861 section 6.1.1).
pub(super) const ICMPV6_FROM_LINK: u16 = 0x3aff;
/// Type 133, code 0.
pub(super) const ROUTER_SOLICITATION: u16 = 0x8500;
/// The first two bytes of a group of the link, as that of all servers of DHCPv6 (RFC 8415 section 7.1).
pub(super) const LINK_MULTICAST: u16 = 0xff02;
pub(super) const DHCPV6_SERVER_PORT: u16 = 547;

/// Whether the PPP protocol behind a PPPoE header is neither IP nor compressed, or IPv6 in which a host requests something of its router.
fn is_control(payload: &[u8]) -> bool {
    let word = |at: usize| {
        payload.get(pppoe::Header::LENGTH + at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
    };
    let of_ipv6 = |at: usize| word(2 + at);
    match word(0).map(PppProtocol) {
        Some(PppProtocol::IPV6) => match of_ipv6(6) {
            Some(ICMPV6_FROM_LINK) => of_ipv6(40) == Some(ROUTER_SOLICITATION),
            _ => of_ipv6(24) == Some(LINK_MULTICAST) && of_ipv6(42) == Some(DHCPV6_SERVER_PORT),
        },
        Some(PppProtocol::IPV4) | None => false,
        Some(protocol) => protocol.0 & 0x0100 == 0,
    }
}

impl Outbox {
    fn new() -> Outbox {
        let bytes = vec![0; BATCH * ControlSocket::LONGEST].into_boxed_slice();
        Outbox { bytes, used: 0, frames: Vec::with_capacity(BATCH) }
    }

    fn is_full(&self) -> bool {
        self.frames.len() >= BATCH
    }

    fn clear(&mut self) {
        self.used = 0;
        self.frames.clear();
    }

    /// There is room for as many frames as it takes.
    fn put(
        &mut self,
        destination: MacAddress,
        source: MacAddress,
        vlans: Vlans,
        stage: Stage,
        payload: &[u8],
    ) {
        let start = self.used;
        self.push(&destination.0);
        self.push(&source.0);
        for tag in vlans.tags() {
            self.push(&crate::framing::bytes_of(tag));
        }
        let ethertype = match stage {
            Stage::Discovery => EtherType::PPPOE_DISCOVERY,
            Stage::Session => EtherType::PPPOE_SESSION,
        };
        self.push(&ethertype.0.to_be_bytes());
        self.push(payload);
        let padding = [0; SHORTEST];
        let missing = SHORTEST.saturating_sub(self.used - start);
        self.push(padding.get(..missing).unwrap_or_default());
        self.frames.push(start..self.used);
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.used + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.used..end) {
            place.copy_from_slice(bytes);
            self.used = end;
        }
    }
}

#[cfg(test)]
mod tests;

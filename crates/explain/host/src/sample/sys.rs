//! System calls of a packet socket that no safe function covers, and the control messages that come with frames.
#![allow(unsafe_code)]

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// The number of the interface from which a packet socket receives frames of every protocol.
#[derive(Clone, Copy, Debug)]
pub struct ReceivingFrom(pub u32);

// SAFETY: the closure gets a pointer to a whole, initialised `sockaddr_ll` that lives until it returns, and its size.
unsafe impl SocketAddrArg for ReceivingFrom {
    unsafe fn with_sockaddr<R>(&self, f: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        let address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as libc::c_ushort,
            // Network byte order (packet(7)).
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: self.0 as libc::c_int,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        f((&raw const address).cast(), size_of::<libc::sockaddr_ll>() as SocketAddrLen)
    }
}

/// Options that are on or off.
#[derive(Clone, Copy, Debug)]
pub enum Flag {
    /// `PACKET_AUXDATA`: lengths and VLAN tag with each frame.
    Auxdata,
    /// `SO_TIMESTAMPNS`: a timestamp with each frame.
    Timestamps,
    /// `PACKET_IGNORE_OUTGOING`: no frames that are sent.
    IgnoreOutgoing,
}

/// linux/if_packet.h; libc lacks it.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// Turns an option on.
pub fn turn_on(socket: &OwnedFd, flag: Flag) -> io::Result<()> {
    let (level, name) = match flag {
        Flag::Auxdata => (libc::SOL_PACKET, libc::PACKET_AUXDATA),
        Flag::Timestamps => (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS),
        Flag::IgnoreOutgoing => (libc::SOL_PACKET, PACKET_IGNORE_OUTGOING),
    };
    let value: libc::c_int = 1;
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the pointer is to a whole int that lives through the call, and the length is its size.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Frames that were dropped for want of room since the socket was opened (`PACKET_STATISTICS`), or since this was called
/// last.
pub fn drops(socket: &OwnedFd) -> io::Result<u32> {
    let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
    let (level, name) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    // SAFETY: the pointers are to a whole struct of integers and to its length, both of which live through the call.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut statistics).cast(), &raw mut length)
    };
    if result == 0 { Ok(statistics.tp_drops) } else { Err(io::Error::last_os_error()) }
}

/// The type of the interface that the socket is bound to (`ARPHRD_…`).
pub fn hardware_type(socket: &OwnedFd) -> io::Result<u16> {
    // SAFETY: `sockaddr_ll` is integers and arrays of them, for which zero is a value.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointers are to a whole address and to its length, both of which live through the call.
    let result = unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length) };
    if result == 0 { Ok(address.sll_hatype) } else { Err(io::Error::last_os_error()) }
}

/// A VLAN tag that is not in the frame's octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// TPID, host byte order.
    pub tpid: u16,
    /// Priority, DEI and VLAN id, host byte order.
    pub tci: u16,
}

/// A frame as the socket gave it.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its first octets, without `tag`.
    pub octets: &'a [u8],
    /// How many it has, without `tag`.
    pub length: u32,
    /// The tag that was taken off.
    pub tag: Option<Tag>,
    /// When it was received, since 1970-01-01 UTC.
    pub at: Option<Duration>,
    /// Whether it was received and not sent.
    pub is_received: bool,
    /// Whether it is several TCP segments.
    pub is_merged: bool,
}

/// Frames taken at once.
const SLOTS: usize = 32;
/// Octets for control messages: a timestamp takes 32, the auxiliary data 40.
const CONTROL: usize = 128;

/// Room for some frames, and those that were received last.
pub struct Batch {
    snap: usize,
    octets: Vec<u8>,
    control: Vec<u8>,
    received: Vec<Slot>,
}

#[derive(Clone, Copy)]
struct Slot {
    length: u32,
    control: usize,
    kind: u8,
}

impl Batch {
    /// Room for `snap` octets of each frame.
    pub fn new(snap: usize) -> Batch {
        let (octets, control) = (vec![0; SLOTS * snap], vec![0; SLOTS * CONTROL]);
        Batch { snap, octets, control, received: Vec::with_capacity(SLOTS) }
    }

    /// Takes the frames that have arrived, at most as many as there is room for.
    ///
    /// # Errors
    ///
    /// Those of recvmmsg(2), `EAGAIN` if there is no frame.
    pub fn receive(&mut self, socket: &OwnedFd) -> io::Result<()> {
        self.received.clear();
        // SAFETY: `sockaddr_ll` is integers and arrays of them, for which zero is a value.
        let mut names: [libc::sockaddr_ll; SLOTS] = unsafe { zeroed() };
        let mut vectors = self
            .octets
            .chunks_exact_mut(self.snap)
            .map(|octets| libc::iovec { iov_base: octets.as_mut_ptr().cast(), iov_len: octets.len() });
        let mut vectors: [libc::iovec; SLOTS] = std::array::from_fn(|_| {
            vectors.next().unwrap_or(libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 })
        });
        let mut controls = self.control.chunks_exact_mut(CONTROL);
        let mut headers: [MaybeUninit<libc::mmsghdr>; SLOTS] = [const { MaybeUninit::zeroed() }; SLOTS];
        for ((header, name), vector) in headers.iter_mut().zip(&mut names).zip(&mut vectors) {
            // SAFETY: zeroed above; `mmsghdr` is integers and pointers, for which zero is a value.
            let header = unsafe { header.assume_init_mut() };
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            if let Some(control) = controls.next() {
                header.msg_hdr.msg_control = control.as_mut_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL as _;
            }
        }
        // MSG_TRUNC: the length is that of the frame, not of what there was room for.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every header points to a name, to one vector over `snap` octets of `self.octets` and to `CONTROL`
        // octets of `self.control`, each with its length; no two share any, and all live through the call.
        let count = unsafe {
            let headers = headers.as_mut_ptr().cast::<libc::mmsghdr>();
            libc::recvmmsg(socket.as_raw_fd(), headers, SLOTS as _, flags as _, std::ptr::null_mut())
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        for (header, name) in headers.iter().zip(&names).take(count as usize) {
            // SAFETY: zeroed above, and since then written by the kernel with integers.
            let header = unsafe { header.assume_init_ref() };
            #[allow(clippy::unnecessary_cast, reason = "32 bits in musl")]
            let control = header.msg_hdr.msg_controllen as usize;
            self.received.push(Slot { length: header.msg_len, control, kind: name.sll_pkttype });
        }
        Ok(())
    }

    /// The frames that were received last.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let rooms = self.octets.chunks_exact(self.snap).zip(self.control.chunks_exact(CONTROL));
        self.received.iter().zip(rooms).map(|(slot, (octets, control))| {
            let control = control.get(..slot.control).unwrap_or(control);
            let told = Told::of(control);
            let is_received = !matches!(slot.kind, libc::PACKET_OUTGOING | libc::PACKET_LOOPBACK);
            let kept = octets.len().min(slot.length as usize);
            Frame {
                octets: octets.get(..kept).unwrap_or_default(),
                length: slot.length,
                tag: told.tag,
                at: told.at,
                is_received,
                is_merged: told.is_merged,
            }
        })
    }
}

/// What the control messages tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    tag: Option<Tag>,
    at: Option<Duration>,
    is_merged: bool,
}

/// `TP_STATUS_VLAN_VALID`, `TP_STATUS_VLAN_TPID_VALID`, `TP_STATUS_GSO_TCP` of linux/if_packet.h.
const VLAN_VALID: u32 = 1 << 4;
const TPID_VALID: u32 = 1 << 6;
const GSO_TCP: u32 = 1 << 8;

impl Told {
    /// Reads messages as the kernel lays them out (`put_cmsg()` in net/core/scm.c): length with header as a `long`,
    /// level, type, data, filled up to the size of a `long`.
    fn of(control: &[u8]) -> Told {
        const LONG: usize = size_of::<usize>();
        const HEADER: usize = LONG + 8;
        let mut told = Told::default();
        let mut rest = control;
        while let Some((length, behind)) = rest.split_first_chunk() {
            let length = usize::from_ne_bytes(*length);
            let (Some(level), Some(kind)) = (int(behind, 0), int(behind, 4)) else { break };
            let Some(data) = rest.get(HEADER..length) else { break };
            match (level, kind) {
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => told.auxiliary(data),
                (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => told.at = timestamp(data),
                _ => {}
            }
            rest = rest.get(length.next_multiple_of(LONG)..).unwrap_or_default();
        }
        told
    }

    /// `struct tpacket_auxdata`.
    fn auxiliary(&mut self, data: &[u8]) {
        let half = |at: usize| {
            data.get(at..at + 2).and_then(|octets| octets.try_into().ok()).map(u16::from_ne_bytes)
        };
        let (Some(status), Some(tci), Some(tpid)) = (int(data, 0), half(16), half(18)) else { return };
        let status = status as u32;
        self.is_merged = status & GSO_TCP != 0;
        if status & VLAN_VALID != 0 {
            // Kernels before 3.14 know 802.1Q tags only and do not tell the TPID.
            let tpid = if status & TPID_VALID != 0 { tpid } else { 0x8100 };
            self.tag = Some(Tag { tpid, tci });
        }
    }
}

/// `struct timespec`, of two `long`s.
fn timestamp(data: &[u8]) -> Option<Duration> {
    let long = |at: usize| {
        let octets = data.get(at..at + size_of::<isize>())?;
        octets.try_into().ok().map(isize::from_ne_bytes)
    };
    let (seconds, nanoseconds) = (long(0)?, long(size_of::<isize>())?);
    let nanoseconds = u32::try_from(nanoseconds).ok().filter(|n| *n < 1_000_000_000)?;
    Some(Duration::new(u64::try_from(seconds).ok()?, nanoseconds))
}

fn int(octets: &[u8], at: usize) -> Option<i32> {
    octets.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let header = size_of::<usize>() + 8;
        let mut message = (header + data.len()).to_ne_bytes().to_vec();
        message.extend(level.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(data);
        message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
        message
    }

    fn auxiliary(status: u32, tci: u16, tpid: u16) -> Vec<u8> {
        let mut data = [status, 60, 60, 0].map(u32::to_ne_bytes).concat();
        data.extend(tci.to_ne_bytes());
        data.extend(tpid.to_ne_bytes());
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &data)
    }

    #[test]
    fn tags_and_times_are_read_from_control_messages() {
        let time = [1_732_231_180_isize, 7].map(isize::to_ne_bytes).concat();
        let mut control = message(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &time);
        control.extend(auxiliary(VLAN_VALID | TPID_VALID | GSO_TCP, 0x6064, 0x88a8));
        let tag = Some(Tag { tpid: 0x88a8, tci: 0x6064 });
        let at = Some(Duration::new(1_732_231_180, 7));
        assert_eq!(Told::of(&control), Told { tag, at, is_merged: true });
        assert_eq!(Told::of(&auxiliary(VLAN_VALID, 35, 0)).tag, Some(Tag { tpid: 0x8100, tci: 35 }));
        // VLAN id 0 is a tag as well; only the status tells.
        assert_eq!(
            Told::of(&auxiliary(VLAN_VALID | TPID_VALID, 0, 0x8100)).tag,
            Some(Tag { tpid: 0x8100, tci: 0 })
        );
        assert_eq!(Told::of(&auxiliary(1, 35, 0x8100)).tag, None);
    }

    proptest! {
        #[test]
        fn no_control_message_panics(mut octets in proptest::collection::vec(any::<u8>(), 0..CONTROL), cut in 0..CONTROL) {
            let _ = Told::of(&octets);
            octets.splice(0..0, auxiliary(VLAN_VALID, 1, 2));
            let _ = Told::of(&octets[..cut.min(octets.len())]);
        }
    }
}

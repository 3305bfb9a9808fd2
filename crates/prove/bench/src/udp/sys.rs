//! System calls of UDP sockets that no safe function covers.
#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::mem::zeroed;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// linux/udp.h.
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;
/// `SO_MEMINFO`, and the place of `SK_MEMINFO_DROPS` in what it tells (linux/sock_diag.h).
const SO_MEMINFO: libc::c_int = 55;
const MEMINFO: usize = 9;
const DROPS: usize = 8;

/// Has the kernel cut what is sent into datagrams of so many octets (`UDP_SEGMENT` of udp(7)).
pub fn segment(socket: &OwnedFd, octets: u16) -> io::Result<()> {
    set(socket, libc::SOL_UDP, UDP_SEGMENT, octets.into())
}

/// Lets the kernel give several datagrams as one (`UDP_GRO` of udp(7)).
pub fn coalesce(socket: &OwnedFd) -> io::Result<()> {
    set(socket, libc::SOL_UDP, UDP_GRO, 1)
}

fn set(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: an int is read, which lives through the call, and the length is its size.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Datagrams that the socket had no room for since it was opened; the counter has 32 bits.
pub fn drops(socket: &OwnedFd) -> io::Result<u32> {
    let mut told = [0_u32; MEMINFO];
    let mut length = size_of_val(&told) as libc::socklen_t;
    // SAFETY: at most `length` octets are written, which is the size of the array; both live through the call.
    let result = unsafe {
        let (values, length) = ((&raw mut told).cast(), &raw mut length);
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, values, length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let has_drops = length as usize >= (DROPS + 1) * size_of::<u32>();
    told.get(DROPS).copied().filter(|_| has_drops).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// The interface of the calling thread's network namespace that has an address (getifaddrs(3)).
pub fn interface_with(address: IpAddr) -> Option<String> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the pointer is to a place for one, which lives through the call.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return None;
    }
    let mut found = None;
    let mut next = first;
    while !next.is_null() && found.is_none() {
        // SAFETY: it is an entry of the list, which is freed behind the loop.
        let entry = unsafe { &*next };
        // SAFETY: as above; addresses of an entry are those of its family, or null.
        if unsafe { address_at(entry.ifa_addr) } == Some(address) {
            // SAFETY: each entry has a name that ends with a zero.
            let name = unsafe { CStr::from_ptr(entry.ifa_name) };
            found = Some(name.to_string_lossy().into_owned());
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list is getifaddrs(3)'s, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(first) };
    found
}

/// # Safety
///
/// The pointer is null, or to an address of the size that its family has.
unsafe fn address_at(address: *const libc::sockaddr) -> Option<IpAddr> {
    if address.is_null() {
        return None;
    }
    // SAFETY: every address begins with its family, and is of that family's kind.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET => {
            // SAFETY: the same.
            let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
        }
        libc::AF_INET6 => {
            // SAFETY: the same.
            let address = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(IpAddr::from(address.sin6_addr.s6_addr))
        }
        _ => None,
    }
}

/// Messages to be sent, each in a place of its own, so that nothing is allocated for them later.
pub struct Outgoing {
    places: Vec<u8>,
    /// Octets of a place.
    room: usize,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers inside are written anew by each call from what the struct owns, and never read outside it.
unsafe impl Send for Outgoing {}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outgoing({} of {})", self.headers.len(), self.room)
    }
}

impl Outgoing {
    /// So many places of so many octets.
    pub fn new(count: usize, room: usize) -> Outgoing {
        // SAFETY: both structs are integers and pointers, for which zero is a value.
        let (vector, header) = unsafe { (zeroed(), zeroed()) };
        Outgoing {
            places: vec![0; count * room],
            room,
            vectors: vec![vector; count],
            headers: vec![header; count],
        }
    }

    /// A place.
    pub fn place(&mut self, number: usize) -> &mut [u8] {
        self.places.get_mut(number * self.room..(number + 1) * self.room).unwrap_or_default()
    }

    /// Sends the first places, of each as many octets as `lengths` say, and gives how many were sent, at least one.
    ///
    /// # Errors
    ///
    /// Those of sendmmsg(2) for the first.
    pub fn send(&mut self, socket: &OwnedFd, lengths: impl Iterator<Item = usize>) -> io::Result<usize> {
        let mut count = 0;
        let room = self.room;
        // Of places without octets there is none; then nothing is read.
        let mut places = self.places.chunks_exact(room.max(1));
        let messages = self.vectors.iter_mut().zip(&mut self.headers);
        for ((vector, header), length) in messages.zip(lengths) {
            let place: &[u8] = places.next().unwrap_or_default();
            vector.iov_base = place.as_ptr().cast_mut().cast();
            vector.iov_len = length.min(place.len());
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            count += 1;
        }
        // SAFETY: the first `count` headers point to a vector each and these to octets of `places`, all of which `self`
        // owns; the kernel reads them and writes only `msg_len`.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

/// Octets for control messages: one of an int takes 24.
const CONTROL: usize = 64;

/// Room for control messages, aligned as they want it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Messages that were received.
pub struct Incoming {
    places: Vec<u8>,
    room: usize,
    names: Vec<libc::sockaddr_in6>,
    controls: Vec<Control>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: as of `Outgoing`.
unsafe impl Send for Incoming {}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Incoming({} of {})", self.headers.len(), self.room)
    }
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Its first octets, as many as there was room for.
    pub octets: &'a [u8],
    /// All of its octets.
    pub length: usize,
    /// Octets of each datagram in it but the last, where there are several.
    pub segment: Option<usize>,
    /// Whether it came over IPv6 and not over IPv4.
    pub is_ipv6: bool,
}

impl Incoming {
    /// So many places of so many octets.
    pub fn new(count: usize, room: usize) -> Incoming {
        // SAFETY: all three structs are integers and pointers, for which zero is a value.
        let (name, vector, header) = unsafe { (zeroed(), zeroed(), zeroed()) };
        Incoming {
            places: vec![0; count * room],
            room,
            names: vec![name; count],
            controls: vec![Control([0; CONTROL]); count],
            vectors: vec![vector; count],
            headers: vec![header; count],
        }
    }

    /// Waits for a message and takes what else is there. Gives how many there are.
    ///
    /// # Errors
    ///
    /// Those of recvmmsg(2); `EAGAIN` after the socket's `SO_RCVTIMEO`.
    pub fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        let parts =
            self.vectors.iter_mut().zip(&mut self.headers).zip(&mut self.names).zip(&mut self.controls);
        for ((((vector, header), name), control), place) in parts.zip(self.places.chunks_exact_mut(self.room))
        {
            vector.iov_base = place.as_mut_ptr().cast();
            vector.iov_len = place.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = (&raw mut *name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL as _;
        }
        let flags = libc::MSG_WAITFORONE | libc::MSG_TRUNC;
        // The type of flags differs between C libraries.
        // SAFETY: every header points to a name, `CONTROL` control octets and one vector, and this to a place, each with
        // its length; no two share any, `self` owns them, and all live through the call.
        let count = unsafe {
            let (headers, length) = (self.headers.as_mut_ptr(), self.headers.len());
            libc::recvmmsg(socket.as_raw_fd(), headers, length as _, flags as _, std::ptr::null_mut())
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    /// The first messages of those that were received last.
    pub fn messages(&self, count: usize) -> impl Iterator<Item = Message<'_>> {
        let places = self.places.chunks_exact(self.room);
        self.headers.iter().zip(&self.names).zip(places).take(count).map(|((header, name), place)| {
            let length = header.msg_len as usize;
            let is_ipv6 = i32::from(name.sin6_family) == libc::AF_INET6 && !is_mapped(name);
            // SAFETY: recvmmsg(2) has filled the header, and its control octets are those of `self.controls`.
            let segment = unsafe { segment_of(&header.msg_hdr) };
            Message {
                octets: place.get(..length.min(place.len())).unwrap_or_default(),
                length,
                segment,
                is_ipv6,
            }
        })
    }
}

/// An IPv4 address as a socket of both versions shows it (RFC 4291 section 2.5.5.2).
fn is_mapped(name: &libc::sockaddr_in6) -> bool {
    std::net::Ipv6Addr::from(name.sin6_addr.s6_addr).to_ipv4_mapped().is_some()
}

/// What `UDP_GRO` tells of a message.
///
/// # Safety
///
/// recvmmsg(2) has filled the message, and its control octets are still there.
unsafe fn segment_of(message: &libc::msghdr) -> Option<usize> {
    // SAFETY: the caller's promise.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: the pointer is to a header inside the control octets, as the macros check.
        let header = unsafe { next.read_unaligned() };
        // SAFETY: a length in octets without any access.
        let whole = unsafe { libc::CMSG_LEN(size_of::<libc::c_int>() as libc::c_uint) } as usize;
        #[allow(clippy::unnecessary_cast, reason = "32 bits in musl")]
        let length = header.cmsg_len as usize;
        if (header.cmsg_level, header.cmsg_type) == (libc::SOL_UDP, UDP_GRO) && length >= whole {
            // SAFETY: the header says that as many octets follow it, and they may be anything.
            let octets = unsafe { libc::CMSG_DATA(next).cast::<libc::c_int>().read_unaligned() };
            return usize::try_from(octets).ok().filter(|octets| *octets > 0);
        }
        // SAFETY: as above; null behind the last.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    None
}

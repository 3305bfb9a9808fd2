//! sendmmsg(2), recvmmsg(2) and writev(2) with their arguments kept from call to call.

use super::checked;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Frames of up to `PIECES` pieces each for one call of sendmmsg(2).
pub struct Outbox<const PIECES: usize> {
    vectors: Vec<[libc::iovec; PIECES]>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers inside are written anew by each call from what it borrows, and never read outside it.
unsafe impl<const PIECES: usize> Send for Outbox<PIECES> {}

impl<const PIECES: usize> Outbox<PIECES> {
    pub fn new(count: usize) -> Outbox<PIECES> {
        // SAFETY: integers and pointers, for which zero is a value.
        let (vectors, headers) = unsafe { (vec![zeroed(); count], vec![zeroed(); count]) };
        Outbox { vectors, headers }
    }

    /// Sends `frames`, as many as there is room for, and gives how many the kernel took.
    pub fn send<'a>(
        &mut self,
        fd: BorrowedFd<'_>,
        frames: impl Iterator<Item = [&'a [u8]; PIECES]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for ((vectors, header), frame) in self.vectors.iter_mut().zip(&mut self.headers).zip(frames) {
            for (vector, piece) in vectors.iter_mut().zip(frame) {
                vector.iov_base = piece.as_ptr().cast_mut().cast();
                vector.iov_len = piece.len();
            }
            header.msg_hdr.msg_iov = vectors.as_mut_ptr();
            header.msg_hdr.msg_iovlen = PIECES;
            count += 1;
        }
        // SAFETY: the first `count` headers point to vectors of `self`, these to pieces that outlive the call; the kernel
        // reads them and writes only `msg_len`.
        let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), self.headers.as_mut_ptr(), count, 0) };
        checked(sent.into())
    }
}

/// Octets of control messages that a frame brings: `struct tpacket_auxdata` (20) behind a header (16), padded.
const CONTROL: usize = 48;

/// Room for frames of one call of recvmmsg(2), with the tag that the kernel took off (PACKET_AUXDATA).
pub struct Inbox {
    size: usize,
    /// Octets of each control buffer; 0: the tag is not wanted.
    told: usize,
    octets: Vec<u8>,
    control: Vec<[u64; CONTROL / 8]>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: as above; all pointers are to memory of `self`.
unsafe impl Send for Inbox {}

impl Inbox {
    /// Room for so many frames of so many octets; `told` is whether the tag is wanted.
    pub fn new(count: usize, size: usize, told: bool) -> Inbox {
        // SAFETY: integers and pointers, for which zero is a value.
        let (vectors, headers) = unsafe { (vec![zeroed(); count], vec![zeroed(); count]) };
        Inbox {
            size,
            told: if told { CONTROL } else { 0 },
            octets: vec![0; count * size],
            control: vec![[0; CONTROL / 8]; count],
            vectors,
            headers,
        }
    }

    /// Receives up to as many frames as there is room for. `flags` as of recvmmsg(2).
    pub fn receive(&mut self, fd: BorrowedFd<'_>, flags: i32) -> io::Result<usize> {
        let buffers = self.octets.chunks_exact_mut(self.size).zip(&mut self.control);
        for ((vector, header), (octets, control)) in
            self.vectors.iter_mut().zip(&mut self.headers).zip(buffers)
        {
            vector.iov_base = octets.as_mut_ptr().cast();
            vector.iov_len = octets.len();
            header.msg_hdr.msg_iov = vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = self.told;
        }
        let count = self.headers.len() as libc::c_uint;
        // SAFETY: every header points to a vector, a buffer and a control buffer of `self`, with their lengths.
        let got = unsafe {
            libc::recvmmsg(fd.as_raw_fd(), self.headers.as_mut_ptr(), count, flags as _, std::ptr::null_mut())
        };
        checked(got.into())
    }

    /// A frame of the last call.
    pub fn frame(&self, index: usize) -> &[u8] {
        let length = (self.headers[index].msg_len as usize).min(self.size);
        &self.octets[index * self.size..][..length]
    }
}

/// writev(2) of `pieces`; `vectors` is the room for its argument.
pub fn write_pieces<'a>(
    fd: BorrowedFd<'_>,
    vectors: &mut Vec<[usize; 2]>,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> io::Result<usize> {
    const { assert!(size_of::<[usize; 2]>() == size_of::<libc::iovec>()) };
    vectors.clear();
    vectors.extend(pieces.map(|piece| [piece.as_ptr() as usize, piece.len()]));
    // SAFETY: an `iovec` is an address and a length; the pieces outlive the call, which only reads them.
    let written = unsafe { libc::writev(fd.as_raw_fd(), vectors.as_ptr().cast(), vectors.len() as i32) };
    checked(written as libc::c_long)
}

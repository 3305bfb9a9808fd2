//! System calls of a sending packet socket that no safe function covers.
#![allow(unsafe_code)]

use std::fmt;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};

/// Frames a call takes at most; larger batches gain nothing measurable, and the kernel's limit is 1024 (`UIO_MAXIOV`).
pub const BATCH: usize = 64;

/// Room for the arguments of a call with frames of so many pieces each, so that none is allocated later.
pub struct Messages<const PIECES: usize> {
    vectors: Box<[[libc::iovec; PIECES]; BATCH]>,
    headers: Box<[libc::mmsghdr; BATCH]>,
}

// SAFETY: the pointers inside are written anew by each call from what it borrows, and never read outside it.
unsafe impl<const PIECES: usize> Send for Messages<PIECES> {}

impl<const PIECES: usize> fmt::Debug for Messages<PIECES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Messages({BATCH} of {PIECES})")
    }
}

impl<const PIECES: usize> Messages<PIECES> {
    pub fn new() -> Messages<PIECES> {
        // SAFETY: both structs are integers and pointers, for which zero is a value.
        unsafe { Messages { vectors: Box::new(zeroed()), headers: Box::new(zeroed()) } }
    }

    /// Sends the first frames, at most [`BATCH`], and gives their number, at least one.
    ///
    /// # Errors
    ///
    /// Those of sendmmsg(2) for the first frame.
    pub fn send<'f>(
        &mut self,
        socket: &OwnedFd,
        frames: impl Iterator<Item = [&'f [u8]; PIECES]>,
    ) -> io::Result<usize> {
        let mut count = 0;
        for ((vectors, header), frame) in self.vectors.iter_mut().zip(self.headers.iter_mut()).zip(frames) {
            for (vector, piece) in vectors.iter_mut().zip(frame) {
                vector.iov_base = piece.as_ptr().cast_mut().cast();
                vector.iov_len = piece.len();
            }
            header.msg_hdr.msg_iov = vectors.as_mut_ptr();
            header.msg_hdr.msg_iovlen = PIECES as _;
            count += 1;
        }
        // SAFETY: the first `count` headers point to vectors of `self` and these to `frames`, all of which live through
        // the call; the kernel reads the frames and writes only `msg_len`.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

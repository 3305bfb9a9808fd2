//! Many frames by one recvmmsg(2), which no safe function covers.
#![allow(unsafe_code)]

use super::BATCH;
use crate::parent::sys::{CONTROL, Control, tag_of, told};
use std::fmt;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;
use std::time::Duration;
use wire::vlan::Tag;

/// Octets for a frame.
pub const ROOM: usize = 2048;

/// Room for a batch of frames, and for what the kernel tells about each.
pub struct Inbox {
    octets: Box<[u8]>,
    controls: Box<[Control]>,
    vectors: Box<[libc::iovec; BATCH]>,
    headers: Box<[libc::mmsghdr; BATCH]>,
    /// Frames that the last call took.
    count: usize,
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub struct Message<'b> {
    /// From the destination address on, without the tag beside it.
    pub octets: &'b [u8],
    pub tag: Option<Tag>,
    /// When it was received, where that was asked for.
    pub time: Option<Duration>,
}

// SAFETY: the pointers inside are written anew by each call, and lead to what the value itself owns.
unsafe impl Send for Inbox {}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({} of {BATCH})", self.count)
    }
}

impl Inbox {
    pub fn new() -> Inbox {
        Inbox {
            octets: vec![0; BATCH * ROOM].into_boxed_slice(),
            controls: vec![Control([0; CONTROL]); BATCH].into_boxed_slice(),
            // SAFETY: integers and pointers, for which zero is a value.
            vectors: unsafe { Box::new(zeroed()) },
            // SAFETY: as above.
            headers: unsafe { Box::new(zeroed()) },
            count: 0,
        }
    }

    /// Takes frames; how many there are.
    ///
    /// # Errors
    ///
    /// Those of recvmmsg(2), `EAGAIN` if there is no frame.
    pub fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        self.count = 0;
        let rooms = self.octets.chunks_exact_mut(ROOM).zip(self.controls.iter_mut());
        for ((vector, header), (room, control)) in
            self.vectors.iter_mut().zip(self.headers.iter_mut()).zip(rooms)
        {
            *vector = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: ROOM };
            header.msg_hdr.msg_iov = &raw mut *vector;
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL as _;
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: each of the `BATCH` headers points to a vector and to `CONTROL` octets of `self`, and the vector to `ROOM`
        // octets of `self`; no two share any, and all live through the call.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH as libc::c_uint,
                flags as _,
                null_mut(),
            )
        };
        self.count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
        Ok(self.count)
    }

    /// One of the frames that the last call took; `None` where it is longer than [`ROOM`].
    pub fn message(&self, number: usize) -> Option<Message<'_>> {
        if number >= self.count {
            return None;
        }
        let header = self.headers.get(number)?;
        let length = header.msg_len as usize;
        let octets = self.octets.chunks_exact(ROOM).nth(number)?.get(..length)?;
        // SAFETY: recvmmsg(2) has filled this message, and its control octets are those of `self.controls`.
        let tag = unsafe { tag_of(&header.msg_hdr) };
        // SAFETY: as above; a `timespec` is integers.
        let time: Option<libc::timespec> =
            unsafe { told(&header.msg_hdr, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) };
        let time = time.map(|time| Duration::new(time.tv_sec as u64, time.tv_nsec as u32));
        Some(Message { octets, tag, time })
    }
}

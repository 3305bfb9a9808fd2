//! A library that a C compiler has just made, and memory behind which nothing can be read.
#![allow(unsafe_code)]

pub mod forward;

use libloading::{Library, Symbol};
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rxlane_xdp::layout::Settings;
use std::ffi::{c_int, c_void};
use std::io;
use std::path::Path;
use std::ptr;

/// What `bpf/native.c` calls `struct decision`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Decision {
    pub reason: u32,
    pub class: u32,
    pub bucket: u32,
}

type Decide = unsafe extern "C" fn(*const u8, u64, u64, *const u32, u32, u32, *mut Decision) -> c_int;

type Envelope = unsafe extern "C" fn(*const u8, u64, u64, u32, *mut u32) -> c_int;

/// `bpf/native.c`, compiled.
pub struct Parser {
    decide: Decide,
    envelope: Envelope,
    classes: [u32; 5],
    reasons: [u32; 11],
    _library: Library,
}

impl Parser {
    pub fn open(library: &Path) -> Result<Parser, libloading::Error> {
        // SAFETY: the library is bpf/native.c, which has no initializers; the symbols have these types there.
        unsafe {
            let library = Library::new(library)?;
            let decide: Symbol<'_, Decide> = library.get(b"decide")?;
            let envelope: Symbol<'_, Envelope> = library.get(b"envelope")?;
            let classes: Symbol<'_, *const [u32; 5]> = library.get(b"CLASSES")?;
            let reasons: Symbol<'_, *const [u32; 11]> = library.get(b"REASONS")?;
            let (decide, envelope) = (*decide, *envelope);
            Ok(Parser { decide, envelope, classes: **classes, reasons: **reasons, _library: library })
        }
    }

    /// The numbers of the classes, in the order of `Class::ALL`.
    pub fn classes(&self) -> [u32; 5] {
        self.classes
    }

    /// The numbers of the reasons, in the order of `Reason::ALL`.
    pub fn reasons(&self) -> [u32; 11] {
        self.reasons
    }

    /// The frame is what was put into `memory`, and `length` bytes long. Besides the decision, whether both ways
    /// through the parser come to it.
    pub fn decide(&self, memory: &Guarded, length: usize, settings: &Settings) -> (Decision, bool) {
        let mut decision = Decision::default();
        // SAFETY: the pointers are to as many bytes as are said, the key has the words that the parser reads, and the
        // library is loaded as long as `self` lives.
        let agrees = unsafe {
            (self.decide)(
                memory.frame,
                memory.length as u64,
                length as u64,
                settings.key.as_ptr(),
                settings.classes,
                settings.symmetric,
                &raw mut decision,
            )
        };
        (decision, agrees != 0)
    }
}

impl Parser {
    /// The kind of a frame of `length` bytes, and whether it is refused where payloads have at most `limit`.
    pub fn envelope(&self, memory: &Guarded, length: usize, limit: u32) -> (u32, bool) {
        let mut kind = u32::MAX;
        // SAFETY: as in `decide`.
        let refused = unsafe {
            let readable = memory.length as u64;
            (self.envelope)(memory.frame, readable, length as u64, limit, &raw mut kind)
        };
        (kind, refused != 0)
    }
}

const PAGE: usize = 4096;

/// Room for a frame whose last byte is the last one before a page that cannot be read.
pub struct Guarded {
    start: *mut u8,
    capacity: usize,
    frame: *const u8,
    length: usize,
}

impl Guarded {
    /// Room for frames of up to `least` bytes.
    pub fn new(least: usize) -> io::Result<Guarded> {
        let capacity = least.next_multiple_of(PAGE);
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping of its own, of which the last page loses all access.
        let start = unsafe {
            let start = mmap_anonymous(ptr::null_mut(), capacity + PAGE, access, flags)?;
            mprotect(start.byte_add(capacity), PAGE, MprotectFlags::empty())?;
            start.cast::<u8>()
        };
        Ok(Guarded { start, capacity, frame: start, length: 0 })
    }

    /// Puts a frame there.
    pub fn put(&mut self, frame: &[u8]) {
        assert!(frame.len() <= self.capacity, "{} bytes", frame.len());
        // SAFETY: the frame fits, so both ends lie within the mapping's accessible part.
        unsafe {
            let place = self.start.add(self.capacity - frame.len());
            ptr::copy_nonoverlapping(frame.as_ptr(), place, frame.len());
            self.frame = place;
        }
        self.length = frame.len();
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, and nobody else has its address.
        let _ = unsafe { munmap(self.start.cast::<c_void>(), self.capacity + PAGE) };
    }
}

//! What every data path of a link has in common: what it is given, and the turns that the event loop gives it.

use crate::counters::Counters;
use crate::frame_size::longest_mtu;
use crate::framing::Framing;
use crate::lines::Lines;
use crate::mss::Clamp;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What packets go through, whatever the data path: of a link, or with another `F` of many lines.
#[derive(Clone, Debug)]
pub struct Line<F = Framing> {
    pub framing: F,
    /// How far TCP segments are lowered; `None`: not at all.
    pub clamp: Option<Clamp>,
    pub counters: Arc<Counters>,
    /// The parent's MTU now, bytes.
    pub parent_mtu: Arc<AtomicU32>,
}

impl Line {
    /// The longest packets of the interface that the parent lets out, bytes.
    pub fn longest_packet(&self) -> u32 {
        longest_mtu(self.parent_mtu.load(Ordering::Relaxed), self.framing.encapsulation())
    }
}

impl<F: Lines> Line<F> {
    /// The longest frames that the parent lets out, bytes without FCS.
    pub(crate) fn longest_frame(&self) -> u32 {
        self.framing.longest_frame(self.parent_mtu.load(Ordering::Relaxed))
    }
}

/// Why a data path cannot go on.
#[derive(Debug)]
pub enum PathError {
    /// Somebody deleted the interface of the link.
    InterfaceRemoved,
    Interface(io::Error),
    Parent(io::Error),
    /// One of several workers ended by itself.
    Worker,
}

/// Moves packets between the interface and its parent, when the event loop says that there are any. `L` is what they go
/// through.
pub trait DataPath<L = Line>: Send {
    /// Readable when the kernel wants to send by the interface.
    fn interface(&self) -> BorrowedFd<'_>;

    /// Readable when the parent has received.
    fn parent(&self) -> BorrowedFd<'_>;

    /// Lets the kernel see whether the line works.
    fn set_carrier(&self, works: bool) -> io::Result<()>;

    /// Called once by the thread that moves the packets.
    fn begin(&self) {}

    /// How long to leave packets where they are before looking for them again; `None`: not at all.
    fn pause(&self) -> Option<Duration> {
        None
    }

    /// Sends some of what the kernel handed to the interface. What cannot be sent is counted.
    fn send_some(&mut self, line: &L) -> Result<(), PathError>;

    /// Takes some of what the parent received. What cannot be taken is counted.
    fn receive_some(&mut self, line: &L) -> Result<(), PathError>;
}

//! Frames out of an interface, many a system call (sendmmsg(2) on a packet(7) socket).

use super::{Outgoing, Packet};
use rustix::net::netdevice::name_to_index;
use std::fmt;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// How long [`Transmit::send`] waits for room while not one frame goes. A queue of a 10 Mbit/s line that is full (1,000 full
/// frames) has room for the next after a millisecond.
const PATIENCE: Duration = Duration::from_millis(500);

/// A packet socket that sends out of one interface.
#[derive(Debug)]
pub struct Transmit {
    socket: Packet,
    interface: String,
    messages: Outgoing<1>,
}

/// Sending failed.
#[derive(Debug)]
pub struct TransmitError {
    /// The interface.
    pub interface: String,
    /// Frames of the call that were sent before the one that failed.
    pub sent: usize,
    /// Bytes of the frame that failed; `None`: no socket could be had.
    pub bytes: Option<usize>,
    /// What the kernel said: `EMSGSIZE` for a frame beyond the MTU, `ENETDOWN`, `ENODEV`, `EPERM` without
    /// CAP_NET_RAW, `ENOBUFS` where there was no room for half a second.
    pub cause: io::Error,
}

impl TransmitError {
    /// Whether there was no room for half a second: the interface's queue stayed full, or, between the ends of a veth pair, the
    /// other end drops what comes.
    pub fn is_no_room(&self) -> bool {
        self.cause.raw_os_error() == Some(libc::ENOBUFS)
    }
}

impl fmt::Display for TransmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            Some(bytes) if self.is_no_room() => write!(
                f,
                "{}: no room for a frame of {bytes} bytes for {} ms: its queue stays full, or the other end of a veth \
                 pair drops what comes",
                self.interface,
                PATIENCE.as_millis()
            ),
            Some(bytes) => {
                write!(f, "{}: a frame of {bytes} bytes cannot be sent: {}", self.interface, self.cause)
            }
            None => write!(f, "{}: no packet socket: {}", self.interface, self.cause),
        }
    }
}

impl std::error::Error for TransmitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl Transmit {
    /// Frames that one system call takes at most.
    pub const BATCH: usize = super::BATCH;

    /// Opens a socket that sends out of `interface` of the calling thread's network namespace. Error: there is no such
    /// interface, or no CAP_NET_RAW.
    pub fn open(interface: &str) -> Result<Transmit, TransmitError> {
        let socket = || -> io::Result<Packet> {
            let socket = Packet::open_blocking()?;
            socket.bind_to_send(name_to_index(&socket, interface)?)?;
            Ok(socket)
        };
        let failed = |cause| TransmitError { interface: interface.to_owned(), sent: 0, bytes: None, cause };
        let socket = socket().map_err(failed)?;
        Ok(Transmit { socket, interface: interface.to_owned(), messages: Outgoing::new(super::BATCH) })
    }

    /// Sends a frame once, and says whether it went (`ENOBUFS` otherwise): a queue had no room, or, between the ends of a veth
    /// pair, the other end dropped it. Error: the kernel refuses the frame.
    pub fn send_once(&mut self, frame: &[u8]) -> Result<bool, TransmitError> {
        loop {
            match self.messages.send(&self.socket, std::iter::once([frame])) {
                Ok(count) => return Ok(count > 0),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => {
                    let (interface, bytes) = (self.interface.clone(), Some(frame.len()));
                    return Err(TransmitError { interface, sent: 0, bytes, cause });
                }
            }
        }
    }

    /// Sends all of `frames` (from the destination address on, without FCS), and waits where the interface's queue is full.
    /// Error: the first frame that the kernel refuses, or for which there is no room for half a second
    /// ([`TransmitError::is_no_room`]); those before it are sent, it and those behind it are not.
    pub fn send(&mut self, frames: &[&[u8]]) -> Result<(), TransmitError> {
        let mut sent = 0;
        // Since when nothing goes.
        let mut full: Option<Instant> = None;
        while let Some(rest) = frames.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.messages.send(&self.socket, rest.iter().map(|frame| [*frame])) {
                Ok(count) => {
                    sent += count;
                    full = None;
                }
                // The queue of the device has no room at this moment (netdevice(7)).
                Err(error)
                    if error.raw_os_error() == Some(libc::ENOBUFS)
                        && full.get_or_insert_with(Instant::now).elapsed() < PATIENCE =>
                {
                    thread::yield_now();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(cause) => {
                    let bytes = rest.first().map(|frame| frame.len());
                    return Err(TransmitError { interface: self.interface.clone(), sent, bytes, cause });
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;

    #[test]
    fn batches_go_out_whole_and_a_long_frame_is_named() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth::pair("near0", "far0")).expect("a pair");
        let frame = [0x02_u8; 64];
        let many: Vec<&[u8]> = vec![&frame; 3 * Transmit::BATCH + 1];
        let error = namespace.inside(|| {
            let mut transmit = Transmit::open("near0").expect("a socket");
            transmit.send(&many).expect("sent");
            let long = [0_u8; 3000];
            transmit.send(&[&frame, &long, &frame]).expect_err("beyond the MTU")
        });
        assert_eq!((error.sent, error.bytes), (1, Some(3000)));
        assert_eq!(error.cause.raw_os_error(), Some(libc::EMSGSIZE), "{error}");
        let counter = "/sys/class/net/far0/statistics/rx_packets";
        let counted = namespace.inside(|| std::fs::read_to_string(counter)).expect("a counter");
        assert_eq!(counted.trim().parse(), Ok(many.len() + 1));
    }

    #[test]
    fn a_far_end_that_drops_what_comes_ends_it() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth::pair("near0", "far0")).expect("a pair");
        let [short, long] = [vec![2_u8; 64], vec![2_u8; 1000]];
        let error = namespace.inside(|| {
            // What is longer than the far end takes is dropped there.
            let mut lower = std::process::Command::new("ip");
            let lowered = lower.args(["link", "set", "dev", "far0", "mtu", "100"]).status();
            assert!(lowered.expect("ip").success());
            let mut transmit = Transmit::open("near0").expect("a socket");
            let is_silent = transmit.send_once(&long).expect("no error");
            (!is_silent).then(|| transmit.send(&[&short, &long, &short]).expect_err("no room for the second"))
        });
        let silent = || testkit::Missing("this kernel does not report what a veth pair drops".to_owned());
        let Some(error) = require("veth-drops", error.ok_or_else(silent)) else { return };
        assert_eq!((error.sent, error.bytes, error.is_no_room()), (1, Some(1000), true));
        assert!(error.to_string().starts_with("near0: no room for a frame of 1000 bytes"), "{error}");
    }

    #[test]
    fn a_missing_interface_is_named() {
        let Some(()) = require("netns", probe()) else { return };
        let error = Transmit::open("nothing0").expect_err("no interface");
        assert!(error.to_string().starts_with("nothing0: no packet socket"), "{error}");
    }
}

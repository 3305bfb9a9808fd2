//! Datagrams of UDP, sent and received as fast as it goes.

mod receive;
mod send;

pub use receive::{Listening, Received, Receiving, receive};
pub use send::{Sending, Sent, send};

use crate::pin::CpuError;
use crate::supervise::ThreadError;
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::time::Duration;
use thiserror::Error;

/// No call of a socket waits longer, so that a request to end is seen.
const WAIT: Duration = Duration::from_millis(50);
/// Where sinks listen and senders send unless something else is said.
pub const PORT: u16 = 7184;
/// The longest payload: of IPv4, whose total length has 16 bits (RFC 791 section 3.1).
pub const LONGEST: usize = 65_507;
/// The most flows of one run, and the most that a thread of a sink keeps.
pub const MOST_FLOWS: usize = 16_384;

/// Why nothing, or not everything, was sent or received.
#[derive(Debug, Error)]
pub enum UdpError {
    #[error("{0}")]
    Wrong(String),
    #[error("cannot {what}: {cause}")]
    Socket { what: String, cause: io::Error },
    #[error(transparent)]
    Thread(#[from] ThreadError),
    #[error(transparent)]
    Cpu(#[from] CpuError),
}

impl UdpError {
    /// What the kernel said, if it was the kernel.
    pub fn cause(&self) -> Option<&io::Error> {
        match self {
            UdpError::Wrong(_) => None,
            UdpError::Thread(error) => Some(&error.0),
            UdpError::Cpu(error) => Some(&error.cause),
            UdpError::Socket { cause, .. } => Some(cause),
        }
    }
}

/// The interface by which datagrams to a target leave, as far as its addresses say: that with the source address that the
/// kernel chooses.
pub fn interface_to(target: &SocketAddr) -> Option<String> {
    kernel::netlink::interface_with(address_to(target)?)
}

/// The source address that the kernel chooses towards a target.
pub fn address_to(target: &SocketAddr) -> Option<IpAddr> {
    let socket = UdpSocket::bind((unspecified(target), 0)).ok()?;
    // Nothing is sent by that.
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

fn failed<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> UdpError {
    let what = what.into();
    move |cause| UdpError::Socket { what, cause: cause.into() }
}

fn open(address: IpAddr) -> Result<OwnedFd, UdpError> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(ipproto::UDP));
    let socket = socket.map_err(failed("open a socket"))?;
    let limit = |timeout| sockopt::set_socket_timeout(&socket, timeout, Some(WAIT));
    limit(Timeout::Recv)
        .and_then(|()| limit(Timeout::Send))
        .map_err(failed("limit how long a call waits"))?;
    Ok(socket)
}

fn is_again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Lets the process have as many descriptors as it may.
fn raise_descriptors(flows: usize) -> Result<(), UdpError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const OTHERS: u64 = 64;
    let needed = flows as u64 + OTHERS;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let current = limit.maximum.map_or(needed, |maximum| maximum.min(needed));
    if current < needed {
        return Err(UdpError::Socket {
            what: format!("have a socket for each of {flows} flows (ulimit -n is {current} at most)"),
            cause: Errno::MFILE.into(),
        });
    }
    let limit = Rlimit { current: Some(current), maximum: limit.maximum };
    setrlimit(Resource::Nofile, limit).map_err(failed("raise the limit on descriptors"))
}

fn unspecified(of: &SocketAddr) -> IpAddr {
    match of {
        SocketAddr::V4(_) => IpAddr::from([0_u8; 4]),
        SocketAddr::V6(_) => IpAddr::from([0_u8; 16]),
    }
}

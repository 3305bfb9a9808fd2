//! IPsec policies (`include/uapi/linux/xfrm.h`): which packets are to be encrypted, or dropped, before they leave.

use super::answers::messages;
use super::{Message, Netlink, Refusal, uninterrupted};
use netlink_sys::protocols::NETLINK_XFRM;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

/// `XFRM_MSG_GETPOLICY`, `XFRMNLGRP_POLICY`.
const GET: u16 = 21;
const GROUP: u32 = 4;
/// Bytes of `struct xfrm_selector`, and offsets in it.
const SELECTOR: usize = 56;
const DESTINATION: usize = 0;
const SOURCE: usize = 16;
const FAMILY: usize = 40;
const DESTINATION_BITS: usize = 42;
const SOURCE_BITS: usize = 43;
const PROTOCOL: usize = 44;
/// In `struct xfrm_userpolicy_info`, behind selector, limits (64), counts (32), priority and index.
const DIRECTION: usize = SELECTOR + 64 + 32 + 8;
/// `XFRM_POLICY_MAX`: from there on it is one of a socket.
const SOCKETS: u8 = 3;

/// A policy, by the packets that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Where they come from: an address and the bits of it that count.
    pub source: (IpAddr, u8),
    /// Where they go to.
    pub destination: (IpAddr, u8),
    /// IP protocol number; 0: all.
    pub protocol: u8,
}

impl Policy {
    /// Whether it is for packets with these addresses and this protocol. Ports are left out: it may be for fewer.
    pub fn may_be_for(&self, source: IpAddr, destination: IpAddr, protocol: u8) -> bool {
        let is_within = |address: IpAddr, (network, bits): (IpAddr, u8)| match (address, network) {
            (IpAddr::V4(address), IpAddr::V4(network)) => {
                let rest = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
                (u32::from(address) ^ u32::from(network)) & !rest == 0
            }
            (IpAddr::V6(address), IpAddr::V6(network)) => {
                let rest = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
                (u128::from(address) ^ u128::from(network)) & !rest == 0
            }
            _ => false,
        };
        is_within(source, self.source)
            && is_within(destination, self.destination)
            && [0, protocol].contains(&self.protocol)
    }

    /// Of `struct xfrm_userpolicy_info`; `None`: it is one of a socket, or of neither IP version.
    fn read(body: &[u8]) -> Option<Policy> {
        if *body.get(DIRECTION)? >= SOCKETS {
            return None;
        }
        let family = u16::from_ne_bytes(*body.get(FAMILY..)?.first_chunk()?);
        let address = |at: usize| {
            let bytes: [u8; 16] = *body.get(at..)?.first_chunk()?;
            match i32::from(family) {
                libc::AF_INET => Some(IpAddr::from(*bytes.first_chunk::<4>()?)),
                libc::AF_INET6 => Some(IpAddr::from(bytes)),
                _ => None,
            }
        };
        Some(Policy {
            source: (address(SOURCE)?, *body.get(SOURCE_BITS)?),
            destination: (address(DESTINATION)?, *body.get(DESTINATION_BITS)?),
            protocol: *body.get(PROTOCOL)?,
        })
    }
}

/// All policies of this network namespace but those of sockets; none where the kernel has no IPsec. Errors: `EPERM`: this process
/// may not.
pub fn policies() -> Result<Vec<Policy>, Refusal> {
    let mut netlink = match Netlink::open(NETLINK_XFRM) {
        Ok(netlink) => netlink,
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let objects = netlink.dump(&Message::new(GET, &[]))?;
    Ok(objects.iter().filter_map(|body| Policy::read(body)).collect())
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT))
}

/// A socket to which the kernel sends every change of policies, ready to be polled.
#[derive(Debug)]
pub struct PolicyEvents(Socket);

impl PolicyEvents {
    /// Changes from now on; `None`: the kernel has no IPsec.
    pub fn open() -> io::Result<Option<PolicyEvents>> {
        let mut socket = match Socket::new(NETLINK_XFRM) {
            Ok(socket) => socket,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        socket.bind(&SocketAddr::new(0, 0))?;
        socket.add_membership(GROUP)?;
        socket.set_non_blocking(true)?;
        Ok(Some(PolicyEvents(socket)))
    }

    /// Whether something changed since the last call, or may have.
    pub fn take(&self) -> io::Result<bool> {
        let mut changed = false;
        loop {
            match uninterrupted(|| self.0.recv_from_full()) {
                // Only the kernel has port 0.
                Ok((datagram, from)) => {
                    changed |= from.port_number() == 0 && messages(&datagram).next().is_some()
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(changed),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => changed = true,
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for PolicyEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::netns::{Namespace, probe};
    use testkit::{require, wait_until};

    #[test]
    fn no_piece_of_a_policy_panics() {
        let mut body = vec![0; DIRECTION + 4];
        body[FAMILY..FAMILY + 2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
        body[..4].copy_from_slice(&[10, 1, 2, 0]);
        body[SOURCE..SOURCE + 4].copy_from_slice(&[10, 9, 0, 0]);
        (body[DESTINATION_BITS], body[SOURCE_BITS], body[PROTOCOL]) = (24, 16, 17);
        let policy = Policy::read(&body).expect("a policy");
        assert!(policy.may_be_for([10, 9, 7, 7].into(), [10, 1, 2, 255].into(), 17));
        assert!(!policy.may_be_for([10, 9, 7, 7].into(), [10, 1, 3, 0].into(), 17));
        assert!(!policy.may_be_for([10, 9, 7, 7].into(), [10, 1, 2, 255].into(), 6));
        (0..body.len()).for_each(|end| _ = Policy::read(body.get(..end).expect("within")));
        body[DIRECTION] = SOCKETS;
        assert_eq!(Policy::read(&body), None);
    }

    #[test]
    fn a_policy_is_listed_and_notified() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        let Some(events) = namespace.inside(PolicyEvents::open).expect("a socket") else { return };
        assert!(!events.take().expect("read"));
        let policy = "xfrm policy add src 10.9.0.0/16 dst 10.1.2.0/24 dir fwd action block";
        let words: Vec<&str> = policy.split(' ').collect();
        namespace.run("ip", &words).expect("a policy");
        wait_until("a notification", || events.take().expect("read"));
        let listed = namespace.inside(policies).expect("listed");
        let expected = Policy {
            source: ([10, 9, 0, 0].into(), 16),
            destination: ([10, 1, 2, 0].into(), 24),
            protocol: 0,
        };
        assert_eq!(listed, [expected]);
    }
}

//! Addresses of interfaces.

use super::message::u32_at;
use super::{Attributes, Message, Netlink, Refusal, add, link_by_index, set};
use libc::{IFA_ADDRESS, IFA_LOCAL, RTM_DELADDR, RTM_GETADDR, RTM_NEWADDR};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use thiserror::Error;

/// An address of an interface, with its prefix, or with the address at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// This end.
    pub local: IpAddr,
    /// Bits of the prefix; of the peer's, where there is one.
    pub prefix: u8,
    /// The other end of a point-to-point link.
    pub peer: Option<IpAddr>,
}

/// A text is no address of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum AddressError {
    #[error("`{0}` is no address such as 10.0.0.1/24 or 2001:db8::1/64")]
    Unreadable(String),
    #[error("{address} is {what}, which no interface can have: 10.0.0.1/24 is one, or 2001:db8::1/64")]
    NoStation { address: IpAddr, what: &'static str },
}

/// Sees that an address can be that of one station. Error: [`AddressError::NoStation`] of the unspecified address (RFC 1122
/// section 3.2.1.3, RFC 4291 section 2.5.2), of groups, and of the limited broadcast.
pub fn station(address: IpAddr) -> Result<IpAddr, AddressError> {
    let what = match address {
        _ if address.is_unspecified() => "no station's address",
        _ if address.is_multicast() => "a group's address",
        IpAddr::V4(address) if address.is_broadcast() => "the address of all stations",
        _ => return Ok(address),
    };
    Err(AddressError::NoStation { address, what })
}

/// The link-local address of an interface identifier (RFC 5072 section 5).
pub fn link_local(identifier: u64) -> Ipv6Addr {
    const PREFIX: u128 = 0xfe80 << 112;
    Ipv6Addr::from_bits(PREFIX | u128::from(identifier))
}

impl FromStr for Address {
    type Err = AddressError;

    /// `ADDRESS/BITS`, or the address alone for all bits.
    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError::Unreadable(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let local: IpAddr = address.parse().map_err(|_| wrong())?;
        let all = if local.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= all).ok_or_else(wrong)?
            }
            Some(_) => return Err(wrong()),
            None => all,
        };
        let local = station(local)?;
        Ok(Address { local, prefix, peer: None })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.peer {
            Some(peer) => write!(f, "{} peer {peer}/{}", self.local, self.prefix),
            None => write!(f, "{}/{}", self.local, self.prefix),
        }
    }
}

/// Gives an interface an address. `EACCES`: IPv6 is off for it.
pub fn add_address(index: u32, address: &Address) -> Result<(), Refusal> {
    add(&ifaddr(RTM_NEWADDR, index, address))
}

/// Takes an address away from an interface. `EADDRNOTAVAIL`: it has none such.
pub fn remove_address(index: u32, address: &Address) -> Result<(), Refusal> {
    set(&ifaddr(RTM_DELADDR, index, address))
}

/// The name of the interface that has an address.
pub fn interface_with(address: IpAddr) -> Option<String> {
    let bytes = address_bytes(address);
    let every = Message::new(RTM_GETADDR, &[family(address), 0, 0, 0, 0, 0, 0, 0]);
    let found = Netlink::route().ok()?.dump(&every).ok()?;
    let has_it = |found: &&Vec<u8>| own_address(found) == Some(bytes.as_slice());
    let index = found.iter().find(has_it).and_then(|found| u32_at(found, 4))?;
    link_by_index(index).ok().map(|link| link.name)
}

/// The addresses of all interfaces: of those with a peer, this end's.
///
/// # Errors
///
/// The kernel refuses to list them.
pub fn addresses() -> Result<Vec<(u32, IpAddr)>, Refusal> {
    let every = Message::new(RTM_GETADDR, &[libc::AF_UNSPEC as u8, 0, 0, 0, 0, 0, 0, 0]);
    let read = |found: &Vec<u8>| {
        let bytes = own_address(found)?;
        let of_four = || <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
        let address = of_four().or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())?;
        Some((u32_at(found, 4)?, address))
    };
    Ok(Netlink::route()?.dump(&every)?.iter().filter_map(read).collect())
}

/// This end's address: with a peer, the other one is the peer's.
fn own_address(message: &[u8]) -> Option<&[u8]> {
    let attributes = Attributes::behind(IFADDR, message);
    attributes.get(IFA_LOCAL).or(attributes.get(IFA_ADDRESS))
}

/// Bytes of `struct ifaddrmsg`.
const IFADDR: usize = 8;

fn ifaddr(kind: u16, index: u32, address: &Address) -> Message {
    // `struct ifaddrmsg`: family, prefix length, flags, scope, index.
    let [a, b, c, d] = index.to_ne_bytes();
    Message::new(kind, &[family(address.local), address.prefix, 0, 0, a, b, c, d])
        .with(IFA_LOCAL, &address_bytes(address.local))
        .with(IFA_ADDRESS, &address_bytes(address.peer.unwrap_or(address.local)))
}

pub(super) fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

pub(super) fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// An address in network byte order, of the version that its length says.
pub(super) fn read_address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["10.0.0.1/24", "2001:db8::1/64", "10.0.0.1/0", "192.0.2.1/32"] {
            assert_eq!(text.parse::<Address>().expect("an address").to_string(), text);
        }
        let alone = |text: &str| text.parse::<Address>().expect("an address").prefix;
        assert_eq!((alone("10.0.0.1"), alone("fe80::1")), (32, 128));
        for text in
            ["", "10.0.0.1/33", "10.0.0.1/+8", "10.0.0.1/", "::1/129", "10.0.0", "eth0", "10.0.0.1/8/8"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_interface_is_found_by_its_address() {
        assert_eq!(interface_with([127, 0, 0, 1].into()).as_deref(), Some("lo"));
        assert_eq!(interface_with([240, 0, 0, 1].into()), None);
    }

    #[test]
    fn what_no_station_has_is_refused() {
        for text in ["0.0.0.0/0", "::/0", "::", "224.0.0.1/24", "ff02::1/64", "255.255.255.255"] {
            let error = text.parse::<Address>().expect_err(text).to_string();
            assert!(error.contains("which no interface can have"), "{error}");
        }
    }
}

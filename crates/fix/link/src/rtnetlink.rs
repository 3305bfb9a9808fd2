//! What rtnetlink(7) tells of interfaces, and what is set by it.
//!
//! Messages: `include/uapi/linux/rtnetlink.h`; attributes: `if_link.h`, `if_addr.h`.

mod message;
mod monitor;
mod route;

pub use monitor::{Change, Monitor};
pub use route::{Other, Route, add_route, add_route_beside, default_route, remove_route, route_of};

use crate::address::Address;
use message::{attribute, attributes, half, text, word};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::io;
use std::net::IpAddr;
use wire::ethernet::MacAddress;

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const RTM_NEWADDR: u16 = 20;
const RTM_DELADDR: u16 = 21;
const RTM_NEWROUTE: u16 = 24;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_STATS64: u16 = 23;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;

/// `tx_dropped` in `struct rtnl_link_stats64`.
const TX_DROPPED: usize = 7 * 8;

/// `struct nlmsghdr`; `struct ifinfomsg`.
const HEADER: usize = 16;
const IFINFO: usize = 16;

/// What the kernel tells of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    pub index: u32,
    pub name: String,
    /// ARPHRD type: 1 is Ethernet.
    pub hardware: u16,
    /// `IFF_…`
    pub flags: u32,
    /// MTU, octets.
    pub mtu: u32,
    /// MAC address; `None`: it has none of six octets.
    pub mac: Option<MacAddress>,
    /// Packets that the kernel wanted to send through it and dropped.
    pub tx_dropped: Option<u64>,
}

impl Link {
    /// Whether it is up, and its line works.
    pub const fn works(&self) -> bool {
        const WORKS: u32 = libc::IFF_UP as u32 | libc::IFF_LOWER_UP as u32;
        self.flags & WORKS == WORKS
    }

    pub const fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }
}

/// What the kernel answered instead of doing it.
#[derive(Debug, thiserror::Error)]
#[error("{error}{}", said.as_ref().map_or(String::new(), |said| format!(": {said}")))]
pub struct Refusal {
    pub error: io::Error,
    pub said: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, said: None }
    }
}

/// Asks for an interface of the calling thread's network namespace. `ENODEV`: there is none.
pub fn link_by_name(name: &str) -> io::Result<Link> {
    // IFNAMSIZ, the zero included; the kernel would answer ERANGE.
    if name.is_empty() || name.len() >= libc::IFNAMSIZ {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let mut body = ifinfo(0, 0);
    attribute(&mut body, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    ask(&body)
}

/// The same by its number.
pub fn link_by_index(index: u32) -> io::Result<Link> {
    ask(&ifinfo(index, 0))
}

fn ask(body: &[u8]) -> io::Result<Link> {
    let answer = exchange(RTM_GETLINK, NLM_F_REQUEST, body).map_err(|refusal| refusal.error)?;
    Ok(read_link(answer.get(HEADER..).unwrap_or_default()))
}

pub fn configure(index: u32, mtu: u32, mac: Option<MacAddress>) -> Result<(), Refusal> {
    let mut body = ifinfo(index, 0);
    attribute(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
    if let Some(mac) = mac {
        attribute(&mut body, IFLA_ADDRESS, &mac.0);
    }
    exchange(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &body).map(drop)
}

pub fn set_up(index: u32) -> Result<(), Refusal> {
    exchange(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &ifinfo(index, libc::IFF_UP as u32)).map(drop)
}

/// Sets an interface down: it loses its routes, and its IPv6 addresses.
pub fn set_down(index: u32) -> Result<(), Refusal> {
    let mut body = ifinfo(index, 0);
    // Which flags change: the last word.
    if let Some(change) = body.last_chunk_mut() {
        *change = (libc::IFF_UP as u32).to_ne_bytes();
    }
    exchange(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &body).map(drop)
}

/// Gives an interface another name. `EBUSY`: it is up, which kernels before 6.2 do not allow; `EEXIST`: another one has it.
pub fn rename(index: u32, name: &str) -> Result<(), Refusal> {
    let mut body = ifinfo(index, 0);
    attribute(&mut body, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    exchange(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &body).map(drop)
}

/// Keeps the kernel from making a link-local IPv6 address of its own for the interface when that is set up: it gets one from
/// somebody else. `EAFNOSUPPORT`: there is no IPv6.
pub fn without_own_ipv6(index: u32) -> Result<(), Refusal> {
    /// `IN6_ADDR_GEN_MODE_NONE` of linux/if_link.h.
    const NONE: u8 = 1;
    let (mut mode, mut family) = (Vec::new(), Vec::new());
    attribute(&mut mode, IFLA_INET6_ADDR_GEN_MODE, &[NONE]);
    attribute(&mut family, libc::AF_INET6 as u16, &mode);
    let mut body = ifinfo(index, 0);
    attribute(&mut body, IFLA_AF_SPEC, &family);
    exchange(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &body).map(drop)
}

/// Gives an interface an address. `EACCES`: IPv6 is off for it.
pub fn add_address(index: u32, address: &Address) -> Result<(), Refusal> {
    let flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
    exchange(RTM_NEWADDR, flags, &ifaddr(index, address)).map(drop)
}

/// Takes an address away from an interface. `EADDRNOTAVAIL`: it has none such.
pub fn remove_address(index: u32, address: &Address) -> Result<(), Refusal> {
    exchange(RTM_DELADDR, NLM_F_REQUEST | NLM_F_ACK, &ifaddr(index, address)).map(drop)
}

fn ifaddr(index: u32, address: &Address) -> Vec<u8> {
    let octets = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let family = if address.local.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // `struct ifaddrmsg`: family, prefix length, flags, scope, index.
    let mut body = vec![family as u8, address.prefix, 0, 0];
    body.extend(index.to_ne_bytes());
    attribute(&mut body, IFA_LOCAL, &octets(address.local));
    attribute(&mut body, IFA_ADDRESS, &octets(address.peer.unwrap_or(address.local)));
    body
}

/// `struct ifinfomsg`: family, padding, type, index, flags, and which of them change.
fn ifinfo(index: u32, flags: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    for word in [index, flags, flags] {
        body.extend(word.to_ne_bytes());
    }
    body
}

/// Sends one message and gives the answer with its header; an acknowledgement is given as it is.
fn exchange(kind: u16, flags: u16, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // Kernels before 4.12 know neither; then there are no messages.
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    socket.send(&request(kind, flags, body), 0)?;
    let (answer, _) = socket.recv_from_full()?;
    match half(&answer, 4) {
        Some(NLMSG_ERROR) => acknowledged(&answer).map(|()| answer),
        Some(RTM_NEWLINK | RTM_NEWROUTE) => Ok(answer),
        other => Err(io::Error::other(format!("rtnetlink answered with a message of type {other:?}")).into()),
    }
}

/// A message with its header.
fn request(kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
    let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and port: one question at a time.
    message.extend(1_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(body);
    message
}

/// `struct nlmsgerr`: the error number, the header of what was asked, attributes.
fn acknowledged(answer: &[u8]) -> Result<(), Refusal> {
    let number = word(answer, HEADER).unwrap_or_default() as i32;
    if number == 0 {
        return Ok(());
    }
    let has_attributes = half(answer, 6).is_some_and(|flags| flags & NLM_F_ACK_TLVS != 0);
    let rest = answer.get(HEADER + 4 + HEADER..).filter(|_| has_attributes).unwrap_or_default();
    let said = attributes(rest).find(|&(kind, _)| kind == NLMSGERR_ATTR_MSG).map(|(_, value)| text(value));
    Err(Refusal { error: io::Error::from_raw_os_error(number.wrapping_neg()), said })
}

/// Of `struct ifinfomsg` and what follows it.
fn read_link(body: &[u8]) -> Link {
    let mut link = Link {
        hardware: half(body, 2).unwrap_or_default(),
        index: word(body, 4).unwrap_or_default(),
        flags: word(body, 8).unwrap_or_default(),
        ..Link::default()
    };
    for (kind, value) in attributes(body.get(IFINFO..).unwrap_or_default()) {
        match kind {
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = word(value, 0).unwrap_or_default(),
            IFLA_ADDRESS => link.mac = value.try_into().ok().map(MacAddress),
            IFLA_STATS64 => {
                let octets = value.get(TX_DROPPED..).and_then(|rest| rest.first_chunk());
                link.tx_dropped = octets.map(|octets| u64::from_ne_bytes(*octets));
            }
            _ => {}
        }
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_by_name_and_number() {
        let link = link_by_name("lo").expect("every namespace has it");
        assert_eq!((link.index, link.name.as_str(), link.hardware), (1, "lo", 772));
        assert_eq!(link_by_index(1).expect("there").name, "lo");
        assert!(link.mtu > 0 && link.tx_dropped.is_some());
        for name in ["no-such-one", "", "a-name-that-is-too-long-for-any"] {
            let error = link_by_name(name).expect_err("not there");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }

    #[test]
    fn cut_short_at_any_place_nothing_panics() {
        let mut body = ifinfo(3, 1);
        attribute(&mut body, IFLA_IFNAME, b"wan0\0");
        attribute(&mut body, IFLA_ADDRESS, &[2, 0, 0, 0, 0, 1]);
        attribute(&mut body, IFLA_MTU, &1500_u32.to_ne_bytes());
        attribute(&mut body, IFLA_STATS64, &[1; 64]);
        let whole = read_link(&body);
        assert_eq!((whole.index, whole.name.as_str(), whole.mtu, whole.is_up()), (3, "wan0", 1500, true));
        assert_eq!(whole.mac, Some(MacAddress([2, 0, 0, 0, 0, 1])));
        assert_eq!(whole.tx_dropped, Some(0x0101_0101_0101_0101));
        for end in 0..body.len() {
            read_link(&body[..end]);
            let _ = acknowledged(&body[..end]);
        }
    }
}

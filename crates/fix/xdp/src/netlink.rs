//! What rtnetlink tells of an interface, and attaching the old way, for the sake of the kernel's message.
//!
//! Attributes: `include/uapi/linux/if_link.h`; messages: `include/uapi/linux/netlink.h`, `rtnetlink.h`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_SETLINK: u16 = 19;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_ACK_TLVS: u16 = 0x200;
const NLMSGERR_ATTR_MSG: u16 = 1;
const NLA_F_NESTED: u16 = 1 << 15;

const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_TUN_VNET_HDR: u16 = 5;
const IFLA_XDP: u16 = 43;
const IFLA_MAX_MTU: u16 = 51;
const IFLA_PARENT_DEV_NAME: u16 = 56;
const IFLA_PARENT_DEV_BUS_NAME: u16 = 57;

const IFLA_XDP_FD: u16 = 1;
const IFLA_XDP_ATTACHED: u16 = 2;
const IFLA_XDP_FLAGS: u16 = 3;
const IFLA_XDP_PROG_ID: u16 = 4;
const IFLA_XDP_DRV_PROG_ID: u16 = 5;
const IFLA_XDP_SKB_PROG_ID: u16 = 6;

/// `XDP_ATTACHED_MULTI`.
const ATTACHED_MULTI: u8 = 4;
/// `XDP_FLAGS_UPDATE_IF_NOEXIST`.
const UPDATE_IF_NOEXIST: u32 = 1 << 0;
/// `XDP_FLAGS_SKB_MODE`.
pub(crate) const SKB_MODE: u32 = 1 << 1;
/// `XDP_FLAGS_DRV_MODE`.
pub(crate) const DRV_MODE: u32 = 1 << 2;

/// `struct nlmsghdr` and `struct ifinfomsg`.
const HEADER: usize = 16;
const IFINFO: usize = 16;

/// What the kernel tells of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) index: u32,
    pub(crate) name: String,
    /// `ARPHRD_*`, the kind of hardware.
    pub(crate) hardware: u16,
    pub(crate) mtu: Option<u32>,
    /// The largest MTU that the driver takes; `None`: not known, or the driver itself decides.
    pub(crate) mtu_most: Option<u32>,
    /// Kind of a virtual interface: `veth`, `vlan`.
    pub(crate) kind: Option<String>,
    /// Whether it is a TUN or TAP device whose other end writes virtio headers (since 4.18).
    pub(crate) has_virtio_headers: bool,
    /// Bus and name of the device behind it, as under `/sys/bus` (since 5.14).
    pub(crate) device: Option<(String, String)>,
    pub(crate) xdp: Option<Xdp>,
}

/// The XDP program of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Xdp {
    /// The program of the driver.
    pub(crate) native: Option<u32>,
    /// The program that is run for each socket buffer.
    pub(crate) generic: Option<u32>,
    /// Any of them, the network card's own included.
    pub(crate) any: u32,
    /// `XDP_ATTACHED_MULTI`: there are several.
    pub(crate) several: bool,
}

impl Xdp {
    pub(crate) fn has(&self, program: u32) -> bool {
        self.any == program || self.native == Some(program) || self.generic == Some(program)
    }
}

/// What the kernel answered instead of doing it.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) error: io::Error,
    /// Its message, in the words of driver or core.
    pub(crate) said: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, said: None }
    }
}

/// Asks for an interface of the calling thread's network namespace. `ENODEV`: there is none.
pub(crate) fn link_by_index(index: u32) -> io::Result<Link> {
    ask(index, None)
}

/// Asks for an interface of the calling thread's network namespace. `ENODEV`: there is none.
pub(crate) fn link_by_name(name: &str) -> io::Result<Link> {
    // IFNAMSIZ, the zero included; the kernel would answer ERANGE.
    if name.is_empty() || name.len() >= 16 {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    ask(0, Some(name))
}

fn ask(index: u32, name: Option<&str>) -> io::Result<Link> {
    let mut body = ifinfo(index);
    if let Some(name) = name {
        attribute(&mut body, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    }
    let answer = exchange(RTM_GETLINK, NLM_F_REQUEST, &body).map_err(|refusal| refusal.error)?;
    Ok(read_link(&answer))
}

/// Attaches a program by netlink, where none is attached, to learn what the kernel says against it. Where it says
/// nothing against it, the program is on the interface: `Ok`.
pub(crate) fn attach(index: u32, program: BorrowedFd<'_>, mode: u32) -> Result<(), Refusal> {
    set(index, program.as_raw_fd(), mode | UPDATE_IF_NOEXIST)
}

/// Takes a program off that [`attach`] has put there.
pub(crate) fn detach(index: u32, mode: u32) -> Result<(), Refusal> {
    set(index, -1, mode)
}

fn set(index: u32, fd: i32, flags: u32) -> Result<(), Refusal> {
    let mut xdp = Vec::new();
    attribute(&mut xdp, IFLA_XDP_FD, &fd.to_ne_bytes());
    attribute(&mut xdp, IFLA_XDP_FLAGS, &flags.to_ne_bytes());
    let mut body = ifinfo(index);
    attribute(&mut body, IFLA_XDP | NLA_F_NESTED, &xdp);
    exchange(RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, &body).map(drop)
}

/// `struct ifinfomsg`: family, padding, type, index, flags, change.
fn ifinfo(index: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend(index.to_ne_bytes());
    body.resize(IFINFO, 0);
    body
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((value.len() + 4) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Sends one message and gives what follows the header in the answer; nothing where that is an acknowledgement.
fn exchange(kind: u16, flags: u16, body: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // Kernels before 4.12 know neither; then there are no messages.
    let _ = socket.set_ext_ack(true);
    let _ = socket.set_cap_ack(true);
    let mut message = ((HEADER + body.len()) as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and port: one message, one answer.
    message.extend(1_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(body);
    socket.send(&message, 0)?;
    let (answer, _) = socket.recv_from_full()?;
    match half(&answer, 4) {
        Some(NLMSG_ERROR) => acknowledged(&answer),
        Some(RTM_NEWLINK) => Ok(answer.get(HEADER..).unwrap_or_default().to_vec()),
        other => Err(io::Error::other(format!("rtnetlink answered with a message of type {other:?}")).into()),
    }
}

/// `struct nlmsgerr`: the error number, the header of what was asked (all of it before 4.12), attributes.
fn acknowledged(answer: &[u8]) -> Result<Vec<u8>, Refusal> {
    let number = word(answer, HEADER).unwrap_or_default() as i32;
    if number == 0 {
        return Ok(Vec::new());
    }
    let has_attributes = half(answer, 6).is_some_and(|flags| flags & NLM_F_ACK_TLVS != 0);
    let rest = answer.get(HEADER + 4 + HEADER..).filter(|_| has_attributes).unwrap_or_default();
    let said = attributes(rest).find(|&(kind, _)| kind == NLMSGERR_ATTR_MSG).map(|(_, value)| text(value));
    Err(Refusal { error: io::Error::from_raw_os_error(number.wrapping_neg()), said })
}

fn read_link(answer: &[u8]) -> Link {
    // struct ifinfomsg: family 0, type 2, index 4.
    let mut link = Link {
        index: word(answer, 4).unwrap_or_default(),
        hardware: half(answer, 2).unwrap_or_default(),
        ..Link::default()
    };
    let (mut bus, mut device) = (None, None);
    for (kind, value) in attributes(answer.get(IFINFO..).unwrap_or_default()) {
        match kind {
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = word(value, 0),
            IFLA_MAX_MTU => link.mtu_most = word(value, 0).filter(|&most| most != 0),
            IFLA_LINKINFO => {
                let named = |wanted| move |&(kind, _): &(u16, _)| kind == wanted;
                link.kind = attributes(value).find(named(IFLA_INFO_KIND)).map(|(_, value)| text(value));
                let data = attributes(value).find(named(IFLA_INFO_DATA)).map(|(_, value)| value);
                let header = attributes(data.unwrap_or_default()).find(named(IFLA_TUN_VNET_HDR));
                link.has_virtio_headers =
                    link.kind.as_deref() == Some("tun") && header.is_some_and(|(_, value)| value != [0]);
            }
            IFLA_PARENT_DEV_NAME => device = Some(text(value)),
            IFLA_PARENT_DEV_BUS_NAME => bus = Some(text(value)),
            IFLA_XDP => link.xdp = read_xdp(value),
            _ => {}
        }
    }
    link.device = bus.zip(device);
    link
}

fn read_xdp(nested: &[u8]) -> Option<Xdp> {
    let (mut one, mut native, mut generic, mut attached) = (None, None, None, 0);
    for (kind, value) in attributes(nested) {
        match kind {
            IFLA_XDP_ATTACHED => attached = value.first().copied().unwrap_or_default(),
            IFLA_XDP_PROG_ID => one = word(value, 0),
            IFLA_XDP_DRV_PROG_ID => native = word(value, 0),
            IFLA_XDP_SKB_PROG_ID => generic = word(value, 0),
            _ => {}
        }
    }
    // XDP_ATTACHED_NONE. Without a number (before 4.13) nothing can be said of the program.
    if attached == 0 {
        return None;
    }
    // With several the kernel gives no IFLA_XDP_PROG_ID.
    let any = one.or(native).or(generic).unwrap_or_default();
    Some(Xdp { native, generic, any, several: attached == ATTACHED_MULTI })
}

/// The attributes in a message or in another attribute; ends at the first whose length is wrong.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(half(rest, 0)?);
        let kind = half(rest, 2)? & !NLA_F_NESTED;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(octets.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(octets.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|&octet| octet == 0).next().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_and_has_no_program() {
        let link = link_by_name("lo").expect("every namespace has it");
        assert_eq!((link.index, link.name.as_str(), link.xdp), (1, "lo", None));
        assert_eq!(link_by_index(1).expect("there"), link);
    }

    #[test]
    fn an_interface_that_is_not_there_is_no_device() {
        for name in ["no-such-one", "", "a-name-that-is-too-long-for-any"] {
            let error = link_by_name(name).expect_err("not there");
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{name}");
        }
    }

    #[test]
    fn cut_short_at_any_place_nothing_panics() {
        let mut xdp = Vec::new();
        attribute(&mut xdp, IFLA_XDP_ATTACHED, &[1]);
        attribute(&mut xdp, IFLA_XDP_PROG_ID, &7_u32.to_ne_bytes());
        let mut body = ifinfo(3);
        attribute(&mut body, IFLA_IFNAME, b"wan0\0");
        attribute(&mut body, IFLA_XDP | NLA_F_NESTED, &xdp);
        let whole = read_link(&body);
        assert_eq!((whole.index, whole.name.as_str()), (3, "wan0"));
        assert_eq!(whole.xdp, Some(Xdp { native: None, generic: None, any: 7, several: false }));
        for end in 0..body.len() {
            read_link(&body[..end]);
            let _ = acknowledged(&body[..end]);
        }
    }
}

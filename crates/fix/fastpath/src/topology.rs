//! What stands on what on this machine: interfaces, neighbours, ports of bridges, PPPoE sessions, own addresses. And the way
//! from an interface down to the port by which frames leave.

use crate::obstacle::Obstacle;
use foldhash::{HashMap, HashSet};
use kernel::netlink::{self, BridgeEntry, BridgePort, Link, Neighbour, Policy, Refusal};
use kernel::sysctl::net_is_on;
use std::net::IpAddr;
use wire::ethernet::MacAddress;
use xdp::forward::{Session, Tag};

/// Interfaces stand on no more others (`MAX_NEST_DEV` of include/linux/netdevice.h).
const DEEPEST: usize = 8;
/// Types of interfaces (include/uapi/linux/if_arp.h).
const ETHERNET: u16 = 1;
const PPP: u16 = 512;
const NONE: u16 = 0xfffe;

/// What a program of rxlane has below its TUN or TAP interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// The interface below.
    pub parent: String,
    /// Tags of its frames, outermost first.
    pub tags: Vec<Tag>,
    /// Its PPPoE session.
    pub session: Option<Session>,
}

/// A session of the kernel's PPPoE: `/proc/net/pppoe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSession {
    /// The interface below.
    pub device: String,
    /// The session.
    pub session: Session,
}

/// From an interface to the port: what stands in the frames there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Number of the port.
    pub port: u32,
    /// Tags, outermost first.
    pub tags: [Option<Tag>; 2],
    /// The PPPoE session; its other end is the destination.
    pub session: Option<Session>,
    /// The MAC address of this machine there.
    pub own: MacAddress,
    /// That of the next hop.
    pub destination: MacAddress,
    /// The longest IP packet, bytes.
    pub mtu: u32,
}

/// What is known of the machine.
#[derive(Debug, Default)]
pub struct Topology {
    pub(crate) links: HashMap<u32, Link>,
    neighbours: HashMap<(u32, IpAddr), Neighbour>,
    /// Ports by bridge and address.
    bridged: HashMap<(u32, MacAddress), u32>,
    /// Its own addresses, and on which interfaces they are.
    own: HashMap<IpAddr, Vec<u32>>,
    /// Whether IPv6 is forwarded from any interface (`net.ipv6.conf.all.forwarding`).
    forwards_ipv6: bool,
    /// From which it is all the same (`force_forwarding`, Linux 6.17).
    forced_ipv6: HashSet<u32>,
    sessions: Vec<KernelSession>,
    policies: Vec<Policy>,
    overlays: HashMap<String, Overlay>,
}

impl Topology {
    /// Reads all of it. `overlays` gives what is below the interfaces of rxlane's own programs.
    ///
    /// # Errors
    ///
    /// Those of rtnetlink.
    pub fn read(overlays: impl Fn(&str) -> Option<Overlay>) -> Result<Topology, Refusal> {
        let links = netlink::links()?;
        let mut topology = Topology {
            links: links.into_iter().map(|link| (link.index, link)).collect(),
            policies: netlink::policies()?,
            forwards_ipv6: net_is_on("ipv6/conf/all/forwarding"),
            sessions: sessions(&std::fs::read_to_string("/proc/thread-self/net/pppoe").unwrap_or_default()),
            ..Topology::default()
        };
        for (interface, address) in netlink::addresses()? {
            topology.own.entry(address).or_default().push(interface);
        }
        if !topology.forwards_ipv6 {
            let is_forced = |link: &&Link| net_is_on(&format!("ipv6/conf/{}/force_forwarding", link.name));
            topology.forced_ipv6 = topology.links.values().filter(is_forced).map(|link| link.index).collect();
        }
        topology.find_overlays(overlays);
        for neighbour in netlink::neighbours()? {
            topology.set_neighbour(neighbour);
        }
        for entry in netlink::bridge_entries()? {
            topology.set_bridge_entry(&entry);
        }
        Ok(topology)
    }

    /// Looks for what is below interfaces of which it is not known: a program answers only some time after its interface is there, and
    /// no event says when. Gives whether any was found.
    pub fn find_overlays(&mut self, overlays: impl Fn(&str) -> Option<Overlay>) -> bool {
        let is_unknown =
            |link: &&Link| link.kind.as_deref() == Some("tun") && !self.overlays.contains_key(&link.name);
        let unknown = self.links.values().filter(is_unknown);
        let found: Vec<(String, Overlay)> =
            unknown.filter_map(|link| Some((link.name.clone(), overlays(&link.name)?))).collect();
        let has_found = !found.is_empty();
        self.overlays.extend(found);
        has_found
    }

    /// Whether an address is this machine's.
    pub fn is_own(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.own.contains_key(&address)
    }

    /// Whether an address is this machine's, on this interface alone.
    pub fn is_own_on(&self, address: IpAddr, interface: u32) -> bool {
        self.own.get(&address).is_some_and(|on| on.as_slice() == [interface])
    }

    /// Whether packets from an interface are forwarded, as far as IPv6 is concerned (`ip6_forward()` in net/ipv6/ip6_output.c); of IPv4
    /// a lookup says so.
    pub fn forwards_ipv6(&self, from: u32) -> bool {
        self.forwards_ipv6 || self.forced_ipv6.contains(&from)
    }

    /// Whether an IPsec policy may be for packets between two stations.
    pub fn has_policy(&self, protocol: u8, one: IpAddr, other: IpAddr) -> bool {
        let is_for = |policy: &Policy| {
            policy.may_be_for(one, other, protocol) || policy.may_be_for(other, one, protocol)
        };
        self.policies.iter().any(is_for)
    }

    /// An interface is so now. Gives whether anything of it changed that decides about ways.
    pub fn set_link(&mut self, link: Link) -> bool {
        let facts = |link: &Link| {
            let about = (link.works(), link.mtu, link.mac, link.below, link.master, link.vlan);
            (about, link.name.clone(), link.vlan_filtering, link.bridge_port_forwards)
        };
        let is_new = self.links.get(&link.index).is_none_or(|known| facts(known) != facts(&link));
        self.links.insert(link.index, link);
        is_new
    }

    /// A port of a bridge is so now. Gives whether it was not.
    pub fn set_bridge_port(&mut self, port: BridgePort) -> bool {
        let Some(link) = self.links.get_mut(&port.interface) else { return false };
        link.bridge_port_forwards.replace(port.forwards) != Some(port.forwards)
    }

    /// An interface was removed. Gives whether it was known.
    pub fn remove_link(&mut self, index: u32) -> bool {
        self.neighbours.retain(|(interface, _), _| *interface != index);
        self.links.remove(&index).is_some()
    }

    /// A neighbour is so now. Gives whether its MAC address is another one, or whether it has one.
    pub fn set_neighbour(&mut self, neighbour: Neighbour) -> bool {
        let key = (neighbour.interface, neighbour.address);
        let mac = |neighbour: &Neighbour| neighbour.mac.filter(|_| neighbour.is_valid());
        let now = mac(&neighbour);
        let before = self.neighbours.insert(key, neighbour).and_then(|before| mac(&before));
        before != now
    }

    /// A neighbour is known no more.
    pub fn remove_neighbour(&mut self, neighbour: &Neighbour) -> bool {
        let before = self.neighbours.remove(&(neighbour.interface, neighbour.address));
        before.is_some_and(|before| before.is_valid() && before.mac.is_some())
    }

    /// Whether the kernel has not heard of a neighbour for a while (`NUD_STALE`).
    pub fn is_stale(&self, interface: u32, address: IpAddr) -> bool {
        const STALE: u16 = 0x04;
        self.neighbours.get(&(interface, address)).is_some_and(|found| found.state & STALE != 0)
    }

    /// A bridge has learned an address. Gives whether it was behind another port, or none.
    pub fn set_bridge_entry(&mut self, entry: &BridgeEntry) -> bool {
        let Some(bridge) = entry.bridge.filter(|_| !entry.is_own) else { return false };
        self.bridged.insert((bridge, entry.mac), entry.port) != Some(entry.port)
    }

    /// A bridge has forgotten an address.
    pub fn remove_bridge_entry(&mut self, entry: &BridgeEntry) -> bool {
        let Some(bridge) = entry.bridge else { return false };
        let key = (bridge, entry.mac);
        self.bridged.get(&key) == Some(&entry.port) && self.bridged.remove(&key).is_some()
    }

    /// The way of packets that leave by an interface to a next hop. `is_port`: whether an interface is a port of the fast path.
    ///
    /// # Errors
    ///
    /// What of it is not known, or not served.
    pub fn way(&self, interface: u32, next: IpAddr, is_port: impl Fn(u32) -> bool) -> Result<Way, Obstacle> {
        let link = self.working(interface)?;
        let mut way = match link.hardware {
            PPP => self.kernel_session(link)?,
            NONE => self.overlay(link)?,
            ETHERNET => {
                let neighbour = self.neighbours.get(&(interface, next)).filter(|found| found.is_valid());
                let destination = neighbour.and_then(|found| found.mac).ok_or(Obstacle::NoNeighbour)?;
                Descent::from(link, destination)?
            }
            _ => return Err(Obstacle::Interface),
        };
        // A TAP interface of a link is Ethernet, too, and its frames get tags below.
        if let Some(overlay) = self.overlays.get(&link.name).filter(|_| link.hardware == ETHERNET) {
            way.tags.extend(overlay.tags.iter().rev());
            way.at = self.by_name(&overlay.parent)?;
        }
        for _ in 0..DEEPEST {
            if is_port(way.at) {
                return way.finish();
            }
            self.descend(&mut way)?;
        }
        Err(Obstacle::Interface)
    }

    /// The interfaces on which one stands, itself among them, down to the ports.
    pub fn below(&self, interface: u32) -> Vec<u32> {
        let (mut all, mut level) = (Vec::new(), vec![interface]);
        for _ in 0..=DEEPEST {
            let Some(link) = level.pop().and_then(|index| self.links.get(&index)) else { break };
            all.push(link.index);
            level.extend(link.below);
            let named = |name: &str| self.by_name(name).ok();
            level.extend(self.overlays.get(&link.name).and_then(|overlay| named(&overlay.parent)));
            if link.hardware == PPP {
                level.extend(self.sessions.iter().filter_map(|session| named(&session.device)));
            }
            if link.kind.as_deref() == Some("bridge") {
                all.extend(
                    self.links.values().filter(|port| port.master == Some(link.index)).map(|port| port.index),
                );
            }
        }
        all
    }

    /// Whether frames with tags come to an interface: VLAN devices stand on it, or links of rxlane with tags.
    pub fn has_tags_on(&self, interface: u32) -> bool {
        let is_tagged = |link: &Link| {
            let own = self.overlays.get(&link.name).is_some_and(|overlay| !overlay.tags.is_empty());
            link.vlan.is_some() || own
        };
        let is_on = |link: &&Link| link.index != interface && self.below(link.index).contains(&interface);
        self.links.values().filter(|link| is_tagged(link)).any(|link| is_on(&link))
    }

    fn working(&self, interface: u32) -> Result<&Link, Obstacle> {
        self.links.get(&interface).filter(|link| link.works()).ok_or(Obstacle::Interface)
    }

    fn by_name(&self, name: &str) -> Result<u32, Obstacle> {
        let found = self.links.values().find(|link| link.name == name);
        found.map(|link| link.index).ok_or(Obstacle::Interface)
    }

    /// The kernel does not say which session a PPP interface has: it is known where there is one.
    fn kernel_session(&self, link: &Link) -> Result<Descent, Obstacle> {
        let [only] = self.sessions.as_slice() else { return Err(Obstacle::Interface) };
        let below = self.working(self.by_name(&only.device)?)?;
        let way = Descent::from(below, only.session.peer)?;
        Ok(Descent { session: Some(only.session), mtu: link.mtu, ..way })
    }

    /// The session of a TUN interface.
    fn overlay(&self, link: &Link) -> Result<Descent, Obstacle> {
        let overlay = self.overlays.get(&link.name).ok_or(Obstacle::Interface)?;
        let session = overlay.session.ok_or(Obstacle::Interface)?;
        let below = self.working(self.by_name(&overlay.parent)?)?;
        let way = Descent::from(below, session.peer)?;
        let tags = overlay.tags.iter().rev().copied().collect();
        Ok(Descent { session: Some(session), tags, mtu: link.mtu, ..way })
    }

    /// One interface further down.
    fn descend(&self, way: &mut Descent) -> Result<(), Obstacle> {
        let link = self.working(way.at)?;
        match (link.kind.as_deref(), link.vlan.as_ref()) {
            (Some("vlan"), Some(vlan)) => {
                if vlan.egress_qos {
                    return Err(Obstacle::TagPriority);
                }
                way.tags.push(Tag { tpid: vlan.tpid, vid: vlan.id });
                way.at = link.below.ok_or(Obstacle::Interface)?;
            }
            (Some("bridge"), _) => {
                if link.vlan_filtering == Some(true) {
                    return Err(Obstacle::VlanFiltering);
                }
                let port = self.bridged.get(&(link.index, way.destination));
                let port = *port.ok_or(Obstacle::NoBridgePort)?;
                if self.working(port)?.bridge_port_forwards == Some(false) {
                    return Err(Obstacle::NoBridgePort);
                }
                way.at = port;
            }
            (None | Some("veth"), _) => return Err(Obstacle::NoPort),
            _ => return Err(Obstacle::Interface),
        }
        Ok(())
    }
}

/// A way while it is followed. Tags are innermost first.
struct Descent {
    at: u32,
    tags: Vec<Tag>,
    session: Option<Session>,
    own: MacAddress,
    destination: MacAddress,
    mtu: u32,
}

impl Descent {
    fn from(link: &Link, destination: MacAddress) -> Result<Descent, Obstacle> {
        let own = link.mac.ok_or(Obstacle::Interface)?;
        Ok(Descent { at: link.index, tags: Vec::new(), session: None, own, destination, mtu: link.mtu })
    }

    fn finish(self) -> Result<Way, Obstacle> {
        let tags = match self.tags[..] {
            [] => [None, None],
            [only] => [Some(only), None],
            [inner, outer] => [Some(outer), Some(inner)],
            _ => return Err(Obstacle::Tags),
        };
        let Descent { at: port, session, own, destination, mtu, .. } = self;
        Ok(Way { port, tags, session, own, destination, mtu })
    }
}

/// The kernel's PPPoE sessions (`pppoe_seq_show()` in drivers/net/ppp/pppoe.c): number in hexadecimal digits as it stands in
/// memory, MAC address, interface.
fn sessions(text: &str) -> Vec<KernelSession> {
    let session = |line: &str| {
        let mut words = line.split_whitespace();
        let number = u32::from_str_radix(words.next()?, 16).ok()?;
        let peer = words.next()?.parse().ok()?;
        let device = words.next()?.to_owned();
        // Sixteen bits in network order, printed as 32 bits of the machine's.
        let id = u16::from_be(u16::try_from(number).ok()?);
        Some(KernelSession { device, session: Session { id, peer } })
    };
    text.lines().skip(1).filter_map(session).collect()
}

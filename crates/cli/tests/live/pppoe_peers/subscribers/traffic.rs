//! Packets through the concentrator, each of them once, whole, and where it belongs; and those that must not come through.

use super::plan::Dice;
use super::session::Session;
use crate::pppoe_peers::by_hand::packet::{Datagram, headers, read_udp, udp};
use std::collections::{HashMap, VecDeque};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::{Duration, Instant};
use testkit::netns::Namespace;

/// The machine behind the concentrator.
pub const BEHIND4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
pub const BEHIND6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 2);
/// The concentrator itself.
const GATEWAY6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const PORT: u16 = 4000;
const SUBSCRIBERS_PORT: u16 = 5000;

/// Packets that are on their way at most, each way: fewer than any queue on that way has room for.
const WINDOW: usize = 48;
/// After which one is lost.
const LOST: Duration = Duration::from_secs(15);
/// Octets of a payload that say which it is.
const NUMBER: usize = 8;

/// Ends of a flow: an address of a subscriber, and one of the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    pub inside: IpAddr,
    outside: usize,
}

/// A packet that is on its way.
#[derive(Debug)]
struct Sent {
    session: usize,
    leg: Leg,
    payload: Vec<u8>,
    at: Instant,
}

/// A packet that is to be sent.
#[derive(Debug)]
struct Wanted {
    session: usize,
    leg: Leg,
    is_up: bool,
}

#[derive(Debug)]
pub struct Traffic {
    /// Behind the concentrator, by IPv4 and by IPv6; at the concentrator.
    sockets: [(UdpSocket, SocketAddr); 3],
    up: HashMap<u64, Sent>,
    down: HashMap<u64, Sent>,
    wanted: VecDeque<Wanted>,
    /// What nobody may ever see, and what it was.
    forbidden: HashMap<u64, String>,
    number: u64,
    dice: Dice,
    pub carried: u64,
}

/// A packet that a subscriber is to send.
pub struct Upward {
    pub session: usize,
    pub packet: Vec<u8>,
}

impl Traffic {
    /// `far`: the concentrator's namespace, in which it serves already.
    pub fn new(far: &Namespace, behind: &Namespace, dice: Dice) -> Traffic {
        let scope = far.inside(|| std::fs::read_to_string("/sys/class/net/pppoe0/ifindex"));
        let scope = scope.expect("pppoe0").trim().parse().expect("a number");
        let gateway = SocketAddr::V6(SocketAddrV6::new(GATEWAY6, PORT, 0, scope));
        let bound = |namespace: &Namespace, address: SocketAddr| {
            let socket = namespace.bound(|| UdpSocket::bind(address)).expect("bound");
            socket.set_nonblocking(true).expect("a mode");
            (socket, address)
        };
        let sockets = [
            bound(behind, (BEHIND4, PORT).into()),
            bound(behind, (BEHIND6, PORT).into()),
            bound(far, gateway),
        ];
        Traffic {
            sockets,
            up: HashMap::new(),
            down: HashMap::new(),
            wanted: VecDeque::new(),
            forbidden: HashMap::new(),
            number: 0,
            dice,
            carried: 0,
        }
    }

    pub fn sockets(&self) -> impl Iterator<Item = &UdpSocket> {
        self.sockets.iter().map(|(socket, _)| socket)
    }

    /// What a session has to talk from now: its own addresses, and those of networks behind it.
    pub fn legs(session: &Session, route: Option<Ipv4Addr>, prefix: Option<Ipv6Addr>) -> Vec<Leg> {
        let mut legs = Vec::new();
        if session.ipcp.is_up() {
            let behind = route.map(|route| Ipv4Addr::from(u32::from(route) + 5));
            let inside = [Some(session.address), behind].into_iter().flatten();
            legs.extend(inside.map(|inside| Leg { inside: inside.into(), outside: 0 }));
        }
        if session.ipv6cp.is_up() {
            let own = Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(session.identifier));
            legs.push(Leg { inside: own.into(), outside: 2 });
            let host = prefix.map(|prefix| Ipv6Addr::from(u128::from(prefix) | 0x1234));
            legs.extend(host.map(|host| Leg { inside: host.into(), outside: 1 }));
        }
        legs
    }

    /// Wants packets to go both ways over each leg; how many.
    pub fn want(&mut self, session: usize, legs: &[Leg], each: usize) -> usize {
        for leg in legs {
            for is_up in [true, false].repeat(each) {
                self.wanted.push_back(Wanted { session, leg: *leg, is_up });
            }
        }
        legs.len() * each * 2
    }

    pub fn is_idle(&self) -> bool {
        self.wanted.is_empty() && self.up.is_empty() && self.down.is_empty()
    }

    /// Sends down what there is room for; what subscribers are to send.
    pub fn pump(&mut self, sessions: &[Session], now: Instant) -> Vec<Upward> {
        let mut upward = Vec::new();
        while self.up.len().max(self.down.len()) < WINDOW
            && let Some(Wanted { session, leg, is_up }) = self.wanted.pop_front()
        {
            let (payload, number) = self.payload(sessions[session].mtu() - headers(leg.inside.is_ipv4()));
            if is_up {
                let packet = udp(&self.datagram(leg, payload.clone()));
                upward.push(Upward { session, packet });
                self.up.insert(number, Sent { session, leg, payload, at: now });
                continue;
            }
            let (socket, own) = &self.sockets[leg.outside];
            let mut to = SocketAddr::new(leg.inside, SUBSCRIBERS_PORT);
            if let (SocketAddr::V6(to), SocketAddr::V6(own)) = (&mut to, own) {
                to.set_scope_id(own.scope_id());
            }
            socket.send_to(&payload, to).unwrap_or_else(|error| panic!("{to}: {error}"));
            self.down.insert(number, Sent { session, leg, payload, at: now });
        }
        upward
    }

    /// Octets that no other packet has: short ones, ones as long as may be, and others.
    fn payload(&mut self, longest: usize) -> (Vec<u8>, u64) {
        self.number += 1;
        let length = match self.dice.below(4) {
            0 => self.dice.below(8) as usize,
            1 => longest - NUMBER,
            _ => self.dice.below((longest - NUMBER) as u64) as usize,
        };
        let fill = self.dice.octets(length as u64);
        ([&self.number.to_be_bytes()[..], &fill].concat(), self.number)
    }

    fn datagram(&self, leg: Leg, payload: Vec<u8>) -> Datagram {
        let destination = self.sockets[leg.outside].1;
        Datagram {
            source: (leg.inside, SUBSCRIBERS_PORT),
            destination: (destination.ip(), destination.port()),
            payload,
        }
    }

    /// A packet that must not come through, since `what`.
    pub fn forbidden(&mut self, inside: IpAddr, what: String) -> Vec<u8> {
        let outside = if inside.is_ipv4() { 0 } else { 2 };
        let (payload, number) = self.payload(600);
        self.forbidden.insert(number, what);
        udp(&self.datagram(Leg { inside, outside }, payload))
    }

    /// Takes what reached the sockets; sessions from which something came, and octets of IP.
    pub fn arrived(&mut self) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let mut room = [0; 2048];
        for outside in 0..self.sockets.len() {
            loop {
                let (length, from) = match self.sockets[outside].0.recv_from(&mut room) {
                    Ok(received) => received,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => panic!("{error}"),
                };
                let payload = &room[..length];
                let number = number(payload).unwrap_or_else(|| panic!("{payload:02x?} from {from}"));
                if let Some(what) = self.forbidden.get(&number) {
                    panic!("a packet came through from {from}, which must not: {what}");
                }
                let sent = self.up.remove(&number);
                let sent = sent.unwrap_or_else(|| panic!("{payload:02x?} from {from}, twice or from nobody"));
                assert_eq!(sent.leg.outside, outside, "{sent:?}");
                assert_eq!((from.ip(), from.port()), (sent.leg.inside, SUBSCRIBERS_PORT), "{sent:?}");
                assert_eq!(payload, sent.payload, "other octets from {from}");
                self.carried += 1;
                all.push((sent.session, length + headers(from.is_ipv4())));
            }
        }
        all
    }

    /// Takes a packet that came out in a session; octets of it.
    pub fn came_down(&mut self, session: usize, packet: &[u8]) -> Result<usize, String> {
        let datagram = read_udp(packet)?;
        let number = number(&datagram.payload).ok_or("a packet of nobody")?;
        let sent = self.down.remove(&number).ok_or_else(|| format!("{datagram:?}, twice or of nobody"))?;
        if sent.session != session {
            return Err(format!("a packet for session {} of the tester's: {datagram:?}", sent.session));
        }
        let reversed = self.datagram(sent.leg, sent.payload);
        let expected = Datagram {
            source: reversed.destination,
            destination: reversed.source,
            payload: reversed.payload,
        };
        if datagram != expected {
            return Err(format!("{datagram:?} in the place of {expected:?}"));
        }
        self.carried += 1;
        Ok(packet.len())
    }

    /// The first packet that is lost.
    pub fn lost(&self, now: Instant) -> Option<(usize, String)> {
        let way = |way: &HashMap<u64, Sent>, name: &str| {
            let mut late = way.values().filter(|sent| now.duration_since(sent.at) > LOST);
            let sent = late.next()?;
            let length = sent.payload.len();
            Some((sent.session, format!("{name} its {:?}, {length} octets", sent.leg)))
        };
        way(&self.up, "from").or_else(|| way(&self.down, "to"))
    }
}

fn number(payload: &[u8]) -> Option<u64> {
    payload.first_chunk().map(|octets| u64::from_be_bytes(*octets))
}

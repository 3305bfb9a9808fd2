//! Frames through both routers, and what leaves them.

use super::ends::{End, Sent};
use super::flow::{Flow, TCP, markers};
use super::outcome::Outcome;
use super::packet::{ACK, Packet, SYN, echo, frame};
use super::router::{Kind, Pair, Side};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How a marker ends: this, who forwards it, and its number.
const MARKER: &[u8; 8] = b"rxl-mark";
const MARKER_LENGTH: usize = MARKER.len() + 9;
/// How long what one router has sent is awaited from the other.
const GRACE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(120);

/// IP protocol numbers, and the types of ICMP errors (RFC 792).
const ICMP: u8 = 1;
const FRAGMENT: u8 = 44;
const ICMP_ERRORS: [u8; 5] = [3, 4, 5, 11, 12];

/// A frame that left at an end, and how much more often from the kernel alone.
type Surplus = HashMap<(usize, Vec<u8>), i64>;

/// Both routers with the ends of their lines.
pub struct Exchange {
    kind: Kind,
    /// Of the kernel alone, and of the fast path.
    ends: [Vec<End>; 2],
    number: u64,
    surplus: Surplus,
}

impl Exchange {
    pub fn new(pair: &Pair, kind: Kind) -> Exchange {
        let ends = [pair.routers[0].ends(), pair.routers[1].ends()];
        Exchange { kind, ends, number: 0, surplus: Surplus::new() }
    }

    /// Markers that the program has forwarded since [`Exchange::establish`].
    pub fn fast_markers(&self) -> u64 {
        self.number
    }

    /// The first packets of connections. They are compared, too.
    pub fn establish(&mut self, flows: &[Flow]) {
        let mut outcome = Outcome::new(self.kind);
        for step in 0..3 {
            for at in self.kind.sides() {
                let first = |flow: &Flow| (at == Side::Wan) == (flow.is_inwards() == (step != 1));
                let is_here = |flow: &&Flow| at == Side::Wan || at == Side::Lan(flow.place);
                let frames: Vec<Sent> = flows
                    .iter()
                    .filter(is_here)
                    .filter(|flow| first(flow) && (step < 2 || flow.protocol == TCP))
                    .map(|flow| {
                        let flags = [SYN, SYN | ACK, ACK][step];
                        let packet = Packet { flags, ..Packet::of(flow, at, b"") };
                        Sent { bytes: frame(self.kind, at, &packet.bytes()), partial: None }
                    })
                    .collect();
                for piece in frames.chunks(64) {
                    self.pass(at, piece, false);
                    self.settle(piece, &mut outcome);
                }
            }
        }
        assert_eq!(outcome.differences, Vec::<String>::new(), "connections begin alike");
        self.number = 0;
    }

    /// Sends a batch to one side of both, and compares what leaves.
    pub fn send(&mut self, at: Side, batch: &[Sent], outcome: &mut Outcome) {
        self.pass(at, batch, true);
        if self.settle(batch, outcome) {
            return;
        }
        // Which of them was it?
        for one in batch.iter().filter(|_| batch.len() > 1) {
            if outcome.is_full() {
                return;
            }
            let one = std::slice::from_ref(one);
            self.pass(at, one, true);
            self.settle(one, outcome);
        }
    }

    /// Sends frames, and waits until markers behind them have left both routers.
    fn pass(&mut self, at: Side, batch: &[Sent], is_established: bool) {
        self.number += 1;
        let behind = self.markers(at, is_established);
        for ends in &mut self.ends {
            let end = &mut ends[at.place()];
            end.send(batch);
            end.send(&behind);
        }
        let expected = behind.len();
        let mut arrived = [0, 0];
        let start = Instant::now();
        while arrived != [expected; 2] {
            assert!(
                start.elapsed() < PATIENCE,
                "{arrived:?} of {expected} markers arrived: {:?}",
                self.surplus
            );
            let seen = self.receive();
            arrived = [arrived[0] + seen[0], arrived[1] + seen[1]];
            if arrived != [expected; 2] {
                self.wait();
            }
        }
    }

    /// One that the kernel forwards, and one of a connection.
    fn markers(&self, at: Side, is_established: bool) -> Vec<Sent> {
        let place = if let Side::Lan(place) = at { place } else { 0 };
        let (client, server) = markers(place);
        let (from, to) = if at == Side::Wan { (server, client) } else { (client, server) };
        let payload = |who: u8| [&MARKER[..], &[who], &self.number.to_be_bytes()].concat();
        let mut packets = vec![echo(from.ip(), to.ip(), &payload(0))];
        if is_established {
            let flow = Flow {
                nat: super::flow::Nat::None,
                protocol: super::flow::UDP,
                place,
                inside: (client, server),
                outside: (client, server),
            };
            packets.push(Packet::of(&flow, at, &payload(1)).bytes());
        }
        packets.iter().map(|packet| Sent { bytes: frame(self.kind, at, packet), partial: None }).collect()
    }

    /// Takes what has arrived; how many markers of this number were among it.
    fn receive(&mut self) -> [usize; 2] {
        let Exchange { kind, ends, number, surplus } = self;
        let mut markers = [0, 0];
        for (router, ends) in ends.iter_mut().enumerate() {
            for (place, end) in ends.iter_mut().enumerate() {
                end.receive(&mut |frame| {
                    if let Some(found) = marker(frame) {
                        markers[router] += usize::from(found == *number);
                    } else if let Some(frame) = comparable(*kind, place, frame) {
                        let key = (place, frame);
                        let count = surplus.entry(key.clone()).or_default();
                        *count += if router == 0 { 1 } else { -1 };
                        if *count == 0 {
                            surplus.remove(&key);
                        }
                    }
                });
            }
        }
        markers
    }

    fn wait(&self) {
        let ends = self.ends.iter().flatten();
        let mut sources: Vec<PollFd<'_>> = ends.map(|end| PollFd::new(end, PollFlags::IN)).collect();
        let limit = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let _ = poll(&mut sources, Some(&limit));
    }

    /// Waits until what left one router has left the other: frames of the program may leave after what the kernel forwards. What
    /// has not is a difference.
    fn settle(&mut self, batch: &[Sent], outcome: &mut Outcome) -> bool {
        let start = Instant::now();
        while !self.surplus.is_empty() {
            if start.elapsed() > GRACE {
                outcome.differ(batch, self.surplus.drain());
                return false;
            }
            self.wait();
            self.receive();
        }
        true
    }
}

/// Bytes before a packet that stands in no tag.
const ETHERNET: usize = 14;

/// The number of a marker.
fn marker(frame: &[u8]) -> Option<u64> {
    let tail = frame.last_chunk::<MARKER_LENGTH>()?;
    let (word, rest) = tail.split_first_chunk()?;
    (word == MARKER).then(|| rest.last_chunk().map(|number| u64::from_be_bytes(*number)))?
}

/// A frame without what differs between two machines that do the same. `None`: it was not forwarded.
fn comparable(kind: Kind, place: usize, frame: &[u8]) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    let at = if place == 0 { Side::Wan } else { Side::Lan(0) };
    let ip = kind.packet_at(at);
    // Reports of the router itself to which groups it belongs (RFC 3810), which it sends at times of its own: to ff02::16, by what
    // stands on the port and by the port itself.
    let report = [&[0xff, 2][..], &[0; 13], &[0x16]].concat();
    if [ip, ETHERNET].into_iter().any(|ip| frame.get(ip + 24..ip + 40) == Some(&report[..])) {
        return None;
    }
    let options = usize::from(frame.get(ip).map_or(0, |first| first & 15)) * 4;
    let kind = frame.get(ip + options).copied();
    if let Some(header) = frame.get_mut(ip..ip + 20)
        && header[0] >> 4 == 4
        && header[9] == ICMP
        && kind.is_some_and(|kind| ICMP_ERRORS.contains(&kind))
    {
        // The identification of the router's own ICMP errors is random (`ip_select_ident()`), and the checksum with it.
        header[4..6].fill(0);
        header[10..12].fill(0);
    }
    if let Some(header) = frame.get_mut(ip..ip + 48)
        && header[0] >> 4 == 6
        && header[6] == FRAGMENT
    {
        // conntrack puts fragments together, and what leaves in fragments again has a random identification
        // (`ipv6_select_ident()` in `ip6_fragment()` of net/ipv6/ip6_output.c).
        header[44..48].fill(0);
    }
    Some(frame)
}

//! The sender.

use super::{LONGEST, MOST_FLOWS, UdpError, failed, is_again, open, raise_descriptors, unspecified};
use crate::counts::Counts;
use crate::machine::Watched;
use crate::pace::{Pace, Pacing};
use crate::payload::{self, FlowId, HEADER, Header, Kind};
use crate::senders::Senders;
use crate::supervise::{EachSecond, Seen};
use crate::wire_size::Framing;
use kernel::socket::{Outgoing, udp};
use rustix::net::{bind, connect, sockopt};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

/// The beginning and the end of a flow are announced that often, each with so long a pause behind it. At the end the sink's buffer may
/// be full for a while.
const BEGIN: [Duration; 3] =
    [Duration::from_millis(10), Duration::from_millis(30), Duration::from_millis(10)];
const END: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(40),
    Duration::from_millis(150),
    Duration::from_millis(10),
];
/// What is due within this time is sent together; with segments each is more, and may wait longer.
const GRAIN: Duration = Duration::from_micros(100);
const SEGMENT_GRAIN: Duration = Duration::from_millis(1);
/// Segments that Linux cuts a message into at most (`UDP_MAX_SEGMENTS`: 64 until 6.8, 128 since).
const MOST_SEGMENTS: u16 = 64;
const ETHERNET_MTU: u64 = 1500;

#[derive(Clone, Debug, PartialEq)]
pub struct Sending {
    /// Where to, each from every source port.
    pub targets: Vec<SocketAddr>,
    /// Where from; `None`: as routes say.
    pub source: Option<IpAddr>,
    /// The first source port; `None`: any that are free.
    pub first_port: Option<u16>,
    /// Number of source ports; each makes a flow to each target.
    pub ports: u16,
    /// Threads; flows are distributed over them in turn.
    pub threads: u16,
    /// The CPU of each thread, in turn; none: whichever.
    pub cpus: Vec<u16>,
    /// Bytes of payload.
    pub payload: usize,
    /// Datagrams a second of all threads; `None`: as fast as they go.
    pub rate: Option<f64>,
    pub length: Option<Duration>,
    pub count: Option<u64>,
    /// Messages of one system call.
    pub batch: u16,
    /// Datagrams of one message, which the kernel or the card cuts (UDP GSO); 1: none.
    pub segments: u16,
    /// Bytes of tags and other encapsulation that the line adds to each frame.
    pub overhead: u64,
}

#[derive(Debug)]
pub struct Sent {
    pub counts: Counts,
    pub time: Duration,
    pub flows: u64,
    pub seen: Seen,
}

/// A socket that is connected, and what it has sent.
struct Flow {
    socket: OwnedFd,
    id: FlowId,
    next: u64,
    wire: u64,
}

impl Default for Sending {
    /// From one port that is free, as fast as it goes, until somebody ends it.
    fn default() -> Sending {
        Sending {
            targets: Vec::new(),
            source: None,
            first_port: None,
            ports: 1,
            threads: 1,
            cpus: Vec::new(),
            payload: HEADER,
            rate: None,
            length: None,
            count: None,
            batch: 64,
            segments: 1,
            overhead: 0,
        }
    }
}

impl Sending {
    pub fn check(&self) -> Result<(), UdpError> {
        let wrong = |text: String| Err(UdpError::Wrong(text));
        let flows = usize::from(self.ports) * self.targets.len();
        if self.targets.is_empty() || self.threads == 0 || self.batch == 0 || self.segments == 0 {
            return wrong(
                "targets, threads, messages of a system call and datagrams of a message are at least 1"
                    .to_owned(),
            );
        }
        if flows < usize::from(self.threads) {
            return wrong(format!(
                "{flows} flows (source ports times targets) are fewer than {} threads",
                self.threads
            ));
        }
        if flows > MOST_FLOWS {
            return wrong(format!("{flows} flows (source ports times targets); {MOST_FLOWS} are possible"));
        }
        if self.payload > LONGEST {
            return wrong(format!("a payload of {} bytes; a datagram has {LONGEST} at most", self.payload));
        }
        let message = self.payload * usize::from(self.segments);
        if self.segments > MOST_SEGMENTS || (self.segments > 1 && (message > LONGEST || self.payload == 0)) {
            return wrong(format!(
                "{} segments of {} bytes; a message has {MOST_SEGMENTS} at most, and {LONGEST} bytes",
                self.segments, self.payload
            ));
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e9)) {
            return wrong("a rate is more than 0 and at most 1,000,000,000 datagrams a second".to_owned());
        }
        let last = usize::from(self.first_port.unwrap_or(1)) + usize::from(self.ports.max(1)) - 1;
        if self.first_port == Some(0) || last > usize::from(u16::MAX) {
            return wrong(format!("{} source ports from this one on are more than there are", self.ports));
        }
        let is_v6 = |address: &IpAddr| address.is_ipv6();
        if let Some(source) = &self.source
            && let Some(other) = self.targets.iter().find(|target| is_v6(&target.ip()) != is_v6(source))
        {
            return wrong(format!("{source} and {other} are of different versions of IP"));
        }
        Ok(())
    }

    fn flows(&self) -> Result<Vec<Flow>, UdpError> {
        let pairs = (0..self.ports).flat_map(|port| self.targets.iter().map(move |target| (port, target)));
        raise_descriptors(usize::from(self.ports) * self.targets.len())?;
        // Of another sender at the same sink it differs, whoever started it.
        let run = RandomState::new().hash_one(std::process::id()) as u32;
        let flow = |(number, (port, target)): (u16, (u16, &SocketAddr))| {
            let socket = self.socket(port, target)?;
            let is_ipv6 = target.is_ipv6();
            let mtu = if is_ipv6 { sockopt::ipv6_mtu(&socket) } else { sockopt::ip_mtu(&socket) };
            let framing = Framing { mtu: mtu.map_or(ETHERNET_MTU, u64::from), overhead: self.overhead };
            let wire = framing.of_datagram(self.payload as u64, is_ipv6);
            Ok(Flow { socket, id: FlowId { run, flow: number }, next: 0, wire })
        };
        (0..).zip(pairs).map(flow).collect()
    }

    fn socket(&self, port: u16, target: &SocketAddr) -> Result<OwnedFd, UdpError> {
        let socket = open(target.ip())?;
        let own = SocketAddr::new(
            self.source.unwrap_or_else(|| unspecified(target)),
            self.first_port.map_or(0, |first| first + port),
        );
        if self.first_port.is_some() {
            // One to each target.
            sockopt::set_socket_reuseport(&socket, true).map_err(failed("share a port"))?;
        }
        bind(&socket, &own).map_err(failed(format!("send from {own}")))?;
        connect(&socket, target).map_err(failed(format!("send to {target}")))?;
        if self.segments > 1 {
            udp::set_segment(&socket, self.payload as u16)
                .map_err(failed("segment datagrams (UDP_SEGMENT)"))?;
        }
        Ok(socket)
    }
}

/// Sends, until it has sent all, or the time is over, or `stop` is set. Error: what was requested cannot be, or the kernel
/// refuses it for another reason than that nobody listens, that there is no way or no room, which are counted.
pub fn send(
    sending: &Sending,
    machine: Option<Watched>,
    stop: &AtomicBool,
    each_second: &mut EachSecond<'_>,
) -> Result<Sent, UdpError> {
    sending.check()?;
    let threads = usize::from(sending.threads);
    let mut shares: Vec<Vec<Flow>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, flow) in sending.flows()?.into_iter().enumerate() {
        if let Some(share) = shares.get_mut(number % threads) {
            share.push(flow);
        }
    }
    let flows = shares.iter().map(Vec::len).sum::<usize>() as u64;
    let grain = if sending.segments > 1 { SEGMENT_GRAIN } else { GRAIN };
    let Sending { cpus, payload, .. } = sending;
    let pacing = Pacing { rate: sending.rate, length: sending.length, count: sending.count, grain };
    let senders = Senders { cpus, pacing };
    let jobs = shares.into_iter().map(|flows| (1.0 / threads as f64, flows)).collect();
    let total =
        senders.run(jobs, machine, stop, each_second, |mut flows: Vec<Flow>, sender, end, shared| {
            let mut messages = Messages::new(sending);
            let mut turn = 0;
            let begin = |flows: &mut Vec<Flow>| {
                announce(flows, |flow| Header { kind: Kind::Begin, id: flow.id, sequence: 0 }, &BEGIN);
            };
            let sent = sender.pace::<_, UdpError>(
                (messages.most, end, shared),
                &mut flows,
                begin,
                |flows, due, pace, counts| {
                    let number = flows.len();
                    let Some(flow) = flows.get_mut(turn) else { return Ok(()) };
                    turn = (turn + 1) % number;
                    match messages.send(flow, due) {
                        Ok(sent) => {
                            pace.sent(sent);
                            counts.packets += sent;
                            counts.bytes += sent * *payload as u64;
                            counts.wire += sent * flow.wire;
                            Ok(())
                        }
                        Err(error) => note(counts, (pace, due), error, sending),
                    }
                },
            )?;
            Ok::<_, UdpError>((sent, flows))
        })?;
    let ended: Vec<Flow> = total.each.into_iter().flatten().collect();
    announce(&ended, |flow| end_of(flow, sending), &END);
    Ok(Sent { counts: total.counts, time: total.time, flows, seen: total.seen })
}

/// What the end of a flow announces. Of datagrams without numbers a sink could not know how many of them came.
fn end_of(flow: &Flow, sending: &Sending) -> Header {
    let sequence = if sending.payload >= HEADER { flow.next } else { 0 };
    Header { kind: Kind::End, id: flow.id, sequence }
}

/// Announces something of each flow some times, since one may be lost.
fn announce(flows: &[Flow], header: impl Fn(&Flow) -> Header, pauses: &[Duration]) {
    for pause in pauses {
        for flow in flows {
            // One that does not arrive is what the others are for; what is wrong with the way, data will find.
            let _ = rustix::net::send(&flow.socket, &header(flow).bytes(), rustix::net::SendFlags::DONTWAIT);
        }
        thread::sleep(*pause);
    }
}

/// Counts an error that may pass, of so many datagrams that were due.
fn note(
    counts: &mut Counts,
    (pace, due): (&mut Pace, u64),
    error: io::Error,
    sending: &Sending,
) -> Result<(), UdpError> {
    let slow_down = || thread::sleep(Duration::from_millis(1));
    match error.raw_os_error() {
        // The answer to a datagram before this one, which was not sent (udp(7)).
        Some(libc::ECONNREFUSED) => counts.refused += 1,
        Some(libc::EHOSTUNREACH | libc::ENETUNREACH) => {
            counts.unreachable += 1;
            // A way that is not there is no want of time.
            pace.missed(due);
            slow_down();
        }
        Some(libc::ENOBUFS) => counts.no_room += 1,
        _ if is_again(&error) => {}
        Some(libc::EMSGSIZE | libc::EINVAL) if sending.segments > 1 => {
            return Err(UdpError::Wrong(format!(
                "segments of {} bytes of payload do not fit the MTU: {error}",
                sending.payload
            )));
        }
        _ => return Err(failed(format!("send datagrams of {} bytes", sending.payload))(error)),
    }
    Ok(())
}

struct Messages {
    outgoing: Outgoing<1>,
    /// The datagrams, each message in a place of its own.
    places: Vec<u8>,
    payload: usize,
    segments: u64,
    most: u64,
}

impl Messages {
    fn new(sending: &Sending) -> Messages {
        let segments = usize::from(sending.segments);
        // The kernel takes 1024 at most (`UIO_MAXIOV`).
        let batch = usize::from(sending.batch.min(1024));
        let mut places = vec![0; batch * segments * sending.payload];
        places.chunks_mut(sending.payload.max(1)).for_each(payload::prepare);
        let (outgoing, most) = (Outgoing::new(batch), (batch * segments) as u64);
        Messages { outgoing, places, payload: sending.payload, segments: segments as u64, most }
    }

    /// Sends the next `count` datagrams of a flow, at most as many as there is room for, and gives how many were sent.
    fn send(&mut self, flow: &mut Flow, count: u64) -> io::Result<u64> {
        let count = count.min(self.most);
        if self.payload >= HEADER {
            self.number(flow, count);
        }
        let (payload, segments) = (self.payload, self.segments);
        let messages = count.div_ceil(segments);
        // Of datagrams without bytes there are no places.
        let mut places = self.places.chunks_exact((segments as usize * payload).max(1));
        let message = |message: u64| {
            let length = (count - message * segments).min(segments) as usize * payload;
            [places.next().and_then(|place| place.get(..length)).unwrap_or_default()]
        };
        let sent = self.outgoing.send(&flow.socket, (0..messages).map(message))? as u64;
        let sent = (sent * segments).min(count);
        flow.next += sent;
        Ok(sent)
    }

    fn number(&mut self, flow: &Flow, count: u64) {
        let numbers = flow.next..flow.next + count;
        for (sequence, datagram) in numbers.zip(self.places.chunks_exact_mut(self.payload)) {
            let bytes = Header { kind: Kind::Data, id: flow.id, sequence }.bytes();
            datagram.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
        }
    }
}

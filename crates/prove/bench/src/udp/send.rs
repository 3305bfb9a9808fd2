//! The sender.

use super::{LONGEST, MOST_FLOWS, UdpError, failed, is_again, open, raise_descriptors, unspecified};
use crate::counts::{Counts, Shared};
use crate::gate::Gate;
use crate::machine::Watched;
use crate::pace::{Pace, sharpen_sleeps};
use crate::payload::{self, FlowId, HEADER, Header, Kind};
use crate::pin::pin;
use crate::report::Interval;
use crate::supervise::{EachSecond, Seen, Supervisor};
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

/// The beginning and the end of a flow are told that often, each with so long a pause behind it. At the end the sink's buffer may
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
/// Where the kernel does not tell the MTU.
const ETHERNET_MTU: u64 = 1500;

/// What to send.
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
    /// Threads; flows are dealt to them in turn.
    pub threads: u16,
    /// The CPU of each thread, in turn; none: whichever.
    pub cpus: Vec<u16>,
    /// Bytes of payload.
    pub payload: usize,
    /// Datagrams a second of all threads; `None`: as fast as they go.
    pub rate: Option<f64>,
    /// For how long.
    pub length: Option<Duration>,
    /// How many datagrams.
    pub count: Option<u64>,
    /// Messages of one system call.
    pub batch: u16,
    /// Datagrams of one message, which the kernel or the card cuts (UDP GSO); 1: none.
    pub segments: u16,
    /// Bytes of tags and other encapsulation that the line adds to each frame.
    pub overhead: u64,
}

/// What was sent.
#[derive(Debug)]
pub struct Sent {
    /// What was counted, by all threads.
    pub counts: Counts,
    /// From the first datagram to the end.
    pub time: Duration,
    /// Flows.
    pub flows: u64,
    /// What was seen meanwhile.
    pub seen: Seen,
}

/// A socket that is connected, and what it has sent.
struct Flow {
    socket: OwnedFd,
    id: FlowId,
    next: u64,
    wire: u64,
}

/// The flows of a thread.
struct Job<'a> {
    sending: &'a Sending,
    flows: Vec<Flow>,
    cpu: Option<u16>,
    rate: Option<f64>,
    count: Option<u64>,
    /// All begin together.
    gate: &'a Gate,
}

/// What a thread has sent.
struct Done {
    counts: Counts,
    time: Duration,
    flows: Vec<Flow>,
}

impl Sending {
    /// Whether it can be.
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

/// Sends, until it has sent all, or the time is over, or `stop` is set. Error: what was asked for cannot be, or the kernel
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
    let gate = Gate::new(threads + 1);
    let job = |(number, flows): (usize, Vec<Flow>)| Job {
        sending,
        flows,
        cpu: sending.cpus.get(number % sending.cpus.len().max(1)).copied(),
        rate: sending.rate.map(|rate| rate / threads as f64),
        count: sending.count.map(|count| share_of(count, number as u64, threads as u64)),
        gate: &gate,
    };
    let jobs = shares.into_iter().enumerate().map(job).collect();
    let each_second = &mut |interval: &Interval| each_second(interval);
    let supervisor =
        Supervisor { stop, length: None, is_done: &|_| false, ready: Some(&gate), machine, each_second };
    let (done, seen) = supervisor.run(jobs, Job::run)?;
    let counts = done.iter().fold(Counts::default(), |sum, done| sum.plus(&done.counts));
    let time = done.iter().map(|done| done.time).max().unwrap_or_default();
    let ended: Vec<Flow> = done.into_iter().flat_map(|done| done.flows).collect();
    tell(&ended, |flow| end_of(flow, sending), &END);
    Ok(Sent { counts, time, flows, seen })
}

/// What is left over goes to the first.
pub fn share_of(count: u64, number: u64, of: u64) -> u64 {
    count / of + u64::from(number < count % of)
}

impl Job<'_> {
    fn run(mut self, end: &AtomicBool, shared: &Shared) -> Result<Done, UdpError> {
        let pinned = self.cpu.map_or(Ok(()), |cpu| pin(cpu).map_err(|cause| UdpError::Cpu { cpu, cause }));
        sharpen_sleeps();
        tell(&self.flows, |flow| Header { kind: Kind::Begin, id: flow.id, sequence: 0 }, &BEGIN);
        // Whatever became of this one, the others wait for it.
        let start = self.gate.pass();
        pinned?;
        let sending = self.sending;
        let grain = if sending.segments > 1 { SEGMENT_GRAIN } else { GRAIN };
        let mut pace = Pace::from(start, self.rate, grain, sending.length, self.count);
        let mut messages = Messages::new(sending);
        let mut counts = Counts::default();
        let mut turn = 0;
        while let Some(due) = pace.next(messages.most, end) {
            let count = self.flows.len();
            let Some(flow) = self.flows.get_mut(turn) else { break };
            turn = (turn + 1) % count;
            match messages.send(flow, due) {
                Ok(sent) => {
                    pace.sent(sent);
                    counts.packets += sent;
                    counts.bytes += sent * sending.payload as u64;
                    counts.wire += sent * flow.wire;
                }
                Err(error) => note(&mut counts, (&mut pace, due), error, sending)?,
            }
            counts.skipped = pace.skipped();
            shared.publish(&counts);
        }
        let time = pace.started().elapsed();
        counts.skipped = pace.skipped();
        shared.conclude(&counts);
        Ok(Done { counts, time, flows: self.flows })
    }
}

/// What the end of a flow tells. Of datagrams without numbers a sink could not tell how many of them came.
fn end_of(flow: &Flow, sending: &Sending) -> Header {
    let sequence = if sending.payload >= HEADER { flow.next } else { 0 };
    Header { kind: Kind::End, id: flow.id, sequence }
}

/// Tells something of each flow some times, since one may be lost.
fn tell(flows: &[Flow], header: impl Fn(&Flow) -> Header, pauses: &[Duration]) {
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

/// Room for the datagrams of one call.
struct Messages {
    outgoing: Outgoing<1>,
    /// The datagrams, each message in a place of its own.
    places: Vec<u8>,
    payload: usize,
    segments: u64,
    /// Datagrams of a call.
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

//! The sink.

use super::{MOST_FLOWS, PORT, UdpError, failed, is_again, open};
use crate::counts::{Counts, Shared, Span};
use crate::machine::Watched;
use crate::pace::sharpen_sleeps;
use crate::payload::{self, FlowId, Header, Kind, Read};
use crate::pin::{cpu_of, pin};
use crate::report::{Interval, Rates};
use crate::sequence::{Flow, Seen as Order};
use crate::supervise::{EachSecond, Seen, Supervisor};
use crate::wire_size::Framing;
use foldhash::fast::RandomState;
use kernel::socket::{Incoming, Message, udp};
use rustix::net::{bind, sockopt};
use std::cell::Cell;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Messages of one system call, and bytes of each that are copied: with GRO all, since each datagram has a header.
const BATCH: usize = 64;
const HEAD: usize = 64;
const COALESCED_BATCH: usize = 16;
const COALESCED: usize = 1 << 16;
/// A run has ended for [`Receiving::once`] when nothing was heard for this time after its end.
const QUIET: Duration = Duration::from_millis(200);
/// How long what waits in a socket is taken after the end.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long a thread lets datagrams gather that come at most [`DENSE`] apart on the mean: they are not each worth waking it,
/// which the CPU that delivers them has to do. The least buffer in use, 208 KiB, has room for 90 of 1472 bytes.
const GATHER: Duration = Duration::from_micros(50);
const DENSE: Duration = Duration::from_micros(20);

/// How long what waited in a socket before its thread looked, and no longer, is taken apart from what comes: a thread that is slower
/// than what comes finds full batches for ever.
const SETTLED: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, PartialEq)]
pub struct Receiving {
    /// Where; an unspecified IPv6 address takes IPv4 as well.
    pub address: SocketAddr,
    /// Threads, each with a socket of its own (`SO_REUSEPORT`): the kernel deals flows to them.
    pub threads: u16,
    /// The CPU of each thread, in turn; none: whichever.
    pub cpus: Vec<u16>,
    /// Bytes that may wait in each socket; `None`: what the system gives.
    pub buffer: Option<usize>,
    /// Whether the kernel may give several datagrams as one (UDP GRO).
    pub coalesce: bool,
    pub length: Option<Duration>,
    /// Whether it ends when all flows that were heard of have ended.
    pub once: bool,
    pub framing: Framing,
}

#[derive(Debug)]
pub struct Listening(Vec<OwnedFd>);

#[derive(Debug)]
pub struct Received {
    pub counts: Counts,
    pub by_thread: Vec<u64>,
    /// When something came; `None`: nothing did.
    pub span: Option<Span>,
    /// Datagrams before the first that came of a flow whose beginning was not seen.
    pub before_first: u64,
    /// Datagrams for which the sockets had no room; `None`: the kernel does not report it.
    pub socket_drops: Option<u64>,
    /// Bytes that could wait in each socket, as the kernel counts them.
    pub buffer: usize,
    pub seen: Seen,
}

impl Received {
    /// From the first datagram to the last.
    pub fn rates(&self) -> Option<Rates> {
        let span = self.span?;
        Rates::of(&self.counts, span.last - span.first, span.at_first)
    }
}

struct Taken {
    counts: Counts,
    span: Option<Span>,
    flows: HashMap<FlowId, Flow, RandomState>,
}

/// Receives in these sockets until the time is over, or `stop` is set, or what was sent has ended. Error: the kernel refuses to
/// receive, or a CPU.
pub fn receive(
    receiving: &Receiving,
    Listening(sockets): Listening,
    machine: Option<Watched>,
    stop: &AtomicBool,
    each_second: &mut EachSecond<'_>,
) -> Result<Received, UdpError> {
    let buffer = sockets.first().and_then(|socket| sockopt::socket_recv_buffer_size(socket).ok());
    let drops = || sockets.iter().map(|socket| Some(u64::from(udp::drops(socket).ok()?))).sum();
    // Whoever sends from then on is not heard any more, and has no beginning in the counts.
    let all_ended = AtomicBool::new(false);
    let jobs = sockets.iter().enumerate().collect();
    let take = |(number, socket): (usize, &OwnedFd), end: &AtomicBool, shared: &Shared| {
        pin(cpu_of(&receiving.cpus, number))?;
        take(receiving, socket, (end, &all_ended), shared)
    };
    let once = Once::default();
    let is_done = |counts: &Counts| {
        let is_done = receiving.once && once.is_done(counts);
        all_ended.fetch_or(is_done, Ordering::Relaxed);
        is_done
    };
    let each_second = &mut |interval: &Interval| each_second(interval);
    let length = receiving.length;
    let supervisor = Supervisor { stop, length, is_done: &is_done, ready: None, machine, each_second };
    let (taken, seen) = supervisor.run(jobs, take)?;
    let spans = taken.iter().filter_map(|taken| Some((taken.span?, taken.counts.packets)));
    let span = Span::of_all(&spans.collect::<Vec<_>>());
    let counts = taken.iter().fold(Counts::default(), |sum, taken| sum.plus(&taken.counts));
    let by_thread = taken.iter().map(|taken| taken.counts.packets).collect();
    let flows = joined(taken);
    // Forged numbers may be of any size.
    let total = |of: fn(&Flow) -> u64| flows.values().map(of).fold(0, u64::saturating_add);
    let counts = Counts {
        expected: total(Flow::expected),
        missing: total(Flow::missing),
        flows: flows.len() as u64,
        ended: flows.values().filter(|flow| flow.has_ended()).count() as u64,
        ..counts
    };
    let before_first = total(Flow::before_first);
    let (socket_drops, buffer) = (drops(), buffer.unwrap_or(0));
    Ok(Received { counts, by_thread, span, before_first, socket_drops, buffer, seen })
}

/// While the sockets were opened one after the other, flows may have changed from one to the next.
fn joined(taken: Vec<Taken>) -> HashMap<FlowId, Flow, RandomState> {
    let mut all: HashMap<FlowId, Flow, RandomState> = HashMap::default();
    for (id, flow) in taken.into_iter().flat_map(|taken| taken.flows) {
        match all.get_mut(&id) {
            Some(known) => known.join(&flow),
            None => drop(all.insert(id, flow)),
        }
    }
    all
}

/// Whether all flows have ended and nothing came since.
#[derive(Default)]
struct Once(Cell<Option<(Instant, Counts)>>);

impl Once {
    fn is_done(&self, counts: &Counts) -> bool {
        if counts.ended == 0 || counts.ended < counts.flows {
            self.0.set(None);
            return false;
        }
        match self.0.get() {
            Some((since, then)) if then == *counts => since.elapsed() >= QUIET,
            _ => {
                self.0.set(Some((Instant::now(), *counts)));
                false
            }
        }
    }
}

impl Default for Receiving {
    /// By one thread on [`PORT`], until somebody ends it.
    fn default() -> Receiving {
        Receiving {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)),
            threads: 1,
            cpus: Vec::new(),
            buffer: None,
            coalesce: false,
            length: None,
            once: false,
            framing: Framing { mtu: 1500, overhead: 0 },
        }
    }
}

impl Receiving {
    /// A socket for each thread, all of which have the same port. Error: the address or port cannot be had.
    pub fn listen(&self) -> Result<Listening, UdpError> {
        if self.threads == 0 {
            return Err(UdpError::Wrong("threads are at least 1".to_owned()));
        }
        let share = |socket: &OwnedFd| {
            sockopt::set_socket_reuseport(socket, true).map_err(failed("share a port (SO_REUSEPORT)"))
        };
        let mut sockets = Vec::new();
        for number in 0..self.threads {
            let (socket, address) = self.socket()?;
            // The first has the port alone: another sink would share it with this one, and each would get some of the
            // flows. Sharing begins behind its bind(2).
            if number > 0 {
                share(&socket)?;
            }
            bind(&socket, &address).map_err(failed(format!("receive on {address}")))?;
            if number == 0 {
                share(&socket)?;
            }
            sockets.push(socket);
        }
        Ok(Listening(sockets))
    }

    /// A socket with everything but its port.
    fn socket(&self) -> Result<(OwnedFd, SocketAddr), UdpError> {
        let mut address = self.address;
        let socket = match open(address.ip()) {
            // A kernel without IPv6 has IPv4.
            Err(error)
                if address.ip().is_unspecified()
                    && error.cause().and_then(std::io::Error::raw_os_error) == Some(libc::EAFNOSUPPORT) =>
            {
                address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
                open(address.ip())?
            }
            socket => socket?,
        };
        if address.is_ipv6() {
            let only = !address.ip().is_unspecified();
            sockopt::set_ipv6_v6only(&socket, only).map_err(failed("take IPv4 as well"))?;
        }
        if let Some(bytes) = self.buffer {
            // Beyond the limit of the system only with CAP_NET_ADMIN; else as much as it allows.
            if sockopt::set_socket_recv_buffer_size_force(&socket, bytes).is_err() {
                let set = sockopt::set_socket_recv_buffer_size(&socket, bytes);
                set.map_err(failed("set the buffer"))?;
            }
        }
        if self.coalesce {
            udp::set_gro(&socket).map_err(failed("take several datagrams as one (UDP_GRO)"))?;
        }
        Ok((socket, address))
    }
}

/// Receives in a socket until the end. Nothing waits any more that was sent in time when all flows have ended.
fn take(
    receiving: &Receiving,
    socket: &OwnedFd,
    (end, all_ended): (&AtomicBool, &AtomicBool),
    shared: &Shared,
) -> Result<Taken, UdpError> {
    let (batch, room) = if receiving.coalesce { (COALESCED_BATCH, COALESCED) } else { (BATCH, HEAD) };
    let mut incoming = Incoming::new(batch, room);
    let mut tally = Tally::new(receiving.framing);
    sharpen_sleeps();
    let mut looked = Instant::now();
    // What waits in the socket at the end has arrived as well.
    let mut last = None;
    loop {
        if end.load(Ordering::Relaxed)
            && (all_ended.load(Ordering::Relaxed)
                || last.get_or_insert_with(Instant::now).elapsed() > PATIENCE)
        {
            break;
        }
        match incoming.wait(socket) {
            Ok(count) => {
                tally.take(incoming.messages(), count == batch);
                let since = std::mem::replace(&mut looked, Instant::now());
                let gathers = !receiving.coalesce && count < batch && last.is_none();
                if gathers && looked - since < DENSE * count as u32 {
                    thread::sleep(GATHER);
                }
            }
            Err(error) if !is_again(&error) => return Err(failed("receive")(error)),
            Err(_) if last.is_some() => break,
            Err(_) => {}
        }
        shared.publish(&tally.taken.counts);
    }
    shared.conclude(&tally.taken.counts);
    Ok(tally.concluded())
}

struct Tally {
    taken: Taken,
    /// From what came first of all, as long as that may have waited before this thread looked.
    waited: Option<Span>,
    framing: Framing,
    /// Bytes of the last datagram, its version, and what it took on the line.
    last: (usize, bool, u64),
}

impl Tally {
    fn new(framing: Framing) -> Tally {
        let taken = Taken { counts: Counts::default(), span: None, flows: HashMap::default() };
        Tally { taken, waited: None, framing, last: (0, false, framing.of_datagram(0, false)) }
    }

    /// `may_more_wait`: there were as many as could be taken.
    fn take<'m>(&mut self, messages: impl Iterator<Item = Message<'m>>, may_more_wait: bool) {
        let before = self.taken.counts.packets;
        for message in messages {
            match message.control().segment {
                Some(segment) if segment < message.length => self.several(&message, segment),
                _ => self.one(message.bytes, message.length, message.is_ipv6()),
            }
        }
        let count = self.taken.counts.packets - before;
        if count > 0 {
            self.extend(Instant::now(), count, may_more_wait);
        }
    }

    fn extend(&mut self, now: Instant, count: u64, may_more_wait: bool) {
        let from_now = |at_first| Span { first: now, at_first, last: now };
        if self.taken.span.is_none() {
            self.waited = Some(from_now(count));
        }
        let waited = self.waited.filter(|waited| may_more_wait && now - waited.first < SETTLED);
        self.waited = waited.map(|waited| Span { last: now, ..waited });
        let span = self.taken.span.get_or_insert(from_now(count));
        *span = match waited {
            Some(_) => from_now(self.taken.counts.packets),
            None => Span { last: now, ..*span },
        };
    }

    fn concluded(self) -> Taken {
        // All that came was there at once, and nothing says when it came.
        Taken { span: self.waited.or(self.taken.span), ..self.taken }
    }

    /// What the kernel put together has one length but for the last (udp(7)).
    fn several(&mut self, message: &Message<'_>, segment: usize) {
        for start in (0..message.length).step_by(segment) {
            let length = segment.min(message.length - start);
            let bytes = message.bytes.get(start..).unwrap_or_default();
            self.one(bytes.get(..length).unwrap_or(bytes), length, message.is_ipv6());
        }
    }

    fn one(&mut self, bytes: &[u8], length: usize, is_ipv6: bool) {
        let read = payload::read(bytes);
        if let Read::Numbered(header) = read
            && header.kind != Kind::Data
        {
            return self.mark_boundary(&header);
        }
        if (length, is_ipv6) != (self.last.0, self.last.1) {
            self.last = (length, is_ipv6, self.framing.of_datagram(length as u64, is_ipv6));
        }
        let counts = &mut self.taken.counts;
        counts.packets += 1;
        counts.bytes += length as u64;
        counts.wire += self.last.2;
        match read {
            Read::Numbered(header) => self.numbered(&header),
            Read::Unnumbered => counts.unnumbered += 1,
            Read::Foreign => counts.foreign += 1,
        }
    }

    fn numbered(&mut self, header: &Header) {
        let is_known = self.change(header, |flow, counts| match flow.take(header.sequence) {
            Order::Next => {}
            Order::Reordered => counts.reordered += 1,
            Order::Duplicate => counts.duplicates += 1,
            Order::TooLate => counts.too_late += 1,
            Order::Implausible => counts.foreign += 1,
        });
        if !is_known {
            self.taken.counts.foreign += 1;
        }
    }

    /// The beginning or the end of a flow.
    fn mark_boundary(&mut self, header: &Header) {
        self.change(header, |flow, counts| match header.kind {
            Kind::Begin => flow.begin(),
            Kind::End => counts.ended += u64::from(flow.end(header.sequence)),
            Kind::Data => {}
        });
    }

    /// Changes the flow of a header; one that was not heard of begins with its number. `false`: there are too many.
    fn change(&mut self, header: &Header, change: impl FnOnce(&mut Flow, &mut Counts)) -> bool {
        let Taken { counts, flows, .. } = &mut self.taken;
        if flows.len() >= MOST_FLOWS && !flows.contains_key(&header.id) {
            return false;
        }
        let flow = flows.entry(header.id).or_insert_with(|| {
            counts.flows += 1;
            Flow::starting(header.sequence)
        });
        let (expected, missing) = (flow.expected(), flow.missing());
        change(flow, counts);
        counts.expected += flow.expected() - expected;
        counts.missing = (counts.missing + flow.missing()).saturating_sub(missing);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// The span of batches at these milliseconds, so many each, where all but the last `not_full` are full.
    fn span(batches: &[(u32, u64)], not_full: usize) -> (u128, u64, u128) {
        let mut tally = Tally::new(Framing { mtu: 1500, overhead: 0 });
        let start = Instant::now();
        for (number, (at, count)) in batches.iter().enumerate() {
            tally.taken.counts.packets += count;
            tally.extend(start + *at * MILLISECOND, *count, number + not_full < batches.len());
        }
        let span = tally.concluded().span.expect("something came");
        ((span.first - start).as_millis(), span.at_first, (span.last - start).as_millis())
    }

    #[test]
    fn time_counts_from_when_nothing_waits_any_more() {
        // What comes after full batches has come since the last of them.
        assert_eq!(span(&[(1, 64), (2, 64), (5, 3), (9, 64)], 2), (2, 128, 9));
        assert_eq!(span(&[(1, 3), (2, 64), (5, 64)], 3), (1, 3, 5));
        // A thread that is too slow is measured all the same, and what came at once, too.
        assert_eq!(span(&[(1, 64), (40, 64), (51, 64), (90, 64)], 0), (40, 128, 90));
        assert_eq!(span(&[(1, 64), (2, 64), (3, 64)], 0), (1, 64, 3));
    }
}

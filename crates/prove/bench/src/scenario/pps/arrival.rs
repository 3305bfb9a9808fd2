//! Datagrams that arrive on an interface for a while, and what the NIC and the CPUs did meanwhile.

use super::super::cpu_time::Spent;
use super::super::{Error, Measured, Tools};
use super::interface::no_load;
use crate::machine::{Usage, Watched};
use crate::pin;
use crate::request::{self, Answer, AskError, Request};
use crate::supervise::{ThreadError, joined, started};
use crate::udp::{self, Listening, PORT, Received, Receiving};
use crate::wire_size::Framing;
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const BUFFER: usize = 4 << 20;
/// What is on its way when the sender ends is waited for.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
/// How long a link that was reset has to come up, and load that comes by itself to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an interface that is not there may take to come back: a driver that is loaded anew takes its own away for a moment.
const AWAY: Duration = Duration::from_secs(2);
/// For so long at a time it waits for something to arrive.
const WAIT: Duration = Duration::from_millis(200);

/// Metrics of the queues, by their number.
pub const QUEUES: [&str; 16] = [
    "queue_0", "queue_1", "queue_2", "queue_3", "queue_4", "queue_5", "queue_6", "queue_7", "queue_8",
    "queue_9", "queue_10", "queue_11", "queue_12", "queue_13", "queue_14", "queue_15",
];

#[derive(Debug)]
pub struct Arrival<'a> {
    pub interface: &'a str,
    /// Where load is requested; `None`: it comes by itself.
    pub from: Option<SocketAddr>,
    /// Bytes of payload of what is requested.
    pub payload: u16,
    pub flows: u16,
    pub senders: u16,
    /// Threads that receive, each with a socket of its own.
    pub receivers: u16,
}

impl Arrival<'_> {
    /// Receives for as long as a measurement takes.
    pub fn measure(&self, tools: &Tools<'_>) -> Result<Measured, Error> {
        await_carrier(self.interface, tools)?;
        let (received, answer, frames, missed) = match self.from {
            Some(from) => self.requested(from, tools)?,
            None => self.by_itself(tools)?,
        };
        if tools.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        figures(&received, answer, frames, missed)
    }

    /// Requests load, and receives until it was sent.
    fn requested(&self, from: SocketAddr, tools: &Tools<'_>) -> Result<Observation, Error> {
        let receiving = self.receiving(None)?;
        let listening = receiving.listen()?;
        let request = Request::new(PORT, self.payload.into(), self.flows, self.senders, tools.seconds);
        let over = AtomicBool::new(false);
        let before = counters(self.interface);
        let watched = watched(self.interface)?;
        let (answer, received) = thread::scope(|scope| {
            let asking = started(scope, || {
                let answer = request::ask(from, &request, tools.stop);
                thread::sleep(ON_ITS_WAY);
                over.store(true, Ordering::Relaxed);
                answer
            })?;
            let received = receive(&receiving, listening, Some(watched), &over);
            Ok::<_, ThreadError>((joined(asking), received))
        })?;
        let (frames, missed) = counted_since(before, self.interface);
        let answer = answer.map_err(|error| match error {
            // It answered before: the error is that of this cell.
            AskError::Nobody { .. } => Error::Failed(error.to_string()),
            error => no_load(error),
        })?;
        Ok((received?, Some(answer), frames, missed))
    }

    /// Waits until something arrives, and receives for a while.
    fn by_itself(&self, tools: &Tools<'_>) -> Result<Observation, Error> {
        let short = self.receiving(Some(WAIT))?;
        let probe = || {
            let received = receive(&short, short.listen()?, None, tools.stop)?;
            Ok((received.counts.packets > 0).then_some(()))
        };
        tools.wait_for(PATIENCE, probe)?.ok_or_else(|| {
            Error::Failed(format!(
                "nothing arrives on UDP port {PORT} within {} s: start rxlane bench send on another host, or name \
                 one with --from",
                PATIENCE.as_secs()
            ))
        })?;
        let receiving = self.receiving(Some(tools.seconds))?;
        let listening = receiving.listen()?;
        let before = counters(self.interface);
        let received = receive(&receiving, listening, Some(watched(self.interface)?), tools.stop)?;
        let (frames, missed) = counted_since(before, self.interface);
        Ok((received, None, frames, missed))
    }

    fn receiving(&self, length: Option<Duration>) -> Result<Receiving, Error> {
        let link = kernel::netlink::link_by_name(self.interface);
        let link = link.map_err(|error| Error::Failed(format!("{}: {error}", self.interface)))?;
        Ok(Receiving {
            address: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), PORT),
            threads: self.receivers,
            // From the last on: vectors are often on the first.
            cpus: pin::allowed().into_iter().rev().collect(),
            buffer: Some(BUFFER),
            length,
            framing: Framing { mtu: link.mtu.into(), overhead: 0 },
            ..Receiving::default()
        })
    }
}

/// What was received, what was sent where that is reported, frames of the interface, and those for which the card had no room.
type Observation = (Received, Option<Answer>, u64, u64);

fn receive(
    receiving: &Receiving,
    listening: Listening,
    watched: Option<Watched>,
    stop: &AtomicBool,
) -> Result<Received, Error> {
    Ok(udp::receive(receiving, listening, watched, stop, &mut |_| ControlFlow::Continue(()))?)
}

fn watched(interface: &str) -> Result<Watched, Error> {
    Watched::open(interface).map_err(|error| Error::Failed(error.to_string()))
}

/// Frames received, and frames for which there was no room. Drivers count these as missed or as FIFO errors, some as both.
fn counted_since(before: [u64; 3], interface: &str) -> (u64, u64) {
    let [frames, missed, fifo] = counters(interface);
    let since = |now: u64, place: usize| now.saturating_sub(before[place]);
    (since(frames, 0), since(missed, 1).max(since(fifo, 2)))
}

fn counters(interface: &str) -> [u64; 3] {
    ["rx_packets", "rx_missed_errors", "rx_fifo_errors"].map(|counter| {
        let text = fs::read_to_string(format!("/sys/class/net/{interface}/statistics/{counter}"));
        text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
    })
}

fn figures(received: &Received, answer: Option<Answer>, frames: u64, missed: u64) -> Result<Measured, Error> {
    let counts = &received.counts;
    let nothing = || {
        let sent = answer.map_or_else(String::new, |answer| format!(" of {} that were sent", answer.sent));
        Error::Failed(format!("no datagram{sent} arrived on UDP port {PORT}: does a firewall drop them?"))
    };
    let span = received.span.ok_or_else(nothing)?;
    let rates = received.rates().ok_or_else(nothing)?;
    let seconds = (span.last - span.first).as_secs_f64();
    let mut measured = vec![("received", rates.pps), ("missed", missed as f64 / seconds)];
    match answer {
        Some(Answer { sent, .. }) => {
            let arrived = counts.packets.saturating_sub(counts.foreign).min(sent);
            // By the sink's clock as well: the sender's begins and ends elsewhere, and more would arrive than was sent.
            measured.push(("sent", rates.pps * sent as f64 / arrived.max(1) as f64));
            measured.push(("loss", 1.0 - arrived as f64 / sent as f64));
        }
        None => {
            // What waited when it began is not of that time.
            let came = counts.expected.saturating_sub(counts.missing).max(1);
            let loss = counts.loss();
            measured.extend(loss.map(|_| ("sent", rates.pps * counts.expected as f64 / came as f64)));
            measured.extend(loss.map(|loss| ("loss", loss)));
        }
    }
    measured.extend(of_card(&received.seen.usage, frames, seconds));
    measured.extend(of_cpus(&received.seen.usage));
    Ok(measured)
}

/// What its vectors and queues did in `seconds`.
fn of_card(usage: &Usage, frames: u64, seconds: f64) -> Measured {
    let mut measured = Vec::new();
    let queues = usage.queues();
    if let Some(rate) = usage.interrupts_per_second() {
        let interrupts = rate * usage.time.as_secs_f64();
        measured.push(("interrupts", interrupts / seconds));
        let counted: u64 = queues.iter().map(|queue| queue.frames).sum();
        // Where there are no interrupts at all (polling) there is no such figure.
        measured.push(("each", if counted > 0 { counted } else { frames } as f64 / interrupts));
    }
    let shares = queues.iter().filter_map(|queue| Some((queue.queue, queue.share?)));
    let busiest = shares.clone().map(|(_, share)| share).reduce(f64::max);
    measured.extend(busiest.map(|share| ("busiest", share)));
    measured.extend(shares.filter_map(|(queue, share)| Some((*QUEUES.get(queue as usize)?, share))));
    measured
}

fn of_cpus(usage: &Usage) -> Measured {
    let Some(spent) = Spent::of(usage) else { return Vec::new() };
    vec![
        ("cpu", spent.busy()),
        ("user", spent.user / spent.lasted),
        ("system", spent.system / spent.lasted),
        ("softirq", spent.busy_with_softirq()),
    ]
}

fn await_carrier(interface: &str, tools: &Tools<'_>) -> Result<(), Error> {
    let start = Instant::now();
    let folder = Path::new("/sys/class/net").join(interface);
    let has_carrier = || {
        if start.elapsed() > AWAY && !folder.exists() {
            return Err(Error::Failed(format!("there is no interface {interface} any more")));
        }
        // Reading fails while the interface is down.
        Ok(fs::read_to_string(folder.join("carrier")).is_ok_and(|text| text == "1\n").then_some(()))
    };
    tools.wait_for(PATIENCE, has_carrier)?.ok_or_else(|| {
        Error::Failed(format!(
            "{interface} has no carrier after {} s: is it up, and the cable in? (ip link set dev {interface} up)",
            PATIENCE.as_secs()
        ))
    })
}

/// Checks that what is sent to an own address arrives on the interface, or on one above it.
pub fn check_path(own: IpAddr, interface: &str) -> Result<(), Error> {
    let Some(by) = kernel::netlink::interface_with(own) else { return Ok(()) };
    let is_above = || Watched::open(&by).is_ok_and(|watched| watched.device() == interface);
    if by == interface || is_above() {
        return Ok(());
    }
    Err(Error::Wrong(format!(
        "the load would arrive at {own}, which {by} has, and not {interface}: --interface {by}, or --from an address behind \
         {interface}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_was_removed_is_waited_for_shortly() {
        let stop = AtomicBool::new(false);
        let tools = Tools { rxlane: Path::new("").into(), seconds: AWAY, stop: &stop };
        let error = await_carrier("no-such-link", &tools).expect_err("removed");
        assert!(error.to_string().contains("no interface no-such-link"), "{error}");
    }
}

//! Datagrams from one end of a pair to the other.

use super::cpu_time::Spent;
use super::pair::{ADDRESSES, Pair, WAN};
use super::{Error, Tools};
use crate::machine::Watched;
use crate::supervise::{EndWhenDropped, ThreadError, joined, started};
use crate::udp::{self, PORT, Received, Receiving, Sending, Sent, UdpError};
use crate::wire_size::Framing;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What is on its way when the sender ends is waited for.
const ON_ITS_WAY: Duration = Duration::from_millis(100);
const BUFFER: usize = 4 << 20;

#[derive(Clone, Debug)]
pub struct UdpLoad {
    /// Bytes of payload.
    pub payload: usize,
    /// Threads that send, and the CPUs that they are bound to in turn.
    pub senders: (u16, Vec<u16>),
    /// Threads that receive, each with a socket, and their CPUs.
    pub receivers: (u16, Vec<u16>),
    pub flows: u16,
    /// Whether sockets take several datagrams as one (UDP GRO).
    pub coalesce: bool,
    pub mtu: u16,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivered {
    pub per_second: f64,
    /// Datagrams a second that were sent; where they have numbers by the sink's clock, as what was received.
    pub sent_per_second: f64,
    /// Share that did not arrive; `None`: they are too short for numbers.
    pub loss: Option<f64>,
    /// What the CPUs did while it was sent; `None`: the kernel does not report it.
    pub spent: Option<Spent>,
}

impl UdpLoad {
    /// Sends from the near end of the pair to the far; an error where nothing arrived.
    pub fn deliver(&self, pair: &Pair, tools: &Tools<'_>) -> Result<Delivered, Error> {
        let over = AtomicBool::new(false);
        let (listens, is_listening) = mpsc::channel();
        let over = &over;
        let (sent, received) = thread::scope(|scope| {
            let _end = EndWhenDropped(over);
            let sink = started(scope, move || pair.far.inside(move || self.receive(over, listens)))?;
            // A sink that cannot listen says so by its result.
            let sent = match is_listening.recv() {
                Ok(()) => Some(pair.near.inside(|| self.send(tools))),
                Err(mpsc::RecvError) => None,
            };
            thread::sleep(ON_ITS_WAY);
            over.store(true, Ordering::Relaxed);
            Ok::<_, ThreadError>((sent, joined(sink)))
        })?;
        let received = received??;
        let sent = sent.ok_or_else(|| Error::Failed("the sink did not listen".to_owned()))???;
        // What was sent into nothing has no end that the sink would miss.
        for (end, _) in pair.ends() {
            if !end.works(WAN)? {
                return Err(Error::Failed(format!("{WAN} went down while it was measured")));
            }
        }
        let nothing = || Error::Failed(format!("none of {} datagrams arrived", sent.counts.packets));
        let rates = received.rates().ok_or_else(nothing)?;
        let loss = received.counts.loss();
        let by_sender = sent.counts.packets as f64 / sent.time.as_secs_f64().max(1e-9);
        let sent_per_second = match loss {
            // Over a span of its own it would be another rate: threads begin and end at other times.
            Some(loss) if loss < 1.0 => rates.pps / (1.0 - loss),
            _ => by_sender,
        };
        let spent = Spent::of(&sent.seen.usage);
        Ok(Delivered { per_second: rates.pps, sent_per_second, loss, spent })
    }

    fn send(&self, tools: &Tools<'_>) -> Result<Sent, UdpError> {
        let (threads, cpus) = self.senders.clone();
        let [near, far] = ADDRESSES;
        let sending = Sending {
            targets: vec![SocketAddr::from((far, PORT))],
            source: Some(near.into()),
            ports: self.flows,
            threads,
            cpus,
            payload: self.payload,
            length: Some(tools.seconds),
            ..Sending::default()
        };
        udp::send(&sending, Watched::cpus_alone(), tools.stop, &mut |_| ControlFlow::Continue(()))
    }

    fn receive(&self, over: &AtomicBool, listens: mpsc::Sender<()>) -> Result<Received, UdpError> {
        let (threads, cpus) = self.receivers.clone();
        let receiving = Receiving {
            address: SocketAddr::from((ADDRESSES[1], PORT)),
            threads,
            cpus,
            buffer: Some(BUFFER),
            coalesce: self.coalesce,
            framing: Framing { mtu: self.mtu.into(), overhead: 0 },
            ..Receiving::default()
        };
        let listening = receiving.listen()?;
        // Who waits for it is there as long as this thread is.
        let _ = listens.send(());
        udp::receive(&receiving, listening, None, over, &mut |_| ControlFlow::Continue(()))
    }
}

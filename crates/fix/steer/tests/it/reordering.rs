//! On real programs and queues: buckets move while frames with numbers in them come in, and each flow is delivered in
//! order.
//!
//! Frames are sent by packet sockets on one end of a veth pair, by a thread on each of two CPUs, received by the driver
//! on the CPU that sent them, steered, and read by a packet socket behind the queues of the CPUs. The socket has one
//! queue, so what it reads is the order of delivery.

use kernel::cpu::{self, CpuSet};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use rxlane_steer::keeper::{Cpus, Keeping, Progress, keep};
use rxlane_steer::plan;
use rxlane_steer::rebalance::{Balancer, Limits, Reading, Setup, State};
use rxlane_steer::weights;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::netns::{self, Namespace, Veth};
use testkit::{Missing, require};
use xdp::layout::{BUCKETS, Bucket, Class, Settings};
use xdp::{Attachment, Interface, Mode, Plan, attach};

const WAN: &str = "wan0";
const PEER: &str = "peer0";

/// Flows of each sending CPU.
const FLOWS: u32 = 2000;

/// Frames that a flow sends in a row.
const TRAIN: u32 = 4;

fn probe() -> Result<(), Missing> {
    netns::probe()?;
    let cpus = thread::available_parallelism().map_or(1, |count| count.get());
    match xdp::kernel().cpumap_programs {
        Some(true) if cpus >= 2 => Ok(()),
        Some(true) => Err(Missing("buckets cannot move on a machine with one CPU".to_owned())),
        Some(false) => Err(Missing("this kernel has no programs in maps of CPUs (Linux 5.9)".to_owned())),
        None => Err(Missing("BPF programs cannot be loaded here (run the tests as root)".to_owned())),
    }
}

/// A namespace with a veth pair, which frames of CPU 0 and CPU 1 cross in a queue of their own.
struct Place {
    namespace: Namespace,
}

impl Place {
    fn new() -> Option<Place> {
        require("bpf", probe())?;
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { queues: 2, ..Veth::pair(WAN, PEER) }).expect("a pair");
        namespace.inside(|| {
            for queue in 0..2 {
                let file = format!("/sys/class/net/{PEER}/queues/tx-{queue}/xps_cpus");
                std::fs::write(file, format!("{}", 1 << queue)).expect("transmit packet steering");
            }
        });
        Some(Place { namespace })
    }

    /// PPPoE steered over CPUs 0 and 1.
    fn attach(&self, buckets: [u32; BUCKETS], queue: u32) -> Attachment {
        let settings = Settings {
            key: testkit::key(),
            classes: Class::Pppoe.bit(),
            symmetric: 0,
            cpus: 0,
            spare: 0,
            hold_ns: plan::HOLD.as_nanos() as u64,
        };
        self.namespace.inside(|| {
            let interface = Interface::find(WAN).expect("there");
            let cpus = vec![(0, queue), (1, queue)];
            attach(&Plan { interface, mode: Mode::Native, settings, buckets, cpus }).expect("attached")
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.namespace.inside(|| {
            let _ = Interface::find(WAN).and_then(|interface| Attachment::remove(&interface));
        });
    }
}

/// A PPPoE session frame with IPv4 and UDP; flow and number are its payload.
fn frame(flow: u32, number: u32) -> [u8; 60] {
    let mut frame = [0; 60];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        frame[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x64]);
    // Version 1, type 1, session 7, length; PPP: IPv4.
    put(&[0x11, 0, 0, 7, 0, 38, 0x00, 0x21]);
    put(&[0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0, 0]);
    put(&[10, 0, (flow >> 8) as u8, flow as u8, 192, 0, 2, 1]);
    put(&[4, (flow >> 16) as u8, 0, 53, 0, 16, 0, 0]);
    put(&flow.to_be_bytes());
    put(&number.to_be_bytes());
    frame
}

/// Sends trains of frames of flows in turn, on one CPU, so many frames a second. Gives their number.
fn send(namespace: &Namespace, cpu: u32, rate: u32, is_over: &AtomicBool) -> u64 {
    let mut numbers = vec![0_u32; FLOWS as usize];
    let (mut count, mut next) = (0_u32, Instant::now());
    let frames = std::iter::from_fn(|| {
        if count == 0 {
            cpu::pin(&CpuSet::new([cpu]).expect("a CPU")).expect("a CPU of this process");
        }
        count = count.wrapping_add(1).max(1);
        if count.is_multiple_of(16) {
            // What was missed is not made up for.
            next = (next + Duration::from_secs(16) / rate).max(Instant::now() - Duration::from_millis(2));
            thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        // Not in order, so that buckets pause.
        let index = (count / TRAIN).wrapping_mul(2_654_435_761) % FLOWS;
        let number = numbers.get_mut(index as usize)?;
        *number += 1;
        (!is_over.load(Ordering::Relaxed)).then(|| frame(cpu * FLOWS + index, *number))
    });
    namespace.send(PEER, frames).expect("sent")
}

/// What was delivered.
#[derive(Debug, Default)]
struct Delivered {
    frames: u64,
    reordered: u64,
    flows: HashMap<u32, u32>,
}

impl Delivered {
    fn note(&mut self, flow: u32, number: u32) {
        let last = self.flows.entry(flow).or_insert(0);
        self.frames += 1;
        match number > *last {
            true => *last = number,
            false => self.reordered += 1,
        }
    }
}

/// A packet socket that sees received PPPoE session frames, and has room for many.
fn socket() -> OwnedFd {
    let session = NonZeroU32::new(u32::from(0x8864_u16.to_be())).map(Protocol::from_raw);
    let socket =
        socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, session).expect("a socket");
    set_socket_recv_buffer_size_force(&socket, 256 << 20).expect("a buffer");
    socket
}

/// Reads until it is over and nothing comes any more.
fn receive(socket: &OwnedFd, is_over: &AtomicBool) -> Delivered {
    let mut delivered = Delivered::default();
    let mut buffer = [0; 100];
    loop {
        match recv(socket, &mut buffer, RecvFlags::DONTWAIT) {
            Ok((60, _)) => {
                let word = |at: usize| {
                    u32::from_be_bytes([buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3]])
                };
                delivered.note(word(50), word(54));
            }
            Ok(_) => {}
            Err(_) => {
                let wait = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
                let count = poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&wait)).expect("polled");
                if count == 0 && is_over.load(Ordering::Relaxed) {
                    return delivered;
                }
            }
        }
    }
}

/// Sends so many frames a second on each of both CPUs and reads while `work` works inside.
fn while_frames_come_in<T: Send>(
    place: &Place,
    rate: u32,
    work: impl FnOnce() -> T + Send,
) -> (T, Delivered) {
    let is_over = AtomicBool::new(false);
    let socket = place.namespace.inside(socket);
    thread::scope(|scope| {
        let over = &is_over;
        let reader = scope.spawn(|| receive(&socket, over));
        let senders: Vec<_> = [0, 1]
            .into_iter()
            .map(|cpu| scope.spawn(move || send(&place.namespace, cpu, rate, over)))
            .collect();
        let worked = place.namespace.inside(work);
        is_over.store(true, Ordering::Relaxed);
        let sent: u64 = senders.into_iter().map(|sender| sender.join().expect("sent")).sum();
        let delivered = reader.join().expect("received");
        eprintln!("{sent} frames sent, {} delivered of {} flows", delivered.frames, delivered.flows.len());
        (worked, delivered)
    })
}

fn setup(may_move: bool, limits: Limits, queue_size: u32) -> Setup {
    Setup { weights: weights::even(&[0, 1]), queue_size, hold: plan::HOLD, may_move, limits }
}

fn read(attachment: &Attachment) -> Reading {
    let buckets = attachment.buckets().expect("read");
    Reading { counters: attachment.counts().expect("read"), buckets, conditions: BTreeMap::new() }
}

/// Orders random buckets to the other CPU for some seconds, each when it has made its last move. Gives the changes of
/// CPU that receiving CPUs made, and the frames found lost.
fn move_all_the_time(attachment: &Attachment, time: Duration, queue_size: u32) -> (u64, u64) {
    let until = Instant::now() + time;
    let mut balancer = Balancer::new(setup(false, Limits::DEFAULT, queue_size));
    let (mut changes, mut random) = (0, 1_u64);
    let mut before: Option<Reading> = None;
    while Instant::now() < until {
        let reading = read(attachment);
        for lost in balancer.observe(&reading).lost {
            let value = Bucket { lost: lost.lost, ..reading.buckets[lost.bucket] };
            attachment.set_bucket(lost.bucket, value).expect("written");
        }
        let reading = read(attachment);
        if let Some(before) = &before {
            for (was, is) in before.counters.receivers.iter().zip(&reading.counters.receivers) {
                changes +=
                    was.current.iter().zip(is.current.iter()).filter(|(was, is)| was != is).count() as u64;
            }
        }
        for _ in 0..20 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bucket = (random >> 33) as usize % BUCKETS;
            let ordered = reading.buckets[bucket];
            let senders = reading.counters.receivers.iter().filter(|receiver| receiver.frames(bucket) > 0);
            if senders.clone().count() > 0
                && senders.clone().all(|sender| sender.current[bucket] == ordered.cpu)
            {
                let value = Bucket { cpu: 1 - ordered.cpu, ..ordered };
                attachment.set_bucket(bucket, value).expect("written");
            }
        }
        before = Some(reading);
        thread::sleep(Duration::from_millis(2));
    }
    (changes, balancer.dropped().values().sum())
}

#[test]
fn buckets_that_move_all_the_time_reorder_no_flow() {
    let Some(place) = Place::new() else { return };
    let attachment = place.attach(std::array::from_fn(|bucket| bucket as u32 % 2), 512);
    let work = || move_all_the_time(&attachment, Duration::from_secs(3), 512);
    let ((changes, dropped), delivered) = while_frames_come_in(&place, 10_000, work);
    eprintln!("{changes} changes of CPU, {dropped} frames lost, {} out of order", delivered.reordered);
    assert_eq!(delivered.reordered, 0, "of {} frames", delivered.frames);
    assert!(delivered.frames > 5_000 && delivered.flows.len() > 1000, "{}", delivered.frames);
    assert!(changes > 100, "{changes} changes of CPU");
}

#[test]
fn a_skewed_mix_becomes_even_and_no_flow_is_reordered() {
    let Some(place) = Place::new() else { return };
    // Few frames and long queues: other work on this machine must not make it drop some. Four fifths of the buckets are
    // on CPU 0.
    const QUEUE: u32 = plan::QUEUE_SIZE_MAX;
    let mut attachment = place.attach(std::array::from_fn(|bucket| u32::from(bucket % 5 == 0)), QUEUE);
    let limits = Limits {
        interval: Duration::from_millis(200),
        persistence: 2,
        moves: 16,
        waiting: 32,
        ..Limits::DEFAULT
    };
    let work = || {
        let (stop, mut asker) = UnixStream::pair().expect("a pair");
        let keeping = Keeping {
            interface: WAN.to_owned(),
            setup: setup(true, limits, QUEUE),
            metrics: None,
            cpus: Cpus::below("/nonexistent"),
            names: Default::default(),
        };
        let is_even = Arc::new(AtomicBool::new(false));
        let seen = is_even.clone();
        let ask = thread::spawn(move || {
            let until = Instant::now() + testkit::PATIENCE;
            while Instant::now() < until && !seen.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(100));
            }
            asker.write_all(&[0]).expect("kept until now");
        });
        let mut last = None;
        let report = &mut |progress: &Progress| {
            is_even.store(progress.moves > 0 && progress.state == State::Even.to_string(), Ordering::Relaxed);
            last = Some(progress.clone());
        };
        keep(&mut attachment, keeping, stop.as_fd(), report).expect("kept");
        ask.join().expect("joined");
        last.expect("a report")
    };
    let (progress, delivered) = while_frames_come_in(&place, 4_000, work);
    eprintln!("{progress:?}, {} out of order", delivered.reordered);
    assert_eq!(delivered.reordered, 0, "of {} frames", delivered.frames);
    assert!(progress.moves > 30, "{progress:?}");
    assert!(progress.imbalance.is_some_and(|imbalance| imbalance < 1.3), "{progress:?}");
}

#[test]
fn a_frame_behind_a_later_one_of_its_flow_is_noticed() {
    let mut delivered = Delivered::default();
    for (flow, number) in [(1, 1), (2, 5), (1, 3), (1, 2), (2, 6), (2, 6)] {
        delivered.note(flow, number);
    }
    assert_eq!((delivered.frames, delivered.reordered), (6, 2));
}

//! A machine in which frames are received, queued to other CPUs and delivered, in simulated time.
//!
//! The steering program's rule is modelled statement by statement (`bpf/steer.bpf.c`, `bpf/arrive.bpf.c` of crate
//! `xdp`), and so is what lies around it: polls of at most 64 frames, eight frames kept back for each CPU until they are
//! queued together, queues of a fixed size that drop, a thread on each CPU that takes out eight frames, counts them all,
//! and only then delivers them one after the other. CPUs are held up at random.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_steer::rebalance::Reading;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use xdp::layout::{BUCKETS, Bucket};
use xdp::{Counters, Receiver, Target};

/// Nanoseconds.
pub type Time = u64;

/// What a machine is like.
#[derive(Clone, Debug)]
pub struct Shape {
    pub receivers: usize,
    pub targets: usize,
    pub queue_size: usize,
    /// Time of the receiving CPU for a frame.
    pub stays: Time,
    /// Time of the working CPU for a frame.
    pub moves: Time,
    /// The program's setting.
    pub hold: Time,
    /// The longest time that a CPU is held up between counting an arrival and delivering it.
    pub held_up: Time,
    /// How a bucket changes its CPU.
    pub rule: Rule,
}

/// How a bucket changes its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As the program does it.
    Settled,
    /// When it is drained and the last frame was *sent* long ago, whenever it arrived.
    HeldSinceSending,
    /// At once.
    AtOnce,
}

#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub flow: u32,
    pub number: u32,
}

/// A flow: frames with one bucket, received by one CPU.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub bucket: usize,
    pub receiver: usize,
    /// Frames a second, on average.
    pub rate: f64,
    /// Frames that come in a row, on average.
    pub train: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The flow sends, with so many more frames in a row.
    Send {
        flow: u32,
        more: u32,
    },
    Poll {
        receiver: usize,
    },
    Work {
        cpu: usize,
    },
    Deliver {
        cpu: usize,
        flow: u32,
        number: u32,
        is_last: bool,
    },
    /// Somebody outside wants to do something.
    Call {
        what: u32,
    },
}

struct Receiving {
    ring: VecDeque<Frame>,
    is_polling: bool,
    polled: usize,
    bulks: Vec<Vec<Frame>>,
    sent: [u64; BUCKETS],
    sent_to: Vec<u64>,
    held: [Time; BUCKETS],
    current: [u32; BUCKETS],
}

struct Working {
    queue: VecDeque<Frame>,
    is_working: bool,
    arrived: [u64; BUCKETS],
    astray: [Time; BUCKETS],
    slowness: u64,
}

pub struct Machine {
    pub shape: Shape,
    pub flows: Vec<Flow>,
    pub now: Time,
    pub buckets: [Bucket; BUCKETS],
    pub delivered: u64,
    pub dropped: u64,
    /// Frames delivered behind a later one of their flow.
    pub reordered: u64,
    /// Changes of CPU that receiving CPUs made.
    pub changes: u64,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    counted: u64,
    receiving: Vec<Receiving>,
    working: Vec<Working>,
    sent: Vec<u32>,
    seen: Vec<u32>,
    copied: Vec<[u64; BUCKETS]>,
    random: Xoshiro256PlusPlus,
}

impl Machine {
    pub fn new(shape: Shape, flows: Vec<Flow>, buckets: [u32; BUCKETS], seed: u64) -> Machine {
        let receiving = |_| Receiving {
            ring: VecDeque::new(),
            is_polling: false,
            polled: 0,
            bulks: vec![Vec::new(); shape.targets],
            sent: [0; BUCKETS],
            sent_to: vec![0; shape.targets],
            held: [0; BUCKETS],
            current: buckets,
        };
        let working = |_| Working {
            queue: VecDeque::new(),
            is_working: false,
            arrived: [0; BUCKETS],
            astray: [0; BUCKETS],
            slowness: 1,
        };
        let mut machine = Machine {
            now: 1_000_000_000,
            buckets: buckets.map(|cpu| Bucket { cpu, ..Bucket::default() }),
            delivered: 0,
            dropped: 0,
            reordered: 0,
            changes: 0,
            events: BinaryHeap::new(),
            counted: 0,
            receiving: (0..shape.receivers).map(receiving).collect(),
            working: (0..shape.targets).map(working).collect(),
            sent: vec![0; flows.len()],
            seen: vec![0; flows.len()],
            copied: vec![[0; BUCKETS]; shape.targets],
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            shape,
            flows,
        };
        for flow in 0..machine.flows.len() {
            machine.next_train(flow as u32);
        }
        machine
    }

    /// Makes every frame on the CPU take so many times as long.
    pub fn slow_down(&mut self, cpu: usize, times: u64) {
        self.working[cpu].slowness = times;
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.random.next_u64() % bound }
    }

    pub fn unit(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponentially distributed time.
    pub fn pause(&mut self, mean: f64) -> Time {
        (-(1.0 - self.unit()).ln() * mean) as Time
    }

    /// [`Machine::run`] gives `what` after this time.
    pub fn call(&mut self, after: Time, what: u32) {
        self.after(after, Event::Call { what });
    }

    /// Runs until somebody outside has something to do, or until the time.
    pub fn run(&mut self, until: Time) -> Option<u32> {
        while let Some(Reverse((at, _, _))) = self.events.peek() {
            if *at > until {
                break;
            }
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            self.now = at;
            match event {
                Event::Send { flow, more } => self.send(flow, more),
                Event::Poll { receiver } => self.poll(receiver),
                Event::Work { cpu } => self.work(cpu),
                Event::Deliver { cpu, flow, number, is_last } => self.deliver(cpu, flow, number, is_last),
                Event::Call { what } => return Some(what),
            }
        }
        self.now = until;
        None
    }

    /// The interrupt of an idle receiving CPU goes to the next one, and its flows with it.
    pub fn move_interrupt(&mut self) {
        let count = self.receiving.len();
        let from = self.below(count as u64) as usize;
        if !self.receiving[from].is_polling {
            let of_it = self.flows.iter_mut().filter(|flow| flow.receiver == from);
            of_it.for_each(|flow| flow.receiver = (from + 1) % count);
        }
    }

    /// Copies the arrivals of some buckets, as the kernel copies counters while they count.
    pub fn copy_arrivals(&mut self, buckets: std::ops::Range<usize>) {
        for (copied, working) in self.copied.iter_mut().zip(&self.working) {
            copied[buckets.clone()].copy_from_slice(&working.arrived[buckets.clone()]);
        }
    }

    /// A reading with the arrivals that were copied.
    pub fn reading(&self) -> Reading {
        let sum = |of: &dyn Fn(usize) -> u64| -> Box<[u64; BUCKETS]> { Box::new(std::array::from_fn(of)) };
        let target = |cpu: usize| Target {
            cpu: cpu as u32,
            sent: self.receiving.iter().map(|receiving| receiving.sent_to[cpu]).sum(),
            arrived: Box::new(self.copied[cpu]),
            strange: 0,
            kept: 0,
        };
        let receiver = |(number, receiving): (usize, &Receiving)| Receiver {
            cpu: (100 + number) as u32,
            reasons: Default::default(),
            sent: Box::new(receiving.sent),
            kept: Box::new([0; BUCKETS]),
            current: Box::new(receiving.current),
        };
        let counters = Counters {
            taken_ns: self.now,
            reasons: Default::default(),
            sent: sum(&|bucket| self.receiving.iter().map(|receiving| receiving.sent[bucket]).sum()),
            arrived: sum(&|bucket| self.copied.iter().map(|copied| copied[bucket]).sum()),
            kept: sum(&|_| 0),
            targets: (0..self.shape.targets).map(target).collect(),
            receivers: self.receiving.iter().enumerate().map(receiver).collect(),
        };
        Reading { counters, buckets: Box::new(self.buckets), conditions: BTreeMap::new() }
    }

    /// Frames that came out of the queue of each CPU.
    pub fn worked(&self) -> Vec<u64> {
        self.working.iter().map(|working| working.arrived.iter().sum()).collect()
    }

    /// Frames of the bucket that the queues have dropped: what nobody in the machine knows.
    pub fn truly_lost(&self, bucket: usize) -> u64 {
        let of = |frames: &mut dyn Iterator<Item = &Frame>| {
            frames.filter(|frame| self.flows[frame.flow as usize].bucket == bucket).count() as u64
        };
        let queued: u64 = self.working.iter().map(|working| of(&mut working.queue.iter())).sum();
        let kept: u64 =
            self.receiving.iter().map(|receiving| of(&mut receiving.bulks.iter().flatten())).sum();
        let sent: u64 = self.receiving.iter().map(|receiving| receiving.sent[bucket]).sum();
        let arrived: u64 = self.working.iter().map(|working| working.arrived[bucket]).sum();
        sent - arrived - queued - kept
    }

    /// Whether a receiving CPU with frames of the bucket sends it elsewhere than it should, and where.
    pub fn left_behind(&self, bucket: usize) -> Vec<u32> {
        let ordered = self.buckets[bucket].cpu;
        let sends = self.receiving.iter().filter(|receiving| receiving.sent[bucket] > 0);
        sends.map(|receiving| receiving.current[bucket]).filter(|cpu| *cpu != ordered).collect()
    }

    fn after(&mut self, time: Time, event: Event) {
        self.counted += 1;
        self.events.push(Reverse((self.now + time, self.counted, event)));
    }

    fn next_train(&mut self, flow: u32) {
        let Flow { rate, train, .. } = self.flows[flow as usize];
        // A geometric length with the mean `train`.
        let mut more = 0;
        while self.unit() > 1.0 / train {
            more += 1;
        }
        let pause = self.pause(1e9 * train / rate);
        self.after(pause, Event::Send { flow, more });
    }

    fn send(&mut self, flow: u32, more: u32) {
        let number = &mut self.sent[flow as usize];
        *number += 1;
        let frame = Frame { flow, number: *number };
        let receiver = self.flows[flow as usize].receiver;
        self.receiving[receiver].ring.push_back(frame);
        if !self.receiving[receiver].is_polling {
            self.receiving[receiver].is_polling = true;
            let delay = 2_000 + self.below(10_000);
            self.after(delay, Event::Poll { receiver });
        }
        match more {
            0 => self.next_train(flow),
            _ => {
                let gap = 500 + self.below(12_000);
                self.after(gap, Event::Send { flow, more: more - 1 });
            }
        }
    }

    fn poll(&mut self, receiver: usize) {
        let Some(frame) =
            self.receiving[receiver].ring.pop_front().filter(|_| self.receiving[receiver].polled < 64)
        else {
            return self.end_poll(receiver);
        };
        self.receiving[receiver].polled += 1;
        let cpu = self.steer(receiver, frame);
        let bulk = &mut self.receiving[receiver].bulks[cpu];
        if bulk.len() == 8 {
            self.flush(receiver, cpu);
        }
        self.receiving[receiver].bulks[cpu].push(frame);
        let mut time = self.shape.stays / 2 + self.below(self.shape.stays);
        if self.below(2000) == 0 {
            time += self.below(self.shape.held_up.max(1) * 2);
        }
        self.after(time, Event::Poll { receiver });
    }

    fn end_poll(&mut self, receiver: usize) {
        for cpu in 0..self.shape.targets {
            self.flush(receiver, cpu);
        }
        let receiving = &mut self.receiving[receiver];
        receiving.polled = 0;
        receiving.is_polling = !receiving.ring.is_empty();
        if receiving.is_polling {
            self.after(1_000, Event::Poll { receiver });
        }
    }

    /// `steer.bpf.c`.
    fn steer(&mut self, receiver: usize, frame: Frame) -> usize {
        let bucket = self.flows[frame.flow as usize].bucket;
        let ordered = self.buckets[bucket].cpu;
        let mut cpu = self.receiving[receiver].current[bucket];
        if cpu != ordered || self.receiving[receiver].held[bucket] != 0 {
            cpu = self.settle(receiver, bucket, cpu, ordered);
        }
        let receiving = &mut self.receiving[receiver];
        receiving.sent[bucket] += 1;
        receiving.sent_to[cpu as usize] += 1;
        if self.shape.rule == Rule::HeldSinceSending && cpu != ordered {
            receiving.held[bucket] = self.now;
        }
        cpu as usize
    }

    fn settle(&mut self, receiver: usize, bucket: usize, current: u32, ordered: u32) -> u32 {
        let arrived: u64 = self.working.iter().map(|working| working.arrived[bucket]).sum();
        let sent: u64 = self.receiving.iter().map(|receiving| receiving.sent[bucket]).sum();
        let is_drained = sent == arrived + self.buckets[bucket].lost;
        let astray = self.working[current as usize].astray[bucket];
        let (now, hold) = (self.now, self.shape.hold);
        let receiving = &mut self.receiving[receiver];
        if current == ordered {
            receiving.held[bucket] = 0;
            return ordered;
        }
        if self.shape.rule != Rule::AtOnce {
            if receiving.held[bucket] == 0 {
                receiving.held[bucket] = now;
                return current;
            }
            let is_fresh = self.shape.rule == Rule::Settled && astray + hold > now;
            if now - receiving.held[bucket] < hold || is_fresh || !is_drained {
                return current;
            }
        }
        receiving.held[bucket] = 0;
        receiving.current[bucket] = ordered;
        self.changes += 1;
        ordered
    }

    fn flush(&mut self, receiver: usize, cpu: usize) {
        let bulk = std::mem::take(&mut self.receiving[receiver].bulks[cpu]);
        if bulk.is_empty() {
            return;
        }
        for frame in bulk {
            match self.working[cpu].queue.len() < self.shape.queue_size {
                true => self.working[cpu].queue.push_back(frame),
                false => self.dropped += 1,
            }
        }
        if !self.working[cpu].is_working {
            self.working[cpu].is_working = true;
            let delay = 1_000 + self.below(30_000);
            self.after(delay, Event::Work { cpu });
        }
    }

    /// `arrive.bpf.c` for a batch, and the deliveries behind it.
    fn work(&mut self, cpu: usize) {
        let count = self.working[cpu].queue.len().min(8);
        let batch: Vec<Frame> = self.working[cpu].queue.drain(..count).collect();
        if batch.is_empty() {
            self.working[cpu].is_working = false;
            return;
        }
        for frame in &batch {
            let bucket = self.flows[frame.flow as usize].bucket;
            if self.buckets[bucket].cpu != cpu as u32 {
                self.working[cpu].astray[bucket] = self.now;
            }
            self.working[cpu].arrived[bucket] += 1;
        }
        let mut time = 0;
        if self.below(50) == 0 {
            // What this and the deliveries take stays below what the hold is there for.
            time += self.below(self.shape.held_up.max(1));
        }
        for (place, frame) in batch.iter().enumerate() {
            let slowness = self.working[cpu].slowness;
            time += (self.shape.moves / 2 + self.below(self.shape.moves)) * slowness;
            let Frame { flow, number } = *frame;
            self.after(time, Event::Deliver { cpu, flow, number, is_last: place + 1 == count });
        }
    }

    fn deliver(&mut self, cpu: usize, flow: u32, number: u32, is_last: bool) {
        self.delivered += 1;
        let seen = &mut self.seen[flow as usize];
        match number > *seen {
            true => *seen = number,
            false => self.reordered += 1,
        }
        if is_last {
            // The thread itself is held up without bounds from time to time, with an empty hand.
            let delay = if self.below(500) == 0 { self.below(self.shape.held_up.max(1) * 10) } else { 0 };
            self.after(delay, Event::Work { cpu });
        }
    }
}

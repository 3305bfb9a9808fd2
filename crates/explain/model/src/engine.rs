//! The loop over events, and what a CPU turns to next.

use crate::answer::{Answer, Lost};
use crate::cpu::{Cpu, Level, Work};
use crate::frame::{Fifo, Frame};
use crate::gro::Held;
use crate::lookahead;
use crate::plan::{self, Driver, Goal, Plan};
use crate::prefetch;
use crate::schedule::{NEVER, Schedule};
use crate::source::{REFUSED, Source};
use crate::vector::Vector;
use crate::{SECOND, Time};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Simulates a plan.
pub fn run(plan: Plan) -> Answer {
    let mut engine = Engine::new(plan);
    let (warm_up, duration) = (engine.plan.warm_up, engine.plan.duration);
    // What happens at the end of the warm-up counts.
    if warm_up > 0 {
        engine.advance(warm_up - 1);
    }
    let before = engine.start_counting();
    engine.advance((warm_up + duration).saturating_sub(1));
    engine.answer(before)
}

/// A receive queue: ring, vector, and what GRO holds of its poll.
pub(crate) struct Queue {
    pub(crate) plan: plan::Queue,
    pub(crate) ring: Fifo,
    pub(crate) vector: Vector,
    pub(crate) held: Held,
    /// Whether a soft interrupt looks after it.
    pub(crate) listed: bool,
    /// Whether the vector waits for a frame that is drawn early.
    pub(crate) awaits: bool,
    pub(crate) frames: u64,
    pub(crate) lost: u64,
    pub(crate) interrupts: u64,
}

/// A queue between driver and stack.
pub(crate) struct Input {
    pub(crate) cpu: usize,
    pub(crate) fifo: Fifo,
    pub(crate) listed: bool,
    pub(crate) lost: u64,
}

/// A process.
pub(crate) struct Application {
    pub(crate) plan: plan::Application,
    pub(crate) socket: Fifo,
    pub(crate) cpu: usize,
    pub(crate) asleep: bool,
    /// What its call read and it has not passed on.
    pub(crate) held: Vec<Frame>,
    /// Whether it has that in user space.
    pub(crate) in_user: bool,
    pub(crate) fair: Time,
    pub(crate) spent: Time,
    pub(crate) calls: u64,
    pub(crate) lost: u64,
}

pub(crate) struct Engine {
    pub(crate) plan: Plan,
    /// The time of the part that acts.
    pub(crate) now: Time,
    /// All that comes before this time has happened; a part that has run ahead acts later.
    pub(crate) reached: Time,
    /// Slot of the part whose event is being served.
    pub(crate) part: u16,
    pub(crate) until: Time,
    /// Whether CPUs run ahead.
    pub(crate) ahead: bool,
    /// Whether frames are drawn before they arrive; how many are drawn that nobody has looked at, how many have been, and the queue
    /// that the next one that interrupts comes to.
    pub(crate) early: bool,
    pub(crate) drawn: u32,
    pub(crate) order: u64,
    pub(crate) interrupts_next: Option<usize>,
    /// The least time that a packet out of an input takes.
    pub(crate) least_input: Time,
    pub(crate) events: u64,
    /// Of CPUs, vectors, the next frame of all sources, and the clock; and of sources.
    pub(crate) schedule: Schedule,
    pub(crate) arrivals: Schedule,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) applications: Vec<Application>,
    pub(crate) sources: Vec<Source>,
    /// When the last frame on the wire of each interface ended, and when what it sends is sent.
    pub(crate) received_until: Vec<Option<Time>>,
    pub(crate) sent_until: Vec<Time>,
    pub(crate) random: Xoshiro256PlusPlus,
}

impl Engine {
    fn new(mut plan: Plan) -> Engine {
        let sources: Vec<Source> = std::mem::take(&mut plan.sources)
            .into_iter()
            .enumerate()
            .map(|(number, source)| Source::new(source, number as u16, plan.inputs.len(), plan.seed))
            .collect();
        let ahead = lookahead::is_possible(&plan, &sources);
        let early = ahead && prefetch::is_possible(&plan);
        let queue = |queue: &plan::Queue| Queue {
            plan: queue.clone(),
            ring: if early { Fifo::early(queue.ring, prefetch::DRAWN) } else { Fifo::new(queue.ring) },
            vector: Vector::new(queue.moderation),
            held: Held::new(),
            listed: false,
            awaits: false,
            frames: 0,
            lost: 0,
            interrupts: 0,
        };
        let input = |input: &plan::Input| Input {
            cpu: input.cpu,
            fifo: Fifo::shared(input.depth),
            listed: false,
            lost: 0,
        };
        let application = |application: &plan::Application| Application {
            plan: application.clone(),
            socket: Fifo::shared(application.socket),
            cpu: application.cpu.unwrap_or(0),
            asleep: true,
            held: Vec::with_capacity(application.batch as usize),
            in_user: false,
            fair: 0,
            spent: 0,
            calls: 0,
            lost: 0,
        };
        let mut engine = Engine {
            now: 0,
            reached: 0,
            part: 0,
            until: 0,
            ahead,
            early,
            drawn: 0,
            order: 0,
            interrupts_next: None,
            least_input: lookahead::least_input(&plan, &sources),
            events: 0,
            schedule: Schedule::new(plan.cpus + plan.queues.len() + 2),
            arrivals: Schedule::new(sources.len()),
            cpus: (0..plan.cpus).map(|_| Cpu::new()).collect(),
            queues: plan.queues.iter().map(queue).collect(),
            inputs: plan.inputs.iter().map(input).collect(),
            applications: plan.applications.iter().map(application).collect(),
            received_until: vec![None; plan.ports.len()],
            sent_until: vec![0; plan.ports.len()],
            random: Xoshiro256PlusPlus::seed_from_u64(plan.seed.rotate_left(17) ^ 0x5eed),
            sources,
            plan,
        };
        for (number, queue) in engine.plan.queues.iter().enumerate() {
            engine.cpus[queue.cpu].queues.push(number as u32);
        }
        for input in &engine.plan.inputs {
            engine.cpus[input.cpu].attend(false);
        }
        for number in 0..engine.sources.len() {
            engine.await_source(number);
        }
        if early {
            (0..engine.queues.len()).for_each(|number| engine.await_frame(number));
        }
        if let Driver::Polling { period, .. } = engine.plan.driver {
            engine.schedule.set(engine.clock_slot(), period);
        }
        engine
    }

    // Slots of the schedule: CPUs, vectors, sources together, clock.

    pub(crate) fn vector_slot(&self, queue: usize) -> usize {
        self.cpus.len() + queue
    }

    pub(crate) fn arrival_slot(&self) -> usize {
        self.cpus.len() + self.queues.len()
    }

    fn clock_slot(&self) -> usize {
        self.arrival_slot() + 1
    }

    fn advance(&mut self, until: Time) {
        self.until = until;
        while self.schedule.next_time() <= until {
            let slot = self.schedule.next_slot();
            self.reach_time(self.schedule.next_time());
            self.part = slot as u16;
            self.events += 1;
            if slot < self.cpus.len() {
                self.work(slot);
            } else if slot < self.arrival_slot() {
                self.interrupt(slot - self.cpus.len());
            } else if slot == self.arrival_slot() && self.early {
                self.arrive_early();
            } else if slot == self.arrival_slot() {
                self.arrive();
            } else {
                self.tick();
            }
        }
        self.reach_time(until);
        self.part = u16::MAX;
        if self.early {
            self.arrive_until(until);
        }
        for input in 0..self.inputs.len() {
            self.settle_input(input);
        }
        for application in 0..self.applications.len() {
            self.settle_socket(application);
        }
        for cpu in 0..self.cpus.len() {
            self.account(cpu);
        }
    }

    /// All that comes before this time has happened.
    #[inline]
    fn reach_time(&mut self, time: Time) {
        (self.now, self.reached) = (time, time);
    }

    /// A CPU ends a piece of work, and all that follow before anything else happens, or before anything can observe it.
    fn work(&mut self, cpu: usize) {
        self.schedule.clear(cpu);
        loop {
            self.complete(cpu);
            let Some(mut ends) = self.next(cpu) else { return };
            if self.ahead && self.cpus[cpu].level == Level::Soft {
                ends = self.run_ahead(cpu, ends);
            }
            if ends >= self.schedule.next_time() || ends > self.until {
                self.schedule.set(cpu, ends);
                return;
            }
            self.reach_time(ends);
        }
    }

    /// Frames arrive, until something else happens first.
    fn arrive(&mut self) {
        let slot = self.arrival_slot();
        self.schedule.clear(slot);
        loop {
            self.arrive_from(self.arrivals.next_slot(), self.now);
            let due = self.arrivals.next_time();
            if due >= self.schedule.next_time() || due > self.until {
                self.schedule.set(slot, due);
                return;
            }
            self.reach_time(due);
        }
    }

    /// A frame of a source arrives, where the line is free.
    #[inline]
    fn arrive_from(&mut self, number: usize, now: Time) {
        let source = &mut self.sources[number];
        let port = source.plan.port;
        let wire = self.plan.ports[port].byte * Time::from(source.wire());
        if let Some(end) = self.received_until[port]
            && end + wire > now
        {
            self.arrivals.set(number, end + wire);
            return;
        }
        if let Some((frame, to)) = source.take(now) {
            source.counts.offered += 1;
            source.counts.offered_bytes += u64::from(frame.bytes);
            self.received_until[port] = Some(now);
            if frame.bytes > source.plan.longest || to.queue == REFUSED {
                self.lose(frame, Lost::Admit);
            } else {
                self.receive(frame, to.queue as usize);
            }
        }
        self.arrivals.set(number, self.sources[number].due().max(now));
    }

    /// Sets the time of a source's next frame anew.
    pub(crate) fn await_source(&mut self, number: usize) {
        let due = self.sources[number].due();
        self.arrivals.set(number, if due == NEVER { NEVER } else { due.max(self.now) });
        self.schedule.set(self.arrival_slot(), self.arrivals.next_time());
    }

    /// A frame comes to a ring.
    fn receive(&mut self, frame: Frame, number: usize) {
        let queue = &mut self.queues[number];
        queue.frames += 1;
        if !queue.ring.push(frame, self.now) {
            queue.lost += 1;
            self.lose(frame, Lost::Ring);
            return;
        }
        if matches!(self.plan.driver, Driver::Polling { .. }) {
            return;
        }
        match queue.vector.frame(frame.bytes, self.now) {
            Some(at) if at <= self.now => self.interrupt(number),
            Some(at) => self.schedule.set(self.vector_slot(number), at),
            None => {}
        }
    }

    /// A vector interrupts its CPU.
    pub(crate) fn interrupt(&mut self, number: usize) {
        self.schedule.clear(self.vector_slot(number));
        if self.early {
            self.look_at_ring(number, self.now);
        }
        let queue = &mut self.queues[number];
        queue.vector.fire(self.now);
        let cpu = queue.plan.cpu;
        self.raise(cpu, Work::Interrupt(number as u32));
    }

    /// An interrupt reaches a CPU.
    pub(crate) fn raise(&mut self, number: usize, interrupt: Work) {
        let cpu = &mut self.cpus[number];
        cpu.interrupts.push_back(interrupt);
        if cpu.level < Level::Hard {
            self.account(number);
            self.start(number);
        }
    }

    /// A CPU that waits, or has been interrupted, turns to what comes first now.
    pub(crate) fn start(&mut self, cpu: usize) {
        match self.next(cpu) {
            Some(ends) => self.schedule.set(cpu, ends),
            None => self.schedule.clear(cpu),
        }
    }

    /// What a CPU turns to, and when that ends; `None` where there is nothing to do.
    pub(crate) fn next(&mut self, number: usize) -> Option<Time> {
        // While this is decided, interrupts only queue up.
        self.cpus[number].level = Level::Hard;
        let level = loop {
            if self.next_interrupt(number) {
                break Level::Hard;
            }
            let soft = self.next_soft(number);
            if !self.cpus[number].interrupts.is_empty() {
                continue;
            }
            if soft {
                break Level::Soft;
            }
            if self.next_thread(number) {
                break Level::Thread;
            }
            // Where soft interrupts waited for a thread that had nothing to do after all, it is their turn now.
            if self.cpus[number].turns.is_empty() {
                break Level::Idle;
            }
        };
        let ends = self.cpus[number].begin(level, self.now);
        (level != Level::Idle).then_some(ends)
    }

    /// Enters a CPU's time up to now into its accounts.
    fn account(&mut self, cpu: usize) {
        if let (passed, Some(application)) = self.cpus[cpu].account(self.now) {
            let application = &mut self.applications[application as usize];
            application.spent += passed;
            application.fair += passed;
        }
    }

    #[inline]
    fn complete(&mut self, number: usize) {
        let Some((work, frame, passed)) = self.cpus[number].finish(self.now) else { return };
        if let Work::Call(at) | Work::Use(at) = work {
            let application = &mut self.applications[at as usize];
            application.spent += passed;
            application.fair += passed;
        }
        match work {
            Work::Call(application) => self.called(application as usize, number),
            Work::Use(application) => self.used(application as usize, number),
            _ => self.passed(work, frame, number),
        }
    }

    /// A frame has reached its goal.
    #[inline]
    pub(crate) fn done(&mut self, frame: Frame, at: Time) {
        let number = usize::from(frame.source);
        let source = &mut self.sources[number];
        source.counts.delivered += u64::from(frame.frames);
        source.counts.delivered_bytes += u64::from(frame.bytes);
        source.counts.latencies.add(at - frame.arrived, u64::from(frame.frames));
        if source.delivered(u32::from(frame.frames), self.now) {
            self.await_source(number);
        }
    }

    /// A frame is lost.
    pub(crate) fn lose(&mut self, frame: Frame, stage: Lost) {
        let number = usize::from(frame.source);
        if self.sources[number].lost(u32::from(frame.frames), stage, self.now) {
            self.await_source(number);
        }
    }

    /// The clock of polling.
    fn tick(&mut self) {
        let Driver::Polling { period, .. } = self.plan.driver else { return };
        self.schedule.set(self.clock_slot(), self.now + period);
        for cpu in 0..self.cpus.len() {
            if self.queues.iter().any(|queue| queue.plan.cpu == cpu) {
                self.raise(cpu, Work::Tick);
            }
        }
    }

    /// The goal of a source's packets.
    pub(crate) fn goal(&self, frame: &Frame) -> Goal {
        self.sources[usize::from(frame.source)].plan.goal
    }
}

/// The time that a plan may take, warm-up included.
pub const LONGEST: Time = 3600 * SECOND;

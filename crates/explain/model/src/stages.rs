//! From the ring to the goal: interrupts, polls, hand-over, GRO, stack.

use crate::Time;
use crate::answer::Lost;
use crate::cpu::{Level, Turn, Work};
use crate::engine::Engine;
use crate::frame::Frame;
use crate::plan::{Driver, Goal};
use crate::source::{exponential, on_wire};

impl Engine {
    /// The next piece of work of the interrupt level. Whether there is one.
    #[inline]
    pub(crate) fn next_interrupt(&mut self, number: usize) -> bool {
        let cpu = &mut self.cpus[number];
        if cpu.has(Level::Hard) {
            return true;
        }
        if let Some(queue) = cpu.draining {
            match self.queues[queue as usize].ring.pop(self.now, self.part) {
                Some(frame) => {
                    let cost = self.vary(self.plan.costs.driver.of(frame.bytes)) + self.plan.costs.hand_over;
                    self.cpus[number].give(Level::Hard, Work::Drain(queue), frame, cost);
                    return true;
                }
                None => {
                    self.cpus[number].draining = None;
                    self.queues[queue as usize].vector.arm();
                }
            }
        }
        let cpu = &mut self.cpus[number];
        let Some(work) = cpu.interrupts.pop_front() else { return false };
        let cost = match work {
            Work::Tick => self.plan.costs.tick,
            Work::Ipi(_) => self.plan.costs.ipi,
            _ => self.plan.costs.interrupt,
        };
        cpu.give(Level::Hard, work, Frame::default(), cost);
        true
    }

    /// The next piece of work of soft interrupts. Whether there is one.
    #[inline]
    pub(crate) fn next_soft(&mut self, number: usize) -> bool {
        if self.cpus[number].has(Level::Soft) {
            return true;
        }
        if self.soft_must_wait(number) {
            return false;
        }
        let cpu = &mut self.cpus[number];
        if cpu.extra[Level::Soft as usize] > 0 {
            let cost = std::mem::take(&mut cpu.extra[Level::Soft as usize]);
            cpu.give(Level::Soft, Work::Extra, Frame::default(), cost);
            return true;
        }
        while !self.cpus[number].turns.is_empty() {
            if self.next_of_turn(number) {
                return true;
            }
        }
        let cpu = &mut self.cpus[number];
        (cpu.soft_on_end, cpu.round) = (0, 0);
        false
    }

    /// The next piece of work of the queue or input whose turn it is. Whether there is one; where not, the turn is over.
    #[inline]
    pub(crate) fn next_of_turn(&mut self, number: usize) -> bool {
        match self.cpus[number].turns.front() {
            Some(Turn::Queue(queue)) => self.poll(number, *queue),
            Some(Turn::Input(input)) => self.take_input(number, *input),
            None => false,
        }
    }

    /// Whether threads come first for a while, since soft interrupts have had their time.
    #[inline]
    fn soft_must_wait(&mut self, number: usize) -> bool {
        let now = self.now;
        let Driver::Napi { limit, .. } = self.plan.driver else { return false };
        let cpu = &mut self.cpus[number];
        if cpu.soft_on_end < limit && cpu.threads_until <= now {
            return false;
        }
        let threads_wait = cpu.has(Level::Thread) || !cpu.ready.is_empty();
        if !threads_wait {
            return false;
        }
        if cpu.soft_on_end >= limit && !cpu.turns.is_empty() {
            cpu.threads_until = now + cpu.soft_on_end;
            cpu.soft_on_end = 0;
            cpu.squeezes += 1;
        }
        cpu.threads_until > now
    }

    /// A frame of the queue whose turn it is. Whether there is work; where not, the turn is over.
    #[inline]
    fn poll(&mut self, number: usize, queue: u32) -> bool {
        if self.poll_is_over(number, queue) {
            return false;
        }
        let at = queue as usize;
        if let Some(packet) = self.queues[at].held.leave() {
            self.flush(number, queue, packet);
            return true;
        }
        let begins = self.cpus[number].served == 0;
        if self.early && (begins || self.queues[at].ring.is_empty()) {
            self.look_at_ring(at, self.now);
        }
        if begins {
            self.queues[at].ring.turn();
        }
        if let Some(frame) = self.queues[at].ring.pop(self.now, self.part) {
            let cpu = &mut self.cpus[number];
            (cpu.served, cpu.round) = (cpu.served + 1, cpu.round + 1);
            let driver = self.plan.costs.driver.of(frame.bytes);
            let cost = if self.coalesces(&frame) {
                self.vary(driver) + self.plan.costs.gro
            } else if self.other_input(&frame, number).is_some() {
                self.vary(driver) + self.plan.costs.hand_over
            } else {
                self.vary(driver + self.stack(&frame))
            };
            self.cpus[number].give(Level::Soft, Work::Poll(queue), frame, cost);
            return true;
        }
        if let Some(packet) = self.queues[at].held.flush() {
            self.flush(number, queue, packet);
            return true;
        }
        self.end_turn(number);
        self.list(queue, false);
        self.queues[at].vector.arm();
        if self.early {
            self.await_frame(at);
        }
        false
    }

    /// A soft interrupt begins or ends to look after a queue.
    fn list(&mut self, queue: u32, listed: bool) {
        let queue = &mut self.queues[queue as usize];
        queue.listed = listed;
        let cpu = &mut self.cpus[queue.plan.cpu];
        let idle =
            cpu.queues.iter().map(|number| &self.queues[*number as usize]).filter(|queue| !queue.listed);
        cpu.quiet_until = idle.map(|queue| queue.vector.not_before()).min().unwrap_or(Time::MAX);
    }

    /// What the stack needs for a packet.
    #[inline]
    pub(crate) fn stack(&self, packet: &Frame) -> Time {
        self.sources[usize::from(packet.source)].plan.stack.of(packet.bytes)
    }

    /// Whether GRO takes a frame.
    #[inline]
    pub(crate) fn coalesces(&self, frame: &Frame) -> bool {
        self.plan.gro.is_some() && self.sources[usize::from(frame.source)].plan.coalesces
    }

    /// The queue between driver and stack to which this CPU has to hand a packet; `None` where it goes up the stack here.
    #[inline]
    pub(crate) fn other_input(&self, packet: &Frame, number: usize) -> Option<u32> {
        if self.inputs.is_empty() {
            return None;
        }
        let is_own = self.plan.keeps_own && self.inputs[usize::from(packet.input)].cpu == number;
        (!is_own).then_some(u32::from(packet.input))
    }

    fn flush(&mut self, number: usize, queue: u32, packet: Frame) {
        let cost = match self.other_input(&packet, number) {
            Some(_) => self.plan.costs.hand_over,
            None => self.vary(self.stack(&packet)),
        };
        self.cpus[number].give(Level::Soft, Work::Flush(queue), packet, cost);
    }

    /// Whether the queue has had its budget, or the tick its time. It then goes behind the others, or waits for the next tick.
    #[inline]
    fn poll_is_over(&mut self, number: usize, queue: u32) -> bool {
        let cpu = &mut self.cpus[number];
        match self.plan.driver {
            Driver::Napi { budget, round, .. } => {
                if cpu.round >= round {
                    cpu.round = 0;
                    cpu.squeezes += 1;
                }
                if cpu.served < budget {
                    return false;
                }
                cpu.served = 0;
                cpu.turns.rotate_left(1);
                cpu.turns.len() > 1
            }
            Driver::Polling { burst, share, .. } => {
                if cpu.served < burst && cpu.soft_in_tick < share {
                    return false;
                }
                self.end_turn(number);
                self.list(queue, false);
                true
            }
            Driver::Interrupt => false,
        }
    }

    fn end_turn(&mut self, number: usize) {
        let cpu = &mut self.cpus[number];
        cpu.served = 0;
        cpu.turns.pop_front();
    }

    /// A packet of the input whose turn it is, as [`Engine::poll`].
    #[inline]
    fn take_input(&mut self, number: usize, input: u32) -> bool {
        let at = input as usize;
        let cpu = &mut self.cpus[number];
        if let Driver::Napi { budget, .. } = self.plan.driver
            && cpu.served >= budget
        {
            cpu.served = 0;
            cpu.turns.rotate_left(1);
            if cpu.turns.len() > 1 {
                return false;
            }
        }
        let begins = cpu.served == 0;
        if begins || self.inputs[at].fifo.is_empty() {
            self.settle_input(at);
        }
        let fifo = &mut self.inputs[at].fifo;
        if begins && !fifo.is_empty() {
            fifo.turn();
        }
        match fifo.pop(self.now, self.part) {
            Some(packet) => {
                self.cpus[number].served += 1;
                let cost = self.plan.costs.take_over + self.vary(self.stack(&packet));
                self.cpus[number].give(Level::Soft, Work::Input(input), packet, cost);
                true
            }
            None => {
                self.end_turn(number);
                self.inputs[at].listed = false;
                self.cpus[number].attend(false);
                false
            }
        }
    }

    /// Decides which of the packets that came had room.
    pub(crate) fn settle_input(&mut self, at: usize) {
        while let Some(packet) = self.inputs[at].fifo.settle(self.reached, self.part) {
            self.inputs[at].lost += u64::from(packet.frames);
            self.lose(packet, Lost::Input);
        }
    }

    /// A piece of work of an interrupt or soft interrupt is done.
    #[inline]
    pub(crate) fn passed(&mut self, work: Work, frame: Frame, number: usize) {
        match work {
            Work::Poll(queue) => match self.plan.gro {
                Some(gro) if self.coalesces(&frame) => {
                    self.queues[queue as usize].held.merge(frame, gro.frames);
                }
                _ => self.pass_on(frame, number),
            },
            Work::Flush(_) => self.pass_on(frame, number),
            Work::Drain(_) => self.pass_on(frame, number),
            Work::Input(_) => self.deliver(frame, number),
            Work::Interrupt(queue) => self.interrupted(number, queue),
            Work::Ipi(input) => self.cpus[number].turns.push_back(Turn::Input(input)),
            Work::Tick => self.ticked(number),
            Work::Extra | Work::Call(_) | Work::Use(_) => {}
        }
    }

    fn interrupted(&mut self, number: usize, queue: u32) {
        let at = &mut self.queues[queue as usize];
        at.interrupts += 1;
        if self.plan.driver == Driver::Interrupt {
            at.ring.turn();
            self.cpus[number].draining = Some(queue);
            return;
        }
        self.begin_turn(number, queue);
    }

    fn ticked(&mut self, number: usize) {
        self.cpus[number].soft_in_tick = 0;
        for at in 0..self.queues.len() {
            if self.queues[at].plan.cpu == number && !self.queues[at].listed {
                self.begin_turn(number, at as u32);
            }
        }
    }

    fn begin_turn(&mut self, number: usize, queue: u32) {
        self.list(queue, true);
        let cpu = &mut self.cpus[number];
        cpu.turns.push_back(Turn::Queue(queue));
        cpu.extra[Level::Soft as usize] += self.plan.costs.poll;
    }

    /// The driver is done with a frame.
    #[inline]
    fn pass_on(&mut self, frame: Frame, number: usize) {
        match self.other_input(&frame, number) {
            Some(input) => self.hand_over(frame, input, number),
            None => self.deliver(frame, number),
        }
    }

    /// To the queue of another CPU, or to the one between driver and stack.
    fn hand_over(&mut self, mut frame: Frame, input: u32, number: usize) {
        let at = &mut self.inputs[input as usize];
        frame.by = number as u16;
        let joined = self.now == self.reached && at.fifo.join(frame, self.now);
        if !joined {
            at.fifo.insert(frame, self.now, self.reached);
        }
        // Where one was lost for want of room, there are others, and the queue is listed.
        let (cpu, listed) = (at.cpu, at.listed);
        at.listed = true;
        if self.now == self.reached && !joined {
            self.settle_input(input as usize);
        }
        if listed {
            return;
        }
        self.cpus[cpu].attend(true);
        if cpu == number {
            self.cpus[number].turns.push_back(Turn::Input(input));
        } else {
            self.raise(cpu, Work::Ipi(input));
        }
    }

    /// The stack is done with a packet.
    #[inline]
    fn deliver(&mut self, frame: Frame, number: usize) {
        self.reach(self.goal(&frame), frame, number);
    }

    /// A packet comes to a goal.
    #[inline]
    pub(crate) fn reach(&mut self, goal: Goal, frame: Frame, number: usize) {
        match goal {
            Goal::Stack => self.done(frame, self.now),
            Goal::Application(application) => self.enter_socket(application, frame, number),
            Goal::Port(port) => self.transmit(port, frame),
        }
    }

    pub(crate) fn transmit(&mut self, port: usize, frame: Frame) {
        let plan = &self.plan.ports[port];
        let wire = plan.byte * Time::from(on_wire(frame.bytes));
        let from = self.sent_until[port].max(self.now);
        if from - self.now > wire * Time::from(plan.transmit_ring) {
            self.lose(frame, Lost::Transmit);
            return;
        }
        self.sent_until[port] = from + wire;
        self.done(frame, from + wire);
    }

    /// A cost as it turns out for one frame.
    #[inline]
    pub(crate) fn vary(&mut self, cost: Time) -> Time {
        if self.plan.costs.exponential { exponential(&mut self.random, cost) } else { cost }
    }
}

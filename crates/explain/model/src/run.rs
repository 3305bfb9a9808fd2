//! A soft interrupt that goes on: piece of work after piece of work of one turn, without an event for each.
//!
//! What may be done here and why nothing can observe it is said in [`crate::lookahead`].

use crate::Time;
use crate::cpu::{Item, Level, Turn, Work};
use crate::engine::Engine;
use crate::frame::Frame;
use crate::plan::{Driver, Goal};

/// The piece of work that a CPU has begun, and what holds while its turn goes on.
pub(crate) struct Run {
    pub(crate) cpu: usize,
    pub(crate) work: Work,
    pub(crate) frame: Frame,
    began: Time,
    pub(crate) ends: Time,
    served: u32,
    round: u32,
    squeezes: u64,
    /// Before this time nothing happens to the CPU, and its turn is not over for other reasons than that it has nothing more.
    before: Time,
    /// The next event of another part.
    pub(crate) next: Time,
}

impl Engine {
    /// A CPU at the level of soft interrupts, whose piece of work ends at `ends`, goes on as far as it may. When the piece ends
    /// that it then has.
    pub(crate) fn run_ahead(&mut self, number: usize, ends: Time) -> Time {
        let Driver::Napi { limit, .. } = self.plan.driver else { return ends };
        let next = self.schedule.next_time();
        let cpu = &mut self.cpus[number];
        let quiet = if cpu.unattended > 0 { 0 } else { cpu.quiet_until };
        let tired = self.now.saturating_add(limit.saturating_sub(cpu.soft_on_end));
        let before = quiet.max(next).min(tired).min(self.until.saturating_add(1));
        if ends >= before || cpu.threads_until > self.now || cpu.extra[Level::Soft as usize] > 0 {
            return ends;
        }
        let (Some(turn), Some(&Item { work, frame, .. })) = (cpu.turns.front(), cpu.item(Level::Soft)) else {
            return ends;
        };
        let mut run = Run {
            cpu: number,
            work,
            frame,
            began: self.now,
            ends,
            served: cpu.served,
            round: cpu.round,
            squeezes: 0,
            before,
            next,
        };
        match *turn {
            Turn::Queue(queue) => self.run_queue(&mut run, queue),
            Turn::Input(input) => self.run_input(&mut run, input),
        }
        let cpu = &mut self.cpus[number];
        cpu.carry_on(run.work, run.frame, run.began, run.ends);
        (cpu.served, cpu.round) = (run.served, run.round);
        cpu.squeezes += run.squeezes;
        self.now = run.began;
        run.ends
    }

    /// All that comes before the end of this piece of work may have happened.
    #[inline]
    fn reach_end(&mut self, run: &Run) {
        if run.ends < run.next {
            self.reached = run.ends;
        }
    }

    fn run_queue(&mut self, run: &mut Run, queue: u32) {
        let Driver::Napi { budget, round, .. } = self.plan.driver else { return };
        let at = queue as usize;
        while run.ends < run.before && run.served < budget {
            self.reach_end(run);
            let merges = matches!(run.work, Work::Poll(_)) && self.coalesces(&run.frame);
            if run.served == 0 && !self.early {
                return;
            }
            if run.served == 0 || self.queues[at].ring.is_empty() {
                let known = self.early && self.look_at_ring(at, run.ends);
                let is_empty = self.queues[at].ring.is_empty();
                if is_empty && !(known && (merges || !self.queues[at].held.is_empty()))
                    || run.served == 0 && !known
                {
                    return;
                }
            }
            if merges {
                let most = self.plan.gro.map_or(1, |gro| gro.frames);
                self.queues[at].held.merge(run.frame, most);
            } else if run.work != Work::Extra && !self.passes_on_unseen(run) {
                return;
            }
            run.began = run.ends;
            if run.round >= round {
                (run.round, run.squeezes) = (0, run.squeezes + 1);
            }
            self.choose_of_queue(run, queue);
        }
    }

    /// The next piece of work of a queue that has one.
    #[inline]
    fn choose_of_queue(&mut self, run: &mut Run, queue: u32) {
        let at = &mut self.queues[queue as usize];
        if let Some(packet) = at.held.leave() {
            return self.begin_flush(run, queue, packet);
        }
        if run.served == 0 {
            at.ring.turn();
        }
        if let Some(frame) = at.ring.pop(run.began, run.cpu as u16) {
            (run.served, run.round) = (run.served + 1, run.round + 1);
            let costs = &self.plan.costs;
            let then = if self.coalesces(&frame) {
                costs.gro
            } else if self.other_input(&frame, run.cpu).is_some() {
                costs.hand_over
            } else {
                self.stack(&frame)
            };
            run.ends = run.began + costs.driver.of(frame.bytes) + then;
            (run.work, run.frame) = (Work::Poll(queue), frame);
        } else if let Some(packet) = at.held.flush() {
            self.begin_flush(run, queue, packet);
        }
    }

    #[inline]
    fn begin_flush(&self, run: &mut Run, queue: u32, packet: Frame) {
        let cost = match self.other_input(&packet, run.cpu) {
            Some(_) => self.plan.costs.hand_over,
            None => self.stack(&packet),
        };
        (run.work, run.frame, run.ends) = (Work::Flush(queue), packet, run.began + cost);
    }

    fn run_input(&mut self, run: &mut Run, input: u32) {
        let Driver::Napi { budget, .. } = self.plan.driver else { return };
        let at = input as usize;
        while run.ends < run.before && run.served < budget && run.served > 0 {
            self.reach_end(run);
            if self.inputs[at].fifo.is_empty() {
                self.settle_input(at);
                if self.inputs[at].fifo.is_empty() {
                    return;
                }
            }
            match run.work {
                Work::Input(_) if !self.delivers_unseen(run) => return,
                Work::Input(_) | Work::Extra => {}
                _ => return,
            }
            let Some(packet) = self.inputs[at].fifo.pop(run.ends, run.cpu as u16) else { return };
            run.served += 1;
            run.began = run.ends;
            run.ends = run.began + self.plan.costs.take_over + self.stack(&packet);
            (run.work, run.frame) = (Work::Input(input), packet);
        }
    }

    /// The driver is done with a packet, where that changes nothing that others see before. Whether it is so.
    #[inline]
    fn passes_on_unseen(&mut self, run: &Run) -> bool {
        if !matches!(run.work, Work::Poll(_) | Work::Flush(_)) {
            return false;
        }
        let Some(input) = self.other_input(&run.frame, run.cpu) else { return self.delivers_unseen(run) };
        if !self.hands_over_unseen(run, input as usize) {
            return false;
        }
        let frame = Frame { by: run.cpu as u16, ..run.frame };
        let soon = run.ends < run.next;
        let fifo = &mut self.inputs[input as usize].fifo;
        if !(soon && fifo.join(frame, run.ends)) {
            fifo.insert(frame, run.ends, self.reached);
            if soon {
                self.settle_input(input as usize);
            }
        }
        true
    }

    #[inline]
    fn delivers_unseen(&mut self, run: &Run) -> bool {
        match self.goal(&run.frame) {
            Goal::Stack => self.done(run.frame, run.ends),
            Goal::Application(application) => {
                if !self.enters_unseen(run, application) {
                    return false;
                }
                let frame = Frame { by: run.cpu as u16, ..run.frame };
                let soon = run.ends < run.next;
                let socket = &mut self.applications[application].socket;
                if !(soon && socket.join(frame, run.ends)) {
                    socket.insert(frame, run.ends, self.reached);
                    if soon {
                        self.settle_socket(application);
                    }
                }
            }
            // Frames of several CPUs are sent in the order of time.
            Goal::Port(port) if run.ends < run.next => {
                self.now = run.ends;
                self.transmit(port, run.frame);
            }
            Goal::Port(_) => return false,
        }
        true
    }
}

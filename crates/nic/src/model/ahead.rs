//! CPUs that run ahead of the others, where nobody can tell.
//!
//! Events are served in the order of time, and of two at one time the one of the lower slot first. Most pieces of work touch
//! nothing but what belongs to their CPU: a poll takes frames that are in the ring already, GRO merges them, the stack counts
//! them. So a CPU goes on with its next piece before its time has come, and its next event is that of the first piece that
//! others could notice. [`Engine::may_go_ahead`] says which pieces those are; the answer is the same with it and without it,
//! bit for bit, which a test holds it to.
//!
//! Two things make that so for frames that are handed on. Whoever takes them out of the queue does not find it empty before
//! ([`Engine::looks_later`]); and the queue keeps them in the order of time, whoever put them in first
//! ([`super::frame::Fifo`]).

use super::Time;
use super::cpu::{Item, Level, Turn, Work};
use super::engine::Engine;
use super::frame::Frame;
use super::plan::{Arrivals, Driver, Goal, Plan};
use super::source::Source;

/// Whether CPUs may run ahead at all: not where the order in which they draw random numbers decides, where losses make a
/// sender wait, or where the clock or the handler takes frames out of rings.
pub(super) fn is_possible(plan: &Plan, sources: &[Source]) -> bool {
    let waits = sources.iter().any(|source| matches!(source.plan.arrivals, Arrivals::Window { .. }));
    matches!(plan.driver, Driver::Napi { .. }) && !plan.costs.exponential && !waits && plan.ahead
}

/// The least that a packet out of an input takes.
pub(super) fn least_input(plan: &Plan, sources: &[Source]) -> Time {
    plan.costs.take_over + sources.iter().map(|source| source.plan.stack.frame).min().unwrap_or(0)
}

impl Engine {
    /// Whether the CPU, whose piece of work ends at `ends`, may end it now and begin the next.
    #[inline]
    pub(super) fn may_go_ahead(&self, number: usize, ends: Time) -> bool {
        let cpu = &self.cpus[number];
        // Queues and inputs that are not being looked after may interrupt.
        if !self.ahead || cpu.level != Level::Soft || cpu.unattended > 0 || ends >= cpu.quiet_until {
            return false;
        }
        let Some(item) = cpu.item(Level::Soft) else { return false };
        self.goes_on(number, item) && self.ends_unseen(number, item, ends)
    }

    /// Whether what the CPU turns to next is more of the same, of which there is more.
    #[inline]
    fn goes_on(&self, number: usize, item: &Item) -> bool {
        let Driver::Napi { budget, limit, .. } = self.plan.driver else { return false };
        let cpu = &self.cpus[number];
        if cpu.soft_on_end + item.left >= limit || cpu.threads_until > self.now {
            return false;
        }
        // A turn that begins looks how many frames there are.
        if cpu.served == 0 || cpu.served >= budget {
            return false;
        }
        match cpu.turns.front() {
            Some(Turn::Queue(queue)) => !self.queues[*queue as usize].ring.is_empty(),
            Some(Turn::Input(input)) => !self.inputs[*input as usize].fifo.is_empty(),
            None => false,
        }
    }

    /// What the CPU turns to where [`Engine::may_go_ahead`] has seen that there is something, and when that ends.
    #[inline]
    pub(super) fn more(&mut self, number: usize) -> Option<Time> {
        if self.cpus[number].extra[Level::Soft as usize] > 0 {
            return self.next(number);
        }
        self.next_of_turn(number).then(|| self.cpus[number].begin(Level::Soft, self.now))
    }

    /// Whether the end of the piece of work at `ends` changes nothing that others see before.
    #[inline]
    fn ends_unseen(&self, number: usize, item: &Item, ends: Time) -> bool {
        match item.work {
            Work::Extra => true,
            Work::Poll(_) if self.coalesces(&item.frame) => true,
            Work::Poll(_) | Work::Flush(_) => match self.other_input(&item.frame, number) {
                Some(input) => {
                    let at = &self.inputs[input as usize];
                    // An interrupt would let soft interrupts take the place of a thread.
                    let is_served = self.cpus[at.cpu].level >= Level::Soft;
                    // Whoever takes packets out takes those first that are there.
                    let busy = at.fifo.len() * self.least_input;
                    at.listed
                        && is_served
                        && at.fifo.has_room()
                        && self.looks_later(at.cpu, busy, number, ends)
                }
                None => self.delivers_unseen(&item.frame, number, ends),
            },
            Work::Input(_) => self.delivers_unseen(&item.frame, number, ends),
            Work::Interrupt(_)
            | Work::Ipi(_)
            | Work::Tick
            | Work::Drain(_)
            | Work::Call(_)
            | Work::Use(_) => false,
        }
    }

    #[inline]
    fn delivers_unseen(&self, frame: &Frame, number: usize, at: Time) -> bool {
        match self.goal(frame) {
            Goal::Stack => true,
            Goal::Application(application) => {
                let application = &self.applications[application];
                // A reader that is awake is not woken, and goes to sleep on its own CPU.
                let busy = if application.socket.is_empty() { 0 } else { application.plan.call };
                !application.asleep
                    && application.socket.has_room()
                    && self.looks_later(application.cpu, busy, number, at)
            }
            // Frames of several CPUs are sent in the order of time.
            Goal::Port(_) => false,
        }
    }

    /// Whether a CPU finds a queue empty after `at` only: not before its next event, and then not before it has worked on what is
    /// there for this long at least. That which asks knows its own order.
    #[inline]
    fn looks_later(&self, cpu: usize, busy: Time, asks: usize, at: Time) -> bool {
        cpu == asks || self.schedule.time(cpu).saturating_add(busy) > at
    }
}

//! CPUs that run ahead of the others, where nothing can observe it.
//!
//! Events are served in the order of time, and of two at one time the one of the lower slot first. Most pieces of work of soft
//! interrupts touch nothing but what belongs to their CPU: a poll takes frames out of its ring, GRO merges them, the stack counts
//! them. So a CPU goes on with its turn before its time has come ([`crate::run`]), and its next event is the end of the first piece that
//! others could notice. The answer is the same with it and without it, bit for bit, which a test holds it to. That rests on this:
//!
//! * Nothing reaches the CPU meanwhile. Before the next event of the rest nothing does at all; after that, no vector of a queue that
//!   it does not poll interrupts before `quiet_until`, and others hand it packets without an interrupt only while its inputs are
//!   being looked after.
//! * It would have continued. Its turn has budget, the limit of soft interrupts is not reached, so that it does not matter which
//!   threads wait, and there is more: of a ring that is known by [`crate::prefetch`], of an input among what is there. A piece after which
//!   there may be nothing more is an event, and until then others see a CPU at the level of soft interrupts, as it is.
//! * What it does is seen no sooner. Whoever takes packets out of an input or socket does not find it empty before: not before its next
//!   event, and then not before it has worked on what is there. The queue keeps packets in the order of time, whoever put them in
//!   first, and knows which part put one in or took one out where that was at one time ([`crate::frame::Fifo`]). What wakes,
//!   interrupts or is sent waits for its time.
//!
//! Void where a piece of work takes no time and two parts meet at a full queue in the same picosecond.

use crate::Time;
use crate::cpu::Level;
use crate::engine::Engine;
use crate::plan::{Arrivals, Driver, Plan};
use crate::run::Run;
use crate::source::Source;

/// Whether CPUs may run ahead at all: not where the order in which they draw random numbers decides, where losses make a
/// sender wait, or where the clock or the handler takes frames out of rings.
pub(crate) fn is_possible(plan: &Plan, sources: &[Source]) -> bool {
    let waits = sources.iter().any(|source| matches!(source.plan.arrivals, Arrivals::Window { .. }));
    matches!(plan.driver, Driver::Napi { .. }) && !plan.costs.exponential && !waits && plan.ahead
}

/// The least that a packet out of an input takes.
pub(crate) fn least_input(plan: &Plan, sources: &[Source]) -> Time {
    plan.costs.take_over + sources.iter().map(|source| source.plan.stack.frame).min().unwrap_or(0)
}

impl Engine {
    /// Whether a packet that comes to a queue between driver and stack at the end of a piece of work changes nothing that others
    /// see before.
    #[inline]
    pub(crate) fn hands_over_unseen(&mut self, run: &Run, input: usize) -> bool {
        let at = &self.inputs[input];
        if !at.listed {
            return false;
        }
        if run.ends < run.next || at.cpu == run.cpu {
            return at.fifo.has_room() || self.input_has_room(input);
        }
        // An interrupt would let soft interrupts take the place of a thread.
        if self.cpus[at.cpu].level < Level::Soft {
            return false;
        }
        let looks = self.schedule.time(at.cpu);
        if looks <= run.ends {
            // Whoever takes packets out takes those first that are there.
            self.settle_input(input);
            let busy = self.inputs[input].fifo.len() * self.least_input;
            if looks.saturating_add(busy) <= run.ends {
                return false;
            }
        }
        self.inputs[input].fifo.has_room() || self.input_has_room(input)
    }

    /// The same of a socket.
    #[inline]
    pub(crate) fn enters_unseen(&mut self, run: &Run, application: usize) -> bool {
        let at = &self.applications[application];
        // A reader that is awake is not woken, and goes to sleep on its own CPU.
        if at.asleep {
            return false;
        }
        if run.ends >= run.next && at.cpu != run.cpu {
            let busy = if at.socket.is_empty() { 0 } else { at.plan.call };
            if self.schedule.time(at.cpu).saturating_add(busy) <= run.ends {
                return false;
            }
        }
        at.socket.has_room() || self.socket_has_room(application)
    }

    #[cold]
    fn input_has_room(&mut self, input: usize) -> bool {
        self.settle_input(input);
        self.inputs[input].fifo.give_up(self.reached, self.part);
        self.inputs[input].fifo.has_room()
    }

    #[cold]
    fn socket_has_room(&mut self, application: usize) -> bool {
        self.settle_socket(application);
        self.applications[application].socket.give_up(self.reached, self.part);
        self.applications[application].socket.has_room()
    }
}

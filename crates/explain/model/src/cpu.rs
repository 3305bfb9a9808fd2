//! A CPU: interrupts before soft interrupts before threads, each interrupted by what stands above it and carried on where
//! it was.

use crate::Time;
use crate::frame::Frame;
use std::collections::VecDeque;

/// What a CPU does, as a place in its order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Idle,
    Thread,
    Soft,
    Hard,
}

impl Level {
    const COUNT: usize = 4;
}

/// Accounts of a CPU's time.
pub(crate) const INTERRUPT: usize = 0;
pub(crate) const SOFT: usize = 1;
pub(crate) const SYSTEM: usize = 2;
pub(crate) const USER: usize = 3;

/// The piece of work of a level; what it does is done at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Handler of a queue's vector.
    Interrupt(u32),
    /// Frames were handed over to this input.
    Ipi(u32),
    /// The clock of polling.
    Tick,
    /// The handler takes a frame out of a ring.
    Drain(u32),
    /// Costs that belong to no frame.
    Extra,
    /// The poll takes a frame out of a ring.
    Poll(u32),
    /// GRO hands a packet to the stack.
    Flush(u32),
    /// The stack takes a packet out of an input.
    Input(u32),
    /// A system call of an application.
    Call(u32),
    /// An application's own work.
    Use(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub(crate) work: Work,
    pub(crate) frame: Frame,
    /// Time that it still takes, as of the last time that it began or was interrupted.
    pub(crate) left: Time,
}

/// What a soft interrupt still has to look after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Queue(u32),
    Input(u32),
}

pub(crate) struct Cpu {
    pub(crate) level: Level,
    /// Since when time is not yet in an account.
    since: Time,
    items: [Option<Item>; Level::COUNT],
    /// Costs to be paid at a level before it goes on.
    pub(crate) extra: [Time; Level::COUNT],
    pub(crate) interrupts: VecDeque<Work>,
    /// The queue whose handler is taking frames.
    pub(crate) draining: Option<u32>,
    /// Soft interrupts that wait; the first is being served.
    pub(crate) turns: VecDeque<Turn>,
    /// Frames that the first has had in its turn.
    pub(crate) served: u32,
    /// Frames since the soft interrupt began or was squeezed.
    pub(crate) round: u32,
    /// Time that soft interrupts have taken on end.
    pub(crate) soft_on_end: Time,
    /// Time that they have taken since the last tick.
    pub(crate) soft_in_tick: Time,
    /// Until then threads come first.
    pub(crate) threads_until: Time,
    pub(crate) ready: Vec<u32>,
    /// The application that ran last.
    pub(crate) last: u32,
    /// Virtual time of the thread that ran last.
    pub(crate) fair: Time,
    pub(crate) spent: [Time; 4],
    pub(crate) squeezes: u64,
    /// Queues that interrupt this CPU.
    pub(crate) queues: Vec<u32>,
    /// Until then none of those does: all are being polled, or have interrupted lately.
    pub(crate) quiet_until: Time,
    /// Inputs of this CPU that no soft interrupt looks after: a packet in one of them interrupts it.
    pub(crate) unattended: u32,
}

/// No application.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Cpu {
    pub(crate) fn new() -> Cpu {
        Cpu {
            level: Level::Idle,
            since: 0,
            items: [None; Level::COUNT],
            extra: [0; Level::COUNT],
            interrupts: VecDeque::with_capacity(16),
            draining: None,
            turns: VecDeque::with_capacity(16),
            served: 0,
            round: 0,
            soft_on_end: 0,
            soft_in_tick: 0,
            threads_until: 0,
            ready: Vec::with_capacity(8),
            last: NOBODY,
            fair: 0,
            spent: [0; 4],
            squeezes: 0,
            queues: Vec::new(),
            quiet_until: 0,
            unattended: 0,
        }
    }

    #[inline]
    pub(crate) fn has(&self, level: Level) -> bool {
        self.items[level as usize].is_some()
    }

    #[inline]
    pub(crate) fn item(&self, level: Level) -> Option<&Item> {
        self.items[level as usize].as_ref()
    }

    /// An input gets somebody to look after it, or is left.
    #[inline]
    pub(crate) fn attend(&mut self, listed: bool) {
        self.unattended = if listed { self.unattended - 1 } else { self.unattended + 1 };
    }

    #[inline]
    pub(crate) fn give(&mut self, level: Level, work: Work, frame: Frame, left: Time) {
        self.items[level as usize] = Some(Item { work, frame, left });
    }

    /// Soft interrupts have moved on to this piece of work, which they began at `began`; the time up to there is entered.
    #[inline]
    pub(crate) fn carry_on(&mut self, work: Work, frame: Frame, began: Time, ends: Time) {
        self.give(Level::Soft, work, frame, ends - began);
        self.enter(work, began);
    }

    /// Begins, or carries on with, the work of a level; when it will be done.
    #[inline]
    pub(crate) fn begin(&mut self, level: Level, now: Time) -> Time {
        self.level = level;
        self.since = now;
        self.items[level as usize].as_ref().map_or(now, |item| now + item.left)
    }

    /// The work of the level is done: what it was, and the time since the last entry, which is entered.
    #[inline]
    pub(crate) fn finish(&mut self, now: Time) -> Option<(Work, Frame, Time)> {
        let place = &mut self.items[self.level as usize];
        let Some(Item { work, frame, .. }) = *place else {
            self.since = now;
            return None;
        };
        *place = None;
        Some((work, frame, self.enter(work, now)))
    }

    /// Enters the time since the last entry: its amount, and the application that it belongs to.
    #[inline]
    pub(crate) fn account(&mut self, now: Time) -> (Time, Option<u32>) {
        let passed = now - self.since;
        let Some(item) = &mut self.items[self.level as usize] else {
            self.since = now;
            return (passed, None);
        };
        item.left = item.left.saturating_sub(passed);
        let work = item.work;
        self.enter(work, now);
        match work {
            Work::Call(application) | Work::Use(application) => (passed, Some(application)),
            _ => (passed, None),
        }
    }

    #[inline]
    fn enter(&mut self, work: Work, now: Time) -> Time {
        let passed = now - self.since;
        self.since = now;
        let account = match self.level {
            Level::Idle => return passed,
            Level::Hard => INTERRUPT,
            Level::Soft => {
                self.soft_on_end += passed;
                self.soft_in_tick += passed;
                SOFT
            }
            Level::Thread if matches!(work, Work::Use(_)) => USER,
            Level::Thread => SYSTEM,
        };
        self.spent[account] += passed;
        passed
    }

    /// Frames of the wire that are being worked on.
    pub(crate) fn frames(&self) -> u64 {
        let held = self.items.iter().flatten().filter(|item| {
            matches!(item.work, Work::Drain(_) | Work::Poll(_) | Work::Flush(_) | Work::Input(_))
        });
        held.map(|item| u64::from(item.frame.frames)).sum()
    }
}

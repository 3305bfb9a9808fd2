//! What the kernel does, as it happens: samples of what a CPU executes, and tracepoints (perf_event_open(2)).
//!
//! An [`Event`] is of one CPU, whatever runs there, in whatever network namespace. Its samples go to a ring that is shared with
//! the kernel; what did not fit is counted by [`Event::lost`].
//!
//! Constants and layouts: `include/uapi/linux/perf_event.h`.

mod ring;
mod sys;
mod tracefs;

pub use ring::{Mode, Sample};
pub use tracefs::{Tracepoint, tracepoint};

use crate::socket::Mapping;
use ring::Ring;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use sys::Attributes;

/// What is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// So many samples a second of what the CPU executes or waits in, idle time included, with the functions of the kernel that
    /// called. They come from a timer: work with interrupts disabled counts where these are enabled again.
    Clock {
        /// Samples a second.
        hertz: u64,
    },
    /// Every event of a tracepoint, with its fields.
    Tracepoint {
        /// Its number ([`Tracepoint::id`]).
        id: u64,
    },
}

/// A source of samples on one CPU.
#[derive(Debug)]
pub struct Event {
    descriptor: OwnedFd,
    ring: Ring,
}

impl Event {
    /// Opens a source, which is still off. `bytes`, made a power of two of at least a page, is memory for samples.
    ///
    /// Errors: `EACCES`, `EPERM`: it takes CAP_PERFMON (CAP_SYS_ADMIN before Linux 5.8), or `kernel.perf_event_paranoid` is 0 or
    /// less for [`Source::Clock`] and -1 for tracepoints; lockdown or a seccomp filter forbids it. `ENOSYS`: the kernel has no
    /// perf events. `ENODEV`: there is no such CPU.
    pub fn open(source: Source, cpu: u32, bytes: usize) -> io::Result<Event> {
        let descriptor = sys::open(&Attributes::of(source), cpu)?;
        let page = rustix::param::page_size();
        let size = bytes.max(page).next_power_of_two();
        let mapping = Mapping::shared(descriptor.as_fd(), page + size, 0)?;
        let has_chain = matches!(source, Source::Clock { .. });
        Ok(Event { descriptor, ring: Ring::new(mapping, page, size, has_chain) })
    }

    /// Turns it on.
    pub fn enable(&self) -> io::Result<()> {
        sys::enable(self.descriptor.as_fd())
    }

    /// Turns it off; samples that were taken stay in the ring.
    pub fn disable(&self) -> io::Result<()> {
        sys::disable(self.descriptor.as_fd())
    }

    /// Takes the samples out of the ring, and gives each of them to `take`.
    pub fn read(&mut self, take: impl FnMut(Sample<'_>)) {
        self.ring.read(take);
    }

    /// Samples that did not fit the ring, as far as it was read.
    pub const fn lost(&self) -> u64 {
        self.ring.lost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};
    use testkit::require;

    fn opened(source: Source) -> Option<Event> {
        let cpu = crate::cpu::allowed().expect("a set").iter().next().expect("a CPU");
        let event = Event::open(source, cpu, 64 << 10);
        require("perf", event.map_err(|error| testkit::Missing(format!("perf events: {error}"))))
    }

    #[test]
    fn a_busy_cpu_is_sampled() {
        let Some(mut event) = opened(Source::Clock { hertz: 997 }) else { return };
        event.enable().expect("on");
        let until = Instant::now() + Duration::from_mins(1);
        let (mut samples, mut in_kernel) = (0, 0);
        while in_kernel == 0 && Instant::now() < until {
            std::fs::read("/proc/kallsyms").expect("work in the kernel");
            event.read(|sample| {
                samples += 1;
                let is_kernel = sample.mode == Mode::Kernel;
                in_kernel += u64::from(is_kernel && sample.callers().next().is_some());
            });
        }
        event.disable().expect("off");
        assert!(samples > 0 && in_kernel > 0, "{samples} samples, {in_kernel} in the kernel");
    }

    #[test]
    fn a_tracepoint_counts_every_event() {
        let Some(point) = require(
            "perf",
            tracepoint("skb", "kfree_skb").map_err(|error| testkit::Missing(format!("tracefs: {error}"))),
        ) else {
            return;
        };
        assert!(point.format.contains("print fmt:") && point.id > 0, "{point:?}");
        let Some(mut event) = opened(Source::Tracepoint { id: point.id }) else { return };
        event.enable().expect("on");
        event.disable().expect("off");
        event.read(|sample| assert!(sample.raw.len() >= 20, "{sample:?}"));
        assert!(tracepoint("skb", "no-such-event").is_err());
    }
}

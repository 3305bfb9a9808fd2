//! Some seconds of this machine as a [`Trace`].
//!
//! # Contract
//!
//! * Every CPU is sampled some hundred times a second, and every event of the tracepoint `skb:kfree_skb` is read
//!   ([`kernel::perf`]); counters are read before and after. Nothing is changed on the machine.
//! * Memory is bounded: 320 KiB to 2 MiB for each CPU, and what is counted by function, reason and protocol. Events that come
//!   faster than they are read are counted as lost.
//! * What this process may not open is in [`Trace::not_opened`], and the rest goes on.
//!
//! Tracepoint and samples are machine-wide: neither names an interface or a network namespace.

mod counters;
mod drops;
mod format;
mod profile;
mod stage;
mod symbols;

use super::files;
use crate::trace::{CpuTime, NotOpened, Obstacle, Part, Trace};
use counters::Counters;
use kernel::perf::{Event, Source, tracepoint};
use profile::Profile;
use rustix::thread::CapabilitySet;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use symbols::Symbols;

/// Samples a second of all CPUs together, and of one: numbers near a power of ten that no timer of the kernel divides.
const ALL_HERTZ: u64 = 16_000;
const MOST_HERTZ: u64 = 997;
const LEAST_HERTZ: u64 = 47;
/// Bytes for samples of one CPU.
const CLOCK_RING: usize = 64 << 10;
/// Bytes for events of one CPU, 80 each, and of all CPUs together: more where there are few CPUs, since who reads them waits for a
/// CPU that is busy. The least, with the samples', is what a user may lock for each CPU (`kernel.perf_event_mlock_kb`, 516).
const MOST_EVENTS: usize = 2 << 20;
const LEAST_EVENTS: usize = 256 << 10;
const ALL_EVENTS: usize = 32 << 20;
/// Between two readings of the rings.
const TICK: Duration = Duration::from_millis(20);

/// Everything that could be opened, still off.
#[derive(Debug)]
pub struct Tracer {
    only: Option<String>,
    functions: Option<Symbols>,
    hertz: u64,
    /// By CPU.
    clocks: Vec<(u32, Event)>,
    events: Vec<Event>,
    /// The format of the tracepoint.
    format: String,
    not_opened: Vec<NotOpened>,
}

impl Tracer {
    /// Opens what can be opened. `only` is the interface whose counters are read, with those around it; `None` is all.
    pub fn open(only: Option<&str>) -> Tracer {
        let mut tracer = Tracer {
            only: only.map(str::to_owned),
            functions: None,
            hertz: 0,
            clocks: Vec::new(),
            events: Vec::new(),
            format: String::new(),
            not_opened: Vec::new(),
        };
        let opened = tracer.open_drops();
        tracer.note(Part::DropReasons, opened);
        let opened = tracer.open_clocks();
        tracer.note(Part::CpuTime, opened);
        if tracer.is_open() {
            match Symbols::read() {
                Ok(functions) => tracer.functions = Some(functions),
                Err(why) => tracer.not_opened.push(NotOpened { what: Part::FunctionNames, why }),
            }
        }
        tracer
    }

    /// Whether at least drops or CPU time can be traced.
    pub fn is_open(&self) -> bool {
        !self.clocks.is_empty() || !self.events.is_empty()
    }

    /// What could not be opened so far.
    pub fn not_opened(&self) -> &[NotOpened] {
        &self.not_opened
    }

    fn note(&mut self, what: Part, opened: Result<(), Obstacle>) {
        if let Err(why) = opened {
            self.not_opened.push(NotOpened { what, why });
        }
    }

    fn open_drops(&mut self) -> Result<(), Obstacle> {
        let point = tracepoint("skb", "kfree_skb").map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if !is_known("tracefs") => Obstacle::NotInKernel,
            // Who has it can mount it.
            io::ErrorKind::NotFound if !is_capable() => privilege(),
            io::ErrorKind::NotFound => Obstacle::NotMounted,
            _ => obstacle(&error),
        })?;
        let cpus = kernel::cpu::online().map_or(1, |cpus| cpus.len());
        let bytes = (ALL_EVENTS / cpus.max(1)).clamp(LEAST_EVENTS, MOST_EVENTS);
        let source = Source::Tracepoint { id: point.id };
        let opened = on_every_cpu(source, bytes).or_else(|_| on_every_cpu(source, LEAST_EVENTS))?;
        self.events = opened.into_iter().map(|(_, event)| event).collect();
        self.format = point.format;
        Ok(())
    }

    fn open_clocks(&mut self) -> Result<(), Obstacle> {
        let cpus = kernel::cpu::online().map_or(1, |cpus| cpus.len() as u64);
        self.hertz = (ALL_HERTZ / cpus.max(1)).clamp(LEAST_HERTZ, MOST_HERTZ);
        self.clocks = on_every_cpu(Source::Clock { hertz: self.hertz }, CLOCK_RING)?;
        Ok(())
    }

    /// Traces for so long, or until `goes_on` says no, which is called some fifty times a second with the time so far.
    pub fn run(mut self, duration: Duration, goes_on: &mut dyn FnMut(Duration) -> bool) -> Trace {
        let mut drops = drops::Counter::new(&self.format);
        let mut profiles: BTreeMap<u32, Profile> = BTreeMap::new();
        let before = Counters::read(self.only.as_deref());
        let start = Instant::now();
        self.switch(Event::enable);
        while start.elapsed() < duration && goes_on(start.elapsed()) {
            thread::sleep(TICK.min(duration.saturating_sub(start.elapsed())));
            self.read(&mut drops, &mut profiles);
        }
        self.switch(Event::disable);
        let seconds = start.elapsed().as_secs_f64();
        self.read(&mut drops, &mut profiles);
        let mut after = Counters::read(self.only.as_deref());
        let counters = after.since(&before);
        self.not_opened.append(&mut after.not_opened);
        let functions = self.functions.as_ref();
        let lost = |events: &mut dyn Iterator<Item = &Event>| events.map(Event::lost).sum::<u64>();
        let cpu_time = CpuTime {
            hertz: self.hertz,
            samples: profiles.values().map(Profile::samples).sum(),
            lost: lost(&mut self.clocks.iter().map(|(_, event)| event)),
            cpus: profiles.iter().map(|(cpu, profile)| profile.finish(*cpu, functions)).collect(),
        };
        Trace {
            seconds,
            drops: (!self.events.is_empty()).then(|| drops.finish(lost(&mut self.events.iter()), functions)),
            counters,
            cpu_time: (!self.clocks.is_empty()).then_some(cpu_time),
            not_opened: self.not_opened,
        }
    }

    fn switch(&self, turn: impl Fn(&Event) -> io::Result<()>) {
        for event in self.events.iter().chain(self.clocks.iter().map(|(_, event)| event)) {
            // The event of a CPU that went offline meanwhile counts nothing.
            let _ = turn(event);
        }
    }

    fn read(&mut self, drops: &mut drops::Counter, profiles: &mut BTreeMap<u32, Profile>) {
        let functions = self.functions.as_ref();
        for event in &mut self.events {
            event.read(|sample| drops.count(sample.raw, functions));
        }
        for (cpu, event) in &mut self.clocks {
            let profile = profiles.entry(*cpu).or_default();
            event.read(|sample| profile.count(&sample, functions));
        }
    }
}

/// Opens a source on every CPU that is online.
fn on_every_cpu(source: Source, bytes: usize) -> Result<Vec<(u32, Event)>, Obstacle> {
    let cpus = kernel::cpu::online().map_err(|error| Obstacle::Failed { error: error.to_string() })?;
    let mut events = Vec::new();
    for cpu in cpus.iter() {
        match Event::open(source, cpu, bytes) {
            Ok(event) => events.push((cpu, event)),
            // It went offline.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(obstacle(&error)),
        }
    }
    Ok(events)
}

/// Why a tracepoint or an event could not be opened.
fn obstacle(error: &io::Error) -> Obstacle {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) if is_locked_down() => Obstacle::Lockdown,
        Some(libc::EACCES | libc::EPERM) if is_capable() => Obstacle::Forbidden,
        Some(libc::EACCES | libc::EPERM) => privilege(),
        Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP) => Obstacle::NotInKernel,
        _ => Obstacle::Failed { error: error.to_string() },
    }
}

fn privilege() -> Obstacle {
    let paranoid = files::word(Path::new("/proc/sys/kernel/perf_event_paranoid"));
    Obstacle::Privilege { paranoid: paranoid.and_then(|word| word.parse().ok()) }
}

/// Whether this process has what the kernel requires for it.
fn is_capable() -> bool {
    let required = CapabilitySet::PERFMON | CapabilitySet::SYS_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.intersects(required))
}

/// Whether the kernel forbids both even to root: `none integrity [confidentiality]`.
fn is_locked_down() -> bool {
    files::word(Path::new("/sys/kernel/security/lockdown"))
        .is_some_and(|modes| modes.contains("[confidentiality]"))
}

/// Whether the kernel has a file system.
fn is_known(file_system: &str) -> bool {
    files::text(Path::new("/proc/filesystems"))
        .is_ok_and(|list| list.split_whitespace().any(|word| word == file_system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_traced_as_far_as_it_allows() {
        let tracer = Tracer::open(None);
        let (is_open, lacks) = (tracer.is_open(), tracer.not_opened().to_vec());
        let trace = tracer.run(Duration::from_millis(50), &mut |_| true);
        assert!(trace.seconds > 0.0);
        let has = |part| !lacks.iter().any(|lacking| lacking.what == part);
        assert_eq!(
            (trace.drops.is_some(), trace.cpu_time.is_some()),
            (has(Part::DropReasons), has(Part::CpuTime))
        );
        assert_eq!(is_open, trace.drops.is_some() || trace.cpu_time.is_some());
        for row in trace.cpu_time.iter().flat_map(|time| &time.cpus) {
            // A CPU that was not sampled in so short a time has no shares.
            let whole = if row.samples == 0 { 0.0 } else { 1.0 };
            assert!((row.idle + row.user + row.kernel - whole).abs() < 1e-9, "{row:?}");
        }
    }

    #[test]
    fn who_watches_ends_it() {
        let mut calls = 0;
        let trace = Tracer::open(Some("lo")).run(Duration::from_secs(3600), &mut |_| {
            calls += 1;
            calls < 3
        });
        assert!(trace.seconds < 3600.0 && calls == 3);
    }
}

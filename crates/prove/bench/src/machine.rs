//! What the machine does meanwhile: time of CPUs, interrupts and queues of an interface, as `rxlane top` reads them.

use host::live::{self, Counters};
use host::text::Reader;
use host::{Counter, Delta, Load, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What findings would call the text; nothing is quoted here.
const NAME: &str = "this machine";

/// The machine, and one of its interfaces.
pub struct Watched {
    counters: Counters,
    settings: Vec<u8>,
    former: Vec<u8>,
    device: String,
}

/// What a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the CPUs, where the kernel tells it.
    pub model: Option<String>,
    /// CPUs online.
    pub cpus: Option<u32>,
}

/// What the machine did in some time; times are summed up over [`Usage::add`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// How long.
    pub time: Duration,
    /// Of each CPU, per cent times seconds.
    cpus: BTreeMap<u32, Load>,
    /// Interrupts of the interface's vectors; `None`: none of them is known.
    interrupts: Option<u64>,
    /// Frames of each receive queue, where the driver counts them.
    queues: BTreeMap<u32, u64>,
}

/// How one CPU spent its time, per cent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuShare {
    /// Its number.
    pub cpu: u32,
    /// Programs.
    pub user: f64,
    /// The kernel, but for what follows.
    pub system: f64,
    /// Hard interrupts.
    pub interrupt: f64,
    /// Soft interrupts.
    pub softirq: Option<f64>,
    /// Nothing.
    pub idle: f64,
}

impl CpuShare {
    /// Anything: never less than none, which the rest of a division may be.
    pub fn busy(&self) -> f64 {
        (100.0 - self.idle).max(0.0)
    }
}

/// A receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueShare {
    /// Its number.
    pub queue: u32,
    /// Frames that it got.
    pub frames: u64,
    /// Of all frames of all queues.
    pub share: Option<f64>,
}

impl Watched {
    /// Looks the interface up; its queues and vectors are those of the device below.
    pub fn open(interface: &str) -> Result<Watched, live::Error> {
        let mut counters = Counters::open(interface)?;
        let mut settings = Vec::new();
        let mut former = Vec::new();
        counters.settings(&mut settings)?;
        counters.sample(1, &mut former)?;
        let snapshot = read([&settings, &former]);
        let device = snapshot.physical(interface).to_owned();
        if device != interface {
            counters.set_device(&device);
            settings.clear();
            former.clear();
            counters.settings(&mut settings)?;
            counters.sample(1, &mut former)?;
        }
        let snapshot = read([&settings, &former]);
        let vectors = snapshot.interrupts_of(&device).map(|interrupt| interrupt.vector.clone()).collect();
        counters.set_vectors(Some(vectors));
        Ok(Watched { counters, settings, former, device })
    }

    /// The CPUs alone; `None`: the kernel does not tell. Every interface has them beside it, and the loopback one is there everywhere.
    pub fn cpus_alone() -> Option<Watched> {
        Watched::open("lo").ok()
    }

    /// The device whose queues and vectors are told of: the interface itself, or what it stands on.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// What is known of the machine and the interface besides counters.
    pub(crate) fn snapshot(&self) -> Snapshot {
        read([&self.settings, &self.former])
    }

    /// What the machine is, and the interface's speed in Mbit/s where it has one. What veth and TUN devices tell the kernel is no
    /// speed: they have no line, as they have no bus.
    pub fn describe(&self) -> (Machine, Option<u32>) {
        let snapshot = self.snapshot();
        let machine = Machine {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            model: snapshot.cpus.model.as_ref().map(|model| model.value.clone()),
            cpus: snapshot.cpu_count(),
        };
        let device = snapshot.interface(&self.device).filter(|interface| interface.bus.is_some());
        (machine, device.and_then(|device| Some(*device.link.speed.as_ref()?.get())))
    }

    /// What the machine did since this was called last, or since the beginning. Error: the interface is gone.
    pub fn step(&mut self) -> Result<Usage, live::Error> {
        let mut latest = Vec::new();
        self.counters.sample(2, &mut latest)?;
        let snapshot = read([&self.settings, &self.former, &latest]);
        self.former = latest;
        Ok(Usage::of(&snapshot, &self.device))
    }
}

fn read<'t>(texts: impl IntoIterator<Item = &'t Vec<u8>>) -> Snapshot {
    let mut reader = Reader::new();
    for text in texts {
        // The only error is one of reading, which text in memory does not have.
        let _ = reader.read(NAME, text.as_slice());
    }
    reader.finish()
}

impl Usage {
    fn of(snapshot: &Snapshot, device: &str) -> Usage {
        let time = snapshot.interval.unwrap_or_default();
        let seconds = time.as_secs_f64();
        let cpus = snapshot.cpus.load.iter().map(|(cpu, load)| (*cpu, scaled(&load.value, seconds)));
        let vectors: Vec<u64> = snapshot
            .interrupts_of(device)
            .flat_map(|interrupt| interrupt.counts.values().filter_map(counted))
            .collect();
        let queues = snapshot.interface(device).map(|interface| &interface.queues);
        let queues = queues
            .into_iter()
            .flatten()
            .filter_map(|(number, queue)| Some((*number, queue.packets.as_ref().and_then(counted)?)));
        Usage {
            time,
            cpus: cpus.collect(),
            interrupts: (!vectors.is_empty()).then(|| vectors.iter().sum()),
            queues: queues.collect(),
        }
    }

    /// Adds another time.
    pub fn add(&mut self, other: &Usage) {
        self.time += other.time;
        for (cpu, load) in &other.cpus {
            let sum = self
                .cpus
                .entry(*cpu)
                .or_insert_with(|| Load { softirq: load.softirq.map(|_| 0.0), ..Load::default() });
            sum.user += load.user;
            sum.system += load.system;
            sum.interrupt += load.interrupt;
            sum.softirq = sum.softirq.zip(load.softirq).map(|(sum, more)| sum + more);
            sum.idle += load.idle;
        }
        if let Some(more) = other.interrupts {
            *self.interrupts.get_or_insert(0) += more;
        }
        for (queue, frames) in &other.queues {
            *self.queues.entry(*queue).or_default() += frames;
        }
    }

    /// Each CPU's mean.
    pub fn cpus(&self) -> Vec<CpuShare> {
        let seconds = self.time.as_secs_f64();
        let share = |(cpu, load): (&u32, &Load)| {
            let mean = scaled(load, 1.0 / seconds);
            CpuShare {
                cpu: *cpu,
                user: mean.user,
                system: mean.system,
                interrupt: mean.interrupt,
                softirq: mean.softirq,
                idle: mean.idle,
            }
        };
        if seconds > 0.0 { self.cpus.iter().map(share).collect() } else { Vec::new() }
    }

    /// Interrupts of the interface a second.
    pub fn interrupts_per_second(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        self.interrupts.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
    }

    /// Frames of each receive queue.
    pub fn queues(&self) -> Vec<QueueShare> {
        let all: u64 = self.queues.values().sum();
        let share = |(queue, frames): (&u32, &u64)| QueueShare {
            queue: *queue,
            frames: *frames,
            share: (all > 0).then(|| *frames as f64 / all as f64),
        };
        self.queues.iter().map(share).collect()
    }
}

/// What a counter counted between its two samples. What fell is not known.
fn counted(counter: &Counter) -> Option<u64> {
    match counter.delta() {
        Delta::Counted(counted) | Delta::Wrapped(counted) => Some(counted),
        Delta::Reset | Delta::OneSample => None,
    }
}

fn scaled(load: &Load, by: f64) -> Load {
    Load {
        user: load.user * by,
        system: load.system * by,
        interrupt: load.interrupt * by,
        softirq: load.softirq.map(|softirq| softirq * by),
        idle: load.idle * by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    #[test]
    fn the_time_of_a_cpu_is_all_of_it() {
        let mut watched = Watched::open("lo").expect("the loopback");
        let mut usage = Usage::default();
        for _ in 0..2 {
            sleep(Duration::from_millis(150));
            usage.add(&watched.step().expect("there"));
        }
        assert!((0.29..5.0).contains(&usage.time.as_secs_f64()), "{usage:?}");
        let cpus = usage.cpus();
        assert!(!cpus.is_empty());
        for cpu in cpus {
            let all = cpu.user + cpu.system + cpu.interrupt + cpu.softirq.expect("Linux tells it") + cpu.idle;
            assert!((50.0..=100.1).contains(&all), "{cpu:?}");
        }
        assert_eq!((usage.interrupts_per_second(), usage.queues()), (None, Vec::new()));
        let (machine, speed) = watched.describe();
        assert!(machine.cpus.is_some() && !machine.kernel.is_empty() && speed.is_none(), "{machine:?}");
    }

    #[test]
    fn an_unknown_interface_is_named() {
        let error = Watched::open("nothing0").err().expect("an error");
        assert!(error.to_string().contains("nothing0"), "{error}");
    }
}

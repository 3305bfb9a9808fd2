//! What the machine does meanwhile: time of CPUs, interrupts and queues of an interface, as `rxlane top` reads them.

use host::live::{self, Counters};
use host::text::Reader;
use host::{Counter, Delta, Load, Snapshot};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// What findings would call the text; nothing is quoted here.
const NAME: &str = "this machine";

pub struct Watched {
    counters: Counters,
    settings: Vec<u8>,
    former: Vec<u8>,
    device: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub kernel: String,
    /// Model of the CPUs, where the kernel reports it.
    pub model: Option<String>,
    pub cpus: Option<u32>,
}

/// What the machine did in some time; times are summed up over [`Usage::add`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    pub time: Duration,
    /// Of each CPU, per cent times seconds.
    cpus: BTreeMap<u32, Load>,
    /// Interrupts of the interface's vectors; `None`: none of them is known.
    interrupts: Option<u64>,
    /// Frames of each receive queue, where the driver counts them.
    queues: BTreeMap<u32, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpuShare {
    pub cpu: u32,
    pub user: f64,
    /// The kernel, but for what follows.
    pub system: f64,
    pub interrupt: f64,
    pub softirq: Option<f64>,
    pub idle: f64,
}

impl CpuShare {
    /// Anything: never less than none, which the rest of a division may be.
    pub fn busy(&self) -> f64 {
        (100.0 - self.idle).max(0.0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueShare {
    pub queue: u32,
    pub frames: u64,
    pub share: Option<f64>,
}

impl Watched {
    /// Looks the interface up; its queues and vectors are those of the device below.
    pub fn open(interface: &str) -> Result<Watched, live::Error> {
        let (settings, former, device) = (Vec::new(), Vec::new(), interface.to_owned());
        let mut watched = Watched { counters: Counters::open(interface)?, settings, former, device };
        watched.look()?;
        let device = watched.snapshot().physical(interface).to_owned();
        if device != interface {
            watched.counters.set_device(&device);
            watched.device = device;
            watched.look()?;
        }
        let snapshot = watched.snapshot();
        let interrupts = snapshot.interrupts_of(&watched.device);
        let vectors = interrupts.map(|interrupt| interrupt.vector.clone()).collect();
        watched.counters.set_vectors(Some(vectors));
        Ok(watched)
    }

    fn look(&mut self) -> Result<(), live::Error> {
        self.settings.clear();
        self.former.clear();
        self.counters.settings(&mut self.settings)?;
        self.counters.sample(1, &mut self.former)
    }

    /// The CPUs alone; `None`: the kernel does not report them. Every interface comes with them, and the loopback one is there everywhere.
    pub fn cpus_alone() -> Option<Watched> {
        Watched::open("lo").ok()
    }

    /// The device whose queues and vectors are reported: the interface itself, or what it stands on.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// What is known of the machine and the interface besides counters.
    pub(crate) fn snapshot(&self) -> Snapshot {
        read([&self.settings, &self.former])
    }

    /// What the machine is, and the interface's speed in Mbit/s where it has one. What veth and TUN devices report to the kernel is no
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

    /// What the machine did since this was called last, or since the beginning. Error: the interface is removed.
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

    pub fn add(&mut self, other: &Usage) {
        self.time += other.time;
        for (cpu, load) in &other.cpus {
            let sum = self.cpus.entry(*cpu).or_insert_with(|| scaled(load, 0.0));
            *sum = combined(sum, load, |sum, more| sum + more);
        }
        if let Some(more) = other.interrupts {
            *self.interrupts.get_or_insert(0) += more;
        }
        for (queue, frames) in &other.queues {
            *self.queues.entry(*queue).or_default() += frames;
        }
    }

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

    pub fn interrupts_per_second(&self) -> Option<f64> {
        let seconds = self.time.as_secs_f64();
        self.interrupts.filter(|_| seconds > 0.0).map(|count| count as f64 / seconds)
    }

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
    combined(load, load, |load, _| load * by)
}

fn combined(one: &Load, other: &Load, of: impl Fn(f64, f64) -> f64) -> Load {
    Load {
        user: of(one.user, other.user),
        system: of(one.system, other.system),
        interrupt: of(one.interrupt, other.interrupt),
        softirq: one.softirq.zip(other.softirq).map(|(one, other)| of(one, other)),
        idle: of(one.idle, other.idle),
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
        assert!(usage.time >= Duration::from_millis(290), "{usage:?}");
        let cpus = usage.cpus();
        assert!(!cpus.is_empty());
        for cpu in cpus {
            let all =
                cpu.user + cpu.system + cpu.interrupt + cpu.softirq.expect("Linux reports it") + cpu.idle;
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

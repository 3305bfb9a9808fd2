//! The programs that steer: their plan, maps and record, and what an attachment of them can do.

use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use crate::attachment::{Attachment, Loaded, Parts};
use crate::counters::{self, Counters};
use crate::error::Error;
use crate::family::Family;
use crate::features::kernel;
use crate::interface::{Interface, Mode};
use crate::layout::{Arrivals, BUCKETS, Bucket, CPUS, Class, Counts, KEY_WORDS, Settings, map};
use crate::load::{self, stride};
use crate::object;
use crate::permission::refused;
use crate::pins::{ARRIVE, Folder};
use kernel::bpf::{self, Map, map_type};
use kernel::cpu::{self, CpuSet};

/// Largest queue that the kernel gives a CPU, frames (`__cpu_map_entry_alloc` and `cpu_map_update_elem` in
/// `kernel/bpf/cpumap.c`).
pub const LONGEST_QUEUE: u32 = 16384;

/// Bytes of an entry of the map of CPUs (`struct bpf_cpumap_val`): queue size, and the program's file descriptor or number.
const CPU_ENTRY: usize = 8;

const READING_CPUS: &str = "read which CPUs there are";

/// Pause between two readings of the counters of an interface that is being detached.
const POLL: Duration = Duration::from_millis(2);
/// Without an arrival for this long, what is missing will not come: the kernel's threads that empty the queues run
/// whenever there is something in them.
const SILENCE: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub interface: Interface,
    /// Run by whom. Never changed silently: what does not work in this mode is an error.
    pub mode: Mode,
    /// Settings of the programs. `cpus` and `spare` are filled in, whatever is in them.
    pub settings: Settings,
    /// The CPU of each bucket; each in `cpus`.
    pub buckets: [u32; BUCKETS],
    /// The target CPUs, each once, and how many frames the queue to each holds: 1 to [`LONGEST_QUEUE`].
    pub cpus: Vec<(u32, u32)>,
}

/// The maps of both programs, their settings, and the program of the map of CPUs.
#[derive(Debug)]
pub struct Steering {
    pub(crate) maps: Maps,
    settings: Settings,
    arrive: Loaded,
}

#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) buckets: Map,
    pub(crate) cpus: Map,
    pub(crate) counts: Map,
    pub(crate) arrivals: Map,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    /// The last counters, taken when the program was off the interface and the queues were empty or the wait for that
    /// was over.
    pub counters: Counters,
    /// Frames that were sent and not seen to arrive: they were dropped where a queue was full. (Queues are emptied to
    /// the stack by the kernel when their map goes, so none is lost by detaching.)
    pub unseen: u64,
    /// How long the queues took to fall silent.
    pub waited: Duration,
}

impl Maps {
    fn open(folder: &Folder) -> Result<Maps, Error> {
        Ok(Maps {
            buckets: folder.map(map::BUCKETS, map_type::ARRAY, size_of::<Bucket>(), Some(BUCKETS))?,
            cpus: folder.map(map::CPUS, map_type::CPUMAP, CPU_ENTRY, None)?,
            counts: folder.map(map::COUNTS, map_type::PERCPU_ARRAY, size_of::<Counts>(), Some(1))?,
            arrivals: folder.map(map::ARRIVALS, map_type::PERCPU_ARRAY, size_of::<Arrivals>(), Some(1))?,
        })
    }
}

impl Parts for Steering {
    const FAMILY: Family = Family::Steer;
    const PROGRAM: &'static str = "steer";

    fn open(folder: &Folder, record: &[u8]) -> Result<Option<Steering>, Error> {
        let Some(settings) = settings_from_bytes(record) else { return Ok(None) };
        let (arrive, _) = folder.program(ARRIVE)?;
        Ok(Some(Steering { maps: Maps::open(folder)?, settings, arrive }))
    }
}

impl crate::attachment::Plan for Plan {
    type Parts = Steering;

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn check(&self) -> Result<(), Error> {
        self.check_consistency()?;
        self.check_cpus()
    }

    fn frags(&self) -> Result<bool, Error> {
        let kernel = kernel();
        if kernel.cpumap_programs == Some(false) {
            let lacks =
                "this kernel has no programs in maps of CPUs (BPF_MAP_TYPE_CPUMAP): it takes Linux 5.9";
            return Err(Error::Lacks(lacks.to_owned()));
        }
        Ok(kernel.frags != Some(false) && kernel.percpu_lookup != Some(false))
    }

    /// The maps are pinned while they are made, which is how aya gives one map to two objects.
    fn load(&self, frags: bool, folder: &Folder) -> Result<(OwnedFd, Vec<u8>), Error> {
        let highest = cpu::possible().map_err(Error::system(READING_CPUS))?.iter().last().unwrap_or_default();
        let entries = highest.saturating_add(1).min(CPUS as u32);
        let settings = Settings { cpus: entries, spare: 0, ..self.settings };
        let record = settings_to_bytes(&settings);
        let objects = match frags {
            true => [(ARRIVE, object::arrive()), (Steering::PROGRAM, object::steer())],
            false => [(ARRIVE, object::arrive_nofrags()), (Steering::PROGRAM, object::steer_nofrags())],
        };
        let [arrive, steer] =
            objects.map(|(name, object)| load::steering(name, object, &record, entries, folder));
        let (arrive, steer) = (arrive?, steer?);
        self.fill(&arrive, &Maps::open(folder)?)?;
        folder.pin(arrive.as_fd(), ARRIVE)?;
        Ok((steer, record))
    }
}

impl Plan {
    fn check_consistency(&self) -> Result<(), Error> {
        let wrong = |problem: String| Err(Error::Plan(problem));
        if self.cpus.is_empty() {
            return wrong("it names no CPU".to_owned());
        }
        for (index, &(cpu, queue)) in self.cpus.iter().enumerate() {
            if cpu as usize >= CPUS {
                return wrong(format!("CPU {cpu} is beyond the {CPUS} that steering knows"));
            }
            if self.cpus.iter().take(index).any(|&(before, _)| before == cpu) {
                return wrong(format!("it names CPU {cpu} twice"));
            }
            if !(1..=LONGEST_QUEUE).contains(&queue) {
                return wrong(format!(
                    "a queue of {queue} frames for CPU {cpu}: the kernel takes 1 to {LONGEST_QUEUE}"
                ));
            }
        }
        let is_target = |cpu: u32| self.cpus.iter().any(|&(target, _)| target == cpu);
        if let Some(bucket) = self.buckets.iter().position(|&cpu| !is_target(cpu)) {
            return wrong(format!("bucket {bucket} has a CPU that is no target"));
        }
        let known = Class::ALL.iter().fold(0, |bits, class| bits | class.bit());
        if self.settings.classes & known == 0 || self.settings.classes & !known != 0 {
            return wrong(format!("{:#x} is no set of classes", self.settings.classes));
        }
        if self.settings.symmetric > 1 {
            return wrong(format!("symmetric is 0 or 1, not {}", self.settings.symmetric));
        }
        Ok(())
    }

    fn check_cpus(&self) -> Result<(), Error> {
        let possible = cpu::possible().map_err(Error::system(READING_CPUS))?;
        let online = cpu::online().map_err(Error::system(READING_CPUS))?;
        for &(cpu, _) in &self.cpus {
            if !possible.contains(cpu) {
                return Err(no_cpu(cpu, &possible.list()));
            }
            if !online.contains(cpu) {
                return Err(Error::Lacks(format!(
                    "CPU {cpu} is offline: leave it out, or bring it up with `echo 1 > \
                     /sys/devices/system/cpu/cpu{cpu}/online`"
                )));
            }
        }
        Ok(())
    }

    fn fill(&self, arrive: &OwnedFd, maps: &Maps) -> Result<(), Error> {
        let failed = |map: &str| {
            let doing = format!("fill the map {map}");
            |source| refused(doing, source)
        };
        for (number, &cpu) in (0..).zip(&self.buckets) {
            let bucket = Bucket { cpu, spare: 0, lost: 0 };
            maps.buckets.update(number, &bucket_to_bytes(&bucket)).map_err(failed(map::BUCKETS))?;
        }
        let counts = self.counts_at_start(&maps.counts).and_then(|counts| maps.counts.update(0, &counts));
        counts.map_err(failed(map::COUNTS))?;
        for &(cpu, queue) in &self.cpus {
            let entry = [queue.to_ne_bytes(), arrive.as_raw_fd().to_ne_bytes()].concat();
            maps.cpus.update(cpu, &entry).map_err(|source| match source.raw_os_error() {
                Some(libc::ENODEV) => no_cpu(cpu, &cpu::possible().map(CpuSet::list).unwrap_or_default()),
                _ => refused(format!("make a queue of {queue} frames to CPU {cpu}"), source),
            })?;
        }
        Ok(())
    }

    /// The values of all CPUs: nothing counted, every bucket where it should be.
    fn counts_at_start(&self, counts: &Map) -> io::Result<Vec<u8>> {
        let mut one = vec![0; stride(counts)];
        let current: Vec<u8> = self.buckets.iter().flat_map(|cpu| cpu.to_ne_bytes()).collect();
        let put = |value: &mut [u8], offset: usize, bytes: &[u8]| {
            if let Some(place) = value.get_mut(offset..offset + bytes.len()) {
                place.copy_from_slice(bytes);
            }
        };
        put(&mut one, offset_of!(Counts, current), &current);
        let mut all = Vec::new();
        for own in cpu::possible()?.iter() {
            put(&mut one, offset_of!(Counts, own_cpu), &own.to_ne_bytes());
            all.extend_from_slice(&one);
        }
        Ok(all)
    }
}

fn no_cpu(cpu: u32, possible: &str) -> Error {
    Error::Lacks(format!("there is no CPU {cpu}: this machine has {possible}"))
}

impl Attachment<Steering> {
    pub fn settings(&self) -> &Settings {
        &self.parts.settings
    }

    /// The programs: `steer`, then `arrive`.
    pub fn programs(&self) -> [&Loaded; 2] {
        [self.program(), &self.parts.arrive]
    }

    /// The CPU that each bucket should have, and what is known to be lost of it.
    pub fn buckets(&self) -> Result<Box<[Bucket; BUCKETS]>, Error> {
        let mut buckets = Box::new([Bucket::default(); BUCKETS]);
        for (number, bucket) in (0..).zip(buckets.iter_mut()) {
            let value = self.parts.maps.buckets.lookup(number);
            let value = value.map_err(|source| self.unread(map::BUCKETS, source))?;
            *bucket = bucket_from_bytes(&value.unwrap_or_default());
        }
        Ok(buckets)
    }

    /// Writes the CPU that a bucket should have, and what is known to be lost of it; the receiving CPUs follow as the
    /// crate's documentation says. The kernel copies the entry in words of 64 bits: CPU and losses are each whole, not
    /// both at once.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`]: there is no such bucket, or the CPU is no target of this attachment; [`Error::System`].
    pub fn set_bucket(&self, bucket: usize, value: Bucket) -> Result<(), Error> {
        let number = u32::try_from(bucket).ok().filter(|&number| (number as usize) < BUCKETS);
        let Some(number) = number else {
            return Err(Error::Plan(format!("there is no bucket {bucket}")));
        };
        if self.queue(value.cpu)?.is_none() {
            return Err(Error::Plan(format!("CPU {} is no target of {}", value.cpu, self.interface.name)));
        }
        let written = self.parts.maps.buckets.update(number, &bucket_to_bytes(&value));
        written.map_err(|source| refused(format!("write to the map {}", map::BUCKETS), source))
    }

    /// Frames that the queue to a CPU holds; `None`: it is no target.
    fn queue(&self, cpu: u32) -> Result<Option<u32>, Error> {
        let cpus = &self.parts.maps.cpus;
        if cpu >= cpus.entries {
            return Ok(None);
        }
        let entry = cpus.lookup(cpu).map_err(|source| self.unread(map::CPUS, source))?;
        Ok(entry.and_then(|entry| entry.first_chunk().copied()).map(u32::from_ne_bytes))
    }

    /// The target CPUs, and how many frames the queue to each holds.
    pub fn cpus(&self) -> Result<Vec<(u32, u32)>, Error> {
        let mut found = Vec::new();
        for cpu in 0..self.parts.maps.cpus.entries {
            found.extend(self.queue(cpu)?.map(|queue| (cpu, queue)));
        }
        Ok(found)
    }

    /// All counters, in two system calls and one for each possible CPU.
    pub fn counts(&self) -> Result<Counters, Error> {
        let targets: Vec<u32> = self.cpus()?.into_iter().map(|(cpu, _)| cpu).collect();
        counters::read(&self.parts.maps, &targets).map_err(|source| self.unread(map::COUNTS, source))
    }

    /// Takes the program off the interface, waits at most `wait` until the queues have fallen silent, and removes the
    /// pins. The queues empty by themselves in microseconds; the wait is for the counters.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`]: nothing was changed. [`Error::Remains`]: the program is off, but a pin could not be removed.
    pub fn detach(self, wait: Duration) -> Result<Detached, Error> {
        let targets: Vec<u32> = self.cpus()?.into_iter().map(|(cpu, _)| cpu).collect();
        let Attachment { interface, folder, link, parts, .. } = self;
        // `None`: another process has removed it before; then this finds the program off and the queues empty.
        let locked = folder.lock()?;
        let detaching = |source| refused(format!("detach from {}", interface.name), source);
        bpf::link_detach(link.as_fd()).map_err(detaching)?;
        let started = Instant::now();
        let read = || {
            let unread = |source| refused(format!("read the counters of {}", interface.name), source);
            counters::read(&parts.maps, &targets).map_err(unread)
        };
        let (mut counters, mut changed) = (read()?, started);
        while unseen(&counters) > 0 && started.elapsed() < wait && changed.elapsed() < SILENCE {
            thread::sleep(POLL);
            let later = read()?;
            if later.arrived != counters.arrived || later.sent != counters.sent {
                changed = Instant::now();
            }
            counters = later;
        }
        let waited = started.elapsed();
        if let Some(locked) = locked {
            locked.remove()?;
        }
        Ok(Detached { unseen: unseen(&counters), counters, waited })
    }
}

fn unseen(counters: &Counters) -> u64 {
    let pairs = counters.sent.iter().zip(counters.arrived.iter());
    pairs.map(|(sent, arrived)| sent.saturating_sub(*arrived)).fold(0, u64::saturating_add)
}

fn bucket_to_bytes(bucket: &Bucket) -> Vec<u8> {
    let &Bucket { cpu, spare, lost } = bucket;
    [&cpu.to_ne_bytes()[..], &spare.to_ne_bytes(), &lost.to_ne_bytes()].concat()
}

fn bucket_from_bytes(bytes: &[u8]) -> Bucket {
    let word = |from: usize| {
        bytes.get(from..from + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let lost = bytes.get(8..16).and_then(|lost| lost.try_into().ok()).map_or(0, u64::from_ne_bytes);
    Bucket { cpu: word(0), spare: word(4), lost }
}

/// The settings as the programs have them in memory: there is no padding.
fn settings_to_bytes(settings: &Settings) -> Vec<u8> {
    let &Settings { key, classes, symmetric, cpus, spare, hold_ns } = settings;
    let words = key.into_iter().chain([classes, symmetric, cpus, spare]);
    let mut bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    bytes.extend(hold_ns.to_ne_bytes());
    bytes
}

fn settings_from_bytes(bytes: &[u8]) -> Option<Settings> {
    let (words, hold_ns) = bytes.split_at_checked(4 * (KEY_WORDS + 4))?;
    let mut words = words.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes));
    let mut key = [0; KEY_WORDS];
    for place in &mut key {
        *place = words.next()?;
    }
    Some(Settings {
        key,
        classes: words.next()?,
        symmetric: words.next()?,
        cpus: words.next()?,
        spare: words.next()?,
        hold_ns: u64::from_ne_bytes(hold_ns.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attachment::build;
    use crate::pins;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;

    fn plan() -> Plan {
        let settings = Settings {
            key: std::array::from_fn(|index| 0x0102_0304 * (index as u32 + 1)),
            classes: Class::Pppoe.bit(),
            symmetric: 0,
            cpus: 0,
            spare: 0,
            hold_ns: 1 << 40,
        };
        Plan {
            interface: Interface { name: "wan0".to_owned(), index: 7, namespace: 1 },
            mode: Mode::Native,
            settings,
            buckets: std::array::from_fn(|bucket| bucket as u32 % 2),
            cpus: vec![(0, 512), (1, 512)],
        }
    }

    /// No kernel here is old enough to want them; that they load, pass the verifier and can be attached is seen here.
    #[test]
    fn the_programs_for_older_kernels_are_attached() {
        let Some(()) = require("bpf", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { queues: 2, ..Veth::pair("wan0", "peer0") }).expect("a pair");
        let frags = namespace.inside(|| {
            let interface = Interface::find("wan0")?;
            let mut plan = Plan { interface: interface.clone(), cpus: vec![(0, 512)], ..plan() };
            plan.buckets = [0; _];
            let locked = pins::create(Family::Steer, &interface)?;
            build(&plan, false, &locked)?;
            let attachment = Attachment::<Steering>::of(interface, locked.unlock()?)?;
            let frags = attachment.frags();
            attachment.detach(Duration::from_secs(1))?;
            Ok::<_, Error>(frags)
        });
        assert!(!frags.expect("attached"));
    }

    #[test]
    fn a_plan_that_contradicts_itself_is_refused_with_the_reason() {
        assert!(plan().check_consistency().is_ok());
        type Change = fn(&mut Plan);
        let cases: [(Change, &str); 8] = [
            (|plan| plan.cpus.clear(), "no CPU"),
            (|plan| plan.cpus.push((1, 512)), "CPU 1 twice"),
            (|plan| plan.cpus.push((1024, 512)), "CPU 1024 is beyond"),
            (|plan| plan.cpus[1].1 = 0, "queue of 0"),
            (|plan| plan.cpus[1].1 = LONGEST_QUEUE + 1, "queue of 16385"),
            (|plan| plan.buckets[9] = 2, "bucket 9"),
            (|plan| plan.settings.classes = 0, "no set of classes"),
            (|plan| plan.settings.classes = 1 << 31, "no set of classes"),
        ];
        for (change, expected) in cases {
            let mut plan = plan();
            change(&mut plan);
            let error = plan.check_consistency().expect_err(expected).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn settings_are_read_as_they_were_recorded() {
        let settings = plan().settings;
        let bytes = settings_to_bytes(&settings);
        assert_eq!((bytes.len(), settings_from_bytes(&bytes)), (size_of::<Settings>(), Some(settings)));
        assert_eq!(settings_from_bytes(&bytes[1..]), None);
    }
}

//! The programs in the kernel, run with `BPF_PROG_TEST_RUN`. The tests and the example `steering_cost` use it.
#![allow(dead_code)]

use aya::maps::{Array, CpuMap, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use rxlane_xdp::layout::{Arrivals, BUCKETS, Bucket, CPUS, Counts, REASONS, Settings, map};
use rxlane_xdp::object;
use std::mem::{offset_of, size_of};
use std::thread;
use testkit::Missing;

/// Return values of XDP programs.
pub const PASS: u32 = 2;
pub const REDIRECT: u32 = 4;

/// The least frame that the kernel runs a program on.
pub const LEAST: usize = 14;

/// Whether programs can be loaded and run here.
pub fn probe() -> Result<(), Missing> {
    let settings = super::settings();
    match Program::try_load(object::steer(), "steer", &settings, 1) {
        Ok(_) => Ok(()),
        Err(error) if rustix::process::geteuid().is_root() => {
            Err(Missing(format!("the kernel does not take the program (it wants Linux 5.19): {error}")))
        }
        Err(_) => Err(Missing("eBPF programs require root (run the tests as root)".to_owned())),
    }
}

/// The settings as the program has them.
pub fn settings_bytes(settings: &Settings) -> [u8; size_of::<Settings>()] {
    let mut bytes = [0; size_of::<Settings>()];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    for (word, value) in settings.key.iter().enumerate() {
        put(offset_of!(Settings, key) + 4 * word, &value.to_ne_bytes());
    }
    put(offset_of!(Settings, classes), &settings.classes.to_ne_bytes());
    put(offset_of!(Settings, symmetric), &settings.symmetric.to_ne_bytes());
    put(offset_of!(Settings, cpus), &settings.cpus.to_ne_bytes());
    put(offset_of!(Settings, hold_ns), &settings.hold_ns.to_ne_bytes());
    bytes
}

/// Counters summed over all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    pub reasons: Vec<u64>,
    pub sent: Vec<u64>,
    pub sent_to: Vec<u64>,
    pub kept: Vec<u64>,
}

impl Sums {
    pub fn none() -> Sums {
        Sums {
            reasons: vec![0; REASONS],
            sent: vec![0; BUCKETS],
            sent_to: vec![0; CPUS],
            kept: vec![0; BUCKETS],
        }
    }
}

/// A loaded program.
pub struct Program {
    pub ebpf: Ebpf,
    name: &'static str,
    out: Vec<u8>,
}

impl Program {
    /// Loads a program; `cpus` target CPUs, to which buckets go in turn.
    pub fn load<'a>(
        object: &[u8],
        name: &'static str,
        settings: impl Into<Option<&'a Settings>>,
        cpus: u32,
    ) -> Program {
        Program::try_load(object, name, settings, cpus).expect("the program loads")
    }

    fn try_load<'a>(
        object: &[u8],
        name: &'static str,
        settings: impl Into<Option<&'a Settings>>,
        cpus: u32,
    ) -> Result<Program, Box<dyn std::error::Error>> {
        let settings = settings.into().map(settings_bytes);
        let possible = u32::try_from(thread::available_parallelism()?.get())?.max(cpus);
        let mut loader = EbpfLoader::new();
        if let Some(settings) = &settings {
            loader.override_global("SETTINGS", settings, true);
        }
        let mut ebpf = loader.map_max_entries(map::CPUS, possible).load(object)?;
        let program: &mut Xdp = ebpf.program_mut(name).ok_or("no such program")?.try_into()?;
        program.load()?;
        let mut program = Program { ebpf, name, out: vec![0; 1 << 17] };
        if program.ebpf.map(map::CPUS).is_some() {
            program.fill(cpus)?;
        }
        Ok(program)
    }

    fn fill(&mut self, cpus: u32) -> Result<(), Box<dyn std::error::Error>> {
        let mut map = CpuMap::try_from(self.ebpf.map_mut(map::CPUS).ok_or("no CPUS")?)?;
        for cpu in 0..cpus {
            map.set(cpu, 64, None, 0)?;
        }
        if self.ebpf.map(map::BUCKETS).is_none() {
            return Ok(());
        }
        let buckets: Vec<u32> = (0..BUCKETS as u32).map(|bucket| bucket % cpus).collect();
        buckets.iter().enumerate().for_each(|(bucket, cpu)| self.order(bucket, *cpu));
        let current: Vec<u8> = buckets.iter().flat_map(|cpu| cpu.to_ne_bytes()).collect();
        let at = offset_of!(Counts, current);
        self.change::<{ size_of::<Counts>() }>(map::COUNTS, |values| {
            values.iter_mut().for_each(|value| value[at..at + current.len()].copy_from_slice(&current));
        });
        // So that every frame is queued, wherever a test runs.
        self.receive_on(u32::MAX);
        Ok(())
    }

    /// What is received on any CPU takes it for this one.
    pub fn receive_on(&mut self, cpu: u32) {
        let at = offset_of!(Counts, own_cpu);
        self.change::<{ size_of::<Counts>() }>(map::COUNTS, |values| {
            values.iter_mut().for_each(|value| value[at..at + 4].copy_from_slice(&cpu.to_ne_bytes()));
        });
    }

    /// The values of a per-CPU map's only entry.
    pub fn values<const N: usize>(&self, map: &str) -> Vec<[u8; N]> {
        let map = self.ebpf.map(map).expect("the map");
        let map: PerCpuArray<_, [u8; N]> = PerCpuArray::try_from(map).expect("per CPU");
        map.get(&0, 0).expect("an entry").to_vec()
    }

    /// Changes them.
    pub fn change<const N: usize>(&mut self, map: &str, change: impl FnOnce(&mut [[u8; N]])) {
        let mut values = self.values(map);
        change(&mut values);
        let map = self.ebpf.map_mut(map).expect("the map");
        let mut map: PerCpuArray<_, [u8; N]> = PerCpuArray::try_from(map).expect("per CPU");
        map.set(0, values.try_into().expect("values"), 0).expect("set");
    }

    /// The largest of the words at an offset in them.
    pub fn largest<const N: usize>(&self, map: &str, at: usize) -> u64 {
        let values = self.values::<N>(map);
        let words = values.iter().map(|value| *value[at..].first_chunk().expect("a word"));
        words.map(u64::from_ne_bytes).max().expect("a CPU")
    }

    /// The CPU that the bucket should have.
    pub fn order(&mut self, bucket: usize, cpu: u32) {
        self.order_with_lost(bucket, cpu, 0);
    }

    /// The same, and how many frames of it are lost.
    pub fn order_with_lost(&mut self, bucket: usize, cpu: u32, lost: u64) {
        let mut value = [0; size_of::<Bucket>()];
        let (cpu_at, lost_at) = (offset_of!(Bucket, cpu), offset_of!(Bucket, lost));
        value[cpu_at..cpu_at + 4].copy_from_slice(&cpu.to_ne_bytes());
        value[lost_at..lost_at + 8].copy_from_slice(&lost.to_ne_bytes());
        let buckets = self.ebpf.map_mut(map::BUCKETS).expect("BUCKETS");
        let mut buckets: Array<_, [u8; size_of::<Bucket>()]> = Array::try_from(buckets).expect("an array");
        buckets.set(bucket as u32, value, 0).expect("set");
    }

    /// Takes a CPU out of the map of CPUs.
    pub fn remove_cpu(&mut self, cpu: u32) {
        let map = self.ebpf.map_mut(map::CPUS).expect("CPUS");
        let mut map = CpuMap::try_from(map).expect("a CPU map");
        // A queue of no frames is no queue: the kernel removes the entry.
        map.set(cpu, 0, None, 0).expect("removed");
    }

    /// Runs it so many times on a frame: what it returned, and the length of the frame as it left it in `out`.
    fn test_run(&mut self, frame: &[u8], repeat: u32) -> (u32, usize) {
        let program: &mut Xdp = self.ebpf.program_mut(self.name).expect("loaded").try_into().expect("XDP");
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = (repeat == 1).then_some(&mut self.out[..]);
        options.repeat = repeat;
        let result = program.test_run(options).expect("a run");
        (result.return_value, result.data_size_out as usize)
    }

    /// Runs it on a frame: what it returned, and the frame as it left it.
    pub fn run(&mut self, frame: &[u8]) -> (u32, &[u8]) {
        let (action, length) = self.test_run(frame, 1);
        (action, &self.out[..length])
    }

    /// Runs it so many times on a frame: what it returned, and nanoseconds of CPU time a run.
    pub fn cost(&mut self, frame: &[u8], repeat: u32) -> (u32, f64) {
        let start = cpu_time();
        let (action, _) = self.test_run(frame, repeat);
        (action, (cpu_time() - start) / f64::from(repeat))
    }

    /// What was counted, by all CPUs together.
    pub fn sums(&self) -> Sums {
        let mut sums = Sums::none();
        for value in self.values::<{ size_of::<Counts>() }>(map::COUNTS) {
            add(&mut sums.reasons, &value[offset_of!(Counts, reasons)..]);
            add(&mut sums.sent, &value[offset_of!(Counts, sent)..]);
            add(&mut sums.sent_to, &value[offset_of!(Counts, sent_to)..]);
            add(&mut sums.kept, &value[offset_of!(Counts, kept)..]);
        }
        sums
    }

    /// Arrivals by bucket and strange ones, by all CPUs together.
    pub fn arrivals(&self) -> (Vec<u64>, u64) {
        let (mut arrived, mut strange) = (vec![0; BUCKETS], vec![0]);
        for value in self.values::<{ size_of::<Arrivals>() }>(map::ARRIVALS) {
            add(&mut arrived, &value[offset_of!(Arrivals, arrived)..]);
            add(&mut strange, &value[offset_of!(Arrivals, strange)..]);
        }
        (arrived, strange[0])
    }

    /// The latest stamp of a bucket.
    pub fn astray(&self, bucket: usize) -> u64 {
        let at = offset_of!(Arrivals, astray_ns) + 8 * bucket;
        self.largest::<{ size_of::<Arrivals>() }>(map::ARRIVALS, at)
    }
}

/// CPU time of this thread, nanoseconds.
fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Adds words as the program counted them.
pub fn add(sums: &mut [u64], bytes: &[u8]) {
    for (sum, word) in sums.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *sum = sum.wrapping_add(u64::from_ne_bytes(*word));
    }
}

/// The arriving program under the section of an ordinary one: the kernel runs no program of a CPU map for a test.
pub fn arrive_as_ordinary(object: &[u8]) -> Vec<u8> {
    let mut object = object.to_vec();
    let section = b"/cpumap\0";
    let places: Vec<usize> = object
        .windows(section.len())
        .enumerate()
        .filter(|(_, found)| found == section)
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| object[at] = 0);
    object
}

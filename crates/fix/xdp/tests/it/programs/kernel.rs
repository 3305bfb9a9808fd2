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
    match Program::try_load(object::STEER, "steer", &settings, 1) {
        Ok(_) => Ok(()),
        Err(error) if rustix::process::geteuid().is_root() => {
            Err(Missing(format!("the kernel does not take the program (it wants Linux 5.19): {error}")))
        }
        Err(_) => Err(Missing("eBPF programs take root (run the tests as root)".to_owned())),
    }
}

/// The settings as the program has them.
pub fn settings_octets(settings: &Settings) -> [u8; size_of::<Settings>()] {
    let mut octets = [0; size_of::<Settings>()];
    let mut put = |at: usize, value: &[u8]| octets[at..at + value.len()].copy_from_slice(value);
    for (word, value) in settings.key.iter().enumerate() {
        put(offset_of!(Settings, key) + 4 * word, &value.to_ne_bytes());
    }
    put(offset_of!(Settings, classes), &settings.classes.to_ne_bytes());
    put(offset_of!(Settings, symmetric), &settings.symmetric.to_ne_bytes());
    put(offset_of!(Settings, cpus), &settings.cpus.to_ne_bytes());
    put(offset_of!(Settings, hold_ns), &settings.hold_ns.to_ne_bytes());
    octets
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
        let settings = settings.into().map(settings_octets);
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
        buckets.iter().enumerate().for_each(|(bucket, cpu)| self.want(bucket, *cpu));
        let mut counts: PerCpuArray<_, [u8; size_of::<Counts>()]> =
            PerCpuArray::try_from(self.ebpf.map_mut(map::COUNTS).ok_or("no COUNTS")?)?;
        let mut values = counts.get(&0, 0)?.to_vec();
        for value in &mut values {
            for (bucket, cpu) in buckets.iter().enumerate() {
                let at = offset_of!(Counts, current) + 4 * bucket;
                value[at..at + 4].copy_from_slice(&cpu.to_ne_bytes());
            }
            // So that every frame is queued, wherever a test runs.
            let at = offset_of!(Counts, own_cpu);
            value[at..at + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        }
        counts.set(0, values.try_into()?, 0)?;
        Ok(())
    }

    /// What is received on any CPU takes it for this one.
    pub fn receive_on(&mut self, cpu: u32) {
        let map = self.ebpf.map_mut(map::COUNTS).expect("COUNTS");
        let mut counts: PerCpuArray<_, [u8; size_of::<Counts>()]> =
            PerCpuArray::try_from(map).expect("per CPU");
        let mut values = counts.get(&0, 0).expect("an entry").to_vec();
        let at = offset_of!(Counts, own_cpu);
        values.iter_mut().for_each(|value| value[at..at + 4].copy_from_slice(&cpu.to_ne_bytes()));
        counts.set(0, values.try_into().expect("values"), 0).expect("set");
    }

    /// The CPU that the bucket should have.
    pub fn want(&mut self, bucket: usize, cpu: u32) {
        self.want_with(bucket, cpu, 0);
    }

    /// The same, and how many frames of it are lost.
    pub fn want_with(&mut self, bucket: usize, cpu: u32, lost: u64) {
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

    /// Runs it on a frame: what it returned, and the frame as it left it.
    pub fn run(&mut self, frame: &[u8]) -> (u32, &[u8]) {
        let program: &mut Xdp = self.ebpf.program_mut(self.name).expect("loaded").try_into().expect("XDP");
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut self.out);
        let result = program.test_run(options).expect("a run");
        (result.return_value, &self.out[..result.data_size_out as usize])
    }

    /// Runs it on a frame: what it returned.
    pub fn action(&mut self, frame: &[u8]) -> u32 {
        let program: &mut Xdp = self.ebpf.program_mut(self.name).expect("loaded").try_into().expect("XDP");
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        program.test_run(options).expect("a run").return_value
    }

    /// Runs it so many times on a frame: what it returned, and nanoseconds of CPU time a run.
    pub fn cost(&mut self, frame: &[u8], repeat: u32) -> (u32, f64) {
        let program: &mut Xdp = self.ebpf.program_mut(self.name).expect("loaded").try_into().expect("XDP");
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.repeat = repeat;
        let start = cpu_time();
        let result = program.test_run(options).expect("a run");
        (result.return_value, (cpu_time() - start) / f64::from(repeat))
    }

    /// What was counted, by all CPUs together.
    pub fn sums(&self) -> Sums {
        let map = self.ebpf.map(map::COUNTS).expect("COUNTS");
        let counts: PerCpuArray<_, [u8; size_of::<Counts>()]> = PerCpuArray::try_from(map).expect("per CPU");
        let mut sums = Sums::none();
        for value in counts.get(&0, 0).expect("an entry").iter() {
            add(&mut sums.reasons, &value[offset_of!(Counts, reasons)..]);
            add(&mut sums.sent, &value[offset_of!(Counts, sent)..]);
            add(&mut sums.sent_to, &value[offset_of!(Counts, sent_to)..]);
            add(&mut sums.kept, &value[offset_of!(Counts, kept)..]);
        }
        sums
    }

    /// Arrivals by bucket and strange ones, by all CPUs together.
    pub fn arrivals(&self) -> (Vec<u64>, u64) {
        let map = self.ebpf.map(map::ARRIVALS).expect("ARRIVALS");
        let arrivals: PerCpuArray<_, [u8; size_of::<Arrivals>()]> =
            PerCpuArray::try_from(map).expect("per CPU");
        let (mut arrived, mut strange) = (vec![0; BUCKETS], vec![0]);
        for value in arrivals.get(&0, 0).expect("an entry").iter() {
            add(&mut arrived, &value[offset_of!(Arrivals, arrived)..]);
            add(&mut strange, &value[offset_of!(Arrivals, strange)..]);
        }
        (arrived, strange[0])
    }

    /// The latest stamp of a bucket.
    pub fn astray(&self, bucket: usize) -> u64 {
        let map = self.ebpf.map(map::ARRIVALS).expect("ARRIVALS");
        let arrivals: PerCpuArray<_, [u8; size_of::<Arrivals>()]> =
            PerCpuArray::try_from(map).expect("per CPU");
        let at = offset_of!(Arrivals, astray_ns) + 8 * bucket;
        let values = arrivals.get(&0, 0).expect("an entry");
        values
            .iter()
            .map(|value| u64::from_ne_bytes(*value[at..].first_chunk().expect("a word")))
            .max()
            .unwrap_or(0)
    }
}

/// CPU time of this thread, nanoseconds.
fn cpu_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Adds words as the program counted them.
pub fn add(sums: &mut [u64], octets: &[u8]) {
    for (sum, word) in sums.iter_mut().zip(octets.as_chunks::<8>().0) {
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

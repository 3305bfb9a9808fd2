//! The guest: a subscriber's and a provider's namespace with a line between them, each on a CPU of its own.

use anyhow::{Context, Result};
use rxlane_lab::{Guest, Lab, Series, Spec};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bytes behind the Ethernet header that the line has room for: two tags and PPPoE around packets of 1492.
const WIRE_MTU: u32 = 1508;
/// Of IP packets, over PPPoE and without.
const MTU: u32 = 1492;
/// The provider's own address, over PPPoE and on the bare line.
pub const GATEWAY: &str = "198.51.100.1";
pub const BARE: [&str; 2] = ["198.51.101.2", "198.51.101.1"];

/// An end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Home,
    Isp,
}

impl End {
    pub const fn namespace(self) -> &'static str {
        match self {
            End::Home => "home",
            End::Isp => "isp",
        }
    }

    /// Its CPU.
    pub const fn cpu(self) -> usize {
        match self {
            End::Home => 0,
            End::Isp => 1,
        }
    }

    /// What comes before a command that runs there.
    pub fn prefix(self) -> String {
        format!("taskset -c {} ip netns exec {}", self.cpu(), self.namespace())
    }
}

pub struct Topology {
    pub guest: Guest,
    pub tags: String,
    pub rxlane: String,
    /// Instructions a second that each end's CPU executes when nothing comes.
    idle: [f64; 2],
    /// Instructions of each end's CPU for starting and ending a transfer.
    start: [f64; 2],
}

impl Topology {
    pub fn new(lab: &Lab, tags: &str) -> Result<Topology> {
        let guest = lab.boot(&Spec { cpus: 3, counting: true, ..Spec::new(Series::V6_12) })?;
        // Everything else moves out of the way of both ends. What arrives at an end is that end's work, not the sender's.
        guest.sh(&format!(
            "modprobe -a tun veth 8021q pppoe ppp_async ppp_synctty n_hdlc; \
             [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; \
             for task in /proc/[0-9]*; do taskset -apc 2 ${{task#/proc/}} >/dev/null 2>&1 || true; done; \
             for irq in /proc/irq/*/smp_affinity; do echo 4 2>/dev/null >$irq || true; done; \
             for n in home isp; do ip netns add $n; ip -n $n link set lo up; done; \
             ip link add wan0 netns home type veth peer name line0 netns isp; \
             ip link add bare0 netns home type veth peer name bare1 netns isp; \
             ip -n home link set wan0 mtu {WIRE_MTU} up; ip -n isp link set line0 mtu {WIRE_MTU} up; \
             ip -n home link set bare0 mtu {MTU} up; ip -n isp link set bare1 mtu {MTU} up; \
             ip -n home addr add {}/24 dev bare0; ip -n isp addr add {}/24 dev bare1; \
             for i in wan0 bare0; do ip netns exec home sh -c \"echo 1 >/sys/class/net/$i/queues/rx-0/rps_cpus\"; done; \
             for i in line0 bare1; do ip netns exec isp sh -c \"echo 2 >/sys/class/net/$i/queues/rx-0/rps_cpus\"; done",
            BARE[0], BARE[1]
        ))?;
        if !tags.is_empty() {
            anyhow::ensure!(tags == "ad:100,q:200", "tags: ad:100,q:200 or none");
            for (end, device) in [("home", "wan0"), ("isp", "line0")] {
                guest.sh(&format!(
                    "ip -n {end} link add link {device} name outer0 type vlan protocol 802.1ad id 100; \
                     ip -n {end} link set outer0 mtu 1504 up; \
                     ip -n {end} link add link outer0 name inner0 type vlan id 200; ip -n {end} link set inner0 mtu 1500 up"
                ))?;
            }
        }
        let rxlane = rxlane_lab::built::program("rxlane")?.display().to_string();
        let mut topology = Topology { guest, tags: tags.to_owned(), rxlane, idle: [0.0; 2], start: [0.0; 2] };
        topology.calibrate()?;
        Ok(topology)
    }

    /// The interface that the kernel's programs use at an end: the innermost of the tags.
    pub fn device(&self, end: End) -> &'static str {
        match (self.tags.is_empty(), end) {
            (false, _) => "inner0",
            (true, End::Home) => "wan0",
            (true, End::Isp) => "line0",
        }
    }

    /// A script at an end.
    pub fn at(&self, end: End, script: &str, limit: Duration) -> Result<String> {
        let mut words: Vec<String> = end.prefix().split(' ').map(str::to_owned).collect();
        words.extend(["sh", "-ec", script].map(str::to_owned));
        let output = self.guest.run_with(&words, &[], limit)?;
        anyhow::ensure!(!output.timed_out, "{script}: does not end within {limit:?}");
        anyhow::ensure!(output.status == 0, "{script}: {}{}", output.text(), output.errors().trim());
        Ok(output.text())
    }

    fn calibrate(&mut self) -> Result<()> {
        // A first time, for what is read from files.
        self.transfer_of_nothing()?;
        sleep(Duration::from_secs(1));
        let (before, start) = (self.counts()?, Instant::now());
        sleep(Duration::from_secs(3));
        let (after, seconds) = (self.counts()?, start.elapsed().as_secs_f64());
        self.idle = [0, 1].map(|cpu| (after[cpu] - before[cpu]) / seconds);
        let mut all = Vec::new();
        for _ in 0..5 {
            let before = self.count()?;
            self.transfer_of_nothing()?;
            all.push(self.since(&before)?);
        }
        self.start = [0, 1].map(|cpu| {
            let mut each: Vec<f64> = all.iter().map(|counted| counted[cpu]).collect();
            each.sort_by(f64::total_cmp);
            each[each.len() / 2]
        });
        Ok(())
    }

    fn transfer_of_nothing(&self) -> Result<()> {
        let server = crate::turn::listen(self)?;
        let said = self.at(
            End::Home,
            &format!("iperf3 -c {} -n 1 -l 1 >/dev/null", BARE[1]),
            Duration::from_secs(30),
        );
        self.guest.signal(server, libc::SIGTERM, true)?;
        said.map(drop)
    }

    fn counts(&self) -> Result<[f64; 2]> {
        let counts = self.guest.instructions()?;
        let of = |end: End| counts.get(end.cpu()).map(|count| *count as f64).context("a count for each CPU");
        Ok([of(End::Home)?, of(End::Isp)?])
    }

    /// The counts of both ends' CPUs, to be given to [`Topology::since`].
    pub fn count(&self) -> Result<Count> {
        Ok(Count { counts: self.counts()?, at: Instant::now() })
    }

    fn since(&self, before: &Count) -> Result<[f64; 2]> {
        let (after, seconds) = (self.counts()?, before.at.elapsed().as_secs_f64());
        Ok([0, 1].map(|cpu| after[cpu] - before.counts[cpu] - self.idle[cpu] * seconds))
    }

    /// Instructions of both ends for a transfer, without its start and end, and without what a CPU does by itself.
    pub fn transferred(&self, before: &Count) -> Result<[f64; 2]> {
        let all = self.since(before)?;
        Ok([0, 1].map(|cpu| all[cpu] - self.start[cpu]))
    }

    /// What the figures have to be read with.
    pub fn describe(&self) -> Result<()> {
        println!(
            "idle, instructions a second: home {:.0}, isp {:.0}; start of a transfer: home {:.0}, isp {:.0}",
            self.idle[0], self.idle[1], self.start[0], self.start[1]
        );
        // How a copy counts depends on the instruction that copies, and on the translator.
        let make = "dd if=/dev/zero of=/dev/shm/piece bs=1M count=32 2>/dev/null";
        self.at(End::Home, make, Duration::from_secs(20))?;
        let read = |pieces: u32| -> Result<f64> {
            let before = self.count()?;
            let script = format!("dd if=/dev/shm/piece of=/dev/null bs=64K count={pieces} 2>/dev/null");
            self.at(End::Home, &script, Duration::from_secs(60))?;
            Ok(self.since(&before)?[0])
        };
        read(1)?;
        println!(
            "read(2) from memory: {:.3} instructions a byte",
            (read(512)? - read(1)?) / f64::from(511 << 16)
        );
        let versions = "dpkg-query -W -f '${Package} ${Version}\\n' iperf3 2>/dev/null; pppd --version 2>&1; pppoe -V 2>&1 | head -1";
        println!("{}", self.guest.sh(versions)?.trim());
        Ok(())
    }
}

/// Counts of a moment.
pub struct Count {
    counts: [f64; 2],
    at: Instant,
}

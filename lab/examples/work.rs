//! How much work a packet is, and on which CPU: PPPoE TCP over `igb`, forwarded and delivered, without steering, with
//! RPS, and steered, in instructions per packet and CPU.
//!
//! ```console
//! $ cargo build -p rxlane -p rxlane-lab && cargo run -p rxlane-lab --example work -- 6.12 forwarded,delivered 4
//! ```
//!
//! The last number is how many CPUs are the router's, from CPU 0 on, which takes the interrupts of the queue with all
//! PPPoE; a word behind it leaves only the rows whose names contain it. Senders and receiving programs of `delivered` live on CPUs 4 to 7.

#![allow(clippy::print_stdout)]

use anyhow::{Context, Result, ensure};
use rxlane_lab::built::program;
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use traffic::{Popularity, Scenario, Sizes};

const SEED: u64 = 1;
/// Flows that are forwarded.
const FLOWS: u32 = 2000;
/// Frames of a burst: fewer than the ring has descriptors, so that none is lost.
const BURST: usize = 3000;
const BURSTS: usize = 6;
/// How often every mode is measured with real connections, in turn.
const ROUNDS: usize = 2;
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf/redirect.bpf.c");
/// The other end of the session whose frames are injected.
const GATEWAY: &str = "02:00:00:00:00:01";
const PINS: &str = "/sys/fs/bpf/work";

/// How packets spread over the router's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mode {
    Off,
    /// To the CPUs of this mask, by the kernel.
    Rps(u32),
    /// To all CPUs by the least program that can, this many of 256 buckets to CPU 0 and the others alike.
    Least(u32),
    /// By `rxlane steer up` to these CPUs; it looks at the interface under load and chooses the shares.
    Steer(String),
}

impl Mode {
    fn name(&self) -> String {
        match self {
            Mode::Off => "off".to_owned(),
            Mode::Rps(mask) => format!("RPS, mask {mask:x}"),
            Mode::Least(buckets) => format!("least, {buckets}/256 to CPU 0"),
            Mode::Steer(cpus) => format!("rxlane, --cpus {cpus}"),
        }
    }
}

/// What stays on the receiving CPU and what moves, for the weighted mode of the least program, which queues to its own
/// CPU as to any other.
const STAYS: f64 = 790.0;
const MOVES: f64 = 6150.0;

/// All ways of spreading over `cpus` CPUs.
fn modes(cpus: usize) -> Vec<Mode> {
    let wanted = std::env::args().nth(4).unwrap_or_default();
    all_modes(cpus).into_iter().filter(|mode| mode.name().contains(&wanted)).collect()
}

fn all_modes(cpus: usize) -> Vec<Mode> {
    let (all, count) = ((1 << cpus) - 1, cpus as f64);
    let weight = (MOVES - (count - 1.0) * STAYS) / (count * MOVES);
    vec![
        Mode::Off,
        Mode::Rps(all),
        Mode::Rps(all - 1),
        Mode::Least(256 / cpus as u32),
        Mode::Least((weight.max(0.0) * 256.0).round() as u32),
        Mode::Least(0),
        Mode::Steer(format!("0-{}", cpus - 1)),
        Mode::Steer(format!("1-{}", cpus - 1)),
        // Nothing moves: what a frame costs that is its own CPU's.
        Mode::Steer("0".to_owned()),
    ]
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("6.12", String::as_str);
    let kernel = Series::named(name).context("kernel: 5.10, 6.1 or 6.12")?;
    let parts = arguments.get(1).map_or("forwarded,delivered", String::as_str);
    let cpus: usize = arguments.get(2).map_or(Ok(4), |cpus| cpus.parse())?;
    ensure!((2..=8).contains(&cpus), "2 to 8 CPUs");
    let lab = Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let [client, server] = Nic::pair("client", "server", Model::Igb);
    let nics = vec![Nic::new("wan", Model::Igb), Nic::new("lan", Model::Igb), client, server];
    let guest = lab.boot(&Spec { cpus: 8, nics, counting: true, ..Spec::new(kernel) })?;
    println!("{}", guest.sh("uname -rv")?.trim());
    println!("{}", rxlane_lab::emulator()?);
    let object = tempfile::NamedTempFile::new()?;
    let built = Command::new("clang")
        .args(["-O2", "-g", "-target", "bpf", "-I/usr/include/x86_64-linux-gnu", "-c", PROGRAM, "-o"])
        .arg(object.path())
        .status()?;
    ensure!(built.success(), "clang");
    guest.write("/tmp/redirect.o", &std::fs::read(object.path())?)?;
    guest.sh(
        "mount -t bpf bpf /sys/fs/bpf; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 \
              net.ipv4.conf.default.rp_filter=0 net.core.netdev_max_backlog=8192",
    )?;
    adapter(&guest, "wan", cpus)?;
    adapter(&guest, "lan", cpus)?;
    if parts.contains("forwarded") {
        forwarded(&guest, cpus)?;
    }
    if parts.contains("delivered") {
        delivered(&guest, cpus)?;
    }
    Ok(())
}

/// So many queues, long rings, each vector on its own CPU. PPPoE is on the first queue however many there are.
fn adapter(guest: &Guest, name: &str, queues: usize) -> Result<()> {
    guest.sh(&format!(
        "modprobe pppoe; ethtool -L {name} combined {queues} || [ $? = 80 ]; ethtool -G {name} rx 4096 tx 4096; \
         ip link set {name} promisc on up"
    ))?;
    guest.await_carrier(name)?;
    vectors(guest, name, 0)
}

/// Interrupts have new numbers whenever the driver sets the adapter up.
fn vectors(guest: &Guest, name: &str, first: usize) -> Result<()> {
    guest
        .sh(&format!(
            "for file in /proc/irq/*/{name} /proc/irq/*/{name}-*; do \
             queue=${{file##*-}}; case $queue in [0-9]) ;; *) queue=0;; esac; \
             echo $(({first} + queue)) >${{file%/*}}/smp_affinity_list; done; "
        ))
        .map(drop)
}

fn enter(guest: &Guest, name: &str, mode: &Mode, cpus: usize) -> Result<()> {
    match mode {
        Mode::Off => Ok(()),
        Mode::Rps(mask) => rps(guest, name, *mask),
        Mode::Least(buckets) => least(guest, name, *buckets, cpus),
        Mode::Steer(cpus) => steer(guest, name, cpus),
    }
}

fn leave(guest: &Guest, name: &str, mode: &Mode) -> Result<()> {
    match mode {
        Mode::Off => Ok(()),
        Mode::Rps(_) => rps(guest, name, 0),
        Mode::Least(_) | Mode::Steer(_) => {
            let down = match mode {
                Mode::Steer(_) => format!("{} steer down {name} >/dev/null", program("rxlane")?.display()),
                _ => format!("ip link set {name} xdpdrv off; rm -rf {PINS}"),
            };
            guest.sh(&down)?;
            guest.await_carrier(name)?;
            vectors(guest, name, 0)
        }
    }
}

fn rps(guest: &Guest, name: &str, mask: u32) -> Result<()> {
    guest
        .sh(&format!("for file in /sys/class/net/{name}/queues/rx-*/rps_cpus; do echo {mask:x} >$file; done"))
        .map(drop)
}

fn least(guest: &Guest, name: &str, first: u32, cpus: usize) -> Result<()> {
    let mut script = format!("mkdir {PINS}; bpftool prog loadall /tmp/redirect.o {PINS} pinmaps {PINS}\n");
    for cpu in 0..cpus {
        // Queue of 2048 frames, no program behind it.
        script.push_str(&format!(
            "bpftool map update pinned {PINS}/CPUS key {cpu} 0 0 0 value 0 8 0 0 0 0 0 0\n"
        ));
    }
    let mut batch = String::new();
    for bucket in 0..256 {
        let cpu = if bucket < first { 0 } else { 1 + bucket % (cpus as u32 - 1) };
        batch.push_str(&format!("map update pinned {PINS}/BUCKETS key {bucket} 0 0 0 value {cpu} 0 0 0\n"));
    }
    guest.write("/tmp/buckets", batch.as_bytes())?;
    script.push_str(&format!(
        "bpftool batch file /tmp/buckets >/dev/null; bpftool net attach xdpdrv pinned {PINS}/steer dev {name}\n"
    ));
    guest.sh(&script)?;
    guest.await_carrier(name)?;
    vectors(guest, name, 0)
}

/// Buckets by CPU, as `rxlane steer up` chooses them while the interface is in use.
fn steer(guest: &Guest, name: &str, cpus: &str) -> Result<()> {
    let command =
        format!("{} steer up {name} --cpus {cpus} --classes pppoe --seconds 3", program("rxlane")?.display());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        if let Ok(port) = guest.port(name) {
            let (frames, done) = (pppoe(guest, 1400), &done);
            scope.spawn(move || -> Result<()> {
                let frames = frames?;
                while !done.load(Ordering::Relaxed) {
                    port.inject(&frames[..200], 1000)?;
                }
                Ok(())
            });
        }
        let said = guest.sh(&command);
        done.store(true, Ordering::Relaxed);
        said.map(drop)
    })?;
    guest.await_carrier(name)?;
    vectors(guest, name, 0)?;
    let shares = guest.sh(&format!("{} steer status {name} --json", program("rxlane")?.display()))?;
    let status: serde_json::Value = serde_json::from_str(&shares)?;
    let rows = status["cpus"].as_array().context("no CPUs")?;
    let buckets: Vec<String> = rows.iter().map(|row| format!("{}: {}", row["cpu"], row["buckets"])).collect();
    println!("  buckets of CPU {}", buckets.join(", "));
    Ok(())
}

/// What happened while packets came.
struct Work {
    packets: u64,
    /// Of each CPU, without what it does when nothing comes.
    instructions: Vec<f64>,
    note: String,
}

/// Counts while `packets` come, and takes off what every CPU does by itself.
fn count(guest: &Guest, idle: &[f64], packets: impl FnOnce() -> Result<(u64, String)>) -> Result<Work> {
    let (before, start) = (guest.instructions()?, Instant::now());
    let (packets, note) = packets()?;
    let (after, seconds) = (guest.instructions()?, start.elapsed().as_secs_f64());
    let own = before.iter().zip(&after).zip(idle);
    let instructions = own.map(|((before, after), idle)| (after - before) as f64 - idle * seconds).collect();
    Ok(Work { packets, instructions, note })
}

/// Instructions a second of each CPU when nothing comes.
fn idle(guest: &Guest) -> Result<Vec<f64>> {
    thread::sleep(Duration::from_secs(1));
    let (before, start) = (guest.instructions()?, Instant::now());
    thread::sleep(Duration::from_secs(3));
    let (after, seconds) = (guest.instructions()?, start.elapsed().as_secs_f64());
    Ok(before.iter().zip(after).map(|(before, after)| (after - before) as f64 / seconds).collect())
}

fn print(name: &str, work: &Work, router: usize) {
    let each = |cpu: usize| work.instructions[cpu] / work.packets as f64;
    let cpus: Vec<String> = (0..router).map(|cpu| format!("{:7.0}", each(cpu))).collect();
    let all: f64 = (0..router).map(each).sum();
    let busiest = (0..router).map(each).fold(0.0, f64::max);
    println!(
        "{name:22} {:6} packets | {} | busiest {busiest:7.0}, all {all:7.0} {}",
        work.packets,
        cpus.join(" "),
        work.note
    );
}

/// A burst of TCP segments of [`FLOWS`] flows in session 1, with frames of so many bytes.
fn pppoe(guest: &Guest, size: u16) -> Result<Vec<Vec<u8>>> {
    let mut scenario = Scenario::new(format!("pppoe:1@{GATEWAY}").parse()?).with_flows(FLOWS).data_only();
    scenario.popularity = Popularity::RoundRobin;
    scenario.ipv6_percent = 0;
    scenario.udp_percent = 0;
    scenario.sizes = Sizes::Fixed(size);
    let mut generator = scenario.generate(SEED)?;
    let station = guest.mac("wan")?;
    let frame = |_| {
        let mut frame = generator.next_frame().bytes.to_vec();
        frame[..6].copy_from_slice(&station.0);
        frame
    };
    Ok((0..BURST).map(frame).collect())
}

/// TCP segments of many flows in a PPPoE session, taken out of it and sent on through the other adapter.
fn forwarded(guest: &Guest, cpus: usize) -> Result<()> {
    let session = guest.start(
        &[program("rxlane-lab")?.display().to_string().as_str(), "session", "wan", "1", GATEWAY],
        "/tmp/session",
    )?;
    guest.sh(
        "until [ -s /tmp/session ]; do sleep 0.1; done; ip link set $(cat /tmp/session) mtu 1492 up; \
         ip addr add 192.0.2.1/24 dev lan; ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev lan; \
         ip route add 100.64.0.0/10 via 192.0.2.2; ip route add 198.18.0.0/15 dev ppp0",
    )?;
    for size in [1400_u16, 90] {
        let frames = pppoe(guest, size)?;
        println!(
            "forwarded, frames of {size} bytes, {FLOWS} flows; instructions per packet on CPUs 0 to {}",
            cpus - 1
        );
        for mode in modes(cpus) {
            enter(guest, "wan", &mode, cpus)?;
            let port = guest.port("wan")?;
            // The first packets fill caches.
            burst(guest, port, &frames)?;
            let idle = idle(guest)?;
            let work = count(guest, &idle, || {
                let before = guest.port("lan")?.received();
                for _ in 0..BURSTS {
                    burst(guest, port, &frames)?;
                }
                let passed = guest.port("lan")?.received() - before;
                let sent = (BURSTS * frames.len()) as u64;
                Ok((passed, format!("({} lost)", sent.saturating_sub(passed))))
            })?;
            print(&mode.name(), &work, cpus);
            leave(guest, "wan", &mode)?;
        }
    }
    guest.signal(session, 15, true)?;
    Ok(())
}

/// Sends a burst and waits until all or nothing more comes out of the other side.
fn burst(guest: &Guest, port: &rxlane_lab::Port, frames: &[Vec<u8>]) -> Result<()> {
    let out = guest.port("lan")?;
    let before = out.received();
    port.inject(frames, 0)?;
    let mut last = (out.received(), Instant::now());
    loop {
        thread::sleep(Duration::from_millis(5));
        let now = out.received();
        if now != last.0 {
            last = (now, Instant::now());
        }
        if now - before >= frames.len() as u64 || last.1.elapsed() > Duration::from_millis(1500) {
            out.collect();
            return Ok(());
        }
    }
}

/// TCP connections over the kernel's PPPoE to programs on the router.
fn delivered(guest: &Guest, cpus: usize) -> Result<()> {
    guest.sh("ip netns add far; ip link set server netns far; ip netns exec far ip link set lo up")?;
    adapter(guest, "client", 8)?;
    guest.sh(
        "ip netns exec far ethtool -L server combined 4; ip netns exec far ethtool -G server rx 4096 tx 4096; \
         ip netns exec far ip link set server promisc on up",
    )?;
    vectors(guest, "server", 4)?;
    let agent = program("rxlane-lab")?.display().to_string();
    let (near, far) = (guest.mac("client")?.to_string(), guest.mac("server")?.to_string());
    thread::sleep(Duration::from_secs(4));
    guest.start(&[agent.as_str(), "session", "client", "7", &far], "/tmp/near")?;
    guest.start(&["ip", "netns", "exec", "far", &agent, "session", "server", "7", &near], "/tmp/far")?;
    guest.sh("until [ -s /tmp/near ] && [ -s /tmp/far ]; do sleep 0.1; done; i=$(cat /tmp/near); \
         ip link set $i mtu 1492 up; ip addr add 10.7.0.1 peer 10.7.0.2 dev $i; \
         o=$(cat /tmp/far); ip netns exec far ip link set $o mtu 1492 up; \
         ip netns exec far ip addr add 10.7.0.2 peer 10.7.0.1 dev $o")?;
    guest.start(&["taskset", "-c", "4-7", "iperf3", "-s"], "/tmp/iperf3-server")?;
    println!(
        "delivered, 16 connections of iperf3; instructions per received packet on CPUs 0 to {}",
        cpus - 1
    );
    let modes = modes(cpus);
    for mode in modes.iter().cycle().take(ROUNDS * modes.len()) {
        if let Mode::Steer(_) = mode {
            // What `up` looks at.
            let load = "ip netns exec far taskset -c 4-7 iperf3 -c 10.7.0.1 -P 16 -t 8";
            guest.start(&load.split(' ').collect::<Vec<_>>(), "/tmp/load")?;
        }
        enter(guest, "client", mode, cpus)?;
        if let Mode::Steer(_) = mode {
            guest.sh("until grep -q 'iperf Done' /tmp/load; do sleep 0.2; done")?;
        }
        let transfer = |seconds: u32| -> Result<String> {
            let script = format!(
                "ip netns exec far taskset -c 4-7 iperf3 -c 10.7.0.1 -P 16 -t {seconds} -f m | \
                 sed -n 's/.*SUM.* \\([0-9.]* Mbits.sec\\).*receiver.*/\\1/p'"
            );
            Ok(guest.sh(&script)?.trim().to_owned())
        };
        transfer(2)?;
        let idle = idle(guest)?;
        let work = count(guest, &idle, || {
            let before = guest.counter("client", "rx_packets")?;
            let sent = guest.counter("client", "tx_packets")?;
            let rate = transfer(8)?;
            let received = guest.counter("client", "rx_packets")? - before;
            let sent = guest.counter("client", "tx_packets")? - sent;
            Ok((
                received,
                format!("({rate}, {:.2} packets back for one received)", sent as f64 / received as f64),
            ))
        })?;
        print(&mode.name(), &work, cpus);
        leave(guest, "client", mode)?;
    }
    Ok(())
}

//! Frames a second that a router forwards when all of them arrive on one CPU: without steering, with RPS, and with
//! `rxlane steer`, in turn, on the same traffic.
//!
//! `bench-steer RXLANE [ROUNDS [SECONDS]]`: the program whose `steer` is measured. Takes root. The line sends from one
//! CPU as fast as it can over a veth pair, whose other end receives on the same CPU; the router forwards out of a
//! second pair, whose other end counts. All in namespaces of its own.

use anyhow::{Context, bail, ensure};
use rxlane_bench::{LINE, Load, ROUTER, Scene, send};
use rxlane_wire::emit::checksum;
use rxlane_wire::emit::{Emit, Ethernet, Ipv4, Udp};
use rxlane_wire::ethernet::{EtherType, MacAddress};
use rxlane_wire::ip::IpProtocol;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const FLOWS: u32 = 2000;
const QUEUES: u16 = 4;
const MTU: u16 = 1508;
/// Payload, octets: small, so that frames and not octets are the limit.
const PAYLOAD: usize = 18;
/// The way out: this end on the router, the other on the line.
const OUT: &str = "out0";
const SINK: &str = "sink0";
const SINK_ADDRESS: &str = "02:00:00:00:00:99";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Off,
    Rps,
    Steer,
}

impl Way {
    const ALL: [Way; 3] = [Way::Off, Way::Rps, Way::Steer];

    fn name(self) -> &'static str {
        match self {
            Way::Off => "off",
            Way::Rps => "RPS",
            Way::Steer => "rxlane steer",
        }
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rxlane = arguments.next().context("usage: bench-steer RXLANE [ROUNDS [SECONDS]]")?;
    let rxlane = std::fs::canonicalize(&rxlane).with_context(|| rxlane.clone())?;
    let rounds: usize = arguments.next().map_or(Ok(7), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(2.0), |text| text.parse())?;
    let cpus = u16::try_from(std::thread::available_parallelism()?.get())?;
    ensure!(cpus >= 2, "one CPU: nothing can be spread");
    let router = Router::new(rxlane, cpus)?;
    println!("{cpus} CPUs; CPU 0 sends and receives; {FLOWS} UDP flows of {PAYLOAD} octets, forwarded");
    let mut results: [Vec<f64>; 3] = Default::default();
    for round in 0..rounds {
        for (way, results) in Way::ALL.into_iter().zip(&mut results) {
            router.set(way)?;
            let (sent, forwarded) = router.measure(Duration::from_secs_f64(seconds))?;
            router.unset(way)?;
            println!("round {round} {:<14} sent {sent:>10.0}/s forwarded {forwarded:>10.0}/s", way.name());
            results.push(forwarded);
        }
    }
    let off = results[0].clone();
    println!("\n{:<14} {:>12} {:>25} {:>16}", "forwarded", "median /s", "[least – greatest]", "times off");
    for (way, mut results) in Way::ALL.into_iter().zip(results) {
        let mut ratios: Vec<f64> = results.iter().zip(&off).map(|(this, off)| this / off).collect();
        let (ratio, median) = (median(&mut ratios), median(&mut results));
        let (least, greatest) = (results[0], results[results.len() - 1]);
        println!(
            "{:<14} {median:>12.0} {:>25} {ratio:>15.2}×",
            way.name(),
            format!("[{least:.0} – {greatest:.0}]")
        );
    }
    Ok(())
}

/// The middle value; sorts.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

struct Router {
    scene: Scene,
    rxlane: PathBuf,
    frames: Vec<Vec<u8>>,
    /// All but the first.
    others: String,
    mask: u64,
}

impl Router {
    fn new(rxlane: PathBuf, cpus: u16) -> anyhow::Result<Router> {
        let scene = Scene::new(QUEUES, MTU)?;
        let router = Router {
            frames: Vec::new(),
            rxlane,
            others: format!("1-{}", cpus - 1),
            mask: (1_u64 << cpus.min(63)) - 2,
            scene,
        };
        let line = router.scene.line();
        router.run("ip", &["link", "add", OUT, "type", "veth", "peer", "name", SINK, "netns", &line])?;
        for link in [ROUTER, OUT] {
            router.run("ip", &["link", "set", link, "up"])?;
        }
        router.run("ip", &["addr", "add", "100.64.0.1/10", "dev", ROUTER])?;
        router.run("ip", &["addr", "add", "198.18.0.1/15", "dev", OUT])?;
        router.run(
            "ip",
            &["neigh", "add", "198.18.0.2", "lladdr", SINK_ADDRESS, "dev", OUT, "nud", "permanent"],
        )?;
        router.run("sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"])?;
        let status =
            std::process::Command::new("ip").args(["-n", &line, "link", "set", SINK, "up"]).status()?;
        ensure!(status.success(), "ip link set {SINK} up");
        let address = router.run("cat", &[&format!("/sys/class/net/{ROUTER}/address")])?;
        let frames = (0..FLOWS).map(|flow| frame(address.trim(), flow)).collect::<Result<_, _>>()?;
        Ok(Router { frames, ..router })
    }

    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.scene.on_router(program).args(arguments).output()?;
        if !output.status.success() {
            bail!("{program} {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn set(&self, way: Way) -> anyhow::Result<()> {
        match way {
            Way::Off => Ok(()),
            Way::Rps => self.rps(self.mask),
            Way::Steer => {
                let program = self.rxlane.to_string_lossy();
                self.run(&program, &["steer", "up", ROUTER, "--classes", "plain", "--cpus", &self.others])?;
                Ok(())
            }
        }
    }

    fn unset(&self, way: Way) -> anyhow::Result<()> {
        match way {
            Way::Off => Ok(()),
            Way::Rps => self.rps(0),
            Way::Steer => self.run(&self.rxlane.to_string_lossy(), &["steer", "down", ROUTER]).map(drop),
        }
    }

    fn rps(&self, mask: u64) -> anyhow::Result<()> {
        let command =
            format!("for f in /sys/class/net/{ROUTER}/queues/rx-*/rps_cpus; do echo {mask:x} > $f; done");
        self.run("sh", &["-c", &command]).map(drop)
    }

    /// Frames a second sent and forwarded.
    fn measure(&self, time: Duration) -> anyhow::Result<(f64, f64)> {
        let counter = format!("/sys/class/net/{OUT}/statistics/tx_packets");
        let read = || -> anyhow::Result<u64> { Ok(self.run("cat", &[&counter])?.trim().parse()?) };
        let before = read()?;
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < time {
            let load =
                Load { interface: LINE, frames: &self.frames, count: 50_000, rate: None, cpu: Some(0) };
            sent += self.scene.on_line(|| send(&load))??.frames;
        }
        let seconds = start.elapsed().as_secs_f64();
        // What waits in the queues of other CPUs is forwarded, too.
        std::thread::sleep(Duration::from_millis(50));
        Ok((sent as f64 / seconds, (read()? - before) as f64 / seconds))
    }
}

/// A UDP frame of a flow, from the line to the other side of the router.
fn frame(router: &str, flow: u32) -> anyhow::Result<Vec<u8>> {
    let destination: Vec<u8> =
        router.split(':').map(|octet| u8::from_str_radix(octet, 16)).collect::<Result<_, _>>()?;
    let destination: [u8; 6] = destination.try_into().map_err(|_| anyhow::anyhow!("address {router}"))?;
    let source = Ipv4Addr::from(0x6440_1000 + flow);
    let target = Ipv4Addr::new(198, 18, 0, 2);
    let length = 20 + 8 + PAYLOAD;
    let mut octets = vec![0; 14 + length];
    let source_address = MacAddress([2, 0, 0, 0, 0, 1]);
    let ethernet =
        Ethernet { destination: MacAddress(destination), source: source_address, ethertype: EtherType::IPV4 };
    let ip = Ipv4 {
        traffic_class: 0,
        total_length: u16::try_from(length)?,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        ttl: 64,
        protocol: IpProtocol::UDP,
        source,
        destination: target,
        options: &[],
    };
    let udp = Udp {
        source_port: 1024 + flow as u16,
        destination_port: 9,
        length: (8 + PAYLOAD) as u16,
        checksum: 0,
    };
    let headers: [&dyn Emit; 3] = [&ethernet, &ip, &udp];
    rxlane_wire::emit::headers(&headers, &mut octets)?;
    checksum::fill(source.into(), target.into(), IpProtocol::UDP, &mut octets[34..])?;
    Ok(octets)
}

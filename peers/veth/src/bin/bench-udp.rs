//! Datagrams a second between two network namespaces, joined by a veth pair: `rxlane bench send` and `recv`, `iperf3 -u`, and
//! udpsender and udpreceiver1 (github.com/majek/dump, how-to-receive-a-million-packets) where they have been built.
//!
//! `bench-udp RXLANE [ROUNDS [SECONDS [PAYLOAD [ORIGINAL]]]]`, as root; ORIGINAL is the folder of the last two, which send 32
//! bytes and nothing else. Each sender has the first CPU, each sink the last (taskset). In each round every way has its turn,
//! one after the other; ratios are taken round by round. What was sent and what arrived are the kernel's own counters
//! (OutDatagrams, InDatagrams of /proc/net/snmp) in the two namespaces, over the same time; with GSO and GRO, of which they
//! count a whole message as one, they are rxlane's.

use anyhow::{Context, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use veth::ends::Ends;
use veth::rounds::{self, Column, Turns, spread};

const SENDER: &str = "10.9.0.1";
const SINK: &str = "10.9.0.2";
const PORT: &str = "7184";
/// Payload of the original pair.
const ORIGINAL_PAYLOAD: usize = 32;
/// What starts up is not measured.
const WARM_UP: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Iperf,
    Original,
    Rxlane,
    Segments,
}

/// Datagrams a second.
#[derive(Clone, Copy, Debug)]
struct Turn {
    sent: f64,
    arrived: f64,
}

const COLUMNS: [Column<Turn>; 2] =
    [("sent a second", |turn| turn.sent, 0), ("arrived a second", |turn| turn.arrived, 0)];

struct Setting {
    rxlane: PathBuf,
    original: Option<PathBuf>,
    payload: usize,
    seconds: u64,
    cpus: [String; 2],
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Iperf => "iperf3 -u",
            Way::Original => "udpsender, udpreceiver1",
            Way::Rxlane => "rxlane",
            Way::Segments => "rxlane --gso, --gro",
        }
    }
}

/// Killed when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended is as good.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two ends of a pair.
struct Topology(Ends);

impl Topology {
    fn new() -> anyhow::Result<Topology> {
        let ends = Ends::new(1500)?;
        ends.give_addresses([SENDER, SINK])?;
        Ok(Topology(ends))
    }

    /// A program of one end on its CPU.
    fn command(&self, end: usize, setting: &Setting, program: &Path) -> Command {
        let mut command = self.0.namespaces[end].command("taskset");
        command.args(["-c", &setting.cpus[end]]).arg(program);
        command
    }

    /// A counter of UDP.
    fn counter(&self, end: usize, name: &str) -> anyhow::Result<u64> {
        let text = self.0.namespaces[end].inside(|| fs::read_to_string("/proc/thread-self/net/snmp"))?;
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, values) = (lines.next().context("no names")?, lines.next().context("no values")?);
        let found = names.split(' ').zip(values.split(' ')).find(|(other, _)| *other == name);
        Ok(found.with_context(|| format!("no {name}"))?.1.parse()?)
    }

    fn counters(&self) -> anyhow::Result<[u64; 2]> {
        Ok([self.counter(0, "OutDatagrams")?, self.counter(1, "InDatagrams")?])
    }

    /// Counters over the time.
    fn measured(&self, seconds: u64) -> anyhow::Result<Turn> {
        sleep(WARM_UP);
        let (before, start) = (self.counters()?, Instant::now());
        sleep(Duration::from_secs(seconds));
        let (after, time) = (self.counters()?, start.elapsed().as_secs_f64());
        let rate = |place: usize| (after[place] - before[place]) as f64 / time;
        Ok(Turn { sent: rate(0), arrived: rate(1) })
    }
}

fn start(mut command: Command) -> anyhow::Result<Running> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(Running(child.with_context(|| format!("{command:?}"))?))
}

fn turn(way: Way, setting: &Setting) -> anyhow::Result<Turn> {
    let topology = Topology::new()?;
    let payload = setting.payload.to_string();
    // Longer than what is measured.
    let seconds = (setting.seconds + 3).to_string();
    let sink = |program: &Path, arguments: &[&str]| {
        let mut command = topology.command(1, setting, program);
        command.args(arguments);
        let sink = start(command);
        sleep(Duration::from_millis(300));
        sink
    };
    let sender = |program: &Path, arguments: &[&str]| {
        let mut command = topology.command(0, setting, program);
        command.args(arguments);
        start(command)
    };
    match way {
        Way::Iperf => {
            let iperf = Path::new("iperf3");
            let _sink = sink(iperf, &["-s", "-1"])?;
            let _sender = sender(iperf, &["-c", SINK, "-u", "-b", "0", "-l", &payload, "-t", &seconds])?;
            topology.measured(setting.seconds)
        }
        Way::Original => {
            let folder = setting.original.as_deref().context("no folder")?;
            let _sink = sink(&folder.join("udpreceiver1"), &[&format!("{SINK}:{PORT}")])?;
            let _sender = sender(&folder.join("udpsender"), &[&format!("{SINK}:{PORT}")])?;
            topology.measured(setting.seconds)
        }
        Way::Rxlane => {
            let _sink = sink(&setting.rxlane, &["bench", "recv"])?;
            let _sender = sender(
                &setting.rxlane,
                &["bench", "send", SINK, "--payload", &payload, "--seconds", &seconds, "--rate", "max"],
            )?;
            topology.measured(setting.seconds)
        }
        Way::Segments => segments(&topology, setting),
    }
}

/// Messages that the kernel cuts and puts together, as rxlane counts their datagrams.
fn segments(topology: &Topology, setting: &Setting) -> anyhow::Result<Turn> {
    let segments = (65_507 / setting.payload).clamp(1, 64).to_string();
    let mut sink = topology.command(1, setting, &setting.rxlane);
    sink.args(["bench", "recv", "--gro", "--once", "--json"]).stdout(Stdio::piped());
    let sink = sink.spawn().context("rxlane bench recv")?;
    sleep(Duration::from_millis(300));
    let mut sender = topology.command(0, setting, &setting.rxlane);
    sender.args(["bench", "send", SINK, "--json", "--rate", "max", "--gso", &segments]);
    sender.args(["--payload", &setting.payload.to_string(), "--seconds", &setting.seconds.to_string()]);
    let sent = sender.output().context("rxlane bench send")?;
    ensure!(sent.status.success(), "rxlane bench send: {}", String::from_utf8_lossy(&sent.stderr));
    let received = sink.wait_with_output()?;
    let pps = |json: &[u8]| -> anyhow::Result<f64> {
        let report: Value = serde_json::from_slice(json)?;
        report["runs"][0]["pps"].as_f64().with_context(|| format!("no rate: {report}"))
    };
    Ok(Turn { sent: pps(&sent.stdout)?, arrived: pps(&received.stdout)? })
}

fn main() -> anyhow::Result<()> {
    let usage = "usage: bench-udp RXLANE [ROUNDS [SECONDS [PAYLOAD [ORIGINAL]]]]";
    let mut arguments = std::env::args().skip(1);
    let rxlane = fs::canonicalize(arguments.next().context(usage)?).context("the program rxlane")?;
    let rounds: usize = arguments.next().map_or(Ok(9), |text| text.parse()).context(usage)?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse()).context(usage)?;
    let payload: usize = arguments.next().map_or(Ok(ORIGINAL_PAYLOAD), |text| text.parse()).context(usage)?;
    let original = arguments.next().map(fs::canonicalize).transpose().context("the folder of udpsender")?;
    if original.is_some() && payload != ORIGINAL_PAYLOAD {
        bail!("udpsender sends {ORIGINAL_PAYLOAD} bytes and nothing else");
    }
    ensure!((16..=1472).contains(&payload), "a payload has 16 to 1472 bytes here");
    let last = std::thread::available_parallelism()?.get() - 1;
    let cpus = ["0".to_owned(), last.to_string()];
    let mut ways = vec![Way::Iperf, Way::Rxlane, Way::Segments];
    if original.is_some() {
        ways.insert(1, Way::Original);
    }
    println!(
        "{payload} bytes of payload, {rounds} rounds, {seconds} s each; CPU 0 sends, CPU {last} receives"
    );
    let setting = Setting { rxlane, original, payload, seconds, cpus };
    let turns = rounds::measure(&ways, rounds, &COLUMNS, Way::name, |way| turn(way, &setting))?;
    table(&turns);
    Ok(())
}

/// Medians, least and greatest, and the ratios to the first way.
fn table(turns: &Turns<Way, Turn>) {
    let Some((first, reference)) = turns.first() else { return };
    println!("\n| kpps | sent | arrived | arrived, times {} |\n| --- | --- | --- | --- |", first.name());
    for (way, turns) in turns {
        let column = |figure: fn(&Turn) -> f64| {
            let (median, least, greatest) = spread(turns.iter().map(|turn| figure(turn) / 1e3));
            format!("{median:.0} [{least:.0}-{greatest:.0}]")
        };
        let ratios = turns.iter().zip(reference).map(|(turn, first)| turn.arrived / first.arrived);
        let (ratio, lowest, highest) = spread(ratios);
        println!(
            "| {} | {} | {} | {ratio:.2} [{lowest:.2}-{highest:.2}] |",
            way.name(),
            column(|turn| turn.sent),
            column(|turn| turn.arrived)
        );
    }
}

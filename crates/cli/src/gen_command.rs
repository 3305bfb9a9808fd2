//! `rxlane gen`: seeded traffic samples as captures.

use crate::arguments::StackArguments;
#[cfg(target_os = "linux")]
use crate::output::Lacks;
use crate::output::{CommandResult, Outcome, Output};
use crate::output_file::{OutputFile, standard_output};
use crate::progress::Progress;
use anyhow::Context;
use capture::{LinkType, Resolution, Writer};
use clap::ValueEnum;
use format::{Table, plural};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use traffic::{Arrival, Class, Generator, NAMED, Popularity, Scenario, Sizes};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane gen --scenario pppoe --flows 2000 --frames 100000 --seed 1 -o sample.pcap
  rxlane gen --vlan 100.200 --ip 4 --proto tcp -o - | tcpdump -nr - -c 5
  rxlane gen --encap 'ad:100,q:200,pppoe:1234@02:00:5e:00:00:01' --size 1518 -o full.pcapng --format pcapng

The same arguments give the same bytes on every machine.")]
pub struct GenArguments {
    /// List the scenarios
    #[arg(long)]
    list: bool,

    /// List them as JSON (schema rxlane.gen-list/1)
    #[arg(long, requires = "list")]
    json: bool,

    /// File to write, overwritten if it is there; '-' is standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "list")]
    output: Option<PathBuf>,

    #[command(flatten)]
    traffic: TrafficArguments,

    /// Number of frames
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    frames: u64,

    /// Frames a second
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    rate: u64,

    /// Arrival times
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    arrival: Process,

    /// Format of the capture
    #[arg(long, value_name = "FORMAT", default_value = "pcap")]
    format: Format,
}

/// What traffic is generated.
#[derive(clap::Args)]
pub struct TrafficArguments {
    /// Named scenario (see rxlane gen --list)
    #[arg(long, value_name = "NAME", default_value = "pppoe", conflicts_with_all = ["encap", "vlan"])]
    scenario: String,

    #[command(flatten)]
    stack: StackArguments,

    /// Number of flows
    #[arg(long, value_name = "N", default_value_t = 1000)]
    flows: u32,

    /// Seed; another one gives other flows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// IP version; mix is a quarter IPv6
    #[arg(long, value_name = "VERSION", default_value = "mix")]
    ip: Ip,

    /// Transport; mix is a fifth UDP
    #[arg(long, value_name = "PROTOCOL", default_value = "mix")]
    proto: Proto,

    /// Untagged frame size with FCS: imix (64, 594, 1518 at 7:4:1), N, or MIN-MAX
    #[arg(long, value_name = "SIZE", default_value = "imix", value_parser = sizes)]
    size: Sizes,

    /// How frames spread over flows: zipf, uniform, round-robin
    #[arg(long, value_name = "LAW", default_value = "zipf", value_parser = popularity)]
    popularity: Popularity,

    /// Subscribers that the flows belong to; of several, each has a PPPoE session and address of its own
    #[arg(long, value_name = "N")]
    subscribers: Option<u32>,

    /// MTU behind tags and labels; PPPoE takes 8 bytes of it [default: 1500]
    #[arg(long, value_name = "BYTES")]
    mtu: Option<u16>,

    /// Control frames (PPPoE discovery, LCP echo, ARP, router solicitation) in a million frames
    #[arg(long, value_name = "N", default_value_t = 500)]
    control: u32,

    /// Fragmented packets in a million frames
    #[arg(long, value_name = "N", default_value_t = 500)]
    fragments: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Ip {
    #[value(name = "4")]
    V4,
    #[value(name = "6")]
    V6,
    Mix,
}

#[derive(Clone, Copy, ValueEnum)]
enum Proto {
    Tcp,
    Udp,
    Mix,
}

#[derive(Clone, Copy, ValueEnum)]
enum Process {
    Constant,
    Poisson,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Classic pcap, microseconds
    Pcap,
    /// Classic pcap, nanoseconds
    PcapNs,
    /// Pcapng, nanoseconds
    Pcapng,
}

fn sizes(text: &str) -> Result<Sizes, String> {
    text.parse()
}

fn popularity(text: &str) -> Result<Popularity, String> {
    text.parse()
}

impl TrafficArguments {
    /// Its arguments. (The group that clap makes of a structure is empty where another one is flattened into it.)
    pub const IDS: [&str; 13] = [
        "scenario",
        "encap",
        "vlan",
        "flows",
        "seed",
        "ip",
        "proto",
        "size",
        "popularity",
        "subscribers",
        "mtu",
        "control",
        "fragments",
    ];
    /// The MTU where nobody said another.
    pub const MTU: u16 = 1500;

    pub fn has_mtu(&self) -> bool {
        self.mtu.is_some()
    }

    /// The traffic from its beginning; with this MTU in place of the usual one.
    pub fn generator(&self, usual: Option<u16>) -> anyhow::Result<Generator> {
        let mut scenario = self.scenario()?;
        scenario.mtu = self.mtu.or(usual).unwrap_or(scenario.mtu);
        Ok(scenario.generate(self.seed)?)
    }

    fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = match self.stack.encapsulation()? {
            Some(encapsulation) => Scenario::new(encapsulation),
            None => Scenario::named(&self.scenario)?,
        };
        scenario.flows = self.flows;
        scenario.subscribers = self.subscribers.unwrap_or(scenario.subscribers);
        scenario.sizes = self.size;
        scenario.popularity = self.popularity;
        scenario.mtu = self.mtu.unwrap_or(TrafficArguments::MTU);
        scenario.control_per_million = self.control;
        scenario.fragments_per_million = self.fragments;
        scenario.ipv6_percent = match self.ip {
            Ip::V4 => 0,
            Ip::V6 => 100,
            Ip::Mix => scenario.ipv6_percent,
        };
        scenario.udp_percent = match self.proto {
            Proto::Tcp => 0,
            Proto::Udp => 100,
            Proto::Mix => scenario.udp_percent,
        };
        Ok(scenario)
    }
}

/// What a flow takes while traffic is made, bytes: twice what was measured.
#[cfg(target_os = "linux")]
const BYTES_OF_FLOW: usize = 32;

impl GenArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if self.list {
            if self.json {
                list_json(out)?
            } else {
                list(out)?
            }
            return Ok(Outcome::Success);
        }
        let scenario = self.scenario()?;
        #[cfg(target_os = "linux")]
        service::memory::expect(BYTES_OF_FLOW * self.traffic.flows as usize)
            .map_err(|error| Lacks(format!("{} flows (--flows): {error}", self.traffic.flows)))?;
        let traffic = scenario.generate(self.traffic.seed)?;
        match &self.output {
            Some(path) if path.as_os_str() != "-" => self.to_file(path, traffic, out),
            _ => self.to_standard_output(traffic),
        }
    }

    fn scenario(&self) -> anyhow::Result<Scenario> {
        let mut scenario = self.traffic.scenario()?;
        scenario.arrival = match self.arrival {
            Process::Constant => Arrival::Constant { rate: self.rate },
            Process::Poisson => Arrival::Poisson { rate: self.rate },
        };
        Ok(scenario)
    }

    fn to_file(&self, path: &Path, mut traffic: Generator, out: &mut Output) -> CommandResult {
        let written =
            OutputFile::create("--output", path, &[])?.write_with(|file| self.write(&mut traffic, file))?;
        let stacks: Vec<String> =
            traffic.scenario().classes.iter().map(|class: &Class| class.encapsulation.to_string()).collect();
        writeln!(
            out,
            "{}: {}, {}, {:.3} s, {}{} in {}",
            format::printable(&path.display().to_string()),
            plural(self.frames, "frame"),
            plural(written.bytes, "byte"),
            written.nanoseconds as f64 / 1e9,
            if self.frames < u64::from(self.traffic.flows) { "some of " } else { "" },
            plural(u64::from(self.traffic.flows), "flow"),
            stacks.join(" + "),
        )?;
        Ok(Outcome::Success)
    }

    fn to_standard_output(&self, mut traffic: Generator) -> CommandResult {
        self.write(&mut traffic, standard_output()?).context("cannot write to standard output")?;
        Ok(Outcome::Success)
    }

    fn write(&self, traffic: &mut Generator, target: impl Write) -> io::Result<Written> {
        let mut writer = match self.format {
            Format::Pcap => Writer::pcap(target, LinkType::Ethernet, Resolution::Microseconds),
            Format::PcapNs => Writer::pcap(target, LinkType::Ethernet, Resolution::Nanoseconds),
            Format::Pcapng => Writer::pcapng(target, LinkType::Ethernet, Resolution::Nanoseconds),
        }?;
        let mut progress = Progress::new();
        let mut written = Written { bytes: 0, nanoseconds: 0 };
        let mut first = None;
        for number in 0..self.frames {
            let frame = traffic.next_frame();
            writer.write(frame.timestamp_ns as i64, frame.bytes, frame.bytes.len() as u32)?;
            written.bytes += frame.bytes.len() as u64;
            written.nanoseconds = frame.timestamp_ns - *first.get_or_insert(frame.timestamp_ns);
            if number % PROGRESS_STEP == PROGRESS_STEP - 1 {
                progress.show_amount(number, Some(self.frames), |frames| plural(frames, "frame"));
            }
        }
        writer.finish()?.flush()?;
        Ok(written)
    }
}

struct Written {
    /// Bytes of all frames.
    bytes: u64,
    /// From the first frame to the last.
    nanoseconds: u64,
}

/// Frames between two looks at the clock.
const PROGRESS_STEP: u64 = 1 << 18;
fn list(out: &mut Output) -> io::Result<()> {
    let stack = |named: &traffic::Named| match named.encapsulations {
        [(_, stack)] => (*stack).to_owned(),
        several => format!("{} encapsulations", several.len()),
    };
    let row = |named: &traffic::Named| [named.name.to_owned(), stack(named), named.summary.to_owned()];
    out.table(&Table::new(3, ["scenario", "encapsulation", "what it stands for"]).rows(NAMED.iter().map(row)))
}

fn list_json(out: &mut Output) -> io::Result<()> {
    let scenario = |named: &traffic::Named| {
        let stacks: Vec<_> = named.encapsulations.iter().map(|(_, stack)| *stack).collect();
        serde_json::json!({"name": named.name, "encapsulations": stacks, "summary": named.summary})
    };
    let scenarios: Vec<_> = NAMED.iter().map(scenario).collect();
    let list = serde_json::json!({"schema": "rxlane.gen-list/1", "scenarios": scenarios});
    out.json(&list)
}

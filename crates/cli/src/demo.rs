//! `rxlane demo`: the product in a minute on any machine, with what privileges there are.

mod steering;

use crate::doctor_command;
use crate::explain_command::{self, text};
use crate::output::{CommandResult, Outcome, Output};
use crate::render::prose;
use anyhow::Context;
use capture::{Capture, LinkType, Resolution, Writer};
use doctor::{Case, Traffic};
use explain::{Options, Report};
use host::text::Reader;
use nic::{Receiver, Setup};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use traffic::Scenario;
use wire::emit::Encapsulation;

const ROUTER: &str = include_str!("demo/router.txt");
const NIC: &str = "i210";
const CPUS: u16 = 4;
const FLOWS: u32 = 2000;
const FRAMES: u64 = 100_000;
const SEED: u64 = 1;

#[derive(clap::Args)]
pub struct DemoArguments {
    /// Directory for the captures and the page; made when it is not there
    #[arg(long, value_name = "DIR", default_value = "rxlane-demo")]
    directory: PathBuf,
}

impl DemoArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let directory = &self.directory;
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {}; --directory names another", directory.display()))?;
        let receiver = Receiver::new(nic::lookup(NIC)?, &Setup::default())?;
        let title = receiver.profile().title.clone();
        let pppoe = sample(directory, "pppoe.pcap", Scenario::named("pppoe")?)?;
        let untagged = sample(
            directory,
            "untagged.pcap",
            Scenario::named("pppoe")?.with_encapsulation(Encapsulation::NONE),
        )?;

        out.heading("1. A PPPoE line as a router receives it")?;
        writeln!(
            out,
            "  {} frames of {FLOWS} flows, made by rxlane gen: {}",
            format::thousands(FRAMES),
            pppoe.display()
        )?;
        let report = read(&pppoe, &receiver)?;
        out.heading(&format!("2. Where an {title} with four queues puts them"))?;
        text::queue_bars(out, &report, FRAMES)?;
        if let Some(row) = report.stacks.first() {
            writeln!(out, "  {}: {}.", row.stack, row.why)?;
            let source = row.sources.first().map(|source| format!("Source: {source}"));
            out.paragraph("  ", &source.unwrap_or_default())?;
        }
        out.heading("3. The same flows without PPPoE")?;
        text::queue_bars(out, &read(&untagged, &receiver)?, FRAMES)?;
        out.heading(&format!("4. The PPPoE frames again, spread over {CPUS} CPUs by their inner header"))?;
        text::cpu_bars(out, &report, FRAMES)?;
        writeln!(out, "  One flow stays on one CPU: no software divides it.")?;

        out.heading("5. What the doctor says of a router that receives them")?;
        let router = written(directory, "router.txt", ROUTER)?;
        writeln!(
            out,
            "  ethtool, /proc/interrupts and others of such a router, made up:\n  {}",
            router.display()
        )?;
        let diagnosis = diagnosed(&pppoe)?;
        let diagnosis = prose::worded(&diagnosis, false);
        doctor_command::text::gravest(out, &diagnosis)?;

        steering::show(out, 6)?;

        out.heading("7. All of it but the steering as pages")?;
        for (name, page) in [
            ("pppoe.html", explain_command::page(&report)),
            ("doctor.html", doctor_command::page::render(&diagnosis)),
        ] {
            let page = written(directory, name, &page)?;
            writeln!(out, "  {}", fs::canonicalize(&page).unwrap_or(page).display())?;
        }
        writeln!(out, "\nNow yours: rxlane doctor, then rxlane steer check IFACE")?;
        writeln!(out, "or: tcpdump -Q in -i IFACE -c 100000 -s 256 -w - | rxlane explain - --nic NAME")?;
        writeln!(out, "rxlane nics lists the network cards it knows.")?;
        Ok(Outcome::Success)
    }
}

fn written(directory: &Path, name: &str, text: &str) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn diagnosed(capture: &Path) -> anyhow::Result<doctor::Report> {
    let mut reader = Reader::new();
    reader.read("router.txt", ROUTER.as_bytes())?;
    let snapshot = reader.finish();
    let capture = capture.to_owned();
    let traffic = Traffic::new(move || Capture::open(&capture).into_iter().collect(), None, CPUS);
    Ok(doctor::diagnose(&Case::new(&snapshot, Some(&traffic), None)?))
}

fn sample(directory: &Path, name: &str, scenario: Scenario) -> anyhow::Result<PathBuf> {
    let path = directory.join(name);
    let write = || -> anyhow::Result<()> {
        let mut writer = Writer::pcap(File::create(&path)?, LinkType::Ethernet, Resolution::Microseconds)?;
        let mut traffic = scenario.with_flows(FLOWS).generate(SEED)?;
        for _ in 0..FRAMES {
            let frame = traffic.next_frame();
            writer.write(frame.timestamp_ns as i64, frame.bytes, frame.bytes.len() as u32)?;
        }
        writer.finish()?;
        Ok(())
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn read(path: &Path, receiver: &Receiver) -> anyhow::Result<Report> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let options = Options { cpus: CPUS, workers, nic_assumed: false };
    Ok(explain::explain([Capture::open(path)?], receiver, &options)?)
}

//! `rxlane explain`: where every frame of a capture lands, and why.

mod page;
pub mod text;

pub use page::render as page;

use crate::output::{CommandResult, Failure, Outcome, Output};
use anyhow::{Context, anyhow};
use capture::{Capture, Progress};
use explain::{Options, Report};
use nic::{Receiver, Setup};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The device of the report that the project began with.
const USUAL_NIC: &str = "i210";
/// How often the progress bar moves, and how long a capture may take before it appears.
const TICK: Duration = Duration::from_millis(200);

/// Arguments of `rxlane explain`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    rxlane explain line.pcap --nic x710 --queues 8\n  \
    tcpdump -i eth0 -c 100000 -s 128 -w - | rxlane explain - --html line.html\n  \
    rxlane explain a.pcapng.gz b.pcap.zst --hash-fields udp4=sdfn --json")]
pub struct ExplainArguments {
    /// Captures (pcap or pcapng, plain, gzip or zstd), counted as one; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Network card: a name of `rxlane nics`, with a mode as in `i210+double-vlan`, or a profile file
    /// [default: i210].
    #[arg(long, value_name = "NAME")]
    nic: Option<String>,
    /// Receive queues in use [default: as many as the card has, at most 4].
    #[arg(long, value_name = "N")]
    queues: Option<u16>,
    /// Hash key as `ethtool -x` prints it [default: Microsoft's verification key].
    #[arg(long, value_name = "HEX")]
    key: Option<rss::HashKey>,
    /// Indirection table: `equal:N`, `weight:W0,W1,…`, queues of all entries separated by commas, or a file
    /// with the output of `ethtool -x` [default: as the driver fills it].
    #[arg(long, value_name = "TABLE")]
    reta: Option<String>,
    /// Hash fields of a flow type, as in `ethtool -N … rx-flow-hash udp4 sdfn`; repeatable.
    #[arg(long, value_name = "FLOW=FIELDS", value_delimiter = ',')]
    hash_fields: Vec<rss::FlowHash>,
    /// CPUs that steering by the inner header would use [default: as many as queues, or 4 for one queue].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    cpus: Option<u16>,
    /// Write a page with charts, too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON (schema rxlane.explain/1).
    #[arg(long)]
    json: bool,
    /// Threads that read and count [default: as many as CPUs, at most 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
}

impl ExplainArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        let receiver = self.receiver()?;
        let captures = self.files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()?;
        let file = self.html.as_deref().map(create).transpose()?;
        let queues = receiver.queues();
        let usual_cpus = if queues > 1 { queues } else { nic::receiver::USUAL_QUEUES };
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get().min(16));
        let options = Options {
            cpus: self.cpus.unwrap_or(usual_cpus),
            workers: self.workers.map_or(processors, usize::from),
            nic_assumed: self.nic.is_none(),
        };
        let report = read(captures, &receiver, &options)?;
        if let (Some(mut file), Some(path)) = (file, &self.html) {
            let written = file.write_all(page(&report).as_bytes());
            written.with_context(|| format!("cannot write {}", path.display()))?;
        }
        if self.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            writeln!(out)?;
        } else {
            text::print(out, &report)?;
            if let Some(path) = &self.html {
                writeln!(out, "\nThe page is in {}.", path.display())?;
            }
        }
        Ok(Outcome::Success)
    }

    fn receiver(&self) -> Result<Receiver, Failure> {
        let name = self.nic.as_deref().unwrap_or(USUAL_NIC);
        let profile = profile(name)?;
        let table = self.reta.as_deref().map(|text| table(text, &profile)).transpose()?;
        let setup =
            Setup { queues: self.queues, key: self.key.clone(), table, fields: self.hash_fields.clone() };
        Ok(Receiver::new(profile, &setup)?)
    }
}

/// A profile by its name, or from a file where the name is a path.
fn profile(name: &str) -> Result<nic::Profile, Failure> {
    if name.contains('/') || name.ends_with(".toml") {
        return Ok(nic::Profile::read(Path::new(name))?);
    }
    Ok(nic::lookup(name)?)
}

/// The queues of all entries of an indirection table.
fn table(text: &str, profile: &nic::Profile) -> Result<Vec<u16>, Failure> {
    let size = profile.ints(nic::schema::TABLE_SIZES).and_then(|sizes| sizes.first()).copied().unwrap_or(128);
    let shape = rss::TableShape::new(usize::try_from(size)?, 16)?;
    let numbers = |list: &str| -> Result<Vec<u32>, Failure> {
        list.split(',')
            .map(|number| number.trim().parse().with_context(|| format!("--reta: `{number}` is no number")))
            .collect::<Result<_, _>>()
            .map_err(Failure::from)
    };
    if let Some(queues) = text.strip_prefix("equal:") {
        let queues = numbers(queues)?.first().copied().unwrap_or(0);
        return Ok(rss::IndirectionTable::equal(shape, queues, 0)?.queues().to_vec());
    }
    if let Some(weights) = text.strip_prefix("weight:") {
        return Ok(rss::IndirectionTable::weight(shape, &numbers(weights)?, 0)?.queues().to_vec());
    }
    if text.contains(',') {
        let queues = numbers(text)?;
        return queues
            .into_iter()
            .map(|queue| u16::try_from(queue).with_context(|| format!("--reta: queue {queue} is too large")))
            .collect::<Result<_, _>>()
            .map_err(Failure::from);
    }
    let printed = std::fs::read_to_string(text).with_context(|| {
        format!("--reta: `{text}` is neither equal:N, weight:W0,W1,…, a list of queues, nor a file that can be read")
    })?;
    let printed = rss::PrintedTable::parse(&printed).with_context(|| format!("--reta: {text}"))?;
    Ok(printed.table.queues().to_vec())
}

fn open(path: &Path) -> Result<Capture, Failure> {
    if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            return Err(anyhow!(
                "standard input is a terminal; try: tcpdump -i IFACE -w - | rxlane explain -"
            )
            .into());
        }
        return Ok(Capture::stdin()?);
    }
    if !path.exists() && Path::new("/sys/class/net").join(path).exists() {
        let interface = path.display();
        return Err(anyhow!(
            "{interface} is an interface, not a file; live samples are not built yet: \
             tcpdump -i {interface} -c 100000 -s 128 -w - | rxlane explain -"
        )
        .into());
    }
    Ok(Capture::open(path)?)
}

/// Opens the page before hours of reading, not after.
fn create(path: &Path) -> Result<std::fs::File, Failure> {
    std::fs::File::create(path)
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(Failure::from)
}

/// Reads everything, with a progress bar on a terminal where it takes long.
fn read(captures: Vec<Capture>, receiver: &Receiver, options: &Options) -> Result<Report, Failure> {
    let progress: Vec<Progress> = captures.iter().map(Capture::progress).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher =
            std::io::stderr().is_terminal().then(|| scope.spawn(|| show_progress(&progress, &done)));
        let report = explain::explain(captures, receiver, options);
        done.store(true, Ordering::Relaxed);
        if let Some(watcher) = watcher {
            watcher.thread().unpark();
        }
        Ok(report?)
    })
}

fn show_progress(progress: &[Progress], done: &AtomicBool) {
    let total = progress.iter().map(Progress::total).sum::<Option<u64>>();
    std::thread::park_timeout(TICK);
    if done.load(Ordering::Relaxed) {
        return;
    }
    let bar = match total {
        Some(total) => indicatif::ProgressBar::new(total).with_style(
            indicatif::ProgressStyle::with_template(
                "{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta} left",
            )
            .unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()),
        ),
        None => indicatif::ProgressBar::new_spinner().with_style(
            indicatif::ProgressStyle::with_template("{spinner} {bytes} {bytes_per_sec}")
                .unwrap_or_else(|_| indicatif::ProgressStyle::default_spinner()),
        ),
    };
    while !done.load(Ordering::Relaxed) {
        bar.set_position(progress.iter().map(Progress::bytes).sum());
        std::thread::park_timeout(TICK);
    }
    bar.finish_and_clear();
}

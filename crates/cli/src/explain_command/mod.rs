//! `rxlane explain`: where every frame of a capture lands, and why.

mod page;
pub mod text;

use crate::arguments::device::{self, DeviceArguments};
use crate::output::{CommandResult, Outcome, Output, complain};
use crate::output_file::OutputFile;
use crate::render::prose::explain::{Concluded, conclusion};
use anyhow::bail;
use capture::{Capture, Progress};
use explain::{Options, Report};
use nic::Receiver;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The device of the report that the project began with.
const USUAL_NIC: &str = "i210";
/// How often the line of progress changes, and how long a capture may take before it appears.
const TICK: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    rxlane explain line.pcap --nic x710 --queues 8\n  \
    tcpdump -Q in -i eth0 -c 100000 -s 256 -w - | rxlane explain - --html line.html\n  \
    rxlane explain a.pcapng.gz b.pcap.zst --hash-fields udp4=sdfn --json")]
pub struct ExplainArguments {
    /// Captures (pcap or pcapng, plain, gzip or zstd), counted as one; `-` is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    device: DeviceArguments,
    /// CPUs that steering by the inner header would use [default: as many as queues, or 4 for one queue].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    cpus: Option<u16>,
    /// Write a page with charts, too; `-` writes it, and only it, to standard output.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print what the traffic consists of besides: stacks and why they hash so, tags, sessions, largest flows.
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    /// Print JSON (schema rxlane.explain/1).
    #[arg(long)]
    json: bool,
    /// Threads that read and count [default: as many as CPUs, at most 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
}

impl ExplainArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let receiver = self.receiver()?;
        if self.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            bail!("`-` stands for standard input, which can be read once");
        }
        let captures = self.files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()?;
        let to_stdout = self.html.as_deref() == Some(Path::new("-"));
        let page_file = match &self.html {
            Some(path) if !to_stdout => Some(OutputFile::create("--html", path, &self.inputs())?),
            _ => None,
        };
        let queues = receiver.queues();
        let usual_cpus = if queues > 1 { queues } else { nic::USUAL_QUEUES };
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get().min(16));
        let options = Options {
            cpus: self.cpus.unwrap_or(usual_cpus),
            workers: self.workers.map_or(processors, usize::from),
            nic_assumed: self.device.nic.is_none(),
        };
        let report = read(captures, &receiver, &options)?;
        if let Some(file) = page_file {
            file.write(&page(&report))?;
        }
        if to_stdout {
            out.write_all(page(&report).as_bytes())?;
        } else if self.json {
            out.json(&Concluded { report: &report, conclusion: conclusion(&report) })?;
        } else {
            text::print(out, &report, self.verbose)?;
            if let Some(path) = &self.html {
                writeln!(out, "\nThe page is in {}.", format::printable(&path.display().to_string()))?;
            }
        }
        out.flush()?;
        // The report is whole as far as the files are; a script has to learn that they are not.
        for problem in &report.source.problems {
            complain(problem);
        }
        Ok(if report.source.damaged { Outcome::Negative } else { Outcome::Success })
    }

    fn receiver(&self) -> anyhow::Result<Receiver> {
        self.device.receiver(device::profile(self.device.nic.as_deref().unwrap_or(USUAL_NIC))?)
    }

    fn inputs(&self) -> Vec<PathBuf> {
        let mut inputs = self.files.clone();
        for input in inputs.iter_mut().filter(|input| input.as_os_str() == "-") {
            *input = PathBuf::from("/dev/stdin");
        }
        inputs.extend(self.device.inputs());
        inputs
    }
}

fn open(path: &Path) -> anyhow::Result<Capture> {
    if path == Path::new("-") {
        if std::io::stdin().is_terminal() {
            bail!("standard input is a terminal; try: tcpdump -Q in -i IFACE -w - | rxlane explain -");
        }
        return Ok(Capture::stdin()?);
    }
    if !path.exists() && Path::new("/sys/class/net").join(path).exists() {
        let interface = path.display();
        bail!(
            "{interface} is an interface, not a file; live samples are not built yet: \
             tcpdump -Q in -i {interface} -c 100000 -s 256 -w - | rxlane explain -"
        );
    }
    Ok(Capture::open(path)?)
}

/// The page that `--html` writes.
pub fn page(report: &Report) -> String {
    page::render(report, &conclusion(report))
}

/// Reads everything, with a progress bar on a terminal where it takes long.
fn read(captures: Vec<Capture>, receiver: &Receiver, options: &Options) -> anyhow::Result<Report> {
    let progress: Vec<Progress> = captures.iter().map(Capture::progress).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Without a thread to be had, it goes without a progress bar.
        let watch =
            || std::thread::Builder::new().spawn_scoped(scope, || show_progress(&progress, &done)).ok();
        let watcher = std::io::stderr().is_terminal().then(watch).flatten();
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
    let mut line = crate::progress::Progress::new();
    while !done.load(Ordering::Relaxed) {
        line.show_amount(progress.iter().map(Progress::bytes).sum(), total, format::size);
        std::thread::park_timeout(TICK);
    }
}

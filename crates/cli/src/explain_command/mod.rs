//! `rxlane explain`: where every frame of a capture, or of a sample of an interface, lands, and why.

#[cfg(target_os = "linux")]
pub mod live;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
pub mod live;
mod page;
pub mod text;

use crate::arguments::device::{self, DeviceArguments};
use crate::arguments::seconds;
use crate::output::{CommandResult, Outcome, Output, complain};
use crate::output_file::OutputFile;
use crate::render::prose::explain::{Concluded, conclusion};
use anyhow::bail;
use capture::{Capture, Progress};
use explain::report::INTERFACE_KEY;
use explain::{Options, Report};
use format::{printable, quoted};
use live::Limits;
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
    rxlane explain eth0 --seconds 10\n  \
    tcpdump -Q in -i eth0 -c 100000 -s 256 -w - | rxlane explain - --html line.html\n  \
    rxlane explain a.pcapng.gz b.pcap.zst --hash-fields udp4=sdfn --json")]
pub struct ExplainArguments {
    /// Captures (pcap or pcapng, plain, gzip or zstd), counted as one; `-` is standard input. Or one interface: a sample of
    /// what it receives, which requires root.
    #[arg(required_unless_present = "interface", value_name = "FILE|IFACE")]
    files: Vec<PathBuf>,
    /// Sample this interface, also where a file has its name.
    #[arg(long, value_name = "IFACE", conflicts_with = "files")]
    interface: Option<String>,
    /// Sample for at most so many seconds [default: 3]; SIGINT (^C) ends it earlier, and what has arrived is explained.
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = seconds(0.1, 3600.0))]
    seconds: Option<Duration>,
    /// Sample at most so many frames [default: 1000000]; 64 MiB is the limit in any case, 256 bytes of each frame.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    frames: Option<u64>,
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
        let to_stdout = self.html.as_deref() == Some(Path::new("-"));
        if to_stdout && self.json {
            bail!(
                "--html - and --json both write to standard output: name a file for the page (--html line.html)"
            );
        }
        let input = self.input()?;
        let sampled = match &input {
            Input::Interface(name) => Some(name),
            Input::Files => None,
        };
        let present = sampled.filter(|_| self.device.nic.is_none()).and_then(|name| live::present(name));
        let receiver = self.receiver(present.as_ref())?;
        // Before seconds of sampling, not after.
        let files = match sampled {
            Some(_) => Vec::new(),
            None => self.files.iter().map(|file| open(file)).collect::<Result<Vec<_>, _>>()?,
        };
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
            nic_assumed: self.device.nic.is_none() && present.is_none(),
        };
        let (captures, sample) = match sampled {
            Some(name) => {
                let (capture, sample) = live::take(name, &self.limits())?;
                (vec![capture], Some(sample))
            }
            None => (files, None),
        };
        let mut report = read(captures, &receiver, &options)?;
        report.source.sample = sample;
        if present.is_some() && self.device.key.is_none() && self.device.reta.is_none() {
            INTERFACE_KEY.clone_into(&mut report.nic.key);
        }
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
        let is_silent = report.source.sample.is_some() && report.source.frames == 0;
        Ok(if report.source.damaged || is_silent { Outcome::Negative } else { Outcome::Success })
    }

    /// What the arguments name. Errors: an interface that is a file, too, or is not the only argument; limits of a sample for
    /// files.
    fn input(&self) -> anyhow::Result<Input> {
        if let Some(name) = &self.interface {
            return Ok(Input::Interface(name.clone()));
        }
        if self.files.iter().filter(|file| file.as_os_str() == "-").count() > 1 {
            bail!("`-` stands for standard input, which can be read once");
        }
        let interface = self.files.iter().filter(|path| is_interface(path)).filter_map(|path| path.to_str());
        let interface = interface.collect::<Vec<&str>>();
        let named = interface.iter().find(|name| Path::new(name).exists());
        if let (Some(name), [_]) = (named, &self.files[..]) {
            let name = printable(name);
            bail!(
                "{name} is a file and an interface: ./{name} is the file, --interface {name} the interface"
            );
        }
        match (&interface[..], &self.files[..]) {
            ([name], [_]) => return Ok(Input::Interface((*name).to_owned())),
            ([name, ..], _) if !Path::new(name).exists() => {
                let name = quoted(name);
                bail!("{name} is an interface, and a sample is explained alone: rxlane explain {name}");
            }
            _ => {}
        }
        if self.seconds.is_some() || self.frames.is_some() {
            bail!("--seconds and --frames limit the sample of an interface; files are read whole");
        }
        Ok(Input::Files)
    }

    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            duration: self.seconds.unwrap_or(usual.duration),
            frames: self.frames.unwrap_or(usual.frames),
            ..usual
        }
    }

    fn receiver(&self, present: Option<&live::Present>) -> anyhow::Result<Receiver> {
        let device = &self.device;
        let Some(present) = present else {
            return device.receiver(device::profile(device.nic.as_deref().unwrap_or(USUAL_NIC))?);
        };
        if device.is_as_it_is()
            && let Ok(receiver) = Receiver::new(present.profile.clone(), &present.setup)
        {
            return Ok(receiver);
        }
        device.receiver(present.profile.clone())
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
    if !path.exists() && path.components().count() == 1 {
        let name = printable(&path.display().to_string());
        bail!("there is no file {name} here{}", live::nor(&name));
    }
    Ok(Capture::open(path)?)
}

/// Whether it can only be, or can also be, the name of an interface of this network namespace.
fn is_interface(path: &Path) -> bool {
    let is_name = path.components().count() == 1 && path.file_name() == Some(path.as_os_str());
    is_name && Path::new("/sys/class/net").join(path).exists()
}

enum Input {
    Files,
    Interface(String),
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

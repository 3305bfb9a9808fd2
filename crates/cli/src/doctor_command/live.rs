//! This machine as the doctor's material.

use super::{DoctorArguments, lacks};
use crate::arguments::StateArguments;
use crate::live_sample;
use crate::output::complain;
use crate::render::prose::trace::privilege;
use anyhow::Context;
use format::{one_line, printable};
use host::Snapshot;
use host::live::trace::Tracer;
use host::live::{self, Options, Progress};
use host::sample::Limits;
use host::text::Reader;
use host::trace::{NotOpened, Obstacle, Trace};
use serde::Serialize;
use service::StateDir;
use service::control::ControlError;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;
use steer::record::Records;

/// What findings call the text of a live machine.
const NAME: &str = "this machine";
/// And that of its trace.
const TRACE: &str = "trace";

/// The machine, its traffic as a capture, and what was traced meanwhile, as far as that was requested.
type Read = (Snapshot, Option<Vec<u8>>, Option<Trace>);

/// Reads this machine, and where that is requested samples its traffic and traces it meanwhile.
pub fn read(arguments: &DoctorArguments) -> anyhow::Result<Read> {
    let sampled = arguments.interface.as_deref().filter(|_| arguments.sample);
    let tracer = arguments.trace.then(|| tracer(arguments)).transpose()?;
    thread::scope(|scope| {
        let sampler = sampled.map(|name| scope.spawn(move || take_sample(name, arguments.seconds)));
        let tracer = tracer.map(|tracer| scope.spawn(move || tracer.run(arguments.seconds, &mut |_| true)));
        let machine = machine(arguments);
        let sample =
            sampler.map(|sampler| sampler.join().unwrap_or_else(|_| anyhow::bail!("the sampler failed")));
        let trace = tracer.map(|tracer| tracer.join().map_err(|_| anyhow::anyhow!("the tracer failed")));
        let (mut machine, trace) = (machine?, trace.transpose()?);
        if let Some(time) = trace.as_ref().and_then(|trace| trace.cpu_time.as_ref()) {
            let report = format!("$ perf report --stdio\n{}", time.perf_report());
            machine.read(TRACE, report.as_bytes()).context("where CPU time went")?;
        }
        Ok((machine.finish(), sample.transpose()?, trace))
    })
}

/// Opens what can be traced. Error: neither drops nor CPU time can be, since a privilege is missing.
fn tracer(arguments: &DoctorArguments) -> anyhow::Result<Tracer> {
    let tracer = Tracer::open(arguments.interface.as_deref());
    let is_privilege = |lacking: &&NotOpened| matches!(lacking.why, Obstacle::Privilege { .. });
    match tracer.not_opened().iter().find(is_privilege) {
        Some(lacking) if !tracer.is_open() => Err(lacks(format!(
            "tracing requires {}: run it as root (sudo rxlane doctor --trace); without --trace no privilege is needed",
            privilege(lacking)
        ))),
        _ => Ok(tracer),
    }
}

/// The text of this machine.
fn machine(arguments: &DoctorArguments) -> anyhow::Result<Reader> {
    let options = Options {
        interval: arguments.seconds,
        interfaces: arguments.interface.clone().map(|name| vec![name]),
        // It stays in this process, and without it no queue of a flow can be predicted.
        with_hash_key: true,
    };
    let mut bundle = Vec::new();
    let mut line = crate::progress::Progress::new();
    live::collect_with(&options, &mut OwnPrograms::of(&arguments.state), &mut bundle, &mut |progress| {
        line.show(&words(&progress));
    })
    .map_err(|error| match error {
        live::Error::UnknownInterface { name, known } => no_interface(&name, &known),
        error => error.into(),
    })?;
    drop(line);
    let mut reader = Reader::new();
    reader.read(NAME, bundle.as_slice()).context("what this machine's tools print")?;
    Ok(reader)
}

/// That a word is no interface, and what it may have been meant for.
fn no_interface(word: &str, known: &[String]) -> anyhow::Error {
    if word.contains('/') || Path::new(word).is_file() {
        let word = printable(word);
        return anyhow::anyhow!(
            "`{word}` is no interface; a pasted text or bundle goes to --from, a capture to --traffic"
        );
    }
    steer::error::unknown(word, known).into()
}

/// Bytes of a line that a reader of bundles takes for sure.
const LINE: usize = 32 * 1024;

/// What rxlane's programs in this network namespace do.
pub struct OwnPrograms {
    records: Records,
    state: StateDir,
    /// How interfaces are steered, as they were read last.
    pub steering: BTreeMap<String, steer::status::Status>,
    /// The fast path, as it was read last.
    pub fastpath: Option<fastpath::status::Status>,
}

impl OwnPrograms {
    /// Those that are recorded there.
    pub fn of(state: &StateArguments) -> OwnPrograms {
        let (records, state) = (state.records(), state.folder());
        OwnPrograms { records, state, steering: BTreeMap::new(), fastpath: None }
    }
}

impl live::Programs for OwnPrograms {
    fn steer_status(&mut self, name: &str) -> Result<String, String> {
        let status = steer::status::status(name, Duration::ZERO, &self.records);
        let text = printed(status.as_ref().map_err(ToString::to_string));
        self.steering.extend(status.ok().map(|status| (name.to_owned(), status)));
        text
    }

    fn fastpath_status(&mut self) -> Option<Result<String, String>> {
        let status = match fastpath::status::Status::read(&self.state) {
            // The kernel has removed the program with its process.
            Err(ControlError::None { .. } | ControlError::Killed { .. }) => {
                self.fastpath = None;
                return None;
            }
            status => status,
        };
        let text = printed(status.as_ref().map_err(ToString::to_string));
        self.fastpath = status.ok();
        Some(text)
    }
}

/// JSON on one line, over many where it would be a long one; an error on one.
fn printed(status: Result<impl Serialize, String>) -> Result<String, String> {
    let status = status.map_err(|why| one_line(&why))?;
    let line = serde_json::to_string(&status).map_err(|error| error.to_string())?;
    if line.len() <= LINE {
        return Ok(line);
    }
    serde_json::to_string_pretty(&status).map_err(|error| error.to_string())
}

fn words(progress: &Progress) -> String {
    match progress {
        Progress::Sample(number) => format!("sample {number}"),
        Progress::Interface { name, number, of } => format!("{name}, {number} of {of}"),
        Progress::Waiting { left } => format!("second sample in {:.0} s", left.as_secs_f64().ceil()),
        _ => String::new(),
    }
}

fn take_sample(name: &str, duration: Duration) -> anyhow::Result<Vec<u8>> {
    let limits = Limits { duration, ..Limits::default() };
    let (pcap, taken) = live_sample::take(name, &limits, &mut |_| true).map_err(|error| {
        if live_sample::lacks_privilege(&error) {
            lacks(format!("{error:#}; sampling traffic requires root (sudo rxlane doctor …)"))
        } else {
            error
        }
    })?;
    if taken.dropped > 0 {
        complain(&format!("the sample of {name} lacks {} frames that came too fast for it", taken.dropped));
    }
    if taken.merged > 0 {
        complain(&format!(
            "{} frames of the sample of {name} are several that the kernel had merged (GRO)",
            taken.merged
        ));
    }
    Ok(pcap)
}

//! Where every frame of a capture lands, and why.
//!
//! # Contract
//!
//! [`explain`] reads captures to their end and gives a [`Report`]: what the traffic is, which receive queue
//! each class of it lands on with a given device, why, how uneven that is, and what steering by the inner
//! header would do. Memory is bounded by the number of flows (about a hundred bytes each), of tag stacks
//! and of PPPoE sessions, not by the size of the capture. Frames are counted exactly, whatever the number of
//! workers; no input panics.
//!
//! # Deliberately not here
//!
//! Reassembly: a later fragment belongs to no flow. Time: which CPU is busy when, crate `nic`'s model
//! answers. How a report looks: the command does.

#![forbid(unsafe_code)]

mod compile;
pub mod conclusion;
mod flows;
pub mod report;
mod steering;
mod tally;

pub use report::Report;

use capture::{Capture, Problem};
use foldhash::fast::RandomState;
use nic::Receiver;
use report::Source;
use steering::Steering;
use tally::{Rules, Tally};

/// Rows in [`Report::top_flows`].
const TOP_FLOWS: usize = 10;

/// What the caller decides.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// CPUs that steering deals flows to, at least 1.
    pub cpus: u16,
    /// Threads that read and count, at least 1.
    pub workers: usize,
    /// Whether the device was assumed because the caller named none.
    pub nic_assumed: bool,
}

/// Reads all captures as one and answers for `receiver`. Problems inside the files are in the report's
/// source; everything before them is counted. Errors: only if the steering hash could not be set up, which
/// its fixed key rules out.
pub fn explain(
    captures: impl IntoIterator<Item = Capture>,
    receiver: &Receiver,
    options: &Options,
) -> Result<Report, rss::KeyError> {
    let options = Options { cpus: options.cpus.max(1), ..*options };
    let rules = Rules { receiver, steering: Steering::new()?, hasher: RandomState::default() };
    let mut source = Source::default();
    let mut merged: Option<Tally<'_>> = None;
    for (file, capture) in (0..).zip(captures) {
        let name = capture.name().to_owned();
        let progress = capture.progress();
        let (tallies, read) =
            capture.read_parallel(options.workers.max(1), |_| Tally::new(&rules, file), Tally::batch);
        source.frames += read.frames;
        source.bytes += progress.bytes();
        source.damaged |= read.problems_omitted > 0 || read.problems.iter().any(Problem::is_loss);
        source.problems.extend(read.problems.iter().map(Problem::to_string));
        if read.problems_omitted > 0 {
            source.problems.push(format!("{name}: {} further problems", read.problems_omitted));
        }
        source.files.push(name);
        merged = Tally::merge(merged.into_iter().chain(tallies).collect());
    }
    let tally = merged.unwrap_or_else(|| Tally::new(&rules, 0));
    Ok(compile::compile(source, &tally, receiver, &options))
}

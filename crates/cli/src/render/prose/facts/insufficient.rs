//! The sentences of the finding on rules that lack data.

/// Rules that it names.
const RULES: usize = 6;

pub(super) fn insufficient(ids: &[&str], of: usize) -> String {
    match ids.len() <= RULES {
        true => format!("These rules lack data: {}.", ids.join(", ")),
        false => format!("{} of {of} rules lack data (--json lists them).", ids.len()),
    }
}

/// How a live machine was read.
pub struct Reading {
    pub as_root: bool,
    /// Whether a sample of traffic holds frames; `None` without one.
    pub sample: Option<bool>,
    pub traced: bool,
}

/// The same of this machine, of which rxlane has read what there is to read.
pub fn insufficient_live(ids: &[&str], of: usize, reading: &Reading) -> String {
    let more = [
        (!reading.as_root, "as root it reads more"),
        (reading.sample.is_none(), "--sample adds the traffic of an interface"),
        (reading.sample == Some(false), "the sample holds no frame"),
        (!reading.traced && ids.contains(&"lock-contention"), "--trace adds where CPU time goes"),
    ];
    let more: String =
        more.iter().filter(|(applies, _)| *applies).map(|(_, words)| format!("; {words}")).collect();
    format!("{} Run it again while the line is busy{more}.", insufficient(ids, of))
}

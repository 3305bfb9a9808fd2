//! Where no machine can be read: texts are.

use super::{DoctorArguments, lacks};
use host::Snapshot;
use host::trace::Trace;

/// Error: this is no Linux.
pub fn read(_: &DoctorArguments) -> anyhow::Result<(Snapshot, Option<Vec<u8>>, Option<Trace>)> {
    Err(lacks(
        "a live machine can be read on Linux only; here gather a text with the script of `rxlane collect --script` and give it to \
         `rxlane doctor --from FILE`",
    ))
}

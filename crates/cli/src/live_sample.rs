//! A sample of the traffic of an interface, in memory.

use anyhow::Context;
use host::sample::{self, Limits, Sample};
use std::io;

/// Samples what an interface receives; the bytes are a capture file. `watch` sees how far it is, and ends it by false.
/// Errors: those of [`sample::sample`], and a name that no command could carry.
pub fn take(
    name: &str,
    limits: &Limits,
    watch: &mut dyn FnMut(&Sample) -> bool,
) -> anyhow::Result<(Vec<u8>, Sample)> {
    let interface = name.parse().with_context(|| format!("`{name}`"))?;
    let mut pcap = Vec::new();
    let taken = sample::sample_with(&interface, limits, &mut pcap, watch)?;
    Ok((pcap, taken))
}

/// Whether what failed requires a privilege that this process lacks.
pub fn lacks_privilege(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
}

//! Software steering of each queue (`/sys/class/net/*/queues`), and what sysfs says of the device.

use super::bundle::{Output, Unread};
use super::files::{cat, is_missing, numbered, text};
use super::links::Link;
use std::path::PathBuf;

/// Commands with outputs for one interface.
pub(super) fn read(link: &Link) -> Vec<(String, Output)> {
    let folder = link.folder();
    if let Err(why) = link.is_in_sysfs() {
        return vec![(cat(&folder.join("queues/rx-0/rps_cpus")), Err(why))];
    }
    let mut files: Vec<PathBuf> = Vec::new();
    let queues = folder.join("queues");
    for (_, queue) in numbered(&queues, "rx-") {
        files.extend(["rps_cpus", "rps_flow_cnt"].map(|file| queues.join(&queue).join(file)));
    }
    for (_, queue) in numbered(&queues, "tx-") {
        files.push(queues.join(queue).join("xps_cpus"));
    }
    files.extend(["vendor", "device", "sriov_numvfs"].map(|file| folder.join("device").join(file)));
    // A kernel built without a kind of steering has no such file, and one of a single queue has no answer.
    let known = |path: &PathBuf| !is_missing(path);
    let output = |path: PathBuf| match text(&path) {
        Err(Unread(why)) if why == "No such file or directory" => None,
        output => Some((cat(&path), output)),
    };
    files.into_iter().filter(known).filter_map(output).collect()
}

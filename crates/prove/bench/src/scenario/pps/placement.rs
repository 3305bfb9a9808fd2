//! What a driver forgets when it sets its queues up anew, and no setting of crate `host` has: which CPUs the vectors go to, and the
//! CPUs of each queue's RPS and XPS.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Placement {
    interface: String,
    /// CPUs by the action of a vector, whose number changes.
    vectors: BTreeMap<String, String>,
    /// Text of a queue's file.
    queues: BTreeMap<PathBuf, String>,
}

impl Placement {
    pub fn of(interface: &str) -> Placement {
        let vectors = vectors(interface).into_iter();
        let vectors = vectors.filter_map(|(action, file)| Some((action, fs::read_to_string(file).ok()?)));
        let queues = files(interface).into_iter();
        let queues = queues.filter_map(|file| Some((file.clone(), fs::read_to_string(&file).ok()?)));
        Placement { interface: interface.to_owned(), vectors: vectors.collect(), queues: queues.collect() }
    }

    /// Restores what is other than it was found. What cannot be restored (a vector that the kernel keeps to itself, a queue that is
    /// not there in this cell) is left.
    pub fn restore(&self) {
        let now = vectors(&self.interface).into_iter();
        let vectors = now.filter_map(|(action, file)| Some((file, self.vectors.get(&action)?)));
        let queues = self.queues.iter().map(|(file, text)| (file.clone(), text));
        for (file, text) in vectors.chain(queues) {
            if fs::read_to_string(&file).is_ok_and(|now| now != *text) {
                let _ = fs::write(&file, text);
            }
        }
    }
}

pub fn queues(interface: &str) -> usize {
    let entries = fs::read_dir(folder(interface)).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-")).count()
}

fn folder(interface: &str) -> PathBuf {
    Path::new("/sys/class/net").join(interface).join("queues")
}

fn files(interface: &str) -> Vec<PathBuf> {
    let queues = fs::read_dir(folder(interface)).into_iter().flatten().flatten().map(|entry| entry.path());
    queues.flat_map(|queue| ["rps_cpus", "xps_cpus"].map(|name| queue.join(name))).collect()
}

/// The affinity file of each vector of an interface's device, by the vector's action: each is a folder below its
/// number in `/proc/irq`.
fn vectors(interface: &str) -> Vec<(String, PathBuf)> {
    let numbers = fs::read_dir(format!("/sys/class/net/{interface}/device/msi_irqs"));
    let mut vectors = Vec::new();
    for number in numbers.into_iter().flatten().flatten() {
        let vector = Path::new("/proc/irq").join(number.file_name());
        let entries = fs::read_dir(&vector).into_iter().flatten().flatten();
        let actions = entries.filter(|entry| entry.path().is_dir());
        let file = vector.join("smp_affinity_list");
        vectors
            .extend(actions.map(|action| (action.file_name().to_string_lossy().into_owned(), file.clone())));
    }
    vectors
}

//! Interrupts that the kernel moves to no other CPU: what helps instead.

use crate::Case;
use crate::facts::Effect;
use crate::finding::Remedy;
use crate::remedies;
use crate::vectors::Vector;
use std::collections::BTreeMap;

/// The kernel that has `/sys/class/net/IFACE/threaded` (`dev_set_threaded()`, net/core/dev.c): 5.12.
const THREADED: (u32, u32) = (5, 12);

/// RPS at the interfaces of these vectors, which moves the stack's work, and threaded NAPI, which moves the driver's with it.
pub(crate) fn instead_of_affinity(case: &Case<'_>, vectors: &[&Vector<'_>]) -> Vec<Remedy> {
    if vectors.is_empty() {
        return Vec::new();
    }
    let mut queues: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for interrupt in vectors.iter().map(|vector| vector.interrupt) {
        if let Some(name) = interrupt.interface.as_deref() {
            let queues = queues.entry(name).or_default();
            let queue = interrupt.queue.unwrap_or(0);
            if !queues.contains(&queue) {
                queues.push(queue);
            }
        }
    }
    let devices = case.devices().filter(|device| queues.contains_key(device.name.as_str()));
    let devices: Vec<_> = devices.collect();
    let spread: Vec<Remedy> = match remedies::packet_steering(case) {
        Some(remedy) => vec![remedy],
        None if devices.is_empty() => vec![Remedy::linux(Effect::RpsAtEach, [""; 0])],
        None => devices
            .iter()
            .map(|device| device.rps(queues.get(device.name.as_str()).map_or(&[0][..], Vec::as_slice)))
            .collect(),
    };
    let has_threads = case.kernel().is_none_or(|kernel| kernel >= THREADED);
    let files = devices.iter().map(|device| format!("echo 1 > {}", device.file("threaded")));
    let commands: Vec<String> = files.filter(|_| has_threads).collect();
    let threads = (!commands.is_empty()).then(|| Remedy::linux(Effect::ThreadedNapi, commands));
    spread.into_iter().chain(threads).collect()
}

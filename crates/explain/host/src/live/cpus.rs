//! CPUs: what `uname`, `nproc` and `lscpu` say, and the time that each spent (`/proc/stat`).

use super::bundle::{Output, Unread, printable};
use super::files::{bytes, cpus_in_list, numbered, text, word};
use std::fmt::Write as _;
use std::path::Path;

/// `uname -sr`.
pub(super) fn uname() -> Output {
    let name = rustix::system::uname();
    Ok(format!("{} {}\n", printable(name.sysname().to_bytes()), printable(name.release().to_bytes())))
}

/// `nproc`: CPUs that this process may use.
pub(super) fn nproc() -> Output {
    let status = text(Path::new("/proc/self/status"))?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let count = allowed.and_then(cpus_in_list);
    count
        .map(|count| format!("{count}\n"))
        .ok_or_else(|| Unread("/proc/self/status names no CPUs".to_owned()))
}

/// The lines of `lscpu` that matter here.
pub(super) fn lscpu() -> Output {
    let folder = Path::new("/sys/devices/system/cpu");
    let mut out = String::new();
    let mut line = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(out, "{:<40} {value}", format!("{label}:"));
        }
    };
    let online = text(&folder.join("online"))?;
    let present = word(&folder.join("present")).as_deref().and_then(cpus_in_list);
    line("CPU(s)", present.map(|count| count.to_string()));
    line("On-line CPU(s) list", Some(online.trim().to_owned()));
    line("Model name", model());
    let siblings = word(&folder.join("cpu0/topology/thread_siblings_list"));
    line("Thread(s) per core", siblings.as_deref().and_then(cpus_in_list).map(|count| count.to_string()));
    let nodes = Path::new("/sys/devices/system/node");
    for (number, name) in numbered(nodes, "node") {
        line(&format!("NUMA node{number} CPU(s)"), word(&nodes.join(name).join("cpulist")));
    }
    Ok(out)
}

/// `model name` of `/proc/cpuinfo`; other architectures than x86 call it otherwise or not at all.
fn model() -> Option<String> {
    let info = text(Path::new("/proc/cpuinfo")).ok()?;
    let named = |line: &str| {
        let (label, value) = line.split_once(':')?;
        let label = label.trim();
        let is_model = ["model name", "Model Name", "cpu model"].contains(&label);
        is_model.then(|| value.trim().to_owned()).filter(|value| !value.is_empty())
    };
    info.lines().find_map(named)
}

/// The lines of `/proc/stat` that count the time of CPUs.
pub(super) fn times() -> Output {
    let stat = bytes(Path::new("/proc/stat"))?;
    let lines = stat.split(|&c| c == b'\n').filter(|line| line.starts_with(b"cpu"));
    Ok(lines.map(|line| printable(line) + "\n").collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_this_machines_cpus_is_counted() {
        let lscpu = lscpu().expect("sysfs");
        assert!(lscpu.lines().any(|line| line.starts_with("On-line CPU(s) list: ")), "{lscpu}");
        assert!(nproc().expect("procfs").trim().parse::<u32>().is_ok_and(|count| count > 0));
        let times = times().expect("procfs");
        assert!(times.lines().count() >= 2 && times.lines().all(|line| line.starts_with("cpu")), "{times}");
        assert!(uname().expect("always").starts_with("Linux "));
    }
}

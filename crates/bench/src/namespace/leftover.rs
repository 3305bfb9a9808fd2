//! What processes left that are no more.

use super::{FOLDERS, NAMES, PREFIX, inside, ip, lent, pids};
use host::journal::Journal;
use host::setting::Tree;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long the processes in a namespace have for their ends.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where, in a [`super::Folder`], the journal of the settings is that were changed in a namespace.
pub const SETTINGS: &str = "settings";

/// First the programs that run in their namespaces, so that they take back what they did; then settings and adapters go back, then
/// namespaces and folders go.
pub fn remove() {
    let left = |folder: &str| -> Vec<String> {
        let names = fs::read_dir(folder).into_iter().flatten().flatten();
        names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| is_left(name)).collect()
    };
    let folders = left(FOLDERS);
    for name in left(NAMES) {
        end_processes(&name);
        for folder in &folders {
            restore_settings(&name, &Path::new(FOLDERS).join(folder));
        }
        lent::give_all_back(&name);
        let _ = ip(&["netns", "del", &name]);
    }
    for name in folders {
        let _ = fs::remove_dir_all(Path::new(FOLDERS).join(name));
    }
}

/// Puts back what a journal in this folder says of this namespace. What cannot be put back goes with the namespace, but for settings
/// of an adapter, and there is nobody to be told.
fn restore_settings(namespace: &str, folder: &Path) {
    let folder = folder.join(SETTINGS);
    if folder.exists() {
        let _ = inside(namespace, || {
            let _ = Journal::open(&folder, &Tree::live()).and_then(|mut journal| journal.undo(false));
        });
    }
}

/// Whether it is the name of something of a process that is no more.
fn is_left(name: &str) -> bool {
    let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
    owner.is_some_and(|pid| !PathBuf::from(format!("/proc/{pid}")).exists())
}

/// Ends what runs in a namespace, which nobody waits for any more.
fn end_processes(namespace: &str) {
    let running_now = || -> Vec<Pid> {
        let pids = pids(namespace).unwrap_or_default();
        pids.into_iter().filter_map(|pid| Pid::from_raw(pid.try_into().ok()?)).collect()
    };
    let start = Instant::now();
    let mut running = running_now();
    // One that has ended meanwhile needs no signal.
    let all = |pids: &[Pid], signal: Signal| {
        for pid in pids {
            let _ = kill_process(*pid, signal);
        }
    };
    all(&running, Signal::TERM);
    while !running.is_empty() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
        running = running_now();
    }
    all(&running, Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::super::Namespace;
    use super::*;
    use std::process::{Command, Stdio};
    use testkit::{netns, require};

    #[test]
    fn what_a_dead_process_left_is_removed_with_what_runs_in_it() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let mut dead = Command::new("true").stdin(Stdio::null()).spawn().expect("a process");
        dead.wait().expect("its end");
        let name = format!("{PREFIX}{}-0-line", dead.id());
        let own = Namespace::new("line").expect("a namespace");
        ip(&["netns", "add", &name]).expect("a leftover");
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &name, "sleep", "1000"]).stdin(Stdio::null());
        let mut inside = inside.spawn().expect("a process in it");
        let folder = Path::new(FOLDERS).join(format!("{PREFIX}{}-1", dead.id()));
        fs::create_dir(&folder).expect("a folder");
        // ip-netns(8) enters the namespace at its own time.
        while pids(&name).expect("a list").is_empty() {
            thread::sleep(Duration::from_millis(10));
        }
        // A child that has ended is a process until somebody waits for it.
        let waiting = thread::spawn(move || inside.wait().expect("its end"));
        remove();
        assert!(!waiting.join().expect("a thread").success());
        assert!(!Path::new(NAMES).join(&name).exists() && !folder.exists());
        assert!(Path::new(NAMES).join(own.name()).exists());
    }
}

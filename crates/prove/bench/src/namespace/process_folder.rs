//! What a process has made and not removed yet, and its end where the process was killed.
//!
//! A process with namespaces has a folder in `/run`, which is locked as long as it lives, however it ends. Everything else has
//! the name of that folder. So whoever gets the lock of another's folder removes all of it.

use super::{TopologyError, give_back};
use host::setting::Tree;
use kernel::file::Lock;
use kernel::netns::{self, NAMES};
use rustix::process::{Pid, Signal, kill_process};
use service::StateDir;
use service::journal::Journal;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

const FOLDERS: &str = "/run";
/// Behind it stands the number of the process, then a number of each thing.
const PREFIX: &str = "rxlane-scene-";
/// Folders that are tried: a process of another PID namespace may have the same number, and share `/run`.
const TRIES: u32 = 1000;
/// How long the processes in a namespace have for their ends: one that loads programs into the kernel cannot be interrupted, and what it
/// has pinned is its own to take back.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);
/// Where, in a [`super::Folder`], the journal of the settings is that were changed in a namespace.
pub const SETTINGS: &str = "settings";

#[derive(Debug)]
pub struct ProcessFolder {
    path: PathBuf,
    _lock: Lock,
}

impl ProcessFolder {
    /// That of this process, made where there is none; the first time what killed ones left is removed.
    pub fn of_this_process() -> Result<Arc<ProcessFolder>, TopologyError> {
        static FOLDER: Mutex<Weak<ProcessFolder>> = Mutex::new(Weak::new());
        static SWEPT: Once = Once::new();
        SWEPT.call_once(sweep_all);
        let mut process_folder = FOLDER.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process_folder) = process_folder.upgrade() {
            return Ok(process_folder);
        }
        let failed = |cause| TopologyError::System { what: format!("making a folder in {FOLDERS}"), cause };
        let made = Arc::new(ProcessFolder::make(std::process::id()).map_err(failed)?);
        *process_folder = Arc::downgrade(&made);
        Ok(made)
    }

    fn make(process: u32) -> io::Result<ProcessFolder> {
        for number in 0..TRIES {
            let path = Path::new(FOLDERS).join(format!("{PREFIX}{process}-{number}"));
            // Others than root could take its lock.
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Who sweeps may be faster, and removes it.
            if let Some(lock) = locked(&path) {
                return Ok(ProcessFolder { path, _lock: lock });
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{TRIES} of them are taken")))
    }

    /// Begins the name of a namespace, which never comes again.
    pub fn next_name(&self) -> String {
        let folder = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{folder}-{}", next_number())
    }

    /// A folder in its own. Its name is short: the path of a socket in it has 107 bytes at most (unix(7)).
    pub fn next_path(&self) -> PathBuf {
        self.path.join(next_number().to_string())
    }
}

fn next_number() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

impl Drop for ProcessFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The lock of a folder that is still there; `None`: its process lives, or another one is removing it.
fn locked(folder: &Path) -> Option<Lock> {
    let lock = Lock::exclusive(File::open(folder).ok()?).ok()??;
    lock.is_at(folder).is_ok_and(|is_there| is_there).then_some(lock)
}

/// Removes what a process left that was killed. It lets go of its lock some time after its parent knows of its end: a program
/// that it had just forked off has the lock until it is another program.
pub fn sweep(process: u32, patience: Duration) {
    let (start, prefix) = (Instant::now(), format!("{PREFIX}{process}-"));
    let mut left = process_folders(&prefix);
    while !left.is_empty() && start.elapsed() < patience {
        left.iter().for_each(|process_folder| remove(process_folder));
        left = process_folders(&prefix);
        if !left.is_empty() {
            thread::sleep(POLL);
        }
    }
}

fn sweep_all() {
    process_folders(PREFIX).iter().for_each(|process_folder| remove(process_folder));
}

fn process_folders(prefix: &str) -> Vec<PathBuf> {
    named(FOLDERS, prefix).into_iter().map(|name| Path::new(FOLDERS).join(name)).collect()
}

fn named(folder: &str, prefix: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect()
}

/// Removes a process's folder and all that has its name, unless it lives: first the programs in its namespaces end, so that they
/// take back what they did; then settings and NICs go back.
fn remove(process_folder: &Path) {
    let Some(_lock) = locked(process_folder) else { return };
    let owner = process_folder.file_name().unwrap_or_default().to_string_lossy();
    for name in named(NAMES, &format!("{owner}-")) {
        end_processes(&name);
        for folder in fs::read_dir(process_folder).into_iter().flatten().flatten() {
            restore_settings(&name, &folder.path().join(SETTINGS));
        }
        for nic in nics(&name) {
            give_back(&name, &nic);
        }
        let _ = netns::remove(&name);
        // Who was about to enter found the name until now.
        end_processes(&name);
    }
    let _ = fs::remove_dir_all(process_folder);
}

/// Restores what a journal says of this namespace. What cannot be restored goes with the namespace, but for settings of a NIC, and
/// nobody reads a message.
fn restore_settings(namespace: &str, folder: &Path) {
    if folder.exists() {
        let _ = netns::inside(namespace, || {
            let _ = Journal::open(&StateDir::at(folder), &Tree::live())
                .and_then(|mut journal| journal.undo(false));
        });
    }
}

/// Interfaces in a namespace with a device below.
fn nics(namespace: &str) -> Vec<String> {
    let list =
        "cd /sys/class/net && for nic in */device; do [ ! -e \"$nic\" ] || echo \"${nic%/device}\"; done";
    let command = ["netns", "exec", namespace, "sh", "-c", list];
    let listed = super::output(std::process::Command::new("ip").args(command), "ip", &command);
    listed.unwrap_or_default().lines().map(str::to_owned).collect()
}

fn end_processes(namespace: &str) {
    let (start, mut signalled) = (Instant::now(), Vec::new());
    loop {
        let running: Vec<Pid> = processes_in(namespace).collect();
        let signal = if start.elapsed() < PATIENCE { Signal::TERM } else { Signal::KILL };
        for pid in running.iter().filter(|pid| signal == Signal::KILL || !signalled.contains(*pid)) {
            // One that has ended meanwhile needs no signal.
            let _ = kill_process(*pid, signal);
        }
        if running.is_empty() || signal == Signal::KILL {
            return;
        }
        signalled.extend(running);
        thread::sleep(POLL);
    }
}

/// Processes that are in a namespace, or about to enter it by ip-netns(8).
pub fn processes_in(namespace: &str) -> impl Iterator<Item = Pid> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    let own = identity(&Path::new(NAMES).join(namespace));
    let entering = ["ip", "netns", "exec", namespace, ""].join("\0").into_bytes();
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(move |entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let is_inside = own.is_some() && identity(&entry.path().join("ns/net")) == own;
        let enters = || fs::read(entry.path().join("cmdline")).is_ok_and(|line| line.starts_with(&entering));
        (is_inside || enters()).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Folder, Namespace};
    use super::*;
    use std::process::{Command, Stdio};
    use testkit::{netns as probed, require, wait_until};

    /// What a process of this number would have: no process here has it.
    fn made_by(process: u32) -> (ProcessFolder, String) {
        let process_folder = ProcessFolder::make(process).expect("a folder");
        let name = format!("{}-line", process_folder.next_name());
        netns::create(&name).expect("a namespace");
        (process_folder, name)
    }

    fn is_there(name: &str) -> bool {
        Path::new(NAMES).join(name).exists()
    }

    #[test]
    fn all_goes_with_the_last_guard_and_is_closed_to_others() {
        let Some(()) = require("netns", probed::probe()) else { return };
        let (namespace, folder) =
            (Namespace::new("line").expect("a namespace"), Folder::new().expect("a folder"));
        let process_folder = folder.path().parent().expect("a folder").to_owned();
        assert_eq!(fs::metadata(&process_folder).expect("a folder").mode() & 0o777, 0o700);
        fs::write(folder.path().join("file"), "x").expect("a file in it");
        let paths = [folder.path().to_owned(), Path::new(NAMES).join(namespace.name())];
        drop((namespace, folder));
        assert!(paths.iter().all(|path| !path.exists()), "{paths:?}");
    }

    #[test]
    fn what_a_killed_process_left_is_removed_with_what_runs_in_it_once_nobody_has_its_lock() {
        let Some(()) = require("netns", probed::probe()) else { return };
        let own = Namespace::new("line").expect("a namespace");
        let (process_folder, name) = made_by(4_294_967_295);
        let path = process_folder.path.clone();
        let mut program = Command::new("ip");
        let mut program =
            program.args(["netns", "exec", &name, "sleep", "1000"]).stdin(Stdio::null()).spawn().expect("ip");
        wait_until("it is inside", || processes_in(&name).count() > 0);
        sweep_all();
        assert!(path.exists() && is_there(&name) && program.try_wait().expect("a status").is_none());
        // As by SIGKILL: nothing is removed, and the lock ends.
        drop(process_folder);
        DirBuilder::new().mode(0o700).create(&path).expect("a folder");
        thread::scope(|scope| {
            // A child that has ended is a process until somebody waits for it.
            let ended = scope.spawn(|| program.wait().expect("its end"));
            sweep(4_294_967_295, PATIENCE);
            assert!(!ended.join().expect("a thread").success());
        });
        assert!(!path.exists() && !is_there(&name) && is_there(own.name()));
    }
}

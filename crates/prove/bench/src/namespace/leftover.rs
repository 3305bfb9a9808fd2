//! What processes left that are no more.

use super::held::{self, Held, Taken};
use super::{FOLDERS, NAMES, PREFIX, inside, ip, lent};
use host::setting::Tree;
use rustix::process::{Pid, Signal, kill_process};
use service::StateDir;
use service::journal::Journal;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long the processes in a namespace have for their ends: one that loads programs into the kernel cannot be interrupted, and what it
/// has pinned is its own to take back.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is looked for what one has left.
const LOOK: Duration = Duration::from_millis(100);
/// How long nothing has to be seen of it.
const SETTLED: Duration = Duration::from_secs(2);
/// A namespace is mounted on its file in less.
const OLD: Duration = Duration::from_mins(1);
/// Where, in a [`super::Folder`], the journal of the settings is that were changed in a namespace.
pub const SETTINGS: &str = "settings";

/// First the programs that run in their namespaces, so that they take back what they did; then settings and adapters go back, then
/// namespaces and folders go.
pub fn remove() {
    let (folders, names) = (made_in(FOLDERS), made_in(NAMES));
    let owners: BTreeSet<&str> = folders.iter().chain(&names).filter_map(|name| owner(name)).collect();
    for owner in owners {
        let of = |all: &[String]| -> Vec<String> {
            all.iter().filter(|name| self::owner(name) == Some(owner)).cloned().collect()
        };
        if let Some(left) = Left::take(of(&folders), of(&names)) {
            left.remove();
        }
    }
}

/// Removes what processes left that are no more, until nothing that `process` made has been seen for two seconds, or `patience` is over.
/// A process that was killed lets go of its locks when its parent knows of its end already: its threads end side by side, and a program
/// that it had just forked off has them until it is another program. One that it had started may make a namespace yet.
pub fn remove_of(process: u32, patience: Duration) {
    let process = process.to_string();
    let is_left = |folder: &str| made_in(folder).iter().any(|name| owner(name) == Some(&process));
    let start = Instant::now();
    let mut seen = start;
    while seen.elapsed() < SETTLED && start.elapsed() < patience {
        remove();
        if is_left(FOLDERS) || is_left(NAMES) || !makers(&process).is_empty() {
            seen = Instant::now();
        }
        thread::sleep(LOOK);
    }
    for maker in makers(&process) {
        let _ = kill_process(maker, Signal::KILL);
    }
}

/// Programs that a process has started and that are about to make a namespace of its own: ip-netns(8) waits for a lock.
fn makers(process: &str) -> Vec<Pid> {
    processes(|folder| {
        fs::read(folder.join("cmdline")).is_ok_and(|line| {
            let name = namespace_in(&line, "add").and_then(|name| std::str::from_utf8(name).ok());
            name.is_some_and(|name| owner(name) == Some(process))
        })
    })
}

/// Those of which the folder in `/proc` is such a one.
fn processes(is_it: impl Fn(&Path) -> bool) -> Vec<Pid> {
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pid = |entry: &fs::DirEntry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?);
    all.filter(|entry| is_it(&entry.path())).filter_map(|entry| pid(&entry)).collect()
}

/// The namespace in a command line of ip-netns(8) with this command.
fn namespace_in<'l>(line: &'l [u8], command: &str) -> Option<&'l [u8]> {
    let mut words = line.split(|octet| *octet == 0);
    let is_it = ["ip", "netns", command].iter().all(|word| words.next() == Some(word.as_bytes()));
    words.next().filter(|_| is_it)
}

/// What one process has left, with the locks of all of it.
struct Left {
    folders: Vec<String>,
    names: Vec<String>,
    /// Until all is removed.
    held: Vec<Held>,
}

impl Left {
    /// `None`: of some of it another process has the lock, who has made it or is about to remove it. Folders come first: of two who
    /// sweep at once one gets all, since what is in a folder belongs to a namespace.
    fn take(folders: Vec<String>, names: Vec<String>) -> Option<Left> {
        let mut left = Left { folders: Vec::new(), names: Vec::new(), held: Vec::new() };
        for name in folders {
            match held::take(&Path::new(FOLDERS).join(&name)) {
                Ok(Taken::Own(held)) => left.held.push(held),
                Ok(Taken::Gone) => continue,
                Ok(Taken::Others) | Err(_) => return None,
            }
            left.folders.push(name);
        }
        for name in names {
            let path = Path::new(NAMES).join(&name);
            if !is_mounted(&path) && !is_old(&path) {
                continue;
            }
            match held::take_namespace(Path::new(NAMES), &name) {
                Ok(Taken::Own(held)) => left.held.push(held),
                Ok(Taken::Gone) => continue,
                Ok(Taken::Others) | Err(_) => return None,
            }
            left.names.push(name);
        }
        Some(left)
    }

    fn remove(self) {
        for name in &self.names {
            let users = Users::of(name);
            users.end();
            for folder in &self.folders {
                restore_settings(name, &Path::new(FOLDERS).join(folder));
            }
            lent::give_all_back(name);
            let _ = ip(&["netns", "del", name]);
            // Who was about to enter found the name until now.
            users.end();
        }
        for name in &self.folders {
            let _ = fs::remove_dir_all(Path::new(FOLDERS).join(name));
        }
    }
}

/// Names of what scenes have made in a folder.
fn made_in(folder: &str) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| owner(name).is_some())
        .collect()
}

/// The process of a name, as text.
fn owner(name: &str) -> Option<&str> {
    let owner = name.strip_prefix(PREFIX)?.split('-').next()?;
    owner.parse::<u32>().is_ok().then_some(owner)
}

/// Whether a name is one of a namespace, and not the empty file that it is mounted on.
fn is_mounted(path: &Path) -> bool {
    let device = |path: &Path| identity(path).map(|(device, _)| device);
    device(path) != device(Path::new(NAMES))
}

/// An empty file may be about to be mounted on. One that is mounted on where this process does not see it is locked.
fn is_old(path: &Path) -> bool {
    let made = fs::metadata(path).and_then(|file| file.modified()).ok();
    made.and_then(|made| made.elapsed().ok()).is_some_and(|age| age > OLD)
}

/// Puts back what a journal in this folder says of this namespace. What cannot be put back goes with the namespace, but for settings
/// of an adapter, and there is nobody to be told.
fn restore_settings(namespace: &str, folder: &Path) {
    let folder = folder.join(SETTINGS);
    if folder.exists() {
        let _ = inside(namespace, || {
            let _ = Journal::open(&StateDir::at(folder), &Tree::live())
                .and_then(|mut journal| journal.undo(false));
        });
    }
}

/// What runs in a namespace, or is about to, and nobody waits for any more.
struct Users<'n> {
    name: &'n str,
    /// Device and inode: its lock keeps the namespace, so that no other gets them.
    identity: Option<(u64, u64)>,
}

impl Users<'_> {
    fn of(name: &str) -> Users<'_> {
        Users { name, identity: identity(&Path::new(NAMES).join(name)) }
    }

    fn now(&self) -> Vec<Pid> {
        processes(|folder| {
            let inside = self.identity.is_some() && identity(&folder.join("ns/net")) == self.identity;
            inside || fs::read(folder.join("cmdline")).is_ok_and(|line| enters(&line, self.name))
        })
    }

    fn end(&self) {
        let start = Instant::now();
        // One that has ended meanwhile needs no signal.
        let all = |pids: &[Pid], signal: Signal| {
            for pid in pids {
                let _ = kill_process(*pid, signal);
            }
        };
        let mut told = Vec::new();
        let mut running = self.now();
        while !running.is_empty() && start.elapsed() < PATIENCE {
            let fresh: Vec<Pid> = running.iter().filter(|pid| !told.contains(*pid)).copied().collect();
            all(&fresh, Signal::TERM);
            told.extend(fresh);
            thread::sleep(Duration::from_millis(50));
            running = self.now();
        }
        all(&running, Signal::KILL);
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Whether a command line is that of ip-netns(8) before it has become the program.
fn enters(line: &[u8], name: &str) -> bool {
    namespace_in(line, "exec") == Some(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::{Namespace, pids};
    use super::*;
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use testkit::{netns, program, require};

    /// What one test has left for itself another would sweep; the first sweep of the process is over, too.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        drop(Namespace::new("line").expect("a namespace"));
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn what_somebody_holds_is_not_left_whatever_process_its_name_tells() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let _alone = alone();
        // Of another PID namespace: no process here has this number, nor can any have it.
        let [name, folder] = ["0-line", "1"].map(|end| format!("{PREFIX}4294967295-{end}"));
        let (path, folder) = (Path::new(NAMES).join(&name), Path::new(FOLDERS).join(folder));
        ip(&["netns", "add", &name]).expect("a namespace");
        fs::create_dir(&folder).expect("a folder");
        let of_namespace = || held::take_namespace(Path::new(NAMES), &name);
        let of_folder = || held::take(&folder);
        let locks: [&dyn Fn() -> std::io::Result<Taken>; 2] = [&of_namespace, &of_folder];
        for lock in locks {
            let Ok(Taken::Own(held)) = lock() else { panic!("nobody holds it") };
            remove();
            assert!(path.exists() && folder.exists(), "{held:?}");
            drop(held);
        }
        remove();
        assert!(!path.exists() && !folder.exists());
    }

    #[test]
    fn a_namespace_whose_mount_is_not_seen_here_is_not_left_while_somebody_holds_it() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let Some(_) = require("flock", program("flock")) else { return };
        let own = Namespace::new("line").expect("a namespace");
        // In a mount namespace of its own, without the mount: as a container that has /run of the host.
        let look = "umount $0 || exit 1; mountpoint -q $0 && exit 2; exec flock -n -E 7 $0 true";
        let mut shell = Command::new("unshare");
        shell.args(["-m", "sh", "-c", look]).arg(Path::new(NAMES).join(own.name())).stdin(Stdio::null());
        assert_eq!(shell.status().expect("unshare").code(), Some(7));
        assert!(own.works("lo").expect("it is there"));
    }

    #[test]
    fn whoever_is_not_root_holds_nothing_up() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let Some(_) = require("flock", program("flock")) else { return };
        let _alone = alone();
        let name = format!("{PREFIX}4294967292-0-line");
        let path = Path::new(NAMES).join(&name);
        ip(&["netns", "add", &name]).expect("a namespace");
        let mut nobody = Command::new("flock");
        nobody.arg("-sF").arg(&path).args(["sh", "-c", "echo locked; exec sleep 1000"]);
        nobody.uid(65534).gid(65534);
        let mut nobody = nobody.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("flock");
        let mut said = [0; 6];
        nobody.stdout.take().expect("its output").read_exact(&mut said).expect("a lock");
        remove();
        let is_there = path.exists();
        nobody.kill().and_then(|()| nobody.wait()).expect("an end");
        assert!(!is_there);
    }

    #[test]
    fn an_empty_file_is_no_namespace_yet() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let _alone = alone();
        let path = Path::new(NAMES).join(format!("{PREFIX}4294967294-0-line"));
        let file = fs::File::create(&path).expect("a file");
        remove();
        assert!(path.exists());
        file.set_modified(std::time::SystemTime::now() - 2 * OLD).expect("a time");
        remove();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_process_left_is_removed_with_what_runs_in_it() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let _alone = alone();
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

    #[test]
    fn what_is_let_go_or_made_late_is_removed_too() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let _alone = alone();
        let [early, late] = ["0-line", "1-line"].map(|end| format!("{PREFIX}4294967293-{end}"));
        let [early_path, late_path] = [&early, &late].map(|name| Path::new(NAMES).join(name));
        ip(&["netns", "add", &early]).expect("a namespace");
        let held = held::take_namespace(Path::new(NAMES), &early);
        let Ok(Taken::Own(held)) = held else { panic!("nobody holds it") };
        let patience = Duration::from_secs(30);
        thread::scope(|scope| {
            scope.spawn(|| remove_of(4_294_967_293, patience));
            thread::sleep(3 * LOOK);
            assert!(early_path.exists());
            drop(held);
            let start = Instant::now();
            while early_path.exists() {
                assert!(start.elapsed() < patience, "nobody removes {early}");
                thread::sleep(LOOK);
            }
            ip(&["netns", "add", &late]).expect("a namespace");
        });
        assert!(!early_path.exists() && !late_path.exists());
    }

    #[test]
    fn a_namespace_that_is_about_to_be_made_is_waited_for() {
        let Some(()) = require("netns", netns::probe()) else { return };
        let Some(_) = require("flock", program("flock")) else { return };
        let _alone = alone();
        let name = format!("{PREFIX}4294967291-0-line");
        let mut maker = Command::new("ip");
        maker.arg0("ip").args(["netns", "add", &name]);
        let lock = fs::File::open(NAMES).expect("the folder");
        lock.lock().expect("a lock");
        let mut maker = maker.stdin(Stdio::null()).spawn().expect("ip");
        let start = Instant::now();
        while makers("4294967291").is_empty() {
            // An older iproute2 takes no lock.
            if maker.try_wait().expect("a status").is_some() {
                return ip(&["netns", "del", &name]).expect("gone");
            }
            assert!(start.elapsed() < Duration::from_secs(30), "ip is not seen");
            thread::sleep(LOOK);
        }
        thread::scope(|scope| {
            let sweeps = scope.spawn(|| remove_of(4_294_967_291, Duration::from_secs(30)));
            thread::sleep(SETTLED + 5 * LOOK);
            drop(lock);
            maker.wait().expect("its end");
            sweeps.join().expect("a thread");
        });
        assert!(!Path::new(NAMES).join(&name).exists());
    }

    #[test]
    fn a_command_line_enters_its_namespace_until_it_is_that_of_the_program() {
        let line = b"ip\0netns\0exec\0rxlane-scene-7-0-line\0rxlane\0link\0up\0";
        assert!(enters(line, "rxlane-scene-7-0-line") && !enters(line, "rxlane-scene-7-0"));
        assert!(!enters(&line[3..], "rxlane-scene-7-0-line") && !enters(b"", "rxlane-scene-7-0-line"));
    }
}

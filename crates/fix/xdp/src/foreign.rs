//! What can be learnt of an XDP program that another tool attached.

use std::fs;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::interface::{AttachedBy, Mode, Program};
use kernel::bpf;

/// What the kernel shows of a program by its number, as far as it shows that to this process.
pub(crate) fn describe(id: u32, mode: Option<Mode>) -> Program {
    let info = bpf::program_by_id(id).and_then(|fd| bpf::program_info(fd.as_fd())).ok();
    let link = link_of(id);
    let processes = processes(id, link.flatten());
    Program {
        id,
        mode,
        name: info.as_ref().map(|info| info.name.clone()).filter(|name| !name.is_empty()),
        tag: info.as_ref().map(|info| info.tag),
        attached_by: link.map(|link| link.map_or(AttachedBy::Netlink, AttachedBy::Link)),
        loaded: info.as_ref().map(|info| since(info.loaded_ns)),
        user: info.map(|info| info.user),
        processes,
        attached_as: None,
    }
}

/// The wall-clock time of a moment since boot, as far as the clock was not set since.
pub(crate) fn since(boot_ns: u64) -> SystemTime {
    let now = clock_gettime(ClockId::Boottime);
    let up =
        Duration::new(now.tv_sec.try_into().unwrap_or_default(), now.tv_nsec.try_into().unwrap_or_default());
    let age = up.saturating_sub(Duration::from_nanos(boot_ns));
    SystemTime::now().checked_sub(age).unwrap_or(UNIX_EPOCH)
}

/// The XDP link that holds a program; `Some(None)`: none does. `None`: the process may not ask.
fn link_of(program: u32) -> Option<Option<u32>> {
    let mut id = 0;
    while let Some(next) = bpf::next_link(id).ok()? {
        id = next;
        // A link may go between the two calls.
        let Ok(link) = bpf::link_by_id(id) else { continue };
        let info = bpf::link_info(link.as_fd()).ok().flatten();
        if info.is_some_and(|info| info.program == program && info.interface != 0) {
            return Some(Some(id));
        }
    }
    Some(None)
}

/// Processes that have a program or a link open, as far as procfs shows them to this one.
fn processes(program: u32, link: Option<u32>) -> Vec<(u32, String)> {
    let program = format!("prog_id:\t{program}");
    let link = link.map(|link| format!("link_id:\t{link}"));
    let names_program = |text: &str| {
        // Maps and other links name programs, too; a program's own file says its tag, an XDP link's its kind.
        let of_program = text.lines().any(|line| line == program) && text.contains("prog_tag:");
        let of_link = link.as_deref().is_some_and(|link| text.lines().any(|line| line == link));
        of_program || of_link
    };
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { return false };
        files.filter_map(|file| fs::read_to_string(file.ok()?.path()).ok()).any(|text| names_program(&text))
    };
    let mut found: Vec<u32> = pids.filter(has_it).take(MOST_PROCESSES).collect();
    found.sort_unstable();
    found.into_iter().map(|pid| (pid, name_of(pid))).collect()
}

/// More make no sentence clearer.
const MOST_PROCESSES: usize = 4;

fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned())
}

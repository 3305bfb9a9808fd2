//! The end of a program that takes too long, with all that it has started.

use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{Child, ExitStatus};

/// Kills a child that was started as the first of a process group of its own, and the group; waits for the child.
pub fn end(child: &mut Child) -> io::Result<ExitStatus> {
    // It is there until it is waited for, so that no other group has its number.
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    // It may have moved to another group.
    let _ = child.kill();
    child.wait()
}

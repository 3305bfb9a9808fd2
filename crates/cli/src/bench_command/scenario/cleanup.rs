//! A process that outlives a scenario which is killed, and does what that one cannot do any more.
//!
//! What a scenario changes goes with its guards, which SIGKILL and the kernel's lack of memory leave no time. Without this process, too,
//! the next scenario removes what one left (crate `bench`, module `namespace`); until then programs go on under load, and a
//! NIC that was borrowed stays away from the machine.

use super::pps;
use crate::output::{CommandResult, Outcome};
use bench::{TopologyError, namespace};
use kernel::process::wait_for_end;
use rustix::process::getppid;
use std::io::{Read, Write, stdin};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::time::Duration;
use steer::record::Records;
use steer::stale_namespaces;

/// Its name among the commands of `rxlane bench`, which help does not list.
pub const COMMAND: &str = "sweep";
/// How long a killed process may take to end, with its locks, when its pipe is closed.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the process may take to end that has nothing to do.
const IDLE: Duration = Duration::from_secs(5);

/// The process, until this is dropped.
pub struct Process(Child);

impl Process {
    /// Starts it. `journal`: what of it was changed by `rxlane bench pps` is restored, too.
    pub fn start(rxlane: &Path, journal: Option<&Path>) -> Result<Process, TopologyError> {
        let mut command = Command::new(rxlane);
        command.args(["bench", COMMAND, &process::id().to_string()]);
        journal.into_iter().for_each(|journal| {
            command.arg("--state-dir").arg(journal);
        });
        // What a terminal sends to its programs is for the scenario.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        command.current_dir("/");
        command.spawn().map(Process).map_err(|cause| {
            let what = "starting a process that tidies up when this one is killed".to_owned();
            TopologyError::System { what, cause }
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended removes nothing either.
        let _ = self.0.stdin.take().map(|mut line| line.write_all(b"done\n"));
        wait_for_end(self.0.id(), IDLE);
        // Somebody has stopped it. Where it has ended by itself there is nothing to kill.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Removes what killed programs steered in namespaces which no longer exist: maps that are pinned, and threads of the kernel that
/// wait for their frames. Their records went with their folder.
pub fn clear_programs() {
    stale_namespaces::clear_programs(&Records::new(Records::DIRECTORY));
}

#[derive(clap::Args)]
pub struct CleanupArguments {
    /// The scenario's process
    #[arg(value_name = "PID")]
    scenario: i32,

    /// Folder of the journal of changes
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
}

impl CleanupArguments {
    /// Waits for the end of the scenario. Exit 0 also where something is not restored: nobody listens any more.
    pub fn run(self) -> CommandResult {
        let was_killed = stdin().read(&mut [0])? == 0;
        if was_killed {
            // A pipe may be closed before the locks are, which show what is left.
            let scenario = self.scenario.unsigned_abs();
            if getppid().is_some_and(|parent| parent.as_raw_nonzero().get() == self.scenario) {
                wait_for_end(scenario, PATIENCE);
            }
            namespace::sweep(scenario, PATIENCE);
            clear_programs();
            if let Some(journal) = self.state_dir {
                pps::restore_quietly(&journal);
            }
        }
        Ok(Outcome::Success)
    }
}

//! A program that keeps the machine's name servers, run to its end in bounded time.

use crate::process_group;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use service::event_loop::ready;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of what it says that are kept.
const SAID: usize = 4096;

/// Why a program did not do it.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It says so, or cannot be run.
    #[error("`{command}` failed: {said}")]
    Failed { command: String, said: String },
    #[error(
        "`{command}` was still running after {} s and was ended{}; run it by hand to see what it waits for",
        .patience.as_secs(),
        if .said.is_empty() { String::new() } else { format!(" (it said: {})", .said) }
    )]
    Endless { command: String, patience: Duration, said: String },
}

/// Runs a program with this on its standard input.
pub fn run(program: &str, arguments: impl Iterator<Item = String>, input: &str) -> Result<(), ProgramError> {
    run_within(PATIENCE, program, arguments, input)
}

fn run_within(
    patience: Duration,
    program: &str,
    arguments: impl Iterator<Item = String>,
    input: &str,
) -> Result<(), ProgramError> {
    let arguments: Vec<String> = arguments.collect();
    let line = || format!("{program} {}", arguments.join(" "));
    let failed = |said: String| ProgramError::Failed { command: line(), said };
    let mut command = Command::new(program);
    // Scripts, and what they start: nothing of this process is for them, a password in its environment least of all.
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.args(&arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // So that all of them can be ended.
    command.process_group(0);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It is shorter than any pipe, and what it does not read it does not want.
        let _ = stdin.write_all(input.as_bytes());
    }
    let mut said = Vec::new();
    let ended = wait(&mut child, Instant::now() + patience, &mut said);
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match ended.map_err(|error| failed(error.to_string()))? {
        Some(status) if status.success() => Ok(()),
        Some(status) if said.is_empty() => Err(failed(format!("it ended with {status}"))),
        Some(_) => Err(failed(said)),
        None => Err(ProgramError::Endless { command: line(), patience, said }),
    }
}

/// Waits for its end, and for nothing that it has left behind, which may hold the pipe open; `None`: it took too long and was
/// ended.
fn wait(child: &mut Child, until: Instant, said: &mut Vec<u8>) -> io::Result<Option<ExitStatus>> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty());
    let mut stderr = child.stderr.take();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            process_group::end(child)?;
            return Ok(None);
        }
        let sources = [stderr.as_ref().map(AsFd::as_fd), process.as_ref().ok().map(AsFd::as_fd)];
        // A kernel without such descriptors is polled.
        let most = if process.is_ok() { left } else { left.min(Duration::from_millis(20)) };
        if sources.iter().all(Option::is_none) {
            thread::sleep(most);
        }
        let [is_said, _] = ready(sources, Some(most))?;
        if is_said && let Some(pipe) = &mut stderr {
            // At its end there is no more to be heard.
            if hear(pipe, said)? == 0 {
                stderr = None;
            }
            // Who has said as much as is kept may go on for ever.
            if said.len() < SAID {
                continue;
            }
        }
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
    }
}

/// Reads what there is; how much.
fn hear(pipe: &mut ChildStderr, said: &mut Vec<u8>) -> io::Result<usize> {
    let mut piece = [0; SAID];
    let count = pipe.read(&mut piece)?;
    let free = SAID.saturating_sub(said.len());
    said.extend(piece.get(..count.min(free)).unwrap_or_default());
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(patience: Duration, text: &str) -> Result<(), String> {
        let arguments = ["-c", text].map(str::to_owned).into_iter();
        run_within(patience, "sh", arguments, "nameserver 192.0.2.53\n").map_err(|error| error.to_string())
    }

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn what_a_program_says_is_reported() {
        assert_eq!(sh(LONG, "read word server && test $server = 192.0.2.53"), Ok(()));
        let error = sh(LONG, "echo no such interface >&2; exit 3").expect_err("it failed");
        assert!(error.starts_with("`sh -c echo ") && error.ends_with("failed: no such interface"), "{error}");
        let error = sh(LONG, "exit 3").expect_err("it failed");
        assert!(error.ends_with("it ended with exit status: 3"), "{error}");
        let error = run("no-such-program", std::iter::empty(), "").expect_err("it is not there").to_string();
        assert!(error.contains("`no-such-program ` failed"), "{error}");
    }

    /// As resolvconf's hooks start daemons, which keep what they have from it.
    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        assert_eq!(sh(LONG, "sleep 60 & exit 0"), Ok(()));
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pids, text) = (folder.path().join("pids"), |path: &std::path::Path| path.display().to_string());
        let script = format!("echo waits >&2; sleep 600 & echo $$ $! > {}; wait", text(&pids));
        let error = sh(Duration::from_millis(500), &script).expect_err("it hangs");
        assert!(error.contains("was still running after") && error.contains("(it said: waits)"), "{error}");
        let pids = std::fs::read_to_string(&pids).expect("it ran");
        let until = Instant::now() + LONG;
        for pid in pids.split_whitespace() {
            let lives = || {
                let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                !stat.is_empty() && !stat.contains(") Z ")
            };
            while lives() {
                assert!(Instant::now() < until, "{pid}");
                std::thread::yield_now();
            }
        }
    }
}

//! Programs in namespaces.

use super::Error;
use crate::namespace::{Folder, TopologyError};
use crate::supervise::ThreadError;
use kernel::process::wait_for_end;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::iter;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a program that runs is looked after: whether a signal asks for the end, or its time is over.
const POLL: Duration = Duration::from_millis(20);
/// How long it has for its end: loading a program into the kernel cannot be interrupted.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much longer than its work a program may take, on a busy machine.
const OVERTIME: Duration = Duration::from_secs(60);

/// Exit code of what lacks a privilege, a program or a kernel feature: `rxlane`, and `pppd` that may not.
const LACKS: i32 = 3;

/// A command as somebody would type it; how it comes into its namespace is left out.
fn command_line(command: &Command) -> String {
    let words = iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    match words.iter().map(AsRef::as_ref).collect::<Vec<&str>>().as_slice() {
        ["ip", "netns", "exec", _, inside @ ..] => inside.join(" "),
        all => all.join(" "),
    }
}

/// A program that runs until this is dropped. ^C of a terminal does not reach it.
#[derive(Debug)]
pub struct Running(Child);

/// Programs, and the folder that they keep things in, which is dropped behind them.
pub type Programs = (Vec<Running>, Folder);

impl Running {
    pub fn start(command: &mut Command) -> Result<Running, Error> {
        Running::with(command, Stdio::null(), Stdio::null())
    }

    fn with(command: &mut Command, stdout: Stdio, stderr: Stdio) -> Result<Running, Error> {
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).process_group(0);
        command
            .spawn()
            .map(Running)
            .map_err(|cause| TopologyError::System { what: command_line(command), cause }.into())
    }

    /// Starts it, and waits until it says on standard output that it is `ready`, for a minute at most.
    pub fn ready(command: &mut Command, ready: &'static str, stop: &AtomicBool) -> Result<Running, Error> {
        let mut running = Running::with(command, Stdio::piped(), Stdio::piped())?;
        // It may say more than a pipe holds, and must not wait for a reader.
        let complaints = whole(running.0.stderr.take())?;
        let stdout = running.0.stdout.take();
        let (is_ready, ready_seen) = mpsc::channel();
        in_thread(move || {
            let mut lines =
                stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok);
            if lines.by_ref().any(|line| line.contains(ready)) && is_ready.send(()).is_ok() {
                lines.for_each(drop);
            }
        })?;
        let start = Instant::now();
        loop {
            match ready_seen.recv_timeout(POLL) {
                Ok(()) => return Ok(running),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => {
                    return Err(Error::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if start.elapsed() > OVERTIME => {
                    let seconds = OVERTIME.as_secs();
                    let said = format!("has not said `{ready}` within {seconds} s, and was ended");
                    return Err(Error::Failed(format!("{} {said}", command_line(command))));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let code = running.ends_within(PATIENCE).and_then(|status| status.code());
        // One that has closed its output and lives on says nothing more that is waited for.
        let said = code.and_then(|_| complaints.join().ok()?.ok()).unwrap_or_default();
        let text = format!("{}: {}", command_line(command), String::from_utf8_lossy(&said).trim());
        Err(if code == Some(LACKS) { Error::Lacks(text) } else { Error::Failed(text) })
    }

    /// How it ended; `None`: it runs longer than that.
    fn ends_within(&mut self, time: Duration) -> Option<ExitStatus> {
        wait_for_end(self.pid(), time);
        self.0.try_wait().ok().flatten()
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(None)) {
            return;
        }
        // A child that nobody has waited for keeps its number.
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        if self.ends_within(PATIENCE).is_none() {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

/// What a program that works for so long writes until its end, and how it ends. It is killed when a signal asks for the end, or
/// when it goes on for a minute longer: its interface, or the one it talks to, may have been removed.
pub fn output(command: &mut Command, works: Duration, stop: &AtomicBool) -> Result<Output, Error> {
    let mut running = Running::with(command, Stdio::piped(), Stdio::piped())?;
    let (stdout, stderr) = (whole(running.0.stdout.take())?, whole(running.0.stderr.take())?);
    let failed = |what: String| Error::Failed(format!("{} {what}", command_line(command)));
    let start = Instant::now();
    let status = loop {
        match running.0.try_wait().map_err(|cause| failed(format!("is not waited for: {cause}")))? {
            Some(status) => break status,
            None if stop.load(Ordering::Relaxed) => {
                let _ = running.0.kill();
                return Err(Error::Interrupted);
            }
            None if start.elapsed() > works + OVERTIME => {
                let _ = running.0.kill();
                let seconds = (works + OVERTIME).as_secs();
                return Err(failed(format!("has not ended after {seconds} s, and was killed")));
            }
            None => {
                wait_for_end(running.pid(), POLL);
            }
        }
    };
    let all = |reading: JoinHandle<io::Result<Vec<u8>>>| {
        let bytes = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        bytes.map_err(|cause| failed(format!("is not read: {cause}")))
    };
    Ok(Output { status, stdout: all(stdout)?, stderr: all(stderr)? })
}

/// Reads all that a program writes into a pipe.
fn whole(pipe: Option<impl Read + Send + 'static>) -> Result<JoinHandle<io::Result<Vec<u8>>>, Error> {
    in_thread(move || {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    })
}

fn in_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>, Error> {
    thread::Builder::new().spawn(work).map_err(|error| ThreadError(error).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_lacks_something_is_reported_as_that() {
        for (code, lacks) in [(3, true), (1, false), (0, false)] {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("echo the reason >&2; exit {code}")]);
            let error = Running::ready(&mut command, "ready", &AtomicBool::new(false)).expect_err("it ends");
            assert_eq!(matches!(error, Error::Lacks(_)), lacks, "{code}: {error}");
            assert!(error.to_string().ends_with(": the reason"), "{error}");
        }
    }

    #[test]
    fn a_program_that_says_nothing_is_not_waited_for_after_a_signal() {
        let mut command = Command::new("sleep");
        command.arg("1000");
        let stop = AtomicBool::new(false);
        let ended = thread::scope(|scope| {
            let waits = scope.spawn(|| Running::ready(&mut command, "ready", &stop));
            stop.store(true, Ordering::Relaxed);
            waits.join().expect("no panic")
        });
        assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    }

    #[test]
    fn a_command_line_is_without_the_way_into_its_namespace() {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", "bench-1", "iperf3", "-c", "10.0.0.1"]);
        assert_eq!(command_line(&command), "iperf3 -c 10.0.0.1");
        assert_eq!(command_line(Command::new("ip").arg("link")), "ip link");
        let error = Running::ready(&mut Command::new("no-such-program"), "ready", &AtomicBool::new(false))
            .expect_err("it is not there");
        assert!(error.to_string().starts_with("no-such-program: "), "{error}");
    }
}

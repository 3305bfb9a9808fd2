//! A process in the background: started, and waited for until it says that it works.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What it says when it works.
const READY: &str = "ready";
/// Time for it to say so.
const PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of its complaint that are read.
const LONGEST: u64 = 4096;

/// Starts the command and waits until it is ready. Gives its number.
pub fn start(mut command: Command) -> Result<u32, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir("/");
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("it has no output".to_owned());
    };
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout.take(LONGEST)).read_line(&mut line);
        // Nobody listens any more when it was too slow.
        let _ = sender.send(read.is_ok() && line.trim_end() == READY);
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(true) => Ok(child.id()),
        Ok(false) => Err(complaint(&mut child, stderr)),
        Err(_) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("it was not ready within {} s", PATIENCE.as_secs()))
        }
    }
}

/// What a process that has closed its output, and so is about to end, wrote to standard error.
fn complaint(child: &mut Child, stderr: impl Read) -> String {
    let mut said = String::new();
    let _ = stderr.take(LONGEST).read_to_string(&mut said);
    let status = child.wait();
    let said = said.trim().trim_start_matches("rxlane:").trim().replace('\n', " ");
    match (said.is_empty(), status) {
        (false, _) => said,
        (true, Ok(status)) => format!("it ended with {status}"),
        (true, Err(error)) => error.to_string(),
    }
}

/// Says that this process, which [`start`] started, works; and leaves the terminal, so that it is not ended with it.
pub fn ready() -> io::Result<()> {
    // A leader of a session already, where somebody else started it: nothing to leave.
    let _ = rustix::process::setsid();
    let mut out = io::stdout().lock();
    writeln!(out, "{READY}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_process_is_ready_when_it_says_so() {
        let pid = start(shell("echo ready; exec sleep 0.3")).expect("ready");
        assert!(pid > 0);
    }

    #[test]
    fn a_process_that_ends_is_quoted() {
        assert_eq!(
            start(shell("echo 'rxlane: no such address' >&2; exit 3")),
            Err("no such address".to_owned())
        );
        assert_eq!(start(shell("exit 3")), Err("it ended with exit status: 3".to_owned()));
        assert!(start(Command::new("/nonexistent")).is_err());
    }
}

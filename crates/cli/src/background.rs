//! Commands that stay: in the foreground, or by `--daemon` in the background, with a log.

use crate::output::{CommandResult, Lacks, Outcome, Output, complain, failure};
use anyhow::anyhow;
use service::daemon::{self, DaemonError, Leaving, Ready, Started};
use service::lines::LineWriter;
use service::log::Log;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// What a terminal that was closed answers (errno(3)).
const EIO: i32 = 5;

/// Whether a command continues as a daemon.
#[derive(clap::Args)]
#[group(skip)]
pub struct DaemonArguments {
    /// Return when it is up, or known not to come up yet; a daemon continues in the background.
    #[arg(long)]
    daemon: bool,
    /// File to which the daemon appends what happens, each line behind the time in UTC [default: it is not recorded].
    #[arg(long, value_name = "FILE", requires = "daemon")]
    log: Option<PathBuf>,
    /// This is the daemon.
    #[arg(long = daemon::OPTION, hide = true, requires = "daemon")]
    daemon_process: bool,
}

impl DaemonArguments {
    pub fn is_caller(&self) -> bool {
        self.daemon && !self.daemon_process
    }

    pub fn is_daemon(&self) -> bool {
        self.daemon_process
    }

    /// Sees that no service manager waits for this process; `what` it would keep in the background itself.
    pub fn expect_no_manager(&self, what: &str) -> anyhow::Result<()> {
        if std::env::var_os("NOTIFY_SOCKET").is_some() {
            return Err(anyhow!(
                "--daemon under a service manager that waits for the process (NOTIFY_SOCKET): leave it out, the manager keeps \
                 {what} in the background itself"
            ));
        }
        Ok(())
    }

    /// Has the daemon's means to leave its caller ready; `None`: this process stays in the foreground.
    pub fn prepare(&self, name: &str, ask: &UnixStream) -> anyhow::Result<Option<Leaving>> {
        if !self.daemon_process {
            return Ok(None);
        }
        let ask = ask.try_clone().map_err(|error| failed(DaemonError::Leave(error)))?;
        Ok(Some(Leaving::prepare(self.log.as_deref(), name, ask).map_err(failed)?))
    }
}

/// Starts the daemon, which is given the secret.
pub fn start(secret: &[u8]) -> CommandResult {
    match daemon::start(secret).map_err(failed)? {
        Started::Ready(Ready::Up) => Ok(Outcome::Success),
        Started::Ready(Ready::Trying) => Ok(Outcome::Negative),
        Started::Ended(status) => ended(status),
    }
}

fn ended(status: ExitStatus) -> CommandResult {
    match (status.code(), status.signal()) {
        // Its end was requested while it came up, which it has reported.
        (Some(0), _) => Ok(Outcome::Success),
        (Some(1), _) => Ok(Outcome::Negative),
        // It has said why on the same standard error: one sentence is enough.
        (Some(code), _) => std::process::exit(code),
        (_, Some(signal)) => {
            Err(Lacks(format!("signal {signal} ended the daemon before anything was up")).into())
        }
        _ => Err(Lacks("the daemon ended before anything was up".to_owned()).into()),
    }
}

/// Goes to the background. What is printed from now on goes to the log.
pub fn leave(
    leaving: Leaving,
    ready: Ready,
    lines: &mut LineWriter,
    out: &mut Output,
    log: &mut Option<Log>,
) -> anyhow::Result<()> {
    *log = leaving.leave(ready, lines).map_err(failed)?;
    // Colour and width are those of the log now.
    *out = Output::standard();
    Ok(())
}

fn failed(error: DaemonError) -> anyhow::Error {
    match error {
        DaemonError::Log { .. } => error.into(),
        other => Lacks(other.to_string()).into(),
    }
}

/// The end of a command whose last words are for the log.
pub fn end(log: Option<Log>, out: &mut Output, result: CommandResult) -> CommandResult {
    let Some(log) = log else { return result };
    // Nobody else is there to read it.
    let _ = out.flush();
    let Err(error) = result else { return result };
    let (code, sentence) = failure(&error);
    complain(&sentence);
    drop(log);
    // What fails once it is up, the machine lacks.
    std::process::exit(if code == 1 { 1 } else { 3 })
}

/// Standard output as lines that hold nobody up. `what` it is about.
pub fn lines(what: &str) -> anyhow::Result<LineWriter> {
    Ok(LineWriter::new().map_err(|error| Lacks(format!("cannot report what happens to {what}: {error}")))?)
}

/// For `map_err` of what waits for signals.
pub fn no_signals(error: io::Error) -> Lacks {
    Lacks(format!("signals cannot be waited for: {error}"))
}

/// That nobody reads what it prints is no reason to end, nor to fail with the terminal.
pub fn unread(printed: io::Result<()>) -> io::Result<()> {
    printed.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ if error.raw_os_error() == Some(EIO) => Ok(()),
        _ => Err(error),
    })
}

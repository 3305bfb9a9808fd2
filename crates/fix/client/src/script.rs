//! Programs that are run when a session comes up and when it ends, with the arguments and variables that scripts for pppd(8)
//! expect (its section SCRIPTS).
//!
//! What a peer said reaches a script only as an address or through `format::Quotable`: one line without control characters, whose
//! quotes, backslashes, `$` and backquotes stand behind a backslash.

use super::process_group;
use kernel::file::{TrustError, expect_trusted};
use rustix::fs::{Access, access};
use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Scripts that wait for their turn, at most.
const WAITING: usize = 16;
/// How long a script may take once another waits for its end, or the end of the program does.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a script gets as its environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    /// `IFNAME`, first argument: the interface.
    pub interface: String,
    /// `DEVICE`, second argument: the parent.
    pub parent: String,
    /// `IPLOCAL`, fourth argument.
    pub local: Option<IpAddr>,
    /// `IPREMOTE`, fifth argument.
    pub remote: Option<IpAddr>,
    /// `LLLOCAL`, `LLREMOTE`: link-local addresses of IPv6.
    pub link_local: Option<(IpAddr, IpAddr)>,
    /// `DNS1`, `DNS2`.
    pub dns: Vec<IpAddr>,
    /// `PEERNAME`: name of the concentrator, escaped.
    pub peer: String,
    /// `PPPLOGNAME`: name that was authenticated with.
    pub user: String,
    /// `MACREMOTE`: MAC address of the concentrator.
    pub mac: String,
    /// `MTU`, bytes.
    pub mtu: u32,
    /// At the end: `CONNECT_TIME` seconds, `BYTES_SENT`, `BYTES_RCVD`.
    pub totals: Option<(u64, u64, u64)>,
}

impl Notice {
    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("IFNAME", self.interface.clone()),
            ("PPP_IFACE", self.interface.clone()),
            ("DEVICE", self.parent.clone()),
            ("PPP_TTY", self.parent.clone()),
            ("SPEED", "0".to_owned()),
            ("PPPD_PID", std::process::id().to_string()),
            ("PEERNAME", self.peer.clone()),
            ("PPPLOGNAME", self.user.clone()),
            ("MACREMOTE", self.mac.clone()),
            ("MTU", self.mtu.to_string()),
        ];
        let mut address = |name, address: Option<IpAddr>| {
            variables.extend(address.map(|address| (name, address.to_string())));
        };
        address("IPLOCAL", self.local);
        address("PPP_LOCAL", self.local);
        address("IPREMOTE", self.remote);
        address("PPP_REMOTE", self.remote);
        address("LLLOCAL", self.link_local.map(|(local, _)| local));
        address("LLREMOTE", self.link_local.map(|(_, remote)| remote));
        address("DNS1", self.dns.first().copied());
        address("DNS2", self.dns.get(1).copied());
        if let Some((seconds, sent, received)) = self.totals {
            variables.extend([
                ("CONNECT_TIME", seconds.to_string()),
                ("BYTES_SENT", sent.to_string()),
                ("BYTES_RCVD", received.to_string()),
            ]);
        }
        variables
    }

    /// Interface, device, speed, addresses of both ends.
    fn arguments(&self) -> [String; 5] {
        let text = |address: Option<IpAddr>| address.map(|address| address.to_string()).unwrap_or_default();
        [self.interface.clone(), self.parent.clone(), "0".to_owned(), text(self.local), text(self.remote)]
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.args(self.arguments()).stdin(Stdio::null());
        command.current_dir("/").env_clear();
        // The environment of the caller is nobody's business there, but for where programs are.
        command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(self.variables());
        // So that all that it starts can be ended, and what is typed on the terminal is not for it.
        command.process_group(0);
        command
    }
}

/// Scripts that run, so that one ends before the next begins and none is left as a zombie.
#[derive(Debug, Default)]
pub struct Scripts {
    running: Option<(PathBuf, Child)>,
    /// In the order in which they are to run.
    waiting: VecDeque<Script>,
    /// Since when somebody waits for the end of the one that runs.
    since: Option<Instant>,
}

/// When a script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    Up,
    Down,
}

#[derive(Debug)]
struct Script {
    occasion: Occasion,
    path: PathBuf,
    command: Command,
}

/// What came of a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("{} cannot be run: {source}; it has to be a program, or a script that names its interpreter (`#!/bin/sh`), and executable", path.display())]
    Start { path: PathBuf, source: io::Error },
    #[error("{} is not run: {source}", path.display())]
    Untrusted { path: PathBuf, source: TrustError },
    #[error("{} ended with {status}", path.display())]
    Failed { path: PathBuf, status: std::process::ExitStatus },
    /// The session for which it was to run had ended before its turn, or too many wait.
    #[error("{} was not run: the script before it was still running when the session ended", path.display())]
    Late { path: PathBuf },
    #[error("{} was still running after {} s and was killed, with what it had started", path.display(), PATIENCE.as_secs())]
    Endless { path: PathBuf },
}

/// Sees, long before it is run, that there is a script, that nobody but root and this user can change it, and that it is
/// executable.
pub fn check(program: &Path) -> Result<(), ScriptError> {
    expect_trusted(program).map_err(|source| ScriptError::Untrusted { path: program.to_owned(), source })?;
    let is_file = fs::metadata(program).map(|metadata| metadata.is_file());
    let checked = match is_file {
        Ok(false) => Err(io::Error::other("it is no regular file")),
        Ok(true) => access(program, Access::EXEC_OK).map_err(io::Error::from),
        Err(error) => Err(error),
    };
    checked.map_err(|source| ScriptError::Start { path: program.to_owned(), source })
}

impl Scripts {
    /// Starts a script, or, while one runs, has it wait until that one has ended: nobody else waits.
    ///
    /// # Errors
    ///
    /// Why this one does not run, or one that waited for its turn never will.
    pub fn start(&mut self, occasion: Occasion, program: &Path, notice: &Notice) -> Result<(), ScriptError> {
        let script = Script { occasion, path: program.to_owned(), command: notice.command(program) };
        if self.running.is_none() && self.waiting.is_empty() {
            return self.spawn(script);
        }
        // A session that came and went meanwhile has no script to run.
        let is_for_nothing = self.waiting.back().is_some_and(|last| last.occasion == Occasion::Up);
        let mut dropped = if is_for_nothing { self.waiting.pop_back() } else { None };
        if dropped.is_none() || occasion == Occasion::Up {
            self.waiting.push_back(script);
        }
        if self.waiting.len() > WAITING {
            dropped = self.waiting.pop_front();
        }
        self.since.get_or_insert_with(Instant::now);
        dropped.map_or(Ok(()), |script| Err(ScriptError::Late { path: script.path }))
    }

    fn spawn(&mut self, mut script: Script) -> Result<(), ScriptError> {
        let child = script.command.spawn();
        let path = script.path;
        let child = child.map_err(|source| ScriptError::Start { path: path.clone(), source })?;
        self.running = Some((path, child));
        Ok(())
    }

    /// Whether one runs, or is to.
    pub fn is_running(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty()
    }

    /// Sees how the one that runs gets on, and begins the next, without waiting. One for which another waits too long is ended.
    pub fn reap(&mut self) -> Result<(), ScriptError> {
        let ended = self.ended();
        if self.running.is_some() {
            return ended;
        }
        let Some(next) = self.waiting.pop_front() else {
            self.since = None;
            return ended;
        };
        self.since = (!self.waiting.is_empty()).then(Instant::now);
        let begun = self.spawn(next);
        ended.and(begun)
    }

    /// Whether the one that ran has ended, and how.
    fn ended(&mut self) -> Result<(), ScriptError> {
        let Some((path, child)) = &mut self.running else { return Ok(()) };
        let path = path.clone();
        if let Ok(Some(status)) = child.try_wait() {
            self.running = None;
            return if status.success() { Ok(()) } else { Err(ScriptError::Failed { path, status }) };
        }
        if self.since.is_none_or(|since| since.elapsed() < PATIENCE) {
            return Ok(());
        }
        let _ = process_group::end(child);
        self.running = None;
        Err(ScriptError::Endless { path })
    }

    /// Waits until none runs and none is to, and ends those that take too long; what went wrong.
    pub fn finish(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while self.is_running() {
            // Somebody waits for all of them now.
            self.since.get_or_insert_with(Instant::now);
            said.extend(self.reap().err().map(|error| error.to_string()));
            if self.is_running() {
                thread::sleep(Duration::from_millis(10));
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("script");
        fs::write(&path, text).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
        path
    }

    #[test]
    fn scripts_have_what_those_of_pppd_have() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = folder.path().join("said");
        let text = format!(
            "#!/bin/sh\necho \"$# $1 $2 $3 $4 $5 $IFNAME $IPLOCAL $IPREMOTE $DNS1 $DNS2 $LLREMOTE $PEERNAME $HOME\" > {}\n",
            said.display()
        );
        let program = script(folder.path(), &text);
        let notice = Notice {
            interface: "ppp0".to_owned(),
            parent: "eth0".to_owned(),
            local: "192.0.2.2".parse().ok(),
            remote: "192.0.2.1".parse().ok(),
            link_local: Some(("fe80::2".parse().expect("one"), "fe80::1".parse().expect("one"))),
            dns: vec!["192.0.2.53".parse().expect("one")],
            peer: format::Quotable(b"$(reboot)\n").to_string(),
            ..Notice::default()
        };
        let mut scripts = Scripts::default();
        scripts.start(Occasion::Up, &program, &notice).expect("it runs");
        assert_eq!(scripts.finish(), [""; 0]);
        let said = fs::read_to_string(said).expect("it ran");
        assert_eq!(
            said,
            "5 ppp0 eth0 0 192.0.2.2 192.0.2.1 ppp0 192.0.2.2 192.0.2.1 192.0.2.53  fe80::1 \\$(reboot)\\u{a} \n"
        );
    }

    /// One that hangs until the other end of a pipe is opened: nobody waits for it, and sessions of meanwhile get no script.
    #[test]
    fn a_script_that_takes_long_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let made = Command::new("mkfifo").arg(path("fifo")).status();
        assert!(made.expect("mkfifo").success());
        let text =
            format!("#!/bin/sh\ncat {}\necho $1 >> {}\n", path("fifo").display(), path("ran").display());
        let program = script(folder.path(), &text);
        let notice = |name: &str| Notice { interface: name.to_owned(), ..Notice::default() };
        let mut scripts = Scripts::default();
        scripts.start(Occasion::Down, &program, &notice("one")).expect("it runs");
        scripts.start(Occasion::Up, &program, &notice("two")).expect("it waits");
        let error =
            scripts.start(Occasion::Down, &program, &notice("two")).expect_err("for nothing").to_string();
        assert!(error.contains("was not run"), "{error}");
        scripts.start(Occasion::Up, &program, &notice("three")).expect("it waits");
        scripts.reap().expect("it runs");
        assert_eq!(scripts.waiting.len(), 1);
        for _ in 0..2 {
            fs::write(path("fifo"), "go\n").expect("written");
            while scripts.running.is_some() && scripts.reap().is_ok() && scripts.since.is_some() {
                thread::yield_now();
            }
        }
        assert_eq!(scripts.finish(), [""; 0]);
        assert_eq!(fs::read_to_string(path("ran")).expect("they ran"), "one\nthree\n");
    }

    #[test]
    fn a_script_that_fails_or_is_none_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = script(folder.path(), "#!/bin/sh\nexit 7\n");
        let mut scripts = Scripts::default();
        scripts.start(Occasion::Up, &program, &Notice::default()).expect("it runs");
        let error = scripts.finish().pop().expect("it failed");
        assert!(error.ends_with("script ended with exit status: 7"), "{error}");
        let error = scripts
            .start(Occasion::Up, Path::new("/nowhere/at/all"), &Notice::default())
            .expect_err("none")
            .to_string();
        assert!(error.contains("/nowhere/at/all cannot be run"), "{error}");
        // The same can be known before.
        check(&program).expect("it can be run");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o644)).expect("not executable");
        for unfit in [program.as_path(), folder.path(), Path::new("/nowhere/at/all")] {
            let error = check(unfit).expect_err("none").to_string();
            assert!(error.contains(&format!("{} cannot be run", unfit.display())), "{error}");
        }
    }
}

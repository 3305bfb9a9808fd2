//! Programs that are run when a session comes up and when it ends, with the arguments and variables that scripts for pppd(8)
//! expect (its section SCRIPTS).
//!
//! What a peer said reaches a script only as an address or through `pppoe::text`: one line without control characters, whose
//! quotes, backslashes, `$` and backquotes stand behind a backslash.

use rustix::fs::{Access, access};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a script may take at the end of the program; one that runs when a session comes up may take any time.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a script is told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
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
    /// `MTU`, octets.
    pub mtu: u32,
    /// At the end: `CONNECT_TIME` seconds, `BYTES_SENT`, `BYTES_RCVD`.
    pub totals: Option<(u64, u64, u64)>,
}

impl Told {
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
        command
    }
}

/// Scripts that run, so that one ends before the next begins and none is left as a zombie.
#[derive(Debug, Default)]
pub struct Scripts {
    running: Option<(PathBuf, Child)>,
}

/// What came of a script.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It cannot be run.
    #[error("{} cannot be run: {source}; it has to be a program, or a script that names its interpreter (`#!/bin/sh`), and executable", path.display())]
    Start {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It said that it failed.
    #[error("{} ended with {status}", path.display())]
    Failed {
        /// Which.
        path: PathBuf,
        /// How.
        status: std::process::ExitStatus,
    },
    /// It goes on for too long.
    #[error("{} was still running after {} s and was killed", path.display(), PATIENCE.as_secs())]
    Endless {
        /// Which.
        path: PathBuf,
    },
}

/// Sees, long before it is run, that there is a script and that it is executable.
///
/// # Errors
///
/// [`ScriptError::Start`].
pub fn check(program: &Path) -> Result<(), ScriptError> {
    let is_file = fs::metadata(program).map(|metadata| metadata.is_file());
    let checked = match is_file {
        Ok(false) => Err(io::Error::other("it is no regular file")),
        Ok(true) => access(program, Access::EXEC_OK).map_err(io::Error::from),
        Err(error) => Err(error),
    };
    checked.map_err(|source| ScriptError::Start { path: program.to_owned(), source })
}

impl Scripts {
    /// Starts a script, once the one before has ended, and does not wait for its end.
    ///
    /// # Errors
    ///
    /// What came of the one before, or why this one does not run.
    pub fn start(&mut self, program: &Path, told: &Told) -> Result<(), ScriptError> {
        let before = self.finish();
        let child = told
            .command(program)
            .spawn()
            .map_err(|source| ScriptError::Start { path: program.to_owned(), source })?;
        self.running = Some((program.to_owned(), child));
        before
    }

    /// Whether one runs.
    pub const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether one has ended since, and how, without waiting.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Failed`].
    pub fn look(&mut self) -> Result<(), ScriptError> {
        let Some((path, child)) = &mut self.running else { return Ok(()) };
        let Ok(Some(status)) = child.try_wait() else { return Ok(()) };
        let path = path.clone();
        self.running = None;
        if status.success() { Ok(()) } else { Err(ScriptError::Failed { path, status }) }
    }

    /// Waits until none runs, and ends one that takes too long.
    ///
    /// # Errors
    ///
    /// [`ScriptError::Failed`], [`ScriptError::Endless`].
    pub fn finish(&mut self) -> Result<(), ScriptError> {
        let until = Instant::now() + PATIENCE;
        while self.running.is_some() && Instant::now() < until {
            self.look()?;
            if self.running.is_some() {
                thread::sleep(Duration::from_millis(10));
            }
        }
        let Some((path, mut child)) = self.running.take() else { return Ok(()) };
        let _ = child.kill();
        let _ = child.wait();
        Err(ScriptError::Endless { path })
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
        let told = Told {
            interface: "ppp0".to_owned(),
            parent: "eth0".to_owned(),
            local: "192.0.2.2".parse().ok(),
            remote: "192.0.2.1".parse().ok(),
            link_local: Some(("fe80::2".parse().expect("one"), "fe80::1".parse().expect("one"))),
            dns: vec!["192.0.2.53".parse().expect("one")],
            peer: pppoe::text::Shown(b"$(reboot)\n").to_string(),
            ..Told::default()
        };
        let mut scripts = Scripts::default();
        scripts.start(&program, &told).expect("it runs");
        scripts.finish().expect("it ends well");
        let said = fs::read_to_string(said).expect("it ran");
        assert_eq!(
            said,
            "5 ppp0 eth0 0 192.0.2.2 192.0.2.1 ppp0 192.0.2.2 192.0.2.1 192.0.2.53  fe80::1 \\$(reboot)\\u{a} \n"
        );
    }

    #[test]
    fn a_script_that_fails_or_is_none_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = script(folder.path(), "#!/bin/sh\nexit 7\n");
        let mut scripts = Scripts::default();
        scripts.start(&program, &Told::default()).expect("it runs");
        let error = scripts.finish().expect_err("it failed").to_string();
        assert!(error.ends_with("script ended with exit status: 7"), "{error}");
        let error =
            scripts.start(Path::new("/nowhere/at/all"), &Told::default()).expect_err("none").to_string();
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

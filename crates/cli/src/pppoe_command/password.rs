//! The password: from a file, the environment, or a terminal. It is never an argument, which every user of a machine sees.

use crate::output::complain;
use anyhow::{Context, anyhow, bail};
use format::quoted;
use kernel::file::Regular;
use service::daemon::SECRET_VARIABLE as VARIABLE;
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

/// The longest password, bytes: what a length of PAP has room for (RFC 1334 section 2.2.1).
const LONGEST: usize = 255;

#[derive(Clone, Copy, Debug)]
pub struct PasswordSource<'a> {
    user: Option<&'a str>,
    file: Option<&'a Path>,
}

impl<'a> PasswordSource<'a> {
    /// Of this user; from this file, where there is one.
    pub const fn of(user: Option<&'a str>, file: Option<&'a Path>) -> PasswordSource<'a> {
        PasswordSource { user, file }
    }

    /// Where it would be read, for people.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn place(&self) -> anyhow::Result<String> {
        if let Some(file) = self.file {
            from_file(file)?;
            return Ok(format!("the password of {}", file.display()));
        }
        Ok(match std::env::var_os(VARIABLE) {
            Some(_) => format!("the password of {VARIABLE}"),
            None => "a password that the terminal is asked for".to_owned(),
        })
    }

    /// Reads it; empty where there is no user.
    pub fn read(&self) -> anyhow::Result<Vec<u8>> {
        let Some(user) = self.user else { return Ok(Vec::new()) };
        let password = match self.file {
            Some(file) => from_file(file)?,
            None => match std::env::var_os(VARIABLE) {
                Some(password) => password.into_encoded_bytes(),
                None => from_terminal(user)?,
            },
        };
        if password.is_empty() {
            bail!(
                "the password of {} is empty: --password-file FILE, {VARIABLE} in the environment, or the terminal has to give one",
                format::printable(user)
            );
        }
        if password.len() > LONGEST {
            bail!("a password of {} bytes: PPP has room for {LONGEST}", password.len());
        }
        Ok(password)
    }
}

fn from_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let named = || format!("cannot read the password in {}", path.display());
    let file = Regular::open_trusted(path).with_context(named)?;
    let is_open_to_others = file.is_readable_by_others();
    let mut line = Vec::new();
    BufReader::new(file.into_file().take(4096)).read_until(b'\n', &mut line).with_context(named)?;
    if is_open_to_others {
        complain(&format!(
            "others may read the password in {}: `chmod 600 {}`",
            path.display(),
            quoted(&path.to_string_lossy())
        ));
    }
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        bail!("the first line of {} is empty, and should be the password", path.display());
    }
    Ok(line.to_vec())
}

/// Asks on the terminal, without showing what is typed.
fn from_terminal(user: &str) -> anyhow::Result<Vec<u8>> {
    if !io::stdin().is_terminal() {
        return Err(anyhow!(
            "the password of {user} is missing: --password-file FILE, or {VARIABLE} in the environment (a terminal would be asked)"
        ));
    }
    let mut screen = io::stderr();
    write!(screen, "Password of {}: ", format::printable(user))?;
    screen.flush()?;
    let hidden = Hidden::new()?;
    let mut line = Vec::new();
    let read = io::stdin().lock().take(4096).read_until(b'\n', &mut line);
    drop(hidden);
    writeln!(screen)?;
    read.context("cannot read the password")?;
    Ok(line.strip_suffix(b"\n").unwrap_or(&line).to_vec())
}

/// Signals that end a process that asks for a password.
const ENDS: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// A terminal that does not show what is typed, as long as this lives, or until a signal ends the process.
struct Hidden {
    before: rustix::termios::Termios,
    signals: Vec<SigId>,
}

impl Hidden {
    fn new() -> io::Result<Hidden> {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        let mut hidden = Hidden { before: before.clone(), signals: Vec::new() };
        for signal in ENDS {
            let (mut came, ring) = UnixStream::pair()?;
            let before = before.clone();
            // Without a sender it ends, and nothing has come.
            let end = move || {
                if matches!(came.read(&mut [0]), Ok(1)) {
                    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
                    let _ = io::stderr().write_all(b"\n");
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            };
            thread::Builder::new().name("prompt".to_owned()).spawn(end)?;
            hidden.signals.push(signal_hook::low_level::pipe::register(signal, ring)?);
        }
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(hidden)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
        for signal in self.signals.drain(..) {
            signal_hook::low_level::unregister(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_file_is_the_password() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("password");
        let read = |text: &[u8]| {
            std::fs::write(&path, text).expect("written");
            PasswordSource::of(Some("me"), Some(&path)).read()
        };
        assert_eq!(read(b"secret\nmore\n").expect("one"), b"secret");
        assert_eq!(read(b"with spaces \xff\r\n").expect("one"), b"with spaces \xff");
        assert!(read(b"\n").expect_err("empty").to_string().contains("is empty"));
        assert!(read(&[b'x'; 300]).expect_err("too long").to_string().contains("300 bytes"));
        let nowhere = PasswordSource::of(Some("me"), Some(Path::new("/nowhere"))).read();
        assert!(format!("{:#}", nowhere.expect_err("none")).contains("cannot read the password in /nowhere"));
        let endless = PasswordSource::of(Some("me"), Some(Path::new("/dev/zero"))).read();
        assert!(format!("{:#}", endless.expect_err("none")).contains("it is a device"));
        assert_eq!(PasswordSource::of(None, None).read().expect("nobody"), b"");
    }
}

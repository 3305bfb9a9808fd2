//! Commands for QEMU itself, by its machine protocol (QEMU's manual, "QEMU Machine Protocol Specification").

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Name of the socket at which QEMU listens, in the folder of the guest.
pub(crate) const SOCKET: &str = "monitor";
/// How long QEMU may take to answer: it does when no virtual CPU is in the middle of something.
const ANSWER: Duration = Duration::from_secs(120);

/// Has QEMU carry out a command without arguments.
///
/// # Errors
///
/// It cannot be reached, does not answer within 30 s, or refuses.
pub(crate) fn execute(folder: &Path, command: &str) -> Result<()> {
    exchange(folder, command).with_context(|| format!("QEMU's monitor: {command}"))
}

fn exchange(folder: &Path, command: &str) -> Result<()> {
    let mut stream = UnixStream::connect(folder.join(SOCKET))?;
    stream.set_read_timeout(Some(ANSWER))?;
    let mut lines = BufReader::new(stream.try_clone()?);
    ensure!(next(&mut lines)?.get("QMP").is_some(), "no greeting");
    // Nothing else is taken before this one.
    for command in ["qmp_capabilities", command] {
        writeln!(stream, "{}", serde_json::json!({ "execute": command }))?;
        loop {
            let line = next(&mut lines)?;
            if let Some(error) = line.get("error") {
                bail!("{error}");
            }
            // All else is an event.
            if line.get("return").is_some() {
                break;
            }
        }
    }
    Ok(())
}

fn next(lines: &mut impl BufRead) -> Result<Value> {
    let mut line = String::new();
    ensure!(lines.read_line(&mut line)? > 0, "the connection is closed");
    Ok(serde_json::from_str(&line)?)
}

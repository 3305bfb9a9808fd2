//! Entries with fields for systemd's journal, where the service manager has this process write there.
//!
//! systemd "Native Journal Protocol": a datagram of lines `KEY=value`, or, of a value with a line feed in it, `KEY`, a line feed, its
//! length in eight bytes (little endian), the value and a line feed.

use rustix::fs::fstat;
use std::env;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Where systemd-journald takes entries.
const SOCKET: &str = "/run/systemd/journal/socket";

/// The journal of systemd.
#[derive(Debug)]
pub struct Journald(UnixDatagram);

/// How an entry weighs (syslog(3)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Priority {
    Warning = 4,
    Notice = 5,
    Info = 6,
}

impl Journald {
    /// The one that standard output goes to, by which text would get there; `None`: it goes elsewhere, or the journal does not listen.
    pub fn of_standard_output() -> Option<Journald> {
        let at = env::var("JOURNAL_STREAM").ok()?;
        let (device, inode) = at.split_once(':')?;
        let there: (u64, u64) = (device.parse().ok()?, inode.parse().ok()?);
        let here = fstat(io::stdout()).ok()?;
        if there != (here.st_dev, here.st_ino) {
            return None;
        }
        Journald::at(Path::new(SOCKET)).ok()
    }

    fn at(path: &Path) -> io::Result<Journald> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        // Who sends has subscribers that wait.
        socket.set_nonblocking(true)?;
        Ok(Journald(socket))
    }

    /// Adds an entry. Names of fields have capital letters, digits and underscores.
    ///
    /// # Errors
    ///
    /// The journal takes nothing at the moment, or does not run any more.
    pub fn send(&self, message: &str, priority: Priority, fields: &[(&str, String)]) -> io::Result<()> {
        let mut entry = Vec::new();
        add(&mut entry, "MESSAGE", message);
        add(&mut entry, "PRIORITY", &(priority as u8).to_string());
        add(&mut entry, "SYSLOG_IDENTIFIER", "rxlane");
        fields.iter().for_each(|(name, value)| add(&mut entry, name, value));
        self.0.send(&entry).map(drop)
    }
}

fn add(entry: &mut Vec<u8>, name: &str, value: &str) {
    entry.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        entry.push(b'\n');
        entry.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        entry.push(b'=');
    }
    entry.extend_from_slice(value.as_bytes());
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_the_protocol_says() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let journal = UnixDatagram::bind(&path).expect("bound");
        let fields = [("RXLANE_USER", "a=b".to_owned()), ("RXLANE_CAUSE", "one\ntwo".to_owned())];
        Journald::at(&path).and_then(|to| to.send("hello", Priority::Notice, &fields)).expect("sent");
        let mut bytes = [0; 512];
        let length = journal.recv(&mut bytes).expect("received");
        let expected = b"MESSAGE=hello\nPRIORITY=5\nSYSLOG_IDENTIFIER=rxlane\nRXLANE_USER=a=b\nRXLANE_CAUSE\n\x07\0\0\0\0\0\0\0one\ntwo\n";
        assert_eq!(&bytes[..length], expected);
    }
}

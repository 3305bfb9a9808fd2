//! The open sessions in a file, so that the next process goes on with them where this one is killed.
//!
//! # Contract
//!
//! * A line of JSON for each session that opened or changed, for each that ended, and every [`COUNTING`] for what they have
//!   transferred. Of several lines about a session the last one counts. A last line that is not whole is that of a process which was
//!   killed while it wrote.
//! * Where most of the file is about sessions that have ended or changed, it is written anew, in the place of the former at once.
//! * The thread that negotiates writes it: the state folder is in memory. What it cannot write is reported, and all of it written anew
//!   later.
//! * A process that ends its sessions removes it.

use kernel::file::{Regular, Replacement};
use pppoe::concentrator::accounting::Traffic;
use pppoe::concentrator::{Saved, Snapshot};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Permissions, remove_file, symlink_metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often it is written what sessions have transferred: what a kill takes away from their accounts, at most.
const COUNTING: Duration = Duration::from_secs(10);
/// Bytes of a file that is read: those of ten million sessions.
const LONGEST: u64 = 8 << 30;
/// Bytes beyond twice its length when it was new, from which on a file is written anew.
const ROOM: usize = 4 << 20;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<S> {
    /// The first: [`Snapshot::FORM`].
    Form(u32),
    /// Milliseconds since the machine was started, and a session as it was then.
    Open(u64, S),
    /// One that has ended, by its name in accounting.
    Ended(u64),
    /// By their names in accounting.
    Transferred(Vec<(u64, Traffic)>),
    /// Whether no more sessions are taken; without such a line they are.
    Draining(bool),
}

impl<S: Serialize> Line<S> {
    fn write(&self, into: &mut Vec<u8>) {
        // Neither does writing to memory fail, nor is there a map whose keys are no text.
        let _ = serde_json::to_writer(&mut *into, self);
        into.push(b'\n');
    }
}

/// The file. See the module.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    /// `None`: it could not be written.
    file: Option<File>,
    /// What is yet to be written.
    lines: Vec<u8>,
    /// Bytes of the file, and those when it was new.
    bytes: usize,
    new_bytes: usize,
    transferred: HashMap<u64, Traffic>,
    draining: bool,
    /// When that was, or when it was tried last to write the file anew; `None`: never.
    counted: Option<Instant>,
    /// Whether what could not be written last was reported.
    is_reported: bool,
}

impl Kept {
    /// One that is yet to be made ([`Kept::renew`]).
    pub(super) fn at(path: PathBuf) -> Kept {
        Kept {
            path,
            file: None,
            lines: Vec::new(),
            bytes: 0,
            new_bytes: 0,
            transferred: HashMap::new(),
            draining: false,
            counted: None,
            is_reported: false,
        }
    }

    /// The sessions of a process that was killed, as they would be now; none where there is no file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is none of this version of the program.
    pub(super) fn read(&self) -> io::Result<Snapshot> {
        let text = match Regular::open(&self.path).and_then(|file| file.read(LONGEST)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Snapshot::default());
            }
            read => read?,
        };
        snapshot(&text, since_boot()).map_err(|why| io::Error::new(ErrorKind::InvalidData, why))
    }

    /// A session opened or changed.
    pub(super) fn opened(&mut self, session: &Saved) {
        Line::Open(since_boot(), session).write(&mut self.lines);
    }

    /// One is over, by its name in accounting.
    pub(super) fn ended(&mut self, accounting: u64) {
        self.transferred.remove(&accounting);
        Line::<()>::Ended(accounting).write(&mut self.lines);
    }

    /// Whether no more sessions are taken.
    pub(super) fn set_draining(&mut self, draining: bool) {
        if std::mem::replace(&mut self.draining, draining) != draining {
            Line::<()>::Draining(draining).write(&mut self.lines);
        }
    }

    /// Whether it is time for [`Kept::count`].
    pub(super) fn is_due(&self) -> bool {
        self.counted.is_none_or(|counted| counted.elapsed() >= COUNTING)
    }

    /// All sessions have transferred so much.
    pub(super) fn count(&mut self, all: Vec<(u64, Traffic)>) {
        // Else it is time to write the file anew.
        if self.file.is_none() {
            return;
        }
        self.counted = Some(Instant::now());
        let Kept { transferred, .. } = self;
        let changed: Vec<(u64, Traffic)> = all
            .into_iter()
            .filter(|(session, traffic)| transferred.insert(*session, *traffic) != Some(*traffic))
            .collect();
        if !changed.is_empty() {
            Line::<()>::Transferred(changed).write(&mut self.lines);
        }
    }

    /// Writes what is yet to be written; why that could not be done.
    pub(super) fn flush(&mut self) -> Option<io::Error> {
        let lines = std::mem::take(&mut self.lines);
        let file = self.file.as_mut().filter(|_| !lines.is_empty())?;
        self.bytes += lines.len();
        let error = file.write_all(&lines).err()?;
        self.file = None;
        self.reported(error)
    }

    /// Whether it is time to write it anew.
    pub(super) fn is_outgrown(&self) -> bool {
        match self.file {
            None => self.is_due(),
            Some(_) => self.bytes > 2 * self.new_bytes + ROOM,
        }
    }

    /// Writes it anew, with all sessions; why that could not be done.
    pub(super) fn renew(&mut self, sessions: &[Saved]) -> Option<io::Error> {
        let error = self.replace(sessions).err()?;
        self.reported(error)
    }

    /// An error that is to be reported: one, until the file can be written again. What it says is not true any more: it goes, and makes
    /// room.
    fn reported(&mut self, error: io::Error) -> Option<io::Error> {
        self.remove();
        (!std::mem::replace(&mut self.is_reported, true)).then_some(error)
    }

    fn replace(&mut self, sessions: &[Saved]) -> io::Result<()> {
        (self.file, self.counted) = (None, Some(Instant::now()));
        self.lines.clear();
        let (mut text, now) = (Vec::new(), since_boot());
        Line::<()>::Form(Snapshot::FORM).write(&mut text);
        if self.draining {
            Line::<()>::Draining(true).write(&mut text);
        }
        sessions.iter().for_each(|session| Line::Open(now, session).write(&mut text));
        let mut replacement = Replacement::create(&self.path, 0o600)?;
        // Whoever may read the former one: it is none of this program then.
        replacement.file().set_permissions(Permissions::from_mode(0o600))?;
        replacement.file().write_all(&text)?;
        let file = replacement.file().try_clone()?;
        replacement.commit()?;
        (self.file, self.is_reported) = (Some(file), false);
        (self.bytes, self.new_bytes) = (text.len(), text.len());
        Ok(())
    }

    /// There is nothing to go on with.
    pub(super) fn remove(&self) {
        // One that cannot be removed is that of sessions which do not answer any more, and end with their next echo.
        if symlink_metadata(&self.path).is_ok_and(|found| found.is_file()) {
            let _ = remove_file(&self.path);
        }
    }
}

/// Milliseconds, by a clock that nobody sets.
fn since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec * 1000 + now.tv_nsec / 1_000_000).unwrap_or_default()
}

/// The sessions of a file, as they would be at this time.
fn snapshot(text: &[u8], now: u64) -> Result<Snapshot, String> {
    let broken = |number: u64| format!("line {number} is none of rxlane");
    let (mut sessions, mut is_draining) = (BTreeMap::new(), false);
    let whole =
        text.iter().rposition(|byte| *byte == b'\n').and_then(|end| text.get(..end)).unwrap_or_default();
    let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    for (number, line) in (1..).zip(lines) {
        match serde_json::from_slice::<Line<Saved>>(line).map_err(|_| broken(number))? {
            Line::Form(form) if form != Snapshot::FORM => {
                return Err(format!(
                    "another version of rxlane wrote it (form {form}, expected {})",
                    Snapshot::FORM
                ));
            }
            Line::Form(_) => {}
            _ if number == 1 => return Err(broken(number)),
            Line::Open(at, mut session) => {
                session.elapse(Duration::from_millis(now.saturating_sub(at)));
                sessions.insert(session.accounting(), session);
            }
            Line::Ended(session) => drop(sessions.remove(&session)),
            Line::Draining(draining) => is_draining = draining,
            Line::Transferred(all) => {
                for (session, traffic) in all {
                    if let Some(session) = sessions.get_mut(&session) {
                        session.set_traffic(traffic);
                    }
                }
            }
        }
    }
    Ok(Snapshot::of(sessions.into_values().collect(), is_draining))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::fs;

    fn open(at: u64, accounting: u64) -> Value {
        let identifiers: [u64; 2] = [1, accounting];
        json!({"open": [at, {
            "whose": {"port": 0, "tags": [], "station": [2, 0, 0, 0, 0, 1], "number": accounting},
            "line": null, "user": [97], "max_payload": 1492, "uptime": {"secs": 5, "nanos": 0}, "local": "10.0.0.1",
            "address": "10.0.0.2", "prefix": null, "delegated": null, "identifiers": identifiers,
            "accounting": accounting, "granted": null, "traffic": traffic(0),
            "ppp": {"mru": 1492, "magic": 1, "peer_mru": 1492, "peer_magic": 2, "identifiers": [1, 2, 3], "ipcp": 1,
                    "ipv6cp": null},
        }]})
    }

    fn traffic(bytes: u64) -> Value {
        json!({"received_octets": bytes, "received_packets": 1, "sent_octets": 0, "sent_packets": 0})
    }

    #[test]
    fn the_last_line_about_a_session_counts() {
        let lines = [
            json!({"form": Snapshot::FORM}),
            open(10_000, 7),
            open(11_000, 8),
            open(11_000, 9),
            json!({"transferred": [[7, traffic(99)], [4, traffic(1)]]}),
            json!({"draining": true}),
            json!({"ended": 8}),
            open(13_000, 9),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        // The process was killed while it wrote another one.
        let read = snapshot(format!("{text}{{\"ended\":7").as_bytes(), 14_000).expect("sessions");
        assert!(read.is_draining());
        let read = serde_json::to_value(read.sessions()).expect("JSON");
        let facts: Vec<[&Value; 3]> = read
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| [&one["accounting"], &one["uptime"]["secs"], &one["traffic"]["received_octets"]])
            .collect();
        assert_eq!(json!(facts), json!([[7, 9, 99], [9, 6, 0]]));
    }

    /// What can no longer be kept true goes, and is there again as soon as it can be.
    #[test]
    fn a_file_that_cannot_be_written_is_written_anew_later() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sessions");
        let mut kept = Kept::at(path.clone());
        assert!(kept.is_outgrown() && kept.renew(&[]).is_none() && !kept.is_outgrown());
        assert_eq!(fs::metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        // As on a full disk.
        kept.file = Some(File::options().write(true).open("/dev/full").expect("a device"));
        kept.ended(7);
        assert!(kept.flush().is_some() && !path.exists() && !kept.is_outgrown());
        kept.counted = None;
        kept.count(vec![(7, Traffic::default())]);
        assert!(kept.is_outgrown() && kept.renew(&[]).is_none() && path.exists());
        kept.remove();
        assert!(!path.exists());
    }

    #[test]
    fn nothing_but_a_regular_file_is_read_or_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.sessions");
        let socket = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let mut kept = Kept::at(path.clone());
        assert!(kept.read().is_err() && kept.renew(&[]).is_some() && kept.renew(&[]).is_none());
        kept.remove();
        assert!(path.exists());
        drop(socket);
    }

    #[test]
    fn what_is_none_of_this_version_is_refused() {
        let other = json!({"form": Snapshot::FORM + 1}).to_string();
        let later = format!("{}\nnonsense\n", json!({"form": Snapshot::FORM}));
        let cases = [
            (&*format!("{other}\n"), "another version"),
            (&*format!("{}\n", open(1, 2)), "line 1 "),
            ("\u{7f}ELF\n", "line 1 "),
            (&*later, "line 2 "),
        ];
        for (text, expected) in cases {
            let error = snapshot(text.as_bytes(), 0).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
        assert!(snapshot(b"", 0).is_ok_and(|none| none.is_empty() && !none.is_draining()));
    }
}

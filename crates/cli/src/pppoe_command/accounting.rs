//! The file of accounting. A thread of its own writes it: a disk that is held up must not hold up the sessions.
//!
//! # Contract
//!
//! * A record is one line, added by one write(2) where the file takes it so.
//! * A record that the file does not take, or that does not fit those that wait for it, is in the log instead, and counted.
//! * At the end all that wait are written, as long as the file takes one a second; the others are in the log.

use crate::output::Lacks;
use anyhow::{Context, bail};
use format::{plural, quoted};
use kernel::file::{Regular, expect_trusted};
use service::lines::{Queue, WholeLines};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of records that may wait: two of each of 65,536 sessions.
const WAITING: usize = 64 << 20;

/// Takes sentences for the log, without their mark and end.
pub type Say = Box<dyn Fn(String) + Send>;

/// See the [module](self).
#[derive(Debug)]
pub struct Accounts {
    path: PathBuf,
    records: Queue,
    /// Records that are not in the file.
    lost: Arc<AtomicU64>,
}

impl Accounts {
    pub fn open(path: &Path, lost: Arc<AtomicU64>, say: Say) -> anyhow::Result<Accounts> {
        Accounts::check(path)?;
        let mut options = File::options();
        options.read(true).append(true).create(true).mode(0o640);
        let file = Regular::open_with(path, &mut options)
            .with_context(|| format!("cannot write accounts to {}", path.display()))?;
        Accounts::on(path, file.into_file(), (WAITING, lost), say)
    }

    /// Whether there is a folder for the file, and nobody else can change either.
    pub fn check(path: &Path) -> anyhow::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let folder = quoted(&folder.to_string_lossy());
            bail!("--accounting: there is no folder {folder}: `mkdir -p {folder}` makes it");
        }
        let trusted = expect_trusted(path).map_err(io::Error::from);
        trusted.with_context(|| format!("cannot write accounts to {}", path.display()))
    }

    fn on(
        path: &Path,
        file: File,
        (waiting, lost): (usize, Arc<AtomicU64>),
        say: Say,
    ) -> anyhow::Result<Accounts> {
        let (refused, mut file) = (Arc::clone(&lost), WholeLines::of(file));
        let write = move |record: Option<String>, _| {
            let Some(record) = record else { return };
            if let Err(error) = file.add(&record) {
                refused.fetch_add(1, Ordering::Relaxed);
                say(not_taken(&error, &record));
            }
        };
        let records = Queue::start("accounting", waiting, write);
        let records = records.map_err(|error| Lacks(format!("cannot write accounts: {error}")))?;
        Ok(Accounts { path: path.to_owned(), records, lost })
    }

    /// Has a record written, without waiting for it; a sentence for the log, where too many wait.
    pub fn add(&self, record: &str) -> Option<String> {
        let record = self.records.push(format!("{record}\n")).err()?;
        self.lost.fetch_add(1, Ordering::Relaxed);
        Some(not_taken(&"the file is too slow", &record))
    }

    /// Waits until all are written, or the file takes none any more; what is to be said of those that are not in it, and how many
    /// these are.
    pub fn finish(self) -> (Vec<String>, u64) {
        let left = self.records.finish();
        let is_held_up = left.is_some();
        let left = left.unwrap_or_default();
        let lost = self.lost.load(Ordering::Relaxed) + left.len() as u64;
        let mut said: Vec<String> =
            left.iter().map(|record| not_taken(&"the file takes nothing", record)).collect();
        let path = self.path.display();
        if lost > 0 {
            let (records, are) = (plural(lost, "record"), if lost == 1 { "is" } else { "are" });
            said.push(format!(
                "{records} of accounting {are} not in {path}, but here, as far as they were taken here"
            ));
        }
        if is_held_up {
            said.push(format!(
                "{path} has not taken the last record that it was given; perhaps it still does"
            ));
        }
        (said, lost)
    }
}

fn not_taken(why: &dyn std::fmt::Display, record: &str) -> String {
    format!("a record of accounting is lost: {why}: {}", record.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, BufRead};
    use std::os::fd::OwnedFd;
    use std::sync::mpsc::channel;

    /// What is held up: a pipe that nobody reads.
    fn held_up() -> (io::PipeReader, Accounts) {
        let (reader, writer) = io::pipe().expect("a pipe");
        let file = File::from(OwnedFd::from(writer));
        let accounts = Accounts::on(Path::new("accounts"), file, (1 << 20, Arc::default()), Box::new(|_| ()));
        (reader, accounts.expect("a thread"))
    }

    #[test]
    fn a_file_that_is_held_up_holds_nobody_up_and_no_record_is_lost_in_silence() {
        let (reader, accounts) = held_up();
        let records: Vec<String> =
            (0..5000).map(|number| format!("{number:05} {}", "x".repeat(500))).collect();
        let mut said: Vec<String> = records.iter().filter_map(|record| accounts.add(record)).collect();
        assert!(said.len() > 2000 && said[0].contains("the file is too slow: 0"), "{}", said.len());
        said.extend(accounts.finish().0);
        assert!(said.iter().any(|text| text.contains("accounts has not taken the last record")));
        let in_log = said.iter().filter(|text| text.contains("a record of accounting is lost")).count();
        let sum = format!("{in_log} records of accounting are not in accounts");
        let sum = sum.replace(&in_log.to_string(), &format::thousands(in_log as u64));
        assert!(
            said.iter().any(|text| text.starts_with(&sum)),
            "{sum}: {:?}",
            said.iter().rev().take(2).collect::<Vec<_>>()
        );
        // All the others are in the pipe, or were just being written.
        let in_file = io::BufReader::new(reader).lines().take(records.len() - in_log).map_while(Result::ok);
        let in_file: Vec<String> = in_file.collect();
        assert_eq!(in_file.len() + in_log, records.len());
        assert_eq!(in_file, records[..in_file.len()]);
    }

    #[test]
    fn a_record_that_the_file_refuses_is_reported() {
        let (say, reports) = channel();
        let file = File::options().read(true).append(true).open("/dev/full").expect("/dev/full");
        let accounts = Accounts::on(
            Path::new("accounts"),
            file,
            (WAITING, Arc::default()),
            Box::new(move |text| drop(say.send(text))),
        );
        let accounts = accounts.expect("a thread");
        assert_eq!(accounts.add("{}"), None);
        let (said, lost) = accounts.finish();
        assert_eq!(lost, 1);
        assert_eq!(
            said,
            ["1 record of accounting is not in accounts, but here, as far as they were taken here"]
        );
        let report = reports.recv().expect("a report");
        assert!(
            report.starts_with("a record of accounting is lost: No space left") && report.ends_with(": {}"),
            "{report}"
        );
    }

    #[test]
    fn all_records_are_written_at_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("accounts");
        let accounts = Accounts::open(&path, Arc::default(), Box::new(|_| ())).expect("a file");
        (0..20_000).for_each(|number| assert_eq!(accounts.add(&number.to_string()), None));
        assert_eq!(accounts.finish(), (Vec::new(), 0));
        assert_eq!(std::fs::read_to_string(&path).expect("text").lines().count(), 20_000);
    }
}

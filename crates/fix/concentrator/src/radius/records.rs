//! Records of accounting that no server has taken yet, in their order: in memory, and in a file that the next process goes on with.
//!
//! # Contract
//!
//! * A record is in the file before it is sent, and counts as taken there once all before it are. After a kill those that were on their
//!   way are sent again, with the same bytes.
//! * What the file has no room for waits in memory. What neither has room for is lost, and counted.
//! * One process has the file at a time: it is locked (flock(2)).

use ::radius::Packet;
use ::radius::exchange::Request;
use ::radius::packet::{Code, Draft, LONGEST};
use kernel::file::{Regular, expect_trusted};
use std::collections::{BTreeSet, VecDeque};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Records in memory.
const MOST_WAITING: usize = 1 << 17;
/// Bytes of the longest file.
const LONGEST_FILE: u64 = 4 << 30;
/// What the file begins with; behind it is where the first record is that was not taken, in network order.
const MAGIC: &[u8; 16] = b"rxlane records 1";
const BEGIN: u64 = MAGIC.len() as u64 + 8;
/// Bytes before each record: how many it has, in network order.
const LENGTH: usize = 4;

/// A record, and where in the file it is.
#[derive(Debug)]
pub(super) struct Kept {
    place: Option<u64>,
    pub(super) request: Request,
}

/// Where a record on its way is in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket(Option<u64>);

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// The oldest first.
    waiting: VecDeque<Kept>,
    file: Option<RecordFile>,
    /// The file that another process has, which ends soon.
    awaited: Option<PathBuf>,
    lost: u64,
}

#[derive(Debug)]
struct RecordFile {
    file: File,
    /// Where the next record goes.
    end: u64,
    /// Where the first record is that is not in memory, at most `end`.
    unread: u64,
    /// Records in memory or on their way, by their places.
    open: BTreeSet<u64>,
    /// Whether the last record could not be written.
    is_full: bool,
}

impl Records {
    /// With a file, if there is to be one. `waits`: another process may have it until it ends. Errors: what is there is none of
    /// this, or cannot be read or written.
    pub(super) fn open(path: Option<PathBuf>, waits: bool) -> io::Result<Records> {
        let mut records = Records::default();
        let Some(path) = path else { return Ok(records) };
        match RecordFile::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && waits => records.awaited = Some(path),
            opened => records.file = Some(opened.map_err(|error| named(&path, &error))?),
        }
        Ok(records)
    }

    /// Whether the file is still another process's.
    pub(super) const fn awaits_file(&self) -> bool {
        self.awaited.is_some()
    }

    /// Whether a file of this path could be opened, or made, as far as it can be seen without doing so.
    pub(super) fn check(path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found =
            expect_trusted(path).map_err(io::Error::from).and_then(|()| Regular::open(path).map(drop));
        match found {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_none_or(Path::is_dir) => {
                Ok(())
            }
            found => found.map_err(|error| named(path, &error)),
        }
    }

    /// Whether there is a file, or will be.
    pub(super) const fn has_file(&self) -> bool {
        self.file.is_some() || self.awaits_file()
    }

    /// Tries to get the file, and puts into it what is in memory.
    pub(super) fn try_file(&mut self) -> io::Result<()> {
        let Some(path) = &self.awaited else { return Ok(()) };
        let opened = match RecordFile::open(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            opened => opened.map_err(|error| named(path, &error)),
        };
        self.awaited = None;
        self.file = Some(opened?);
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().try_for_each(|kept| self.push(kept.request))
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.file.as_ref().is_none_or(|file| file.unread == file.end)
    }

    /// Those that are lost, and would be if the process ended now.
    pub(super) fn lost(&self) -> u64 {
        self.lost + self.waiting.iter().filter(|kept| kept.place.is_none()).count() as u64
    }

    /// One cannot be sent.
    pub(super) const fn lose(&mut self) {
        self.lost += 1;
    }

    /// Takes another one. Errors: the file did not take it, for the first time since it took one; it waits in memory.
    pub(super) fn push(&mut self, request: Request) -> io::Result<()> {
        let Records { waiting, file, .. } = self;
        let mut result = Ok(());
        let mut place = None;
        if let Some(file) = file {
            match file.append(request.draft.bytes()) {
                // Those before it have to be read first.
                Ok(at) if file.unread < at || waiting.len() >= MOST_WAITING => return Ok(()),
                Ok(at) => place = Some(file.take(at)),
                Err(error) if !std::mem::replace(&mut file.is_full, true) => result = Err(error),
                Err(_) => {}
            }
        }
        if waiting.len() >= MOST_WAITING {
            self.lost += 1;
            // One that the file has would be neither sent nor removed there.
            match waiting.front() {
                Some(first) if first.place.is_none() => drop(waiting.pop_front()),
                _ => return result,
            }
        }
        self.waiting.push_back(Kept { place, request });
        result
    }

    /// The oldest, which is on its way from now on. Errors: the file cannot be read, and is given up as it is.
    pub(super) fn pop(&mut self) -> io::Result<Option<(Ticket, Request)>> {
        if self.waiting.is_empty()
            && let Some(file) = self.file.as_mut().filter(|file| file.unread < file.end)
        {
            match file.read_some() {
                Ok(read) if !read.is_empty() => self.waiting.extend(read),
                unreadable => {
                    self.file = None;
                    return Err(unreadable.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
        Ok(self.waiting.pop_front().map(|kept| (Ticket(kept.place), kept.request)))
    }

    /// Takes back those that nobody took, in their order.
    pub(super) fn put_back(&mut self, records: Vec<(Ticket, Request)>) {
        for (Ticket(place), request) in records.into_iter().rev() {
            self.waiting.push_front(Kept { place, request });
        }
    }

    /// One was taken. Errors: the file cannot be written; the record would be sent again by the next process.
    pub(super) fn taken(&mut self, Ticket(place): Ticket) -> io::Result<()> {
        match (place, &mut self.file) {
            (Some(place), Some(file)) => file.taken(place),
            _ => Ok(()),
        }
    }
}

impl RecordFile {
    fn open(path: &Path) -> io::Result<RecordFile> {
        expect_trusted(path)?;
        let options = &mut OpenOptions::new();
        let file = Regular::open_with(
            path,
            options.read(true).write(true).create(true).truncate(false).mode(0o600),
        )?;
        let file = file.into_file();
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => io::ErrorKind::WouldBlock.into(),
            TryLockError::Error(error) => error,
        })?;
        let mut this = RecordFile { file, end: BEGIN, unread: BEGIN, open: BTreeSet::new(), is_full: false };
        let mut head = [0; BEGIN as usize];
        let length = this.file.metadata()?.len();
        if length == 0 {
            this.write_first(BEGIN)?;
            return Ok(this);
        }
        let none = || io::Error::new(io::ErrorKind::InvalidData, "it is no file of records of accounting");
        this.file.read_exact_at(&mut head, 0).map_err(|_| none())?;
        let (magic, first) = head.split_at(MAGIC.len());
        let first = first.try_into().map(u64::from_be_bytes).unwrap_or_default();
        if magic != MAGIC || !(BEGIN..=length).contains(&first) {
            return Err(none());
        }
        (this.unread, this.end) = (first, first);
        while let Some((_, next)) = this.read(this.end)? {
            this.end = next;
        }
        // One that was being written when the process was killed was not sent either.
        this.file.set_len(this.end)?;
        Ok(this)
    }

    /// The record at a place, and where the next one is; `None`: it is not whole.
    fn read(&self, at: u64) -> io::Result<Option<(Request, u64)>> {
        let mut length = [0; LENGTH];
        let is_whole = |result: io::Result<()>| match result {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            result => result.map(|()| true),
        };
        if !is_whole(self.file.read_exact_at(&mut length, at))? {
            return Ok(None);
        }
        let length = u32::from_be_bytes(length) as usize;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, format!("no record is at byte {at}"));
        if length > LONGEST {
            return Err(damaged());
        }
        let mut bytes = vec![0; length];
        if !is_whole(self.file.read_exact_at(&mut bytes, at + LENGTH as u64))? {
            return Ok(None);
        }
        let packet = Packet::parse(&bytes).map_err(|_| damaged())?;
        if packet.code() != Code::ACCOUNTING_REQUEST {
            return Err(damaged());
        }
        let request = Request { draft: Draft::from(packet), password: None };
        Ok(Some((request, at + (LENGTH + length) as u64)))
    }

    /// Where it was put.
    fn append(&mut self, record: &[u8]) -> io::Result<u64> {
        let at = self.end;
        let bytes = [&(record.len() as u32).to_be_bytes()[..], record].concat();
        let end = at + bytes.len() as u64;
        if end > LONGEST_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if let Err(error) = self.file.write_all_at(&bytes, at) {
            // Nothing of it may look like a record later.
            self.file.set_len(at)?;
            return Err(error);
        }
        (self.end, self.is_full) = (end, false);
        Ok(at)
    }

    /// The record at this place, the last one, is in memory from now on.
    fn take(&mut self, at: u64) -> u64 {
        self.open.insert(at);
        self.unread = self.end;
        at
    }

    /// The next records that are not in memory.
    fn read_some(&mut self) -> io::Result<Vec<Kept>> {
        let mut read = Vec::new();
        while read.len() < 1024
            && self.unread < self.end
            && let Some((request, next)) = self.read(self.unread)?
        {
            self.open.insert(self.unread);
            read.push(Kept { place: Some(self.unread), request });
            self.unread = next;
        }
        Ok(read)
    }

    fn taken(&mut self, place: u64) -> io::Result<()> {
        let before = self.open.first().copied();
        self.open.remove(&place);
        match self.open.first() {
            None if self.unread == self.end => {
                (self.end, self.unread) = (BEGIN, BEGIN);
                self.write_first(BEGIN)?;
                self.file.set_len(BEGIN)
            }
            first if first.copied() != before => self.write_first(first.copied().unwrap_or(self.unread)),
            _ => Ok(()),
        }
    }

    fn write_first(&self, first: u64) -> io::Result<()> {
        self.file.write_all_at(&[&MAGIC[..], &first.to_be_bytes()].concat(), 0)
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), format!("{path}: another process has it")),
        io::ErrorKind::NotFound => {
            io::Error::new(error.kind(), format!("{path}: its folder has to be there (mkdir -p)"))
        }
        kind => io::Error::new(kind, format!("{path}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(number: u32) -> Request {
        let mut draft = Draft::new(Code::ACCOUNTING_REQUEST);
        draft.add_number(44, number).expect("room");
        Request { draft, password: None }
    }

    fn number(request: &Request) -> u32 {
        let packet = Packet::parse(request.draft.bytes()).expect("a packet");
        let value = packet.values(44).next().expect("a number");
        u32::from_be_bytes(value.try_into().expect("four bytes"))
    }

    fn path(folder: &tempfile::TempDir) -> PathBuf {
        folder.path().join("records")
    }

    fn opened(folder: &tempfile::TempDir) -> Records {
        Records::open(Some(path(folder)), false).expect("opened")
    }

    fn length(folder: &tempfile::TempDir) -> u64 {
        std::fs::metadata(path(folder)).expect("a file").len()
    }

    /// All that wait, none of them taken.
    fn drained(records: &mut Records) -> Vec<(Ticket, u32)> {
        std::iter::from_fn(|| records.pop().expect("readable"))
            .map(|(ticket, request)| (ticket, number(&request)))
            .collect()
    }

    fn numbers(records: &mut Records) -> Vec<u32> {
        drained(records).into_iter().map(|(_, number)| number).collect()
    }

    #[test]
    fn what_was_not_taken_is_there_for_the_next_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = opened(&folder);
        (0..5).for_each(|number| first.push(request(number)).expect("written"));
        let sent = drained(&mut first);
        // The second is still on its way: what comes after it is sent again.
        for (ticket, number) in &sent {
            if *number != 1 {
                first.taken(*ticket).expect("written");
            }
        }
        first.push(request(5)).expect("written");
        assert_eq!(first.lost(), 0);
        drop(first);
        let mut second = opened(&folder);
        assert_eq!(numbers(&mut second), [1, 2, 3, 4, 5]);
        drop(second);
        let mut third = opened(&folder);
        for (ticket, _) in drained(&mut third) {
            third.taken(ticket).expect("written");
        }
        assert!(third.is_empty());
        assert_eq!(length(&folder), BEGIN, "all are taken");
        third.push(request(6)).expect("written");
        assert_eq!(numbers(&mut third), [6]);
    }

    #[test]
    fn what_memory_has_no_room_for_waits_in_the_file_in_its_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let most = MOST_WAITING as u32 + 3000;
        let mut records = opened(&folder);
        (0..most).for_each(|number| records.push(request(number)).expect("written"));
        assert_eq!(records.waiting.len(), MOST_WAITING);
        let (ticket, first) = records.pop().expect("readable").expect("one");
        // While some are in the file alone the next one is, too.
        records.push(request(most)).expect("written");
        records.put_back(vec![(ticket, first)]);
        assert!(numbers(&mut records).into_iter().eq(0..=most));
        assert!(records.is_empty());
        // Without a file the oldest are lost.
        let mut memory = Records::default();
        (0..most).for_each(|number| memory.push(request(number)).expect("memory"));
        assert_eq!((memory.lost(), numbers(&mut memory)[0]), (3000 + MOST_WAITING as u64, 3000));
    }

    #[test]
    fn one_process_has_the_file_and_the_next_one_adds_what_it_has() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut first = opened(&folder);
        first.push(request(1)).expect("written");
        let error = Records::open(Some(path(&folder)), false).expect_err("locked").to_string();
        assert!(error.ends_with("another process has it"), "{error}");
        let mut second = Records::open(Some(path(&folder)), true).expect("later");
        second.push(request(2)).expect("memory");
        second.try_file().expect("not yet");
        assert!(second.awaits_file());
        drop(first);
        second.try_file().expect("now");
        assert!(!second.awaits_file());
        assert_eq!((second.lost(), numbers(&mut second)), (0, vec![1, 2]));
    }

    #[test]
    fn a_record_cut_off_is_none_and_another_file_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = opened(&folder);
        (0..2).for_each(|number| records.push(request(number)).expect("written"));
        drop(records);
        let whole = length(&folder);
        let file = || OpenOptions::new().write(true).open(path(&folder)).expect("a file");
        for cut in [1, 20, 28] {
            file().set_len(whole - cut).expect("cut");
            assert_eq!(numbers(&mut opened(&folder)), [0], "{cut}");
            let mut again = opened(&folder);
            again.push(request(1)).expect("written");
        }
        file().write_all_at(&[0xff; 4], BEGIN).expect("written");
        let error = Records::open(Some(path(&folder)), false).expect_err("damaged").to_string();
        assert!(error.ends_with(&format!("no record is at byte {BEGIN}")), "{error}");
        file().write_all_at(b"#", 0).expect("written");
        let error = Records::open(Some(path(&folder)), false).expect_err("another").to_string();
        assert!(error.ends_with("it is no file of records of accounting"), "{error}");
    }

    #[test]
    fn a_file_that_somebody_cut_is_given_up_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = opened(&folder);
        records.push(request(0)).expect("written");
        drop(records);
        let mut records = opened(&folder);
        OpenOptions::new().write(true).open(path(&folder)).expect("a file").set_len(BEGIN).expect("cut");
        assert!(!records.is_empty());
        assert!(records.pop().is_err());
        assert!(records.is_empty() && records.pop().expect("memory").is_none());
        records.push(request(1)).expect("memory");
        assert_eq!(numbers(&mut records), [1]);
    }

    /// One that is in the file is sent from memory, and removed there when it was taken: it does not give way to one that is not.
    #[test]
    fn what_the_file_has_stays_when_memory_is_full_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = opened(&folder);
        records.push(request(0)).expect("room");
        let full = File::options().read(true).write(true).open("/dev/full").expect("a full device");
        let kept = std::mem::replace(&mut records.file.as_mut().expect("a file").file, full);
        for number in 1..=MOST_WAITING as u32 {
            let _ = records.push(request(number));
        }
        records.file.as_mut().expect("a file").file = kept;
        assert_eq!((records.lost, records.waiting.len()), (1, MOST_WAITING));
        let (ticket, first) = records.pop().expect("readable").expect("one");
        assert_eq!(number(&first), 0);
        records.taken(ticket).expect("written");
        assert_eq!(length(&folder), BEGIN);
    }

    #[test]
    fn what_a_full_disk_does_not_take_waits_in_memory() {
        let full = File::options().read(true).write(true).open("/dev/full").expect("a full device");
        let (end, open) = (BEGIN, BTreeSet::new());
        let file = RecordFile { file: full, end, unread: end, open, is_full: false };
        let mut records = Records { file: Some(file), ..Records::default() };
        // `/dev/full` cannot be cut either, which is an error as well.
        assert!(records.push(request(1)).is_err());
        assert!(records.push(request(2)).is_ok(), "said once");
        assert_eq!((records.lost(), records.waiting.len()), (2, 2));
        assert_eq!(numbers(&mut records), [1, 2]);
    }
}

//! What `rxlane pppoe serve` prints and logs while it runs.

use super::accounting::Accounts;
use super::{POOR, fields, prose};
use crate::background;
use crate::output::Output;
use concentrator::Event;
use format::printable;
use service::daemon::{Leaving, Ready};
use service::journald::Journald;
use service::lines::LineWriter;
use service::log::Log;
use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

/// Says what happens, and has accounts written. A terminal that is held up must not hold up thousands of sessions.
pub struct Speaker {
    voice: Voice,
    accounts: Option<Accounts>,
    /// The first notices of a process that goes to the background, until it is there.
    early: RefCell<Option<Vec<String>>>,
    /// Where the service manager has standard output go there: entries with fields, in place of lines.
    journal: Option<Journald>,
}

/// Remarks that are said again in the background, at most: fewer than may wait to be written.
const EARLY: usize = 50;

impl Speaker {
    pub fn new(
        mark: String,
        accounts: Option<(&Path, Arc<AtomicU64>)>,
        early: Option<Vec<String>>,
    ) -> anyhow::Result<Speaker> {
        let voice = Voice(Arc::new(Mutex::new((Some(background::lines("the sessions")?), mark))));
        let says = |(path, lost)| {
            let voice = voice.clone();
            Accounts::open(path, lost, Box::new(move |text| voice.note(&text)))
        };
        let accounts = accounts.map(says).transpose()?;
        // In the background it has a log of its own.
        let journal = Journald::of_standard_output().filter(|_| early.is_none());
        Ok(Speaker { voice, accounts, early: RefCell::new(early), journal })
    }

    pub fn hear(&self, event: &Event) {
        if let Event::Account(line) = event {
            let lost = self.accounts.as_ref().and_then(|accounts| accounts.add(line));
            lost.into_iter().for_each(|text| self.voice.note(&text));
        }
        let Some(text) = prose::sentence(event) else { return };
        if let Some(journal) = &self.journal
            && journal.send(&printable(&text), fields::priority(event), &fields::fields(event)).is_ok()
        {
            return;
        }
        self.note(text);
    }

    pub fn note(&self, text: String) {
        self.voice.note(&text);
        if let Some(early) = self.early.borrow_mut().as_mut().filter(|early| early.len() < EARLY) {
            early.push(text);
        }
    }

    pub fn say(&self, line: String) {
        self.voice.say(line);
    }

    /// Says the first notices once more, where the daemon speaks.
    pub fn repeat_early(&self) {
        self.early.take().unwrap_or_default().into_iter().for_each(|said| self.note(said));
    }

    /// From now on it speaks where the daemon does.
    pub fn leave(&self, leaving: Leaving, out: &mut Output, log: &mut Option<Log>) -> anyhow::Result<()> {
        self.voice.with(|lines, mark| {
            let Some(lines) = lines else { return Ok(()) };
            background::leave(leaving, Ready::Up, lines, out, log)?;
            *mark = out.styled(POOR, "note");
            Ok(())
        })
    }

    /// Waits until all is written, in bounded time; records of accounting that nobody has.
    pub fn finish(&mut self) -> u64 {
        let (said, lost) = self.accounts.take().map(Accounts::finish).unwrap_or_default();
        said.iter().for_each(|text| self.voice.note(text));
        self.voice.with(|lines, _| lines.take().map(LineWriter::finish));
        lost
    }
}

/// What sentences are said with, of several threads: until its end, and what stands before them.
#[derive(Clone)]
struct Voice(Arc<Mutex<(Option<LineWriter>, String)>>);

impl Voice {
    fn with<R>(&self, with: impl FnOnce(&mut Option<LineWriter>, &mut String) -> R) -> R {
        let mut voice = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (lines, mark) = &mut *voice;
        with(lines, mark)
    }

    fn say(&self, line: String) {
        self.with(|lines, _| lines.iter().for_each(|lines| lines.write(line.clone())));
    }

    fn note(&self, text: &str) {
        let text = printable(text);
        self.with(|lines, mark| lines.iter().for_each(|lines| lines.write(format!("{mark}: {text}\n"))));
    }
}

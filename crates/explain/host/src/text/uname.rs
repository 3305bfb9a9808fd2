//! `uname` in its usual forms, and `/proc/uptime`.

use super::{Line, Outcome, Section, Tool};
use crate::{Architecture, Fact, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "uname",
    command: |command| command.program == "uname",
    heading: is_whole,
    open: |context| Box::new(Name { option: context.command.as_deref().and_then(option) }),
};

pub(super) static UPTIME: Tool = Tool {
    name: "/proc/uptime",
    command: |command| command.reads("/proc/uptime"),
    heading: |_| false,
    open: |_| Box::new(uptime),
};

/// Which words `uname` prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `-a`: system, host, release and more.
    All,
    /// `-sr`.
    SystemRelease,
    /// `-r`.
    Release,
    /// `-s`, or nothing.
    System,
    Other,
}

struct Name {
    option: Option<Form>,
}

impl Section for Name {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        let form = if is_whole(text) { Form::All } else { self.option.unwrap_or(Form::Other) };
        // `uname -m` prints the word alone, `-a` among the last ones.
        let named = text.split_whitespace().rev().take(3).find_map(Architecture::named);
        if named.is_some() && (form == Form::All || self.option == Some(Form::Other)) {
            snapshot.note_architecture(named, &line.quote());
        }
        let mut words = text.split_whitespace();
        let (name, release) = match form {
            Form::All => (words.next(), words.nth(1)),
            Form::SystemRelease => (words.next(), words.next()),
            Form::Release => (None, words.next()),
            Form::System => (words.next(), None),
            Form::Other if named.is_some() && self.option.take().is_some() => return Outcome::Taken,
            Form::Other => return Outcome::Over,
        };
        let system = name.map(System::named);
        if system == Some(None) {
            return Outcome::Over;
        }
        if let Some(system) = system.flatten() {
            snapshot.system = Some(Fact::new(system, line.quote()));
        }
        if let Some(release) = release.filter(|release| release.starts_with(|c: char| c.is_ascii_digit())) {
            snapshot.kernel = Some(Fact::new(release.to_owned(), line.quote()));
        }
        // One line is all there is.
        self.option = None;
        Outcome::Taken
    }
}

fn option(command: &str) -> Option<Form> {
    let mut words = command.split_whitespace().skip_while(|word| !word.ends_with("uname")).skip(1);
    Some(match words.next() {
        None | Some("-s") => Form::System,
        Some("-a") => Form::All,
        Some("-sr" | "-rs") => Form::SystemRelease,
        Some("-r") => Form::Release,
        Some(_) => Form::Other,
    })
}

/// A line of `uname -a`: `Linux HOST 6.1.0 #1 SMP …`, `FreeBSD HOST 14.1-RELEASE FreeBSD 14.1-RELEASE …`,
/// `NetBSD HOST 10.0 NetBSD 10.0 (GENERIC) …`.
fn is_whole(text: &str) -> bool {
    let Some(system) = ["Linux ", "FreeBSD ", "NetBSD "].into_iter().find(|name| text.starts_with(name))
    else {
        return false;
    };
    let mut words = text.split_whitespace().skip(2);
    let is_release = words.next().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let next = words.next().unwrap_or_default();
    is_release && (next.starts_with('#') || next == system.trim())
}

fn uptime(line: &Line<'_>, _snapshot: &mut Snapshot) -> Outcome {
    let seconds = |word: &str| word.parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    let mut words = line.trimmed().split_whitespace();
    let (Some(uptime), Some(Some(_idle)), None) =
        (words.next().and_then(seconds), words.next().map(seconds), words.next())
    else {
        return Outcome::Over;
    };
    let mut kept = line.kept();
    let first = kept.uptimes.map_or(uptime, |(first, _)| first);
    kept.uptimes = Some((first, uptime));
    Outcome::Taken
}

//! `rxlane fleet import`: bundles are judged on all CPUs, and written in the order of their names.

use super::ImportArguments;
use super::tables::Tables;
use crate::doctor_command::source;
use crate::output::{CommandResult, Outcome, Output, complain};
use crate::progress::Progress;
use anyhow::{Context, bail};
use doctor::report::Verdict;
use doctor::{Case, RULES, Report};
use format::{Table, plural, printable, thousands};
use host::{Snapshot, Unread};
use kernel::file::Regular;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Bundles that are judged before their rows are written: what is in memory at once does not grow with the fleet.
const TOGETHER: usize = 256;
/// Bundles that could not be read, and findings, which are printed one by one.
const PRINTED: usize = 10;

/// A bundle, judged.
pub struct Judged {
    pub machine: String,
    pub answer: Result<(Snapshot, Report), String>,
}

/// What the tables hold, as `--json` prints it.
#[derive(Default, Serialize)]
struct Summary {
    bundles: u64,
    limited: u64,
    healthy: u64,
    unknown: u64,
    /// Machines by finding, each machine once.
    findings: BTreeMap<&'static str, u64>,
    /// Bundles that could not be read, and why.
    unread: Vec<Unread>,
    /// Rows by file.
    tables: BTreeMap<String, u64>,
}

pub fn run(arguments: &ImportArguments, out: &mut Output) -> CommandResult {
    let bundles = bundles(&arguments.bundles)?;
    make_folder(&arguments.parquet, &arguments.bundles)?;
    let mut tables = Tables::create(&arguments.parquet)?;
    let mut summary = Summary::default();
    let mut progress = Progress::new();
    for some in bundles.chunks(TOGETHER) {
        for judged in judge(some) {
            tables.add(&judged)?;
            summary.add(judged);
        }
        let in_words = |bundles| plural(bundles, "bundle");
        progress.show_amount(summary.bundles, Some(bundles.len() as u64), in_words);
    }
    drop(progress);
    summary.tables = tables.finish()?;
    if arguments.json {
        out.json_of("rxlane.fleet/1", &summary)?;
    } else {
        summary.print(out)?;
    }
    Ok(if summary.unread.is_empty() { Outcome::Success } else { Outcome::Negative })
}

/// The files of the folder, by name; what begins with a dot is none of them.
fn bundles(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read the folder of bundles {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        // A link that leads nowhere, or a FIFO, is one that cannot be read.
        if !is_hidden && fs::metadata(entry.path()).map_or(true, |file| !file.is_dir()) {
            files.push(entry.path());
        }
    }
    if files.is_empty() {
        bail!(
            "{} has no bundles; `rxlane collect --script` prints the collector that writes them",
            folder.display()
        );
    }
    files.sort();
    let mut machines = BTreeSet::new();
    if let Some(second) = files.iter().map(|file| machine(file)).find(|name| !machines.insert(name.clone())) {
        bail!(
            "two files of {} are of the machine {second}: with .txt and without; rename one",
            folder.display()
        );
    }
    Ok(files)
}

/// The machine whose bundle a file is.
fn machine(bundle: &Path) -> String {
    let name = bundle.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".txt").unwrap_or(&name).to_owned()
}

/// Makes the folder of the tables.
fn make_folder(tables: &Path, bundles: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(tables)
        .with_context(|| format!("cannot make the folder of --parquet {}", tables.display()))?;
    if is_same(tables, bundles) {
        bail!("--parquet {} is the folder of bundles; name another one", tables.display());
    }
    Ok(())
}

fn is_same(one: &Path, other: &Path) -> bool {
    fs::canonicalize(one).is_ok_and(|one| fs::canonicalize(other).is_ok_and(|other| one == other))
}

/// Judges these bundles on all CPUs; the answers are in their order.
fn judge(bundles: &[PathBuf]) -> Vec<Judged> {
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let mut judged = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(bundle) = bundles.get(at) else { return judged };
            judged.push((at, judge_one(bundle)));
        }
    };
    let mut judged: Vec<(usize, Judged)> = thread::scope(|scope| {
        let workers: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut judged = work();
        for worker in workers {
            judged.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        judged
    });
    judged.sort_by_key(|(at, _)| *at);
    judged.into_iter().map(|(_, judged)| judged).collect()
}

fn judge_one(bundle: &Path) -> Judged {
    // Opening a FIFO waits for who writes to it, and reading the kernel's log for what it says next.
    let opened = Regular::open(bundle).with_context(|| format!("cannot read {}", bundle.display()));
    let text = opened.and_then(|opened| source::text(bundle, opened.into_file()));
    let answer = text.and_then(|snapshot| {
        let report = doctor::diagnose(&Case::new(&snapshot, None, None)?.without_model());
        Ok((snapshot, report))
    });
    Judged { machine: machine(bundle), answer: answer.map_err(|error| format!("{error:#}")) }
}

impl Summary {
    fn add(&mut self, judged: Judged) {
        self.bundles += 1;
        let report = match judged.answer {
            Ok((_, report)) => report,
            Err(why) => return self.unread.push(Unread { what: judged.machine, why }),
        };
        match report.verdict {
            Verdict::Limited => self.limited += 1,
            Verdict::Healthy => self.healthy += 1,
            Verdict::Unknown => self.unknown += 1,
        }
        let ids: BTreeSet<&'static str> = report.findings.iter().map(|finding| finding.id).collect();
        for id in ids {
            *self.findings.entry(id).or_default() += 1;
        }
    }

    fn print(&self, out: &mut Output) -> io::Result<()> {
        let unread = match self.unread.len() as u64 {
            0 => String::new(),
            unread => format!(", {} could not be read", thousands(unread)),
        };
        let [limited, healthy, unknown] = [self.limited, self.healthy, self.unknown].map(thousands);
        out.paragraph(
            "",
            &format!(
                "{}: {limited} limited, {healthy} healthy, {unknown} unknown{unread}.",
                plural(self.bundles, "machine")
            ),
        )?;
        let mut findings: Vec<(&str, u64)> =
            self.findings.iter().map(|(id, machines)| (*id, *machines)).collect();
        findings.sort_by_key(|(_, machines)| std::cmp::Reverse(*machines));
        if !findings.is_empty() {
            let title = |id: &str| RULES.iter().find(|rule| rule.id == id).map_or("", |rule| rule.title());
            let rows = findings
                .iter()
                .take(PRINTED)
                .map(|(id, machines)| [(*id).to_owned(), thousands(*machines), title(id).to_owned()]);
            writeln!(out)?;
            out.table(&Table::new(1, ["finding", "machines"]).rows(rows))?;
            out.more(findings.len(), PRINTED)?;
        }
        writeln!(out)?;
        let rows = self.tables.iter().map(|(file, rows)| [printable(file), thousands(*rows)]);
        out.table(&Table::new(1, ["table", "rows"]).rows(rows))?;
        out.flush()?;
        for unread in self.unread.iter().take(PRINTED) {
            complain(&format!("{}: {}", unread.what, unread.why));
        }
        if self.unread.len() > PRINTED {
            complain(&format!(
                "{} more could not be read; --json names all",
                thousands((self.unread.len() - PRINTED) as u64)
            ));
        }
        Ok(())
    }
}

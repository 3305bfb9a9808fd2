//! `rxlane bench compare`.

use super::prose;
use super::scenario::Scale;
use crate::output::{BOLD, CommandResult, Outcome, Output};
use crate::steer_command::item;
use anyhow::{Context, anyhow, bail};
use bench::scenario::compare::verdicts::{Change, Judged, VerdictRow};
use bench::scenario::compare::{self, Compared, Conclusion, FactRow, Row};
use bench::scenario::report::{Metric, Report, SCHEMA};
use bench::scenario::soundness;
use bench::scenario::spread::Spread;
use bench::scenario::verdict::{Outcome as Word, TIE};
use format::{Table, plural, printable};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a file: those of five rounds have less than a fiftieth of them.
const MOST: u64 = 4 << 20;

/// Before what stands below something.
const INDENT: &str = "  ";

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane bench compare before.json after.json
  rxlane bench compare before.json after.json --tie 1.1 --json
  sudo rxlane bench vlan --json | rxlane bench compare before.json -

A figure has changed when those of both files do not overlap, they are enough for that to mean something (four rounds and four, or \
three and five), and the medians are at least --tie times apart. The same is asked of the ratios behind each verdict: near the border of \
a tie it may have another word each time, which is noise.
Exit codes: 0 nothing changed outside the noise, among the figures of which something can be said; 1 something did; 2 wrong usage, a file \
that cannot be read or compared, or nothing can be said of any figure, mostly for want of rounds.")]
pub struct CompareArguments {
    /// Result of a scenario (--json); `-` is standard input
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// Result of the same scenario; `-` is standard input
    #[arg(value_name = "AFTER")]
    after: PathBuf,

    /// Medians less than so many times apart have not changed
    #[arg(long, value_name = "TIMES", default_value_t = TIE, value_parser = tie)]
    tie: f64,

    /// Print figures within the noise, too
    #[arg(short, long)]
    verbose: bool,

    /// Print JSON (schema rxlane.bench-compare/1)
    #[arg(long)]
    json: bool,
}

fn tie(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok().filter(|times| (1.0..=1000.0).contains(times));
    times.ok_or_else(|| format!("`{text}` is no number from 1 to 1000, such as 1.3"))
}

impl CompareArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if [&self.before, &self.after].iter().all(|path| is_standard_input(path)) {
            bail!("standard input is one result; name a file for the other");
        }
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let mut compared = compare::compare(&before, &after, self.tie)
            .map_err(|why| anyhow!("{} and {}: {why}", named(&self.before), named(&self.after)))?;
        compared.warnings = prose::compare_warnings(&compared, &before, &after);
        let printed =
            if self.json { out.json(&compared) } else { self.print(out, &compared, &after, &before) };
        // Whoever reads no further still learns it from the exit code.
        printed.and_then(|()| out.flush()).or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        })?;
        match compared.conclusion {
            Conclusion::Changed => Ok(Outcome::Negative),
            Conclusion::Unchanged => Ok(Outcome::Success),
            Conclusion::Unknown => {
                bail!(
                    "nothing can be said of any figure of {} and {}",
                    named(&self.before),
                    named(&self.after)
                )
            }
        }
    }

    fn print(
        &self,
        out: &mut Output,
        compared: &Compared<'_>,
        after: &Report,
        before: &Report,
    ) -> io::Result<()> {
        out.heading(&format!("{}: what changed", printable(&compared.scenario)))?;
        item(out, "before", &printable(&format!("{}, {}", named(&self.before), before.began)))?;
        item(out, "after", &printable(&format!("{}, {}", named(&self.after), after.began)))?;
        compared.warnings.iter().try_for_each(|warning| item(out, "warning", &printable(warning)))?;
        let known = before.metrics.iter().chain(&after.metrics);
        let known: BTreeMap<&str, &Metric> = known.map(|metric| (metric.name.as_str(), metric)).collect();
        for rows in compared.rows.chunk_by(|one, next| one.metric == next.metric) {
            let Some(metric) = rows.first().and_then(|row| known.get(row.metric)) else { continue };
            let medians = rows.iter().flat_map(|row| [row.before, row.after]).flatten();
            let scale = Scale::of(&metric.unit, medians.map(|spread| spread.median));
            let is_printed = |row: &&Row<'_>| self.verbose || row.outcome != compare::Outcome::WithinNoise;
            let cells: Vec<Vec<String>> =
                rows.iter().filter(is_printed).map(|row| cells(row, &scale)).collect();
            if cells.is_empty() {
                continue;
            }
            out.heading(&printable(&format!("{}, {}", metric.title, scale.unit)))?;
            table(out, &cells)?;
        }
        if compared.facts.iter().any(|fact| fact.before != fact.after) {
            out.heading("Answers")?;
        }
        for FactRow { question, before, after } in &compared.facts {
            match (before, after) {
                (Some(before), Some(after)) if before != after => {
                    item(out, "changed", &printable(&format!("{question}: {after}, was {before}")))?;
                }
                (Some(_), None) => item(out, "only before", &printable(question))?,
                (None, Some(_)) => item(out, "only after", &printable(question))?,
                _ => {}
            }
        }
        let facts = compared.facts.iter().filter(|fact| fact.is_changed()).count();
        verdicts(out, compared)?;
        conclusion(out, compared, &known, facts)
    }
}

/// The ratio that is printed. Where some figures were none, the median is that of chance, and what it is divided by, too.
fn ratio(row: &Row<'_>) -> Option<f64> {
    let has_none = |side: Option<Spread>| side.is_some_and(|side| side.least <= 0.0);
    row.ratio.filter(|_| !has_none(row.before) && !has_none(row.after))
}

fn cells(row: &Row<'_>, scale: &Scale) -> Vec<String> {
    let ratio = ratio(row).map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
    vec![
        printable(&row.cell),
        prose::spread(scale, row.before),
        prose::spread(scale, row.after),
        ratio,
        outcome(row).to_owned(),
    ]
}

const HEADS: [&str; 5] = ["cell", "before", "after", "ratio", ""];

/// Rows of [`HEADS`]. Where there is no room for them, a cell stands above its figures; where there is none for those either, they are a
/// sentence.
fn table(out: &mut Output, rows: &[Vec<String>]) -> io::Result<()> {
    let room = out.width();
    let fits =
        |lines: &[String], indent: usize| lines.iter().all(|line| line.chars().count() + indent <= room);
    let whole = Table::new(1, HEADS).rows(rows.iter().cloned());
    if fits(&whole.lines(usize::MAX), INDENT.len()) {
        return out.table(&whole);
    }
    let [_, heads @ ..] = HEADS;
    let figures = Table::new(0, heads).rows(rows.iter().map(|row| row.iter().skip(1).cloned()));
    let figures = figures.lines(usize::MAX);
    let is_table = fits(&figures, INDENT.len());
    if let Some(head) = figures.first().filter(|_| is_table) {
        writeln!(out, "{}", out.styled(BOLD, format!("{INDENT}{head}")))?;
    }
    for (row, figures) in rows.iter().zip(figures.iter().skip(1)) {
        let [cell, before, after, ratio, outcome] = row.as_slice() else { continue };
        out.paragraph(INDENT, cell)?;
        if is_table {
            writeln!(out, "{INDENT}{figures}")?;
            continue;
        }
        let sentence = format!("before {before}, after {after}, ratio {ratio}: {outcome}");
        out.paragraph(&INDENT.repeat(2), &sentence)?;
    }
    Ok(())
}

fn outcome(row: &Row<'_>) -> &'static str {
    use compare::Outcome::{Less, More, OnlyAfter, OnlyBefore, TooFew, WithinNoise};
    match (row.outcome, row.better) {
        (WithinNoise, _) => "within the noise",
        (TooFew, _) => "unknown, too few rounds",
        (OnlyBefore, _) => "only before",
        (OnlyAfter, _) => "only after",
        (More, Some(true)) => "MORE, better",
        (More, Some(false)) => "MORE, worse",
        (More, None) => "MORE",
        (Less, Some(true)) => "LESS, better",
        (Less, Some(false)) => "LESS, worse",
        (Less, None) => "LESS",
    }
}

fn verdicts(out: &mut Output, compared: &Compared<'_>) -> io::Result<()> {
    if compared.verdicts.is_empty() {
        return Ok(());
    }
    out.heading("Verdicts")?;
    for row in compared.verdicts.iter().filter(|row| row.change != Change::None) {
        out.paragraph(INDENT, &printable(&verdict(row)))?;
    }
    let count = |is: &dyn Fn(&VerdictRow<'_>) -> bool| compared.verdicts.iter().filter(|row| is(row)).count();
    let alone = count(&|row| matches!(row.change, Change::OnlyBefore | Change::OnlyAfter));
    let both = compared.verdicts.len() - alone;
    let mut text = format!(
        "Of {} {} the same word",
        plural(both as u64, "verdict"),
        number(count(&|row| row.has_same_word()), "has", "have")
    );
    for (change, what) in [
        (Change::WithinNoise, "another one, within the noise"),
        (Change::TooFew, "another one, for want of rounds"),
        (Change::OutsideNoise, "another ratio, outside the noise"),
    ] {
        let many = count(&|row| row.change == change);
        if many > 0 {
            text.push_str(&format!("; {} {what}", number(many, "has", "have")));
        }
    }
    text.push('.');
    if alone > 0 {
        text.push_str(&format!(" {} in one of the two alone.", number(alone, "stands", "stand")));
    }
    out.paragraph("", &text)
}

/// How many, and what it or they do.
fn number(many: usize, one: &str, several: &str) -> String {
    format!("{many} {}", if many == 1 { one } else { several })
}

fn verdict(row: &VerdictRow<'_>) -> String {
    let [title, this, other] = &row.words;
    let judged = |judged: Option<Judged>| {
        let Some(Judged { outcome, ratio, endless }) = judged else { return "not there".to_owned() };
        let word = match outcome {
            Word::More => "more",
            Word::Less => "less",
            Word::Tie => "a tie",
            Word::Unclear => "unclear",
            Word::Unknown => "unknown",
        };
        let mut text = word.to_owned();
        if let Some(ratio) = ratio {
            text.push_str(&format!(", {}", prose::times(&ratio)));
        }
        if endless > 0 {
            text.push_str(&format!(", where the other has none in {}", plural(endless as u64, "round")));
        }
        text
    };
    let change = match row.change {
        Change::None => "no change",
        Change::WithinNoise => "within the noise",
        Change::OutsideNoise => "CHANGED",
        Change::TooFew => "unknown, too few rounds",
        Change::OnlyBefore => "only before",
        Change::OnlyAfter => "only after",
    };
    format!(
        "{title}: {this} compared with {other} was {}, is {}: {change}",
        judged(row.before),
        judged(row.after)
    )
}

fn conclusion(
    out: &mut Output,
    compared: &Compared<'_>,
    titles: &BTreeMap<&str, &Metric>,
    facts: usize,
) -> io::Result<()> {
    use compare::Outcome::{Less, More, OnlyAfter, OnlyBefore, TooFew, WithinNoise};
    let count = |is: &dyn Fn(&Row<'_>) -> bool| compared.rows.iter().filter(|row| is(row)).count();
    let changed: Vec<&Row<'_>> =
        compared.rows.iter().filter(|row| matches!(row.outcome, More | Less)).collect();
    let (within, few) = (count(&|row| row.outcome == WithinNoise), count(&|row| row.outcome == TooFew));
    let alone = count(&|row| matches!(row.outcome, OnlyBefore | OnlyAfter));
    if !changed.is_empty() {
        out.heading("Changed outside the noise")?;
        for row in &changed {
            let title = titles.get(row.metric).map_or(row.metric, |metric| &metric.title);
            let ratio = ratio(row).map(|ratio| format!(" ({ratio:.2} times)")).unwrap_or_default();
            let line = printable(&format!("{title}, {}: {}{ratio}", row.cell, outcome(row)));
            out.paragraph(INDENT, &line)?;
        }
    }
    let mut text = match compared.conclusion {
        Conclusion::Unknown => "Unknown whether anything changed.".to_owned(),
        _ => format!(
            "Of {} figures {} changed outside the noise, {within} did not.",
            compared.rows.len(),
            changed.len()
        ),
    };
    let ratios = compared.verdicts.iter().filter(|row| row.change == Change::OutsideNoise).count();
    if ratios > 0 {
        text.push_str(&format!(" Ratios of {} changed outside the noise.", plural(ratios as u64, "verdict")));
    }
    if facts > 0 {
        text.push_str(&format!(" So did {}.", plural(facts as u64, "answer")));
    }
    if few > 0 {
        text.push_str(&format!(
            " Of {few} figures nothing can be said, since that takes four rounds and four, or three and five (--rounds 5)."
        ));
    }
    if alone > 0 {
        text.push_str(&format!(" {alone} figures stand in one of the two alone."));
    }
    writeln!(out)?;
    out.paragraph("", &text)
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

fn named(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
}

/// The schema of JSON, and nothing else of it, however much there is.
#[derive(Deserialize)]
struct SchemaOf {
    schema: Option<TextOrOther>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrOther {
    Text(String),
    Other(IgnoredAny),
}

fn read(path: &Path) -> anyhow::Result<Report> {
    let name = named(path);
    let mut text = Vec::new();
    let read = if is_standard_input(path) {
        io::stdin().lock().take(MOST + 1).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut text))
    };
    read.with_context(|| format!("cannot read {name}"))?;
    if text.len() as u64 > MOST {
        bail!(
            "{name} is longer than {} MiB, and results of a scenario are not; one of fewer rounds (--rounds) is shorter",
            MOST >> 20
        );
    }
    let none = |error: &dyn Display| {
        anyhow!(
            "{name} is no JSON ({error}); rxlane bench SCENARIO --json (vlan, steer, pps, pppoe, forward) writes some"
        )
    };
    let text = String::from_utf8(text).map_err(|error| none(&error))?;
    // What is not of the schema is not read into memory.
    let schema = match serde_json::from_str::<SchemaOf>(&text) {
        Ok(SchemaOf { schema }) => schema,
        Err(error) if error.is_data() => None,
        Err(error) => return Err(none(&error)),
    };
    match schema {
        Some(TextOrOther::Text(schema)) if schema == SCHEMA => {}
        Some(TextOrOther::Text(other)) => {
            bail!("{name} is of schema {}; {SCHEMA} can be compared", printable(&other))
        }
        _ => bail!("{name} names no schema; {SCHEMA} can be compared"),
    }
    let report: Report =
        serde_json::from_str(&text).map_err(|error| anyhow!("{name} is no whole {SCHEMA}: {error}"))?;
    soundness::check(&report)
        .map_err(|why| anyhow!("{name} is no result of a scenario: {}", printable(&why)))?;
    Ok(report)
}

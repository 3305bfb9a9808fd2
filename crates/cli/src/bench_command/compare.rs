//! `rxlane bench compare`.

use super::scenario::Scale;
use crate::explain_command::text::{heading, printable, wrapped};
use crate::model_command::table;
use crate::output::{CommandResult, Outcome, Output};
use crate::steer_command::item;
use anyhow::{Context, anyhow, bail};
use bench::scenario::compare::{self, Compared, Conclusion, FactRow, Row};
use bench::scenario::report::{Metric, Report, SCHEMA};
use bench::scenario::soundness;
use bench::scenario::verdict::TIE;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Octets of a file; a scenario with a thousand rounds has less than half of them.
const MOST: u64 = 16 << 20;
/// Cells of a result, and answers: each is looked up among all.
const MOST_CELLS: usize = 10_000;

/// Arguments of `rxlane bench compare`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane bench compare before.json after.json
  rxlane bench compare before.json after.json --tie 1.1 --json
  sudo rxlane bench vlan --json | rxlane bench compare before.json -

A figure has changed when those of both files do not overlap, they are enough for that to mean something (four rounds and four, or \
three and five), and the medians are at least --tie times apart.
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

    /// Print JSON (schema rxlane.bench-compare/1)
    #[arg(long)]
    json: bool,
}

fn tie(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok().filter(|times| (1.0..=1000.0).contains(times));
    times.ok_or_else(|| format!("`{text}` is no number from 1 to 1000, such as 1.3"))
}

impl CompareArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        if [&self.before, &self.after].iter().all(|path| is_standard_input(path)) {
            bail!("standard input is one result; name a file for the other");
        }
        let (before, after) = (read(&self.before)?, read(&self.after)?);
        let compared = compare::compare(&before, &after, self.tie)
            .map_err(|why| anyhow!("{} and {}: {why}", named(&self.before), named(&self.after)))?;
        if self.json {
            out.json(&compared)?;
        } else {
            self.print(out, &compared, &after, &before)?;
        }
        match compared.conclusion {
            Conclusion::Changed => Ok(Outcome::Negative),
            Conclusion::Unchanged => Ok(Outcome::Success),
            Conclusion::Unknown => {
                out.flush()?;
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
        compared: &Compared,
        after: &Report,
        before: &Report,
    ) -> io::Result<()> {
        heading(out, &format!("{}: what changed", printable(&compared.scenario)))?;
        item(out, "before", &printable(&format!("{}, {}", named(&self.before), before.began)))?;
        item(out, "after", &printable(&format!("{}, {}", named(&self.after), after.began)))?;
        compared.warnings.iter().try_for_each(|warning| item(out, "warning", &printable(warning)))?;
        let is_new = |old: &&Metric| after.metrics.iter().all(|new| new.name != old.name);
        for metric in after.metrics.iter().chain(before.metrics.iter().filter(is_new)) {
            let rows: Vec<&Row> = compared.rows.iter().filter(|row| row.metric == metric.name).collect();
            if rows.is_empty() {
                continue;
            }
            let greatest =
                rows.iter().filter_map(|row| Some(row.before.or(row.after)?.median)).fold(0.0, f64::max);
            let scale = Scale::of(&metric.unit, greatest);
            heading(out, &printable(&format!("{}, {}", metric.title, scale.unit)))?;
            let cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, &scale)).collect();
            table::print(out, 1, &["cell", "before", "after", "ratio", ""], &cells)?;
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
        conclusion(out, compared, compared.facts.iter().filter(|fact| fact.is_changed()).count())
    }
}

fn cells(row: &Row, scale: &Scale) -> Vec<String> {
    let ratio = row.ratio.map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"));
    vec![
        printable(&row.cell),
        scale.spread(row.before),
        scale.spread(row.after),
        ratio,
        outcome(row).to_owned(),
    ]
}

fn outcome(row: &Row) -> &'static str {
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

fn conclusion(out: &mut Output, compared: &Compared, facts: usize) -> io::Result<()> {
    use compare::Outcome::{Less, More, OnlyAfter, OnlyBefore, TooFew, WithinNoise};
    let count = |is: &dyn Fn(&Row) -> bool| compared.rows.iter().filter(|row| is(row)).count();
    let changed = count(&|row| matches!(row.outcome, More | Less));
    let (within, few) = (count(&|row| row.outcome == WithinNoise), count(&|row| row.outcome == TooFew));
    let alone = count(&|row| matches!(row.outcome, OnlyBefore | OnlyAfter));
    let mut text = match compared.conclusion {
        Conclusion::Unknown => "Unknown whether anything changed.".to_owned(),
        _ => format!(
            "Of {} figures {changed} changed outside the noise, {within} did not.",
            compared.rows.len()
        ),
    };
    if facts > 0 {
        text.push_str(&format!(" So did {facts} answers."));
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
    wrapped(&text, out.width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

fn named(path: &Path) -> String {
    if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() }
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
        bail!("{name} is longer than {} MiB: it is no result of a scenario", MOST >> 20);
    }
    let value: Value = serde_json::from_slice(&text)
        .map_err(|error| anyhow!("{name} is no JSON ({error}); rxlane bench vlan --json writes some"))?;
    match value["schema"].as_str() {
        Some(SCHEMA) => {}
        Some(other) => bail!("{name} is of schema {}; {SCHEMA} can be compared", printable(other)),
        None => bail!("{name} names no schema; {SCHEMA} can be compared"),
    }
    let report: Report =
        serde_json::from_value(value).map_err(|error| anyhow!("{name} is no whole {SCHEMA}: {error}"))?;
    if report.cells.len() > MOST_CELLS || report.facts.len() > MOST_CELLS {
        bail!("{name} has more than {MOST_CELLS} cells or answers: it is no result of a scenario");
    }
    soundness::check(&report)
        .map_err(|why| anyhow!("{name} is no result of a scenario: {}", printable(&why)))?;
    Ok(report)
}

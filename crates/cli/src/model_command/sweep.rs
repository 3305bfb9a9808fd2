//! `rxlane model sweep`.

use super::input::{ScenarioArguments, value_of};
use crate::explain_command::text::bar;
use crate::output::{CommandResult, Outcome, Output};
use anyhow::{anyhow, bail};
use format::{figure, printable};
use model::measure::measure;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use toml::Value;

/// Up to here a number that is whole is exact.
const LARGEST: f64 = 9e15;

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane model sweep router.toml --key interface.wan.ring --values 64,256,1024,4096
  rxlane model sweep router.toml --key traffic.download.arrival.pps --from 1e5 --to 2e6 --steps 12 \\
    --figure received_kpps --figure latency_p99_us
  rxlane model sweep apu4:two-senders --key costs.poll --values 10000,22820,40000")]
pub struct SweepArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,

    /// The key that changes
    #[arg(long, value_name = "KEY")]
    key: String,

    /// Its values; or a range, by --from and --to
    #[arg(long, value_name = "VALUE", value_delimiter = ',', conflicts_with_all = ["from", "to", "log"])]
    values: Vec<String>,

    /// The first value of a range
    #[arg(long, value_name = "X", requires = "to")]
    from: Option<f64>,

    /// The last value
    #[arg(long, value_name = "X", requires = "from")]
    to: Option<f64>,

    /// How many values
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    steps: u32,

    /// Equal ratios in place of equal distances
    #[arg(long)]
    log: bool,

    /// What to draw; repeatable; `list` lists what there is
    #[arg(long, value_name = "NAME", default_values = ["received_kpps", "lost_percent"])]
    figure: Vec<String>,

    /// Print JSON (schema rxlane.model-sweep/1)
    #[arg(long)]
    json: bool,
}

impl SweepArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if self.figure.iter().any(|name| name == "list") {
            return super::run::list(out);
        }
        let source = self.scenario.source()?;
        let (mut title, mut points) = (String::new(), Vec::new());
        let mut full: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for value in self.points()? {
            let scenario = source.scenario(Some(&(self.key.clone(), value.clone())))?;
            scenario.title.clone_into(&mut title);
            let (answer, problems) = source.simulate(&scenario)?;
            if let Some(problem) = problems.first() {
                bail!("{problem}");
            }
            let figures: Result<Vec<f64>, String> =
                self.figure.iter().map(|name| measure(&answer, name)).collect();
            for line in answer.full_lines() {
                full.entry(line.to_owned()).or_default().push(value.clone());
            }
            points.push((value, figures.map_err(|problem| anyhow!(problem))?));
        }
        if self.json {
            let points: Vec<_> = points
                .iter()
                .map(|(value, figures)| {
                    let figures: serde_json::Map<String, serde_json::Value> =
                        self.figure.iter().cloned().zip(figures.iter().map(|figure| json!(figure))).collect();
                    json!({"value": value, "figures": figures})
                })
                .collect();
            out.json(
                &json!({"schema": "rxlane.model-sweep/1", "title": title, "key": self.key, "points": points, "full_lines": full}),
            )?;
        } else {
            writeln!(out, "{}", printable(&title))?;
            self.draw(out, &points)?;
            for (line, values) in &full {
                let values = values.iter().map(label).collect::<Vec<_>>().join(", ");
                writeln!(out)?;
                writeln!(
                    out,
                    "The line of {} is full at {}: no more can come.",
                    printable(line),
                    printable(&values)
                )?;
            }
        }
        Ok(Outcome::Success)
    }

    fn points(&self) -> anyhow::Result<Vec<Value>> {
        let (Some(from), Some(to)) = (self.from, self.to) else {
            if self.values.is_empty() {
                bail!("which values {} has is said by --values VALUE,VALUE or by --from X --to X", self.key);
            }
            return Ok(self.values.iter().map(|value| value_of(value)).collect());
        };
        if self.log && (from <= 0.0 || to <= 0.0) {
            bail!("--log needs --from and --to above 0");
        }
        if [from, to].iter().any(|end| end.abs() > LARGEST) {
            bail!("--from and --to go up to {LARGEST:e}");
        }
        // Depths and numbers are whole, and a rate may be.
        let whole = from.fract() == 0.0 && to.fract() == 0.0;
        let points = (0..self.steps).map(|step| {
            let part = f64::from(step) / f64::from(self.steps - 1);
            let value = if self.log { from * (to / from).powf(part) } else { from + (to - from) * part };
            if whole { Value::Integer(value.round() as i64) } else { Value::Float(value) }
        });
        let mut points: Vec<Value> = points.collect();
        // There may be fewer whole numbers than steps.
        points.dedup();
        Ok(points)
    }

    /// A chart for each figure: one bar a value.
    fn draw(&self, out: &mut Output, points: &[(Value, Vec<f64>)]) -> io::Result<()> {
        for (at, name) in self.figure.iter().enumerate() {
            out.heading(&format!("{name} by {}", self.key))?;
            let labels: Vec<String> = points.iter().map(|(value, _)| label(value)).collect();
            let numbers: Vec<String> = points.iter().map(|(_, figures)| figure(figures[at])).collect();
            let wide =
                |cells: &[String]| cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default();
            let (left, right) = (wide(&labels), wide(&numbers));
            let room = out.width().saturating_sub(left + right + 8).max(10);
            let most = points.iter().map(|(_, figures)| figures[at]).fold(0.0, f64::max);
            for ((label, number), (_, figures)) in labels.iter().zip(&numbers).zip(points) {
                let bar = bar(figures[at], most, room);
                writeln!(out, "{}", format!("  {label:>left$}  {number:>right$}  {bar}").trim_end())?;
            }
        }
        Ok(())
    }
}

fn label(value: &Value) -> String {
    match value {
        Value::Float(value) => figure(*value),
        Value::String(value) => value.clone(),
        value => value.to_string(),
    }
}

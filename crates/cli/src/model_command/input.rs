//! Which scenario is meant: a file, standard input, or a run of a report; and its keys set otherwise.

use super::capture_frames::Captures;
use anyhow::{Context, anyhow, bail};
use model::{Answer, Scenario};
use reports::Report;
use std::io::Read;
use std::path::Path;

/// The longest file that is read.
const LONGEST: u64 = 1 << 22;

/// A scenario and what is to be set in it.
#[derive(clap::Args)]
pub struct ScenarioArguments {
    /// Scenario file (TOML); `-` is standard input; REPORT:RUN a run of `rxlane model reproduce`, such as
    /// apu4:two-senders
    #[arg(value_name = "FILE")]
    file: String,

    /// Set a key of the scenario, as in interface.wan.ring=4096; repeatable
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<Assignment>,

    /// Seed, in place of the scenario's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

pub type Assignment = (String, toml::Value);

/// Reads `KEY=VALUE`; what is no TOML value is a text.
fn assignment(text: &str) -> Result<Assignment, String> {
    let (key, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((key.trim().to_owned(), value_of(value.trim())))
}

/// A TOML value, or the text itself.
pub fn value_of(text: &str) -> toml::Value {
    let table = format!("value = {text}").parse::<toml::Table>();
    let value = table.ok().filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

pub struct Source {
    name: String,
    text: String,
    changes: Vec<Assignment>,
}

impl ScenarioArguments {
    pub fn source(&self) -> anyhow::Result<Source> {
        let text = match self.file.split_once(':') {
            Some((report, run)) if !Path::new(&self.file).exists() => of_report(report, run)?,
            _ => read(&self.file)?,
        };
        let mut changes = self.set.clone();
        if let Some(seed) = self.seed {
            let seed = i64::try_from(seed).map_err(|_| anyhow!("--seed goes up to {}", i64::MAX))?;
            changes.push(("seed".to_owned(), toml::Value::Integer(seed)));
        }
        Ok(Source { name: self.file.clone(), text, changes })
    }
}

impl Source {
    /// The scenario with its changes and one more.
    pub fn scenario(&self, change: Option<&Assignment>) -> anyhow::Result<Scenario> {
        let changes: Vec<(&str, toml::Value)> =
            self.changes.iter().chain(change).map(|(key, value)| (key.as_str(), value.clone())).collect();
        Scenario::parse_with(&self.name, &self.text, &changes).map_err(|error| {
            if Report::parse(&self.name, &self.text).is_ok() {
                return anyhow!("{0} is a report of several runs: rxlane model reproduce {0}", self.name);
            }
            error.into()
        })
    }

    /// Simulates it. What is wrong with a capture that it names is the second part of the answer.
    pub fn simulate(&self, scenario: &Scenario) -> anyhow::Result<(Answer, Vec<String>)> {
        let mut captures = Captures::default();
        let plan =
            scenario.plan(&mut |file, receiver, queues, first| captures.open(file, receiver, queues, first));
        let answer = model::run(plan.map_err(|error| error.in_file(&self.name))?);
        Ok((answer, captures.problems()))
    }
}

fn of_report(name: &str, run: &str) -> anyhow::Result<String> {
    let Some(text) = reports::text(name) else {
        let known: Vec<&str> = reports::names().collect();
        bail!("there is no file `{name}:{run}` and no report `{name}`; reports are {}", known.join(", "));
    };
    let report = Report::parse(name, text)?;
    if !report.runs().any(|known| known == run) {
        bail!("{name} has no run `{run}`; its runs are {}", report.runs().collect::<Vec<_>>().join(", "));
    }
    let mut table = report.table(run)?;
    // That of the scenario is of the run that the others differ from.
    table.insert("title".to_owned(), toml::Value::String(format!("{name}, {run}: {}", report.title)));
    Ok(toml::to_string(&table)?)
}

pub fn read(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let name = if file == "-" { "standard input" } else { file };
    let read = match file {
        "-" => std::io::stdin().take(LONGEST + 1).read_to_string(&mut text),
        _ => std::fs::File::open(file).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text)),
    };
    if let Err(error) = read {
        if let Some(report) = reports::text(file).and_then(|text| Report::parse(file, text).ok()) {
            let runs = report.runs().map(|run| format!("{file}:{run}")).collect::<Vec<_>>().join(", ");
            bail!("there is no file {file}; of the report of this name the runs are {runs}");
        }
        return Err(error).with_context(|| format!("cannot read {name}"));
    }
    if text.len() as u64 > LONGEST {
        bail!("{name} is longer than {} MiB, which is the most", LONGEST >> 20);
    }
    Ok(text)
}

//! `rxlane model reproduce`.

use super::input::read;
use crate::output::{CommandResult, Outcome, Output};
use anyhow::bail;
use format::{Table, UNKNOWN, figure};
use reports::{Compared, Parameter, Report, Reported, Reproduced, Role};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;

#[derive(clap::Args)]
#[command(after_help = "\
Exit code 1: the model puts something in another order than a report.

Examples:
  rxlane model reproduce
  rxlane model reproduce apu4 --json
  rxlane model reproduce --print apu4 > apu4.toml")]
pub struct ReproduceArguments {
    /// Reports by name, or files of reports [default: all that come with the program]
    #[arg(value_name = "REPORT")]
    reports: Vec<String>,

    /// Print the file of a report: its machine, its runs, its figures and what they follow from
    #[arg(long, value_name = "NAME", conflicts_with_all = ["reports", "json"])]
    print: Option<String>,

    /// Print every figure of all reports; those of REPORT are printed in any case
    #[arg(short, long)]
    verbose: bool,

    /// Print JSON (schema rxlane.model/1)
    #[arg(long)]
    json: bool,
}

/// Up to this a prediction counts as met.
const CLOSE: f64 = 0.15;

impl ReproduceArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if let Some(name) = &self.print {
            out.write_all(text(name)?.as_bytes())?;
            return Ok(Outcome::Success);
        }
        let names = match self.reports.is_empty() {
            true => reports::names().map(ToOwned::to_owned).collect(),
            false => self.reports.clone(),
        };
        let reports: Result<Vec<Report>, anyhow::Error> =
            names.iter().map(|name| Ok(Report::parse(name, &text(name)?)?)).collect();
        let results: Result<Vec<Reproduced>, _> = reports?.into_iter().map(Report::reproduce).collect();
        let results = results?;
        if self.json {
            out.json(&document(&results))?;
        } else {
            if self.verbose || !self.reports.is_empty() {
                results.iter().try_for_each(|result| print(out, result))?;
            } else {
                overview(out, &results)?;
            }
            summary(out, &results)?;
        }
        let agree = results.iter().flat_map(|result| &result.orders).all(|(_, holds)| *holds);
        Ok(if agree { Outcome::Success } else { Outcome::Negative })
    }
}

fn text(name: &str) -> anyhow::Result<String> {
    if let Some(text) = reports::text(name) {
        return Ok(text.to_owned());
    }
    if name == "-" || name.contains('/') || name.ends_with(".toml") || Path::new(name).exists() {
        return read(name);
    }
    bail!("there is no report `{name}`; there are {}", reports::names().collect::<Vec<_>>().join(", "))
}

/// A line for each report.
fn overview(out: &mut Output, results: &[Reproduced]) -> io::Result<()> {
    let rows = results.iter().map(|result| {
        let one = std::slice::from_ref(result);
        let (predicted, met) = counts(one, Role::Predicted);
        let (calibrated, _) = counts(one, Role::Calibrated);
        let agree = result.orders.iter().filter(|(_, holds)| *holds).count();
        vec![
            result.report.name.clone(),
            predicted.to_string(),
            met.to_string(),
            calibrated.to_string(),
            format!("{agree} of {}", result.orders.len()),
        ]
    });
    let head = ["report", "predicted", "within 15 %", "calibrated", "orders agree"];
    out.table(&Table::new(1, head).rows(rows.collect::<Vec<_>>()))?;
    writeln!(out, "  `rxlane model reproduce REPORT` prints the figures of one, --verbose all.")
}

fn print(out: &mut Output, result: &Reproduced) -> io::Result<()> {
    let report = &result.report;
    out.heading(&format!("{}: {}", report.name, report.title))?;
    let rows: Vec<Vec<String>> = result.figures.iter().map(row).collect();
    out.table(&Table::new(1, ["quantity", "unit", "reported", "modelled", "error", "role"]).rows(rows))?;
    for (statement, holds) in &result.orders {
        out.sentence(&format!("{} {statement}", if *holds { "agrees:   " } else { "disagrees:" }))?;
    }
    let free: Vec<String> = report.parameter.iter().map(|parameter| named(report, parameter)).collect();
    if !free.is_empty() {
        out.sentence(&format!("fitted: {}", free.join("; ")))?;
    }
    for compared in &result.figures {
        if compared.figure.role == Role::Underivable {
            out.sentence(&format!("not derived: {}: {}", compared.figure.quantity, compared.figure.note))?;
        }
    }
    Ok(())
}

/// A share in whole per cent, with its sign where it has one.
fn percent(share: f64) -> String {
    match (100.0 * share).round() as i64 {
        0 => "0 %".to_owned(),
        percent => format!("{percent:+} %"),
    }
}

fn named(report: &Report, parameter: &Parameter) -> String {
    let value = report.value(parameter).map_or(String::new(), |value| format!("{} ", figure(value)));
    format!("{} {value}{}", parameter.key, parameter.unit)
}

fn row(compared: &Compared) -> Vec<String> {
    vec![
        compared.figure.quantity.clone(),
        compared.figure.unit.clone(),
        match compared.figure.reported {
            Reported::Number(number) => figure(number),
            Reported::Range(low, high) => format!("{}–{}", figure(low), figure(high)),
        },
        figure(compared.modelled),
        compared.error.map_or(UNKNOWN.to_owned(), percent),
        compared.figure.role.name().to_owned(),
    ]
}

/// How many there are of a role, and how many of them the model meets.
fn counts(results: &[Reproduced], role: Role) -> (usize, usize) {
    let of_role =
        || results.iter().flat_map(|result| &result.figures).filter(|compared| compared.figure.role == role);
    let met = of_role().filter(|compared| compared.error.is_some_and(|error| error.abs() <= CLOSE)).count();
    (of_role().count(), met)
}

fn summary(out: &mut Output, results: &[Reproduced]) -> io::Result<()> {
    let (predicted, met) = counts(results, Role::Predicted);
    let (calibrated, _) = counts(results, Role::Calibrated);
    let (underivable, _) = counts(results, Role::Underivable);
    let free: usize = results.iter().map(|result| result.report.parameter.len()).sum();
    let orders: Vec<bool> =
        results.iter().flat_map(|result| &result.orders).map(|(_, holds)| *holds).collect();
    out.heading("In all")?;
    writeln!(out, "  {met} of {predicted} predicted figures are within 15 %.")?;
    writeln!(out, "  {free} free parameters were fitted to {calibrated} calibrated figures.")?;
    writeln!(out, "  {underivable} figures are not derived, for the reasons given.")?;
    let agree = orders.iter().filter(|holds| **holds).count();
    writeln!(out, "  {agree} of {} orders agree.", orders.len())
}

fn document(results: &[Reproduced]) -> Value {
    let figures = results.iter().flat_map(|result| {
        result.figures.iter().map(|compared| {
            let figure = &compared.figure;
            let reported = match figure.reported {
                Reported::Number(number) => json!(number),
                Reported::Range(low, high) => json!([low, high]),
            };
            json!({
                "report": result.report.name,
                "quantity": figure.quantity,
                "unit": figure.unit,
                "reported": reported,
                "modelled": compared.modelled,
                "error": compared.error,
                "role": figure.role.name(),
                "note": figure.note,
            })
        })
    });
    let parameters = results.iter().flat_map(|result| {
        result.report.parameter.iter().map(|parameter| {
            json!({
                "report": result.report.name,
                "key": parameter.key,
                "value": result.report.value(parameter),
                "unit": parameter.unit,
                "fitted_to": parameter.fitted_to,
            })
        })
    });
    let orders = results.iter().flat_map(|result| {
        let order = |(statement, holds): &(String, bool)| {
            json!({"report": result.report.name, "statement": statement, "holds": holds})
        };
        result.orders.iter().map(order)
    });
    json!({
        "schema": "rxlane.model/1",
        "figures": figures.collect::<Vec<_>>(),
        "parameters": parameters.collect::<Vec<_>>(),
        "orders": orders.collect::<Vec<_>>(),
    })
}

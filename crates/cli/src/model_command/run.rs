//! `rxlane model run`.

use super::input::ScenarioArguments;
use crate::output::{CommandResult, Outcome, Output, complain};
use format::{Share, Table, UNKNOWN, duration, figure, plural, printable, thousands};
use model::measure::{NAMES, measure};
use model::{Answer, Bursts, CpuAnswer, Lost, Scenario, WaitAnswer};
use serde_json::{Value, json};
use std::io::{self, Write};

/// The name of the form of its JSON.
const SCHEMA: &str = "rxlane.model-run/1";

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane model run router.toml
  rxlane model run router.toml --set interface.wan.ring=4096 \\
    --set 'interface.wan.moderation={ kind = \"interval\", us = 100 }'
  rxlane model run apu4:two-senders --json
  rxlane model run router.toml --figure received_kpps --figure lost_ring_percent")]
pub struct RunArguments {
    #[command(flatten)]
    scenario: ScenarioArguments,

    /// Print this figure alone, in JSON, too; repeatable; `list` lists what there is
    #[arg(long, value_name = "NAME")]
    figure: Vec<String>,

    /// Print queues and CPUs that had nothing to do, too
    #[arg(short, long)]
    verbose: bool,

    /// Print JSON (schema rxlane.model-run/1)
    #[arg(long)]
    json: bool,
}

impl RunArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        if self.figure.iter().any(|name| name == "list") {
            return list(out);
        }
        let source = self.scenario.source()?;
        let scenario = source.scenario(None)?;
        let (answer, problems) = source.simulate(&scenario)?;
        let figures = self.figure.iter().map(|name| Ok((name, measure(&answer, name)?)));
        let figures: Vec<(&String, f64)> =
            figures.collect::<Result<_, String>>().map_err(anyhow::Error::msg)?;
        match (self.json, figures.is_empty()) {
            (true, true) => out.json(&document(&scenario, &answer))?,
            (true, false) => out.json(&alone(&scenario, &answer, &figures))?,
            (false, true) => print(out, &scenario, &answer, self.verbose)?,
            (false, false) => figures.iter().try_for_each(|(name, value)| writeln!(out, "{name} {value}"))?,
        }
        for traffic in answer.traffic.iter().filter(|traffic| traffic.offered == 0) {
            complain(&format!(
                "{}: no frame came in the {} ms that are counted, which begin after {} ms (duration_ms, warm_up_ms)",
                printable(&traffic.name),
                scenario.duration_ms,
                scenario.warm_up_ms
            ));
        }
        problems.iter().for_each(|problem| complain(problem));
        Ok(if problems.is_empty() { Outcome::Success } else { Outcome::Negative })
    }
}

pub fn list(out: &mut Output) -> CommandResult {
    NAMES.iter().try_for_each(|(name, meaning)| writeln!(out, "{name:<28}{meaning}"))?;
    Ok(Outcome::Success)
}

fn print(out: &mut Output, scenario: &Scenario, answer: &Answer, with_idle: bool) -> io::Result<()> {
    writeln!(
        out,
        "{}: {} s simulated, seed {}",
        printable(&scenario.title),
        figure(answer.seconds()),
        scenario.seed
    )?;
    traffic(out, answer)?;
    losses(out, answer)?;
    queues(out, answer, with_idle)?;
    inputs(out, answer)?;
    sockets(out, answer)?;
    cpus(out, answer, with_idle)
}

fn traffic(out: &mut Output, answer: &Answer) -> io::Result<()> {
    out.heading("Traffic")?;
    let seconds = answer.seconds();
    let rows: Vec<Vec<String>> = answer
        .traffic
        .iter()
        .map(|traffic| {
            let percentile = |share| {
                traffic
                    .latencies
                    .percentile(share)
                    .map_or(UNKNOWN.to_owned(), |time| duration(time as f64 / 1e12))
            };
            vec![
                traffic.name.clone(),
                figure(traffic.offered as f64 / seconds),
                figure(traffic.delivered as f64 / seconds),
                figure(traffic.delivered_bytes as f64 * 8e-6 / seconds),
                lost_share(traffic.lost(), traffic.offered),
                percentile(0.5),
                percentile(0.99),
                percentile(0.999),
            ]
        })
        .collect();
    let head = ["", "offered/s", "received/s", "Mbit/s", "lost", "median", "99 %", "99.9 %"];
    out.table(&Table::new(1, head).rows(rows))?;
    let full: Vec<&str> = answer.full_lines().collect();
    if !full.is_empty() {
        writeln!(out, "  The line of {} is full: no more can come.", printable(&full.join(", ")))?;
    }
    Ok(())
}

fn losses(out: &mut Output, answer: &Answer) -> io::Result<()> {
    let offered: u64 = answer.traffic.iter().map(|traffic| traffic.offered).sum();
    let lost = |place: Lost| answer.traffic.iter().map(|traffic| traffic.lost[place as usize]).sum::<u64>();
    let rows: Vec<Vec<String>> = Lost::ALL
        .into_iter()
        .filter(|place| lost(*place) > 0)
        .map(|place| {
            let what = match place {
                Lost::Admit => "longer than the device lets in",
                Lost::Ring => "no room in the ring",
                Lost::Input => "no room between driver and stack",
                Lost::Socket => "no room in the socket",
                Lost::Transmit => "no room in the transmit ring",
            };
            let frames = thousands(lost(place));
            vec![place.stage().to_owned(), what.to_owned(), frames, lost_share(lost(place), offered)]
        })
        .collect();
    if rows.is_empty() {
        return Ok(());
    }
    out.heading("Losses by stage")?;
    out.table(&Table::new(2, ["stage", "", "frames", "of all"]).rows(rows))
}

fn queues(out: &mut Output, answer: &Answer, with_idle: bool) -> io::Result<()> {
    out.heading("Receive queues")?;
    let seconds = answer.seconds();
    let rows: Vec<Vec<String>> = answer
        .queues
        .iter()
        .filter(|queue| with_idle || queue.frames > 0)
        .map(|queue| {
            let mut row = vec![
                format!("{} {}", answer.ports[queue.port], queue.number),
                queue.cpu.to_string(),
                figure(queue.frames as f64 / seconds),
                lost_share(queue.lost, queue.frames),
                figure(queue.interrupts as f64 / seconds),
            ];
            row.extend(bursts(&queue.bursts, queue.peak));
            row
        })
        .collect();
    let head = ["", "CPU", "frames/s", "lost", "interrupts/s", "burst", "longest", "most"];
    let idle = answer.queues.len() - rows.len();
    out.table(&Table::new(1, head).rows(rows))?;
    left_out(out, idle, "idle queue")
}

/// How many rows are not printed, which say nothing.
fn left_out(out: &mut Output, count: usize, what: &str) -> io::Result<()> {
    if count == 0 {
        return Ok(());
    }
    writeln!(out, "  and {} (--verbose)", plural(count as u64, what))
}

/// Mean and longest burst, and the most that ever waited.
fn bursts(bursts: &Bursts, peak: u32) -> [String; 3] {
    let mean = figure(bursts.mean());
    [mean, bursts.longest.to_string(), peak.to_string()]
}

/// Whose time is that of a CPU's soft interrupts.
fn inputs(out: &mut Output, answer: &Answer) -> io::Result<()> {
    if answer.inputs.is_empty() {
        return Ok(());
    }
    out.heading("Queues between driver and stack")?;
    let row = |wait: &WaitAnswer| {
        let mut row = vec![wait.name.clone(), thousands(wait.lost)];
        row.extend(bursts(&wait.bursts, wait.peak));
        row
    };
    let rows: Vec<Vec<String>> = answer.inputs.iter().map(row).collect();
    out.table(&Table::new(1, ["of", "lost", "burst", "longest", "most"]).rows(rows))
}

fn sockets(out: &mut Output, answer: &Answer) -> io::Result<()> {
    if answer.applications.is_empty() {
        return Ok(());
    }
    out.heading("Sockets")?;
    let row = |wait: &WaitAnswer| {
        let mut row = vec![
            wait.name.clone(),
            wait.cpu.map_or("any".to_owned(), |cpu| cpu.to_string()),
            thousands(wait.lost),
            Share::of(wait.spent, answer.duration).to_string(),
        ];
        row.extend(bursts(&wait.bursts, wait.peak));
        row
    };
    let rows: Vec<Vec<String>> = answer.applications.iter().map(row).collect();
    out.table(
        &Table::new(1, ["application", "CPU", "lost", "CPU time", "burst", "longest", "most"]).rows(rows),
    )
}

fn cpus(out: &mut Output, answer: &Answer, with_idle: bool) -> io::Result<()> {
    out.heading("CPUs")?;
    let of = |cpu: &CpuAnswer| [cpu.interrupt, cpu.softirq, cpu.system, cpu.user, cpu.idle];
    let rows: Vec<Vec<String>> = answer
        .cpus
        .iter()
        .enumerate()
        .filter(|(_, cpu)| with_idle || cpu.idle < answer.duration)
        .map(|(number, cpu)| {
            let mut row = vec![number.to_string()];
            row.extend(of(cpu).map(|time| Share::of(time, answer.duration).to_string()));
            row.push(thousands(cpu.squeezes));
            row
        })
        .collect();
    let idle = answer.cpus.len() - rows.len();
    let head = ["CPU", "interrupt", "softirq", "system", "user", "idle", "squeezes"];
    out.table(&Table::new(1, head).rows(rows))?;
    left_out(out, idle, "idle CPU")
}

fn lost_share(lost: u64, of: u64) -> String {
    if lost == 0 { UNKNOWN.to_owned() } else { Share::of(lost, of).small() }
}

fn alone(scenario: &Scenario, answer: &Answer, figures: &[(&String, f64)]) -> Value {
    let figures: serde_json::Map<String, Value> =
        figures.iter().map(|(name, value)| ((*name).clone(), json!(value))).collect();
    json!({
        "schema": SCHEMA,
        "title": scenario.title,
        "seed": scenario.seed,
        "seconds": answer.seconds(),
        "figures": figures,
    })
}

fn document(scenario: &Scenario, answer: &Answer) -> Value {
    let seconds = answer.seconds();
    let microseconds = |time: Option<u64>| time.map(|time| time as f64 / 1e6);
    let traffic = answer.traffic.iter().map(|traffic| {
        let lost: serde_json::Map<String, Value> = Lost::ALL
            .iter()
            .map(|place| (place.name().to_owned(), json!(traffic.lost[*place as usize])))
            .collect();
        json!({
            "name": traffic.name,
            "offered": traffic.offered,
            "delivered": traffic.delivered,
            "pps": traffic.delivered as f64 / seconds,
            "bits_per_second": traffic.delivered_bytes as f64 * 8.0 / seconds,
            "lost": lost,
            "latency_us": {
                "mean": traffic.latencies.mean().map(|mean| mean / 1e6),
                "p50": microseconds(traffic.latencies.percentile(0.5)),
                "p90": microseconds(traffic.latencies.percentile(0.9)),
                "p99": microseconds(traffic.latencies.percentile(0.99)),
                "p999": microseconds(traffic.latencies.percentile(0.999)),
                "longest": microseconds(traffic.latencies.longest()),
            },
        })
    });
    let burst =
        |bursts: &Bursts, peak: u32| json!({"mean": bursts.mean(), "longest": bursts.longest, "peak": peak});
    let queues = answer.queues.iter().map(|queue| {
        json!({
            "interface": answer.ports[queue.port],
            "queue": queue.number,
            "cpu": queue.cpu,
            "frames": queue.frames,
            "lost": queue.lost,
            "interrupts": queue.interrupts,
            "burst": burst(&queue.bursts, queue.peak),
        })
    });
    let lines = answer.ports.iter().zip(&answer.filled);
    let lines = lines.map(
        |(port, filled)| json!({"interface": port, "filled_percent": filled.map(|share| 100.0 * share)}),
    );
    let wait = |wait: &WaitAnswer| json!({"name": wait.name, "cpu": wait.cpu, "lost": wait.lost, "burst": burst(&wait.bursts, wait.peak)});
    let application = |of: &WaitAnswer| {
        let mut value = wait(of);
        value["calls"] = of.calls.into();
        value["cpu_percent"] = (100.0 * of.spent as f64 / answer.duration as f64).into();
        value
    };
    let cpus = answer.cpus.iter().enumerate().map(|(number, cpu)| {
        let percent = |time: u64| 100.0 * time as f64 / answer.duration as f64;
        json!({
            "cpu": number,
            "interrupt": percent(cpu.interrupt),
            "softirq": percent(cpu.softirq),
            "system": percent(cpu.system),
            "user": percent(cpu.user),
            "idle": percent(cpu.idle),
            "squeezes": cpu.squeezes,
        })
    });
    json!({
        "schema": SCHEMA,
        "title": scenario.title,
        "seed": scenario.seed,
        "seconds": seconds,
        "under_way": {"before": answer.before, "after": answer.after},
        "traffic": traffic.collect::<Vec<_>>(),
        "lines": lines.collect::<Vec<_>>(),
        "queues": queues.collect::<Vec<_>>(),
        "inputs": answer.inputs.iter().map(wait).collect::<Vec<_>>(),
        "applications": answer.applications.iter().map(application).collect::<Vec<_>>(),
        "cpus": cpus.collect::<Vec<_>>(),
    })
}

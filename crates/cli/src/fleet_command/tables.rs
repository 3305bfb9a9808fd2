//! The tables: which columns, and the rows of a machine.

use super::import::Judged;
use crate::output_file::OutputFile;
use crate::render::prose::{Worded, worded};
use anyhow::Context;
use doctor::report::{InterfaceRow, Report};
use explain::report::Imbalance;
use host::{Fact, Snapshot};
use parquet::Kind::{Count, Flag, Number, Text};
use parquet::{Column, Value, Writer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

const MACHINE: Column = Column::new("machine", Text);

const MACHINES: &[Column] = &[
    MACHINE,
    Column::new("verdict", Text),
    Column::new("system", Text),
    Column::new("kernel", Text),
    Column::new("distribution", Text),
    Column::new("board", Text),
    Column::new("cpu_model", Text),
    Column::new("cpus", Count),
    Column::new("seconds", Number),
    Column::new("conclusion", Text),
    // Why the bundle could not be read.
    Column::new("unread", Text),
];

const INTERFACES: &[Column] = &[
    MACHINE,
    Column::new("interface", Text),
    Column::new("driver", Text),
    Column::new("profile", Text),
    Column::new("model", Text),
    Column::new("bus", Text),
    Column::new("up", Flag),
    Column::new("carrier", Flag),
    Column::new("speed_mbit", Count),
    Column::new("mtu", Count),
    Column::new("master", Text),
    Column::new("physical", Text),
    Column::new("queues", Count),
    Column::new("packets", Count),
    Column::new("packets_per_second", Number),
    Column::new("effective_queues", Number),
    Column::new("queue_drops", Count),
    Column::new("since_start", Flag),
    Column::new("steering", Text),
    Column::new("steered_share", Number),
];

const QUEUES: &[Column] = &[
    MACHINE,
    Column::new("interface", Text),
    Column::new("queue", Count),
    Column::new("packets", Count),
    Column::new("packets_per_second", Number),
    Column::new("share", Number),
    Column::new("drops", Count),
    Column::new("since_start", Flag),
];

const CPUS: &[Column] = &[
    MACHINE,
    Column::new("cpu", Count),
    Column::new("net_rx", Count),
    Column::new("processed", Count),
    Column::new("dropped", Count),
    Column::new("time_squeeze", Count),
    Column::new("received_rps", Count),
    Column::new("busy_percent", Number),
    Column::new("softirq_percent", Number),
];

const FINDINGS: &[Column] = &[
    MACHINE,
    Column::new("id", Text),
    Column::new("severity", Text),
    Column::new("certainty", Text),
    Column::new("stage", Text),
    Column::new("interface", Text),
    Column::new("explanation", Text),
    // Of the first remedy, a line each.
    Column::new("commands", Text),
];

/// A table on its way to its file, which appears when all are whole.
struct Written {
    path: PathBuf,
    file: OutputFile,
    table: Writer<BufWriter<File>>,
}

impl Written {
    fn create(folder: &Path, name: &str, columns: &'static [Column]) -> anyhow::Result<Written> {
        let path = folder.join(name);
        let mut file = OutputFile::create("--parquet", &path, &[])?;
        let table = Writer::new(BufWriter::new(file.open()?), columns)?;
        Ok(Written { path, file, table })
    }
}

pub struct Tables {
    machines: Written,
    interfaces: Written,
    queues: Written,
    cpus: Written,
    findings: Written,
}

impl Tables {
    /// Tables in this folder. Errors: a file cannot be written there.
    pub fn create(folder: &Path) -> anyhow::Result<Tables> {
        Ok(Tables {
            machines: Written::create(folder, "machines.parquet", MACHINES)?,
            interfaces: Written::create(folder, "interfaces.parquet", INTERFACES)?,
            queues: Written::create(folder, "queues.parquet", QUEUES)?,
            cpus: Written::create(folder, "cpus.parquet", CPUS)?,
            findings: Written::create(folder, "findings.parquet", FINDINGS)?,
        })
    }

    /// The rows of a machine.
    pub fn add(&mut self, judged: &Judged) -> anyhow::Result<()> {
        let machine = judged.machine.as_str();
        self.add_rows(machine, &judged.answer).context("cannot write the tables")
    }

    fn add_rows(&mut self, machine: &str, answer: &Result<(Snapshot, Report), String>) -> io::Result<()> {
        let (snapshot, report) = match answer {
            Ok((snapshot, report)) => (snapshot, worded(report, false)),
            Err(why) => {
                let mut row = vec![Value::Null; MACHINES.len()];
                row[0] = machine.into();
                row[MACHINES.len() - 1] = why.as_str().into();
                return self.machines.table.row(&row);
            }
        };
        self.machines.table.row(&machine_row(machine, snapshot, &report, &report.conclusion.join(" ")))?;
        for row in &report.interfaces {
            self.interfaces.table.row(&interface_row(machine, snapshot, row))?;
            for queue in &row.queues {
                self.queues.table.row(&[
                    machine.into(),
                    row.name.as_str().into(),
                    queue.queue.into(),
                    queue.packets.into(),
                    queue.per_second.into(),
                    queue.share.into(),
                    queue.drops.into(),
                    row.since_start.into(),
                ])?;
            }
        }
        for cpu in &report.per_cpu {
            self.cpus.table.row(&[
                machine.into(),
                cpu.cpu.into(),
                cpu.net_rx.into(),
                cpu.processed.into(),
                cpu.dropped.into(),
                cpu.time_squeeze.into(),
                cpu.received_rps.into(),
                cpu.busy.into(),
                cpu.softirq.into(),
            ])?;
        }
        self.add_findings(machine, &report)
    }

    fn add_findings(&mut self, machine: &str, report: &Worded<'_>) -> io::Result<()> {
        for finding in &report.findings {
            let commands = finding.remedies.first().map(|remedy| remedy.commands.join("\n"));
            self.findings.table.row(&[
                machine.into(),
                finding.id.into(),
                finding.severity.name().into(),
                finding.certainty.name().into(),
                finding.stage.into(),
                finding.interface.as_deref().into(),
                finding.explanation.as_str().into(),
                commands.as_deref().into(),
            ])?;
        }
        Ok(())
    }

    /// Writes what is left; rows by file. Errors: a file cannot be written.
    pub fn finish(self) -> anyhow::Result<BTreeMap<String, u64>> {
        let written = [self.machines, self.interfaces, self.queues, self.cpus, self.findings];
        let mut rows = BTreeMap::new();
        let mut files = Vec::new();
        for one in written {
            let path = one.path.display().to_string();
            let of_table = one.table.rows();
            one.table.finish().with_context(|| format!("cannot write {path}"))?;
            rows.insert(path, of_table);
            files.push(one.file);
        }
        files.into_iter().try_for_each(OutputFile::commit)?;
        Ok(rows)
    }
}

fn text(fact: &Option<Fact<String>>) -> Value<'_> {
    fact.as_ref().map(|fact| fact.value.as_str()).into()
}

fn machine_row<'r>(
    machine: &'r str,
    snapshot: &'r Snapshot,
    report: &'r Report,
    conclusion: &'r str,
) -> [Value<'r>; 11] {
    let distribution = snapshot.distribution.as_ref().map(|known| known.value.name.as_str());
    [
        machine.into(),
        report.verdict.name().into(),
        report.system.into(),
        text(&snapshot.kernel),
        distribution.into(),
        text(&snapshot.board),
        report.cpu_model.as_deref().into(),
        report.cpus.into(),
        report.seconds.into(),
        conclusion.into(),
        Value::Null,
    ]
}

fn interface_row<'r>(machine: &'r str, snapshot: &'r Snapshot, row: &'r InterfaceRow) -> [Value<'r>; 20] {
    let interface = snapshot.interface(&row.name);
    let packets: Option<Vec<u64>> = row.queues.iter().map(|queue| queue.packets).collect();
    let packets = packets.filter(|counted| !counted.is_empty());
    let total =
        packets.as_ref().map(|counted| counted.iter().fold(0, |sum: u64, count| sum.saturating_add(*count)));
    let effective =
        packets.filter(|_| total > Some(0)).map(|counted| Imbalance::of(&counted).effective_queues);
    let per_second: Option<f64> = row.queues.iter().map(|queue| queue.per_second).sum();
    let drops: Option<u64> =
        row.queues.iter().filter_map(|queue| queue.drops).reduce(|sum, drops| sum.saturating_add(drops));
    [
        machine.into(),
        row.name.as_str().into(),
        row.driver.as_deref().into(),
        row.profile.as_deref().into(),
        row.model.as_deref().into(),
        row.bus.as_deref().into(),
        row.up.into(),
        row.carrier.into(),
        interface.and_then(|one| one.link.speed.as_ref()).map(|seen| *seen.get()).into(),
        interface.and_then(|one| one.mtu.as_ref()).map(|seen| *seen.get()).into(),
        row.master.as_deref().into(),
        row.physical.as_deref().into(),
        (row.queues.len() as u64).into(),
        total.into(),
        per_second.filter(|_| total.is_some()).into(),
        effective.into(),
        drops.into(),
        row.since_start.into(),
        row.steering.as_ref().map(|steering| steering.mode).into(),
        row.steering.as_ref().and_then(|steering| steering.share).into(),
    ]
}

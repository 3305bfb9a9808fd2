//! A diagnosis as text: the verdict, findings by severity, queues × CPUs, what could not be read.

use crate::explain_command::text::{heading, printable, wrapped};
use crate::output::Output;
use anstyle::{AnsiColor, Style};
use doctor::Report;
use doctor::report::{
    Certainty, CpuRow, Evidence, Finding, InterfaceRow, Outcome, QueueRow, Remedy, Severity, VectorRow,
    Verdict,
};
use explain::grouped;
use std::collections::BTreeSet;
use std::io::{self, Write};

const BOLD: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const POOR: Style = AnsiColor::Yellow.on_default();
const GOOD: Style = AnsiColor::Green.on_default().bold();

/// Lines of evidence of a finding; `--json` has all.
const EVIDENCE: usize = 8;
/// Rows of a table that a text can make arbitrarily long.
const ROWS: usize = 64;
/// Places that could not be read.
const UNREAD: usize = 12;

/// Prints a diagnosis.
pub fn print(out: &mut Output, report: &Report) -> io::Result<()> {
    verdict(out, report)?;
    for severity in [Severity::Critical, Severity::Warning, Severity::Info] {
        for finding in report.findings.iter().filter(|finding| finding.severity == severity) {
            print_finding(out, finding)?;
        }
    }
    for interface in &report.interfaces {
        print_interface(out, report, interface)?;
    }
    cpus(out, report)?;
    unread(out, report)?;
    footer(out, report)
}

fn verdict(out: &mut Output, report: &Report) -> io::Result<()> {
    let style = match report.verdict {
        Verdict::Healthy => GOOD,
        Verdict::Limited => BAD,
        Verdict::Unknown => POOR,
    };
    for (place, sentence) in report.conclusion.iter().enumerate() {
        for line in wrapped(&printable(sentence), out.width()) {
            let line = if place == 0 { out.styled(style, line) } else { line };
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn print_finding(out: &mut Output, finding: &Finding) -> io::Result<()> {
    let (style, word) = match finding.severity {
        Severity::Critical => (BAD, "critical"),
        Severity::Warning => (POOR, "warning"),
        Severity::Info => (QUIET, "info"),
    };
    let word = out.styled(style, word);
    let possible = if finding.certainty == Certainty::Possible { ", possible" } else { "" };
    let interface = match finding.interface.as_deref() {
        None => String::new(),
        Some("") => " of the unnamed interface".to_owned(),
        Some(name) => format!(" of {}", printable(name)),
    };
    let id = out.styled(BOLD, finding.id);
    writeln!(out, "\n{word}  {id}  stage {}{interface}{possible}", finding.stage)?;
    paragraph(out, "  ", &finding.explanation)?;
    for evidence in finding.evidence.iter().take(EVIDENCE) {
        let line = out.styled(QUIET, evidence_line(evidence, out.width().saturating_sub(4)));
        writeln!(out, "  | {line}")?;
    }
    if finding.evidence.len() > EVIDENCE {
        writeln!(out, "  | … and {} more lines (--json has them)", finding.evidence.len() - EVIDENCE)?;
    }
    // Of a remark, commands are enough: nothing has to be done about it.
    let shown = |remedy: &&Remedy| finding.severity != Severity::Info || !remedy.commands.is_empty();
    for remedy in finding.remedies.iter().filter(shown) {
        paragraph(out, "  ", &format!("{}: {}", system(remedy.os), remedy.what))?;
        for command in &remedy.commands {
            let command = out.styled(BOLD, printable(command));
            writeln!(out, "      {command}")?;
        }
        paragraph(out, "    ", &remedy.expected)?;
    }
    Ok(())
}

/// What was read, with the blanks of columns closed up, and where, as far as there is room.
fn evidence_line(evidence: &Evidence, width: usize) -> String {
    let words: Vec<&str> = evidence.text.split_whitespace().collect();
    let from = cut(&printable(&evidence.from), width * 2 / 5);
    let room = width.saturating_sub(from.chars().count() + 3);
    format!("{}   {from}", cut(&printable(&words.join(" ")), room))
}

fn system(os: &str) -> &str {
    match os {
        "linux" => "Linux",
        "freebsd" => "FreeBSD",
        "netbsd" => "NetBSD",
        other => other,
    }
}

fn paragraph(out: &mut Output, indent: &str, text: &str) -> io::Result<()> {
    for line in wrapped(&printable(text), out.width().saturating_sub(indent.len())) {
        writeln!(out, "{indent}{line}")?;
    }
    Ok(())
}

fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn print_interface(out: &mut Output, report: &Report, interface: &InterfaceRow) -> io::Result<()> {
    let vectors: Vec<&VectorRow> =
        report.vectors.iter().filter(|vector| vector.interface == interface.name).collect();
    if interface.queues.is_empty() && vectors.is_empty() {
        return Ok(());
    }
    let name = if interface.name.is_empty() { "unnamed interface" } else { interface.name.as_str() };
    let mut what: Vec<String> = interface.driver.iter().map(|driver| format!("driver {driver}")).collect();
    match (&interface.profile, interface.candidates.as_slice()) {
        (Some(profile), _) => what.push(format!("profile {profile}")),
        (None, []) => {}
        (None, several) => what.push(format!("one of {}", several.join(", "))),
    }
    let when = if interface.since_start { "since start" } else { "between the samples" };
    heading(out, &printable(&format!("{name}{}", brackets(&what))))?;
    if !interface.queues.is_empty() {
        queues(out, &interface.queues, when)?;
    }
    matrix(out, &vectors)
}

fn brackets(words: &[String]) -> String {
    if words.is_empty() { String::new() } else { format!(" ({})", words.join("; ")) }
}

fn number(value: Option<u64>) -> String {
    value.map_or("?".to_owned(), grouped)
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{}/s", grouped(value.round() as u64)))
}

fn queues(out: &mut Output, rows: &[QueueRow], when: &str) -> io::Result<()> {
    let line =
        out.styled(QUIET, format!("  queue          frames    share          rate     drops   {when}"));
    writeln!(out, "{line}")?;
    for row in rows.iter().take(ROWS) {
        let share = row.share.map_or("?".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        writeln!(
            out,
            "  {:<5} {:>15} {share:>8} {:>13} {:>9}",
            row.queue,
            number(row.packets),
            rate(row.per_second),
            number(row.drops)
        )?;
    }
    more(out, rows.len())
}

fn more(out: &mut Output, rows: usize) -> io::Result<()> {
    if rows > ROWS { writeln!(out, "  … and {} more (--json lists them)", rows - ROWS) } else { Ok(()) }
}

/// Vectors × CPUs: the interrupts that each CPU took for each vector.
fn matrix(out: &mut Output, vectors: &[&VectorRow]) -> io::Result<()> {
    if vectors.is_empty() {
        return Ok(());
    }
    let busy: BTreeSet<u32> = vectors
        .iter()
        .flat_map(|vector| vector.per_cpu.iter())
        .filter(|(_, count)| **count > 0)
        .map(|(&cpu, _)| cpu)
        .collect();
    let name = vectors.iter().map(|vector| vector.action.chars().count()).max().unwrap_or(0).clamp(8, 24);
    let room = out.width().saturating_sub(name + 2 + 14) / 14;
    let shown: Vec<u32> = busy.iter().copied().take(room.max(1)).collect();
    let mut line = format!("  {:name$}", "interrupts");
    for cpu in &shown {
        line += &format!("{:>14}", format!("CPU {cpu}"));
    }
    if busy.is_empty() {
        line += &format!("{:>16}", "all CPUs");
    }
    let since_start = vectors.iter().any(|vector| vector.since_start);
    line += if since_start { "   since start" } else { "         rate" };
    let line = out.styled(QUIET, line.trim_end());
    writeln!(out, "{line}")?;
    for vector in vectors.iter().take(ROWS) {
        let mut line = format!("  {:name$}", cut(&printable(&vector.action), name));
        for cpu in &shown {
            let count = vector.per_cpu.get(cpu).copied().unwrap_or(0);
            line += &format!("{:>14}", if count == 0 { "·".to_owned() } else { grouped(count) });
        }
        if busy.is_empty() {
            line += &format!("{:>16}", grouped(vector.total));
        }
        line += &format!("{:>13}", rate(vector.per_second));
        writeln!(out, "{}", line.trim_end())?;
    }
    if busy.len() > shown.len() {
        writeln!(out, "  … and {} more CPUs (--json lists them)", busy.len() - shown.len())?;
    }
    more(out, vectors.len())
}

fn cpus(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.per_cpu.is_empty() {
        return Ok(());
    }
    heading(out, "CPUs")?;
    let line = "  CPU      NET_RX softirqs        frames     dropped   squeezed     busy  softirq";
    let line = out.styled(QUIET, line);
    writeln!(out, "{line}")?;
    let percent = |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.0} %"));
    for CpuRow { cpu, net_rx, processed, dropped, time_squeeze, busy, softirq } in
        report.per_cpu.iter().take(ROWS)
    {
        writeln!(
            out,
            "  {cpu:<5} {:>18} {:>13} {:>11} {:>10} {:>8} {:>8}",
            number(*net_rx),
            number(*processed),
            number(*dropped),
            number(*time_squeeze),
            percent(*busy),
            percent(*softirq)
        )?;
    }
    more(out, report.per_cpu.len())
}

fn unread(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.unread.is_empty() {
        return Ok(());
    }
    heading(out, "Not read")?;
    for row in report.unread.iter().take(UNREAD) {
        let line = cut(&printable(&format!("{}: {}", row.what, row.why)), out.width().saturating_sub(2));
        writeln!(out, "  {line}")?;
    }
    let rest = report.unread.len().saturating_sub(UNREAD);
    if rest > 0 { writeln!(out, "  … and {rest} more (--json lists them)") } else { Ok(()) }
}

fn footer(out: &mut Output, report: &Report) -> io::Result<()> {
    let count = |outcome| report.rules.iter().filter(|row| row.outcome == outcome).count();
    let text = format!(
        "{} rules: {} found something, {} are clear, {} lack data, {} do not apply. rxlane doctor --why ID explains a \
         finding.",
        report.rules.len(),
        count(Outcome::Found),
        count(Outcome::Clear),
        count(Outcome::InsufficientData),
        count(Outcome::DoesNotApply)
    );
    writeln!(out)?;
    for line in wrapped(&text, out.width()) {
        let line = out.styled(QUIET, line);
        writeln!(out, "{line}")?;
    }
    Ok(())
}

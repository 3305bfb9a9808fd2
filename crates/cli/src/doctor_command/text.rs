//! A diagnosis as text: the verdict, findings by severity, queues × CPUs, what could not be read.

use super::remedies::{self, Shown};
use crate::output::Output;
use crate::render::prose::{Worded, WordedFinding};
use anstyle::{AnsiColor, Style};
use doctor::finding::{Certainty, Evidence, Severity};
use doctor::report::{CpuRow, InterfaceRow, Outcome, QueueRow, SteeringRow, UnreadRow, VectorRow, Verdict};
use doctor::stacked::StackedRow;
use format::{printable, thousands, wrapped};
use std::collections::BTreeSet;
use std::io::{self, Write};

const BOLD: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default().bold();
const POOR: Style = AnsiColor::Yellow.on_default();
const GOOD: Style = AnsiColor::Green.on_default().bold();

/// Lines of evidence of a finding; `--json` has all.
const EVIDENCE: usize = 8;
/// Lines of evidence of what is merely missing.
const LITTLE: usize = 3;
/// Stacks of a traffic sample.
const STACKS: usize = 3;
/// Rows of a table that a text can make arbitrarily long.
const ROWS: usize = 64;
/// Places that could not be read.
const UNREAD: usize = 12;

/// Prints a diagnosis.
pub fn print(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    verdict(out, report)?;
    traffic(out, report)?;
    for (finding, remedies) in remedies::shown(report) {
        print_finding(out, finding, &remedies)?;
    }
    for interface in &report.interfaces {
        print_interface(out, report, interface)?;
    }
    stacked(out, report)?;
    cpus(out, report)?;
    unread(out, report)?;
    footer(out, report)
}

/// The verdict and the gravest finding alone.
pub fn gravest(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    verdict(out, report)?;
    match remedies::shown(report).first() {
        Some((finding, remedies)) => print_finding(out, finding, remedies),
        None => Ok(()),
    }
}

fn verdict(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
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

/// What the traffic sample is.
fn traffic(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    for row in report.traffic.iter().take(ROWS) {
        let stacks = row.stacks.iter().take(STACKS).map(|stack| {
            let share = 100.0 * stack.frames as f64 / row.frames.max(1) as f64;
            format!("{} {share:.0} %", stack.stack)
        });
        let stacks: Vec<String> = stacks.collect();
        let text = format!(
            "Traffic sample for {}: {} frames, {} flows; {}",
            row.interface,
            thousands(row.frames),
            thousands(row.flows),
            stacks.join(", ")
        );
        paragraph(out, "", &text)?;
    }
    Ok(())
}

fn print_finding(out: &mut Output, finding: &WordedFinding<'_>, remedies: &[Shown<'_>]) -> io::Result<()> {
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
    let most = if finding.id == "insufficient-data" { LITTLE } else { EVIDENCE };
    for evidence in finding.evidence.iter().take(most) {
        let line = out.styled(QUIET, evidence_line(evidence, out.width().saturating_sub(4)));
        writeln!(out, "  | {line}")?;
    }
    if finding.evidence.len() > most {
        writeln!(out, "  | … and {} more lines (--json has them)", finding.evidence.len() - most)?;
    }
    for remedy in remedies {
        print_remedy(out, *remedy)?;
    }
    Ok(())
}

fn print_remedy(out: &mut Output, remedy: Shown<'_>) -> io::Result<()> {
    let remedy = match remedy {
        Shown::Whole(remedy) => remedy,
        Shown::As { os, id } => return paragraph(out, "  ", &format!("{}: as under {id}", system(os))),
    };
    paragraph(out, "  ", &format!("{}: {}", system(remedy.os), remedy.what))?;
    for command in remedy.commands {
        let command = out.styled(BOLD, printable(command));
        writeln!(out, "      {command}")?;
    }
    paragraph(out, "    ", &remedy.expected)
}

/// What was read, with the blanks of columns closed up, and where, as far as there is room.
fn evidence_line(evidence: &Evidence, width: usize) -> String {
    let words: Vec<&str> = evidence.text.split_whitespace().collect();
    let from = place(&printable(&evidence.from), width * 2 / 5);
    let room = width.saturating_sub(from.chars().count() + 3);
    format!("{}   {from}", cut(&printable(&words.join(" ")), room))
}

/// Command, file and line in at most `width` characters, of which the command loses first.
fn place(from: &str, width: usize) -> String {
    match from.rsplit_once(" (") {
        Some((command, place)) if from.chars().count() > width && place.chars().count() + 10 < width => {
            format!("{} ({place}", cut(command, width - place.chars().count() - 2))
        }
        _ => cut(from, width),
    }
}

/// The system's name as its people write it.
pub fn system(os: &str) -> &str {
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

fn print_interface(out: &mut Output, report: &Worded<'_>, interface: &InterfaceRow) -> io::Result<()> {
    let vectors: Vec<&VectorRow> =
        report.vectors.iter().filter(|vector| vector.interface == interface.name).collect();
    if interface.queues.is_empty() && vectors.is_empty() && interface.steering.is_none() {
        return Ok(());
    }
    let name = if interface.name.is_empty() { "unnamed interface" } else { interface.name.as_str() };
    let mut what: Vec<String> = interface.driver.iter().map(|driver| format!("driver {driver}")).collect();
    match (&interface.profile, interface.candidates.as_slice()) {
        (Some(profile), _) => what.push(format!("profile {profile}")),
        (None, []) => {}
        (None, several) => what.push(format!("one of {}", several.join(", "))),
    }
    let two_samples = interface.queues.iter().any(|queue| queue.packets.is_some()) && !interface.since_start;
    let when = if two_samples { "between the samples" } else { "since start" };
    out.heading(&printable(&format!("{name}{}", brackets(&what))))?;
    if let Some(row) = &interface.steering {
        paragraph(out, "  ", &steering(row))?;
    }
    if !interface.queues.is_empty() {
        queues(out, &interface.queues, when)?;
    }
    matrix(out, &vectors)
}

/// `Steering: native mode, 97 % of the frames to 3 CPUs; the busiest, CPU 2, takes 35 %; none dropped between the samples.`
pub fn steering(row: &SteeringRow) -> String {
    if row.mode == "off" {
        return "Steering: off.".to_owned();
    }
    let mut text = format!("Steering: {} mode, ", row.mode);
    if let Some(share) = row.share {
        text += &format!("{:.0} % of the frames ", 100.0 * share);
    }
    text += &match &row.cpus[..] {
        [] => "to CPUs that were not read".to_owned(),
        [only] => format!("to CPU {}", only.cpu),
        several => format!("to {} CPUs", several.len()),
    };
    let busiest = row.cpus.iter().max_by_key(|cpu| cpu.frames);
    if let Some((busiest, share)) =
        busiest.and_then(|busiest| Some((busiest, busiest.share?))).filter(|_| row.cpus.len() > 1)
    {
        text += &format!("; the busiest, CPU {}, takes {:.0} %", busiest.cpu, 100.0 * share);
    }
    if row.cpus.iter().any(|cpu| cpu.drops.is_some()) {
        let drops = row.cpus.iter().filter_map(|cpu| cpu.drops).fold(0, u64::saturating_add);
        let drops = if drops == 0 { "none".to_owned() } else { thousands(drops) };
        let when = if row.since_start { "since it was attached" } else { "between the samples" };
        text += &format!("; {drops} dropped {when}");
    }
    text + "."
}

fn brackets(words: &[String]) -> String {
    if words.is_empty() { String::new() } else { format!(" ({})", words.join("; ")) }
}

fn number(value: Option<u64>) -> String {
    value.map_or("?".to_owned(), thousands)
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{}/s", thousands(value.round() as u64)))
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
            line += &format!("{:>14}", if count == 0 { "·".to_owned() } else { thousands(count) });
        }
        if busy.is_empty() {
            line += &format!("{:>16}", thousands(vector.total));
        }
        line += &format!("{:>13}", rate(vector.per_second));
        writeln!(out, "{}", line.trim_end())?;
    }
    if busy.len() > shown.len() {
        writeln!(out, "  … and {} more CPUs (--json lists them)", busy.len() - shown.len())?;
    }
    more(out, vectors.len())
}

/// Stacked interfaces: what their frames measure, and whether the way down lets them in.
fn stacked(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    if report.stacked.is_empty() {
        return Ok(());
    }
    out.heading("Stacked interfaces (bytes; frames with FCS)")?;
    let line = "  interface         MTU   frame  fits  1500-byte PPPoE  offloads lost      over";
    let line = out.styled(QUIET, line);
    writeln!(out, "{line}")?;
    let bytes = |value: Option<u32>| value.map_or("?".to_owned(), |bytes| bytes.to_string());
    for row in report.stacked.iter().take(ROWS) {
        let line = format!(
            "  {:<15} {:>5} {:>7}  {:<4}  {:<15}  {:<17}  {}",
            cut(&printable(&row.name), 15),
            bytes(row.mtu),
            bytes(row.frame_with_fcs),
            yes_or_no(row.fits()),
            yes_or_no(row.pppoe_1500.works),
            lost(row),
            way_down(row)
        );
        let line = cut(&line, out.width());
        writeln!(out, "{}", line.trim_end())?;
    }
    more(out, report.stacked.len())
}

/// A question mark is unknown.
pub fn yes_or_no(value: Option<bool>) -> &'static str {
    match value {
        Some(true) => "yes",
        Some(false) => "no",
        None => "?",
    }
}

/// How many offloads of the interface below are off here.
fn lost(row: &StackedRow) -> String {
    let lost = row.offloads.iter().filter(|offload| offload.lost).count();
    if row.offloads.is_empty() { "?".to_owned() } else { format!("{lost} of {}", row.offloads.len()) }
}

/// `0x88a8/100 eth0.100, eth0`.
pub fn way_down(row: &StackedRow) -> String {
    let layers = row.chain.iter().map(|layer| {
        let tag = match (&layer.tpid, layer.vlan) {
            (Some(tpid), Some(vlan)) => format!(" ({tpid}/{vlan})"),
            (None, Some(vlan)) => format!(" (VLAN {vlan})"),
            _ => String::new(),
        };
        format!("{}{tag}", printable(&layer.name))
    });
    layers.collect::<Vec<_>>().join(" < ")
}

fn cpus(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    if report.per_cpu.is_empty() {
        return Ok(());
    }
    out.heading("CPUs")?;
    let line = "  CPU      NET_RX softirqs        frames     dropped   squeezed     busy  softirq";
    let line = out.styled(QUIET, line);
    writeln!(out, "{line}")?;
    let percent = |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.0} %"));
    for CpuRow { cpu, net_rx, processed, dropped, time_squeeze, busy, softirq, .. } in
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

fn unread(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    // What an interface that is not judged refuses, such as ifb0, is of no interest here.
    let is_judged = |row: &&UnreadRow| {
        let mut words = row.what.split_whitespace();
        words.next() != Some("ethtool")
            || words.any(|word| report.interfaces.iter().any(|interface| interface.name == word))
    };
    let unread: Vec<&UnreadRow> = report.unread.iter().filter(is_judged).collect();
    if unread.is_empty() {
        return Ok(());
    }
    out.heading("Not read")?;
    for row in unread.iter().take(UNREAD) {
        let line = cut(&printable(&format!("{}: {}", row.what, row.why)), out.width().saturating_sub(2));
        writeln!(out, "  {line}")?;
    }
    let rest = unread.len().saturating_sub(UNREAD);
    if rest > 0 { writeln!(out, "  … and {rest} more (--json lists them)") } else { Ok(()) }
}

fn footer(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
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

//! A diagnosis as text. Without `--verbose`: the verdict in a sentence, the fix as commands, three lines of evidence.
//! With it: every finding, then queues × CPUs and what could not be read.

use super::fix::{self, QUESTION};
use super::remedies::{self, Rendered};
use crate::output::{BAD, BOLD, GOOD, Output, POOR, QUIET};
use crate::render::prose::{Worded, WordedFinding, WordedRemedy};
use doctor::finding::{Certainty, Evidence, Severity};
use doctor::report::{FastPathRow, InterfaceRow, Outcome, QueueRow, SteeringRow, VectorRow, Verdict};
use doctor::stacked::StackedRow;
use format::{Share, Table, plural, printable, shortened, thousands, wrapped};
use std::collections::BTreeSet;
use std::io::{self, Write};

const WIDTH: usize = 80;
/// Lines of evidence without `--verbose`.
const FEW: usize = 3;
/// Lines of evidence of a finding; `--json` has all.
const EVIDENCE: usize = 8;
const STACKS: usize = 3;
/// Rows of a table that a text can make arbitrarily long, interfaces with tables, and places that could not be read.
const ROWS: usize = 64;
const INTERFACES: usize = 16;
const UNREAD: usize = 12;

/// Characters of a line.
pub fn width(out: &Output) -> usize {
    out.width().min(WIDTH)
}

/// Prints what a person wants to know first, in a dozen lines.
pub fn summary(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    verdict(out, report)?;
    let groups = grouped(report);
    let graver = || groups.iter().filter(|group| group.finding.severity != Severity::Info);
    if let Some(Group { finding, remedies, others }) = graver().next() {
        if !others.is_empty() {
            paragraph(out, "", &the_same_for(others))?;
        }
        if let Some(Rendered::Whole(remedy)) = remedies.iter().find(|one| matches!(one, Rendered::Whole(_))) {
            fix::print(out, remedy)?;
        }
        evidence(out, finding, "", FEW)?;
    } else if report.verdict == Verdict::Unknown
        && let Some(finding) = report.findings.iter().find(|finding| finding.id == "insufficient-data")
    {
        paragraph(out, "", &finding.explanation)?;
    }
    let mut more: Vec<&str> = graver().skip(1).map(|group| group.finding.id).collect();
    more.dedup();
    let is_remark =
        |finding: &WordedFinding<'_>| finding.severity == Severity::Info && finding.id != "insufficient-data";
    let remarks = groups.iter().filter(|group| is_remark(group.finding)).count();
    let mut also = more.join(", ");
    if remarks > 0 {
        let and = if also.is_empty() { "" } else { ", and " };
        also += &format!("{and}{}", plural(remarks as u64, "remark"));
    }
    if also.is_empty() {
        Ok(())
    } else {
        paragraph(out, "", &format!("Also (--verbose shows them): {also}."))
    }
}

/// Prints everything that a person may want to know.
pub fn print(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    verdict(out, report)?;
    traffic(out, report)?;
    for group in grouped(report) {
        print_finding(out, &group)?;
    }
    let has_tables = |row: &&InterfaceRow| {
        !row.queues.is_empty()
            || row.steering.is_some()
            || report.vectors.iter().any(|v| v.interface == row.name)
    };
    if let Some(row) = &report.fastpath {
        out.heading("Fast path")?;
        paragraph(out, "  ", &fast_path(row))?;
    }
    let interfaces: Vec<&InterfaceRow> = report.interfaces.iter().filter(has_tables).collect();
    for interface in interfaces.iter().take(INTERFACES) {
        print_interface(out, report, interface)?;
    }
    if interfaces.len() > INTERFACES {
        let more = plural((interfaces.len() - INTERFACES) as u64, "more interface");
        writeln!(out, "\n… and {more} (--json lists them)")?;
    }
    stacked(out, report)?;
    cpus(out, report)?;
    unread(out, report)?;
    footer(out, report)
}

pub fn gravest(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    verdict(out, report)?;
    grouped(report).first().map_or(Ok(()), |group| print_finding(out, group))
}

/// Findings that say the same of several interfaces: the first of them, and the names of the others.
struct Group<'r> {
    finding: &'r WordedFinding<'r>,
    remedies: Vec<Rendered<'r>>,
    others: Vec<&'r str>,
}

/// The same fact of the same weight is one finding: machines with a thousand interfaces exist.
fn grouped<'r>(report: &'r Worded<'r>) -> Vec<Group<'r>> {
    let key = |finding: &WordedFinding<'_>| {
        let fact = finding.facts.first().map(std::mem::discriminant);
        (finding.id, finding.severity, finding.certainty, fact, finding.remedies.is_empty())
    };
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (finding, remedies) in remedies::rendered(report) {
        let same = groups.iter_mut().find(|group| key(group.finding) == key(finding));
        match (same, finding.interface.as_deref()) {
            (Some(group), Some(name)) => group.others.push(name),
            _ => groups.push(Group { finding, remedies, others: Vec::new() }),
        }
    }
    groups
}

/// `The same of 1,999 more interfaces: veth1, veth2, veth3 …`
fn the_same_for(others: &[&str]) -> String {
    let names = others.iter().take(FEW).copied().collect::<Vec<_>>().join(", ");
    let more = if others.len() > FEW { " … (--json lists them)" } else { "." };
    format!("The same of {}: {names}{more}", plural(others.len() as u64, "more interface"))
}

fn verdict(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    let style = match report.verdict {
        Verdict::Healthy => GOOD,
        Verdict::Limited => BAD,
        Verdict::Unknown => POOR,
    };
    let is_other = |sentence: &&String| !sentence.starts_with("Also: ");
    for (place, sentence) in report.conclusion.iter().filter(is_other).enumerate() {
        for line in wrapped(&printable(sentence), width(out)) {
            let line = if place == 0 { out.styled(style, line) } else { line };
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn traffic(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    for row in report.traffic.iter().take(ROWS) {
        let stacks = row.stacks.iter().take(STACKS);
        let stacks: Vec<String> = stacks
            .map(|stack| format!("{} {}", stack.stack, Share::of(stack.frames, row.frames).rounded()))
            .collect();
        let text = format!(
            "Traffic sample for {}: {} frames, {}; {}",
            row.interface,
            thousands(row.frames),
            plural(row.flows, "flow"),
            stacks.join(", ")
        );
        paragraph(out, "", &text)?;
    }
    Ok(())
}

fn print_finding(out: &mut Output, group: &Group<'_>) -> io::Result<()> {
    let Group { finding, remedies, others } = group;
    let style = match finding.severity {
        Severity::Critical => BAD,
        Severity::Warning => POOR,
        Severity::Info => QUIET,
    };
    let word = out.styled(style, finding.severity.name());
    let possible = if finding.certainty == Certainty::Possible { ", possible" } else { "" };
    let interface = match finding.interface.as_deref() {
        None => String::new(),
        Some("") => " of the unnamed interface".to_owned(),
        Some(name) => format!(" of {}", printable(name)),
    };
    let id = out.styled(BOLD, finding.id);
    writeln!(out, "\n{word}  {id}  stage {}{interface}{possible}", finding.stage)?;
    paragraph(out, "  ", &finding.explanation)?;
    if !others.is_empty() {
        paragraph(out, "  ", &the_same_for(others))?;
    }
    let most = if finding.id == "insufficient-data" { FEW } else { EVIDENCE };
    evidence(out, finding, "  ", most)?;
    for remedy in remedies {
        print_remedy(out, *remedy)?;
    }
    Ok(())
}

fn evidence(out: &mut Output, finding: &WordedFinding<'_>, indent: &str, most: usize) -> io::Result<()> {
    for evidence in finding.evidence.iter().take(most) {
        let line = out.styled(QUIET, evidence_line(evidence, width(out).saturating_sub(indent.len() + 2)));
        writeln!(out, "{indent}| {line}")?;
    }
    match finding.evidence.len().saturating_sub(most) {
        more if more > 0 && !indent.is_empty() => {
            writeln!(out, "{indent}| … and {} (--json has them)", plural(more as u64, "more line"))
        }
        _ => Ok(()),
    }
}

fn print_remedy(out: &mut Output, remedy: Rendered<'_>) -> io::Result<()> {
    let remedy = match remedy {
        Rendered::Whole(remedy) => remedy,
        Rendered::As { os, id } => return paragraph(out, "  ", &format!("{}: as under {id}", system(os))),
    };
    paragraph(out, "  ", &format!("{}: {}", label(remedy), remedy.what))?;
    for command in remedy.commands {
        let command = out.styled(BOLD, printable(command));
        writeln!(out, "      {command}")?;
    }
    paragraph(out, "    ", &remedy.expected)
}

/// What was read, with the blanks of columns closed up, and where, as far as there is room.
fn evidence_line(evidence: &Evidence, width: usize) -> String {
    let words: Vec<&str> = evidence.text.split_whitespace().collect();
    let from = place(&printable(&evidence.from), width / 2);
    let room = width.saturating_sub(from.chars().count() + 3);
    format!("{}   {from}", shortened(&printable(&words.join(" ")), room))
}

/// Command, file and line in at most `width` characters, of which the command loses first.
fn place(from: &str, width: usize) -> String {
    match from.rsplit_once(" (") {
        Some((command, place)) if from.chars().count() > width && place.chars().count() + 10 < width => {
            format!("{} ({place}", shortened(command, width - place.chars().count() - 2))
        }
        _ => shortened(from, width),
    }
}

/// What stands before a remedy: its system, or that it is a question.
pub fn label<'r>(remedy: &WordedRemedy<'r>) -> &'r str {
    if remedy.is_question { QUESTION } else { system(remedy.os) }
}

pub fn system(os: &str) -> &str {
    match os {
        "linux" => "Linux",
        "freebsd" => "FreeBSD",
        "netbsd" => "NetBSD",
        other => other,
    }
}

pub fn paragraph(out: &mut Output, indent: &str, text: &str) -> io::Result<()> {
    for line in wrapped(&printable(text), width(out).saturating_sub(indent.len())) {
        writeln!(out, "{indent}{line}")?;
    }
    Ok(())
}

fn print_interface(out: &mut Output, report: &Worded<'_>, interface: &InterfaceRow) -> io::Result<()> {
    let vectors: Vec<&VectorRow> =
        report.vectors.iter().filter(|vector| vector.interface == interface.name).collect();
    let name = if interface.name.is_empty() { "unnamed interface" } else { interface.name.as_str() };
    let mut what: Vec<String> = interface.driver.iter().map(|driver| format!("driver {driver}")).collect();
    match (&interface.profile, interface.candidates.as_slice()) {
        (Some(profile), _) => what.push(format!("profile {profile}")),
        (None, []) => {}
        (None, several) => what.push(format!("one of {}", several.join(", "))),
    }
    let what = if what.is_empty() { String::new() } else { format!(" ({})", what.join("; ")) };
    let title = wrapped(&printable(&format!("{name}{what}")), width(out)).join("\n  ");
    out.heading(&title)?;
    if let Some(row) = &interface.steering {
        paragraph(out, "  ", &steering(row))?;
    }
    if !interface.queues.is_empty() {
        let is_counted = interface.queues.iter().any(|queue| queue.packets.is_some());
        let since = if is_counted && !interface.since_start { "between the samples" } else { "since start" };
        queues(out, &interface.queues, since)?;
    }
    matrix(out, &vectors)
}

/// `lan0, wan0, native mode: 97 % of 12,345 packets between the samples; 2 connections in it.`
fn fast_path(row: &FastPathRow) -> String {
    let all = row.slow.values().fold(row.fast, |sum, packets| sum.saturating_add(*packets));
    let when = if row.since_start { "since it is up" } else { "between the samples" };
    let part = match row.fast_share {
        Some(share) => format!("{:.0} % of {}", 100.0 * share, plural(all, "packet")),
        None => "no packet".to_owned(),
    };
    let flows = row.flows.map(|flows| format!("; {} in it", plural(flows, "connection")));
    format!("{}, {} mode: {part} {when}{}.", row.ports.join(", "), row.mode, flows.unwrap_or_default())
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

fn number(value: Option<u64>) -> String {
    value.map_or("?".to_owned(), thousands)
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{}/s", thousands(value.round() as u64)))
}

/// A table of at most [`ROWS`] rows, and how many more there are.
fn table<const N: usize>(
    out: &mut Output,
    (words, head): (usize, [&str; N]),
    rows: impl ExactSizeIterator<Item = [String; N]>,
) -> io::Result<()> {
    let all = rows.len();
    let table = Table::new(words, head).rows(rows.take(ROWS));
    for (at, line) in table.lines(width(out) - 2).into_iter().enumerate() {
        let line = shortened(&line, width(out) - 2);
        let line = if at == 0 { out.styled(QUIET, line) } else { line };
        writeln!(out, "  {line}")?;
    }
    out.more(all, ROWS)
}

fn queues(out: &mut Output, rows: &[QueueRow], since: &str) -> io::Result<()> {
    let row = |row: &QueueRow| {
        let share = row.share.map_or("?".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        [
            row.queue.to_string(),
            number(row.packets),
            share,
            rate(row.per_second),
            number(row.drops),
            String::new(),
        ]
    };
    table(out, (1, ["queue", "frames", "share", "rate", "drops", since]), rows.iter().map(row))
}

/// Vectors × CPUs: the interrupts that each CPU took for each vector.
fn matrix(out: &mut Output, vectors: &[&VectorRow]) -> io::Result<()> {
    const NAME: usize = 24;
    if vectors.is_empty() {
        return Ok(());
    }
    let taken = vectors.iter().flat_map(|vector| vector.per_cpu.iter()).filter(|(_, count)| **count > 0);
    let busy: BTreeSet<u32> = taken.map(|(&cpu, _)| cpu).collect();
    let room = (width(out) - NAME - 14) / 14;
    let cpus: Vec<u32> = busy.iter().copied().take(room).collect();
    let since_start = vectors.iter().any(|vector| vector.since_start);
    let mut head = vec!["interrupts".to_owned()];
    head.extend(cpus.iter().map(|cpu| format!("CPU {cpu}")));
    head.extend(cpus.is_empty().then(|| "all CPUs".to_owned()));
    head.push(if since_start { "since start" } else { "rate" }.to_owned());
    let rows = vectors.iter().take(ROWS).map(|vector| {
        let count = |cpu: &u32| match vector.per_cpu.get(cpu).copied().unwrap_or(0) {
            0 => "·".to_owned(),
            count => thousands(count),
        };
        let mut row = vec![shortened(&printable(&vector.action), NAME)];
        row.extend(cpus.iter().map(count));
        row.extend(cpus.is_empty().then(|| thousands(vector.total)));
        row.push(rate(vector.per_second));
        row
    });
    let table = Table::new(1, head).rows(rows);
    for (at, line) in table.lines(width(out) - 2).into_iter().enumerate() {
        let line = if at == 0 { out.styled(QUIET, line) } else { line };
        writeln!(out, "  {line}")?;
    }
    if busy.len() > cpus.len() {
        writeln!(
            out,
            "  … and {} (--json lists them)",
            plural((busy.len() - cpus.len()) as u64, "more CPU")
        )?;
    }
    out.more(vectors.len(), ROWS)
}

/// Stacked interfaces: what their frames measure, and whether the interfaces below let them in.
fn stacked(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    if report.stacked.is_empty() {
        return Ok(());
    }
    out.heading("Stacked interfaces (bytes; frames with FCS)")?;
    let bytes = |value: Option<u32>| value.map_or("?".to_owned(), |bytes| bytes.to_string());
    let row = |row: &StackedRow| {
        [
            shortened(&printable(&row.name), 15),
            bytes(row.mtu),
            bytes(row.frame_with_fcs),
            yes_or_no(row.fits()).to_owned(),
            yes_or_no(row.pppoe_1500.works).to_owned(),
            lost(row),
            way_down(row),
        ]
    };
    let head = ["interface", "MTU", "frame", "fits", "RFC 4638", "offloads lost", "over"];
    table(out, (1, head), report.stacked.iter().map(row))
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

/// `eth0.100 (0x88a8/100) < eth0`.
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
    let percent = |value: Option<f64>| value.map_or("?".to_owned(), |value| format!("{value:.0} %"));
    let rows = report.per_cpu.iter().map(|row| {
        let counts = [row.net_rx, row.processed, row.dropped, row.time_squeeze].map(number);
        let [net_rx, frames, dropped, squeezed] = counts;
        [row.cpu.to_string(), net_rx, frames, dropped, squeezed, percent(row.busy), percent(row.softirq)]
    });
    table(out, (1, ["CPU", "NET_RX", "frames", "dropped", "squeezed", "busy", "softirq"]), rows)
}

fn unread(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    // What an interface that is not judged refuses, such as ifb0, is of no interest here.
    let is_judged = |row: &&host::Unread| {
        let mut words = row.what.split_whitespace();
        words.next() != Some("ethtool")
            || words.any(|word| report.interfaces.iter().any(|interface| interface.name == word))
    };
    let unread: Vec<&host::Unread> = report.unread.iter().filter(is_judged).collect();
    if unread.is_empty() {
        return Ok(());
    }
    out.heading("Not read")?;
    for row in unread.iter().take(UNREAD) {
        let line = shortened(&printable(&format!("{}: {}", row.what, row.why)), width(out) - 2);
        writeln!(out, "  {line}")?;
    }
    let rest = unread.len().saturating_sub(UNREAD);
    if rest > 0 { writeln!(out, "  … and {rest} more (--json lists them)") } else { Ok(()) }
}

fn footer(out: &mut Output, report: &Worded<'_>) -> io::Result<()> {
    let count = |outcome| report.rules.iter().filter(|row| row.outcome == outcome).count();
    writeln!(out)?;
    let text = format!(
        "{} rules: {} found something, {} are clear, {} lack data, {} do not apply.",
        report.rules.len(),
        count(Outcome::Found),
        count(Outcome::Clear),
        count(Outcome::InsufficientData),
        count(Outcome::DoesNotApply)
    );
    paragraph(out, "", &text)
}

//! A report as text: what it means, then where frames land; with --verbose what the traffic consists of.

use crate::output::{BOLD, GOOD, Output, POOR};
use crate::render::prose;
use explain::Report;
use explain::report::Imbalance;
use format::{Share, plural, printable, shortened, size, thousands};
use std::io::{self, Write};

/// Rows of lists that a capture can make arbitrarily long.
const ROWS: usize = 12;
/// Characters of a stack or of a list of tags.
const LONGEST: usize = 58;
/// Rows of frames that are too long, which the conclusion sums up.
const REFUSED_ROWS: usize = 4;

pub fn print(out: &mut Output, report: &Report, is_verbose: bool) -> io::Result<()> {
    source(out, report)?;
    conclusion(out, report)?;
    bad(out, report)?;
    queues(out, report)?;
    if !is_verbose {
        return Ok(());
    }
    steered(out, report)?;
    stacks(out, report)?;
    facts(out, report)?;
    top_flows(out, report)
}

fn share(part: u64, whole: u64) -> String {
    Share::of(part, whole).to_string()
}

fn source(out: &mut Output, report: &Report) -> io::Result<()> {
    let source = &report.source;
    let files = match source.files.as_slice() {
        [] => "nothing".to_owned(),
        [one] => printable(one),
        [first, rest @ ..] => format!("{} and {} more", printable(first), rest.len()),
    };
    let mut line = format!("{files}: {} frames, {}", thousands(source.frames), size(source.wire_bytes));
    if let Some(seconds) = source.seconds.filter(|seconds| *seconds > 0.0) {
        line += &format!(", {seconds:.3} s");
    }
    writeln!(out, "{}", out.styled(BOLD, line))?;
    let links: Vec<String> =
        source.link_types.iter().map(|(link, frames)| format!("{link} ({})", thousands(*frames))).collect();
    if !matches!(source.link_types.keys().next().map(String::as_str), Some("Ethernet") | None)
        || links.len() > 1
    {
        writeln!(out, "link types: {}", shortened(&links.join(", "), out.width().saturating_sub(12)))?;
    }
    if let Some(sample) = &source.sample {
        out.paragraph("", &format!("{}.", prose::explain::sample(sample)))?;
    }
    for problem in &source.problems {
        writeln!(out, "{}", out.styled(POOR, printable(problem)))?;
    }
    Ok(())
}

/// Stacks under what becomes of them, so that a reason is said once.
fn stacks(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.stacks.is_empty() {
        return Ok(());
    }
    out.heading("Traffic, by what the network card makes of it")?;
    let listed = || report.stacks.iter().take(ROWS);
    let width = listed().map(|row| row.stack.chars().count()).max().unwrap_or(0).min(LONGEST);
    let mut fates: Vec<(&str, &str)> = Vec::new();
    for row in listed() {
        let fate = (row.hash_type.as_str(), row.why.as_str());
        if fates.contains(&fate) {
            continue;
        }
        fates.push(fate);
        let style = if fate.0 == "none" || fate.0 == "unknown" { POOR } else { GOOD };
        let title = match fate.0 {
            "none" => format!("not hashed: {}", fate.1),
            "unknown" => format!("unknown: {}", fate.1),
            hash_type => format!("{hash_type}: {}", fate.1),
        };
        let title = out.styled(style, shortened(&title, out.width().saturating_sub(2)));
        writeln!(out, "  {title}")?;
        for row in listed().filter(|row| (row.hash_type.as_str(), row.why.as_str()) == fate) {
            writeln!(
                out,
                "    {:width$}  {:>11} {:>8}  {:>9}",
                shortened(&row.stack, LONGEST),
                thousands(row.frames),
                share(row.frames, report.source.frames),
                size(row.bytes),
            )?;
        }
    }
    out.more(report.stacks.len(), ROWS)
}

fn facts(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.tags.iter().any(|row| row.tags != "untagged") {
        out.heading("VLAN tags (TPID/VID, outermost first)")?;
        for row in report.tags.iter().take(ROWS) {
            writeln!(
                out,
                "  {:>11} {:>8}  {}",
                thousands(row.frames),
                share(row.frames, report.source.frames),
                shortened(&row.tags, LONGEST)
            )?;
        }
        out.more(report.tags.len(), ROWS)?;
    }
    out.heading("Counts")?;
    let mut line = |name: &str, text: String| writeln!(out, "  {name:<18} {text}");
    let flows = report.flows;
    line(
        "flows",
        format!(
            "{} one-way, {} with both directions as one",
            thousands(flows.unidirectional),
            thousands(flows.bidirectional)
        ),
    )?;
    if !report.pppoe.codes.is_empty() {
        line("PPPoE sessions", thousands(report.pppoe.sessions as u64))?;
        line("PPPoE codes", counts(report.pppoe.codes.iter()))?;
        line("PPP protocols", counts(report.pppoe.ppp.iter()))?;
    }
    let f = report.fragments;
    for (name, first, later) in
        [("IPv4 fragments", f.ipv4_first, f.ipv4_later), ("IPv6 fragments", f.ipv6_first, f.ipv6_later)]
    {
        if first + later > 0 {
            line(name, format!("{} first, {} later", thousands(first), thousands(later)))?;
        }
    }
    if !report.extension_headers.is_empty() {
        line("extension headers", counts(report.extension_headers.iter()))?;
    }
    Ok(())
}

/// Counts by name, as many as fit on a few lines.
fn counts<'a, K: std::fmt::Display + 'a>(items: impl Iterator<Item = (&'a K, &'a u64)>) -> String {
    let mut items = items.map(|(name, frames)| format!("{name} {}", thousands(*frames)));
    let mut text = items.by_ref().take(ROWS).collect::<Vec<_>>().join(", ");
    let more = items.count();
    if more > 0 {
        text += &format!(", … and {more} more");
    }
    text
}

fn bad(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.bad.reasons.is_empty() {
        return Ok(());
    }
    out.heading(&format!(
        "Bad frames: {} truncated, {} malformed",
        report.bad.truncated, report.bad.malformed
    ))?;
    let mut reasons: Vec<_> = report.bad.reasons.iter().collect();
    reasons.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    for (reason, frames) in reasons.iter().take(ROWS) {
        let first = report.bad.first.get(*reason);
        let file = first
            .filter(|_| report.source.files.len() > 1)
            .map(|first| format!(" of {}", printable(&first.file)));
        let (first, file) = (first.map_or(0, |first| first.frame), file.unwrap_or_default());
        writeln!(
            out,
            "  {:>11} {:>8}  {reason} (first: frame {first}{file})",
            thousands(**frames),
            share(**frames, report.source.frames)
        )?;
    }
    if report.bad.cut_by_capture > 0 {
        let frames = thousands(report.bad.cut_by_capture);
        writeln!(out, "  The capture kept too little of {frames} frames; `tcpdump -s 256` keeps enough.")?;
    }
    out.more(reasons.len(), ROWS)
}

/// A bar of `width` characters for a part of a whole, in eighths of a character; never empty for something.
pub fn bar(part: f64, whole: f64, width: usize) -> String {
    let eighths = if whole > 0.0 { (part / whole * 8.0 * width as f64).round() as usize } else { 0 };
    let eighths = eighths.max(usize::from(part > 0.0)).min(8 * width);
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{:width$}", "█".repeat(eighths / 8) + rest)
}

fn bar_width(out: &Output) -> usize {
    out.width().saturating_sub(52).clamp(10, 40)
}

/// A bar for each number with its frames; `largest` fills it, the share is that of `whole`.
pub fn bars(
    out: &mut Output,
    name: &str,
    rows: &[(u16, u64, String)],
    largest: u64,
    whole: u64,
) -> io::Result<()> {
    let width = bar_width(out);
    for (number, frames, note) in rows {
        let bar = bar(*frames as f64, largest as f64, width);
        writeln!(
            out,
            "  {name:<5} {number:<3} {bar} {:>8} {:>12}{note}",
            share(*frames, whole),
            thousands(*frames)
        )?;
    }
    Ok(())
}

fn queues(out: &mut Output, report: &Report) -> io::Result<()> {
    let nic = &report.nic;
    let assumed = if nic.assumed { ", assumed: see --nic" } else { "" };
    out.heading(&format!("Receive queues: {} ({}{assumed})", nic.title, nic.name))?;
    queue_bars(out, report, busiest(report))?;
    for dropped in report.admission.dropped.iter().take(REFUSED_ROWS) {
        let text = format!(
            "{} of {}, longer than {} bytes: would be dropped",
            plural(dropped.frames, "frame"),
            shortened(&dropped.stack, LONGEST),
            dropped.limit
        );
        let text = out.styled(POOR, text);
        writeln!(out, "  {text}")?;
    }
    Ok(())
}

/// A bar for every receive queue; `full` frames fill it.
pub fn queue_bars(out: &mut Output, report: &Report, full: u64) -> io::Result<()> {
    let rows: Vec<_> = report
        .queues
        .iter()
        .map(|queue| (queue.queue, queue.frames, format!("  {}", plural(queue.flows, "flow"))))
        .collect();
    bars(out, "queue", &rows, full, report.source.frames)?;
    let unknown = report.nic.unplaced;
    if unknown > 0 {
        let width = bar_width(out);
        let bar = bar(unknown as f64, full as f64, width);
        let (share, frames) = (share(unknown, report.source.frames), thousands(unknown));
        let text = format!("queue ?   {bar} {share:>8} {frames:>12}  unknown");
        let text = out.styled(POOR, text);
        writeln!(out, "  {text}")?;
    }
    if !report.is_mostly_placed() {
        return Ok(());
    }
    let of = if report.placed() < report.received() { ", of the frames whose queue is known" } else { "" };
    let parts = format!("queues of {}{of}", report.queues.len());
    let Imbalance { max_over_mean, effective_queues } = report.imbalance;
    judged(out, max_over_mean, effective_queues, report.queues.len(), &parts)
}

/// The longest bar of both charts, so that they can be compared.
fn busiest(report: &Report) -> u64 {
    let queues = report.queues.iter().map(|queue| queue.frames).chain([report.nic.unplaced]);
    queues.chain(report.steered.per_cpu.iter().map(|cpu| cpu.frames)).max().unwrap_or(0)
}

/// `parts` parts, and what they are of how many.
fn judged(out: &mut Output, max_over_mean: f64, effective: f64, parts: usize, of: &str) -> io::Result<()> {
    if effective == 0.0 {
        return Ok(());
    }
    let style = if effective >= 0.75 * parts as f64 { GOOD } else { POOR };
    let text = format!("busiest {max_over_mean:.2} × mean, {effective:.2} effective {of}");
    let text = out.styled(style, text);
    writeln!(out, "  {text}")
}

fn steered(out: &mut Output, report: &Report) -> io::Result<()> {
    out.heading(&format!("With steering by the inner header over {} CPUs", report.steered.cpus))?;
    cpu_bars(out, report, busiest(report))
}

/// A bar for every CPU that steering would use; `full` frames fill it.
pub fn cpu_bars(out: &mut Output, report: &Report, full: u64) -> io::Result<()> {
    let steered = &report.steered;
    let rows: Vec<_> = steered.per_cpu.iter().map(|cpu| (cpu.cpu, cpu.frames, String::new())).collect();
    bars(out, "CPU", &rows, full, report.source.frames)?;
    let parts = format!("CPUs of {}", rows.len());
    judged(out, steered.max_over_mean, steered.effective_queues, rows.len(), &parts)
}

fn top_flows(out: &mut Output, report: &Report) -> io::Result<()> {
    if report.top_flows.is_empty() {
        return Ok(());
    }
    out.heading("Largest flows")?;
    for row in report.top_flows.iter().take(5) {
        let queue = row.queue.map_or("?".to_owned(), |queue| queue.to_string());
        let figures = format!(
            "  {:>9} {:>8}  queue {queue:<3} CPU {:<3} {}",
            size(row.bytes),
            share(row.bytes, report.source.wire_bytes),
            row.cpu,
            row.protocol
        );
        // Two IPv6 addresses seldom fit next to the figures.
        let fits = figures.chars().count() + 1 + row.flow.chars().count() <= out.width();
        writeln!(out, "{figures}{}{}", if fits { " " } else { "\n      " }, row.flow)?;
    }
    Ok(())
}

fn conclusion(out: &mut Output, report: &Report) -> io::Result<()> {
    writeln!(out)?;
    let conclusion = crate::render::prose::explain::conclusion(report);
    conclusion.iter().try_for_each(|sentence| out.paragraph("  ", sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fit_and_never_vanish() {
        for part in [0.0, 1.0, 499.0, 500.0, 1000.0] {
            assert_eq!(bar(part, 1000.0, 20).chars().count(), 20, "{part}");
        }
        assert!(bar(1.0, 1e6, 20).starts_with('▏'));
        assert_eq!(bar(0.0, 1000.0, 20).trim(), "");
        assert_eq!(bar(0.0, 0.0, 20).trim(), "");
    }
}

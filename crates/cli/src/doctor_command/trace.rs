//! Where packets were dropped and CPU time went, as text and on the page.

use crate::output::{Output, QUIET};
use crate::page::table::{figures, first, table, words};
use crate::render::prose::trace::{meaning, not_opened};
use format::{Table, plural, printable, printable_up_to, shortened, thousands, wrapped};
use host::trace::{CpuRow, CpuTime, DropCounter, DropReason, Drops, FunctionRow, Place, Trace};
use maud::{Markup, html};
use std::io::{self, Write};

/// Rows of a table without `--verbose`, and with it; `--json` has all.
const FEW: usize = 3;
const MOST: usize = 24;
/// A function with a smaller part of a CPU is left out.
const LITTLE: f64 = 0.005;

/// Prints a trace in lines of at most `width` characters: a dozen lines without `--verbose`.
pub fn print(out: &mut Output, trace: &Trace, width: usize, is_verbose: bool) -> io::Result<()> {
    let screen = Screen { width: width - 2, is_verbose };
    if let Some(found) = &trace.drops {
        screen.drops(out, found, trace.seconds)?;
    }
    if is_verbose {
        screen.counters(out, &trace.counters)?;
    } else {
        screen.counters_in_short(out, &trace.counters)?;
    }
    if let Some(time) = &trace.cpu_time {
        screen.cpus(out, time)?;
    }
    for lacking in &trace.not_opened {
        screen.paragraph(out, &format!("Not opened: {}", not_opened(lacking)))?;
    }
    Ok(())
}

struct Screen {
    width: usize,
    is_verbose: bool,
}

impl Screen {
    const fn most(&self, few: usize) -> usize {
        if self.is_verbose { MOST } else { few }
    }

    fn drops(&self, out: &mut Output, drops: &Drops, seconds: f64) -> io::Result<()> {
        let (packets, reasons) = (plural(drops.packets, "packet"), drops.reasons.len());
        let of = if reasons > FEW { format!(", {reasons} reasons") } else { String::new() };
        out.heading(&format!(
            "Dropped by the kernel in {seconds:.1} s, on the whole machine: {packets}{of}"
        ))?;
        let unspecified = drops.without_reason.as_ref().filter(|_| self.is_verbose);
        let rows: Vec<&DropReason> = drops.reasons.iter().take(self.most(FEW)).chain(unspecified).collect();
        let cells = rows.iter().map(|row| {
            [
                row.reason.clone(),
                row.stage.unwrap_or("?").to_owned(),
                thousands(row.packets),
                rate(row.packets, seconds),
                place(row, self.is_verbose),
            ]
        });
        self.table(out, Table::new(2, ["reason", "stage", "packets", "rate"]).rows(cells), rows.len())?;
        self.more(out, reasons.saturating_sub(self.most(FEW)), "more reason")?;
        if drops.lost > 0 {
            writeln!(out, "  {} came too fast to be counted", plural(drops.lost, "event"))?;
        }
        Ok(())
    }

    fn counters(&self, out: &mut Output, counters: &[DropCounter]) -> io::Result<()> {
        if counters.is_empty() {
            return Ok(());
        }
        out.heading("Counters of lost packets that rose")?;
        let rows = counters.iter().take(MOST).map(|row| {
            [kept_in(row.place).to_owned(), of(row), printable(&row.counter), thousands(row.packets)]
        });
        self.table(out, Table::new(3, ["kept in", "of", "counter", "packets"]).rows(rows), counters.len())?;
        self.more(out, counters.len().saturating_sub(MOST), "more counter")
    }

    fn counters_in_short(&self, out: &mut Output, counters: &[DropCounter]) -> io::Result<()> {
        let row = |row: &DropCounter| {
            let (of, counter) = (of(row), printable(&row.counter));
            format!("{} {of} {counter} by {}", kept_in(row.place), thousands(row.packets))
        };
        let mut rows: Vec<String> = counters.iter().take(FEW).map(row).collect();
        match counters.len().saturating_sub(FEW) {
            0 => {}
            more => rows.push(format!("{more} more")),
        }
        if rows.is_empty() {
            Ok(())
        } else {
            self.paragraph(out, &format!("Counters rose: {}", rows.join("; ")))
        }
    }

    fn cpus(&self, out: &mut Output, time: &CpuTime) -> io::Result<()> {
        let busiest = busiest(time);
        if self.is_verbose {
            out.heading(&format!("CPU time ({} samples a second of each CPU)", time.hertz))?;
            let rows = busiest.iter().take(MOST).map(|row| {
                let [idle, user, kernel] = [row.idle, row.user, row.kernel].map(percent);
                [row.cpu.to_string(), idle, user, kernel, stages(row)]
            });
            self.table(out, Table::new(1, ["CPU", "idle", "user", "kernel"]).rows(rows), busiest.len())?;
            self.more(out, busiest.len().saturating_sub(MOST), "more CPU")?;
            writeln!(out)?;
        } else if let Some(row) = busiest.first() {
            let [idle, user, kernel] = [row.idle, row.user, row.kernel].map(percent);
            out.heading(&format!("Busiest CPU, {}: idle {idle}, user {user}, kernel {kernel}", row.cpu))?;
            self.paragraph(out, &stages(row))?;
        }
        self.functions(out, time)?;
        if time.lost > 0 {
            writeln!(out, "  {} came too fast to be counted", plural(time.lost, "sample"))?;
        }
        Ok(())
    }

    fn functions(&self, out: &mut Output, time: &CpuTime) -> io::Result<()> {
        let functions = functions(time);
        let rows: Vec<_> = functions.iter().take(self.most(FEW)).collect();
        let cells = rows.iter().map(|(cpu, row)| {
            [
                function(row),
                row.stage.unwrap_or("").to_owned(),
                cpu.to_string(),
                percent(row.share),
                work(row),
            ]
        });
        self.table(out, Table::new(2, ["function", "stage", "CPU", "share"]).rows(cells), rows.len())?;
        self.more(out, functions.len() - rows.len(), "more function")
    }

    /// A table; without `--verbose` every row is one line.
    fn table(&self, out: &mut Output, table: Table, rows: usize) -> io::Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let width = if self.is_verbose { self.width } else { usize::MAX };
        for (at, line) in table.lines(width).into_iter().enumerate() {
            let line = shortened(&line, self.width);
            let line = if at == 0 { out.styled(QUIET, line) } else { line };
            writeln!(out, "  {line}")?;
        }
        Ok(())
    }

    fn paragraph(&self, out: &mut Output, text: &str) -> io::Result<()> {
        wrapped(text, self.width)
            .iter()
            .filter(|line| !line.is_empty())
            .try_for_each(|line| writeln!(out, "  {line}"))
    }

    /// Rows that are left out of a full table.
    fn more(&self, out: &mut Output, rows: usize, noun: &str) -> io::Result<()> {
        if rows > 0 && self.is_verbose {
            writeln!(out, "  … and {} (--json lists them)", plural(rows as u64, noun))?;
        }
        Ok(())
    }
}

/// The CPUs with the least idle time first.
fn busiest(time: &CpuTime) -> Vec<&CpuRow> {
    let mut rows: Vec<&CpuRow> = time.cpus.iter().collect();
    rows.sort_by(|a, b| a.idle.total_cmp(&b.idle));
    rows
}

/// Functions of all CPUs with the largest part of a CPU first.
fn functions(time: &CpuTime) -> Vec<(u32, &FunctionRow)> {
    let mut rows: Vec<(u32, &FunctionRow)> = time
        .cpus
        .iter()
        .flat_map(|cpu| cpu.functions.iter().map(|row| (cpu.cpu, row)))
        .filter(|(_, row)| row.share >= LITTLE)
        .collect();
    rows.sort_by(|(_, a), (_, b)| b.share.total_cmp(&a.share));
    rows
}

/// `poll 40 %, deliver 30 %`.
fn stages(row: &CpuRow) -> String {
    let stages = row.stages.iter().filter(|stage| stage.share >= LITTLE);
    stages.map(|stage| format!("{} {}", stage.stage, percent(stage.share))).collect::<Vec<_>>().join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn rate(packets: u64, seconds: f64) -> String {
    if seconds > 0.0 {
        format!("{}/s", thousands((packets as f64 / seconds).round() as u64))
    } else {
        String::new()
    }
}

/// What a reason means, and, always in full, the function that dropped most.
fn place(row: &DropReason, in_full: bool) -> String {
    let meaning = meaning(&row.reason).map(str::to_owned);
    let function = row.functions.first().filter(|_| in_full || meaning.is_none());
    let function = function.map(|function| format!("in {}", printable(&function.name)));
    let parts = [meaning, function];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn function(row: &FunctionRow) -> String {
    let module = row.module.as_deref().map_or(String::new(), |module| format!(" [{module}]"));
    printable(&format!("{}{module}", row.function))
}

/// `lock of sch_direct_xmit`.
fn work(row: &FunctionRow) -> String {
    let work = row.work.unwrap_or_default();
    row.caller.as_deref().map_or(work.to_owned(), |caller| format!("{work} taken by {}", printable(caller)))
}

const fn kept_in(place: Place) -> &'static str {
    match place {
        Place::Driver => "ethtool -S",
        Place::Interface => "ip -s link",
        Place::Softnet => "softnet_stat",
        Place::Qdisc => "tc -s qdisc",
        Place::Conntrack => "nf_conntrack",
    }
}

fn of(row: &DropCounter) -> String {
    row.of.as_deref().map_or("all".to_owned(), printable)
}

/// The section of the page.
pub fn section(trace: &Trace) -> Markup {
    html! {
        @if let Some(drops) = &trace.drops { (drop_section(drops, trace.seconds)) }
        @if !trace.counters.is_empty() {
            section {
                h2 { "Counters of lost packets that rose" }
                p.intro { "One packet can be counted at several places." }
                (table(&[words("kept in"), words("of"), words("counter"), figures("packets")], trace.counters.iter().take(MOST).map(|row| {
                    vec![html! { (kept_in(row.place)) }, html! { bdi { (of(row)) } }, html! { bdi { (printable(&row.counter)) } },
                         html! { (thousands(row.packets)) }]
                })))
            }
        }
        @if let Some(time) = &trace.cpu_time { (cpu_section(time)) }
        @if !trace.not_opened.is_empty() {
            section {
                h2 { "Not opened" }
                ul.problems { @for lacking in &trace.not_opened { li { (printable_up_to(&not_opened(lacking), 300)) } } }
            }
        }
    }
}

fn drop_section(drops: &Drops, seconds: f64) -> Markup {
    let columns =
        [words("reason"), words("stage"), words("where"), figures("packets"), figures("packets a second")];
    let rows = drops.reasons.iter().chain(&drops.without_reason).take(MOST);
    html! {
        section {
            h2 { "Packets that the kernel dropped" }
            p.intro { "On the whole machine, by the kernel's own reason (tracepoint skb:kfree_skb): "
                (plural(drops.packets, "packet")) " in " (format!("{seconds:.1}")) " s." }
            (table(&columns, rows.map(|row| vec![
                html! { code { (printable(&row.reason)) } },
                html! { (row.stage.unwrap_or("?")) },
                html! { bdi { (place(row, true)) } },
                html! { (thousands(row.packets)) },
                html! { (rate(row.packets, seconds)) },
            ])))
        }
    }
}

fn cpu_section(time: &CpuTime) -> Markup {
    let all = functions(time);
    let (listed, rest) = first(&all, MOST);
    let cpus = [words("CPU"), figures("idle"), figures("user"), figures("kernel"), words("stages")];
    let columns = [words("function"), words("stage"), words("work"), figures("CPU"), figures("share")];
    html! {
        section {
            h2 { "Where CPU time went" }
            p.intro { (time.hertz) " samples a second of each CPU. A function counts for the stage that called it." }
            (table(&cpus, busiest(time).into_iter().take(MOST).map(|row| vec![
                html! { (row.cpu) }, html! { (percent(row.idle)) }, html! { (percent(row.user)) }, html! { (percent(row.kernel)) },
                html! { (stages(row)) },
            ])))
            (table(&columns, listed.iter().map(|(cpu, row)| vec![
                html! { code { (function(row)) } }, html! { (row.stage.unwrap_or("")) }, html! { bdi { (work(row)) } },
                html! { (cpu) }, html! { (percent(row.share)) },
            ])))
            @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " functions more" } }
        }
    }
}

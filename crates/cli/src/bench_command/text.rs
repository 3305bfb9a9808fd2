//! Results as text.

use crate::output::Output;
use crate::steer_command::item;
use crate::top_command::table::share;
use bench::report::{Interval, Run};
use format::{Table, UNKNOWN, compact, thousands};
use serde_json::Value;
use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    Datagrams,
    Frames,
    /// Datagrams that arrive: with their loss.
    Sink,
}

/// A line for a second, behind the heading where it is the first.
pub fn second(out: &mut Output, interval: &Interval, of: Of, is_first: bool) -> io::Result<()> {
    let of_sink = of == Of::Sink;
    if is_first {
        let bytes = if of == Of::Frames { "frame bit/s" } else { "payload bit/s" };
        let of_sink = if of_sink { format!(" {:>11} {:>11}", "lost", "reordered") } else { String::new() };
        writeln!(out, "{:>8} {:>13} {:>15} {:>15}{of_sink}", "seconds", "packets/s", "wire bit/s", bytes)?;
    }
    let of_sink = if of_sink {
        let signed = |count: i64| {
            let sign = if count < 0 { "-" } else { "" };
            format!("{sign}{}", thousands(count.unsigned_abs()))
        };
        let lost = interval.lost.map_or_else(|| "unknown".to_owned(), signed);
        let reordered = interval.reordered.map_or_else(|| "unknown".to_owned(), thousands);
        format!(" {lost:>11} {reordered:>11}")
    } else {
        String::new()
    };
    writeln!(
        out,
        "{:>8.1} {:>13} {:>15} {:>15}{of_sink}",
        interval.at.as_secs_f64(),
        thousands(interval.pps.round() as u64),
        compact(Some(interval.bits_per_second)),
        compact(Some(interval.payload_bits_per_second)),
    )?;
    out.flush()
}

pub fn summary(out: &mut Output, run: &Run<Value>, noun: &str) -> io::Result<()> {
    out.heading("Summary")?;
    let in_flows = match run.flows {
        Some(1) => " in 1 flow".to_owned(),
        Some(flows) if flows > 0 => format!(" in {} flows", thousands(flows)),
        _ => String::new(),
    };
    // A sink waits before the first and behind the last, which is no part of its rates.
    let is_sink = run.foreign.is_some();
    let listening = if is_sink { " of listening" } else { "" };
    let between = if is_sink && run.pps.is_some() { ", from the first that came to the last" } else { "" };
    let seconds = run.seconds.as_secs_f64();
    item(out, "packets", &format!("{} {noun}{in_flows}, {seconds:.1} s{listening}", thousands(run.packets)))?;
    let held = match run.rate_held {
        Some(true) => ", the rate was held",
        Some(false) => ", the rate was not held",
        None => "",
    };
    let pps = run.pps.map_or_else(|| UNKNOWN.to_owned(), |pps| thousands(pps.round() as u64));
    item(out, "rate", &format!("{pps} packets/s{held}{between}"))?;
    let of_line = match (run.line_rate, run.line_share) {
        (Some(line), Some(part)) => format!(", {} of {}bit/s", share(Some(part)), spaced(line as f64)),
        _ => String::new(),
    };
    let wire = run.bits_per_second.map_or_else(|| format!("{UNKNOWN} "), spaced);
    let payload = run.payload_bits_per_second.map_or_else(|| format!("{UNKNOWN} "), spaced);
    let (what, without) = if run.name == "frames" { ("frames", " without FCS") } else { ("payload", "") };
    item(out, "on the wire", &format!("{wire}bit/s{of_line}; {what} {payload}bit/s{without}"))?;
    of_sink(out, run)?;
    for (reason, count) in &run.errors {
        let meaning = match *reason {
            "refused" => {
                "times it was answered that nobody listens there; hosts limit such answers, so more may have met nobody"
            }
            "unreachable" => "times it was answered that there is no way",
            "no-room" if run.name == "frames" => {
                "frames not sent: the interface's queue stays full, or the other end of a veth pair drops them"
            }
            "no-room" => "times that a queue had no room",
            _ => "due and not sent, this machine being too slow for the rate",
        };
        item(out, reason, &format!("{} {meaning}", thousands(*count)))?;
    }
    machine(out, run)
}

/// `1.20 G`, so that a unit can follow.
fn spaced(value: f64) -> String {
    let text = compact(Some(value));
    match text.strip_suffix(['k', 'M', 'G', 'T']) {
        Some(digits) => format!("{digits} {}", text.get(digits.len()..).unwrap_or_default()),
        None => format!("{text} "),
    }
}

fn of_sink(out: &mut Output, run: &Run<Value>) -> io::Result<()> {
    let Some(foreign) = run.foreign else { return Ok(()) };
    match (run.lost, run.loss) {
        (Some(lost), Some(loss)) => {
            let at_least = if run.loss_is_complete == Some(true) { "" } else { "at least " };
            item(
                out,
                "lost",
                &format!("{at_least}{} of what was sent, {}", thousands(lost), share(Some(loss))),
            )?;
        }
        _ => item(out, "lost", "unknown: no datagram had a number")?,
    }
    let mut counted = |label: &str, count: Option<u64>, meaning: &str| match count {
        Some(count) if count > 0 => item(out, label, &format!("{} {meaning}", thousands(count))),
        _ => Ok(()),
    };
    counted(
        "before",
        run.before_first,
        "sent before the first that came: lost, or sent before anybody listened",
    )?;
    counted(
        "too late",
        run.too_late,
        "more than 4,096 behind; whether they came before is unknown, they count as lost",
    )?;
    counted("duplicates", run.duplicates, "came again")?;
    counted("no number", run.unnumbered, "of tests with payloads too short for a number")?;
    counted("foreign", Some(foreign), "of nobody's test")?;
    counted("dropped", run.socket_drops, "for which the sockets had no room")?;
    if run.by_thread.len() > 1 {
        let each: Vec<String> = run.by_thread.iter().map(|packets| thousands(*packets)).collect();
        item(out, "threads", &each.join("; "))?;
    }
    if let Some(reordered) = run.reordered {
        item(out, "reordered", &thousands(reordered))?;
    }
    Ok(())
}

fn machine(out: &mut Output, run: &Run<Value>) -> io::Result<()> {
    if let Some(interrupts) = run.interrupts_per_second {
        item(out, "interrupts", &format!("{}/s of the interface", thousands(interrupts.round() as u64)))?;
    }
    if !run.cpu.is_empty() {
        let of_sink = run.foreign.is_some();
        out.heading(if of_sink {
            "CPUs in the seconds in which packets came, per cent"
        } else {
            "CPUs while packets went, per cent"
        })?;
        let rows = run.cpu.iter().map(|cpu| {
            let parts = [Some(cpu.user), Some(cpu.system), cpu.softirq, Some(cpu.interrupt), Some(cpu.idle)];
            let parts = parts.map(|part| part.map_or(UNKNOWN.to_owned(), |part| format!("{part:.1}")));
            [cpu.cpu.to_string()].into_iter().chain(parts)
        });
        out.table(&Table::new(0, ["CPU", "user", "system", "softirq", "irq", "idle"]).rows(rows))?;
    }
    if run.queues.is_empty() {
        return Ok(());
    }
    out.heading("Receive queues of the interface")?;
    let rows = run.queues.iter().map(|row| [row.queue.to_string(), thousands(row.frames), share(row.share)]);
    out.table(&Table::new(0, ["queue", "frames", "share"]).rows(rows))
}

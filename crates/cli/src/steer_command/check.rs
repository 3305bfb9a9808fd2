//! `rxlane steer check`.

use super::prose;
use super::{
    BAD, BOLD, GOOD, POOR, QUIET, StateArguments, SteeringArguments, item, percent, rate, with_progress,
};
use crate::arguments::seconds;
use crate::output::{CommandResult, Lacks, Outcome, Output};
use crate::physical;
use anstyle::Style;
use format::{printable, quoted, thousands};
use std::io::{self, Write};
use std::time::Duration;
use steer::check::{Check, Known, Request};
use steer::classes::ClassRow;
use steer::error::Error;
use steer::facts::Level;
use steer::recommend::Answer;
use steer::{check, expected, observation, status, up};

#[derive(clap::Args)]
#[command(after_help = "\
Exit codes: 0 steering is possible and worth it, 1 it would not help, cannot be done as asked, is done already, or \
nobody knows, 3 the kernel or the driver lacks something.\n\n\
Examples:\n  \
rxlane steer check enp1s0\n  \
rxlane steer check enp1s0 --seconds 10 --json")]
pub struct CheckArguments {
    #[command(flatten)]
    request: SteeringArguments,
    /// Time to sample counters and traffic, seconds.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value = "3", value_parser = seconds(0.0, 3600.0))]
    seconds: Duration,
    /// Print JSON (schema rxlane.steer-check/1).
    #[arg(long)]
    json: bool,
    /// Also print all that was checked, the receive queues, the classes of frames, and what the expectation rests on.
    #[arg(long, conflicts_with = "json")]
    verbose: bool,
    #[command(flatten)]
    state: StateArguments,
}

/// What the rows of ways rest on.
const COUNTED: &str = "Counted with igb, PPPoE and 16 TCP connections on Linux 7.3 (docs/measurements/kernel-paths.md), the fast path on \
                       6.12 (docs/measurements/fastpath.md), and computed for the CPUs of this machine and the flows of the sample.";
/// What a flowtable does besides.
const FLOWTABLE: &str = "LAN stands for the devices of the other ports, physical ones, not ppp0 or a bridge. What the flowtable \
                         passes goes by shapers (SQM, CAKE) and counters of rules; `nft delete table inet rxlane` ends it. On OpenWrt: \
                         `uci set firewall.@defaults[0].flow_offloading=1; uci commit firewall; service firewall restart`.";
/// What the fast path does besides.
const FASTPATH: &str = "LAN stands for the other ports. Packets of established connections go past shapers (SQM, CAKE), rules and \
                        counters; the first command names those of this machine, and changes nothing. `rxlane fastpath down` ends it.";
/// Rows of lists that a machine can make long.
const ROWS: usize = 32;
/// Time over which the rates of an interface that is steered are taken.
const RATES: Duration = Duration::from_secs(1);

impl CheckArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let mut arguments = self.request;
        arguments.interface = physical::meant(&arguments.interface, &self.state.folder())?;
        let checked = arguments.request().and_then(|request| {
            Ok((with_progress(|progress| observe(&request, self.seconds, progress))?, request))
        });
        let (mut check, request) = checked?;
        if check.steered {
            let interval = self.seconds.min(RATES);
            check.status = Some(status::status(&request.interface, interval, &self.state.records())?);
        }
        out.show(self.json, &check, |out, check| print(out, check, &request, self.verbose))?;
        if check.lacks() {
            out.flush()?;
            let stops: Vec<&str> = check.stops().map(|fact| fact.text.as_str()).collect();
            return Err(Lacks(stops.join("; ")).into());
        }
        Ok(if check.is_yes() { Outcome::Success } else { Outcome::Negative })
    }
}

fn observe(
    request: &Request,
    interval: Duration,
    progress: &mut dyn FnMut(host::live::Progress),
) -> Result<Check, Error> {
    let name = request.interface.parse()?;
    let (_, known): (_, Known) = up::known(&name)?;
    let observation = observation::observe(&name, interval, progress)?;
    let checked = check::check(request, &observation, &known)?;
    let expected = expected::expected(request, &observation, &known, &checked)?;
    let mut check = Check { expected, ..checked.check };
    prose::complete(&mut check);
    Ok(check)
}

fn print(out: &mut Output, check: &Check, request: &Request, verbose: bool) -> io::Result<()> {
    verdict(out, check)?;
    if let Some(status) = &check.status {
        writeln!(out)?;
        return super::status::print(out, status);
    }
    facts(out, check, verbose)?;
    if verbose {
        queues(out, check)?;
        classes(out, &check.classes)?;
        targets(out, check)?;
    }
    kernel_way(out, check)?;
    ways(out, check, verbose)?;
    expected(out, check, verbose)?;
    for remark in &check.remarks {
        writeln!(out)?;
        out.paragraph("", &printable(remark))?;
    }
    if check.possible
        && matches!(
            check.recommendation.answer,
            Answer::Steer | Answer::Rps | Answer::Unknown | Answer::Steered
        )
    {
        writeln!(out)?;
        let command = format!("rxlane steer up {} --dry-run", quoted(&request.interface));
        let command = out.styled(BOLD, command);
        writeln!(out, "{command} shows exactly what would be done.")?;
    }
    Ok(())
}

fn verdict(out: &mut Output, check: &Check) -> io::Result<()> {
    let device: Vec<String> = [
        check.driver.as_ref().map(|driver| format!("driver {driver}")),
        check.profile.as_ref().map(|profile| format!("profile {profile}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    let device = if device.is_empty() { String::new() } else { format!(" ({})", device.join("; ")) };
    let name = format!("{}{}", printable(&check.interface), printable(&device));
    if let Some(place) = check.stops().find(|fact| fact.about == "place") {
        let cannot = out.styled(BAD, "not here");
        writeln!(out, "{name}: {cannot}")?;
        return out.paragraph("  ", &printable(&place.text));
    }
    let style = match check.recommendation.answer {
        Answer::Steer | Answer::Steered | Answer::Kernel | Answer::Fastpath => GOOD,
        Answer::Rps | Answer::Unknown => POOR,
        Answer::Nothing => BOLD,
    };
    let answer = out.styled(style, check.recommendation.answer.words());
    writeln!(out, "{name}: {answer}")?;
    for reason in &check.recommendation.reasons {
        out.paragraph("  ", &printable(reason))?;
    }
    let stops: Vec<&str> = check.stops().map(|fact| fact.about).collect();
    if !stops.is_empty() {
        let text = format!("As asked steering is not possible here: see {} below.", stops.join(", "));
        writeln!(out, "{}", out.styled(BAD, text))?;
    }
    Ok(())
}

/// What was checked: all of it, or what is not as it should be.
fn facts(out: &mut Output, check: &Check, verbose: bool) -> io::Result<()> {
    if verbose {
        out.heading("What there is")?;
    }
    for fact in check.facts.iter().filter(|fact| verbose || fact.level != Level::Good) {
        let word = match fact.level {
            Level::Good => out.styled(GOOD, "ok"),
            Level::Note => out.styled(POOR, "note"),
            Level::Stops => out.styled(BAD, "no"),
            Level::Unknown => out.styled(POOR, "?"),
        };
        let plain = match fact.level {
            Level::Good => 2,
            Level::Note => 4,
            Level::Stops => 2,
            Level::Unknown => 1,
        };
        let lead = format!("  {:12}{word}{:pad$}", fact.about, "", pad = 6 - plain);
        out.hanging(&lead, 20, &printable(&fact.text), Style::new())?;
        if let Some(from) = fact.from.as_ref().filter(|_| verbose) {
            let from = out.styled(QUIET, printable(from));
            writeln!(out, "  {:18}{from}", "")?;
        }
    }
    Ok(())
}

fn queues(out: &mut Output, check: &Check) -> io::Result<()> {
    if check.queues.is_empty() {
        return Ok(());
    }
    out.heading("Receive queues")?;
    let since = check.queues.iter().any(|row| row.frames.is_some() && row.per_second.is_none());
    let when = if since { "since start" } else { "" };
    let line = out.styled(QUIET, format!("  queue          frames          rate  vector  CPU   {when}"));
    writeln!(out, "{}", line.trim_end())?;
    for row in check.queues.iter().take(ROWS) {
        let line = format!(
            "  {:<5} {:>15} {:>13}  {:<6}  {}",
            row.queue,
            row.frames.map_or("?".to_owned(), thousands),
            row.per_second.map_or("?".to_owned(), |per_second| rate(Some(per_second))),
            row.vector.as_deref().unwrap_or("-"),
            if row.cpus.is_empty() { "-".to_owned() } else { steer::facts::list(&row.cpus) }
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    out.more(check.queues.len(), ROWS)?;
    if check.queues.iter().all(|row| row.frames.is_none()) {
        let veth = match check.driver.as_deref() {
            Some("veth") => {
                "; an end of a veth pair counts frames while GRO is on there, or a program attached"
            }
            _ => "",
        };
        out.paragraph("  ", &format!("what each queue takes is not counted{veth}"))?;
    }
    for row in check.receiving.iter().take(ROWS) {
        // Without a frame, vectors show where one would come in.
        if check.frames == Some(0) {
            writeln!(out, "  CPU {} receives where frames come: none came in during the look", row.cpu)?;
            continue;
        }
        let load = match (row.receiving, row.idle) {
            (Some(receiving), Some(idle)) => format!(", {receiving:.0} % of its time; idle {idle:.0} %"),
            (None, Some(idle)) => format!("; idle {idle:.0} %"),
            _ => String::new(),
        };
        writeln!(out, "  CPU {} receives {} of the frames{load}", row.cpu, percent(Some(row.share)))?;
    }
    if let Some(sample) = check.sample.filter(|sample| sample.frames > 0) {
        let text = format!(
            "sample of {:.1} s: {}, {}; distributed by inner flow: equivalent to {:.1} evenly loaded CPUs",
            sample.seconds,
            format::plural(sample.frames, "frame"),
            format::plural(sample.flows, "flow"),
            sample.worth
        );
        out.paragraph("  ", &text)?;
    }
    Ok(())
}

fn classes(out: &mut Output, rows: &[ClassRow]) -> io::Result<()> {
    out.heading("Classes of frames")?;
    writeln!(out, "{}", out.styled(QUIET, "  class   steered   traffic   spread by the device"))?;
    for row in rows {
        let spread = match row.spread {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let steered = format!("{:7}", if row.selected { "yes" } else { "-" });
        let steered = if row.selected { out.styled(GOOD, steered) } else { steered };
        let text = printable(&format!("{spread:<4}{}", row.why));
        let lead = format!("  {:6}  {steered}   {:>7}   ", row.class, percent(row.share));
        out.hanging(&lead, 30, &text, Style::new())?;
    }
    Ok(())
}

/// What the model expects, where a CPU is to be relieved.
fn expected(out: &mut Output, check: &Check, verbose: bool) -> io::Result<()> {
    let is_recommended = matches!(check.recommendation.answer, Answer::Steer | Answer::Rps);
    let Some(expected) = check.expected.as_ref().filter(|_| is_recommended) else { return Ok(()) };
    out.heading("Packets a second without loss, as the model expects")?;
    let row = |name: &str, times: Option<f64>, per_second: Option<f64>| {
        let times = times.map_or("unknown".to_owned(), |times| format!("{times:.1} times"));
        let line = format!(
            "  {name:<10}{times:>11}{:>16}",
            per_second.map_or(String::new(), |found| rate(Some(found)))
        );
        line.trim_end().to_owned()
    };
    writeln!(out, "{}", row("nothing", Some(1.0), expected.packets_per_second))?;
    for (name, gain) in [("RPS", expected.rps), ("steering", expected.steer)] {
        let per_second = gain.and_then(|gain| gain.packets_per_second);
        writeln!(out, "{}", row(name, gain.map(|gain| gain.times), per_second))?;
    }
    match verbose {
        true => out.paragraph("  ", &printable(&expected.assumptions.join(" "))),
        false => Ok(()),
    }
}

/// The commands of what there is instead of steering.
fn kernel_way(out: &mut Output, check: &Check) -> io::Result<()> {
    if check.commands.is_empty() {
        return Ok(());
    }
    let is_fast = check.recommendation.answer == Answer::Fastpath;
    out.heading(if is_fast { "The fast path" } else { "The kernel's way" })?;
    for command in &check.commands {
        writeln!(out, "  {}", out.styled(BOLD, printable(command)))?;
    }
    match check.recommendation.way {
        Some(way) if way.fastpath => out.paragraph("  ", FASTPATH),
        Some(way) if way.flowtable => out.paragraph("  ", FLOWTABLE),
        _ => Ok(()),
    }
}

/// What each way costs, as it was counted.
fn ways(out: &mut Output, check: &Check, verbose: bool) -> io::Result<()> {
    let ways = &check.recommendation.ways;
    if ways.is_empty() || !verbose {
        return Ok(());
    }
    out.heading("Work for a packet, as part of that of now")?;
    writeln!(out, "{}", out.styled(QUIET, "  busiest CPU   all CPUs"))?;
    for way in ways {
        let (busiest, all) = (percent(Some(way.busiest)), percent(Some(way.all)));
        writeln!(out, "  {busiest:>11}{all:>11}   {}", prose::way_words(way))?;
    }
    out.paragraph("  ", COUNTED)
}

pub fn targets(out: &mut Output, check: &Check) -> io::Result<()> {
    if check.targets.is_empty() {
        return Ok(());
    }
    out.heading("CPUs to steer to")?;
    let one = |row: &steer::check::TargetRow| {
        format!("CPU {} {} ({} buckets)", row.cpu, percent(Some(row.share)), row.buckets)
    };
    let targets: Vec<String> = check.targets.iter().take(ROWS).map(one).collect();
    out.paragraph("  ", &targets.join(", "))?;
    for row in check.left_out.iter().take(ROWS) {
        item(out, &format!("not CPU {}", row.cpu), row.why)?;
    }
    Ok(())
}

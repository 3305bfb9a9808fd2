//! The part of the demo that requires root: PPPoE frames that keep one CPU busy, steered over all, in two network
//! namespaces.

use crate::explain_command::text;
use crate::output::Output;
use anyhow::{Context, bail};
use bench::frames::{Frames, Played, Playing, play};
use bench::{Pair, softnet};
use serde_json::Value;
use std::io::Write;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use traffic::{Popularity, Scenario};

/// The line's interface, and the router's, on which its frames arrive.
const LINE: &str = "line0";
const ROUTER: &str = "wan0";
const QUEUES: u16 = 4;
/// The pair's MTU: a PPPoE header more than 1500.
const MTU: u16 = 1508;
const FLOWS: u32 = 2000;
const FRAMES: u64 = 60_000;
const SEED: u64 = 1;
/// Frames a second, which any CPU takes.
const RATE: f64 = 60_000.0;

/// Shows it, and says which part was left out and why.
pub fn show(out: &mut Output, number: usize) -> anyhow::Result<()> {
    out.heading(&format!("{number}. Steering, on two namespaces of this machine"))?;
    let left_out = |out: &mut Output, why: &str| -> anyhow::Result<()> {
        Ok(out.paragraph("  ", &format!("Left out: {why}."))?)
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if cpus < 2 {
        return left_out(out, "this machine has one CPU, and steering takes two");
    }
    let pair = match Pair::between(("line", LINE), ("router", ROUTER), QUEUES, MTU) {
        Ok(pair) => pair,
        Err(bench::TopologyError::NotRoot) => {
            return left_out(out, "making network namespaces requires root (sudo rxlane demo)");
        }
        Err(error) => return left_out(out, &error.to_string()),
    };
    writeln!(
        out,
        "  A line and a router, joined by a veth pair with {QUEUES} queues; nothing else\n  \
         on this machine is touched."
    )?;
    match steered(out, &pair) {
        // What this kernel or machine lacks is reported, and the rest of the demo goes on.
        Err(error) if !error.is::<std::io::Error>() => {
            left_out(out, &format::one_line(&format!("{error:#}")))
        }
        result => result,
    }?;
    drop(pair);
    writeln!(out, "\n  Both namespaces are removed.")?;
    Ok(())
}

fn steered(out: &mut Output, pair: &Pair) -> anyhow::Result<()> {
    let line = Line { frames: frames()?, cpu: first_cpu()? };
    let before = softnet::read()?;
    let sent = line.play(pair)?;
    let taken = softnet::read()?.since(&before);
    writeln!(
        out,
        "\n  {} PPPoE frames of {} flows in {:.1} s, without steering, with\n  \
         whatever else this machine receives (/proc/net/softnet_stat):",
        format::thousands(sent.counts.packets),
        format::thousands(FLOWS.into()),
        sent.time.as_secs_f64()
    )?;
    bars(out, &taken)?;

    command(out, pair, "up")?;
    line.play(pair)?;
    let status = rxlane(pair, &["steer", "status", ROUTER, "--json"])?;
    let status: Value = serde_json::from_str(&status)?;
    writeln!(out, "\n  The same frames again, steered (rxlane steer status {ROUTER}):")?;
    bars(out, &arrived(&status["cpus"])?)?;
    let stayed = stayed(&status["reasons"])?;
    writeln!(
        out,
        "  {} control frames stayed with the CPU on which they arrived.",
        format::thousands(stayed)
    )?;
    command(out, pair, "down")
}

fn command(out: &mut Output, pair: &Pair, action: &str) -> anyhow::Result<()> {
    let said = rxlane(pair, &["steer", action, ROUTER])?;
    writeln!(out, "\n  $ rxlane steer {action} {ROUTER}")?;
    said.lines().try_for_each(|line| writeln!(out, "    {line}"))?;
    Ok(())
}

struct Line {
    frames: Frames,
    cpu: u16,
}

impl Line {
    /// Sends everything from one CPU, on which a veth pair receives, too.
    fn play(&self, pair: &Pair) -> anyhow::Result<Played> {
        let playing = Playing {
            interface: LINE,
            shares: vec![self.frames.clone()],
            cpus: vec![self.cpu],
            rate: Some(RATE),
            count: Some(FRAMES),
            ..Playing::default()
        };
        let stop = AtomicBool::new(false);
        let sent = pair.near.inside(|| play(&playing, None, &stop, &mut |_| ControlFlow::Continue(())))??;
        // Those on their way to other CPUs.
        std::thread::sleep(Duration::from_millis(100));
        Ok(sent.whole()?)
    }
}

fn frames() -> anyhow::Result<Frames> {
    let mut scenario = Scenario::named("pppoe")?.with_flows(FLOWS);
    // With a heavy flow among them, luck would decide how even two CPUs look.
    scenario.popularity = Popularity::RoundRobin;
    Ok(Frames::generated(&mut scenario.generate(SEED)?, (FRAMES / 4) as usize))
}

fn first_cpu() -> anyhow::Result<u16> {
    let status = std::fs::read_to_string("/proc/self/status").context("reading /proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let first = list.trim().split(['-', ',']).next().unwrap_or_default();
    first.parse().with_context(|| format!("/proc/self/status: Cpus_allowed_list is {list:?}"))
}

fn rxlane(pair: &Pair, arguments: &[&str]) -> anyhow::Result<String> {
    let program = std::env::current_exe().context("this program's own file")?;
    let mut command: Command = pair.far.command(program);
    let output = command.args(arguments).env("NO_COLOR", "1").env("COLUMNS", "76").output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("rxlane {}: {}", arguments.join(" "), said.trim().trim_start_matches("rxlane: "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Frames that came out of the queue of each CPU.
fn arrived(cpus: &Value) -> anyhow::Result<Vec<(u32, u64)>> {
    let row = |row: &Value| Ok((u32::try_from(number(&row["cpu"])?)?, number(&row["frames"])?));
    cpus.as_array().context("no CPUs in the status")?.iter().map(row).collect()
}

fn stayed(reasons: &Value) -> anyhow::Result<u64> {
    let others = reasons.as_array().context("no reasons in the status")?.iter();
    others.filter(|row| row["reason"] != "steered").map(|row| number(&row["frames"])).sum()
}

fn number(value: &Value) -> anyhow::Result<u64> {
    value.as_u64().context("no number in the status")
}

fn bars(out: &mut Output, taken: &[(u32, u64)]) -> anyhow::Result<()> {
    let rows: Vec<_> = taken
        .iter()
        .map(|&(cpu, frames)| (u16::try_from(cpu).unwrap_or(u16::MAX), frames, String::new()))
        .collect();
    let whole = taken.iter().map(|(_, frames)| frames).sum();
    text::bars(out, "CPU", &rows, FRAMES, whole)?;
    Ok(())
}

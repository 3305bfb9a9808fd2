//! `rxlane nics --stack`: which offloads are left to a stack of devices, by which rule, and which frames are let in.

mod admission;
mod json;

use super::{HEAD, QUIET, paragraph, table};
use crate::output::{CommandResult, Outcome, Output};
use anstyle::{AnsiColor, Style};
use nic::Profile;
use nic::stacked::{Adapter, Decision, DeviceKind, KernelRules, Row, Rule, Stack, Verdict, answer};
use serde_json::json;
use std::io::{self, Write};

/// The kernel of that name. Error: there is none, and which there are.
pub fn kernel(name: &str) -> Result<KernelRules, String> {
    KernelRules::named(name).ok_or_else(|| {
        let known = KernelRules::ALL.map(|rules| format!("{} ({})", rules.name, rules.read));
        format!("no rules of a kernel `{name}` are known; there are {}", known.join(", "))
    })
}

/// Answers for the devices of `profiles`, or without any for kinds of devices under every kernel, or the requested one.
pub fn run(
    out: &mut Output,
    stack: &Stack,
    rules: Option<KernelRules>,
    profiles: &[Profile],
    (as_json, is_verbose): (bool, bool),
) -> CommandResult {
    let kernels = rules.map_or(KernelRules::ALL.to_vec(), |rules| vec![rules]);
    let rules = rules.unwrap_or(KernelRules::current());
    match (profiles, as_json) {
        ([], true) => out.json(&json!({"schema": "rxlane.nics/1", "stack": json::kinds(stack, &kernels)}))?,
        (_, true) => {
            out.json(&json!({"schema": "rxlane.nics/1", "stack": json::devices(stack, &rules, profiles)}))?
        }
        ([], false) => kinds(out, stack, &kernels, is_verbose)?,
        (_, false) => devices(out, stack, &rules, profiles, is_verbose)?,
    }
    Ok(Outcome::Success)
}

fn rows(profile: &Profile, rules: &KernelRules, stack: &Stack) -> [Row; 8] {
    answer(&Adapter::of(profile, rules, stack.tpids(), stack.has_pppoe()), rules, stack)
}

fn devices(
    out: &mut Output,
    stack: &Stack,
    rules: &KernelRules,
    profiles: &[Profile],
    is_verbose: bool,
) -> io::Result<()> {
    for (number, profile) in profiles.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let head = format!("{}: {}, under the rules of {}", profile.name(), in_words(stack), rules.read);
        paragraph(out, "", &head, HEAD)?;
        writeln!(out)?;
        for row in rows(profile, rules, stack) {
            feature(out, profile, &row)?;
        }
        writeln!(out)?;
        admission::print(out, stack, profile, is_verbose)?;
    }
    if !is_verbose {
        return paragraph(out, "", SHORT_LEGEND, QUIET);
    }
    writeln!(out)?;
    paragraph(out, "", LEGEND, QUIET)
}

const SHORT_LEGEND: &str =
    "no: in software; frame sizes without FCS; ?: unknown. --verbose explains, and prints all frames.";

const LEGEND: &str = "yes: a TCP segment given to the topmost device keeps it all the way down (TX), or the frame has it when \
                      it comes in (RX). no: the kernel does the work in software, where there is any. broken: frames leave \
                      wrong. unknown, ?: the profile does not say. Features at their defaults. Frame sizes are bytes without \
                      FCS; with it they are 4 more.";

fn in_words(stack: &Stack) -> String {
    match (stack.tpids(), stack.has_pppoe()) {
        ([], false) => "no tags".to_owned(),
        ([], true) => "PPPoE".to_owned(),
        _ => format!("stack {stack}"),
    }
}

const LABEL: usize = 16;
const WORD: usize = 9;

fn feature(out: &mut Output, profile: &Profile, row: &Row) -> io::Result<()> {
    let label = row.feature.label();
    decision(out, profile, label, &row.decision)?;
    match &row.ipv6 {
        None => Ok(()),
        Some(ipv6) => decision(out, profile, "  over IPv6", ipv6),
    }
}

fn decision(out: &mut Output, profile: &Profile, label: &str, decision: &Decision) -> io::Result<()> {
    let word = decision.verdict.word();
    let padding = " ".repeat(WORD.saturating_sub(word.len()));
    let word = out.styled(colour(decision.verdict), word);
    let lead = format!("  {label:<LABEL$}{word}{padding}");
    out.hanging(&lead, LABEL + WORD + 2, &why(profile, decision), Style::new())
}

fn colour(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Yes => AnsiColor::Green.on_default(),
        Verdict::No => AnsiColor::Red.on_default(),
        Verdict::Broken => AnsiColor::Red.on_default().bold(),
        Verdict::Driver | Verdict::Device | Verdict::Unknown => AnsiColor::Yellow.on_default(),
    }
}

/// What decided, with the source of a claim that did; or what is missing.
fn why(profile: &Profile, decision: &Decision) -> String {
    match (decision.rule, decision.key) {
        (Some(rule), Some(key)) => {
            let sources = profile.claim(key).map(|claim| cited(&claim.citations)).unwrap_or_default();
            if sources.is_empty() { rule.to_string() } else { format!("{rule} ({sources})") }
        }
        (Some(rule), None) => rule.to_string(),
        (None, Some(key)) => format!("the profile does not say: {}", key.label),
        (None, None) => String::new(),
    }
}

fn cited(citations: &[nic::Citation]) -> String {
    let mut names: Vec<&str> = citations.iter().map(|citation| citation.source.as_str()).collect();
    names.dedup();
    names.join(", ")
}

/// Kinds of devices under one kernel after the other: what follows from the rules alone.
fn kinds(out: &mut Output, stack: &Stack, kernels: &[KernelRules], is_verbose: bool) -> io::Result<()> {
    let head = format!("What the rules of the kernel leave to {} on a device of this kind", in_words(stack));
    paragraph(out, "", &head, HEAD)?;
    writeln!(out)?;
    let all: Vec<(DeviceKind, Vec<[Row; 8]>)> =
        DeviceKind::ALL.map(|kind| (kind, under(kernels, kind, stack))).into_iter().collect();
    let mut head = vec!["feature".to_owned(), "device".to_owned()];
    head.extend(kernels.iter().map(|rules| rules.name.to_owned()));
    let mut lines = vec![head];
    for (at, feature) in nic::stacked::Feature::all().enumerate() {
        let of = |rows: &[[Row; 8]]| -> Vec<&'static str> {
            rows.iter().filter_map(|rows| rows.get(at)).map(|row| row.decision.verdict.word()).collect()
        };
        let words: Vec<(&str, Vec<&str>)> = all.iter().map(|(kind, rows)| (kind.name(), of(rows))).collect();
        let alike = words.windows(2).all(|pair| matches!(pair, [one, other] if one.1 == other.1));
        for (number, (name, verdicts)) in words.iter().enumerate() {
            if alike && number > 0 {
                continue;
            }
            let label = if number == 0 { feature.label() } else { "" };
            let name = if alike { "any" } else { name };
            let mut line = vec![label.to_owned(), name.to_owned()];
            line.extend(verdicts.iter().map(|word| (*word).to_owned()));
            lines.push(line);
        }
    }
    table(out, &lines)?;
    if !is_verbose {
        let more =
            format!("driver, device: depends on it (rxlane nics --stack {stack} NAME). --verbose: why not.");
        return paragraph(out, "", &more, QUIET);
    }
    reasons(out, &all)?;
    writeln!(out)?;
    let read = kernels.iter().map(|rules| rules.read).collect::<Vec<_>>().join(", ");
    let legend = format!(
        "HW_CSUM: checksums of anything, by their place in the frame; IP_CSUM: of IPv4 and IPv6 alone. driver, device: \
         it depends on it; rxlane nics --stack {stack} NAME asks a profile. Rules as read in {read}."
    );
    paragraph(out, "", &legend, QUIET)
}

fn under(kernels: &[KernelRules], kind: DeviceKind, stack: &Stack) -> Vec<[Row; 8]> {
    kernels.iter().map(|rules| answer(&Adapter::of_kind(kind), rules, stack)).collect()
}

/// Every rule that said no, once, with the place where it is written.
fn reasons(out: &mut Output, all: &[(DeviceKind, Vec<[Row; 8]>)]) -> io::Result<()> {
    let mut said: Vec<(Rule, Vec<&str>)> = Vec::new();
    let every = all.iter().flat_map(|(_, kernels)| kernels.iter().flatten());
    for row in every.filter(|row| row.decision.verdict == Verdict::No) {
        let Some(rule) = row.decision.rule else { continue };
        let label = row.feature.label();
        match said.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, labels)) if labels.contains(&label) => {}
            Some((_, labels)) => labels.push(label),
            None => said.push((rule, vec![label])),
        }
    }
    if !said.is_empty() {
        writeln!(out, "\n{}", out.styled(HEAD, "why not"))?;
    }
    for (rule, labels) in said {
        paragraph(out, "  ", &format!("{}: {rule}", labels.join(", ")), Style::new())?;
        if !rule.place().is_empty() {
            paragraph(out, "    ", rule.place(), QUIET)?;
        }
    }
    Ok(())
}

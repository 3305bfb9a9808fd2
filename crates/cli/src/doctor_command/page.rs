//! The page that `rxlane doctor --html FILE` writes: verdict, findings, queues × CPUs.

use super::remedies::{self, Rendered};
use super::text::{label, steering, system, way_down, yes_or_no};
use crate::page::figures::duration;
use crate::page::table::{figures, first, inline_bar, table, words};
use crate::page::{self, prose};
use crate::render::prose::{Worded, WordedFinding, WordedRemedy};
use doctor::finding::{Certainty, Severity};
use doctor::report::{InterfaceRow, Outcome, VectorRow, Verdict};
use format::{printable_up_to, thousands};
use maud::{Markup, html};
use std::collections::BTreeSet;

/// Findings, rows of a table, lines of evidence, and CPUs side by side that the page shows.
const FINDINGS: usize = 100;
const ROWS: usize = 128;
const EVIDENCE: usize = 20;
const CPUS: usize = 16;

pub fn render(report: &Worded<'_>) -> String {
    let body = html! {
        (header(report))
        main {
            (page::lead(&report.conclusion))
            (findings(report, false))
            @for interface in first(&report.interfaces, ROWS).0 { (interface_section(report, interface)) }
            (stacked(report))
            (cpus(report))
            @if let Some(trace) = &report.trace { (super::trace::section(trace)) }
            (findings(report, true))
            (rules(report))
            (unread(report))
        }
    };
    page::document("Receive path – rxlane doctor", report.schema, body)
}

fn header(report: &Worded<'_>) -> Markup {
    let word = match report.verdict {
        Verdict::Healthy => "Healthy",
        Verdict::Limited => "Limited",
        Verdict::Unknown => "Unknown",
    };
    let counted =
        |severity| report.findings.iter().filter(|finding| finding.severity == severity).count() as u64;
    html! {
        header {
            p.overline { "rxlane doctor" }
            h1 { (word) }
            dl.facts {
                @if let Some(system) = report.system { div { dt { "system" } dd { (system) } } }
                @if let Some(cpus) = report.cpus { div { dt { "CPUs" } dd { (thousands(cpus.into())) } } }
                @if let Some(seconds) = report.seconds {
                    div { dt { "between the samples" } dd { (duration(seconds)) } }
                }
                div { dt { "critical" } dd { (thousands(counted(Severity::Critical))) } }
                div { dt { "warnings" } dd { (thousands(counted(Severity::Warning))) } }
                div { dt { "remarks" } dd { (thousands(counted(Severity::Info))) } }
            }
        }
    }
}

fn findings(report: &Worded<'_>, remarks: bool) -> Markup {
    let mut findings = remedies::rendered(report);
    findings.retain(|(finding, _)| (finding.severity == Severity::Info) == remarks);
    let (listed, rest) = first(&findings, FINDINGS);
    html! {
        @for (finding, remedies) in listed { (finding_section(finding, remedies)) }
        @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " findings more" } }
    }
}

fn finding_section(finding: &WordedFinding<'_>, remedies: &[Rendered<'_>]) -> Markup {
    let (class, word) = match finding.severity {
        Severity::Critical => ("excess", "critical"),
        Severity::Warning => ("excess", "warning"),
        Severity::Info => ("even", "remark"),
    };
    let (evidence, rest) = first(&finding.evidence, EVIDENCE);
    html! {
        section {
            h2 { (finding.id) }
            p.intro {
                span.type.(class) { (word) }
                @if finding.certainty == Certainty::Possible { "possible · " }
                "stage " (finding.stage)
                @if let Some(name) = &finding.interface {
                    " · "
                    @if name.is_empty() { "unnamed interface" } @else { bdi.name { (printable_up_to(name, 80)) } }
                }
            }
            p { bdi { (prose(&printable_up_to(&finding.explanation, 3000))) } }
            h3 { "Evidence" }
            ul.sources {
                @for line in evidence {
                    li { bdi { (printable_up_to(&line.from, 200)) } ": " bdi { code { (printable_up_to(&line.text, 400)) } } }
                }
                @if !rest.is_empty() { li { "and " (thousands(rest.len() as u64)) " lines more" } }
            }
            @for remedy in remedies {
                @match remedy {
                    Rendered::Whole(remedy) => (remedy_block(remedy)),
                    Rendered::As { os, id } => p.why { (system(os)) ": as under " (id) },
                }
            }
        }
    }
}

fn remedy_block(remedy: &WordedRemedy<'_>) -> Markup {
    html! {
        div.remedy {
            h3 { (label(remedy)) ": " (printable_up_to(&remedy.what, 300)) }
            @if !remedy.commands.is_empty() {
                pre { @for command in remedy.commands { (printable_up_to(command, 1000)) "\n" } }
            }
            p.why { (prose(&printable_up_to(&remedy.expected, 1000))) }
        }
    }
}

fn interface_section(report: &Worded<'_>, interface: &InterfaceRow) -> Markup {
    let vectors: Vec<&VectorRow> =
        report.vectors.iter().filter(|vector| vector.interface == interface.name).collect();
    html! {
        @if !interface.queues.is_empty() || !vectors.is_empty() || interface.steering.is_some() {
            section {
                h2 { bdi { @if interface.name.is_empty() { "Unnamed interface" } @else { (printable_up_to(&interface.name, 80)) } } }
                p.intro {
                    @if let Some(driver) = &interface.driver { "driver " (printable_up_to(driver, 80)) ". " }
                    @if let Some(profile) = &interface.profile { "Profile " (printable_up_to(profile, 80)) ". " }
                    @if !interface.candidates.is_empty() {
                        "The driver serves several devices (" (printable_up_to(&interface.candidates.join(", "), 300))
                        "), and the text does not say which this is. "
                    }
                    @if !interface.queues.is_empty() {
                        (if interface.since_start { "Frames since the counters were started." }
                         else { "Frames between the samples." })
                    }
                }
                @if let Some(row) = &interface.steering { p { (steering(row)) } }
                (queues(interface))
                (matrix(&vectors))
            }
        }
    }
}

fn queues(interface: &InterfaceRow) -> Markup {
    let (listed, rest) = first(&interface.queues, ROWS);
    let columns =
        [words("receive queue"), figures("frames"), figures("share"), figures("rate"), figures("drops")];
    let rows = listed.iter().map(|row| {
        let share = row.share.map(|share| 100.0 * share);
        vec![
            html! { (row.queue) @if let Some(share) = share { (inline_bar(&[("even", share)])) } },
            known(row.packets.map(thousands)),
            known(share.map(|share| format!("{share:.1}\u{a0}%"))),
            known(row.per_second.map(|rate| format!("{}\u{a0}/s", thousands(rate.round() as u64)))),
            known(row.drops.map(thousands)),
        ]
    });
    html! {
        @if !interface.queues.is_empty() { (table(&columns, rows)) }
        @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " queues more" } }
    }
}

fn known(value: Option<String>) -> Markup {
    html! { @match value { Some(value) => (value), None => span.quiet { "unknown" } } }
}

/// Interrupts by vector and CPU; the CPUs that took any.
fn matrix(vectors: &[&VectorRow]) -> Markup {
    let busy: BTreeSet<u32> = vectors
        .iter()
        .flat_map(|vector| vector.per_cpu.iter())
        .filter(|(_, count)| **count > 0)
        .map(|(&cpu, _)| cpu)
        .collect();
    let (listed, rest) = first(vectors, ROWS);
    let cpus: Vec<u32> = busy.iter().copied().take(CPUS).collect();
    html! {
        @if !vectors.is_empty() {
            table.plain {
                thead { tr {
                    th scope="col" { "interrupts" }
                    @for cpu in &cpus { th.figure scope="col" { "CPU " (cpu) } }
                    @if cpus.is_empty() { th.figure scope="col" { "all CPUs" } }
                    th.figure scope="col" { "rate" }
                } }
                tbody {
                    @for vector in listed {
                        tr {
                            th scope="row" { bdi.name { (printable_up_to(&vector.action, 60)) } }
                            @for cpu in &cpus {
                                td.figure { (vector.per_cpu.get(cpu).filter(|n| **n > 0).map_or("·".to_owned(), |n| thousands(*n))) }
                            }
                            @if cpus.is_empty() { td.figure { (thousands(vector.total)) } }
                            td.figure { @if let Some(rate) = vector.per_second { (thousands(rate.round() as u64)) "\u{a0}/s" } }
                        }
                    }
                }
            }
            @if busy.len() > cpus.len() { p.more { "and " (thousands((busy.len() - cpus.len()) as u64)) " CPUs more" } }
            @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " vectors more" } }
        }
    }
}

fn stacked(report: &Worded<'_>) -> Markup {
    let (listed, rest) = first(&report.stacked, ROWS);
    let columns = [
        words("interface"),
        figures("MTU"),
        figures("frame with FCS"),
        words("let in all the way"),
        words("1500-byte PPPoE"),
        words("offloads lost"),
    ];
    let bytes = |value: Option<u32>| known(value.map(|value| format!("{}\u{a0}B", thousands(value.into()))));
    let rows = listed.iter().map(|row| {
        let lost: Vec<&str> = row.offloads.iter().filter(|o| o.lost).map(|o| o.feature).collect();
        let lost = match (row.offloads.is_empty(), lost.is_empty()) {
            (true, _) => known(None),
            (_, true) => html! { "none" },
            _ => html! { (printable_up_to(&lost.join(", "), 300)) },
        };
        vec![
            html! { bdi.name { (printable_up_to(&way_down(row), 300)) } },
            bytes(row.mtu),
            bytes(row.frame_with_fcs),
            html! { (yes_or_no(row.fits())) },
            html! { (yes_or_no(row.pppoe_1500.works)) },
            lost,
        ]
    });
    html! {
        @if !report.stacked.is_empty() {
            section {
                h2 { "Stacked interfaces" }
                p.intro { "What their full frames measure on the wire, and whether the interfaces and the device below let \
                           them in; a question mark is unknown." }
                (table(&columns, rows))
                @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " interfaces more" } }
            }
        }
    }
}

fn cpus(report: &Worded<'_>) -> Markup {
    let (listed, rest) = first(&report.per_cpu, ROWS);
    let percent = |value: Option<f64>| known(value.map(|value| format!("{value:.0}\u{a0}%")));
    let columns = [
        words("CPU"),
        figures("NET_RX softirqs"),
        figures("frames"),
        figures("dropped"),
        figures("squeezed"),
        figures("busy"),
        figures("softirq"),
    ];
    let rows = listed.iter().map(|row| {
        vec![
            html! { (row.cpu) },
            known(row.net_rx.map(thousands)),
            known(row.processed.map(thousands)),
            known(row.dropped.map(thousands)),
            known(row.time_squeeze.map(thousands)),
            percent(row.busy),
            percent(row.softirq),
        ]
    });
    html! {
        @if !report.per_cpu.is_empty() {
            section {
                h2 { "CPUs" }
                (table(&columns, rows))
                @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " CPUs more" } }
            }
        }
    }
}

fn rules(report: &Worded<'_>) -> Markup {
    let of = |outcome: Outcome| {
        let ids = report.rules.iter().filter(|row| row.outcome == outcome).map(|row| row.id);
        ids.collect::<Vec<_>>().join(", ")
    };
    let kinds = [
        ("found something", of(Outcome::Found)),
        ("nothing to find", of(Outcome::Clear)),
        ("lack data", of(Outcome::InsufficientData)),
        ("do not apply", of(Outcome::DoesNotApply)),
    ];
    html! {
        section {
            h2 { "Rules" }
            dl.rules {
                @for (kind, ids) in &kinds { @if !ids.is_empty() { dt { (kind) } dd { (ids) } } }
            }
        }
    }
}

fn unread(report: &Worded<'_>) -> Markup {
    let (listed, rest) = first(&report.unread, ROWS);
    html! {
        @if !report.unread.is_empty() {
            section {
                h2 { "Not read" }
                ul.problems {
                    @for row in listed { li { bdi { code { (printable_up_to(&row.what, 200)) } } ": " (printable_up_to(&row.why, 300)) } }
                    @if !rest.is_empty() { li { "and " (thousands(rest.len() as u64)) " more" } }
                }
            }
        }
    }
}

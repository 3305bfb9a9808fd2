//! The point of the page: frames per receive queue next to frames per CPU with steering, and the flows that
//! weigh most.

use super::chart::{COLUMNS, Distribution, LABELLED, bars, columns, gutters};
use crate::page::figures::{bytes, counted, share};
use crate::page::table::{figures, first, table, words};
use explain::Report;
use explain::report::Imbalance;
use format::{printable_up_to, thousands};
use maud::{Markup, html};

pub const FLOWS: usize = 50;

pub fn charts(report: &Report) -> Markup {
    let nic = printable_up_to(&report.nic.name, 80);
    let is_known = report.is_mostly_placed();
    let queues = Distribution {
        id: "queues",
        noun: "queue",
        title: "Frames per receive queue",
        count: report.nic.queues,
        parts: report.queues.iter().map(|row| (row.queue, row.frames)).collect(),
        unknown: report.nic.unplaced,
        // Over a minor part of the frames it would not be that of the traffic.
        imbalance: if is_known { report.imbalance } else { Imbalance::default() },
    };
    let steered = &report.steered;
    let cpus = Distribution {
        id: "cpus",
        noun: "CPU",
        title: "Frames per CPU with inner-header steering",
        count: steered.cpus,
        parts: steered.per_cpu.iter().map(|row| (row.cpu, row.frames)).collect(),
        unknown: 0,
        imbalance: Imbalance {
            max_over_mean: steered.max_over_mean,
            effective_queues: steered.effective_queues,
        },
    };
    let scale = queues.largest().max(cpus.largest());
    let many = queues.parts.len().max(cpus.parts.len()) > LABELLED;
    let gutters = gutters(&[&queues, &cpus]);
    let draw = |distribution: &Distribution<'_>| {
        if many { columns(distribution, scale) } else { bars(distribution, scale, gutters) }
    };
    let unknown = queues.unknown > 0;
    html! {
        section {
            h2 { "Where the frames land" }
            div.pair {
                (figure(html! { "Frames per receive queue of the " (nic) }, &queues, many, draw(&queues)))
                (figure(html! { "Frames per CPU with inner-header steering" }, &cpus, many, draw(&cpus)))
            }
            ul.legend {
                li { span.key.even {} "up to the mean" }
                li { span.key.excess {} "above the mean" }
                @if unknown { li { span.key.unknown {} "queue not known to the profile" } }
            }
            @if unknown && queues.placed() > 0 {
                p.aside { "Mean" @if is_known { ", busiest over mean and effective queues are those" } @else { " is that" }
                    " of the " (counted(queues.placed(), "frame")) " whose queue is known." }
            }
            @if report.steered.left_alone > 0 {
                p.aside { (thousands(report.steered.left_alone)) " of the frames ("
                    (share(report.steered.left_alone, cpus.total())) ") have no IP header and stay on the CPU of "
                    "their queue." }
            }
        }
    }
}

fn figure(caption: Markup, distribution: &Distribution<'_>, many: bool, drawing: Markup) -> Markup {
    let imbalance = distribution.imbalance;
    html! {
        figure {
            figcaption { h3 { (caption) } }
            dl.stats {
                @if imbalance.effective_queues > 0.0 {
                    div { dt { "busiest over mean" } dd { (format::figure((imbalance.max_over_mean > 0.0).then_some(imbalance.max_over_mean))) } }
                    div { dt { "effective " (distribution.noun) "s" } dd {
                        (format::figure((imbalance.effective_queues > 0.0).then_some(imbalance.effective_queues))) " "
                        span.quiet { "of " (thousands(distribution.count.into())) }
                    } }
                } @else {
                    div { dt { "effective " (distribution.noun) "s" } dd {
                        "unknown " span.quiet { "of " (thousands(distribution.count.into())) }
                    } }
                }
            }
            (drawing)
            @if many { (busiest(distribution)) }
        }
    }
}

/// The busiest parts in figures, for a drawing that does not label each.
fn busiest(distribution: &Distribution<'_>) -> Markup {
    let total = distribution.total();
    let row = |name: &str, frames: u64| {
        html! { tr {
            th scope="row" { (name) }
            td.figure { (thousands(frames)) }
            td.figure { (share(frames, total)) }
        } }
    };
    let (noun, parts) = (distribution.noun, distribution.parts.len());
    let idle = distribution.parts.iter().filter(|(_, frames)| *frames == 0).count();
    html! {
        table.plain {
            thead { tr {
                th scope="col" { "busiest" }
                th.figure scope="col" { "frames" }
                th.figure scope="col" { "share" }
            } }
            tbody {
                @for (part, frames) in distribution.busiest(5).into_iter().filter(|(_, frames)| *frames > 0) { (row(&format!("{noun} {part}"), frames)) }
                @if distribution.unknown > 0 { (row("unknown", distribution.unknown)) }
            }
        }
        @if idle > 0 {
            p.more { (thousands(idle as u64)) " of " (thousands(parts as u64)) " " (noun) "s get no frame" }
        }
        @if parts > COLUMNS {
            p.more { "drawn: the " (COLUMNS) " busiest of " (thousands(parts as u64)) " " (noun) "s" }
        }
    }
}

pub fn top_flows(report: &Report) -> Markup {
    let (listed, rest) = first(&report.top_flows, FLOWS);
    let columns = [
        words("flow"),
        words("protocol"),
        figures("frames"),
        figures("bytes"),
        figures("share of bytes"),
        figures("queue"),
        figures("CPU, steered"),
    ];
    let rows = listed.iter().map(|row| {
        vec![
            html! { span.stack { (printable_up_to(&row.flow, 160)) } },
            html! { (row.protocol) },
            html! { (thousands(row.frames)) },
            html! { (bytes(row.bytes)) },
            html! { (share(row.bytes, report.source.wire_bytes)) },
            html! { @match row.queue { Some(queue) => (queue), None => "unknown" } },
            html! { (row.cpu) },
        ]
    });
    html! {
        @if !listed.is_empty() {
            section {
                h2 { "Largest flows" }
                p.intro { "A flow stays whole: no setting and no software splits one over queues or CPUs "
                    "without reordering it." }
                (table(&columns, rows))
                @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " more" } }
            }
        }
    }
}

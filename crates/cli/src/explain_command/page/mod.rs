//! The page that `rxlane explain --html FILE` writes: one file, no script, nothing loaded from anywhere.
//!
//! Everything that comes from a capture passes through the template's escaping. Whatever a capture holds,
//! the page stays bounded: lists end with what they leave out. It reads on a phone, on a desk, in the dark
//! and on paper (`page.css`).

mod chart;
mod defects;
mod method;
mod spread;
mod traffic;

use crate::page::figures::{bit_rate, bytes, counted, duration, frame_rate};
use crate::page::table::{self, first};
use explain::Report;
use format::{printable_up_to, thousands};
use maud::{Markup, html};

/// Files that the title names, and link types that the facts name.
const NAMED: usize = 8;

/// What a capture that is read from standard input is called.
const STANDARD_INPUT: &str = "standard input";

pub fn render(report: &Report, conclusion: &[String]) -> String {
    let title = title(report);
    let body = html! {
        (header(report, &title))
        main {
            (crate::page::lead(conclusion))
            @if report.source.frames > 0 { (spread::charts(report)) }
            (traffic::stacks(report))
            div.side-by-side {
                (traffic::tags(report))
                (traffic::pppoe(report))
                (traffic::flows(report))
            }
            (defects::refused(report))
            (defects::bad(report))
            (spread::top_flows(report))
            (defects::problems(report))
            (method::method(report))
        }
    };
    crate::page::document(&format!("{title} – rxlane explain"), report.schema, body)
}

fn title(report: &Report) -> String {
    match report.source.files.as_slice() {
        [] => "No capture".to_owned(),
        [file] if file == STANDARD_INPUT => "Standard input".to_owned(),
        [file] => printable_up_to(base_name(file), 120),
        [file, rest @ ..] => {
            let noun = if rest.len() == 1 { "capture" } else { "captures" };
            format!(
                "{} and {} more {noun}",
                printable_up_to(base_name(file), 120),
                thousands(rest.len() as u64)
            )
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(path)
}

fn header(report: &Report, title: &str) -> Markup {
    let source = &report.source;
    let (files, more) = first(&source.files, NAMED);
    let links = table::by_frames(&source.link_types);
    let (links, more_links) = first(&links, NAMED);
    let seconds = source.seconds.unwrap_or(0.0);
    html! {
        header {
            p.overline { "rxlane explain" }
            h1 { bdi { (title) } }
            p.device {
                "Answered for the " (printable_up_to(&report.nic.name, 80)) " (" (printable_up_to(&report.nic.title, 160)) ") with "
                (counted(report.nic.queues.into(), "receive queue"))
                @if report.nic.assumed { "; the device was assumed, none was named" }
            }
            dl.facts {
                div { dt { "frames" } dd { (thousands(source.frames)) } }
                div { dt { "on the wire" } dd { (bytes(source.wire_bytes)) } }
                @if let Some(seconds) = source.seconds { div { dt { "duration" } dd { (duration(seconds)) } } }
                @if let Some(rate) = bit_rate(source.wire_bytes, seconds) {
                    div { dt { "mean rate" } dd { (rate) } }
                }
                @if let Some(rate) = frame_rate(source.frames, seconds) {
                    div { dt { "mean frame rate" } dd { (rate) } }
                }
                div { dt { "read" } dd { (bytes(source.bytes)) } }
                @if !links.is_empty() {
                    div { dt { (if links.len() == 1 { "link type" } else { "link types" }) } dd {
                        @for (at, (link, _)) in links.iter().enumerate() { @if at > 0 { ", " } (printable_up_to(link, 60)) }
                        @if !more_links.is_empty() { " and " (thousands(more_links.len() as u64)) " more" }
                    } }
                }
            }
            @if source.files.len() > 1 || files.iter().any(|file| base_name(file) != file.as_str()) {
                ul.files {
                    @for file in files { li { bdi { (printable_up_to(file, 300)) } } }
                    @if !more.is_empty() { li { "and " (thousands(more.len() as u64)) " more" } }
                }
            }
        }
    }
}

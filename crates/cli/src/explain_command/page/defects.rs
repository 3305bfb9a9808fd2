//! What does not arrive or does not parse: frames that are too long, bad frames, problems of the files.

use crate::page::figures::{counted, share};
use crate::page::table::{by_frames, figures, first, left_out, table, words};
use explain::Report;
use format::{printable_up_to, thousands};
use maud::{Markup, html};

pub const REFUSED: usize = 12;

pub const REASONS: usize = 40;

pub const PROBLEMS: usize = 30;

pub fn refused(report: &Report) -> Markup {
    let admission = &report.admission;
    let total = report.source.frames;
    let dropped: u64 = admission.dropped.iter().map(|dropped| dropped.frames).sum();
    let (listed, rest) = first(&admission.dropped, REFUSED);
    let columns = [
        words("encapsulation"),
        figures("frames"),
        figures("share"),
        figures("longest let in"),
        figures("longest seen"),
    ];
    let rows = listed.iter().map(|row| {
        vec![
            html! { span.stack { (printable_up_to(&row.stack, 300)) } },
            html! { (thousands(row.frames)) },
            html! { (share(row.frames, total)) },
            html! { (thousands(row.limit.into())) " B" },
            html! { (thousands(row.largest.into())) " B" },
        ]
    });
    html! {
        @if dropped > 0 || admission.unknown > 0 {
            section {
                h2 { (if dropped > 0 { "Frames too long for the device" } else { "Frame lengths" }) }
                @if dropped > 0 {
                    p.intro { "The " (printable_up_to(&report.nic.name, 80)) " refuses " (counted(dropped, "frame"))
                        " (" (share(dropped, total)) ") at its usual settings. Lengths are without FCS." }
                    (table(&columns, rows))
                    (left_out(rest.len(), rest.iter().map(|row| row.frames).sum(), total))
                }
                @if admission.unknown > 0 {
                    p { "Of " (counted(admission.unknown, "frame")) " (" (share(admission.unknown, total))
                        ") the profile does not say how long they may be." }
                }
            }
        }
    }
}

pub fn bad(report: &Report) -> Markup {
    let bad = &report.bad;
    let reasons = by_frames(&bad.reasons);
    let (listed, rest) = first(&reasons, REASONS);
    let columns = [words("reason"), figures("frames"), words("first seen")];
    let rows = listed.iter().map(|(reason, frames)| {
        let first = bad.first.get(reason.as_str());
        vec![
            html! { (printable_up_to(reason, 300)) },
            html! { (thousands(*frames)) },
            html! { @if let Some(first) = first {
                bdi.name { (printable_up_to(&first.file, 120)) } ", frame " (thousands(first.frame))
            } },
        ]
    });
    html! {
        @if bad.truncated > 0 || bad.malformed > 0 || !reasons.is_empty() {
            section {
                h2 { "Bad frames" }
                p.intro {
                    @if bad.malformed > 0 {
                        (counted(bad.malformed, "frame")) " malformed: a field contradicts its specification. "
                    }
                    @if bad.truncated > 0 {
                        (counted(bad.truncated, "frame")) " truncated: bytes are missing."
                    }
                }
                (table(&columns, rows))
                (left_out(rest.len(), rest.iter().map(|(_, frames)| frames).sum(), report.source.frames))
            }
        }
    }
}

pub fn problems(report: &Report) -> Markup {
    let (listed, rest) = first(&report.source.problems, PROBLEMS);
    html! {
        @if !listed.is_empty() {
            section {
                h2 { "Problems of the files" }
                p.intro { "Every whole record before these is counted." }
                ul.problems { @for problem in listed { li { bdi { (printable_up_to(problem, 600)) } } } }
                @if !rest.is_empty() { p.more { "and " (thousands(rest.len() as u64)) " more" } }
            }
        }
    }
}

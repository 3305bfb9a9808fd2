//! The views after the first: a table each, and what has to be said about it.

use super::overview::sampled;
use super::{Page, Screen, range};
use crate::top_command::app::View;
use crate::top_command::columns::{CLASSES, CPUS, QUEUES, REASONS, STACKS, STAGES, STEERED, VECTORS};
use crate::top_command::model::Model;
use crate::top_command::steering::OFF;
use crate::top_command::table::{Column, count, share};
use ratatui_core::text::Line;

/// A title, a table that fills the page, and a line below.
fn one_table<R>(
    screen: &Screen<'_>,
    title: &str,
    rows: &[R],
    columns: &[Column<R>],
    (width, height): (usize, usize),
    below: &str,
) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    // Title, headings, and an empty line before two of explanation.
    let most = height.saturating_sub(5);
    let from = screen.app.scroll.min(rows.len().saturating_sub(most));
    page.title(&format!(" {title}{}", range(from, most, rows.len())));
    if rows.is_empty() {
        page.text("");
        page.text(" None are known.");
        return page.lines;
    }
    page.table(rows, columns, Some(screen.app.order()), from, most);
    page.text("");
    page.paragraph(below);
    page.lines
}

pub fn queues(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let title = format!("Receive queues of {}", model.device);
    let below = "drops: frames lost since the driver started to count. CPU: where most interrupts of the queue's vector \
                 went. - is unknown.";
    one_table(screen, &title, &model.queues, QUEUES, (width, height), below)
}

pub fn vectors(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let title = format!("Interrupt vectors of {}", model.device);
    let below = "CPU: where most of the interrupts went; there: their share. affinity: CPUs that it may go to. frames \
                 each: frames of the queue for an interrupt.";
    one_table(screen, &title, &model.vectors, VECTORS, (width, height), below)
}

pub fn cpus(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let below = "frames, dropped, squeezed, RPS: of all interfaces together (/proc/net/softnet_stat). irqs: interrupts of \
                 this device.";
    one_table(screen, "CPUs", &model.cpus, CPUS, (width, height), below)
}

pub fn stages(screen: &Screen<'_>, model: &Model, width: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    page.title(" Stages of the receive path, in the order of a frame's way");
    page.table(&model.stages, STAGES, None, 0, model.stages.len());
    page.text("");
    page.text(" drops: since counters were started. - is unknown: nothing there counts it.");
    page.text(format!(" Why frames are lost, and what helps: rxlane doctor {}", model.interface));
    page.lines
}

pub fn traffic(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    let traffic = &model.traffic;
    page.title(&format!(" Traffic classes; {}", sampled(screen.sampling)));
    if traffic.classes.is_empty() {
        page.text("");
        for note in model.notes.iter().filter(|note| note.starts_with("traffic")) {
            page.paragraph(note);
        }
        return page.lines;
    }
    page.table(&traffic.classes, CLASSES, None, 0, traffic.classes.len());
    if let Some(merged) = traffic.merged_share.filter(|merged| *merged > 0.0) {
        let merged = share(Some(merged));
        page.text(format!(" {merged} of the sampled frames are several TCP segments merged by GRO."));
    } else {
        page.text(" ~frames/s: the share of the sample times the frames that the device counts.");
    }
    let most = height.saturating_sub(page.lines.len() + 2);
    let from = screen.app.scroll.min(traffic.stacks.len().saturating_sub(most));
    page.title(&format!(" Stacks{}", range(from, most, traffic.stacks.len())));
    page.table(&traffic.stacks, STACKS, Some(screen.app.order()), from, most);
    page.lines
}

pub fn steering(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    let steering = &model.steering;
    let interface = &model.interface;
    let mode = match steering.mode {
        None => {
            page.title(" Steering: unknown");
            page.text("");
            for note in model.notes.iter().filter(|note| note.starts_with("steering")) {
                page.paragraph(note);
            }
            return page.lines;
        }
        Some(OFF) => {
            page.title(" Steering: off");
            page.text("");
            page.text(format!(" No steering program of rxlane is attached to {}.", model.device));
            page.text(format!(" rxlane steer check {interface}   says whether it would help"));
            page.text(format!(" rxlane steer up {interface}      attaches it"));
            return page.lines;
        }
        Some(mode) => mode,
    };
    // Title, headings, an empty line, title, headings. All reasons are listed; of the CPUs those that have room, at least
    // one, and the others by scrolling.
    let most = height.saturating_sub(5 + steering.reasons.len()).max(1);
    let from = screen.app.scroll.min(steering.cpus.len().saturating_sub(most));
    page.title(&format!(
        " Steering: {} mode, {} buckets, {} moved ({}/s){}",
        mode,
        count(steering.buckets.map(|buckets| buckets as u64)),
        count(steering.moves),
        format::compact(steering.moves_per_second),
        range(from, most, steering.cpus.len()),
    ));
    page.table(&steering.cpus, STEERED, Some(screen.app.order()), from, most);
    page.text("");
    page.title(" Frames by disposition");
    page.table(&steering.reasons, REASONS, None, 0, steering.reasons.len());
    page.lines
}

/// Keys, words and notes.
pub fn help(screen: &Screen<'_>, width: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    page.title(" Keys (any key goes back)");
    let views: Vec<String> =
        (1..).zip(View::ALL).map(|(number, view)| format!("{number} {}", view.title())).collect();
    page.text(format!("  {}", views.join("  ")));
    for (key, what) in [
        ("Tab, arrows", "next view, other view; up, down, PgUp, PgDn, Home, End scroll"),
        ("s  S", "order rows by the next or former column;  r  reverse"),
        ("space", "stand still, go on;  + and - double or halve the interval"),
        ("q", "end;  Ctrl-Z stops the job as ever"),
    ] {
        page.text(format!("  {key:<12} {what}"));
    }
    page.title(" Words");
    for line in [
        "  -            unknown: not counted, not read twice yet, or the counter fell",
        "  k M G        powers of 1000; bytes are as the device counts them",
        "  softirq      share of a CPU's time in softirqs: driver polling, network stack",
        "  squeezed     polling ran out of budget with frames left (time_squeeze)",
        "  sample       four looks an interval of at most 250 frames or 25 ms; last 40",
    ] {
        page.text(line);
    }
    let notes = screen.model.map(|model| model.notes.as_slice()).unwrap_or_default();
    page.title(if notes.is_empty() { " Notes: none" } else { " Notes" });
    for note in notes {
        page.paragraph(&format!("* {note}"));
    }
    page.lines
}

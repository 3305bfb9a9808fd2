//! Bars drawn as inline SVG. Horizontal lengths are percentages, so that a drawing fits any width while its
//! text keeps the size of the page's.

use crate::page::figures::share;
use crate::page::table::{LEAST, rounded as round};
use explain::report::Imbalance;
use format::{Share, figure, thousands};
use maud::{Markup, html};

/// Above this many parts a part is a column without a label of its own.
pub const LABELLED: usize = 16;

/// Columns in a drawing: of more parts the most loaded are drawn.
pub const COLUMNS: usize = 256;

/// Width of a digit at the drawing's text size, in pixels; other characters are narrower or few.
const CHARACTER: usize = 8;

/// Width of the column of shares, in pixels.
const SHARE: usize = 8 * CHARACTER;

/// Frames by part (receive queue or CPU).
pub struct Distribution<'a> {
    pub id: &'static str,
    /// `queue` or `CPU`.
    pub noun: &'static str,
    /// What is drawn, for those who do not see it.
    pub title: &'a str,
    pub count: u16,
    /// Number and frames of each part; empty where nothing is known of any.
    pub parts: Vec<(u16, u64)>,
    /// Frames that are in no part that is known.
    pub unknown: u64,
    pub imbalance: Imbalance,
}

impl Distribution<'_> {
    /// Frames whose part is known.
    pub fn placed(&self) -> u64 {
        self.parts.iter().map(|(_, frames)| frames).sum()
    }

    pub fn total(&self) -> u64 {
        self.placed() + self.unknown
    }

    /// The longest bar.
    pub fn largest(&self) -> u64 {
        self.parts.iter().map(|(_, frames)| *frames).max().unwrap_or(0).max(self.unknown)
    }

    /// The parts with the most frames, at most `most`.
    pub fn busiest(&self, most: usize) -> Vec<(u16, u64)> {
        let mut parts = self.parts.clone();
        parts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        parts.truncate(most);
        parts
    }

    fn name(&self, part: u16) -> String {
        format!("{} {part}", self.noun)
    }

    fn mean(&self) -> Option<f64> {
        let placed = self.placed();
        (placed > 0 && !self.parts.is_empty()).then(|| placed as f64 / self.parts.len() as f64)
    }

    fn description(&self) -> String {
        let total = self.total();
        let label = |(part, frames): &(u16, u64)| {
            format!("{}: {} frames, {}", self.name(*part), thousands(*frames), share(*frames, total))
        };
        let mut lines: Vec<String> = if self.parts.len() <= LABELLED {
            self.parts.iter().map(label).collect()
        } else {
            let idle = self.parts.iter().filter(|(_, frames)| *frames == 0).count();
            let first = format!("{} parts, {idle} of them without a frame; the busiest", self.parts.len());
            std::iter::once(first).chain(self.busiest(5).iter().map(label)).collect()
        };
        if self.unknown > 0 {
            lines.push(format!(
                "unknown: {} frames, {}",
                thousands(self.unknown),
                share(self.unknown, total)
            ));
        }
        if self.mean().is_some() {
            lines.push(format!("mean: {}", figure(self.mean())));
        }
        lines.join("; ")
    }

    fn labelled(&self, height: usize, style: &str, drawing: Markup) -> Markup {
        let (title, description) = (format!("{}-title", self.id), format!("{}-text", self.id));
        html! {
            svg.chart role="img" aria-labelledby={ (title) " " (description) } height=(height) style=(style) {
                title id=(title) { (self.title) }
                desc id=(description) { (self.description()) }
                (drawing)
            }
        }
    }
}

/// Space left and right of the bars, in pixels, wide enough for the labels of all of `distributions`.
pub fn gutters(distributions: &[&Distribution<'_>]) -> (usize, usize) {
    let names = distributions.iter().flat_map(|one| {
        let unknown = (one.unknown > 0).then_some("unknown".len());
        one.parts.iter().map(|(part, _)| one.name(*part).len()).chain(unknown)
    });
    let counts = distributions.iter().map(|one| thousands(one.largest()).len());
    let name = names.max().unwrap_or(0);
    (name * CHARACTER + 12, counts.max().unwrap_or(0) * CHARACTER + SHARE + 12)
}

/// A bar for each part, longest at `scale` frames, with its count and its share.
pub fn bars(distribution: &Distribution<'_>, scale: u64, (left, right): (usize, usize)) -> Markup {
    const TOP: usize = 24;
    const ROW: usize = 28;
    let total = distribution.total();
    let rows = distribution.parts.len() + usize::from(distribution.unknown > 0);
    let bottom = TOP + rows * ROW;
    let mean_at = distribution.mean().map(|mean| (100.0 * mean / scale.max(1) as f64).clamp(0.0, 100.0));
    let row = |at: usize, name: &str, frames: u64, bar: Markup| {
        let baseline = TOP + at * ROW + 19;
        html! {
            text x="0" dx="-10" y=(baseline) text-anchor="end" { (name) }
            (bar)
            text.figure x="100%" dx=(right - SHARE) y=(baseline) text-anchor="end" { (thousands(frames)) }
            text.figure.quiet x="100%" dx=(right) y=(baseline) text-anchor="end" { (share(frames, total)) }
        }
    };
    let drawing = html! {
        @for (at, (part, frames)) in distribution.parts.iter().enumerate() {
            (row(at, &distribution.name(*part), *frames, bar(*frames, scale, mean_at, TOP + at * ROW + 6)))
        }
        @if distribution.unknown > 0 {
            @let at = distribution.parts.len();
            @let (y, width) = (TOP + at * ROW + 6, length(distribution.unknown, scale));
            (row(at, "unknown", distribution.unknown, html! {
                rect.unknown x="0" y=(y) width={ (width) "%" } height="16" {}
            }))
        }
        @if let Some(at) = mean_at {
            @let (x, lower) = (format!("{at:.3}%"), TOP + distribution.parts.len() * ROW);
            line.mean x1=(x) x2=(x) y1=(TOP - 4) y2=(lower) {}
            text.note x=(x) y=(TOP - 10) text-anchor=(anchor(at)) {
                "mean " (figure(distribution.mean()))
            }
        }
    };
    let style = format!("margin-left:{left}px;width:calc(100% - {}px)", left + right);
    distribution.labelled(bottom + 2, &style, drawing)
}

/// A bar up to the mean, and what is above it in another colour.
fn bar(frames: u64, scale: u64, mean_at: Option<f64>, y: usize) -> Markup {
    let width = length(frames, scale);
    let even = width.min(mean_at.unwrap_or(100.0));
    html! {
        rect.track x="0" y=(y) width="100%" height="16" {}
        @if frames > 0 { rect.even x="0" y=(y) width={ (round(even)) "%" } height="16" {} }
        @if width > even {
            rect.excess x={ (round(even)) "%" } y=(y) width={ (round(width - even)) "%" } height="16" {}
        }
    }
}

/// A column for each part, for distributions with too many parts to label each.
pub fn columns(distribution: &Distribution<'_>, scale: u64) -> Markup {
    const TOP: usize = 24;
    const PLOT: usize = 160;
    let mut drawn = distribution.busiest(COLUMNS);
    drawn.sort_by_key(|(part, _)| *part);
    // The unknown stand apart at the right end.
    let plot = if distribution.unknown > 0 { 86.0 } else { 100.0 };
    let step = plot / drawn.len().max(1) as f64;
    let thickness = (step * if drawn.len() > 96 { 1.0 } else { 0.76 }).min(8.0);
    let tall = |share: f64| share * PLOT as f64 / 100.0;
    let ground = (TOP + PLOT) as f64;
    let mean_tall =
        distribution.mean().map(|mean| tall((100.0 * mean / scale.max(1) as f64).clamp(0.0, 100.0)));
    let drawing = html! {
        line.ground x1="0" x2={ (plot) "%" } y1=(ground) y2=(ground) {}
        @for (at, (_, frames)) in drawn.iter().enumerate().filter(|(_, (_, frames))| *frames > 0) {
            @let x = round(at as f64 * step + (step - thickness) / 2.0);
            @let height = tall(length(*frames, scale));
            @let even = height.min(mean_tall.unwrap_or(height));
            rect.even x={ (x) "%" } width={ (round(thickness)) "%" } y=(round(ground - even))
                height=(round(even)) {}
            @if height > even {
                rect.excess x={ (x) "%" } width={ (round(thickness)) "%" } y=(round(ground - height))
                    height=(round(height - even)) {}
            }
        }
        @if distribution.unknown > 0 {
            @let height = tall(length(distribution.unknown, scale));
            rect.unknown x="91%" width="8%" y=(round(ground - height)) height=(round(height)) {}
            text.note x="100%" y=(TOP + PLOT + 16) text-anchor="end" { "unknown" }
        }
        @if let Some(height) = mean_tall {
            @let y = round(ground - height);
            line.mean x1="0" x2={ (plot) "%" } y1=(y) y2=(y) {}
            text.note x="100%" y="12" text-anchor="end" {
                "dotted: mean " (figure(distribution.mean()))
            }
        }
        @if let (Some((first, _)), Some((last, _))) = (drawn.first(), drawn.last()) {
            text.note x="0" y=(TOP + PLOT + 16) { (distribution.name(*first)) }
            text.note x={ (plot / 2.0) "%" } y=(TOP + PLOT + 16) text-anchor="middle" { "…" }
            text.note x={ (plot - if distribution.unknown > 0 { 4.0 } else { 0.0 }) "%" } y=(TOP + PLOT + 16)
                text-anchor="end" { (last) }
        }
        text.note x="0" y="12" { "scale to " (thousands(scale)) " frames" }
    };
    distribution.labelled(TOP + PLOT + 22, "width:100%", drawing)
}

/// Percent of the scale, never so little that nothing shows.
fn length(frames: u64, scale: u64) -> f64 {
    if frames == 0 { 0.0 } else { Share::of(frames, scale).percent().max(LEAST) }
}

fn anchor(at: f64) -> &'static str {
    match at {
        at if at < 12.0 => "start",
        at if at > 88.0 => "end",
        _ => "middle",
    }
}

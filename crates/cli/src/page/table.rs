//! Tables that stay bounded whatever was read: the first rows, and how much was left out.

use super::figures::{counted, share};
use format::{Share, thousands};
use maud::{Markup, html};

/// The shortest bar, in percent: shorter ones vanish on a phone.
pub const LEAST: f64 = 1.0;

/// The first `most` rows and those that are left out.
pub fn first<T>(rows: &[T], most: usize) -> (&[T], &[T]) {
    rows.split_at_checked(most).unwrap_or((rows, &[]))
}

/// What the rows that are not listed amount to; nothing where all are listed.
pub fn left_out(rows: usize, frames: u64, total: u64) -> Markup {
    html! {
        @if rows > 0 {
            p.more { "and " (thousands(rows as u64)) " more with " (counted(frames, "frame"))
                " (" (share(frames, total)) ")" }
        }
    }
}

pub struct Column {
    pub name: &'static str,
    pub figure: bool,
}

pub const fn words(name: &'static str) -> Column {
    Column { name, figure: false }
}

pub const fn figures(name: &'static str) -> Column {
    Column { name, figure: true }
}

/// A table whose first column names the row. On a narrow screen each row becomes a block with the columns'
/// names before their values.
pub fn table(columns: &[Column], rows: impl IntoIterator<Item = Vec<Markup>>) -> Markup {
    let class = |column: &Column| column.figure.then_some("figure");
    html! {
        table {
            thead { tr { @for column in columns { th scope="col" class=[class(column)] { (column.name) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (at, (column, cell)) in columns.iter().zip(row).enumerate() {
                            @if at == 0 {
                                th scope="row" { (cell) }
                            } @else {
                                td class=[class(column)] data-label=(column.name) { span { (cell) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Frames by something, the most frequent first, with shares of `total` and bars.
pub fn frames_by(name: &'static str, rows: &[(Markup, u64)], total: u64, most: usize) -> Markup {
    let (listed, rest) = first(rows, most);
    html! {
        table.bars {
            thead { tr {
                th scope="col" { (name) }
                th.figure scope="col" { "frames" }
                th.figure scope="col" { "share" }
            } }
            tbody {
                @for (label, frames) in listed {
                    tr {
                        th scope="row" { (label) (inline_bar(&[("plain", Share::of(*frames, total).percent())])) }
                        td.figure { (thousands(*frames)) }
                        td.figure { (share(*frames, total)) }
                    }
                }
            }
        }
        (left_out(rest.len(), rest.iter().map(|(_, frames)| frames).sum(), total))
    }
}

/// The entries of a map by number of frames.
pub fn by_frames<'a, K: AsRef<str> + 'a>(entries: impl IntoIterator<Item = (K, &'a u64)>) -> Vec<(K, u64)> {
    let mut rows: Vec<(K, u64)> = entries.into_iter().map(|(name, frames)| (name, *frames)).collect();
    // Stable: names stay in the order of the map among equals.
    rows.sort_by_key(|(_, frames)| std::cmp::Reverse(*frames));
    rows
}

/// A bar next to figures that say the same: length in percent and colour of each segment.
pub fn inline_bar(segments: &[(&str, f64)]) -> Markup {
    let mut x = 0.0;
    html! {
        svg.share aria-hidden="true" height="8" width="100%" {
            rect.track x="0" y="0" width="100%" height="8" {}
            @for (colour, width) in segments.iter().filter(|(_, width)| *width > 0.0) {
                @let from = { let from = x; x += width; from };
                rect class=(colour) x={ (rounded(from)) "%" } y="0" width={ (rounded(width.max(LEAST))) "%" }
                    height="8" {}
            }
        }
    }
}

/// A length in percent, short enough for an attribute.
pub fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

//! The screen: what is always there, and the view in the midst. Draws a [`Model`] and changes nothing.

mod overview;
mod pages;
mod theme;

use super::app::{App, View};
use super::model::{Heat, Model, is_known};
use super::table::{self, Cell, Column, Order};
use super::traffic::Sampling;
use format::{compact, speed, wrapped};
use ratatui_core::layout::Rect;
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use std::time::Duration;
pub use theme::Theme;

/// The smallest screen that everything fits.
pub const LEAST: (u16, u16) = (80, 24);
/// Lines above the view: machine, rates, the worst remark, tabs.
const ABOVE: u16 = 4;
/// Lines below it: a note, keys.
const BELOW: u16 = 2;

pub struct Screen<'a> {
    pub app: &'a App,
    /// `None` before the first samples.
    pub model: Option<&'a Model>,
    /// For as long as there is no model.
    pub interface: &'a str,
    pub sampling: &'a Sampling,
    pub theme: Theme,
}

/// Lines with their number of columns.
struct Page<'t> {
    width: usize,
    theme: &'t Theme,
    lines: Vec<Line<'static>>,
}

impl<'t> Page<'t> {
    fn new(width: usize, theme: &'t Theme) -> Page<'t> {
        Page { width, theme, lines: Vec::new() }
    }

    fn text(&mut self, text: impl Into<String>) {
        self.lines.push(Line::from(text.into()));
    }

    fn title(&mut self, text: &str) {
        self.lines.push(Line::styled(table::fitted(text, self.width, true), self.theme.title()));
    }

    /// A text as long as it may be, with a margin of a blank.
    fn paragraph(&mut self, text: &str) {
        let lines = wrapped(text, self.width.saturating_sub(2));
        self.lines.extend(lines.into_iter().map(|line| Line::from(format!(" {line}"))));
    }

    /// Headings and as many rows as `most`, from the row `from` on.
    fn table<R>(
        &mut self,
        rows: &[R],
        columns: &[Column<R>],
        order: Option<Order>,
        from: usize,
        most: usize,
    ) {
        let fitting = table::fitting(columns, self.width);
        self.lines.push(self.theme.heading(table::heading(&fitting, order), self.width));
        let order = order.unwrap_or(Order { column: usize::MAX, is_descending: false });
        for row in table::ordered(rows, columns, order).into_iter().skip(from).take(most) {
            self.lines.push(self.cells(table::row(&fitting, row)));
        }
    }

    fn cells(&self, cells: Vec<Cell>) -> Line<'static> {
        let mut spans = Vec::with_capacity(2 * cells.len());
        for cell in cells {
            if !spans.is_empty() {
                spans.push(Span::raw(" "));
            }
            spans.push(Span::styled(cell.text, self.theme.heat(cell.heat)));
        }
        Line::from(spans)
    }
}

pub fn draw(frame: &mut Frame<'_>, screen: &Screen<'_>) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        too_small(frame, area);
        return;
    }
    let width = usize::from(area.width);
    put(frame, Rect { height: ABOVE, ..area }, above(screen, width));
    let height = area.height - ABOVE - BELOW;
    let middle = Rect { y: area.y + ABOVE, height, ..area };
    let lines = match (screen.app.has_help, screen.model) {
        (true, _) => pages::help(screen, width),
        (false, None) => vec![Line::raw(""), Line::raw(" The first rates come with the second sample.")],
        (false, Some(model)) => page(screen, model, width, usize::from(height)),
    };
    put(frame, middle, lines);
    let bottom = Rect { y: area.y + area.height - BELOW, height: BELOW, ..area };
    put(frame, bottom, below(screen, width));
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    for (line, y) in lines.into_iter().zip(area.y..area.y.saturating_add(area.height)) {
        frame.render_widget(line, Rect { y, height: 1, ..area });
    }
}

fn too_small(frame: &mut Frame<'_>, area: Rect) {
    let (width, height) = LEAST;
    let text = format!(
        "rxlane top takes {width} columns and {height} lines; these are {} and {}. q ends it.",
        area.width, area.height
    );
    let lines = wrapped(&text, area.width.into());
    put(frame, area, lines.into_iter().map(Line::from).collect());
}

fn page(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    match screen.app.view {
        View::Overview => overview::lines(screen, model, width, height),
        View::Queues => pages::queues(screen, model, width, height),
        View::Vectors => pages::vectors(screen, model, width, height),
        View::Cpus => pages::cpus(screen, model, width, height),
        View::Stages => pages::stages(screen, model, width),
        View::Traffic => pages::traffic(screen, model, width, height),
        View::Steering => pages::steering(screen, model, width, height),
    }
}

fn above(screen: &Screen<'_>, width: usize) -> Vec<Line<'static>> {
    let theme = &screen.theme;
    let interval = seconds(screen.app.interval);
    let right = if screen.app.is_paused { " PAUSED ".to_owned() } else { format!("every {interval} ") };
    let room = width.saturating_sub(right.chars().count());
    let title = " rxlane top  ";
    let left = match screen.model {
        Some(model) => format!("{title}{}", machine(model, room.saturating_sub(title.len() + 1))),
        None => format!("{title}{}", screen.interface),
    };
    let right_style = if screen.app.is_paused { theme.heat(Heat::Warm) } else { theme.bar() };
    let first = Line::from(vec![
        Span::styled(table::fitted(&left, room, true), theme.bar()),
        Span::styled(right, right_style),
    ]);
    let (second, third) = match screen.model {
        Some(model) => (Line::styled(totals(model), theme.strong()), remark(model, theme, width)),
        None => (Line::raw(""), Line::raw("")),
    };
    vec![first, second, third, tabs(screen)]
}

fn seconds(interval: Duration) -> String {
    format!("{} s", (interval.as_secs_f64() * 100.0).round() / 100.0)
}

/// The machine in at most `room` columns, unless the first words alone take more.
fn machine(model: &Model, room: usize) -> String {
    let mut words = vec![model.interface.clone()];
    if model.device != model.interface {
        words.push(format!("on {}", model.device));
    }
    words.extend(model.driver.clone());
    match model.up {
        Some(false) => words.push("DOWN".to_owned()),
        _ => words.extend(model.speed.map(speed)),
    }
    if !model.queues.is_empty() {
        let plural = if model.queues.len() == 1 { "" } else { "s" };
        words.push(format!("{} queue{plural}", model.queues.len()));
    }
    words.push(match model.steering.mode {
        Some(mode) => format!("steering {}", mode),
        None => "steering unknown".to_owned(),
    });
    let share = model.fastpath.as_ref().and_then(|fastpath| fastpath.share);
    words.extend(share.map(|share| format!("fast path {:.0} %", 100.0 * share)));
    let line = words.join("  ");
    let with_mtu = model.mtu.map(|mtu| format!("{line}  MTU {mtu}"));
    with_mtu.filter(|with_mtu| with_mtu.chars().count() <= room).unwrap_or(line)
}

fn totals(model: &Model) -> String {
    let totals = &model.totals;
    let bits = totals.bytes_per_second.map(|bytes| 8.0 * bytes);
    format!(
        " {} frames/s   {} bytes/s ({} bit/s)   {} drops/s   {} interrupts/s",
        compact(totals.frames_per_second),
        compact(totals.bytes_per_second),
        compact(bits),
        compact(totals.drops_per_second),
        compact(totals.interrupts_per_second),
    )
}

/// The worst remark.
fn remark(model: &Model, theme: &Theme, width: usize) -> Line<'static> {
    let Some(worst) = model.remarks.first() else {
        let text = if is_known(model) { " no bottleneck" } else { " no bottleneck known" };
        return Line::styled(text, theme.good());
    };
    let more = match model.remarks.len() - 1 {
        0 => String::new(),
        more => format!(" (+{more} more)"),
    };
    let text = table::fitted(&format!(" ! {}{more}", worst.text), width, true);
    Line::styled(text.trim_end().to_owned(), theme.heat(worst.heat))
}

fn tabs(screen: &Screen<'_>) -> Line<'static> {
    let tab = |(number, view): (usize, View)| {
        let is_chosen = view == screen.app.view && !screen.app.has_help;
        let style = if is_chosen { screen.theme.chosen_tab() } else { screen.theme.tab() };
        [Span::styled(format!(" {number} {} ", view.title()), style), Span::raw(" ")]
    };
    Line::from((1..).zip(View::ALL).flat_map(tab).collect::<Vec<_>>())
}

fn below(screen: &Screen<'_>, width: usize) -> Vec<Line<'static>> {
    let theme = &screen.theme;
    let notes = screen.model.map(|model| model.notes.as_slice()).unwrap_or_default();
    let note = match notes.split_first() {
        None => String::new(),
        Some((first, [])) => format!(" {first}"),
        Some((first, rest)) => format!(" {first} (+{} more notes: ?)", rest.len()),
    };
    let key = |(key, what): (&str, &str)| {
        [Span::styled(format!(" {key}"), theme.strong()), Span::styled(format!(" {what} "), theme.bar())]
    };
    let keys = [
        ("1-7", "view"),
        ("s", "sort"),
        ("r", "reverse"),
        ("space", if screen.app.is_paused { "go on" } else { "pause" }),
        ("+ -", "interval"),
        ("?", "help"),
        ("q", "quit"),
    ];
    vec![
        Line::styled(table::fitted(&note, width, true).trim_end().to_owned(), theme.faint()),
        Line::from(keys.into_iter().flat_map(key).collect::<Vec<_>>()),
    ]
}

/// Which of many rows are on the page: `  1-8 of 64`, nothing where all are.
fn range(from: usize, most: usize, all: usize) -> String {
    let rows = most.min(all.saturating_sub(from));
    if rows >= all { String::new() } else { format!("  {}-{} of {all}", from + 1, from + rows) }
}

#[cfg(test)]
mod tests;

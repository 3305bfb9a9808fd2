//! The first view: queues next to CPUs, stages next to traffic classes.

use super::{Page, Screen};
use crate::top_command::columns::{CLASSES, CPUS, QUEUES, STAGES};
use crate::top_command::model::{Model, StageRow};
use crate::top_command::steering::{OFF, SteeringRows};
use crate::top_command::table::{Column, Order, count, ordered};
use crate::top_command::traffic::Sampling;
use format::compact;
use ratatui_core::text::{Line, Span};
use steer::facts::list;

/// Between the two halves.
const GAP: usize = 2;
/// Lines of the lower half: a heading, six traffic classes, what was sampled.
const LOWER: usize = 8;
/// The same where there is room for every stage.
const TALL_LOWER: usize = 11;
/// The line below it, about steering: half a screen of 80 columns has no room for mode, CPUs and drops.
const STEERING: usize = 1;
/// Lines from which there is.
const TALL: usize = 26;
/// Columns of a half from which it has room for words, too.
const WIDE: usize = 60;

pub fn lines(screen: &Screen<'_>, model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let left = (width - GAP) / 2;
    let right = width - GAP - left;
    let lower = if height < TALL { LOWER } else { TALL_LOWER };
    let upper = height.saturating_sub(lower + STEERING + 1);
    let rows = upper.saturating_sub(1).max(1);
    let queues = half(screen, &model.queues, QUEUES, 1, left, rows);
    let cpus = half(screen, &model.cpus, CPUS, 2, right, rows);
    let mut lines = side_by_side(queues, cpus, left, upper);
    lines.push(Line::raw(""));
    lines.extend(side_by_side(
        stages(screen, model, left, lower),
        traffic(screen, model, right),
        left,
        lower,
    ));
    let mut below = Page::new(width, &screen.theme);
    below.text(steering(&model.steering));
    lines.extend(below.lines);
    lines.extend(remarks(screen, model, height.saturating_sub(lines.len())));
    lines
}

/// Remarks other than that of the first line, where there is room.
fn remarks(screen: &Screen<'_>, model: &Model, most: usize) -> Vec<Line<'static>> {
    let others = model.remarks.iter().skip(1).take(most);
    others.map(|remark| Line::styled(format!(" ! {}", remark.text), screen.theme.heat(remark.heat))).collect()
}

/// A table in half the width. Where not all rows fit, the busiest are listed, as the last line says.
fn half<R: Clone>(
    screen: &Screen<'_>,
    rows: &[R],
    columns: &'static [Column<R>],
    busiest: usize,
    width: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    let by_number = Some(Order { column: 0, is_descending: false });
    if rows.len() <= most {
        page.table(rows, columns, by_number, 0, most);
        return page.lines;
    }
    let by_rate = Order { column: busiest, is_descending: true };
    let count = most.saturating_sub(1);
    let kept: Vec<R> = ordered(rows, columns, by_rate).into_iter().take(count).cloned().collect();
    page.table(&kept, columns, by_number, 0, count);
    page.text(format!("the busiest {count} of {}", rows.len()));
    page.lines
}

fn stages(screen: &Screen<'_>, model: &Model, width: usize, most: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    // A narrow half has no room for where a number comes from, nor a short one for stages that have none.
    let is_wide = width >= WIDE;
    let columns = if is_wide { STAGES } else { STAGES.split_last().map_or(STAGES, |(_, rest)| rest) };
    let is_listed =
        |row: &&StageRow| most > LOWER || row.frames_per_second.or(row.drops_per_second).is_some();
    let rows: Vec<StageRow> = model.stages.iter().filter(is_listed).cloned().collect();
    page.table(&rows, columns, None, 0, most - 1);
    page.lines
}

fn traffic(screen: &Screen<'_>, model: &Model, width: usize) -> Vec<Line<'static>> {
    let mut page = Page::new(width, &screen.theme);
    let columns = if width < WIDE { CLASSES.split_last().map_or(CLASSES, |(_, rest)| rest) } else { CLASSES };
    page.table(&model.traffic.classes, columns, None, 0, model.traffic.classes.len());
    page.text(sampled(screen.sampling));
    page.lines
}

/// What the shares of classes rest on.
pub fn sampled(sampling: &Sampling) -> String {
    match sampling {
        Sampling::Pending => "sample: not yet".to_owned(),
        Sampling::Off => "sample: off (--no-sample)".to_owned(),
        Sampling::Refused(_) => "sample: none, see the note below".to_owned(),
        Sampling::Taken(tally) => {
            let looked = tally.looked.as_secs_f64();
            format!("sample: {} frames in {:.1} s, after GRO", count(Some(tally.frames)), looked)
        }
    }
}

/// Steering in a line of 80 columns: what matters most comes first.
pub fn steering(rows: &SteeringRows) -> String {
    let Some(mode) = rows.mode else { return "steering: unknown".to_owned() };
    if mode == OFF {
        return "steering: off".to_owned();
    }
    let lost = rows.cpus.iter().map(|row| row.drops).fold(0, u64::saturating_add);
    format!(
        "steering: {} to {}, {} frames/s, {} drops/s ({} since it is up)",
        mode,
        cpus(rows),
        compact(rows.steered_per_second),
        compact(rows.drops_per_second),
        count(Some(lost)),
    )
}

/// `CPUs 1-3,6`; how many where the list is long.
fn cpus(rows: &SteeringRows) -> String {
    /// Characters of a list for which the line has room.
    const LONGEST: usize = 16;
    let numbers: Vec<u32> = rows.cpus.iter().map(|row| row.cpu).collect();
    match (&numbers[..], list(&numbers)) {
        ([one], _) => format!("CPU {one}"),
        (_, list) if list.len() <= LONGEST => format!("CPUs {list}"),
        (many, _) => format!("{} CPUs", many.len()),
    }
}

/// Two halves, `left` wide the first, `most` lines at most.
fn side_by_side(
    one: Vec<Line<'static>>,
    other: Vec<Line<'static>>,
    left: usize,
    most: usize,
) -> Vec<Line<'static>> {
    let count = one.len().max(other.len()).min(most);
    let (mut one, mut other) = (one.into_iter(), other.into_iter());
    let line = |_| {
        let mut line = one.next().unwrap_or_default();
        let used = line.width();
        line.spans.push(Span::raw(" ".repeat((left + GAP).saturating_sub(used))));
        line.spans.extend(other.next().unwrap_or_default().spans);
        line
    };
    (0..count).map(line).collect()
}

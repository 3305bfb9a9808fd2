//! Tables whose columns know how to write a row, how to order rows, and how critical a cell is: one definition for the screen and for a
//! pipe.

use super::model::Heat;
use format::{Share, UNKNOWN, compact};
use std::cmp::Ordering;

/// Characters of the widest bar, beyond which it gets no clearer.
const WIDEST_BAR: usize = 42;

/// What stands in a cell.
pub enum Value {
    Rate(Option<f64>),
    /// A part of one.
    Part(Option<f64>),
    /// A total: all its digits up to five, then as a rate.
    Count(Option<u64>),
    /// The number of a thing.
    Number(Option<u32>),
    /// Rows are ordered by it.
    Text(String),
    /// Rows are not ordered by it.
    Word(String),
    /// A text that rows are ordered by this number of.
    Numbered(String, Option<f64>),
    /// A part of one, drawn.
    Bar(Option<f64>),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Rate(rate) => compact(*rate),
            Value::Part(part) => share(*part),
            Value::Count(count) => self::count(*count),
            Value::Number(number) => number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string()),
            Value::Text(text) | Value::Word(text) | Value::Numbered(text, _) => text.clone(),
            Value::Bar(_) => String::new(),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Rate(number) | Value::Part(number) | Value::Numbered(_, number) => *number,
            Value::Count(count) => count.map(|count| count as f64),
            Value::Number(number) => number.map(f64::from),
            Value::Text(_) | Value::Word(_) | Value::Bar(_) => None,
        }
    }

    /// Unknown comes last, whatever the direction.
    fn compare(&self, other: &Value, is_descending: bool) -> Ordering {
        let directed = |ordering: Ordering| if is_descending { ordering.reverse() } else { ordering };
        if let (Value::Text(one), Value::Text(other)) = (self, other) {
            return directed(one.cmp(other));
        }
        match (self.number(), other.number()) {
            (Some(one), Some(other)) => directed(one.total_cmp(&other)),
            (one, other) => other.is_some().cmp(&one.is_some()),
        }
    }
}

/// A total as it stands in a narrow column.
pub fn count(value: Option<u64>) -> String {
    match value {
        Some(value) if value < 100_000 => value.to_string(),
        value => compact(value.map(|value| value as f64)),
    }
}

/// A part of one.
pub fn share(part: Option<f64>) -> String {
    part.map_or(UNKNOWN.to_owned(), |part| Share::fraction(part).to_string())
}

/// `[||||    ]`, `width` characters in all; what is more than nothing shows at least one stroke.
fn bar(part: Option<f64>, width: usize) -> String {
    let Some(part) = part.filter(|part| part.is_finite()) else { return " ".repeat(width) };
    let room = width.saturating_sub(2);
    let strokes = (part.clamp(0.0, 1.0) * room as f64).round() as usize;
    let strokes = if part > 0.0 { strokes.max(1) } else { 0 }.min(room);
    format!("[{}{}]", "|".repeat(strokes), " ".repeat(room - strokes))
}

pub struct Column<R> {
    title: &'static str,
    /// Characters at least; a text that is longer is cut.
    width: usize,
    /// Whether it stands to the left of its place, as words do.
    is_left: bool,
    /// Whether it takes the room that is left over; only the last column can.
    is_flexible: bool,
    /// Whether it repeats for the eye what another one says; it takes the room that is left over, up to [`WIDEST_BAR`].
    pub is_bar: bool,
    value: fn(&R) -> Value,
    heat: fn(&R) -> Heat,
}

impl<R> Column<R> {
    /// A column of figures.
    pub const fn new(title: &'static str, width: usize, value: fn(&R) -> Value) -> Column<R> {
        let heat = |_: &R| Heat::Calm;
        Column { title, width, is_left: false, is_flexible: false, is_bar: false, value, heat }
    }

    pub const fn left(self) -> Column<R> {
        Column { is_left: true, ..self }
    }

    /// The last column, of words.
    pub const fn flexible(self) -> Column<R> {
        Column { is_left: true, is_flexible: true, ..self }
    }

    pub const fn bar(width: usize, value: fn(&R) -> Value) -> Column<R> {
        Column { is_bar: true, ..Column::new("", width, value) }
    }

    pub const fn heat(self, heat: fn(&R) -> Heat) -> Column<R> {
        Column { heat, ..self }
    }
}

/// By which column, and in which direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    pub column: usize,
    pub is_descending: bool,
}

/// A piece of a line.
pub struct Cell {
    /// As wide as its column.
    pub text: String,
    pub heat: Heat,
    /// Whether the rows are ordered by its column (headings only).
    pub is_chosen: bool,
}

/// References to the rows in an order; rows that are equal keep theirs.
pub fn ordered<'r, R>(rows: &'r [R], columns: &[Column<R>], order: Order) -> Vec<&'r R> {
    let mut ordered: Vec<&R> = rows.iter().collect();
    if let Some(Column { value, .. }) = columns.get(order.column) {
        ordered.sort_by(|one, other| value(one).compare(&value(other), order.is_descending));
    }
    ordered
}

/// The columns that `width` characters have room for, from the first, each with its width; one blank between them.
pub fn fitting<R>(columns: &[Column<R>], width: usize) -> Vec<(usize, &Column<R>, usize)> {
    let mut left = width;
    let mut fitting = Vec::new();
    for (place, column) in columns.iter().enumerate() {
        let blank = usize::from(!fitting.is_empty());
        let Some(rest) = left.checked_sub(column.width + blank) else { break };
        fitting.push((place, column, column.width));
        left = rest;
    }
    // Bars and words share what is left over.
    let bars = if columns.iter().any(|column| column.is_flexible) { left / 2 } else { left };
    for (_, column, width) in &mut fitting {
        let more = match (column.is_bar, column.is_flexible) {
            (true, _) => bars.min(WIDEST_BAR.saturating_sub(*width)),
            (false, true) => left,
            (false, false) => 0,
        };
        *width += more;
        left -= more;
    }
    fitting
}

pub fn heading<R>(columns: &[(usize, &Column<R>, usize)], order: Option<Order>) -> Vec<Cell> {
    let cell = |&(place, column, width): &(usize, &Column<R>, usize)| Cell {
        text: fitted(column.title, width, column.is_left),
        heat: Heat::Calm,
        is_chosen: order.is_some_and(|order| order.column == place),
    };
    columns.iter().map(cell).collect()
}

pub fn row<R>(columns: &[(usize, &Column<R>, usize)], row: &R) -> Vec<Cell> {
    let cell = |&(_, column, width): &(usize, &Column<R>, usize)| Cell {
        text: match (column.value)(row) {
            Value::Bar(part) => bar(part, width),
            value => fitted(&value.text(), width, column.is_left),
        },
        heat: (column.heat)(row),
        is_chosen: false,
    };
    columns.iter().map(cell).collect()
}

/// The text in exactly `width` characters: cut with a `~`, or filled up. Control characters become `?`.
pub fn fitted(text: &str, width: usize, is_left: bool) -> String {
    let printable: String = text.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let length = printable.chars().count();
    if length > width {
        return printable.chars().take(width.saturating_sub(1)).chain("~".chars().take(width)).collect();
    }
    if is_left { format!("{printable:<width$}") } else { format!("{printable:>width$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column<(u32, Option<f64>)>] = &[
        Column::new("id", 4, |row| Value::Number(Some(row.0))),
        Column::new("rate", 6, |row| Value::Rate(row.1)),
    ];

    #[test]
    fn the_unknown_comes_last_in_both_directions() {
        let rows = [(0, None), (1, Some(5.0)), (2, Some(9.0)), (3, None)];
        let ids = |is_descending| -> Vec<u32> {
            ordered(&rows, COLUMNS, Order { column: 1, is_descending }).into_iter().map(|row| row.0).collect()
        };
        assert_eq!((ids(true), ids(false)), (vec![2, 1, 0, 3], vec![1, 2, 0, 3]));
        assert_eq!(ordered(&rows, COLUMNS, Order { column: 9, is_descending: true }).len(), 4);
    }

    #[test]
    fn what_does_not_fit_is_left_out_or_cut() {
        assert_eq!([11, 10, 3].map(|width| fitting(COLUMNS, width).len()), [2, 1, 0]);
        assert_eq!([fitted("abc", 5, true), fitted("abc", 5, false)], ["abc  ", "  abc"]);
        assert_eq!([fitted("abcdef", 4, true), fitted("a\x1b[b", 4, true)], ["abc~", "a?[b"]);
        assert_eq!([fitted("abc", 0, true), fitted("abc", 1, false)], ["", "~"]);
        assert_eq!([bar(Some(0.5), 10), bar(Some(0.001), 10)], ["[||||    ]", "[|       ]"]);
        assert_eq!(
            [bar(Some(7.0), 6), bar(None, 4), bar(Some(0.0), 4), bar(Some(0.4), 1)],
            ["[||||]", "    ", "[  ]", "[]"]
        );
    }
}

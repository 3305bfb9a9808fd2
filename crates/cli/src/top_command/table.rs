//! Tables whose columns know how to show a row, how to order rows by it, and how hot a cell is: one definition for
//! the screen and for a pipe.

use super::figures::bar;
use super::model::Heat;
use std::cmp::Ordering;

/// Characters of the widest bar, beyond which it gets no clearer.
pub const WIDEST_BAR: usize = 42;

/// What rows are ordered by. Unknown comes last, whatever the direction.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// A number.
    Number(Option<f64>),
    /// A text.
    Text(String),
}

impl From<Option<f64>> for Key {
    fn from(number: Option<f64>) -> Key {
        Key::Number(number)
    }
}

impl From<u32> for Key {
    fn from(number: u32) -> Key {
        Key::Number(Some(number.into()))
    }
}

impl From<Option<u32>> for Key {
    fn from(number: Option<u32>) -> Key {
        Key::Number(number.map(f64::from))
    }
}

impl From<Option<u64>> for Key {
    fn from(number: Option<u64>) -> Key {
        Key::Number(number.map(|number| number as f64))
    }
}

/// A column.
pub struct Column<R> {
    /// Heading.
    pub title: &'static str,
    /// Characters; a text that is longer is cut.
    pub width: usize,
    /// Whether it stands to the left of its place, as words do.
    pub is_left: bool,
    /// Whether it takes the room that is left over; only the last column can.
    pub is_flexible: bool,
    /// Of a column of bars, the part that is drawn; it takes the room that is left over, up to [`WIDEST_BAR`].
    pub part: Option<fn(&R) -> Option<f64>>,
    /// The text.
    pub cell: fn(&R) -> String,
    /// What it is ordered by.
    pub key: fn(&R) -> Key,
    /// How hot.
    pub heat: fn(&R) -> Heat,
}

impl<R> Column<R> {
    /// A column of numbers.
    pub const fn new(
        title: &'static str,
        width: usize,
        cell: fn(&R) -> String,
        key: fn(&R) -> Key,
    ) -> Column<R> {
        let heat = |_: &R| Heat::Calm;
        Column { title, width, is_left: false, is_flexible: false, part: None, cell, key, heat }
    }

    /// A column of words.
    pub const fn left(self) -> Column<R> {
        Column { is_left: true, ..self }
    }

    /// The last column, of words.
    pub const fn flexible(self) -> Column<R> {
        Column { is_left: true, is_flexible: true, ..self }
    }

    /// A column of bars, which repeats for the eye what another one says; `width` at least.
    pub const fn bar(width: usize, part: fn(&R) -> Option<f64>) -> Column<R> {
        let column: Column<R> = Column::new("", width, |_| String::new(), |_| Key::Number(None));
        Column { part: Some(part), ..column }
    }

    /// With this heat.
    pub const fn heat(self, heat: fn(&R) -> Heat) -> Column<R> {
        Column { heat, ..self }
    }
}

/// By which column, and in which direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The column's place.
    pub column: usize,
    /// Largest first.
    pub is_descending: bool,
}

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The text, as wide as its column.
    pub text: String,
    /// How hot.
    pub heat: Heat,
    /// Whether the rows are ordered by its column (headings only).
    pub is_chosen: bool,
}

/// References to the rows in the order asked for; rows that are equal keep theirs.
pub fn ordered<'r, R>(rows: &'r [R], columns: &[Column<R>], order: Order) -> Vec<&'r R> {
    let mut ordered: Vec<&R> = rows.iter().collect();
    if let Some(column) = columns.get(order.column) {
        ordered.sort_by(|one, other| compare(&(column.key)(one), &(column.key)(other), order.is_descending));
    }
    ordered
}

fn compare(one: &Key, other: &Key, is_descending: bool) -> Ordering {
    let turned = |ordering: Ordering| if is_descending { ordering.reverse() } else { ordering };
    match (one, other) {
        (Key::Number(Some(one)), Key::Number(Some(other))) => turned(one.total_cmp(other)),
        (Key::Number(Some(_)), Key::Number(None)) => Ordering::Less,
        (Key::Number(None), Key::Number(Some(_))) => Ordering::Greater,
        (Key::Text(one), Key::Text(other)) => turned(one.cmp(other)),
        _ => Ordering::Equal,
    }
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
        let more = match (column.part, column.is_flexible) {
            (Some(_), _) => bars.min(WIDEST_BAR.saturating_sub(*width)),
            (None, true) => left,
            (None, false) => 0,
        };
        *width += more;
        left -= more;
    }
    fitting
}

/// The headings.
pub fn heading<R>(columns: &[(usize, &Column<R>, usize)], order: Option<Order>) -> Vec<Cell> {
    let cell = |&(place, column, width): &(usize, &Column<R>, usize)| Cell {
        text: fitted(column.title, width, column.is_left),
        heat: Heat::Calm,
        is_chosen: order.is_some_and(|order| order.column == place),
    };
    columns.iter().map(cell).collect()
}

/// A row.
pub fn row<R>(columns: &[(usize, &Column<R>, usize)], row: &R) -> Vec<Cell> {
    let cell = |&(_, column, width): &(usize, &Column<R>, usize)| Cell {
        text: match column.part {
            Some(part) => bar(part(row), width),
            None => fitted(&(column.cell)(row), width, column.is_left),
        },
        heat: (column.heat)(row),
        is_chosen: false,
    };
    columns.iter().map(cell).collect()
}

/// The text in exactly `width` characters: cut with a `~`, or filled up. Control characters are shown as `?`.
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
        Column::new("id", 4, |row| row.0.to_string(), |row| row.0.into()),
        Column::new("rate", 6, |row| format!("{:?}", row.1), |row| row.1.into()),
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
    fn columns_that_do_not_fit_are_left_out() {
        assert_eq!(fitting(COLUMNS, 11).len(), 2);
        assert_eq!(fitting(COLUMNS, 10).len(), 1);
        assert_eq!(fitting(COLUMNS, 3).len(), 0);
    }

    #[test]
    fn a_text_is_exactly_as_wide_as_its_place() {
        assert_eq!(fitted("abc", 5, true), "abc  ");
        assert_eq!(fitted("abc", 5, false), "  abc");
        assert_eq!(fitted("abcdef", 4, true), "abc~");
        assert_eq!(fitted("a\x1b[b", 4, true), "a?[b");
        assert_eq!((fitted("abc", 0, true), fitted("abc", 1, false)), (String::new(), "~".to_owned()));
    }
}

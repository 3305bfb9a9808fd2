//! Tables for the terminal, and lines no longer than it is wide.

/// A table whose first columns are words, to the left, and whose others are figures, to the right. Columns are as wide as
/// their widest cell; two blanks stand between them.
#[derive(Clone, Debug)]
pub struct Table {
    words: usize,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with `words` columns of words.
    pub fn new<S: Into<String>>(words: usize, head: impl IntoIterator<Item = S>) -> Table {
        Table { words, head: head.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// With these rows besides. What a row has beyond the head is one text, to the left.
    pub fn rows<R: IntoIterator<Item = S>, S: Into<String>>(
        mut self,
        rows: impl IntoIterator<Item = R>,
    ) -> Table {
        self.rows.extend(rows.into_iter().map(|row| row.into_iter().map(Into::into).collect()));
        self
    }

    /// The lines, the head first, none wider than `width` as long as only the last column is too long: that one continues
    /// below itself.
    pub fn lines(&self, width: usize) -> Vec<String> {
        let all = || std::iter::once(&self.head).chain(&self.rows);
        let columns = all().map(Vec::len).max().unwrap_or_default();
        let widest = |column: usize| {
            all().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..columns).map(widest).collect();
        let before: usize = widths.iter().rev().skip(1).map(|width| width + 2).sum();
        let mut lines = Vec::new();
        for row in all() {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                let is_word = column < self.words || column >= self.head.len();
                if column > 0 {
                    line.push_str("  ");
                }
                line.push_str(&if is_word { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
            }
            let line = line.trim_end();
            let is_long = line.chars().count() > width && row.len() == columns && before + 10 <= width;
            match row.last().filter(|_| is_long) {
                None => lines.push(line.to_owned()),
                Some(last) => {
                    let start: String = line.chars().take(before).collect();
                    for (at, part) in wrapped(last.trim(), width - before).into_iter().enumerate() {
                        let start = if at == 0 { start.as_str() } else { "" };
                        lines.push(format!("{start:<before$}{part}"));
                    }
                }
            }
        }
        lines
    }
}

/// Lines of at most so many characters, broken at spaces; a longer word has a line of its own.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() || line.chars().count() + 1 + word.chars().count() <= width => {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// At most so many characters, the last of them `…` where it was longer.
pub fn shortened(text: &str, longest: usize) -> String {
    match text.chars().count() <= longest {
        true => text.to_owned(),
        false => text.chars().take(longest.saturating_sub(2)).chain(" …".chars()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_column_continues_below_itself() {
        let table = Table::new(2, ["name", "what"]).rows([["a", "one two three four"], ["long", "x"]]);
        assert_eq!(table.lines(20), ["name  what", "a     one two three", "      four", "long  x"]);
        assert_eq!(table.lines(12), ["name  what", "a     one two three four", "long  x"]);
        assert_eq!(Table::new(0, ["n"]).rows([["1", "behind"]]).lines(80), ["n", "1  behind"]);
    }

    #[test]
    fn lines_break_at_spaces() {
        assert_eq!(wrapped("aa bb cccccc d", 5), ["aa bb", "cccccc", "d"]);
        assert_eq!((shortened("abcdef", 4), shortened("abc", 4)), ("ab …".to_owned(), "abc".to_owned()));
    }
}

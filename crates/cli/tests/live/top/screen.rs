//! What a person sees on a terminal: as much of ECMA-48 and of xterm's private modes as the program writes.

/// The screen.
pub struct Screen {
    columns: usize,
    cells: Vec<Vec<char>>,
    /// What is behind the alternate screen.
    behind: Option<Vec<Vec<char>>>,
    row: usize,
    column: usize,
    pub is_cursor_hidden: bool,
    /// Bytes of a character or sequence that is not whole yet.
    pending: Vec<u8>,
}

impl Screen {
    pub fn new(columns: u16, rows: u16) -> Screen {
        let mut screen = Screen {
            columns: 0,
            cells: Vec::new(),
            behind: None,
            row: 0,
            column: 0,
            is_cursor_hidden: false,
            pending: Vec::new(),
        };
        screen.resize(columns, rows);
        screen
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = usize::from(columns.max(1));
        self.cells.resize(usize::from(rows.max(1)), Vec::new());
        self.cells.iter_mut().for_each(|row| row.resize(self.columns, ' '));
        self.go(self.row, self.column);
    }

    pub const fn is_alternate(&self) -> bool {
        self.behind.is_some()
    }

    /// The text, without blanks at the end of lines.
    pub fn text(&self) -> String {
        let line = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned();
        let lines: Vec<String> = self.cells.iter().map(line).collect();
        lines.join("\n").trim_end().to_owned()
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
        let pending = std::mem::take(&mut self.pending);
        let valid = pending.utf8_chunks().next().map_or(0, |chunk| chunk.valid().len());
        let text = std::str::from_utf8(&pending[..valid]).expect("UTF-8");
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                let Some(end) = sequence.find(|c: char| ('@'..='~').contains(&c)) else { break };
                self.control(&sequence[..end], &sequence[end..=end]);
                rest = &sequence[end + 1..];
                continue;
            }
            if character == '\x1b' && rest.len() < 2 {
                break;
            }
            rest = &rest[character.len_utf8()..];
            match character {
                '\r' => self.column = 0,
                '\n' => self.line_feed(),
                character if character.is_control() => {}
                character => {
                    // DECAWM: a line goes on in the next one.
                    if self.column == self.columns {
                        self.column = 0;
                        self.line_feed();
                    }
                    self.cells[self.row][self.column] = character;
                    self.column += 1;
                }
            }
        }
        self.pending = [rest.as_bytes(), &pending[valid..]].concat();
    }

    fn line_feed(&mut self) {
        if self.row + 1 == self.cells.len() {
            self.cells.remove(0);
            self.cells.push(vec![' '; self.columns]);
        } else {
            self.row += 1;
        }
    }

    fn go(&mut self, row: usize, column: usize) {
        (self.row, self.column) = (row.min(self.cells.len() - 1), column.min(self.columns - 1));
    }

    fn control(&mut self, parameters: &str, function: &str) {
        let mut numbers = parameters.split(';').map(|number| number.parse::<usize>().unwrap_or(0));
        let first = numbers.next().unwrap_or(0);
        match (function, parameters) {
            ("H" | "f", _) => self.go(first.max(1) - 1, numbers.next().unwrap_or(1).max(1) - 1),
            ("A", _) => self.go(self.row.saturating_sub(first.max(1)), self.column),
            ("B", _) => self.go(self.row + first.max(1), self.column),
            ("C", _) => self.go(self.row, self.column + first.max(1)),
            ("D", _) => self.go(self.row, self.column.saturating_sub(first.max(1))),
            ("G", _) => self.go(self.row, first.max(1) - 1),
            ("J", "2") => self.cells.iter_mut().for_each(|row| row.fill(' ')),
            ("J", _) => self.cells.iter_mut().skip(self.row + 1).for_each(|row| row.fill(' ')),
            ("K", _) => {
                let from = self.column.min(self.columns);
                self.cells[self.row][from..].fill(' ');
            }
            ("h", "?1049") if !self.is_alternate() => {
                let blank = vec![vec![' '; self.columns]; self.cells.len()];
                self.behind = Some(std::mem::replace(&mut self.cells, blank));
            }
            ("l", "?1049") => {
                if let Some(behind) = self.behind.take() {
                    let rows = self.cells.len();
                    self.cells = behind;
                    self.resize(self.columns as u16, rows as u16);
                }
            }
            ("h" | "l", "?25") => self.is_cursor_hidden = function == "l",
            _ => {}
        }
    }
}

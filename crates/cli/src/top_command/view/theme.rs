//! Colours, the sixteen of every terminal; without them bold and reversed text do, and the marks stay.

use crate::top_command::model::Heat;
use crate::top_command::table::Cell;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Whether colours are requested (`NO_COLOR`).
    pub has_colour: bool,
}

impl Theme {
    fn coloured(self, style: Style, colour: Color) -> Style {
        if self.has_colour { style.fg(colour) } else { style }
    }

    /// Something critical, or not.
    pub fn heat(self, heat: Heat) -> Style {
        match heat {
            Heat::Calm => Style::new(),
            Heat::Warm => self.coloured(Style::new().add_modifier(Modifier::BOLD), Color::Yellow),
            Heat::Critical if self.has_colour => Style::new().add_modifier(Modifier::BOLD).fg(Color::Red),
            Heat::Critical => Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED),
        }
    }

    pub fn bar(self) -> Style {
        self.coloured(Style::new().add_modifier(Modifier::REVERSED), Color::Cyan)
    }

    pub fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub fn good(self) -> Style {
        self.coloured(Style::new(), Color::Green)
    }

    pub fn title(self) -> Style {
        self.coloured(Style::new().add_modifier(Modifier::BOLD), Color::Cyan)
    }

    /// The tab of the view that is displayed.
    pub fn chosen_tab(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED | Modifier::BOLD)
    }

    pub fn tab(self) -> Style {
        self.coloured(Style::new(), Color::Cyan)
    }

    pub fn faint(self) -> Style {
        self.coloured(Style::new(), Color::Yellow)
    }

    /// Headings of columns, the one that rows are ordered by reversed.
    pub fn heading(self, cells: Vec<Cell>, width: usize) -> Line<'static> {
        let plain = self.coloured(Style::new().add_modifier(Modifier::UNDERLINED), Color::Green);
        let chosen = plain.add_modifier(Modifier::REVERSED);
        let mut spans = Vec::with_capacity(2 * cells.len() + 1);
        let mut used = 0;
        for cell in cells {
            if !spans.is_empty() {
                spans.push(Span::styled(" ", plain));
                used += 1;
            }
            used += cell.text.chars().count();
            spans.push(Span::styled(cell.text, if cell.is_chosen { chosen } else { plain }));
        }
        spans.push(Span::styled(" ".repeat(width.saturating_sub(used)), plain));
        Line::from(spans)
    }
}

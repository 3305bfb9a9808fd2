//! What the keys change: the view, the order of its rows, whether the screen stands still. Knows no terminal.

use super::columns;
use super::table::Order;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// Shortest and longest time between two samples.
pub const SHORTEST: Duration = Duration::from_millis(200);
/// See [`SHORTEST`].
pub const LONGEST: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Overview,
    Queues,
    Vectors,
    Cpus,
    Stages,
    Traffic,
    Steering,
}

impl View {
    pub const ALL: [View; 7] = [
        View::Overview,
        View::Queues,
        View::Vectors,
        View::Cpus,
        View::Stages,
        View::Traffic,
        View::Steering,
    ];

    pub const fn title(self) -> &'static str {
        match self {
            View::Overview => "Overview",
            View::Queues => "Queues",
            View::Vectors => "Vectors",
            View::Cpus => "CPUs",
            View::Stages => "Stages",
            View::Traffic => "Traffic",
            View::Steering => "Steering",
        }
    }

    fn place(self) -> usize {
        View::ALL.iter().position(|view| *view == self).unwrap_or(0)
    }

    /// Columns that its rows can be ordered by, those of bars left out.
    fn columns(self) -> Vec<usize> {
        fn of<R>(columns: &[super::table::Column<R>]) -> Vec<usize> {
            (0..columns.len()).filter(|&place| columns.get(place).is_some_and(|one| !one.is_bar)).collect()
        }
        match self {
            // The way of a frame has its own order, and the overview shows several tables.
            View::Overview | View::Stages => Vec::new(),
            View::Queues => of(columns::QUEUES),
            View::Vectors => of(columns::VECTORS),
            View::Cpus => of(columns::CPUS),
            View::Traffic => of(columns::STACKS),
            View::Steering => of(columns::STEERED),
        }
    }
}

/// What a key asks of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Redraw,
    None,
    Interval(Duration),
    Pause(bool),
    /// Give the terminal back and stop until the shell continues the job.
    Suspend,
    Quit,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    pub view: View,
    /// Whether the help is displayed instead.
    pub has_help: bool,
    pub is_paused: bool,
    /// Time between two samples.
    pub interval: Duration,
    /// Rows above the first one on the screen.
    pub scroll: usize,
    orders: [Order; View::ALL.len()],
}

impl App {
    pub fn new(interval: Duration) -> App {
        let mut orders = [Order::default(); View::ALL.len()];
        if let Some(order) = orders.get_mut(View::Traffic.place()) {
            order.is_descending = true;
        }
        App { view: View::default(), has_help: false, is_paused: false, interval, scroll: 0, orders }
    }

    pub fn order(&self) -> Order {
        self.orders.get(self.view.place()).copied().unwrap_or_default()
    }

    pub fn key(&mut self, key: KeyEvent) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('z') => Action::Suspend,
                KeyCode::Char('l') => Action::Redraw,
                _ => Action::None,
            };
        }
        if self.has_help {
            self.has_help = false;
            return if matches!(key.code, KeyCode::Char('q' | 'Q') | KeyCode::F(10)) {
                Action::Quit
            } else {
                Action::Redraw
            };
        }
        match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::F(10) => return Action::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.has_help = true,
            KeyCode::Char(' ' | 'p') => {
                self.is_paused = !self.is_paused;
                return Action::Pause(self.is_paused);
            }
            KeyCode::Char('+') => return self.pace(self.interval.saturating_mul(2)),
            KeyCode::Char('-') => return self.pace(self.interval / 2),
            KeyCode::Char('s' | '>') => self.sort(true),
            KeyCode::Char('S' | '<') => self.sort(false),
            KeyCode::Char('r') => {
                if let Some(order) = self.orders.get_mut(self.view.place()) {
                    order.is_descending = !order.is_descending;
                }
            }
            KeyCode::Char(digit @ '1'..='7') => {
                self.show(digit as usize - '1' as usize);
            }
            KeyCode::Tab | KeyCode::Right => self.show(self.view.place() + 1),
            KeyCode::BackTab | KeyCode::Left => self.show(self.view.place() + View::ALL.len() - 1),
            KeyCode::Down => self.scroll = self.scroll.saturating_add(1),
            KeyCode::Up => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageDown => self.scroll = self.scroll.saturating_add(10),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(10),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll = usize::MAX,
            _ => return Action::None,
        }
        Action::Redraw
    }

    fn show(&mut self, place: usize) {
        self.view = View::ALL.get(place % View::ALL.len()).copied().unwrap_or_default();
        self.scroll = 0;
    }

    fn pace(&mut self, interval: Duration) -> Action {
        self.interval = interval.clamp(SHORTEST, LONGEST);
        Action::Interval(self.interval)
    }

    /// Orders by the next column, or by the one before; numbers from the largest on, names and numbers of things
    /// from the smallest.
    fn sort(&mut self, forward: bool) {
        let columns = self.view.columns();
        let Some(order) = self.orders.get_mut(self.view.place()).filter(|_| !columns.is_empty()) else {
            return;
        };
        let at = columns.iter().position(|column| *column == order.column).unwrap_or(0);
        let next = if forward { at + 1 } else { at + columns.len() - 1 };
        let column = columns.get(next % columns.len()).copied().unwrap_or(0);
        *order = Order { column, is_descending: column > 0 || self.view == View::Traffic };
        self.scroll = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(app: &mut App, code: KeyCode) -> Action {
        app.key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn app() -> App {
        App::new(Duration::from_secs(1))
    }

    #[test]
    fn numbers_and_tab_switch_views_around() {
        let mut app = app();
        press(&mut app, KeyCode::Char('4'));
        assert_eq!(app.view, View::Cpus);
        press(&mut app, KeyCode::Tab);
        assert_eq!(app.view, View::Stages);
        press(&mut app, KeyCode::Char('7'));
        press(&mut app, KeyCode::Right);
        assert_eq!(app.view, View::Overview);
        press(&mut app, KeyCode::BackTab);
        assert_eq!(app.view, View::Steering);
    }

    #[test]
    fn sorting_goes_around_and_keeps_off_the_bars() {
        let mut app = app();
        press(&mut app, KeyCode::Char('2'));
        let mut seen = Vec::new();
        for _ in 0..columns::QUEUES.len() {
            press(&mut app, KeyCode::Char('s'));
            seen.push(app.order().column);
        }
        assert!(!seen.contains(&3) && seen.contains(&0) && seen.contains(&9), "{seen:?}");
        press(&mut app, KeyCode::Char('S'));
        let order = app.order();
        press(&mut app, KeyCode::Char('r'));
        assert_eq!(app.order(), Order { is_descending: !order.is_descending, ..order });
        // Another view keeps its own.
        press(&mut app, KeyCode::Char('4'));
        assert_eq!(app.order(), Order::default());
        press(&mut app, KeyCode::Char('5'));
        press(&mut app, KeyCode::Char('s'));
        assert_eq!(app.order(), Order::default(), "stages have an order of their own");
    }

    #[test]
    fn pause_pace_help_and_the_end() {
        let mut app = app();
        assert_eq!(press(&mut app, KeyCode::Char(' ')), Action::Pause(true));
        assert_eq!(press(&mut app, KeyCode::Char('p')), Action::Pause(false));
        assert_eq!(press(&mut app, KeyCode::Char('+')), Action::Interval(Duration::from_secs(2)));
        for _ in 0..9 {
            press(&mut app, KeyCode::Char('-'));
        }
        assert_eq!(app.interval, SHORTEST);
        press(&mut app, KeyCode::Char('?'));
        assert!(app.has_help);
        assert_eq!(press(&mut app, KeyCode::Char('x')), Action::Redraw);
        assert!(!app.has_help);
        assert_eq!(press(&mut app, KeyCode::Char('q')), Action::Quit);
        assert_eq!(app.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Action::Quit);
        assert_eq!(app.key(KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL)), Action::Suspend);
        assert_eq!(press(&mut app, KeyCode::Char('y')), Action::None);
    }
}

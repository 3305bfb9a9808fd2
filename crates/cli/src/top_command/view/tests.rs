//! What the screen shows, held against texts in `screens/`. `RXLANE_WRITE_SCREENS=1 cargo test -p rxlane top_command`
//! writes them anew, to be looked at before they are kept.

use super::*;
use crate::top_command::fixture::{IGB, VETH, material, sampling, steered};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::backend::TestBackend;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use ratatui_core::terminal::Terminal;
use std::path::Path;
use steer::status::{CpuRow, ReasonRow};
use xdp::layout::Reason;

const SIZES: [(u16, u16); 3] = [(80, 24), (100, 40), (200, 60)];
const COLOUR: Theme = Theme { has_colour: true };

fn drawn(
    model: Option<&Model>,
    app: &App,
    sampling: &Sampling,
    theme: Theme,
    (width, height): (u16, u16),
) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("memory");
    let screen = Screen { app, model, interface: "wan0", sampling, theme };
    terminal.draw(|frame| draw(frame, &screen)).expect("memory");
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let rows = buffer.content().chunks(usize::from(buffer.area.width));
    let row = |cells: &[ratatui_core::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned() + "\n"
    };
    rows.map(row).collect()
}

fn app(keys: &str) -> App {
    let mut app = App::new(Duration::from_secs(1));
    for key in keys.chars() {
        app.key(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE));
    }
    app
}

/// Compares with the text kept under `name`.
fn check(name: &str, rendered: &str) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top_command/screens").join(format!("{name}.txt"));
    if std::env::var_os("RXLANE_WRITE_SCREENS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, rendered).expect("written");
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(kept == rendered, "{name} is now\n{rendered}\nand was\n{kept}");
}

#[test]
fn the_overview_fits_every_size() {
    let sample = sampling("access", 500);
    let igb = Model::new(&material(&IGB, "wan0"), &sample);
    let refused = Sampling::Refused("a sample takes CAP_NET_RAW (sudo rxlane top veth0)".to_owned());
    let veth = Model::new(&material(&VETH, "veth0"), &refused);
    for size in SIZES {
        let buffer = drawn(Some(&igb), &app(""), &sample, COLOUR, size);
        check(&format!("igb-overview-{}x{}", size.0, size.1), &text(&buffer));
        let buffer = drawn(Some(&veth), &app(""), &refused, COLOUR, size);
        check(&format!("veth-overview-{}x{}", size.0, size.1), &text(&buffer));
    }
}

#[test]
fn every_view_fits_the_smallest_screen() {
    let sample = sampling("mixed", 900);
    let model = Model::new(&steered(), &sample);
    for (number, view) in (1..).zip(View::ALL) {
        let buffer = drawn(Some(&model), &app(&number.to_string()), &sample, COLOUR, LEAST);
        check(&format!("steered-{}-80x24", view.title().to_lowercase()), &text(&buffer));
    }
    check("help-80x24", &text(&drawn(Some(&model), &app("?"), &sample, COLOUR, LEAST)));
    let off = Model::new(&material(&IGB, "wan0"), &Sampling::Off);
    check("steering-off-80x24", &text(&drawn(Some(&off), &app("7"), &Sampling::Off, COLOUR, LEAST)));
}

#[test]
fn the_title_leaves_out_what_does_not_fit() {
    let mut model = Model::new(&steered(), &Sampling::Off);
    model.interface = "enp129s0f0np0".to_owned();
    model.device = model.interface.clone();
    let title = |columns: u16| {
        let buffer = drawn(Some(&model), &app(""), &Sampling::Off, COLOUR, (columns, 24));
        text(&buffer).lines().next().expect("a title").to_owned()
    };
    assert!(title(100).contains("  MTU 1508 "), "{}", title(100));
    assert!(!title(80).contains("MTU") && title(80).ends_with("  every 1 s"), "{}", title(80));
}

#[test]
fn wide_screens_show_more_columns() {
    let sample = sampling("mixed", 900);
    let model = Model::new(&steered(), &sample);
    for (key, name) in [("2", "queues"), ("3", "vectors"), ("4", "cpus"), ("5", "stages")] {
        let buffer = drawn(Some(&model), &app(key), &sample, COLOUR, (200, 60));
        check(&format!("igb-{name}-200x60"), &text(&buffer));
    }
}

/// The style of the first cell of `word` in the line that contains `line`.
fn style(buffer: &Buffer, line: &str, word: &str) -> ratatui_core::style::Style {
    let text = text(buffer);
    let (y, row) = text.lines().enumerate().find(|(_, row)| row.contains(line)).expect("the line");
    let x = row.find(word).expect("the word");
    buffer.cell((x as u16, y as u16)).expect("within").style()
}

#[test]
fn what_is_critical_is_red_and_the_rest_is_not() {
    let sample = sampling("access", 500);
    let model = Model::new(&material(&IGB, "wan0"), &sample);
    let buffer = drawn(Some(&model), &app("2"), &sample, COLOUR, LEAST);
    let critical = style(&buffer, "61.8k ", "61.8k");
    assert_eq!(critical.fg, Some(Color::Red));
    assert!(critical.add_modifier.contains(Modifier::BOLD));
    assert_eq!(style(&buffer, " 412 ", "412").fg, Some(Color::Reset));
    assert_eq!(style(&buffer, "! 212 frames/s are lost", "212").fg, Some(Color::Red));
    let stages = drawn(Some(&model), &app("5"), &sample, COLOUR, LEAST);
    assert_eq!(style(&stages, "ring 256", "queue").fg, Some(Color::Reset));
    assert_eq!(style(&stages, "ring 256", "212").fg, Some(Color::Red));
}

#[test]
fn without_colours_there_is_none_and_heat_shows_all_the_same() {
    let sample = sampling("access", 500);
    let model = Model::new(&material(&IGB, "wan0"), &sample);
    for key in ["1", "2", "3", "4", "5", "6", "7", "?"] {
        let buffer = drawn(Some(&model), &app(key), &sample, Theme { has_colour: false }, LEAST);
        assert!(
            buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
            "{key}"
        );
    }
    let buffer = drawn(Some(&model), &app("2"), &sample, Theme { has_colour: false }, LEAST);
    assert!(style(&buffer, "61.8k ", "61.8k").add_modifier.contains(Modifier::REVERSED));
}

#[test]
fn a_screen_too_small_says_so_in_every_size() {
    for size in [(79, 24), (80, 23), (30, 5), (7, 3), (1, 1)] {
        let rendered = text(&drawn(None, &app(""), &Sampling::Off, COLOUR, size));
        if size.0 >= 30 {
            assert!(
                rendered.replace('\n', " ").contains(&format!("these are {} and {}", size.0, size.1)),
                "{rendered}"
            );
        }
    }
}

#[test]
fn before_the_first_rates_the_screen_says_so() {
    let rendered = text(&drawn(None, &app(""), &Sampling::Pending, COLOUR, LEAST));
    assert!(
        rendered.contains("rxlane top  wan0")
            && rendered.contains("The first rates come with the second sample.")
    );
}

#[test]
fn rows_are_ordered_by_the_chosen_column() {
    let model = Model::new(&steered(), &Sampling::Off);
    let column = |keys: &str| -> Vec<String> {
        let rendered = text(&drawn(Some(&model), &app(keys), &Sampling::Off, COLOUR, LEAST));
        let rows = rendered.lines().skip_while(|line| !line.contains("frames/s   share")).skip(1);
        rows.take(4).filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect()
    };
    assert_eq!(column("2"), ["0", "1", "2", "3"]);
    assert_eq!(column("2r"), ["3", "2", "1", "0"]);
    assert_eq!(column("2s"), ["0", "1", "3", "2"]);
    assert_eq!(column("2sr"), ["2", "3", "1", "0"]);
}

#[test]
fn scrolling_ends_at_the_last_row() {
    let mut model = Model::new(&material(&IGB, "wan0"), &Sampling::Off);
    let row = model.queues[0].clone();
    model.queues =
        (0..64).map(|queue| crate::top_command::model::QueueRow { queue, ..row.clone() }).collect();
    let mut scrolled = app("2");
    let rendered = |app: &App| text(&drawn(Some(&model), app, &Sampling::Off, COLOUR, LEAST));
    assert!(rendered(&scrolled).contains("Receive queues of wan0  1-13 of 64"), "{}", rendered(&scrolled));
    scrolled.key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    assert!(rendered(&scrolled).contains("52-64 of 64"), "{}", rendered(&scrolled));
    assert!(rendered(&scrolled).contains("\n   63 "), "{}", rendered(&scrolled));
    assert!(rendered(&app("1")).contains("the busiest 6 of 64"), "{}", rendered(&app("1")));
}

#[test]
fn every_reason_is_on_the_smallest_screen_and_every_cpu_within_reach() {
    let mut material = steered();
    for reading in material.steering.former.iter_mut().chain(material.steering.latest.iter_mut()) {
        let reason =
            |(frames, reason): (u64, Reason)| ReasonRow { reason: reason.name(), frames, per_second: None };
        reading.reasons = (1..).zip(Reason::ALL).map(reason).collect();
        reading.cpus = (0..16).map(|cpu| CpuRow { cpu, frames: 100, ..CpuRow::default() }).collect();
    }
    let sample = sampling("mixed", 900);
    let model = Model::new(&material, &sample);
    let mut app = app("7");
    let mut cpus = std::collections::BTreeSet::new();
    for _ in 0..16 {
        let rendered = text(&drawn(Some(&model), &app, &sample, COLOUR, LEAST));
        for reason in Reason::ALL {
            assert!(
                rendered.lines().any(|line| line.ends_with(&format!(" {}", reason.name()))),
                "{rendered}"
            );
        }
        cpus.extend(
            (0..16).filter(|cpu| rendered.lines().any(|line| line.starts_with(&format!("{cpu:>4} ")))),
        );
        app.key(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE));
    }
    assert_eq!(cpus.len(), 16, "{cpus:?}");
}

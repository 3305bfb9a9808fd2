//! The table of all rounds, in Markdown: median [least–most], and ratios to accel-ppp, round by round.

use crate::topology::Concentrator;

/// Figures of a turn, by name, in their order.
#[derive(Clone, Debug, Default)]
pub struct Figures(Vec<(String, f64)>);

impl Figures {
    pub fn add(&mut self, name: &str, figure: f64) {
        self.0.push((name.to_owned(), figure));
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, figure)| *figure)
    }
}

pub fn line(figures: &Figures) -> String {
    let all = figures.0.iter().map(|(name, figure)| format!("{name} {}", rounded(*figure)));
    all.collect::<Vec<_>>().join("; ")
}

pub fn print(all: &[(Concentrator, Vec<Figures>)]) {
    let names = all.iter().find_map(|(_, turns)| turns.first());
    let Some((Figures(names), (_, baseline))) = names.zip(all.first()) else { return };
    let head: Vec<&str> = all.iter().map(|(concentrator, _)| concentrator.name()).collect();
    let ratios = head.iter().skip(1).map(|name| format!("{name}: times accel-ppp"));
    println!("\n| | {} | {} |", head.join(" | "), ratios.collect::<Vec<_>>().join(" | "));
    println!("|{}", " --- |".repeat(2 * all.len()));
    for (name, _) in names {
        let figures = all.iter().map(|(_, turns)| spread(turns.iter().filter_map(|turn| turn.get(name))));
        let ratios = all.iter().skip(1).map(|(_, turns)| {
            let pairs = turns.iter().zip(baseline).filter(|_| turns.len() == baseline.len());
            spread(pairs.filter_map(|(turn, other)| Some(turn.get(name)? / other.get(name)?)))
        });
        println!("| {name} | {} |", figures.chain(ratios).collect::<Vec<_>>().join(" | "));
    }
}

/// Median, least and most.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else { return "–".to_owned() };
    let median = values.get(values.len() / 2).unwrap_or(least);
    format!("{} [{}–{}]", rounded(*median), rounded(*least), rounded(*most))
}

/// Three digits that count.
fn rounded(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

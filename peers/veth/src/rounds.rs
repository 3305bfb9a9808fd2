//! Rounds in which every way has a turn, and tables of them.

use anyhow::Context;

/// A column: its title, the figure of a turn, digits behind the point.
pub type Column<T> = (&'static str, fn(&T) -> f64, usize);

/// What a way gave, one turn a round.
pub type Turns<W, T> = Vec<(W, Vec<T>)>;

/// Gives every way a turn in each round, and prints each.
pub fn measure<W: Copy, T>(
    ways: &[W],
    rounds: usize,
    columns: &[Column<T>],
    name: fn(W) -> &'static str,
    mut turn: impl FnMut(W) -> anyhow::Result<T>,
) -> anyhow::Result<Turns<W, T>> {
    let mut turns: Turns<W, T> = ways.iter().map(|way| (*way, Vec::new())).collect();
    for round in 0..rounds {
        for (way, turns) in &mut turns {
            let this = turn(*way).with_context(|| format!("round {round}, {}", name(*way)))?;
            let figures =
                columns.iter().map(|(name, figure, digits)| format!("{name} {:.digits$}", figure(&this)));
            println!("round {round} {:<24} {}", name(*way), figures.collect::<Vec<_>>().join(", "));
            turns.push(this);
        }
    }
    Ok(turns)
}

/// Medians, least and greatest as a table for a document: a row for each figure.
pub fn markdown<W: Copy, T>(turns: &Turns<W, T>, columns: &[Column<T>], name: fn(W) -> &'static str) {
    let names: Vec<&str> = turns.iter().map(|(way, _)| name(*way)).collect();
    println!("\n| | {} |\n|{}", names.join(" | "), " --- |".repeat(names.len() + 1));
    for (title, figure, digits) in columns {
        let cells = turns.iter().map(|(_, turns)| {
            let (median, least, greatest) = spread(turns.iter().map(figure));
            format!("{median:.digits$} [{least:.digits$}–{greatest:.digits$}]")
        });
        println!("| {title} | {} |", cells.collect::<Vec<_>>().join(" | "));
    }
}

/// Median, least and greatest.
pub fn spread(values: impl IntoIterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}

//! What the turns of a way have in common; peers/pppoe and peers/udp use it, too.

/// Median, least and greatest.
pub fn spread(values: impl IntoIterator<Item = f64>) -> (f64, f64, f64) {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
}

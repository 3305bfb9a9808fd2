//! Median, least and greatest of a few figures.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    pub least: f64,
    pub most: f64,
    #[serde(default)]
    pub count: usize,
}

impl Spread {
    /// Of those that are numbers; `None` without any.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|figure| figure.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let upper = *figures.get(middle)?;
        let lower = if figures.len().is_multiple_of(2) { *figures.get(middle - 1)? } else { upper };
        Some(Spread { median: f64::midpoint(lower, upper), least, most, count: figures.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_two() {
        let spread = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[f64::NAN]), None);
        assert_eq!(spread(&[3.0]), Some(Spread { median: 3.0, least: 3.0, most: 3.0, count: 1 }));
        assert_eq!(spread(&[4.0, 1.0, 3.0]), Some(Spread { median: 3.0, least: 1.0, most: 4.0, count: 3 }));
        let of_four = Spread { median: 2.5, least: 1.0, most: 4.0, count: 4 };
        assert_eq!(spread(&[4.0, 1.0, 3.0, 2.0]), Some(of_four));
    }
}

//! Figures of a metric in a unit that suits them.

use bench::scenario::report::{Metric, Report};
use format::figure;

/// The greatest figure of a metric that is displayed in the unit of the least.
const MOST: f64 = 10_000.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The unit, as it stands behind a figure.
    pub unit: String,
    times: f64,
}

impl Scale {
    /// For figures of a metric: the largest unit of which the least of them that is something has one, as long as the greatest has no
    /// more than [`MOST`].
    pub fn of(unit: &str, figures: impl Iterator<Item = f64>) -> Scale {
        let steps: &[(f64, &str)] = match unit {
            "bit/s" => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            "packets/s" => &[(1e6, "Mpps"), (1e3, "kpps"), (1.0, "pps")],
            "B" => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            "s" => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs")],
            "" => &[(0.01, "%")],
            other => return Scale { unit: other.to_owned(), times: 1.0 },
        };
        let (least, greatest) = figures
            .filter(|figure| *figure > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(least, greatest), figure| {
                (least.min(figure), greatest.max(figure))
            });
        let suits_least = |(size, _): &&(f64, &str)| *size <= least && greatest > 0.0;
        let suits_greatest = |(size, _): &&(f64, &str)| greatest / size <= MOST;
        let of_least = steps.iter().find(suits_least).or(steps.last());
        let fits = of_least.filter(suits_greatest).or_else(|| steps.iter().rfind(suits_greatest));
        fits.or(steps.first()).map_or_else(
            || Scale { unit: unit.to_owned(), times: 1.0 },
            |(size, unit)| Scale { unit: (*unit).to_owned(), times: 1.0 / size },
        )
    }

    pub fn of_metric(report: &Report, metric: &Metric) -> Scale {
        let spreads = report.cells.iter().filter_map(|cell| cell.figures.get(&metric.name)?.spread);
        Scale::of(&metric.unit, spreads.map(|spread| spread.median))
    }

    pub fn figure(&self, value: f64) -> String {
        figure(value * self.times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_suit_the_least_and_the_greatest() {
        let of = |unit, figures: &[f64]| {
            let scale = Scale::of(unit, figures.iter().copied());
            let texts: Vec<String> = figures.iter().map(|figure| scale.figure(*figure)).collect();
            format!("{} {}", texts.join(" "), scale.unit)
        };
        assert_eq!(of("bit/s", &[23.1e9]), "23.1 Gbit/s");
        assert_eq!(of("packets/s", &[437_844.0]), "438 kpps");
        assert_eq!(of("packets/s", &[210_000.0, 0.0, 1_025_000.0]), "210 0.00 1,025 kpps");
        assert_eq!(of("packets/s", &[50.0, 21.8e6]), "0.00 21.8 Mpps");
        assert_eq!(of("s", &[0.000_12, 0.007_9]), "120 7,900 µs");
        assert_eq!(of("s", &[2e-9, 5.0]), "0.00 5,000 ms");
        assert_eq!(of("", &[0.5]), "50.0 %");
        assert_eq!(of("s/GB", &[0.5]), "0.50 s/GB");
        assert_eq!(of("bit/s", &[0.0]), "0.00 bit/s");
        assert_eq!(of("bit/s", &[]), " bit/s");
    }
}

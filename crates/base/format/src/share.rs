//! Parts of a whole.

use std::fmt;

/// A part of a whole. No form of it rounds something to nothing, nor less than all to all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    percent: f64,
}

impl Share {
    /// So many of so many; 0 % of nothing.
    pub fn of(part: u64, whole: u64) -> Share {
        match part >= whole {
            _ if part == 0 || whole == 0 => Share { percent: 0.0 },
            true => Share { percent: 100.0 },
            // A part that differs by less than a `f64` resolves is still no whole.
            false => Share { percent: (100.0 * part as f64 / whole as f64).min(100.0_f64.next_down()) },
        }
    }

    /// A fraction from 0 to 1.
    pub const fn fraction(fraction: f64) -> Share {
        Share { percent: 100.0 * fraction }
    }

    /// From 0 to 100, for the length of a bar.
    pub const fn percent(self) -> f64 {
        self.percent.clamp(0.0, 100.0)
    }

    /// In whole per cent, for sentences: `12 %`, `under 1 %`, `over 99 %`.
    pub fn rounded(self) -> String {
        match self.percent {
            0.0 => "0 %".to_owned(),
            percent if percent < 1.0 => "under 1 %".to_owned(),
            percent if percent > 99.0 && percent < 100.0 => "over 99 %".to_owned(),
            percent => format!("{percent:.0} %"),
        }
    }

    /// With the first digit of small ones, for losses: `12 %`, `0.3 %`, `0.004 %`.
    pub fn small(self) -> String {
        match self.percent {
            all if all >= 10.0 => format!("{all:.0} %"),
            some if some >= 0.1 => format!("{some:.1} %"),
            few if few >= 0.001 => format!("{few:.3} %"),
            _ => "less than 0.001 %".to_owned(),
        }
    }
}

/// With one decimal, for tables: `12.3 %`, `<0.1 %`, `>99.9 %`.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.percent {
            percent if percent <= 0.0 => "0 %".to_owned(),
            percent if percent >= 100.0 => "100 %".to_owned(),
            percent if percent < 0.1 => "<0.1 %".to_owned(),
            percent if percent > 99.9 => ">99.9 %".to_owned(),
            percent if percent.is_nan() => crate::UNKNOWN.to_owned(),
            percent => format!("{percent:.1} %"),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    #[test]
    fn no_form_rounds_to_nothing_or_all() {
        let shares = [(0, 0), (0, 10), (1, 1_000_000), (1, 3), (999_999, 1_000_000), (10, 10)];
        let shares = shares.map(|(part, whole)| Share::of(part, whole));
        let texts = shares.map(|share| share.to_string());
        assert_eq!(texts, ["0 %", "0 %", "<0.1 %", "33.3 %", ">99.9 %", "100 %"]);
        let texts = shares.map(Share::rounded);
        assert_eq!(texts, ["0 %", "0 %", "under 1 %", "33 %", "over 99 %", "100 %"]);
        assert_eq!(Share::of(u64::MAX - 1, u64::MAX).rounded(), "over 99 %");
        let texts = [0.12, 0.003, 0.000_04, 1e-9].map(|fraction| Share::fraction(fraction).small());
        assert_eq!(texts, ["12 %", "0.3 %", "0.004 %", "less than 0.001 %"]);
        assert_eq!(format!("{:>7}", Share::of(1, 2)), " 50.0 %");
    }
}

//! Numbers as they stand in a narrow column: four characters and a letter, `-` where a number is not known.

/// What stands for a number that is not known.
pub const UNKNOWN: &str = "-";

/// A rate: `0`, `0.4`, `950`, `12.3k`, `1.20M`; powers of 1000.
pub fn rate(value: Option<f64>) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return UNKNOWN.to_owned() };
    if value < 0.05 {
        return "0".to_owned();
    }
    if value < 9.95 {
        return format!("{value:.1}");
    }
    if value < 999.5 {
        return format!("{value:.0}");
    }
    let mut value = value;
    for unit in ["k", "M", "G", "T"] {
        value /= 1000.0;
        if value < 9.995 {
            return format!("{value:.2}{unit}");
        }
        if value < 99.95 {
            return format!("{value:.1}{unit}");
        }
        if value < 999.5 {
            return format!("{value:.0}{unit}");
        }
    }
    format!("{value:.0}T")
}

/// A number of things: all its digits up to five, then as a rate.
pub fn count(value: Option<u64>) -> String {
    match value {
        None => UNKNOWN.to_owned(),
        Some(value) if value < 100_000 => value.to_string(),
        Some(value) => rate(Some(value as f64)),
    }
}

/// A part of one: `98.2%`, `100%`; a trace is `<0.1%`.
pub fn share(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        None => UNKNOWN.to_owned(),
        Some(value) if value <= 0.0 => "0%".to_owned(),
        Some(value) if value < 0.0005 => "<0.1%".to_owned(),
        Some(value) if value >= 0.9995 => "100%".to_owned(),
        Some(value) => format!("{:.1}%", 100.0 * value),
    }
}

/// Per cent of a CPU's time, as a share.
pub fn percent(value: Option<f64>) -> String {
    share(value.map(|value| value / 100.0))
}

/// `[||||    ]`, `width` characters in all; what is more than nothing shows at least one stroke.
pub fn bar(part: Option<f64>, width: usize) -> String {
    let Some(part) = part.filter(|part| part.is_finite()) else { return " ".repeat(width) };
    let room = width.saturating_sub(2);
    let strokes = (part.clamp(0.0, 1.0) * room as f64).round() as usize;
    let strokes = if part > 0.0 { strokes.max(1) } else { 0 }.min(room);
    format!("[{}{}]", "|".repeat(strokes), " ".repeat(room - strokes))
}

/// Mbit/s as a link's speed is told.
pub fn speed(megabits: u32) -> String {
    if megabits >= 1000 && megabits.is_multiple_of(500) {
        format!("{} Gbit/s", f64::from(megabits) / 1000.0)
    } else {
        format!("{megabits} Mbit/s")
    }
}

/// CPUs as the kernel lists them: `0-3,8`.
pub fn cpu_list(cpus: &[u32]) -> String {
    let mut cpus = cpus.to_vec();
    cpus.sort_unstable();
    cpus.dedup();
    let mut text = String::new();
    let mut rest = cpus.as_slice();
    while let Some((&first, _)) = rest.split_first() {
        let length = rest.iter().zip(first..).take_while(|(cpu, next)| *cpu == next).count();
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if length > 1 {
            text.push(if length > 2 { '-' } else { ',' });
            text.push_str(&(first + length as u32 - 1).to_string());
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_takes_five_characters_at_most() {
        let cases = [
            (0.0, "0"),
            (0.04, "0"),
            (0.4, "0.4"),
            (9.94, "9.9"),
            (9.96, "10"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (9_994.0, "9.99k"),
            (9_996.0, "10.0k"),
            (99_960.0, "100k"),
            (999_600.0, "1.00M"),
            (1.25e9, "1.25G"),
            (7.0e13, "70.0T"),
        ];
        for (value, text) in cases {
            assert_eq!(rate(Some(value)), text, "{value}");
        }
        assert_eq!((rate(None), rate(Some(f64::NAN))), ("-".to_owned(), "-".to_owned()));
    }

    #[test]
    fn no_share_is_rounded_to_nothing_or_all() {
        let texts = [0.0, 0.0001, 0.982, 0.9994, 0.9996, 1.0].map(|value| share(Some(value)));
        assert_eq!(texts, ["0%", "<0.1%", "98.2%", "99.9%", "100%", "100%"]);
    }

    #[test]
    fn a_bar_is_as_wide_as_it_should_be() {
        assert_eq!(bar(Some(0.5), 10), "[||||    ]");
        assert_eq!(bar(Some(0.001), 10), "[|       ]");
        assert_eq!(bar(Some(7.0), 6), "[||||]");
        assert_eq!((bar(None, 4), bar(Some(0.0), 4)), ("    ".to_owned(), "[  ]".to_owned()));
        assert_eq!(bar(Some(0.4), 1), "[]");
    }

    #[test]
    fn cpus_are_listed_as_the_kernel_lists_them() {
        assert_eq!(cpu_list(&[3, 0, 1, 2, 8]), "0-3,8");
        assert_eq!(cpu_list(&[4, 5]), "4,5");
        assert_eq!((cpu_list(&[]), cpu_list(&[7])), (String::new(), "7".to_owned()));
    }

    #[test]
    fn speeds_are_told_as_people_say_them() {
        assert_eq!(
            [100, 1000, 2500, 10_000].map(speed),
            ["100 Mbit/s", "1 Gbit/s", "2.5 Gbit/s", "10 Gbit/s"]
        );
    }
}

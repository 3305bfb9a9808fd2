//! Numbers and what they count.

use crate::UNKNOWN;

/// `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 frame`, `1,234 frames`.
pub fn plural(number: u64, singular: &str) -> String {
    format!("{} {singular}{}", thousands(number), if number == 1 { "" } else { "s" })
}

/// A value with three significant digits at least; what is not known, or not finite, is a dash.
pub fn figure(value: impl Into<Option<f64>>) -> String {
    let Some(value) = value.into().filter(|value| value.is_finite()) else { return UNKNOWN.to_owned() };
    match value.abs() {
        // No integer of 64 bits holds what is farther up.
        size if size >= 1e19 => format!("{value:.2e}"),
        size if size >= 999.5 => {
            format!("{}{}", if value < 0.0 { "-" } else { "" }, thousands(size.round() as u64))
        }
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes: exact below 10,000, then with a decimal prefix: `12.3 MB`.
pub fn size(bytes: u64) -> String {
    if bytes < 10_000 { format!("{} B", thousands(bytes)) } else { prefixed(bytes as f64, "B") }
}

/// `1.25 Mbit/s`.
pub fn bit_rate(bits_per_second: f64) -> String {
    prefixed(bits_per_second, "bit/s")
}

/// Bits a second from 8,000 to 10^12, as people write them: `900M`, `1.5G`, `950000000`. `None`: this is none.
pub fn bit_rate_of(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || b".kMG".contains(&byte));
    let bits = number_of(text).filter(|bits| is_plain && (8e3..=1e12).contains(bits))?;
    Some(bits as u64)
}

/// `100k`, `1.5M`, `1488095`, `10G`: powers of 1000. `None`: this is no number.
pub fn number_of(text: &str) -> Option<f64> {
    let (digits, times) = match text.char_indices().last()? {
        (at, 'k') => (text.get(..at)?, 1e3),
        (at, 'M') => (text.get(..at)?, 1e6),
        (at, 'G') => (text.get(..at)?, 1e9),
        _ => (text, 1.0),
    };
    digits.parse::<f64>().ok().map(|number| number * times)
}

/// The nominal speed of a link: `100 Mbit/s`, `2.5 Gbit/s`.
pub fn speed(megabits: u32) -> String {
    match megabits {
        1000.. if megabits.is_multiple_of(500) => format!("{} Gbit/s", f64::from(megabits) / 1000.0),
        _ => format!("{megabits} Mbit/s"),
    }
}

/// Five characters at most, for narrow columns: `0`, `0.4`, `950`, `12.3k`, `1.20M`.
pub fn compact(value: impl Into<Option<f64>>) -> String {
    match value.into().filter(|value| value.is_finite()) {
        None => UNKNOWN.to_owned(),
        Some(value) if value < 0.05 => "0".to_owned(),
        Some(value) if value < 9.95 => format!("{value:.1}"),
        Some(value) if value < 999.5 => format!("{value:.0}"),
        Some(value) => {
            let (number, prefix) = scaled(value);
            format!("{number}{prefix}")
        }
    }
}

fn prefixed(value: f64, unit: &str) -> String {
    let (number, prefix) = scaled(value);
    format!("{number} {prefix}{unit}")
}

/// Three significant digits and a decimal prefix.
fn scaled(mut value: f64) -> (String, &'static str) {
    let mut prefix = "";
    for next in ["k", "M", "G", "T", "P", "E"] {
        // 999.5 would round to 1000 of the smaller unit.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        prefix = next;
    }
    let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    (format!("{value:.decimals$}"), prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!([0, 12, 123, 1234, 1_234_567].map(thousands), ["0", "12", "123", "1,234", "1,234,567"]);
        assert_eq!(thousands(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!([0, 1, 2000].map(|n| plural(n, "flow")), ["0 flows", "1 flow", "2,000 flows"]);
    }

    #[test]
    fn three_digits() {
        let cases = [(0.0, "0.00"), (9.996, "10.0"), (99.96, "100"), (-999.6, "-1,000"), (1.5e24, "1.50e24")];
        for (value, text) in cases {
            assert_eq!(figure(value), text);
        }
        assert_eq!((figure(f64::NAN), figure(None)), ("–".to_owned(), "–".to_owned()));
    }

    #[test]
    fn units() {
        let sizes = [9_999, 10_000, 999_499, 999_500, u64::MAX].map(size);
        assert_eq!(sizes, ["9,999 B", "10.0 kB", "999 kB", "1.00 MB", "18.4 EB"]);
        assert_eq!([0.0, 999.6, 1.25e9].map(bit_rate), ["0.00 bit/s", "1.00 kbit/s", "1.25 Gbit/s"]);
        assert_eq!([100, 1000, 2500].map(speed), ["100 Mbit/s", "1 Gbit/s", "2.5 Gbit/s"]);
    }

    #[test]
    fn five_characters() {
        let cases = [
            (0.04, "0"),
            (0.4, "0.4"),
            (9.96, "10"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (9_996.0, "10.0k"),
            (999_600.0, "1.00M"),
            (7.0e13, "70.0T"),
        ];
        for (value, text) in cases {
            assert_eq!(compact(value), text, "{value}");
        }
        assert_eq!((compact(None), compact(f64::NAN)), ("–".to_owned(), "–".to_owned()));
    }

    #[test]
    fn rates_are_read_with_their_prefix() {
        for (text, bits) in
            [("900M", 900_000_000), ("1.5G", 1_500_000_000), ("8k", 8000), ("950000000", 950_000_000)]
        {
            assert_eq!(bit_rate_of(text), Some(bits));
        }
        for text in ["", "M", "-1G", "nan", "1", "2000G", "1kk", "+9M", "1e6"] {
            assert_eq!(bit_rate_of(text), None, "{text}");
        }
    }
}

//! How figures and foreign text are written on the page.

/// No-break space, so that a figure and its unit stay on one line.
const NBSP: char = '\u{a0}';

/// `1,234,567`.
pub fn count(number: u64) -> String {
    explain::grouped(number)
}

/// `1 frame`, `2 frames`.
pub fn counted(number: u64, singular: &str) -> String {
    format!("{}{NBSP}{singular}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Octets with a decimal prefix and three significant digits, exact below 10,000.
pub fn bytes(octets: u64) -> String {
    if octets < 10_000 {
        return format!("{}{NBSP}B", count(octets));
    }
    prefixed(octets as f64, "B")
}

/// Bits a second over `seconds`; `None` where they give no rate.
pub fn bit_rate(octets: u64, seconds: f64) -> Option<String> {
    let rate = octets as f64 * 8.0 / seconds;
    (seconds > 0.0 && rate.is_finite()).then(|| prefixed(rate, "bit/s"))
}

/// Frames a second over `seconds`; `None` where they give no rate.
pub fn frame_rate(frames: u64, seconds: f64) -> Option<String> {
    let rate = frames as f64 / seconds;
    let number = if rate < 10.0 { format!("{rate:.2}") } else { count(rate.round() as u64) };
    (seconds > 0.0 && rate.is_finite()).then(|| format!("{number}{NBSP}frames/s"))
}

fn prefixed(mut value: f64, unit: &str) -> String {
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
    format!("{value:.decimals$}{NBSP}{prefix}{unit}")
}

/// `12.3 %`; never 0 % of something, never 100 % of less than all.
pub fn share(part: u64, whole: u64) -> String {
    let percent = percent(part, whole);
    if part == 0 || whole == 0 {
        format!("0{NBSP}%")
    } else if part >= whole {
        format!("100{NBSP}%")
    } else if percent < 0.1 {
        format!("<0.1{NBSP}%")
    } else if percent > 99.9 {
        format!(">99.9{NBSP}%")
    } else {
        format!("{percent:.1}{NBSP}%")
    }
}

/// Percent from 0 to 100, for lengths in a drawing.
pub fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (100.0 * part as f64 / whole as f64).clamp(0.0, 100.0) }
}

/// A ratio with two decimals where they mean something; a dash where there is none.
pub fn ratio(value: f64) -> String {
    match value {
        value if !value.is_finite() || value <= 0.0 => "–".to_owned(),
        value if value >= 1000.0 => count(value.round() as u64),
        value => format!("{value:.2}"),
    }
}

/// A mean with as many decimals as it needs.
pub fn mean(total: u64, parts: usize) -> String {
    let value = total as f64 / parts.max(1) as f64;
    if value >= 100.0 || value.fract() == 0.0 { count(value.round() as u64) } else { format!("{value:.1}") }
}

/// A duration in the units people use for it.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if !s.is_finite() || s < 0.0 => "–".to_owned(),
        0.0 => format!("0{NBSP}s"),
        s if s < 0.000_999_5 => format!("{:.0}{NBSP}µs", s * 1e6),
        s if s < 0.999_5 => format!("{:.0}{NBSP}ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1}{NBSP}s"),
        s if s < 7200.0 => format!("{:.0}{NBSP}min {:.0}{NBSP}s", (s / 60.0).floor(), (s % 60.0).floor()),
        s if s < 172_800.0 => {
            format!("{:.0}{NBSP}h {:.0}{NBSP}min", (s / 3600.0).floor(), (s % 3600.0 / 60.0).floor())
        }
        s => format!("{}{NBSP}d {:.0}{NBSP}h", count((s / 86_400.0) as u64), (s % 86_400.0 / 3600.0).floor()),
    }
}

/// Text that somebody else chose, at most `most` characters of it, with what would move or hide its
/// neighbours (control characters, marks that turn the direction of writing) spelled out. Escaping for HTML
/// is the template's job.
pub fn foreign(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (at, character) in text.chars().enumerate() {
        if at == most {
            shown.push('…');
            break;
        }
        if turns_or_hides(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Control characters and the characters with the Unicode property `Bidi_Control`, zero-width ones and line
/// separators.
pub fn turns_or_hides(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(character, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_grouped_and_rounded() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "frame"), "1\u{a0}frame");
        assert_eq!(counted(1_200, "frame"), "1,200\u{a0}frames");
        assert_eq!(bytes(9_999), "9,999\u{a0}B");
        assert_eq!(bytes(10_000), "10.0\u{a0}kB");
        assert_eq!(bytes(999_499), "999\u{a0}kB");
        assert_eq!(bytes(999_500), "1.00\u{a0}MB");
        assert_eq!(bytes(u64::MAX), "18.4\u{a0}EB");
        assert_eq!(mean(10, 4), "2.5");
        assert_eq!(mean(4_096, 4), "1,024");
        assert_eq!((ratio(1.0), ratio(0.0), ratio(f64::NAN)), ("1.00".into(), "–".into(), "–".into()));
    }

    #[test]
    fn a_share_is_never_rounded_to_nothing_or_to_all() {
        assert_eq!(share(0, 10), "0\u{a0}%");
        assert_eq!(share(0, 0), "0\u{a0}%");
        assert_eq!(share(1, 1_000_000), "<0.1\u{a0}%");
        assert_eq!(share(999_999, 1_000_000), ">99.9\u{a0}%");
        assert_eq!(share(10, 10), "100\u{a0}%");
        assert_eq!(share(1, 3), "33.3\u{a0}%");
    }

    #[test]
    fn durations_and_rates_read_as_people_say_them() {
        assert_eq!(duration(0.0), "0\u{a0}s");
        assert_eq!(duration(0.000_25), "250\u{a0}µs");
        assert_eq!(duration(0.999_8), "1.0\u{a0}s");
        assert_eq!(duration(0.499), "499\u{a0}ms");
        assert_eq!(duration(8.214), "8.2\u{a0}s");
        assert_eq!(duration(278.2), "4\u{a0}min 38\u{a0}s");
        assert_eq!(duration(36_061.0), "10\u{a0}h 1\u{a0}min");
        assert_eq!(duration(1_763_071_200.0), "20,405\u{a0}d 22\u{a0}h");
        assert_eq!(duration(f64::NAN), "–");
        assert_eq!(bit_rate(125_000, 1.0).as_deref(), Some("1.00\u{a0}Mbit/s"));
        assert_eq!(bit_rate(125_000, 0.0), None);
        assert_eq!(frame_rate(5, 100.0).as_deref(), Some("0.05\u{a0}frames/s"));
        assert_eq!(frame_rate(5, 0.0), None);
    }

    #[test]
    fn foreign_text_neither_hides_nor_runs_on() {
        assert_eq!(foreign("a\u{202e}b\nc", 80), r"a\u{202e}b\u{a}c");
        assert_eq!(foreign("äöü€", 3), "äöü…");
        assert_eq!(foreign("äöü", 3), "äöü");
    }
}

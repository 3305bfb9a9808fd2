//! How figures and foreign text are written on the page.

/// No-break space, so that a figure and its unit stay on one line.
const NBSP: char = '\u{a0}';

/// `1,234,567`.
pub fn count(number: u64) -> String {
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
    (seconds > 0.0 && rate.is_finite()).then(|| format!("{}{NBSP}frames/s", count(rate.round() as u64)))
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

/// A ratio with two decimals; a dash where there is none.
pub fn ratio(value: f64) -> String {
    if value.is_finite() && value > 0.0 { format!("{value:.2}") } else { "–".to_owned() }
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
        s if s < 0.001 => format!("{:.0}{NBSP}µs", s * 1e6),
        s if s < 1.0 => format!("{:.0}{NBSP}ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1}{NBSP}s"),
        s if s < 7200.0 => format!("{:.0}{NBSP}min {:.0}{NBSP}s", (s / 60.0).floor(), (s % 60.0).floor()),
        s => {
            let (hours, rest) = ((s / 3600.0).floor(), s % 3600.0);
            format!("{}{NBSP}h {:.0}{NBSP}min", count(hours as u64), (rest / 60.0).floor())
        }
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

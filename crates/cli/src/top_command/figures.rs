//! Numbers as they stand in a narrow column.

use format::{Share, UNKNOWN, compact};

/// A number of things: all its digits up to five, then as a rate.
pub fn count(value: Option<u64>) -> String {
    match value {
        None => UNKNOWN.to_owned(),
        Some(value) if value < 100_000 => value.to_string(),
        Some(value) => compact(value as f64),
    }
}

/// A part of one.
pub fn share(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.to_owned(), |value| Share::fraction(value).to_string())
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
}

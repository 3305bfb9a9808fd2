//! Durations and moments.

use crate::{figure, thousands};
use std::time::SystemTime;

/// Seconds in the unit that suits them, from two minutes on in the two largest: `8.21 s`, `4 min 38 s`, `2 d 7 h`.
pub fn duration(seconds: f64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];
    match seconds {
        s if !s.is_finite() || s < 0.0 => return crate::UNKNOWN.to_owned(),
        0.0 => return "0 s".to_owned(),
        s if s < 0.999_5e-6 => return format!("{} ns", figure(s * 1e9)),
        s if s < 0.999_5e-3 => return format!("{} µs", figure(s * 1e6)),
        s if s < 0.999_5 => return format!("{} ms", figure(s * 1e3)),
        s if s < 119.95 => return format!("{} s", figure(s)),
        _ => {}
    }
    let whole = seconds.round() as u64;
    let largest = UNITS.iter().position(|(unit, _)| whole >= 2 * unit).unwrap_or(3).min(2);
    let [(large, large_name), (small, small_name)] = [UNITS[largest], UNITS[largest + 1]];
    format!("{} {large_name} {} {small_name}", thousands(whole / large), whole % large / small)
}

/// `2026-01-31T23:59:59Z` (RFC 3339 section 5.6); what lies before 1970 is its first second.
pub fn utc(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_say_them() {
        for (seconds, text) in [
            (0.0, "0 s"),
            (2.5e-8, "25.0 ns"),
            (0.000_25, "250 µs"),
            (0.999_8, "1.00 s"),
            (0.499, "499 ms"),
            (8.214, "8.21 s"),
            (119.97, "2 min 0 s"),
            (278.2, "4 min 38 s"),
            (36_061.0, "10 h 1 min"),
            (200_000.0, "2 d 7 h"),
            (1_763_071_200.0, "20,405 d 22 h"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn moments() {
        let moment = |seconds| utc(SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds));
        assert_eq!(moment(0), "1970-01-01T00:00:00Z");
        assert_eq!(moment(1_795_383_296), "2026-11-22T21:34:56Z");
    }
}

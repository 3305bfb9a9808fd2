//! The time of day as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// `2026-01-31T23:59:59Z` (RFC 3339 section 5.6); what lies before 1970 is its first second.
pub fn utc(time: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date(seconds / DAY);
    let [hour, minute, second] = [seconds % DAY / 3600, seconds % 3600 / 60, seconds % 60];
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of so many days since 1970-01-01, in the Gregorian calendar. Years are counted from March here, so
/// that the day which some of them lack is their last.
fn date(days: u64) -> (u64, u64, u64) {
    /// Days of 400 years, 100 and 4; from 0000-03-01 to 1970-01-01.
    const AGES: [u64; 3] = [146_097, 36_524, 1_461];
    const BEFORE: u64 = 719_468;
    let [age, century, leap] = AGES;
    let days = days + BEFORE;
    let of_age = days % age;
    let year_of_age = (of_age - of_age / (leap - 1) + of_age / century - of_age / (age - 1)) / 365;
    let of_year = of_age - (365 * year_of_age + year_of_age / 4 - year_of_age / 100);
    // Months from March on have 153 days in every five.
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (days / age * 400 + year_of_age + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn moments_are_written_as_date_prints_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_709_164_799, "2024-02-28T23:59:59Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (1_795_383_296, "2026-11-22T21:34:56Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}

//! Durations.

use std::time::Duration;

/// Reads seconds, with a fraction or without, from `least` to `most`.
pub fn seconds(least: f64, most: f64) -> impl Fn(&str) -> Result<Duration, String> + Clone + Send + Sync {
    move |text| {
        let seconds = text.parse().ok().filter(|seconds| (least..=most).contains(seconds));
        let seconds = seconds.ok_or_else(|| format!("{least} to {most} seconds are possible"))?;
        Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_within_their_limits() {
        let read = seconds(0.1, 60.0);
        assert_eq!((read("0.5"), read("60")), (Ok(Duration::from_millis(500)), Ok(Duration::from_secs(60))));
        for text in ["0", "-1", "nan", "inf", "1e9", "x", ""] {
            assert_eq!(read(text), Err("0.1 to 60 seconds are possible".to_owned()), "{text}");
        }
    }
}

//! The greatest rate without loss (RFC 2544 section 26.1).

use super::super::Error;

/// The search ends when the rate that passes and the one that fails are so near, or after so many trials.
const NEAR: f64 = 0.02;
pub const TRIALS: usize = 8;

/// The greatest rate that passes, by halves, of which `most` does not; 0: none that was tried did.
///
/// # Errors
///
/// What a trial said.
pub fn search(most: f64, passes: &mut dyn FnMut(f64) -> Result<bool, Error>) -> Result<f64, Error> {
    let (mut good, mut bad) = (0.0, most);
    for _ in 0..TRIALS {
        let rate = f64::midpoint(good, bad);
        if passes(rate)? {
            good = rate
        } else {
            bad = rate
        }
        if bad - good < NEAR * bad {
            break;
        }
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_near_the_limit() {
        for limit in [100.0, 999.0, 333.3, 650.0] {
            let mut trials = 0;
            let found = search(1000.0, &mut |rate| {
                trials += 1;
                Ok(rate <= limit)
            });
            let found = found.expect("a rate");
            assert!(found <= limit && found >= 0.9 * limit && trials <= TRIALS, "{limit}: {found}, {trials}");
        }
        assert_eq!(search(1000.0, &mut |_| Ok(false)).expect("none"), 0.0);
        let error = search(1000.0, &mut |_| Err(Error::Failed("wedged".to_owned())));
        assert_eq!(error.expect_err("a failure").to_string(), "wedged");
    }
}

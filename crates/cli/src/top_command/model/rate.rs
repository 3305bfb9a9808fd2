//! What counters counted in a second. What was read once, or fell, is not known.

use host::{Counter, Delta};
use std::time::Duration;

/// What a counter counted between its two samples.
pub fn counted(counter: &Counter) -> Option<u64> {
    match counter.delta() {
        Delta::Counted(counted) | Delta::Wrapped(counted) => Some(counted),
        Delta::Reset | Delta::OneSample => None,
    }
}

/// The same in a second.
pub fn per_second(counter: Option<&Counter>, interval: Option<Duration>) -> Option<f64> {
    let seconds = interval?.as_secs_f64();
    let counted = counted(counter?)?;
    (seconds > 0.0).then(|| counted as f64 / seconds)
}

/// The sum, where there is something to add up and all of it is known.
pub fn sum(rates: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let mut rates = rates.into_iter().peekable();
    rates.peek()?;
    rates.try_fold(0.0, |sum, rate| Some(sum + rate?))
}

/// The largest of those that are known.
pub fn largest(rates: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    rates.into_iter().flatten().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::Quote;

    fn twice(first: u64, latest: u64) -> Counter {
        let quote = Quote::new(&"t".into(), 1, None, "x");
        let mut counter = Counter::new(first, quote.clone());
        counter.again(latest, quote);
        counter
    }

    #[test]
    fn a_counter_that_fell_is_not_known() {
        let second = Some(Duration::from_secs(2));
        assert_eq!(per_second(Some(&twice(10, 30)), second), Some(10.0));
        assert_eq!(per_second(Some(&twice(30, 10)), second), None);
        assert_eq!(per_second(Some(&twice(0xffff_ffff, 1)), second), Some(1.0));
        assert_eq!(per_second(Some(&twice(1, 2)), None), None);
        assert_eq!(per_second(None, second), None);
    }

    #[test]
    fn a_sum_of_the_unknown_is_not_known() {
        assert_eq!(sum([Some(1.0), Some(2.0)]), Some(3.0));
        assert_eq!(sum([Some(1.0), None]), None);
        assert_eq!(sum([]), None);
        assert_eq!(largest([None, Some(1.0), Some(4.0)]), Some(4.0));
    }
}

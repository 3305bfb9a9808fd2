//! A stalled interface: frames go in, none come out, and a counter on the way stands still.

use super::super::router::{Passed, Router, Way};
use super::super::{Error, Tools};
use crate::frames::Playing;
use std::time::Duration;

/// A few frames, slowly, get through a router that is merely overloaded by more.
const FRAMES: u64 = 32;
const RATE: f64 = 1000.0;
/// How long the first of them has for its way.
const PATIENCE: Duration = Duration::from_secs(1);

/// Sends a few frames each of these ways, by itself. [`Error::Failed`] where nothing comes out: which interface's counter
/// stands still, and whether the interface works again when it is set down and up.
pub fn check(router: &Router, ways: &[Way], tools: &Tools<'_>) -> Result<(), Error> {
    for way in ways {
        let before = router.passed(*way)?;
        if comes_out(router, *way, tools)? {
            continue;
        }
        let (culprit, input) = standing_still(&before, &router.passed(*way)?);
        let Passed { interface, counter, frames, .. } = &culprit;
        let end = match router.restart(&culprit, tools).and_then(|()| comes_out(router, *way, tools)) {
            Ok(true) => "set down and up again, it works".to_owned(),
            Ok(false) => "setting it down and up again does not help".to_owned(),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(error) => format!("it cannot be set down and up again: {error}"),
        };
        let owner = if culprit.is_routers { "the router's" } else { "the line's" };
        return Err(Error::Failed(format!(
            "stalled: none of {FRAMES} frames came out; {counter} of {owner} {interface} stands still at {frames}, {input}; \
             {end}; the kernel log, `ip -s -s link show dev {interface}` and `tc -s qdisc show dev {interface}` may say why"
        )));
    }
    Ok(())
}

fn comes_out(router: &Router, way: Way, tools: &Tools<'_>) -> Result<bool, Error> {
    let before = router.arrived(&[way])?;
    router.play(way, Playing { rate: Some(RATE), count: Some(FRAMES), ..Playing::default() }, tools)?;
    let arrives = || Ok((router.arrived(&[way])? > before).then_some(()));
    Ok(tools.wait_for(PATIENCE, arrives)?.is_some())
}

/// The first counter on the way that did not go up, and what the one before it says.
fn standing_still(before: &[Passed], after: &[Passed]) -> (Passed, String) {
    let increase = |at: usize| {
        let [before, after] = [before, after].map(|all| all.get(at).map_or(0, |passed| passed.frames));
        after.saturating_sub(before)
    };
    // Where all went up, the last says that frames came of which none was counted as ours.
    let at = (0..after.len()).find(|at| increase(*at) == 0).unwrap_or(after.len().saturating_sub(1));
    let input = match at.checked_sub(1).and_then(|before| after.get(before).map(|passed| (before, passed))) {
        Some((place, passed)) => {
            format!("while {} of {} went up by {}", passed.counter, passed.interface, increase(place))
        }
        None => "and it is where they are sent".to_owned(),
    };
    let nowhere = || Passed { is_routers: true, interface: String::new(), counter: "", frames: 0 };
    (after.get(at).cloned().unwrap_or_else(nowhere), input)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(counts: [u64; 4]) -> Vec<Passed> {
        let way = [
            (false, "line0", "tx_packets"),
            (true, "wan0", "rx_packets"),
            (true, "out0", "tx_packets"),
            (false, "far0", "rx_packets"),
        ];
        let of = |((is_routers, interface, counter), frames): ((bool, &str, &'static str), u64)| Passed {
            is_routers,
            interface: interface.to_owned(),
            counter,
            frames,
        };
        way.into_iter().zip(counts).map(of).collect()
    }

    #[test]
    fn the_first_counter_that_stands_still_is_named() {
        let before = passed([100, 100, 90, 90]);
        for (after, culprit, input) in [
            ([132, 132, 90, 90], "out0", "while rx_packets of wan0 went up by 32"),
            ([132, 100, 90, 90], "wan0", "while tx_packets of line0 went up by 32"),
            ([132, 132, 122, 90], "far0", "while tx_packets of out0 went up by 32"),
            ([100, 100, 90, 90], "line0", "and it is where they are sent"),
        ] {
            let (found, words) = standing_still(&before, &passed(after));
            assert_eq!((found.interface.as_str(), words.as_str()), (culprit, input));
        }
    }
}

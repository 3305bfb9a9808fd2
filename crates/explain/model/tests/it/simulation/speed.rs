//! How little work a frame is for the simulation, counted, since time depends on the machine; and that its answer is the one that
//! it has always been.

use super::plans::digest;
use rxlane_model::{Answer, Scenario, run};

const SPEED: &str = include_str!("../../../../../../docs/model/speed.toml");

fn simulate(ahead: bool, change: impl FnOnce(&mut Scenario)) -> Answer {
    let mut scenario = Scenario::parse("speed.toml", SPEED).unwrap_or_else(|error| panic!("{error}"));
    scenario.duration_ms = 20.0;
    change(&mut scenario);
    let plan = scenario.plan(&mut |_, _, _, _| Err("no captures".to_owned()));
    let mut plan = plan.unwrap_or_else(|error| panic!("{error}"));
    plan.ahead = ahead;
    run(plan)
}

fn events_a_frame(answer: &Answer) -> f64 {
    answer.events as f64 / answer.traffic.iter().map(|traffic| traffic.offered).sum::<u64>() as f64
}

/// The machine of `docs/model/speed.toml` delivers nearly all of ten million frames a second.
#[test]
fn every_stage_takes_few_events_a_frame() {
    let (ahead, abreast) = (simulate(true, |_| ()), simulate(false, |_| ()));
    assert_eq!(digest(&ahead), digest(&abreast));
    assert!(ahead.conserves());
    let (few, many) = (events_a_frame(&ahead), events_a_frame(&abreast));
    // Arrival, poll, flush, input, and shares of interrupts and calls.
    assert!(many > 3.0, "{many}");
    assert!(few < 1.8, "{few} where CPUs run ahead, {many} where they do not");
    let plain = simulate(true, |scenario| {
        (scenario.gro_frames, scenario.hand_over) = (None, None);
        scenario.traffic.values_mut().for_each(|traffic| traffic.to = None);
        scenario.application.clear();
    });
    assert!(events_a_frame(&plain) < 0.4, "{}", events_a_frame(&plain));
}

/// FNV-1a of everything that can be compared.
fn fingerprint(answer: &Answer) -> u64 {
    digest(answer).bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Changes with the rules of the simulation, with its random numbers and with the scenario; with nothing else, and on no platform.
#[test]
fn the_answer_is_the_one_that_was_written_down() {
    assert_eq!(fingerprint(&simulate(true, |_| ())), 10_399_216_164_055_339_200);
}

//! Fixtures through the reference, the native C parser, and the programs.

use crate::programs::agreement::FIRST_BUFFER;
use crate::programs::fixture::{self, Fixture};
use crate::programs::kernel::{LEAST, PASS, Program, REDIRECT, Sums, arrive_as_ordinary, probe};
use crate::programs::native::native;
use crate::programs::settings;
use rxlane_xdp::layout::{Class, Reason, Settings};
use rxlane_xdp::object;
use rxlane_xdp::reference::{Decision, decide, decide_in_buffers};
use testkit::require;

#[test]
fn the_reference_decides_as_the_fixtures_say() {
    for Fixture { name, frame, expected } in fixture::all() {
        let found = decide(&frame, &settings());
        let flow = found.flow.map(|(flow, _)| flow.to_string());
        let decided = match (&flow, found.class) {
            (Some(flow), Some(class)) => Ok((class, flow.as_str())),
            _ => Err(found.reason),
        };
        assert_eq!(decided, expected, "{name}");
    }
}

#[test]
fn the_native_parser_decides_as_the_reference() {
    let Some(mut native) = require("cc", native()) else { return };
    for symmetric in [0, 1] {
        let settings = Settings { symmetric, ..settings() };
        for Fixture { frame, .. } in fixture::all() {
            // Every prefix, too, as a frame of its own and as the first buffer of the whole.
            for length in (0..frame.len().min(200)).chain([frame.len()]) {
                let first = &frame[..length];
                native.agrees(first, length, &settings, &decide(first, &settings));
                native.agrees(
                    first,
                    frame.len(),
                    &settings,
                    &decide_in_buffers(first, frame.len(), &settings),
                );
            }
        }
    }
}

#[test]
fn the_programs_do_as_the_fixtures_say() {
    let Some(()) = require("bpf", probe()) else { return };
    for (object, first_buffer) in [(object::steer(), FIRST_BUFFER), (object::steer_nofrags(), usize::MAX)] {
        for symmetric in [0, 1] {
            let settings = Settings { symmetric, ..settings() };
            let mut program = Program::load(object, "steer", &settings, 1);
            let mut own = Program::load(object, "steer", &settings, 1);
            own.receive_on(0);
            for Fixture { name, frame, .. } in fixture::all() {
                // The kernel runs no shorter frame, without frags none beyond a page, and none beyond 64 KiB.
                let longest = if first_buffer == usize::MAX { FIRST_BUFFER } else { 1 << 16 };
                if (LEAST..=longest).contains(&frame.len()) {
                    let first = &frame[..frame.len().min(first_buffer)];
                    let decision = decide_in_buffers(first, frame.len(), &settings);
                    runs(&mut program, name, &frame, &decision, REDIRECT);
                    runs(&mut own, name, &frame, &decision, PASS);
                }
            }
        }
    }
}

/// Runs the program on a frame and compares action (`given`: that of a frame that is given to a CPU), bytes and every
/// counter.
fn runs(program: &mut Program, name: &str, frame: &[u8], expected: &Decision, given: u32) {
    let before = program.sums();
    let (action, out) = program.run(frame);
    assert_eq!(out, frame, "{name}");
    assert_eq!(action, if expected.bucket().is_some() { given } else { PASS }, "{name}: {expected:?}");
    let mut sums = before;
    count(&mut sums, expected, given);
    assert_eq!(program.sums(), sums, "{name}: {expected:?}");
}

/// Counts a frame as the program does, with one target CPU; `given` as for [`runs`].
pub fn count(sums: &mut Sums, decision: &Decision, given: u32) {
    sums.reasons[decision.reason as usize] += 1;
    match decision.bucket() {
        Some(bucket) if given == PASS => sums.kept[usize::from(bucket)] += 1,
        Some(bucket) => {
            sums.sent[usize::from(bucket)] += 1;
            sums.sent_to[0] += 1;
        }
        None => {}
    }
}

#[test]
fn a_header_behind_the_first_buffer_differs_from_a_missing_one() {
    let settings = settings();
    let far = fixture::all().pop().expect("a fixture").frame;
    assert_eq!(decide_in_buffers(&far[..FIRST_BUFFER], far.len(), &settings).reason, Reason::NotLinear);
    assert_eq!(decide(&far[..FIRST_BUFFER], &settings).reason, Reason::Truncated);
}

#[test]
fn classes_that_are_not_selected_stay() {
    let Some(()) = require("bpf", probe()) else { return };
    for class in Class::ALL {
        let settings = Settings { classes: settings().classes & !class.bit(), ..settings() };
        let mut program = Program::load(object::steer(), "steer", &settings, 1);
        for Fixture { name, frame, expected } in fixture::all() {
            let Ok((found, _)) = expected else { continue };
            if frame.len() > FIRST_BUFFER {
                continue;
            }
            let decision = decide(&frame, &settings);
            assert_eq!(decision.reason == Reason::ClassLeft, found == class, "{name} without {class:?}");
            runs(&mut program, name, &frame, &decision, REDIRECT);
        }
    }
}

#[test]
fn a_bucket_without_a_cpu_goes_to_the_stack() {
    let Some(()) = require("bpf", probe()) else { return };
    let mut program = Program::load(object::steer(), "steer", &settings(), 1);
    program.remove_cpu(0);
    let frame = &fixture::all()[0].frame;
    let (action, out) = program.run(frame);
    assert_eq!((action, out), (PASS, frame.as_slice()));
    let mut sums = Sums::none();
    sums.reasons[Reason::NoCpu as usize] = 1;
    assert_eq!(program.sums(), sums);
}

#[test]
fn arrivals_are_counted_in_the_buckets_that_were_sent() {
    let Some(()) = require("bpf", probe()) else { return };
    for (object, longest) in [(object::arrive(), 1 << 16), (object::arrive_nofrags(), FIRST_BUFFER)] {
        let settings = settings();
        let mut program = Program::load(&arrive_as_ordinary(object), "arrive", &settings, 1);
        let (mut expected, mut strange) = (vec![0; rxlane_xdp::layout::BUCKETS], 0);
        for Fixture { name, frame, .. } in fixture::all() {
            if !(LEAST..=longest).contains(&frame.len()) {
                continue;
            }
            let first = &frame[..frame.len().min(FIRST_BUFFER)];
            match decide_in_buffers(first, frame.len(), &settings).bucket() {
                Some(bucket) => expected[usize::from(bucket)] += 1,
                None => strange += 1,
            }
            let (action, out) = program.run(&frame);
            assert_eq!((action, out), (PASS, frame.as_slice()), "{name}");
            assert_eq!(program.arrivals(), (expected.clone(), strange), "{name}");
        }
    }
}

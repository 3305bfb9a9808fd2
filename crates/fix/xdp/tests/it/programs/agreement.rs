//! Frames by the hundred thousand through everything that decides.

use crate::programs::fixtures::count;
use crate::programs::kernel::{LEAST, PASS, Program, REDIRECT, Sums, probe};
use crate::programs::native::{Native, native};
use crate::programs::settings;
use rxlane_xdp::layout::Settings;
use rxlane_xdp::object;
use rxlane_xdp::reference::{Decision, decide_in_buffers};
use testkit::require;

/// Bytes of the first buffer that a test run makes of a longer frame: a page less the room before and behind it
/// (`bpf_prog_test_run_xdp` in net/bpf/test_run.c).
pub const FIRST_BUFFER: usize = 4096 - 256 - 320;

/// The longest frame that the kernel runs a program on.
pub const LONGEST: usize = 1 << 16;

/// Frames after which the counters are compared.
const BATCH: usize = 10_000;

/// The programs with several settings, the native parser, and what they should have counted.
pub struct Agreement {
    native: Option<Native>,
    lanes: Vec<Lane>,
    /// Frames that were compared.
    pub frames: u64,
    /// Frames that the programs ran on.
    pub in_kernel: u64,
    /// Frames that were steered.
    pub steered: u64,
}

struct Lane {
    settings: Settings,
    program: Option<Program>,
    expected: Sums,
    /// What was run since the counters were last compared.
    batch: Vec<(Vec<u8>, Decision)>,
}

impl Agreement {
    /// With what of it there is.
    pub fn new() -> Agreement {
        let has_bpf = require("bpf", probe()).is_some();
        let all = settings();
        let lanes = [
            all,
            Settings { symmetric: 1, ..all },
            Settings {
                classes: all.classes & !1,
                key: all.key.map(|word| word.wrapping_mul(0x85eb_ca6b)),
                ..all
            },
            Settings { classes: 0b01000, key: [0; 12], ..all },
            Settings { classes: 0b10110, key: [u32::MAX; 12], symmetric: 1, ..all },
        ];
        let lane = |settings: Settings| Lane {
            settings,
            program: has_bpf.then(|| Program::load(object::steer(), "steer", &settings, 1)),
            expected: Sums::none(),
            batch: Vec::new(),
        };
        let native = require("cc", native());
        Agreement {
            native,
            lanes: lanes.into_iter().map(lane).collect(),
            frames: 0,
            in_kernel: 0,
            steered: 0,
        }
    }

    /// Holds all to the same decision about a frame. `choice` chooses settings.
    pub fn check(&mut self, frame: &[u8], choice: usize) {
        let lanes = self.lanes.len();
        let lane = &mut self.lanes[choice % lanes];
        let first = &frame[..frame.len().min(FIRST_BUFFER)];
        let decision = decide_in_buffers(first, frame.len(), &lane.settings);
        self.frames += 1;
        self.steered += u64::from(decision.bucket().is_some());
        if let Some(native) = &mut self.native {
            native.agrees(first, frame.len(), &lane.settings, &decision);
        }
        if let Some(program) = &mut lane.program
            && (LEAST..=LONGEST).contains(&frame.len())
        {
            let action = program.run(frame).0;
            let expected = if decision.bucket().is_some() { REDIRECT } else { PASS };
            assert_eq!(action, expected, "{decision:?}, {:?}, {frame:02x?}", lane.settings);
            count(&mut lane.expected, &decision, REDIRECT);
            lane.batch.push((frame.to_vec(), decision));
            self.in_kernel += 1;
            if lane.batch.len() == BATCH {
                lane.compare();
            }
        }
    }

    /// Holds the native parser to the reference about a frame of which only the first bytes can be read.
    pub fn check_buffers(&mut self, first: &[u8], length: usize, choice: usize) {
        let settings = &self.lanes[choice % self.lanes.len()].settings;
        if let Some(native) = &mut self.native {
            native.agrees(first, length, settings, &decide_in_buffers(first, length, settings));
        }
    }

    /// Compares what was counted since the last time.
    pub fn finish(&mut self) {
        self.lanes.iter_mut().for_each(Lane::compare);
    }
}

impl Lane {
    fn compare(&mut self) {
        let Some(program) = &mut self.program else { return };
        if program.sums() != self.expected {
            // One of them was counted elsewhere: each again by itself.
            for (frame, decision) in &self.batch {
                let mut sums = program.sums();
                program.run(frame);
                count(&mut sums, decision, REDIRECT);
                assert_eq!(program.sums(), sums, "{decision:?}, {:?}, {frame:02x?}", self.settings);
            }
            panic!("counters differ, and do not when each frame is run again");
        }
        self.batch.clear();
    }
}

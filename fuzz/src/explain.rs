//! Any bytes as a capture, explained: every frame is in one stack row, is let in, refused or unknown, and no
//! more of them land on queues and CPUs than there are; several threads give the same answer as one.

use rxlane_capture::Capture;
use rxlane_explain::{Options, Report, explain};
use rxlane_nic::{Receiver, Setup, lookup};
use std::io::{Cursor, Seek, Write};
use std::sync::OnceLock;

fn report(capture: Capture, workers: usize) -> Report {
    static RECEIVER: OnceLock<Receiver> = OnceLock::new();
    let receiver = RECEIVER.get_or_init(|| {
        let i210 = lookup("i210").unwrap_or_else(|error| panic!("{error}"));
        Receiver::new(i210, &Setup::default()).unwrap_or_else(|error| panic!("{error}"))
    });
    let options = Options { cpus: 4, workers, nic_assumed: false };
    explain([capture], receiver, &options).unwrap_or_else(|error| panic!("{error}"))
}

fn adds_up(report: &Report) {
    let frames = report.source.frames;
    assert_eq!(report.stacks.iter().map(|row| row.frames).sum::<u64>(), frames);
    let dropped: u64 = report.admission.dropped.iter().map(|row| row.frames).sum();
    assert_eq!(report.admission.accepted + report.admission.unknown + dropped, frames);
    let queued: u64 = report.queues.iter().map(|row| row.frames).sum();
    // A frame that is refused for its size is placed all the same: sizes can be set, queues cannot.
    assert_eq!(queued + report.nic.unplaced, frames);
    assert!(report.steered.per_cpu.iter().map(|row| row.frames).sum::<u64>() <= frames);
    assert!(report.bad.truncated + report.bad.malformed <= frames);
    assert_eq!(report.bad.reasons.values().sum::<u64>(), report.bad.truncated + report.bad.malformed);
    assert!(report.flows.bidirectional <= report.flows.unidirectional);
    assert!(report.flows.unidirectional <= frames);
}

pub fn run(bytes: &[u8]) {
    let Ok(capture) = Capture::from_reader(Cursor::new(bytes.to_vec()), "fuzz") else { return };
    let one = report(capture, 1);
    adds_up(&one);
    if bytes.len() % 8 == 0 {
        let mut file = tempfile::tempfile().expect("temporary file");
        file.write_all(bytes).expect("written");
        file.rewind().expect("rewound");
        let mut capture = Capture::from_file(file, "fuzz").expect("opened before");
        capture.set_chunk_size(64);
        let two = report(capture, 2);
        adds_up(&two);
        assert_eq!(
            format!("{:?}", (&one.stacks, &one.tags, &one.queues)),
            format!("{:?}", (&two.stacks, &two.tags, &two.queues))
        );
        assert_eq!(
            (one.flows.unidirectional, one.source.frames),
            (two.flows.unidirectional, two.source.frames)
        );
    }
}

//! Any bytes as a capture: no panic, and the same frames and problems whatever the size of the chunks, from a
//! stream, from a file, and with several threads.

use std::io::{Cursor, Write};

use rxlane_capture::{Batch, Capture, Frame, Report};

/// What is compared of a frame, in a form that is quick to keep.
type Seen = (u64, u32, usize, u64, u16, Option<i64>);

fn see(frame: Frame<'_>) -> Seen {
    let sum = frame.data.iter().fold(0u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    (frame.number, frame.wire_len, frame.data.len(), sum, frame.link_type().number(), frame.timestamp_ns())
}

/// The problems. How an inflater words its error may depend on the size of its output, so that is left out.
fn problems(report: &Report) -> Vec<String> {
    let stable = |message: String| match message.split_once("cannot be unpacked") {
        Some((before, _)) => before.to_owned(),
        None => message,
    };
    report.problems.iter().map(|problem| stable(problem.to_string())).collect()
}

fn in_order(mut capture: Capture, chunk: usize) -> (Vec<Seen>, Vec<String>) {
    capture.set_chunk_size(chunk);
    let (mut batch, mut seen) = (Batch::new(), Vec::new());
    while capture.next_batch(&mut batch) {
        assert_eq!(batch.first_frame(), seen.len() as u64 + 1);
        seen.extend(batch.frames().map(see));
    }
    let report = capture.report();
    assert_eq!(report.frames, seen.len() as u64);
    (seen, problems(&report))
}

fn in_parallel(mut capture: Capture, chunk: usize) -> (Vec<Seen>, Vec<String>) {
    capture.set_chunk_size(chunk);
    let (seen, report) = capture.read_parallel(
        2,
        |_| Vec::new(),
        |seen: &mut Vec<Seen>, batch| seen.extend(batch.frames().map(see)),
    );
    let mut seen: Vec<Seen> = seen.into_iter().flatten().collect();
    seen.sort_unstable();
    (seen, problems(&report))
}

pub fn run(bytes: &[u8]) {
    let Some((&[chunk, how], bytes)) = bytes.split_first_chunk() else { return };
    let stream = |name: &str| Capture::from_reader(Cursor::new(bytes.to_vec()), name);
    let Ok(capture) = stream("input") else { return };
    let expected = in_order(capture, 256 << 10);
    if let Ok(capture) = stream("input") {
        assert_eq!(in_order(capture, usize::from(chunk)), expected);
    }
    if how % 8 == 0 {
        let mut file = tempfile::tempfile().expect("temporary file");
        file.write_all(bytes).expect("write");
        let mut again = file.try_clone().expect("file");
        std::io::Seek::rewind(&mut again).expect("rewind");
        let capture = Capture::from_file(again, "input").expect("opened before");
        assert_eq!(in_parallel(capture, usize::from(chunk)), expected);
    }
}

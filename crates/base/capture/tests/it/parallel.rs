//! Several threads see what one sees, whatever the size of the chunks.

use crate::build;

use std::io::Write;
use std::panic::AssertUnwindSafe;

use crate::build::{Bytes, Seen, messages, seen_in};
use proptest::prelude::*;
use rxlane_capture::Capture;

fn file_of(bytes: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("temporary file");
    file.write_all(bytes).expect("write");
    file
}

fn read_parallel(mut capture: Capture, workers: usize, chunk: usize) -> (Vec<Seen>, u64, Vec<String>) {
    capture.set_chunk_size(chunk);
    let progress = capture.progress();
    let (states, report) = capture.read_parallel(
        workers,
        |_| Vec::new(),
        |seen: &mut Vec<Seen>, batch| {
            assert!(!batch.is_empty());
            seen.extend(seen_in(batch));
        },
    );
    if let (Some(total), true) = (progress.total(), report.problems.is_empty()) {
        assert_eq!(progress.bytes(), total);
    }
    for seen in &states {
        assert!(seen.is_sorted_by_key(|frame| frame.number));
    }
    let mut seen: Vec<Seen> = states.into_iter().flatten().collect();
    seen.sort();
    (seen, report.frames, messages(&report))
}

fn same_for_all(bytes: &[u8], chunk: usize) {
    let file = file_of(bytes);
    let name = file.path().display().to_string();
    let Ok(mut capture) = Capture::open(file.path()) else { return };
    capture.set_chunk_size(chunk);
    let (expected, report) = build::read(capture);
    let expected = (expected, report.frames, messages(&report));
    for workers in [1, 2, 3] {
        let parallel = read_parallel(Capture::open(file.path()).expect("capture"), workers, chunk);
        assert_eq!(parallel, expected, "{workers} workers, chunks of {chunk}");
        let reader = std::io::Cursor::new(bytes.to_vec());
        let stream = Capture::from_reader(reader, &name).expect("capture");
        assert_eq!(read_parallel(stream, workers, chunk), expected, "{workers} workers, stream");
    }
}

/// What a generated capture is made of.
#[derive(Clone, Debug)]
enum Part {
    Frame(usize),
    Simple(usize),
    Unknown(usize),
    Interface,
    Section(bool),
    BadInterface,
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        8 => (0..200usize).prop_map(Part::Frame),
        1 => (0..3000usize).prop_map(Part::Frame),
        2 => (0..100usize).prop_map(Part::Simple),
        2 => (0..500usize).prop_map(Part::Unknown),
        2 => Just(Part::Interface),
        1 => any::<bool>().prop_map(Part::Section),
        1 => Just(Part::BadInterface),
    ]
}

fn pcapng_of(parts: &[Part]) -> Vec<u8> {
    let mut file = Bytes::new(false);
    file.section().interface(1, 0, &[]);
    let mut interfaces = 1;
    for (at, part) in parts.iter().enumerate() {
        match *part {
            Part::Frame(size) => {
                file.enhanced(at as u32 % interfaces, at as u64, &vec![at as u8; size], size as u32);
            }
            Part::Simple(size) => {
                file.simple(&vec![at as u8; size], size as u32);
            }
            Part::Unknown(size) => {
                file.block(0x8000_0001, &vec![6; size]);
            }
            Part::Interface => {
                file.interface(at as u16, 0, &[]);
                interfaces += 1;
            }
            Part::Section(big) => {
                file.big = big;
                file.section().interface(101, 0, &[]);
                interfaces = 1;
            }
            Part::BadInterface => {
                file.enhanced(interfaces, 0, b"lost", 4);
            }
        }
    }
    file.out
}

fn pcap_of(sizes: &[usize], big: bool) -> Vec<u8> {
    let mut file = Bytes::new(big);
    file.pcap_header(0xa1b2_3c4d, 4, 65535, 1);
    for (at, &size) in sizes.iter().enumerate() {
        file.pcap_record(at as u32, 1, &vec![at as u8; size], size as u32 + 3);
    }
    file.out
}

/// Whole captures, captures cut off, and ones with noise behind.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let sizes = prop::collection::vec(prop_oneof![9 => 0..200usize, 1 => 0..5000usize], 0..60);
    let noise = prop::collection::vec(prop_oneof![3 => Just(0u8), 1 => any::<u8>(), 1 => 0..40u8], 0..400);
    let capture = prop_oneof![
        prop::collection::vec(part(), 0..60).prop_map(|parts| pcapng_of(&parts)),
        (sizes, any::<bool>()).prop_map(|(sizes, big)| pcap_of(&sizes, big)),
        (any::<bool>(), noise).prop_map(|(ng, noise)| {
            let head = if ng { pcapng_of(&[Part::Frame(20)]) } else { pcap_of(&[20], false) };
            [head, noise].concat()
        }),
    ];
    (capture, 0.5..1.5f64).prop_map(|(mut bytes, cut)| {
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 144, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn captures_in_chunks(bytes in bytes(), chunk in prop_oneof![1..80usize, 80..5000usize]) {
        same_for_all(&bytes, chunk);
    }
}

#[test]
fn long_skipped_blocks_and_records_span_chunks() {
    let mut file = Bytes::new(false);
    file.section().interface(1, 0, &[]).enhanced(0, 0, &[1; 100_000], 100_000);
    let length: u32 = (16 << 20) + 4;
    file.u32(0x4000_0000).u32(length);
    file.out.resize(file.out.len() + length as usize - 12, 0xee);
    file.u32(length);
    let cut = file.out.len() - 5;
    file.enhanced(0, 0, &[2; 10], 10);
    for chunk in [4096, 65_536, 1 << 20] {
        same_for_all(&file.out, chunk);
        same_for_all(&file.out[..cut], chunk);
    }
}

#[test]
fn many_small_chunks_with_more_workers_than_cores_and_no_more_than_chunks() {
    let sizes: Vec<usize> = (0..5000).map(|at| at % 97).collect();
    let file = file_of(&pcap_of(&sizes, false));
    for chunk in [64, 1000] {
        let (seen, frames, problems) = read_parallel(Capture::open(file.path()).expect("capture"), 8, chunk);
        assert_eq!((seen.len(), frames, problems.len()), (5000, 5000, 0));
        assert!(seen.iter().enumerate().all(|(at, frame)| frame.number == at as u64 + 1));
    }
    let file = file_of(&pcap_of(&[84; 100], false));
    let mut capture = Capture::open(file.path()).expect("capture");
    capture.set_chunk_size(4000);
    let (workers, report) = capture.read_parallel(64, |worker| worker, |_, _| ());
    assert_eq!((workers, report.frames), (vec![0, 1, 2], 100));
}

/// Runs itself again with 100 MB of address space, where far fewer than 256 threads fit.
#[test]
fn threads_that_cannot_be_started_are_done_without() {
    const INSIDE: &str = "RXLANE_TEST_WITH_LITTLE_MEMORY";
    if std::env::var_os(INSIDE).is_none() {
        let output = std::process::Command::new("sh")
            .args([
                "-c",
                "ulimit -v 100000 && exec \"$0\" --exact parallel::threads_that_cannot_be_started_are_done_without",
            ])
            .arg(std::env::current_exe().expect("this program"))
            .env(INSIDE, "1")
            .output()
            .expect("sh");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let bytes = pcap_of(&[84; 20_000], false);
    let file = file_of(&bytes);
    let reader = std::io::Cursor::new(bytes);
    for mut capture in [
        Capture::open(file.path()).expect("capture"),
        Capture::from_reader(reader, "stream").expect("capture"),
    ] {
        capture.set_chunk_size(4096);
        let (frames, report) = capture.read_parallel(256, |_| 0, |frames, batch| *frames += batch.len());
        assert_eq!((frames.iter().sum::<usize>(), report.frames), (20_000, 20_000));
        assert!((1..256).contains(&frames.len()), "{} threads", frames.len());
    }
}

#[test]
fn a_file_that_shrinks_is_reported() {
    let file = file_of(&pcap_of(&[84; 1000], false));
    for workers in [1, 2] {
        for (size, frames, first) in
            [(24 + 100 * 500, 500, "file has shrunk"), (24 + 100 * 500 + 60, 500, "record claims 84")]
        {
            file.as_file().set_len(24 + 100 * 1000).expect("grow");
            let mut capture = Capture::open(file.path()).expect("capture");
            capture.set_chunk_size(1000);
            file.as_file().set_len(size).expect("shrink");
            let (_, report) = capture.read_parallel(workers, |_| (), |(), _| ());
            assert_eq!(report.frames, frames);
            let messages = messages(&report);
            assert!(messages[0].contains(first), "{messages:?}");
            let last = format!("file has shrunk from 100024 to {size} bytes while it was read");
            assert!(messages.last().is_some_and(|message| message.ends_with(&last)), "{messages:?}");
            // The size is that at opening: what is appended later is not read.
            file.as_file().set_len(0).expect("empty");
            std::fs::write(file.path(), pcap_of(&[84; 1000], false)).expect("write");
        }
    }
}

#[test]
fn a_file_that_grows_is_read_up_to_its_size_at_opening() {
    let file = file_of(&pcap_of(&[84; 10], false));
    for workers in [1, 2] {
        let capture = Capture::open(file.path()).expect("capture");
        let longer = pcap_of(&vec![84; 20 * workers], false);
        let before = file.as_file().metadata().expect("size").len();
        std::fs::write(file.path(), longer).expect("write");
        let (_, report) = capture.read_parallel(workers, |_| (), |(), _| ());
        assert_eq!((report.frames, report.problems.len()), ((before - 24) / 100, 0));
    }
}

#[test]
fn a_panic_of_one_worker_stops_all() {
    let file = file_of(&pcap_of(&[84; 10_000], false));
    for stream in [false, true] {
        let mut capture = if stream {
            Capture::from_reader(std::fs::File::open(file.path()).expect("open"), "stream").expect("capture")
        } else {
            Capture::open(file.path()).expect("capture")
        };
        capture.set_chunk_size(1000);
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| {
            capture.read_parallel(
                3,
                |worker| worker,
                |_, batch| assert!(batch.first_frame() < 100, "on purpose"),
            )
        }));
        assert!(result.is_err());
    }
}

#[test]
fn reading_in_order_and_then_in_parallel_gives_every_frame_once() {
    let file = file_of(&pcap_of(&[60; 1000], false));
    let mut capture = Capture::open(file.path()).expect("capture");
    capture.set_chunk_size(1000);
    let mut batch = rxlane_capture::Batch::new();
    assert!(capture.next_batch(&mut batch));
    let (rest, report) = capture.read_parallel(2, |_| 0, |frames, batch| *frames += batch.len());
    assert_eq!((batch.len() + rest.iter().sum::<usize>(), report.frames), (1000, 1000));
}

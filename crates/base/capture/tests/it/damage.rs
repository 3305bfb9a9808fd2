//! Damaged captures: every whole record is delivered, the rest is reported where it is.

use crate::build;

use crate::build::{Bytes, messages, open, pcap, pcapng, read_bytes};
use rxlane_capture::Capture;

/// Three records in either format, and the offsets at which each ends.
fn small(ng: bool, big: bool) -> (Vec<u8>, Vec<usize>) {
    let mut file = Bytes::new(big);
    if ng {
        file.section().interface(1, 0, &[]);
    } else {
        file.pcap_header(0xa1b2_c3d4, 4, 65535, 1);
    }
    let mut ends = Vec::new();
    for data in [&b"0123456789"[..], b"", b"abcdefghijklmnopqrstuvwxyz"] {
        if ng {
            file.block(0x0bad, b"unknown").enhanced(0, 1, data, 64);
        } else {
            file.pcap_record(1, 2, data, 64);
        }
        ends.push(file.out.len());
    }
    (file.out, ends)
}

#[test]
fn a_capture_cut_anywhere_gives_its_whole_records() {
    for (ng, big) in [(false, false), (false, true), (true, false), (true, true)] {
        let (file, ends) = small(ng, big);
        let head = if ng { 28 } else { 24 };
        for cut in 0..=file.len() {
            let opened = open(&file[..cut]);
            assert_eq!(opened.is_ok(), cut >= head, "cut at {cut}");
            let Ok(capture) = opened else { continue };
            let (seen, report) = build::read(capture);
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!((seen.len(), report.frames), (whole, whole as u64), "cut at {cut}");
            // Clean are cuts between records, and in pcapng between any blocks.
            let clean = if ng {
                [28, 48, 68, 112, 132, 164, 184].iter().chain(&ends).any(|&end| end == cut)
            } else {
                cut == head || ends.contains(&cut)
            };
            assert_eq!(report.problems.len(), usize::from(!clean), "cut at {cut}: {:?}", report.problems);
            if let Some(problem) = report.problems.first() {
                assert_eq!(problem.frame, whole as u64 + 1);
                assert!(problem.offset < cut as u64);
            }
        }
    }
}

#[test]
fn each_damage_is_reported_where_it_is() {
    let mut other_version = Bytes::new(false);
    other_version.u32(0x1a2b_3c4d).u16(2).u16(0).u64(u64::MAX);
    let options = build::options(false, &[(9, &[9, 9]), (2, b"eth0\0rest"), (14, &[1])]);
    for (name, file, frames, expected) in [
        (
            "cut record",
            pcap(false, 262_144, |file| {
                file.pcap_record(0, 0, &[0; 100], 100).u32(0).u32(0).u32(70_000).u32(70_000).raw(&[0; 1200]);
            }),
            1,
            &["memory: frame 2 at byte 140: record claims 70000 captured bytes, file ends after 1200"][..],
        ),
        (
            "cut record header",
            pcap(true, 262_144, |file| {
                file.raw(&[0; 15]);
            }),
            0,
            &["memory: frame 1 at byte 24: a header of 16 bytes, file ends after 15"],
        ),
        (
            "impossible length",
            pcap(false, 65_535, |file| {
                file.pcap_record(0, 0, b"x", 1).u32(0).u32(0).u32(262_145).u32(262_145).raw(&[0; 300_000]);
            }),
            1,
            &[
                "memory: frame 2 at byte 41: record claims 262145 captured bytes, more than 262144: the rest cannot be read",
            ],
        ),
        (
            "lengths that contradict each other, once each",
            pcap(false, 4, |file| {
                for _ in 0..3 {
                    file.pcap_record(0, 0, b"four", 4).pcap_record(0, 0, b"three", 3);
                }
            }),
            6,
            &[
                "memory: frame 2 at byte 44: record has 5 captured bytes, the snapshot length is 4 (frame is counted)",
                "memory: frame 2 at byte 44: record has 5 captured bytes of a frame of 3 (frame is counted)",
            ],
        ),
        (
            "section of an unknown version",
            pcapng(false, &[], |file| {
                file.enhanced(0, 0, b"one", 3).block(0x0a0d_0d0a, &other_version.out).block(1, b"");
                file.block(6, b"new form").section().interface(1, 0, &[]).enhanced(0, 0, b"two", 3);
            }),
            2,
            &[
                "memory: frame 2 at byte 84: section of pcapng version 2.0, only 1.x is known (section left out)",
            ],
        ),
        (
            "wrong option length",
            pcapng(false, &options, |file| {
                file.enhanced(0, 5, b"x", 1);
            }),
            1,
            &["memory: frame 1 at byte 28: interface description with option 9 of 2 bytes (option ignored)"],
        ),
    ] {
        let (seen, report) = read_bytes(&file);
        assert_eq!(
            (seen.len(), messages(&report)),
            (frames, expected.iter().map(|&m| m.to_owned()).collect()),
            "{name}"
        );
        match name {
            "wrong option length" => assert_eq!(seen[0].time, Some(5_000)),
            "section of an unknown version" => {
                assert_eq!((&*seen[0].data, &*seen[1].data), (&b"one"[..], &b"two"[..]))
            }
            "lengths that contradict each other, once each" => {
                assert_eq!(seen.iter().map(|frame| frame.wire).collect::<Vec<_>>(), [4, 5, 4, 5, 4, 5]);
            }
            _ => {}
        }
    }
}

#[test]
fn a_packet_block_with_bad_contents_is_left_out_alone() {
    let mut file = Bytes::new(true);
    file.section().enhanced(0, 0, b"", 0).simple(b"", 0).interface(1, 0, &[]).enhanced(1, 0, b"", 0);
    let mut long = Bytes::new(true);
    long.u32(0).u32(0).u32(0).u32(5).u32(5).raw(b"four");
    file.block(6, &long.out).simple(b"four", 5).enhanced(0, 0, b"good", 4);
    let (seen, report) = read_bytes(&file.out);
    assert_eq!(seen.len(), 1);
    assert_eq!((&seen[0].data[..], seen[0].number), (&b"good"[..], 1));
    assert_eq!(
        messages(&report),
        [
            "memory: frame 1 at byte 28: packet block of interface 0, but the section describes 0 so far (left out)",
            "memory: frame 1 at byte 60: packet block of interface 0, but the section describes 0 so far (left out)",
            "memory: frame 1 at byte 96: packet block of interface 1, but the section describes 1 so far (left out)",
            "memory: frame 1 at byte 128: packet block claims 5 captured bytes but holds 4 (left out)",
            "memory: frame 1 at byte 164: packet block claims 5 captured bytes but holds 4 (left out)",
        ]
    );
}

#[test]
fn broken_framing_of_pcapng_ends_the_reading() {
    for (damage, expected) in [
        (
            &[9, 14, 14][..],
            "block of type 0x00000009 has length 14, not a multiple of 4: the rest cannot be read",
        ),
        (
            &[9, 8],
            "block of type 0x00000009 has length 8, less than the 12 of an empty block: the rest cannot be read",
        ),
        (&[6, 28, 0, 0, 0, 0, 28], "has length 28, less than the 32 of an empty packet block"),
        (
            &[9, 12, 16],
            "block of type 0x00000009 has length 12 in front, 16 at its end: the rest cannot be read",
        ),
        (&[0x0a0d_0d0a, 28, 0x1234_5678, 0, 0, 0, 28], "byte-order magic 0x12345678 instead of 0x1a2b3c4d"),
        (&[6, 0x0200_0000], "more than 16 MiB"),
    ] {
        let file = pcapng(false, &[], |file| {
            file.enhanced(0, 0, b"good", 4);
            for word in damage {
                file.u32(*word);
            }
            file.enhanced(0, 0, b"lost", 4);
        });
        let (seen, report) = read_bytes(&file);
        assert_eq!((seen.len(), report.problems.len()), (1, 1), "{expected}");
        let problem = &report.problems[0];
        assert_eq!((problem.frame, problem.offset), (2, 84), "{expected}");
        assert!(problem.reason.to_string().contains(expected), "{problem}");
    }
}

#[test]
fn a_long_unknown_block_is_skipped_unread() {
    const LENGTH: u32 = (16 << 20) + 64;
    for missing in [0, 1] {
        let mut file = Bytes::new(false);
        file.section().interface(1, 0, &[]).enhanced(0, 0, b"before", 6);
        let end = file.out.len() + LENGTH as usize;
        file.u32(0x4000_0000).u32(LENGTH);
        file.out.resize(end - 4, 0xee);
        file.u32(LENGTH);
        if missing > 0 {
            file.out.truncate(end - missing);
        } else {
            file.enhanced(0, 0, b"after", 5);
        }
        let (seen, report) = read_bytes(&file.out);
        assert_eq!((seen.len(), report.problems.len()), (2 - missing, missing), "{:?}", report.problems);
    }
}

#[test]
fn problems_and_interfaces_are_limited() {
    let mut file = Bytes::new(false);
    file.section();
    for _ in 0..150 {
        file.simple(b"", 0);
    }
    let (_, report) = read_bytes(&file.out);
    assert_eq!((report.problems.len(), report.problems_omitted), (100, 50));
    let mut file = Bytes::new(false);
    file.section();
    for _ in 0..=rxlane_capture::MAX_INTERFACES {
        file.interface(1, 0, &[]);
    }
    let (_, report) = read_bytes(&file.out);
    assert!(messages(&report)[0].contains("more than 65536 interfaces"));
}

/// Yields some bytes and then an error, as a failing disk does.
struct Failing(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Failing {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buf)? {
            0 => Err(std::io::Error::other("disk on fire")),
            read => Ok(read),
        }
    }
}

#[test]
fn a_read_error_costs_no_record_before_it_and_is_placed_exactly() {
    let (records, ends) = small(false, false);
    let skipped = pcapng(false, &[], |file| {
        file.enhanced(0, 0, b"x", 1).u32(0x4000_0000).u32(0x7000_0000).raw(&[0; 100_000]);
    });
    let nonsense = pcap(false, 65_535, |file| {
        file.pcap_record(0, 0, b"x", 1).u32(0).u32(0).u32(u32::MAX).u32(u32::MAX).raw(&[0; 500]);
    });
    let cases = [
        (
            "within a record",
            &records[..ends[1] + 20],
            2,
            &[
                "frame 3 at byte 66: record claims 26 captured bytes, file ends after 4",
                "frame 3 at byte 86: cannot read on: disk on fire",
            ][..],
        ),
        (
            "within a skipped block",
            &skipped,
            1,
            &[
                "frame 2 at byte 84: block of type 0x40000000 claims 1879048192 bytes, file ends after 100008",
                "frame 2 at byte 100092: cannot read on: disk on fire",
            ],
        ),
        (
            "behind nonsense, never reached",
            &nonsense,
            1,
            &[
                "frame 2 at byte 41: record claims 4294967295 captured bytes, more than 262144: the rest cannot be read",
            ],
        ),
    ];
    for (name, bytes, frames, expected) in cases {
        let expected: Vec<String> = expected.iter().map(|message| format!("memory: {message}")).collect();
        // However much is read at a time.
        for chunk in [1, 100, 256 << 10] {
            let reader = Failing(std::io::Cursor::new(bytes.to_vec()));
            let mut capture = Capture::from_reader(reader, "memory").expect("a capture");
            capture.set_chunk_size(chunk);
            let (seen, report) = build::read(capture);
            assert_eq!((seen.len(), &messages(&report)), (frames, &expected), "{name}, chunks of {chunk}");
        }
    }
    let input = Failing(std::io::Cursor::new(records[..5].to_vec()));
    let error = Capture::from_reader(input, "memory").expect_err("refused");
    assert_eq!(error.to_string(), "memory: cannot read: disk on fire");
}

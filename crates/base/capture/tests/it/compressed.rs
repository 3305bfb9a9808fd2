//! gzip and Zstandard, whole, in several parts, cut off and damaged.

use crate::build;

use std::io::Write;

use crate::build::{Bytes, messages, open, read_bytes, refusal};
use flate2::write::GzEncoder;
use proptest::prelude::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use rxlane_capture::{Capture, Compression};

fn capture_of(frames: u32) -> Vec<u8> {
    let mut file = Bytes::new(false);
    file.pcap_header(0xa1b2_c3d4, 4, 65535, 1);
    let mut random = 1u32;
    for at in 0..frames {
        let data: Vec<u8> = (0..at % 300)
            .map(|place| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if place % 4 == 0 { (random >> 24) as u8 } else { place as u8 }
            })
            .collect();
        file.pcap_record(at, 0, &data, data.len() as u32);
    }
    file.out
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).expect("in memory");
    encoder.finish().expect("in memory")
}

fn zstd(data: &[u8]) -> Vec<u8> {
    compress_to_vec(data, CompressionLevel::Fastest)
}

/// A frame by hand (RFC 8878 section 3.1.1): window of 8 MiB, optionally a checksum, raw blocks.
fn zstd_raw(data: &[u8], checksum: Option<u32>) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, if checksum.is_some() { 4 } else { 0 }, 13 << 3];
    let blocks: Vec<&[u8]> = data.chunks(1000).collect();
    for (at, block) in blocks.iter().enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(at + 1 == blocks.len());
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
    }
    frame.extend(checksum.iter().flat_map(|sum| sum.to_le_bytes()));
    frame
}

#[test]
fn packed_captures_read_like_unpacked_ones() {
    let plain = capture_of(2000);
    let (expected, _) = read_bytes(&plain);
    let (first, second) = plain.split_at(plain.len() / 3);
    let skippable = [&[0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"index"].concat();
    for (packed, compression) in [
        (gzip(&plain), Compression::Gzip),
        ([gzip(first), gzip(second)].concat(), Compression::Gzip),
        (zstd(&plain), Compression::Zstd),
        (zstd_raw(&plain, None), Compression::Zstd),
        (
            [&skippable[..], &zstd(first), &skippable, &zstd_raw(second, None), &skippable].concat(),
            Compression::Zstd,
        ),
    ] {
        let file = tempfile::NamedTempFile::new().expect("temporary file");
        std::fs::write(file.path(), &packed).expect("write");
        let capture = Capture::open(file.path()).expect("capture");
        assert_eq!(capture.compression(), compression);
        let progress = capture.progress();
        let (seen, report) = build::read(capture);
        assert_eq!(messages(&report), [""; 0]);
        assert!(seen == expected, "{} frames instead of {}", seen.len(), expected.len());
        assert_eq!((progress.bytes(), progress.total()), (packed.len() as u64, Some(packed.len() as u64)));
        let (frames, report) =
            open(&packed).expect("capture").read_parallel(2, |_| 0, |frames, batch| *frames += batch.len());
        assert_eq!((frames.iter().sum::<usize>(), report.frames), (2000, 2000));
    }
}

#[test]
fn zstd_windows_up_to_128_mib_are_unpacked() {
    let plain = capture_of(20);
    let with_window = |data: &[u8], byte| {
        let mut packed = zstd_raw(data, None);
        packed[5] = byte;
        packed
    };
    // RFC 8878 section 3.1.1.1.2: exponent and eighths; 17 << 3 is 128 MiB.
    let (first, second) = plain.split_at(300);
    let twice = [with_window(first, 3 << 3), with_window(second, 17 << 3)].concat();
    for packed in [with_window(&plain, 17 << 3), with_window(&plain, 16 << 3 | 7), twice] {
        let (seen, report) = read_bytes(&packed);
        assert_eq!((seen.len(), messages(&report)), (20, Vec::new()));
    }
    let unpack = "; unpack it with zstd -d --long=31 first";
    for (byte, bytes, way_out) in [
        (17 << 3 | 1, 150_994_944_u64, unpack),
        (21 << 3, 2_147_483_648, unpack),
        (21 << 3 | 1, 2_415_919_104, ""),
        (255, 4_123_168_604_160, ""),
    ] {
        assert_eq!(
            refusal(&with_window(&plain, byte)),
            format!(
                "memory: cannot unpack zstd: a frame needs a window of {bytes} bytes, above the limit of 128 MiB{way_out}"
            )
        );
    }
    // Single segment: the content size is the window (section 3.1.1.1.1.2).
    let single = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &(1u64 << 40).to_le_bytes(), &[1, 0, 0]].concat();
    assert!(refusal(&single).contains("a window of 1099511627776 bytes, above the limit"));

    // Behind a good frame the records before it are read.
    let behind = [zstd_raw(&plain, None), with_window(&plain, 255)].concat();
    let (seen, report) = read_bytes(&behind);
    let message = messages(&report).pop().expect("a problem");
    assert!(seen.len() == 20 && message.contains("a window of 4123168604160 bytes"), "{message}");
}

#[test]
fn what_zstd_cannot_unpack_is_said_in_words() {
    let plain = capture_of(20);
    let good = zstd_raw(&plain, None);
    let changed = |at: usize, value: u8| {
        let mut packed = good.clone();
        packed[at] = value;
        packed
    };
    let skippable = [&good[..], &[0x50, 0x2a, 0x4d, 0x18, 5, 0, 0, 0], b"1234"].concat();
    let dictionary = [&good[..4], &[1], &good[5..6], &[77], &good[6..]].concat();
    let foreign = "what follows a frame starts with 67 61 72 62, which is no zstd frame";
    for (packed, sentence) in [
        ([&good[..], b"garbage"].concat(), foreign),
        (good[..4].to_vec(), "the file ends within a frame header"),
        (good[..5].to_vec(), "the file ends within a frame header"),
        ([&good[..], &good[..3]].concat(), "the file ends within a frame header"),
        (good[..good.len() - 1].to_vec(), "the file ends within a frame"),
        (skippable, "the file ends within a skippable frame"),
        (changed(4, 8), "a frame header sets the reserved bit, which only a later format can mean"),
        (changed(6, 6), "a block has the reserved type 3"),
        (changed(8, 0xff), "a block has an impossible header"),
        // A compressed block of nothing that makes sense.
        (changed(6, good[6] | 4), "the contents of a block are damaged"),
        (dictionary, "a frame needs the dictionary 77; unpack it with zstd -D first"),
    ] {
        let message = match open(&packed) {
            Err(error) => error.to_string(),
            Ok(capture) => messages(&build::read(capture).1).pop().expect("a problem"),
        };
        assert!(message.ends_with(&format!(": {sentence}")), "{message}");
        assert!(!message.contains(['{', '(']), "{message}");
    }
}

#[test]
fn packed_data_cut_off_gives_the_records_before() {
    let plain = capture_of(300);
    for (packed, least) in [(gzip(&plain), 100), (zstd(&plain), 0), (zstd_raw(&plain, None), 140)] {
        for cut in (0..packed.len()).step_by(97) {
            let enough = cut > packed.len() / 2 && least > 0;
            let capture = match open(&packed[..cut]) {
                Ok(capture) => capture,
                Err(error) if enough => panic!("{error}"),
                Err(_) => continue,
            };
            let (seen, report) = build::read(capture);
            assert_eq!(seen.len() as u64, report.frames);
            let last = messages(&report).pop().expect("a problem");
            assert!(
                last.contains("of the unpacked data: ") && last.contains(" data cannot be unpacked: "),
                "{last}"
            );
            if enough {
                assert!(seen.len() >= least, "{} frames at {cut} of {}", seen.len(), packed.len());
            }
        }
    }
}

/// A member whose header has every optional part (RFC 1952 section 2.3).
fn gzip_with_full_header(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::GzBuilder::new()
        .extra(vec![7; 300])
        .filename("a capture")
        .comment("of something")
        .write(Vec::new(), flate2::Compression::fast());
    encoder.write_all(data).expect("in memory");
    let mut packed = encoder.finish().expect("in memory");
    let end_of_header = 10 + 2 + 300 + 10 + 13;
    packed[3] |= 2;
    let mut crc = flate2::Crc::new();
    crc.update(&packed[..end_of_header]);
    packed.splice(end_of_header..end_of_header, (crc.sum() as u16).to_le_bytes());
    packed
}

#[test]
fn gzip_headers_with_every_part_and_padding_behind() {
    let plain = capture_of(20);
    let packed = gzip_with_full_header(&plain);
    let (seen, report) = read_bytes(&[&packed[..], &[0; 5000]].concat());
    assert_eq!((seen.len(), messages(&report).len()), (20, 0), "{:?}", report.problems);

    let (seen, report) = read_bytes(&[&packed[..], b"garbage behind"].concat());
    assert_eq!(seen.len(), 20);
    let last = messages(&report).pop().expect("a problem");
    assert!(last.ends_with("data behind the last member is not gzip"), "{last}");

    for (at, message) in [(20, "header checksum is wrong"), (3, "flags 0x9e")] {
        let mut wrong = packed.clone();
        wrong[at] ^= 0x80;
        let error = refusal(&wrong);
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn everything_before_damaged_gzip_data_is_read() {
    // Stored blocks, so that it is known what lies before the damage.
    let plain = capture_of(1000);
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(&plain).expect("in memory");
    let mut packed = encoder.finish().expect("in memory");
    let second = 10 + 5 + usize::from(u16::from_le_bytes([packed[11], packed[12]]));
    packed[second] = 7; // A block of the reserved type 3, RFC 1951 section 3.2.3.
    let before = second - 15;
    assert!(before > 10_000 && before < plain.len());
    let (expected, _) = read_bytes(&plain[..before]);
    for chunk in [1, 1000, 1 << 20] {
        let mut capture = open(&packed).expect("capture");
        capture.set_chunk_size(chunk);
        let (seen, report) = build::read(capture);
        assert!(seen == expected, "{} frames instead of {}", seen.len(), expected.len());
        assert!(
            messages(&report)
                .pop()
                .is_some_and(|last| last.contains("the rest of the gzip data cannot be unpacked: "))
        );
    }
}

#[test]
fn a_wrong_checksum_is_reported_after_all_records() {
    let plain = capture_of(50);
    let mut packed = gzip(&plain);
    let crc = packed.len() - 8;
    packed[crc] ^= 1;
    for packed in [packed, zstd_raw(&plain, Some(0x1234_5678))] {
        let (seen, report) = read_bytes(&packed);
        assert_eq!((seen.len(), report.problems.len()), (50, 1), "{:?}", report.problems);
    }
}

#[test]
fn what_unpacks_to_no_capture_is_refused() {
    assert_eq!(refusal(&gzip(b"")), "memory: no capture: empty");
    assert_eq!(
        refusal(&zstd(b"text")),
        "memory: no capture: starts with 74 65 78 74, neither pcap nor pcapng"
    );
    let cut = refusal(&gzip(&capture_of(9))[..12]);
    assert!(cut.starts_with("memory: cannot unpack gzip: "), "{cut}");
    let cut = refusal(&[0x28, 0xb5, 0x2f, 0xfd]);
    assert!(cut.starts_with("memory: cannot unpack zstd: "), "{cut}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_data_never_panics(which in 0..4_usize, at in any::<prop::sample::Index>(), value in any::<u8>()) {
        let plain = capture_of(40);
        let ng = build::pcapng(true, &[], |file| {
            file.block(0x0bad, b"unknown").enhanced(0, 1, b"abc", 64).simple(b"d", 1).packet(0, 2, b"ef", 2);
        });
        let mut packed = vec![gzip(&plain), zstd(&plain), ng, plain].swap_remove(which);
        let at = at.index(packed.len());
        packed[at] = value;
        if let Ok(capture) = open(&packed) {
            let (seen, report) = build::read(capture);
            prop_assert_eq!(seen.len() as u64, report.frames);
        }
    }
}

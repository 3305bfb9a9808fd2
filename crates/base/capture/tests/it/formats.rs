//! Every format in every byte order and resolution, and what is not a capture.

use crate::build::{Bytes, messages, open, options, pcapng, read_bytes, refusal, word};
use rxlane_capture::{Capture, Compression, Format, LinkType, OpenError, Resolution, TimestampUnit, Writer};

#[test]
fn pcap_in_both_byte_orders_and_resolutions() {
    for big in [false, true] {
        for (magic, fraction, ns) in
            [(0xa1b2_c3d4, 999_999, 999_999_000), (0xa1b2_3c4d, 999_999_999, 999_999_999)]
        {
            let mut file = Bytes::new(big);
            file.pcap_header(magic, 4, 65535, 276).pcap_record(u32::MAX, fraction, b"first", 1000);
            file.pcap_record(1, 0, b"", 0);
            let (seen, report) = read_bytes(&file.out);
            assert_eq!(messages(&report), [""; 0]);
            assert_eq!(seen.len(), 2);
            assert_eq!((&seen[0].data[..], seen[0].wire, seen[0].link), (&b"first"[..], 1000, 276));
            assert_eq!(seen[0].time, Some(i64::from(u32::MAX) * 1_000_000_000 + ns));
            assert_eq!((seen[1].data.len(), seen[1].wire, seen[1].time), (0, 0, Some(1_000_000_000)));
        }
    }
}

#[test]
fn kuznetzov_pcap_has_longer_record_headers() {
    for big in [false, true] {
        let mut file = Bytes::new(big);
        file.pcap_header(0xa1b2_cd34, 4, 65535, 1);
        for text in [b"one", b"two"] {
            file.u32(7).u32(8).u32(3).u32(3).u32(2).u16(0x0800).raw(&[0, 0]).raw(text);
        }
        let (seen, report) = read_bytes(&file.out);
        assert_eq!(messages(&report), [""; 0]);
        let texts: Vec<_> = seen.iter().map(|frame| (&frame.data[..], frame.time)).collect();
        assert_eq!(texts, [(&b"one"[..], Some(7_000_008_000)), (&b"two"[..], Some(7_000_008_000))]);
    }
}

#[test]
fn old_pcap_versions_have_the_lengths_the_other_way() {
    for (big, minor, expected) in [
        (false, 2, &[("data", 1500), ("more", 1501)][..]),
        // Of version 2.3 the smaller length is that of what was captured.
        (true, 3, &[("data", 1500), ("more", 1501), ("last", 1502)]),
    ] {
        let mut file = Bytes::new(big);
        file.pcap_header(0xa1b2_c3d4, minor, 96, 1);
        for (place, (text, wire)) in expected.iter().enumerate() {
            let lengths = if place == 2 { [4, *wire] } else { [*wire, 4] };
            file.u32(0).u32(0).u32(lengths[0]).u32(lengths[1]).raw(text.as_bytes());
        }
        let (seen, _) = read_bytes(&file.out);
        for (seen, (text, wire)) in seen.iter().zip(expected) {
            assert_eq!((&seen.data[..], seen.wire), (text.as_bytes(), *wire), "2.{minor}");
        }
        assert_eq!(seen.len(), expected.len(), "2.{minor}");
    }
    let mut file = Bytes::new(false);
    file.u32(0xa1b2_c3d4).u16(3).u16(0).u64(0).u32(96).u32(1);
    let refused = "memory: pcap version 3.0 is not supported; convert it to pcap or pcapng first";
    assert_eq!(refusal(&file.out), refused);
}

/// Frames of which nothing, a part, all but the check sequence, a part of it and all of it was captured, as
/// captured length, length on the wire and captured length without 4 bytes of check sequence.
const FCS_CASES: [(usize, u32, usize); 7] =
    [(0, 64, 0), (40, 64, 40), (60, 64, 60), (61, 64, 60), (64, 64, 60), (3, 3, 0), (2, 5, 1)];

/// The check sequence that the first frame's interface states, in bytes.
fn stated(file: &[u8]) -> Option<u32> {
    let mut capture = open(file).expect("capture");
    capture.next_frame().and_then(|frame| frame.interface().fcs_bytes).map(u32::from)
}

#[test]
fn the_fcs_that_a_pcap_header_or_a_pcapng_interface_declares_is_left_out() {
    let data: Vec<u8> = (0..64).collect();
    let left_of = |fcs: Option<u32>, captured: usize, wire: u32, left: usize| {
        let bytes = fcs.unwrap_or(0);
        (data[..if bytes == 4 { left } else { captured }].to_vec(), wire.saturating_sub(bytes))
    };
    for big in [false, true] {
        // Bit P with 2 units of two bytes, bit P with none, and 2 units without the bit.
        for (link, fcs) in [(0x2400_0001, Some(4)), (0x0400_0001, Some(0)), (0x2000_0001, None)] {
            let mut file = Bytes::new(big);
            file.pcap_header(0xa1b2_c3d4, 4, 0, link);
            for (captured, wire, _) in FCS_CASES {
                file.pcap_record(7, 0, &data[..captured], wire);
            }
            let (seen, report) = read_bytes(&file.out);
            assert_eq!((seen.len(), messages(&report)), (FCS_CASES.len(), Vec::new()));
            for (seen, (captured, wire, left)) in seen.into_iter().zip(FCS_CASES) {
                assert_eq!((seen.link, seen.time), (1, Some(7_000_000_000)));
                assert_eq!((seen.data, seen.wire), left_of(fcs, captured, wire, left), "{link:#x}");
            }
            assert_eq!(stated(&file.out), fcs);
        }
        // As bits, as bytes, and what can be neither.
        for (option, fcs) in [(32, Some(4)), (4, Some(4)), (0, Some(0)), (33, None)] {
            let file = pcapng(big, &options(big, &[(13, &[option])]), |file| {
                file.interface(1, 0, &[]);
                for (captured, wire, _) in FCS_CASES {
                    file.enhanced(0, 7, &data[..captured], wire).packet(0, 7, &data[..captured], wire);
                    file.enhanced(1, 7, &data[..captured], wire);
                }
                file.simple(&data, 64);
            });
            let (seen, report) = read_bytes(&file);
            assert_eq!(messages(&report), [""; 0]);
            let mut expected = Vec::new();
            for (captured, wire, left) in FCS_CASES {
                let of = |fcs| left_of(fcs, captured, wire, left);
                expected.extend([of(fcs), of(fcs), of(None)]);
            }
            expected.push(left_of(fcs, 64, 64, 60));
            let lengths: Vec<_> = seen.into_iter().map(|seen| (seen.data, seen.wire)).collect();
            assert_eq!(lengths, expected, "if_fcslen {option}");
            assert_eq!(stated(&file), fcs);
        }
    }
}

#[test]
fn the_flags_of_a_packet_override_the_fcs_of_its_interface() {
    for big in [false, true] {
        let mut reaching_out = Bytes::new(big);
        reaching_out.u16(1).u16(400);
        let lists = [
            ("two bytes", options(big, &[(1, b"a comment"), (2, &word(big, 2 << 5 | 1)), (0, &[])])),
            ("not stated", options(big, &[(2, &word(big, 1))])),
            ("behind the end", options(big, &[(0, &[]), (2, &word(big, 2 << 5))])),
            ("reaching out", reaching_out.out),
        ];
        for ((name, list), expected) in lists.iter().zip([[7, 7, 7], [9, 5, 9], [9, 5, 9], [9, 5, 9]]) {
            let file = pcapng(big, &[], |file| {
                file.interface(1, 0, &options(big, &[(13, &[32])]));
                for (kind, interface) in [(6, 0), (6, 1), (2, 0)] {
                    let mut body = Bytes::new(big);
                    // In the obsolete block the second half of the first word counts drops.
                    if kind == 2 {
                        body.u16(interface).u16(0)
                    } else {
                        body.u32(interface.into())
                    };
                    body.u64(0).u32(9).u32(9).raw(&[5; 9]).raw(&[0; 3]).raw(list);
                    file.block(kind, &body.out);
                }
            });
            let (seen, report) = read_bytes(&file);
            let lengths: Vec<_> = seen.iter().map(|frame| (frame.data.len(), frame.wire as usize)).collect();
            assert_eq!((lengths, messages(&report)), (expected.map(|n| (n, n)).to_vec(), vec![]), "{name}");
        }
    }
}

#[test]
fn pcapng_with_sections_of_both_orders_and_every_packet_block() {
    let mut all = Vec::new();
    for big in [true, false, true] {
        let offset = if big { (-5i64).to_be_bytes() } else { (-5i64).to_le_bytes() };
        let list = options(big, &[(2, b"eth7"), (9, &[9]), (13, &[32]), (14, &offset), (0, &[])]);
        let mut file = Bytes::new(big);
        file.section().interface(1, 4, &[]).interface(113, 0, &list);
        file.block(0x0bad_cafe, b"unknown").block(4, b"name resolution").block(5, &[0; 12]);
        file.enhanced(1, 10_000_000_001, b"enhanced", 99).packet(0, 3, b"old", 3);
        file.simple(b"simp", 60).block(10, b"secrets");
        all.extend(file.out);
    }
    let (seen, report) = read_bytes(&all);
    assert_eq!(messages(&report), [""; 0]);
    assert_eq!((seen.len(), report.frames), (9, 9));
    for (section, frames) in seen.chunks(3).enumerate() {
        let of = |at: usize| (&frames[at].data[..], frames[at].wire, frames[at].link, frames[at].time);
        assert_eq!(of(0), (&b"enhanced"[..], 95, 113, Some(5_000_000_001)));
        assert_eq!(of(1), (&b"old"[..], 3, 1, Some(3_000)));
        assert_eq!(of(2), (&b"simp"[..], 60, 1, None));
        assert!(frames.iter().all(|frame| frame.section as usize == section));
    }
    let mut capture = open(&all).expect("capture");
    let frame = capture.next_frame().expect("frame");
    let interface = frame.interface();
    assert_eq!(
        (interface.name.as_deref(), interface.fcs_bytes, interface.offset_s),
        (Some("eth7"), Some(4), -5)
    );
    assert_eq!((interface.snaplen, interface.unit), (0, TimestampUnit::Decimal(9)));
}

#[test]
fn timestamp_units_of_pcapng() {
    for (resolution, ticks, ns) in [
        (0u8, 3, Some(3_000_000_000)),
        (3, 1_700_000_000_123, Some(1_700_000_000_123_000_000)),
        (6, 1, Some(1_000)),
        (12, 1_999, Some(1)),
        (127, u64::MAX, Some(0)),
        (0x80 | 1, 3, Some(1_500_000_000)),
        (0x80 | 32, 1 << 31, Some(500_000_000)),
        (0xff, u64::MAX, Some(0)),
        (0, u64::MAX, None),
    ] {
        let file = pcapng(false, &options(false, &[(9, &[resolution])]), |file| {
            file.enhanced(0, ticks, b"", 0);
        });
        assert_eq!(read_bytes(&file).0[0].time, ns, "if_tsresol {resolution:#04x}");
    }
}

/// The time span of all frames in one batch.
fn time_span(bytes: &[u8]) -> Option<(i64, i64)> {
    let mut batch = rxlane_capture::Batch::new();
    open(bytes).expect("capture").next_batch(&mut batch);
    batch.time_span()
}

#[test]
fn the_time_span_of_frames_out_of_order() {
    for big in [false, true] {
        for (magic, ns) in [(0xa1b2_c3d4, 1_000), (0xa1b2_3c4d, 1), (0xa1b2_cd34, 1_000)] {
            let mut file = Bytes::new(big);
            file.pcap_header(magic, 4, 0, 1);
            // The third has a fraction of more than a second and is the latest.
            for (seconds, fraction) in [(9, 5), (3, 8), (8, 4_000_000_000), (3, 7), (10, 0)] {
                file.u32(seconds).u32(fraction).u64(0);
                if magic == 0xa1b2_cd34 {
                    file.u64(0);
                }
            }
            let span = (3_000_000_000 + 7 * ns, 8_000_000_000 + 4_000_000_000 * ns);
            assert_eq!(time_span(&file.out), Some(span), "{magic:#x}");
        }
        let offset: i64 = -2;
        let offset = if big { offset.to_be_bytes() } else { offset.to_le_bytes() };
        let mut file = Bytes::new(big);
        file.section().interface(1, 0, &[]).simple(b"x", 1);
        assert_eq!(time_span(&file.out), None);
        // A time that no i64 can hold is left out; so is the Simple Packet Block.
        file.enhanced(0, 7, b"", 0).enhanced(0, u64::MAX, b"", 0).enhanced(0, 3, b"", 0).simple(b"x", 1);
        assert_eq!(time_span(&file.out), Some((3_000, 7_000)));
        file.interface(1, 0, &options(big, &[(9, &[9]), (14, &offset)])).enhanced(1, 1, b"", 0).enhanced(
            0,
            1 << 40,
            b"",
            0,
        );
        assert_eq!(time_span(&file.out), Some((-1_999_999_999, (1 << 40) * 1_000)));
        assert_eq!(read_bytes(&file.out).1.frames, 7);
    }
}

#[test]
fn malformed_interface_options_cost_no_frames() {
    for options in
        [&[9u8, 0, 255, 255, 1][..], &[9, 0, 0, 0], &[9, 0, 2, 0, 9, 9, 0, 0], &[14, 0, 4, 0, 1, 1, 1, 1]]
    {
        let file = pcapng(false, options, |file| {
            file.enhanced(0, 5, b"x", 1);
        });
        assert_eq!(read_bytes(&file).0[0].time, Some(5_000), "{options:?}");
    }
}

#[test]
fn interface_names_are_kept_up_to_64_bytes() {
    let long = "ü".repeat(40);
    for (name, kept) in [
        (&b"ppp0"[..], "ppp0".to_owned()),
        (b"ppp0\0rest", "ppp0".to_owned()),
        (&[b'e'; 64], "e".repeat(64)),
        (&[b'e'; 60_000], "e".repeat(64)),
        (long.as_bytes(), "ü".repeat(32)),
        (&format!("x{long}").into_bytes(), format!("x{}", "ü".repeat(31))),
        (&[0xff; 60_000], "\u{fffd}".repeat(21)),
    ] {
        let file = pcapng(false, &options(false, &[(2, name)]), |file| {
            file.enhanced(0, 5, b"x", 1);
        });
        let mut capture = open(&file).expect("capture");
        let frame = capture.next_frame().expect("frame");
        assert_eq!(frame.interface().name.as_deref(), Some(&kept[..]));
    }
}

#[test]
fn written_captures_read_back() {
    let frames: Vec<Vec<u8>> = (0..300).map(|size| (0..size).map(|at| (at * size) as u8).collect()).collect();
    for resolution in [Resolution::Microseconds, Resolution::Nanoseconds] {
        for ng in [false, true] {
            let start = if ng { Writer::pcapng } else { Writer::pcap };
            let mut writer = start(Vec::new(), LinkType::PppOverEthernet, resolution).expect("header");
            for (at, frame) in frames.iter().enumerate() {
                writer.write(1_000_000_001 * at as i64, frame, frame.len() as u32 + 4).expect("write");
            }
            let file = writer.finish().expect("flush");
            let expected = if ng { Format::Pcapng } else { Format::Pcap };
            let capture = open(&file).expect("capture");
            assert_eq!((capture.format(), capture.compression()), (expected, Compression::None));
            assert_eq!(capture.name(), "memory");
            let (seen, report) = read_bytes(&file);
            assert_eq!(messages(&report), [""; 0]);
            assert_eq!(seen.len(), frames.len());
            for (at, (seen, frame)) in seen.iter().zip(&frames).enumerate() {
                let unit = if resolution == Resolution::Microseconds { 1_000 } else { 1 };
                let time = 1_000_000_001 * at as i64 / unit * unit;
                assert_eq!((&seen.data, seen.wire, seen.link), (frame, frame.len() as u32 + 4, 51));
                assert_eq!(seen.time, Some(time));
            }
        }
    }
}

#[test]
fn the_writer_refuses_what_a_file_cannot_say() {
    let mut writer = Writer::pcap(Vec::new(), LinkType::Ethernet, Resolution::Nanoseconds).expect("header");
    for (time, size, wire) in
        [(-1, 60, 60), (0, 60, 59), (0, 262_145, 262_145), (4_294_967_296_000_000_000, 1, 1)]
    {
        let error = writer.write(time, &vec![0; size], wire).expect_err("refused");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    assert_eq!(writer.finish().expect("flush").len(), 24);
}

#[test]
fn what_is_no_capture_is_refused_in_one_sentence() {
    let wrong_magic = [&[0x0a, 0x0d, 0x0d, 0x0a][..], &[0x55; 36]].concat();
    for (bytes, expected) in [
        (&b""[..], "no capture: empty"),
        (b"Hello, world, this is text.", "no capture: starts with 48 65 6c 6c, neither pcap nor pcapng"),
        (b"\n", "no capture: starts with 0a, neither pcap nor pcapng"),
        (&wrong_magic, "no capture: starts with 0a 0d 0d 0a, neither pcap nor pcapng"),
        (
            b"snoop\0\0\0\0\0\0\x02",
            "a snoop capture (RFC 1761) is not supported; convert it to pcap or pcapng first",
        ),
        (
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0],
            "no capture: ends within the 24-byte pcap file header, after 6 bytes",
        ),
        (
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0],
            "no capture: ends within the 28-byte pcapng file header, after 8 bytes",
        ),
    ] {
        assert_eq!(refusal(bytes), format!("memory: {expected}"));
    }
    assert!(matches!(Capture::open("/nonexistent/x.pcap"), Err(OpenError::Read { .. })));
    assert!(matches!(Capture::open("/"), Err(OpenError::Read { .. })));
}

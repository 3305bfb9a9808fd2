//! Every format in every byte order and resolution, and what is not a capture.

use crate::build::{Bytes, messages, open, read_bytes, refusal};
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
    let mut file = Bytes::new(false);
    file.pcap_header(0xa1b2_c3d4, 2, 96, 1).u32(0).u32(0).u32(1500).u32(4).raw(b"data");
    let (seen, _) = read_bytes(&file.out);
    assert_eq!((&seen[0].data[..], seen[0].wire), (&b"data"[..], 1500));

    let mut file = Bytes::new(true);
    file.pcap_header(0xa1b2_c3d4, 3, 96, 1).u32(0).u32(0).u32(1500).u32(4).raw(b"data");
    file.u32(0).u32(0).u32(4).u32(1501).raw(b"more");
    let (seen, _) = read_bytes(&file.out);
    assert_eq!((&seen[0].data[..], seen[0].wire), (&b"data"[..], 1500));
    assert_eq!((&seen[1].data[..], seen[1].wire), (&b"more"[..], 1501));

    let mut file = Bytes::new(false);
    file.u32(0xa1b2_c3d4).u16(3).u16(0).u64(0).u32(96).u32(1);
    assert_eq!(
        refusal(&file.out),
        "memory: pcap version 3.0 is not supported; convert it to pcap or pcapng first"
    );
}

/// Frames of which nothing, a part, all but the check sequence, a part of it and all of it was captured, as
/// captured length, length on the wire and captured length without 4 bytes of check sequence.
const FCS_CASES: [(usize, u32, usize); 7] =
    [(0, 64, 0), (40, 64, 40), (60, 64, 60), (61, 64, 60), (64, 64, 60), (3, 3, 0), (2, 5, 1)];

#[test]
fn the_fcs_that_a_pcap_header_declares_is_left_out() {
    let data: Vec<u8> = (0..64).collect();
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
            for (seen, (captured, wire, left)) in seen.iter().zip(FCS_CASES) {
                let bytes = fcs.unwrap_or(0);
                let left = if bytes == 4 { left } else { captured };
                assert_eq!((&seen.data[..], seen.wire), (&data[..left], wire.saturating_sub(bytes)));
                assert_eq!((seen.link, seen.time), (1, Some(7_000_000_000)));
            }
            let mut capture = open(&file.out).expect("capture");
            let stated = capture.next_frame().and_then(|frame| frame.interface().fcs_bytes);
            assert_eq!(stated.map(u32::from), fcs);
        }
    }
}

#[test]
fn the_fcs_that_a_pcapng_interface_declares_is_left_out() {
    let data: Vec<u8> = (0..64).collect();
    for big in [false, true] {
        // As bits, as bytes, and what can be neither.
        for (stated, bytes) in [(32, Some(4)), (4, Some(4)), (0, Some(0)), (33, None)] {
            let mut options = Bytes::new(big);
            options.option(13, &[stated]);
            let mut file = Bytes::new(big);
            file.section().interface(1, 0, &options.out).interface(1, 0, &[]);
            for (captured, wire, _) in FCS_CASES {
                file.enhanced(0, 7, &data[..captured], wire).packet(0, 7, &data[..captured], wire);
                file.enhanced(1, 7, &data[..captured], wire);
            }
            file.simple(&data[..64], 64);
            let (seen, report) = read_bytes(&file.out);
            assert_eq!((seen.len(), messages(&report)), (3 * FCS_CASES.len() + 1, Vec::new()));
            let fcs = bytes.unwrap_or(0);
            for (frames, (captured, wire, left)) in seen.chunks(3).zip(FCS_CASES) {
                let left = if fcs == 4 { left } else { captured };
                for frame in &frames[..2] {
                    assert_eq!((&frame.data[..], frame.wire), (&data[..left], wire.saturating_sub(fcs)));
                }
                assert_eq!((&frames[2].data[..], frames[2].wire), (&data[..captured], wire));
            }
            let simple = &seen[seen.len() - 1];
            assert_eq!((simple.data.len() as u32, simple.wire), (64 - fcs, 64 - fcs));
            let mut capture = open(&file.out).expect("capture");
            let stated = capture.next_frame().and_then(|frame| frame.interface().fcs_bytes);
            assert_eq!(stated.map(u32::from), bytes);
        }
    }
}

#[test]
fn the_flags_of_a_packet_override_the_fcs_of_its_interface() {
    for big in [false, true] {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut two = Bytes::new(big);
        two.option(1, b"a comment").option(2, &word(2 << 5 | 1)).option(0, &[]);
        let mut not_stated = Bytes::new(big);
        not_stated.option(2, &word(1));
        let mut behind_the_end = Bytes::new(big);
        behind_the_end.option(0, &[]).option(2, &word(2 << 5));
        let mut reaching_out = Bytes::new(big);
        reaching_out.u16(1).u16(400);
        let mut fcs = Bytes::new(big);
        fcs.option(13, &[32]);
        let mut file = Bytes::new(big);
        file.section().interface(1, 0, &[]).interface(1, 0, &fcs.out);
        for options in [&two, &not_stated, &behind_the_end, &reaching_out] {
            for (kind, interface) in [(6, 0), (6, 1), (2, 0)] {
                let mut body = Bytes::new(big);
                // In the obsolete block the second half of the first word counts drops.
                if kind == 2 {
                    body.u16(interface).u16(0)
                } else {
                    body.u32(interface.into())
                };
                body.u64(0).u32(9).u32(9).raw(&[5; 9]).raw(&[0; 3]).raw(&options.out);
                file.block(kind, &body.out);
            }
        }
        let (seen, report) = read_bytes(&file.out);
        assert_eq!(messages(&report), [""; 0]);
        let lengths: Vec<_> = seen.iter().map(|frame| (frame.data.len(), frame.wire)).collect();
        let (seven, five, nine) = ((7, 7), (5, 5), (9, 9));
        assert_eq!(lengths, [seven, seven, seven, nine, five, nine, nine, five, nine, nine, five, nine]);
    }
}

#[test]
fn pcapng_with_sections_of_both_orders_and_every_packet_block() {
    let mut all = Vec::new();
    for big in [true, false, true] {
        let mut options = Bytes::new(big);
        options.option(2, b"eth7").option(9, &[9]).option(13, &[32]);
        let offset = if big { (-5i64).to_be_bytes() } else { (-5i64).to_le_bytes() };
        options.option(14, &offset).option(0, &[]);
        let mut file = Bytes::new(big);
        file.section().interface(1, 4, &[]).interface(113, 0, &options.out);
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
        let mut options = Bytes::new(false);
        options.option(9, &[resolution]);
        let mut file = Bytes::new(false);
        file.section().interface(1, 0, &options.out).enhanced(0, ticks, b"", 0);
        assert_eq!(read_bytes(&file.out).0[0].time, ns, "if_tsresol {resolution:#04x}");
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
        let mut options = Bytes::new(big);
        let offset: i64 = -2;
        options.option(9, &[9]).option(14, &if big { offset.to_be_bytes() } else { offset.to_le_bytes() });
        let mut file = Bytes::new(big);
        file.section().interface(1, 0, &[]).simple(b"x", 1);
        assert_eq!(time_span(&file.out), None);
        // A time that no i64 can hold is left out; so is the Simple Packet Block.
        file.enhanced(0, 7, b"", 0).enhanced(0, u64::MAX, b"", 0).enhanced(0, 3, b"", 0).simple(b"x", 1);
        assert_eq!(time_span(&file.out), Some((3_000, 7_000)));
        file.interface(1, 0, &options.out).enhanced(1, 1, b"", 0).enhanced(0, 1 << 40, b"", 0);
        assert_eq!(time_span(&file.out), Some((-1_999_999_999, (1 << 40) * 1_000)));
        assert_eq!(read_bytes(&file.out).1.frames, 7);
    }
}

#[test]
fn malformed_interface_options_cost_no_frames() {
    for options in
        [&[9u8, 0, 255, 255, 1][..], &[9, 0, 0, 0], &[9, 0, 2, 0, 9, 9, 0, 0], &[14, 0, 4, 0, 1, 1, 1, 1]]
    {
        let mut file = Bytes::new(false);
        file.section().interface(1, 0, options).enhanced(0, 5, b"x", 1);
        assert_eq!(read_bytes(&file.out).0[0].time, Some(5_000));
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
        let mut options = Bytes::new(false);
        options.option(2, name);
        let mut file = Bytes::new(false);
        file.section().interface(1, 0, &options.out).enhanced(0, 5, b"x", 1);
        let mut capture = open(&file.out).expect("capture");
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
            assert_eq!(open(&file).expect("capture").format(), expected);
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
    assert_eq!(refusal(b""), "memory: no capture: empty");
    assert_eq!(
        refusal(b"Hello, world, this is text."),
        "memory: no capture: starts with 48 65 6c 6c, neither pcap nor pcapng"
    );
    assert_eq!(refusal(b"\n"), "memory: no capture: starts with 0a, neither pcap nor pcapng");
    assert_eq!(
        refusal(b"snoop\0\0\0\0\0\0\x02"),
        "memory: a snoop capture (RFC 1761) is not supported; convert it to pcap or pcapng first"
    );
    assert_eq!(
        refusal(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0]),
        "memory: no capture: ends within the 24-byte pcap file header, after 6 bytes"
    );
    assert_eq!(
        refusal(&[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0]),
        "memory: no capture: ends within the 28-byte pcapng file header, after 8 bytes"
    );
    let mut wrong_magic = vec![0x0a, 0x0d, 0x0d, 0x0a];
    wrong_magic.resize(40, 0x55);
    assert!(refusal(&wrong_magic).contains("no capture: starts with 0a 0d 0d 0a"));
    assert!(matches!(Capture::open("/nonexistent/x.pcap"), Err(OpenError::Read { .. })));
    assert!(matches!(Capture::open("/"), Err(OpenError::Read { .. })));
}

#[test]
fn an_unpacked_capture_says_so() {
    let file = Writer::pcap(Vec::new(), LinkType::Ethernet, Resolution::Nanoseconds);
    let file = file.and_then(Writer::finish).expect("header");
    let capture = open(&file).expect("capture");
    assert_eq!((capture.compression(), capture.name()), (Compression::None, "memory"));
    let (seen, report) = read_bytes(&file);
    assert_eq!((seen.len(), report.frames, report.problems.len()), (0, 0, 0));
}

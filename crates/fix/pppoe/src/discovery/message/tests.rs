use super::*;
use crate::discovery::complaint::{Complaint, Kind};
use wire::error::{Field, Layer, Rule};

fn parse(bytes: &[u8]) -> Message<'_> {
    Message::parse(bytes).expect("a packet")
}

/// A PADO: header, and the tags as they are given.
fn pado(tags: &[u8]) -> Vec<u8> {
    [&[0x11, 0x07, 0, 0][..], &(tags.len() as u16).to_be_bytes(), tags].concat()
}

const TAGS: &[u8] =
    b"\x01\x01\x00\x00\x01\x02\x00\x02ac\x01\x03\x00\x04\xde\xad\xbe\xef\x01\x20\x00\x02\x05\xdc";

#[test]
fn a_packet_is_read_as_it_is_written() {
    let bytes = pado(TAGS);
    let message = parse(&bytes);
    assert_eq!((message.code(), message.session()), (Code::PADO, 0));
    assert_eq!((message.service_name(), message.ac_name()), (&b""[..], Some(&b"ac"[..])));
    assert_eq!(message.host_uniq(), Some(&b"\xde\xad\xbe\xef"[..]));
    assert_eq!((message.max_payload(), message.cookie()), (Some(1500), None));
    let written = Builder::new(Code::PADO, 0)
        .tag(TagType::SERVICE_NAME, b"")
        .tag(TagType::AC_NAME, b"ac")
        .tag_if(TagType::AC_COOKIE, None)
        .tag_if(TagType::HOST_UNIQ, message.host_uniq())
        .max_payload(Some(1500));
    assert_eq!(written.finish().as_ref(), Ok(&bytes));
}

/// Attack 1: tags that are oversized, of no length, or reach beyond the packet.
#[test]
fn tags_that_do_not_fit_are_refused() {
    let refused = |tags: &[u8]| Message::parse(&pado(tags)).expect_err("it does not fit");
    for (tags, rule, offset) in [
        // A type and no length; a length of one byte.
        (&b"\x01"[..], Rule::Cut, 6),
        (b"\x01\x02\x00", Rule::Cut, 6),
        // One byte too long, the longest there is, the second one.
        (b"\x01\x02\x00\x01", Rule::Exceeds, 6),
        (b"\x01\x02\xff\xffac", Rule::Exceeds, 6),
        (b"\x01\x01\x00\x00\x01\x02\x00\x03ac", Rule::Exceeds, 10),
        // End-Of-List with a length.
        (b"\x00\x00\x00\x01x", Rule::MustBe, 6),
    ] {
        let error = refused(tags);
        assert_eq!((error.layer, error.rule, error.offset), (Layer::PppoeTag, rule, offset), "{tags:02x?}");
    }
    // A tag reaches into the padding.
    let mut padded = pado(b"\x01\x02\x00\x04ac");
    padded.extend([0; 40]);
    assert_eq!(Message::parse(&padded).expect_err("beyond its packet").rule, Rule::Exceeds);
}

/// Attack 1: tags without bytes are values without bytes, and not none.
#[test]
fn tags_of_no_length_are_empty_values() {
    let bytes = pado(b"\x01\x02\x00\x00\x01\x03\x00\x00\x01\x04\x00\x00\x01\x20\x00\x00\x01\x05\x00\x00");
    let message = parse(&bytes);
    assert_eq!([message.ac_name(), message.host_uniq(), message.cookie()], [Some(&b""[..]); 3]);
    // These have no meaning without bytes.
    assert_eq!((message.max_payload(), message.line()), (None, None));
    assert_eq!(Message::parse(&pado(b"")).expect("none").tags().count(), 0);
}

#[test]
fn the_first_of_several_counts_and_nothing_behind_the_end_does() {
    let bytes =
        pado(b"\x01\x02\x00\x01a\x01\x02\x00\x01b\xff\xff\x00\x01?\x00\x00\x00\x00\x01\x03\x00\x01u\xff");
    let message = parse(&bytes);
    assert_eq!((message.ac_name(), message.host_uniq()), (Some(&b"a"[..]), None));
    assert_eq!(message.tags().count(), 3, "one of them unknown");
}

/// Attack 4: lengths that disagree with the frame.
#[test]
fn a_frame_may_be_padded_and_not_cut() {
    let bytes = pado(TAGS);
    for length in 0..bytes.len() {
        let error = Message::parse(&bytes[..length]).expect_err("cut");
        let rule = if length < Header::LENGTH { Rule::Cut } else { Rule::Exceeds };
        assert_eq!((error.layer, error.rule), (Layer::Pppoe, rule), "{length}");
    }
    for padding in [1, 12, 1500, 70_000] {
        let padded = [&bytes[..], &vec![0xff; padding]].concat();
        assert_eq!(parse(&padded).tags().count(), 4);
    }
    // A length that ends within a tag.
    for length in 0..TAGS.len() as u8 {
        let mut short = bytes.clone();
        short[5] = length;
        let is_whole = [0, 4, 10, 18].contains(&length);
        assert_eq!(Message::parse(&short).is_ok(), is_whole, "{length}");
    }
}

#[test]
fn other_versions_types_and_codes_are_refused() {
    let with = |first: u8, code: u8| Message::parse(&[first, code, 0, 0, 0, 0]).map(|message| message.code());
    assert_eq!(with(0x11, 0xa7), Ok(Code::PADT));
    for (first, code, field) in
        [(0x21, 9, Field::Version), (0x12, 9, Field::Type), (0x11, 0, Field::Code), (0x11, 0xd3, Field::Code)]
    {
        assert_eq!(with(first, code).expect_err("refused").field, field);
    }
}

#[test]
fn what_is_written_leaves_room_for_a_relay() {
    // RFC 2516 section 5.1: 1484 bytes with the header; a relay's tag of 12 bytes makes 1500 of it.
    let padi = |bytes| Builder::new(Code::PADI, 0).tag(TagType::SERVICE_NAME, &vec![b's'; bytes]).finish();
    assert_eq!(padi(1474).expect("it fits").len(), 1484);
    let error = padi(1475).expect_err("too long");
    assert_eq!(error, TooLong { code: Code::PADI, needed: 1485, most: 1484 });
    assert_eq!(padi(100_000).expect_err("too long").needed, 100_010);
    let pads = |bytes| Builder::new(Code::PADS, 7).tag(TagType::HOST_UNIQ, &vec![1; bytes]).finish();
    assert_eq!(pads(1490).expect("it fits").len(), LONGEST);
    assert!(pads(1491).is_err());
    // Nothing behind what has no room makes it fit again.
    let builder = Builder::new(Code::PADI, 0).tag(TagType::AC_COOKIE, &[0; 2000]).tag(TagType::AC_NAME, b"");
    assert!(builder.finish().is_err());
}

#[test]
fn a_reason_for_the_end_is_cut_between_characters() {
    let bytes = padt(0x1234, Some(&"ä".repeat(500)));
    let message = parse(&bytes);
    assert_eq!((message.code(), message.session()), (Code::PADT, 0x1234));
    let complaint = Complaint::of(&message).expect("a reason");
    assert_eq!(complaint.text, "ä".repeat(100).as_bytes());
    assert_eq!(padt(1, None), [0x11, 0xa7, 0, 1, 0, 0]);
}

/// Attack 21: what tags say is printed as one harmless line, and bounded.
#[test]
fn hostile_tags_are_printed_escaped() {
    let line = b"\x01\x05\x00\x13\x00\x00\x0d\xe9\x01\x06a\n\x1b[2J\x02\x05$(id)";
    let bytes = pado(line);
    let line = parse(&bytes).line().expect("an identification");
    assert_eq!(line.to_string(), "circuit \"a\\u{a}\\u{1b}[2J\", remote \"\\$(id)\"");
    let long = [&b"\x01\x05\x00\xff\x00\x00\x0d\xe9\x01\xf9"[..], &[b'x'; 249]].concat();
    let bytes = pado(&long);
    assert_eq!(parse(&bytes).line().map(|line| line.circuit.len()), Some(63));
    let error = [&b"\x02\x03\x05\x00"[..], &[b'\n'; 1280]].concat();
    let bytes = pado(&error);
    let complaint = Complaint::of(&parse(&bytes)).expect("an error");
    assert_eq!((complaint.kind, complaint.text.len()), (Kind::Generic, 800));
    let text = complaint.to_string();
    assert!(text.starts_with("Generic-Error \"\\u{a}") && text.len() < 1100, "{text}");
    assert!(!text.chars().any(char::is_control));
}

#[test]
fn a_damaged_line_identification_is_none() {
    for tag in [
        &b"\x01\x05\x00\x06\x00\x00\x0d\xe9\x01\x05"[..],
        b"\x01\x05\x00\x05\x00\x00\x0d\xe9\x01",
        b"\x01\x05\x00\x03\x00\x00\x0d",
        b"\x01\x05\x00\x08\x00\x00\x0d\xea\x01\x02ab",
    ] {
        let bytes = pado(tag);
        assert_eq!(parse(&bytes).line(), None, "{tag:02x?}");
    }
}

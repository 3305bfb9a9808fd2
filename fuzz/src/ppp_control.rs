//! Any bytes as PPP, with protocol field compression forbidden and allowed, as a control packet with its options, and as packets
//! of PAP and CHAP: what is read is written again byte for byte.

use rxlane_pppoe::control::{options, packet, put_option};
use rxlane_pppoe::{chap, ms_chap, pap};
use rxlane_wire::emit::{ControlPacket, Emit, Ppp};
use rxlane_wire::error::Rule;
use rxlane_wire::ppp::{Compression, PppProtocol, protocol};

pub fn run(bytes: &[u8]) {
    let (strict, lenient) = (protocol(bytes, Compression::Forbidden), protocol(bytes, Compression::Allowed));
    match (strict, lenient) {
        (Ok((strict, 2)), Ok((lenient, 2))) => {
            assert_eq!(strict, lenient);
            let mut buffer = [0; 2];
            assert_eq!(Ppp { protocol: strict }.emit(&mut buffer), Ok(2));
            assert_eq!(bytes[..2], buffer);
        }
        (Err(error), Ok((lenient, 1))) => {
            assert_eq!(error.rule, Rule::Compressed);
            assert_eq!(lenient.0, u16::from(bytes[0]));
        }
        // Of an empty field one byte would have done where compression is allowed.
        (Err(strict), Err(lenient)) if bytes.is_empty() => assert_eq!((strict.limit, lenient.limit), (2, 1)),
        (Err(strict), Err(lenient)) => assert_eq!(strict, lenient),
        other => panic!("{other:?}"),
    }
    if let Ok(control) = ControlPacket::parse(bytes) {
        let mut buffer = vec![0; control.length()];
        assert_eq!(control.emit(&mut buffer), Ok(buffer.len()));
        assert_eq!(bytes[..buffer.len()], buffer);
        assert_eq!(ControlPacket::parse(&buffer), Ok(control));
        let sent = packet(PppProtocol::LCP, control, u16::MAX).expect("within any limit");
        assert_eq!(sent[2..], buffer);
        data(control.data);
    }
    data(bytes);
}

/// What may stand behind the header.
fn data(bytes: &[u8]) {
    let mut written = Vec::new();
    let mut failed = false;
    for option in options(bytes) {
        assert!(!failed, "an error ends the walk");
        match option {
            Ok(option) => put_option(option.kind, option.data, &mut written),
            Err(_) => failed = true,
        }
    }
    assert_eq!(bytes.get(..written.len()), Some(&written[..]));
    assert_eq!(failed, written.len() < bytes.len());
    if let Ok((user, password)) = pap::parse_request(bytes) {
        assert!(bytes.starts_with(&pap::request(user, password)));
    }
    assert!(pap::parse_answer(bytes).len() < bytes.len().max(1));
    if let Ok((value, name)) = chap::parse_value(chap::CHALLENGE, bytes) {
        assert_eq!(chap::value(value, name), bytes);
        if let Some((peer_challenge, response)) = ms_chap::parse_response_value(value) {
            let again = ms_chap::response_value(&peer_challenge, &response);
            assert_eq!((&again[..16], &again[24..48]), (&value[..16], &value[24..48]));
        }
    }
    if let Some((response, message)) = ms_chap::parse_success(bytes) {
        assert_eq!(ms_chap::parse_success(&ms_chap::success(&response, message)), Some((response, message)));
    }
    let (failure, words) = ms_chap::Failure::parse(bytes);
    assert!(failure.is_some() || words == bytes);
}

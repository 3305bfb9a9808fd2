//! Any octets as PPP, with protocol field compression forbidden and allowed, and as a control packet: what is
//! read is written again octet for octet.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rxlane_wire::emit::{ControlPacket, Emit, Ppp};
use rxlane_wire::error::Rule;
use rxlane_wire::ppp::{Compression, protocol};

fuzz_target!(|octets: &[u8]| {
    let (strict, lenient) =
        (protocol(octets, Compression::Forbidden), protocol(octets, Compression::Allowed));
    match (strict, lenient) {
        (Ok((strict, 2)), Ok((lenient, 2))) => {
            assert_eq!(strict, lenient);
            let mut buffer = [0; 2];
            assert_eq!(Ppp { protocol: strict }.emit(&mut buffer), Ok(2));
            assert_eq!(octets[..2], buffer);
        }
        (Err(error), Ok((lenient, 1))) => {
            assert_eq!(error.rule, Rule::Compressed);
            assert_eq!(lenient.0, u16::from(octets[0]));
        }
        // Of an empty field one octet would have done where compression is allowed.
        (Err(strict), Err(lenient)) if octets.is_empty() => assert_eq!((strict.limit, lenient.limit), (2, 1)),
        (Err(strict), Err(lenient)) => assert_eq!(strict, lenient),
        other => panic!("{other:?}"),
    }
    if let Ok(packet) = ControlPacket::parse(octets) {
        let mut buffer = vec![0; packet.length()];
        assert_eq!(packet.emit(&mut buffer), Ok(buffer.len()));
        assert_eq!(octets[..buffer.len()], buffer);
        assert_eq!(ControlPacket::parse(&buffer), Ok(packet));
    }
});

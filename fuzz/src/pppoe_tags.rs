//! Any bytes as the payload of a PPPoE discovery packet: the walk over tags ends, each tag lies behind the
//! one before it, what was read is written again byte for byte, and a line identification is read without
//! panic.

use rxlane_wire::emit::{Emit, LineIdentification};
use rxlane_wire::pppoe::{Tag, tags};

pub fn run(bytes: &[u8]) {
    let mut written = Vec::new();
    let mut failed = false;
    for tag in tags(bytes) {
        assert!(!failed, "an error ends the walk");
        match tag {
            Ok(tag) => {
                let mut buffer = vec![0; tag.length()];
                assert_eq!(tag.emit(&mut buffer), Ok(Tag::HEADER_LENGTH + tag.value.len()));
                assert_eq!(Tag::parse(&buffer), Ok(Some(tag)));
                written.extend(buffer);
                if let Some(items) = tag.line_identification() {
                    assert!(
                        items.map_while(Result::ok).map(|(_, value)| value.len() + 2).sum::<usize>()
                            < tag.value.len()
                    );
                }
                if let Ok(Some(line)) = LineIdentification::parse(&tag) {
                    let mut buffer = vec![0; line.length()];
                    if let Ok(length) = line.emit(&mut buffer) {
                        let again = Tag::parse(&buffer[..length]).expect("written").expect("a tag");
                        assert_eq!(LineIdentification::parse(&again), Ok(Some(line)));
                    }
                }
            }
            Err(error) => {
                failed = true;
                assert_eq!(error.offset as usize, written.len(), "{error}");
            }
        }
    }
    assert_eq!(bytes.get(..written.len()), Some(&written[..]));
}

//! Packets of discovery (RFC 2516 section 5): TLVs behind the PPPoE header.

pub const PADI: u8 = 0x09;
pub const PADO: u8 = 0x07;
pub const PADR: u8 = 0x19;
pub const PADS: u8 = 0x65;
pub const PADT: u8 = 0xa7;

pub const END_OF_LIST: u16 = 0x0000;
pub const SERVICE_NAME: u16 = 0x0101;
pub const AC_NAME: u16 = 0x0102;
pub const HOST_UNIQ: u16 = 0x0103;
pub const AC_COOKIE: u16 = 0x0104;
pub const VENDOR_SPECIFIC: u16 = 0x0105;
pub const RELAY_SESSION_ID: u16 = 0x0110;
pub const GENERIC_ERROR: u16 = 0x0203;

/// Tags of a packet, in their order.
pub type Tags = Vec<(u16, Vec<u8>)>;

/// Vendor id of the Broadband Forum, and its sub-tags for circuit and remote id (TR-101 section 3.9.2).
pub fn line_identification(circuit: &str, remote: &str) -> Vec<u8> {
    let mut octets = 3561_u32.to_be_bytes().to_vec();
    for (kind, text) in [(1, circuit), (2, remote)] {
        octets.extend([kind, u8::try_from(text.len()).expect("63 at most")]);
        octets.extend(text.as_bytes());
    }
    octets
}

pub fn put(tags: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let mut octets = Vec::new();
    for (kind, value) in tags {
        octets.extend(kind.to_be_bytes());
        octets.extend(u16::try_from(value.len()).expect("short").to_be_bytes());
        octets.extend(value);
    }
    octets
}

/// `None`: a tag is longer than what is left.
pub fn read(mut octets: &[u8]) -> Option<Tags> {
    let mut tags = Vec::new();
    while !octets.is_empty() {
        let (head, rest) = octets.split_first_chunk::<4>()?;
        let kind = u16::from_be_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (value, behind) = rest.split_at_checked(length)?;
        if kind == END_OF_LIST {
            break;
        }
        tags.push((kind, value.to_vec()));
        octets = behind;
    }
    Some(tags)
}

pub fn find(tags: &[(u16, Vec<u8>)], kind: u16) -> Option<&[u8]> {
    tags.iter().find(|(found, _)| *found == kind).map(|(_, value)| &value[..])
}

/// What an error tag says.
pub fn complaint(tags: &[(u16, Vec<u8>)]) -> Option<String> {
    let (_, text) = tags.iter().find(|(kind, _)| (0x0201..=0x0203).contains(kind))?;
    Some(String::from_utf8_lossy(text).into_owned())
}

//! The octets of netlink messages.

/// Appends an attribute, padded to a multiple of four octets.
pub fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend(((value.len() + 4) as u16).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// The attributes in a message or in another attribute; ends at the first whose length is wrong.
pub fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    const NESTED: u16 = 1 << 15;
    std::iter::from_fn(move || {
        let length = usize::from(half(rest, 0)?);
        let kind = half(rest, 2)? & !NESTED;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The messages of a datagram, each with its type, without its header; ends at the first whose length is wrong.
pub fn messages(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = word(rest, 0)? as usize;
        let kind = half(rest, 4)?;
        let body = rest.get(super::HEADER..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    })
}

/// Four octets, in the byte order of this machine.
pub fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

/// Two octets, in the byte order of this machine.
pub fn half(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*octets.get(at..)?.first_chunk()?))
}

/// Text up to the first zero.
pub fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.split(|&octet| octet == 0).next().unwrap_or_default()).into_owned()
}

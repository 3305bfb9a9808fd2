//! PPP: control packets and their options (RFC 1661 section 5), PAP (RFC 1334), CHAP (RFC 1994).

use md5::{Digest, Md5};

pub const IPV4: u16 = 0x0021;
pub const IPV6: u16 = 0x0057;
pub const IPCP: u16 = 0x8021;
pub const IPV6CP: u16 = 0x8057;
pub const CCP: u16 = 0x80fd;
pub const LCP: u16 = 0xc021;
pub const PAP: u16 = 0xc023;
pub const CHAP: u16 = 0xc223;

pub const CONFIGURE_REQUEST: u8 = 1;
pub const CONFIGURE_ACK: u8 = 2;
pub const CONFIGURE_NAK: u8 = 3;
pub const CONFIGURE_REJECT: u8 = 4;
pub const TERMINATE_REQUEST: u8 = 5;
pub const TERMINATE_ACK: u8 = 6;
pub const PROTOCOL_REJECT: u8 = 8;
pub const ECHO_REQUEST: u8 = 9;
pub const ECHO_REPLY: u8 = 10;
pub const DISCARD_REQUEST: u8 = 11;
pub const IDENTIFICATION: u8 = 12;
pub const TIME_REMAINING: u8 = 13;

/// Options of LCP.
pub const MRU: u8 = 1;
pub const ACCM: u8 = 2;
pub const AUTHENTICATION: u8 = 3;
pub const MAGIC: u8 = 5;
pub const PFC: u8 = 7;
pub const ACFC: u8 = 8;
pub const CALLBACK: u8 = 13;
pub const MRRU: u8 = 17;
pub const SHORT_SEQUENCE: u8 = 18;
pub const ENDPOINT: u8 = 19;
/// What Authentication-Protocol says.
pub const BY_PAP: [u8; 2] = [0xc0, 0x23];
pub const BY_CHAP_MD5: [u8; 3] = [0xc2, 0x23, 0x05];

/// Options of IPCP (RFC 1332, RFC 1877) and IPV6CP (RFC 5072).
pub const IP_COMPRESSION: u8 = 2;
pub const IP_ADDRESS: u8 = 3;
pub const PRIMARY_DNS: u8 = 129;
pub const SECONDARY_DNS: u8 = 131;
pub const INTERFACE_IDENTIFIER: u8 = 1;

/// Van Jacobson compression with 16 slots and no compressed slot id (RFC 1332 section 4).
pub const VJ: [u8; 4] = [0x00, 0x2d, 0x0f, 0x00];

/// Options of a request, in their order.
pub type Options = Vec<(u8, Vec<u8>)>;

/// A packet of a control protocol.
#[derive(Debug)]
pub struct Control<'p> {
    pub code: u8,
    pub identifier: u8,
    pub data: &'p [u8],
}

impl<'p> Control<'p> {
    /// `None`: the length is less than a header, or more than there is.
    pub fn read(octets: &'p [u8]) -> Option<Control<'p>> {
        let (head, _) = octets.split_first_chunk::<4>()?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        Some(Control { code: head[0], identifier: head[1], data: octets.get(4..length)? })
    }
}

/// The protocol field, uncompressed as RFC 2516 section 7 wants it, and what is behind it.
pub fn protocol(payload: &[u8]) -> Option<(u16, &[u8])> {
    let (head, rest) = payload.split_first_chunk::<2>()?;
    Some((u16::from_be_bytes(*head), rest))
}

/// A whole PPP packet of a control protocol.
pub fn control(protocol: u16, code: u8, identifier: u8, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len() + 4).expect("short");
    let mut octets = protocol.to_be_bytes().to_vec();
    octets.extend([code, identifier]);
    octets.extend(length.to_be_bytes());
    octets.extend(data);
    octets
}

pub fn put(options: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut octets = Vec::new();
    for (kind, data) in options {
        octets.extend([*kind, u8::try_from(data.len() + 2).expect("short")]);
        octets.extend(data);
    }
    octets
}

/// `None`: an option is shorter than its head or longer than what is left.
pub fn options(mut octets: &[u8]) -> Option<Options> {
    let mut options = Vec::new();
    while !octets.is_empty() {
        let (head, _) = octets.split_first_chunk::<2>()?;
        let (option, rest) = octets.split_at_checked(usize::from(head[1]))?;
        options.push((head[0], option.get(2..)?.to_vec()));
        octets = rest;
    }
    Some(options)
}

/// Data of a PAP request (RFC 1334 section 2.2.1).
pub fn pap(user: &str, password: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8][..], text.as_bytes()].concat();
    [text(user), text(password)].concat()
}

/// Name and password of a PAP request.
pub fn read_pap(data: &[u8]) -> Option<(String, String)> {
    let text = |data: &[u8]| {
        let (length, rest) = data.split_first()?;
        let (text, rest) = rest.split_at_checked(usize::from(*length))?;
        Some((String::from_utf8_lossy(text).into_owned(), rest.to_vec()))
    };
    let (user, rest) = text(data)?;
    let (password, _) = text(&rest)?;
    Some((user, password))
}

/// Data of a CHAP response to the data of a challenge: MD5 over identifier, secret and challenge (RFC 1994 section 4.1).
pub fn chap(identifier: u8, challenge: &[u8], user: &str, secret: &str) -> Option<Vec<u8>> {
    let (length, rest) = challenge.split_first()?;
    let value = rest.get(..usize::from(*length))?;
    let digest = Md5::new().chain_update([identifier]).chain_update(secret).chain_update(value).finalize();
    Some([&[16][..], &digest[..], user.as_bytes()].concat())
}

//! Requests of servers (RFC 5176): to end sessions (Disconnect), or to change what was granted to them (CoA).
//!
//! A request is of who knows the secret ([`Secret::verify_request`]) and of now ([`is_timely`]); whatever is not gets no answer. One that
//! is gets an answer: what [`request`] or the caller refuses an [`ErrorCause`].

use crate::access::{Accepted, Nas};
use crate::attribute::*;
use crate::packet::{Code, Draft, NoRoom, Packet};
use crate::rates::Rates;
use crate::secret::Secret;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, SystemTime};

/// UDP port of who takes requests (RFC 5176 section 2.1).
pub const PORT: u16 = 3799;
/// How far an Event-Timestamp may be from now (RFC 5176 section 6.3).
pub const TIMELY: Duration = Duration::from_secs(300);

/// Which sessions are meant: those that fit all that is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// User-Name.
    pub user: Option<Vec<u8>>,
    /// Acct-Session-Id.
    pub id: Option<Vec<u8>>,
    /// NAS-Port-Id.
    pub port: Option<Vec<u8>>,
    /// Calling-Station-Id, a MAC address.
    pub station: Option<[u8; 6]>,
    /// Framed-IP-Address, and that of Framed-IPv6-Prefix.
    pub addresses: Vec<IpAddr>,
}

/// What is granted instead of what was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Session-Timeout, since the session opened.
    pub session_timeout: Option<Duration>,
    /// Idle-Timeout.
    pub idle_timeout: Option<Duration>,
    /// Acct-Interim-Interval.
    pub interim: Option<Duration>,
    /// Class, all of them; empty: those that were.
    pub class: Vec<Vec<u8>>,
    /// Filter-Id, and what vendors have.
    pub rates: Rates,
}

/// What a server requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Of which sessions.
    pub sessions: Selection,
    /// What is to become of them; `None`: they end.
    pub change: Option<Change>,
}

/// Why nothing comes of a request (RFC 5176 section 3.5). The numbers are those of Error-Cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ErrorCause {
    /// Sessions are not found by this, or this cannot be changed.
    #[error("attribute {0} is not supported")]
    UnsupportedAttribute(u8),
    /// It names no session, or has no Event-Timestamp, or would change nothing.
    #[error("{0} is missing")]
    MissingAttribute(&'static str),
    /// It is for another NAS.
    #[error("it names another NAS")]
    OtherNas,
    /// A value cannot be read.
    #[error("attribute {0} has a value that cannot be read")]
    InvalidValue(u8),
    /// It names a rate that the concentrator does not know.
    #[error("no [[rate]] has this name")]
    NoSuchRate,
    /// What it names was not granted by a server.
    #[error("the session's user is not authenticated by RADIUS")]
    Prohibited,
    /// No session fits.
    #[error("there is no such session")]
    NoSession,
}

impl ErrorCause {
    const fn number(self) -> u32 {
        match self {
            ErrorCause::UnsupportedAttribute(_) => 401,
            ErrorCause::MissingAttribute(_) => 402,
            ErrorCause::OtherNas => 403,
            ErrorCause::InvalidValue(_) | ErrorCause::NoSuchRate => 407,
            ErrorCause::Prohibited => 501,
            ErrorCause::NoSession => 503,
        }
    }
}

/// Whether a request was made now, by its Event-Timestamp; `None`: it has none.
pub fn is_timely(packet: &Packet<'_>, now: SystemTime) -> Option<bool> {
    let made = packet.values(EVENT_TIMESTAMP).next()?;
    let Ok(made) = made.try_into().map(u32::from_be_bytes) else { return Some(false) };
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some(Duration::from_secs(made.into()).abs_diff(now) <= TIMELY)
}

/// Reads a request that was found to be of a server of this concentrator.
///
/// # Errors
///
/// Why nothing comes of it, which the server is to learn.
pub fn request(packet: &Packet<'_>, nas: &Nas) -> Result<Request, ErrorCause> {
    let mut sessions = Selection::default();
    // It reads what an Access-Accept has, too.
    let mut granted = Accepted::default();
    let is_change = packet.code() == Code::COA_REQUEST;
    for (kind, value) in packet.attributes() {
        let unreadable = ErrorCause::InvalidValue(kind);
        let bytes = || Some(value.to_vec());
        match kind {
            NAS_IDENTIFIER if value != nas.identifier => return Err(ErrorCause::OtherNas),
            NAS_IP_ADDRESS | NAS_IPV6_ADDRESS if nas.address().is_some_and(|(_, own)| own != value) => {
                return Err(ErrorCause::OtherNas);
            }
            NAS_IDENTIFIER
            | NAS_IP_ADDRESS
            | NAS_IPV6_ADDRESS
            | PROXY_STATE
            | EVENT_TIMESTAMP
            | MESSAGE_AUTHENTICATOR => {}
            USER_NAME => sessions.user = bytes(),
            ACCT_SESSION_ID => sessions.id = bytes(),
            NAS_PORT_ID => sessions.port = bytes(),
            CALLING_STATION_ID => sessions.station = Some(station(value).ok_or(unreadable)?),
            FRAMED_IP_ADDRESS => {
                let address: [u8; 4] = value.try_into().map_err(|_| unreadable)?;
                sessions.addresses.push(Ipv4Addr::from(address).into());
            }
            FRAMED_IPV6_PREFIX => {
                granted.take(kind, value).ok_or(unreadable)?;
                sessions.addresses.extend(granted.prefix.map(|(address, _)| IpAddr::from(address)));
            }
            SESSION_TIMEOUT | IDLE_TIMEOUT | ACCT_INTERIM_INTERVAL | CLASS if is_change => {
                granted.take(kind, value).ok_or(unreadable)?
            }
            FILTER_ID if is_change => granted.take(kind, value).ok_or(unreadable)?,
            VENDOR_SPECIFIC if is_change => match granted.rates.take_of_vendor(value) {
                Some(true) => {}
                Some(false) => return Err(ErrorCause::UnsupportedAttribute(kind)),
                None => return Err(unreadable),
            },
            _ => return Err(ErrorCause::UnsupportedAttribute(kind)),
        }
    }
    if sessions == Selection::default() {
        return Err(ErrorCause::MissingAttribute("what names a session (Acct-Session-Id)"));
    }
    let Accepted { session_timeout, idle_timeout, interim, class, rates, .. } = granted;
    let change = Change { session_timeout, idle_timeout, interim, class, rates };
    if is_change && change == Change::default() {
        return Err(ErrorCause::MissingAttribute("what is to change"));
    }
    Ok(Request { sessions, change: is_change.then_some(change) })
}

/// Twelve hexadecimal digits, with whatever separators.
fn station(value: &[u8]) -> Option<[u8; 6]> {
    let is_separator = |byte: &u8| b"-:.".contains(byte);
    let digits: Vec<u8> = value.iter().copied().filter(|byte| !is_separator(byte)).collect();
    let number = u64::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok();
    let number = number.filter(|_| digits.len() == 12 && digits[0] != b'+')?;
    number.to_be_bytes().last_chunk().copied()
}

/// The answer to a request.
///
/// # Errors
///
/// What a proxy wants back has no room.
pub fn answer(
    secret: &Secret,
    packet: &Packet<'_>,
    outcome: Result<(), ErrorCause>,
) -> Result<Vec<u8>, NoRoom> {
    let is_change = packet.code() == Code::COA_REQUEST;
    let mut draft = Draft::new(match (is_change, outcome.is_ok()) {
        (false, true) => Code::DISCONNECT_ACK,
        (false, false) => Code::DISCONNECT_NAK,
        (true, true) => Code::COA_ACK,
        (true, false) => Code::COA_NAK,
    });
    if let Err(cause) = outcome {
        draft.add_number(ERROR_CAUSE, cause.number())?;
    }
    // In their order (RFC 5176 section 3.1).
    packet.values(PROXY_STATE).try_for_each(|state| draft.add(PROXY_STATE, state))?;
    secret.answer(packet, draft)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::AUTHENTICATOR;
    use crate::secret::Forged;
    use proptest::prelude::*;

    fn nas() -> Nas {
        Nas { identifier: b"bras1".to_vec(), address: Some([10, 0, 0, 1].into()) }
    }

    fn made(code: Code, attributes: &[(u8, &[u8])]) -> Vec<u8> {
        let mut draft = Draft::new(code);
        attributes.iter().for_each(|(kind, value)| draft.add(*kind, value).expect("room"));
        Secret::new("s").sign(draft, 7, &[0; 16]).expect("room")
    }

    fn read(code: Code, attributes: &[(u8, &[u8])]) -> Result<Request, ErrorCause> {
        request(&Packet::parse(&made(code, attributes)).expect("a packet"), &nas())
    }

    #[test]
    fn sessions_are_selected_by_all_that_is_given() {
        let read = read(
            Code::DISCONNECT_REQUEST,
            &[
                (NAS_IDENTIFIER, b"bras1"),
                (NAS_IP_ADDRESS, &[10, 0, 0, 1]),
                (USER_NAME, b"nemo"),
                (ACCT_SESSION_ID, b"00000000000000a1"),
                (NAS_PORT_ID, b"eth1 q:7"),
                (CALLING_STATION_ID, b"02-00-00-00-AB-01"),
                (FRAMED_IP_ADDRESS, &[10, 1, 2, 3]),
                (FRAMED_IPV6_PREFIX, &[0, 64, 0xfd, 0, 0, 2, 0, 0, 0, 1]),
                (EVENT_TIMESTAMP, &[0; 4]),
                (PROXY_STATE, b"p"),
            ],
        );
        let sessions = Selection {
            user: Some(b"nemo".to_vec()),
            id: Some(b"00000000000000a1".to_vec()),
            port: Some(b"eth1 q:7".to_vec()),
            station: Some([2, 0, 0, 0, 0xab, 1]),
            addresses: vec![[10, 1, 2, 3].into(), "fd00:2:0:1::".parse().expect("an address")],
        };
        assert_eq!(read, Ok(Request { sessions, change: None }));
    }

    #[test]
    fn a_change_is_read_as_an_access_accept_is() {
        let read = read(
            Code::COA_REQUEST,
            &[
                (USER_NAME, b"nemo"),
                (SESSION_TIMEOUT, &[0, 0, 0, 60]),
                (IDLE_TIMEOUT, &[0, 0, 0, 30]),
                (ACCT_INTERIM_INTERVAL, &[0, 0, 0, 9]),
                (CLASS, b"gold"),
                (FILTER_ID, b"10m"),
                (VENDOR_SPECIFIC, b"\0\0\x3a\x8c\x08\x05512"),
            ],
        );
        let rate = |bits| Some(crate::rates::Rate::Bits(bits));
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let change = Change {
            session_timeout: seconds(60),
            idle_timeout: seconds(30),
            interim: seconds(9),
            class: vec![b"gold".to_vec()],
            rates: Rates { download: rate(512), upload: rate(512) },
        };
        assert_eq!(read.map(|request| request.change), Ok(Some(change)));
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_the_number_of_the_reason() {
        let user = (USER_NAME, &b"nemo"[..]);
        for (code, attributes, number) in [
            (Code::DISCONNECT_REQUEST, &[user, (SESSION_TIMEOUT, &[0; 4])][..], 401),
            (Code::COA_REQUEST, &[user, (SERVICE_TYPE, &[0, 0, 0, 17])], 401),
            (Code::COA_REQUEST, &[user, (VENDOR_SPECIFIC, b"\0\0\0\x09\x01\x04ab")], 401),
            (Code::DISCONNECT_REQUEST, &[], 402),
            (Code::COA_REQUEST, &[user], 402),
            (Code::DISCONNECT_REQUEST, &[user, (NAS_IDENTIFIER, b"bras2")], 403),
            (Code::DISCONNECT_REQUEST, &[user, (NAS_IP_ADDRESS, &[10, 0, 0, 2])], 403),
            (Code::DISCONNECT_REQUEST, &[user, (NAS_IPV6_ADDRESS, &[0; 16])], 403),
            (Code::DISCONNECT_REQUEST, &[(CALLING_STATION_ID, b"+2000000AB01")], 407),
            (Code::DISCONNECT_REQUEST, &[(CALLING_STATION_ID, b"0200.0000.AB")], 407),
            (Code::DISCONNECT_REQUEST, &[(FRAMED_IP_ADDRESS, &[1])], 407),
            (Code::DISCONNECT_REQUEST, &[(FRAMED_IPV6_PREFIX, &[0, 129])], 407),
            (Code::COA_REQUEST, &[user, (SESSION_TIMEOUT, &[1])], 407),
            (Code::COA_REQUEST, &[user, (VENDOR_SPECIFIC, b"\0\0\x3a\x8c\x08\x05fast")], 407),
            (Code::DISCONNECT_REQUEST, &[user, (FILTER_ID, b"10m")], 401),
        ] {
            let refused = read(code, attributes).expect_err("refused");
            assert_eq!(refused.number(), number, "{attributes:?}");
        }
        assert_eq!((ErrorCause::Prohibited.number(), ErrorCause::NoSession.number()), (501, 503));
    }

    #[test]
    fn an_answer_fits_its_request_and_gives_a_proxy_its_state() {
        let secret = Secret::new("s");
        for (code, outcome, expected) in [
            (Code::DISCONNECT_REQUEST, Ok(()), Code::DISCONNECT_ACK),
            (Code::DISCONNECT_REQUEST, Err(ErrorCause::NoSession), Code::DISCONNECT_NAK),
            (Code::COA_REQUEST, Ok(()), Code::COA_ACK),
            (Code::COA_REQUEST, Err(ErrorCause::Prohibited), Code::COA_NAK),
        ] {
            let bytes = made(code, &[(PROXY_STATE, b"one"), (PROXY_STATE, b"two")]);
            let request = Packet::parse(&bytes).expect("a packet");
            let answer = answer(&secret, &request, outcome).expect("room");
            let packet = Packet::parse(&answer).expect("a packet");
            assert_eq!((packet.code(), packet.identifier()), (expected, 7));
            assert_eq!(packet.values(PROXY_STATE).collect::<Vec<_>>(), [b"one", b"two"]);
            let cause = outcome.err().map(|cause| cause.number().to_be_bytes());
            assert_eq!(packet.values(ERROR_CAUSE).next(), cause.as_ref().map(|cause| &cause[..]));
            // As a server looks at it.
            assert_eq!(secret.verify(&bytes, &packet), Ok(()));
        }
    }

    #[test]
    fn what_was_changed_on_the_way_or_made_long_ago_does_not_count() {
        let secret = Secret::new("s");
        let bytes = made(Code::DISCONNECT_REQUEST, &[(USER_NAME, b"nemo"), (EVENT_TIMESTAMP, &[0, 0, 4, 0])]);
        let packet = Packet::parse(&bytes).expect("a packet");
        assert_eq!(secret.verify_request(&packet), Ok(()));
        assert_eq!(Secret::new("t").verify_request(&packet), Err(Forged::Authenticator));
        for (seconds, expected) in [(1024, true), (724, true), (723, false), (1324, true), (1325, false)] {
            let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(is_timely(&packet, now), Some(expected), "{seconds}");
        }
        let mut draft = Draft::new(Code::COA_REQUEST);
        draft.add(MESSAGE_AUTHENTICATOR, &[0; 16]).expect("room");
        // RFC 5176 section 3.3: of the packet with zeros in both places; then the authenticator, of all.
        let mut signed = secret.sign(draft, 7, &[0; 16]).expect("room");
        signed[AUTHENTICATOR].fill(0);
        assert_eq!(
            secret.verify_request(&Packet::parse(&signed).expect("a packet")),
            Err(Forged::Authenticator)
        );
        let packet = Packet::parse(&signed).expect("a packet");
        assert_eq!(is_timely(&packet, SystemTime::UNIX_EPOCH), None);
        let mut draft = Draft::new(Code::COA_REQUEST);
        draft.add(MESSAGE_AUTHENTICATOR, &[9; 16]).expect("room");
        let forged = secret.sign(draft, 7, &[0; 16]).expect("room");
        let forged = Packet::parse(&forged).expect("a packet");
        assert_eq!(secret.verify_request(&forged), Err(Forged::MessageAuthenticator));
    }

    proptest! {
        #[test]
        fn no_packet_panics(is_change in any::<bool>(), attributes in prop::collection::vec(
            (any::<u8>(), prop::collection::vec(any::<u8>(), 0..20)), 0..8)) {
            let attributes: Vec<_> = attributes.iter().map(|(kind, value)| (*kind, &value[..])).collect();
            let code = if is_change { Code::COA_REQUEST } else { Code::DISCONNECT_REQUEST };
            let bytes = made(code, &attributes);
            let packet = Packet::parse(&bytes).expect("a packet");
            let outcome = request(&packet, &nas()).map(drop);
            is_timely(&packet, SystemTime::UNIX_EPOCH);
            prop_assert!(answer(&Secret::new("s"), &packet, outcome).is_ok());
        }
    }
}

//! What a subscriber used (RFC 2866): the records of a session, and those of the concentrator itself.

use crate::access::{Nas, Session};
use crate::attribute::*;
use crate::exchange::Request;
use crate::packet::{Code, Draft, NoRoom};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Acct-Authentic: by RADIUS.
const BY_RADIUS: u32 = 1;

/// Acct-Status-Type (RFC 2866 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The session began.
    Start,
    /// It ended, for this Acct-Terminate-Cause (section 5.10).
    Stop(Cause),
    /// It goes on.
    Interim,
}

/// Acct-Terminate-Cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The subscriber ended it.
    UserRequest = 1,
    /// The line was lost.
    LostCarrier = 2,
    /// Idle-Timeout.
    IdleTimeout = 4,
    /// Session-Timeout.
    SessionTimeout = 5,
    /// The operator ended it.
    AdminReset = 6,
    /// The concentrator was shut down.
    AdminReboot = 7,
    /// Something else of this end.
    NasRequest = 10,
    /// Another session took its place.
    Preempted = 13,
}

/// What a record says of a session besides who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'r> {
    /// What happened.
    pub status: Status,
    /// When.
    pub time: SystemTime,
    /// Time since it began.
    pub uptime: Duration,
    /// Bytes and packets from the subscriber, and to them.
    pub received: (u64, u64),
    /// To the subscriber.
    pub sent: (u64, u64),
    /// IPv4 address of the host.
    pub address: Option<Ipv4Addr>,
    /// IPv6 prefix of the link: address and bits.
    pub prefix: Option<(Ipv6Addr, u8)>,
    /// That of the networks behind the host (RFC 4818 section 3).
    pub delegated: Option<(Ipv6Addr, u8)>,
    /// What the Access-Accept had.
    pub class: &'r [Vec<u8>],
}

/// An Accounting-Request. It says when it happened (Event-Timestamp, RFC 2869 section 5.3) instead of how long ago, so that the same bytes
/// can be sent again, hours later, too.
///
/// # Errors
///
/// Something is too long for its attribute.
pub fn request(nas: &Nas, session: &Session<'_>, record: &Record<'_>) -> Result<Request, NoRoom> {
    let mut draft = Draft::new(Code::ACCOUNTING_REQUEST);
    session.describe(&mut draft, nas)?;
    let (status, cause) = match record.status {
        Status::Start => (1, None),
        Status::Stop(cause) => (2, Some(cause)),
        Status::Interim => (3, None),
    };
    draft.add_number(ACCT_STATUS_TYPE, status)?;
    draft.add_number(ACCT_AUTHENTIC, BY_RADIUS)?;
    draft.add_number(EVENT_TIMESTAMP, seconds(record.time))?;
    for class in record.class {
        draft.add(CLASS, class)?;
    }
    if let Some(address) = record.address {
        draft.add(FRAMED_IP_ADDRESS, &address.octets())?;
    }
    for (kind, prefix) in [(FRAMED_IPV6_PREFIX, record.prefix), (DELEGATED_IPV6_PREFIX, record.delegated)] {
        if let Some((address, bits)) = prefix {
            draft.add(kind, &[&[0, bits][..], &address.octets()].concat())?;
        }
    }
    if record.status != Status::Start {
        let seconds = u32::try_from(record.uptime.as_secs()).unwrap_or(u32::MAX);
        draft.add_number(ACCT_SESSION_TIME, seconds)?;
        let directions = [
            (record.received, [ACCT_INPUT_OCTETS, ACCT_INPUT_GIGAWORDS, ACCT_INPUT_PACKETS]),
            (record.sent, [ACCT_OUTPUT_OCTETS, ACCT_OUTPUT_GIGAWORDS, ACCT_OUTPUT_PACKETS]),
        ];
        for ((bytes, packets), [lower, higher, of_packets]) in directions {
            // The lower 32 bits, and how often they were full (RFC 2869 section 5.1).
            draft.add_number(lower, bytes as u32)?;
            draft.add_number(higher, (bytes >> 32) as u32)?;
            draft.add_number(of_packets, packets as u32)?;
        }
    }
    if let Some(cause) = cause {
        draft.add_number(ACCT_TERMINATE_CAUSE, cause as u32)?;
    }
    Ok(Request { draft, password: None })
}

/// The records of the concentrator itself (RFC 2866 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Accounting-On: it begins, and no session from before goes on.
    On = 7,
    /// Accounting-Off: it ends.
    Off = 8,
}

/// An Accounting-Request of the concentrator itself, under an identifier of its own.
///
/// # Errors
///
/// The identifier is too long for its attribute.
pub fn of_whole(nas: &Nas, id: &str, whole: Whole, time: SystemTime) -> Result<Request, NoRoom> {
    let mut draft = Draft::new(Code::ACCOUNTING_REQUEST);
    nas.describe(&mut draft)?;
    draft.add(ACCT_SESSION_ID, id.as_bytes())?;
    draft.add_number(ACCT_STATUS_TYPE, whole as u32)?;
    draft.add_number(EVENT_TIMESTAMP, seconds(time))?;
    Ok(Request { draft, password: None })
}

/// Since 1970, in 32 bits without a sign: until 2106.
fn seconds(time: SystemTime) -> u32 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    #[test]
    fn counters_have_64_bits_and_a_start_has_none() {
        let nas = Nas { identifier: b"bras1".to_vec(), address: None };
        let session = Session {
            user: b"nemo",
            id: "1",
            port: "eth1",
            tags: 0,
            station: [2, 0, 0, 0, 0, 1],
            line: None,
        };
        let class = [b"gold".to_vec(), b"2".to_vec()];
        let record = Record {
            status: Status::Stop(Cause::LostCarrier),
            time: UNIX_EPOCH + Duration::from_secs(1_000_000_000),
            uptime: Duration::from_secs(60),
            received: (5 << 32 | 17, 3),
            sent: (1, 2),
            address: Some([10, 0, 0, 2].into()),
            prefix: Some(("fd00::".parse().expect("an address"), 64)),
            delegated: Some(("fd00:1::".parse().expect("an address"), 56)),
            class: &class,
        };
        let stop = request(&nas, &session, &record).expect("room");
        let packet = Packet::parse(&stop.draft.bytes).expect("a packet");
        let number = |kind| {
            packet.values(kind).next().map(|value| u32::from_be_bytes(value.try_into().expect("four bytes")))
        };
        assert_eq!([ACCT_INPUT_OCTETS, ACCT_INPUT_GIGAWORDS].map(number), [Some(17), Some(5)]);
        assert_eq!([ACCT_OUTPUT_OCTETS, ACCT_OUTPUT_GIGAWORDS].map(number), [Some(1), Some(0)]);
        assert_eq!(
            [ACCT_STATUS_TYPE, ACCT_TERMINATE_CAUSE, ACCT_SESSION_TIME].map(number),
            [Some(2), Some(2), Some(60)]
        );
        assert_eq!(number(EVENT_TIMESTAMP), Some(1_000_000_000));
        assert_eq!(packet.values(CLASS).collect::<Vec<_>>(), [&b"gold"[..], b"2"]);
        assert_eq!(packet.values(FRAMED_IPV6_PREFIX).next().map(<[u8]>::len), Some(18));
        assert_eq!(packet.values(DELEGATED_IPV6_PREFIX).next().map(|value| value[1]), Some(56));
        let start = request(&nas, &session, &Record { status: Status::Start, ..record }).expect("room");
        let packet = Packet::parse(&start.draft.bytes).expect("a packet");
        assert_eq!(packet.values(ACCT_INPUT_OCTETS).count() + packet.values(ACCT_SESSION_TIME).count(), 0);
    }
}

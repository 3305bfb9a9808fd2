//! A record of accounting as a line of JSON.

use format::{Quotable, utc};
use pppoe::concentrator::accounting::{Event, Record};
use serde_json::json;
use std::net::Ipv4Addr;
use std::time::SystemTime;

/// A part of the line identification (TR-101), escaped; `None`: the access node does not say it.
pub fn shown(part: &[u8]) -> Option<String> {
    (!part.is_empty()).then(|| Quotable(part).to_string())
}

/// The line, without its end. Fields are only ever added.
pub fn record(record: &Record, now: SystemTime) -> String {
    let (event, cause) = match &record.event {
        Event::Start => ("start", None),
        Event::Interim => ("interim", None),
        Event::Stop(ended) => ("stop", Some((ended.name(), ended.to_string()))),
    };
    let line = record.line.as_deref();
    json!({
        "event": event,
        "time": utc(now),
        "cause": cause.as_ref().map(|(name, _)| name),
        "reason": cause.as_ref().map(|(_, reason)| reason),
        "accounting": format!("{:016x}", record.accounting),
        "id": record.id.to_string(),
        "session_id": record.number,
        "user": Quotable(&record.user).to_string(),
        "mac": record.station.to_string(),
        "tags": record.place.vlans.to_string(),
        "circuit": line.and_then(|line| shown(&line.circuit)),
        "remote": line.and_then(|line| shown(&line.remote)),
        "address": record.address.map(|address: Ipv4Addr| address.to_string()),
        "prefix": record.prefix.map(|prefix| prefix.to_string()),
        "uptime": record.uptime.as_secs_f64(),
        "received_packets": record.traffic.received_packets,
        "received_octets": record.traffic.received_octets,
        "sent_packets": record.traffic.sent_packets,
        "sent_octets": record.traffic.sent_octets,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pppoe::concentrator::accounting::Traffic;
    use pppoe::discovery::message::Line;
    use pppoe::discovery::place::Place;
    use serde_json::Value;
    use std::sync::Arc;
    use std::time::{Duration, UNIX_EPOCH};
    use wire::ethernet::MacAddress;

    fn read(circuit: &[u8], remote: &[u8]) -> Value {
        let line = Line { circuit: circuit.to_vec(), remote: remote.to_vec() };
        let one = Record {
            event: Event::Interim,
            id: "100000002".parse().expect("an id"),
            accounting: 0xabc,
            user: Arc::from(&b"alice\n"[..]),
            place: Place::default(),
            station: MacAddress([2, 0, 0, 0, 0, 1]),
            line: (!circuit.is_empty() || !remote.is_empty()).then(|| Arc::new(line)),
            number: 7,
            address: None,
            prefix: None,
            uptime: Duration::from_millis(1500),
            traffic: Traffic::default(),
        };
        let text = record(&one, UNIX_EPOCH + Duration::from_secs(1_709_164_799));
        assert!(!text.contains('\n'), "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn a_record_has_its_time_and_its_line() {
        let record = read(b"eth 1/2\n", b"bob\x1b[2J");
        assert_eq!(record["time"], "2024-02-28T23:59:59Z");
        assert_eq!(
            (&record["circuit"], &record["remote"]),
            (&"eth 1/2\\u{a}".into(), &"bob\\u{1b}[2J".into())
        );
        assert_eq!(
            (&record["event"], &record["accounting"]),
            (&"interim".into(), &"0000000000000abc".into())
        );
        assert_eq!(read(b"eth 1", b"")["remote"], Value::Null);
        let record = read(b"", b"");
        assert_eq!((&record["circuit"], &record["remote"]), (&Value::Null, &Value::Null));
    }
}

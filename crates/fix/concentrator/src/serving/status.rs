//! A concentrator, its sessions and their records of accounting as JSON.

use crate::subscribers::Standing;
use format::{Quotable, utc};
use pppoe::concentrator::accounting::{Event, Record, Traffic};
use pppoe::concentrator::{Concentrator, Listed};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::SystemTime;
use xdp::Mode;
use xdp::subscribers_layout::Pass;

pub(super) const SCHEMA: &str = "rxlane.pppoe/1";

/// A concentrator at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ConcentratorStatus {
    /// Name and version of this format.
    pub schema: String,
    /// `open`.
    pub phase: String,
    /// Name of the interface with the lines.
    pub parent: String,
    /// Name of the interface of all subscribers.
    pub interface: String,
    /// Seconds since it began.
    pub uptime: f64,
    /// Whether it takes no more sessions.
    pub draining: bool,
    pub half_open: u32,
    pub count: usize,
    /// Frames of discovery and negotiation that were lost since they came faster than they were read.
    #[serde(default)]
    pub frames_lost: u64,
    /// Records of accounting that no file took, on a full disk for example.
    #[serde(default)]
    pub records_lost: u64,
    #[serde(default)]
    pub log_failure: Option<String>,
    /// Whether the interface with the lines is up and has a carrier; `None`: nobody knows.
    #[serde(default)]
    pub parent_works: Option<bool>,
    /// What was counted: discovery, sessions, refusals, by name.
    pub counters: BTreeMap<String, u64>,
    /// What programs in XDP do; `None`: there are none, and the workers move all packets.
    #[serde(default)]
    pub xdp: Option<XdpStatus>,
    pub sessions: Vec<SubscriberStatus>,
    pub pid: u32,
}

/// Packets that programs in XDP forward, since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpStatus {
    /// `native`, `generic`; `off`: the programs are on no interface.
    pub mode: String,
    pub uplinks: Vec<String>,
    /// Why nothing is forwarded at the moment, and the workers move all packets; `None`: it is.
    pub paused: Option<String>,
    /// From subscribers.
    pub received: XdpWay,
    /// To subscribers.
    pub sent: XdpWay,
}

/// Packets one way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpWay {
    /// Forwarded; they and their bytes count for their sessions, too.
    pub packets: u64,
    /// Bytes of their frames on the line.
    #[serde(rename = "octets")]
    pub bytes: u64,
    /// Dropped by the rate of their session.
    pub over_rate: u64,
    /// Frames that the programs left to the workers and the kernel, by reason; those without any are left out.
    pub passed: BTreeMap<String, u64>,
}

impl From<Standing> for XdpStatus {
    fn from(standing: Standing) -> XdpStatus {
        let [received, sent] = standing.counts.map(|way| {
            let reasons = Pass::ALL.iter().zip(way.passed).filter(|(_, count)| *count > 0);
            XdpWay {
                packets: way.frames,
                bytes: way.bytes,
                over_rate: way.limited,
                passed: reasons.map(|(reason, count)| (reason.name().to_owned(), count)).collect(),
            }
        });
        let mode = standing.mode.map_or("off", Mode::name).to_owned();
        XdpStatus { mode, uplinks: standing.uplinks, paused: standing.paused, received, sent }
    }
}

/// A session of a subscriber at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubscriberStatus {
    pub id: String,
    /// `lcp`, `auth`, `network`, `open`, `closed`.
    pub phase: String,
    pub session_id: u16,
    /// Who, escaped; empty: nobody has said so yet.
    pub user: String,
    pub mac: String,
    /// VLAN tags, outermost first; `none`.
    pub tags: String,
    /// What the access node says of the line (TR-101), escaped: circuit and remote id.
    pub circuit: Option<String>,
    /// See `circuit`.
    pub remote: Option<String>,
    /// The own IPv4 address; `None`: the session has none.
    pub local: Option<IpAddr>,
    /// IPv4 address of the host.
    pub peer: Option<IpAddr>,
    /// IPv6 prefix of the link.
    pub prefix: Option<String>,
    /// Bits a second to the subscriber; `None`: no limit.
    #[serde(default)]
    pub download: Option<u64>,
    /// The same from the subscriber.
    #[serde(default)]
    pub upload: Option<u64>,
    /// IPv6 prefix of the networks behind the host.
    #[serde(default)]
    pub delegated: Option<String>,
    pub routes: Vec<String>,
    /// Longest IP packet to the host, bytes.
    pub mtu: u16,
    /// Seconds since it is open.
    pub uptime: Option<f64>,
    /// Milliseconds between the last Echo-Request that was answered and its answer.
    pub round_trip_ms: Option<f64>,
    /// IP packets and bytes from and to the host, over restarts of the concentrator, too.
    pub received_packets: u64,
    /// See `received_packets`.
    pub received_octets: u64,
    /// See `received_packets`.
    pub sent_packets: u64,
    /// See `received_packets`.
    pub sent_octets: u64,
    /// Packets from the subscriber that went no further, since this process has the session.
    #[serde(default)]
    pub received_dropped: u32,
    /// The same to the subscriber.
    #[serde(default)]
    pub sent_dropped: u32,
    /// Sessions of a concentrator have no error as long as they are there.
    pub last_error: Option<String>,
}

/// What came of a request to disconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disconnected {
    /// Sessions whose end was requested; `None`: the request makes no sense.
    pub sessions: Option<usize>,
}

/// What a concentrator that has ended could not write, on a full disk for example.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unwritten {
    /// Where records of accounting go.
    pub accounting: Option<PathBuf>,
    /// Records that are not there.
    pub records_lost: u64,
    /// What the log lacks, in words.
    pub log_failure: Option<String>,
}

pub(super) fn subscriber(
    listed: &Listed<'_>,
    traffic: Traffic,
    [received_dropped, sent_dropped]: [u32; 2],
    local: Option<Ipv4Addr>,
) -> SubscriberStatus {
    let traffic = listed.before + traffic;
    SubscriberStatus {
        id: listed.identity.id.to_string(),
        phase: listed.phase.name().to_owned(),
        session_id: listed.identity.number,
        user: Quotable(listed.identity.user()).to_string(),
        mac: listed.identity.station.to_string(),
        tags: listed.identity.place.vlans.to_string(),
        circuit: listed.identity.line.as_ref().and_then(|line| printable(&line.circuit)),
        remote: listed.identity.line.as_ref().and_then(|line| printable(&line.remote)),
        local: listed.lease.address.and(local).map(IpAddr::from),
        peer: listed.lease.address.map(IpAddr::from),
        prefix: listed.lease.prefixes.link.map(|prefix| prefix.to_string()),
        delegated: listed.lease.prefixes.delegated.map(|prefix| prefix.to_string()),
        download: listed.lease.rates.limits().download,
        upload: listed.lease.rates.limits().upload,
        routes: listed.lease.routes.iter().map(ToString::to_string).collect(),
        mtu: listed.mtu,
        uptime: listed.uptime.map(|uptime| uptime.as_secs_f64()),
        round_trip_ms: listed.round_trip.map(|trip| trip.time.as_secs_f64() * 1000.0),
        received_packets: traffic.received_packets,
        received_octets: traffic.received_octets,
        sent_packets: traffic.sent_packets,
        sent_octets: traffic.sent_octets,
        received_dropped,
        sent_dropped,
        last_error: None,
    }
}

pub(super) fn counters(machine: &Concentrator) -> BTreeMap<String, u64> {
    let (counters, discovery) = (machine.counters(), machine.discovery_counters());
    let ignored = discovery.ignored.iter().map(|(reason, count)| {
        let reason = reason.name().replace('-', "_");
        (format!("ignored_{reason}"), *count)
    });
    let all = [
        ("offers", discovery.offers),
        ("requests", discovery.requests),
        ("terminations", discovery.terminations),
        ("malformed", counters.malformed),
        ("other_station", counters.other_station),
        ("unknown_session", counters.unknown_session),
        ("padt_ignored", counters.padt_ignored),
        ("padr_used_up", counters.padr_used_up),
        ("gave_way", counters.gave_way),
        ("padr_repeated", counters.padr_repeated),
        ("padr_refused", counters.padr_refused),
        ("confirmed", counters.confirmed),
        ("refused", counters.refused),
        ("held_off", counters.held_off),
        ("advertisements", counters.advertisements),
        ("dhcpv6_answers", counters.dhcpv6_answers),
        ("configuration_ignored", counters.configuration_ignored),
        ("opened", counters.opened),
        ("ended", counters.ended),
    ];
    all.into_iter().map(|(name, count)| (name.to_owned(), count)).chain(ignored).collect()
}

/// A part of the line identification (TR-101), escaped; `None`: the access node does not say it.
fn printable(part: &[u8]) -> Option<String> {
    (!part.is_empty()).then(|| Quotable(part).to_string())
}

/// The line, without its end. Fields are only ever added.
pub(super) fn record(record: &Record, now: SystemTime) -> String {
    let (event, cause) = match &record.event {
        Event::Start => ("start", None),
        Event::Interim => ("interim", None),
        Event::Stop(ended) => ("stop", Some((ended.name(), ended.to_string()))),
    };
    let line = record.identity.line.as_deref();
    json!({
        "event": event,
        "time": utc(now),
        "cause": cause.as_ref().map(|(name, _)| name),
        "reason": cause.as_ref().map(|(_, reason)| reason),
        "accounting": format!("{:016x}", record.identity.accounting),
        "id": record.identity.id.to_string(),
        "session_id": record.identity.number,
        "user": Quotable(record.identity.user()).to_string(),
        "mac": record.identity.station.to_string(),
        "tags": record.identity.place.vlans.to_string(),
        "circuit": line.and_then(|line| printable(&line.circuit)),
        "remote": line.and_then(|line| printable(&line.remote)),
        "address": record.address.map(|address: Ipv4Addr| address.to_string()),
        "prefix": record.prefixes.link.map(|prefix| prefix.to_string()),
        "delegated": record.prefixes.delegated.map(|prefix| prefix.to_string()),
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
    use pppoe::concentrator::Identity;
    use pppoe::concentrator::network::Prefixes;
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
            identity: Identity {
                id: "100000002".parse().expect("an id"),
                place: Place::default(),
                station: MacAddress([2, 0, 0, 0, 0, 1]),
                number: 7,
                user: Some(Arc::from(&b"alice\n"[..])),
                line: (!circuit.is_empty() || !remote.is_empty()).then(|| Arc::new(line)),
                accounting: 0xabc,
            },
            address: None,
            prefixes: Prefixes::default(),
            granted: None,
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
        for (key, expected) in [
            ("time", "2024-02-28T23:59:59Z"),
            ("circuit", "eth 1/2\\u{a}"),
            ("remote", "bob\\u{1b}[2J"),
            ("event", "interim"),
            ("accounting", "0000000000000abc"),
        ] {
            assert_eq!(record[key], expected);
        }
        assert_eq!(read(b"eth 1", b"")["remote"], Value::Null);
        let record = read(b"", b"");
        assert_eq!((&record["circuit"], &record["remote"]), (&Value::Null, &Value::Null));
    }
}

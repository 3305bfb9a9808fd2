//! What the fast path on the interface forwards, as its process reports it; read only.

use fastpath::status::Status;
use serde::Serialize;
use service::StateDir;
use std::time::Duration;

/// The fast path of this network namespace, where `device` is one of its ports.
pub fn read(device: &str, state: &StateDir) -> Option<Status> {
    let status = Status::read(state).ok()?;
    status.ports.iter().any(|port| port == device).then_some(status)
}

/// The fast path between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FastpathRows {
    /// Packets forwarded by the program on all ports, a second.
    pub fast_per_second: f64,
    /// Part of all packets that came to the ports; `None`: there were none.
    pub share: Option<f64>,
    /// Connections in it.
    pub flows: u64,
    /// Packets passed to the kernel by reason, a second; the most frequent first.
    pub reasons: Vec<PassedRow>,
}

/// Packets passed to the kernel for one reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassedRow {
    pub reason: String,
    pub per_second: f64,
}

impl FastpathRows {
    /// `None`: there is no fast path, or it is another one than before.
    pub fn between(
        former: Option<&Status>,
        latest: Option<&Status>,
        between: Duration,
    ) -> Option<FastpathRows> {
        let (former, latest) = former.zip(latest).filter(|(former, latest)| former.pid == latest.pid)?;
        let seconds = between.as_secs_f64();
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 / seconds.max(f64::MIN_POSITIVE);
        let before = |reason: &String| former.packets.slow.get(reason).copied().unwrap_or_default();
        let slow = latest.packets.slow.iter();
        let slow = slow.map(|(reason, now)| PassedRow {
            reason: reason.clone(),
            per_second: rate(before(reason), *now),
        });
        let mut reasons: Vec<PassedRow> = slow.filter(|row| row.per_second > 0.0).collect();
        reasons.sort_by(|one, other| other.per_second.total_cmp(&one.per_second));
        let fast = rate(former.packets.fast, latest.packets.fast);
        let all = reasons.iter().fold(fast, |sum, row| sum + row.per_second);
        let share = (all > 0.0).then(|| fast / all);
        Some(FastpathRows { fast_per_second: fast, share, flows: latest.flows, reasons })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpath::status::Packets;

    #[test]
    fn rates_are_those_between_two_readings_of_one_process() {
        let status = |fast: u64, no_entry: u64, pid: u32| Status {
            packets: Packets {
                fast,
                slow: [("no-entry".to_owned(), no_entry), ("ttl".to_owned(), 7)].into(),
                fast_share: None,
            },
            flows: 3,
            pid,
            ..Status::default()
        };
        let (first, second) = (status(1000, 50, 1), status(2800, 250, 1));
        let rows = FastpathRows::between(Some(&first), Some(&second), Duration::from_secs(2)).expect("rows");
        assert_eq!((rows.fast_per_second, rows.share, rows.flows), (900.0, Some(0.9), 3));
        assert_eq!(rows.reasons, [PassedRow { reason: "no-entry".to_owned(), per_second: 100.0 }]);
        assert_eq!(FastpathRows::between(Some(&first), Some(&status(1, 1, 2)), Duration::from_secs(1)), None);
        assert_eq!(FastpathRows::between(None, Some(&second), Duration::from_secs(1)), None);
    }
}

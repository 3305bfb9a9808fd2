//! What the concentrator says of its sessions, held against what the tester did: lists, counters, accounts.

use super::session::{Session, Standing};
use super::tester::Tester;
use crate::pppoe_peers::by_hand::frame::shown_mac;
use serde_json::Value;
use std::collections::HashMap;

/// MAC address, tags, number: what both ends call a session by.
type Key = (String, String, u64);

fn key_of(session: &Session) -> Key {
    (shown_mac(&session.place.mac), session.place.shown_tags(), session.number.into())
}

fn key_in(value: &Value) -> Key {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    (text("mac"), text("tags"), value["session_id"].as_u64().unwrap_or_default())
}

impl Tester {
    /// All sessions that are alive stand in the list, and no others.
    pub fn compare_list(&self, listed: &Value) {
        let sessions = listed["sessions"].as_array().expect("a list");
        let listed: HashMap<Key, &Value> = sessions.iter().map(|one| (key_in(one), one)).collect();
        let alive = self.sessions.iter().filter(|session| session.standing == Standing::Alive);
        let mut count = 0;
        for session in alive {
            count += 1;
            let told =
                listed.get(&key_of(session)).unwrap_or_else(|| panic!("it is not listed: {session:#?}"));
            let is =
                |name: &str, value: Value| assert_eq!(told[name], value, "{name}: {told:#}\n{session:#?}");
            is("phase", "open".into());
            is("user", session.user.clone().into());
            if session.ipcp.is_up() {
                is("peer", session.address.to_string().into());
            }
            is("mtu", session.mtu().into());
            let line = &self.subscribers[session.subscriber].plan.line;
            is("circuit", line.as_ref().map(|(circuit, _)| circuit.clone()).into());
            is("remote", line.as_ref().map(|(_, remote)| remote.clone()).into());
            is("received_octets", session.from_it.octets.into());
            is("sent_octets", session.to_it.octets.into());
        }
        assert_eq!(count, sessions.len(), "sessions are listed that nobody has");
    }

    /// Counters of the concentrator, once it has no session.
    pub fn compare_counters(&self, listed: &Value) {
        let counted = |name: &str| listed["counters"][name].as_u64().expect("a counter");
        let counts = &self.counts;
        let opened = self.sessions.iter().filter(|session| session.was_open).count() as u64;
        let context = format!("{counts:?} {:#}", listed["counters"]);
        assert_eq!(counted("confirmed"), counts.sessions, "{context}");
        assert_eq!(counted("ended"), counts.sessions, "{context}");
        assert_eq!(counted("opened"), opened, "{context}");
        assert_eq!(counted("refused"), counts.refused, "{context}");
        assert_eq!(counted("malformed"), counts.malformed, "{context}");
        assert_eq!(counted("padt_ignored"), counts.padt_of_strangers, "{context}");
        assert_eq!(counted("other_station"), counts.control_of_strangers, "{context}");
        // Each PADR is something of these, unless its host, VLAN or port sent too many.
        let padr = ["confirmed", "padr_repeated", "padr_used_up", "padr_refused"].map(counted);
        assert!(padr.iter().sum::<u64>() <= counts.padr && padr[1] + padr[2] > 0, "{context}");
        assert_eq!(padr[3], counts.turned_away, "{context}");
    }

    /// One start and one stop of each session that opened, with what it carried; none of any other.
    pub fn compare_accounts(&self, accounts: &str) {
        let mut records: HashMap<Key, Vec<Value>> = HashMap::new();
        for line in accounts.lines() {
            let record: Value = serde_json::from_str(line).expect("JSON");
            records.entry(key_in(&record)).or_default().push(record);
        }
        for session in self.sessions.iter().filter(|session| session.was_open) {
            let of_it = records.get_mut(&key_of(session)).map(std::mem::take).unwrap_or_default();
            // A number may have been another session's, before or after.
            let (of_it, others): (Vec<Value>, Vec<Value>) =
                of_it.into_iter().partition(|record| record["user"] == *session.user);
            records.insert(key_of(session), others);
            let events: Vec<&Value> = of_it.iter().map(|record| &record["event"]).collect();
            assert_eq!(events, ["start", "stop"], "{of_it:#?}\n{session:#?}");
            let (start, stop) = (&of_it[0], &of_it[1]);
            assert_eq!(start["accounting"], stop["accounting"], "{of_it:#?}");
            let is = |name: &str, value: u64| assert_eq!(stop[name], value, "{name}: {stop:#}\n{session:#?}");
            is("received_octets", session.from_it.octets);
            is("received_packets", session.from_it.packets);
            is("sent_octets", session.to_it.octets);
            is("sent_packets", session.to_it.packets);
            if !session.address.is_unspecified() {
                assert_eq!(stop["address"], session.address.to_string(), "{stop:#}");
            }
            let cause = stop["cause"].as_str().unwrap_or_default();
            assert!(session.causes.contains(&cause), "{stop:#}\n{session:#?}");
        }
        let left: Vec<&Value> = records.values().flatten().collect();
        assert!(left.is_empty(), "accounts of sessions that nobody had: {left:#?}");
    }

    /// How sessions ended, in words for whoever reads.
    pub fn causes(accounts: &str) -> Vec<(String, usize)> {
        let mut causes: HashMap<String, usize> = HashMap::new();
        for line in accounts.lines() {
            let record: Value = serde_json::from_str(line).expect("JSON");
            if let Some(cause) = record["cause"].as_str() {
                *causes.entry(cause.to_owned()).or_default() += 1;
            }
        }
        let mut causes: Vec<(String, usize)> = causes.into_iter().collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        causes
    }
}

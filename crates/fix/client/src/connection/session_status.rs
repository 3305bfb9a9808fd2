//! How a client stands, written down for who asks.

use super::Connection;
use crate::network::Network;
use crate::status::{Moments, SCHEMA, SessionStatus};
use format::Quotable;
use kernel::netlink::link_local;
use pppoe::client::Phase;
use pppoe::session::Family;
use std::net::IpAddr;
use std::time::Instant;

impl Connection {
    /// Writes down how it stands, for who asks.
    pub(super) fn note(&mut self) {
        let status = self.client.status(self.clock.now());
        let request = &self.start.request;
        let session = status.session.as_ref();
        // What was agreed to is no address of this machine where that has IPv6 turned off.
        let has = |family| self.network.as_ref().is_some_and(|network| network.has(family));
        let ipv4 = session.and_then(|session| session.ipv4).filter(|_| has(Family::Ipv4));
        let ipv6 = session.and_then(|session| session.ipv6).filter(|_| has(Family::Ipv6));
        let now = Instant::now();
        let open = session.filter(|_| status.phase == Phase::Open);
        let record = SessionStatus {
            schema: SCHEMA.to_owned(),
            interface: request.name.clone(),
            parent: request.parent.clone(),
            vlans: self.vlans.to_string(),
            phase: status.phase.name().to_owned(),
            session_id: session.map(|session| session.session),
            local: ipv4.map(|ipv4| ipv4.local.into()),
            peer: ipv4.and_then(|ipv4| ipv4.peer).map(IpAddr::from),
            local6: ipv6.map(|ipv6| link_local(ipv6.local).into()),
            peer6: ipv6.map(|ipv6| link_local(ipv6.peer).into()),
            dns: ipv4
                .map_or(Vec::new(), |ipv4| ipv4.dns.iter().flatten().map(|dns| IpAddr::from(*dns)).collect()),
            dns_missing: open
                .and(self.name_servers.as_ref())
                .and_then(|name_servers| name_servers.trouble().map(str::to_owned)),
            mtu: open.map(|session| session.mtu.into()),
            ac_name: session.map(|session| Quotable(&session.ac_name).to_string()),
            ac_mac: session.map(|session| session.concentrator.to_string()),
            service: Quotable(&status.service).to_string(),
            user: self.start.user.clone(),
            sessions: self.opened,
            attempts: status.attempts.into(),
            round_trip_ms: status.round_trip.map(|trip| trip.time.as_secs_f64() * 1000.0),
            last_error: status.last_error.as_ref().map(|(_, end)| end.to_string()),
            parent_works: Some(self.parent.works()),
            default_routes: self
                .network
                .as_ref()
                .map(|network| network.routes().to_vec())
                .unwrap_or_default(),
            pid: std::process::id(),
            frames_lost: self.losses.count(),
            ..SessionStatus::default()
        };
        let moments = Moments {
            open_since: status.uptime.and_then(|uptime| now.checked_sub(uptime)),
            next_try: status.waits.map(|waits| now + waits),
            last_error: status.last_error.and_then(|(ago, _)| now.checked_sub(ago)),
        };
        let observer = self.network.as_ref().map(Network::observer);
        self.shared.note(record, moments, observer);
    }
}

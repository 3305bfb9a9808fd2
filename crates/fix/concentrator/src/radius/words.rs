//! What the machine of sessions says, in the terms of RADIUS, and back.

use super::NamedRates;
use ::radius::access::{self, Accepted, Decision};
use ::radius::accounting::{self, Cause, Status};
use ::radius::dynamic_authorization::{self as dynamic, ErrorCause};
use ::radius::rates;
use pppoe::concentrator::accounting::{Ended, Event, Record};
use pppoe::concentrator::network::{Network, Prefixes};
use pppoe::concentrator::secrets::{Address, Profile};
use pppoe::concentrator::{BitRates, Change, Filter, Granted, Identity, Reply};
use pppoe::session::{Claim, Closed, Evidence};
use std::net::Ipv6Addr;
use std::time::SystemTime;

/// A line, with what has to be written out for it.
pub(super) struct Line<'i> {
    identity: &'i Identity,
    id: String,
    port: String,
}

impl<'i> Line<'i> {
    pub(super) fn new(parent: &str, identity: &'i Identity) -> Line<'i> {
        let port = match identity.place.vlans.count() {
            0 => parent.to_owned(),
            _ => format!("{parent} {}", identity.place),
        };
        Line { identity, id: session_id(identity.accounting), port }
    }

    pub(super) fn session<'s>(&'s self, user: &'s [u8]) -> access::Session<'s> {
        let line = self.identity.line.as_deref();
        access::Session {
            user,
            id: &self.id,
            port: &self.port,
            tags: self.identity.place.vlans.count(),
            station: self.identity.station.0,
            line: line.map(|line| (&line.circuit[..], &line.remote[..])),
        }
    }
}

/// Acct-Session-Id.
pub(super) fn session_id(number: u64) -> String {
    format!("{number:016x}")
}

/// What a subscriber showed; `None`: nothing, and no server is queried.
pub(super) fn evidence(claim: &Claim) -> Option<access::Evidence<'_>> {
    match claim.evidence() {
        Evidence::None => None,
        Evidence::Pap { password } => Some(access::Evidence::Pap(password)),
        Evidence::ChapMd5 { identifier, challenge, response } => {
            Some(access::Evidence::ChapMd5 { identifier: *identifier, challenge, response })
        }
        Evidence::MsChapV2 { identifier, challenge, peer_challenge, response } => {
            Some(access::Evidence::MsChapV2 { identifier: *identifier, challenge, peer_challenge, response })
        }
    }
}

/// What a decision means, which attributes could not be read, and which rates there are not.
pub(super) fn answer(decision: Decision, named: &NamedRates) -> (Reply, Vec<u8>, Vec<Vec<u8>>) {
    let accepted = match decision {
        Decision::Accepted(accepted) => *accepted,
        Decision::Rejected { message } => {
            let message = String::from_utf8_lossy(&message).into_owned();
            return (Reply::Refused(message), Vec::new(), Vec::new());
        }
    };
    let Accepted {
        address,
        pool,
        routes,
        prefix,
        delegated,
        session_timeout,
        idle_timeout,
        mtu,
        interim,
        class,
        rates,
        ms_chap_success,
        unread,
        ..
    } = accepted;
    let network =
        |prefix: Option<(Ipv6Addr, u8)>| prefix.and_then(|(address, bits)| Network::of(address.into(), bits));
    let (rates, unknown) = of_names(rates, named);
    let profile = Profile {
        address: match address {
            access::Address::Pool => Address::Pool,
            access::Address::Fixed(address) => Address::Fixed(address),
        },
        pool: pool.map(String::into_boxed_str),
        routes: routes.into_iter().filter_map(|(address, bits)| Network::of(address, bits)).collect(),
        prefixes: Prefixes { link: network(prefix), delegated: network(delegated) },
        rates,
        sessions: None,
    };
    let granted =
        Box::new(Granted { profile, time: session_timeout, idle: idle_timeout, mtu, interim, class });
    (Reply::Accepted { granted, success: ms_chap_success }, unread, unknown)
}

/// Rates in bits, and the names that nobody knows. Where there are no names, what a server says by one is for somebody else.
fn of_names(said: rates::Rates, named: &NamedRates) -> (BitRates, Vec<Vec<u8>>) {
    let mut unknown = Vec::new();
    let mut bits = |said: Option<rates::Rate>, of: fn(&BitRates) -> Option<u64>| match said? {
        rates::Rate::Bits(bits) => Some(bits),
        rates::Rate::Unlimited => Some(BitRates::UNLIMITED),
        rates::Rate::Named(name) => match named.get(&name) {
            Some(rates) => Some(of(rates).unwrap_or(BitRates::UNLIMITED)),
            None => {
                if !named.is_empty() && !unknown.contains(&name) {
                    unknown.push(name);
                }
                None
            }
        },
    };
    let download = bits(said.download, |rates| rates.download);
    let upload = bits(said.upload, |rates| rates.upload);
    (BitRates { download, upload }, unknown)
}

/// The sessions that a server means.
pub(super) fn with_filter<R>(
    parent: &str,
    selection: &dynamic::Selection,
    act: impl FnOnce(&Filter<'_>) -> R,
) -> R {
    let dynamic::Selection { user, id, port, station, addresses } = selection;
    // Numbers are compared where all sessions are looked at, and nothing is written out for each.
    let number = |id: &Vec<u8>| {
        let number = u64::from_str_radix(std::str::from_utf8(id).ok()?, 16).ok()?;
        (session_id(number).as_bytes() == id).then_some(number)
    };
    let number = id.as_ref().map(number);
    let fits = |identity: &Identity| {
        number.is_none_or(|number| number == Some(identity.accounting))
            && station.is_none_or(|station| station == identity.station.0)
            && port.as_ref().is_none_or(|port| *port == Line::new(parent, identity).port.as_bytes())
    };
    act(&Filter { id: None, user: user.as_deref(), addresses, identity: Some(&fits) })
}

/// What is to change.
///
/// # Errors
///
/// There is no rate of this name.
pub(super) fn change(change: &dynamic::Change, named: &NamedRates) -> Result<Change, ErrorCause> {
    let dynamic::Change { session_timeout, idle_timeout, interim, class, rates } = change.clone();
    let is_named = [&rates.download, &rates.upload]
        .into_iter()
        .flatten()
        .any(|rate| matches!(rate, rates::Rate::Named(_)));
    let (rates, unknown) = of_names(rates, named);
    if !unknown.is_empty() || is_named && named.is_empty() {
        return Err(ErrorCause::NoSuchRate);
    }
    Ok(Change { time: session_timeout, idle: idle_timeout, interim, class, rates })
}

/// A record of accounting, made at this time.
pub(super) fn record(record: &Record, time: SystemTime) -> accounting::Record<'_> {
    let traffic = record.traffic;
    let prefix =
        |network: Option<Network>| network.and_then(|network| Some((network.ipv6()?, network.length())));
    accounting::Record {
        status: match &record.event {
            Event::Start => Status::Start,
            Event::Interim => Status::Interim,
            Event::Stop(ended) => Status::Stop(cause(ended)),
        },
        time,
        uptime: record.uptime,
        received: (traffic.received_octets, traffic.received_packets),
        sent: (traffic.sent_octets, traffic.sent_packets),
        address: record.address,
        prefix: prefix(record.prefixes.link),
        delegated: prefix(record.prefixes.delegated),
        class: record.granted.as_ref().map_or(&[], |granted| &granted.class),
    }
}

fn cause(ended: &Ended) -> Cause {
    match ended {
        Ended::Host | Ended::Ppp(Closed::PeerEnded { .. }) => Cause::UserRequest,
        Ended::Ppp(Closed::PeerSilent { .. }) => Cause::LostCarrier,
        Ended::TimeUsed => Cause::SessionTimeout,
        Ended::Idle => Cause::IdleTimeout,
        Ended::Operator => Cause::AdminReset,
        Ended::ShutDown | Ended::NotRestored(_) => Cause::AdminReboot,
        Ended::TakenOver { .. } => Cause::Preempted,
        _ => Cause::NasRequest,
    }
}

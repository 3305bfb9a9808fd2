//! A session from a PADR that may be believed to its end.

use super::accounting::{Ended, Event, Record};
use super::advertisement::Advertisements;
use super::authentication::HELD_OFF;
use super::sessions::{Entry, Identity};
use super::{Action, Concentrator, End, Installed, Notice, Step, Traffic};
use crate::discovery::complaint::Kind;
use crate::discovery::concentrator::Request;
use crate::discovery::message::padt;
use crate::discovery::place::Place;
use crate::draw;
use crate::framing::wrapped;
use crate::lcp::LEAST_MRU;
use crate::session::{self, Phase, Session};
use std::net::IpAddr;
use std::sync::Arc;
use wire::ethernet::MacAddress;
use wire::pppoe::Stage;

impl Concentrator {
    /// Confirms a request, or says why not.
    pub(super) fn open(&mut self, step: &mut Step<'_>, request: &Request) {
        let cookie = nonce(&request.cookie);
        if let Some(slot) = self.table.of_cookie(&request.place, request.host, cookie) {
            self.repeat(step, slot, request);
        } else if self.table.is_used_up(cookie) {
            self.counters.padr_used_up += 1;
        } else if self.throttle.wait_of_host(step.now, &request.place, request.host).is_some() {
            self.counters.held_off += 1;
            self.refuse(step, request, Kind::Generic, HELD_OFF);
        } else if !request.is_served {
            self.refuse(step, request, Kind::ServiceName, "this service is not served here");
        } else if request.max_payload < LEAST_MRU {
            let text = "the line has no room for packets behind its tags";
            self.refuse(step, request, Kind::AcSystem, text);
        } else if self.is_draining() {
            let text = "the concentrator takes no more sessions for the time being";
            self.refuse(step, request, Kind::AcSystem, text);
        } else {
            let most = self.secrets.of_vlans(request.place.vlans).and_then(|vlans| vlans.sessions);
            while let Some(slot) = self.table.surplus(step.now, request, most) {
                self.give_way(step, slot);
            }
            match self.table.number(step.now, request, most, step.random) {
                Ok(number) => self.confirm(step, request, number, cookie),
                Err(full) => {
                    self.refuse(step, request, Kind::AcSystem, &full.to_string());
                    self.notice(step, Notice::Full { place: request.place, station: request.host, full });
                }
            }
        }
    }

    fn confirm(&mut self, step: &mut Step<'_>, request: &Request, number: u16, cookie: u64) {
        // What a host wants echoed that fits no frame would fit none the next time either.
        let Ok(payload) = request.confirm(number) else {
            self.counters.padr_refused += 1;
            return;
        };
        step.actions.push(answer(request, payload));
        let session = Session::new(self.session_config.clone(), request.max_payload);
        let identity = Identity {
            id: self.table.no_slot(),
            place: request.place,
            station: request.host,
            number,
            user: None,
            line: request.line.clone().map(Arc::new),
            accounting: u64::from_be_bytes(draw(step.random)),
        };
        let mut entry = Entry::new(session, identity, request.max_payload, step.now);
        entry.cookie = cookie;
        let slot = self.table.put(entry, None);
        self.counters.confirmed += 1;
        self.drive(step, slot, |session, step, actions| session.start(step.now, step.random, actions));
    }

    /// Ends a session that waits for its host, for the sake of another one. Nobody has heard of it but the host.
    fn give_way(&mut self, step: &mut Step<'_>, slot: u32) {
        let Some(entry) = self.table.forget(slot) else { return };
        let Identity { place, station, number, .. } = entry.identity;
        let text = "others wait for a place, and this session waited for its host";
        step.actions.push(terminate(place, station, number, Some(text)));
        self.counters.gave_way += 1;
        self.counters.ended += 1;
    }

    /// RFC 2516 section 8: a host that got no PADS sends its PADR again. Later than LCP it has got it, and the packet is old.
    fn repeat(&mut self, step: &mut Step<'_>, slot: u32, request: &Request) {
        let Some(entry) = self.table.get(slot) else { return };
        if entry.session.phase() != Phase::Lcp || entry.opened.is_some() {
            self.counters.padr_used_up += 1;
        } else if let Ok(payload) = request.confirm(entry.identity.number) {
            self.counters.padr_repeated += 1;
            step.actions.push(answer(request, payload));
        }
    }

    fn refuse(&mut self, step: &mut Step<'_>, request: &Request, kind: Kind, text: &str) {
        self.counters.padr_refused += 1;
        step.actions.extend(request.refuse(kind, text).ok().map(|payload| answer(request, payload)));
    }

    /// Lets a session act, and does what comes of it.
    pub(super) fn drive(
        &mut self,
        step: &mut Step<'_>,
        slot: u32,
        act: impl FnOnce(&mut Session, &mut Step<'_>, &mut Vec<session::Action>),
    ) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut actions = Vec::new();
        act(&mut entry.session, step, &mut actions);
        let mut is_changed = false;
        while !actions.is_empty() {
            for action in std::mem::take(&mut actions) {
                match action {
                    session::Action::Send(packet) => self.send(step, slot, &packet),
                    session::Action::Authenticate(claim) => {
                        let verdict = self.authenticate(step, slot, &claim);
                        if let (Some(verdict), Some(entry)) = (verdict, self.table.get_mut(slot)) {
                            entry.session.authenticated(step.now, verdict, step.random, &mut actions);
                        }
                    }
                    session::Action::Up4(_) | session::Action::Up6(_) | session::Action::Down(_) => {
                        is_changed = true
                    }
                    session::Action::Phase(_) => {}
                    session::Action::Notice(notice) => self.notice_of(step, slot, notice),
                    session::Action::Closed(closed) => {
                        let requested = self.table.get_mut(slot).and_then(|entry| entry.closing.take());
                        self.end(step, slot, requested.unwrap_or(Ended::Ppp(closed)));
                        return;
                    }
                }
            }
        }
        self.count_half_open(step, slot);
        if is_changed {
            self.install(step, slot);
        }
        self.arm(slot);
    }

    pub(super) fn send(&self, step: &mut Step<'_>, slot: u32, packet: &[u8]) {
        let Some(entry) = self.table.get(slot) else { return };
        let (place, destination) = (entry.identity.place, entry.identity.station);
        let payload = wrapped(entry.identity.number, packet);
        step.actions.push(Action::Send { place, destination, stage: Stage::Session, payload });
    }

    fn notice_of(&mut self, step: &mut Step<'_>, slot: u32, notice: session::Notice) {
        let Some(entry) = self.table.get(slot) else { return };
        let identity = entry.identity.clone();
        self.notice(step, Notice::Session { identity, notice });
    }

    /// Counts it among the half-open ones while nothing of it is up, and among those that give way while it waits for a host that has
    /// not proved who it is.
    fn count_half_open(&mut self, step: &Step<'_>, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let is_half_open = entry.session.phase() != Phase::Open;
        if is_half_open && !entry.is_half_open {
            entry.half_open_since = step.now;
        }
        let gives_way = is_half_open
            && entry.opened.is_none()
            && entry.identity.user.is_none()
            && !entry.session.awaits_verdict(None);
        self.table.set_half_open(slot, is_half_open);
        self.table.set_waiting(slot, gives_way);
    }

    /// Gives the data path what it carries of a session from now on.
    fn install(&mut self, step: &mut Step<'_>, slot: u32) {
        let configured = self.config.interim;
        let Some(entry) = self.table.get_mut(slot) else { return };
        let interim = entry.interim_interval(configured).map(|every| step.now + every);
        if entry.session.ipv4().is_none() && entry.session.ipv6().is_none() {
            entry.advertisements = None;
            if std::mem::take(&mut entry.is_installed) {
                // What was counted so far goes with the data path's entry.
                entry.before = entry.before + (step.traffic)(entry.identity.id);
                step.actions.push(Action::Removed(entry.identity.id));
            }
            return;
        }
        entry.is_installed = true;
        step.actions.push(Action::Installed(Box::new(Installed::of(entry))));
        if entry.opened.is_none() {
            (entry.opened, entry.interim) = (Some(step.now), interim);
            entry.limit_time(step.now);
            entry.watch(step.now);
            self.counters.opened += 1;
            self.account(step, slot, Event::Start);
        }
        self.begin_advertising(step, slot);
    }

    /// Sets the timer of a session. One that is to be called later than was thought is called in vain once, so that
    /// packets that put a deadline off cost nothing.
    pub(super) fn arm(&mut self, slot: u32) {
        let Some(entry) = self.table.get(slot) else { return };
        let setup = entry.is_half_open.then(|| entry.half_open_since + self.config.setup);
        let look = entry.idle.map(|idle| idle.look);
        let advertisement = entry.advertisements.as_ref().map(Advertisements::next);
        let next = [entry.session.deadline(), setup, entry.interim, entry.ends, look, advertisement]
            .into_iter()
            .flatten()
            .min();
        let armed = self.table.timer(slot);
        if armed.is_none() || next.is_some_and(|next| armed.is_some_and(|armed| next < armed)) {
            self.table.set_timer(slot, next);
        }
    }

    pub(super) fn tick_one(&mut self, step: &mut Step<'_>, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        if entry.is_half_open && step.now >= entry.half_open_since + self.config.setup {
            self.cut(step, slot, Ended::Unfinished { after: self.config.setup });
            return;
        }
        if entry.ends.is_some_and(|ends| ends <= step.now) {
            self.cut(step, slot, Ended::TimeUsed);
            return;
        }
        if entry.idle.is_some_and(|idle| idle.look <= step.now) {
            let traffic = entry.traffic(step);
            let packets = traffic.received_packets.saturating_add(traffic.sent_packets);
            if entry.idle.as_mut().is_some_and(|idle| idle.has_passed(step.now, packets)) {
                self.cut(step, slot, Ended::Idle);
                return;
            }
        }
        let is_due = entry.session.deadline().is_some_and(|due| due <= step.now);
        let is_advertised = entry.advertisements.as_ref().is_some_and(|one| one.next() <= step.now);
        if entry.interim.is_some_and(|due| due <= step.now) {
            entry.interim = entry.interim_interval(self.config.interim).map(|every| step.now + every);
            self.account(step, slot, Event::Interim);
        }
        if is_advertised {
            self.advertise(step, slot);
        }
        if is_due {
            self.drive(step, slot, |session, step, actions| session.tick(step.now, step.random, actions));
        }
        self.arm(slot);
    }

    /// Ends a session at once: a Terminate-Request whose answer nobody waits for, and a PADT.
    pub(super) fn cut(&mut self, step: &mut Step<'_>, slot: u32, cause: Ended) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut actions = Vec::new();
        entry.session.close(step.now, step.random, &mut actions);
        for action in actions {
            if let session::Action::Send(packet) = action {
                self.send(step, slot, &packet);
            }
        }
        self.end(step, slot, cause);
    }

    /// Ends a session whose host has sent a PADT. If either end was terminating it already, the PADT stands in for what was
    /// still to come, and the cause is that of the termination.
    pub(super) fn end_by_host(&mut self, step: &mut Step<'_>, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let terminated = || entry.session.ending().cloned().map(Ended::Ppp);
        let cause = entry.closing.take().or_else(terminated).unwrap_or(Ended::Host);
        self.remove(step, slot, cause);
    }

    /// Ends a session with a PADT.
    fn end(&mut self, step: &mut Step<'_>, slot: u32, cause: Ended) {
        let Some(entry) = self.table.get(slot) else { return };
        let Identity { place, station, number, .. } = entry.identity;
        let last = terminate(place, station, number, cause.for_host().as_deref());
        self.remove(step, slot, cause);
        step.actions.push(last);
    }

    /// Takes a session out of everything it is in.
    fn remove(&mut self, step: &mut Step<'_>, slot: u32, cause: Ended) {
        if self.table.get(slot).is_some_and(|entry| entry.opened.is_some()) {
            self.account(step, slot, Event::Stop(cause.clone()));
        }
        let Some(entry) = self.table.take(step.now, slot) else { return };
        if entry.is_installed {
            step.actions.push(Action::Removed(entry.identity.id));
        }
        if let Some(address) = entry.lease.address {
            self.addresses.release(address);
        }
        self.prefixes.release(entry.lease.prefixes);
        self.counters.ended += 1;
        step.actions.push(Action::Ended(Box::new(End { identity: entry.identity, cause })));
    }

    fn account(&mut self, step: &mut Step<'_>, slot: u32, event: Event) {
        let Some(entry) = self.table.get(slot) else { return };
        let record = Record {
            event,
            identity: entry.identity.clone(),
            address: entry.lease.address,
            prefixes: entry.lease.prefixes,
            granted: entry.granted.clone(),
            uptime: entry.uptime(step.now).unwrap_or_default(),
            traffic: entry.traffic(step),
        };
        step.actions.push(Action::Account(Box::new(record)));
    }
}

impl Entry {
    pub(super) fn traffic(&self, step: &mut Step<'_>) -> Traffic {
        if self.is_installed { self.before + (step.traffic)(self.identity.id) } else { self.before }
    }
}

impl Installed {
    pub(super) fn of(entry: &Entry) -> Installed {
        let (ipv4, ipv6) = (entry.session.ipv4(), entry.session.ipv6());
        let is_up = |address: IpAddr| if address.is_ipv4() { ipv4.is_some() } else { ipv6.is_some() };
        Installed {
            identity: entry.identity.clone(),
            mtu: entry.mtu(),
            // What was given, not what the host says: sources are checked by it.
            ipv4: ipv4.and_then(|up| Some((up.local, entry.lease.address?))),
            ipv6: ipv6.map(|up| (up.local, up.peer)),
            prefixes: ipv6.map(|_| entry.lease.prefixes).unwrap_or_default(),
            routes: entry.lease.routes.iter().copied().filter(|route| is_up(route.address())).collect(),
            rates: entry.lease.rates.limits(),
        }
    }
}

/// A PADT to a station, with its message.
pub(super) fn terminate(place: Place, station: MacAddress, number: u16, text: Option<&str>) -> Action {
    Action::Send { place, destination: station, stage: Stage::Discovery, payload: padt(number, text) }
}

fn answer(request: &Request, payload: Vec<u8>) -> Action {
    Action::Send { place: request.place, destination: request.host, stage: Stage::Discovery, payload }
}

/// What distinguishes one cookie from all others: those that were good differ in their last bytes, which are a keyed hash.
fn nonce(cookie: &[u8]) -> u64 {
    cookie.last_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

//! What a session wants done, done; and its end.

use super::accounting::{Ended, Event, Record};
use super::sessions::entry::Entry;
use super::{Action, Concentrator, End, Installed, Remark, Turn};
use crate::discovery::message::padt;
use crate::framing::wrapped;
use crate::session::{self, Phase, Session};
use std::borrow::Cow;
use std::sync::Arc;
use wire::pppoe::Stage;

impl Concentrator {
    /// Lets a session act, and does what comes of it.
    pub(super) fn drive(
        &mut self,
        turn: &mut Turn<'_>,
        slot: u32,
        out: &mut Vec<Action>,
        act: impl FnOnce(&mut Session, &mut Turn<'_>, &mut Vec<session::Action>),
    ) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut actions = Vec::new();
        act(&mut entry.session, turn, &mut actions);
        let mut is_changed = false;
        while !actions.is_empty() {
            for action in std::mem::take(&mut actions) {
                match action {
                    session::Action::Send(packet) => self.send(slot, &packet, out),
                    session::Action::Authenticate(claim) => {
                        let verdict = self.authenticate(turn, slot, &claim, out);
                        if let Some(entry) = self.table.get_mut(slot) {
                            entry.session.authenticated(turn.now, verdict, turn.random, &mut actions);
                        }
                    }
                    session::Action::Up4(_) | session::Action::Up6(_) | session::Action::Down(_) => {
                        is_changed = true
                    }
                    session::Action::Phase(_) => {}
                    session::Action::Remark(remark) => self.remark_of(turn.now, slot, remark, out),
                    session::Action::Closed(closed) => {
                        let asked = self.table.get_mut(slot).and_then(|entry| entry.closing.take());
                        self.end(turn, slot, asked.unwrap_or(Ended::Ppp(closed)), out);
                        return;
                    }
                }
            }
        }
        self.note_phase(turn, slot);
        if is_changed {
            self.install(turn, slot, out);
        }
        self.arm(slot);
    }

    fn send(&self, slot: u32, packet: &[u8], out: &mut Vec<Action>) {
        let Some(entry) = self.table.get(slot) else { return };
        let payload = wrapped(entry.number, packet);
        let (place, destination) = (entry.place, entry.station);
        out.push(Action::Send { place, destination, stage: Stage::Session, payload });
    }

    fn remark_of(&mut self, now: crate::Time, slot: u32, remark: session::Remark, out: &mut Vec<Action>) {
        let Some(entry) = self.table.get(slot) else { return };
        let remark = Remark::Session {
            id: entry.id,
            place: entry.place,
            station: entry.station,
            user: entry.user().to_vec(),
            remark,
        };
        self.remark(now, remark, out);
    }

    /// Counts it among the half-open ones while nothing of it is up.
    fn note_phase(&mut self, turn: &Turn<'_>, slot: u32) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let is_half_open = entry.session.phase() != Phase::Open;
        if is_half_open && !entry.is_half_open {
            entry.half_open_since = turn.now;
        }
        self.table.set_half_open(slot, is_half_open);
    }

    /// Tells the data path what it carries of a session from now on.
    fn install(&mut self, turn: &mut Turn<'_>, slot: u32, out: &mut Vec<Action>) {
        let interim = self.config.interim.map(|every| turn.now + every);
        let Some(entry) = self.table.get_mut(slot) else { return };
        let (ipv4, ipv6) = (entry.session.ipv4(), entry.session.ipv6());
        if ipv4.is_none() && ipv6.is_none() {
            if std::mem::take(&mut entry.is_installed) {
                // What was counted so far goes with the data path's entry.
                entry.before = entry.before + (turn.traffic)(entry.id);
                out.push(Action::Removed(entry.id));
            }
            return;
        }
        entry.is_installed = true;
        let is_first = entry.opened.is_none();
        entry.opened.get_or_insert(turn.now);
        if is_first {
            entry.interim = interim;
        }
        out.push(Action::Installed(Box::new(installed(entry))));
        if is_first {
            self.counters.opened += 1;
            self.account(turn, slot, Event::Start, out);
        }
    }

    /// Sets the timer of a session. One that is to be called later than was thought is called in vain once, so that
    /// packets that put a deadline off cost nothing.
    pub(super) fn arm(&mut self, slot: u32) {
        let Some(entry) = self.table.get(slot) else { return };
        let setup = entry.is_half_open.then(|| entry.half_open_since + self.config.setup);
        let next = [entry.session.deadline(), setup, entry.interim].into_iter().flatten().min();
        let armed = self.table.timers.of(slot);
        if armed.is_none() || next.is_some_and(|next| armed.is_some_and(|armed| next < armed)) {
            self.table.timers.set(slot, next);
        }
    }

    pub(super) fn tick_one(&mut self, turn: &mut Turn<'_>, slot: u32, out: &mut Vec<Action>) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        if entry.is_half_open && turn.now >= entry.half_open_since + self.config.setup {
            self.cut(turn, slot, Ended::Unfinished { after: self.config.setup }, out);
            return;
        }
        if entry.interim.is_some_and(|due| due <= turn.now) {
            entry.interim = self.config.interim.map(|every| turn.now + every);
            self.account(turn, slot, Event::Interim, out);
        }
        let is_due = self
            .table
            .get(slot)
            .and_then(|entry| entry.session.deadline())
            .is_some_and(|due| due <= turn.now);
        if is_due {
            self.drive(turn, slot, out, |session, turn, actions| {
                session.tick(turn.now, turn.random, actions)
            });
        }
        self.arm(slot);
    }

    /// Ends a session at once: a Terminate-Request whose answer nobody waits for, and a PADT.
    pub(super) fn cut(&mut self, turn: &mut Turn<'_>, slot: u32, cause: Ended, out: &mut Vec<Action>) {
        let Some(entry) = self.table.get_mut(slot) else { return };
        let mut actions = Vec::new();
        entry.session.close(turn.now, turn.random, &mut actions);
        for action in actions {
            if let session::Action::Send(packet) = action {
                self.send(slot, &packet, out);
            }
        }
        self.end(turn, slot, cause, out);
    }

    /// Ends a session whose host has sent a PADT; for what it was being ended for before, if it was.
    pub(super) fn end_by_host(&mut self, turn: &mut Turn<'_>, slot: u32, out: &mut Vec<Action>) {
        let asked = self.table.get_mut(slot).and_then(|entry| entry.closing.take());
        self.remove(turn, slot, asked.unwrap_or(Ended::Host), false, out);
    }

    /// Ends a session with a PADT.
    pub(super) fn end(&mut self, turn: &mut Turn<'_>, slot: u32, cause: Ended, out: &mut Vec<Action>) {
        self.remove(turn, slot, cause, true, out);
    }

    /// Takes a session out of everything it is in.
    fn remove(
        &mut self,
        turn: &mut Turn<'_>,
        slot: u32,
        cause: Ended,
        is_host_told: bool,
        out: &mut Vec<Action>,
    ) {
        if self.table.get(slot).is_some_and(|entry| entry.opened.is_some()) {
            self.account(turn, slot, Event::Stop(cause.clone()), out);
        }
        let Some(entry) = self.table.take(turn.now, slot) else { return };
        if entry.is_installed {
            out.push(Action::Removed(entry.id));
        }
        if let Some(address) = entry.lease.address {
            self.addresses.release(address);
        }
        if let (Some(prefix), Some(pool)) = (entry.lease.prefix, &mut self.prefixes) {
            pool.release(prefix);
        }
        let Entry { id, place, station, number, .. } = *entry;
        if is_host_told {
            let payload = padt(number, cause.for_host().as_deref());
            out.push(Action::Send { place, destination: station, stage: Stage::Discovery, payload });
        }
        self.counters.ended += 1;
        let user = entry.user().to_vec();
        out.push(Action::Ended(Box::new(End { id, place, station, number, user, cause })));
    }

    pub(super) fn account(&mut self, turn: &mut Turn<'_>, slot: u32, event: Event, out: &mut Vec<Action>) {
        let Some(entry) = self.table.get(slot) else { return };
        out.push(Action::Account(Box::new(Record {
            event,
            id: entry.id,
            accounting: entry.accounting,
            user: entry.user.clone().unwrap_or_else(|| Arc::from(&[][..])),
            place: entry.place,
            station: entry.station,
            line: entry.line.clone(),
            number: entry.number,
            address: entry.lease.address,
            prefix: entry.lease.prefix,
            uptime: entry.uptime(turn.now).unwrap_or_default(),
            traffic: entry.traffic(turn),
        })));
    }
}

impl Entry {
    pub(super) fn traffic(&self, turn: &mut Turn<'_>) -> super::Traffic {
        if self.is_installed { self.before + (turn.traffic)(self.id) } else { self.before }
    }
}

pub(super) fn installed(entry: &Entry) -> Installed {
    let (ipv4, ipv6) = (entry.session.ipv4(), entry.session.ipv6());
    let is_up = |address: std::net::IpAddr| if address.is_ipv4() { ipv4.is_some() } else { ipv6.is_some() };
    Installed {
        id: entry.id,
        place: entry.place,
        station: entry.station,
        number: entry.number,
        user: entry.user.clone().unwrap_or_else(|| Arc::from(&[][..])),
        mtu: entry.session.peer_mru().min(entry.max_payload),
        // What was given, not what the host says: sources are checked by it.
        ipv4: ipv4.and_then(|up| Some((up.local, entry.lease.address?))),
        ipv6: ipv6.map(|up| (up.local, up.peer)),
        prefix: entry.lease.prefix.filter(|_| ipv6.is_some()),
        routes: entry.lease.routes.iter().copied().filter(|route| is_up(route.address())).collect(),
    }
}

impl Ended {
    pub(super) fn for_host(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Ended::Ppp(_) | Ended::Host => return None,
            Ended::Refused(refusal) => refusal.for_host(),
            Ended::TakenOver { .. } => "the same user has connected from elsewhere",
            Ended::Operator => "disconnected by the operator",
            Ended::Unfinished { .. } => "the session did not come up in time",
            Ended::ShutDown => "the concentrator is being shut down",
            Ended::NotRestored(why) => {
                return Some(Cow::Owned(format!("the concentrator was restarted: {why}")));
            }
        }))
    }
}

//! From a PADR that may be believed to a session.

use super::authentication::HELD_OFF;
use super::sessions::Full;
use super::sessions::entry::Entry;
use super::{Action, Concentrator, Remark, Turn};
use crate::discovery::complaint::Kind;
use crate::discovery::concentrator::Request;
use crate::draw;
use crate::lcp::LEAST_MRU;
use crate::session::{Phase, Session};
use std::sync::Arc;
use wire::pppoe::Stage;

impl Concentrator {
    /// Confirms a request, or says why not.
    pub(super) fn open(&mut self, turn: &mut Turn<'_>, request: &Request, out: &mut Vec<Action>) {
        let cookie = nonce(&request.cookie);
        if let Some(slot) = self.table.of_cookie(&request.place, request.host, cookie) {
            self.repeat(slot, request, out);
            return;
        }
        if self.table.numbers.is_used_up(cookie) {
            self.counters.padr_used_up += 1;
            return;
        }
        if self.guesses.wait_of_host(turn.now, &request.place, request.host).is_some() {
            self.counters.held_off += 1;
            self.refuse(request, Kind::Generic, HELD_OFF, out);
            return;
        }
        if !request.is_served {
            self.refuse(request, Kind::ServiceName, "this service is not served here", out);
            return;
        }
        if request.max_payload < LEAST_MRU {
            self.refuse(request, Kind::AcSystem, "the line has no room for packets behind its tags", out);
            return;
        }
        if self.is_draining() {
            let text = "the concentrator takes no more sessions for the time being";
            self.refuse(request, Kind::AcSystem, text, out);
            return;
        }
        let number = self.table.room(&request.place, request.host).and_then(|()| {
            let number = self.table.number(turn.now, &request.place, turn.random);
            number.ok_or(Full::Place(super::sessions::numbers::ALL))
        });
        match number {
            Ok(number) => self.confirm(turn, request, number, cookie, out),
            Err(full) => {
                self.refuse(request, Kind::AcSystem, &full.to_string(), out);
                let remark = Remark::Full { place: request.place, station: request.host, full };
                self.remark(turn.now, remark, out);
            }
        }
    }

    fn confirm(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        number: u16,
        cookie: u64,
        out: &mut Vec<Action>,
    ) {
        // What a host wants echoed that fits no frame would fit none the next time either.
        let Ok(payload) = request.confirm(number) else {
            self.counters.padr_refused += 1;
            return;
        };
        out.push(answer(request, payload));
        let session = Session::new(self.session_config.clone(), request.max_payload, turn.random);
        let mut entry = Entry::new(session, request.place, request.host, number, turn.now);
        entry.cookie = cookie;
        entry.line = request.line.clone().map(Arc::new);
        entry.max_payload = request.max_payload;
        entry.accounting = u64::from_be_bytes(draw(turn.random));
        let slot = self.table.put(entry);
        self.counters.confirmed += 1;
        self.drive(turn, slot, out, |session, turn, actions| session.start(turn.now, turn.random, actions));
    }

    /// RFC 2516 section 8: a host that got no PADS sends its PADR again. Later than LCP it has got it, and the packet is old.
    fn repeat(&mut self, slot: u32, request: &Request, out: &mut Vec<Action>) {
        let Some(entry) = self.table.get(slot) else { return };
        if entry.session.phase() != Phase::Lcp || entry.opened.is_some() {
            self.counters.padr_used_up += 1;
        } else if let Ok(payload) = request.confirm(entry.number) {
            self.counters.padr_repeated += 1;
            out.push(answer(request, payload));
        }
    }

    fn refuse(&mut self, request: &Request, kind: Kind, text: &str, out: &mut Vec<Action>) {
        self.counters.padr_refused += 1;
        if let Ok(payload) = request.refuse(kind, text) {
            out.push(answer(request, payload));
        }
    }
}

fn answer(request: &Request, payload: Vec<u8>) -> Action {
    Action::Send { place: request.place, destination: request.host, stage: Stage::Discovery, payload }
}

/// What tells one cookie from all others: those that were good differ in their last bytes, which are a keyed hash.
fn nonce(cookie: &[u8]) -> u64 {
    cookie.last_chunk().map_or(0, |octets| u64::from_be_bytes(*octets))
}

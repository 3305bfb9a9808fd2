//! Room for another session: how many there may be, and which half-open one gives way.

use super::{Table, numbers, sessions};
use crate::Time;
use crate::discovery::concentrator::Request;
use crate::discovery::place::Place;
use std::sync::Arc;
use std::time::Duration;

/// How many sessions there may be. Half-open is one in which nothing came up yet: it costs who asks for it nothing but an
/// answer to an offer. One that waits for its host, which has not proved who it is, gives way to others: at once where the host has
/// sent no packet of PPP yet or the session is being terminated, else after three seconds without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    pub sessions: u32,
    pub half_open: u32,
    /// Of one port and stack of VLAN tags, at most the numbers there are.
    pub place: u32,
    pub place_half_open: u32,
    /// Of one MAC address at one place.
    pub station: u32,
    /// Of one line that access nodes name.
    pub line: u32,
}

impl Caps {
    /// Room for 65,536 subscribers, in one VLAN or each in its own.
    pub const DEFAULT: Caps = Caps {
        sessions: 1 << 16,
        half_open: 1 << 14,
        place: 65_000,
        place_half_open: 1 << 11,
        station: 8,
        line: u32::MAX,
    };
}

/// How long a host that has spoken may take for its next packet while others need its place: as long as PPP waits for an answer
/// (RFC 1661 section 4.6). With a sixth of it, hosts that were slow because 30,000 of them came at once drove each other out.
const PATIENCE: Duration = Duration::from_secs(3);

/// Places that are looked at for a session that gives way, at most, those with the most first.
const FULLEST: usize = 64;

/// Why there is no room for another session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    #[error("the concentrator is full: it has {}", sessions(*.0))]
    Sessions(u32),
    #[error("the concentrator is busy: {0} sessions are being set up; try again in a minute")]
    HalfOpen(u32),
    #[error("this VLAN is full: it has {}", sessions(*.0))]
    Place(u32),
    #[error("this VLAN is busy: {0} sessions are being set up in it; try again in a minute")]
    PlaceHalfOpen(u32),
    #[error("this station has {} already; end one, or wait until a dead one is noticed", sessions(*.0))]
    Station(u32),
    #[error("this line has {} already; end one, or wait until a dead one is noticed", sessions(*.0))]
    Line(u32),
}

impl Table {
    pub(crate) fn set_half_open(&mut self, slot: u32, is_half_open: bool) {
        if !is_half_open {
            self.set_waiting(slot, false);
        }
        let Some(Some(entry)) = self.slots.get_mut(slot as usize) else { return };
        if entry.is_half_open == is_half_open {
            return;
        }
        entry.is_half_open = is_half_open;
        let here = self.places.entry(entry.identity.place).or_default();
        for count in [&mut here.half_open, &mut self.half_open] {
            *count = if is_half_open { *count + 1 } else { *count - 1 };
        }
    }

    /// Whether there is room for another half-open session.
    pub(super) fn room(&self, request: &Request, most: Option<u32>) -> Result<(), Full> {
        let (caps, place) = (Caps { place: most.unwrap_or(self.caps.place), ..self.caps }, request.place);
        let (sessions, half_open) =
            self.places.get(&place).map(|here| (here.sessions, here.half_open)).unwrap_or_default();
        let of_station = self.by_station.count(&(place, request.host), caps.station);
        let line = request.line.clone().filter(|_| caps.line < u32::MAX).map(Arc::new);
        let of_line = line.map_or(0, |line| self.by_line.count(&line, caps.line));
        let all = self.len() as u32;
        match () {
            () if of_station >= caps.station => Err(Full::Station(of_station)),
            () if of_line >= caps.line => Err(Full::Line(of_line)),
            () if sessions >= caps.place.min(numbers::ALL) => Err(Full::Place(sessions)),
            () if half_open >= caps.place_half_open => Err(Full::PlaceHalfOpen(half_open)),
            () if all >= caps.sessions => Err(Full::Sessions(all)),
            () if self.half_open >= caps.half_open => Err(Full::HalfOpen(self.half_open)),
            () => Ok(()),
        }
    }

    /// The session that has to give way before the one that is requested has room; `None`: there is room, or none gives way. Where a place
    /// is full it is its own oldest. Where all are it is the oldest of the place that has the most, so that who floods a few places takes
    /// nothing from the others.
    pub(crate) fn surplus(&self, now: Time, request: &Request, most: Option<u32>) -> Option<u32> {
        let oldest = |place: &Place| {
            let (from, slot) = self.places.get(place)?.waiting.first()?;
            (*from <= now).then_some(*slot)
        };
        match self.room(request, most).err()? {
            Full::Station(_) | Full::Line(_) => None,
            Full::Place(_) | Full::PlaceHalfOpen(_) => oldest(&request.place),
            // One whose hosts all speak has none yet.
            Full::Sessions(_) | Full::HalfOpen(_) => {
                self.waiting.iter().rev().take(FULLEST).find_map(|(_, place)| oldest(place))
            }
        }
    }

    /// The host of a session has sent a packet of PPP.
    pub(crate) fn heard(&mut self, now: Time, slot: u32) {
        if let Some(entry) = self.get_mut(slot) {
            entry.heard = Some(now);
        }
    }

    /// Whether a session waits for its host, and gives way.
    pub(crate) fn set_waiting(&mut self, slot: u32, waits: bool) {
        let Some(Some(entry)) = self.slots.get_mut(slot as usize) else { return };
        let heard = entry.heard.filter(|_| entry.session.ending().is_none());
        let from = waits.then(|| heard.map_or(entry.half_open_since, |heard| heard + PATIENCE));
        let before = std::mem::replace(&mut entry.gives_way, from);
        let place = entry.identity.place;
        let Some(here) = self.places.get_mut(&place).filter(|_| before != from) else { return };
        let count = here.waiting.len();
        before.map(|before| here.waiting.remove(&(before, slot)));
        here.waiting.extend(from.map(|from| (from, slot)));
        let now = here.waiting.len();
        if now != count {
            self.waiting.remove(&(count, place));
            if now > 0 {
                self.waiting.insert((now, place));
            }
        }
    }
}

//! What one call of a session brings to all its machines: time, randomness, configuration, and where actions go.

use crate::control;
use crate::session::{Action, Config, Remark, Timers};
use crate::{Random, Time};
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// Answers a second that nobody needs twice: rejects, repeated verdicts, repeated challenges. More are dropped, so that a
/// peer cannot make a session work or send without bound.
const COURTESIES: u8 = 16;

/// What a session remembers in order not to say or send too much.
#[derive(Clone, Debug, Default)]
pub struct Manners {
    /// Kinds of remarks made, by [`Remark::number`].
    told: u32,
    /// Courtesies of the second that began at `since`.
    courtesies: u8,
    since: Time,
}

/// One call.
pub struct Turn<'a> {
    pub now: Time,
    pub random: &'a mut dyn Random,
    pub actions: &'a mut Vec<Action>,
    pub config: &'a Config,
    pub(crate) manners: &'a mut Manners,
    /// Bytes behind the protocol field that the peer receives.
    pub limit: u16,
}

impl Turn<'_> {
    pub fn timers(&self) -> &Timers {
        &self.config.timers
    }

    /// When the restart timer that begins now runs out. One of zero would never let a session rest.
    pub(crate) fn restart_at(&self) -> Time {
        self.now.saturating_add(self.timers().restart.max(Time::from_millis(10)))
    }

    /// Sends a control packet; one that the peer could not receive is left out, with a remark.
    pub fn send(&mut self, protocol: PppProtocol, code: u8, identifier: u8, data: &[u8]) {
        match control::packet(protocol, ControlPacket { code, identifier, data }, self.limit) {
            Some(octets) => self.actions.push(Action::Send(octets)),
            None => self.remark(Remark::TooLong { protocol }),
        }
    }

    /// Sends one whose data may be cut to what the peer receives: rejects and echoes.
    pub(crate) fn send_cut(&mut self, protocol: PppProtocol, code: u8, identifier: u8, data: &[u8]) {
        let most = usize::from(self.limit).saturating_sub(wire::ppp::ControlHeader::LENGTH);
        self.send(protocol, code, identifier, data.get(..most).unwrap_or(data));
    }

    /// Makes a remark, unless one of its kind was made in this session.
    pub fn remark(&mut self, remark: Remark) {
        let bit = 1_u32.checked_shl(remark.number()).unwrap_or(0);
        if self.manners.told & bit == 0 {
            self.manners.told |= bit;
            self.actions.push(Action::Remark(remark));
        }
    }

    /// Whether one more courtesy is due in this second.
    pub(crate) fn courtesy(&mut self) -> bool {
        let manners = &mut *self.manners;
        if self.now.saturating_sub(manners.since).as_secs() >= 1 {
            (manners.since, manners.courtesies) = (self.now, 0);
        }
        manners.courtesies = manners.courtesies.saturating_add(1);
        manners.courtesies <= COURTESIES
    }
}

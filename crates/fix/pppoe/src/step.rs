//! What one call of a session brings to all its machines: time, randomness, configuration, and where actions go.

use crate::control;
use crate::session::{Action, Config, Notice, Timers};
use crate::{Random, Time};
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

/// Answers a second that nobody needs twice: rejects, repeated verdicts, repeated challenges. More are dropped, so that a
/// peer cannot make a session work or send without bound.
const EXTRA_ANSWERS: u8 = 16;

/// What a session remembers in order not to say or send too much.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget {
    /// Kinds of notices made, by [`Notice::number`].
    reported: u32,
    /// Extra answers in the second of that number.
    extra_answers: u8,
    second: u32,
}

/// One call.
pub(crate) struct Step<'a> {
    pub(crate) now: Time,
    pub(crate) random: &'a mut dyn Random,
    pub(crate) actions: &'a mut Vec<Action>,
    pub(crate) config: &'a Config,
    pub(crate) budget: &'a mut Budget,
    /// Bytes behind the protocol field that the peer receives.
    pub(crate) limit: u16,
}

impl Step<'_> {
    pub(crate) fn timers(&self) -> &Timers {
        &self.config.timers
    }

    /// When the restart timer that begins now runs out. One of zero would never let a session rest.
    pub(crate) fn restart_at(&self) -> Time {
        self.now.saturating_add(self.timers().restart.max(Time::from_millis(10)))
    }

    /// Sends a control packet; one that the peer could not receive is left out, with a notice.
    pub(crate) fn send(&mut self, protocol: PppProtocol, code: u8, identifier: u8, data: &[u8]) {
        match control::packet(protocol, ControlPacket { code, identifier, data }, self.limit) {
            Some(bytes) => self.actions.push(Action::Send(bytes)),
            None => self.notice(Notice::TooLong { protocol }),
        }
    }

    /// Sends one whose data may be cut to what the peer receives: rejects and echoes.
    pub(crate) fn send_cut(&mut self, protocol: PppProtocol, code: u8, identifier: u8, data: &[u8]) {
        let most = usize::from(self.limit).saturating_sub(wire::ppp::ControlHeader::LENGTH);
        self.send(protocol, code, identifier, data.get(..most).unwrap_or(data));
    }

    /// Makes a notice, unless one of its kind was made in this session.
    pub(crate) fn notice(&mut self, notice: Notice) {
        let bit = 1_u32.checked_shl(notice.number()).unwrap_or(0);
        if self.budget.reported & bit == 0 {
            self.budget.reported |= bit;
            self.actions.push(Action::Notice(notice));
        }
    }

    /// Whether one more extra answer may be sent in this second.
    pub(crate) fn may_answer(&mut self) -> bool {
        let budget = &mut *self.budget;
        let second = self.now.as_secs() as u32;
        if second != budget.second {
            (budget.second, budget.extra_answers) = (second, 0);
        }
        budget.extra_answers = budget.extra_answers.saturating_add(1);
        budget.extra_answers <= EXTRA_ANSWERS
    }
}

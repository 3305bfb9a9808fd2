//! What is worth reporting to the operator.

use super::authentication::Refusal;
use super::sessions::{Full, Identity};
use super::{Action, Concentrator, Step};
use crate::Time;
use crate::discovery::place::Place;
use crate::session;
use format::Quotable;
use std::time::Duration;
use wire::ethernet::MacAddress;

/// Something worth reporting. `Display` is a whole sentence, in which what strangers said went through [`Quotable`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Notice {
    #[error("{} {}{}: {notice}", identity.station, identity.place, match identity.user() {
        [] => String::new(),
        user => format!(" (\"{}\")", Quotable(user)),
    })]
    Session { identity: Identity, notice: session::Notice },
    #[error("{station} {place} got no session: {full}.")]
    Full { place: Place, station: MacAddress, full: Full },
    #[error("\"{}\" was refused, {station} {place}: {refusal}.", Quotable(user))]
    Refused { place: Place, station: MacAddress, user: Vec<u8>, refusal: Refusal },
    /// After too many wrong passwords nothing is looked at for some time: of the user, or of the host whoever it says it is.
    #[error("Too many wrong passwords: for {} s no password {} is checked{}.", wait.as_millis().div_ceil(1000), match user {
        Some(user) => format!("for \"{}\"", Quotable(user)),
        None => format!("of {station} {place}"),
    }, if user.is_some() { format!(" on the line {place}") } else { String::new() })]
    HeldOff { place: Place, station: MacAddress, user: Option<Vec<u8>>, wait: Duration },
    #[error("\"{}\" got no IPv6 prefix: {why}.", Quotable(user))]
    NoPrefix { user: Vec<u8>, why: Refusal },
    /// More was reported than anybody reads.
    #[error("{}", match count {
        1 => "One more notice was left out.".to_owned(),
        count => format!("{count} more notices were left out."),
    })]
    Suppressed { count: u64 },
}

/// Keeps strangers from filling a log: so many notices at once, and so many a second.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    /// Remarks said in the second that began then.
    second: u64,
    said: u32,
    suppressed: u64,
}

impl Throttle {
    const A_SECOND: u32 = 50;

    /// Whether one may be said, and how many were left out before it.
    fn pass(&mut self, now: Time) -> Option<u64> {
        if now.as_secs() != self.second {
            self.second = now.as_secs();
            self.said = 0;
        }
        if self.said >= Throttle::A_SECOND {
            self.suppressed += 1;
            return None;
        }
        self.said += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl Concentrator {
    pub(super) fn notice(&mut self, step: &mut Step<'_>, notice: Notice) {
        let Some(count) = self.notices.pass(step.now) else { return };
        if count > 0 {
            step.actions.push(Action::Notice(Box::new(Notice::Suppressed { count })));
        }
        step.actions.push(Action::Notice(Box::new(notice)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack 21: notices that strangers cause, without end and with names of their choice.
    #[test]
    fn remarks_have_a_rate_and_one_harmless_line() {
        let mut throttle = Throttle::default();
        let passed =
            |throttle: &mut Throttle, now| (0..1000).filter(|_| throttle.pass(now).is_some()).count();
        assert_eq!(passed(&mut throttle, Time::from_millis(9_100)), 50);
        assert_eq!(passed(&mut throttle, Time::from_millis(9_900)), 0);
        assert_eq!(throttle.pass(Time::from_millis(10_000)), Some(1950));
        assert_eq!(throttle.pass(Time::from_millis(10_000)), Some(0));
        let (place, station) = (Place::default(), MacAddress([2, 0, 0, 0, 0, 1]));
        let user = b"x\n\x1b[2J$(reboot)".to_vec();
        let said = Notice::Refused { place, station, user, refusal: Refusal::Unknown }.to_string();
        assert!(!said.chars().any(char::is_control) && said.contains("\\$(reboot)"), "{said}");
    }
}

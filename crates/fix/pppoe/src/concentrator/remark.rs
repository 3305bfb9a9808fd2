//! What is worth telling the operator.

use super::authentication::Refusal;
use super::sessions::{Full, Id};
use super::{Action, Concentrator, Turn};
use crate::Time;
use crate::discovery::place::Place;
use crate::session;
use format::Quotable;
use std::fmt;
use std::time::Duration;
use wire::ethernet::MacAddress;

/// Something worth telling. `Display` is a whole sentence, in which what strangers said went through [`Quotable`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remark {
    Session {
        id: Id,
        place: Place,
        station: MacAddress,
        /// Who; empty where nobody has said so yet.
        user: Vec<u8>,
        remark: session::Remark,
    },
    /// There is no room for a session.
    Full {
        place: Place,
        station: MacAddress,
        full: Full,
    },
    Refused {
        place: Place,
        station: MacAddress,
        user: Vec<u8>,
        refusal: Refusal,
    },
    /// After too many wrong passwords nothing is looked at for some time.
    HeldOff {
        place: Place,
        station: MacAddress,
        /// Of which user they were; `None`: nothing of this host is looked at, whoever it says it is.
        user: Option<Vec<u8>>,
        wait: Duration,
    },
    /// A subscriber got no IPv6 prefix.
    NoPrefix {
        user: Vec<u8>,
        why: Refusal,
    },
    /// More was remarked than anybody reads.
    Suppressed {
        count: u64,
    },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |place: &Place, station: &MacAddress| format!("{station} {place}");
        match self {
            Remark::Session { place, station, user, remark, .. } if user.is_empty() => {
                write!(f, "{}: {remark}", at(place, station))
            }
            Remark::Session { place, station, user, remark, .. } => {
                write!(f, "{} (\"{}\"): {remark}", at(place, station), Quotable(user))
            }
            Remark::Full { place, station, full } => {
                write!(f, "{} got no session: {full}.", at(place, station))
            }
            Remark::Refused { place, station, user, refusal } => {
                write!(f, "\"{}\" was refused, {}: {refusal}.", Quotable(user), at(place, station))
            }
            Remark::HeldOff { place, station, user, wait } => {
                write!(f, "Too many wrong passwords: for {} s nothing ", wait.as_millis().div_ceil(1000))?;
                match user {
                    Some(user) => write!(f, "for \"{}\" is looked at on the line {place}.", Quotable(user)),
                    None => write!(f, "of {} is looked at.", at(place, station)),
                }
            }
            Remark::NoPrefix { user, why } => write!(f, "\"{}\" got no IPv6 prefix: {why}.", Quotable(user)),
            Remark::Suppressed { count: 1 } => f.write_str("One more remark was left out."),
            Remark::Suppressed { count } => write!(f, "{count} more remarks were left out."),
        }
    }
}

/// Keeps strangers from filling a log: so many remarks at once, and so many a second.
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
    pub(super) fn remark(&mut self, turn: &mut Turn<'_>, remark: Remark) {
        let Some(count) = self.remarks.pass(turn.now) else { return };
        if count > 0 {
            turn.actions.push(Action::Remark(Box::new(Remark::Suppressed { count })));
        }
        turn.actions.push(Action::Remark(Box::new(remark)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack 21: remarks that strangers cause, without end and with names of their choice.
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
        let said = Remark::Refused { place, station, user, refusal: Refusal::Unknown }.to_string();
        assert!(!said.chars().any(char::is_control) && said.contains("\\$(reboot)"), "{said}");
    }
}

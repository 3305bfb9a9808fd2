//! The packets of LCP that keep a link rather than negotiate it: Protocol-Reject, Echo, Discard-Request (RFC 1661 sections 5.7
//! to 5.9), Identification, Time-Remaining (RFC 1570). Echo-Requests are sent only when nothing else was heard; one more
//! measures the round trip when the session has become open.

use super::machine::Machine;
use super::{Notice, RoundTrip, Timers};
use crate::Time;
use crate::control::{ControlError, Parsed, code};
use crate::step::Step;
use std::time::Duration;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

#[derive(Clone, Debug, Default)]
pub(crate) struct Keepalive {
    heard: Time,
    /// When the last request was sent, and its identifier.
    sent: Time,
    pub(crate) identifier: u8,
    awaited: bool,
    /// When a request is to be sent whatever was heard.
    measure: Option<Time>,
    /// Requests in a row behind which nothing was heard.
    pub(crate) unanswered: u32,
    running: bool,
    pub(crate) round_trip: Option<RoundTrip>,
}

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    Nothing,
    /// An Echo-Request with the identifier.
    Echo,
    Death,
}

impl Keepalive {
    pub(crate) fn start(&mut self, now: Time) {
        (self.running, self.unanswered, self.awaited, self.heard) = (true, 0, false, now);
    }

    /// As if the peer was heard last at a moment in the past.
    pub(crate) fn heard_at(&mut self, moment: Time) {
        self.heard = moment;
    }

    pub(crate) fn stop(&mut self) {
        (self.running, self.measure) = (false, None);
    }

    /// Has the round trip measured by the next [`Keepalive::tick`], which comes when the caller has done what this moment brought
    /// along, setting up an interface for example. Until then no reply is waited for: it would be read late.
    pub(crate) fn measure(&mut self, now: Time) {
        (self.measure, self.awaited) = (Some(now), false);
    }

    pub(crate) fn heard(&mut self, now: Time) {
        self.heard = self.heard.max(now);
        self.unanswered = 0;
    }

    /// How long a reply may take: a quarter of the interval, so that a dead peer is found soon after the first loss.
    fn patience(timers: &Timers) -> Duration {
        (timers.echo / 4).max(Duration::from_secs(1)).min(timers.echo)
    }

    pub(crate) fn deadline(&self, timers: &Timers) -> Option<Time> {
        self.silence(timers).into_iter().chain(self.measure).min()
    }

    /// When the peer has been silent for too long.
    fn silence(&self, timers: &Timers) -> Option<Time> {
        if !self.running || timers.echo.is_zero() {
            return None;
        }
        Some(match self.unanswered {
            0 => self.heard.saturating_add(timers.echo),
            _ => self.sent.saturating_add(Keepalive::patience(timers)),
        })
    }

    pub(crate) fn tick(&mut self, now: Time, timers: &Timers) -> Due {
        let measures = self.measure.take_if(|measure| *measure <= now).is_some();
        if self.silence(timers).is_none_or(|silence| now < silence) {
            if !measures {
                return Due::Nothing;
            }
            self.probe(now);
            return Due::Echo;
        }
        if self.unanswered > 0 && self.unanswered >= timers.echo_failures {
            return Due::Death;
        }
        self.unanswered += 1;
        self.probe(now);
        Due::Echo
    }

    /// A request is sent.
    fn probe(&mut self, now: Time) {
        self.identifier = self.identifier.wrapping_add(1);
        (self.sent, self.awaited) = (now, true);
    }

    pub(crate) fn replied(&mut self, now: Time, identifier: u8) {
        if self.awaited && identifier == self.identifier {
            self.awaited = false;
            self.round_trip = Some(RoundTrip { at: now, time: now.saturating_sub(self.sent) });
        }
    }
}

impl Machine {
    /// Echo-Request to Time-Remaining. All begin with the sender's magic number, which is zero where none was negotiated.
    pub(super) fn maintain(&mut self, packet: ControlPacket<'_>, step: &mut Step<'_>) -> Parsed<()> {
        let ControlPacket { code, identifier, data } = packet;
        let Some((magic, rest)) = data.split_first_chunk::<4>() else {
            return Err(ControlError::Data { code, found: data.len(), least: 4 });
        };
        // RFC 1661 section 6.4: who hears its own magic number hears itself. It says nothing about the peer.
        if self.lcp.magic != 0 && u32::from_be_bytes(*magic) == self.lcp.magic {
            step.notice(Notice::OwnEcho);
            return Ok(());
        }
        self.keepalive.heard(step.now);
        if !self.lcp_negotiation.is_open() {
            return Ok(());
        }
        match code {
            code::ECHO_REQUEST => {
                let reply = [&self.lcp.magic.to_be_bytes()[..], rest].concat();
                step.send_cut(PppProtocol::LCP, code::ECHO_REPLY, identifier, &reply);
            }
            code::ECHO_REPLY => self.keepalive.replied(step.now, identifier),
            code::IDENTIFICATION => step.notice(Notice::Identification { message: rest.to_vec() }),
            code::TIME_REMAINING => {
                let Some((seconds, message)) = rest.split_first_chunk::<4>() else {
                    return Err(ControlError::Data { code, found: data.len(), least: 8 });
                };
                let seconds = u32::from_be_bytes(*seconds);
                step.notice(Notice::TimeRemaining { seconds, message: message.to_vec() });
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn send_echo(&self, step: &mut Step<'_>) {
        let magic = self.lcp.magic.to_be_bytes();
        step.send(PppProtocol::LCP, code::ECHO_REQUEST, self.keepalive.identifier, &magic);
    }

    /// Rejects a protocol, with as much of the packet as the peer receives (RFC 1661 section 5.7).
    pub(super) fn reject_protocol(&mut self, protocol: PppProtocol, data: &[u8], step: &mut Step<'_>) {
        step.notice(Notice::UnknownProtocol { protocol });
        if step.may_answer() {
            self.reject_identifier = self.reject_identifier.wrapping_add(1);
            let rejected = [&protocol.0.to_be_bytes()[..], data].concat();
            step.send_cut(PppProtocol::LCP, code::PROTOCOL_REJECT, self.reject_identifier, &rejected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMERS: Timers = Timers::DEFAULT;
    const fn at(seconds: u64) -> Time {
        Duration::from_secs(seconds)
    }

    #[test]
    fn echoes_come_only_in_silence_and_faster_after_a_loss() {
        let mut keepalive = Keepalive::default();
        assert_eq!(keepalive.deadline(&TIMERS), None);
        keepalive.start(at(0));
        for second in 0..100 {
            keepalive.heard(at(second));
            assert_eq!(keepalive.tick(at(second), &TIMERS), Due::Nothing);
        }
        assert_eq!(keepalive.tick(at(118), &TIMERS), Due::Nothing);
        assert_eq!(keepalive.tick(at(119), &TIMERS), Due::Echo);
        assert_eq!(keepalive.tick(at(123), &TIMERS), Due::Nothing);
        assert_eq!(keepalive.tick(at(124), &TIMERS), Due::Echo);
        keepalive.replied(at(125), keepalive.identifier);
        keepalive.heard(at(125));
        assert_eq!(keepalive.round_trip, Some(RoundTrip { at: at(125), time: at(1) }));
        keepalive.replied(at(126), keepalive.identifier);
        assert_eq!(keepalive.round_trip.map(|trip| trip.at), Some(at(125)), "a reply counts once");
        let due: Vec<_> =
            (126..200).filter(|second| keepalive.tick(at(*second), &TIMERS) != Due::Nothing).collect();
        assert_eq!(due[..4], [145, 150, 155, 160]);
        assert_eq!(keepalive.tick(at(200), &TIMERS), Due::Death);
    }

    #[test]
    fn an_interval_of_zero_switches_it_off() {
        let mut keepalive = Keepalive::default();
        keepalive.start(at(0));
        let timers = Timers { echo: Duration::ZERO, ..TIMERS };
        assert_eq!(keepalive.deadline(&timers), None);
        // But for the round trip, once.
        keepalive.measure(at(1));
        assert_eq!(keepalive.deadline(&timers), Some(at(1)));
        assert_eq!(keepalive.tick(at(1), &timers), Due::Echo);
        assert_eq!(keepalive.deadline(&timers), None);
        keepalive.measure(at(2));
        keepalive.stop();
        assert_eq!(keepalive.deadline(&timers), None);
    }

    #[test]
    fn what_the_caller_does_meanwhile_is_no_part_of_the_round_trip() {
        let mut keepalive = Keepalive::default();
        keepalive.start(at(0));
        keepalive.measure(at(1));
        // The interface took two seconds.
        assert_eq!(keepalive.tick(at(3), &TIMERS), Due::Echo);
        let first = keepalive.identifier;
        // Another one comes up, and the reply to the first request waits until it has.
        keepalive.measure(at(4));
        keepalive.replied(at(4), first);
        assert_eq!(keepalive.round_trip, None);
        assert_eq!(keepalive.tick(at(6), &TIMERS), Due::Echo);
        keepalive.replied(at(6), first);
        keepalive.replied(at(7), keepalive.identifier);
        assert_eq!(keepalive.round_trip, Some(RoundTrip { at: at(7), time: at(1) }));
        assert_eq!((keepalive.unanswered, keepalive.deadline(&TIMERS)), (0, Some(at(20))));
    }
}

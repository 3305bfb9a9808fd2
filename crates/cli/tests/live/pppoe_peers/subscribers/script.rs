//! What subscribers do in their sessions, step by step.

use super::plan;
use super::session::{Session, Standing};
use super::subscriber::{Attempt, End, Phase, Step};
use super::tester::{STRANGER, Tester};
use super::traffic::{Leg, Traffic};
use crate::pppoe_peers::by_hand::frame::{Place, SESSION, pppoe};
use crate::pppoe_peers::by_hand::ppp;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// A protocol that nobody speaks (0x8013 is of no registry's).
const UNKNOWN_PROTOCOL: u16 = 0x8013;

impl Tester {
    /// Does what can be done.
    pub fn advance(&mut self, number: usize) {
        loop {
            let one = &self.subscribers[number];
            let Phase::Session(session) = one.phase else { return };
            let Some(step) = one.script.front().cloned() else {
                self.refused(number, session);
                return;
            };
            // Nothing begins before the session is up, but for leaving it.
            if one.stage == 0 && one.attempt == Attempt::Open && !self.is_ready(number, session) {
                return;
            }
            self.setting_up.remove(&number);
            let is_done = match step {
                Step::Meet => self.meet(number),
                Step::Carry(each) => self.carry(number, session, each),
                Step::Spoof => self.spoof(number, session),
                Step::Echo => self.echo(number, session),
                Step::PadrAgain => {
                    self.padr_again(number);
                    true
                }
                Step::FlapIpcp => self.flap_ipcp(number, session),
                Step::EndIpv6cp => self.end_ipv6cp(number, session),
                Step::LcpAnew => self.lcp_anew(number, session),
                Step::Strange => self.strange(number, session),
                Step::Pause(time) => self.pause(number, time),
                Step::End(end) => {
                    self.end(number, session, end);
                    return;
                }
            };
            if !is_done {
                return;
            }
            self.subscribers[number].next_step(self.now);
        }
    }

    /// Both protocols are up, or what is left of them.
    fn is_ready(&self, number: usize, session: usize) -> bool {
        let session = &self.sessions[session];
        let has_met = self.subscribers[number].script.front();
        let is_partly_up = session.was_open && session.ipcp.is_up() && session.is_settled();
        session.is_up() || is_partly_up && !matches!(has_met, Some(Step::Meet))
    }

    /// An attempt that was not to succeed waits for the PADT.
    fn refused(&mut self, number: usize, session: usize) {
        let attempt = self.subscribers[number].attempt;
        let one = &mut self.sessions[session];
        assert!(!one.was_open, "{attempt:?} was let in: {one:#?}");
        if attempt == Attempt::RefusesMethods {
            one.causes = &["ppp"];
        }
    }

    /// A session that this end did not end is over.
    pub fn ended(&mut self, session: usize) {
        let one = &self.sessions[session];
        let number = one.subscriber;
        let words = one.last_words.clone().unwrap_or_default();
        if let Some(refusal) = &one.refusal {
            self.counts.refused += 1;
            assert_eq!(refusal, "unknown user or wrong password");
            assert_eq!(&words, refusal);
        }
        if one.causes == ["taken-over"] {
            assert_eq!(words, "the same user has connected from elsewhere");
        }
        if one.causes == ["shut-down"] {
            assert_eq!(words, "the concentrator is being shut down");
        }
        if self.subscribers[number].phase == Phase::Session(session) {
            self.live_on(number);
        }
    }

    /// The next life, or none.
    fn live_on(&mut self, number: usize) {
        let now = self.now;
        self.setting_up.remove(&number);
        let one = &mut self.subscribers[number];
        // Attempts that were not to succeed are no lives.
        if one.attempt == Attempt::Open {
            one.lives -= 1;
        }
        if one.lives == 0 {
            one.begin_at(now, now);
            one.phase = Phase::Done;
            return;
        }
        let is_open = one.attempt != Attempt::Open;
        one.next_life(now);
        if is_open {
            one.attempt = Attempt::Open;
        }
        self.arm(number);
    }

    fn meet(&mut self, number: usize) -> bool {
        self.subscribers[number].has_met = true;
        self.released
    }

    fn legs(&self, number: usize, session: usize) -> Vec<Leg> {
        let one = &self.subscribers[number];
        let user = one.plan.user(one.wave);
        Traffic::legs(&self.sessions[session], user.route, user.prefix)
    }

    fn carry(&mut self, number: usize, session: usize, each: usize) -> bool {
        if self.subscribers[number].stage == 0 {
            let legs = self.legs(number, session);
            self.subscribers[number].stage = 1;
            self.subscribers[number].pending = self.traffic.want(session, &legs, each);
        }
        self.subscribers[number].pending == 0
    }

    /// An IP packet that must not come through.
    fn send_forbidden(&mut self, session: usize, inside: IpAddr, what: &str) -> Vec<u8> {
        let Session { place, number, user, .. } = &self.sessions[session];
        let what = format!("{what}; {user} at {place:?}, session {number:#06x}, source {inside}");
        self.counts.forbidden += 1;
        self.traffic.forbidden(inside, what)
    }

    fn spoof(&mut self, number: usize, session: usize) -> bool {
        // Another one's address, which is in use by and large.
        let other = self.subscribers[number].dice.below(self.sessions.len() as u64) as usize;
        let own = &self.sessions[session];
        let (own4, has_ipv4, place) = (own.address, own.ipcp.is_up(), own.place.clone());
        let others = self.sessions[other].address;
        let foreign4 =
            if others == own4 || others.is_unspecified() { [203, 0, 113, 9].into() } else { others };
        let foreign6 = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x00ba, 0xd, 0, number as u16);
        for foreign in [IpAddr::V4(foreign4), foreign6.into()] {
            let packet = self.send_forbidden(session, foreign, "another's source address");
            self.send_data(session, &packet);
        }
        let mut stranger = Place { mac: place.mac, tags: place.tags.clone() };
        stranger.mac[0] = STRANGER;
        let mut elsewhere = place.clone();
        elsewhere.tags.push((0x8100, 4000));
        self.strange.insert(elsewhere.clone());
        let session_number = self.sessions[session].number;
        let to = self.concentrator;
        if has_ipv4 {
            for (from, what) in [(&stranger, "another station"), (&elsewhere, "other tags")] {
                let packet = self.send_forbidden(session, own4.into(), what);
                let payload = pppoe(0, session_number, &[&ppp::IPV4.to_be_bytes()[..], &packet].concat());
                self.put(from, &to, 0, SESSION, &payload);
            }
        }
        let terminate = ppp::control(ppp::LCP, ppp::TERMINATE_REQUEST, 1, &[]);
        self.put(&stranger, &to, 0, SESSION, &pppoe(0, session_number, &terminate));
        self.counts.control_of_strangers += 1;
        for from in [&stranger, &elsewhere] {
            self.send_padt(session, from);
            self.counts.padt_of_strangers += 1;
        }
        true
    }

    fn echo(&mut self, number: usize, session: usize) -> bool {
        let data = b"as it was, with data behind the magic number";
        if self.subscribers[number].stage == 0 {
            self.subscribers[number].stage = 1;
            let one = &mut self.sessions[session];
            one.echoed = None;
            let packet = one.echo_request(data);
            self.send(session, vec![packet]);
        }
        let echoed = &self.sessions[session].echoed;
        assert!(echoed.as_deref().is_none_or(|echoed| echoed == data), "{echoed:02x?}");
        echoed.is_some()
    }

    fn flap_ipcp(&mut self, number: usize, session: usize) -> bool {
        let now = self.now;
        let one = &mut self.sessions[session];
        match self.subscribers[number].stage {
            0 if !one.ipcp.is_up() || !one.ipv6cp.is_up() => return true,
            0 => {
                let packet = one.ipcp.terminate(now);
                self.send(session, vec![packet]);
                self.subscribers[number].stage = 1;
            }
            1 if !one.ipcp.is_ending => {
                let address = one.address;
                let packet = self.send_forbidden(session, address.into(), "IPCP is down");
                self.send_data(session, &packet);
                let legs = self.legs(number, session);
                self.subscribers[number].stage = 2;
                self.subscribers[number].pending = self.traffic.want(session, &legs, 2);
            }
            2 if self.subscribers[number].pending == 0 => {
                let options = one.ipcp_options();
                let packet = one.ipcp.begin_often(options, now);
                self.send(session, vec![packet]);
                self.subscribers[number].stage = 3;
            }
            3 => return one.ipcp.is_up() && one.is_settled(),
            _ => {}
        }
        false
    }

    fn end_ipv6cp(&mut self, number: usize, session: usize) -> bool {
        let now = self.now;
        let one = &mut self.sessions[session];
        if self.subscribers[number].stage == 1 {
            return !one.ipv6cp.is_ending;
        }
        if !one.ipcp.is_up() || !one.ipv6cp.is_up() {
            return true;
        }
        let packet = one.ipv6cp.terminate(now);
        self.send(session, vec![packet]);
        self.subscribers[number].stage = 1;
        false
    }

    fn lcp_anew(&mut self, number: usize, session: usize) -> bool {
        let now = self.now;
        if self.subscribers[number].stage == 0 {
            let packets = self.sessions[session].start(None, now);
            self.send(session, packets);
            self.subscribers[number].stage = 1;
        }
        self.sessions[session].is_up()
    }

    /// Frames that contradict themselves, and a protocol that has to be rejected.
    fn strange(&mut self, number: usize, session: usize) -> bool {
        let one = &self.sessions[session];
        if self.subscribers[number].stage == 1 {
            return one.protocols_rejected > 0;
        }
        let (place, priority, of, to) = (one.place.clone(), one.priority, one.number, self.concentrator);
        let echo = ppp::control(ppp::LCP, ppp::ECHO_REQUEST, 9, &[0; 4]);
        let mut version = pppoe(0, of, &echo);
        version[0] = 0x21;
        let code = pppoe(0x42, of, &echo);
        let mut length = pppoe(0, of, &echo);
        length[4..6].copy_from_slice(&1400_u16.to_be_bytes());
        for payload in [version, code, length] {
            self.put(&place, &to, priority, SESSION, &payload);
            self.counts.malformed += 1;
        }
        // LCP whose length is more than there is, an option of no length, a code that there is not.
        let mut long = echo;
        long[4..6].copy_from_slice(&1000_u16.to_be_bytes());
        let option = ppp::control(ppp::IPCP, ppp::CONFIGURE_REQUEST, 9, &[3, 0, 1, 2]);
        let unknown = ppp::control(UNKNOWN_PROTOCOL, ppp::CONFIGURE_REQUEST, 9, &[]);
        self.sessions[session].protocols_rejected = 0;
        self.send(session, vec![long, option, unknown]);
        self.subscribers[number].stage = 1;
        false
    }

    fn pause(&mut self, number: usize, time: Duration) -> bool {
        let one = &mut self.subscribers[number];
        if one.stage == 0 {
            (one.stage, one.due) = (1, self.now + time);
        }
        one.due <= self.now
    }

    /// Ends a session as the script says.
    fn end(&mut self, number: usize, session: usize, end: End) {
        let (now, stage) = (self.now, self.subscribers[number].stage);
        let place = self.sessions[session].place.clone();
        let one = &mut self.sessions[session];
        match end {
            End::Padt => {
                self.send_padt(session, &place);
                self.over(number, session, &["padt"]);
            }
            End::Terminate | End::TerminateAndPadt if stage == 0 => {
                // Who comes back at once may be there before the concentrator has done waiting (RFC 1661 section 4.4: Stopping).
                one.causes = if end == End::Terminate { &["ppp", "taken-over"] } else { &["padt"] };
                let packet = one.terminate(now);
                self.send(session, vec![packet]);
                self.subscribers[number].stage = 1;
            }
            // The PADT comes some seconds later, and need not be waited for.
            End::Terminate if one.terminate_acked => self.live_on(number),
            End::TerminateAndPadt if one.terminate_acked => {
                self.send_padt(session, &place);
                self.over(number, session, &["padt"]);
            }
            End::Death => {
                one.standing = Standing::Dead;
                // Who comes back is there before or after it was noticed.
                one.causes =
                    if self.subscribers[number].lives > 1 { &["taken-over", "ppp"] } else { &["ppp"] };
                self.live_on(number);
            }
            End::Move => {
                one.causes = &["taken-over"];
                let subscriber = &mut self.subscribers[number];
                subscriber.moves += 1;
                let place = plan::place(number, subscriber.moves, &mut subscriber.dice);
                self.moves(number, place);
                self.live_on(number);
            }
            End::WrongPassword if stage == 0 => {
                one.causes = &["refused"];
                let packets = one.start(Some("wrong".to_owned()), now);
                self.send(session, packets);
                self.subscribers[number].stage = 1;
            }
            End::Stay => one.causes = &["shut-down"],
            End::Terminate | End::TerminateAndPadt | End::WrongPassword => {}
        }
    }

    /// This end has ended a session.
    fn over(&mut self, number: usize, session: usize, causes: &'static [&'static str]) {
        let one = &mut self.sessions[session];
        (one.standing, one.causes) = (Standing::Over, causes);
        self.live_on(number);
    }
}

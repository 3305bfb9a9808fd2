//! Discovery, as a host has it (RFC 2516 section 5): what is not answered is sent again, later each time (section 8).

use super::session::{Opening, Session};
use super::subscriber::{Attempt, End, Phase, Step};
use super::tester::Tester;
use crate::pppoe_peers::by_hand::discovery::{
    self, AC_COOKIE, AC_NAME, HOST_UNIQ, PADI, PADR, RELAY_SESSION_ID, SERVICE_NAME, Tags, VENDOR_SPECIFIC,
};
use crate::pppoe_peers::by_hand::frame::{BROADCAST, DISCOVERY, pppoe};
use std::time::Duration;

/// Subscribers that are set up at the same time. More have more frames on their way than the concentrator's socket has room for
/// while it gets no processor; what is lost there is nobody's fault, and would have to be looked for in every account.
const AT_ONCE: usize = 1_000;
/// PADR without an answer, after which it is looked for a concentrator again.
const REQUESTS: u32 = 5;

impl Tester {
    /// Sends the packet of discovery that is due.
    pub fn search(&mut self, number: usize) {
        let one = &mut self.subscribers[number];
        if one.phase == Phase::Requesting && one.tries >= REQUESTS {
            (one.phase, one.tries) = (Phase::Initiating, 0);
        }
        if one.phase == Phase::Idle {
            if self.setting_up.len() >= AT_ONCE {
                one.due = self.now + Duration::from_millis(10 + one.dice.below(40));
                return;
            }
            self.setting_up.insert(number);
            (one.phase, one.tries, one.since) = (Phase::Initiating, 0, self.now);
        }
        // Some more than a second, so that not all come again at once.
        let wait = (1_000 + one.dice.below(500)) << one.tries.min(4);
        (one.tries, one.due) = (one.tries + 1, self.now + Duration::from_millis(wait));
        let is_request = one.phase == Phase::Requesting;
        let (place, priority) = (one.place.clone(), one.plan.priority);
        if is_request {
            let (payload, to) = (one.padr.clone(), self.concentrator);
            self.counts.padr += 1;
            self.put(&place, &to, priority, DISCOVERY, &payload);
        } else {
            let payload = pppoe(PADI, 0, &discovery::put(&self.wishes(number)));
            self.put(&place, &BROADCAST, priority, DISCOVERY, &payload);
        }
    }

    /// Tags of both of a host's packets.
    fn wishes(&self, number: usize) -> Tags {
        let plan = &self.subscribers[number].plan;
        let mut tags = vec![(SERVICE_NAME, Vec::new())];
        tags.extend(plan.host_uniq.iter().map(|uniq| (HOST_UNIQ, uniq.clone())));
        tags.extend(plan.relay.iter().map(|relay| (RELAY_SESSION_ID, relay.clone())));
        tags.extend(
            plan.line
                .iter()
                .map(|(circuit, remote)| (VENDOR_SPECIFIC, discovery::line_identification(circuit, remote))),
        );
        tags
    }

    /// What a host sent comes back as it was.
    fn echoed(&self, number: usize, tags: &Tags) -> Result<(), String> {
        let plan = &self.subscribers[number].plan;
        for (kind, own) in [(HOST_UNIQ, &plan.host_uniq), (RELAY_SESSION_ID, &plan.relay)] {
            if discovery::find(tags, kind) != own.as_deref() {
                return Err(format!("tag {kind:#06x} does not come back as it was"));
            }
        }
        Ok(())
    }

    pub fn offered(&mut self, number: usize, tags: &Tags) -> Result<(), String> {
        if self.subscribers[number].phase != Phase::Initiating {
            return Ok(());
        }
        self.echoed(number, tags)?;
        if discovery::find(tags, AC_NAME) != Some(b"rxlane") {
            return Err("another AC-Name".to_owned());
        }
        let cookie = discovery::find(tags, AC_COOKIE).ok_or("no cookie")?.to_vec();
        let mut wishes = self.wishes(number);
        wishes.insert(0, (AC_COOKIE, cookie));
        let one = &mut self.subscribers[number];
        one.padr = pppoe(PADR, 0, &discovery::put(&wishes));
        (one.phase, one.tries) = (Phase::Requesting, 0);
        self.search(number);
        self.arm(number);
        Ok(())
    }

    pub fn confirmed(&mut self, number: usize, session: u16, tags: &Tags) -> Result<(), String> {
        self.echoed(number, tags)?;
        if let Phase::Session(current) = self.subscribers[number].phase {
            // The answer to a PADR that was sent again.
            let is_same = self.sessions[current].number == session;
            return if is_same { Ok(()) } else { Err("another number for the same PADR".to_owned()) };
        }
        if self.subscribers[number].phase != Phase::Requesting {
            return Ok(());
        }
        let now = self.now;
        if let Some(words) = discovery::complaint(tags) {
            if session != 0 || !(words.contains("busy") || words.contains("full")) {
                return Err(format!("refused: {words}"));
            }
            self.counts.turned_away += 1;
            let one = &mut self.subscribers[number];
            let wait = Duration::from_millis(1_000 + one.dice.below(2_000));
            let (attempt, since) = (one.attempt, one.since);
            one.begin_at(now + wait, now);
            (one.attempt, one.since) = (attempt, since);
            self.arm(number);
            return Ok(());
        }
        if session == 0 || session == 0xffff {
            return Err("a number that no session has".to_owned());
        }
        let one = &mut self.subscribers[number];
        let user = one.plan.user(one.wave);
        let (mut name, mut password) = (user.name.clone(), user.password.clone());
        match one.attempt {
            Attempt::WrongPassword => password.push('!'),
            Attempt::UnknownUser => name.push('!'),
            _ => {}
        }
        let session = Session::new(Opening {
            subscriber: number,
            plan: &one.plan,
            place: one.place.clone(),
            number: session,
            user: name,
            password,
            refuses_methods: one.attempt == Attempt::RefusesMethods,
            magic: one.dice.word() as u32,
        });
        let repeats = one.dice.chance(10);
        let session = self.opened(session);
        let one = &mut self.subscribers[number];
        (one.phase, one.since, one.stage) = (Phase::Session(session), now, 0);
        one.script.clear();
        match one.attempt {
            Attempt::Open => one.write_script(),
            Attempt::Leaves => one.script.push_back(Step::End(End::Padt)),
            _ => {}
        }
        if repeats {
            self.padr_again(number);
        }
        if self.subscribers[number].attempt != Attempt::Leaves {
            let packets = self.sessions[session].start(None, now);
            self.send(session, packets);
        }
        self.advance(number);
        self.arm(number);
        Ok(())
    }

    /// Sends the PADR of the session once more.
    pub fn padr_again(&mut self, number: usize) {
        let one = &self.subscribers[number];
        let (place, payload, priority) = (one.place.clone(), one.padr.clone(), one.plan.priority);
        let to = self.concentrator;
        self.counts.padr += 1;
        self.put(&place, &to, priority, DISCOVERY, &payload);
    }
}

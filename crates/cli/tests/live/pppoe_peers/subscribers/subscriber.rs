//! A subscriber: what it does one after the other, as the dice have it.

use super::plan::{Dice, Plan};
use crate::pppoe_peers::by_hand::frame::Place;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Something that a subscriber does while its session is open.
#[derive(Clone, Debug)]
pub enum Step {
    /// Waits until all are there.
    Meet,
    /// So many packets each way from and to each of its addresses.
    Carry(usize),
    /// Packets from addresses that are not its own, from another station, and in other tags; and ends of it that others say.
    Spoof,
    /// An Echo-Request with data.
    Echo,
    /// The PADR that opened the session, once more.
    PadrAgain,
    /// IPCP ends, IPv6 goes on, IPCP comes up again.
    FlapIpcp,
    /// IPV6CP ends, and IPv4 goes on.
    EndIpv6cp,
    /// LCP and everything above it anew.
    LcpAnew,
    /// Frames that break rules, and a protocol that nobody speaks.
    Strange,
    Pause(Duration),
    End(End),
}

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Padt,
    Terminate,
    TerminateAndPadt,
    /// Without a word; and perhaps the same subscriber comes back before it was noticed.
    Death,
    /// The same user connects from elsewhere, while this session is alive.
    Move,
    /// LCP anew, with a wrong password.
    WrongPassword,
    /// It stays until the concentrator ends it.
    Stay,
}

/// What a subscriber wants of its next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To be open.
    Open,
    WrongPassword,
    UnknownUser,
    RefusesMethods,
    /// Ends it by a PADT before LCP is up.
    Leaves,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It begins when [`Subscriber::due`] has come.
    Idle,
    /// A PADI is out, a PADR.
    Initiating,
    Requesting,
    /// There is a session.
    Session(usize),
    Done,
}

#[derive(Debug)]
pub struct Subscriber {
    pub plan: Plan,
    pub dice: Dice,
    /// Where it is now.
    pub place: Place,
    pub phase: Phase,
    pub attempt: Attempt,
    /// 0: the first, 1: the second.
    pub wave: usize,
    pub lives: u64,
    pub moves: u8,
    pub script: VecDeque<Step>,
    /// How far the first step of the script is.
    pub stage: u8,
    /// When something is to be done whatever comes.
    pub due: Instant,
    /// When it came as far as it is.
    pub since: Instant,
    /// How often the packet of discovery was sent that is out, and the PADR's payload.
    pub tries: u32,
    pub padr: Vec<u8>,
    /// Packets of traffic that are on their way or wait.
    pub pending: usize,
    pub has_met: bool,
}

impl Subscriber {
    pub fn new(plan: Plan, mut dice: Dice, now: Instant) -> Subscriber {
        let lives = 1 + dice.below(2);
        let mut subscriber = Subscriber {
            place: plan.place.clone(),
            plan,
            dice,
            phase: Phase::Idle,
            attempt: Attempt::Open,
            wave: 0,
            lives,
            moves: 0,
            script: VecDeque::new(),
            stage: 0,
            due: now,
            since: now,
            tries: 0,
            padr: Vec::new(),
            pending: 0,
            has_met: false,
        };
        subscriber.next_life(now);
        subscriber
    }

    /// Draws what the next session is to be; all come at once the first time.
    pub fn next_life(&mut self, now: Instant) {
        self.attempt = match self.dice.below(100) {
            0..4 => Attempt::WrongPassword,
            4..6 => Attempt::UnknownUser,
            6..8 => Attempt::RefusesMethods,
            8..12 => Attempt::Leaves,
            _ => Attempt::Open,
        };
        let wait = if self.has_met { self.dice.below(400) } else { 0 };
        self.begin_at(now + Duration::from_millis(wait), now);
    }

    pub fn begin_at(&mut self, due: Instant, now: Instant) {
        (self.phase, self.due, self.since, self.stage, self.tries) = (Phase::Idle, due, now, 0, 0);
        self.script.clear();
    }

    /// What it does in a session that is open.
    pub fn write_script(&mut self) {
        if self.wave == 1 {
            self.script.extend([Step::Carry(1), Step::Meet, Step::End(End::Stay)]);
            return;
        }
        if !self.has_met {
            self.script.push_back(Step::Meet);
        }
        self.script.push_back(Step::Carry(1 + self.dice.below(3) as usize));
        let mut has_flapped = false;
        for _ in 0..1 + self.dice.below(3) {
            let both = self.plan.has_ipv4 && self.plan.has_ipv6;
            let step = match self.dice.below(100) {
                0..20 => Step::Spoof,
                20..35 => Step::Echo,
                35..47 => Step::PadrAgain,
                // It takes the restart timer's three seconds, as long as the death of a last session takes to be noticed.
                47..57 if both && !has_flapped && self.lives > 1 => Step::FlapIpcp,
                57..67 if both => Step::EndIpv6cp,
                67..79 => Step::LcpAnew,
                79..90 => Step::Strange,
                _ => Step::Pause(Duration::from_millis(self.dice.below(500))),
            };
            has_flapped |= matches!(step, Step::FlapIpcp);
            self.script.extend([step, Step::Carry(1)]);
        }
        self.script.push_back(Step::End(match self.dice.below(100) {
            0..20 => End::Padt,
            20..35 => End::Terminate,
            35..50 => End::TerminateAndPadt,
            50..75 => End::Death,
            75..92 if self.lives > 1 => End::Move,
            75..92 => End::Death,
            _ => End::WrongPassword,
        }));
    }

    /// The next step.
    pub fn next_step(&mut self, now: Instant) {
        self.script.pop_front();
        (self.stage, self.since) = (0, now);
    }
}

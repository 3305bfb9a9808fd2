//! A negotiation compared with the RFC's table.

use super::*;
use crate::automaton::tests::{STATES, TABLE};
use crate::session::{Action, Config, Host, Role, Timers};
use crate::step::Budget;
use crate::tests::Seeded;

/// Wants option 1, agrees to it, and rejects everything else.
struct Plain;

impl Layer for Plain {
    fn protocol(&self) -> PppProtocol {
        PppProtocol::IPCP
    }

    fn request(&self, options: &mut Vec<u8>) {
        put_option(1, b"x", options);
    }

    fn reset(&mut self, _step: &mut Step<'_>) {}

    fn begin(&mut self) {}

    fn judge(&mut self, option: ConfigurationOption<'_>, _step: &mut Step<'_>) -> Result<Judgement, Failure> {
        Ok(if option.kind == 1 { Judgement::Ack } else { Judgement::Reject })
    }

    fn agreed(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn naked(&mut self, _option: ConfigurationOption<'_>, _step: &mut Step<'_>) -> Result<(), Failure> {
        Ok(())
    }

    fn rejected(&mut self, _kind: u8) -> Result<(), Failure> {
        Ok(())
    }
}

/// Actions and next state of a cell of the RFC's table; `None`: a dash.
fn cell(row: &str, state: usize) -> Option<(Vec<&'static str>, usize)> {
    let line = TABLE.lines().find(|line| line.trim().starts_with(row)).expect("a row");
    let cell = line.split('|').nth(state + 1).expect("a column").trim();
    if cell == "-" {
        return None;
    }
    let (words, next) = cell.rsplit_once('/').unwrap_or(("", cell));
    Some((words.split(',').filter(|word| !word.is_empty()).collect(), next.parse().expect("a state")))
}

const MAX_CONFIGURE: u32 = 4;
const MAX_TERMINATE: u32 = 2;

fn config() -> Config {
    let host = Host { user: vec![], secret: vec![], methods: vec![], ipv4: None, dns: false, ipv6: None };
    let timers = Timers {
        max_configure: MAX_CONFIGURE,
        max_terminate: MAX_TERMINATE,
        max_failure: u32::MAX / 4,
        ..Timers::DEFAULT
    };
    Config { role: Role::Host(host), timers }
}

/// The model of the table: state, restart counter, and whether an answer to the last request is still awaited.
struct Model {
    state: usize,
    left: u32,
    awaited: bool,
}

impl Model {
    /// Takes an event, and gives the codes that are sent and the signal.
    fn take(&mut self, row: &str) -> (Vec<u8>, Option<Signal>) {
        let (mut codes, mut signal) = (Vec::new(), None);
        let Some((words, next)) = cell(row, self.state) else { return (codes, signal) };
        for word in &words {
            match *word {
                "irc" if words.contains(&"str") => self.left = MAX_TERMINATE,
                "irc" => self.left = MAX_CONFIGURE,
                "zrc" => self.left = 0,
                "scr" => {
                    (self.left, self.awaited) = (self.left.saturating_sub(1), true);
                    codes.push(1);
                }
                "str" => {
                    (self.left, self.awaited) = (self.left.saturating_sub(1), false);
                    codes.push(5);
                }
                "sca" => codes.push(2),
                "scn" => codes.push(4),
                "sta" => codes.push(6),
                "scj" => codes.push(7),
                "tlu" => signal = Some(Signal::Up),
                "tld" => signal = Some(Signal::Down),
                "tlf" => signal = Some(Signal::Finished),
                _ => {}
            }
        }
        self.state = next;
        (codes, signal)
    }
}

/// What happens next: an event of the table, unless it is one that the rules about answers drop.
fn happen(
    draw: u32,
    model: &mut Model,
    negotiation: &mut Negotiation,
    step: &mut Step<'_>,
) -> (&'static str, Option<Signal>) {
    let last = negotiation.identifier;
    let layer = &mut Plain;
    if negotiation.deadline.is_some_and(|deadline| step.now >= deadline) {
        let row = if model.left > 0 { "TO+" } else { "TO-" };
        return (row, negotiation.tick(layer, step));
    }
    let administrative =
        [("Up ", Event::Up), ("Down", Event::Down), ("Open", Event::Open), ("Close", Event::Close)];
    let packets: [(&str, u8, &[u8]); 9] = [
        ("RCR+", 1, b"\x01\x03y"),
        ("RCR-", 1, b"\x02\x02"),
        ("RCA", 2, b"\x01\x03x"),
        ("RCN", 3, b"\x01\x03z"),
        ("RTR", 5, b"bye"),
        ("RTA", 6, b""),
        ("RUC", 99, b"?"),
        ("RXJ+", 7, b"\x63\x01\x00\x04"),
        ("RXJ-", 7, b"\x01\x01\x00\x04"),
    ];
    // Administrative events are rare, or nothing else would come far.
    if draw.is_multiple_of(16) {
        let (row, event) = administrative[(draw / 16) as usize % administrative.len()];
        return (row, negotiation.event(layer, event, step));
    }
    let (row, code, data) = packets[(draw / 16) as usize % packets.len()];
    let packet = ControlPacket { code, identifier: last, data };
    let signal = negotiation.receive(layer, packet, step).expect("well formed");
    let answer = matches!(row, "RCA" | "RCN");
    if answer && !std::mem::replace(&mut model.awaited, false) {
        return ("", signal);
    }
    (row, signal)
}

/// A negotiation, driven by packets and time, does what the RFC's table says to the events that they are.
#[test]
fn packets_and_time_move_it_as_the_table_says() {
    let config = config();
    let mut visited = std::collections::HashSet::new();
    for seed in 0..100 {
        let mut random = Seeded::new(seed);
        let mut negotiation = Negotiation::new();
        let mut model = Model { state: 0, left: 0, awaited: false };
        let (mut budget, mut now) = (Budget::default(), Time::ZERO);
        for round in 0..2_000 {
            // Now and then nothing is heard for longer than the restart timer runs.
            let draw = random.below(u32::MAX);
            now += Time::from_millis(if draw.is_multiple_of(7) { 3_000 } else { 100 });
            let (mut actions, state) = (Vec::new(), model.state);
            let mut step = Step {
                now,
                random: &mut |_: &mut [u8]| {},
                actions: &mut actions,
                config: &config,
                budget: &mut budget,
                limit: 1492,
            };
            let (row, signal) = happen(draw >> 3, &mut model, &mut negotiation, &mut step);
            let expected = if row.is_empty() { (Vec::new(), None) } else { model.take(row) };
            let codes: Vec<u8> = actions
                .iter()
                .map(|action| match action {
                    Action::Send(bytes) => bytes[2],
                    other => panic!("{other:?}"),
                })
                .collect();
            let seen = (codes, signal);
            assert_eq!(seen, expected, "seed {seed}, round {round}: {row} in state {state}");
            assert_eq!(negotiation.state(), STATES[model.state], "{row} in state {state}");
            assert_eq!(negotiation.deadline.is_some(), negotiation.state().has_timer());
            visited.insert((row, state));
        }
    }
    // Answers need a request that waits for one, which there is not in every state.
    assert!(visited.len() > 120, "{} cells were visited", visited.len());
}

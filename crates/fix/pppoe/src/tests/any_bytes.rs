//! Any bytes, and packets that are almost right, at any time: no panic, bounded answers, a deadline that is not past.

use super::line::{ALL, End, Line, concentrator, host, of_host, packet, verdict};
use crate::session::Action;
use proptest::prelude::*;
use std::sync::OnceLock;
use std::time::Duration;

/// Every packet of good sessions with each method.
fn corpus() -> &'static [Vec<u8>] {
    static CORPUS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let mut packets = Vec::new();
        for method in ALL {
            let mut line = Line::new(of_host(host(&ALL)), concentrator(&[method]));
            line.start();
            assert!(line.is_up());
            line.ends[0].close();
            line.talk();
            packets.extend(line.trace.into_iter().map(|(_, packet)| packet));
        }
        packets
    })
}

#[derive(Clone, Debug)]
enum Step {
    Bytes(Vec<u8>),
    /// A packet of the corpus, with some bytes changed, cut or lengthened.
    Mutated {
        packet: usize,
        changes: Vec<(usize, u8)>,
        cut: usize,
        more: Vec<u8>,
    },
    Pass(u64),
    Close,
}

fn step() -> impl Strategy<Value = Step> {
    let protocols = prop::sample::select(vec![0xc021_u16, 0xc023, 0xc223, 0x8021, 0x8057, 0x80fd, 0x0021]);
    let control = (protocols, 0..15_u8, any::<u8>(), prop::collection::vec(any::<u8>(), 0..60));
    let changes = prop::collection::vec((0..64_usize, any::<u8>()), 0..3);
    prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..80).prop_map(Step::Bytes),
        3 => control.prop_map(|(protocol, code, identifier, data)| {
            Step::Bytes(packet(protocol, code, identifier, &data))
        }),
        8 => (any::<usize>(), changes, 0..4_usize, prop::collection::vec(any::<u8>(), 0..4)).prop_map(
            |(packet, changes, cut, more)| Step::Mutated { packet, changes, cut, more }
        ),
        3 => (0..8_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Close),
    ]
}

fn play(mut end: End, steps: &[Step]) {
    end.start();
    end.sent();
    let mut closed = false;
    for step in steps {
        let before = end.actions.len();
        let bytes = match step {
            Step::Bytes(bytes) => bytes.clone(),
            Step::Mutated { packet, changes, cut, more } => {
                let mut bytes = corpus()[packet % corpus().len()].clone();
                for (at, value) in changes {
                    let length = bytes.len();
                    bytes[at % length] = *value;
                }
                bytes.truncate(bytes.len() - cut);
                bytes.extend(more);
                bytes
            }
            Step::Pass(milliseconds) => {
                end.pass(end.now + Duration::from_millis(*milliseconds));
                end.sent();
                continue;
            }
            Step::Close => {
                end.close();
                Vec::new()
            }
        };
        end.receive(&bytes);
        for claim in end.claims() {
            end.authenticated(verdict(&claim));
        }
        let sent = end.sent();
        // A layer's coming up sends what the next one begins with: at most four packets.
        assert!(sent.len() <= 4, "{sent:?}");
        assert!(sent.iter().all(|sent| sent.len() <= 1494));
        assert!(end.actions.len() - before <= 8, "{:?}", end.actions);
        if closed {
            assert!(sent.is_empty() && end.actions.len() == before, "nothing follows");
        }
        closed = end.closed().is_some();
        if closed {
            assert!(matches!(end.actions.last(), Some(Action::Closed(_))));
            assert_eq!(end.session.deadline(), None);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_host_survives_any_packets(steps in prop::collection::vec(step(), 1..80), seed in any::<u64>()) {
        play(End::new(of_host(host(&ALL)), seed), &steps);
    }

    #[test]
    fn a_concentrator_survives_any_packets(
        steps in prop::collection::vec(step(), 1..80),
        seed in any::<u64>(),
        method in 0..4_usize,
    ) {
        play(End::new(concentrator(&ALL[method.min(3)..]), seed), &steps);
    }

    /// From the open state on: the packets of a session that was.
    #[test]
    fn an_open_session_survives_any_packets(steps in prop::collection::vec(step(), 1..60), end in 0..2_usize) {
        let line = Line::up(&ALL);
        let end = line.ends.into_iter().nth(end).unwrap();
        play(end, &steps);
    }
}

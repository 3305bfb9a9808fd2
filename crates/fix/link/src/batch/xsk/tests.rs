//! A ring whose places are all taken.

use super::*;
use crate::tests::{framing, line, set_down, with_pair};
use wire::ethernet::MacAddress;

/// Bytes of a frame.
const LENGTH: usize = 60;

/// A burst of frames that nobody takes.
fn burst() -> Frames {
    let mut frames = Frames::new();
    for _ in 0..BURST {
        frames.room()[..LENGTH].fill(2);
        frames.push(LENGTH, 0..0, 1, LENGTH as u32, ());
    }
    frames
}

/// With a socket on one of a pair of interfaces, and the line of a link there.
fn with_socket(test: impl FnOnce(&mut Open, &Line) + Send) {
    with_pair(1500, |[near, _], _| {
        let line = line(framing("q:35", MacAddress([2; 6])), near.mtu);
        let place = Place { interface: near.index, queue: 0, chunk: CHUNKS[0] };
        test(&mut Open::new(place).expect("a socket"), &line);
    });
}

/// How often this thread gave its CPU away meanwhile: once for each pause.
fn waits(work: impl FnOnce()) -> u64 {
    let count = || -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").expect("the thread's status");
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse().ok()).expect("a count")
    };
    let before = count();
    work();
    count() - before
}

#[test]
fn a_burst_that_finds_no_place_waits_once() {
    with_socket(|open, line| {
        open.free.clear();
        let frames = burst();
        let waited = waits(|| assert_eq!(open.send(line, frames.list(), &frames, &[]), Ok(())));
        assert!(
            (1..2 * u64::from(TRIES)).contains(&waited),
            "{waited}, and {BURST} times as often if each frame waited"
        );
        let counted = line.counters.read();
        assert_eq!(counted.drops.get("parent-full"), Some(&u64::from(BURST)), "{counted:?}");
        assert_eq!(counted.sent.frames, 0);
    });
}

#[test]
fn who_waits_for_a_place_asks_for_what_is_in_the_ring() {
    with_socket(|open, line| {
        let frames = burst();
        let first = open.transmit.read(open.transmit.offsets.producer);
        // As a kernel leaves them that takes none for a while.
        for (number, frame) in (0..).zip(frames.list()) {
            let address = open.free.pop().expect("a place");
            open.put(frames.pieces(frame, &[]), address, first + number);
        }
        open.transmit.write(open.transmit.offsets.producer, first + BURST);
        open.free.clear();
        assert_eq!(open.send(line, frames.list(), &frames, &[]), Ok(()));
        let counted = line.counters.read();
        assert!(counted.drops.is_empty(), "{counted:?}");
        assert_eq!(counted.sent.frames, u64::from(BURST));
    });
}

#[test]
fn a_parent_that_is_down_is_waited_for_by_nobody() {
    with_socket(|open, line| {
        open.free.clear();
        set_down("near0");
        let frames = burst();
        let waited = waits(|| assert_eq!(open.send(line, frames.list(), &frames, &[]), Ok(())));
        assert!(waited < u64::from(TRIES), "{waited}");
        assert_eq!(line.counters.read().drops.get("parent-down"), Some(&u64::from(BURST)));
    });
}

#[test]
fn what_is_too_long_differs_from_what_the_parent_refuses() {
    with_socket(|open, line| {
        let mut frames = Frames::new();
        let read = [2; 4096];
        for length in [LENGTH, 1600, 3000] {
            frames.push(0, 0..length, 1, length as u32, ());
        }
        let dropped = |open: &mut Open| {
            assert_eq!(open.send(line, frames.list(), &frames, &read), Ok(()));
            let drops = line.counters.read().drops;
            ["parent-mtu", "xdp-frame"].map(|reason| drops.get(reason).copied().unwrap_or_default())
        };
        assert_eq!(dropped(open), [2, 0]);
        // As after `ip link set near0 mtu 9000`.
        line.parent_mtu.store(9000, Ordering::Relaxed);
        assert_eq!(dropped(open), [2, 1]);
    });
}

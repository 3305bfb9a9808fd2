//! Receiving measured: what a frame costs on each side, at full load and at a steady pace, and how soon it is answered.

use crate::measure::{Cost, Start, pin};
use crate::packet::sending;
use crate::receive::{How, Receiver, Waiting, Way};
use crate::room::{FAR, NEAR, Room, SEGMENTED};
use crate::sys::bpf::Mode;
use crate::transmit::Load;
use anyhow::ensure;
use rustix::net::{SendFlags, send};
use rustix::thread::set_current_timer_slack;
use std::num::NonZeroU64;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// CPUs: one sends, and on a veth pair receives in the kernel; the other takes.
const SENDER: usize = 0;
const TAKER: usize = 1;

const BLOCK: Waiting = Waiting::Block;
const POLL: Waiting = Waiting::Poll;
const SPIN: Waiting = Waiting::Spin;
const ADAPTIVE: Waiting = Waiting::Adaptive(50);
/// Sleeps after every frame, and only where frames come densely.
const PAUSE: Waiting = Waiting::Pause(30, 1);
const DENSE: Waiting = Waiting::Pause(30, 4);
const NATIVE: How = How::Xdp(Mode::Native);
const GENERIC: How = How::Xdp(Mode::Generic);

const fn way(how: How, waiting: Waiting) -> Way {
    Way { how, waiting }
}

/// For the cost in one thread, the reference first.
pub const COST: [Way; 14] = [
    way(How::Recvfrom, BLOCK),
    way(How::Untold(1), POLL),
    way(How::Recvmmsg(1), POLL),
    way(How::Recvmmsg(8), POLL),
    way(How::Untold(32), POLL),
    way(How::Recvmmsg(32), POLL),
    way(How::Recvmmsg(64), POLL),
    way(How::Fanout, POLL),
    way(How::Slots, POLL),
    way(How::Blocks(64 << 10, 1), POLL),
    way(How::Blocks(1 << 20, 1), POLL),
    way(GENERIC, POLL),
    way(NATIVE, POLL),
    way(How::Supers(8), POLL),
];

/// For full load, the reference first.
pub const LOAD: [Way; 24] = [
    way(How::Recvfrom, BLOCK),
    way(How::Nobody, POLL),
    way(How::Recvmmsg(8), POLL),
    way(How::Recvmmsg(32), POLL),
    way(How::Recvmmsg(64), POLL),
    way(How::Recvmmsg(64), ADAPTIVE),
    way(How::Recvmmsg(64), PAUSE),
    way(How::Recvmmsg(64), DENSE),
    way(How::Fanout, POLL),
    way(How::Fanout, DENSE),
    way(How::Slots, POLL),
    way(How::Slots, ADAPTIVE),
    way(How::Slots, PAUSE),
    way(How::Slots, DENSE),
    way(How::Blocks(64 << 10, 1), POLL),
    way(How::Blocks(256 << 10, 1), POLL),
    way(How::Blocks(1 << 20, 1), POLL),
    way(GENERIC, POLL),
    way(GENERIC, DENSE),
    way(NATIVE, POLL),
    way(NATIVE, ADAPTIVE),
    way(NATIVE, PAUSE),
    way(NATIVE, DENSE),
    way(How::Supers(8), POLL),
];

/// For answers and a steady pace, the reference first.
pub const PROMPT: [Way; 21] = [
    way(How::Recvfrom, BLOCK),
    way(How::Recvmmsg(32), BLOCK),
    way(How::Recvmmsg(32), POLL),
    way(How::Recvmmsg(32), ADAPTIVE),
    way(How::Recvmmsg(32), PAUSE),
    way(How::Recvmmsg(32), DENSE),
    way(How::Recvmmsg(32), SPIN),
    way(How::Supers(8), POLL),
    way(How::Slots, POLL),
    way(How::Slots, ADAPTIVE),
    way(How::Slots, PAUSE),
    way(How::Slots, DENSE),
    way(How::Slots, SPIN),
    way(How::Blocks(64 << 10, 1), POLL),
    way(How::Blocks(64 << 10, 8), POLL),
    way(GENERIC, POLL),
    way(NATIVE, POLL),
    way(NATIVE, ADAPTIVE),
    way(NATIVE, PAUSE),
    way(NATIVE, DENSE),
    way(NATIVE, SPIN),
];

/// Whether every way takes the very frames that are sent. The kernel takes the outer tag off before packet sockets see a
/// frame, and tells it beside (PACKET_AUXDATA, `tp_vlan_tci`).
pub fn check(room: &Room) -> anyhow::Result<()> {
    let (near, far) = (room.near.index(NEAR)?, room.far.index(FAR)?);
    for way in COST.iter().filter(|way| !matches!(way.how, How::Supers(_))) {
        let mut receiver = room.far.inside(|| Receiver::open(far, way))?;
        let mut load = Load::new(near, crate::transmit::LARGE, false)?;
        let mut expected = load.frames().to_vec();
        if !matches!(way.how, How::Xdp(_)) {
            expected.iter_mut().for_each(|frame| drop(frame.drain(12..16)));
        }
        let sent = load.send()?;
        let (mut right, mut taken) = (0, 0);
        let start = Instant::now();
        while taken < sent && start.elapsed() < Duration::from_secs(1) {
            taken += receiver.take(|frame| right += u64::from(expected.iter().any(|one| one == frame)))?;
            if taken < sent {
                receiver.idle()?;
            }
        }
        ensure!(
            (taken, right) == (sent, sent),
            "{}: {taken} of {sent} frames, {right} of them as sent",
            way.name()
        );
    }
    Ok(())
}

/// Cost of a frame where one thread sends 256 and then takes them, so that nothing is lost and nobody is woken: sending
/// and delivering, taking, and, burst by burst in turn, sending as many onto the other pair, where nobody listens.
pub fn in_turn(room: &Room, way: &Way, payload: usize, time: Duration) -> anyhow::Result<[Cost; 3]> {
    let interface = room.far.index(FAR)?;
    let mut receiver = room.far.inside(|| Receiver::open(interface, way))?;
    let supers = matches!(way.how, How::Supers(_));
    let mut load = Load::new(room.near.index(NEAR)?, payload, supers)?;
    let mut nobody = Load::new(room.near.index(SEGMENTED)?, payload, supers)?;
    let mut costs = [Cost::default(); 3];
    let begin = Start::now();
    for burst in 0.. {
        if begin.elapsed() > time {
            break;
        }
        let turn = burst_of_three(&mut receiver, &mut load, &mut nobody)?;
        // The first one finds everything cold.
        if burst > 0 {
            costs.iter_mut().zip(turn).for_each(|(cost, turn)| cost.add(turn));
        }
    }
    Ok(costs)
}

fn burst_of_three(receiver: &mut Receiver, load: &mut Load, nobody: &mut Load) -> anyhow::Result<[Cost; 3]> {
    let sending = |load: &mut Load| {
        let start = Start::now();
        let sent = (0..4).try_fold(0, |sent, _| anyhow::Ok(sent + load.send()?))?;
        anyhow::Ok(start.cost(sent, 0))
    };
    let put = sending(load)?;
    let start = Start::now();
    let mut taken = 0;
    while taken < put.frames {
        match receiver.take(|_| {})? {
            0 if !receiver.idle()? && start.elapsed() > Duration::from_millis(100) => break,
            count => taken += count,
        }
    }
    let take = start.cost(taken, put.frames.saturating_sub(taken));
    Ok([put, take, sending(nobody)?])
}

/// Full load: one thread sends as fast as it can, another takes. What each of them spent.
pub fn full_load(room: &Room, way: &Way, payload: usize, time: Duration) -> anyhow::Result<[Cost; 2]> {
    let near = room.near.index(NEAR)?;
    let supers = matches!(way.how, How::Supers(_));
    with_taker(
        room,
        way,
        |_| {},
        |done| {
            let mut load = Load::new(near, payload, supers)?;
            let start = Start::now();
            let mut sent = 0;
            while start.elapsed() < time {
                sent += load.send()?;
            }
            let cost = start.cost(sent, 0);
            done();
            Ok(cost)
        },
    )
    .map(|(sender, mut taker)| {
        taker.lost = sender.frames.saturating_sub(taker.frames);
        taker.wall = sender.wall;
        [sender, taker]
    })
}

/// Runs `work` beside a taker, which ends after it; gives its answer and what the taker spent until `work` calls what it
/// is given: closing a packet socket takes long.
fn with_taker<T>(
    room: &Room,
    way: &Way,
    look: impl FnMut(&[u8]) + Send,
    work: impl FnOnce(&dyn Fn()) -> anyhow::Result<T>,
) -> anyhow::Result<(T, Cost)> {
    let interface = room.far.index(FAR)?;
    let (stop, opened) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let taker = scope.spawn(|| -> anyhow::Result<Cost> {
            let open = || {
                room.far.enter()?;
                pin(TAKER)?;
                // Sleeps end when they should, and not up to 50 µs later.
                set_current_timer_slack(NonZeroU64::new(1))?;
                Receiver::open(interface, way)
            };
            let receiver = open();
            opened.store(true, Ordering::Release);
            receiver?.run(|| stop.load(Ordering::Relaxed), look)
        });
        while !opened.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(200));
        }
        pin(SENDER)?;
        let done = || stop.store(true, Ordering::Relaxed);
        let answer = work(&done);
        done();
        let cost = taker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((answer?, cost))
    })
}

/// Nanoseconds since `start`.
fn nanoseconds(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// One small frame every `gap`: nanoseconds from before it is sent until the taker has it, and what the taker spent.
pub fn paced(room: &Room, way: &Way, gap: Duration, time: Duration) -> anyhow::Result<(Vec<f64>, Cost)> {
    let near = room.near.index(NEAR)?;
    let begin = Instant::now();
    let mut delays = Vec::with_capacity((time.as_nanos() / gap.as_nanos()) as usize + 64);
    let look = |frame: &[u8]| {
        if let Some(sent) = frame.last_chunk::<8>() {
            delays.push(nanoseconds(begin).saturating_sub(u64::from_ne_bytes(*sent)) as f64);
        }
    };
    let (sent, mut cost) = with_taker(room, way, look, |done| {
        let socket = sending(near, true)?;
        let mut frame = crate::frame::headers(crate::frame::PPPOE, 8, 1024)?;
        let headers = frame.len();
        let start = Instant::now();
        let mut sent = 0;
        while start.elapsed() < time {
            while start.elapsed() < gap * sent {
                std::hint::spin_loop();
            }
            frame.truncate(headers);
            frame.extend(nanoseconds(begin).to_ne_bytes());
            send(&socket, &frame, SendFlags::empty())?;
            sent += 1;
        }
        done();
        Ok(u64::from(sent))
    })?;
    cost.lost = sent.saturating_sub(cost.frames);
    Ok((delays, cost))
}

/// One small frame there and, by sendto, back, again and again: nanoseconds of each round trip. The asker spins.
pub fn answers(room: &Room, way: &Way, time: Duration) -> anyhow::Result<Vec<f64>> {
    let (near, far) = (room.near.index(NEAR)?, room.far.index(FAR)?);
    let back = room.far.inside(|| Ok(sending(far, true)?))?;
    let answered = AtomicU64::new(0);
    let echo = |frame: &[u8]| {
        let _ = send(back.as_fd(), frame, SendFlags::empty());
        answered.fetch_add(1, Ordering::Relaxed);
    };
    let (trips, _) = with_taker(room, way, echo, |_| {
        let frame = crate::frame::headers(crate::frame::PPPOE, 0, 1024)?;
        let socket = sending(near, true)?;
        let spin = Way { how: How::Recvmmsg(1), waiting: Waiting::Spin };
        let mut receiver = Receiver::open(near, &spin)?;
        let begin = Instant::now();
        let mut trips = Vec::with_capacity(20_000);
        while begin.elapsed() < time && trips.len() < trips.capacity() {
            let start = Instant::now();
            send(&socket, &frame, SendFlags::empty())?;
            while receiver.take(|_| {})? == 0 {
                ensure!(start.elapsed() < Duration::from_secs(1), "{}: no answer in a second", way.name());
            }
            trips.push(start.elapsed().as_nanos() as f64);
        }
        Ok(trips)
    })?;
    Ok(trips)
}

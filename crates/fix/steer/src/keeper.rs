//! The daemon of an attachment: it counts what was lost, moves buckets where it may, and serves metrics.
//!
//! Steering works without it. It ends on request, or when the programs are no longer on the interface, and
//! leaves the buckets where they are.
//!
//! # Deliberately not here
//!
//! Who keeps which attachment ([`crate::record`]), notifying the service manager (`service::notify`), and printing: the
//! caller does so with the [`Progress`] it is given.

mod cpus;

pub use cpus::Cpus;

use crate::metrics::Steering;
use crate::rebalance::{Balancer, Move, Orders, Reading, Setup};
use service::event_loop::ready;
use service::metrics::{Page, Server};
use service::namespace::Names;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use xdp::layout::{BUCKETS, Bucket};
use xdp::{Attachment, Counters, Mode};

/// What is kept: an attachment, or a test's stand-in for one.
pub trait Steered {
    fn counters(&mut self) -> Result<Counters, xdp::Error>;

    /// What was ordered so far.
    fn buckets(&mut self) -> Result<Box<[Bucket; BUCKETS]>, xdp::Error>;

    /// Orders the CPU of a bucket, and says what is known to be lost of it.
    fn set_bucket(&mut self, bucket: usize, value: Bucket) -> Result<(), xdp::Error>;

    /// How the program is run now.
    ///
    /// # Errors
    ///
    /// [`xdp::Error::NoInterface`] and [`xdp::Error::Damaged`]: it is no longer on the interface.
    fn mode(&mut self) -> Result<Mode, xdp::Error>;

    /// Whether its programs can move buckets at all.
    fn can_move(&self) -> bool {
        true
    }
}

impl Steered for Attachment {
    fn counters(&mut self) -> Result<Counters, xdp::Error> {
        self.counts()
    }

    fn buckets(&mut self) -> Result<Box<[Bucket; BUCKETS]>, xdp::Error> {
        Attachment::buckets(self)
    }

    fn set_bucket(&mut self, bucket: usize, value: Bucket) -> Result<(), xdp::Error> {
        Attachment::set_bucket(self, bucket, value)
    }

    fn mode(&mut self) -> Result<Mode, xdp::Error> {
        Attachment::mode(self)
    }

    /// The programs for kernels without frames of several buffers (before 5.18) cannot read what other CPUs counted.
    fn can_move(&self) -> bool {
        self.frags()
    }
}

#[derive(Debug)]
pub struct Keeping {
    pub interface: String,
    pub setup: Setup,
    /// Where metrics are served; made by [`Server::bind`] so that an address in use is known before anything
    /// is attached.
    pub metrics: Option<Server>,
    pub cpus: Cpus,
    /// The names of its network namespace: this process would keep it alive when it is deleted.
    pub names: Names,
}

/// How things stand, reported whenever something changed, and at the first reading.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub moves: u64,
    /// Frames found lost in full queues since the keeper began.
    pub dropped: u64,
    /// The busiest CPU's load over the mean.
    pub imbalance: Option<f64>,
    /// How the load lies, in a sentence without a full stop.
    pub state: String,
    pub moved: Vec<Move>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Requested,
    /// The programs are no longer on the interface; the sentence says what was seen.
    TakenAway(String),
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Counters or buckets cannot be read or written, several times in a row.
    #[error("steering goes on, but its counters cannot be used: {0}")]
    Counters(#[from] xdp::Error),
    #[error("cannot wait for signals: {0}")]
    Wait(io::Error),
}

/// Readings may take this part of the time at most.
const READING_SHARE: u32 = 20;

/// Failures in a row after which it is given up.
const FAILURES: u32 = 3;

/// Between a failure and the next try.
const AGAIN: Duration = Duration::from_millis(300);

/// Keeps it until `stop` becomes readable, or the programs are taken away.
pub fn keep(
    steered: &mut impl Steered,
    keeping: Keeping,
    stop: BorrowedFd<'_>,
    report: &mut dyn FnMut(&Progress),
) -> Result<Ended, Error> {
    let Keeping { interface, mut setup, metrics, cpus, names } = keeping;
    let is_stuck = setup.may_move && !steered.can_move();
    setup.may_move &= !is_stuck;
    let mut keeper =
        Keeper { interface, balancer: Balancer::new(setup), is_stuck, cpus, moves: 0, last: None };
    let mut failures = 0;
    loop {
        if names.are_removed() {
            return Ok(Ended::TakenAway("its network namespace was deleted".to_owned()));
        }
        let began = Instant::now();
        let pause = match keeper.read(steered, metrics.as_ref(), report) {
            Ok(Seen::Orders(pause)) => {
                failures = 0;
                pause
            }
            Ok(Seen::TakenAway(what)) => return Ok(Ended::TakenAway(what)),
            Err(error) => {
                failures += 1;
                if failures == FAILURES {
                    return Err(error.into());
                }
                AGAIN
            }
        };
        let spent = began.elapsed();
        let pause = pause.saturating_sub(spent).max(spent * (READING_SHARE - 1));
        let until = Instant::now() + pause;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let [is_requested] = ready([Some(stop)], Some(left)).map_err(Error::Wait)?;
            if is_requested {
                return Ok(Ended::Requested);
            }
            if left.is_zero() {
                break;
            }
        }
    }
}

enum Seen {
    Orders(Duration),
    TakenAway(String),
}

struct Keeper {
    interface: String,
    balancer: Balancer,
    /// Buckets should move, and the programs cannot do it.
    is_stuck: bool,
    cpus: Cpus,
    moves: u64,
    last: Option<Progress>,
}

impl Keeper {
    fn read(
        &mut self,
        steered: &mut impl Steered,
        metrics: Option<&Server>,
        report: &mut dyn FnMut(&Progress),
    ) -> Result<Seen, xdp::Error> {
        let mode = match steered.mode() {
            Ok(mode) => mode,
            Err(error @ (xdp::Error::NoInterface { .. } | xdp::Error::Damaged { .. })) => {
                return Ok(Seen::TakenAway(error.to_string()));
            }
            Err(error) => return Err(error),
        };
        let buckets = steered.buckets()?;
        let counters = steered.counters()?;
        let mut reading = Reading { counters, buckets, conditions: self.cpus.conditions() };
        let orders = self.balancer.observe(&reading);
        carry_out(steered, &orders, &mut reading)?;
        self.moves += orders.moves.len() as u64;
        self.report(&orders, report);
        if let Some(server) = metrics {
            let (counters, dropped) = (&reading.counters, self.balancer.dropped());
            let steering = Steering {
                moves: self.moves,
                waiting: self.balancer.waiting().count(),
                imbalance: orders.imbalance,
                ..Steering::counted(&self.interface, mode, counters, dropped, &reading.buckets)
            };
            let mut page = Page::new();
            steering.add_to(&mut page);
            server.serve(page);
        }
        Ok(Seen::Orders(orders.next.saturating_sub(reading.at())))
    }

    fn report(&mut self, orders: &Orders, report: &mut dyn FnMut(&Progress)) {
        let mut state = orders.state.to_string();
        if self.is_stuck {
            state += "; buckets keep their CPU, since moving them takes Linux 5.19";
        }
        let progress = Progress {
            moves: self.moves,
            dropped: self.balancer.dropped().values().sum(),
            imbalance: orders.imbalance,
            state,
            moved: orders.moves.clone(),
        };
        if self.last.as_ref() != Some(&progress) {
            report(&progress);
            self.last = Some(Progress { moved: Vec::new(), ..progress });
        }
    }
}

fn carry_out(steered: &mut impl Steered, orders: &Orders, reading: &mut Reading) -> Result<(), xdp::Error> {
    for lost in &orders.lost {
        let value = Bucket { lost: lost.lost, ..reading.buckets[lost.bucket] };
        steered.set_bucket(lost.bucket, value)?;
        reading.buckets[lost.bucket] = value;
    }
    for moved in &orders.moves {
        let value = Bucket { cpu: moved.to, ..reading.buckets[moved.bucket] };
        steered.set_bucket(moved.bucket, value)?;
        reading.buckets[moved.bucket] = value;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rebalance::Limits;
    use crate::weights;
    use rustix::process::{Signal, getpid, kill_process};
    use service::metrics::Address;
    use service::signals::{HangUp, end_requests};
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::thread;
    use xdp::{Receiver, Target};

    /// Two CPUs of which the first gets everything, at 100,000 frames a second, until `ends` readings were taken.
    struct Stand {
        began: Instant,
        buckets: Box<[Bucket; BUCKETS]>,
        readings: u32,
        ends: u32,
        failures: std::ops::Range<u32>,
        is_old: bool,
    }

    fn stand(ends: u32) -> Stand {
        let bucket = |number| Bucket { cpu: u32::from(number == 0), ..Bucket::default() };
        let buckets = Box::new(std::array::from_fn(bucket));
        Stand { began: Instant::now(), buckets, readings: 0, ends, failures: 0..0, is_old: false }
    }

    impl Steered for Stand {
        fn counters(&mut self) -> Result<Counters, xdp::Error> {
            self.readings += 1;
            if self.failures.contains(&self.readings) {
                return Err(xdp::Error::Plan("no counters".to_owned()));
            }
            let time = self.began.elapsed();
            let frames = (time.as_secs_f64() * 100_000.0 / BUCKETS as f64) as u64;
            let of = |cpu: u32| {
                let arrived = |bucket: usize| if self.buckets[bucket].cpu == cpu { frames } else { 0 };
                Box::new(std::array::from_fn(arrived))
            };
            let target =
                |cpu| Target { cpu, sent: of(cpu).iter().sum(), arrived: of(cpu), strange: 0, kept: 0 };
            let (sent, kept) = (Box::new([frames; BUCKETS]), Box::new([0; BUCKETS]));
            let current = Box::new(std::array::from_fn(|bucket| self.buckets[bucket].cpu));
            Ok(Counters {
                taken_ns: time.as_nanos() as u64,
                reasons: Default::default(),
                sent: sent.clone(),
                arrived: sent.clone(),
                kept: kept.clone(),
                targets: vec![target(0), target(1)],
                receivers: vec![Receiver { cpu: 9, reasons: Default::default(), sent, kept, current }],
            })
        }

        fn buckets(&mut self) -> Result<Box<[Bucket; BUCKETS]>, xdp::Error> {
            Ok(self.buckets.clone())
        }

        fn set_bucket(&mut self, bucket: usize, value: Bucket) -> Result<(), xdp::Error> {
            self.buckets[bucket] = value;
            Ok(())
        }

        fn mode(&mut self) -> Result<Mode, xdp::Error> {
            match self.readings >= self.ends {
                true => Err(xdp::Error::NoInterface { name: "wan0".to_owned() }),
                false => Ok(Mode::Native),
            }
        }

        fn can_move(&self) -> bool {
            !self.is_old
        }
    }

    fn keeping(folder: &tempfile::TempDir, may_move: bool) -> Keeping {
        let interval = Duration::from_millis(20);
        let limits = Limits { interval, ..Limits::DEFAULT };
        let hold = Duration::from_millis(1);
        let setup = Setup { weights: weights::even(&[0, 1]), queue_size: 64, hold, may_move, limits };
        let cpus = Cpus::below(folder.path());
        Keeping { interface: "wan0".to_owned(), setup, metrics: None, cpus, names: Names::default() }
    }

    #[test]
    fn buckets_are_moved_until_the_load_is_even_and_the_end_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut stand, mut reports) = (stand(60), Vec::new());
        let (stop, _ask) = UnixStream::pair().expect("a pair");
        let ended = keep(&mut stand, keeping(&folder, true), stop.as_fd(), &mut |progress| {
            reports.push(progress.clone())
        });
        let Ok(Ended::TakenAway(what)) = ended else { panic!("{ended:?}") };
        assert!(what.contains("wan0"), "{what}");
        let moved = stand.buckets.iter().filter(|bucket| bucket.cpu == 1).count();
        assert!((100..=140).contains(&moved), "{moved} of 256 buckets on CPU 1");
        let last = reports.last().expect("a report");
        assert_eq!((last.moves as usize, last.dropped), (moved - 1, 0));
        let ordered: usize = reports.iter().map(|progress| progress.moved.len()).sum();
        assert_eq!(ordered, moved - 1);
    }

    #[test]
    fn nothing_moves_where_nothing_may_or_the_programs_cannot() {
        let folder = tempfile::tempdir().expect("a folder");
        let stuck = "the load is uneven; buckets keep their CPU, since moving them takes Linux 5.19";
        for (is_old, may_move, state) in [(false, false, "the load is uneven"), (true, true, stuck)] {
            let (stop, _ask) = UnixStream::pair().expect("a pair");
            let (mut stand, mut last) = (Stand { is_old, ..stand(20) }, None);
            let report = &mut |progress: &Progress| last = Some((progress.moves, progress.state.clone()));
            keep(&mut stand, keeping(&folder, may_move), stop.as_fd(), report).expect("kept");
            assert_eq!(last, Some((0, state.to_owned())));
        }
    }

    #[test]
    fn who_asks_is_heard_and_metrics_are_served_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::bind(&Address::Ip(([127, 0, 0, 1], 0).into())).expect("a port");
        let Address::Ip(address) = *server.address() else { panic!("no address") };
        let keeping = Keeping { metrics: Some(server), ..keeping(&folder, true) };
        let (stop, mut asker) = UnixStream::pair().expect("a pair");
        let ask = thread::spawn(move || {
            let until = Instant::now() + Duration::from_secs(10);
            loop {
                let mut page = String::new();
                let mut client = TcpStream::connect(address).expect("connected");
                client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
                client.read_to_string(&mut page).expect("answered");
                if page.contains("imbalance_ratio") || Instant::now() > until {
                    asker.write_all(&[0]).expect("stopped");
                    return page;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let ended = keep(&mut stand(u32::MAX), keeping, stop.as_fd(), &mut |_| ());
        let page = ask.join().expect("a page");
        assert!(matches!(ended, Ok(Ended::Requested)), "{ended:?}");
        assert!(page.contains("rxlane_steer_info{interface=\"wan0\",mode=\"native\"} 1"), "{page}");
    }

    #[test]
    fn counters_that_fail_for_a_while_are_read_again_and_for_longer_end_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (stop, _ask) = UnixStream::pair().expect("a pair");
        let mut shortly = Stand { failures: 2..4, ..stand(10) };
        let ended = keep(&mut shortly, keeping(&folder, true), stop.as_fd(), &mut |_| ());
        assert!(matches!(ended, Ok(Ended::TakenAway(_))), "{ended:?}");
        let mut longer = Stand { failures: 2..5, ..stand(10) };
        let ended = keep(&mut longer, keeping(&folder, true), stop.as_fd(), &mut |_| ());
        assert!(matches!(ended, Err(Error::Counters(_))), "{ended:?}");
    }

    #[test]
    fn a_signal_ends_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (stop, _ask) = end_requests(HangUp::Other).expect("handlers");
        kill_process(getpid(), Signal::TERM).expect("raised");
        let ended = keep(&mut stand(u32::MAX), keeping(&folder, true), stop.as_fd(), &mut |_| ());
        assert!(matches!(ended, Ok(Ended::Requested)), "{ended:?}");
    }
}

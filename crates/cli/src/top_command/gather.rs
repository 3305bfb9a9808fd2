//! The threads behind the screen: one samples the machine at each interval, one takes short looks at the traffic.

use super::fastpath::FastpathRows;
use super::model::{self, IpCounts, Material};
use super::steering::{self, Readings};
use super::traffic::{Sampling, Tally, Windows};
use anyhow::Context;
use capture::Capture;
use host::Snapshot;
use host::live::{self, Counters};
use host::sample::{self, Limits};
use host::setting::InterfaceName;
use host::text::Reader;
use service::StateDir;
use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};
use steer::record::Records;
use steer::status::Status;

/// The first rates come after this time, whatever the interval: nobody likes to look at an empty screen.
const FIRST: Duration = Duration::from_millis(500);
/// Settings are read anew after this time: vectors and queues can change, and seldom do.
const SETTINGS: Duration = Duration::from_secs(10);
/// Looks at the traffic in an interval: frames come in bursts, and one look may see a single one.
const LOOKS: u32 = 4;
/// No two looks begin within less time.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// Most frames of one look, and its longest time. While it lasts, the kernel copies every frame that the interface
/// receives to this process, up to the socket's buffer; so it is short.
const SAMPLE: Limits = Limits { duration: Duration::from_millis(25), frames: 250, bytes: 1 << 18, snap: 128 };
/// What findings would call the text; nothing is quoted here.
const NAME: &str = "this machine";

/// What a thread reports.
#[derive(Debug)]
pub enum Event {
    Machine(Box<Material>),
    Traffic(Sampling),
    /// There will be nothing more.
    Ended(anyhow::Error),
}

/// What the screen has the threads do; dropping the sender ends them.
#[derive(Clone, Copy, Debug)]
enum Order {
    Interval(Duration),
    Pause(bool),
}

pub struct Gatherer {
    pub events: Receiver<Event>,
    machine: Sender<Order>,
    traffic: Option<Sender<Order>>,
}

impl Gatherer {
    /// Starts them. The interface must exist now.
    pub fn start(
        interface: &str,
        interval: Duration,
        first: Option<Duration>,
        with_sample: bool,
        state: StateDir,
    ) -> anyhow::Result<Gatherer> {
        let (events_in, events) = channel();
        let (machine_orders, orders) = channel();
        let (opened_in, opened) = channel();
        let to_screen = events_in.clone();
        let first = first.unwrap_or(FIRST).min(interval);
        let name = interface.to_owned();
        // The descriptors and buffers of a reader belong to its thread.
        thread::spawn(move || {
            let _last_word = LastWord(&to_screen);
            let mut machine = match Machine::open(&name, state) {
                Ok(machine) => machine,
                Err(error) => return drop(opened_in.send(Err(error))),
            };
            if opened_in.send(Ok(machine.device.clone())).is_ok()
                && let Err(error) = machine.rounds(&to_screen, &orders, first, interval)
            {
                // The screen may be closed as well.
                let _ = to_screen.send(Event::Ended(error));
            }
        });
        let device = opened.recv().context("the thread that samples has ended")??;
        let device: InterfaceName = device.parse().with_context(|| format!("`{device}`"))?;
        let traffic = with_sample.then(|| {
            let (traffic_orders, orders) = channel();
            thread::spawn(move || {
                let _last_word = LastWord(&events_in);
                look(&device, &events_in, &orders, interval);
            });
            traffic_orders
        });
        Ok(Gatherer { events, machine: machine_orders, traffic })
    }

    pub fn set_interval(&self, interval: Duration) {
        self.order(Order::Interval(interval));
    }

    pub fn pause(&self, is_paused: bool) {
        self.order(Order::Pause(is_paused));
    }

    /// A thread that has ended needs no orders; its last event says why it did.
    fn order(&self, order: Order) {
        for orders in [Some(&self.machine), self.traffic.as_ref()].into_iter().flatten() {
            let _ = orders.send(order);
        }
    }
}

/// Reports that a thread has failed; the screen would wait for ever else.
struct LastWord<'a>(&'a Sender<Event>);

impl Drop for LastWord<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = self.0.send(Event::Ended(anyhow::anyhow!("the thread that samples has failed")));
        }
    }
}

struct Pace {
    interval: Duration,
    /// Times in an interval.
    parts: u32,
    is_paused: bool,
}

/// Why waiting ended.
#[derive(PartialEq, Eq)]
enum Woken {
    Due,
    /// It stood still meanwhile, and goes on.
    Resumed,
    /// The screen has ended.
    Disconnected,
}

impl Pace {
    /// Waits until a part of an interval has passed since `from`, or longer while paused.
    fn wait(&mut self, orders: &Receiver<Order>, from: Instant) -> Woken {
        loop {
            let part = match self.parts {
                1 => self.interval,
                parts => (self.interval / parts).max(BETWEEN_LOOKS),
            };
            let left = part.saturating_sub(from.elapsed());
            if left.is_zero() && !self.is_paused {
                return Woken::Due;
            }
            let left = if self.is_paused { Duration::MAX } else { left };
            match orders.recv_timeout(left) {
                Ok(Order::Interval(interval)) => self.interval = interval,
                Ok(Order::Pause(true)) => self.is_paused = true,
                Ok(Order::Pause(false)) => {
                    self.is_paused = false;
                    return Woken::Resumed;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Woken::Disconnected,
            }
        }
    }
}

struct Counted {
    text: Vec<u8>,
    ip: Option<IpCounts>,
    fastpath: Option<fastpath::status::Status>,
    steering: Result<Status, String>,
    at: Instant,
}

/// The machine, read again and again.
struct Machine {
    interface: String,
    device: String,
    counters: Counters,
    settings: Vec<u8>,
    settings_at: Instant,
    records: Records,
    state: StateDir,
}

impl Machine {
    fn open(interface: &str, state: StateDir) -> anyhow::Result<Machine> {
        let records = Records::new(state.path());
        let counters = Counters::open(interface)?;
        let (interface, device) = (interface.to_owned(), interface.to_owned());
        let (settings, settings_at) = (Vec::new(), Instant::now());
        let mut machine = Machine { interface, device, counters, settings, settings_at, records, state };
        machine.read_settings()?;
        Ok(machine)
    }

    /// Reads settings, finds the device below the interface, and which vectors are its own.
    fn read_settings(&mut self) -> anyhow::Result<()> {
        self.counters.set_vectors(None);
        // A VLAN or PPP interface has nothing of its own: the second round is for the device below.
        let mut snapshot = self.settings_once()?;
        let device = model::device(&snapshot, &self.interface).to_owned();
        if device != self.device {
            self.device = device;
            self.counters.set_device(&self.device);
            snapshot = self.settings_once()?;
        }
        if snapshot.interface(&self.interface).is_none() {
            anyhow::bail!(
                "`{}`: an interface of that name cannot be shown, since no command could name it",
                self.interface
            );
        }
        let vectors: BTreeSet<String> =
            snapshot.interrupts_of(&self.device).map(|interrupt| interrupt.vector.clone()).collect();
        self.counters.set_vectors(Some(vectors));
        self.settings_at = Instant::now();
        Ok(())
    }

    fn settings_once(&mut self) -> anyhow::Result<Snapshot> {
        self.settings.clear();
        self.counters.settings(&mut self.settings)?;
        let mut sample = Vec::new();
        self.counters.sample(1, &mut sample)?;
        read([self.settings.as_slice(), &sample])
    }

    fn rounds(
        &mut self,
        events: &Sender<Event>,
        orders: &Receiver<Order>,
        first: Duration,
        interval: Duration,
    ) -> anyhow::Result<()> {
        let mut pace = Pace { interval, parts: 1, is_paused: false };
        let mut former = self.count(1)?;
        thread::sleep(first);
        loop {
            let mut latest = self.count(2)?;
            if let (Ok(latest), Ok(former)) = (&mut latest.steering, &former.steering) {
                steering::keep_certain(latest, former);
            }
            if events.send(Event::Machine(Box::new(self.material(&former, &latest)?))).is_err() {
                return Ok(());
            }
            former = latest;
            if self.settings_at.elapsed() > SETTINGS {
                let device = self.device.clone();
                self.read_settings()?;
                if device != self.device {
                    former = self.count(1)?;
                }
            }
            loop {
                match pace.wait(orders, former.at) {
                    Woken::Due => break,
                    // Rates over the whole pause would say nothing of now.
                    Woken::Resumed => former = self.count(1)?,
                    Woken::Disconnected => return Ok(()),
                }
            }
        }
    }

    fn count(&mut self, number: u32) -> anyhow::Result<Counted> {
        let at = Instant::now();
        let mut text = Vec::new();
        self.counters.sample(number, &mut text)?;
        let file = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).ok();
        let ip = file("snmp").and_then(|snmp| IpCounts::read(&snmp, file("snmp6").as_deref()));
        let steering = steering::read(&self.device, &self.records);
        let fastpath = super::fastpath::read(&self.device, &self.state);
        Ok(Counted { text, ip, fastpath, steering, at })
    }

    fn material(&self, former: &Counted, latest: &Counted) -> anyhow::Result<Material> {
        let snapshot = read([self.settings.as_slice(), &former.text, &latest.text])?;
        let steering = Readings {
            former: former.steering.clone().ok(),
            latest: latest.steering.clone(),
            between: latest.at.saturating_duration_since(former.at),
        };
        let between = latest.at.saturating_duration_since(former.at);
        Ok(Material {
            interface: self.interface.clone(),
            snapshot,
            fastpath: FastpathRows::between(former.fastpath.as_ref(), latest.fastpath.as_ref(), between),
            ip: [former.ip, latest.ip],
            steering,
            left_out: self.counters.left_out(),
        })
    }
}

fn read<'t>(texts: impl IntoIterator<Item = &'t [u8]>) -> anyhow::Result<Snapshot> {
    let mut reader = Reader::new();
    for text in texts {
        reader.read(NAME, text).context("the state of this machine")?;
    }
    Ok(reader.finish())
}

/// Looks at the traffic some times in an interval.
fn look(device: &InterfaceName, events: &Sender<Event>, orders: &Receiver<Order>, interval: Duration) {
    let mut windows = Windows::default();
    let mut pace = Pace { interval, parts: LOOKS, is_paused: false };
    loop {
        let begin = Instant::now();
        let (sampling, is_final) = match look_once(device) {
            Ok(tally) => {
                windows.push(tally);
                (Sampling::Taken(windows.sum()), false)
            }
            Err((why, is_final)) => (Sampling::Refused(why), is_final),
        };
        if events.send(Event::Traffic(sampling)).is_err() || is_final {
            return;
        }
        if pace.wait(orders, begin) == Woken::Disconnected {
            return;
        }
    }
}

/// One look. An error with whether another look would fail as well.
fn look_once(device: &InterfaceName) -> Result<Tally, (String, bool)> {
    let mut pcap = Vec::new();
    let taken = sample::sample(device, &SAMPLE, &mut pcap).map_err(|error| match error {
        sample::Error::Privilege { .. } => {
            (format!("a sample takes CAP_NET_RAW (sudo rxlane top {device})"), true)
        }
        sample::Error::NotEthernet { .. } => (error.to_string(), true),
        error => (format!("{:#}", anyhow::Error::from(error)), false),
    })?;
    let mut tally =
        Tally { merged: taken.merged, missed: taken.dropped, looked: taken.elapsed, ..Tally::default() };
    let capture = Capture::from_reader(std::io::Cursor::new(pcap), "sample");
    let mut capture = capture.map_err(|error| (error.to_string(), false))?;
    while let Some(frame) = capture.next_frame() {
        tally.frame(frame.data, usize::try_from(frame.wire_len).unwrap_or(usize::MAX));
    }
    Ok(tally)
}

/// Whether the interface that was there at the start was removed.
pub fn is_removed(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| matches!(cause.downcast_ref(), Some(live::Error::UnknownInterface { .. })))
}

//! Lines of the kernel log (`dmesg`, `/var/log/messages`), which stand anywhere in a text.
//!
//! Every line that no tool's output claims comes by here, so one search for all phrases at once decides whether it
//! is looked at more closely. A phrase counts only where a message has it: behind the colon of a driver, a device or
//! an interface.
//!
//! Linux: `drivers/net/ethernet/intel/{igb,ixgbe,e1000e,igc}` (checksum, hang, reset, link),
//! `net/sched/sch_generic.c` (`dev_watchdog`), `drivers/net/phy/phy.c` (`phy_print_status`), tg3, bnx2x, r8169,
//! mlx5, ena. FreeBSD: `sys/net/if.c` (`do_link_state_change`), `watchdog timeout` of the drivers and of iflib. NetBSD:
//! `device timeout` of wm, `failed on len %d?` of bge. syslogd: `last message repeated N times`.

use super::command::is_interface;
use super::kept::Kept;
use super::line::is_word_of;
use super::{Line, note_read, sysctl_machine};
use crate::{LogLine, LogTopic, Snapshot, System};
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Topic(LogTopic),
    Repeated,
}

/// How ena prints its first queue's counters.
const ENA_COUNTER: &str = " queue_0_";

const PHRASES: [(&str, Message); 31] = [
    ("partial checksum but proto=", Message::Topic(LogTopic::PartialChecksum)),
    ("failed on len ", Message::Topic(LogTopic::FailedLength)),
    ("NETDEV WATCHDOG: ", Message::Topic(LogTopic::TransmitHang)),
    ("Detected Tx Unit Hang", Message::Topic(LogTopic::TransmitHang)),
    ("Detected Hardware Unit Hang", Message::Topic(LogTopic::TransmitHang)),
    ("Reset adapter", Message::Topic(LogTopic::Reset)),
    ("Resetting adapter", Message::Topic(LogTopic::Reset)),
    ("watchdog timeout", Message::Topic(LogTopic::TransmitHang)),
    ("Watchdog timeout", Message::Topic(LogTopic::TransmitHang)),
    ("device timeout (txfree ", Message::Topic(LogTopic::TransmitHang)),
    ("transmit timed out", Message::Topic(LogTopic::TransmitHang)),
    ("TX timeout detected", Message::Topic(LogTopic::TransmitHang)),
    ("Found a Tx that wasn't completed on time", Message::Topic(LogTopic::TransmitHang)),
    ("The number of lost tx completions", Message::Topic(LogTopic::TransmitHang)),
    ("Trigger reset is on", Message::Topic(LogTopic::Reset)),
    // The driver's counters, which it prints where it destroys the device's queues for a reset (`ena_dump_stats_to_dmesg()`).
    (ENA_COUNTER, Message::Topic(LogTopic::Reset)),
    ("NIC Link is Up", Message::Topic(LogTopic::LinkUp)),
    ("NIC Link is up", Message::Topic(LogTopic::LinkUp)),
    ("NIC Copper Link is Up", Message::Topic(LogTopic::LinkUp)),
    ("Link is Up", Message::Topic(LogTopic::LinkUp)),
    ("Link is up", Message::Topic(LogTopic::LinkUp)),
    ("Link up", Message::Topic(LogTopic::LinkUp)),
    ("link up", Message::Topic(LogTopic::LinkUp)),
    ("link state changed to UP", Message::Topic(LogTopic::LinkUp)),
    ("NIC Link is Down", Message::Topic(LogTopic::LinkDown)),
    ("Link is Down", Message::Topic(LogTopic::LinkDown)),
    ("Link is down", Message::Topic(LogTopic::LinkDown)),
    ("Link down", Message::Topic(LogTopic::LinkDown)),
    ("link down", Message::Topic(LogTopic::LinkDown)),
    ("link state changed to DOWN", Message::Topic(LogTopic::LinkDown)),
    ("message repeated ", Message::Repeated),
];

fn phrases() -> Option<&'static AhoCorasick> {
    static PHRASES_FOUND: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let built = PHRASES_FOUND.get_or_init(|| {
        let phrases = PHRASES.iter().map(|(phrase, _)| phrase);
        AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(phrases).ok()
    });
    built.as_ref()
}

/// What the log said so far that later lines refer to.
#[derive(Default)]
pub(super) struct KernelLog {
    /// The place of the message before, if it is one that matters.
    last: Option<usize>,
    hang: Option<Hang>,
    /// Seconds since the first line, of a log whose lines say how long after the one before they came (`dmesg -d`, `-e`).
    clock: f64,
}

/// A hang or reset that is being reported: drivers take several messages for one.
struct Hang {
    place: usize,
    interface: Option<String>,
    phrase: usize,
    /// Seconds, of whatever clock the log has.
    time: Option<f64>,
}

/// Seconds within which other messages about the same interface belong to the same event: the kernel's watchdog looks every 5 s
/// (`dev->watchdog_timeo`), and a reset takes some.
const EVENT: f64 = 10.0;
/// Seconds within which the same message does.
const BURST: f64 = 1.0;

impl Hang {
    /// Whether a message with this phrase at this time is one more of the same event.
    fn goes_on(&self, interface: Option<&str>, phrase: usize, time: Option<f64>, is_next: bool) -> bool {
        let is_other = phrase != self.phrase;
        interface == self.interface.as_deref()
            && match self.time.zip(time) {
                Some((before, now)) => (0.0..if is_other { EVENT } else { BURST }).contains(&(now - before)),
                None => is_other && is_next,
            }
    }
}

/// What stands in the brackets that begin a line of the kernel: `118932.223231`, `  +0.005046`.
fn stamp(line: &str) -> Option<&str> {
    Some(line.split_once('[')?.1.split_once(']')?.0.trim())
}

/// The time of a line in seconds: of the kernel's clock (`[118932.223231]`), or of the day (`Jul 14 14:17:50`).
fn time(line: &str) -> Option<f64> {
    if let Some(seconds) = stamp(line).and_then(|stamp| stamp.parse::<f64>().ok()) {
        return Some(seconds);
    }
    let clock = line.split_whitespace().take(4).find(|word| word.matches(':').count() == 2)?;
    let mut parts = clock.split(':').map(|part| part.parse::<f64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    Some((hours * 60.0 + minutes) * 60.0 + seconds)
}

impl KernelLog {
    /// Forgets the message before: another text begins, or output of a tool stands between.
    pub fn forget(&mut self) {
        (self.last, self.hang, self.clock) = (None, None, 0.0);
    }

    /// Notes the line if it is a message that matters.
    pub fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) {
        let later = stamp(line.text).and_then(|stamp| stamp.strip_prefix('+')?.parse::<f64>().ok());
        self.clock += later.unwrap_or(0.0);
        let found = phrases().and_then(|phrases| phrases.find(line.text));
        let message = found.and_then(|found| {
            let (_, message) = PHRASES.get(found.pattern().as_usize())?;
            let phrase = found.pattern().as_usize();
            Some((*message, phrase, line.text.get(..found.start())?, line.text.get(found.end()..)?))
        });
        match message {
            Some((Message::Repeated, _, before, after)) => self.repeated(before, after, snapshot),
            Some((Message::Topic(topic), phrase, before, after)) => {
                self.topic((topic, phrase), before, after, line, snapshot);
            }
            // Mail programs put empty lines between those of a log.
            None if line.trimmed().is_empty() => {}
            None => self.last = None,
        }
    }

    /// `last message repeated 719 times`; FreeBSD and rsyslog `message repeated 3 times: [ …]`.
    fn repeated(&mut self, before: &str, after: &str, snapshot: &mut Snapshot) {
        let is_said_by_syslogd = before.trim_end().ends_with("last") || after.contains("times: [");
        let times = after.split(' ').next().and_then(|times| times.parse::<u64>().ok());
        let Some(times) = times.filter(|_| is_said_by_syslogd && after.contains(" time")) else { return };
        if let Some(log) = self.last.and_then(|place| snapshot.log.get_mut(place)) {
            log.times = log.times.saturating_add(times);
        }
    }

    fn topic(
        &mut self,
        (topic, phrase): (LogTopic, usize),
        before: &str,
        after: &str,
        line: &Line<'_>,
        snapshot: &mut Snapshot,
    ) {
        let last = self.last.take();
        let interface = match origin(before, after, line.text.contains("NETDEV WATCHDOG: ")) {
            Origin::Message(interface) => interface,
            Origin::Prose => return,
        };
        let is_ena = || before.split_whitespace().any(|word| word == "ena");
        if PHRASES.get(phrase).is_some_and(|(phrase, _)| *phrase == ENA_COUNTER) && !is_ena() {
            return;
        }
        note_read(snapshot, "dmesg", line);
        if let Some(name) = interface.filter(|_| matches!(topic, LogTopic::LinkUp | LogTopic::LinkDown)) {
            let links = &mut line.kept().links;
            if links.len() < Kept::MOST || links.contains_key(name) {
                links.entry(name.to_owned()).or_default().note(topic, before, after, line);
            }
        }
        // `do_link_state_change()`, sys/net/if.c; NetBSD writes `link state DOWN (was UP)`.
        if line.text.contains(": link state changed to ") {
            sysctl_machine::infer(snapshot, System::FreeBsd, &line.quote());
        }
        // syslogd there names the kernel's file.
        if before.contains(" /netbsd: ") {
            sysctl_machine::infer(snapshot, System::NetBsd, &line.quote());
        }
        let is_hang = matches!(topic, LogTopic::TransmitHang | LogTopic::Reset);
        let is_relative = stamp(line.text).is_some_and(|stamp| stamp.starts_with('+'));
        let now = if is_relative { Some(self.clock) } else { time(line.text) };
        if let Some(hang) = self.hang.as_mut().filter(|_| is_hang) {
            let is_next = last == Some(hang.place);
            if hang.goes_on(interface, phrase, now, is_next) {
                hang.time = now;
                self.last = Some(hang.place);
                return;
            }
        }
        let is_it = |log: &LogLine| log.topic == topic && log.interface.as_deref() == interface;
        match snapshot.log.iter().position(is_it) {
            Some(place) => {
                if let Some(log) = snapshot.log.get_mut(place) {
                    log.times = log.times.saturating_add(1);
                }
                self.last = Some(place);
            }
            None if snapshot.log.len() >= Snapshot::LINES => snapshot.omitted += 1,
            None => {
                self.last = Some(snapshot.log.len());
                let interface = interface.map(str::to_owned);
                snapshot.log.push(LogLine { topic, interface, times: 1, quote: line.quote() });
            }
        }
        if let Some(place) = self.last.filter(|_| is_hang) {
            let interface = interface.map(str::to_owned);
            self.hang = Some(Hang { place, interface, phrase, time: now });
        }
    }
}

/// Who says it.
#[derive(Debug, PartialEq, Eq)]
enum Origin<'a> {
    /// A driver, about this interface where it says so.
    Message(Option<&'a str>),
    /// A person.
    Prose,
}

/// Who says what stands between `before` and `after`. `netdev_printk` of Linux writes `driver bus-address
/// interface: `, before 3.x and for a device without an interface `driver bus-address: `, some drivers
/// `driver: interface `; the BSDs `interface: `.
fn origin<'a>(before: &'a str, after: &'a str, is_watchdog: bool) -> Origin<'a> {
    let before = before.trim_end();
    // Of the watchdog, `eth0 (r8169): transmit queue 0 timed out` follows; `CPU: 1: …` where the name came before.
    if is_watchdog && !before.ends_with("WATCHDOG:") {
        let named = after.split_whitespace().next().map(|word| word.trim_end_matches(':'));
        let named = named.filter(|word| is_interface(word) && *word != "CPU");
        if named.is_some() || before.is_empty() {
            return Origin::Message(named);
        }
    }
    let mut words = before.rsplit(char::is_whitespace).filter(|word| !word.is_empty());
    let Some(word) = words.next() else { return Origin::Prose };
    let previous = words.next().unwrap_or_default();
    let (name, is_marked) = match word.strip_suffix(':') {
        Some(name) => (name, true),
        None => (word, false),
    };
    if !is_marked && !previous.ends_with(':') {
        return Origin::Prose;
    }
    // FreeBSD's console writes the level before the name: `<6>igb0:`.
    let name = name.rsplit('>').next().unwrap_or(name);
    let has_digit = name.bytes().any(|c| c.is_ascii_digit());
    let is_named = is_interface(name) && (has_digit || is_bus_address(previous.trim_end_matches(':')));
    if is_named && !is_driver(name) {
        return Origin::Message(Some(name));
    }
    if is_marked { Origin::Message(None) } else { Origin::Prose }
}

/// `0000:01:00.0`, `1e100000.ethernet`, `mdio-bus:1f`.
fn is_bus_address(word: &str) -> bool {
    word.contains([':', '.']) && word.bytes().any(|c| c.is_ascii_digit())
}

/// Drivers of Linux with a digit in their names, which look like interfaces.
fn is_driver(name: &str) -> bool {
    const DRIVERS: &str = "e1000 e1000e tg3 bnx2 bnx2x r8169 r8168 r8125 8139too mlx4_core mlx4_en \
                           mlx5_core be2net b44 forcedeth0 dpaa2 sky2 cxgb3 cxgb4 i40e vmxnet3 atl1 \
                           atl1c atl1e r8152 ax88179_178a mt7530 qede2";
    is_word_of(DRIVERS, name)
}

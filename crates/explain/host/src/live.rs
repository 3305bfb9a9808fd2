//! A live Linux machine, written down as a bundle.
//!
//! # Contract
//!
//! * What the tools would print is rendered from what the kernel says over netlink, ioctl, procfs and sysfs; no tool
//!   is run, so none has to be installed. The forms are those of iproute2 6.1, ethtool 6.1, util-linux and procps.
//! * What eBPF maps hold is not for this crate to read: who calls may answer `rxlane steer status` for the interfaces
//!   that have an XDP program, and `rxlane fastpath status` ([`collect_with`]).
//! * Nothing is changed. The ioctl is given commands that read, and no other.
//! * No privilege is needed. What this process may not read, what the kernel does not know, and what vanished in the
//!   meantime, says so in its place (`# not read: …`), and the rest goes on.
//! * Addresses and keys stay here: MAC addresses, aliases and alternative names of interfaces, the stations of PPPoE
//!   sessions, addresses in log lines, and, unless it is requested, the hash key.
//!
//! # Bundle
//!
//! ```text
//! # rxlane bundle 1
//! # system: linux
//! # sample 1 at 5021.114
//! $ ethtool -S eth0
//! NIC statistics:
//!      rx_queue_0_packets: 123
//! $ ethtool -x eth0
//! # not read: Operation not permitted
//! # sample 2 at 5024.114
//! …
//! # end
//! ```
//!
//! A sample's time is in seconds of the monotonic clock (`CLOCK_MONOTONIC`). The second sample holds what counts, in
//! the order of the first. Control characters in names are printed as `\xNN`.
//!
//! # Deliberately not here
//!
//! Reading bundles: module `text`. The collector for machines without rxlane: its script.

#![expect(missing_docs, reason = "what its name does not say has a comment")]

#[cfg(test)]
mod attributes;
mod bundle;
mod counters;
mod cpus;
mod ethtool;
mod files;
mod interrupts;
mod links;
mod log;
mod netfilter;
mod pppoe_driver;
mod processes;
mod queues;
mod sessions;
mod sysctls;
pub mod trace;
mod uci;

use crate::interface::is_plain_name;
use bundle::{Bundle, Output, Unread};
pub use counters::Counters;
use ethtool::Ethtool;
use links::{Link, Links};
use processes::Processes;
use rustix::time::{ClockId, clock_gettime};
use std::io::{self, Write};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Interfaces whose own parts are collected: as many as a snapshot keeps.
const MOST_INTERFACES: usize = crate::Snapshot::INTERFACES;
/// Between two reports of the time left.
const REPORT: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Time between the two samples; zero is one sample.
    pub interval: Duration,
    /// Interfaces by name, control characters as `\xNN`; with them come those they stand on and those that stand on
    /// them. `None` is all but the loopback.
    pub interfaces: Option<Vec<String>>,
    /// Whether the RSS hash key is written. Who knows it can choose from outside which queue a flow lands on.
    pub with_hash_key: bool,
}

/// What is being done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// Counters are read, for the first or second time.
    Sample(u32),
    Interface {
        name: String,
        /// Its place, from 1.
        number: usize,
        of: usize,
    },
    /// The second sample is waited for.
    Waiting { left: Duration },
}

/// Why nothing, or not everything, was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An interface was named that this network namespace does not have.
    #[error("there is no interface {name} here; there are: {}", known.join(", "))]
    UnknownInterface { name: String, known: Vec<String> },
    /// An interface was named whose name no command can have as it stands.
    #[error("the name of {name} is no word for a shell: `ip link set NAME name OTHER` gives it another one")]
    OddName { name: String },
    /// The bundle could not be written.
    #[error("the bundle cannot be written: {0}")]
    Write(#[source] io::Error),
}

/// What rxlane's own programs do: what its commands would print, or why that is not known, in one line.
pub trait Programs {
    /// `rxlane steer status NAME --json` of an interface.
    fn steer_status(&mut self, name: &str) -> Result<String, String>;

    /// `rxlane fastpath status --json`; `None` where none is up.
    fn fastpath_status(&mut self) -> Option<Result<String, String>>;
}

/// Reads this machine and writes a bundle to `out`. Takes as long as the interval and well under a second more.
///
/// # Errors
///
/// An interface is named that does not exist, before anything is written; or `out` fails. What cannot be read is
/// no error: the bundle says so.
pub fn collect(
    options: &Options,
    out: &mut impl Write,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    run(options, None, out, progress)
}

/// [`collect`], with what rxlane's programs do with the frames of interfaces that have an XDP program. They are queried in each
/// sample; the time that it takes comes on top.
///
/// # Errors
///
/// Those of [`collect`]. What `programs` could not read is written down as not read.
pub fn collect_with(
    options: &Options,
    programs: &mut dyn Programs,
    out: &mut impl Write,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    run(options, Some(programs), out, progress)
}

fn run(
    options: &Options,
    mut programs: Option<&mut (dyn Programs + '_)>,
    out: &mut impl Write,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let links = Links::with_sessions();
    let chosen = Chosen::new(&links, options)?;
    let mut ethtool = Ethtool::open();
    let mut bundle = Bundle::begin(out)?;

    progress(Progress::Sample(1));
    let start = Instant::now();
    let first = Sample::read(&links, &chosen, &mut ethtool, programs.as_deref_mut());
    bundle.sample(1, first.at)?;
    first.write(&mut bundle)?;
    settings(&mut bundle, options, &links, &chosen, &first, &mut ethtool, progress)?;

    if options.interval.is_zero() {
        processes(&mut bundle, first.processes.as_ref(), None)?;
        return bundle.end();
    }
    wait(start, options.interval, progress);
    progress(Progress::Sample(2));
    let second = Sample::read(&Links::read(), &chosen, &mut ethtool, programs);
    bundle.sample(2, second.at)?;
    second.write(&mut bundle)?;
    processes(&mut bundle, second.processes.as_ref(), first.processes.as_ref().ok())?;
    bundle.end()
}

/// Interfaces whose own parts are collected.
struct Chosen {
    /// Their names, where some were requested; the listing of links is kept to them, too.
    names: Option<std::collections::BTreeSet<Vec<u8>>>,
    /// In the kernel's order.
    links: Vec<Link>,
    /// More than are collected.
    left_out: usize,
}

impl Chosen {
    fn new(links: &Links, options: &Options) -> Result<Chosen, Error> {
        let names = match &options.interfaces {
            None => None,
            Some(names) => Some(links.around(names)?),
        };
        let is_chosen = |link: &&Link| match &names {
            None => !link.is_loopback() && link.name != b"lo",
            Some(names) => names.contains(&link.name),
        };
        // The output of a command in which another name would stand could be taken for that of another interface. The listing has it, and who
        // reads that notes it.
        let is_plain = |link: &&Link| str::from_utf8(&link.name).is_ok_and(is_plain_name);
        let mut chosen: Vec<Link> = links.links.iter().filter(is_chosen).filter(is_plain).cloned().collect();
        let left_out = chosen.len().saturating_sub(MOST_INTERFACES);
        chosen.truncate(MOST_INTERFACES);
        Ok(Chosen { names, links: chosen, left_out })
    }

    fn lists(&self, link: &Link) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(&link.name))
    }
}

/// What counts, read at one time.
struct Sample {
    /// Seconds of the monotonic clock.
    at: f64,
    interrupts: Output,
    /// Commands and outputs in their order.
    outputs: Vec<(String, Output)>,
    processes: Result<Processes, Unread>,
}

impl Sample {
    fn read(
        links: &Links,
        chosen: &Chosen,
        ethtool: &mut Ethtool,
        programs: Option<&mut (dyn Programs + '_)>,
    ) -> Sample {
        let at = monotonic_seconds();
        let interrupts = files::text(Path::new("/proc/interrupts"));
        let mut outputs = machine_counters();
        let listing = match &links.names_only {
            Some(why) => Err(why.clone()),
            None => Ok(links::render(&links.links, &|link| chosen.lists(link))),
        };
        outputs.push(("ip -d -s link".to_owned(), listing));
        outputs.extend(chosen.links.iter().map(|link| ethtool.statistics(&link.name)));
        if let Some(programs) = programs {
            // In the order of the first sample, and as they are now.
            let now = || chosen.links.iter().filter(|link| links.has_program(&link.name));
            for link in now() {
                let name = link.display_name();
                let status = programs.steer_status(&name).map_err(Unread);
                outputs.push((format!("rxlane steer status {name} --json"), status));
            }
            if now().next().is_some()
                && let Some(status) = programs.fastpath_status()
            {
                outputs.push(("rxlane fastpath status --json".to_owned(), status.map_err(Unread)));
            }
        }
        Sample { at, interrupts, outputs, processes: Processes::read() }
    }

    fn write(&self, bundle: &mut Bundle<'_, impl Write>) -> Result<(), Error> {
        bundle.put("cat /proc/interrupts", &self.interrupts)?;
        put_all(bundle, &self.outputs)
    }
}

fn monotonic_seconds() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// What is counted for each CPU besides its interrupts.
fn machine_counters() -> Vec<(String, Output)> {
    let command = |path: &str| format!("cat {path}");
    vec![
        (command("/proc/stat"), cpus::times()),
        (command("/proc/softirqs"), files::text(Path::new("/proc/softirqs"))),
        (command("/proc/net/softnet_stat"), files::text(&files::of_this_namespace("softnet_stat"))),
    ]
}

fn put_all(bundle: &mut Bundle<'_, impl Write>, outputs: &[(String, Output)]) -> Result<(), Error> {
    outputs.iter().try_for_each(|(command, output)| bundle.put(command, output))
}

/// What does not count: the machine, then one interface after the other.
fn settings(
    bundle: &mut Bundle<'_, impl Write>,
    options: &Options,
    links: &Links,
    chosen: &Chosen,
    first: &Sample,
    ethtool: &mut Ethtool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    machine(bundle, links)?;
    let each: Vec<&Link> = chosen.links.iter().collect();
    put_all(bundle, &interrupts::affinities(first.interrupts.as_deref().ok(), &each))?;
    if chosen.left_out > 0 {
        bundle.remark(&format!("{} more interfaces are left out below", chosen.left_out))?;
    }
    let of = chosen.links.len();
    for (number, link) in (1..).zip(&chosen.links) {
        progress(Progress::Interface { name: link.display_name(), number, of });
        put_all(bundle, &ethtool.settings(&link.name, options.with_hash_key))?;
        put_all(bundle, &queues::read(link))?;
    }
    Ok(())
}

fn machine(bundle: &mut Bundle<'_, impl Write>, links: &Links) -> Result<(), Error> {
    bundle.put("uname -sr", &cpus::uname())?;
    bundle.put("nproc", &cpus::nproc())?;
    bundle.put("lscpu", &cpus::lscpu())?;
    bundle.put("cat /proc/uptime", &files::text(Path::new("/proc/uptime")))?;
    put_all(bundle, &sysctls::read())?;
    put_all(bundle, &uci::read())?;
    put_all(bundle, &netfilter::read())?;
    // A kernel without PPPoE or VLANs has neither file, which is nothing to report.
    sessions::put(bundle)?;
    pppoe_driver::put(bundle)?;
    let vlans = files::of_this_namespace("vlan/config");
    if !files::is_missing(&vlans) {
        bundle.put("cat /proc/net/vlan/config", &files::text(&vlans))?;
    }
    let names: Vec<String> = links.links.iter().map(Link::display_name).collect();
    bundle.put("dmesg", &log::read(&names))
}

fn processes(
    bundle: &mut Bundle<'_, impl Write>,
    now: Result<&Processes, &Unread>,
    former: Option<&Processes>,
) -> Result<(), Error> {
    let listing = now.map(|now| now.listing(former)).map_err(Unread::clone);
    bundle.put("top -b -n 1", &listing)
}

fn wait(start: Instant, interval: Duration, progress: &mut dyn FnMut(Progress)) {
    loop {
        let left = interval.saturating_sub(start.elapsed());
        if left.is_zero() {
            return;
        }
        progress(Progress::Waiting { left });
        thread::sleep(left.min(REPORT));
    }
}

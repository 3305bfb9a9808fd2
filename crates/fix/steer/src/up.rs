//! Putting steering on an interface: everything is resolved first, printed on request, and only then done.

use crate::check::{self, Check, Checked, Known, Request};
use crate::down;
use crate::error::{Error, Kind};
use crate::named;
use crate::observation::{self, Observation};
use crate::plan;
use crate::record::{Planned, Records, instance_of};
use crate::stale_namespaces;
use format::quoted;
use host::live::Progress;
use host::setting::{InterfaceName, Setting, Tree};
use kernel::cpu::{self, CpuSet};
use kernel::sysctl;
use service::control::Lock;
use service::journal::{Applied, Journal};
use service::record::{self, ChangeLock, Live};
use std::fs;
use std::thread;
use std::time::{Duration, Instant};
use xdp::layout::{KEY_WORDS, Settings};
use xdp::{Attachment, Family, Interface, Mode};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Frames that the queue to each CPU holds, 1 to [`plan::QUEUE_SIZE_MAX`].
    pub queue_size: u32,
    /// Whether both directions of a flow go to one CPU.
    pub symmetric: bool,
}

pub struct Resolved {
    pub check: Check,
    /// The settings that are changed before, in this order.
    pub settings: Vec<Setting>,
    pub plan: xdp::Plan,
}

#[derive(Debug)]
pub struct Done {
    pub attachment: Attachment,
    pub mode: Mode,
    /// The settings that were changed, each with what puts it back.
    pub changed: Vec<(String, String)>,
}

/// The locks, and the record that the interface comes up: until this is dropped, a killed process is recognised as one that was
/// interrupted.
#[derive(Debug)]
pub struct Working {
    _coming_up: Live,
    _lock: ChangeLock,
    _interface: Lock,
}

/// The name under which the settings of an interface stand in the journal.
pub fn by(interface: &str) -> String {
    format!("{BY}{interface}")
}

const BY: &str = "steer up ";

pub(crate) fn is_by(name: &str) -> bool {
    name.starts_with(BY)
}

/// What there is to know before anything is decided: which CPUs are online, what the kernel says of the driver, and
/// what is attached.
pub fn known(interface: &InterfaceName) -> Result<(Interface, Known), Error> {
    let found = Interface::find(interface.as_str()).map_err(|error| match error {
        xdp::Error::NoInterface { name } => {
            match named::named(Family::Steer, &name).map(|named| named.interface) {
                Ok(Some(renamed)) => attached(renamed.name, name),
                Ok(None) => crate::error::unknown(&name, &interfaces()),
                Err(error) => error,
            }
        }
        other => other.into(),
    })?;
    let program = found.program()?;
    let features = kernel::netlink::xdp_features(interface.as_str());
    Ok((found, Known { online: online()?, features, program, forwards: sysctl::forwards() }))
}

/// CPUs that are online, at least one.
fn online() -> Result<Vec<u32>, Error> {
    let online = cpu::online().map_err(|source| {
        Error::Lacks(format!(
            "which CPUs are online cannot be read ({source}): /sys is not mounted, or not whole; as root, `mount -t sysfs \
             sysfs /sys` mounts it"
        ))
    })?;
    Ok(online.iter().collect())
}

pub fn interfaces() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let names = table.lines().skip(2).filter_map(|line| line.split_once(':'));
    let mut names: Vec<String> = names.map(|(name, _)| name.trim().to_owned()).collect();
    names.sort();
    names
}

/// CPUs that are `online`, `present` or `possible` (Documentation/admin-guide/cputopology.rst); none where sysfs does
/// not say it.
pub fn cpus(which: &str) -> Vec<u32> {
    let list = fs::read_to_string(format!("/sys/devices/system/cpu/{which}")).unwrap_or_default();
    CpuSet::parse_list(list.trim()).map(|set| set.iter().collect()).unwrap_or_default()
}

/// Reads a list of CPUs and sees that each exists.
pub fn parse_cpus(list: &str) -> Result<Vec<u32>, Error> {
    let named = CpuSet::parse_list(list).map_err(|error| Error::Usage(format!("--cpus: {error}")))?;
    let present = cpus("present");
    match named.iter().find(|cpu| !present.is_empty() && !present.contains(cpu)) {
        Some(cpu) => {
            let present = crate::facts::list(&present);
            Err(Error::Usage(format!("there is no CPU {cpu}: this machine has {present}")))
        }
        None => Ok(named.iter().collect()),
    }
}

/// Looks at the interface for `interval` and decides everything. Changes nothing and takes no privilege, though with
/// it the traffic is sampled, too.
pub fn resolve(
    request: &Request,
    manner: &Options,
    interval: Duration,
    progress: &mut dyn FnMut(Progress),
) -> Result<Resolved, Error> {
    let name: InterfaceName = request.interface.parse()?;
    let (interface, known) = known(&name)?;
    not_yet(&interface, &known)?;
    let observation = observation::observe(&name, interval, progress)?;
    resolve_from(request, manner, interface, &observation, &known)
}

fn attached(interface: String, attached: String) -> Error {
    xdp::Error::Attached { family: Family::Steer, interface, attached }.into()
}

fn not_yet(interface: &Interface, known: &Known) -> Result<(), Error> {
    match known.program.as_ref().and_then(|program| program.attached_name(Family::Steer)) {
        Some(name) => Err(attached(interface.name.clone(), name.to_owned())),
        None => Ok(()),
    }
}

fn resolve_from(
    request: &Request,
    manner: &Options,
    interface: Interface,
    observation: &Observation,
    known: &Known,
) -> Result<Resolved, Error> {
    let Checked { check, plan, classes, stripping, .. } = check::check(request, observation, known)?;
    if let Some(place) = check.stops().find(|fact| fact.about == "place") {
        return Err(Error::Misplaced(interface.name, Box::new(place.clone())));
    }
    if let (Some(program), true) = (&known.program, check.stops().any(|fact| fact.about == "program")) {
        let program = Box::new(program.clone());
        return Err(xdp::Error::Foreign { interface: interface.name, program }.into());
    }
    let stops: Vec<_> = check.stops().cloned().collect();
    if !stops.is_empty() {
        return Err(Error::Stopped(interface.name, stops));
    }
    let plan = plan?;
    if classes == 0 {
        return Err(Error::No(format!(
            "{name} spreads every class of frames over its queues by itself, so there is nothing to steer; `--all` or \
             `--classes` steers all the same, and `rxlane steer check {quoted_name}` says what is known",
            name = interface.name,
            quoted_name = quoted(&interface.name)
        )));
    }
    let settings = match request.disable_rxvlan {
        true => {
            stripping.into_iter().map(|set| unstripped(&request.interface, set)).collect::<Result<_, _>>()?
        }
        false => Vec::new(),
    };
    let plan = xdp::Plan {
        interface,
        mode: if request.generic { Mode::Generic } else { Mode::Native },
        settings: Settings {
            key: key()?,
            classes,
            symmetric: manner.symmetric.into(),
            cpus: 0,
            spare: 0,
            hold_ns: u64::try_from(plan::HOLD.as_nanos()).unwrap_or(u64::MAX),
        },
        buckets: plan.buckets,
        cpus: plan.weights.iter().map(|weight| (weight.cpu, manner.queue_size)).collect(),
    };
    Ok(Resolved { check, settings, plan })
}

fn unstripped(interface: &str, set: &str) -> Result<Setting, Error> {
    Ok(format!("ethtool -K {interface} {set} off").parse()?)
}

fn key() -> Result<[u32; KEY_WORDS], Error> {
    let mut key = [[0; 4]; KEY_WORDS];
    kernel::random::fill(key.as_flattened_mut()).map_err(|error| {
        Error::Lacks(format!("the kernel gives no random numbers for the key of the hash: {error}"))
    })?;
    Ok(key.map(u32::from_ne_bytes))
}

/// Does what was resolved: settings first, each recorded in the journal before it is changed, then the programs. What
/// fails takes everything back. Returns with the lock still held, so that a keeper can be started before a `down`
/// gets its own.
///
/// # Errors
///
/// [`Error`]; nothing was left behind.
pub fn up(resolved: &Resolved, records: &Records) -> Result<(Done, Working), Error> {
    if !resolved.settings.is_empty() {
        // What cannot be loaded shall not change a setting first.
        xdp::check(&resolved.plan)?;
    }
    let interface = &resolved.plan.interface;
    // Before the lock is taken, which a process that takes steering away at its end wants as well.
    match down::retire(interface, records) {
        // The loader knows best which privileges are missing.
        Err(error) if error.kind() == Kind::Lacks => xdp::check(&resolved.plan)?,
        other => other?,
    }
    let alone = permitted(records.lock(service::Kind::Steer, interface), resolved)?;
    let lock = permitted(records.work(), resolved)?;
    let instances = records.instances()?;
    // Their maps have threads. What `down` reports of them does not concern this interface.
    stale_namespaces::clear(records);
    if let Some(there) = Attachment::open(interface)? {
        return Err(attached(interface.name.clone(), there.attached_as().to_owned()));
    }
    let coming_up = record::begin(&instances, &interface.name)?;
    let working = Working { _coming_up: coming_up, _lock: lock, _interface: alone };
    let changed = change(&resolved.settings, &interface.name, records)?;
    let attached = xdp::attach(&resolved.plan).map_err(Error::from).and_then(|attachment| {
        let recorded = note(&attachment, resolved, records).and_then(|()| Ok(attachment.mode()?));
        match recorded {
            Ok(mode) => Ok(Done { attachment, mode, changed: changed.clone() }),
            Err(error) => {
                // Of two errors the first says more than that of cleaning up behind it.
                let _ = records.forget_plan(&instance_of(&attachment));
                let _ = Attachment::remove(interface);
                Err(error)
            }
        }
    });
    match attached {
        Ok(done) => Ok((done, working)),
        Err(error) => {
            if !changed.is_empty() {
                put_back(&interface.name, records)?;
            }
            Err(error)
        }
    }
}

/// Of a lock that is denied the loader knows best which privileges are missing.
fn permitted<T>(lock: Result<T, crate::record::Error>, resolved: &Resolved) -> Result<T, Error> {
    if lock.as_ref().is_err_and(crate::record::Error::is_denied) {
        xdp::check(&resolved.plan)?;
    }
    Ok(lock?)
}

/// Notes what a keeper that starts later would not find in the pins.
fn note(attachment: &Attachment, resolved: &Resolved, records: &Records) -> Result<(), Error> {
    let [steer, _] = attachment.programs();
    let shares = resolved.check.targets.iter().map(|row| (row.cpu, row.share)).collect();
    let planned = Planned { program: steer.id, shares };
    Ok(records.plan(&instance_of(attachment), &planned)?)
}

fn change(settings: &[Setting], interface: &str, records: &Records) -> Result<Vec<(String, String)>, Error> {
    let mut changed = Vec::new();
    if settings.is_empty() {
        return Ok(changed);
    }
    let mut journal = journal(records)?;
    for setting in settings {
        match journal.apply(setting, &by(interface)) {
            Ok(Applied::Already) => {}
            Ok(Applied::Changed { former, .. }) => changed.push((setting.command(), former.to_string())),
            Err(error) => {
                journal.undo_by(&by(interface), false)?;
                return Err(error.into());
            }
        }
    }
    Ok(changed)
}

fn put_back(interface: &str, records: &Records) -> Result<(), Error> {
    journal(records)?.undo_by(&by(interface), false)?;
    Ok(())
}

/// The journal, if there is one.
pub fn existing_journal(records: &Records) -> Result<Option<Journal>, Error> {
    match fs::symlink_metadata(records.folder().join("journal")) {
        Ok(_) => journal(records).map(Some),
        Err(_) => Ok(None),
    }
}

/// The journal, when another rxlane has finished with it.
pub fn journal(records: &Records) -> Result<Journal, Error> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begin = Instant::now();
    loop {
        match Journal::open(records.state(), &Tree::live()) {
            Err(service::journal::Error::Busy { .. }) if begin.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(50));
            }
            opened => return Ok(opened?),
        }
    }
}

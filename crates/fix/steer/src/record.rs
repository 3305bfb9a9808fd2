//! What pins cannot say: the daemon of an attachment, and which shares its CPUs should have; and that one `up` or `down` works
//! at a time, and one `up` of an interface.
//!
//! # Contract
//!
//! * The records are those of [`service::record`], in the state folder, which the next boot empties, as it empties the BPF file
//!   system.
//! * What `up` planned is written once it is attached, and names the program: another attachment under the same name
//!   does not take it for its own. An attachment without such a record works all the same.
//! * Records bear the name of the pins ([`instance_of`]), which stays when the interface is renamed or goes to another
//!   network namespace.

use kernel::netns::NetNs;
use serde::{Deserialize, Serialize};
use service::control::{ControlError, Lock};
use service::record::{self, ChangeLock, Live, RecordError};
use service::{Instance, Instances, Kind, StateDir, StateError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use xdp::{Attachment, Dead, Interface};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records {
    state: StateDir,
}

/// What `up` planned and the pins do not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Planned {
    /// The kernel's number of the program on the interface.
    pub program: u32,
    /// The target CPUs, and the part of the steered frames that each should have.
    pub shares: Vec<(u32, f64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keeper {
    pub pid: u32,
    /// Whether it is `up --foreground` itself, which takes steering away when it ends.
    pub foreground: bool,
    pub rebalance: bool,
    pub metrics: Option<String>,
    #[serde(default)]
    pub moves: u64,
    /// How things stand, in its own words; `None`: it says nothing.
    #[serde(default)]
    pub state: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub keeper: Keeper,
    pub alive: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("process {pid} is the daemon of {interface} already")]
    Kept { pid: u32, interface: String },
    #[error(
        "another rxlane is bringing up the {kind} {interface}, or taking it down, at this moment: try again when it has \
         finished"
    )]
    Changing { kind: Kind, interface: String },
}

impl From<StateError> for Error {
    fn from(error: StateError) -> Error {
        Error::Record(error.into())
    }
}

impl Error {
    pub fn is_denied(&self) -> bool {
        matches!(self, Error::Record(error) if error.is_denied())
    }
}

/// The record of this process, the daemon; removed when this is dropped.
#[derive(Debug)]
pub struct Keeping(Live);

/// How the names of records of daemons and of what was planned end.
const DAEMON: &str = ".daemon";
const PLAN: &str = ".plan";
/// How long `down` waits for an `up`, and between two tries.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

impl Records {
    /// The folder of a machine; that of the journal.
    pub const DIRECTORY: &str = StateDir::DEFAULT;

    /// Records in `folder`, which is made when something is written.
    pub fn new(folder: impl Into<PathBuf>) -> Records {
        Records { state: StateDir::at(folder) }
    }

    pub fn folder(&self) -> &Path {
        self.state.path()
    }

    pub fn state(&self) -> &StateDir {
        &self.state
    }

    /// What is steered from this network namespace.
    pub fn instances(&self) -> Result<Instances, Error> {
        Ok(Instances::new(Kind::Steer, self.state.clone())?)
    }

    /// Waits for the lock to attach or detach.
    pub fn work(&self) -> Result<ChangeLock, Error> {
        Ok(ChangeLock::wait(&self.state)?)
    }

    /// The lock on what `kind` has on an interface, whatever the interface is called: for `up`, which does not wait for another one.
    ///
    /// # Errors
    ///
    /// [`Error::Changing`]: another process has it; [`Error::Record`].
    pub fn lock(&self, kind: Kind, interface: &Interface) -> Result<Lock, Error> {
        let instances = Instances::new(kind, self.state.clone())?;
        let lock = Lock::take(&instances, &interface.index.to_string()).map_err(|error| match error {
            ControlError::State(error) => error,
            ControlError::File { what, path, source } => StateError::File { what, path, source },
            other => StateError::File {
                what: "lock",
                path: self.folder().to_owned(),
                source: io::Error::other(other),
            },
        })?;
        lock.ok_or_else(|| Error::Changing { kind, interface: interface.name.clone() })
    }

    /// The same for `down`, which waits until an `up` has finished.
    pub fn wait_for_lock(&self, kind: Kind, interface: &Interface) -> Result<Lock, Error> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lock(kind, interface) {
                Err(Error::Changing { .. }) if Instant::now() < until => thread::sleep(PAUSE),
                lock => return lock,
            }
        }
    }

    /// Waits until what is being brought up or taken down at this moment is. Whether it could: without a folder nobody is at
    /// work, and who may not lock it does not know.
    pub fn wait_for_change(&self) -> bool {
        self.folder().exists() && self.work().is_ok()
    }

    /// Records that this process is the daemon of the attachment.
    pub fn keep(&self, instance: &Instance, keeper: &Keeper) -> Result<Keeping, Error> {
        match Live::hold(&self.state, &self.path(instance, DAEMON), keeper) {
            Err(RecordError::Busy(_)) => {
                let pid = self.kept(instance)?.map_or(0, |kept| kept.keeper.pid);
                Err(Error::Kept { pid, interface: instance.name.clone() })
            }
            held => Ok(Keeping(held?)),
        }
    }

    /// The daemon of an attachment, alive or dead.
    pub fn kept(&self, instance: &Instance) -> Result<Option<Kept>, Error> {
        let read = Live::read(&self.state, &self.path(instance, DAEMON))?;
        Ok(read.map(|(keeper, alive)| Kept { keeper, alive }))
    }

    pub fn plan(&self, instance: &Instance, planned: &Planned) -> Result<(), Error> {
        Ok(record::write(&self.state, &self.path(instance, PLAN), planned)?)
    }

    /// What `up` planned; `None` where nothing is recorded, or nothing that can be read.
    pub fn planned(&self, instance: &Instance) -> Result<Option<Planned>, Error> {
        match record::read(&self.state, &self.path(instance, PLAN)) {
            Err(RecordError::Broken { .. }) => Ok(None),
            read => Ok(read?),
        }
    }

    /// Removes the record of a daemon that is dead.
    pub fn forget(&self, instance: &Instance) -> Result<(), Error> {
        Ok(record::remove(&self.path(instance, DAEMON))?)
    }

    pub fn forget_plan(&self, instance: &Instance) -> Result<(), Error> {
        Ok(record::remove(&self.path(instance, PLAN))?)
    }

    /// Where something was planned; empty where the folder cannot be read.
    pub fn instances_planned(&self) -> Vec<Instance> {
        let planned = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let (namespace, name) = name.strip_prefix("steer-")?.strip_suffix(PLAN)?.split_once('-')?;
            Some(instance(namespace.parse().ok()?, name))
        };
        fs::read_dir(self.folder()).into_iter().flatten().flatten().filter_map(planned).collect()
    }

    fn path(&self, instance: &Instance, suffix: &str) -> PathBuf {
        record::path(&self.state, instance, suffix)
    }
}

/// What was attached in this network namespace to an interface of this name. A space and the index follow where a renamed
/// one had that name before.
pub fn instance(namespace: u64, name: &str) -> Instance {
    Instance { kind: Kind::Steer, namespace: NetNs(namespace), name: name.to_owned() }
}

pub fn instance_of(attachment: &Attachment) -> Instance {
    of_folder(&attachment.folder())
        .unwrap_or_else(|| instance(attachment.interface().namespace, attachment.attached_as()))
}

pub fn instance_of_dead(dead: &Dead) -> Instance {
    of_folder(&dead.folder).unwrap_or_else(|| instance(dead.namespace, &dead.interface))
}

/// `…/NAMESPACE/INTERFACE`, with colons for the dots of the name.
fn of_folder(folder: &Path) -> Option<Instance> {
    let name = folder.file_name()?.to_str()?.replace(':', ".");
    Some(instance(folder.parent()?.file_name()?.to_str()?.parse().ok()?, &name))
}

impl Keeping {
    /// Writes down how things stand now.
    pub fn write(&mut self, keeper: &Keeper) -> Result<(), Error> {
        Ok(self.0.write(keeper)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemon_and_plan_of_an_attachment_are_recorded_by_themselves() {
        let folder = tempfile::tempdir().expect("a folder");
        let records = Records::new(folder.path().join("rxlane"));
        let wan0 = instance(7, "wan0");
        let keeper =
            |pid| Keeper { pid, foreground: false, rebalance: true, metrics: None, moves: 0, state: None };
        let planned = Planned { program: 17, shares: vec![(0, 0.125), (3, 0.875)] };
        records.plan(&wan0, &planned).expect("written");
        let keeping = records.keep(&wan0, &keeper(42)).expect("kept");
        let kept = records.kept(&wan0).expect("read").expect("there");
        assert_eq!(kept, Kept { keeper: keeper(42), alive: true });
        let second = records.keep(&wan0, &keeper(43)).expect_err("one at a time");
        assert_eq!(second.to_string(), "process 42 is the daemon of wan0 already");
        assert_eq!(records.kept(&instance(8, "wan0")).expect("read"), None);
        drop(keeping);
        assert_eq!(records.kept(&wan0).expect("read"), None);
        assert_eq!(
            (records.planned(&wan0).expect("read"), records.instances_planned()),
            (Some(planned), vec![wan0.clone()])
        );
        fs::write(folder.path().join("rxlane/steer-7-wan0.plan"), "{").expect("written");
        assert_eq!(records.planned(&wan0).expect("unreadable"), None);
        records.forget_plan(&wan0).expect("removed");
        assert!(records.instances_planned().is_empty());
    }

    #[test]
    fn records_bear_the_names_of_pins() {
        let place = |folder: &str| of_folder(Path::new(folder));
        let steer = "/sys/fs/bpf/rxlane/steer/4026531840";
        assert_eq!(place(&format!("{steer}/wan0")), Some(instance(4_026_531_840, "wan0")));
        assert_eq!(place(&format!("{steer}/eth0:35 9")), Some(instance(4_026_531_840, "eth0.35 9")));
        assert_eq!(place("/sys/fs/bpf/rxlane/steer"), None);
    }
}

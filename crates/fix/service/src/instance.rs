//! What is brought up and taken down: kinds, and the instances of each by their names.

use crate::state::{StateDir, StateError};
use format::quoted;
use kernel::netns::NetNs;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A link; by the name of its interface.
    Link,
    /// The PPPoE session of a client; by the name of its interface.
    Session,
    /// An access concentrator; by the name of the interface that it serves.
    Concentrator,
    /// Steering; by the name that the interface had when it was attached.
    Steer,
    /// An envelope; by the name that the interface had when it was attached.
    Envelope,
    /// The fast path of a network namespace, of which there is one.
    Fastpath,
}

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of a session may take: the goodbye, the name servers, and two scripts, each of which has half a minute.
const SESSION_END: Duration = Duration::from_secs(100);

impl Kind {
    /// How the names of its files begin.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Kind::Link => "link",
            Kind::Session => "session",
            Kind::Concentrator => "concentrator",
            Kind::Steer => "steer",
            Kind::Envelope => "envelope",
            Kind::Fastpath => "fastpath",
        }
    }

    /// How long its end may take.
    pub(crate) const fn end_timeout(self) -> Duration {
        match self {
            Kind::Session => SESSION_END,
            _ => PATIENCE,
        }
    }

    /// With its article.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Kind::Link => "a link",
            Kind::Session => "a PPPoE session",
            Kind::Concentrator => "an access concentrator",
            Kind::Steer => "the steering daemon",
            Kind::Envelope => "an envelope",
            Kind::Fastpath => "the fast path",
        }
    }

    /// The command that lists those that there are.
    pub(crate) const fn list_command(self) -> &'static str {
        match self {
            Kind::Link => "rxlane link status",
            Kind::Session | Kind::Concentrator => "rxlane pppoe status",
            Kind::Steer => "rxlane steer status",
            Kind::Envelope => "rxlane envelope status",
            Kind::Fastpath => "rxlane fastpath status",
        }
    }

    /// What to do where the one that is named is not there.
    pub(crate) fn others(self) -> String {
        match self {
            Kind::Fastpath => "`rxlane fastpath up PORT PORT` brings one up".to_owned(),
            _ => format!("`{}` lists those that there are", self.list_command()),
        }
    }

    /// The command that shows one, but for its name.
    pub(crate) const fn show_command(self) -> &'static str {
        match self {
            Kind::Concentrator => "rxlane pppoe sessions",
            _ => self.list_command(),
        }
    }

    /// The command that ends one, but for its name.
    pub(crate) const fn end_command(self) -> &'static str {
        match self {
            Kind::Link => "rxlane link down",
            Kind::Session => "rxlane pppoe disconnect",
            Kind::Concentrator => "rxlane pppoe disconnect --concentrator",
            Kind::Steer => "rxlane steer down",
            Kind::Envelope => "rxlane envelope down",
            Kind::Fastpath => "rxlane fastpath down",
        }
    }

    /// One of them, by its name where there are several.
    pub(crate) fn named(self, name: &str) -> String {
        if self == Kind::Fastpath { self.to_string() } else { format!("{self} {name}") }
    }

    /// What goes with its process.
    pub(crate) const fn part(self) -> &'static str {
        if matches!(self, Kind::Fastpath) { "its program" } else { "its interface" }
    }

    /// What happened along with the end of a process that was killed, and what happens to its traces.
    pub(crate) fn aftermath(self, name: &str) -> String {
        if self.is_continued() {
            return format!(": the next `rxlane pppoe serve {}` goes on with its sessions", quoted(name));
        }
        format!(", and {} went with it; what it left is removed", self.part())
    }

    /// Whether the next process goes on with what one was doing that was killed: until then, or until it is ended, that it was is reported
    /// to whoever queries. Its programs in XDP keep its interface for a while.
    pub(crate) const fn is_continued(self) -> bool {
        matches!(self, Kind::Concentrator)
    }

    /// How one comes to hold a name whose interface is free.
    pub(crate) const fn holder(self) -> &'static str {
        match self {
            Kind::Link => "a link that came up by this name, and whose interface was renamed since",
            // It has its name also while there is no interface.
            Kind::Session => "a PPPoE session of this name, open or not (`--ifname` takes another name)",
            Kind::Concentrator => {
                "an access concentrator of this interface (`--takeover` continues its sessions)"
            }
            Kind::Steer => "the daemon of an interface that is steered",
            Kind::Envelope => "an envelope",
            Kind::Fastpath => "the fast path of this network namespace",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Link => "link",
            Kind::Session => "PPPoE session",
            Kind::Concentrator => "access concentrator on",
            Kind::Steer => "steering of",
            Kind::Envelope => "envelope of",
            Kind::Fastpath => "fast path",
        })
    }
}

/// One thing that is brought up and taken down, as its files are named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instance {
    pub kind: Kind,
    /// The number of the network namespace in which it came up.
    pub namespace: NetNs,
    /// Its name, which stays when its interface is renamed or goes to another namespace.
    pub name: String,
}

impl Instance {
    pub(crate) fn stem(&self) -> String {
        format!("{}-{}-{}", self.kind.word(), self.namespace, self.name)
    }
}

/// The instances of one kind in the network namespace of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instances {
    kind: Kind,
    state: StateDir,
    namespace: NetNs,
}

impl Instances {
    /// Those of this kind in the network namespace of the calling thread.
    pub fn new(kind: Kind, state: StateDir) -> Result<Instances, StateError> {
        let failed = StateError::file("read", Path::new("/proc/thread-self/ns/net"));
        let namespace = NetNs::current().map_err(failed)?;
        Ok(Instances { kind, state, namespace })
    }

    pub const fn kind(&self) -> Kind {
        self.kind
    }

    pub const fn state(&self) -> &StateDir {
        &self.state
    }

    pub fn named(&self, name: &str) -> Instance {
        Instance { kind: self.kind, namespace: self.namespace, name: name.to_owned() }
    }

    pub(crate) fn file(&self, name: &str, suffix: &str) -> PathBuf {
        self.state.path().join(format!("{}{suffix}", self.named(name).stem()))
    }
}

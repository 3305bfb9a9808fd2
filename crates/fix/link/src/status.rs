//! How a link stands.

use crate::counters::{Counted, Counters};
use crate::dropped::Dropped;
use crate::framing::Form;
use kernel::netlink;
use kernel::socket::Packet;
use serde::{Deserialize, Serialize};
use service::control::ControlHandler;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Instant;

/// What does not change while a link is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub name: String,
    /// Name of the parent when the link came up.
    pub parent: String,
    /// The encapsulation, outermost first.
    pub encapsulation: String,
    /// `tun`: IP packets; `tap`: Ethernet frames.
    pub interface: String,
    pub datapath: String,
    #[serde(default)]
    pub workers: usize,
    /// How frames leave the parent: `af-packet`, `af-xdp`.
    #[serde(default)]
    pub io: String,
    /// What the kernel leaves to the data path: `checksum`, `tso4`, `tso6`, `uso`.
    #[serde(default)]
    pub offloads: Vec<String>,
    /// MTU that the interface was given, bytes.
    pub mtu: u32,
    /// The MTU that the parent needs for packets of that length, bytes.
    #[serde(default)]
    pub needed_parent_mtu: u32,
    pub addresses: Vec<String>,
    /// Whether the maximum segment size of TCP is lowered.
    pub mss_clamp: bool,
    pub pid: u32,
}

/// A link at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    #[serde(flatten)]
    pub identity: Identity,
    /// Name that the interface has now; `None`: not known.
    #[serde(default)]
    pub present_name: Option<String>,
    /// Whether the interface is set up; `None`: not known.
    #[serde(default)]
    pub interface_up: Option<bool>,
    /// Seconds since it came up.
    pub seconds: f64,
    /// Whether the parent is up and its line works.
    pub parent_works: bool,
    /// MTU of the parent now, bytes.
    pub parent_mtu: u32,
    /// Packets that the kernel could not hand to this process, which was too slow to take them.
    pub interface_full: Option<u64>,
    /// What was counted since it came up.
    #[serde(flatten)]
    pub counted: Counted,
}

/// The word for a form in scripted output.
pub(crate) const fn form_word(form: Form) -> &'static str {
    match form {
        Form::Packets => "tun",
        Form::Frames => "tap",
    }
}

/// What the thread that answers questions shares with the one that moves packets.
#[derive(Debug)]
pub(crate) struct Shared {
    pub identity: Identity,
    /// Of each worker, and another descriptor of its socket on the parent.
    pub workers: Vec<(Arc<Counters>, Packet)>,
    pub index: u32,
    pub since: Instant,
    pub parent_works: AtomicBool,
    pub parent_mtu: Arc<AtomicU32>,
}

impl Shared {
    pub(crate) fn status(&self) -> Status {
        let mut counted = Counted::default();
        for (counters, observer) in &self.workers {
            // What cannot be read is counted the next time.
            let lost = observer.drops().unwrap_or_default();
            counters.dropped(Dropped::SocketFull, lost.into());
            counted.add(counters.read());
        }
        let interface = netlink::link_by_index(self.index).ok();
        Status {
            identity: self.identity.clone(),
            present_name: interface.as_ref().map(|link| link.name.clone()),
            interface_up: interface.as_ref().map(netlink::Link::is_up),
            seconds: self.since.elapsed().as_secs_f64(),
            parent_works: self.parent_works.load(Ordering::Relaxed),
            parent_mtu: self.parent_mtu.load(Ordering::Relaxed),
            interface_full: interface.and_then(|link| link.tx_dropped),
            counted,
        }
    }
}

impl ControlHandler for Shared {
    fn answer(&self, question: &str) -> Option<String> {
        let is_known = matches!(question, "status" | "down");
        is_known.then(|| serde_json::to_string(&self.status()).unwrap_or_default())
    }
}

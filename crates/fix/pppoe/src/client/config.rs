//! What a client wants.

use crate::discovery::host;
use crate::session;
use std::sync::Arc;
use std::time::Duration;

/// What a client wants; shared by all of its sessions.
#[derive(Clone, Debug)]
pub struct Config {
    /// Concentrator, service, and most bytes of PPP payload.
    pub discovery: host::Config,
    pub session: Arc<session::Config>,
    pub reconnect: Reconnect,
}

/// When it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconnect {
    /// The longest wait after a first failure; twice as long after each further one.
    pub first: Duration,
    /// The longest wait of all.
    pub longest: Duration,
    /// The longest wait, at least, after a failure that waiting hardly fixes.
    pub lasting: Duration,
    /// A session that has stood for so long counts as success.
    pub stable: Duration,
    /// Failures in a row after which it is given up; `None`: never.
    pub most: Option<u32>,
}

impl Reconnect {
    /// A second, a minute, a minute, half a minute; for ever.
    pub const DEFAULT: Reconnect = Reconnect {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(60),
        lasting: Duration::from_secs(60),
        stable: Duration::from_secs(30),
        most: None,
    };

    /// The longest wait after so many failures in a row.
    pub fn wait(&self, failures: u32) -> Duration {
        crate::backoff(self.first, failures, self.longest)
    }
}

//! Why a client cannot begin, or cannot go on.

use crate::resolver::ResolverError;
use format::quoted;
use link::Dropped;
use link::error::Kind;
use pppoe::discovery::message::TooLong;
use service::control::ControlError;
use service::memory::MemoryError;
use std::io;

/// Why not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Link(#[from] link::Error),
    /// More tags than a PPPoE line is looked for in.
    #[error("more than {} VLAN tags around PPPoE are used nowhere", wire::Vlans::MOST)]
    TooManyTags,
    /// A packet of the discovery stage is too long.
    #[error(transparent)]
    Discovery(#[from] TooLong),
    /// The interface did not take a packet.
    #[error("{parent} sent nothing ({why}){}", not_sent(*why, parent))]
    NotSent { parent: String, why: Dropped },
    /// The name servers of before cannot be put back.
    #[error(transparent)]
    Resolver(#[from] ResolverError),
}

impl Error {
    /// What it means for the exit code.
    pub fn kind(&self) -> Kind {
        match self {
            Error::Link(error) => error.kind(),
            Error::TooManyTags | Error::Discovery(_) => Kind::Usage,
            Error::NotSent { .. } => Kind::No,
            Error::Resolver(_) => Kind::Lacks,
        }
    }

    /// What the kernel said, where it is that no more files may be opened, whatever was tried.
    pub(crate) fn or_descriptors(self, needed: u64) -> Error {
        match self {
            Error::Link(error) => Error::Link(error.or_descriptors(needed)),
            error => error,
        }
    }

    /// A failed system call.
    pub(crate) fn kernel(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
        let failed = link::Error::kernel(what);
        move |source| failed(source).into()
    }
}

impl From<MemoryError> for Error {
    fn from(error: MemoryError) -> Error {
        Error::Link(error.into())
    }
}

impl From<ControlError> for Error {
    fn from(error: ControlError) -> Error {
        Error::Link(error.into())
    }
}

fn not_sent(why: Dropped, parent: &str) -> String {
    match why {
        Dropped::ParentDown => format!(
            ": it is down (`ip link set {quoted_parent} up`), or removed",
            quoted_parent = quoted(parent)
        ),
        Dropped::ParentMtu => format!(
            ": the packet is longer than its MTU (`ip -br link show {quoted_parent}`)",
            quoted_parent = quoted(parent)
        ),
        _ => String::new(),
    }
}

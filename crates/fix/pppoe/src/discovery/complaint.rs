//! What a peer says went wrong: the three error tags of RFC 2516 appendix A.

use super::message::Message;
use format::Quotable;
use std::fmt;
use wire::pppoe::TagType;

/// Bytes kept of a text: as many as are ever printed.
const LONGEST: usize = 4 * Quotable::MOST;

/// Which tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Service-Name-Error: the service requested is not served.
    ServiceName,
    /// AC-System-Error: the concentrator cannot do it now.
    AcSystem,
    /// Generic-Error: anything else.
    Generic,
}

impl Kind {
    pub const fn tag(self) -> TagType {
        match self {
            Kind::ServiceName => TagType::SERVICE_NAME_ERROR,
            Kind::AcSystem => TagType::AC_SYSTEM_ERROR,
            Kind::Generic => TagType::GENERIC_ERROR,
        }
    }

    /// Its name in RFC 2516.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::ServiceName => "Service-Name-Error",
            Kind::AcSystem => "AC-System-Error",
            Kind::Generic => "Generic-Error",
        }
    }
}

/// An error tag of a received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub kind: Kind,
    /// What it says, which a peer chose: at most 800 bytes, to be printed through [`Quotable`].
    pub text: Vec<u8>,
}

impl Complaint {
    /// The first error tag of a packet.
    pub fn of(message: &Message<'_>) -> Option<Complaint> {
        let kinds = [Kind::ServiceName, Kind::AcSystem, Kind::Generic];
        message.tags().find_map(|tag| {
            let kind = kinds.into_iter().find(|kind| kind.tag() == tag.kind)?;
            Some(Complaint { kind, text: tag.value.get(..LONGEST).unwrap_or(tag.value).to_vec() })
        })
    }
}

impl Complaint {
    /// What it means and what a subscriber can do, to stand behind it.
    pub(crate) fn advice(&self) -> &'static str {
        match self.kind {
            Kind::ServiceName => {
                "; it does not serve the service that was requested: leave the service name out, or ask for one that \
                 `rxlane pppoe discover` lists"
            }
            Kind::AcSystem => {
                "; the fault is the concentrator's (no room for another session, or an earlier session of this line is still \
                 counted there): a later try may succeed; if none does, ask the operator and quote this text"
            }
            // RFC 2516 appendix A gives this one no meaning beyond its text.
            Kind::Generic if self.text.is_empty() => {
                "; a later try may succeed; if none does, ask the operator"
            }
            Kind::Generic => "; if that does not help, ask the operator and quote it",
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind.name();
        match self.text.as_slice() {
            [] => write!(f, "{name} without a text"),
            text => write!(f, "{name} \"{}\"", Quotable(text)),
        }
    }
}

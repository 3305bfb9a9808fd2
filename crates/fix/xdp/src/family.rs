//! What can be on an interface: programs that steer, or one that keeps an envelope.

use std::fmt;

use crate::error::Error;

/// A family of programs, whose pins are in a folder of their own. An interface has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Steering of inner flows: [`attach`](crate::attach()).
    Steer,
    /// The allowance for headers: [`envelope`](crate::envelope).
    Envelope,
}

impl Family {
    /// The word of command lines and of the folder of pins.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Steer => "steer",
            Family::Envelope => "envelope",
        }
    }

    pub(crate) fn attached(self, interface: &str, attached: &str) -> Error {
        let (interface, attached) = (interface.to_owned(), attached.to_owned());
        match self {
            Family::Steer => Error::Attached { interface, attached },
            Family::Envelope => Error::Enveloped { interface, attached },
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! What can be on an interface: programs that steer, one that keeps an envelope, or one of a concentrator.

use format::quoted;
use std::fmt;

/// A family of programs, whose pins are in a folder of their own. An interface has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Steering of inner flows: [`attach`](crate::attach()).
    Steer,
    /// The allowance for headers: [`envelope`](crate::envelope).
    Envelope,
    /// Forwarding for a concentrator: [`subscribers`](crate::subscribers).
    Pppoe,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 3] = [Family::Steer, Family::Envelope, Family::Pppoe];

    /// The word of command lines and of the folder of pins.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Steer => "steer",
            Family::Envelope => "envelope",
            Family::Pppoe => "pppoe",
        }
    }

    /// The command that ends what was attached to an interface under this name.
    pub fn end_command(self, attached: &str) -> String {
        match self {
            Family::Steer | Family::Envelope => format!("rxlane {self} down {}", quoted(attached)),
            Family::Pppoe => "rxlane pppoe disconnect --concentrator IFACE".to_owned(),
        }
    }

    /// The command that shows what is attached to an interface.
    pub(crate) fn status_command(self, interface: &str) -> String {
        match self {
            Family::Steer | Family::Envelope => format!("rxlane {self} status {}", quoted(interface)),
            Family::Pppoe => "rxlane pppoe status".to_owned(),
        }
    }

    /// That an interface has it already, which was attached under this name.
    pub(crate) fn present(self, attached: &str) -> String {
        match self {
            Family::Steer => format!("is steered already (attached as {attached})"),
            Family::Envelope => format!(
                "has an envelope already (attached as {attached}), and an interface takes one XDP program"
            ),
            Family::Pppoe => format!(
                "has a program of `rxlane pppoe serve` already (attached as {attached}), and an interface takes one XDP program"
            ),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

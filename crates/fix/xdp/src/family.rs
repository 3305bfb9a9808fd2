//! What can be on an interface: programs that steer, or one that keeps an envelope.

use std::fmt;

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

    /// That an interface has it already, which was attached under this name.
    pub(crate) fn present(self, attached: &str) -> String {
        match self {
            Family::Steer => format!("is steered already (attached as {attached})"),
            Family::Envelope => format!(
                "has an envelope already (attached as {attached}), and an interface takes one XDP program"
            ),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

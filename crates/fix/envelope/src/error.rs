//! What of an envelope stands in the way, or is missing.

use format::quoted;
use service::ErrorKind;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{interface} has no envelope: there is nothing to take back{}", hint(renamed))]
    None { interface: String, renamed: Option<String> },
    /// The interface gives a program in generic mode what is no frame.
    #[error(
        "{interface} ({driver}) hands on super-packets that the sender has not cut into frames, which a program in generic \
         mode would refuse as too long: native mode has them cut"
    )]
    Uncut { interface: String, driver: String },
    #[error(
        "what writes to {interface}, a TAP device, may write super-packets that are not cut into frames (it uses virtio \
         headers, as virtual machines and `rxlane link --datapath batch` do), and an envelope would refuse them as too long: for \
         a link, put the envelope on its parent, or use `--datapath simple`"
    )]
    Written { interface: String },
    #[error(
        "{interface} still has the MTU that `rxlane envelope up` raised, and its program is no longer attached: `rxlane envelope down \
         {quoted_interface}` restores the MTU", quoted_interface = quoted(.interface))]
    Bare { interface: String },
    #[error(
        "the MTU of {interface} was changed by somebody else at this moment; nothing was changed here: try again"
    )]
    Raced { interface: String },
    #[error("{interface}{} takes no MTU of {requested}: {why}; nothing was changed", of(driver))]
    Mtu { interface: String, driver: Option<String>, requested: u32, why: String },
    #[error(
        "the MTU of {interface} cannot be put back: {why}; the program stays, so that no longer payloads get in"
    )]
    Restore { interface: String, why: String },
    /// As with steering: the interface, the programs, the journal or the records.
    #[error(transparent)]
    Steer(#[from] steer::error::Error),
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Mtu { .. } | Error::Restore { .. } => ErrorKind::Lacks,
            Error::Steer(error) => error.kind(),
            _ => ErrorKind::No,
        }
    }
}

/// Errors of what an envelope is made of say the same as with steering.
macro_rules! from_part {
    ($($part:ty),*) => {$(
        impl From<$part> for Error {
            fn from(error: $part) -> Error {
                Error::Steer(error.into())
            }
        }
    )*};
}

from_part!(
    xdp::Error,
    service::journal::Error,
    service::record::RecordError,
    service::StateError,
    steer::record::Error,
    host::setting::ParseError
);

/// ` (igb)`.
fn of(driver: &Option<String>) -> String {
    driver.as_ref().map(|driver| format!(" ({driver})")).unwrap_or_default()
}

fn hint(renamed: &Option<String>) -> String {
    let sentence = |other: &String| {
        format!(
            "; {other}, which has one, was called so when it got it (`rxlane envelope down {quoted_other}`)",
            quoted_other = quoted(other)
        )
    };
    renamed.as_ref().map(sentence).unwrap_or_default()
}

//! An envelope on an interface: room for headers without room for longer payloads, put up, looked at, and taken down.
//!
//! # Contract
//!
//! * [`up()`] puts the program on before it raises the MTU, and [`down()`] puts the MTU back before it takes the program
//!   off: at no moment does a longer payload get in than before.
//! * The program's pins say what the MTU was and what it was raised by; the journal holds the change of the MTU before it
//!   is made. From either of them [`down()`] restores it, whichever process was killed at whichever moment. What somebody
//!   else has made of the MTU since is left unchanged and reported; where the MTU cannot be put back, the program stays.
//! * An MTU that was raised by an envelope is never taken for that of the interface: where the program went without
//!   `down`, [`up()`] refuses.
//!
//! ```no_run
//! let records = steer::record::Records::new(steer::record::Records::DIRECTORY);
//! println!("{:?}", rxlane_envelope::status("eth0", &records)?);
//! # Ok::<(), rxlane_envelope::Error>(())
//! ```
//!
//! # Deliberately not here
//!
//! What is sent. The program sees what comes in; what goes out untagged may be as long as the MTU.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]

mod down;
mod error;
mod place;
mod status;
mod up;

pub use down::{Down, down, recover};
pub use error::Error;
pub use status::{Row, State, Status, status};
pub use up::{Done, Request, Resolved, resolve, up};

/// The name under which the MTU of an interface stands in the journal.
pub fn by(interface: &str) -> String {
    format!("{BY}{interface}")
}

const BY: &str = steer::stale_namespaces::ENVELOPE;

pub(crate) fn is_by(name: &str) -> bool {
    name.starts_with(BY)
}

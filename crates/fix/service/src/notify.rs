//! What the service manager hears (sd_notify(3)), where `NOTIFY_SOCKET` names one. One that has ended need not know, so
//! nobody has to look at the results.

use sd_notify::{NotifyState, notify};
use std::io;

/// What was to come up is up, with a sentence for `systemctl status`.
pub fn ready(text: &str) -> io::Result<()> {
    notify(&[NotifyState::Ready, NotifyState::Status(&one_line(text))])
}

/// A sentence for `systemctl status`.
pub fn status(text: &str) -> io::Result<()> {
    notify(&[NotifyState::Status(&one_line(text))])
}

/// It is about to end.
pub fn stopping() -> io::Result<()> {
    notify(&[NotifyState::Stopping])
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

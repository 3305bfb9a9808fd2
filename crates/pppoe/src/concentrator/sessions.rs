//! The table of sessions.

pub(in crate::concentrator) mod chains;
pub(in crate::concentrator) mod timers;

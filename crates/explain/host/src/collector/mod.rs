//! The collector for machines without rxlane: a POSIX sh script for Linux (BusyBox among it), FreeBSD and NetBSD.
//!
//! It prints a [bundle](crate), redacted by the rules of [`redact`](crate::redact), with the tools of the base
//! system. It changes nothing on the machine, writes no file, and needs no privilege.

/// The script.
pub const SCRIPT: &str = include_str!("collector.sh");

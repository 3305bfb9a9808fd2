//! What tools print when they cannot do what was requested: the last words are `strerror`'s (errno(3)), the first ones
//! the tool's own.

/// Ends of a line that says why there is no output.
const ENDS: [&str; 17] = [
    "Operation not supported",
    "Operation not permitted",
    "Permission denied",
    "No such device",
    "No such file or directory",
    "Invalid argument",
    "No data available",
    "Function not implemented",
    "Address family not supported by protocol",
    "Inappropriate ioctl for device",
    "Input/output error",
    // The same of musl.
    "I/O error",
    "command not found",
    "not found",
    "does not exist.",
    "does not exist",
    "Is a directory",
];

/// Whole lines, or beginnings, that say it without an error of the system.
const BEGINNINGS: [&str; 9] = [
    "no stats available",
    "no features available",
    "no channel parameters available",
    "ethtool: bad command line argument",
    "netlink error: ",
    "Cannot get ",
    "sysctl: unknown oid ",
    // NetBSD: "second level name isr in net.isr is invalid".
    "sysctl: second level name ",
    "rxlane: ",
];

/// Characters of a line that can be an error; a longer one is prose.
const LONGEST: usize = 160;

/// The reason that a line gives for there being no output; `None` for any other line.
pub(super) fn reason(line: &str) -> Option<&str> {
    let is_error = line.len() <= LONGEST
        && (BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
            || ENDS.iter().any(|end| {
                line.strip_suffix(end).is_some_and(|head| {
                    head.is_empty() || head.ends_with(": ") || head.starts_with("Device \"")
                })
            }));
    is_error.then_some(line)
}

//! What this process may do.

use std::os::unix::fs::MetadataExt;

/// Whether it runs as root: its folder in procfs belongs to its user.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|folder| folder.uid() == 0)
}

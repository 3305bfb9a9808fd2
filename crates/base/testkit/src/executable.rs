//! Programs for users who may not enter the build folder.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies a program into a folder and opens both to all users; the path of the copy.
///
/// Another process writes the copy, `cp`: whatever another thread of this one forks off at that moment would hold the file open
/// for writing until it has become the program that it is to be, and whoever executed the copy meanwhile would get the error that it
/// is busy (ETXTBSY, execve(2)). Error: `cp` cannot be started or fails, or the mode of either cannot be changed.
pub fn open_copy(program: &Path, folder: &Path) -> io::Result<PathBuf> {
    let copy = folder.join(program.file_name().unwrap_or(program.as_os_str()));
    let status = Command::new("cp").arg(program).arg(&copy).status()?;
    if !status.success() {
        return Err(io::Error::other(format!("cp {} {}: {status}", program.display(), copy.display())));
    }
    for path in [folder, &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(copy)
}

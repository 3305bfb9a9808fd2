//! Folders that nobody else can write to.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a folder is not private.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum FolderError {
    #[error("cannot {doing} {}", .path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is no folder; remove it, or name another one", .0.display())]
    NotAFolder(PathBuf),
    #[error("user {owner} owns {}, not user {own}; remove the folder, or name another one", .path.display())]
    Owner { path: PathBuf, owner: u32, own: u32 },
    #[error("others than the owner can write to {path} (mode {mode:04o}); `chmod 0700 {path}` once nothing in it is theirs", path = .path.display())]
    Writable { path: PathBuf, mode: u32 },
}

/// Makes a folder with mode 0700, or makes sure that an existing one is the effective user's and that nobody else can write to
/// it; nobody else can read it afterwards either. The folder above it has to exist.
pub fn private_folder(path: &Path) -> Result<(), FolderError> {
    let failed = |doing| move |source| FolderError::Io { doing, path: path.to_owned(), source };
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed("make")(error)),
        _ => {}
    }
    let own = rustix::process::geteuid().as_raw();
    let mode = expect_private(path, &[own])?;
    if mode & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(failed("change the mode of"))?;
    }
    Ok(())
}

/// Makes sure that nobody but the effective user and root can write to a folder; `false`: there is none.
pub fn is_trusted_folder(path: &Path) -> Result<bool, FolderError> {
    let own = rustix::process::geteuid().as_raw();
    match expect_private(path, &[own, 0]) {
        Ok(_) => Ok(true),
        Err(FolderError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes sure that one of these users owns a folder and nobody else can write to it; its mode.
fn expect_private(path: &Path, owners: &[u32]) -> Result<u32, FolderError> {
    let failed = |source| FolderError::Io { doing: "read", path: path.to_owned(), source };
    let folder = fs::symlink_metadata(path).map_err(failed)?;
    if !folder.is_dir() {
        return Err(FolderError::NotAFolder(path.to_owned()));
    }
    if !owners.contains(&folder.uid()) {
        let own = rustix::process::geteuid().as_raw();
        return Err(FolderError::Owner { path: path.to_owned(), owner: folder.uid(), own });
    }
    let mode = folder.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(FolderError::Writable { path: path.to_owned(), mode });
    }
    Ok(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_private_folder_is_readable_by_its_owner_alone() {
        let above = tempfile::tempdir().expect("a folder");
        let path = above.path().join("state");
        let mode = || fs::metadata(&path).expect("a folder").mode() & 0o7777;
        assert!(!is_trusted_folder(&path).expect("no folder yet"));
        private_folder(&path).expect("made");
        assert!(is_trusted_folder(&path).expect("a folder"));
        private_folder(&path).expect("there");
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a mode");
        private_folder(&path).expect("made private");
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&path, Permissions::from_mode(0o770)).expect("a mode");
        assert!(matches!(is_trusted_folder(&path), Err(FolderError::Writable { .. })));
        let error = private_folder(&path).expect_err("others can write").to_string();
        assert!(error.contains(&format!("{} (mode 0770)", path.display())), "{error}");
    }

    #[test]
    fn what_is_no_folder_of_this_user_is_refused() {
        let above = tempfile::tempdir().expect("a folder");
        let path = |name| above.path().join(name);
        fs::write(path("file"), "").expect("written");
        symlink(above.path(), path("link")).expect("a link");
        for name in ["file", "link"] {
            assert!(matches!(private_folder(&path(name)), Err(FolderError::NotAFolder(_))), "{name}");
        }
        assert!(matches!(private_folder(&path("none/state")), Err(FolderError::Io { doing: "make", .. })));
        if rustix::process::geteuid().is_root() {
            fs::create_dir(path("theirs")).expect("a folder");
            std::os::unix::fs::chown(path("theirs"), Some(1), None).expect("an owner");
            assert!(matches!(is_trusted_folder(&path("theirs")), Err(FolderError::Owner { owner: 1, .. })));
            let error = private_folder(&path("theirs")).expect_err("somebody else's").to_string();
            assert!(error.starts_with("user 1 owns ") && error.contains("not user 0"), "{error}");
        }
    }
}

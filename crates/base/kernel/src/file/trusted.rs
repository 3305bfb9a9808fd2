//! Files that nobody but root and this user can change.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Symbolic links in a path, at most (path_resolution(7)).
const MOST_LINKS: usize = 40;
/// Groups below this are the system's own, such as `staff` and `syslog`, which may write to `/usr/local` and `/var/log` on some
/// distributions (login.defs(5), `GID_MIN`).
const FIRST_GROUP_OF_USERS: u32 = 1000;
const STICKY: u32 = 0o1000;

/// Who else can change a file, and where: it, a folder on the way to it, or a symbolic link.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum TrustError {
    #[error("cannot look at {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "user {owner} owns {path} and could change what runs as user {own}: name a file where that user alone can write, such as below \
         /etc",
        path = path.display()
    )]
    Owner { path: PathBuf, owner: u32, own: u32 },
    #[error(
        "others than its owner can write to {path} (mode {mode:04o}), and so could change what runs as user {own}: `chmod go-w {path}`, \
         or name a file where that user alone can write",
        path = path.display()
    )]
    Writable { path: PathBuf, mode: u32, own: u32 },
}

impl From<TrustError> for io::Error {
    fn from(error: TrustError) -> io::Error {
        match error {
            TrustError::Io { source, .. } => source,
            other => io::Error::other(other),
        }
    }
}

/// Makes sure that nobody but root, this user and the user who became root by sudo(8) can change the file at `path`, or put another
/// one there: by themselves, by a folder on the way, or by a symbolic link of their own. What is not there yet is as safe as
/// the folder in which it would be.
pub fn expect_trusted(path: &Path) -> Result<(), TrustError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| TrustError::Io { path, source }
    };
    let trust = Trust::new().map_err(failed(Path::new("/")))?;
    let path = std::path::absolute(path).map_err(failed(path))?;
    let mut at = PathBuf::from("/");
    let mut rest: VecDeque<OsString> = path.iter().map(OsString::from).collect();
    let mut links = 0;
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            at.pop();
            continue;
        }
        // The root takes the place of the whole path.
        let next = at.join(name);
        let metadata = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            found => found.map_err(failed(&next))?,
        };
        trust.expect(&next, &metadata)?;
        if !metadata.is_symlink() {
            at = next;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(failed(&next)(rustix::io::Errno::LOOP.into()));
        }
        let target = fs::read_link(&next).map_err(failed(&next))?;
        target.iter().rev().for_each(|name| rest.push_front(name.to_owned()));
    }
    Ok(())
}

struct Trust {
    own: u32,
    /// The own group, and that of who became root by sudo(8).
    groups: [Option<u32>; 2],
    /// Root, or who stands in its place in a user namespace that has no root.
    root: u32,
    /// Who became root by sudo(8).
    before: Option<u32>,
}

impl Trust {
    fn new() -> io::Result<Trust> {
        let own = rustix::process::geteuid();
        let before = |variable: &str| std::env::var(variable).ok().filter(|_| own.is_root())?.parse().ok();
        Ok(Trust {
            own: own.as_raw(),
            groups: [Some(rustix::process::getegid().as_raw()), before("SUDO_GID")],
            root: fs::metadata("/")?.uid(),
            before: before("SUDO_UID"),
        })
    }

    fn expect(&self, path: &Path, metadata: &Metadata) -> Result<(), TrustError> {
        let (owner, own) = (metadata.uid(), self.own);
        if ![own, 0, self.root].contains(&owner) && self.before != Some(owner) {
            return Err(TrustError::Owner { path: path.to_owned(), owner, own });
        }
        let mode = metadata.mode() & 0o7777;
        let is_users = metadata.gid() >= FIRST_GROUP_OF_USERS && !self.groups.contains(&Some(metadata.gid()));
        let by_group = mode & 0o020 != 0 && is_users;
        let is_writable = match metadata.file_type() {
            // Nobody replaces what another one has there.
            kind if kind.is_dir() && mode & STICKY != 0 => false,
            kind if kind.is_dir() || kind.is_file() => by_group || mode & 0o002 != 0,
            _ => false,
        };
        if is_writable {
            return Err(TrustError::Writable { path: path.to_owned(), mode, own });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    fn refusal(path: &Path) -> String {
        expect_trusted(path).expect_err("refused").to_string()
    }

    #[test]
    fn what_others_can_write_to_is_refused_wherever_it_stands_in_the_path() {
        let above = tempfile::tempdir().expect("a folder");
        let path = |name: &str| above.path().join(name);
        let mode =
            |name: &str, mode| fs::set_permissions(path(name), Permissions::from_mode(mode)).expect("a mode");
        fs::create_dir(path("folder")).expect("a folder");
        fs::write(path("folder/file"), "").expect("written");
        symlink("../folder/./file", path("folder/link")).expect("a link");
        symlink("loop", path("loop")).expect("a link");
        let all = ["folder/file", "folder/link", "folder/none", "folder/../folder/file", "none/file"];
        for name in all {
            expect_trusted(&path(name)).expect(name);
        }
        expect_trusted(Path::new("/dev/null")).expect("a device");
        assert!(matches!(expect_trusted(&path("loop")), Err(TrustError::Io { .. })));
        mode("folder/file", 0o646);
        assert!(refusal(&path("folder/link")).contains("file (mode 0646)"));
        mode("folder/file", 0o644);
        mode("folder", 0o777);
        for name in &all[..4] {
            assert!(refusal(&path(name)).contains("folder (mode 0777)"), "{name}");
        }
        mode("folder", 0o1777);
        expect_trusted(&path("folder/file")).expect("sticky");
    }

    /// Attack: files and links of another user in a folder that all may write to.
    #[test]
    fn what_others_own_is_refused() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let above = tempfile::tempdir().expect("a folder");
        let path = |name: &str| above.path().join(name);
        fs::set_permissions(above.path(), Permissions::from_mode(0o1777)).expect("a mode");
        for name in ["own", "theirs"] {
            fs::write(path(name), "").expect("written");
        }
        symlink(path("own"), path("link")).expect("a link");
        chown(path("theirs"), Some(12345), None).expect("an owner");
        lchown(path("link"), Some(12345), None).expect("an owner");
        expect_trusted(&path("own")).expect("one's own");
        for name in ["theirs", "link"] {
            assert!(refusal(&path(name)).starts_with("user 12345 owns "), "{name}");
        }
        chown(path("own"), None, Some(12345)).expect("a group");
        fs::set_permissions(path("own"), Permissions::from_mode(0o664)).expect("a mode");
        assert!(refusal(&path("own")).contains("(mode 0664)"));
        chown(path("own"), None, Some(50)).expect("a group");
        expect_trusted(&path("own")).expect("a group of the system");
    }
}

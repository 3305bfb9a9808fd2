//! Files to write.

use std::path::{Path, PathBuf};

/// What every file of rxlane has in one of its first lines.
pub const MARKER: &str = "Written by rxlane";

/// Which command writes, and which one removes what it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// `rxlane doctor --apply --persist`.
    pub written_by: String,
    /// `rxlane doctor --undo`; `None` where the person writes the file, and removes it.
    pub removed_by: Option<String>,
}

impl Origin {
    /// The line that says so, without the sign that begins a comment.
    pub fn line(&self) -> String {
        match &self.removed_by {
            Some(removed_by) => format!("{MARKER}: `{}`; `{removed_by}` removes it.", self.written_by),
            None => format!("{MARKER}: `{}`.", self.written_by),
        }
    }
}

/// What a file is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text, with the end of its last line.
    Text(String),
    /// A symbolic link that leads there.
    Link(PathBuf),
}

/// A file of the system's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Absolute.
    pub path: PathBuf,
    /// Permissions, such as `0o644`; without meaning for a symbolic link.
    pub mode: u32,
    /// What it is to be.
    pub content: Content,
}

impl File {
    pub(crate) fn text(path: impl Into<PathBuf>, mode: u32, text: String) -> File {
        File { path: path.into(), mode, content: Content::Text(text) }
    }

    pub(crate) fn link(path: impl Into<PathBuf>, target: impl AsRef<Path>) -> File {
        File { path: path.into(), mode: 0o777, content: Content::Link(target.as_ref().to_owned()) }
    }
}

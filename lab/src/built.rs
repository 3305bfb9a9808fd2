//! Programs of the same build as the one that runs.

use anyhow::{Context, Result};
use std::path::PathBuf;

/// The program of this name next to this one, or next to the folder that tests and examples are in; guests see it where it is.
///
/// # Errors
///
/// It is not built.
pub fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(name)).find(|file| file.is_file());
    found.with_context(|| format!("{name} is not built (cargo build -p {name})"))
}

//! Debian's package lists: the machine's own, and those of older releases, which are read into a folder of ours so
//! that nothing of the machine changes.

use crate::packages::output;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Where Debian keeps releases that its mirrors have dropped.
const ARCHIVE: &str = "http://archive.debian.org/debian";
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Options for apt's commands that say which lists to use; by default those of the machine.
#[derive(Debug, Default)]
pub(crate) struct Apt(Vec<String>);

impl Apt {
    /// The lists of one suite, read anew into `folder` from the mirror that the machine uses, or from the archive.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or neither has the suite.
    pub(crate) fn of_suite(suite: &str, folder: &Path) -> Result<Apt> {
        for part in ["lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(folder.join(part)).with_context(|| format!("{}", folder.display()))?;
        }
        let sources = folder.join("sources.list");
        let at = |name: &str| folder.join(name).display().to_string();
        let options = [
            format!("Dir::Etc::SourceList={}", sources.display()),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            format!("Dir::State::Lists={}", at("lists")),
            format!("Dir::Cache={}", at("cache")),
            // Its user could not reach a folder below one that is root's alone.
            "APT::Sandbox::User=root".to_owned(),
            "Acquire::Retries=3".to_owned(),
            // A list that cannot be fetched is an error, not a warning.
            "APT::Update::Error-Mode=any".to_owned(),
        ];
        let apt = Apt(options.into_iter().flat_map(|option| ["-o".to_owned(), option]).collect());
        let mut tried = Vec::new();
        for mirror in mirror().into_iter().chain([ARCHIVE.to_owned()]) {
            fs::write(&sources, format!("deb [signed-by={KEYS}] {mirror} {suite} main\n"))?;
            match output(apt.command("apt-get").args(["-q", "update"])) {
                Ok(_) => return Ok(apt),
                Err(error) => tried.push(format!("{mirror}: {error:#}")),
            }
        }
        bail!("no mirror has Debian's {suite}: {}", tried.join("; "))
    }

    /// One of apt's commands with these lists.
    pub(crate) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.args(&self.0);
        command
    }
}

/// The mirror of Debian that the machine uses, where it uses one.
fn mirror() -> Option<String> {
    let format = [
        "indextargets",
        "--format",
        "$(REPO_URI)",
        "Created-By: Packages",
        "Origin: Debian",
        "Label: Debian",
    ];
    let said = output(Command::new("apt-get").args(format)).ok()?;
    said.lines().next().map(|line| line.trim_end_matches('/').to_owned())
}

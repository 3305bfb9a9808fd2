//! `rxlane pppoe`: a PPPoE client, an access concentrator, and what answers on a line.

mod accounting;
mod capture;
mod connect;
mod disconnect;
mod discover;
mod drain;
mod fields;
mod options;
mod password;
mod prose;
mod radius_file;
mod serve;
mod sessions;
mod speaker;
mod status;
mod subscribers_file;

use crate::arguments::{StateArguments, responses};
use crate::link_command::{item, workers};
use crate::output::{BOLD, CommandResult, GOOD, Lacks, Output, POOR, complain};
use anyhow::{Context, anyhow};
use client::resolver::{Back, Place};
use concentrator::ConcentratorStatus;
use kernel::file::Regular;
use link::privilege;
use serde::de::DeserializeOwned;
use service::Kind;
use service::control::ControlError;
use std::path::Path;

/// What the name of an interface is, for people.
const NO_NAME: &str = "no name of an interface: 1 to 15 printable characters without `/` and spaces";

/// Whether an interface can have a name (`dev_valid_name()` of net/core/dev.c).
fn may_be_an_interface(name: &str) -> bool {
    (1..=15).contains(&name.len())
        && !name.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control())
        && !matches!(name, "." | "..")
}

/// The largest file that an operator names and that is read, bytes: as much as a million subscribers take.
const LARGEST: u64 = 64 << 20;

/// All that is in a regular file. A concentrator reads its secrets again while sessions wait for the answers to their echoes:
/// nothing may hold it up.
fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = Regular::open_trusted(path).and_then(|file| file.read(LARGEST));
    bytes.with_context(|| format!("cannot read {}", path.display()))
}

/// Sees that the privileges are there that `what` takes.
fn expect_privilege(what: &str) -> anyhow::Result<()> {
    let missing = privilege::missing();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Lacks(format!("{what} takes {}: run rxlane as root", missing.join(" and "))).into())
}

/// Sees that an interface can have a name, before any process is queried about it.
fn expect_interface(name: &str) -> anyhow::Result<()> {
    if may_be_an_interface(name) {
        return Ok(());
    }
    let escaped: String = name.escape_default().take(32).collect();
    let more = if name.len() > 32 { "…" } else { "" };
    Err(anyhow!("`{escaped}{more}` is {NO_NAME}"))
}

#[derive(clap::Args)]
pub struct PppoeArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Connect to a provider: a network interface for the session, which comes back when it ends.
    #[command(visible_alias = "up")]
    Connect(Box<connect::ConnectArguments>),
    /// Write what a subscriber of an access concentrator sends and receives, as pcapng.
    Capture(capture::CaptureArguments),
    /// Find the access concentrators of a line: who answers, with which services, how fast, how large packets may be.
    #[command(visible_alias = "check")]
    Discover(discover::DiscoverArguments),
    /// End a session.
    #[command(visible_alias = "down")]
    Disconnect(disconnect::DisconnectArguments),
    /// Take no more sessions of subscribers, and keep those that there are.
    Drain(drain::DrainArguments),
    /// Serve subscribers: an access concentrator with one network interface for all of them.
    Serve(Box<serve::ServeArguments>),
    /// Show the sessions of the subscribers that an access concentrator serves.
    Sessions(sessions::SessionsArguments),
    /// Show how clients' sessions stand: phase, addresses, last error and what to do about it; and which interfaces are served.
    Status(status::StatusArguments),
}

impl PppoeArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Capture(arguments) => arguments.run(out),
            Command::Connect(arguments) => arguments.run(out),
            Command::Discover(arguments) => arguments.run(out),
            Command::Disconnect(arguments) => arguments.run(out),
            Command::Drain(arguments) => arguments.run(out),
            Command::Serve(arguments) => arguments.run(out),
            Command::Sessions(arguments) => arguments.run(out),
            Command::Status(arguments) => arguments.run(out),
        }
    }
}

impl StateArguments {
    /// The status of all of a kind in this network namespace, and whether one that lives does not answer, which is reported.
    fn all<T: DeserializeOwned>(&self, kind: Kind) -> Result<(Vec<T>, bool), ControlError> {
        let sockets = self.instances(kind)?;
        responses(&sockets, |name| sockets.ask(name, "status"), |_| self.put_back())
    }

    /// The interface that was named, or the only one that is served; `None`: none is, or none answers, which was reported. Behind
    /// `naming` stands the name of one.
    fn served(&self, named: Option<String>, naming: &str) -> anyhow::Result<Option<String>> {
        if named.is_some() {
            return Ok(named);
        }
        let (mut served, is_silent) = self.all::<ConcentratorStatus>(Kind::Concentrator)?;
        let names: Vec<&str> = served.iter().map(|status| status.parent.as_str()).collect();
        if let [first, _, ..] = names[..] {
            return Err(anyhow!("which one? {} are served here: `{naming} {first}`", names.join(", ")));
        }
        if served.is_empty() && !is_silent {
            complain("no interface is served in this network namespace (`rxlane pppoe serve` serves one)");
        }
        Ok(served.pop().map(|status| status.parent))
    }

    /// Where there is no session of a name, the interface that is served there: by this name, or by an interface of it.
    fn served_by(&self, error: &ControlError, name: &str) -> Option<String> {
        if !matches!(error, ControlError::None { .. }) {
            return None;
        }
        let sockets = self.instances(Kind::Concentrator).ok()?;
        let answers = sockets.names().ok()?.into_iter();
        let mut answers = answers.filter_map(|name| sockets.ask::<ConcentratorStatus>(&name, "status").ok());
        answers.find(|status| status.parent == name || status.interface == name).map(|status| status.parent)
    }

    /// Puts back the name servers that a killed process could not, and reports it.
    fn put_back(&self) {
        match Place::of_machine(self.folder().path()).recover() {
            Ok(None) => {}
            Ok(Some(Back::Changed)) => complain(
                "/etc/resolv.conf was written by somebody else since the process was killed, and stays as it is",
            ),
            Ok(Some(Back::Done)) => complain("the name servers of before are back in /etc/resolv.conf"),
            Err(error) => complain(&error.to_string()),
        }
    }
}

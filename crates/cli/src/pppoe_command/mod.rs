//! `rxlane pppoe`: a PPPoE client, an access concentrator, and what answers on a line.

mod connect;
mod disconnect;
mod discover;
mod drain;
mod options;
mod password;
mod serve;
mod sessions;
mod status;

use crate::link_command::{failed, item, workers};
use crate::output::{CommandResult, Output};
use anstyle::{AnsiColor, Style};
use link::control::{Bearer, Sockets};
use link::error::Error;
use std::path::PathBuf;

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const POOR: Style = AnsiColor::Yellow.on_default();

/// Arguments of `rxlane pppoe`.
#[derive(clap::Args)]
pub struct PppoeArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Connect to a provider: a network interface for the session, which comes back when it ends.
    Connect(Box<connect::ConnectArguments>),
    /// Find the access concentrators of a line: who answers, with which services, how fast, how large packets may be.
    Discover(discover::DiscoverArguments),
    /// End a session.
    Disconnect(disconnect::DisconnectArguments),
    /// Take no more sessions of subscribers, and keep those that there are.
    Drain(drain::DrainArguments),
    /// Serve subscribers: an access concentrator with one network interface for all of them.
    Serve(Box<serve::ServeArguments>),
    /// Show the sessions of the subscribers that are served.
    Sessions(sessions::SessionsArguments),
    /// Show how sessions stand: phase, addresses, last error and what to do about it.
    Status(status::StatusArguments),
}

impl PppoeArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
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

/// Where sessions are asked.
#[derive(clap::Args)]
// The arguments of other commands that stand beside these have a group of the same name.
#[group(skip)]
struct StateArguments {
    /// Folder of the sockets of sessions.
    #[arg(long, value_name = "FOLDER", hide = true)]
    state: Option<PathBuf>,
}

impl StateArguments {
    fn folder(&self) -> PathBuf {
        let folder = self.state.clone().unwrap_or_else(|| host::journal::Journal::DIRECTORY.into());
        // A process that stays goes to another folder.
        std::path::absolute(&folder).unwrap_or(folder)
    }

    fn sockets(&self, bearer: Bearer) -> Result<Sockets, Error> {
        Ok(Sockets::new(bearer, self.folder())?)
    }
}

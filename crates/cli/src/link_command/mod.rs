//! `rxlane link`: an VLAN, QinQ or PPPoE line as a network interface: check, up, status, down.

mod check;
mod down;
mod parent;
mod status;
mod up;

use crate::arguments::StackArguments;
use crate::output::{CommandResult, Output};
use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use link::batch::Io;
use link::error::Error;
use service::control::ControlError;
use service::{Instances, StateDir};
use std::io;
use std::path::PathBuf;
use std::thread;
use wire::emit::Encapsulation;

const BOLD: Style = Style::new().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const POOR: Style = AnsiColor::Yellow.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();

#[derive(clap::Args)]
pub struct LinkArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say whether frames of a link pass its parent.
    Check(check::CheckArguments),
    /// Make a network interface of an VLAN, QinQ or PPPoE line, and stay until it is ended; with --daemon in the background.
    Up(Box<up::UpArguments>),
    /// Show how links stand: traffic, rates, drops by reason.
    Status(status::StatusArguments),
    /// End a link.
    Down(down::DownArguments),
}

impl LinkArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Check(arguments) => arguments.run(out),
            Command::Up(arguments) => arguments.run(out),
            Command::Status(arguments) => arguments.run(out),
            Command::Down(arguments) => arguments.run(out),
        }
    }
}

/// What the frames of a link look like: what `up` and `check` are asked alike.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("frames").required(true).args(["encap", "vlan"])))]
struct LineArguments {
    /// Ethernet interface below.
    #[arg(long, value_name = "INTERFACE")]
    parent: String,
    #[command(flatten)]
    stack: StackArguments,
    /// Longest IP packets, bytes [default: 1500, with PPPoE 1492, or what fits the parent].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65535))]
    mtu: Option<u32>,
}

impl LineArguments {
    fn encapsulation(&self) -> anyhow::Result<Encapsulation> {
        // clap demands one of them.
        self.stack.encapsulation()?.ok_or_else(|| anyhow!("--encap or --vlan says what the frames look like"))
    }
}

#[derive(clap::Args)]
// The arguments of other commands that stand beside these have a group of the same name.
#[group(skip)]
struct StateArguments {
    /// Folder of the sockets of links.
    #[arg(long, value_name = "FOLDER", hide = true)]
    state: Option<PathBuf>,
}

impl StateArguments {
    fn links(&self) -> Result<Instances, Error> {
        let folder = self.state.clone().unwrap_or_else(|| StateDir::DEFAULT.into());
        let links = Instances::new(service::Kind::Link, StateDir::at(folder));
        Ok(links.map_err(ControlError::from)?)
    }
}

/// A line of a name and a text that is broken behind it.
pub fn item(out: &mut Output, name: &str, text: &str) -> io::Result<()> {
    out.item(14, name, text)
}

/// Threads that move packets if nobody says how many: one a CPU, at most 8. One XDP socket can have a queue, and many
/// interfaces have one.
pub fn workers(io: Io) -> usize {
    match io {
        Io::AfPacket => thread::available_parallelism().map_or(1, |cpus| cpus.get().min(8)),
        Io::AfXdp => 1,
    }
}

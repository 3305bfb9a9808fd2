//! `rxlane link`: a VLAN, QinQ or PPPoE line as a network interface: check, up, status, down.

mod check;
mod down;
mod parent;
mod status;
mod up;

use crate::arguments::{StackArguments, StateArguments};
use crate::output::{CommandResult, Output};
use anstyle::{AnsiColor, Style};
use anyhow::anyhow;
use link::batch::Io;
use std::io;
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
    /// Make a network interface of a VLAN, QinQ or PPPoE line, and stay until it is ended; with --daemon in the background.
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

/// What the frames of a link look like: the same for `up` and `check`.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("frames").required(true).args(["encap", "vlan"])))]
#[command(group(clap::ArgGroup::new("below").required(true).args(["interface", "parent"])))]
struct LineArguments {
    /// Ethernet interface below.
    #[arg(value_name = "INTERFACE")]
    interface: Option<String>,
    /// The same.
    #[arg(long, value_name = "INTERFACE", hide = true)]
    parent: Option<String>,
    #[command(flatten)]
    stack: StackArguments,
    /// Longest IP packets, bytes [default: 1500, with PPPoE 1492, or what fits the parent].
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(68..=65535))]
    mtu: Option<u32>,
}

impl LineArguments {
    fn parent(&self) -> &str {
        // clap demands one of them.
        self.interface.as_deref().or(self.parent.as_deref()).unwrap_or_default()
    }

    fn encapsulation(&self) -> anyhow::Result<Encapsulation> {
        // clap demands one of them.
        self.stack.encapsulation()?.ok_or_else(|| anyhow!("--encap or --vlan says what the frames look like"))
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

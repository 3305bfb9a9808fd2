//! `rxlane link`: a VLAN, QinQ or PPPoE line as a network interface: check, up, status, down.

mod check;
mod down;
mod parent;
mod status;
mod up;

use crate::arguments::{StackArguments, StateArguments};
use crate::output::{BAD, BOLD, CommandResult, GOOD, Output, POOR};
use anyhow::anyhow;
use link::batch::Io;
use link::running::Means;
use std::io;
use std::thread;
use wire::emit::Encapsulation;

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
    /// Show the state of links: traffic, rates, drops by reason.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Datapath {
    /// One packet a system call: the reference.
    Simple,
    /// Super-packets, rings and batches, by one or more workers.
    Batch,
}

/// How frames leave the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum WayOut {
    /// Packet sockets; with tags alone the kernel or the card segments.
    AfPacket,
    /// Transmit rings of XDP sockets: cheaper behind PPPoE, but past the queueing discipline of the parent, and only one
    /// link of a parent can have them.
    AfXdp,
}

#[derive(clap::Args, Clone, Debug, Default, PartialEq)]
#[group(skip)]
pub struct MeansArguments {
    /// How packets are moved [default: batch].
    #[arg(long, value_enum)]
    datapath: Option<Datapath>,
    /// Threads that move packets, among which the kernel spreads inner flows [default: one a CPU, at most 8].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// How frames leave the parent [default: af-packet].
    #[arg(long, value_enum)]
    io: Option<WayOut>,
}

impl MeansArguments {
    pub fn means(&self) -> anyhow::Result<Means> {
        if self.datapath == Some(Datapath::Simple) {
            return match (self.workers, self.io) {
                (None | Some(1), None | Some(WayOut::AfPacket)) => Ok(Means::Simple),
                _ => Err(anyhow!(
                    "--workers and --io are for `--datapath batch`: `simple` has one thread and packet sockets"
                )),
            };
        }
        let io = if self.io == Some(WayOut::AfXdp) { Io::AfXdp } else { Io::AfPacket };
        Ok(Means::Batch { workers: self.workers.map_or_else(|| workers(io), usize::from), io })
    }
}

/// Threads that move packets if nobody says how many: one a CPU, at most 8. One XDP socket can have a queue, and many
/// interfaces have one.
pub fn workers(io: Io) -> usize {
    match io {
        Io::AfPacket => thread::available_parallelism().map_or(1, |cpus| cpus.get().min(8)),
        Io::AfXdp => 1,
    }
}

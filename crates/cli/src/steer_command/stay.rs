//! The process that stays: `up --foreground`, and the one that `up --rebalance` and `up --metrics` start.

use super::{StateArguments, down, failed};
use crate::output::{CommandResult, Outcome, Output};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::{self, Command};
use std::time::Duration;
use steer::background;
use steer::error::Error;
use steer::keeper::{self, Cpus, Keeping, Stop};
use steer::metrics::Server;
use steer::notify::{Told, notify};
use steer::plan::QUEUE_SIZE;
use steer::rebalance::{Limits, Setup};
use steer::record::{Keeper, Records};
use steer::weights::Weight;
use xdp::{Attachment, Interface};

/// What the process does while it stays.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// Moves buckets from busy to idle CPUs.
    pub rebalance: bool,
    /// Serves metrics here.
    pub metrics: Option<SocketAddr>,
}

impl Task {
    /// Whether a process has to stay for it.
    pub fn is_needed(&self) -> bool {
        self.rebalance || self.metrics.is_some()
    }
}

/// Arguments of `rxlane steer keep`, which `up` starts.
#[derive(clap::Args)]
pub struct KeepArguments {
    /// Interface.
    interface: String,
    /// Rebalance.
    #[arg(long)]
    rebalance: bool,
    /// Serve metrics.
    #[arg(long)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    state: StateArguments,
}

/// Starts the process that stays in the background.
pub fn in_background(attachment: &Attachment, task: &Task, records: &Records) -> Result<u32, Error> {
    let interface = attachment.interface().name.clone();
    let failed = |why: String| Error::Keeper { interface: interface.clone(), why };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["steer", "keep", &interface]).arg("--journal").arg(records.folder());
    if task.rebalance {
        command.arg("--rebalance");
    }
    if let Some(address) = task.metrics {
        command.arg("--metrics").arg(address.to_string());
    }
    background::start(command).map_err(failed)
}

impl KeepArguments {
    /// Stays until it is told to end, or steering is over.
    pub fn run(self) -> CommandResult {
        let kept = Interface::find(&self.interface).map_err(Error::from).and_then(|interface| {
            Attachment::open(&interface)?.ok_or_else(|| Error::Keeper {
                interface: self.interface.clone(),
                why: "it is not steered".to_owned(),
            })
        });
        let attachment = match kept {
            Ok(attachment) => attachment,
            Err(error) => return failed(error),
        };
        let task = Task { rebalance: self.rebalance, metrics: self.metrics };
        match stay(attachment, &task, &self.state.records(), false, |_| background::ready()) {
            Ok(()) => Ok(Outcome::Success),
            Err(error) => failed(error),
        }
    }
}

/// Stays, and takes steering away at the end. `ready` prints what was done.
pub fn in_foreground(
    out: &mut Output,
    attachment: Attachment,
    task: &Task,
    records: &Records,
    ready: impl FnOnce(&mut Output, &Attachment) -> io::Result<()>,
) -> CommandResult {
    let (interface, attached_as) = (attachment.interface().clone(), attachment.attached_as().to_owned());
    let stayed = stay(attachment, task, records, true, |attachment| {
        ready(out, attachment)?;
        out.flush()?;
        let told = Told::Ready(format!("{} is steered", interface.name));
        notify(&told)
    });
    // The service manager may be gone.
    let _ = notify(&Told::Stopping);
    let taken = steer::down::down_own(&interface, &attached_as, records);
    match (stayed, taken) {
        (Err(error), _) | (Ok(()), Err(error)) => failed(error),
        (Ok(()), Ok(taken)) => {
            down::print(out, &taken)?;
            Ok(if taken.kept > 0 { Outcome::Negative } else { Outcome::Success })
        }
    }
}

/// Stays until a signal ends it, the interface is gone, or somebody takes steering away.
fn stay(
    mut attachment: Attachment,
    task: &Task,
    records: &Records,
    foreground: bool,
    ready: impl FnOnce(&Attachment) -> io::Result<()>,
) -> Result<(), Error> {
    let interface = attachment.interface().clone();
    let failed = |why: String| Error::Keeper { interface: interface.name.clone(), why };
    let metrics = match task.metrics {
        Some(address) => Some(Server::bind(address).map_err(|error| failed(format!("{address}: {error}")))?),
        None => None,
    };
    let mut note = Keeper {
        pid: process::id(),
        foreground,
        rebalance: task.rebalance,
        metrics: metrics.as_ref().map(|server| server.address().to_string()),
        moves: 0,
        state: None,
    };
    let stop = Stop::by_signals().map_err(|error| failed(error.to_string()))?;
    let mut keeping = records.keep(interface.namespace, attachment.attached_as(), &note)?;
    let setup = setup(&attachment, task)?;
    ready(&attachment).map_err(|error| failed(error.to_string()))?;
    let cpus = Cpus::of_this_machine();
    let keep = Keeping { interface: attachment.attached_as().to_owned(), setup, metrics, cpus };
    let ended = keeper::keep(&mut attachment, keep, &stop, &mut |progress| {
        note.moves = progress.moves;
        note.state = Some(progress.state.clone());
        // How things stand is not worth ending for.
        let _ = keeping.write(&note);
    });
    ended.map(|_| ()).map_err(|error| Error::Kept(error.to_string()))
}

/// The targets with the shares that they were given: those of their buckets.
fn setup(attachment: &Attachment, task: &Task) -> Result<Setup, Error> {
    let (queues, buckets) = (attachment.cpus()?, attachment.buckets()?);
    let share = |cpu: u32| {
        let of_cpu = buckets.iter().filter(|bucket| bucket.cpu == cpu).count();
        of_cpu as f64 / buckets.len() as f64
    };
    Ok(Setup {
        weights: queues.iter().map(|&(cpu, _)| Weight { cpu, share: share(cpu) }).collect(),
        queue_size: queues.first().map_or(QUEUE_SIZE, |(_, size)| *size),
        hold: Duration::from_nanos(attachment.settings().hold_ns),
        may_move: task.rebalance,
        limits: Limits::DEFAULT,
    })
}

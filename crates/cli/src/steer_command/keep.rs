//! The daemon: `up --foreground`, and the one that `up --rebalance` and `up --metrics` start.

use super::{StateArguments, down};
use crate::background::{no_signals, unread};
use crate::output::{CommandResult, Lacks, Outcome, Output};
use service::metrics::{Address, Server, unservable};
use service::namespace::Names;
use service::notify;
use service::signals::{HangUp, end_requests};
use std::cell::RefCell;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{self, Command};
use std::time::Duration;
use steer::background;
use steer::error::Error;
use steer::keeper::{self, Cpus, Keeping};
use steer::plan::QUEUE_SIZE;
use steer::rebalance::{Limits, Move, Setup};
use steer::record::{Keeper, Planned, Records, instance_of};
use steer::weights::Weight;
use xdp::layout::BUCKETS;
use xdp::{Attachment, Interface};

#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub rebalance: bool,
    pub metrics: Option<SocketAddr>,
}

impl Task {
    pub fn is_needed(&self) -> bool {
        self.rebalance || self.metrics.is_some()
    }
}

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

/// Starts the daemon.
pub fn in_background(attachment: &Attachment, task: &Task, records: &Records) -> Result<u32, Error> {
    let interface = attachment.interface().name.clone();
    let failed = |why: String| Error::Keeper { interface: interface.clone(), why };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(["steer", "keep", &interface]).arg("--state-dir").arg(records.folder());
    if task.rebalance {
        command.arg("--rebalance");
    }
    if let Some(address) = task.metrics {
        command.arg("--metrics").arg(address.to_string());
    }
    background::start(command).map_err(failed)
}

impl KeepArguments {
    /// Runs until it has to end, or steering is over.
    pub fn run(self) -> CommandResult {
        let kept = Interface::find(&self.interface).map_err(Error::from).and_then(|interface| {
            Attachment::open(&interface)?.ok_or_else(|| Error::Keeper {
                interface: self.interface.clone(),
                why: "it is not steered".to_owned(),
            })
        });
        let attachment = kept?;
        let task = Task { rebalance: self.rebalance, metrics: self.metrics };
        let (stop, _ask) = end_requests(HangUp::Other).map_err(no_signals)?;
        let manner = Options { foreground: false, stop };
        let ready = |_: &Attachment| background::ready();
        let (_, stayed) = stay(attachment, &task, &self.state.records(), manner, ready, &mut |_| ());
        match stayed {
            Ok(()) => Ok(Outcome::Success),
            // Who started this process says that it did not start.
            Err(Error::Keeper { why, .. }) => Err(Lacks(why).into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Stays, and takes steering away at the end. `ready` prints what was done.
pub fn in_foreground(
    out: &mut Output,
    attachment: Attachment,
    task: &Task,
    records: &Records,
    stop: UnixStream,
    ready: impl FnOnce(&mut Output) -> io::Result<()>,
) -> CommandResult {
    let out = RefCell::new(out);
    let ready = |attachment: &Attachment| {
        let mut out = out.borrow_mut();
        unread(ready(&mut out).and_then(|()| out.flush()))?;
        notify::ready(&format!("{} is steered", attachment.interface().name))
    };
    let mut moved = |moved: &Move| {
        let mut out = out.borrow_mut();
        // What cannot be printed is no reason to end.
        let _ = writeln!(out, "{moved}").and_then(|()| out.flush());
    };
    let manner = Options { foreground: true, stop };
    let (attachment, stayed) = stay(attachment, task, records, manner, ready, &mut moved);
    let out = out.into_inner();
    // The service manager may have ended.
    let _ = notify::stopping();
    let taken = steer::down::down_own(attachment, records);
    stayed?;
    let taken = taken?;
    unread(down::print(out, &taken).and_then(|()| out.flush()))?;
    Ok(if taken.is_whole() { Outcome::Success } else { Outcome::Negative })
}

struct Options {
    foreground: bool,
    stop: UnixStream,
}

/// Stays until a signal ends it, the interface is removed, or somebody takes steering away. Gives the attachment back.
fn stay(
    mut attachment: Attachment,
    task: &Task,
    records: &Records,
    manner: Options,
    ready: impl FnOnce(&Attachment) -> io::Result<()>,
    moved: &mut dyn FnMut(&Move),
) -> (Attachment, Result<(), Error>) {
    let stayed = stay_with(&mut attachment, task, records, manner, ready, moved);
    (attachment, stayed)
}

fn stay_with(
    attachment: &mut Attachment,
    task: &Task,
    records: &Records,
    Options { foreground, stop }: Options,
    ready: impl FnOnce(&Attachment) -> io::Result<()>,
    moved: &mut dyn FnMut(&Move),
) -> Result<(), Error> {
    let interface = attachment.interface().clone();
    let failed = |why: String| Error::Keeper { interface: interface.name.clone(), why };
    let metrics = match task.metrics {
        Some(address) => {
            let address = Address::Ip(address);
            Some(Server::bind(&address).map_err(|error| failed(unservable(&address, &error)))?)
        }
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
    let instance = instance_of(attachment);
    let mut keeping = records.keep(&instance, &note)?;
    let planned = records.planned(&instance)?;
    let setup = setup(attachment, planned, task)?;
    // Before anybody hears of it: who waited for this process may delete the namespace at once.
    let names = Names::here();
    ready(attachment).map_err(|error| failed(error.to_string()))?;
    let cpus = Cpus::of_this_machine();
    let keep = Keeping { interface: attachment.attached_as().to_owned(), setup, metrics, cpus, names };
    let ended = keeper::keep(attachment, keep, stop.as_fd(), &mut |progress| {
        progress.moved.iter().for_each(&mut *moved);
        note.moves = progress.moves;
        note.state = Some(progress.state.clone());
        // How things stand is not worth ending for.
        let _ = keeping.write(&note);
    });
    ended.map(|_| ()).map_err(|error| Error::Lacks(error.to_string()))
}

fn setup(attachment: &Attachment, planned: Option<Planned>, task: &Task) -> Result<Setup, Error> {
    let (queues, buckets) = (attachment.cpus()?, attachment.buckets()?);
    let [steer, _] = attachment.programs();
    let planned = planned.filter(|planned| planned.program == steer.id);
    Ok(Setup {
        weights: weights(&queues, &buckets.map(|bucket| bucket.cpu), planned.as_ref()),
        // The longest bounds how many frames may be on their way.
        queue_size: queues.iter().map(|(_, size)| *size).max().unwrap_or(QUEUE_SIZE),
        hold: Duration::from_nanos(attachment.settings().hold_ns),
        may_move: task.rebalance,
        limits: Limits::DEFAULT,
    })
}

/// The targets with the shares that they should have: those that were planned, else those of their buckets, which are
/// the same until buckets have moved.
fn weights(queues: &[(u32, u32)], buckets: &[u32; BUCKETS], planned: Option<&Planned>) -> Vec<Weight> {
    let of_buckets = |cpu: u32| {
        let of_cpu = buckets.iter().filter(|bucket| **bucket == cpu).count();
        of_cpu as f64 / BUCKETS as f64
    };
    let weight = |&(cpu, _): &(u32, u32)| {
        let share = match planned {
            // A target that somebody added later has nothing to get.
            Some(planned) => {
                planned.shares.iter().find(|(of, _)| *of == cpu).map_or(0.0, |(_, share)| *share)
            }
            None => of_buckets(cpu),
        };
        Weight { cpu, share }
    };
    queues.iter().map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_that_were_planned_wherever_buckets_are_by_now() {
        let queues = [(0, 512), (1, 512), (2, 512)];
        let moved = std::array::from_fn(|bucket| if bucket < 64 { 1 } else { 2 });
        let shares = |planned| {
            let weights = weights(&queues, &moved, planned);
            weights.iter().map(|weight| (weight.cpu, weight.share)).collect::<Vec<_>>()
        };
        let planned = Planned { program: 7, shares: vec![(0, 0.1), (1, 0.9)] };
        assert_eq!(shares(Some(&planned)), [(0, 0.1), (1, 0.9), (2, 0.0)]);
        assert_eq!(shares(None), [(0, 0.0), (1, 0.25), (2, 0.75)]);
    }
}

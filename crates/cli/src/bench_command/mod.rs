//! `rxlane bench`: packets per second, sent and counted, and whole scenarios.

mod compare;
mod prose;
mod recv;
mod scenario;
mod send;
mod text;

use crate::arguments::numbers::{self, Cpus};
use crate::output::{CommandResult, Lacks, Output};
use crate::signals::stop_by_signals;
use anyhow::anyhow;
use bench::machine::{Machine, Watched};
use bench::report::{Interval, Report, Run, SCHEMA};
use bench::scenario::{pppoe::Pppoe, steer::Steer, vlan::Vlan};
use bench::udp::UdpError;
use clap::builder::NonEmptyStringValueParser;
use rustix::io::Errno;
use serde_json::Value;
use service::memory;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

#[derive(clap::Args)]
pub struct BenchArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Send UDP datagrams, or frames of any encapsulation, at a rate or as fast as it goes
    Send(Box<send::SendArguments>),
    /// Count the datagrams that arrive, and those that do not
    Recv(recv::RecvArguments),
    /// Measure what VLAN tags cost, with and without offloads and RPS
    Vlan(scenario::VlanArguments),
    /// Measure what RPS and steering bring a router that receives on one CPU
    Steer(scenario::SteerArguments),
    /// Measure packets a second by senders, receivers, receive queues and GRO
    Pps(scenario::PpsArguments),
    /// Measure what PPPoE costs, by data path
    Pppoe(scenario::PppoeArguments),
    /// Measure small packets through a router, and the rate without loss
    Forward(scenario::ForwardArguments),
    /// Say what changed between two results of a scenario, and whether it is outside the noise
    Compare(compare::CompareArguments),
    /// Remove what a scenario leaves that is killed
    #[command(name = scenario::CLEAN_UP, hide = true)]
    CleanUp(scenario::CleanupArguments),
}

/// Bytes that the buffers of a thread take, at most: with GRO 16 messages of 64 KiB.
const BUFFERS: usize = 1 << 20;

/// More than any stack of tags, labels and tunnels that frames of 1500 bytes leave room for.
const MOST_OVERHEAD: u64 = 1024;

#[derive(clap::Args)]
struct CommonArguments {
    /// Threads, 256 at most
    #[arg(long, alias = "threads", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,

    /// CPUs that threads are bound to, in turn (0,2-3)
    #[arg(long, value_name = "LIST", value_parser = numbers::cpus)]
    cpus: Option<Cpus>,

    /// End after this time (send: 10 seconds unless --count is given); SIGINT and SIGTERM end it at any time, with the summary
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = crate::arguments::seconds(0.001, 3.2e8))]
    seconds: Option<Duration>,

    /// The interface whose interrupts, receive queues and speed are reported; otherwise, of send, the one to the first target, and
    /// of recv, the one with the address of --bind
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    interface: Option<String>,

    /// The line's rate in bit/s, with k, M or G; the interface's own otherwise
    #[arg(long, value_name = "RATE", value_parser = numbers::count)]
    line_rate: Option<u64>,

    /// Bytes that tags and other encapsulation add to each frame on the line, 1024 at most
    #[arg(long, value_name = "BYTES", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=MOST_OVERHEAD))]
    overhead: u64,

    /// Print JSON (schema rxlane.bench/1) at the end, and nothing before
    #[arg(long)]
    json: bool,
}

impl BenchArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Send(arguments) => arguments.run(out),
            Command::Recv(arguments) => arguments.run(out),
            Command::Vlan(arguments) => arguments.common.run(out, &mut Vlan, None),
            Command::Steer(arguments) => arguments.common.run(out, &mut Steer::new(arguments.flows), None),
            Command::Pps(arguments) => arguments.run(out),
            Command::Pppoe(arguments) => arguments.common.run(out, &mut Pppoe, None),
            Command::Forward(arguments) => arguments.run(out),
            Command::Compare(arguments) => arguments.run(out),
            Command::CleanUp(arguments) => arguments.run(),
        }
    }
}

struct Local {
    watched: Option<Watched>,
    machine: Machine,
    line_rate: Option<u64>,
}

impl CommonArguments {
    /// `interface`: where `--interface` names none. The CPUs are sampled without any.
    fn local(&self, interface: Option<&str>) -> anyhow::Result<Local> {
        // A thread that finds no memory for its stack or its buffers ends the process.
        let needed = memory::BEGINNING + usize::from(self.workers) * (memory::THREAD + BUFFERS);
        memory::expect(needed).map_err(|_| {
            Lacks(format!(
                "{} threads need {} MiB of memory, which this process may not have: fewer --workers, or `ulimit -v unlimited`",
                self.workers,
                needed >> 20
            ))
        })?;
        let watched = match (&self.interface, interface) {
            (Some(name), _) => Some(Watched::open(name)?),
            (None, Some(name)) => Watched::open(name).ok(),
            (None, None) => Watched::cpus_alone(),
        };
        let (machine, speed) = watched.as_ref().map(Watched::describe).unwrap_or_default();
        let line_rate = self.line_rate.or_else(|| Some(u64::from(speed?) * 1_000_000));
        Ok(Local { watched, machine, line_rate })
    }

    fn cpus(&self) -> Vec<u16> {
        self.cpus.clone().map(|cpus| cpus.0).unwrap_or_default()
    }

    fn print(
        &self,
        out: &mut Output,
        scenario: &'static str,
        machine: Machine,
        run: Run<Value>,
        noun: &str,
    ) -> io::Result<()> {
        if self.json {
            return out.json(&Report { schema: SCHEMA, scenario, machine, runs: vec![run] });
        }
        text::summary(out, &run, noun)
    }
}

struct Lines<'a> {
    out: &'a mut Output,
    of: text::Of,
    is_quiet: bool,
    is_first: bool,
    result: io::Result<()>,
}

impl<'a> Lines<'a> {
    fn new(out: &'a mut Output, of: text::Of, is_quiet: bool) -> Lines<'a> {
        Lines { out, of, is_quiet, is_first: true, result: Ok(()) }
    }

    fn print(&mut self, interval: &Interval) -> ControlFlow<()> {
        if self.is_quiet {
            return ControlFlow::Continue(());
        }
        self.result = text::second(self.out, interval, self.of, self.is_first);
        self.is_first = false;
        if self.result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// What the kernel refused, as what the machine lacks where it is that.
fn refused(error: UdpError) -> anyhow::Error {
    use io::ErrorKind::{AddrInUse, HostUnreachable, NetworkUnreachable, PermissionDenied, Unsupported};
    if let UdpError::Thread(error) = &error {
        return Lacks(error.to_string()).into();
    }
    if error.cause().and_then(io::Error::raw_os_error) == Some(Errno::MFILE.raw_os_error()) {
        return Lacks(format!("{error}; `ulimit -n NUMBER` allows more")).into();
    }
    let remedy = match error.cause().map(io::Error::kind) {
        Some(PermissionDenied) => {
            "; ports below 1024 require root, and firewalls and broadcast addresses are refused"
        }
        Some(NetworkUnreachable | HostUnreachable) => "; ip route get ADDRESS says why",
        Some(Unsupported) => "",
        Some(AddrInUse) => {
            return anyhow!("{error}; another port is chosen with --port (recv) or --source-port (send)");
        }
        _ => return error.into(),
    };
    Lacks(format!("{error}{remedy}")).into()
}

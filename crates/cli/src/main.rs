//! The `rxlane` binary: one module per subcommand, each a thin layer over a library crate.
//!
//! A subcommand is a clap `Args` type with a method `run(self, &mut Output) -> CommandResult`. What it
//! prints goes through [`output::Output`], so that a closed pipe is no error and colour stays out of pipes.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "full", target_os = "linux")),
    allow(dead_code, unused_imports, reason = "commands of the full program for Linux alone use it")
)]

mod arguments;
#[cfg(target_os = "linux")]
mod background;
#[cfg(all(feature = "full", target_os = "linux"))]
mod bench_command;
mod collect_command;
#[cfg(all(feature = "full", target_os = "linux"))]
mod demo;
mod doctor_command;
#[cfg(all(feature = "full", target_os = "linux"))]
mod envelope_command;
mod explain_command;
#[cfg(all(feature = "full", target_os = "linux"))]
mod exporter_command;
#[cfg(target_os = "linux")]
mod fastpath_command;
#[cfg(feature = "full")]
mod fleet_command;
#[cfg(feature = "full")]
mod gen_command;
#[cfg(feature = "full")]
mod generate;
#[cfg(all(feature = "full", target_os = "linux"))]
mod link_command;
#[cfg(target_os = "linux")]
mod live_sample;
#[cfg(feature = "full")]
mod model_command;
mod nics;
mod output;
mod output_file;
mod page;
#[cfg(target_os = "linux")]
mod persisted;
#[cfg(target_os = "linux")]
mod physical;
#[cfg(all(feature = "full", target_os = "linux"))]
mod pppoe_command;
mod privilege;
mod progress;
mod render;
#[cfg(feature = "full")]
mod rss_command;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod steer_command;
#[cfg(target_os = "linux")]
mod top_command;
mod usage;

use clap::{CommandFactory, Parser, Subcommand};
use output::{CommandResult, Output};
#[cfg(target_os = "linux")]
use signal_hook::consts::SIGXFSZ;
use std::process::ExitCode;
#[cfg(target_os = "linux")]
use std::sync::Arc;

/// Finds out why PPPoE, VLAN and QinQ traffic is slow on a multi-queue router, fixes it, and proves it.
#[derive(Parser)]
#[command(name = "rxlane", version, max_term_width = 100, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes of every command: 0 success, 1 negative result or a capture is damaged, 2 wrong usage or input, 3 the environment lacks something.";

#[derive(Subcommand)]
enum Command {
    /// Measure: packets per second sent and received, and whole scenarios with their comparison.
    #[cfg(all(feature = "full", target_os = "linux"))]
    Bench(bench_command::BenchArguments),
    /// Write down the state of this machine's receive path, for `doctor --from`.
    Collect(collect_command::CollectArguments),
    /// Print shell completions.
    #[cfg(feature = "full")]
    Completions(generate::CompletionsArguments),
    /// See rxlane work: a PPPoE sample, where it lands, and what steering changes.
    #[cfg(all(feature = "full", target_os = "linux"))]
    Demo(demo::DemoArguments),
    /// Find out what is wrong with a machine's receive path, and what helps.
    Doctor(Box<doctor_command::DoctorArguments>),
    /// Let tagged and PPPoE frames be longer without letting longer untagged frames in.
    #[cfg(all(feature = "full", target_os = "linux"))]
    Envelope(envelope_command::EnvelopeArguments),
    /// Show where every frame of a capture, or of a sample of an interface, lands, and why.
    Explain(Box<explain_command::ExplainArguments>),
    /// Serve metrics of this machine: findings, queues, drops, steering, fast path, sessions.
    #[cfg(all(feature = "full", target_os = "linux"))]
    Exporter(exporter_command::ExporterArguments),
    /// Forward established connections in XDP, past the kernel: PPPoE, VLAN and NAT included.
    #[cfg(target_os = "linux")]
    Fastpath(fastpath_command::FastpathArguments),
    /// Judge the bundles of many machines, and write them as tables.
    #[cfg(feature = "full")]
    Fleet(fleet_command::FleetArguments),
    /// Write seeded traffic samples as captures.
    #[cfg(feature = "full")]
    Gen(gen_command::GenArguments),
    /// Make network interfaces of VLAN, QinQ and PPPoE lines, without the kernel's modules for them.
    #[cfg(all(feature = "full", target_os = "linux"))]
    Link(link_command::LinkArguments),
    /// Write the man pages.
    #[cfg(feature = "full")]
    Man(generate::ManArguments),
    /// Simulate a receive path: what-if, and against field reports.
    #[cfg(feature = "full")]
    Model(model_command::ModelArguments),
    /// Show what is known of network cards, each claim with its source.
    Nics(nics::NicsArguments),
    /// Speak PPPoE: find the concentrators of a line, connect to one, or serve subscribers, without the kernel's PPP.
    #[cfg(all(feature = "full", target_os = "linux"))]
    Pppoe(pppoe_command::PppoeArguments),
    /// Compute and check receive-side scaling by hand.
    #[cfg(feature = "full")]
    Rss(rss_command::RssArguments),
    /// Steer inner flows over CPUs by XDP.
    #[cfg(target_os = "linux")]
    Steer(steer_command::SteerArguments),
    /// Watch an interface live: queues, vectors, CPUs, drops by stage, traffic classes, steering.
    #[cfg(target_os = "linux")]
    Top(top_command::TopArguments),
}

/// Bytes that a command with threads of its own takes besides the program.
#[cfg(target_os = "linux")]
const MEMORY: usize = 48 << 20;

impl Command {
    #[cfg(not(target_os = "linux"))]
    fn has_memory(&self) -> anyhow::Result<()> {
        Ok(())
    }

    /// Sees that there is memory: a thread that cannot be had, or an allocation, would end the process halfway.
    #[cfg(target_os = "linux")]
    fn has_memory(&self) -> anyhow::Result<()> {
        let is_threaded = matches!(
            self,
            Command::Collect(_)
                | Command::Doctor(_)
                | Command::Explain(_)
                | Command::Steer(_)
                | Command::Top(_)
        );
        #[cfg(feature = "full")]
        let is_threaded =
            is_threaded || matches!(self, Command::Envelope(_) | Command::Exporter(_) | Command::Fleet(_));
        if is_threaded { Ok(service::memory::expect(MEMORY)?) } else { Ok(()) }
    }

    fn run(self, out: &mut Output) -> CommandResult {
        match self {
            #[cfg(all(feature = "full", target_os = "linux"))]
            Command::Bench(arguments) => arguments.run(out),
            Command::Collect(arguments) => arguments.run(out),
            #[cfg(feature = "full")]
            Command::Completions(arguments) => arguments.run(out, Cli::command()),
            #[cfg(all(feature = "full", target_os = "linux"))]
            Command::Demo(arguments) => arguments.run(out),
            Command::Doctor(arguments) => arguments.run(out),
            #[cfg(all(feature = "full", target_os = "linux"))]
            Command::Envelope(arguments) => arguments.run(out),
            Command::Explain(arguments) => arguments.run(out),
            #[cfg(all(feature = "full", target_os = "linux"))]
            Command::Exporter(arguments) => arguments.run(out),
            #[cfg(target_os = "linux")]
            Command::Fastpath(arguments) => arguments.run(out),
            #[cfg(feature = "full")]
            Command::Fleet(arguments) => arguments.run(out),
            #[cfg(feature = "full")]
            Command::Gen(arguments) => arguments.run(out),
            #[cfg(all(feature = "full", target_os = "linux"))]
            Command::Link(arguments) => arguments.run(out),
            #[cfg(feature = "full")]
            Command::Man(arguments) => arguments.run(out, Cli::command()),
            #[cfg(feature = "full")]
            Command::Model(arguments) => arguments.run(out),
            Command::Nics(arguments) => arguments.run(out),
            #[cfg(all(feature = "full", target_os = "linux"))]
            Command::Pppoe(arguments) => arguments.run(out),
            #[cfg(feature = "full")]
            Command::Rss(arguments) => arguments.run(out),
            #[cfg(target_os = "linux")]
            Command::Steer(arguments) => arguments.run(out),
            #[cfg(target_os = "linux")]
            Command::Top(arguments) => arguments.run(out),
        }
    }
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    kernel::process::close_inherited_on_exec();
    let mut out = Output::standard();
    // A file that may not grow (ulimit -f) is an error of the write, which is reported. Where this fails, the signal ends the process.
    #[cfg(target_os = "linux")]
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    let typed: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let cli =
        Cli::try_parse().unwrap_or_else(|error| usage::to_the_point(error, &Cli::command(), &typed).exit());
    let result = cli
        .command
        .has_memory()
        .and_then(|()| cli.command.run(&mut out))
        .and_then(|outcome| out.finish(outcome));
    output::exit_code(result)
}

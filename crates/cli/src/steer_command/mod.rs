//! `rxlane steer`: inner flows over CPUs by XDP: check, up, status, down.

mod check;
mod down;
mod keep;
mod persist;
mod prose;
mod status;
mod up;

use crate::arguments::StateArguments;
use crate::output::{BAD, BOLD, CommandResult, GOOD, Output, POOR, QUIET};
use host::live::Progress;
pub use prose::Worded;
use std::io;
use steer::classes::Choice;
use steer::error::Error;
use xdp::layout::Class;

#[derive(clap::Args)]
pub struct SteerArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Say what steering would do on an interface, whether it can, and whether it is worth it.
    Check(check::CheckArguments),
    /// Steer the inner flows of an interface over CPUs.
    Up(Box<up::UpArguments>),
    /// Show the state of steering: mode, CPUs, rates, drops, buckets.
    Status(status::StatusArguments),
    /// Stop steering and restore every setting that was changed for it.
    Down(down::DownArguments),
    /// Stay with an interface that is steered.
    #[command(hide = true)]
    Keep(keep::KeepArguments),
}

impl SteerArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Check(arguments) => arguments.run(out),
            Command::Up(arguments) => arguments.run(out),
            Command::Status(arguments) => arguments.run(out),
            Command::Down(arguments) => arguments.run(out),
            Command::Keep(arguments) => arguments.run(),
        }
    }
}

/// Which frames go where: what `up` and `check` take alike.
#[derive(clap::Args)]
struct SteeringArguments {
    /// Interface on which the frames arrive: a network card, or an end of a veth pair.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// CPUs to steer to, as a list such as 1-3,6 [default: those online near the device, less what receiving takes].
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Who runs the program: the driver, before there is a socket buffer, or (generic) the kernel, after that.
    #[arg(long, value_enum, default_value_t = Mode::Native)]
    mode: Mode,
    /// Steer every class of frames, also those that the device spreads by itself.
    #[arg(long, conflicts_with = "classes")]
    all: bool,
    /// Steer these classes: plain, vlan, qinq, pppoe, mpls [default: those that the device does not spread].
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = class)]
    classes: Option<Vec<Class>>,
    /// Let the device leave VLAN tags in frames, which a program would not see otherwise; `down` restores it.
    #[arg(long)]
    disable_rxvlan: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    Native,
    Generic,
}

fn class(word: &str) -> Result<Class, String> {
    Class::ALL
        .into_iter()
        .find(|class| class.name() == word)
        .ok_or_else(|| format!("`{word}` is no class; there are {}", Class::ALL.map(Class::name).join(", ")))
}

impl SteeringArguments {
    fn request(&self) -> Result<steer::check::Request, Error> {
        Ok(steer::check::Request {
            interface: self.interface.clone(),
            cpus: self.cpus.as_deref().map(steer::up::parse_cpus).transpose()?,
            generic: self.mode == Mode::Generic,
            choice: match (&self.classes, self.all) {
                (Some(named), _) => Choice::Named(named.clone()),
                (None, true) => Choice::All,
                (None, false) => Choice::Unspread,
            },
            disable_rxvlan: self.disable_rxvlan,
        })
    }
}

/// Shows on a terminal how far a look has come.
fn with_progress<T>(work: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let mut line = crate::progress::Progress::new();
    work(&mut |progress| match progress {
        Progress::Waiting { left } => {
            line.show(&format!("looking at the traffic, {:.0} s left", left.as_secs_f64().ceil()));
        }
        _ => line.show("reading the machine"),
    })
}

/// `1,234/s`.
fn rate(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| format!("{}/s", format::thousands(value.round() as u64)))
}

/// `37 %`; a question mark is unknown.
fn percent(share: Option<f64>) -> String {
    share.map_or("?".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// A line of a name and a text that is broken behind it.
pub fn item(out: &mut Output, name: &str, text: &str) -> io::Result<()> {
    out.item(12, name, text)
}

/// `CPU 1`, `CPUs 1-3`.
fn cpus(cpus: &[u32]) -> String {
    format!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, steer::facts::list(cpus))
}

//! `rxlane pppoe drain`.

use super::StateArguments;
use crate::output::{CommandResult, Outcome, Output};
use concentrator::ConcentratorStatus;
use format::{plural, printable};
use service::Kind;
use std::io::Write;

#[derive(clap::Args)]
#[command(after_help = "\
Subscribers that look for a concentrator get no offer, and those that have one get a PADS that refuses them; so another \
concentrator of the line gets them. Sessions go on until they end by themselves, or `rxlane pppoe disconnect --concentrator IFACE --all` \
ends them.\n\n\
Exit codes: 0 done, 1 the interface is not served, or its process was killed, or does not answer, 3 it requires root.\n\n\
Examples:\n  \
rxlane pppoe drain eth1\n  \
rxlane pppoe drain eth1 --undo")]
pub struct DrainArguments {
    /// Interface that is served.
    #[arg(value_name = "IFACE")]
    interface: String,
    /// Take sessions again.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl DrainArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let question = if self.undo { "fill" } else { "drain" };
        let sockets = self.state.instances(Kind::Concentrator)?;
        let status: ConcentratorStatus = sockets.ask(&self.interface, question)?;
        let (name, sessions) = (printable(&status.parent), plural(status.count as u64, "session"));
        if status.draining {
            let verb = if status.count == 1 { "goes" } else { "go" };
            writeln!(out, "{name} takes no more sessions; {sessions} {verb} on.")?;
        } else {
            writeln!(out, "{name} takes sessions; it has {sessions}.")?;
        }
        Ok(Outcome::Success)
    }
}

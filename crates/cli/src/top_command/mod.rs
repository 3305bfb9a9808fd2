//! `rxlane top`: the receive path of an interface, live.
//!
//! Threads of [`gather`] sample the machine and its traffic; [`model`] makes rows of two samples; [`view`] draws them
//! on a terminal that [`screen`] holds, [`plain`] writes them elsewhere.

mod app;
mod columns;
mod fastpath;
#[cfg(test)]
mod fixture;
mod gather;
mod model;
mod plain;
mod screen;
mod steering;
pub mod table;
mod traffic;
mod view;

use crate::arguments::{StateArguments, seconds};
use crate::output::{CommandResult, Lacks, Outcome, Output};
use crate::physical;
use app::{App, LONGEST, SHORTEST};
use gather::{Event, Gatherer};
use model::Model;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;
use traffic::Sampling;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    rxlane top wan0\n  \
    sudo rxlane top wan0 --interval 2      (root: traffic classes, too)\n  \
    rxlane top wan0 --once                 one table after one interval\n  \
    rxlane top wan0 --json | head -n 3     one line of JSON an interval\n\n\
    Keys: 1 to 7 or Tab for the views, s to sort, r to reverse, space to pause, + and - for the interval, ? for help, \
    q to end. Where standard output is no terminal, tables are printed.")]
pub struct TopArguments {
    /// The interface; of a VLAN or PPP interface the queues are those of the device below.
    #[arg(value_name = "INTERFACE")]
    interface: String,
    /// Time between two samples, seconds.
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", default_value = "1", value_parser = seconds(SHORTEST.as_secs_f64(), LONGEST.as_secs_f64()))]
    interval: Duration,
    /// Print one table, after one interval, and end.
    #[arg(long)]
    once: bool,
    /// Print JSON (schema rxlane.top/1), one line an interval; with --once one document.
    #[arg(long)]
    json: bool,
    /// Do not sample the traffic (at most 1000 frames a second, in four looks of at most 25 ms; requires root).
    #[arg(long)]
    no_sample: bool,
    #[command(flatten)]
    state: StateArguments,
}

impl TopArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let is_screen = !self.once && !self.json && io::stdout().is_terminal();
        if is_screen {
            check_terminal()?;
        }
        let sampling = if self.no_sample { Sampling::Off } else { Sampling::Pending };
        // Without a screen every line rests on a whole interval.
        let first = (!is_screen).then_some(self.interval);
        // Of the kernel's interfaces both are displayed; it knows nothing of what a TUN device stands on.
        let interface = match physical::is_tun(&self.interface) {
            true => physical::meant(&self.interface, &self.state.folder())?,
            false => self.interface.clone(),
        };
        let gatherer =
            Gatherer::start(&interface, self.interval, first, !self.no_sample, self.state.folder())?;
        let result = if is_screen {
            screen::show(&interface, App::new(self.interval), &gatherer, sampling)
        } else {
            self.print(out, &gatherer, sampling)
        };
        result.map_err(|error| self.ended(error))?;
        Ok(Outcome::Success)
    }

    fn print(&self, out: &mut Output, gatherer: &Gatherer, mut sampling: Sampling) -> anyhow::Result<()> {
        let mut is_first = true;
        loop {
            let material = match gatherer.events.recv()? {
                Event::Traffic(taken) => {
                    sampling = taken;
                    continue;
                }
                Event::Machine(material) => material,
                Event::Ended(error) => return Err(error),
            };
            let model = Model::new(&material, &sampling);
            if self.json && self.once {
                out.json(&model)?;
            } else if self.json {
                out.json_line(&model)?;
            } else {
                if !is_first {
                    writeln!(out)?;
                }
                plain::print(out, &model)?;
            }
            out.flush()?;
            is_first = false;
            if self.once {
                return Ok(());
            }
        }
    }

    /// The interface was there when it all began: that it went is nothing that was typed wrong.
    fn ended(&self, error: anyhow::Error) -> anyhow::Error {
        if gather::is_removed(&error) {
            return Lacks(format!("{} was removed: {error:#}", self.interface)).into();
        }
        error
    }
}

/// A screen takes a terminal that can be drawn on and read from.
fn check_terminal() -> anyhow::Result<()> {
    let way_out = "tables are printed with --once, or into a pipe (rxlane top INTERFACE | cat)";
    if !io::stdin().is_terminal() {
        return Err(Lacks(format!("standard input is no terminal, so no key would arrive; {way_out}")).into());
    }
    match std::env::var("TERM").as_deref() {
        Ok("dumb") | Err(_) => {
            Err(Lacks(format!("the terminal cannot be drawn on (TERM is dumb or not set); {way_out}")).into())
        }
        Ok(_) => Ok(()),
    }
}

//! `rxlane rss`: receive-side scaling by hand.

use crate::output::{CommandResult, Outcome, Output};

/// Arguments of `rxlane rss`.
#[derive(clap::Args)]
pub struct RssArguments {}

impl RssArguments {
    /// Runs the command.
    pub fn run(self, _out: &mut Output) -> CommandResult {
        Ok(Outcome::Success)
    }
}

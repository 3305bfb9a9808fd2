//! `rxlane rss`: receive-side scaling by hand.

mod frame;
mod hash;
mod key;
mod table;

use crate::output::{CommandResult, Output};
use rss::{HashKey, IndirectionTable};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub struct RssArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compute the hash of a packet and the queue it selects
    Hash(Box<hash::HashArguments>),
    /// Show an indirection table and each queue's share of it
    Table(table::TableArguments),
    /// Make or check a hash key
    Key(key::KeyArguments),
}

impl RssArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Hash(arguments) => arguments.run(out),
            Command::Table(arguments) => arguments.run(out),
            Command::Key(arguments) => arguments.run(out),
        }
    }
}

/// What is usually called a key, where it has a name.
fn key_name(key: &HashKey) -> Option<&'static str> {
    let symmetric = HashKey::symmetric(key.bytes().len());
    match key {
        key if *key == HashKey::MICROSOFT => Some("Microsoft's"),
        key if symmetric.as_ref() == Ok(key) => Some("6d:5a repeated"),
        _ => None,
    }
}

/// How uneven a table is, as `rxlane explain` measures traffic: busiest over mean of the queues, and the number
/// of evenly loaded queues that would be as uneven, 1/Σ share².
struct Imbalance {
    max_over_mean: f64,
    effective_queues: f64,
}

/// `queues`: how many queues share the entries, those without an entry included.
fn imbalance(table: &IndirectionTable, queues: usize) -> Imbalance {
    let entries = table.shape().entries() as f64;
    let shares: Vec<f64> = table.shares().iter().map(|share| *share as f64 / entries).collect();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    let max = shares.iter().copied().fold(0.0, f64::max);
    Imbalance { max_over_mean: max * queues as f64, effective_queues: 1.0 / squares }
}

fn hex(number: u32) -> Value {
    json!(format!("{number:#010x}"))
}

//! `rxlane rss`: receive-side scaling by hand.

mod hash;
mod key;
mod table;

use crate::output::{CommandResult, Output};
use anyhow::Context;
use rss::{HashKey, IndirectionTable, KeyError, PrintedTable};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::str::FromStr;

/// Arguments of `rxlane rss`.
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
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        match self.command {
            Command::Hash(arguments) => arguments.run(out),
            Command::Table(arguments) => arguments.run(out),
            Command::Key(arguments) => arguments.run(out),
        }
    }
}

/// A key as an argument: a name or the octets.
#[derive(Clone, Debug)]
struct KeyArgument(HashKey);

impl FromStr for KeyArgument {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<KeyArgument, KeyError> {
        match text {
            "microsoft" => Ok(KeyArgument(HashKey::MICROSOFT)),
            "symmetric" => HashKey::symmetric(HashKey::USUAL_OCTETS).map(KeyArgument),
            octets => octets.parse().map(KeyArgument),
        }
    }
}

/// What is usually called a key, where it has a name.
fn key_name(key: &HashKey) -> Option<&'static str> {
    let symmetric = HashKey::symmetric(key.octets().len());
    match key {
        key if *key == HashKey::MICROSOFT => Some("Microsoft's"),
        key if symmetric.as_ref() == Ok(key) => Some("6d:5a repeated"),
        _ => None,
    }
}

/// The text of a file, or of standard input for `-`.
fn read(file: &str) -> anyhow::Result<String> {
    if file == "-" {
        return io::read_to_string(io::stdin()).context("standard input");
    }
    let mut text = String::new();
    let mut reader = std::fs::File::open(file).with_context(|| file.to_owned())?;
    reader.read_to_string(&mut text).with_context(|| file.to_owned())?;
    Ok(text)
}

/// The output of `ethtool -x` from a file or standard input.
fn read_table(file: &str) -> anyhow::Result<PrintedTable> {
    PrintedTable::parse(&read(file)?).with_context(|| match file {
        "-" => "standard input".to_owned(),
        file => file.to_owned(),
    })
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

fn print_json(out: &mut Output, value: &Value) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

fn hex(number: u32) -> Value {
    json!(format!("{number:#010x}"))
}

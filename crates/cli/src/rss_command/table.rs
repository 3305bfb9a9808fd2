//! `rxlane rss table`.

use super::imbalance;
use crate::arguments::device::read_table;
use crate::output::{CommandResult, Outcome, Output};
use anstyle::Style;
use rss::{IndirectionTable, PrintedTable, TableShape};
use serde_json::json;
use std::io::{self, Write};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane rss table equal 4
  rxlane rss table weight 3 1 1 1 --entries 128 --entry-bits 3
  ethtool -x eth0 | rxlane rss table parse")]
pub struct TableArguments {
    #[command(subcommand)]
    source: Source,

    /// Entries of the table [default: 128; of an explicit list its length]
    #[arg(long, value_name = "N", global = true)]
    entries: Option<usize>,

    /// Width of an entry in bits: 3 for an I210, 4 for an 82599
    #[arg(long, value_name = "BITS", default_value_t = 16, global = true)]
    entry_bits: u32,

    /// Receive queues of the device [default: the highest queue of the table and those below it]
    #[arg(long, value_name = "N", global = true)]
    queues: Option<u32>,

    /// Name to print
    #[arg(long, value_name = "NAME", default_value = "eth0", global = true)]
    interface: String,

    /// Print JSON (schema rxlane.rss-table/1)
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Source {
    /// Queues in turn, as ethtool -X equal N
    Equal {
        /// How many queues
        n: u32,
        /// The first queue
        #[arg(long, value_name = "QUEUE", default_value_t = 0)]
        start: u32,
    },
    /// Blocks in proportion to weights, as ethtool -X weight W0 W1 …
    Weight {
        /// One weight per queue
        #[arg(required = true)]
        weights: Vec<u32>,
        /// The first queue
        #[arg(long, value_name = "QUEUE", default_value_t = 0)]
        start: u32,
    },
    /// The queue of every entry
    Explicit {
        /// One queue per entry
        #[arg(required = true, value_name = "QUEUE")]
        list: Vec<u16>,
    },
    /// Read what ethtool -x prints
    Parse {
        /// A file; - is standard input
        #[arg(default_value = "-")]
        file: String,
    },
}

impl TableArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let PrintedTable { interface, rings, table, .. } = self.table()?;
        table.check_queues(rings)?;
        if self.json {
            let measure = imbalance(&table, rings as usize);
            let value = json!({
                "schema": "rxlane.rss-table/1",
                "interface": interface,
                "queues": rings,
                "entries": table.queues(),
                "shares": shares(&table, rings as usize),
                "imbalance": {
                    "max_over_mean": measure.max_over_mean,
                    "effective_queues": measure.effective_queues,
                },
            });
            out.json(&value)?;
            return Ok(Outcome::Success);
        }
        out.write_all(PrintedTable::print(&interface, rings, &table).as_bytes())?;
        print_shares(out, &table, rings as usize)?;
        Ok(Outcome::Success)
    }

    fn table(&self) -> anyhow::Result<PrintedTable> {
        let shape = |entries: usize| TableShape::new(self.entries.unwrap_or(entries), self.entry_bits);
        let table = match &self.source {
            Source::Equal { n, start } => IndirectionTable::equal(shape(128)?, *n, *start)?,
            Source::Weight { weights, start } => IndirectionTable::weight(shape(128)?, weights, *start)?,
            Source::Explicit { list } => IndirectionTable::explicit(shape(list.len())?, list)?,
            Source::Parse { file } => {
                let read = read_table(file)?;
                let queues = read.table.queues();
                let table = IndirectionTable::explicit(shape(queues.len())?, queues)?;
                return Ok(PrintedTable { rings: self.queues.unwrap_or(read.rings), table, ..read });
            }
        };
        let highest = table.queues().iter().copied().max().unwrap_or(0);
        let rings = self.queues.unwrap_or(u32::from(highest) + 1);
        Ok(PrintedTable { interface: self.interface.clone(), rings, table, key: None, function: None })
    }
}

fn shares(table: &IndirectionTable, queues: usize) -> Vec<usize> {
    let mut shares = table.shares();
    shares.resize(queues.max(shares.len()), 0);
    shares
}

fn print_shares(out: &mut Output, table: &IndirectionTable, queues: usize) -> io::Result<()> {
    const BAR: usize = 40;
    let shares = shares(table, queues);
    let most = shares.iter().copied().max().unwrap_or(0).max(1);
    let head = out.styled(Style::new().bold(), "queue  entries    share");
    writeln!(out, "\n{head}")?;
    let mut queue = 0;
    while let Some(share) = shares.get(queue) {
        let idle = shares.iter().skip(queue).take_while(|share| **share == 0).count();
        if idle > 2 {
            let range = format!("{queue}-{}", queue + idle - 1);
            writeln!(out, "{range:>5}  no entry names them")?;
            queue += idle;
            continue;
        }
        let percent = 100.0 * *share as f64 / table.shape().entries() as f64;
        let bar = "█".repeat((share * BAR).div_ceil(most));
        let line = format!("{queue:>5}  {share:>7}  {percent:>5.1} %  {bar}");
        writeln!(out, "{}", line.trim_end())?;
        queue += 1;
    }
    let measure = imbalance(table, queues);
    writeln!(
        out,
        "busiest queue over mean {:.2}; as even as {:.2} queues",
        measure.max_over_mean, measure.effective_queues
    )
}

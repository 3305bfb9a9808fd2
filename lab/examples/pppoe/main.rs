//! PPPoE clients side by side: `rxlane pppoe connect` by either data path, `pppd` with the kernel's PPPoE, and `pppd` with
//! rp-pppoe's program, asynchronous and synchronous, each against `rxlane pppoe serve`; the bare line without PPPoE; and
//! two of them against Debian's `pppoe-server`. TCP both ways, round trips both ways, where the CPU time of the client's end
//! goes, memory, and instructions for each byte at either end.
//!
//! ```console
//! $ cargo build --release -p rxlane -p rxlane-lab && cargo run --release -p rxlane-lab --example pppoe -- 5 4
//! ```
//!
//! Arguments: rounds, seconds of a transfer, tags of the line (`ad:100,q:200`; `-` for none), and a text: only ways in whose
//! names it is. `memory` in place of all these: the client within 32, 16 and 8 MiB.
//!
//! The subscriber's end has CPU 0 for itself, the provider's CPU 1, each with the `iperf3` of its end, and the harness CPU 2:
//! two machines with a CPU each, so that what one CPU executes is the work of one end. Throughput is that of an emulated
//! machine and depends on what else the host does. So do instructions a byte, in so far as what comes slowly is handled
//! frame by frame, and what comes fast by the batch: figures that are to be compared take an idle host.

#![allow(clippy::print_stdout)]

mod confined;
mod ends;
mod table;
mod topology;
mod turn;

use anyhow::{Context, Result};
use ends::Way;
use rxlane_lab::Lab;
use topology::Topology;
use turn::Turn;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |place: usize| arguments.get(place).map(String::as_str);
    let lab = Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))?;
    if argument(0) == Some("memory") {
        return confined::run(&Topology::new(&lab, "")?);
    }
    let rounds: usize = argument(0).map_or(Ok(5), str::parse).context("rounds")?;
    let seconds: u32 = argument(1).map_or(Ok(4), str::parse).context("seconds")?;
    let tags = argument(2).filter(|tags| *tags != "-").unwrap_or_default();
    let pattern = argument(3).unwrap_or_default();
    let topology = Topology::new(&lab, tags)?;
    println!("{}", topology.guest.sh("uname -rv")?.trim());
    println!("{}", rxlane_lab::emulator()?);
    println!("tags {}, {rounds} rounds, {seconds} s a transfer", if tags.is_empty() { "none" } else { tags });
    topology.describe()?;
    let chosen = Way::ALL.into_iter().filter(|way| way.name().contains(pattern));
    let mut ways: Vec<(Way, Vec<Turn>)> = chosen.map(|way| (way, Vec::new())).collect();
    for round in 0..rounds {
        for (way, turns) in &mut ways {
            // One that fails is a result, too; the others go on.
            match turn::turn(&topology, *way, seconds) {
                Ok(turn) => {
                    println!("round {round} {:<28} {turn}", way.name());
                    turns.push(turn);
                }
                Err(error) => println!("round {round} {:<28} failed: {error:#}", way.name()),
            }
        }
    }
    table::print(&ways);
    Ok(())
}

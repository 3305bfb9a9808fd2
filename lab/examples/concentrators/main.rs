//! Access concentrators on one machine: `rxlane pppoe serve` with either data path, and accel-ppp, whose data path is the
//! kernel's PPPoE. Set-ups a second with CHAP from a file, memory, and the CPU's work for a packet that is forwarded from and
//! to the subscribers, all of them in turn.
//!
//! accel-ppp is built outside the repository, without modules for the kernel:
//!
//! ```console
//! $ git clone https://github.com/accel-ppp/accel-ppp && cd accel-ppp && mkdir build && cd build     # cmake, libpcre2-dev, libssl-dev
//! $ cmake -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=$HOME/accel .. && make install
//! $ cargo build --release -p rxlane -p rxlane-lab
//! $ cargo run --release -p rxlane-lab --example concentrators -- $HOME/accel/sbin/accel-pppd 5 1000 3
//! ```
//!
//! Arguments: the program, rounds, sessions, seconds of a transfer (0: none). In each round every concentrator has a turn. In
//! the guest, the namespace `lines` has the subscribers and `core` what is behind the concentrator, on CPU 0; CPU 1 is the
//! concentrator's alone. It receives in threads of the kernel (threaded NAPI), so that all that it takes to forward is CPU 1's
//! work. Instructions and CPU time are those of CPU 1. Both are an emulated CPU's: what misses a cache costs nothing, and what
//! changes between kernel and process costs more than on a real one.

#![allow(clippy::print_stdout)]

mod hosts;
mod packets;
mod table;
mod topology;
mod turn;

use anyhow::{Context, Result};
use rxlane_lab::Lab;
use table::Figures;
use topology::{Concentrator, Topology};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // In the guest.
        ["hosts", count, at_once, lines] => hosts::set_up(count.parse()?, at_once.parse()?, lines),
        ["packets", way, size, seconds, lines] => {
            packets::forward(*way == "up", size.parse()?, seconds.parse()?, lines)
        }
        [program, rounds, sessions, seconds] => {
            measure(program, rounds.parse()?, sessions.parse()?, seconds.parse()?)
        }
        _ => anyhow::bail!("arguments: accel-pppd, rounds, sessions, seconds of a transfer"),
    }
}

fn measure(program: &str, rounds: usize, sessions: u32, seconds: u32) -> Result<()> {
    let lab = Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let topology = Topology::new(&lab, program, sessions)?;
    println!("{}", topology.guest.sh("uname -rv")?.trim());
    println!("{}", rxlane_lab::emulator()?);
    println!(
        "{}",
        topology.guest.sh(&format!("{program} --version 2>&1 || true")).context("accel-ppp")?.trim()
    );
    println!("{rounds} rounds, {sessions} sessions, {seconds} s a transfer");
    let mut all: Vec<(Concentrator, Vec<Figures>)> =
        Concentrator::ALL.map(|concentrator| (concentrator, Vec::new())).into();
    for round in 0..rounds {
        for (concentrator, turns) in &mut all {
            match turn::turn(&topology, *concentrator, sessions, seconds) {
                Ok(figures) => {
                    println!("round {round} {:<14} {}", concentrator.name(), table::line(&figures));
                    turns.push(figures);
                }
                Err(error) => println!("round {round} {:<14} failed: {error:#}", concentrator.name()),
            }
        }
    }
    table::print(&all);
    Ok(())
}

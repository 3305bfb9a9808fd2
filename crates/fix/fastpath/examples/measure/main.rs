//! What the fast path takes and holds, measured in network namespaces: `cargo run --release -p rxlane-fastpath --example measure -- WHAT
//! [NUMBER]` as root.
//!
//! `ended`: how soon a connection is forwarded no more (tries: 1,000). `flows`: how many connections are installed in a second, and their
//! memory (connections: 1,000,000). `limit`: what rate a limit lets through (bits a second: 100,000,000). `work`: CPU time of a packet compared with
//! the kernel's (packets a round: 100,000).
#![expect(clippy::print_stdout, reason = "it prints what it measured")]

mod ended;
mod flows;
mod limit;
mod router;
mod work;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, usual| match arguments.get(place) {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("`{text}` is no number")),
        None => usual,
    };
    match arguments.first().map(String::as_str) {
        Some("ended") => ended::measure(number(1, 1_000)),
        Some("flows") => flows::measure(number(1, 1_000_000)),
        Some("limit") => limit::measure(number(1, 100_000_000) as u64),
        Some("work") => work::measure(number(1, 100_000)),
        Some(router::DAEMON) => {
            let limit = arguments.get(3).and_then(|text| text.parse().ok());
            router::daemon(Path::new(&arguments[1]), number(2, 0), limit);
        }
        _ => {
            eprintln!("ended [TRIES], flows [CONNECTIONS], limit [BITS A SECOND], or work [PACKETS]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

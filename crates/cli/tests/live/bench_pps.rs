//! `rxlane bench pps --interface` between two namespaces: a veth pair has no moderation, no indirection table and no ring, and
//! refuses them. What cards do is in the lab (`lab/tests/it/bench_pps.rs`).

use crate::bench_live::{Ends, SINK, bench};
use crate::machine::signal;
use crate::run::{BINARY, Ended, Report};
use serde_json::json;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Output, Stdio};
use tempfile::TempDir;
use testkit::{program, require};

/// A sender that listens; ended when this is dropped.
struct Sender(Child);

fn pps(ends: &Ends, words: &str) -> Output {
    let journal = TempDir::new().expect("a folder");
    let mut command = ends.far.command(BINARY);
    command.args(["bench", "pps", "--journal"]).arg(journal.path()).args(words.split(' '));
    command.stdin(Stdio::null()).output().expect("it runs")
}

fn send_from(ends: &Ends, words: &str) -> Sender {
    let mut command = bench(&ends.near, "send");
    command.arg(SINK).args(words.split(' ')).stdin(Stdio::null()).stdout(Stdio::piped());
    Sender(command.spawn().expect("it runs"))
}

impl Sender {
    /// Waits until it says that it listens, which it does once its port is there, or is about to be.
    fn listens(&mut self) -> BufReader<std::process::ChildStdout> {
        let mut said = BufReader::new(self.0.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        assert!(line.starts_with("Sending what 198.18.0.2 asks for"), "{line}");
        said
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn another_host_sends_what_is_requested_and_refusals_are_reported() {
    let (Some(ends), Some(_)) = (Ends::new(), require("ethtool", program("ethtool"))) else { return };
    let nobody = pps(&ends, "--interface wan0 --from 198.18.0.1");
    nobody.ends(3);
    let way_out = "there has to run: rxlane bench send 198.18.0.2 --remote";
    nobody.says(way_out);
    let mut sender = send_from(&ends, "--remote");
    let mut lines = sender.listens();
    let words = "--interface wan0 --from 198.18.0.1 --seconds 0.3 --rounds 2 --json --vary senders,receivers --vary usecs --vary table";
    let report = pps(&ends, words).ends(0).json();
    let cells = report["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 6, "{report:#}");
    for cell in cells {
        for metric in ["received", "sent"] {
            let figures = &cell["figures"][metric];
            assert!(figures["least"].as_f64().is_some_and(|least| least > 0.0), "{metric}: {cell:#}");
        }
        let loss = cell["figures"]["loss"]["median"].as_f64().expect("a loss");
        assert!((0.0..=1.0).contains(&loss), "{cell:#}");
    }
    let left_out = report["left_out"].as_array().expect("left out");
    // Five intervals and three tables, each reported once.
    assert_eq!(left_out.len(), 8, "{left_out:#?}");
    for left in left_out {
        assert!(left["why"].as_str().is_some_and(|why| why.contains("ethtool -")), "{left:#}");
    }
    report["parameters"].has(json!({"interface": "wan0", "from": "198.18.0.1:7184"}));
    signal(sender.0.id(), "INT");
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("its words");
    // Six cells, two rounds.
    assert_eq!(rest.matches("198.18.0.2 asked for ").count(), 12, "{rest}");
    assert_eq!(sender.0.wait().expect("its end").code(), Some(0), "{rest}");
}

#[test]
fn load_that_nobody_requested_is_measured() {
    let (Some(ends), Some(_)) = (Ends::new(), require("ethtool", program("ethtool"))) else { return };
    let load = send_from(&ends, "--rate 20k --payload 32 --source-ports 8 --seconds 600");
    let report =
        pps(&ends, "--interface wan0 --factor receivers --seconds 0.3 --rounds 1 --json").ends(0).json();
    assert_eq!(report["cells"].as_array().map(Vec::len), Some(2), "{report:#}");
    for cell in report["cells"].as_array().expect("cells") {
        assert!(cell["figures"]["received"]["median"].as_f64().is_some_and(|rate| rate > 100.0), "{cell:#}");
    }
    drop(load);
    pps(&ends, "--interface wan0 --vary receivers --only receivers=1 --seconds 0.2 --rounds 1")
        .ends(1)
        .says("nothing arrives on UDP port 7184");
}

#[test]
fn what_is_wrong_or_missing_is_said() {
    let (Some(ends), Some(_)) = (Ends::new(), require("ethtool", program("ethtool"))) else { return };
    for (words, code, expected) in [
        ("--interface nothing0", 2, "nothing0"),
        ("--interface wan0 --vary colour", 2, "--factor colour: the factors are receivers, queues"),
        ("--interface wan0 --vary senders", 2, "senders need --from"),
        ("--interface wan0 --vary ,", 2, "is not FACTOR"),
        ("--vary usecs", 2, "--interface"),
        ("--undo --interface wan0", 2, "cannot be used with"),
        ("--undo", 0, "Nothing to restore."),
        ("--interface lo --from 127.0.0.1", 3, "127.0.0.1:7184 does not answer"),
    ] {
        pps(&ends, words).is(&words, code, expected);
    }
    let mut sender = send_from(&ends, "--remote");
    let _lines = sender.listens();
    pps(&ends, "--interface lo --from 198.18.0.1")
        .ends(2)
        .says("which wan0 has, and not lo: --interface wan0");
    let taken = bench(&ends.near, "send").args([SINK, "--remote"]).output();
    taken.expect("it runs").ends(2).says("TCP port 7184 is taken");
}

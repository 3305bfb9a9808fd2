//! `rxlane model`, run as a person runs it.

use crate::run::{self, Command, Ended};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

const ROUTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model/router.toml");

fn rxlane(arguments: &[&str]) -> Command {
    let mut command = run::rxlane();
    command.arg("model").args(arguments);
    command
}

fn output(arguments: &[&str]) -> String {
    rxlane(arguments).output().ends(0).text()
}

fn json(arguments: &[&str]) -> Value {
    rxlane(&[arguments, &["--json"]].concat()).output().ends(0).json()
}

/// Exit 2 and a sentence.
fn refused(arguments: &[&str], sentence: &str) {
    rxlane(arguments).output().is(&arguments, 2, sentence);
}

#[test]
fn a_run_shows_every_stage() {
    let text = output(&["run", ROUTER, "--verbose"]);
    for part in
        ["PPPoE on an I210", "Traffic", "Losses by stage", "Receive queues", "wan 3", "CPUs", "download"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text, output(&["run", ROUTER, "--verbose"]), "the same seed");
    assert_ne!(text, output(&["run", ROUTER, "--verbose", "--seed", "2"]));
}

#[test]
fn a_run_as_json_accounts_for_every_frame() {
    let run = json(&["run", ROUTER]);
    assert_eq!(run["schema"], "rxlane.model-run/1");
    let traffic = &run["traffic"][0];
    let lost: u64 = traffic["lost"].as_object().unwrap().values().map(|lost| lost.as_u64().unwrap()).sum();
    let number = |value: &Value| value.as_u64().unwrap();
    assert!(lost > 0);
    assert_eq!(
        number(&run["under_way"]["before"]) + number(&traffic["offered"]),
        number(&traffic["delivered"]) + lost + number(&run["under_way"]["after"])
    );
    assert_eq!(run["queues"].as_array().unwrap().len(), 8);
}

#[test]
fn keys_are_set_and_figures_printed_alone() {
    let share = |set: &str| output(&["run", ROUTER, "--set", set, "--figure", "queue.wan.0.share_percent"]);
    assert_eq!(share("seed=3"), "queue.wan.0.share_percent 100\n");
    assert_ne!(share("traffic.download.encap=none"), "queue.wan.0.share_percent 100\n");
    assert!(output(&["run", ROUTER, "--figure", "list"]).contains("latency_p99_us"));
    refused(&["run", ROUTER, "--figure", "speed"], "there is no figure `speed`");
    let alone = json(&["run", ROUTER, "--figure", "received_kpps"]);
    assert_eq!(alone["schema"], "rxlane.model-run/1");
    let figures = alone["figures"].as_object().unwrap();
    assert!(figures.len() == 1 && figures["received_kpps"].is_f64(), "{alone:#}");
    assert!(alone.get("traffic").is_none(), "{alone:#}");
    refused(&["run", ROUTER, "--set", "interface.dsl.ring=1"], "the scenario has no `interface.dsl`");
}

#[test]
fn what_is_wrong_with_a_file_is_said_with_its_line() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("router.toml");
    fs::write(&file, fs::read_to_string(ROUTER).unwrap().replace("ring = 256", "rign = 256")).unwrap();
    refused(&["run", file.to_str().unwrap()], "line 19: interface.wan: unknown key `rign`");
    refused(&["run", "no-such-file.toml"], "cannot read no-such-file.toml");
    // A key of another kind.
    refused(&["run", ROUTER, "--set", "interface.wan.moderation.us=100"], "unknown key `us`");
    // Half of a file is another scenario.
    fs::write(&file, format!("{}{}", fs::read_to_string(ROUTER).unwrap(), "# \n".repeat(2 << 20))).unwrap();
    refused(&["run", file.to_str().unwrap()], "is longer than 4 MiB");
    let without_nic = "interface.lan.hash_fields=[\"garbage\"]";
    refused(&["run", ROUTER, "--set", without_nic], "interface.lan.hash_fields: needs a `nic`");
    // What would never end, or take all memory.
    let endless = "traffic.download.arrival={ kind = \"senders\", number = 1048576, us = 0.001 }";
    refused(&["run", ROUTER, "--set", endless], "traffic.download.arrival: so many senders");
    let bursts = "traffic.download.arrival={ kind = \"bursts\", frames = 16777216, per_second = 1e9 }";
    refused(&["run", ROUTER, "--set", bursts], "10^9 frames a second");
    refused(&["run", ROUTER, "--set", "traffic.download.flows=4294967295"], "flows");
    refused(&["run", "apu4:none"], "its runs are");
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model/steering.toml");
    refused(&["run", report], "is a report of several runs: rxlane model reproduce");
    refused(&["run", "none:none"], "reports are apu4, bge");
}

/// Commands that a help text has as examples, on one line each.
fn examples(command: &str) -> Vec<String> {
    let help = output(&[command, "--help"]).replace("\\\n", " ");
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    let lines = examples.lines().take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().to_owned()).collect()
}

#[test]
fn examples_of_the_help_run() {
    let folder = TempDir::new().unwrap();
    fs::copy(ROUTER, folder.path().join("router.toml")).unwrap();
    let program = run::BINARY;
    let commands: Vec<String> = ["run", "sweep", "reproduce"].into_iter().flat_map(examples).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let words = command.strip_prefix("rxlane ").unwrap();
        let line = format!("{} {words}", program);
        let run = std::process::Command::new("sh").args(["-c", &line]).current_dir(&folder).output();
        run.unwrap().is(&line, 0, "");
    }
}

#[test]
fn runs_of_a_report_are_told_apart() {
    let title = |run: &str| json(&["run", run])["title"].as_str().unwrap().to_owned();
    assert!(title("apu4:one-sender").starts_with("apu4, one-sender: Packets per second on an APU4"));
    assert_ne!(title("bge:level-4"), title("bge:level-5"));
    refused(&["run", "bge"], "of the report of this name the runs are bge:achievable, ");
}

#[test]
fn a_sweep_may_bring_the_key_that_was_missing() {
    let sweep =
        ["sweep", ROUTER, "--set", "hand_over.depth=1000", "--key", "hand_over.cpus", "--values", "[1]"];
    assert!(output(&sweep).contains("PPPoE on an I210"));
    assert!(
        output(&["sweep", ROUTER, "--key", "seed", "--values", "1", "--figure", "list"])
            .contains("latency_p99_us")
    );
}

#[test]
fn a_capture_is_traffic() {
    let folder = TempDir::new().unwrap();
    let capture = folder.path().join("line.pcap");
    let mut generate = run::rxlane();
    generate.args(["gen", "--scenario", "pppoe", "--frames", "5000", "--seed", "1", "-o"]).arg(&capture);
    generate.output().ends(0);
    let text = "title = \"a capture\"\ncpus = 4\nwarm_up_ms = 0\nduration_ms = 1000\n[costs]\ndriver = 1000\n\
                [interface.wan]\nnic = \"i210\"\n[traffic.line]\ninterface = \"wan\"\n";
    let file = folder.path().join("scenario.toml");
    let arrival = format!("arrival = {{ kind = \"capture\", file = {:?} }}\n", capture.to_str().unwrap());
    fs::write(&file, format!("{text}{arrival}")).unwrap();
    let run = json(&["run", file.to_str().unwrap()]);
    assert_eq!((&run["traffic"][0]["offered"], &run["queues"][0]["frames"]), (&5000.into(), &5000.into()));
    // Some are longer than an 82574 lets in with two tags.
    generate_double_tagged(&capture);
    let short = text.replace("i210", "82574");
    fs::write(&file, format!("{short}{arrival}")).unwrap();
    let run = json(&["run", file.to_str().unwrap()]);
    let refused_frames = run["traffic"][0]["lost"]["admit"].as_u64().unwrap();
    assert!((300..500).contains(&refused_frames), "of 5000 frames one in twelve has 1526 octets: {run:#}");
    fs::write(&file, format!("{text}arrival = {{ kind = \"capture\", file = \"none.pcap\" }}\n")).unwrap();
    refused(&["run", file.to_str().unwrap()], "traffic.line.arrival.file");
}

fn generate_double_tagged(capture: &std::path::Path) {
    let mut generate = run::rxlane();
    generate.args(["gen", "--vlan", "100.200", "--frames", "5000", "--seed", "1", "-o"]).arg(capture);
    generate.output().ends(0);
}

#[test]
fn a_sweep_draws_a_bar_for_each_value() {
    let text = output(&["sweep", ROUTER, "--key", "costs.stack", "--values", "1000,2000,4000"]);
    assert!(text.contains("received_kpps by costs.stack") && text.matches('█').count() > 60, "{text}");
    let sweep = json(&[
        "sweep",
        ROUTER,
        "--key",
        "interface.wan.ring",
        "--from",
        "64",
        "--to",
        "256",
        "--steps",
        "4",
    ]);
    let values: Vec<_> =
        sweep["points"].as_array().unwrap().iter().map(|point| point["value"].clone()).collect();
    assert_eq!(values, [64, 128, 192, 256]);
    refused(&["sweep", ROUTER, "--key", "costs.stak", "--values", "1"], "unknown key `stak`");
    refused(&["sweep", ROUTER, "--key", "seed"], "by --values VALUE,VALUE or by --from X --to X");
}

#[test]
fn reports_are_reproduced() {
    let all = json(&["reproduce"]);
    assert_eq!(all["schema"], "rxlane.model/1");
    let figures = all["figures"].as_array().unwrap();
    let of_role = |role: &str| figures.iter().filter(|figure| figure["role"] == role).count();
    assert!(of_role("predicted") >= 12 && of_role("calibrated") > 0 && of_role("underivable") > 0);
    assert!(all["parameters"].as_array().unwrap().len() < of_role("predicted"));
    assert!(all["orders"].as_array().unwrap().iter().all(|order| order["holds"] == true));
    let text = output(&["reproduce", "apu4"]);
    assert!(
        text.contains("rx-usecs 0 halves the rate") && text.contains("predicted figures are within"),
        "{text}"
    );
    let own = output(&["reproduce", "--print", "i210"]);
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("own.toml");
    fs::write(
        &file,
        own.replace("larger = \"kernel goodput_mbps\"", "larger = \"user goodput_mbps\"\ntimes = 0.5"),
    )
    .unwrap();
    rxlane(&["reproduce", file.to_str().unwrap()]).output().ends(1);
    refused(&["reproduce", "apu5"], "there is no report `apu5`");
    // Whatever a file is called.
    let same = folder.path().join("own");
    fs::write(&same, own).unwrap();
    rxlane(&["reproduce", "own"]).current_dir(folder.path()).output().ends(0);
}

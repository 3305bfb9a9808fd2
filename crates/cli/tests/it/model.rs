//! `rxlane model`: scenarios, reports and captures are run, keys are set, errors name file and line. What the model answers is
//! tested in crate `model`.

use crate::run::{self, Command, Ended, Report};
use serde_json::{Value, json};
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
fn a_run_shows_every_stage_and_accounts_for_every_frame() {
    let text = output(&["run", ROUTER, "--verbose"]);
    let parts =
        ["PPPoE on an I210", "Traffic", "Losses by stage", "Receive queues", "wan 3", "CPUs", "download"];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text, output(&["run", ROUTER, "--verbose"]), "the same seed");
    assert_ne!(text, output(&["run", ROUTER, "--verbose", "--seed", "2"]));
    let run = json(&["run", ROUTER]);
    run.has(json!({"schema": "rxlane.model-run/1"}));
    assert_eq!(run["queues"].as_array().map(Vec::len), Some(8));
    let traffic = &run["traffic"][0];
    let number = |value: &Value| value.as_u64().unwrap();
    let lost: u64 = traffic["lost"].as_object().unwrap().values().map(number).sum();
    assert!(lost > 0);
    assert_eq!(
        number(&run["under_way"]["before"]) + number(&traffic["offered"]),
        number(&traffic["delivered"]) + lost + number(&run["under_way"]["after"])
    );
}

#[test]
fn keys_are_set_and_figures_printed_alone() {
    let share = |set: &str| output(&["run", ROUTER, "--set", set, "--figure", "queue.wan.0.share_percent"]);
    assert_eq!(share("seed=3"), "queue.wan.0.share_percent 100\n");
    assert_ne!(share("traffic.download.encap=none"), "queue.wan.0.share_percent 100\n");
    assert!(output(&["run", ROUTER, "--figure", "list"]).contains("latency_p99_us"));
    let alone = json(&["run", ROUTER, "--figure", "received_kpps"]);
    let figures = alone["figures"].as_object().unwrap();
    assert!(figures.len() == 1 && figures["received_kpps"].is_f64(), "{alone:#}");
    assert!(alone["schema"] == "rxlane.model-run/1" && alone.get("traffic").is_none(), "{alone:#}");
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("router.toml");
    let file = path.to_str().unwrap();
    fs::write(&path, fs::read_to_string(ROUTER).unwrap().replace("ring = 256", "rign = 256")).unwrap();
    refused(&["run", file], "line 19: interface.wan: unknown key `rign`");
    // Half of a file is another scenario.
    fs::write(&path, format!("{}{}", fs::read_to_string(ROUTER).unwrap(), "# \n".repeat(2 << 20))).unwrap();
    refused(&["run", file], "is longer than 4 MiB");
    for (set, sentence) in [
        ("interface.dsl.ring=1", "the scenario has no `interface.dsl`"),
        // A key of another kind.
        ("interface.wan.moderation.us=100", "unknown key `us`"),
        ("interface.lan.hash_fields=[\"garbage\"]", "interface.lan.hash_fields: needs a `nic`"),
        // What would never end, or take all memory.
        (
            "traffic.download.arrival={ kind = \"senders\", number = 1048576, us = 0.001 }",
            "traffic.download.arrival: so many senders",
        ),
        (
            "traffic.download.arrival={ kind = \"bursts\", frames = 16777216, per_second = 1e9 }",
            "10^9 frames a second",
        ),
        ("traffic.download.flows=4294967295", "flows"),
    ] {
        refused(&["run", ROUTER, "--set", set], sentence);
    }
    let report = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model/steering.toml");
    refused(&["run", report], "is a report of several runs: rxlane model reproduce");
    refused(&["run", ROUTER, "--figure", "speed"], "there is no figure `speed`");
    for (run, sentence) in [
        ("no-such-file.toml", "cannot read no-such-file.toml"),
        ("apu4:none", "its runs are"),
        ("none:none", "reports are apu4, bge"),
        ("bge", "of the report of this name the runs are bge:achievable, "),
    ] {
        refused(&["run", run], sentence);
    }
    refused(&["sweep", ROUTER, "--key", "costs.stak", "--values", "1"], "unknown key `stak`");
    refused(&["sweep", ROUTER, "--key", "seed"], "by --values VALUE,VALUE or by --from X --to X");
    refused(&["reproduce", "apu5"], "there is no report `apu5`");
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
    let commands: Vec<String> = ["run", "sweep", "reproduce"].into_iter().flat_map(examples).collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let line = format!("{} {}", run::BINARY, command.strip_prefix("rxlane ").unwrap());
        let run = std::process::Command::new("sh").args(["-c", &line]).current_dir(&folder).output();
        run.unwrap().is(&line, 0, "");
    }
}

fn generate(encapsulation: [&str; 2], capture: &str) {
    let rest = ["--frames", "5000", "--seed", "1", "-o", capture];
    run::rxlane().arg("gen").args(encapsulation).args(rest).output().ends(0);
}

#[test]
fn a_capture_is_traffic() {
    let folder = TempDir::new().unwrap();
    let [capture, file] = ["line.pcap", "scenario.toml"].map(|name| folder.path().join(name));
    let (capture, file) = (capture.to_str().unwrap(), file.to_str().unwrap());
    let write = |nic: &str, capture: &str| {
        let text = format!(
            "title = \"a capture\"\ncpus = 4\nwarm_up_ms = 0\nduration_ms = 1000\n[costs]\ndriver = 1000\n[interface.wan]\nnic = \
             {nic:?}\n[traffic.line]\ninterface = \"wan\"\narrival = {{ kind = \"capture\", file = {capture:?} }}\n"
        );
        fs::write(file, text).unwrap();
    };
    generate(["--scenario", "pppoe"], capture);
    write("i210", capture);
    let run = json(&["run", file]);
    assert_eq!((&run["traffic"][0]["offered"], &run["queues"][0]["frames"]), (&5000.into(), &5000.into()));
    // Some are longer than an 82574 lets in with two tags.
    generate(["--vlan", "100.200"], capture);
    write("82574", capture);
    let run = json(&["run", file]);
    let refused_frames = run["traffic"][0]["lost"]["admit"].as_u64().unwrap();
    assert!((300..500).contains(&refused_frames), "of 5000 frames one in twelve has 1526 bytes: {run:#}");
    write("i210", "none.pcap");
    refused(&["run", file], "traffic.line.arrival.file");
}

#[test]
fn a_sweep_draws_a_bar_for_each_value() {
    let text = output(&["sweep", ROUTER, "--key", "costs.stack", "--values", "1000,2000,4000"]);
    assert!(text.contains("received_kpps by costs.stack") && text.matches('█').count() > 60, "{text}");
    let range = ["--key", "interface.wan.ring", "--from", "64", "--to", "256", "--steps", "4"];
    let sweep = json(&[&["sweep", ROUTER], &range[..]].concat());
    let points = sweep["points"].as_array().unwrap();
    assert_eq!(points.iter().map(|point| point["value"].clone()).collect::<Vec<_>>(), [64, 128, 192, 256]);
    // It may bring the key that was missing.
    let brought = ["--set", "hand_over.depth=1000", "--key", "hand_over.cpus", "--values", "[1]"];
    assert!(output(&[&["sweep", ROUTER], &brought[..]].concat()).contains("PPPoE on an I210"));
}

#[test]
fn reports_and_their_runs_are_reproduced() {
    let title = |run: &str| json(&["run", run])["title"].as_str().unwrap().to_owned();
    assert!(title("apu4:one-sender").starts_with("apu4, one-sender: Packets per second on an APU4"));
    assert_ne!(title("bge:level-4"), title("bge:level-5"));
    let all = json(&["reproduce"]);
    all.has(json!({"schema": "rxlane.model/1"}));
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
    let wrong =
        own.replace("larger = \"kernel goodput_mbps\"", "larger = \"user goodput_mbps\"\ntimes = 0.5");
    let folder = TempDir::new().unwrap();
    // Whatever a file is called.
    for (name, text, code) in [("own.toml", wrong, 1), ("own", own, 0)] {
        fs::write(folder.path().join(name), text).unwrap();
        rxlane(&["reproduce", name]).current_dir(folder.path()).output().is(&name, code, "");
    }
}

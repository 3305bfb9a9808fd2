//! `rxlane doctor` on live interfaces: veth pairs with four queues, in network namespaces of the tests' own, with
//! PPPoE and VLAN traffic from the generator. A finding comes when its condition is made and goes when it is removed.

use crate::load;

use crate::pair::{FAR, WAN, binary, namespace, send_from_one_queue};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};
use testkit::netns::Namespace;
use testkit::{Missing, open_copy, program, require, wait_until};
use traffic::Scenario;

/// Frames of many flows.
fn frames(scenario: &str) -> Vec<Vec<u8>> {
    let scenario = Scenario::named(scenario).expect("a scenario").with_flows(400);
    let mut traffic = scenario.generate(7).expect("a generator");
    (0..2000).map(|_| traffic.next_frame().bytes.to_vec()).collect()
}

fn under_load<T>(namespace: &Namespace, frames: &[Vec<u8>], work: impl FnOnce() -> T) -> T {
    load::under_load(namespace, FAR, frames, work)
}

fn run(namespace: &Namespace, arguments: &[&str]) -> Output {
    namespace.command(binary()).args(arguments).stdin(Stdio::null()).output().expect("it starts")
}

/// The report on the interface, after a second under load.
fn diagnosed(namespace: &Namespace, frames: &[Vec<u8>], more: &[&str]) -> Value {
    let arguments = [&["doctor", WAN, "--json", "--seconds", "1"], more].concat();
    let output = under_load(namespace, frames, || run(namespace, &arguments));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let is_limited = report["verdict"] == "limited";
    assert_eq!(output.status.code() == Some(1), is_limited, "{stderr}");
    report
}

fn finding<'r>(report: &'r Value, id: &str) -> Option<&'r Value> {
    let findings = report["findings"].as_array().expect("findings");
    for finding in findings {
        assert!(!finding["evidence"].as_array().expect("evidence").is_empty(), "{finding}");
    }
    findings.iter().find(|finding| finding["id"] == id && finding["interface"] == WAN)
}

fn outcome<'r>(report: &'r Value, id: &str) -> &'r str {
    let rules = report["rules"].as_array().expect("rules");
    let row = rules.iter().find(|row| row["id"] == id).expect("the rule");
    row["outcome"].as_str().expect("a word")
}

/// Where `--journal` puts it.
fn journal(folder: &tempfile::TempDir) -> String {
    folder.path().join("journal").to_str().expect("UTF-8").to_owned()
}

/// Everything that `--apply` could change.
fn state(namespace: &Namespace) -> String {
    let features = namespace.run("ethtool", &["-k", WAN]).expect("features");
    let channels = namespace.run("ethtool", &["-l", WAN]).expect("channels");
    let masks = namespace
        .run("sh", &["-c", "cat /sys/class/net/wan0/queues/rx-*/rps_cpus /sys/class/net/wan0/mtu"])
        .expect("masks");
    [features, channels, masks].concat()
}

#[test]
fn one_queue_is_found_while_one_queue_takes_all() {
    let Some(namespace) = namespace() else { return };
    let frames = frames("pppoe");
    send_from_one_queue(&namespace);
    let report = diagnosed(&namespace, &frames, &[]);
    let hot = finding(&report, "one-queue-hot").unwrap_or_else(|| panic!("{report:#}"));
    let evidence = hot["evidence"][0]["text"].as_str().expect("text");
    assert!(evidence.starts_with("rx_queue_0_xdp_packets: "), "{evidence}");
    let shares: Vec<f64> = report["interfaces"][0]["queues"]
        .as_array()
        .expect("queues")
        .iter()
        .map(|queue| queue["share"].as_f64().expect("a share"))
        .collect();
    assert_eq!(shares, [1.0, 0.0, 0.0, 0.0]);

    namespace.run("ethtool", &["-L", FAR, "tx", "4"]).expect("four queues");
    let report = diagnosed(&namespace, &frames, &[]);
    assert_eq!(finding(&report, "one-queue-hot"), None, "{report:#}");
    assert_eq!(outcome(&report, "one-queue-hot"), "clear");
}

#[test]
fn gro_is_found_off_and_found_on_again() {
    let Some(namespace) = namespace() else { return };
    let frames = frames("vlan");
    namespace.run("ethtool", &["-K", WAN, "gro", "off"]).expect("off");
    let report = diagnosed(&namespace, &frames, &[]);
    assert!(finding(&report, "gro-off").is_some(), "{report:#}");
    namespace.run("ethtool", &["-K", WAN, "gro", "on"]).expect("on");
    let report = diagnosed(&namespace, &frames, &[]);
    assert_eq!(finding(&report, "gro-off"), None);
    assert_eq!(outcome(&report, "gro-off"), "clear");
}

#[test]
fn a_live_sample_joins_the_traffic() {
    let Some(namespace) = namespace() else { return };
    let frames = frames("pppoe");
    send_from_one_queue(&namespace);
    let report = diagnosed(&namespace, &frames, &["--sample"]);
    let hot = finding(&report, "one-queue-hot").unwrap_or_else(|| panic!("{report:#}"));
    let expected = hot["remedies"][0]["expected"].as_str().expect("a prediction");
    assert!(expected.contains("In the traffic sample"), "{expected}");
}

#[test]
fn what_is_applied_is_undone() {
    let Some(namespace) = namespace() else { return };
    let frames = frames("pppoe");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = &*journal(&folder);
    send_from_one_queue(&namespace);
    let before = state(&namespace);

    let apply = ["doctor", WAN, "--seconds", "1", "--apply", "one-queue-hot", "--yes", "--journal", journal];
    let applied = under_load(&namespace, &frames, || run(&namespace, &apply));
    let text = String::from_utf8_lossy(&applied.stdout).into_owned();
    assert_eq!(applied.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&applied.stderr));
    assert!(text.contains("done: echo "), "{text}");
    assert_ne!(state(&namespace), before, "{text}");
    let report = diagnosed(&namespace, &frames, &[]);
    assert_eq!(finding(&report, "rps-off"), None, "{report:#}");

    let undone = run(&namespace, &["doctor", "--undo", "--journal", journal]);
    assert_eq!(undone.status.code(), Some(0), "{}", String::from_utf8_lossy(&undone.stdout));
    assert_eq!(state(&namespace), before);
    let report = diagnosed(&namespace, &frames, &[]);
    assert!(finding(&report, "rps-off").is_some(), "{report:#}");
    let again = run(&namespace, &["doctor", "--undo", "--journal", journal]);
    assert_eq!(again.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&again.stdout).contains("Nothing to restore"));
}

#[test]
fn without_a_terminal_nothing_is_applied_unasked() {
    let Some(namespace) = namespace() else { return };
    let frames = frames("pppoe");
    send_from_one_queue(&namespace);
    let before = state(&namespace);
    let apply = ["doctor", WAN, "--seconds", "1", "--apply", "one-queue-hot"];
    let asked = under_load(&namespace, &frames, || run(&namespace, &apply));
    assert_eq!(asked.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&asked.stderr).contains("--yes"));
    assert_eq!(state(&namespace), before);
}

/// An `ethtool` that changes a feature and then does not come back.
fn hanging_ethtool(folder: &Path) {
    let ethtool = program("ethtool").expect("asked before");
    let script = format!(
        "#!/bin/sh\n'{0}' \"$@\"\nstatus=$?\n[ \"$1\" = -K ] && exec sleep 30\nexit $status\n",
        ethtool.display()
    );
    let path = folder.join("ethtool");
    std::fs::write(&path, script).expect("a script");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn a_kill_between_leaves_what_undo_needs() {
    let Some(namespace) = namespace() else { return };
    let frames = frames("vlan");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = &*journal(&folder);
    namespace.run("ethtool", &["-K", WAN, "gro", "off"]).expect("off");
    let before = state(&namespace);
    hanging_ethtool(folder.path());
    let search = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());

    under_load(&namespace, &frames, || {
        use std::os::unix::process::CommandExt;
        let mut child = namespace
            .command(binary())
            .args(["doctor", WAN, "--seconds", "1", "--apply", "gro-off", "--yes", "--journal", journal])
            .env("PATH", &search)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("it starts");
        wait_until("a change", || {
            assert!(child.try_wait().expect("a status").is_none(), "it ended without a change");
            state(&namespace) != before
        });
        // The group: the program that it waits for holds the journal, too.
        let group = format!("-{}", child.id());
        assert!(
            std::process::Command::new("kill").args(["-9", "--", &group]).status().expect("kill").success()
        );
        child.wait().expect("an end");
    });
    assert_ne!(state(&namespace), before);
    let undone = run(&namespace, &["doctor", "--undo", "--journal", journal]);
    assert_eq!(undone.status.code(), Some(0), "{}", String::from_utf8_lossy(&undone.stdout));
    assert_eq!(state(&namespace), before);
}

#[test]
fn without_privilege_it_says_what_it_could_not_read_and_goes_on() {
    let Some(setpriv) = require("setpriv", program("setpriv")) else { return };
    let Some(namespace) = namespace() else { return };
    let frames = frames("pppoe");
    // The build folder may be closed to others.
    let folder = tempfile::tempdir().expect("a folder");
    let copy = open_copy(binary().as_ref(), folder.path()).expect("a copy");
    let as_nobody = |arguments: &[&str]| {
        let mut command = namespace.command(&setpriv);
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(&copy).args(arguments);
        command.stdin(Stdio::null()).output().expect("it starts")
    };
    let output = under_load(&namespace, &frames, || as_nobody(&["doctor", WAN, "--json", "--seconds", "1"]));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["interfaces"][0]["name"], WAN);
    let denied = as_nobody(&["doctor", WAN, "--sample", "--seconds", "1"]);
    assert_eq!(denied.status.code(), Some(3), "{}", String::from_utf8_lossy(&denied.stderr));
}

/// Whether the kernel lets this process load what steers.
fn bpf() -> Result<(), Missing> {
    match xdp::kernel().cpumap_programs {
        Some(true) => Ok(()),
        Some(false) => Err(Missing("this kernel has no cpumap programs (Linux 5.9 has)".to_owned())),
        None => Err(Missing("loading BPF programs requires root".to_owned())),
    }
}

/// Steering that is taken back whatever happens.
struct Steered<'a> {
    namespace: &'a Namespace,
    journal: &'a str,
}

impl<'a> Steered<'a> {
    fn up(namespace: &'a Namespace, journal: &'a str) -> Steered<'a> {
        let output = run(namespace, &["steer", "up", WAN, "--seconds", "0", "--journal", journal]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        Steered { namespace, journal }
    }
}

impl Drop for Steered<'_> {
    fn drop(&mut self) {
        run(self.namespace, &["steer", "down", WAN, "--journal", self.journal]);
    }
}

/// Commands that all findings offer together.
fn offered(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().expect("findings");
    let remedies = findings.iter().flat_map(|finding| finding["remedies"].as_array().expect("remedies"));
    let commands = remedies.flat_map(|remedy| remedy["commands"].as_array().expect("commands"));
    commands.map(|command| command.as_str().expect("text")).collect()
}

#[test]
fn what_is_steered_is_seen_and_not_offered_again() {
    if require("bpf", bpf()).is_none() {
        return;
    }
    let Some(namespace) = namespace() else { return };
    let frames = frames("pppoe");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = &*journal(&folder);
    send_from_one_queue(&namespace);
    let is_up = |command: &&str| *command == format!("rxlane steer up {WAN}");
    let is_rps = |command: &&str| command.contains("rps_cpus");
    let before = diagnosed(&namespace, &frames, &[]);
    assert!(finding(&before, "rps-off").is_some() && offered(&before).iter().any(is_rps), "{before:#}");
    assert!(before["interfaces"][0]["steering"].is_null());

    let steered = Steered::up(&namespace, journal);
    let report = diagnosed(&namespace, &frames, &[]);
    let row = &report["interfaces"][0]["steering"];
    assert_eq!(
        (row["mode"].as_str(), row["since_start"].as_bool()),
        (Some("native"), Some(false)),
        "{report:#}"
    );
    assert!(row["share"].as_f64().is_some_and(|share| share > 0.8), "{row:#}");
    let hot = finding(&report, "one-queue-hot").unwrap_or_else(|| panic!("{report:#}"));
    assert!(hot["explanation"].as_str().is_some_and(|text| text.contains("rxlane steers ")), "{hot:#}");
    assert_eq!(outcome(&report, "rps-off"), "clear");
    assert!(!offered(&report).iter().any(|command| is_up(command) || is_rps(command)), "{report:#}");

    // The bundle says the same elsewhere.
    let collected = under_load(&namespace, &frames, || run(&namespace, &["collect", WAN, "--seconds", "0"]));
    let bundle = folder.path().join("bundle.txt");
    std::fs::write(&bundle, &collected.stdout).expect("a bundle");
    let bundle = bundle.to_str().expect("UTF-8");
    let text = String::from_utf8_lossy(&collected.stdout);
    assert!(
        text.contains(&format!("$ rxlane steer status {WAN} --json\n{{\"schema\":\"rxlane.steer/1\"")),
        "{text}"
    );
    let read = run(&namespace, &["doctor", "--from", bundle, "--json"]);
    let read: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    assert_eq!(read["interfaces"][0]["steering"]["mode"], "native", "{read:#}");
    let read = run(&namespace, &["doctor", "--from", bundle, "--verbose"]);
    assert!(String::from_utf8_lossy(&read.stdout).contains("Steering: native mode, "));

    drop(steered);
    let after = diagnosed(&namespace, &frames, &[]);
    assert!(
        finding(&after, "rps-off").is_some() && after["interfaces"][0]["steering"].is_null(),
        "{after:#}"
    );
}

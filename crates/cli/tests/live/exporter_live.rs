//! `rxlane exporter` in a network namespace.

use crate::machine::{Machine, WAN, signal};
use crate::run::{BINARY, Ended};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use testkit::wait_for;

/// Names of families, each with samples, in one place of the page.
fn families(page: &str) -> BTreeSet<&str> {
    let mut families = BTreeSet::new();
    let mut samples = page.lines().filter(|line| !line.starts_with('#')).peekable();
    for line in page.lines().filter(|line| line.starts_with("# TYPE ")) {
        let name = line.split(' ').nth(2).expect("a name");
        assert!(families.insert(name), "{name} is there twice");
    }
    assert!(samples.peek().is_some());
    for sample in samples {
        let (name, value) = (sample.split(['{', ' ']).next(), sample.rsplit(' ').next());
        assert!(name.is_some_and(|name| families.contains(name)), "{sample}");
        assert!(value.is_some_and(|value| value.parse::<f64>().is_ok_and(f64::is_finite)), "{sample}");
    }
    families
}

fn exchange(mut stream: impl Read + Write) -> String {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: rxlane\r\n\r\n").expect("sent");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("answered");
    page
}

#[test]
fn metrics_are_written_once_and_served_with_what_is_steered() {
    let Some(machine) = Machine::steer() else { return };
    machine.run(&["up", WAN, "--seconds", "0"]).ends(0);
    machine.send_scenario("pppoe");
    let exporter = |arguments: &[&str]| machine.command_of(&machine.namespace, "exporter", arguments);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rxlane.prom");
    let once = ["--once", "--interval", "1"];
    let printed = exporter(&once).output().expect("it runs").ends(0).text();
    let found = families(&printed);
    for family in [
        "rxlane_verdict",
        "rxlane_rules",
        "rxlane_receive_frames_total",
        "rxlane_queues",
        "rxlane_softnet_processed_total",
        "rxlane_steer_frames_total",
        "rxlane_steer_cpu_buckets",
    ] {
        assert!(found.contains(family), "{family}\n{printed}");
    }
    assert!(!printed.contains("interface=\"\""), "{printed}");
    exporter(&once).arg("-o").arg(&file).output().expect("it runs").ends(0);
    assert_eq!(families(&std::fs::read_to_string(&file).expect("written")), found);
    exporter(&once).args(["-o", "/nonexistent/metrics"]).output().expect("it runs").ends(2);

    // The plugin says what the metrics do, in the words and codes of its guidelines.
    let plugin = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/nagios/check_rxlane");
    let check = |interface| {
        machine.namespace.command(plugin).arg(interface).env("RXLANE", BINARY).output().expect("it runs")
    };
    let state = check(WAN);
    let text = state.text();
    let (said, values) = text.split_once(" |").expect("values");
    let words =
        [("OK", "healthy"), ("WARNING", "limited"), ("CRITICAL", "critical: "), ("UNKNOWN", "unknown")];
    let (word, verdict) = words[usize::try_from(state.code()).expect("a code")];
    assert!(said.starts_with(&format!("RXLANE {word} - ")) && said.contains(verdict), "{text}");
    for value in values.split_whitespace() {
        let (name, amount) = value.split_once('=').expect("a name");
        assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)), "{text}");
        assert!(amount.trim_end_matches(['c', '%']).parse::<f64>().is_ok(), "{text}");
    }
    assert!(values.contains(" softnet_dropped=") && values.contains(" findings_critical="), "{text}");
    check("nowhere").ends(3).says("RXLANE UNKNOWN - rxlane: ");

    let socket = folder.path().join("metrics.sock");
    for (option, address) in [("--listen", "127.0.0.1:9145"), ("--socket", socket.to_str().expect("a path"))]
    {
        let mut command = exporter(&["--interval", "1"]);
        let child = command.args([option, address]).stdout(Stdio::piped()).spawn().expect("it starts");
        // Before the first reading it is 503.
        let page = wait_for("metrics are served", || {
            let page = match option {
                "--listen" => machine.inside(|| TcpStream::connect(address)).ok().map(exchange),
                _ => UnixStream::connect(address).ok().map(exchange),
            };
            page.filter(|page| page.starts_with("HTTP/1.1 200"))
        });
        families(page.split_once("\r\n\r\n").expect("a page").1);
        signal(u64::from(child.id()), "TERM");
        child.wait_with_output().expect("an end").ends(0).says(address);
    }
    assert!(!socket.exists());
    machine.run(&["down", WAN]).ends(0);
}

#[test]
fn an_address_that_is_taken_is_named() {
    let Some(machine) = Machine::steer() else { return };
    let taken = machine.inside(|| std::net::TcpListener::bind("127.0.0.1:9145")).expect("a port");
    machine
        .command_of(&machine.namespace, "exporter", &[])
        .output()
        .expect("it runs")
        .ends(3)
        .says("port 9145");
    drop(taken);
}

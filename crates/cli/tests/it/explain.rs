//! `rxlane explain`, run as its users run it.

use crate::run::{Ended, Report, rxlane};
use capture::{LinkType, Resolution, Writer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;
use traffic::Scenario;
use wire::emit::Encapsulation;

const FRAMES: u64 = 2000;

fn sample(encapsulation: &str) -> Vec<u8> {
    let scenario = Scenario::new(encapsulation.parse::<Encapsulation>().unwrap()).with_flows(200).data_only();
    let mut traffic = scenario.generate(7).unwrap();
    let mut writer = Writer::pcap(Vec::new(), LinkType::Ethernet, Resolution::Microseconds).unwrap();
    for _ in 0..FRAMES {
        let frame = traffic.next_frame();
        writer.write(frame.timestamp_ns as i64, frame.bytes, frame.bytes.len() as u32).unwrap();
    }
    writer.finish().unwrap()
}

fn file(directory: &TempDir, name: &str, content: &[u8]) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path
}

fn json(arguments: &[&str], path: &Path) -> Value {
    let output = rxlane().arg("explain").arg(path).args(arguments).arg("--json").output();
    output.ends(0).json()
}

/// A run that fails in one sentence, exit 2, and prints nothing else.
fn refused(output: &Output, sentence: &str) {
    assert!(output.ends(2).says(sentence).stdout.is_empty(), "{}", output.text());
}

fn queues(report: &Value) -> Vec<u64> {
    report["queues"].as_array().unwrap().iter().map(|queue| queue["frames"].as_u64().unwrap()).collect()
}

#[test]
fn pppoe_lands_on_queue_0_of_an_i210_and_the_same_flows_without_it_spread() {
    let directory = TempDir::new().unwrap();
    let pppoe = json(&["--nic", "i210"], &file(&directory, "pppoe.pcap", &sample("pppoe")));
    assert_eq!(queues(&pppoe), [FRAMES, 0, 0, 0]);
    pppoe.has(json!({"imbalance": {"max_over_mean": 4.0, "effective_queues": 1.0}}));
    assert_eq!(pppoe["queues"][0]["flows"], pppoe["flows"]["unidirectional"]);
    assert_eq!(pppoe["stacks"][0]["why"], "the parser stops at the PPPoE header");
    let untagged = json(&["--nic", "i210"], &file(&directory, "untagged.pcap", &sample("none")));
    assert!(queues(&untagged).iter().all(|frames| *frames > FRAMES / 20), "{:?}", queues(&untagged));
    // What steering does depends on the inner header alone.
    assert_eq!(pppoe["steered"], untagged["steered"]);
    assert!(pppoe["steered"]["effective_queues"].as_f64().unwrap() > 3.0);
    assert!(!pppoe["conclusion"].to_string().contains("no IP header"));
    // Most frames of this one are negotiation, which no steering moves.
    let (_, control) = conclusion_on("qinq_pppoe_two_sessions.pcap", "i210");
    assert!(
        control.contains("80 % of the frames have no IP header and stay on the CPU of their queue"),
        "{control}"
    );
    // One queue is never called a spread.
    let one = json(&["--nic", "rtl8168"], &directory.path().join("pppoe.pcap"))["conclusion"].to_string();
    assert!(
        one.contains("one receive queue") && one.contains("Steering by the inner header would help"),
        "{one}"
    );
}

#[test]
fn every_frame_is_on_one_queue_and_on_one_cpu() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "qinq.pcap", &sample("ad:100,q:200"));
    for nic in ["i210", "i350", "82599", "connectx-5", "rtl8168", "virtio-net", "veth"] {
        let report = json(&["--nic", nic, "--cpus", "3"], &path);
        let unplaced = report["nic"]["unplaced"].as_u64().unwrap();
        assert_eq!(queues(&report).iter().sum::<u64>() + unplaced, FRAMES, "{nic}");
        let cpus = report["steered"]["per_cpu"].as_array().unwrap();
        assert_eq!(cpus.iter().map(|cpu| cpu["frames"].as_u64().unwrap()).sum::<u64>(), FRAMES, "{nic}");
        assert_eq!(cpus.len(), 3);
    }
}

#[test]
fn the_schema_has_the_fields_that_scripts_rely_on() {
    let directory = TempDir::new().unwrap();
    let report = json(&[], &file(&directory, "a.pcap", &sample("q:35,pppoe:9")));
    assert_eq!(report["schema"], "rxlane.explain/1");
    let pointers = "/source/frames /source/bytes /source/captured_bytes \
        /stacks/0/stack /stacks/0/frames /stacks/0/bytes /stacks/0/hash_type /stacks/0/why \
        /tags/0/tags /tags/0/frames /pppoe/sessions /pppoe/codes/session /pppoe/ppp/0x0021 \
        /flows/unidirectional /flows/bidirectional \
        /fragments/ipv4_first /fragments/ipv4_later /fragments/ipv6_first /fragments/ipv6_later \
        /bad/truncated /bad/malformed /bad/reasons /nic/name /nic/queues \
        /queues/0/queue /queues/0/frames /queues/0/bytes /queues/0/flows \
        /imbalance/max_over_mean /imbalance/effective_queues \
        /steered/cpus /steered/per_cpu/0/cpu /steered/per_cpu/0/frames \
        /steered/max_over_mean /steered/effective_queues /admission/accepted /admission/dropped";
    for pointer in pointers.split_whitespace() {
        assert!(report.pointer(pointer).is_some(), "{pointer} is missing");
    }
    assert_eq!(report["stacks"][0]["stack"], "eth/vlan/pppoe/ipv4/tcp");
    assert_eq!(report["tags"][0]["tags"], "0x8100/35");
    assert_eq!(report["pppoe"]["sessions"], 1);
}

#[test]
fn workers_standard_input_and_several_files_count_the_same() {
    let directory = TempDir::new().unwrap();
    let plain = sample("pppoe");
    let path = file(&directory, "a.pcap", &plain);
    let one = json(&["--workers", "1"], &path);
    for workers in ["2", "3", "8"] {
        assert_eq!(json(&["--workers", workers], &path), one, "{workers} workers");
    }
    let piped = rxlane().args(["explain", "-", "--json"]).write_stdin(plain).output().json();
    assert_eq!(piped["stacks"], one["stacks"]);
    let twice = rxlane().arg("explain").args([&path, &path]).arg("--json").output().json();
    twice.has(json!({"source": {"frames": 2 * FRAMES}, "flows": one["flows"]}));
}

#[test]
fn a_truncated_capture_counts_every_whole_record_and_says_where_it_ends() {
    let directory = TempDir::new().unwrap();
    let whole = sample("pppoe");
    let path = file(&directory, "cut.pcap", &whole[..whole.len() - 5]);
    let output = rxlane().arg("explain").arg(&path).arg("--json").output();
    assert_eq!(output.status.code(), Some(1), "the report is there, the file is not whole");
    let report = output.json();
    assert_eq!(report["source"]["frames"], FRAMES - 1);
    let problem = report["source"]["problems"][0].as_str().unwrap();
    assert!(problem.contains("cut.pcap: frame 2000 at byte "), "{problem}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("frame 2000 at byte"));
}

#[test]
fn what_is_no_capture_is_one_sentence_and_exit_2() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "notes.txt", b"Dear diary, today the line was slow again.");
    let prose = rxlane().arg("explain").arg(&path).output();
    prose.says("notes.txt").says("no capture");
    let none = rxlane().args(["explain", "/nonexistent.pcap"]).output();
    for output in [prose, none, rxlane().args(["explain", "-"]).write_stdin("").output()] {
        refused(&output, "");
        assert_eq!(output.text().lines().count(), 1, "{}", output.text());
    }
}

#[test]
fn a_page_never_takes_the_place_of_an_input_nor_of_an_older_page_halfway() {
    let directory = TempDir::new().unwrap();
    let capture = sample("pppoe");
    let path = file(&directory, "a.pcap", &capture);
    let link = directory.path().join("link.pcap");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    for target in [&path, &link] {
        refused(&rxlane().arg("explain").arg(&path).arg("--html").arg(target).output(), "is the input");
    }
    assert_eq!(std::fs::read(&path).unwrap(), capture);
    let page = file(&directory, "old.html", b"an older page");
    refused(&rxlane().args(["explain", "/dev/null", "--html"]).arg(&page).output(), "");
    assert_eq!(std::fs::read(&page).unwrap(), b"an older page");
    rxlane().arg("explain").arg(&path).arg("--html").arg(&page).output().ends(0);
    assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!DOCTYPE html>"));
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    let output = rxlane().arg("explain").arg(&path).args(["--html", "-"]).output();
    assert!(output.stdout.starts_with(b"<!DOCTYPE html>"));
}

#[test]
fn a_frame_of_very_many_tags_is_shortened() {
    let directory = TempDir::new().unwrap();
    let mut frame = vec![2; 12];
    (0..20_000).for_each(|_| frame.extend([0x81, 0, 0, 7]));
    frame.extend([8, 0]);
    let mut writer = Writer::pcap(Vec::new(), LinkType::Ethernet, Resolution::Microseconds).unwrap();
    writer.write(0, &frame, frame.len() as u32).unwrap();
    let path = file(&directory, "tags.pcap", &writer.finish().unwrap());
    let output = rxlane().arg("explain").arg(&path).output();
    let text = output.ends(0).text();
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}

#[test]
fn frames_that_no_card_received_are_no_verdict() {
    let directory = TempDir::new().unwrap();
    let whole = sample("none");
    let mut capture = capture::Capture::from_reader(std::io::Cursor::new(whole), "whole").unwrap();
    let mut bare = Writer::pcap(Vec::new(), LinkType::RawIp, Resolution::Microseconds).unwrap();
    let mut sent = Writer::pcap(Vec::new(), LinkType::LinuxCooked, Resolution::Microseconds).unwrap();
    while let Some(frame) = capture.next_frame() {
        let packet = &frame.data[14..];
        bare.write(0, packet, packet.len() as u32).unwrap();
        let outgoing = frame.number % 2 == 0;
        let mut cooked = vec![0, if outgoing { 4 } else { 0 }, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        cooked.extend(&frame.data[12..]);
        sent.write(0, &cooked, cooked.len() as u32).unwrap();
    }
    let report = json(&[], &file(&directory, "bare.pcap", &bare.finish().unwrap()));
    assert_eq!(report["source"]["above_link"], FRAMES);
    assert!(report["conclusion"][0].as_str().unwrap().contains("captured behind the encapsulation"));
    assert!(queues(&report).is_empty());
    let report = json(&[], &file(&directory, "sent.pcap", &sent.finish().unwrap()));
    assert_eq!(report["source"]["outgoing"], FRAMES / 2);
    assert_eq!(queues(&report).iter().sum::<u64>(), FRAMES / 2);
    let steered = report["steered"]["per_cpu"].as_array().unwrap();
    assert_eq!(steered.iter().map(|cpu| cpu["frames"].as_u64().unwrap()).sum::<u64>(), FRAMES / 2);
}

#[test]
fn what_the_card_refuses_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "a.pcap", &sample("none"));
    let zeros = ["00"; 40].join(":");
    for (arguments, culprit) in [
        ("--nic i211 --queues 4", "i211"),
        ("--nic frobnicator", "frobnicator"),
        ("--reta equal:9", "names 9 queues"),
        ("--nic rtl8125b --hash-fields udp4=sdfn", "no hash chooses the queue on the rtl8125b"),
        ("--reta 0,1,x", "\"x\" is no queue number"),
        ("--hash-fields tcp4=sd", "tcp4"),
        ("--html /nonexistent/page.html", "/nonexistent/page.html"),
        (&format!("--nic i210 --key {zeros}"), "all bytes of the key are zero"),
    ] {
        let output = rxlane().arg("explain").arg(&path).args(arguments.split(' ')).output();
        assert!(output.is(&arguments, 2, culprit).stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn table_and_hash_fields_are_followed() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "a.pcap", &sample("none"));
    let report = json(&["--reta", "weight:1,0,0,1"], &path);
    let shares = queues(&report);
    assert_eq!((shares[1], shares[2]), (0, 0));
    assert!(shares[0] > 0 && shares[3] > 0);
    let two = json(&[], &path);
    let four = json(&["--hash-fields", "udp4=sdfn"], &path);
    let udp = |report: &Value| {
        let rows = report["stacks"].as_array().unwrap().clone();
        rows.iter().find(|row| row["stack"] == "eth/ipv4/udp").unwrap()["hash_type"].clone()
    };
    assert_eq!((udp(&two), udp(&four)), ("ipv4".into(), "udp-ipv4".into()));
}

#[test]
fn text_has_no_colour_in_a_pipe_begins_with_the_conclusion_and_fits_a_terminal() {
    let directory = TempDir::new().unwrap();
    let path = file(&directory, "a.pcap", &sample("pppoe"));
    let output = rxlane().arg("explain").arg(&path).output();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('\x1b'), "{text}");
    let conclusion = text.split("Receive queues").next().expect("a conclusion");
    let conclusion = conclusion.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(conclusion.contains("because the parser stops at the PPPoE header"), "{conclusion}");
    assert!(text.lines().count() <= 24, "{text}");
    let verbose = rxlane().arg("explain").arg(&path).arg("--verbose").output();
    let verbose = String::from_utf8(verbose.stdout).unwrap();
    assert!(verbose.starts_with(&text) && verbose.contains("Largest flows"), "{verbose}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// The sentences of the answer on one of the project's captures.
fn conclusion_on(capture: &str, nic: &str) -> (Value, String) {
    let report = json(&["--nic", nic], &testkit::captures::own().join(capture));
    let sentences = report["conclusion"].as_array().unwrap().iter();
    let conclusion = sentences.map(|one| one.as_str().unwrap()).collect::<Vec<_>>().join(" ");
    (report, conclusion)
}

#[test]
fn frames_of_unknown_hash_are_never_called_unhashed() {
    for (capture, nic) in [
        ("vlan_ip.pcap", "ena"),
        ("qinq_ip.pcap", "x710"),
        ("qinq_pppoe_two_sessions.pcap", "x710"),
        ("qinq_pppoe_two_sessions.pcap", "ena"),
        ("qinq_pppoe_two_sessions.pcap", "mvpp2"),
        ("qinq_pppoe_two_sessions.pcap", "dpaa2"),
        ("qinq_pppoe_two_sessions.pcap", "vmxnet3"),
    ] {
        let (report, conclusion) = conclusion_on(capture, nic);
        assert!(!conclusion.contains("without a hash"), "{capture} {nic}: {conclusion}");
        let sentence = "is unknown: the profile does not say: tag stacks seen through.";
        assert!(conclusion.contains(sentence), "{capture} {nic}: {conclusion}");
        let unknown = &report["nic"]["unknown"][0];
        assert_eq!(unknown["key"], "parse.tags_through", "{capture} {nic}");
        assert_eq!(unknown["frames"], report["source"]["frames"], "{capture} {nic}");
    }
    // Frames that the profile says are not hashed, and not where they go.
    let (report, conclusion) = conclusion_on("pppoe_pap.pcap", "x710");
    assert!(conclusion.contains("Frames without a hash have nothing that could spread them"), "{conclusion}");
    assert_eq!(report["nic"]["unknown"][0]["key"], "queue.unhashed");
    // A hash that is known, and not computed.
    let directory = TempDir::new().unwrap();
    let plain = file(&directory, "plain.pcap", &sample("none"));
    for (nic, reason) in [("mvpp2", "(hash functions: crc32)"), ("dpaa2", "hash functions")] {
        let conclusion = json(&["--nic", nic], &plain)["conclusion"][0].to_string();
        assert!(conclusion.contains("100 % of the frames land is unknown"), "{nic}: {conclusion}");
        assert!(conclusion.contains(reason), "{nic}: {conclusion}");
    }
}

#[test]
fn where_frames_land_is_unknown_so_is_whether_steering_helps() {
    let directory = TempDir::new().unwrap();
    let plain = file(&directory, "plain.pcap", &sample("none"));
    for nic in ["mvpp2", "dpaa2", "veth"] {
        let text = rxlane().arg("explain").arg(&plain).args(["--nic", nic]).output().ends(0).text();
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("Whether steering by the inner header would help is unknown"),
            "{nic}: {text}"
        );
        for wrong in ["would help:", "rps_cpus", "Linux can spread", "effective queues"] {
            assert!(!words.contains(wrong), "{nic}: {wrong}: {text}");
        }
    }
    // Where frames of one queue outweigh those of unknown queue, it helps wherever the others land.
    let pppoe = json(&["--nic", "x710"], &file(&directory, "pppoe.pcap", &sample("pppoe")));
    assert!(pppoe["conclusion"].to_string().contains("would help: "), "{}", pppoe["conclusion"]);
}

#[test]
fn figures_over_few_frames_are_not_those_of_the_traffic() {
    let directory = TempDir::new().unwrap();
    let profile = r#"
schema = 1
name = "silent"
title = "A NIC of which the hash is not known"
vendor = "nobody"
aliases = []
pci = []
[source.here]
kind = "driver"
title = "none"
[device]
drivers = { is = ["linux:silent"], source = "here: none" }
[queue]
selection = { is = "rss", source = "here: none" }
unhashed = { is = "queue-0", source = "here: none" }
"#;
    let nic = file(&directory, "silent.toml", profile.as_bytes());
    let mut writer = Writer::pcap(Vec::new(), LinkType::Ethernet, Resolution::Microseconds).unwrap();
    let whole = sample("none");
    let mut capture = capture::Capture::from_reader(std::io::Cursor::new(whole), "whole").unwrap();
    while let Some(frame) = capture.next_frame() {
        writer.write(0, frame.data, frame.data.len() as u32).unwrap();
    }
    let arp = [&[0xff; 6][..], &[2; 6], &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1], &[0; 38]].concat();
    (0..3).for_each(|_| writer.write(0, &arp, 60).unwrap());
    let path = file(&directory, "a.pcap", &writer.finish().unwrap());
    let nic = nic.to_str().unwrap();
    let text = rxlane().arg("explain").arg(&path).args(["--nic", nic]).output().ends(0).text();
    assert!(!text.contains("effective queues") && !text.contains("without a hash"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the profile does not say: hash functions"), "{text}");
    let page = directory.path().join("page.html");
    rxlane().arg("explain").arg(&path).args(["--nic", nic, "--html"]).arg(&page).output().ends(0);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("unknown <span class=\"quiet\">of 4"), "{page}");
}

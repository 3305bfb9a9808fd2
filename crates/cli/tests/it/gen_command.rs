//! `rxlane gen` as a user runs it.

use crate::run::{self, Ended};
use capture::{Capture, Format};
use std::error::Error;
use std::io::Cursor;
use std::process::Output;
use wire::{Link, dissect};

type TestResult = Result<(), Box<dyn Error>>;

fn rxlane(arguments: &str) -> Output {
    run::rxlane().arg("gen").args(arguments.split_whitespace()).output()
}

/// Standard output of a run that succeeds and says nothing on standard error.
fn bytes(arguments: &str) -> Vec<u8> {
    let output = rxlane(arguments);
    assert!(output.ends(0).stderr.is_empty(), "in a pipe there is no progress");
    output.stdout
}

#[test]
fn what_was_requested_is_what_is_written() -> TestResult {
    let plain = "--control 0 --fragments 0 --ip 4 --proto tcp --frames 50 -o -";
    // Options, stack, and the tags of the first frame.
    for (options, stack, tags) in [
        ("--scenario untagged", "eth/ipv4/tcp", ""),
        ("--vlan 35", "eth/vlan/ipv4/tcp", "0x8100/35"),
        ("--vlan 35 --tpid 0x88a8", "eth/vlan/ipv4/tcp", "0x88a8/35"),
        ("--vlan 100.200", "eth/vlan/vlan/ipv4/tcp", "0x88a8/100 0x8100/200"),
        ("--vlan 100.200 --tpid 0x9100", "eth/vlan/vlan/ipv4/tcp", "0x9100/100 0x8100/200"),
        ("--encap 0x9100:4,pppoe:77@02:00:5e:00:00:01", "eth/vlan/pppoe/ipv4/tcp", "0x9100/4"),
        ("--encap q:1,mpls:16", "eth/vlan/mpls/ipv4/tcp", "0x8100/1"),
        ("--encap none", "eth/ipv4/tcp", ""),
    ] {
        let mut capture = Capture::from_reader(Cursor::new(bytes(&format!("{options} {plain}"))), "test")?;
        let mut frames = 0;
        while let Some(frame) = capture.next_frame() {
            let seen = dissect(Link::Ethernet, frame.data, frame.wire_len as usize);
            assert_eq!((seen.error(), seen.stack().to_string()), (None, stack.to_owned()), "{options}");
            if frames == 0 {
                let found: Vec<String> = seen.tags(frame.data).map(|tag| tag.to_string()).collect();
                assert_eq!(found.join(" "), tags, "{options}");
            }
            frames += 1;
        }
        assert!(frames == 50 && capture.report().problems.is_empty(), "{options}: {frames}");
    }
    Ok(())
}

#[test]
fn formats_hold_the_same_frames_and_a_seed_is_a_sample() -> TestResult {
    let mut all = Vec::new();
    for (name, format) in [("pcap", Format::Pcap), ("pcap-ns", Format::Pcap), ("pcapng", Format::Pcapng)] {
        let out = bytes(&format!("--scenario mixed --frames 500 --format {name} -o -"));
        let mut capture = Capture::from_reader(Cursor::new(out), "test")?;
        assert_eq!(capture.format(), format, "{name}");
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame() {
            let microseconds = frame.timestamp_ns().unwrap_or_default() / 1000;
            frames.push((microseconds, frame.data.to_vec()));
        }
        all.push(frames);
    }
    assert!(all[0].len() == 500 && all[0] == all[1] && all[1] == all[2]);
    let sample = |seed| bytes(&format!("--frames 300 --seed {seed} -o -"));
    assert!(sample(1) == sample(1) && sample(1) != sample(2));
    Ok(())
}

#[test]
fn a_file_is_written_and_described() -> TestResult {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sample.pcap");
    let name = path.to_str().ok_or("path")?;
    for (options, [frames, flows]) in [
        ("--flows 1 --frames 1", [": 1 frame, ", ", 1 flow in "]),
        ("--flows 2000 --frames 1500", [": 1,500 frames, ", ", some of 2,000 flows in "]),
        ("--scenario pppoe --flows 20 --frames 100", ["sample.pcap: 100 frames", "20 flows in pppoe"]),
    ] {
        let described = String::from_utf8(bytes(&format!("{options} -o {name}")))?;
        assert!(described.contains(frames) && described.contains(flows), "{described}");
        assert!(std::fs::read(&path)? == bytes(&format!("{options} -o -")), "{options}");
    }
    // A capture of one whole frame: headers of file and record, and the frame without FCS.
    let long = "--frames 1 --control 0 --fragments 0 --size 4000 --encap none --mtu 4000 -o -";
    assert_eq!(bytes(long).len(), 24 + 16 + 3996);
    Ok(())
}

#[test]
fn the_list_names_every_scenario() -> TestResult {
    let list = String::from_utf8(bytes("--list"))?;
    for named in &traffic::NAMED {
        let row = list.lines().find(|line| line.split_whitespace().next() == Some(named.name));
        let row = row.ok_or(named.name)?;
        assert!(row.ends_with(&format!("  {}", named.summary)), "{row}");
    }
    let json: serde_json::Value = serde_json::from_slice(&bytes("--list --json"))?;
    assert_eq!(json["scenarios"].as_array().map(Vec::len), Some(traffic::NAMED.len()));
    assert_eq!(json["scenarios"][1]["encapsulations"][0], "q:35");
    Ok(())
}

#[test]
fn wrong_usage_names_culprit_and_way_out() {
    for (arguments, message) in [
        ("", "--output <FILE>"),
        ("-o - --scenario ppoe", "no scenario 'ppoe'; there are untagged, vlan"),
        ("-o - --vlan 5000", "a VLAN identifier is a number from 0 to 4094"),
        ("-o - --vlan ad:100,q:200", "a stack in these words is --encap ad:100,q:200"),
        ("-o - --encap 100.200", "VLANs alone are --vlan 100.200"),
        ("-o - --vlan 5 --tpid 0x0800", "one of 0x8100, 0x88a8"),
        ("-o - --tpid 0x8100", "--vlan"),
        ("-o - --encap q:1,gre", "word 2 is none of q:VID"),
        ("-o - --encap pppoe:0", "from 1 to 65534"),
        ("-o - --size 9000", "do not fit the MTU of 1500, which allows 1518"),
        ("-o - --rate 0", "0 frames a second; 1 to 1000000000 are possible"),
        ("-o /nowhere/at/all.pcap", "cannot write /nowhere/at/all.pcap"),
    ] {
        let output = rxlane(arguments);
        assert!(output.is(&arguments, 2, message).stdout.is_empty(), "{arguments}");
    }
}

//! Which frames `igb` and `e1000e` let in, by their length, compared with what the profiles and `rxlane link check` say.

use crate::{LONG, newer};
use anyhow::{Context, Result, ensure};
use rxlane_lab::Guest;
use std::thread;
use std::time::{Duration, Instant};
use wire::emit::Encapsulation;

/// Lengths with FCS: of every frame between a full one without tags and one with PPPoE in a tag, of some beyond.
const LENGTHS: [u16; 23] = [
    1518, 1519, 1520, 1521, 1522, 1523, 1524, 1525, 1526, 1527, 1528, 1529, 1530, 1534, 1535, 1536, 1537,
    1538, 2000, 4000, 9018, 9728, 9729,
];
const ENCAPSULATIONS: [&str; 5] = ["none", "q:35", "ad:100", "q:100,q:200", "ad:100,q:200"];
/// The last one is above what the driver `igb` changes its ways at.
const MTUS: [u16; 4] = [1500, 1504, 1508, 1512];
const PAGE: &str = include_str!("../../../docs/measurements/frame-sizes.md");
const FCS: usize = 4;
/// What stands behind the tags (IEEE 802, local experimental EtherType 1).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];

/// A frame of the length, FCS counted and left away, whose content holds its number.
fn frame(guest: &Guest, nic: &str, encapsulation: &str, length: u16, number: u16) -> Result<Vec<u8>> {
    let encapsulation: Encapsulation = encapsulation.parse()?;
    let mut frame = [&guest.mac(nic)?.0[..], &[2, 0, 0, 0, 0, 9]].concat();
    for tag in encapsulation.tags() {
        frame.extend(tag.tpid.0.to_be_bytes());
        frame.extend(tag.tci.0.to_be_bytes());
    }
    frame.extend(ETHERTYPE);
    frame.extend(b"size");
    frame.extend(number.to_be_bytes());
    frame.resize(usize::from(length) - FCS, 0x5a);
    Ok(frame)
}

/// The lengths that the adapter let in, of each encapsulation, in their order.
fn let_in(guest: &Guest, nic: &str, mtu: u16) -> Result<Vec<Vec<u16>>> {
    const CAPTURE: &str = "/tmp/sizes.pcap";
    guest.sh(&format!("ip link set {nic} down; ip link set {nic} mtu {mtu} promisc on up"))?;
    guest.await_carrier(nic)?;
    let tcpdump = guest.start(
        &["tcpdump", "-i", nic, "-U", "-n", "--immediate-mode", "-Q", "in", "-w", CAPTURE],
        "/tmp/tcpdump",
    )?;
    let start = Instant::now();
    while !String::from_utf8_lossy(&guest.read("/tmp/tcpdump")?).contains("listening on") {
        ensure!(start.elapsed() < LONG, "tcpdump does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    let mut frames = Vec::new();
    for encapsulation in ENCAPSULATIONS {
        for length in LENGTHS {
            frames.push(frame(guest, nic, encapsulation, length, frames.len() as u16)?);
        }
    }
    // What came last in shows that all before it have had their chance.
    let last = frame(guest, nic, "none", 64, u16::MAX)?;
    guest.port(nic)?.inject(frames.iter().chain([&last]), 500)?;
    let numbers = loop {
        let numbers = numbers(&guest.read(CAPTURE)?, &frames)?;
        if numbers.contains(&u16::MAX) {
            break numbers;
        }
        ensure!(start.elapsed() < LONG, "{nic} lets nothing in: {numbers:?}");
        thread::sleep(Duration::from_millis(50));
    };
    guest.signal(tcpdump, libc::SIGTERM, true)?;
    let is_in = |number: usize| numbers.contains(&(number as u16));
    let of = |place: usize| {
        let lengths = LENGTHS.iter().enumerate();
        lengths
            .filter(|(column, _)| is_in(place * LENGTHS.len() + column))
            .map(|(_, length)| *length)
            .collect()
    };
    Ok((0..ENCAPSULATIONS.len()).map(of).collect())
}

/// Numbers of the frames in a capture, each of which came whole.
fn numbers(file: &[u8], frames: &[Vec<u8>]) -> Result<Vec<u16>> {
    let mut numbers = Vec::new();
    // The program may be about to write the next record.
    let mut rest = file.get(24..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_at_checked(16) {
        let length = u32::from_le_bytes(head[8..12].try_into()?) as usize;
        let Some((bytes, behind)) = behind.split_at_checked(length) else { break };
        rest = behind;
        let marked =
            bytes.windows(6).position(|window| window.starts_with(&[0x88, 0xb5, b's', b'i', b'z', b'e']));
        let Some(number) = marked.and_then(|place| bytes.get(place + 6..place + 8)) else { continue };
        let number = u16::from_be_bytes([number[0], number[1]]);
        if let Some(sent) = frames.get(usize::from(number)) {
            ensure!(bytes == sent, "frame {number} did not come as it was sent");
        }
        numbers.push(number);
    }
    Ok(numbers)
}

/// Whether frames of the length are let in, as `rxlane link check` says.
fn claimed(guest: &Guest, rxlane: &str, nic: &str, length: u16) -> Result<String> {
    const ENCAPSULATION: &str = "ad:100,q:200";
    let parsed: Encapsulation = ENCAPSULATION.parse()?;
    let mtu = (usize::from(length) - FCS - parsed.length()).to_string();
    let words = ["link", "check", "--json", "--parent", nic, "--encap", ENCAPSULATION, "--mtu", mtu.as_str()];
    let output = guest.run(&[&[rxlane][..], &words].concat())?;
    let check: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| output.errors())?;
    let facts = check["facts"].as_array().context("facts")?;
    let receiving = facts.iter().find(|fact| fact["about"] == "receiving").context("about receiving")?;
    Ok(receiving["answer"].as_str().context("an answer")?.to_owned())
}

/// The longest frame of each encapsulation at MTU 1500 with FCS, as the profile says.
fn profiled(guest: &Guest, rxlane: &str, profile: &str) -> Result<Vec<u64>> {
    let output = guest.run(&[rxlane, "nics", profile, "--json"])?;
    let nics: serde_json::Value = serde_json::from_slice(&output.stdout).with_context(|| output.errors())?;
    let claims = &nics["nics"][0]["claims"]["admit"];
    let of = |claim: &str| claims[claim]["is"].as_u64().map(|length| length + FCS as u64);
    let [none, one, two] = ["frame_untagged", "frame_one_tag", "frame_two_tags"].map(of);
    [none, one, one, two, two].into_iter().map(|claim| claim.context("a claim")).collect()
}

/// Every row of the page's table is measured anew, and has to come out as it is there.
#[test]
#[ignore = "make nightly"]
fn frames_are_let_in_up_to_the_lengths_that_the_page_says() {
    let Some(guest) = newer() else { return };
    let Some(rxlane) = crate::steer::rxlane() else { return };
    for (nic, driver, profile) in [("wan", "igb", "82576"), ("old", "e1000e", "82574")] {
        for mtu in MTUS {
            let measured = let_in(&guest, nic, mtu).expect("frames");
            let longest: Vec<u16> = measured.iter().filter_map(|lengths| lengths.last().copied()).collect();
            for lengths in &measured {
                // None longer than one that stays out.
                assert_eq!(LENGTHS[..lengths.len()], lengths[..], "{driver} {mtu}");
            }
            if mtu == 1500 {
                let claims = profiled(&guest, &rxlane, profile).expect("claims");
                let seen: Vec<u64> = longest.iter().copied().map(u64::from).collect();
                assert_eq!(seen, claims, "{driver}: measured, and profile {profile}");
            }
            let mut row = format!("| `{driver}` | {mtu} |");
            longest.iter().for_each(|length| row.push_str(&format!(" {length} |")));
            for length in [1522, 1526, 1530] {
                let claim = claimed(&guest, &rxlane, nic, length).expect("a check");
                let is_in = longest.iter().all(|longest| length <= *longest);
                assert!(claim == "unknown" || (claim == "yes") == is_in, "{driver} {mtu} {length}: {claim}");
                row.push_str(&format!(" {claim} |"));
            }
            println!("{row}");
            assert!(PAGE.lines().any(|line| line == row), "not on the page: {row}");
        }
        guest.sh(&format!("ip link set {nic} down; ip link set {nic} mtu 1500")).expect("as it was");
    }
}

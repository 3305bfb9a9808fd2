//! Records the project's own test captures: stock peers on emulated adapters talk to each other in a guest, and what
//! passes the cable between the adapters is written down.
//!
//! ```console
//! $ cargo run -p rxlane-lab --example record_captures -- captures/ [NAME…]
//! ```
//!
//! Each `NAME.pcap` gets a `NAME.pcap.expected.json` beside it, in which tshark says what is in it, and `VERSIONS` says
//! which programs talked. Ids, ports, cookies, challenges and times differ from recording to recording; retransmissions
//! may be there or not.

#![allow(clippy::print_stdout)]

mod exchange;
mod lines;
mod peers;

use anyhow::{Context, Result, ensure};
use exchange::Traffic;
use lines::Line;
use peers::{Login, Server, Subscriber};
use rxlane_lab::recording::{self, Cable, summary};
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A capture above this is not small any more, octets.
const LARGEST: u64 = 50 << 10;
/// When nothing has passed for so long, an exchange is over.
const QUIET: Duration = Duration::from_millis(1500);

/// What one capture is recorded of.
type Record = fn(&Stage<'_>) -> Result<()>;

const CAPTURES: [(&str, Record); 13] = [
    ("pppoe_pap", |lab| session(lab, Line::Untagged, Login::Pap, Traffic::Everyday)),
    ("pppoe_chap", |lab| session(lab, Line::Untagged, Login::Chap, Traffic::Everyday)),
    ("pppoe_refused", refused),
    ("pppoe_max_payload", max_payload),
    ("pppoe_fragments", |lab| session(lab, Line::Untagged, Login::Pap, Traffic::Fragments)),
    ("pppoe_ipv6_extensions", |lab| session(lab, Line::Untagged, Login::Pap, Traffic::Extensions)),
    ("vlan_pppoe", |lab| session(lab, Line::Vlan, Login::Pap, Traffic::Everyday)),
    ("qinq_pppoe", |lab| session(lab, Line::Provider, Login::Chap, Traffic::Everyday)),
    ("qinq_8100_pppoe", |lab| session(lab, Line::Twice, Login::Pap, Traffic::Everyday)),
    ("qinq_pppoe_two_sessions", two_sessions),
    ("vlan_ip", |lab| without_pppoe(lab, Line::Vlan)),
    ("qinq_ip", |lab| without_pppoe(lab, Line::Provider)),
    ("qinq_8100_ip", |lab| without_pppoe(lab, Line::Twice)),
];

/// The guest with both stations set up and the cable between them.
struct Stage<'a> {
    guest: &'a Guest,
    cable: &'a Cable<'a>,
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().context("usage: record_captures FOLDER [NAME…]")?);
    let wanted: Vec<String> = arguments.collect();
    for name in &wanted {
        ensure!(CAPTURES.iter().any(|(known, _)| known == name), "there is no capture {name}");
    }
    let tshark = testkit::program("tshark").map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let lab = Lab::prepare().map_err(|missing| anyhow::anyhow!("{missing}"))?;
    let nics = vec![Nic::new(lines::NEAR, Model::Igb), Nic::new(lines::FAR, Model::Igb)];
    let guest = lab.boot(&Spec { cpus: 2, nics, ..Spec::new(Series::V6_12) })?;
    fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    recording::connected(&guest, lines::NEAR, lines::FAR, |cable| {
        lines::set_up(&guest)?;
        peers::set_up(&guest)?;
        exchange::set_up(&guest)?;
        let lab = Stage { guest: &guest, cable };
        let mut failed = Vec::new();
        for (name, record) in CAPTURES {
            if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
                let path = folder.join(format!("{name}.pcap"));
                // The others are worth having all the same.
                if let Err(error) = write(&lab, &path, &tshark, record) {
                    eprintln!("{name}: {error:#}");
                    failed.push(name);
                }
            }
        }
        ensure!(failed.is_empty(), "not recorded: {}", failed.join(", "));
        Ok(())
    })?;
    if wanted.is_empty() {
        fs::write(folder.join("VERSIONS"), versions(&guest, &tshark)?).context("VERSIONS")?;
    }
    Ok(())
}

fn write(lab: &Stage<'_>, path: &Path, tshark: &Path, record: Record) -> Result<()> {
    lab.cable.await_quiet(QUIET, QUIET * 20)?;
    lab.cable.take();
    record(lab)?;
    lab.cable.await_quiet(QUIET, QUIET * 20)?;
    let frames = lab.cable.take();
    recording::write(path, &frames)?;
    let octets = fs::metadata(path)?.len();
    ensure!(octets <= LARGEST, "{octets} octets are more than {LARGEST}");
    let mut expected = serde_json::to_string_pretty(&summary::of(tshark, path)?)?;
    expected.push('\n');
    fs::write(path.with_extension("pcap.expected.json"), expected)?;
    println!("{}: {} frames, {octets} octets", path.display(), frames.len());
    Ok(())
}

/// A session from discovery to its end, with traffic in it.
fn session(lab: &Stage<'_>, line: Line, login: Login, traffic: Traffic) -> Result<()> {
    let server = Server::start(lab.guest, &[line], login)?;
    let subscriber = Subscriber::start(lab.guest, line, 0, "secret")?;
    subscriber.await_addresses()?;
    traffic.exchange(lab.guest, 0)?;
    subscriber.hang_up()?;
    lab.cable.await_quiet(QUIET, QUIET * 20)?;
    server.stop()
}

/// Both customers of one provider tag are online at once.
fn two_sessions(lab: &Stage<'_>) -> Result<()> {
    let server = Server::start(lab.guest, &[Line::Provider, Line::ProviderNeighbour], Login::Chap)?;
    let first = Subscriber::start(lab.guest, Line::Provider, 0, "secret")?;
    first.await_addresses()?;
    let second = Subscriber::start(lab.guest, Line::ProviderNeighbour, 1, "secret")?;
    second.await_addresses()?;
    for unit in [0, 1] {
        Traffic::Brief.exchange(lab.guest, unit)?;
    }
    first.hang_up()?;
    second.hang_up()?;
    lab.cable.await_quiet(QUIET, QUIET * 20)?;
    server.stop()
}

/// The password is wrong, by either protocol.
fn refused(lab: &Stage<'_>) -> Result<()> {
    for login in [Login::Pap, Login::Chap] {
        let server = Server::start(lab.guest, &[Line::Untagged], login)?;
        Subscriber::start(lab.guest, Line::Untagged, 0, "wrong")?.await_refusal()?;
        lab.cable.await_quiet(QUIET, QUIET * 20)?;
        server.stop()?;
    }
    Ok(())
}

/// The subscriber asks for 1,500 octets in a session (RFC 4638) on a line that has room for them.
fn max_payload(lab: &Stage<'_>) -> Result<()> {
    lines::resize(lab.guest, 1508)?;
    let done = session(lab, Line::Untagged, Login::Pap, Traffic::Everyday);
    done.and(lines::resize(lab.guest, 1500))
}

fn without_pppoe(lab: &Stage<'_>, line: Line) -> Result<()> {
    line.address(lab.guest)?;
    Traffic::Plain.exchange(lab.guest, 0)?;
    line.unaddress(lab.guest)
}

/// What talked, and what says what was said.
fn versions(guest: &Guest, tshark: &Path) -> Result<String> {
    let kernel = guest.sh("uname -rv")?;
    let pppd = guest.sh("pppd --version 2>&1")?;
    let server = guest.sh("pppoe-server -h 2>&1 | grep -i version || true")?;
    let busybox = guest.sh("busybox | head -n 1")?;
    let first = |program: &str| -> Result<String> {
        let output = Command::new(program).arg("--version").output().with_context(|| program.to_owned())?;
        Ok(String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned())
    };
    let (qemu, tshark) = (first("qemu-system-x86_64")?, first(&tshark.display().to_string())?);
    let lines = ["Linux ".to_owned() + kernel.trim(), pppd, server, busybox, qemu, tshark]
        .map(|line| line.trim().to_owned());
    Ok(lines.join("\n") + "\n")
}

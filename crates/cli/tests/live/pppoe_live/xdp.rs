//! Packets of subscribers forwarded in XDP, between a line and the rest of the world in a namespace of its own.

use super::line::{GATEWAY, Line, WAN};
use crate::process::Process;
use crate::run::Ended;
use crate::stream::Stream;
use serde_json::Value;
use std::io;
use std::net::UdpSocket;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use testkit::netns::{Namespace, Veth};
use testkit::{Missing, program, require, wait_until};
use xdp::Interface;
use xdp::subscribers::Leftover;

const UPLINK: &str = "up0";
const WORLD: &str = "198.51.100.2";
const HOST: &str = "10.64.0.2";
const XDP: [&str; 4] = ["--datapath", "xdp", "--uplink", UPLINK];

/// Whether the programs load here.
fn programs() -> Result<(), Missing> {
    xdp::subscribers::Programs::load(1, 1, 16).map(drop).map_err(|error| Missing(error.to_string()))
}

/// The line, and the rest of the world behind the concentrator.
fn beyond() -> Option<(Line, Namespace)> {
    require("ethtool", program("ethtool"))?;
    require("bpf", programs())?;
    let line = Line::new()?;
    let world = Namespace::new().expect("a namespace");
    // Whoever gets frames from XDP polls.
    set(&line.near, WAN, &["gro", "on"]);
    set(&line.far, WAN, &["rxvlan", "off"]);
    connect(&line, &world);
    line.far
        .run("sysctl", &["-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"])
        .expect("a router");
    Some((line, world))
}

fn set(namespace: &Namespace, interface: &str, features: &[&str]) {
    namespace.run("ethtool", &[&["-K", interface], features].concat()).expect("features");
}

/// The uplink.
fn connect(line: &Line, world: &Namespace) {
    line.far.veth(&Veth { peer: Some(world), ..Veth::pair(UPLINK, UPLINK) }).expect("a pair");
    // Checksums are not left to a device that a veth is not.
    set(world, UPLINK, &["gro", "on", "tx", "off"]);
    set(&line.far, UPLINK, &["rxvlan", "off"]);
    for (namespace, command) in [
        (&line.far, "address add 198.51.100.1/24 dev up0"),
        (world, "address add 198.51.100.2/24 dev up0"),
        (world, "route add 10.64.0.0/24 via 198.51.100.1"),
    ] {
        namespace.run("ip", &command.split(' ').collect::<Vec<_>>()).expect(command);
    }
}

/// A number of the concentrator's status.
fn counted(line: &Line, path: &str) -> u64 {
    number(&line.concentrator(), path)
}

fn number(status: &Value, path: &str) -> u64 {
    status.pointer(path).and_then(Value::as_u64).unwrap_or_default()
}

fn pings(from: &Namespace, arguments: &[&str], address: &str) -> bool {
    from.run("ping", &[&["-c", "1", "-W", "1"], arguments, &[address]].concat()).is_ok()
}

#[test]
fn packets_go_through_xdp_both_ways_and_what_it_leaves_goes_the_other_way() {
    for (tags, lines) in [("", "none"), ("35", "any"), ("100.200", "100.*")] {
        let Some((line, world)) = beyond() else { return };
        let serving = line.serve(&[&XDP[..], &["--vlan", lines]].concat());
        serving.hear("XDP", 1);
        let tags: &[&str] = if tags.is_empty() { &[] } else { &["--vlan", tags] };
        let client = line.connect("alice", &[&["--default-route"], tags].concat());
        // The first packet finds the neighbour.
        wait_until("the world answers", || pings(&line.near, &[], WORLD));
        let before = ["received", "sent"].map(|way| counted(&line, &format!("/xdp/{way}/packets")));
        for _ in 0..5 {
            line.ping(&line.near, WORLD, 1492);
            line.ping(&world, HOST, 1492);
        }
        let mut stream = Stream::between(&line.near, &world, WORLD);
        stream.carry(2 << 20);
        let status = line.concentrator();
        for (way, before) in ["received", "sent"].iter().zip(before) {
            let forwarded = number(&status, &format!("/xdp/{way}/packets")) - before;
            // Pings both ways, and a stream both ways in segments of 1452 bytes at most.
            assert!(forwarded > 30 + (2 << 20) / 1452, "{way} {forwarded} {status:#}");
            // Whoever moves a packet, it counts for its session once.
            let session = &status["sessions"][0];
            let packets = number(session, &format!("/{way}_packets"));
            let all = number(&status, &format!("/xdp/{way}/packets"));
            assert!(packets >= all && packets - all < 40, "{way}: {packets} {all}");
        }
        assert_eq!(status["xdp"]["mode"], "native", "{status:#}");
        // The handshake is the daemon's, which lowers segment sizes.
        assert!(number(&status, "/xdp/received/passed/syn") >= 1, "{status:#}");
        line.ping(&line.near, GATEWAY, 1492);

        // A source that the session has not.
        line.near.run("ip", &["address", "add", "192.0.2.77/32", "dev", "ppp0"]).expect("an address");
        assert!(!pings(&line.near, &["-I", "192.0.2.77"], WORLD));
        let status = line.concentrator();
        assert!(number(&status, "/xdp/received/passed/no-session") >= 1, "{status:#}");
        assert!(number(&status, "/sessions/0/received_dropped") >= 1, "{status:#}");
        // Too long, and not to be fragmented: the daemon reports it to the sender. What may be arrives.
        let ping = ["-c", "1", "-W", "2", "-M", "do", "-s", "1472", HOST];
        world.command("ping").args(ping).output().expect("it runs").ends(1).says("mtu = 1492");
        assert!(pings(&world, &["-M", "dont", "-s", "1472"], HOST));
        assert!(counted(&line, "/xdp/sent/passed/too-long") >= 1);

        drop(stream);
        client.interrupted().ends(0);
        line.wait_for_sessions(0);
        let sent = counted(&line, "/xdp/sent/packets");
        assert!(!pings(&world, &[], HOST));
        assert_eq!(counted(&line, "/xdp/sent/packets"), sent);
        assert!(line.far(&["status"]).text().contains("packets forwarded"));
        serving.interrupted().ends(0);
        for interface in [WAN, UPLINK] {
            let link = line.far.run("ip", &["-d", "link", "show", "dev", interface]).expect("a link");
            assert!(!link.contains("xdp"), "{link}");
        }
    }
}

/// A veth pair loses what XDP sends to an end that does not poll, and so the kernel runs the programs.
#[test]
fn without_drivers_that_send_the_mode_is_generic_and_said() {
    let Some((line, world)) = beyond() else { return };
    set(&line.near, WAN, &["gro", "off"]);
    set(&world, UPLINK, &["gro", "off"]);
    let serving = line.serve(&XDP);
    serving.hear("XDP runs in generic mode", 1);
    serving.hear("`ethtool -K NAME gro on`", 1);
    let _client = line.connect("alice", &["--default-route"]);
    wait_until("the host answers", || pings(&world, &[], HOST));
    let before = line.concentrator();
    assert_eq!(before["xdp"]["mode"], "generic");
    for _ in 0..3 {
        line.ping(&world, HOST, 1492);
    }
    Stream::between(&line.near, &world, WORLD).carry(1 << 18);
    for way in ["received", "sent"] {
        let path = format!("/xdp/{way}/packets");
        assert!(counted(&line, &path) > number(&before, &path) + 9, "{way}");
    }
}

#[test]
fn a_rate_is_held() {
    let Some((line, world)) = beyond() else { return };
    let _serving = line.serve(&[&XDP[..], &["--download", "4M"]].concat());
    let _client = line.connect("alice", &["--default-route"]);
    wait_until("the host answers", || pings(&world, &[], HOST));
    let sender = world.bound(|| UdpSocket::bind((WORLD, 0))).expect("a socket");
    let (over, is_over) = mpsc::channel::<()>();
    let sending = thread::spawn(move || {
        // Some 8,000 packets a second, of which 500 may pass; until the other end of the channel is dropped, also by a panic.
        while is_over.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            for _ in 0..8 {
                let _ = sender.send_to(&[0; 972], (HOST, 9));
            }
        }
    });
    let enough =
        [("/xdp/sent/over_rate", 1000), ("/sessions/0/sent_dropped", 1000), ("/xdp/sent/packets", 1500)];
    wait_until("some packets pass, and those above the rate do not", || {
        let now = line.concentrator();
        enough.iter().all(|(path, least)| number(&now, path) > *least)
    });
    let after = line.concentrator();
    drop(over);
    sending.join().expect("no panic");
    // However long that took: no more than the rate, and what the bucket held at first. Whether it is no less a busy machine cannot say
    // (`xdp_cost rates`).
    let seconds = after["uptime"].as_f64().expect("a number") + 0.25;
    let rate = number(&after, "/sessions/0/sent_octets") as f64 * 8.0 / seconds;
    assert!(rate < 1.03 * 4e6, "{rate} bit/s");
}

#[test]
fn sessions_go_on_in_xdp_after_a_kill_and_a_takeover() {
    let Some((line, world)) = beyond() else { return };
    let serving = line.serve(&XDP);
    let client = line.connect("alice", &["--default-route"]);
    let goes_on = |what: &str| {
        wait_until(what, || pings(&world, &[], HOST));
        let before = counted(&line, "/xdp/sent/packets");
        line.ping(&world, HOST, 1492);
        assert!(counted(&line, "/xdp/sent/packets") >= before + 3, "{what}");
    };
    goes_on("begun");
    serving.killed();
    let serving = line.serve(&XDP);
    serving.hear("1 session of a process that was killed", 1);
    goes_on("after a kill");
    let bytes = |line: &Line| number(&line.concentrator(), "/sessions/0/sent_octets");
    let before = bytes(&line);
    let next = line.serve(&[&XDP[..], &["--takeover"]].concat());
    serving.ended().ends(0);
    assert!(bytes(&line) >= before);
    goes_on("after a takeover");
    // Without XDP, and with it again.
    let batch = line.serve(&["--takeover"]);
    next.ended().ends(0);
    assert_eq!(line.concentrator()["xdp"], Value::Null);
    wait_until("without XDP", || pings(&world, &[], HOST));
    let serving = line.serve(&[&XDP[..], &["--takeover"]].concat());
    batch.ended().ends(0);
    goes_on("with XDP again");
    // An uplink that was removed and is there again gets its program.
    line.far.run("ip", &["link", "del", UPLINK]).expect("removed");
    line.ping(&line.near, GATEWAY, 1492);
    connect(&line, &world);
    wait_until("forwarded again", || {
        let before = counted(&line, "/xdp/sent/packets");
        pings(&world, &[], HOST) && counted(&line, "/xdp/sent/packets") > before
    });
    assert!(!client.said().contains("closed"), "{}", client.said());
    serving.interrupted().ends(0);
}

/// What a killed process has left: kept from falling silent while the next one is on its way, which a busy machine may delay.
struct Awake {
    _over: mpsc::Sender<()>,
}

fn keep_awake(line: &Line) -> Awake {
    let left = line
        .far
        .bound(|| Leftover::by(&Interface::find(WAN).expect("lines")).ok_or_else(io::Error::last_os_error));
    let left = left.expect("programs that nobody holds");
    let (over, is_over) = mpsc::channel::<()>();
    thread::spawn(move || {
        while is_over.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
            left.beat();
        }
    });
    Awake { _over: over }
}

#[test]
fn packets_go_on_in_xdp_while_no_process_lives() {
    let Some((line, world)) = beyond() else { return };
    let mut serving = line.serve(&XDP);
    let _client = line.connect("alice", &["--default-route"]);
    wait_until("the host answers", || pings(&world, &[], HOST));
    let received = || number(&line.concentrator(), "/sessions/0/received_octets");
    // The next process may have another data path.
    for next in [&XDP[..], &[&XDP[..], &["--takeover"]].concat(), &[]] {
        let before = received();
        let pinging = Process::start(world.command("ping").args(["-i", "0.02", "-s", "972", HOST]));
        let replies = || pinging.said().matches("bytes from").count();
        pinging.hear("bytes from", 10);
        serving.killed();
        let awake = keep_awake(&line);
        pinging.hear("bytes from", replies() + 20);
        serving = line.serve(next);
        serving.hear("1 session ", 1);
        drop(awake);
        pinging.hear("bytes from", replies() + 10);
        let all = replies();
        pinging.signal("INT");
        let said = pinging.ended().text();
        let count = |text: &str| {
            let line = said.lines().find(|line| line.contains(" transmitted")).expect("a summary");
            let part = line.split(", ").find(|part| part.contains(text)).expect("a count");
            part.split(' ').next().expect("a number").parse::<usize>().expect("a number")
        };
        // One may be on its way still.
        let lost = count("transmitted") - count("received");
        assert!(lost <= 1, "{next:?}: {said}");
        // Whoever moved them.
        assert!(received() >= before + 1000 * all as u64, "{next:?}: {} {before} {all}", received());
    }
    let is_clean = || {
        for interface in [WAN, UPLINK] {
            let link = line.far.run("ip", &["-d", "link", "show", "dev", interface]).expect("a link");
            assert!(!link.contains("xdp"), "{link}");
        }
    };
    is_clean();
    serving.interrupted().ends(0);
    let is_there = || line.far.run("ip", &["link", "show", "dev", "pppoe0"]).is_ok();
    assert!(!is_there());
    // There is to be no next one.
    line.serve(&XDP).killed();
    assert!(is_there());
    let ended = line.far(&["disconnect", "--concentrator", WAN]);
    ended.ends(1).says("programs in XDP of a killed process were removed");
    is_clean();
    assert!(!is_there());
}

/// Programs of a killed process pass by a rule that came later, but not for longer because the next process is refused for it.
#[test]
fn a_start_that_fails_does_not_keep_the_programs_of_a_killed_process_awake() {
    let Some((line, world)) = beyond() else { return };
    let Some(_) = require("nft", program("nft")) else { return };
    let serving = line.serve(&XDP);
    let _client = line.connect("alice", &["--default-route"]);
    wait_until("the host answers", || pings(&world, &[], HOST));
    serving.killed();
    let awake = keep_awake(&line);
    line.ping(&world, HOST, 1492);
    let nat = "table ip nat { chain postrouting { type nat hook postrouting priority 100; oifname up0 masquerade; }; }";
    line.far.run("nft", &[nat]).expect("NAT");
    drop(awake);
    wait_until("nothing is forwarded", || {
        line.serve_in_vain(&XDP).ends(1).says("NAT");
        !pings(&world, &[], HOST)
    });
    line.far(&["disconnect", "--concentrator", WAN]).ends(1).says("were removed");
}

#[test]
fn what_stands_in_the_way_is_named() {
    let Some((line, world)) = beyond() else { return };
    let Some(_) = require("nft", program("nft")) else { return };
    let nft = |command: &str| line.far.run("nft", &[command]).expect(command);
    for (options, code, reason) in [
        (&["--datapath", "xdp"][..], 2, "--uplink"),
        (&["--uplink", UPLINK], 2, "--uplink up0 is for --datapath xdp"),
        (&["--datapath", "xdp", "--uplink", "nothere"], 2, "--uplink nothere: there is no interface nothere"),
        (&["--datapath", "xdp", "--uplink", WAN], 2, "--uplink wan0: that is the interface with the lines"),
    ] {
        line.serve_in_vain(options).ends(code).says(reason);
    }
    line.far.run("ethtool", &["-K", UPLINK, "rxvlan", "on"]).expect("hidden tags");
    line.serve_in_vain(&XDP).ends(1).says("`ethtool -K up0 rxvlan off`");
    line.far.run("ethtool", &["-K", UPLINK, "rxvlan", "off"]).expect("tags");
    nft(
        "table inet filter { chain input { type filter hook input priority 0; tcp dport 22 accept; }; chain forward { type filter hook forward priority 0; }; }",
    );
    let serving = line.serve(&XDP);
    let _client = line.connect("alice", &["--default-route"]);
    wait_until("the host answers", || pings(&world, &[], HOST));
    // A rule that comes later: it holds for all packets soon.
    nft("add rule inet filter forward ip daddr 10.64.0.2 udp dport 9 drop");
    serving.hear("XDP forwards nothing for now", 1);
    let before = counted(&line, "/xdp/sent/packets");
    line.ping(&world, HOST, 1492);
    assert_eq!(counted(&line, "/xdp/sent/packets"), before);
    line.far(&["status"]).says("forwards nothing for now").says("the chain forward of the table inet filter");
    nft("flush chain inet filter forward");
    serving.hear("XDP forwards packets again", 1);
    line.ping(&world, HOST, 1492);
    assert!(counted(&line, "/xdp/sent/packets") >= before + 3);
    serving.interrupted().ends(0);
    nft(
        "table ip nat { chain postrouting { type nat hook postrouting priority 100; oifname up0 masquerade; }; }",
    );
    let refused = line.serve_in_vain(&XDP);
    refused.ends(1).says("the chain postrouting of the table ip nat").says("NAT").says("`rxlane fastpath`");
}

//! `rxlane pppoe discover` between two network namespaces, against concentrators made of the discovery machine of crate
//! `pppoe`.

use crate::load::under_load;
use crate::machine::{WAN, two_ends};
use crate::output::assert_is_text;
use crate::run::{BINARY, Ended, Report};
use kernel::netlink::link_by_name;
use link::pppoe::ControlSocket;
use pppoe::discovery::Packet;
use pppoe::discovery::concentrator::{Answer, Arrival, Concentrator, Config, Request};
use pppoe::discovery::place::Place;
use serde_json::{Value, json};
use std::process::Output;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::netns::Namespace;
use testkit::wait_until;
use wire::VlanPattern;
use wire::ethernet::{EtherType, MacAddress};
use wire::pppoe::Stage;

/// A line: the subscriber's end and the concentrators'.
struct Ends {
    near: Namespace,
    far: Namespace,
}

impl Ends {
    fn new() -> Option<Ends> {
        let (near, far) = two_ends(1500, 1)?;
        Some(Ends { near, far })
    }

    fn discover(&self, arguments: &[&str]) -> Output {
        let mut command = self.near.command(BINARY);
        command.args(["pppoe", "discover"]).args(arguments).env("COLUMNS", "80");
        command.output().expect("it runs")
    }

    fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let output = self.discover(&[arguments, &["--json"]].concat());
        let report = output.json();
        (output.code(), report)
    }

    /// Runs `work` while concentrators answer on the far end.
    fn with<T: Send>(&self, concentrators: Vec<(&str, Config)>, work: impl FnOnce() -> T + Send) -> T {
        let (stop, ready) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let answering = scope.spawn(|| self.far.inside(|| answer(concentrators, &stop, &ready)));
            wait_until("they answer", || ready.load(Ordering::Acquire) || answering.is_finished());
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            stop.store(true, Ordering::Release);
            answering.join().expect("the concentrators");
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

fn mac(number: usize) -> MacAddress {
    MacAddress([2, 0, 0x5e, 0, 0, number as u8])
}

/// Concentrators at MAC addresses that count from 1, each on the lines of its pattern.
fn answer(concentrators: Vec<(&str, Config)>, stop: &AtomicBool, ready: &AtomicBool) {
    let interface = link_by_name(WAN).expect("there").index;
    let random = &mut |bytes: &mut [u8]| bytes.fill(0x5a);
    let mut all: Vec<_> = concentrators
        .into_iter()
        .zip(1..)
        .map(|((lines, config), number)| {
            let pattern: VlanPattern = lines.parse().expect("a pattern");
            let socket = ControlSocket::open(interface, mac(number), pattern).expect("a socket");
            (socket, Concentrator::new(config, Duration::ZERO, random))
        })
        .collect();
    let begin = Instant::now();
    ready.store(true, Ordering::Release);
    while !stop.load(Ordering::Acquire) {
        for (socket, concentrator) in &mut all {
            let (own, mut offers) = (socket.local(), Vec::new());
            socket
                .receive(|frame| {
                    let packet = Packet {
                        source: frame.source,
                        destination: frame.destination,
                        payload: frame.payload,
                    };
                    let place = Place { port: interface, vlans: frame.vlans };
                    let arrival = Arrival { place, own, max_payload: u16::MAX, packet };
                    let payload = match concentrator.receive(begin.elapsed(), &arrival, random) {
                        Answer::Offer(payload) => payload,
                        Answer::Request(request) => refusal(&request),
                        _ => return,
                    };
                    offers.push((frame.source, frame.vlans, payload));
                })
                .expect("received");
            for (host, vlans, payload) in offers {
                socket.send(host, vlans, Stage::Discovery, &payload).expect("sent");
            }
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A PADS without a session, with a Generic-Error (RFC 2516, appendix A) of somebody who means harm.
fn refusal(request: &Request) -> Vec<u8> {
    let text = b"no\x1b[31m `s;id` $(id)";
    let mut payload = request.confirm(0).expect("room");
    payload.extend([0x02, 0x03, 0, text.len() as u8]);
    payload.extend(text);
    let length = (payload.len() - 6) as u16;
    payload[4..6].copy_from_slice(&length.to_be_bytes());
    payload
}

fn named(name: &[u8]) -> Config {
    Config::new(name)
}

#[test]
fn what_a_concentrator_says_is_text() {
    let Some(ends) = Ends::new() else { return };
    let state = tempfile::tempdir().expect("a folder");
    let state = state.path().display().to_string();
    ends.with(vec![("none", named(b"s;id\x1b[2J"))], || {
        let mut command = ends.near.command(BINARY);
        command.args(["pppoe", "connect", WAN, "--reconnect", "false", "--state-dir", &state]);
        let refused = command.output().expect("it runs");
        refused.ends(1).says("no\\u{1b}[31m");
        assert_is_text("connect", &refused.text());
        for arguments in [&[WAN, "--seconds", "1"][..], &[WAN, "--seconds", "1", "--ac", "s;id"]] {
            assert_is_text("discover", &ends.discover(arguments).text());
        }
    });
}

#[test]
fn who_answers_is_listed_with_what_it_offers() {
    let Some(ends) = Ends::new() else { return };
    let mut large = named(b"bras1");
    (large.services, large.max_payload) = (vec![b"internet".to_vec(), b"voice".to_vec()], 1500);
    let concentrators = vec![("none", large), ("any", named(b"a\x1b[2Jb"))];
    ends.with(concentrators, || {
        let (code, report) = ends.json(&[WAN, "--seconds", "2"]);
        assert_eq!(code, 0, "{report:#}");
        report.has(json!({"schema": "rxlane.pppoe-discover/1", "interface": WAN, "vlans": "none", "sent": 2}));
        let concentrators = report["concentrators"].as_array().expect("a list");
        assert_eq!(concentrators.len(), 2, "{report:#}");
        let of = |mac: &str| concentrators.iter().find(|one| one["mac"] == mac).expect("listed");
        let bras = of("02:00:5e:00:00:01");
        bras.has(json!({"ac_name": "bras1", "max_payload": 1500, "fits": true, "services": ["", "internet", "voice"],
                        "latency": {"answers": 2}}));
        let latency = bras["latency"]["median"].as_f64().expect("a number");
        assert!(latency > 0.0 && latency < 1000.0, "{latency}");
        let tags = bras["tags"].as_array().expect("tags").iter();
        let tags: Vec<_> = tags.map(|tag| tag["name"].as_str().expect("a name")).collect();
        assert_eq!(
            tags.join(" "),
            "AC-Name Service-Name AC-Cookie Service-Name Service-Name Host-Uniq PPP-Max-Payload"
        );
        of("02:00:5e:00:00:02").has(json!({"ac_name": "a\\u{1b}[2Jb", "max_payload": 1492}));
        // The parent's MTU does not let such packets out.
        assert_eq!(
            report["advice"][0],
            "packets of 1500 bytes need an MTU of 1508 on wan0, which has 1500: `ip link set wan0 mtu 1508`"
        );
        let text = ends.discover(&[WAN, "--seconds", "1"]);
        let said = text.ends(0).text();
        assert!(
            said.starts_with("wan0 without a VLAN tag: 2 concentrators answered 1 PADI in 1 s."),
            "{said}"
        );
        assert!(
            said.contains("bras1") && said.contains("internet, voice") && said.contains("\\u{1b}[2J"),
            "{said}"
        );
        assert!(said.lines().all(|line| line.chars().count() <= 80), "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    });
}

#[test]
fn a_line_in_vlans_is_found_there() {
    let Some(ends) = Ends::new() else { return };
    ends.with(vec![("100.200", named(b"bras1"))], || {
        let (code, report) = ends.json(&[WAN, "--vlan", "100.200", "--seconds", "1"]);
        assert_eq!((code, report["vlans"].as_str()), (0, Some("ad:100,q:200")), "{report:#}");
        let (code, report) = ends.json(&[WAN, "--vlan", "100.201", "--seconds", "1"]);
        assert_eq!((code, report["concentrators"].as_array().map(Vec::len)), (1, Some(0)), "{report:#}");
    });
}

#[test]
fn only_what_was_requested_is_an_answer() {
    let Some(ends) = Ends::new() else { return };
    let mut strict = named(b"bras1");
    (strict.services, strict.any_service) = (vec![b"internet".to_vec()], false);
    ends.with(vec![("none", strict)], || {
        for (arguments, expected) in [
            (&["--ac", "bras1"][..], 0),
            (&["--ac", "02:00:5e:00:00:01", "--service", "internet"], 0),
            (&["--ac", "bras2"], 1),
            (&["--ac", "02:00:5e:00:00:02"], 1),
            (&["--service", "voice"], 1),
        ] {
            let output = ends.discover(&[&[WAN, "--seconds", "1"], arguments].concat());
            output.is(&arguments, expected, "");
            let is_listed = output.text().contains("02:00:5e:00:00:01");
            assert_eq!(is_listed, arguments[0] == "--ac", "{}", output.text());
            assert_eq!(output.text().contains("What to do"), expected == 1, "{}", output.text());
        }
        let advice = |arguments: &[&str]| {
            let (_, report) = ends.json(&[&[WAN, "--seconds", "1"], arguments].concat());
            report["advice"][0].as_str().expect("a sentence").to_owned()
        };
        assert_eq!(
            advice(&["--ac", "nope"]),
            "none that answered is \"nope\": `--ac` takes a name or a MAC address of the table"
        );
        assert!(
            advice(&["--ac", "nope", "--service", "internet"])
                .contains("is \"nope\" and serves \"internet\":")
        );
    });
}

#[test]
fn silence_says_what_to_do() {
    let Some(ends) = Ends::new() else { return };
    // Another host in another VLAN.
    let padi = {
        let mut head = [0; 64];
        let tags: wire::emit::Encapsulation = "ad:100,q:200".parse().expect("an encapsulation");
        let length = tags.emit_tagged(MacAddress::BROADCAST, mac(9), EtherType::PPPOE_DISCOVERY, &mut head);
        [&head[..length.expect("room")], &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0], &[0; 40]].concat()
    };
    under_load(&ends.far, WAN, &[padi], || ends.discover(&[WAN, "--seconds", "2"]))
        .ends(1)
        .says("wan0 without a VLAN tag: nobody answered ")
        .says(" PADI in 2 s.")
        .says("seen with other tags (ad:100,q:200): try `--vlan 100.200`")
        .says("many lines want a VLAN tag");
    ends.far.run("ip", &["link", "set", WAN, "down"]).expect("down");
    ends.discover(&[WAN, "--seconds", "1"]).says("wan0 has no carrier").omits("--vlan").omits("bridging");
    ends.near.run("ip", &["link", "set", WAN, "down"]).expect("down");
    ends.discover(&[WAN, "--seconds", "1"]).ends(1).says("it is down (`ip link set wan0 up`)");
}

#[test]
fn wrong_usage_and_missing_privilege_have_their_codes() {
    let Some(ends) = Ends::new() else { return };
    let long = "s".repeat(1500);
    for (arguments, part) in [
        (&["nothing0"][..], "there is no interface nothing0"),
        (&["lo"], "has no Ethernet frames"),
        (&[WAN, "--vlan", "4096"], "'4096' for '--vlan"),
        (&[WAN, "--vlan", "1.2.3.4.5"], "4 VLAN tags are the most"),
        (&[WAN, "--max-payload", "1000"], "1000"),
        (&[WAN, "--service", &long], "has room for 1448"),
        (&[], "INTERFACE"),
    ] {
        ends.discover(arguments).is(&arguments, 2, "").says(part);
    }
}

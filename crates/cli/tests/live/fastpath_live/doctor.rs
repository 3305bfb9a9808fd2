//! `rxlane doctor` on a router with a fast path: what goes past it is found, with the port that is missing, and what goes by it
//! is no finding.

use super::router::{LAN, PORT, Router, SERVER, WAN, at};
use crate::run::Ended;
use crate::stream::Stream;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use testkit::wait_until;

/// A port of the router that no packet uses.
const OTHER: &str = "dmz0";

/// The doctor's report on the router while a stream goes by it, of a sample with enough packets.
fn diagnosed(router: &Router, stream: &mut Stream) -> Value {
    let mut report = Value::Null;
    for seconds in ["1", "4", "16", "30"] {
        let is_over = AtomicBool::new(false);
        let output = thread::scope(|scope| {
            let pump = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    stream.carry(1 << 17);
                }
            });
            let output = router.command("doctor", &["--json", "--seconds", seconds]).output();
            is_over.store(true, Ordering::Relaxed);
            pump.join().expect("the stream goes on");
            output
        });
        report = output.expect("it starts").json();
        let row = &report["fastpath"];
        let slow = row["slow"].as_object().expect("reasons").values().filter_map(Value::as_u64);
        let packets = slow.sum::<u64>() + row["fast"].as_u64().expect("a number");
        if row["since_start"] == false && packets >= 1000 {
            break;
        }
    }
    report
}

fn outcome(report: &Value) -> &str {
    let rules = report["rules"].as_array().expect("rules");
    let row = rules.iter().find(|row| row["id"] == "fastpath-bypassed").expect("the rule");
    row["outcome"].as_str().expect("a word")
}

#[test]
fn what_goes_past_the_fast_path_is_found_and_what_goes_by_it_is_not() {
    let Some(mut router) = Router::translating() else { return };
    router.line_to_client(OTHER, "eth1");
    let up = router.up_on(&[LAN, OTHER], &[]);
    let mut stream = Stream::to(&router.client, &router.server, at(SERVER, PORT), at(SERVER, PORT));
    stream.carry(1000);
    wait_until("it is refused", || router.status()["refusals"]["no-port"].as_u64() > Some(0));
    let report = diagnosed(&router, &mut stream);
    let findings = report["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["id"] == "fastpath-bypassed");
    let found = found.unwrap_or_else(|| panic!("{report:#}"));
    let explanation = found["explanation"].as_str().expect("text");
    assert!(explanation.contains("by an interface on none of the ports"), "{found:#}");
    let commands = &found["remedies"][0]["commands"];
    let expected = format!("rxlane fastpath up {OTHER} {LAN} {WAN} --daemon");
    assert_eq!(commands[1], expected, "{found:#}");
    assert!(!found["evidence"].as_array().expect("evidence").is_empty(), "{found:#}");
    up.interrupted().ends(0);

    // What it says, done.
    let up = router.up_on(&[LAN, OTHER, WAN], &[]);
    router.wait_for_flows(1);
    stream.carry(1000);
    let report = diagnosed(&router, &mut stream);
    assert_eq!(outcome(&report), "clear", "{report:#}");
    assert!(report["fastpath"]["fast_share"].as_f64().is_some_and(|share| share > 0.5), "{report:#}");
    up.interrupted().ends(0);
}

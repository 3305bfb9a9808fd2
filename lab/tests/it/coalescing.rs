//! What `rxlane steer check` says of the kernel's PPPoE: whether it coalesces, and from which names that is known.

use crate::pool::Turn;
use crate::steer::rxlane;
use rxlane_lab::built::program;
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use serde_json::Value;

/// The facts about GRO while the kernel has a session on `wan`, and what is recommended.
fn facts(guest: &Guest, rxlane: &str) -> anyhow::Result<(String, Value)> {
    let agent = program("rxlane-lab")?.display().to_string();
    guest.sh("modprobe pppoe; ip link set wan up")?;
    let session = guest.start(&[&agent, "session", "wan", "1", "02:00:00:00:00:01"], "/tmp/session")?;
    guest.sh("until [ -s /tmp/session ]; do sleep 0.1; done")?;
    let output = guest.run(&[rxlane, "steer", "check", "wan", "--seconds", "0", "--json"])?;
    guest.signal(session, 15, true)?;
    let check: Value = serde_json::from_slice(&output.stdout)?;
    let facts = check["facts"].as_array().into_iter().flatten().filter(|fact| fact["about"] == "gro");
    let texts: Vec<&str> = facts.filter_map(|fact| fact["text"].as_str()).collect();
    Ok((texts.join("\n"), check))
}

#[test]
#[ignore = "make nightly"]
fn the_kernel_is_probed_for_pppoe_gro() {
    let (Some(lab), Some(rxlane)) = (Lab::require(), rxlane()) else { return };
    let _turn = Turn::take();
    for (kernel, expected) in [
        (
            Series::V7,
            "this kernel coalesces what PPPoE carries: pppoe_gro_receive is in its type information",
        ),
        (
            Series::V6_12,
            "this kernel does not coalesce what PPPoE carries: its driver has no pppoe_gro_receive",
        ),
    ] {
        let spec = Spec { nics: vec![Nic::new("wan", Model::Igb)], ..Spec::new(kernel) };
        let guest = lab.boot(&spec).expect("a guest");
        let (facts, check) = facts(&guest, &rxlane).expect("a check");
        println!("{facts}");
        assert!(facts.contains(expected), "{check:#}");
    }
}

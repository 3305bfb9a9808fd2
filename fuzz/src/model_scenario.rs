//! Any text as a scenario of the receive-path model, and a moment of what it describes: no panic, an error that names
//! the file or the key, an end, and every frame accounted for.

use rxlane_model::{Scenario, run as simulate};

pub fn run(input: &[u8]) {
    let Ok(text) = str::from_utf8(input) else { return };
    let mut scenario = match Scenario::parse("fuzz.toml", text) {
        Ok(scenario) => scenario,
        Err(error) => return assert!(error.to_string().starts_with("fuzz.toml: "), "{error}"),
    };
    // What is checked is not the patience of the fuzzer: few parts, small queues, a moment.
    if scenario.traffic.len() > 8 || scenario.interface.len() > 8 || scenario.application.len() > 8 {
        return;
    }
    for interface in scenario.interface.values_mut() {
        interface.ring = interface.ring.min(64);
        interface.queues = interface.queues.map(|queues| queues.min(16));
    }
    scenario.traffic.values_mut().for_each(|traffic| traffic.flows = traffic.flows.min(16));
    let Ok(mut plan) = scenario.plan(&mut |_, _, _, _| Err("no captures".to_owned())) else { return };
    (plan.warm_up, plan.duration) = (plan.warm_up.min(2_000_000), plan.duration.min(20_000_000));
    assert!(simulate(plan).conserves());
}

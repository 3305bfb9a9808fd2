use super::*;
use crate::top_command::fixture::{IGB, VETH, material, sampling, steered};

fn near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-6 * expected.abs().max(1.0))
}

fn igb() -> Model {
    Model::new(&material(&IGB, "wan0"), &sampling("pppoe-qinq", 500))
}

fn stage<'m>(model: &'m Model, name: &str) -> &'m StageRow {
    model.stages.iter().find(|row| row.stage == name).expect("the stage")
}

/// All figures are in the texts of `screens/`; here, those that the texts round, and what only colours show.
#[test]
fn rates_are_those_between_the_samples() {
    let model = igb();
    assert_eq!((model.device.as_str(), model.driver.as_deref()), ("wan0", Some("igb")));
    assert_eq!(
        (model.speed, model.up, model.mtu, model.xdp),
        (Some(1000), Some(true), Some(1508), Some("off"))
    );
    assert!(near(model.totals.frames_per_second, 63_042.0), "{:?}", model.totals);
    assert!(near(model.totals.drops_per_second, 212.0), "{:?}", model.totals);
    assert!(near(model.totals.interrupts_per_second, 9_088.0), "{:?}", model.totals);
    let rates: Vec<f64> = model.queues.iter().filter_map(|row| row.frames_per_second).collect();
    assert_eq!(rates, [61_840.0, 412.0, 388.0, 402.0]);
    let first = &model.queues[0];
    assert_eq!((first.vector.as_deref(), first.cpu, first.heat), (Some("126"), Some(0), Heat::Critical));
    assert!(near(first.share, 61_840.0 / 63_042.0) && near(first.bytes_per_second, 52_400_000.0));
    assert_eq!(first.rps.as_deref(), Some([].as_slice()));
    assert_eq!(model.queues[1].heat, Heat::Calm);
    assert!(near(model.vectors[1].frames_per_interrupt, 61_840.0 / 7_950.0));
    // Two busy vectors on CPU 2, and one each on the others.
    let heats: Vec<Heat> = model.vectors.iter().map(|row| row.heat).collect();
    assert_eq!(heats, [Heat::Calm, Heat::Calm, Heat::Calm, Heat::Warm, Heat::Warm]);
    assert_eq!((model.cpus[0].heat, model.cpus[0].steered_per_second), (Heat::Critical, None));
    // Two names of one loss are not added up.
    let queue = stage(&model, "queue");
    assert!(near(queue.drops_per_second, 212.0) && queue.drops == Some(42_089), "{queue:?}");
    let pppoe = model.traffic.classes.iter().find(|row| row.class.name() == "pppoe").expect("the class");
    assert_eq!((pppoe.frames, pppoe.share), (498, Some(498.0 / 500.0)));
    assert!(model.traffic.stacks.is_sorted_by_key(|row| std::cmp::Reverse(row.frames)));
    let refused = Sampling::Refused("a sample requires root".to_owned());
    let veth = Model::new(&material(&VETH, "veth0"), &refused);
    assert!(!is_known(&veth), "CPUs are not known");
    assert_eq!(veth.notes[0], "traffic classes: a sample requires root");
}

#[test]
fn an_interface_above_shows_the_device_below() {
    let model = Model::new(&material(&IGB, "ppp0"), &Sampling::Off);
    assert_eq!((model.interface.as_str(), model.device.as_str(), model.mtu), ("ppp0", "wan0", Some(1500)));
    assert_eq!(model.queues.len(), 4);
}

#[test]
fn one_sample_gives_no_rates() {
    let model = Model::new(&material(&IGB[..2], "wan0"), &Sampling::Off);
    assert_eq!(model.totals, Totals::default());
    assert!(model.queues.iter().all(|row| row.frames_per_second.is_none() && row.share.is_none()));
    assert!(model.vectors.iter().all(|row| row.interrupts_per_second.is_none()));
    assert!(model.remarks.is_empty());
    assert_eq!(model.queues[0].drops, Some(0), "what was lost so far is known all the same");
}

#[test]
fn counters_that_fell_are_unknown() {
    // The device was reset between the samples, as attaching an XDP program does.
    let later = IGB[2].replace("sample 2 at 1001", "sample 1 at 999");
    let model = Model::new(
        &material(&[IGB[0], &later, &IGB[1].replace("sample 1", "sample 2")], "wan0"),
        &Sampling::Off,
    );
    assert_eq!(model.totals.frames_per_second, None);
    assert!(model.queues.iter().all(|row| row.frames_per_second.is_none()));
    assert!(model.vectors.iter().skip(1).all(|row| row.interrupts_per_second.is_none()));
    assert!(model.cpus.iter().all(|row| row.softirq.is_none()));
    assert!(model.remarks.is_empty(), "{:?}", model.remarks);
}

#[test]
fn a_counter_that_vanished_is_unknown_and_not_zero() {
    let reduced: String =
        IGB[2].lines().filter(|line| !line.contains("rx_queue_1_")).map(|line| format!("{line}\n")).collect();
    let model = Model::new(&material(&[IGB[0], IGB[1], &reduced], "wan0"), &Sampling::Off);
    assert_eq!(model.queues[1].frames_per_second, None);
    assert!(model.queues[0].frames_per_second.is_some());
    assert_eq!(model.queues[0].share, None, "the share of a sum that is not known");
    assert_eq!(stage(&model, "queue").frames_per_second, None);
}

#[test]
fn steering_that_nobody_can_read_is_unknown() {
    let mut material = material(&IGB, "wan0");
    material.steering.latest = Err("its counters require root".to_owned());
    let model = Model::new(&material, &Sampling::Off);
    assert_eq!(model.steering.mode, None);
    assert_eq!(model.notes, ["steering: its counters require root"]);
    // With readings it has a share of each CPU, and the stage its frames.
    let model = Model::new(&steered(), &Sampling::Off);
    assert!(near(model.cpus[1].steered_per_second, 20_000.0) && model.cpus[0].steered_per_second.is_none());
    assert!(model.remarks.iter().any(|remark| remark.text.ends_with("lost at full backlogs (steer)")));
}

#[test]
fn the_json_has_null_for_the_unknown() {
    let json = serde_json::to_value(igb()).expect("JSON");
    assert_eq!(json["schema"], "rxlane.top/1");
    assert_eq!(json["queues"][0]["frames_per_second"], 61_840.0);
    assert_eq!(json["cpus"][0]["steered_per_second"], serde_json::Value::Null);
    assert_eq!(json["steering"]["mode"], "off");
    assert_eq!(json["traffic"]["classes"][3]["class"], "pppoe");
    assert_eq!(json["remarks"][0]["heat"], "hot");
}

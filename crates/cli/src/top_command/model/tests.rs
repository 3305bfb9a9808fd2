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
    assert_eq!((first.vector.as_deref(), first.cpu, first.heat), (Some("126"), Some(0), Heat::Hot));
    assert!(near(first.share, 61_840.0 / 63_042.0) && near(first.bytes_per_second, 52_400_000.0));
    assert_eq!(first.rps.as_deref(), Some([].as_slice()));
    assert_eq!(model.queues[1].heat, Heat::Calm);
}

#[test]
fn a_vector_has_its_cpu_and_frames() {
    let model = igb();
    let vectors: Vec<(&str, Option<u32>)> =
        model.vectors.iter().map(|row| (row.action.as_str(), row.cpu)).collect();
    assert_eq!(
        vectors,
        [
            ("wan0", None),
            ("wan0-TxRx-0", Some(0)),
            ("wan0-TxRx-1", Some(1)),
            ("wan0-TxRx-2", Some(2)),
            ("wan0-TxRx-3", Some(2))
        ]
    );
    assert!(near(model.vectors[1].frames_per_interrupt, 61_840.0 / 7_950.0));
    assert_eq!(model.vectors[1].cpu_share, Some(1.0));
    // Two busy vectors on CPU 2, and one each on the others.
    let heats: Vec<Heat> = model.vectors.iter().map(|row| row.heat).collect();
    assert_eq!(heats, [Heat::Calm, Heat::Calm, Heat::Calm, Heat::Warm, Heat::Warm]);
}

#[test]
fn a_cpu_has_its_time_and_counts() {
    let model = igb();
    let first = &model.cpus[0];
    assert_eq!((first.softirq, first.busy, first.heat), (Some(94.0), Some(99.0), Heat::Hot));
    assert!(near(first.processed_per_second, 61_840.0) && near(first.time_squeeze_per_second, 37.0));
    assert!(near(first.net_rx_per_second, 7_990.0) && near(first.interrupts_per_second, 7_950.0));
    assert_eq!((first.dropped_per_second, first.steered_per_second), (Some(0.0), None));
    assert_eq!(model.cpus.len(), 4);
}

#[test]
fn what_is_hot_is_said_the_worst_first() {
    let texts: Vec<String> = igb().remarks.into_iter().map(|remark| remark.text).collect();
    assert_eq!(
        texts,
        [
            "212 frames/s are lost at the ring (queue)",
            "CPU 0 spends 94.0 % of the time in softirq, the others 3.0 % at most",
            "queue 0 takes 98.1 % of the frames; 4 queues would take 25.0 % each",
            "2 busy vectors of the device interrupt CPU 2",
            "polling ran out of budget 37 times/s on CPU 0 (time_squeeze)",
        ]
    );
}

#[test]
fn stages_say_what_they_were_counted_from() {
    let model = igb();
    let names: Vec<&str> = model.stages.iter().map(|row| row.stage).collect();
    assert_eq!(
        names,
        ["admit", "parse", "hash", "queue", "moderate", "poll", "steer", "coalesce", "decap", "deliver"]
    );
    let queue = stage(&model, "queue");
    // Two names of one loss are not added up.
    assert!(near(queue.drops_per_second, 212.0) && queue.drops == Some(42_089), "{queue:?}");
    assert_eq!(queue.text, "ring 256; rx_fifo_errors, rx_missed_errors");
    assert_eq!(stage(&model, "admit").drops, Some(17));
    assert_eq!(stage(&model, "parse").text, "sample: 99.6 % pppoe, 0.4 % other");
    assert_eq!(stage(&model, "moderate").text, "9.09k interrupts/s; 6.9 frames each; rx-usecs 3");
    assert_eq!(stage(&model, "steer").text, "rxlane off; RPS off; drops: backlogs of all CPUs");
    // The PPP interface stands on the VLAN interface, and its frames are not counted again.
    let decap = stage(&model, "decap");
    assert!(near(decap.frames_per_second, 60_210.0), "{decap:?}");
    assert_eq!(decap.text, "wan0.35 60.2k");
    assert!(near(stage(&model, "deliver").frames_per_second, 60_000.0));
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
    let gone: String =
        IGB[2].lines().filter(|line| !line.contains("rx_queue_1_")).map(|line| format!("{line}\n")).collect();
    let model = Model::new(&material(&[IGB[0], IGB[1], &gone], "wan0"), &Sampling::Off);
    assert_eq!(model.queues[1].frames_per_second, None);
    assert!(model.queues[0].frames_per_second.is_some());
    assert_eq!(model.queues[0].share, None, "the share of a sum that is not known");
    assert_eq!(stage(&model, "queue").frames_per_second, None);
}

#[test]
fn little_is_known_of_a_veth_in_a_container() {
    let model =
        Model::new(&material(&VETH, "veth0"), &Sampling::Refused("a sample requires root".to_owned()));
    assert!(near(model.totals.frames_per_second, 6.0) && near(model.totals.bytes_per_second, 420.0));
    assert_eq!((model.queues.len(), model.vectors.len()), (1, 0));
    assert_eq!(model.queues[0].frames_per_second, None);
    assert!(model.cpus.iter().all(|row| row.softirq.is_none()));
    assert!(near(model.cpus[1].processed_per_second, 4.0));
    assert!(!is_known(&model), "CPUs are not known");
    assert_eq!(
        model.notes,
        [
            "traffic classes: a sample requires root",
            "queues: veth counts no frames by queue",
            "vectors: no interrupt in /proc/interrupts is veth0's",
            "cat /proc/stat: Permission denied",
        ]
    );
    assert!(model.traffic.classes.is_empty() && model.traffic.sampled_frames.is_none());
}

#[test]
fn classes_are_shares_of_the_sample() {
    let model = igb();
    let pppoe = model.traffic.classes.iter().find(|row| row.class.name() == "pppoe").expect("the class");
    assert_eq!((pppoe.frames, pppoe.share), (498, Some(498.0 / 500.0)));
    assert!(near(pppoe.estimated_frames_per_second, 63_042.0 * 0.996));
    assert_eq!(model.traffic.merged_share, Some(12.0 / 500.0));
    assert!(model.traffic.stacks[0].stack.starts_with("eth/vlan/vlan/pppoe/"), "{:?}", model.traffic.stacks);
    assert!(model.traffic.stacks.is_sorted_by_key(|row| std::cmp::Reverse(row.frames)));
}

#[test]
fn steering_is_told_by_cpu_and_reason() {
    let model = Model::new(&steered(), &Sampling::Off);
    let steering = &model.steering;
    assert_eq!((steering.mode, steering.buckets, steering.moves), (Some("native"), Some(256), Some(7)));
    assert!(near(steering.steered_per_second, 61_800.0) && near(steering.drops_per_second, 3.0));
    let rates: Vec<Option<f64>> = steering.cpus.iter().map(|row| row.frames_per_second).collect();
    assert_eq!(rates, [Some(20_000.0), Some(21_000.0), Some(20_800.0)]);
    assert_eq!(steering.cpus.iter().filter_map(|row| row.buckets).sum::<usize>(), 256);
    assert_eq!(steering.reasons[0].reason, "steered");
    assert!(near(model.cpus[1].steered_per_second, 20_000.0) && model.cpus[0].steered_per_second.is_none());
    let steer = stage(&model, "steer");
    assert!(near(steer.frames_per_second, 61_800.0) && near(steer.drops_per_second, 3.0), "{steer:?}");
    assert!(steer.text.starts_with("rxlane native; RPS off"), "{steer:?}");
    assert!(model.remarks.iter().any(|remark| remark.text.ends_with("lost at full backlogs (steer)")));
}

#[test]
fn steering_that_nobody_can_read_is_unknown() {
    let mut material = material(&IGB, "wan0");
    material.steering.latest = Err("its counters take root".to_owned());
    let model = Model::new(&material, &Sampling::Off);
    assert_eq!(model.steering.mode, None);
    assert_eq!(model.notes, ["steering: its counters take root"]);
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

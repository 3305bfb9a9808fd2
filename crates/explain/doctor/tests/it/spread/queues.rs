//! Queues, hash fields, the indirection table: `single-queue`, `one-queue-hot`, `one-flow`, `udp-two-tuple`,
//! `reta-uneven`, `reta-unused-queue`, `queues-below-cpus`.

use super::*;

/// The counters of pcengines/apu2-documentation issue 190: an igb whose second queue took nothing.
#[test]
fn one_queue_takes_all_and_the_text_does_not_say_why() {
    let finding = one(&queues("enp1s0", &[16_630_368_449, 0]), "one-queue-hot");
    assert_eq!(about(&finding), (LIMITS, "enp1s0"));
    quotes(&finding, "rx_queue_0_packets: 16630368449");
    states(&finding, "CausesPossible([Unhashed, FlowOrUdpUnknown, Table, RssOff])");
    assert!(matches!(effects(&finding)[..], [Effect::Rps { .. }, Effect::Steer { .. }]), "{finding:#?}");
}

/// igc of an intel-wired-lan message of 2023-11-16, virtio of netdata issue 17015, i40e with a factor of five.
#[test]
fn uneven_queues_are_no_hot_queue() {
    for packets in [
        &[112_677, 91_981, 231_685, 11_095][..],
        &[77_805, 341_999, 24_064, 156_304],
        &[64_128_515_158, 13_480_677_444, 13_678_447_928, 61_598_230_947],
        &[880_000, 120_000],
    ] {
        came_to(&queues("eth0", packets), "one-queue-hot", Outcome::Clear);
    }
    came_to(&queues("eth0", &[950_000, 50_000]), "one-queue-hot", Outcome::Found);
}

/// atlantic of github.com/quinn-rs/quinn issue 2202, where the paste ends in the second queue of several.
#[test]
fn queues_that_are_cut_off_are_none() {
    let text = |total: u64| {
        format!(
            "$ ethtool -S enp1s0\nNIC statistics:\n     InPackets: {total}\n     Queue[0] InPackets: 4256334\n     \
             Queue[0] Polls: 20819311\n     Queue[1] InPackets: 170421686\n     Queue[1] InErrors: 1\n"
        )
    };
    insufficient(&text(449_822_216), "one-queue-hot", &["ethtool -S enp1s0"]);
    came_to(&text(174_700_000), "one-queue-hot", Outcome::Found);
}

#[test]
fn too_few_frames_ask_for_a_sample_under_load() {
    insufficient(&queues("eth0", &[900, 0]), "one-queue-hot", &["ethtool -S eth0, twice under load"]);
    insufficient(&device("eth0", "igb", "8086:1533"), "one-queue-hot", &["ethtool -S eth0"]);
}

#[test]
fn rates_count_and_not_totals_where_there_are_two_samples() {
    let sample =
        |number, at, packets: &[u64]| format!("# sample {number} at {at}\n{}", queues("eth0", packets));
    // Everything on queue 0 since boot, and even now.
    let even = format!(
        "# rxlane bundle 1\n{}{}",
        sample(1, 10.0, &[9_000_000_000, 5]),
        sample(2, 12.0, &[9_000_100_000, 100_005])
    );
    came_to(&even, "one-queue-hot", Outcome::Clear);
    let hot = |more: u64| {
        let text = format!(
            "# rxlane bundle 1\n{}{}",
            sample(1, 10.0, &[1_000_000, 1_000_000]),
            sample(2, 12.0, &[1_000_000 + more, 1_000_000])
        );
        one(&text, "one-queue-hot")
    };
    assert_eq!(weight(&hot(400_000)), LIMITS);
    let slow = hot(4_000);
    assert_eq!(weight(&slow), CALM);
    states(&slow, "Little(Rate(2000.0))");
}

/// Broadcasts on an interface that nobody uses come in on queue 0: they are not hashed.
#[test]
fn an_interface_without_load_limits_nothing() {
    let idle = queues("eth1", &[60_000, 12]);
    weighed(&idle, "one-queue-hot", CALM);
    let busy = queues("eth0", &[9_000_000_000, 8_000_000_000]);
    let beside = one(&format!("{busy}{}", queues("eth1", &[2_000_000, 12])), "one-queue-hot");
    assert_eq!(about(&beside), (CALM, "eth1"));
    states(&beside, "BesideBusiest");
    weighed(&queues("eth1", &[2_000_000, 12]), "one-queue-hot", LIMITS);
}

#[test]
fn a_proven_cause_is_named() {
    let text = format!(
        "{}{}{}",
        device("eth0", "igb", "8086:1533"),
        session("eth0"),
        queues("eth0", &[9_000_000, 1, 2, 3])
    );
    let finding = one(&text, "one-queue-hot");
    states(&finding, r#"CausesKnown { ids: ["pppoe-unhashed"] }"#);
}

#[test]
fn an_idle_cpu_makes_a_hot_queue_a_remark_and_a_full_one_a_fault() {
    let text = |softirq, idle| {
        format!("{}{}{}", queues("eth0", &[9_000_000, 1, 2, 3]), one_each("eth0"), load(0, softirq, idle))
    };
    weighed(&text(10.0, 85.0), "one-queue-hot", CALM);
    weighed(&text(92.0, 5.0), "one-queue-hot", GRAVE);
}

/// The outputs of "How a NIC receives a packet" (PC Engines apu4d4, i211): UDP hashed by addresses, a table of two
/// halves, and all frames on queue 0.
#[test]
fn udp_by_addresses_and_a_table_of_halves() {
    let hot = queues("enp4s0", &[3_808_489_796, 0]);
    let halves = table("enp4s0", 2, (0..128).map(|entry| entry / 64));
    let text = format!("{halves}{}{hot}", fields("enp4s0", "udp4", false));
    let report = report(&text);
    let udp = weighed(&report, "udp-two-tuple", MAYBE);
    assert_eq!(commands(&udp, System::Linux), ["ethtool -N enp4s0 rx-flow-hash udp4 sdfn"]);
    let hot_queue = one(&report, "one-queue-hot");
    assert_eq!(commands(&hot_queue, System::Linux), ["ethtool -X enp4s0 equal 2"]);
    assert!(effects(&hot_queue).contains(&Effect::RetaInTurn), "{hot_queue:#?}");
    // Half and half is healthy in itself.
    came_to(&report, "reta-uneven", Outcome::Clear);
    // What is so already is not offered.
    let striped = table("enp4s0", 2, (0..128).map(|entry| entry % 2));
    let after = reports(&[&format!("{text}{striped}")], None);
    assert!(commands(&one(&after, "one-queue-hot"), System::Linux).is_empty());
    states(&one(&after, "one-queue-hot"), "FormerTable");
}

#[test]
fn udp_fields_alone_are_a_remark() {
    weighed(&fields("eth0", "udp4", false), "udp-two-tuple", CALM);
    came_to(&fields("eth0", "udp4", true), "udp-two-tuple", Outcome::Clear);
    insufficient(&queues("eth0", &[5, 5]), "udp-two-tuple", &["ethtool -n eth0 rx-flow-hash udp4"]);
    // It was so, and is so no longer.
    let text = format!("{}{}", fields("eth0", "udp4", false), fields("eth0", "udp4", true));
    let changed = remark(&text, "udp-two-tuple");
    states(&changed, r#"former: "sd", now: "sdfn""#);
}

#[test]
fn a_driver_that_refuses_other_fields_is_not_asked_for_them() {
    let text = format!("{}{}", device("eth0", "sfc", "1924:0903"), fields("eth0", "udp4", false));
    assert!(one(&text, "udp-two-tuple").remedies.is_empty());
}

/// UDP between one pair of addresses, the source port counting up.
fn one_pair(frames: u16) -> Vec<u8> {
    let frames: Vec<Vec<u8>> = (0..frames)
        .map(|number| {
            let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
            frame.extend([0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 192, 168, 6, 1, 192, 168, 6, 2]);
            frame.extend((1024 + number % 512).to_be_bytes());
            frame.extend([0x10, 0xe1, 0, 26, 0, 0]);
            frame.resize(60, 0);
            frame
        })
        .collect();
    pcap(frames.iter().map(Vec::as_slice))
}

#[test]
fn a_sample_tells_what_udp_ports_would_bring() {
    let text = format!("{}{}", device("eth0", "igb", "8086:1539"), fields("eth0", "udp4", false));
    let gain = weighed(&reports(&[&text], Some(one_pair(4000))), "udp-two-tuple", LIMITS);
    offers(&gain, "HashPorts { sample: Some((1.0, ");
    // TCP from everywhere gains nothing.
    let none = reports(&[&text], Some(scenario("pppoe", 1000)));
    came_to(&none, "udp-two-tuple", Outcome::Clear);
}

#[test]
fn one_flow_is_seen_in_a_sample_alone() {
    let text = format!("{}{}", device("eth0", "igb", "8086:1533"), queues("eth0", &[1, 2, 9_000_000, 4]));
    let (lacks, commands) = outcome(&text, "one-flow");
    assert_eq!(lacks, Outcome::InsufficientData);
    assert!(commands[0].starts_with("tcpdump -i eth0"), "{commands:?}");
    let seen = reports(&[&text], Some(scenario("untagged", 1)));
    let finding = one(&seen, "one-flow");
    assert!(finding.remedies.is_empty(), "{finding:#?}");
    quotes(&finding, "frames");
    assert!(one(&seen, "one-queue-hot").remedies.is_empty(), "no spreading divides one flow");
    came_to(&reports(&[&text], Some(scenario("untagged", 1000))), "one-flow", Outcome::Clear);
}

#[test]
fn one_queue_by_its_vector_or_its_profile() {
    let text = vectors([(17, [1_087_624, 0, 0, 0], "eth1"), (41, [15_573_731, 0, 0, 0], "eth0")]);
    let findings = found(&report(&text), "single-queue");
    assert_eq!(findings.len(), 2);
    for finding in &findings {
        let name = finding.interface.as_deref().unwrap();
        assert_eq!(weight(finding), CALM);
        quotes(finding, name);
        assert_eq!(
            commands(finding, System::Linux),
            [format!("echo e > /sys/class/net/{name}/queues/rx-0/rps_cpus")]
        );
    }
    let full = format!("{text}{}", load(0, 95.0, 2.0));
    assert!(
        found(&report(&full), "single-queue").iter().all(|finding| finding.severity == Severity::Critical)
    );
    let room = format!("{text}{}", load(0, 5.0, 92.0));
    assert!(found(&report(&room), "single-queue").iter().all(|finding| finding.remedies.is_empty()));
    weighed(&device("eth0", "e1000e", "8086:15b8"), "single-queue", CALM);
}

#[test]
fn several_queues_and_unknown_ones() {
    came_to(&one_each("eth0"), "single-queue", Outcome::Clear);
    // One queue in use of four is another finding.
    let text = format!("{}{}", channels("eth0", 4, 1), one_each("eth9"));
    came_to(&text, "single-queue", Outcome::Clear);
    let (lacks, commands) = outcome(&fields("eth0", "udp4", true), "single-queue");
    assert_eq!((lacks, &commands[0][..]), (Outcome::InsufficientData, "ethtool -l eth0"));
}

#[test]
fn masks_beyond_32_cpus_and_of_the_near_node() {
    let mut counts = vec![0; 40];
    counts[1] = 5_000_000;
    let text = vectors([(30, &counts, "eth0")]);
    let finding = one(&text, "single-queue");
    assert_eq!(
        commands(&finding, System::Linux),
        ["echo ff,fffffffd > /sys/class/net/eth0/queues/rx-0/rps_cpus"]
    );
    let near = format!(
        "{text}$ lscpu\nArchitecture:          x86_64\nCPU(s):                40\nNUMA node(s):          2\n\
         NUMA node0 CPU(s):     0-3\nNUMA node1 CPU(s):     4-39\n"
    );
    let finding = one(&near, "single-queue");
    assert_eq!(commands(&finding, System::Linux), ["echo d > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
}

#[test]
fn a_table_that_names_one_queue() {
    let text = table("eth0", 4, (0..128).map(|_| 2));
    let finding = weighed(&text, "reta-uneven", LIMITS);
    assert_eq!(commands(&finding, System::Linux), ["ethtool -X eth0 default"]);
    quotes(&finding, "indirection table for eth0 with 4 RX ring(s)");
    let hot = report(&format!("{text}{}", queues("eth0", &[3, 1, 9_000_000, 0])));
    states(&one(&hot, "one-queue-hot"), "reta-uneven");
    assert!(
        commands(&one(&hot, "one-queue-hot"), System::Linux).is_empty(),
        "the table is repaired, not RPS set"
    );
}

#[test]
fn tables_that_are_even_or_half_read() {
    for entries in [[0, 1, 2, 3].repeat(32), (0..128).map(|entry| entry / 32).collect::<Vec<u32>>()] {
        came_to(&table("eth0", 4, entries.into_iter()), "reta-uneven", Outcome::Clear);
    }
    // 128 entries over 10 queues: 13 or 12 each.
    let ten = table("eth0", 10, (0..128).map(|entry| entry % 10));
    came_to(&ten, "reta-uneven", Outcome::Clear);
    came_to(&ten, "reta-unused-queue", Outcome::Clear);
    let weighted = table("eth0", 4, (0..128).map(|entry| if entry < 100 { 0 } else { entry % 4 }));
    weighed(&weighted, "reta-uneven", CALM);
    // Half of an I210's table, which has blocks, would name two of four queues.
    let half = format!(
        "{}{}",
        device("eth0", "igb", "8086:1533"),
        table("eth0", 4, (0..64).map(|entry| entry / 32))
    );
    came_to(&half, "reta-unused-queue", Outcome::InsufficientData);
    insufficient(&queues("eth0", &[5, 5]), "reta-uneven", &["ethtool -x eth0"]);
}

/// The table of an intel-wired-lan message of 2025-01-02: 63 rings of an 82599ES, and 16 in the table.
#[test]
fn four_bits_name_sixteen_queues() {
    let table = table("eno5", 63, (0..128).map(|entry| entry % 16));
    let unknown = weighed(&table, "reta-unused-queue", HINT);
    states(&unknown, "FourBits");
    assert!(unknown.remedies.is_empty());
    remark(&format!("{}{table}", device("eno5", "ixgbe", "8086:10fb")), "reta-unused-queue");
}

#[test]
fn queues_left_out_of_the_table() {
    let text = format!(
        "{}{}",
        device("eth0", "igb", "8086:1533"),
        table("eth0", 4, (0..128).map(|entry| entry % 2))
    );
    let finding = weighed(&text, "reta-unused-queue", CALM);
    assert_eq!(commands(&finding, System::Linux), ["ethtool -X eth0 equal 4"]);
}

#[test]
fn fewer_queues_than_the_device_and_the_cpus_allow() {
    let cpus = vectors([(17, [0, 0, 0, 0], "ahci")]);
    let finding = weighed(&format!("{}{cpus}", channels("eth0", 8, 2)), "queues-below-cpus", CALM);
    // Eight queues there are, and four CPUs.
    assert_eq!(commands(&finding, System::Linux), ["ethtool -L eth0 combined 4"]);
    for (most, current) in [(8, 4), (2, 2)] {
        let text = format!("{}{cpus}", channels("eth0", most, current));
        came_to(&text, "queues-below-cpus", Outcome::Clear);
    }
    insufficient(&channels("eth0", 8, 2), "queues-below-cpus", &["lscpu"]);
    insufficient(&queues("eth0", &[5, 5]), "queues-below-cpus", &["ethtool -l eth0"]);
    // More queues do not help frames that are not hashed.
    let unhashed =
        format!("{}{}{cpus}{}", device("eth0", "igb", "8086:1533"), channels("eth0", 4, 2), session("eth0"));
    assert!(one(&unhashed, "queues-below-cpus").remedies.is_empty());
}

#[test]
fn a_ring_of_unknown_length_is_asked_for() {
    let text = |frames: u64, missed: u64| {
        format!(
            "$ ethtool -S eth0\nNIC statistics:\n     rx_packets: {frames}\n     rx_missed_errors: {missed}\n"
        )
    };
    let samples = [text(1_000_000, 10), text(2_000_000, 90_010)];
    let finding = weighed(&reports(&[&samples[0], &samples[1]], None), "ring-overflow", GRAVE);
    offers(&finding, "RingUnknown");
    assert!(commands(&finding, System::Linux).is_empty());
    let ring = "$ ethtool -g eth0\nRing parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\n\
                Current hardware settings:\nRX:\t\t256\nTX:\t\t256\n";
    let known = format!("{}{ring}", samples[1]);
    let finding = one(&reports(&[&samples[0], &known], None), "ring-overflow");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -G eth0 rx 1024"]);
}

#[test]
fn a_full_cpu_is_no_condition_of_rps() {
    let text = vectors([(41, [15_573_731, 0, 0, 0], "eth0")]);
    let unknown = one(&text, "single-queue");
    offers(&unknown, "conditional: true");
    let full = one(&format!("{text}{}", load(0, 95.0, 2.0)), "single-queue");
    offers(&full, "conditional: false");
    let sample = format!("{}{text}", device("eth0", "e1000e", "8086:15b8"));
    let one_flow = one(&reports(&[&sample], Some(scenario("pppoe", 1))), "single-queue");
    assert!(one_flow.remedies.is_empty(), "{one_flow:#?}");
    states(&one_flow, "LoadIsOneFlow");
}

#[test]
fn what_the_driver_has_not_is_no_cause_and_is_not_asked_for() {
    let refused = "$ ethtool -x eth0\n# not read: Operation not supported\n\
                   $ ethtool -n eth0 rx-flow-hash udp4\n# not read: Operation not supported\n";
    let hot = queues("eth0", &[9_000_000, 1, 2, 3]);
    let after = one(&format!("{hot}{refused}"), "one-queue-hot");
    states(&after, "CausesPossible([Unhashed, Flow])");
}

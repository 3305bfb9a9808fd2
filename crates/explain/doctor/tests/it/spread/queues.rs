//! Queues, hash fields, the indirection table: `single-queue`, `one-queue-hot`, `one-flow`, `udp-two-tuple`,
//! `reta-uneven`, `reta-unused-queue`, `queues-below-cpus`.

use super::*;

fn sampled(text: &str, sample: Vec<u8>) -> Report {
    reports(&[text], Some(sample))
}

#[test]
fn one_queue_that_takes_nearly_all() {
    let busy_queue = queues("eth0", &[9_000_000, 1, 2, 3]);
    let i210 = device("eth0", "igb", "8086:1533");
    let refused = "$ ethtool -x eth0\n# not read: Operation not supported\n\
                   $ ethtool -n eth0 rx-flow-hash udp4\n# not read: Operation not supported\n";
    let atlantic = |total: u64| {
        format!(
            "$ ethtool -S enp1s0\nNIC statistics:\n     InPackets: {total}\n     Queue[0] InPackets: 4256334\n     \
             Queue[0] Polls: 20819311\n     Queue[1] InPackets: 170421686\n     Queue[1] InErrors: 1\n"
        )
    };
    let loaded = |softirq, idle| busy_queue.clone() + &one_each("eth0") + &load(0, softirq, idle);
    let id = "one-queue-hot";
    all_answer(&[
        // An igb whose second queue took nothing: pcengines/apu2-documentation issue 190.
        (
            &queues("enp1s0", &[16_630_368_449, 0]),
            id,
            LIMITS,
            &[
                "=on enp1s0",
                "rx_queue_0_packets: 16630368449",
                "CausesPossible([Unhashed, FlowOrUdpUnknown, Table, RssOff])",
                "=remedies: 2",
                "offers Rps",
            ],
        ),
        // igc of an intel-wired-lan message of 2023-11-16, virtio of netdata issue 17015, i40e with a factor of five.
        (&queues("eth0", &[112_677, 91_981, 231_685, 11_095]), id, CLEAR, &[]),
        (&queues("eth0", &[77_805, 341_999, 24_064, 156_304]), id, CLEAR, &[]),
        (&queues("eth0", &[64_128_515_158, 13_480_677_444, 13_678_447_928, 61_598_230_947]), id, CLEAR, &[]),
        (&queues("eth0", &[880_000, 120_000]), id, CLEAR, &[]),
        (&queues("eth0", &[950_000, 50_000]), id, LIMITS, &[]),
        // atlantic of github.com/quinn-rs/quinn issue 2202, where the paste ends in the second queue of several.
        (&atlantic(449_822_216), id, LACKS, &["ethtool -S enp1s0"]),
        (&atlantic(174_700_000), id, LIMITS, &[]),
        (&queues("eth0", &[900, 0]), id, LACKS, &["ethtool -S eth0, twice under load"]),
        (&i210, id, LACKS, &["ethtool -S eth0"]),
        // Broadcasts on an interface that nobody uses arrive on queue 0: they are not hashed.
        (&queues("eth1", &[60_000, 12]), id, CALM, &[]),
        (&queues("eth1", &[2_000_000, 12]), id, LIMITS, &[]),
        (
            &(queues("eth0", &[9_000_000_000, 8_000_000_000]) + &queues("eth1", &[2_000_000, 12])),
            id,
            CALM,
            &["=on eth1", "NextToBusiest"],
        ),
        // A proven cause is named.
        (
            &(i210.clone() + &session("eth0") + &busy_queue),
            id,
            LIMITS,
            &[r#"CausesKnown { ids: ["pppoe-unhashed"] }"#],
        ),
        // What the driver has not is no cause.
        (&(busy_queue.clone() + refused), id, LIMITS, &["CausesPossible([Unhashed, Flow])"]),
        (&loaded(10.0, 85.0), id, CALM, &[]),
        (&loaded(92.0, 5.0), id, GRAVE, &[]),
    ]);
}

#[test]
fn rates_count_and_not_totals_where_there_are_two_samples() {
    let bundle = |before: &[u64], after: &[u64]| {
        let sample = |number, at, packets| format!("# sample {number} at {at}\n{}", queues("eth0", packets));
        format!("# rxlane bundle 1\n{}{}", sample(1, 10.0, before), sample(2, 12.0, after))
    };
    all_answer(&[
        // Everything on queue 0 since boot, and even now.
        (&bundle(&[9_000_000_000, 5], &[9_000_100_000, 100_005]), "one-queue-hot", CLEAR, &[]),
        (&bundle(&[1_000_000; 2], &[1_400_000, 1_000_000]), "one-queue-hot", LIMITS, &[]),
        (&bundle(&[1_000_000; 2], &[1_004_000, 1_000_000]), "one-queue-hot", CALM, &["Little(Rate(2000.0))"]),
    ]);
}

/// The outputs of "How a NIC receives a packet" (PC Engines apu4d4, i211): UDP hashed by addresses, a table of two
/// halves, and all frames on queue 0.
#[test]
fn udp_by_addresses_and_a_table_of_halves() {
    let busy_queue = queues("enp4s0", &[3_808_489_796, 0]);
    let halves = table("enp4s0", 2, (0..128).map(|entry| entry / 64));
    let text = format!("{halves}{}{busy_queue}", fields("enp4s0", "udp4", false));
    let report = report(&text);
    answers(&report, "udp-two-tuple", MAYBE, &["=Linux: ethtool -N enp4s0 rx-flow-hash udp4 sdfn"]);
    let finding = one(&report, "one-queue-hot");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -X enp4s0 equal 2"]);
    assert!(effects(&finding).contains(&Effect::RetaInTurn), "{finding:#?}");
    // Half and half is healthy in itself.
    answers(&report, "reta-uneven", CLEAR, &[]);
    // What is so already is not offered.
    let striped = table("enp4s0", 2, (0..128).map(|entry| entry % 2));
    answers(&(text + &striped), "one-queue-hot", LIMITS, &["=Linux: ", "FormerTable"]);
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
fn fields_of_udp() {
    let id = "udp-two-tuple";
    let (addresses, ports) = (fields("eth0", "udp4", false), fields("eth0", "udp4", true));
    all_answer(&[
        (&addresses, id, CALM, &[]),
        (&ports, id, CLEAR, &[]),
        (&queues("eth0", &[5, 5]), id, LACKS, &["ethtool -n eth0 rx-flow-hash udp4"]),
        (&(addresses.clone() + &ports), id, CALM, &["=remedies: 0", r#"former: "sd", now: "sdfn""#]),
        // A driver that refuses other fields gets no request for them.
        (&(device("eth0", "sfc", "1924:0903") + &addresses), id, CALM, &["=remedies: 0"]),
    ]);
    let text = device("eth0", "igb", "8086:1539") + &addresses;
    answers(&sampled(&text, one_pair(4000)), id, LIMITS, &["HashPorts { sample: Some((1.0, "]);
    // TCP from everywhere gains nothing.
    answers(&sampled(&text, scenario("pppoe", 1000)), id, CLEAR, &[]);
}

#[test]
fn one_flow_is_seen_in_a_sample_alone() {
    let text = format!("{}{}", device("eth0", "igb", "8086:1533"), queues("eth0", &[1, 2, 9_000_000, 4]));
    let (lacks, commands) = outcome(&text, "one-flow");
    assert_eq!(lacks, Outcome::InsufficientData);
    assert!(commands[0].starts_with("tcpdump -i eth0"), "{commands:?}");
    let seen = sampled(&text, scenario("untagged", 1));
    let finding = one(&seen, "one-flow");
    assert!(finding.remedies.is_empty(), "{finding:#?}");
    quotes(&finding, "frames");
    assert!(one(&seen, "one-queue-hot").remedies.is_empty(), "no spreading divides one flow");
    answers(&sampled(&text, scenario("untagged", 1000)), "one-flow", CLEAR, &[]);
}

#[test]
fn one_queue_by_its_vector_or_its_profile() {
    let id = "single-queue";
    let both = vectors([(17, [1_087_624, 0, 0, 0], "eth1"), (41, [15_573_731, 0, 0, 0], "eth0")]);
    for (more, severity) in [
        (String::new(), Severity::Info),
        (load(0, 95.0, 2.0), Severity::Critical),
        (load(0, 5.0, 92.0), Severity::Info),
    ] {
        let findings = found(&report(&(both.clone() + &more)), id);
        assert_eq!(findings.len(), 2);
        for finding in &findings {
            let name = finding.interface.as_deref().unwrap();
            assert_eq!((finding.severity, finding.remedies.is_empty()), (severity, more.contains("92.0 id")));
            quotes(finding, name);
            if more.is_empty() {
                assert_eq!(weight(finding), CALM);
                // CPU 1 is to get the interrupts of eth1 (`cpu-shared`).
                let rps = format!("echo c > /sys/class/net/{name}/queues/rx-0/rps_cpus");
                assert_eq!(commands(finding, System::Linux), [rps]);
            }
        }
    }
    // Beyond 32 CPUs a mask has two words, and CPUs of the near node are taken.
    let mut counts = vec![0; 40];
    counts[1] = 5_000_000;
    let many = vectors([(30, &counts, "eth0")]);
    let near = "$ lscpu\nArchitecture:          x86_64\nCPU(s):                40\nNUMA node(s):          2\n\
                NUMA node0 CPU(s):     0-3\nNUMA node1 CPU(s):     4-39\n";
    let alone = vectors([(41, [15_573_731, 0, 0, 0], "eth0")]);
    let unknown = report(&fields("eth0", "udp4", true));
    assert_eq!(outcome(&unknown, id).1[0], "ethtool -l eth0");
    answers(&unknown, id, LACKS, &[]);
    all_answer(&[
        (&device("eth0", "e1000e", "8086:15b8"), id, CALM, &[]),
        (&one_each("eth0"), id, CLEAR, &[]),
        // One queue in use of four is another finding.
        (&(channels("eth0", 4, 1) + &one_each("eth9")), id, CLEAR, &[]),
        (&many, id, CALM, &["=Linux: echo ff,fffffffd > /sys/class/net/eth0/queues/rx-0/rps_cpus"]),
        (&(many.clone() + near), id, CALM, &["=Linux: echo d > /sys/class/net/eth0/queues/rx-0/rps_cpus"]),
        // RPS is offered on a condition until the CPU is known to be full.
        (&alone, id, CALM, &["conditional: true"]),
        (&(alone.clone() + &load(0, 95.0, 2.0)), id, GRAVE, &["conditional: false"]),
    ]);
    let one_flow = sampled(&(device("eth0", "e1000e", "8086:15b8") + &alone), scenario("pppoe", 1));
    let one_flow = one(&one_flow, id);
    assert!(one_flow.remedies.is_empty(), "{one_flow:#?}");
    states(&one_flow, "LoadIsOneFlow");
}

#[test]
fn tables_that_leave_queues_out() {
    let (uneven, unused) = ("reta-uneven", "reta-unused-queue");
    let i210 = device("eth0", "igb", "8086:1533");
    let one_queue = table("eth0", 4, (0..128).map(|_| 2));
    // 128 entries over 10 queues: 13 or 12 each.
    let ten = table("eth0", 10, (0..128).map(|entry| entry % 10));
    // 63 rings of an 82599ES, and 16 in the table: an intel-wired-lan message of 2025-01-02.
    let sixteen = table("eno5", 63, (0..128).map(|entry| entry % 16));
    all_answer(&[
        (
            &one_queue,
            uneven,
            LIMITS,
            &["=Linux: ethtool -X eth0 default", "table for eth0 with 4 RX ring(s)"],
        ),
        // The table is repaired, not RPS set.
        (
            &(one_queue.clone() + &queues("eth0", &[3, 1, 9_000_000, 0])),
            "one-queue-hot",
            LIMITS,
            &[uneven, "=Linux: "],
        ),
        (&table("eth0", 4, (0..128).map(|entry| entry % 4)), uneven, CLEAR, &[]),
        (&table("eth0", 4, (0..128).map(|entry| entry / 32)), uneven, CLEAR, &[]),
        (&ten, uneven, CLEAR, &[]),
        (&ten, unused, CLEAR, &[]),
        (&table("eth0", 4, (0..128).map(|entry| if entry < 100 { 0 } else { entry % 4 })), uneven, CALM, &[]),
        // Half of an I210's table, which has blocks, would name two of four queues.
        (&(i210.clone() + &table("eth0", 4, (0..64).map(|entry| entry / 32))), unused, LACKS, &[]),
        (&queues("eth0", &[5, 5]), uneven, LACKS, &["ethtool -x eth0"]),
        // Four bits name sixteen queues.
        (&sixteen, unused, HINT, &["FourBits", "=remedies: 0"]),
        (&(device("eno5", "ixgbe", "8086:10fb") + &sixteen), unused, CALM, &["=remedies: 0"]),
        (
            &(i210 + &table("eth0", 4, (0..128).map(|entry| entry % 2))),
            unused,
            CALM,
            &["=Linux: ethtool -X eth0 equal 4"],
        ),
    ]);
}

#[test]
fn fewer_queues_than_the_device_and_the_cpus_allow() {
    let id = "queues-below-cpus";
    let cpus = vectors([(17, [0, 0, 0, 0], "ahci")]);
    let unhashed = device("eth0", "igb", "8086:1533") + &channels("eth0", 4, 2) + &cpus + &session("eth0");
    all_answer(&[
        // Eight queues there are, and four CPUs.
        (&(channels("eth0", 8, 2) + &cpus), id, CALM, &["=Linux: ethtool -L eth0 combined 4"]),
        (&(channels("eth0", 8, 4) + &cpus), id, CLEAR, &[]),
        (&(channels("eth0", 2, 2) + &cpus), id, CLEAR, &[]),
        (&channels("eth0", 8, 2), id, LACKS, &["nproc"]),
        (&queues("eth0", &[5, 5]), id, LACKS, &["ethtool -l eth0"]),
        // More queues do not help frames that are not hashed.
        (&unhashed, id, CALM, &["=remedies: 0"]),
    ]);
}

#[test]
fn a_ring_of_unknown_length_is_requested() {
    let at = |packets, missed| statistics("eth0", &[("rx_packets", packets), ("rx_missed_errors", missed)]);
    let samples = [at(1_000_000, 10), at(2_000_000, 90_010)];
    let finding = reports(&[&samples[0], &samples[1]], None);
    answers(&finding, "ring-overflow", GRAVE, &["RingUnknown", "=Linux: "]);
    let known = samples[1].clone() + &rings("eth0", 4096, 256);
    let finding = reports(&[&samples[0], &known], None);
    answers(&finding, "ring-overflow", GRAVE, &["=Linux: ethtool -G eth0 rx 1024"]);
}

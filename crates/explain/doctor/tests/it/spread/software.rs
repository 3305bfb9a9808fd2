//! Spreading in software: `rps-off`, `rps-same-cpu`.

use super::*;

#[test]
fn rps_where_the_device_spreads_and_where_not() {
    let (off, same) = ("rps-off", "rps-same-cpu");
    let single = vectors([(41, [0, 15_573_731, 0, 0], "eth0")]);
    let masked = |value| single.clone() + &mask("eth0", 0, value);
    let busy_queue = queues("eth0", &[4, 9_000_000, 3, 1]) + &one_each("eth0") + &mask("eth0", 1, "0");
    let pppoe =
        device("eth0", "igb", "8086:1533") + &session("eth0") + &one_each("eth0") + &mask("eth0", 0, "0");
    let even = queues("eth0", &[400_000, 390_000, 410_000, 400_000]) + &one_each("eth0");
    let even_off = even.clone() + &mask("eth0", 0, "0");
    let file = "cat /sys/class/net/eth0/queues/rx-0/rps_cpus";
    let rps = |queue: u32, mask: &str| {
        format!("=Linux: echo {mask} > /sys/class/net/eth0/queues/rx-{queue}/rps_cpus")
    };
    all_answer(&[
        (&masked("0"), off, CALM, &[&rps(0, "d"), "NoSample"]),
        (&busy_queue, off, LIMITS, &[&rps(1, "d"), "rx_queue_1_packets: 9000000"]),
        // Even with interrupts on all queues: the other traffic spreads, PPPoE does not.
        (&pppoe, off, LIMITS, &["=on eth0"]),
        (&even_off, off, CLEAR, &[]),
        // RPS would only cost while the CPU has time.
        (&(masked("0") + &load(1, 10.0, 85.0)), off, CLEAR, &[]),
        (&(masked("0") + &load(1, 94.0, 4.0)), off, GRAVE, &[]),
        (&masked("d"), off, CLEAR, &[]),
        (&masked("d"), same, CLEAR, &[]),
        (&single, off, LACKS, &[file]),
        (&single, same, LACKS, &[file]),
        (&mask("eth0", 0, "0"), off, LACKS, &[]),
        // To the CPU that has the packets already.
        (&masked("2"), same, CALM, &["15573731", &rps(0, "d")]),
        // Where RSS spreads, the mask is only removed.
        (&(even.clone() + &mask("eth0", 1, "2")), same, CALM, &[&rps(1, "0")]),
    ]);
    let findings = report(&even_off).findings;
    assert!(findings.iter().all(|finding| commands(finding, System::Linux).is_empty()), "{findings:#?}");
    let sampled = one(&reports(&[&masked("0")], Some(scenario("pppoe", 1000))), off);
    offers(&sampled, "Sample {");
    offers(&sampled, "before: None");
}

/// top of github.com/raspberrypi/Raspberry-Pi-OS-64bit issue 182; the second thread is written for this test.
#[test]
fn a_full_ksoftirqd_alone_hints_at_one_cpu() {
    let titles = "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n";
    let threads = |shares: &[f64]| {
        let row = |(cpu, share): (u32, &f64)| {
            format!(
                "   1{cpu} root      20   0       0      0      0 R {share:>5.1}   0.0  43:47.43 ksoftirqd/{cpu}\n"
            )
        };
        titles.to_owned() + &(0..).zip(shares).map(row).collect::<String>()
    };
    let busy_queue = one_each("eth0") + &threads(&[95.0]) + &queues("eth0", &[2_000_000, 0, 0, 0]);
    let id = "softirq-one-cpu";
    all_answer(&[
        (&threads(&[93.2]), id, MAYBE, &["ksoftirqd/0", "Ksoftirqd { cpu: 0, share: 93.2 }"]),
        (&threads(&[60.0]), id, LACKS, &[]),
        (&threads(&[95.0, 40.0]), id, LACKS, &[]),
        // The vectors say which queue's CPU it is.
        (&busy_queue, "one-queue-hot", GRAVE, &["ksoftirqd/0"]),
    ]);
}

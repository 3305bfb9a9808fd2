//! Spreading in software: `rps-off`, `rps-same-cpu`.

use super::*;

fn single() -> String {
    vectors([(41, [0, 15_573_731, 0, 0], "eth0")])
}

#[test]
fn rps_off_matters_where_the_device_does_not_spread() {
    let finding = weighed(&format!("{}{}", single(), mask("eth0", 0, "0")), "rps-off", CALM);
    assert_eq!(commands(&finding, System::Linux), ["echo d > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    let hot =
        format!("{}{}{}", queues("eth0", &[4, 9_000_000, 3, 1]), one_each("eth0"), mask("eth0", 1, "0"));
    let finding = weighed(&hot, "rps-off", LIMITS);
    assert_eq!(commands(&finding, System::Linux), ["echo d > /sys/class/net/eth0/queues/rx-1/rps_cpus"]);
    quotes(&finding, "rx_queue_1_packets: 9000000");
    let pppoe = format!(
        "{}{}{}{}",
        device("eth0", "igb", "8086:1533"),
        session("eth0"),
        one_each("eth0"),
        mask("eth0", 0, "0")
    );
    // Even with interrupts on all queues: the other traffic spreads, PPPoE does not.
    assert_eq!(one(&pppoe, "rps-off").interface.as_deref(), Some("eth0"));
}

#[test]
fn rps_is_not_asked_for_where_rss_spreads() {
    let text = format!(
        "{}{}{}",
        queues("eth0", &[400_000, 390_000, 410_000, 400_000]),
        one_each("eth0"),
        mask("eth0", 0, "0")
    );
    let report = report(&text);
    came_to(&report, "rps-off", Outcome::Clear);
    assert!(
        report.findings.iter().all(|finding| commands(finding, System::Linux).is_empty()),
        "{:#?}",
        report.findings
    );
}

#[test]
fn rps_would_only_cost_while_the_cpu_has_time() {
    let text = |softirq, idle| format!("{}{}{}", single(), mask("eth0", 0, "0"), load(1, softirq, idle));
    came_to(&text(10.0, 85.0), "rps-off", Outcome::Clear);
    weighed(&text(94.0, 4.0), "rps-off", GRAVE);
}

#[test]
fn rps_that_is_on_is_no_finding_and_unknown_is_unknown() {
    let on = report(&format!("{}{}", single(), mask("eth0", 0, "d")));
    came_to(&on, "rps-off", Outcome::Clear);
    came_to(&on, "rps-same-cpu", Outcome::Clear);
    let file = "cat /sys/class/net/eth0/queues/rx-0/rps_cpus".to_owned();
    for id in ["rps-off", "rps-same-cpu"] {
        assert_eq!(outcome(&single(), id), (Outcome::InsufficientData, vec![file.clone()]), "{id}");
    }
    let unknown = outcome(&mask("eth0", 0, "0"), "rps-off");
    assert_eq!(unknown.0, Outcome::InsufficientData);
}

#[test]
fn rps_to_the_cpu_that_has_the_packets_already() {
    let finding = weighed(&format!("{}{}", single(), mask("eth0", 0, "2")), "rps-same-cpu", CALM);
    quotes(&finding, "15573731");
    assert_eq!(commands(&finding, System::Linux), ["echo d > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    // Where RSS spreads, the mask is only removed.
    let text = format!(
        "{}{}{}",
        queues("eth0", &[400_000, 390_000, 410_000, 400_000]),
        one_each("eth0"),
        mask("eth0", 1, "2")
    );
    let finding = one(&text, "rps-same-cpu");
    assert_eq!(commands(&finding, System::Linux), ["echo 0 > /sys/class/net/eth0/queues/rx-1/rps_cpus"]);
}

/// top of github.com/raspberrypi/Raspberry-Pi-OS-64bit issue 182; the second thread is written for this test.
#[test]
fn a_full_ksoftirqd_alone_hints_at_one_cpu() {
    let titles = "  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n";
    let thread = |pid: u32, cpu: u32, share: f64| {
        format!(
            "{pid:>5} root      20   0       0      0      0 R {share:>5.1}   0.0  43:47.43 ksoftirqd/{cpu}\n"
        )
    };
    let finding = weighed(&format!("{titles}{}", thread(12, 0, 93.2)), "softirq-one-cpu", MAYBE);
    quotes(&finding, "ksoftirqd/0");
    states(&finding, "Ksoftirqd { cpu: 0, share: 93.2 }");
    for others in [thread(12, 0, 60.0), format!("{}{}", thread(12, 0, 95.0), thread(21, 1, 40.0))] {
        let report = report(&format!("{titles}{others}"));
        came_to(&report, "softirq-one-cpu", Outcome::InsufficientData);
    }
    // The vectors say which queue's CPU it is.
    let text = format!("{}{titles}{}", one_each("eth0"), thread(12, 0, 95.0));
    let hot = one(&format!("{text}{}", queues("eth0", &[2_000_000, 0, 0, 0])), "one-queue-hot");
    assert_eq!(hot.severity, Severity::Critical, "{hot:#?}");
    quotes(&hot, "ksoftirqd/0");
}

#[test]
fn a_sample_says_what_steering_gives_where_the_device_is_unknown() {
    let text = format!("{}{}", single(), mask("eth0", 0, "0"));
    offers(&one(&text, "rps-off"), "NoSample");
    let sampled = one(&reports(&[&text], Some(scenario("pppoe", 1000))), "rps-off");
    offers(&sampled, "Sample {");
    offers(&sampled, "before: None");
}

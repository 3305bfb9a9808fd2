//! Spreading in software: `rps-off`, `rps-same-cpu`.

use super::*;

fn single() -> String {
    vectors(&[(41, &[0, 15_573_731, 0, 0], "eth0")])
}

#[test]
fn rps_off_matters_where_the_device_does_not_spread() {
    let finding = one(&report(&format!("{}{}", single(), mask("eth0", 0, "0"))), "rps-off");
    assert_eq!(weight(&finding), CALM);
    assert_eq!(commands(&finding, "linux"), ["echo d > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    let hot =
        format!("{}{}{}", queues("eth0", &[4, 9_000_000, 3, 1]), one_each("eth0"), mask("eth0", 1, "0"));
    let finding = one(&report(&hot), "rps-off");
    assert_eq!(weight(&finding), LIMITS);
    assert_eq!(commands(&finding, "linux"), ["echo d > /sys/class/net/eth0/queues/rx-1/rps_cpus"]);
    assert!(quotes(&finding, "rx_queue_1_packets: 9000000"), "{finding:#?}");
    let pppoe = format!(
        "{}{}{}{}",
        device("eth0", "igb", "8086:1533"),
        session("eth0"),
        one_each("eth0"),
        mask("eth0", 0, "0")
    );
    // Even with interrupts on all queues: the other traffic spreads, PPPoE does not.
    assert_eq!(one(&report(&pppoe), "rps-off").interface.as_deref(), Some("eth0"));
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
    assert_eq!(outcome(&report, "rps-off").0, Outcome::Clear);
    assert!(
        report.findings.iter().all(|finding| commands(finding, "linux").is_empty()),
        "{:#?}",
        report.findings
    );
}

#[test]
fn rps_would_only_cost_while_the_cpu_has_time() {
    let text = |softirq, idle| format!("{}{}{}", single(), mask("eth0", 0, "0"), load(1, softirq, idle));
    assert_eq!(outcome(&report(&text(10.0, 85.0)), "rps-off").0, Outcome::Clear);
    assert_eq!(weight(&one(&report(&text(94.0, 4.0)), "rps-off")), GRAVE);
}

#[test]
fn rps_that_is_on_is_no_finding_and_unknown_is_unknown() {
    let on = report(&format!("{}{}", single(), mask("eth0", 0, "d")));
    assert_eq!(outcome(&on, "rps-off").0, Outcome::Clear);
    assert_eq!(outcome(&on, "rps-same-cpu").0, Outcome::Clear);
    let file = "cat /sys/class/net/eth0/queues/rx-0/rps_cpus".to_owned();
    for id in ["rps-off", "rps-same-cpu"] {
        assert_eq!(outcome(&report(&single()), id), (Outcome::InsufficientData, vec![file.clone()]), "{id}");
    }
    let unknown = outcome(&report(&mask("eth0", 0, "0")), "rps-off");
    assert_eq!(unknown.0, Outcome::InsufficientData);
}

#[test]
fn rps_to_the_cpu_that_has_the_packets_already() {
    let finding = one(&report(&format!("{}{}", single(), mask("eth0", 0, "2"))), "rps-same-cpu");
    assert_eq!(weight(&finding), CALM);
    assert!(quotes(&finding, "15573731"), "{finding:#?}");
    assert_eq!(commands(&finding, "linux"), ["echo d > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
    // Where RSS spreads, the mask is only removed.
    let text = format!(
        "{}{}{}",
        queues("eth0", &[400_000, 390_000, 410_000, 400_000]),
        one_each("eth0"),
        mask("eth0", 1, "2")
    );
    let finding = one(&report(&text), "rps-same-cpu");
    assert_eq!(commands(&finding, "linux"), ["echo 0 > /sys/class/net/eth0/queues/rx-1/rps_cpus"]);
}

//! `ring-overflow`, `backlog-drop`, `time-squeeze`.

use super::*;

#[test]
fn a_ring_that_overflows_now() {
    let at = |packets, missed| statistics("eth0", &[("rx_packets", packets), ("rx_missed_errors", missed)]);
    let text = samples(
        &(driver("eth0", "igb") + &rings("eth0", 4096, 256) + &at(1_000_000, 50)),
        &at(1_100_000, 2050),
    );
    let finding = one(&text, "ring-overflow");
    assert_eq!(about(&finding), (GRAVE, "eth0"));
    states(
        &finding,
        r#"RingFull(Loss { counter: Named("rx_missed_errors"), frames: 2000, when: Now, per_second: Some(1000.0), share: Some(0.0196"#,
    );
    quotes(&finding, "rx_missed_errors: 2050");
    assert_eq!(commands(&finding, System::Linux), ["ethtool -G eth0 rx 1024"]);

    // The longest ring there is: no command is left.
    let longest = text.replace("RX:\t\t256", "RX:\t\t4096");
    assert_eq!(one(&longest, "ring-overflow").remedies, []);
    // Few of many: a warning.
    let few = samples(&at(1_000_000, 50), &at(1_100_000, 51));
    assert_eq!(one(&few, "ring-overflow").severity, Severity::Warning);
}

#[test]
fn losses_of_the_past() {
    let at = |packets, missed| statistics("eth0", &[("rx_packets", packets), ("rx_missed_errors", missed)]);
    let finding = weighed(&at(1_000_000, 5000), "ring-overflow", LIMITS);
    states(&finding, "frames: 5000, when: SinceStart, per_second: None, share: Some(0.0049");
    let rare = one(&at(1_000_000, 50), "ring-overflow");
    assert_eq!((rare.severity, rare.remedies.len()), (Severity::Info, 0));
    // Two samples, and none between them.
    let still = one(&samples(&at(1_000_000, 5000), &at(1_100_000, 5000)), "ring-overflow");
    assert_eq!(still.severity, Severity::Info);
    states(&still, "when: Before");
}

#[test]
fn no_buffers_alone_lost_nothing_yet() {
    let at = |packets, empty| {
        statistics("eth0", &[("rx_packets", packets), ("rx_no_buffer_count", empty), ("rx_missed_errors", 0)])
    };
    let finding = one(&samples(&at(1_000_000, 0), &at(1_010_000, 3000)), "ring-overflow");
    assert_eq!(finding.severity, Severity::Warning);
}

#[test]
fn a_full_cpu_is_the_cause_and_no_ring_is_offered() {
    let at = |packets, missed| statistics("eth0", &[("rx_packets", packets), ("rx_missed_errors", missed)]);
    let stat = |softirq: u32, idle: u32| {
        format!(
            "$ cat /proc/stat\ncpu  0 0 0 {0} 0 0 {1} 0 0 0\ncpu0 0 0 0 0 0 0 {softirq} 0 0 0\ncpu1 0 0 0 {idle} 0 0 0 0 0 0\n",
            idle, softirq
        )
    };
    let base = driver("eth0", "igb") + &rings("eth0", 4096, 256);
    let text = samples(
        &(base + &interrupts("eth0", &[5000, 0]) + &stat(1000, 1000) + &at(1_000_000, 0)),
        &(interrupts("eth0", &[9000, 0]) + &stat(1200, 1200) + &at(1_100_000, 4000)),
    );
    let finding = one(&text, "ring-overflow");
    states(&finding, "Load(Full { cpu: 0, idle: 0.0 })");
    states(&finding, "LongerRingFills");
    assert_eq!(finding.remedies, []);
}

#[test]
fn nothing_lost_and_nothing_known() {
    let none =
        statistics("eth0", &[("rx_packets", 1_000_000), ("rx_missed_errors", 0), ("rx_no_buffer_count", 0)]);
    came_to(&none, "ring-overflow", Outcome::Clear);
    let unknown = driver("eth0", "igb");
    insufficient(&unknown, "ring-overflow", &["ethtool -S eth0"]);
    assert!(report(&unknown).findings.iter().any(|finding| finding.id == "insufficient-data"));
}

#[test]
fn a_backlog_that_drops() {
    let sysctl = "$ sysctl net.core.netdev_max_backlog\nnet.core.netdev_max_backlog = 1000\n";
    let text = samples(
        &(sysctl.to_owned() + &softnet(&[(1000, 0, 0), (1000, 0, 0)])),
        &softnet(&[(1000, 0, 0), (21_000, 800, 0)]),
    );
    let finding = one(&text, "backlog-drop");
    assert_eq!((weight(&finding), finding.interface.as_deref()), (GRAVE, None));
    states(
        &finding,
        "BacklogFull(Loss { counter: Backlog(1), frames: 800, when: Now, per_second: Some(400.0), share: Some(0.038",
    );
    assert_eq!(commands(&finding, System::Linux), ["sysctl -w net.core.netdev_max_backlog=2000"]);
    // Without the present depth there is no command: it might be a smaller one.
    let unknown =
        samples(&softnet(&[(1000, 0, 0), (1000, 0, 0)]), &softnet(&[(1000, 0, 0), (21_000, 800, 0)]));
    let finding = one(&unknown, "backlog-drop");
    assert_eq!(commands(&finding, System::Linux), [] as [&str; 0]);
    offers(&finding, "Backlog { now: None }");
}

#[test]
fn a_backlog_that_holds() {
    came_to(&softnet(&[(1000, 0, 0), (1000, 0, 0)]), "backlog-drop", Outcome::Clear);
    let rare = one(&softnet(&[(10_000_000, 12, 0)]), "backlog-drop");
    assert_eq!((rare.severity, rare.remedies.len()), (Severity::Info, 0));
    insufficient(&driver("eth0", "igb"), "backlog-drop", &["cat /proc/net/softnet_stat"]);
}

#[test]
fn budgets_that_run_out() {
    let sysctl = "$ sysctl net.core.netdev_budget\nnet.core.netdev_budget = 300\n$ sysctl net.core.netdev_budget_usecs\nnet.core.netdev_budget_usecs = 2000\n";
    let text = samples(
        &(sysctl.to_owned() + &softnet(&[(0, 0, 0), (0, 0, 0)])),
        &softnet(&[(200_000, 0, 600), (100_000, 0, 1)]),
    );
    let finding = weighed(&text, "time-squeeze", LIMITS);
    states(&finding, "Squeezed { cpu: 0, times: 600, frames: 200000, share: 0.9, per_second: Some(300.0) }");
    assert_eq!(
        commands(&finding, System::Linux),
        ["sysctl -w net.core.netdev_budget=600", "sysctl -w net.core.netdev_budget_usecs=4000"]
    );
    // A few: a remark without a remedy; a handful since boot: nothing.
    let few = one(&samples(&softnet(&[(0, 0, 0)]), &softnet(&[(200_000, 0, 3)])), "time-squeeze");
    assert_eq!((few.severity, few.remedies.len()), (Severity::Info, 0));
    came_to(&softnet(&[(1_000_000, 0, 7)]), "time-squeeze", Outcome::Clear);
    insufficient(&driver("eth0", "igb"), "time-squeeze", &["cat /proc/net/softnet_stat"]);
}

#[test]
fn an_interface_that_the_text_does_not_name() {
    let at = |missed| format!("NIC statistics:\n     rx_packets: 1000000\n     rx_missed_errors: {missed}\n");
    let text = rings("eth0", 4096, 256).replace("$ ethtool -g eth0\n", "") + &at(5000);
    for finding in report(&text).findings {
        for command in finding.remedies.iter().flat_map(|remedy| &remedy.commands) {
            assert!(!command.contains("  "), "{command}");
        }
    }
    assert_eq!(one(&at(5000), "ring-overflow").severity, Severity::Warning);
    insufficient(&at(5000), "moderation-off", &["ethtool -c IFACE"]);
}

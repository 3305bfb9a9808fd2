//! `ring-overflow`, `backlog-drop`, `time-squeeze`.

use super::*;

fn missed(packets: u64, missed: u64) -> String {
    statistics("eth0", &[("rx_packets", packets), ("rx_missed_errors", missed)])
}

#[test]
fn rings_that_overflow() {
    let id = "ring-overflow";
    let base = driver("eth0", "igb") + &rings("eth0", 4096, 256);
    let now = samples(&(base.clone() + &missed(1_000_000, 50)), &missed(1_100_000, 2050));
    let empty = |packets, empty| {
        statistics("eth0", &[("rx_packets", packets), ("rx_no_buffer_count", empty), ("rx_missed_errors", 0)])
    };
    let stat = |ticks: u32| {
        format!(
            "$ cat /proc/stat\ncpu  0 0 0 {ticks} 0 0 {ticks} 0 0 0\ncpu0 0 0 0 0 0 0 {ticks} 0 0 0\ncpu1 0 0 0 {ticks} 0 0 0 0 0 0\n"
        )
    };
    let full = samples(
        &(base + &interrupts("eth0", &[5000, 0]) + &stat(1000) + &missed(1_000_000, 0)),
        &(interrupts("eth0", &[9000, 0]) + &stat(1200) + &missed(1_100_000, 4000)),
    );
    let unnamed = missed(1_000_000, 5000).replace("$ ethtool -S eth0\n", "");
    all_answer(&[
        (
            &now,
            id,
            GRAVE,
            &[
                "=on eth0",
                r#"RingFull(Loss { counter: Named("rx_missed_errors"), frames: 2000, when: Now, per_second: Some(1000.0), share: Some(0.0196"#,
                "rx_missed_errors: 2050",
                "=Linux: ethtool -G eth0 rx 1024",
            ],
        ),
        // The longest ring there is: no command is left.
        (&now.replace("RX:\t\t256", "RX:\t\t4096"), id, GRAVE, &["=remedies: 0"]),
        // Few of many.
        (&samples(&missed(1_000_000, 50), &missed(1_100_000, 51)), id, LIMITS, &[]),
        // Losses of the past.
        (
            &missed(1_000_000, 5000),
            id,
            LIMITS,
            &["frames: 5000, when: SinceStart, per_second: None, share: Some(0.0049"],
        ),
        (&missed(1_000_000, 50), id, CALM, &["=remedies: 0"]),
        (&samples(&missed(1_000_000, 5000), &missed(1_100_000, 5000)), id, CALM, &["when: Before"]),
        // No buffers alone lost nothing yet.
        (&samples(&empty(1_000_000, 0), &empty(1_010_000, 3000)), id, LIMITS, &[]),
        // A saturated CPU is the cause, and no ring is offered.
        (&full, id, GRAVE, &["Load(Full { cpu: 0, idle: 0.0 })", "LongerRingFills", "=remedies: 0"]),
        (&empty(1_000_000, 0), id, CLEAR, &[]),
        (&driver("eth0", "igb"), id, LACKS, &["ethtool -S eth0"]),
        (&driver("eth0", "igb"), "insufficient-data", CALM, &[]),
        (&unnamed, id, LIMITS, &[]),
        (&unnamed, "moderation-off", LACKS, &["ethtool -c IFACE"]),
    ]);
    // An interface that the text does not name has no name in commands.
    let text = rings("eth0", 4096, 256).replace("$ ethtool -g eth0\n", "") + &unnamed;
    let remedies = report(&text).findings.into_iter().flat_map(|finding| finding.remedies);
    let commands: Vec<String> = remedies.flat_map(|remedy| remedy.commands).collect();
    assert!(commands.iter().all(|command| !command.contains("  ")), "{commands:?}");
}

#[test]
fn backlogs_and_budgets() {
    let (backlog, budget) = ("backlog-drop", "time-squeeze");
    let depth = "$ sysctl net.core.netdev_max_backlog\nnet.core.netdev_max_backlog = 1000\n";
    let (idle, dropping) =
        (softnet(&[(1000, 0, 0), (1000, 0, 0)]), softnet(&[(1000, 0, 0), (21_000, 800, 0)]));
    let budgets = "$ sysctl net.core.netdev_budget\nnet.core.netdev_budget = 300\n$ sysctl net.core.netdev_budget_usecs\nnet.core.netdev_budget_usecs = 2000\n";
    let squeezed = samples(
        &(budgets.to_owned() + &softnet(&[(0, 0, 0), (0, 0, 0)])),
        &softnet(&[(200_000, 0, 600), (100_000, 0, 1)]),
    );
    let unread = driver("eth0", "igb");
    all_answer(&[
        (
            &samples(&(depth.to_owned() + &idle), &dropping),
            backlog,
            GRAVE,
            &[
                "=on the machine",
                "BacklogFull(Loss { counter: Backlog(1), frames: 800, when: Now, per_second: Some(400.0), share: Some(0.038",
                "=Linux: sysctl -w net.core.netdev_max_backlog=2000",
            ],
        ),
        // Without the present depth there is no command: it might be a smaller one.
        (&samples(&idle, &dropping), backlog, GRAVE, &["=Linux: ", "offers Backlog { now: None }"]),
        (&idle, backlog, CLEAR, &[]),
        (&softnet(&[(10_000_000, 12, 0)]), backlog, CALM, &["=remedies: 0"]),
        (&unread, backlog, LACKS, &["cat /proc/net/softnet_stat"]),
        (
            &squeezed,
            budget,
            LIMITS,
            &[
                "Squeezed { cpu: 0, times: 600, frames: 200000, share: 0.9, per_second: Some(300.0) }",
                "=Linux: sysctl -w net.core.netdev_budget=600 && sysctl -w net.core.netdev_budget_usecs=4000",
            ],
        ),
        // A few: a remark without a remedy; a handful since boot: nothing.
        (&samples(&softnet(&[(0, 0, 0)]), &softnet(&[(200_000, 0, 3)])), budget, CALM, &["=remedies: 0"]),
        (&softnet(&[(1_000_000, 0, 7)]), budget, CLEAR, &[]),
        (&unread, budget, LACKS, &["cat /proc/net/softnet_stat"]),
    ]);
}

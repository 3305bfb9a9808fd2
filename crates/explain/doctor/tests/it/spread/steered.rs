//! Frames that rxlane's program hands to other CPUs already: what is said then, and what is not offered again. The
//! object is what `rxlane steer status --json` prints (schema `rxlane.steer/1`).

use super::*;
use serde_json::{Value, json};

/// The object: frames and drops by CPU, frames by reason.
fn status(mode: &str, cpus: &[(u32, u64, u64)], reasons: &[(&str, u64)]) -> Value {
    let cpus: Vec<Value> = cpus
        .iter()
        .map(|(cpu, frames, drops)| json!({"cpu": cpu, "frames": frames, "drops": drops}))
        .collect();
    let reasons: Vec<Value> =
        reasons.iter().map(|(reason, frames)| json!({"reason": reason, "frames": frames})).collect();
    json!({
        "schema": "rxlane.steer/1", "interface": "eth0", "mode": mode, "complete": true, "remarks": [],
        "classes": ["qinq", "pppoe"], "cpus": cpus, "reasons": reasons, "buckets": [], "moves": 0, "keeper": null
    })
}

fn status_output(status: &Value) -> String {
    format!("$ rxlane steer status eth0 --json\n{}\n", serde_json::to_string_pretty(status).unwrap())
}

/// Two million frames, nearly all handed to CPUs 1 to 3.
fn steered() -> Value {
    status(
        "native",
        &[(1, 640_000, 0), (2, 650_000, 0), (3, 660_000, 0)],
        &[("steered", 1_950_000), ("class-left", 49_000), ("ppp-control", 1_000)],
    )
}

/// PPPoE on a device that cannot hash it, all on queue 0, whose CPU is 0.
fn pppoe() -> String {
    super::unhashed::pppoe() + &queues("eth0", &[2_000_000, 0, 0, 0]) + &mask("eth0", 0, "0")
}

/// Two stacked VLANs there in its place.
fn qinq() -> String {
    let link =
        links(&[("eth0", 1500, ""), ("eth0.100@eth0", 1500, AD100), ("eth0.100.7@eth0.100", 1500, Q7)]);
    let link = with_program(&link, "xdp");
    format!("{}{link}{}", device("eth0", "igb", "8086:1533"), one_each("eth0"))
        + &queues("eth0", &[2_000_000, 0, 0, 0])
}

/// Commands of all remedies, rxlane's own among them.
fn all_commands(finding: &Finding) -> Vec<&str> {
    finding.remedies.iter().flat_map(|remedy| remedy.commands.iter().map(String::as_str)).collect()
}

fn is_offered(report: &Report, command: &str) -> bool {
    report.findings.iter().flat_map(all_commands).any(|offered| offered.contains(command))
}

#[test]
fn what_is_steered_is_no_limit_and_is_not_offered_again() {
    let before = report(&pppoe());
    assert!(is_offered(&before, "rxlane steer up") && is_offered(&before, "rps_cpus"));
    let after = report(&(pppoe() + &status_output(&steered())));
    let already = "SteeredAlready(Steering { cpus: [1, 2, 3], generic: false, share: Some((0.97";
    for id in ["pppoe-unhashed", "one-queue-hot"] {
        answers(&before, id, LIMITS, &[]);
        let quoted = [already, r#""mode": "native""#, r#""frames": 1950000"#, "=remedies: 0"];
        answers(&after, id, CALM, &quoted);
    }
    answers(&before, "rps-off", LIMITS, &[]);
    answers(&after, "rps-off", CLEAR, &[]);
    assert!(!is_offered(&after, "rxlane steer") && !is_offered(&after, "rps_cpus"), "{:#?}", after.findings);
    let row = after.interfaces[0].steering.as_ref();
    assert_eq!(row.map(|row| (row.mode, row.cpus.len())), Some(("native", 3)));
    answers(&(qinq() + &status_output(&steered())), "qinq-unhashed", CALM, &[already, "=remedies: 0"]);
}

#[test]
fn a_machine_that_steers_is_healthy() {
    let softnet = |processed: [u32; 4]| {
        let rows = (0..4).zip(processed).map(|(cpu, frames)| {
            let none = "00000000 ".repeat(10);
            format!("{frames:08x} {none}00000000 {cpu:08x}\n")
        });
        format!("$ cat /proc/net/softnet_stat\n{}", rows.collect::<String>())
    };
    let softirqs = "$ cat /proc/softirqs\n                    CPU0       CPU1       CPU2       CPU3\n      \
                    NET_RX:    2000000        100        100        100\n       TIMER:       9000       9000       9000       9000\n";
    let text = pppoe() + softirqs + &softnet([100, 650_000, 640_000, 660_000]);
    let before = one(&text, "softirq-one-cpu");
    assert_ne!(before.severity, Severity::Info, "{before:#?}");
    let after = report(&(text + &status_output(&steered())));
    // The frames say on which CPUs they were taken up, where the softirq is the driver's alone.
    answers(&after, "softirq-one-cpu", CLEAR, &[]);
    assert_eq!(after.verdict, Verdict::Healthy, "{:#?}", after.findings);
    assert!(after.summary.steered);
    let without = pppoe() + softirqs + &status_output(&steered());
    answers(&without, "softirq-one-cpu", CALM, &["uncounted: true", "=remedies: 0"]);
}

/// CPUs count for all network namespaces; an interface without frames is not healthy by them.
#[test]
fn a_steered_interface_without_frames_is_unknown() {
    let softirqs = |count: u64| {
        format!(
            "$ cat /proc/softirqs\n                    CPU0       CPU1\n      NET_RX:    {count}     {count}\n       TIMER:       9000       9000\n"
        )
    };
    let by_ethtool = |frames: u64| statistics("eth0", &[("rx_packets", frames)]);
    let by_ip = |frames: u64| {
        format!(
            "$ ip -s link\n2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000\n    \
             link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff\n    RX:  bytes packets errors dropped  missed   mcast\n    \
             {frames}00 {frames} 0 0 0 0\n    TX:  bytes packets errors dropped carrier collsns\n    0 0 0 0 0 0\n"
        )
    };
    let counters: [&dyn Fn(u64) -> String; 2] = [&by_ethtool, &by_ip];
    for counter in counters {
        let sample = |softirq: u64, frames: u64| {
            device("eth0", "igb", "8086:1533")
                + &softirqs(softirq)
                + &counter(frames)
                + &status_output(&steered())
        };
        let idle = reports(&[&sample(10_000, 1_000_000), &sample(900_000, 1_000_003)], None);
        assert_eq!((idle.verdict, idle.summary.idle), (Verdict::Unknown, true), "{:#?}", idle.findings);
    }
}

#[test]
fn between_two_samples_what_was_before_does_not_count() {
    let cpus = |each: u64| [(1, each, 0), (2, each, 0), (3, each, 0)];
    // Before the class was selected everything was left.
    let first = status("native", &cpus(0), &[("steered", 0), ("class-left", 9_000_000)]);
    let second = status("native", &cpus(1_000), &[("steered", 3_000), ("class-left", 9_000_100)]);
    let text = |status: &Value| format!("{}{}", pppoe(), status_output(status));
    let both = reports(&[&text(&first), &text(&second)], None);
    answers(&both, "one-queue-hot", CALM, &["share: Some((0.96", "Sample))"]);
    answers(&text(&second), "one-queue-hot", LIMITS, &[]);
}

#[test]
fn off_is_as_if_nobody_had_looked() {
    let off =
        json!({"schema": "rxlane.steer/1", "interface": "eth0", "mode": "off", "cpus": [], "reasons": []});
    let report = report(&(pppoe() + &status_output(&off)));
    answers(&report, "pppoe-unhashed", LIMITS, &[]);
    assert!(is_offered(&report, "rxlane steer up"), "{:#?}", report.findings);
    assert_eq!(report.interfaces[0].steering.as_ref().map(|row| row.mode), Some("off"));
}

/// The object with one member replaced.
fn with(mut status: Value, member: &str, value: Value) -> Value {
    status[member] = value;
    status
}

#[test]
fn steering_that_helps_little_is_looked_at() {
    let text = |status: &Value| pppoe() + &status_output(status);
    let program = |mode| with_program(&links(&[("eth0", 1500, "")]), mode);
    let generic =
        pppoe() + &program("xdpgeneric") + &status_output(&with(steered(), "mode", "generic".into()));
    let uneven =
        status("native", &[(1, 1_900_000, 40_000), (2, 5_000, 0), (3, 5_000, 0)], &[("steered", 1_950_000)]);
    let keeper = json!({"pid": 7, "alive": true, "foreground": false, "rebalance": true});
    let full = pppoe() + &load(0, 96.0, 2.0);
    let with_zero = status("native", &[(0, 900_000, 0), (1, 900_000, 0)], &[("steered", 1_800_000)]);
    // A target's work is system time.
    let target =
        "$ top -b -n 1\n%Cpu1  :  0.5 us, 95.0 sy,  0.0 ni,  2.0 id,  0.0 wa,  0.0 hi,  2.5 si,  0.0 st\n";
    let on_target = status("native", &[(1, 1_500_000, 0), (2, 300_000, 0)], &[("steered", 1_800_000)]);
    let left =
        status("native", &[(1, 10_000, 0), (2, 10_000, 0)], &[("steered", 20_000), ("truncated", 1_900_000)]);
    let other = with(steered(), "classes", json!(["plain"]));
    let again = pppoe().replace("rps_cpus\n0\n", "rps_cpus\ne\n") + &status_output(&steered());
    let refused = "$ rxlane steer status eth0 --json\n# not read: it requires root to read\n";
    let no_status = pppoe() + &program("xdp");
    let open = no_status.clone() + refused;
    let asks = ["it requires root to read", "=rxlane: rxlane steer status eth0", "=Linux: "];
    const BUSY_QUEUE: &str = "one-queue-hot";
    const PPPOE: &str = "pppoe-unhashed";
    all_answer(&[
        // Generic mode distributes, and the mode is the finding.
        (&generic, PPPOE, CALM, &["generic: true", "=remedies: 0"]),
        (
            &generic,
            "xdp-generic-only",
            LIMITS,
            &[
                "=rxlane: rxlane steer down eth0 && rxlane steer up eth0",
                "=Linux: ",
                r#""mode": "generic""#,
                "xdpgeneric",
            ],
        ),
        // A CPU that drops or takes everything.
        (
            &text(&uneven),
            BUSY_QUEUE,
            CALM,
            &[
                "TargetTakes { cpu: 1, share: 0.99",
                "=rxlane: rxlane steer status eth0 && rxlane steer down eth0 && rxlane steer up eth0 --rebalance",
                "=Linux: ",
            ],
        ),
        (
            &text(&uneven),
            "backlog-drop",
            LIMITS,
            &[
                "=on eth0",
                r#"counter: Target { interface: "eth0", cpu: 1 }, frames: 40000"#,
                "\"drops\": 40000",
                "=rxlane: rxlane steer status eth0",
                "=Linux: ",
            ],
        ),
        // Who rebalances already has one flow, or is at it.
        (
            &text(&with(uneven.clone(), "keeper", keeper)),
            BUSY_QUEUE,
            CALM,
            &["=rxlane: rxlane steer status eth0", "=Linux: "],
        ),
        // A saturated CPU is a limit all the same.
        (
            &(full.clone() + &status_output(&steered())),
            BUSY_QUEUE,
            GRAVE,
            &["DriverWorkRemains { cpu: 0 }", "=remedies: 0"],
        ),
        (
            &(full + &status_output(&with_zero)),
            PPPOE,
            GRAVE,
            &["=rxlane: rxlane steer down eth0 && rxlane steer up eth0 --cpus 1", "=Linux: "],
        ),
        (
            &(pppoe() + target + &status_output(&on_target)),
            BUSY_QUEUE,
            LIMITS,
            &["95.0 sy", "TargetBusy { cpu: 1"],
        ),
        // Steering that leaves the frames is looked at before more is added.
        (
            &text(&left),
            PPPOE,
            LIMITS,
            &[
                r#"reason: Some("truncated")"#,
                r#""reason": "truncated""#,
                "=rxlane: rxlane steer status eth0 && rxlane steer check eth0",
                "=Linux: ",
            ],
        ),
        (
            &text(&other),
            PPPOE,
            LIMITS,
            &[
                r#"SteersOtherClasses { classes: ["plain"] }"#,
                "=rxlane: rxlane steer down eth0 && rxlane steer up eth0",
                "=Linux: ",
            ],
        ),
        (&again, PPPOE, CALM, &["RpsAgain { cpus: [1, 2, 3] }"]),
        // A program that could not be queried leaves it open; where nobody queried, a program is any program.
        (&open, PPPOE, MAYBE, &asks),
        (&open, BUSY_QUEUE, MAYBE, &asks),
        (&open, "rps-off", LACKS, &[]),
        (&no_status, PPPOE, LIMITS, &[]),
        (&no_status, BUSY_QUEUE, LIMITS, &[]),
    ]);
    assert_eq!(report(&text(&uneven)).verdict, Verdict::Limited);
}

#[test]
fn absurd_numbers_do_not_panic() {
    let most = u64::MAX;
    for mode in ["native", "generic", "off"] {
        let status = status(
            mode,
            &[(0, most, most), (1, most, most), (4095, 0, most)],
            &[("steered", most), ("class-left", most), ("not-ip", most)],
        );
        report(&(pppoe() + &status_output(&status)));
        let zeros = self::status(mode, &[(0, 0, 0)], &[("steered", 0)]);
        reports(&[&(pppoe() + &status_output(&status)), &(pppoe() + &status_output(&zeros))], None);
        reports(&[&(pppoe() + &status_output(&zeros)), &(pppoe() + &status_output(&status))], None);
    }
}

#[test]
fn a_full_target_of_few_frames_is_no_limit() {
    let few = |frames: u64| {
        let steered = status("native", &[(1, frames, 0), (2, 10, 0)], &[("steered", frames + 10)]);
        let busy_queue = queues("eth0", &[frames + 10, 0, 0, 0]);
        device("eth0", "igb", "8086:1533")
            + &one_each("eth0")
            + &busy_queue
            + &status_output(&steered)
            + &load(1, 85.0, 2.0)
    };
    // The CPU is full at either count, and only one of them can have filled it.
    answers(&few(5_000_000), "one-queue-hot", LIMITS, &[]);
    let after = report(&few(60_000));
    answers(&after, "one-queue-hot", CALM, &["Little(Total)"]);
    assert_ne!(after.verdict, Verdict::Limited);
}

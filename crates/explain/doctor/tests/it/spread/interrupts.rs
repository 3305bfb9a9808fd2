//! Interrupts and CPUs: `irq-one-cpu`, `irq-collision`, `irq-floating`, `softirq-one-cpu`.

use super::*;

/// Counts of a 12-CPU machine of netutils-linux's tests: eight even queues, all served by CPU 0.
const ONE_CPU: [u64; 8] =
    [5_001_062, 4_927_418, 4_930_975, 4_957_770, 4_973_192, 4_943_144, 5_198_345, 7_138_811];

fn all_on_cpu_0(cpus: usize) -> String {
    let names: Vec<String> = (0..8).map(|queue| format!("eth0-TxRx-{queue}")).collect();
    let counts: Vec<Vec<u64>> = ONE_CPU
        .iter()
        .map(|count| (0..cpus).map(|cpu| if cpu == 0 { *count } else { 0 }).collect())
        .collect();
    let lines: Vec<(u32, &[u64], &str)> = (66..)
        .zip(&counts)
        .zip(&names)
        .map(|((vector, counts), name)| (vector, &counts[..], &name[..]))
        .collect();
    vectors(&lines)
}

#[test]
fn eight_even_queues_on_one_cpu() {
    let finding = one(&report(&all_on_cpu_0(12)), "irq-one-cpu");
    assert_eq!((weight(&finding), finding.interface.as_deref()), (LIMITS, Some("eth0")));
    assert!(quotes(&finding, "eth0-TxRx-7"), "{finding:#?}");
    let expected: Vec<String> =
        (0..8).map(|cpu| format!("echo {cpu} > /proc/irq/{}/smp_affinity_list", 66 + cpu)).collect();
    assert_eq!(commands(&finding, System::Linux), expected);
    assert!(offers(&finding, "CpuEach { busiest: Some(0.1"), "{finding:#?}");
    // The busiest of the CPUs then has 17 % of the work.
    let modelled = modelled(&finding.remedies[0]);
    assert!((5.0..6.3).contains(&modelled.times), "{modelled:?}");
}

#[test]
fn few_interrupts_on_one_cpu_are_a_remark() {
    let text = vectors(&[(40, &[40_000, 0], "eth0-rx-0"), (41, &[50_000, 0], "eth0-rx-1")]);
    assert_eq!(weight(&one(&report(&text), "irq-one-cpu")), CALM);
    let bundle = |more: u64| {
        let later =
            vectors(&[(40, &[40_000 + more, 0], "eth0-rx-0"), (41, &[50_000 + more, 0], "eth0-rx-1")]);
        report(&format!("# rxlane bundle 1\n# sample 1 at 1.0\n{text}# sample 2 at 4.0\n{later}"))
    };
    assert_eq!(weight(&one(&bundle(700), "irq-one-cpu")), CALM);
    assert_eq!(weight(&one(&bundle(9000), "irq-one-cpu")), LIMITS);
}

#[test]
fn more_vectors_than_cpus_take_turns() {
    let commands = commands(&one(&report(&all_on_cpu_0(4)), "irq-one-cpu"), System::Linux);
    assert_eq!(commands[0], "echo 0 > /proc/irq/66/smp_affinity_list");
    assert_eq!(commands[5], "echo 1 > /proc/irq/71/smp_affinity_list");
}

#[test]
fn a_veth_has_no_interrupts() {
    let report =
        report(&format!("$ ethtool -i veth0\ndriver: veth\nversion: 1.0\n{}", queues("veth0", &[9, 9])));
    for id in ["irq-one-cpu", "irq-collision", "irq-floating"] {
        assert_eq!(outcome(&report, id).0, Outcome::DoesNotApply, "{id}");
    }
}

#[test]
fn vectors_with_a_cpu_each_are_in_order() {
    let report = report(&one_each("eth0"));
    for id in ["irq-one-cpu", "irq-collision", "irq-floating"] {
        assert_eq!(outcome(&report, id).0, Outcome::Clear, "{id}");
    }
}

#[test]
fn few_interrupts_and_none() {
    let few = vectors(&[(130, &[1290, 0, 993, 0], "eth0-rx-0"), (131, &[414, 0, 0, 0], "eth0-rx-1")]);
    let want = vec!["cat /proc/interrupts, twice under load".to_owned()];
    for id in ["irq-one-cpu", "irq-collision", "irq-floating"] {
        assert_eq!(outcome(&report(&few), id), (Outcome::InsufficientData, want.clone()), "{id}");
        let none = outcome(&report(&queues("eth0", &[5, 5])), id);
        assert_eq!(none, (Outcome::InsufficientData, vec!["cat /proc/interrupts".to_owned()]), "{id}");
    }
}

/// igb interrupts on every queue each two seconds without traffic: on a machine whose other interface took billions,
/// as one of netutils-linux's tests has it, that is no load.
#[test]
fn an_interface_without_load_is_left_alone() {
    let idle = [(137, &[710_718, 0][..], "eth1-rx-0"), (138, &[691_024, 684][..], "eth1-rx-1")];
    let busy =
        [(128, &[1_902_861_425, 0][..], "eth0-rx-0"), (129, &[134_438, 1_953_585_904][..], "eth0-rx-1")];
    let report_of = report(&vectors(&[busy[0], busy[1], idle[0], idle[1]]));
    assert_eq!(outcome(&report_of, "irq-one-cpu").0, Outcome::Clear);
    // Alone, the same counts are all there is to judge by.
    assert_eq!(outcome(&report(&vectors(&idle)), "irq-one-cpu").0, Outcome::Found);
}

#[test]
fn an_affinity_that_was_set_since_makes_the_counts_history() {
    let text = format!(
        "{}$ cat /proc/irq/40/smp_affinity_list\n0\n$ cat /proc/irq/41/smp_affinity_list\n1\n",
        vectors(&[(40, &[900_000, 0], "eth0-rx-0"), (41, &[900_000, 0], "eth0-rx-1")])
    );
    assert_eq!(outcome(&report(&text), "irq-one-cpu").0, Outcome::InsufficientData);
}

#[test]
fn the_load_decides_how_grave_one_cpu_is() {
    let text = |softirq, idle| format!("{}{}", all_on_cpu_0(12), load(0, softirq, idle));
    assert_eq!(weight(&one(&report(&text(93.0, 3.0)), "irq-one-cpu")), GRAVE);
    assert_eq!(weight(&one(&report(&text(20.0, 75.0)), "irq-one-cpu")), CALM);
}

#[test]
fn two_vectors_share_a_cpu_while_two_cpus_are_free() {
    let text = vectors(&[
        (40, &[9_000_000, 0, 0, 0], "eth0-rx-0"),
        (41, &[8_000_000, 0, 0, 0], "eth0-rx-1"),
        (42, &[0, 9_500_000, 0, 0], "eth0-rx-2"),
    ]);
    let finding = one(&report(&text), "irq-collision");
    assert_eq!(weight(&finding), CALM);
    assert!(quotes(&finding, "eth0-rx-0") && quotes(&finding, "eth0-rx-1"), "{finding:#?}");
    assert_eq!(commands(&finding, System::Linux), ["echo 2 > /proc/irq/41/smp_affinity_list"]);
    // With rates it is now, not once.
    let later = vectors(&[
        (40, &[9_100_000, 0, 0, 0], "eth0-rx-0"),
        (41, &[8_100_000, 0, 0, 0], "eth0-rx-1"),
        (42, &[0, 9_600_000, 0, 0], "eth0-rx-2"),
    ]);
    assert_eq!(weight(&one(&reports(&[&text, &later], None), "irq-collision")), LIMITS);
}

#[test]
fn no_free_cpu_no_collision() {
    let text = vectors(&[
        (40, &[9_000_000, 0], "eth0-rx-0"),
        (41, &[8_000_000, 0], "eth0-rx-1"),
        (42, &[0, 9_500_000], "eth0-rx-2"),
    ]);
    assert_eq!(outcome(&report(&text), "irq-collision").0, Outcome::Clear);
}

#[test]
fn a_vector_on_two_cpus_floats() {
    let text = vectors(&[(128, &[1_422_839, 0, 6_265_748, 0], "eth1")]);
    let finding = one(&report(&text), "irq-floating");
    assert_eq!((weight(&finding), finding.remedies.len()), (CALM, 0));
    assert!(states(&finding, "cpus: [0, 2]"), "{finding:#?}");
    // It stood still between the samples: what it did before is history.
    let later = vectors(&[(128, &[1_422_839, 0, 6_299_748, 0], "eth1")]);
    assert_eq!(outcome(&reports(&[&text, &later], None), "irq-floating").0, Outcome::Clear);
}

fn softirqs(timer: [u64; 4], net_rx: [u64; 4]) -> String {
    let row = |name: &str, counts: [u64; 4]| {
        let counts: Vec<String> = counts.iter().map(|count| format!("{count:>10}")).collect();
        format!("{name:>12}: {}\n", counts.join(" "))
    };
    format!(
        "$ cat /proc/softirqs\n                    CPU0       CPU1       CPU2       CPU3\n{}{}",
        row("TIMER", timer),
        row("NET_RX", net_rx)
    )
}

const TIMER: [u64; 4] = [1_795_378_091, 3_617_740_778, 2_674_553_229, 1_524_071_492];

/// Counts of public notes on a Linux router: 95 % of the receive work on CPU 0.
#[test]
fn one_cpu_does_nearly_all_receive_work() {
    let finding = one(
        &report(&softirqs(TIMER, [3_388_060_179, 60_871_361, 68_145_291, 38_670_323])),
        "softirq-one-cpu",
    );
    assert_eq!((weight(&finding), &finding.interface), (LIMITS, &None));
    assert!(states(&finding, "OneCpuReceives { cpu: 0, share: 0.95"));
    assert!(finding.evidence[0].text.contains("3388060179"));
}

#[test]
fn little_receive_work_is_a_remark() {
    let report_of = report(&softirqs(TIMER, [3_388_060, 6_087, 6_814, 3_867]));
    assert_eq!(weight(&one(&report_of, "softirq-one-cpu")), CALM);
}

#[test]
fn receive_work_that_is_shared_or_too_little() {
    let shared = report(&softirqs(TIMER, [338_806_017, 260_871_361, 268_145_291, 238_670_323]));
    assert_eq!(outcome(&shared, "softirq-one-cpu").0, Outcome::Clear);
    let few = outcome(&report(&softirqs(TIMER, [338, 1, 2, 3])), "softirq-one-cpu");
    assert_eq!(few, (Outcome::InsufficientData, vec!["cat /proc/softirqs, twice under load".to_owned()]));
    let none = outcome(&report(&one_each("eth0")), "softirq-one-cpu");
    assert_eq!(none, (Outcome::InsufficientData, vec!["cat /proc/softirqs".to_owned()]));
}

/// tg3 numbers the vectors of its receive rings from 1 and does not note in a frame which one it came by, so the mask
/// of the first queue holds for all. Counts of eth1 in github.com/strizhechenko/netutils-linux,
/// tests/server-info-show.tests/2xE2690.1mellanox_1emulex.L2.masterconf.
#[test]
fn rps_of_tg3_is_the_first_queues() {
    let counts: Vec<[u64; 4]> =
        [1_200_000, 7_230_497, 3, 5, 4].iter().map(|&count| [count, 0, 0, 0]).collect();
    let names = ["eth1-tx-0", "eth1-rx-1", "eth1-rx-2", "eth1-rx-3", "eth1-rx-4"];
    let lines: Vec<(u32, &[u64], &str)> =
        (166..).zip(&counts).zip(names).map(|((vector, counts), name)| (vector, &counts[..], name)).collect();
    let text = |driver| format!("{}{}", device("eth1", driver, "14e4:165f"), vectors(&lines));
    let hot = one(&report(&text("tg3")), "one-queue-hot");
    assert_eq!(commands(&hot, System::Linux), ["echo e > /sys/class/net/eth1/queues/rx-0/rps_cpus"]);
    let other = one(&report(&text("igb")), "one-queue-hot");
    assert_eq!(commands(&other, System::Linux), ["echo e > /sys/class/net/eth1/queues/rx-1/rps_cpus"]);
}

/// A compiler fills the CPU that takes the interrupts: soft interrupts have 6 per cent of it.
#[test]
fn other_work_that_fills_a_cpu_is_no_receive_limit() {
    let busy =
        "$ top -b -n 1\n%Cpu0  : 83.0 us, 11.0 sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi,  6.0 si,  0.0 st\n";
    let counts = softirqs(TIMER, [3_388_060_179, 60_871_361, 68_145_291, 38_670_323]);
    let finding = one(&report(&format!("{counts}{busy}")), "softirq-one-cpu");
    assert_eq!((weight(&finding), finding.remedies.len()), (CALM, 0));
    assert!(states(&finding, "OtherWork { cpu: 0"), "{finding:#?}");
    let hot = format!("{}{}{busy}", queues("eth0", &[9_000_000, 1, 2, 3]), one_each("eth0"));
    let hot = one(&report(&hot), "one-queue-hot");
    assert_eq!((weight(&hot), hot.remedies.len()), (CALM, 0));
    // A line of a forum's router, where soft interrupts fill the CPU.
    let full =
        "$ top -b -n 1\n%Cpu0  : 10.0 us, 15.0 sy,  0.0 ni,  6.7 id,  0.0 wa,  0.0 hi, 68.3 si,  0.0 st\n";
    let finding = one(&report(&format!("{counts}{full}")), "softirq-one-cpu");
    assert_eq!(weight(&finding), GRAVE);
    assert!(states(&finding, "Load(Full"), "{finding:#?}");
}

#[test]
fn without_a_measure_of_time_nothing_is_little() {
    let text = |counts: &str| {
        let titles = "                    CPU0       CPU1\n";
        format!("$ cat /proc/softirqs\n{titles}      NET_RX: {counts}\n")
    };
    let many = text("3992123412 12034");
    let finding = one(&report(&many), "softirq-one-cpu");
    assert_eq!(weight(&finding), (Severity::Warning, Certainty::Possible));
    assert!(states(&finding, "others: 1"), "{finding:#?}");
    assert!(states(&finding, "WorkOverUnknownTime"), "{finding:#?}");
    assert!(!states(&finding, "WorkIsLittle"), "{finding:#?}");
    let tiny = one(&report(&text("  48123412     12034").replace("48123412", "481234")), "softirq-one-cpu");
    assert_eq!(weight(&tiny), CALM);
    assert!(states(&tiny, "WorkIsLittle"), "{tiny:#?}");
    for counts in [&many, &text("    481234     12034")] {
        let full = one(&report(&format!("{counts}{}", load(0, 99.0, 0.0))), "softirq-one-cpu");
        assert_eq!(weight(&full), GRAVE);
        assert!(!states(&full, "WorkIsLittle"), "{full:#?}");
        assert!(states(&full, "Load(Full"), "{full:#?}");
    }
}

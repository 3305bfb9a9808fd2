//! Interrupts and CPUs: `irq-one-cpu`, `irq-collision`, `irq-floating`, `softirq-one-cpu`.

use super::*;

/// Counts of a 12-CPU machine of netutils-linux's tests: eight even queues, all served by CPU 0.
const ONE_CPU: [u64; 8] =
    [5_001_062, 4_927_418, 4_930_975, 4_957_770, 4_973_192, 4_943_144, 5_198_345, 7_138_811];

fn all_on_cpu_0(cpus: usize) -> String {
    vectors(ONE_CPU.into_iter().zip(0..).map(|(count, queue)| {
        let mut counts = vec![0; cpus];
        counts[0] = count;
        (66 + queue, counts, format!("eth0-TxRx-{queue}"))
    }))
}

#[test]
fn eight_even_queues_on_one_cpu() {
    let finding = one(&all_on_cpu_0(12), "irq-one-cpu");
    assert_eq!(about(&finding), (LIMITS, "eth0"));
    quotes(&finding, "eth0-TxRx-7");
    let expected: Vec<String> =
        (0..8).map(|cpu| format!("echo {cpu} > /proc/irq/{}/smp_affinity_list", 66 + cpu)).collect();
    assert_eq!(commands(&finding, System::Linux), expected);
    offers(&finding, "CpuEach { busiest: Some(0.1");
    // The busiest of the CPUs then has 17 % of the work.
    let modelled = modelled(&finding.remedies[0]);
    assert!((5.0..6.3).contains(&modelled.times), "{modelled:?}");
}

#[test]
fn few_interrupts_on_one_cpu_are_a_remark() {
    let text = vectors([(40, [40_000, 0], "eth0-rx-0"), (41, [50_000, 0], "eth0-rx-1")]);
    weighed(&text, "irq-one-cpu", CALM);
    let bundle = |more: u64| {
        let later = vectors([(40, [40_000 + more, 0], "eth0-rx-0"), (41, [50_000 + more, 0], "eth0-rx-1")]);
        report(&format!("# rxlane bundle 1\n# sample 1 at 1.0\n{text}# sample 2 at 4.0\n{later}"))
    };
    weighed(&bundle(700), "irq-one-cpu", CALM);
    weighed(&bundle(9000), "irq-one-cpu", LIMITS);
}

#[test]
fn more_vectors_than_cpus_take_turns() {
    let commands = commands(&one(&all_on_cpu_0(4), "irq-one-cpu"), System::Linux);
    assert_eq!(commands[0], "echo 0 > /proc/irq/66/smp_affinity_list");
    assert_eq!(commands[5], "echo 1 > /proc/irq/71/smp_affinity_list");
}

#[test]
fn vectors_in_order_few_interrupts_and_none() {
    let few = vectors([(130, [1290, 0, 993, 0], "eth0-rx-0"), (131, [414, 0, 0, 0], "eth0-rx-1")]);
    let veth = format!("$ ethtool -i veth0\ndriver: veth\nversion: 1.0\n{}", queues("veth0", &[9, 9]));
    for id in ["irq-one-cpu", "irq-collision", "irq-floating"] {
        came_to(&one_each("eth0"), id, Outcome::Clear);
        came_to(&veth, id, Outcome::DoesNotApply);
        insufficient(&few, id, &["cat /proc/interrupts, twice under load"]);
        insufficient(&queues("eth0", &[5, 5]), id, &["cat /proc/interrupts"]);
    }
}

/// igb interrupts on every queue each two seconds without traffic: on a machine whose other interface took billions,
/// as one of netutils-linux's tests has it, that is no load.
#[test]
fn an_interface_without_load_is_left_alone() {
    let idle = [(137, &[710_718, 0][..], "eth1-rx-0"), (138, &[691_024, 684][..], "eth1-rx-1")];
    let busy =
        [(128, &[1_902_861_425, 0][..], "eth0-rx-0"), (129, &[134_438, 1_953_585_904][..], "eth0-rx-1")];
    came_to(&vectors(busy.into_iter().chain(idle)), "irq-one-cpu", Outcome::Clear);
    // Alone, the same counts are all there is to judge by.
    came_to(&vectors(idle), "irq-one-cpu", Outcome::Found);
}

#[test]
fn an_affinity_that_was_set_since_makes_the_counts_history() {
    let text = format!(
        "{}$ cat /proc/irq/40/smp_affinity_list\n0\n$ cat /proc/irq/41/smp_affinity_list\n1\n",
        vectors([(40, [900_000, 0], "eth0-rx-0"), (41, [900_000, 0], "eth0-rx-1")])
    );
    came_to(&text, "irq-one-cpu", Outcome::InsufficientData);
}

#[test]
fn the_load_decides_how_grave_one_cpu_is() {
    let text = |softirq, idle| format!("{}{}", all_on_cpu_0(12), load(0, softirq, idle));
    weighed(&text(93.0, 3.0), "irq-one-cpu", GRAVE);
    weighed(&text(20.0, 75.0), "irq-one-cpu", CALM);
}

#[test]
fn two_vectors_share_a_cpu_while_two_cpus_are_free() {
    let text = vectors([
        (40, [9_000_000, 0, 0, 0], "eth0-rx-0"),
        (41, [8_000_000, 0, 0, 0], "eth0-rx-1"),
        (42, [0, 9_500_000, 0, 0], "eth0-rx-2"),
    ]);
    let finding = weighed(&text, "irq-collision", CALM);
    quotes(&finding, "eth0-rx-0");
    quotes(&finding, "eth0-rx-1");
    assert_eq!(commands(&finding, System::Linux), ["echo 2 > /proc/irq/41/smp_affinity_list"]);
    // With rates it is now, not once.
    let later = vectors([
        (40, [9_100_000, 0, 0, 0], "eth0-rx-0"),
        (41, [8_100_000, 0, 0, 0], "eth0-rx-1"),
        (42, [0, 9_600_000, 0, 0], "eth0-rx-2"),
    ]);
    weighed(&reports(&[&text, &later], None), "irq-collision", LIMITS);
    // Without a free CPU there is none.
    let full = vectors([
        (40, [9_000_000, 0], "eth0-rx-0"),
        (41, [8_000_000, 0], "eth0-rx-1"),
        (42, [0, 9_500_000], "eth0-rx-2"),
    ]);
    came_to(&full, "irq-collision", Outcome::Clear);
}

#[test]
fn a_vector_on_two_cpus_floats() {
    let text = vectors([(128, [1_422_839, 0, 6_265_748, 0], "eth1")]);
    let finding = remark(&text, "irq-floating");
    states(&finding, "cpus: [0, 2]");
    // It stood still between the samples: what it did before is history.
    let later = vectors([(128, [1_422_839, 0, 6_299_748, 0], "eth1")]);
    came_to(&reports(&[&text, &later], None), "irq-floating", Outcome::Clear);
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
    let work = softirqs(TIMER, [3_388_060_179, 60_871_361, 68_145_291, 38_670_323]);
    let finding = one(&work, "softirq-one-cpu");
    assert_eq!((weight(&finding), &finding.interface), (LIMITS, &None));
    states(&finding, "OneCpuReceives { cpu: 0, share: 0.95");
    assert!(finding.evidence[0].text.contains("3388060179"));
}

#[test]
fn receive_work_that_is_little_shared_or_too_little() {
    weighed(&softirqs(TIMER, [3_388_060, 6_087, 6_814, 3_867]), "softirq-one-cpu", CALM);
    let shared = softirqs(TIMER, [338_806_017, 260_871_361, 268_145_291, 238_670_323]);
    came_to(&shared, "softirq-one-cpu", Outcome::Clear);
    let few = softirqs(TIMER, [338, 1, 2, 3]);
    insufficient(&few, "softirq-one-cpu", &["cat /proc/softirqs, twice under load"]);
    insufficient(&one_each("eth0"), "softirq-one-cpu", &["cat /proc/softirqs"]);
}

/// tg3 numbers the vectors of its receive rings from 1 and does not note in a frame which one it came by, so the mask
/// of the first queue holds for all. Counts of eth1 in github.com/strizhechenko/netutils-linux,
/// tests/server-info-show.tests/2xE2690.1mellanox_1emulex.L2.masterconf.
#[test]
fn rps_of_tg3_is_the_first_queues() {
    let lines = [(1_200_000, "tx-0"), (7_230_497, "rx-1"), (3, "rx-2"), (5, "rx-3"), (4, "rx-4")];
    let lines =
        (166..).zip(lines).map(|(vector, (count, ring))| (vector, [count, 0, 0, 0], format!("eth1-{ring}")));
    let vectors = vectors(lines);
    let text = |driver| format!("{}{vectors}", device("eth1", driver, "14e4:165f"));
    let hot = one(&text("tg3"), "one-queue-hot");
    assert_eq!(commands(&hot, System::Linux), ["echo e > /sys/class/net/eth1/queues/rx-0/rps_cpus"]);
    let other = one(&text("igb"), "one-queue-hot");
    assert_eq!(commands(&other, System::Linux), ["echo e > /sys/class/net/eth1/queues/rx-1/rps_cpus"]);
}

/// A compiler fills the CPU that takes the interrupts: soft interrupts have 6 per cent of it.
#[test]
fn other_work_that_fills_a_cpu_is_no_receive_limit() {
    let busy =
        "$ top -b -n 1\n%Cpu0  : 83.0 us, 11.0 sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi,  6.0 si,  0.0 st\n";
    let counts = softirqs(TIMER, [3_388_060_179, 60_871_361, 68_145_291, 38_670_323]);
    let finding = remark(&format!("{counts}{busy}"), "softirq-one-cpu");
    states(&finding, "OtherWork { cpu: 0");
    let hot = format!("{}{}{busy}", queues("eth0", &[9_000_000, 1, 2, 3]), one_each("eth0"));
    remark(&hot, "one-queue-hot");
    // A line of a forum's router, where soft interrupts fill the CPU.
    let full =
        "$ top -b -n 1\n%Cpu0  : 10.0 us, 15.0 sy,  0.0 ni,  6.7 id,  0.0 wa,  0.0 hi, 68.3 si,  0.0 st\n";
    let finding = weighed(&format!("{counts}{full}"), "softirq-one-cpu", GRAVE);
    states(&finding, "Load(Full");
}

#[test]
fn without_a_measure_of_time_nothing_is_little() {
    let text = |counts: &str| {
        let titles = "                    CPU0       CPU1\n";
        format!("$ cat /proc/softirqs\n{titles}      NET_RX: {counts}\n")
    };
    let many = text("3992123412 12034");
    let finding = weighed(&many, "softirq-one-cpu", MAYBE);
    states(&finding, "others: 1");
    states(&finding, "WorkOverUnknownTime");
    assert!(!has_fact(&finding, "WorkIsLittle"), "{finding:#?}");
    let tiny = weighed(&text("  48123412     12034").replace("48123412", "481234"), "softirq-one-cpu", CALM);
    states(&tiny, "WorkIsLittle");
    for counts in [&many, &text("    481234     12034")] {
        let full = weighed(&format!("{counts}{}", load(0, 99.0, 0.0)), "softirq-one-cpu", GRAVE);
        assert!(!has_fact(&full, "WorkIsLittle"), "{full:#?}");
        states(&full, "Load(Full");
    }
}

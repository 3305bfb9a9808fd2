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
    let moved = |cpu: u32, vector: u32| format!("echo {cpu} > /proc/irq/{vector}/smp_affinity_list");
    let expected: Vec<String> = (0..8).map(|cpu| moved(cpu, 66 + cpu)).collect();
    let report = report(&all_on_cpu_0(12));
    let linux = format!("=Linux: {}", expected.join(" && "));
    let parts = [&linux, "=on eth0", "eth0-TxRx-7", "offers CpuEach { busiest: Some(0.1"];
    answers(&report, "irq-one-cpu", LIMITS, &parts);
    // The busiest of the CPUs then has 17 % of the work.
    let modelled = modelled(&one(&report, "irq-one-cpu").remedies[0]);
    assert!((5.0..6.3).contains(&modelled.times), "{modelled:?}");
    // More vectors than CPUs take turns.
    let commands = commands(&one(&all_on_cpu_0(4), "irq-one-cpu"), System::Linux);
    assert_eq!((&commands[0], &commands[5]), (&moved(0, 66), &moved(1, 71)));
}

/// Vectors named `eth0-rx-N`, from number 40.
fn receiving<const CPUS: usize>(counts: &[[u64; CPUS]]) -> String {
    vectors((40..).zip(counts).map(|(vector, counts)| (vector, counts, format!("eth0-rx-{}", vector - 40))))
}

#[test]
fn how_much_one_cpu_takes_decides() {
    let id = "irq-one-cpu";
    let few = receiving(&[[40_000, 0], [50_000, 0]]);
    let bundle = |more: u64| {
        let later = receiving(&[[40_000 + more, 0], [50_000 + more, 0]]);
        format!("# rxlane bundle 1\n# sample 1 at 1.0\n{few}# sample 2 at 4.0\n{later}")
    };
    // igb interrupts on every queue each two seconds without traffic: on a machine whose other interface took billions,
    // as one of netutils-linux's tests has it, that is no load. Alone, the same counts are all there is to judge by.
    let idle = [(137, &[710_718, 0][..], "eth1-rx-0"), (138, &[691_024, 684][..], "eth1-rx-1")];
    let busy =
        [(128, &[1_902_861_425, 0][..], "eth0-rx-0"), (129, &[134_438, 1_953_585_904][..], "eth0-rx-1")];
    // An affinity that was set since makes the counts history.
    let set = "$ cat /proc/irq/40/smp_affinity_list\n0\n$ cat /proc/irq/41/smp_affinity_list\n1\n";
    all_answer(&[
        (&few, id, CALM, &[]),
        (&bundle(700), id, CALM, &[]),
        (&bundle(9000), id, LIMITS, &[]),
        (&vectors(busy.into_iter().chain(idle)), id, CLEAR, &[]),
        (&vectors(idle), id, LIMITS, &[]),
        (&(receiving(&[[900_000, 0], [900_000, 0]]) + set), id, LACKS, &[]),
        (&(all_on_cpu_0(12) + &load(0, 93.0, 3.0)), id, GRAVE, &[]),
        (&(all_on_cpu_0(12) + &load(0, 20.0, 75.0)), id, CALM, &[]),
    ]);
}

#[test]
fn vectors_in_order_few_interrupts_and_none() {
    let few = receiving(&[[1290, 0, 993, 0], [414, 0, 0, 0]]);
    let veth = format!("$ ethtool -i veth0\ndriver: veth\nversion: 1.0\n{}", queues("veth0", &[9, 9]));
    for id in ["irq-one-cpu", "irq-collision", "irq-floating"] {
        all_answer(&[
            (&one_each("eth0"), id, CLEAR, &[]),
            (&veth, id, NOT_HERE, &[]),
            (&few, id, LACKS, &["cat /proc/interrupts, twice under load"]),
            (&queues("eth0", &[5, 5]), id, LACKS, &["cat /proc/interrupts"]),
        ]);
    }
}

#[test]
fn vectors_that_share_a_cpu_or_float() {
    let text = receiving(&[[9_000_000, 0, 0, 0], [8_000_000, 0, 0, 0], [0, 9_500_000, 0, 0]]);
    let later = receiving(&[[9_100_000, 0, 0, 0], [8_100_000, 0, 0, 0], [0, 9_600_000, 0, 0]]);
    let floats = |count| vectors([(128, [1_422_839, 0, count, 0], "eth1")]);
    let moved = "=Linux: echo 2 > /proc/irq/41/smp_affinity_list";
    all_answer(&[
        (&text, "irq-collision", CALM, &["eth0-rx-0", "eth0-rx-1", moved]),
        // Without a free CPU there is none.
        (&receiving(&[[9_000_000, 0], [8_000_000, 0], [0, 9_500_000]]), "irq-collision", CLEAR, &[]),
        (&floats(6_265_748), "irq-floating", CALM, &["cpus: [0, 2]", "=remedies: 0"]),
    ]);
    // With rates it is now, not once.
    answers(&reports(&[&text, &later], None), "irq-collision", LIMITS, &[]);
    // Another card's vector shares the CPU, too: both findings move each vector to the same place.
    let shared = vectors([
        (30, &[90_000_000, 0, 0, 0][..], "eth0-rx-0"),
        (31, &[80_000_000, 0, 0, 0][..], "eth0-rx-1"),
        (32, &[0, 70_000_000, 0, 0][..], "eth0-rx-2"),
        (33, &[85_000_000, 0, 0, 0][..], "eth1-rx-0"),
    ]);
    let moved = |cpu: u32, irq: u32| format!("echo {cpu} > /proc/irq/{irq}/smp_affinity_list");
    assert_eq!(commands(&one(&shared, "irq-collision"), System::Linux), [moved(3, 31)]);
    assert_eq!(commands(&one(&shared, "cpu-shared"), System::Linux), [moved(2, 33), moved(3, 31)]);
    // It stood still between the samples: what it did before is history.
    answers(&reports(&[&floats(6_265_748), &floats(6_299_748)], None), "irq-floating", CLEAR, &[]);
}

fn softirqs(net_rx: [u64; 4]) -> String {
    let row = |name: &str, counts: [u64; 4]| {
        let counts: Vec<String> = counts.iter().map(|count| format!("{count:>10}")).collect();
        format!("{name:>12}: {}\n", counts.join(" "))
    };
    let timer = row("TIMER", [1_795_378_091, 3_617_740_778, 2_674_553_229, 1_524_071_492]);
    let titles = "                    CPU0       CPU1       CPU2       CPU3\n";
    format!("$ cat /proc/softirqs\n{titles}{timer}{}", row("NET_RX", net_rx))
}

fn top(cpu_0: &str) -> String {
    format!("$ top -b -n 1\n%Cpu0  : {cpu_0},  0.0 st\n")
}

#[test]
fn one_cpu_that_does_nearly_all_receive_work() {
    let id = "softirq-one-cpu";
    // Counts of public notes on a Linux router: 95 % of the receive work on CPU 0.
    let work = softirqs([3_388_060_179, 60_871_361, 68_145_291, 38_670_323]);
    // A compiler fills the CPU that takes the interrupts: soft interrupts have 6 per cent of it.
    let busy = top("83.0 us, 11.0 sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi,  6.0 si");
    // A line of a forum's router, where soft interrupts fill the CPU.
    let full = top("10.0 us, 15.0 sy,  0.0 ni,  6.7 id,  0.0 wa,  0.0 hi, 68.3 si");
    let busy_queue = queues("eth0", &[9_000_000, 1, 2, 3]) + &one_each("eth0") + &busy;
    // Without timers nobody knows in what time: nothing is little.
    let untimed = |counts: &str| {
        format!("$ cat /proc/softirqs\n                    CPU0       CPU1\n      NET_RX: {counts}\n")
    };
    let (many, tiny) = (untimed("3992123412 12034"), untimed("    481234     12034"));
    let saturated = load(0, 99.0, 0.0);
    all_answer(&[
        (&work, id, LIMITS, &["=on the machine", "OneCpuReceives { cpu: 0, share: 0.95", "3388060179"]),
        (&softirqs([3_388_060, 6_087, 6_814, 3_867]), id, CALM, &[]),
        (&softirqs([338_806_017, 260_871_361, 268_145_291, 238_670_323]), id, CLEAR, &[]),
        (&softirqs([338, 1, 2, 3]), id, LACKS, &["cat /proc/softirqs, twice under load"]),
        (&one_each("eth0"), id, LACKS, &["cat /proc/softirqs"]),
        (&(work.clone() + &busy), id, CALM, &["OtherWork { cpu: 0", "=remedies: 0"]),
        (&busy_queue, "one-queue-hot", CALM, &["=remedies: 0"]),
        (&(work.clone() + &full), id, GRAVE, &["Load(Full"]),
        (&many, id, MAYBE, &["others: 1", "WorkOverUnknownTime", "!WorkIsLittle"]),
        (&tiny, id, CALM, &["WorkIsLittle"]),
        (&(many.clone() + &saturated), id, GRAVE, &["!WorkIsLittle", "Load(Full"]),
        (&(tiny.clone() + &saturated), id, GRAVE, &["!WorkIsLittle", "Load(Full"]),
    ]);
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
    for (driver, queue) in [("tg3", 0), ("igb", 1)] {
        let finding = one(&(device("eth1", driver, "14e4:165f") + &vectors), "one-queue-hot");
        let rps = format!("echo e > /sys/class/net/eth1/queues/rx-{queue}/rps_cpus");
        assert_eq!(commands(&finding, System::Linux), [rps]);
    }
}

/// Rows as they stand in public reports: a router of two CPUs, a RISC-V board without a heading, and an OpenWrt device whose radio
/// shares the CPU of its Ethernet.
#[test]
fn devices_that_share_a_cpu() {
    let id = "cpu-shared";
    let two = |eth1: [u64; 2]| {
        format!(
            "           CPU0       CPU1\n 28:          0 1379468797   PCI-MSI 524288-edge      eth0\n \
             29: {} {}   PCI-MSI 1048576-edge      eth1\n 31:          0      99000   PCI-MSI 3-edge      ahci\n",
            eth1[0], eth1[1]
        )
    };
    let plic =
        "26:   27389481 0 0 0  SiFive PLIC 131 Edge eth0\n27:    2682691 0 0 0  SiFive PLIC 133 Edge eth1\n";
    let radio = "           CPU0       CPU1       CPU2       CPU3\n  8:    2295312    2295297    2295289    2295281  MIPS GIC Local   1  timer\n \
                 14:          0    9718161          0          0  MIPS GIC  68  IPI resched\n \
                 23:   11584496          0          0          0  MIPS GIC  10  1e100000.ethernet\n \
                 26:    3501910          0          0          0  MIPS GIC  11  mt7615e\n";
    let mvneta = " 36: 88123456 0 0 0 armada_370_xp_irq 8 Level mvneta\n 37: 71234567 0 0 0 armada_370_xp_irq 10 Level mvneta\n";
    let usb = "189:   22345678          0     GICv2 189 Level     eth0\n 62:   12345678          0  BRCM STB PCIe MSI 524288 Edge      xhci_hcd\n";
    let set = "$ cat /proc/irq/28/smp_affinity_list\n0\n";
    let moved = "=Linux: echo 0 > /proc/irq/28/smp_affinity_list";
    all_answer(&[
        (
            &two([0, 2_267_923_434]),
            id,
            LIMITS,
            &["cpu: 1", "owners: [\"eth1\", \"eth0\"]", "free: [0]", moved],
        ),
        (&two([2_267_923_434, 0]), id, CLEAR, &[]),
        (&(two([0, 2_267_923_434]) + set), id, CLEAR, &[]),
        (&(two([0, 2_267_923_434]) + &load(1, 20.0, 75.0)), id, CALM, &[]),
        (
            plic,
            id,
            LIMITS,
            &["owners: [\"eth0\", \"eth1\"]", "=Linux: echo 1 > /proc/irq/27/smp_affinity_list"],
        ),
        (radio, id, LIMITS, &["mt7615e", "free: [1, 2, 3]"]),
        (mvneta, id, LIMITS, &["mvneta 36", "offers RpsAtEach", "=Linux: "]),
        (usb, id, LIMITS, &["owners: [\"eth0\", \"xhci_hcd\"]"]),
        (&one_each("eth0"), id, CLEAR, &[]),
        (&queues("eth0", &[5, 5]), id, LACKS, &["cat /proc/interrupts"]),
    ]);
}

/// mtk_eth_soc of MT7622 names the vector that transmits as it names the one that receives.
#[test]
fn vectors_of_one_name_are_no_queues() {
    let text = "           CPU0       CPU1\n142:   13794927          0  MT_SYSIRQ 224 Level     1b100000.ethernet\n\
                143:    1852678          0  MT_SYSIRQ 225 Level     1b100000.ethernet\n";
    all_answer(&[
        (text, "irq-one-cpu", NOT_HERE, &[]),
        (text, "irq-collision", NOT_HERE, &[]),
        (text, "cpu-shared", CLEAR, &[]),
    ]);
}

/// One of eight vectors interrupts: reception has one queue, whatever else the vectors serve.
#[test]
fn one_vector_of_several_is_used() {
    let rows = |other: u64| {
        let rows = (0..8).map(|queue| {
            let count = if queue == 0 { 16_876_872 } else { other };
            format!(" {}:   {count} 0 0 0   PCI-MSI 13474201{queue} Edge      eth2-{queue}\n", 38 + queue)
        });
        "           CPU0       CPU1       CPU2       CPU3\n".to_owned() + &rows.collect::<String>()
    };
    all_answer(&[(&rows(0), "one-queue-hot", MAYBE, &["of: 8"]), (&rows(12), "one-queue-hot", LACKS, &[])]);
}

/// A USB adapter's interrupt is its controller's, and its CPU has no time for the frames of another device.
#[test]
fn rps_leaves_out_cpus_that_serve_busy_devices() {
    let text = "           CPU0       CPU1       CPU2       CPU3\n 11:      53449     171813     129595      87823     GICv2  30 Level     arch_timer\n \
                24:          0    1417932          0          0     GICv2  56 Level     eth0\n \
                25:        334          0          0    4422194     GICv2  99 Level     xhci-hcd:usb1\n";
    answers(text, "single-queue", CALM, &["=Linux: echo 5 > /sys/class/net/eth0/queues/rx-0/rps_cpus"]);
}

/// Counts of eth0's eight vectors and eth2's one on CPU 0 of a 12-CPU machine of netutils-linux's tests.
#[test]
fn what_fills_a_cpu_is_weighed_by_interrupts() {
    let with = |eth2: u64| {
        let queues = ONE_CPU.into_iter().zip(0..).map(|(count, queue)| {
            let mut counts = vec![0; 12];
            counts[0] = count;
            (66 + queue, counts, format!("eth0-TxRx-{queue}"))
        });
        let mut counts = vec![0; 12];
        counts[0] = eth2;
        vectors(queues.chain([(63, counts, "eth2".to_owned())]))
    };
    let billions = with(3_489_881_715);
    let owners = "owners: [\"eth2\", \"eth0\"], shares: [0.98";
    let minor = "MinorPart { cpu: 0, owner: \"eth2\", share: 0.98";
    let rps = "=Linux: echo ffe > /sys/class/net/eth2/queues/rx-0/rps_cpus";
    all_answer(&[
        (&billions, "cpu-shared", LIMITS, &[owners, "MostlyOne", rps, "!smp_affinity"]),
        (&billions, "irq-one-cpu", CALM, &[minor, "offers CpuEach { busiest: None }", "!Modelled"]),
        (&(billions.clone() + &load(0, 99.0, 1.0)), "cpu-shared", GRAVE, &[owners]),
        // What the CPU does for another device remains with it: no forecast by one device's interrupts alone.
        (&with(30_000_000), "irq-one-cpu", LIMITS, &["offers CpuEach { busiest: None }", "!Minor"]),
        (&with(30_000_000), "cpu-shared", LIMITS, &["owners: [\"eth0\", \"eth2\"]", "!MostlyOne"]),
        (&with(1_000_000), "irq-one-cpu", LIMITS, &["offers CpuEach { busiest: Some(0.1"]),
    ]);
    // Eight vectors of one in a hundred each are as busy as one of eight.
    let several = with(400_000_000);
    answers(&several, "cpu-shared", LIMITS, &["owners: [\"eth2\", \"eth0\"]", "!MostlyOne"]);
    // A device whose vectors have a CPU each shares none.
    let spread = vectors((0..4).map(|queue| {
        let mut counts = vec![0; 12];
        counts[queue as usize] = 900_000_000;
        (20 + queue, counts, format!("eth2-rx-{queue}"))
    }));
    let little = billions.lines().filter(|line| !line.ends_with("eth2")).map(|line| line.to_owned() + "\n");
    let text = spread + &little.collect::<String>();
    all_answer(&[(&text, "cpu-shared", CLEAR, &[]), (&text, "irq-one-cpu", CALM, &["MinorPart"])]);
}

/// Counts of a machine of netutils-linux's tests, where vectors that CPU 0 served have moved.
#[test]
fn fewer_free_cpus_than_vectors() {
    let text = vectors([
        (17, [1_087_624, 0, 0, 0], "eth1"),
        (30, [127_355_089, 0, 0, 0], "eth2-0"),
        (31, [120_112_828, 5_482_507, 0, 0], "eth2-1"),
        (32, [121_978_940, 0, 5_524_729, 0], "eth2-2"),
        (33, [122_736_116, 0, 0, 5_465_612], "eth2-3"),
        (41, [15_573_731, 0, 0, 0], "eth0"),
    ]);
    let moved = |cpu: u32, irq: u32| format!("echo {cpu} > /proc/irq/{irq}/smp_affinity_list");
    let finding = one(&text, "cpu-shared");
    // The busiest vectors have a CPU each, what remains goes where there is least, and what is little remains.
    let expected = [moved(1, 32), moved(2, 30), moved(3, 31), moved(3, 41)];
    assert_eq!(commands(&finding, System::Linux), expected);
    let parts = ["by_free: 0.03", "MovedSince", "offers FreeCpus { before: 0.96"];
    answers(&text, "cpu-shared", LIMITS, &parts);
    // Where each vector gets a CPU of its own, that is the effect.
    let two = vectors([(30, [9_000_000, 0, 0], "eth2"), (31, [8_000_000, 0, 0], "eth1")]);
    answers(&two, "cpu-shared", LIMITS, &["by_free: 0.0", "!MovedSince", "offers FreeCpuEach"]);
}

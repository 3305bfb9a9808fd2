//! Boards and their interrupts: names that know no interface, controllers that move none, little CPUs, and OpenWrt's way.
//! The rows are laid out as in public reports, which the tests name, with other counts.

use super::*;

/// Rows of `/proc/interrupts` behind their heading.
fn rows(cpus: u32, lines: &[&str]) -> String {
    let heading: Vec<String> = (0..cpus).map(|cpu| format!("CPU{cpu}")).collect();
    format!("# cat /proc/interrupts\n           {}\n{}\n", heading.join("       "), lines.join("\n"))
}

const FEC: &str = " 61:          0          0          0          0     GICv3 150 Level     30be0000.ethernet\n \
                   63:  911223344          0          0          0     GICv3 152 Level     30be0000.ethernet";
const EDMA: &str = " 24:  544335421          0          0          0     GICv2 266 Level     edma_txcmpl_0\n \
                    30: 1544335421          0          0          0     GICv2 377 Level     edma_rxdesc_0\n \
                    31:          0          0          0          0     GICv2 378 Level     edma_rxdesc_1";

#[test]
fn devices_without_an_interface_share_a_cpu() {
    let id = "cpu-shared";
    let row = |vector: u32, count: u32, name: &str| {
        format!(" {vector}:  {count}  0  0  0  GICv2  {vector} Level  {name}")
    };
    // Armbian's NanoPi, Debian's names of a Raspberry Pi, QSDK of IPQ807x, a LS1046A.
    let stmmac = row(83, 644_112_233, "eth1") + "\n" + &row(84, 5, "eth1:mac");
    let pi = row(30, 100_345_688, "end0")
        + "\n"
        + &row(31, 12, "end0")
        + "\n 40: 83344551 0 0 0  BRCM STB PCIe MSI 524288 Edge xhci_hcd";
    let radio = row(56, 788_334_411, "reo2host-destination-ring1");
    let qman =
        row(90, 88_334_411, "QMan portal 0") + "\n" + &row(91, 77_334_411, "mlx5_comp0@pci:0000:01:00.0");
    all_answer(&[
        (
            &rows(4, &[FEC, &stmmac]),
            id,
            LIMITS,
            &["owners: [\"30be0000.ethernet\", \"eth1\"]", "=Linux: echo 1 > /proc/irq/83/smp_affinity_list"],
        ),
        // The USB controller's interrupt stays; the other moves.
        (
            &rows(4, &[&pi]),
            id,
            LIMITS,
            &["owners: [\"end0\", \"xhci_hcd\"]", "=Linux: echo 1 > /proc/irq/30/smp_affinity_list"],
        ),
        (&rows(4, &[EDMA, &radio]), id, LIMITS, &["reo2host-destination-ring1", "free: [1, 2, 3]"]),
        (&rows(4, &[&qman]), id, LIMITS, &["QMan", "0000:01:00.0"]),
        // A portal for each CPU.
        (
            &rows(
                2,
                &[
                    "121: 433221100 0 ITS-fMSI 230000 Edge dpio.8",
                    "122: 0 333221100 ITS-fMSI 230001 Edge dpio.7",
                ],
            ),
            id,
            CLEAR,
            &[],
        ),
    ]);
}

/// mvpp2 has a vector for each CPU, all of the interface's name; bcmgenet has two, of which one is used.
#[test]
fn vectors_with_the_interfaces_name() {
    let mvpp2 = |counts: [[u32; 2]; 2]| {
        let row = |(at, counts): (usize, [u32; 2])| {
            format!(" {}: {} {}  ICU.f21e0000  {} Level  eth0", 35 + at, counts[0], counts[1], 39 + 4 * at)
        };
        rows(
            2,
            &[
                &counts.into_iter().enumerate().map(row).collect::<Vec<_>>().join("\n"),
                " 39: 2 0 ICU.f21e0000 129 Level eth0-link",
            ],
        )
    };
    let genet = rows(2, &[" 30:  100345688 0 GICv2 189 Level end0", " 31: 12 0 GICv2 190 Level end0"]);
    all_answer(&[
        (&mvpp2([[62_334_411, 0], [0, 53_334_411]]), "single-queue", CLEAR, &[]),
        (&mvpp2([[62_334_411, 0], [0, 53_334_411]]), "irq-one-cpu", CLEAR, &[]),
        (
            &mvpp2([[62_334_411, 0], [53_334_411, 0]]),
            "irq-one-cpu",
            LIMITS,
            &["=Linux: echo 0 > /proc/irq/35/smp_affinity_list && echo 1 > /proc/irq/36/smp_affinity_list"],
        ),
        (&genet, "single-queue", CALM, &["=on end0"]),
    ]);
}

/// A Raspberry Pi 5 (github.com/raspberrypi/linux issue 6077), a Turris Omnia, a board whose PCIe bridge has an MSI controller
/// of its own (github.com/sbwml/builder issue 38), and a kernel that refused.
#[test]
fn an_affinity_that_the_kernel_refuses_is_not_offered() {
    let id = "cpu-shared";
    let pi5 = rows(
        4,
        &[
            "106: 1733445566 0 0 0 rp1_irq_chip   6 Level     eth0",
            "134:  933221144 0 0 0 rp1_irq_chip  36 Edge      xhci-hcd:usb3",
        ],
    );
    let omnia =
        rows(2, &[" 27:  893344556 0 MPIC   8 Level     eth0", " 28:  634455667 0 MPIC  10 Level     eth1"]);
    let bridge = rows(
        4,
        &[
            " 13: 23423344 22343211 12342342 12345533 GICv3  26 Level arch_timer",
            " 95:  433858335 0 0 0   PCI-MSI 524288 Edge      eth1-0",
            " 96:  591530831 0 0 0   PCI-MSI 151519232 Edge      eth0-0",
        ],
    );
    let x86 = bridge.replace("GICv3  26 Level arch_timer", "IO-APIC   2-edge timer");
    let refused = |line: &str| format!("{x86}root@nas:~# echo 2 > /proc/irq/95/smp_affinity\n{line}\n");
    let threads = "echo 1 > /sys/class/net/eth0/threaded";
    all_answer(&[
        (&pi5, id, LIMITS, &["RpsAtEach", "!smp_affinity"]),
        (
            &omnia,
            id,
            LIMITS,
            &["offers Rps {", "echo 2 > /sys/class/net/eth1/queues/rx-0/rps_cpus", "!smp_affinity"],
        ),
        (&bridge, id, LIMITS, &["rps_cpus", "threaded", "!smp_affinity"]),
        (&x86, id, LIMITS, &["=Linux: echo 1 > /proc/irq/95/smp_affinity_list"]),
        (
            &refused("-bash: echo: write error: Input/output error"),
            id,
            LIMITS,
            &["/proc/irq/96/smp_affinity_list", "!irq/95/"],
        ),
        (&refused("ash: write error: I/O error"), id, LIMITS, &["!irq/95/"]),
        // The kernel is too old for threads.
        (&(bridge.clone() + "# uname -r\n5.10.160\n"), id, LIMITS, &["rps_cpus", "!threaded"]),
    ]);
    let several = rows(
        4,
        &[
            " 13: 23423344 22343211 12342342 12345533 GICv3  26 Level arch_timer",
            " 95:  433858335 0 0 0   PCI-MSI 524288 Edge      eth0-0",
            " 96:  591530831 0 0 0   PCI-MSI 524289 Edge      eth0-1",
        ],
    );
    answers(&several, "irq-one-cpu", LIMITS, &[threads, "!smp_affinity"]);
}

/// RK3588 and RK3399 (github.com/StarWhiz/NanoPi-R6S-CPU-Optimization-for-Gigabit-SQM), by capacity, part and frequency.
#[test]
fn a_little_cpu_serves_and_a_big_one_is_idle() {
    let id = "irq-little-cpu";
    let eth = |cpu: usize| {
        let mut counts = ["0"; 6];
        counts[cpu] = "1234567890";
        rows(6, &[&format!(" 24: {}  GICv3  44 Level  eth0", counts.join(" "))])
    };
    let capacities = "# cat /sys/devices/system/cpu/cpu*/cpu_capacity\n414\n414\n414\n414\n1024\n1024\n";
    let paths: String = (0..6)
        .map(|cpu| {
            let khz = if cpu < 4 { 1_416_000 } else { 2_208_000 };
            format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq:{khz}\n")
        })
        .collect();
    let parts: String = (0..6)
        .map(|cpu| {
            format!(
                "processor\t: {cpu}\nBogoMIPS\t: 48.00\nCPU part\t: {}\n\n",
                if cpu < 4 { "0xd03" } else { "0xd08" }
            )
        })
        .collect();
    let alike = "# cat /sys/devices/system/cpu/cpu*/cpu_capacity\n1024\n1024\n1024\n1024\n1024\n1020\n";
    let moved = "=Linux: echo 4 > /proc/irq/24/smp_affinity_list";
    let mpstat = "04:51:04 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
                  04:51:05 AM    0    0.00    0.00    2.00    0.00    0.00   97.00    0.00    0.00    0.00    1.00\n\
                  04:51:05 AM    4    0.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   99.00\n";
    let calm = mpstat.replace("97.00", "12.00").replace("1.00\n04:51:05 AM    4", "86.00\n04:51:05 AM    4");
    let chained = eth(0).replace("GICv3  44 Level", "PCI-MSI 524288 Edge") + "# uname -m\naarch64\n";
    all_answer(&[
        (&(eth(0) + capacities), id, LIMITS, &["of_1024: Some(414)", "big: [4, 5]", moved]),
        (&(eth(3) + &paths), id, LIMITS, &["cpu: 3", moved]),
        (&(eth(0) + &parts), id, LIMITS, &[moved, "CPU part"]),
        (&(eth(0) + capacities + mpstat), id, GRAVE, &["Load(Full", moved]),
        (&(eth(0) + capacities + &calm), id, CALM, &[]),
        (&(chained + capacities), id, LIMITS, &["rps_cpus", "threaded", "!smp_affinity"]),
        (
            &(eth(0) + capacities),
            "single-queue",
            CALM,
            // CPU 4 is to get the interrupts.
            &["=Linux: echo 20 > /sys/class/net/eth0/queues/rx-0/rps_cpus"],
        ),
        (&(eth(4) + capacities), id, CLEAR, &[]),
        (&(eth(0) + alike), id, CLEAR, &[]),
        (&eth(0), id, LACKS, &["grep . /sys/devices/system/cpu/cpu*/cpu_capacity"]),
        (&one_each("eth0"), id, CLEAR, &[]),
        (&queues("eth0", &[5, 5]), id, LACKS, &["cat /proc/interrupts"]),
    ]);
}

/// One plan: `cpu-shared` and `irq-little-cpu` move the same vectors to the same CPUs, before RPS.
#[test]
fn little_and_shared_cpus_have_one_plan() {
    let capacities = |cpus: usize| {
        let all: String = (0..cpus).map(|cpu| if cpu < cpus / 2 { "530\n" } else { "1024\n" }).collect();
        format!("# cat /sys/devices/system/cpu/cpu*/cpu_capacity\n{all}")
    };
    let frequencies: String = (0..6)
        .map(|cpu| {
            let khz = if cpu < 4 { 1_416_000 } else { 1_800_000 + cpu * 100_000 };
            format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq:{khz}\n")
        })
        .collect();
    let rk3588 = rows(
        8,
        &[
            " 90:  489123410 0 0 0 0 0 0 0   ITS-MSI 570949632 Edge      eth1",
            " 92:  471230091 0 0 0 0 0 0 0   ITS-MSI 302514176 Edge      eth2",
        ],
    ) + &capacities(8);
    let rk3399 = rows(
        6,
        &[
            " 28:  391234120 0 0 0 0 0   GICv3  44 Level     end0",
            " 75:  371234110 0 0 0 0 0   ITS-MSI 524288 Edge      xhci_hcd",
            " 80:  361234110 0 0 0 0 0   ITS-MSI 624288 Edge      enp1s0",
        ],
    ) + &frequencies;
    let both = "=Linux: echo 4 > /proc/irq/90/smp_affinity_list && echo 5 > /proc/irq/92/smp_affinity_list";
    let three = "=Linux: echo 4 > /proc/irq/28/smp_affinity_list && echo 5 > /proc/irq/80/smp_affinity_list";
    for id in ["cpu-shared", "irq-little-cpu"] {
        all_answer(&[(&rk3588, id, LIMITS, &[both]), (&rk3399, id, LIMITS, &[three])]);
    }
    let queues = "# ls -d /sys/class/net/eth*/queues/rx-*\n/sys/class/net/eth1/queues/rx-0\n/sys/class/net/eth2/queues/rx-0\n";
    for full in [load(0, 97.0, 1.0), load(0, 100.0, 0.0)] {
        let report = report(&format!("{rk3588}{queues}{full}"));
        let ids: Vec<&str> = report.findings.iter().map(|finding| finding.id).take(4).collect();
        assert_eq!(ids, ["cpu-shared", "irq-little-cpu", "single-queue", "single-queue"]);
        let rps = found(&report, "single-queue").remove(0);
        assert_eq!(commands(&rps, System::Linux), ["echo c0 > /sys/class/net/eth1/queues/rx-0/rps_cpus"]);
    }
}

#[test]
fn openwrt_is_set_up_with_uci() {
    let id = "cpu-shared";
    let mt7621 = rows(
        4,
        &[
            " 23:   11584496 0 0 0  MIPS GIC  10  1e100000.ethernet",
            " 26:    3501910 0 0 0  MIPS GIC  11  mt7615e",
        ],
    );
    let release = |release: &str| format!("DISTRIB_ID='OpenWrt'\nDISTRIB_RELEASE='{release}'\n{mt7621}");
    let set = |value: u32| format!("uci set network.globals.packet_steering='{value}'");
    let steering = |value: u32| format!("network.globals.packet_steering='{value}'\n");
    let all = "PacketSteering { all: true }";
    all_answer(&[
        (
            &release("24.10.2"),
            id,
            LIMITS,
            &[all, &set(2), "uci commit network", "/etc/init.d/packet_steering restart"],
        ),
        (&(release("24.10.2") + &steering(1)), id, LIMITS, &[all, &set(2)]),
        (
            &(release("24.10.2") + &steering(2)),
            id,
            LIMITS,
            &["!uci set", "=Linux: echo 1 > /proc/irq/26/smp_affinity_list"],
        ),
        (&release("SNAPSHOT"), id, LIMITS, &[&set(2)]),
        (&release("23.05.3"), id, LIMITS, &[&set(1)]),
        (&(release("23.05.3") + &steering(1)), id, LIMITS, &["!uci set"]),
        // By the prompt alone, and by kernel.
        (&mt7621.replace("# cat", "root@OpenWrt:~# cat"), id, LIMITS, &[&set(1)]),
        (&(mt7621.replace("# cat", "root@OpenWrt:~# cat") + "# uname -r\n6.6.73\n"), id, LIMITS, &[&set(2)]),
        (&mt7621, id, LIMITS, &["!uci set"]),
    ]);
    let thread = "root@OpenWrt:~# top -n 1\nMem: 201444K used, 42012K free, 1520K shrd, 0K buff, 61432K cached\n\
                  CPU:   0% usr   1% sys   0% nic  74% idle   0% io   0% irq  25% sirq\n\
                  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n 130     2 root     RW       0   0%  25% [napi/mtk_eth-6]\n";
    answers(thread, "napi-thread", MAYBE, &[&set(1)]);
    let single =
        format!("root@OpenWrt:~# uname -r\n6.6.73\n{}", rows(2, &[" 23:   11584496 0 GICv3  10 Level eth0"]));
    answers(&single, "single-queue", CALM, &["offers PacketSteering", &set(2), "rps_cpus"]);
}

/// What a hand-over costs compared with the stack was counted on x86.
#[test]
fn costs_of_another_architecture_are_not_given() {
    let row = |chip: &str| rows(4, &[&format!(" 24: 911223344 0 0 0  {chip}  eth0")]) + &load(0, 97.0, 1.0);
    let rps = |chip: &str| one(&row(chip), "single-queue").remedies[0].model.clone();
    assert!(matches!(rps("PCI-MSI 524288-edge"), Some(Model::Expected(_))));
    assert_eq!(rps("GICv3  44 Level"), None);
    assert_eq!(rps("MIPS GIC  10"), None);
}

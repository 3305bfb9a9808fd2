//! What `top` and `mpstat` say of all CPUs together and of one: `cpus-full`, `softirq-one-cpu`, `queue-thread`; and what a text has
//! to show next. Laid out as BusyBox's, procps' and FreeBSD's top and sysstat's mpstat print; the values are made up.

use crate::findings::*;

const FULL: &str = "cpus-full";
const ONE: &str = "softirq-one-cpu";

/// BusyBox's top, procps/top.c.
fn busybox(idle: u32, softirq: u32, shares: &[u32]) -> String {
    let threads = (0..).zip(shares).map(|(cpu, share)| {
        format!("   {}     2 root     RW       0   0%  {share}% [ksoftirqd/{cpu}]\n", 9 + cpu)
    });
    format!(
        "root@OpenWrt:~# top -b -n 1\nMem: 61232K used, 58840K free, 720K shrd, 4K buff, 17328K cached\n\
         CPU:   0% usr   {}% sys   0% nic  {idle}% idle   0% io   0% irq  {softirq}% sirq\nLoad average: 2.03 1.62 0.91 4/63 3217\n  \
         PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n{}",
        100 - idle - softirq,
        threads.collect::<String>()
    )
}

const PROCPS: &str = "# top -b -n 1\n%Cpu(s):  0.2 us,  1.1 sy,  0.0 ni,  0.4 id,  0.0 wa,  0.0 hi, 98.3 si,  0.0 st\n\
                      MiB Mem :   3912.4 total,   2711.0 free,    412.3 used,    789.1 buff/cache\n";
const TWO: &str = "# cat /proc/interrupts\n           CPU0       CPU1\n 22:  899123111          0  MIPS GIC  10  1e100000.ethernet\n";
const SETTING: &str = "root@OpenWrt:~# uci show firewall\nfirewall.@defaults[0]=defaults\n";

/// Software cannot move work to a CPU that has no time left.
#[test]
fn the_line_of_all_cpus_shows_a_full_machine() {
    let full = busybox(0, 98, &[48, 49]);
    all_answer(&[
        (&full, FULL, GRAVE, &["CpusFull { cpus: None, idle: 0.0, work: 98.0 }", "98% sirq", "ksoftirqd/1"]),
        (&format!("{full}root@OpenWrt:~# nproc\n2\n"), FULL, GRAVE, &["cpus: Some(2)"]),
        (&format!("{PROCPS}$ nproc\n8\n"), FULL, GRAVE, &["cpus: Some(8)", "98.3 si"]),
        // Eight per cent of eight CPUs may be most of one.
        (&format!("{}# nproc\n8\n", busybox(8, 90, &[])), FULL, LACKS, &["cat /proc/stat, twice under load"]),
        (&busybox(24, 74, &[0, 25]), FULL, CLEAR, &[]),
        (&busybox(0, 3, &[]), FULL, CLEAR, &[]),
        // One CPU has a thread that takes all.
        (&busybox(0, 98, &[97]), FULL, LACKS, &[]),
        (&format!("{SETTING}{full}"), "flowtable-off", LIMITS, &["98% sirq", "flow_offloading=1"]),
        (
            &format!(
                "$ sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n$ nft list flowtables\ntable inet a {{\n}}\n{PROCPS}"
            ),
            "flowtable-off",
            LIMITS,
            &["98.3 si"],
        ),
    ]);
    for text in [format!("{TWO}{full}"), format!("{TWO}{SETTING}{PROCPS}")] {
        let report = report(&text);
        assert_eq!(report.findings[0].id, FULL, "{:#?}", report.findings);
        answers(&report, "single-queue", CALM, &["SpreadingUseless", "=remedies: 0"]);
    }
}

#[test]
fn one_full_cpu_by_its_own_line() {
    let mpstat = |busy: &str| {
        format!(
            "$ mpstat -P ALL 1 1\nLinux 6.12.12-amd64 (gw) \t11/28/26 \t_x86_64_\t(4 CPU)\n\n\
             21:14:07     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
             21:14:08     all    0.75    0.00    0.50    0.00    0.00   25.43    0.00    0.00    0.00   73.32\n\
             21:14:08       0    {busy}\n\
             21:14:08       1    1.00    0.00    0.00    0.00    0.00    1.00    0.00    0.00    0.00   98.00\n\
             21:14:08       2    0.00    0.00    1.00    0.00    0.00    0.00    0.00    0.00    0.00   99.00\n"
        )
    };
    let soft = mpstat("0.00    0.00    0.00    0.00    0.00  100.00    0.00    0.00    0.00    0.00");
    let user = mpstat("99.00    0.00    0.00    0.00    0.00    1.00    0.00    0.00    0.00    0.00");
    let top = |first: &str, second: &str| {
        format!(
            "top - 21:14:07 up 12 days,  3:41,  1 user,  load average: 1.21, 1.05, 0.84\n%Cpu0  :  {first},  0.0 st\n%Cpu1  :  {second},  0.0 st\n"
        )
    };
    let full = "0.0 us,  0.3 sy,  0.0 ni,  0.0 id,  0.0 wa,  0.0 hi, 99.7 si";
    let idle = "0.3 us,  0.7 sy,  0.0 ni, 98.0 id,  0.0 wa,  0.0 hi,  1.0 si";
    let spread =
        "$ cat /proc/softirqs\n                    CPU0       CPU1\n      NET_RX:  338806017  360871361\n";
    all_answer(&[
        (&soft, ONE, GRAVE, &["SoftirqFull { cpu: 0, share: 100.0, idle: 0.0, others: 2 }", "100.00"]),
        (&top(full, idle), ONE, GRAVE, &["SoftirqFull { cpu: 0, share: 99.7", "99.7 si"]),
        (&top(idle, full), ONE, GRAVE, &["SoftirqFull { cpu: 1"]),
        (&(spread.to_owned() + &top(full, idle)), ONE, GRAVE, &["SoftirqFull"]),
        (&top(&full.replace("0.0 us", "25.0 us").replace("99.7 si", "74.7 si"), idle), ONE, MAYBE_GRAVE, &[]),
        (&user, ONE, LACKS, &["cat /proc/softirqs"]),
        (&top(idle, idle), ONE, LACKS, &[]),
    ]);
}

/// Without `-H` top adds the threads of a process up.
#[test]
fn a_cpu_that_interrupts_fill_on_freebsd() {
    let id = "queue-thread";
    let text = |processes: &str| {
        format!(
            "last pid: 91021;  load averages:  1.42,  1.11,  0.83  up 21+04:12:09    20:11:34\n\
             CPU 0:  0.0% user,  0.0% nice,  0.8% system, 98.8% interrupt,  0.4% idle\n\
             CPU 1:  0.4% user,  0.0% nice,  1.2% system,  0.0% interrupt, 98.4% idle\n\
             Mem: 92M Active, 411M Inact, 402M Wired, 201M Buf, 2911M Free\n\n{processes}"
        )
    };
    let processes = "  PID USERNAME    THR PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND\n   \
                     11 root          2 155 ki31     0B    64K RUN      0 1982.1 106.00% [idle]\n   \
                     12 root         29 -60    -     0B   464K WAIT     0 411:21  98.80% [intr]\n";
    let threads = "  PID USERNAME    PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND\n   \
                   12 root        -60    -     0B   464K WAIT     0 411:21  98.80% [intr{irq16: nvme0}]\n";
    let fact = "InterruptsFull { cpu: 0, share: 98.8, idle: 0.4, others: 1 }";
    all_answer(&[
        (&text(processes), id, GRAVE, &[fact, "[intr]", "=FreeBsd: top -aSHP"]),
        (&text(""), id, GRAVE, &[fact]),
        (&text(threads), id, CLEAR, &[]),
        (
            &text(processes).replace(" 98.8% interrupt,  0.4% idle", " 48.8% interrupt, 50.4% idle"),
            id,
            LACKS,
            &["top -aSHP"],
        ),
    ]);
    let next = one(&text(processes), "insufficient-data");
    states(&next, "commands: [\"top -aSHP\"");
}

/// The load of each CPU is what other tools show than those that were pasted.
#[test]
fn what_to_paste_next() {
    let router =
        "$ sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n$ nft list flowtables\ntable inet a {\n}\n";
    let procps =
        "$ top -b -n 1\n%Cpu(s): 20.0 us,  5.0 sy,  0.0 ni, 50.0 id,  0.0 wa,  0.0 hi, 25.0 si,  0.0 st\n";
    let channels = "$ ethtool -l eth0\nChannel parameters for eth0:\nPre-set maximums:\nCombined:\t8\nCurrent hardware settings:\nCombined:\t2\n";
    all_answer(&[
        (&format!("{router}{procps}"), "flowtable-off", LACKS, &["mpstat -P ALL 1 1"]),
        (
            &format!("{SETTING}{}", busybox(50, 25, &[])),
            "flowtable-off",
            LACKS,
            &["cat /proc/stat, twice under load"],
        ),
        (SETTING, "flowtable-off", LACKS, &["top -b -n 1"]),
        (channels, "queues-below-cpus", LACKS, &["nproc"]),
    ]);
}

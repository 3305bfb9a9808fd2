//! The collector script: on this Linux under every shell there is, and on a FreeBSD and a NetBSD whose programs
//! answer as the systems' manual pages and sources say (fixtures written from those, addresses from the ranges for
//! documentation).

mod machine;

use crate::read;
use machine::{Machine, output_of, prompts};
use rxlane_host::collector::SCRIPT;
use rxlane_host::{Delta, LogTopic, System};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::{program, require};

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn complaint(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn freebsd() -> Machine {
    let machine = Machine::new("FreeBSD", "14.1-RELEASE-p5");
    let igb0 = "\
igb0: flags=1008943<UP,BROADCAST,RUNNING,PROMISC,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1508
\tdescription: Our ISP
\toptions=48020b8<VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,VLAN_HWCSUM,WOL_MAGIC,NOMAP>
\tether 00:00:5e:00:53:01
\tinet 192.0.2.1 netmask 0xffffff00 broadcast 192.0.2.255
\tinet6 fe80::200:5eff:fe00:5301%igb0 prefixlen 64 scopeid 0x1
\tmedia: Ethernet autoselect (1000baseT <full-duplex>)
\tstatus: active
\tnd6 options=23<PERFORMNUD,ACCEPT_RTADV,AUTO_LINKLOCAL>";
    let vlan7 = "\
vlan7: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 00:00:5e:00:53:01
\tgroups: vlan
\tvlan: 7 vlanproto: 802.1q vlanpcp: 0 parent interface: igb0
\tmedia: Ethernet autoselect (1000baseT <full-duplex>)
\tstatus: active";
    let wlan0 = "\
wlan0: flags=8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> metric 0 mtu 1500
\tssid \"Family Doe\" channel 6 (2437 MHz 11g) bssid 00:00:5e:00:53:07
\tstatus: associated";
    let all = format!("{igb0}\n{vlan7}\n{wlan0}");
    machine.program(
        "ifconfig",
        &[("-l", "igb0 lo0 vlan7 wlan0"), ("-a", &all), ("igb0", igb0), ("vlan7", vlan7), ("wlan0", wlan0)],
    );
    machine.program(
        "sysctl",
        &[
            ("hw.ncpu hw.model", "hw.ncpu: 4\nhw.model: AMD GX-412TC SOC"),
            ("net.isr", "net.isr.numthreads: 1\nnet.isr.dispatch: direct\nnet.isr.bindthreads: 0"),
            (
                "net.inet.ip.intr_queue_maxlen net.inet.ip.forwarding net.route.netisr_maxqlen",
                "net.inet.ip.intr_queue_maxlen: 256\nnet.inet.ip.forwarding: 1",
            ),
            ("net.inet.ip.intr_queue_drops", "net.inet.ip.intr_queue_drops: 17"),
            ("kern.cp_times", "kern.cp_times: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"),
            ("-n dev.igb.0.%driver", "igb"),
            (
                "dev.igb.0",
                "\
dev.igb.0.queue_rx_0.rx_packets: 12345
dev.igb.0.serial_number: A1B2C3
dev.igb.0.%pnpinfo: vendor=0x8086 device=0x157b subvendor=0x8086 subdevice=0x0000 class=0x020000
dev.igb.0.%location: slot=0 function=0 dbsf=pci0:1:0:0 handle=\\_SB_.PCI0.BR0E.H000
dev.igb.0.%desc: Intel(R) I210 Flashless (Copper)",
            ),
        ],
    );
    machine.program(
        "vmstat",
        &[(
            "-i",
            "interrupt                          total       rate
cpu0:timer                       1000000        211
irq264: igb0:rxq0              889032238        103
irq265: igb0:rxq1                     12          0
irq266: igb0:link                      9          0
irq300: ahci0                  113723179         13
Total                         1003755438        327",
        )],
    );
    machine.program(
        "cpuset",
        &[
            ("-g -x 264", "irq 264 mask: 0"),
            ("-g -x 265", "irq 265 mask: 1"),
            ("-g -x 266", "irq 266 mask: 0, 1, 2, 3"),
        ],
    );
    machine.program("netstat", &[
        ("-Q", "Configuration:
Setting                        Current        Limit
Thread count                         1            1
Dispatch policy                 direct          n/a"),
        ("-i -b -d -n -W", "\
Name    Mtu Network             Address                 Ipkts Ierrs Idrop     Ibytes    Opkts Oerrs     Obytes  Coll  Drop
igb0   1508 <Link#1>            00:00:5e:00:53:01   123456789     0    42 9876543210 98765432     0 1234567890     0     0
igb0      - 192.0.2.0/24        192.0.2.1                1234     -     -      99999     1234     -      99999     -     -
igb0      - fe80::%igb0/64      fe80::200:5eff:fe00:5301%igb0   0     -     -          0        2     -        152     -     -
lo0   16384 <Link#2>            lo0                         0     0     0          0        0     0          0     0     0"),
    ]);
    machine.program("pciconf", &[
        ("-l", "igb0@pci0:1:0:0:\tclass=0x020000 rev=0x03 hdr=0x00 vendor=0x8086 device=0x157b subvendor=0x8086 subdevice=0x0000
ahci0@pci0:0:17:0:\tclass=0x010601 rev=0x39 hdr=0x00 vendor=0x1022 device=0x7801 subvendor=0x1022 subdevice=0x7801"),
        ("-lv", "igb0@pci0:1:0:0:\tclass=0x020000 rev=0x03 hdr=0x00 vendor=0x8086 device=0x157b subvendor=0x8086 subdevice=0x0000
    vendor     = 'Intel Corporation'
    device     = 'I210 Gigabit Network Connection'
    class      = network
    subclass   = ethernet
ahci0@pci0:0:17:0:\tclass=0x010601 rev=0x39 hdr=0x00 vendor=0x1022 device=0x7801 subvendor=0x1022 subdevice=0x7801
    vendor     = 'Advanced Micro Devices, Inc. [AMD]'"),
    ]);
    machine.program(
        "ps",
        &[(
            "-axo pid,pcpu,comm",
            "  PID %CPU COMMAND
    1  0.0 init
  777 98.6 ppp
  778  0.0 sshd",
        )],
    );
    machine.program(
        "top",
        &[(
            "-b -S -H -I -P -u -d 2 -s 1 40",
            "\
last pid:  1234;  load averages:  0.10,  0.10,  0.10  up 1+02:03:04    12:34:56
CPU 0:  0.0% user,  0.0% nice,  0.0% system,  0.0% interrupt,  0.0% idle

  PID    UID     PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND
   12      0     -92    -     0B   640K CPU0     0  12:34   0.00% intr{irq264: igb0:rxq0}
last pid:  1234;  load averages:  0.10,  0.10,  0.10  up 1+02:03:05    12:34:57
CPU 0:  0.4% user,  0.0% nice,  1.2% system, 96.4% interrupt,  2.0% idle

  PID    UID     PRI NICE   SIZE    RES STATE    C   TIME    WCPU COMMAND
   12      0     -92    -     0B   640K CPU0     0  12:34  96.40% intr{irq264: igb0:rxq0}
 4242   1001      20    0    20M    10M select   1   0:01   3.00% diary-of-jane
  777      0      20    0    14M  3000K select   2   1:23   2.00% ppp",
        )],
    );
    machine.program(
        "dmesg",
        &[(
            "",
            "\
igb0: <Intel(R) I210 Flashless (Copper)> mem 0xfe600000-0xfe61ffff at device 0.0 on pci1
igb0: Ethernet address: 00:00:5e:00:53:01
igb0: link state changed to UP
ugen0.2: <Jane's phone> reset
igb0: Watchdog timeout -- resetting
pid 99 (diary-of-jane), jid 0, uid 1001: exited on signal 11",
        )],
    );
    machine
}

/// Nobody's addresses, names or secrets are in `bundle`.
fn assert_redacted(bundle: &str) {
    for secret in [
        "5e:00:53",
        "5eff",
        "192.0.2",
        "fe80",
        "Our ISP",
        "Family Doe",
        "A1B2C3",
        "gateway",
        "example.net",
        "diary-of-jane",
        "Jane",
        "sshd",
    ] {
        assert!(!bundle.contains(secret), "{secret} is in:\n{bundle}");
    }
}

#[test]
fn freebsd_gives_a_bundle_without_addresses() {
    let bundle = text(&freebsd().collect(&["-s", "0"]));
    assert_redacted(&bundle);
    assert!(bundle.starts_with("# rxlane bundle 1\n") && bundle.ends_with("\n# end\n"), "{bundle}");
    assert!(bundle.contains("\n# system: freebsd\n$ uname -sr\nFreeBSD 14.1-RELEASE-p5\n"), "{bundle}");
    assert_eq!(
        prompts(&bundle),
        [
            "uname -sr",
            "sysctl hw.ncpu hw.model",
            "sysctl net.isr",
            "sysctl net.inet.ip.intr_queue_maxlen net.inet.ip.forwarding net.route.netisr_maxqlen",
            "ifconfig -a",
            "pciconf -lv",
            "cpuset -g -x 264",
            "cpuset -g -x 265",
            "cpuset -g -x 266",
            "dmesg",
            "ps -axo pid,pcpu,comm",
            "top -b -S -H -I -P -u -d 2 -s 1 40",
            "vmstat -i",
            "netstat -Q",
            "netstat -i -b -d -n -W",
            "sysctl kern.cp_times",
            "sysctl net.inet.ip.intr_queue_drops",
            "sysctl dev.igb.0",
        ]
    );
    assert!(
        output_of(&bundle, "ifconfig -a").contains(&"\tmedia: Ethernet autoselect (1000baseT <full-duplex>)")
    );
    assert!(
        output_of(&bundle, "ifconfig -a")
            .contains(&"\tvlan: 7 vlanproto: 802.1q vlanpcp: 0 parent interface: igb0")
    );
    assert_eq!(output_of(&bundle, "netstat -i -b -d -n -W").len(), 3);
    assert_eq!(output_of(&bundle, "pciconf -lv").len(), 5);
    assert_eq!(
        output_of(&bundle, "dmesg"),
        ["igb0: link state changed to UP", "igb0: Watchdog timeout -- resetting"]
    );
    assert_eq!(output_of(&bundle, "ps -axo pid,pcpu,comm"), ["  PID %CPU COMMAND", "  777 98.6 ppp"]);
    let top = output_of(&bundle, "top -b -S -H -I -P -u -d 2 -s 1 40");
    assert_eq!(top.iter().filter(|line| line.contains("igb0:rxq0")).count(), 1, "{top:?}");
    assert!(top.iter().any(|line| line.contains("96.40% intr{irq264: igb0:rxq0}")), "{top:?}");
    let device = output_of(&bundle, "sysctl dev.igb.0");
    assert!(device.contains(&"dev.igb.0.queue_rx_0.rx_packets: 12345"), "{device:?}");
    assert!(device.iter().any(|line| line.contains("dbsf=pci0:1:0:0")), "{device:?}");
}

#[test]
fn what_freebsd_says_is_understood() {
    let snapshot = read(&text(&freebsd().collect(&["-s", "0"])));
    assert_eq!(snapshot.system.map(|fact| fact.value), Some(System::FreeBsd));
    assert_eq!(snapshot.cpus.online.map(|fact| fact.value), Some(4));
    let igb0 = snapshot.interfaces.iter().find(|interface| interface.name == "igb0").expect("igb0");
    assert_eq!(igb0.mtu.as_ref().map(|mtu| *mtu.get()), Some(1508));
    assert_eq!(igb0.pci.as_ref().map(|fact| fact.value.as_str()), Some("8086:157b"));
    let vlan7 = snapshot.interfaces.iter().find(|interface| interface.name == "vlan7").expect("vlan7");
    assert_eq!(vlan7.parent.as_ref().map(|fact| fact.value.as_str()), Some("igb0"));
    let netisr = snapshot.netisr.expect("netisr");
    assert_eq!(netisr.dispatch.map(|dispatch| dispatch.get().clone()), Some("direct".to_owned()));
    let of_igb0 =
        snapshot.interrupts.iter().filter(|interrupt| interrupt.interface.as_deref() == Some("igb0"));
    let affinities: Vec<usize> =
        of_igb0.filter_map(|interrupt| interrupt.affinity.as_ref().map(|cpus| cpus.get().len())).collect();
    assert_eq!(affinities, [1, 1, 4]);
    let ppp = snapshot.processes.iter().find(|process| process.name == "ppp").expect("ppp");
    assert_eq!(ppp.pid, Some(777));
    assert!(snapshot.log.iter().any(|line| line.topic == LogTopic::Reset), "{:?}", snapshot.log);
}

#[test]
fn what_this_linux_says_is_understood() {
    let output =
        Command::new("/bin/sh").args(["-c", SCRIPT, "collector.sh", "-s", "1"]).output().expect("sh");
    let snapshot = read(&text(&output));
    assert_eq!(snapshot.system.map(|fact| fact.value), Some(System::Linux));
    assert!(
        snapshot.interval.is_some_and(|interval| interval >= Duration::from_secs(1)),
        "{:?}",
        snapshot.interval
    );
    assert!(!snapshot.interrupts.is_empty());
    assert!(!snapshot.softirqs.is_empty());
    let counted_twice = snapshot.softirqs.values().flat_map(|cpus| cpus.values());
    assert!(counted_twice.clone().count() > 0);
    assert!(counted_twice.clone().all(|counter| counter.delta() != Delta::OneSample));
}

#[test]
fn freebsd_says_what_it_cannot_read_and_goes_on() {
    let machine = freebsd();
    fs::remove_file(machine.folder().join("pciconf")).expect("it was there");
    machine.program("dmesg", &[]);
    let bundle = text(&machine.collect(&["-s", "0", "vlan7"]));
    assert_eq!(output_of(&bundle, "pciconf -lv"), ["# not read: pciconf is not installed"]);
    assert_eq!(output_of(&bundle, "dmesg"), ["# not read: dmesg: : unknown"]);
    // The parent of the VLAN device named is looked at, too.
    assert!(prompts(&bundle).contains(&"sysctl dev.igb.0"), "{bundle}");
    assert!(bundle.ends_with("\n# end\n"), "{bundle}");
}

fn netbsd() -> Machine {
    let machine = Machine::new("NetBSD", "10.0");
    let wm0 = "\
wm0: flags=0x8843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tcapabilities=0x7ff80<TSO4,IP4CSUM_Rx,IP4CSUM_Tx,TCP4CSUM_Rx>
\tec_capabilities=0x17<VLAN_MTU,VLAN_HWTAGGING,JUMBO_MTU,EEE>
\taddress: 00:00:5e:00:53:01
\tmedia: Ethernet autoselect (1000baseT full-duplex)
\tstatus: active
\tinet6 fe80::200:5eff:fe00:5301%wm0/64 flags 0 scopeid 0x1
\tinet 192.0.2.1/24 broadcast 192.0.2.255 flags 0";
    machine.program("ifconfig", &[("-l", "wm0 lo0"), ("-a", wm0), ("wm0", wm0)]);
    machine.program(
        "sysctl",
        &[
            ("hw.ncpu hw.model", "hw.model = Intel 686-class\nhw.ncpu = 2"),
            ("net.inet.ip.forwarding", "net.inet.ip.forwarding = 1"),
            (
                "net.inet.ip.ifq",
                "net.inet.ip.ifq.len = 0\nnet.inet.ip.ifq.maxlen = 256\nnet.inet.ip.ifq.drops = 9",
            ),
            ("kern.cp_time", "kern.cp_time: user = 1, nice = 0, sys = 2, intr = 3, idle = 4"),
            ("hw.bge", "hw.bge.rx_lvl = 0"),
        ],
    );
    machine.program(
        "vmstat",
        &[
            ("-i", "interrupt                                     total     rate\nioapic0 pin 16                                12345       10\nTotal                                         12345       10"),
            ("-e", "event                                         total     rate type\nvmem static_bt_inuse                            200        0 misc\nwm0 rxq00 intr                                   77        0 intr"),
        ],
    );
    machine.program(
        "netstat",
        &[
            (
                "-i -d -n",
                "\
Name  Mtu   Network       Address              Ipkts Ierrs    Opkts Oerrs Colls Drops
wm0   1500  <Link>        00:00:5e:00:53:01    12345     0    23456     0     0     0
wm0   1500  192.0.2/24    192.0.2.1            12345     0    23456     0     0     0",
            ),
            (
                "-i -b -n",
                "\
Name  Mtu   Network       Address                 Ibytes     Obytes
wm0   1500  <Link>        00:00:5e:00:53:01     12345678   23456789",
            ),
            ("-q", "arpintrq:\n\tqueue length: 0\n\tmaximum queue length: 50\n\tpackets dropped: 0"),
        ],
    );
    machine.program("ps", &[("-axo pid,pcpu,comm", "  PID %CPU COMMAND\n  300 55.0 pppd\n  778  0.0 sshd")]);
    machine.program(
        "dmesg",
        &[("", "wm0: failed on len 52?\nwm0: device timeout (txfree 4096 txsfree 64 txnext 0)\nsd0: reset")],
    );
    machine
}

#[test]
fn netbsd_takes_two_samples() {
    let started = Instant::now();
    let bundle = text(&netbsd().collect(&["-s", "1"]));
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert_redacted(&bundle);
    assert!(bundle.contains("\n# system: netbsd\n"), "{bundle}");
    let samples: Vec<f64> = bundle
        .lines()
        .filter_map(|line| line.strip_prefix("# sample ")?.split_once(" at ")?.1.parse().ok())
        .collect();
    assert!(matches!(samples[..], [first, second] if second > first), "{samples:?}");
    let counters = [
        "vmstat -i",
        "vmstat -e",
        "netstat -i -d -n",
        "netstat -i -b -n",
        "netstat -q",
        "sysctl net.inet.ip.ifq",
        "sysctl net.inet6.ip6.ifq",
        "sysctl kern.cp_time",
        "sysctl hw.bge",
    ];
    let asked = prompts(&bundle);
    let (_, sampled) = asked.split_at(asked.len() - 2 * counters.len());
    assert_eq!(sampled, [counters, counters].concat());
    assert_eq!(
        output_of(&bundle, "sysctl net.inet6.ip6.ifq"),
        ["# not read: sysctl: net.inet6.ip6.ifq: unknown"]
    );
    assert_eq!(output_of(&bundle, "vmstat -e").len(), 2);
    assert_eq!(output_of(&bundle, "dmesg").len(), 2);
}

#[test]
fn a_wrong_call_prints_no_bundle() {
    let machine = freebsd();
    assert!(
        complaint(&machine.collect(&["em7"]), 2).contains("there is no interface em7; there are: igb0 lo0")
    );
    assert!(complaint(&machine.collect(&["$(id)"]), 2).contains("not the name of an interface"));
    assert!(complaint(&machine.collect(&["-s", "1.5"]), 2).contains("whole seconds"));
    assert!(complaint(&machine.collect(&["-x"]), 2).contains("Usage: sh collector.sh"));
    assert!(complaint(&Machine::new("Plan9", "4").collect(&[]), 3).contains("Plan9 is not known here"));
    fs::remove_file(machine.folder().join("awk")).expect("it was there");
    assert!(complaint(&machine.collect(&[]), 3).contains("nothing could be redacted"));
    let help = machine.collect(&["-h"]);
    assert!(text(&help).starts_with("Usage: sh collector.sh [-s SECONDS] [INTERFACE...]"));
}

#[test]
fn a_name_is_no_pattern_for_files() {
    let machine = freebsd();
    machine.program("ifconfig", &[("-l", "igb0 * [a-z]* lo0")]);
    let complaint = complaint(&machine.collect(&["em7"]), 2);
    assert!(complaint.contains("there are: igb0 * [a-z]* lo0"), "{complaint}");
}

#[test]
fn zeros_before_the_seconds_make_no_octal_number() {
    let machine = netbsd();
    machine.program("sleep", &[("1", ""), ("0.05", "")]);
    let output = machine.collect(&["-s", "08"]);
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(complaints.contains("waiting 8 s"), "{complaints}");
    assert!(text(&output).contains("# sample 2 at"), "{complaints}");
}

#[test]
fn other_names_of_an_interface_are_left_out() {
    let Some(at) = SCRIPT.find("without_altnames() {") else { panic!("no such function") };
    let function = SCRIPT.get(at..).and_then(|rest| rest.lines().next()).expect("one line");
    let link = "2: eth0: <UP> mtu 1500\n    link/ether (mac)\n    altname enx00005e005301\n";
    let program = format!("{function}\nwithout_altnames <<'END'\n{link}END\n");
    let output = Command::new("sh").args(["-c", &program]).output().expect("sh");
    assert_eq!(text(&output), "2: eth0: <UP> mtu 1500\n    link/ether (mac)\n");
}

/// The shells of Debian, of routers, of BSDs' kin; each runs a file.
fn shells() -> Vec<Vec<String>> {
    [
        ("dash", &[][..]),
        ("bash", &["--posix"]),
        ("busybox", &["ash"]),
        ("mksh", &[]),
        ("yash", &["-o", "posix"]),
    ]
    .iter()
    .filter_map(|(name, arguments)| {
        let path = require(name, program(name))?.to_string_lossy().into_owned();
        Some([path].into_iter().chain(arguments.iter().map(|&word| word.to_owned())).collect())
    })
    .collect()
}

fn addresses_of_this_machine() -> Vec<String> {
    let folder = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    folder
        .filter_map(|entry| fs::read_to_string(entry.path().join("address")).ok())
        .map(|address| address.trim().to_owned())
        .filter(|address| address.len() == 17)
        .collect()
}

#[test]
fn this_linux_gives_the_same_bundle_under_every_shell() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("collector.sh");
    fs::write(&file, SCRIPT).expect("the script");
    let mut first: Option<Vec<String>> = None;
    for shell in shells() {
        let run = |arguments: &[&str]| {
            Command::new(&shell[0]).args(&shell[1..]).args(arguments).output().expect("a shell")
        };
        let path = file.to_str().expect("UTF-8");
        assert!(run(&["-n", path]).status.success(), "{shell:?}");
        let output = run(&[path, "-s", "1"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.lines().all(|line| line.starts_with("collector: ")), "{shell:?}: {said}");
        let bundle = text(&output);
        assert!(bundle.starts_with("# rxlane bundle 1\n") && bundle.ends_with("\n# end\n"), "{bundle}");
        let samples = bundle.lines().filter(|line| line.starts_with("# sample ")).count();
        assert_eq!(samples, 2, "{bundle}");
        for address in addresses_of_this_machine() {
            assert!(!bundle.to_lowercase().contains(&address), "{address} is in:\n{bundle}");
        }
        let interrupts = prompts(&bundle).iter().filter(|prompt| **prompt == "cat /proc/interrupts").count();
        assert_eq!(interrupts, 2, "{bundle}");
        // BusyBox's shell prefers its own ip to the one on the path.
        if !shell.contains(&"ash".to_owned()) {
            let prompts: Vec<String> = prompts(&bundle).into_iter().map(str::to_owned).collect();
            assert_eq!(*first.get_or_insert_with(|| prompts.clone()), prompts, "{shell:?}");
        }
    }
}

#[test]
fn the_script_may_come_by_standard_input() {
    let mut shell = Command::new("/bin/sh")
        .args(["-s", "--", "-s", "0", "lo"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("sh");
    let mut input = shell.stdin.take().expect("standard input");
    input.write_all(SCRIPT.as_bytes()).expect("the script");
    drop(input);
    let bundle = text(&shell.wait_with_output().expect("sh"));
    assert!(
        bundle.ends_with("\n# end\n") && prompts(&bundle).contains(&"cat /sys/class/net/lo/mtu"),
        "{bundle}"
    );
}

/// A router whose ip and ps are BusyBox's, without ethtool; interfaces are those of the machine the test runs on.
#[test]
fn a_linux_without_ethtool_says_so_and_tells_the_rest() {
    let machine = Machine::new("Linux", "6.6.73");
    machine.program(
        "ip",
        &[(
            "link",
            "\
5: wan: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1508 qdisc mq qlen 1000
    link/ether 00:00:5e:00:53:01 brd ff:ff:ff:ff:ff:ff
    alias Family Doe",
        )],
    );
    machine.program("sysctl", &[]);
    machine.program(
        "dmesg",
        &[(
            "",
            "\
[    5.1] mtk_soc_eth 15100000.ethernet lo: Link is Up - 1Gbps/Full - flow control rx/tx
[    6.0] wifi: reset of diary-of-jane
[    7.0] eth9: partial checksum but proto=88a8!",
        )],
    );
    let bundle = text(&machine.collect(&["-s", "0", "lo"]));
    assert_redacted(&bundle);
    assert_eq!(
        output_of(&bundle, "ethtool"),
        ["# not read: ethtool is not installed (opkg install ethtool, apt install ethtool)"]
    );
    assert_eq!(output_of(&bundle, "ip link").last(), Some(&"    link/ether (mac) brd (mac)"));
    let log = output_of(&bundle, "dmesg");
    assert!(
        matches!(log[..], [up, partial] if up.contains("Link is Up") && partial.contains("proto=88a8")),
        "{log:?}"
    );
    assert!(!output_of(&bundle, "cat /proc/interrupts").is_empty(), "{bundle}");
    assert!(!output_of(&bundle, "cat /proc/cpuinfo").is_empty(), "{bundle}");
    assert_eq!(output_of(&bundle, "ps -eo pid,pcpu,comm")[0], "    PID %CPU COMMAND");
}

#[test]
fn an_output_longer_than_an_argument_is_read_under_every_shell() {
    let machine = Machine::new("Linux", "6.6.73");
    // Linux gives a program no argument of more than 128 KiB (MAX_ARG_STRLEN).
    let log: String =
        (0..4096).map(|n| format!("[ {n}.0] eth0: partial checksum but proto=88a8, {n:030}\n")).collect();
    assert!(log.len() > 2 << 17);
    machine.program("dmesg", &[("", &log)]);
    // BusyBox's shell prefers its own dmesg to the one on the path.
    for shell in shells().into_iter().filter(|shell| !shell.contains(&"ash".to_owned())) {
        let output = machine.collector_under(&shell, &["-s", "0", "lo"]).output().expect("a shell");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.lines().all(|line| line.starts_with("collector: ")), "{shell:?}: {said}");
        let bundle = text(&output);
        let last = output_of(&bundle, "dmesg").last().map(|line| line.to_string()).unwrap_or_default();
        assert!(last.starts_with("[ 4095.0] "), "{shell:?}: {last}");
    }
}

#[test]
fn shellcheck_finds_nothing() {
    let Some(shellcheck) = require("shellcheck", program("shellcheck")) else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/collector/collector.sh");
    let output = Command::new(shellcheck).args(["-s", "sh"]).arg(script).output().expect("shellcheck");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn ended_in_the_middle_it_leaves_nothing_behind() {
    let machine = netbsd();
    let mut child =
        machine.collector(&["-s", "60"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sh");
    let complaints = BufReader::new(child.stderr.take().expect("standard error"));
    let waits = complaints.lines().map_while(Result::ok).any(|line| line.contains("waiting"));
    assert!(waits, "it never came to wait");
    child.kill().expect("it runs");
    child.wait().expect("it ended");
    // Standard output ends when the last process that has it is gone.
    let killed = Instant::now();
    let mut rest = String::new();
    child.stdout.take().expect("standard output").read_to_string(&mut rest).expect("UTF-8");
    assert!(killed.elapsed() < Duration::from_secs(20), "it went on for {:?}", killed.elapsed());
    assert!(!rest.contains("# end"), "{rest}");
}

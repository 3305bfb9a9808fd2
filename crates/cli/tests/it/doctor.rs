//! `rxlane doctor` on texts: verdicts and exit codes, JSON, the page, wrong usage.

use crate::run::{Ended, Report, rxlane};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// One queue of two takes all; the figures are of pcengines/apu2-documentation issue 190.
const ONE_QUEUE: &str = "$ ethtool -S enp1s0 | grep rx_queue\n     rx_queue_0_packets: 16630368449\n     rx_queue_0_drops: 0\n     \
                   rx_queue_1_packets: 0\n     rx_queue_1_drops: 0\n";
/// Four queues with few flows; the figures are of netdata issue 17015.
const UNEVEN: &str = "NIC statistics:\n     rx_queue_0_packets: 77805\n     rx_queue_1_packets: 341999\n     \
                      rx_queue_2_packets: 24064\n     rx_queue_3_packets: 156304\n";

fn written(directory: &TempDir, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn doctor(from: &Path, more: &[&str]) -> Output {
    rxlane().arg("doctor").arg("--from").arg(from).args(more).output()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_limited_path_is_exit_1_with_evidence() {
    let directory = TempDir::new().unwrap();
    let input = written(&directory, "paste.txt", ONE_QUEUE);
    let output = doctor(&input, &[]);
    let text = stdout(&output);
    output.ends(1);
    assert!(text.starts_with("Bottleneck: queue (the receive queues) of enp1s0: "), "{text}");
    assert!(text.contains("| rx_queue_0_packets: 16630368449   ethtool -S enp1s0"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains('\x1b'), "colour in a pipe");
}

#[test]
fn what_a_text_does_not_say_is_unknown_and_exit_0() {
    let directory = TempDir::new().unwrap();
    let output = doctor(&written(&directory, "paste.txt", UNEVEN), &["--verbose"]);
    output.ends(0);
    assert!(stdout(&output).starts_with("Unknown: nothing wrong was seen"), "{}", stdout(&output));
    assert!(stdout(&output).contains("insufficient-data"));
}

#[test]
fn json_has_the_fields_that_scripts_rely_on() {
    let directory = TempDir::new().unwrap();
    let report = doctor(&written(&directory, "paste.txt", ONE_QUEUE), &["--json"]).json();
    report.has(json!({"schema": "rxlane.doctor/1", "verdict": "limited"}));
    report["interfaces"][0].has(json!({"name": "enp1s0"}));
    report["interfaces"][0]["queues"][0].has(json!({"packets": 16_630_368_449_u64}));
    let finding = &report["findings"][0];
    finding.has(json!({"id": "one-queue-hot", "severity": "warning", "interface": "enp1s0"}));
    assert_eq!(finding["evidence"][0]["text"], "rx_queue_0_packets: 16630368449");
    assert!(finding["evidence"][0]["from"].as_str().unwrap().contains("line 2"));
    assert!(finding["explanation"].as_str().unwrap().contains("does not prove why"));
    for remedy in finding["remedies"].as_array().unwrap() {
        assert!(remedy["os"].is_string() && remedy["commands"].is_array() && remedy["expected"].is_string());
    }
    // Standard input and several files are read.
    rxlane()
        .args(["doctor", "--from", "-"])
        .write_stdin(ONE_QUEUE)
        .output()
        .ends(1)
        .says("(standard input, line 2)");
    let after = written(&directory, "after.txt", ONE_QUEUE.replace("16630368449", "16630970000"));
    let both = rxlane().args(["doctor", "--from"]).args([directory.path().join("paste.txt"), after]).output();
    both.says("601,551 frames between the samples");
}

#[test]
fn the_page_stands_alone_and_escapes_what_it_quotes() {
    let directory = TempDir::new().unwrap();
    let hostile = ONE_QUEUE.replace("| grep rx_queue", "| grep '<script>alert(1)</script>'");
    let output = doctor(&written(&directory, "paste.txt", hostile), &["--html", "-"]);
    let page = stdout(&output);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("one-queue-hot"), "{page}");
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains("http://") && !page.contains("https://"), "{page}");
    let file = directory.path().join("page.html");
    let output = doctor(&written(&directory, "paste.txt", ONE_QUEUE), &["--html", file.to_str().unwrap()]);
    assert!(stdout(&output).contains("The page is in "));
    assert!(std::fs::read_to_string(file).unwrap().contains("one-queue-hot"));
    // It does not overwrite what is read.
    let paste = directory.path().join("paste.txt");
    doctor(&paste, &["--html", paste.to_str().unwrap()]).ends(2);
    assert_eq!(std::fs::read_to_string(paste).unwrap(), ONE_QUEUE);
}

#[test]
fn every_finding_is_explained() {
    let list = stdout(&rxlane().args(["doctor", "--explain"]).output());
    // A long title goes on below itself.
    let ids: Vec<&str> = list
        .lines()
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let pages = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings"));
    // One page is the index.
    assert_eq!(ids.len(), pages.expect("the pages").count() - 1, "{list}");
    for id in ids {
        let output = rxlane().args(["doctor", "--explain", id]).output();
        let text = stdout(&output);
        output.is(&id, 0, "");
        for heading in ["What it means", "How it shows", "How to fix it", "What the fix costs"] {
            assert!(text.contains(heading), "{id}: {text}");
        }
    }
}

#[test]
fn wrong_usage_is_exit_2_and_says_what_to_do() {
    let directory = TempDir::new().unwrap();
    let prose = written(&directory, "prose.txt", "My router is slow. What should I do?\n");
    let input = written(&directory, "input.txt", ONE_QUEUE);
    let (prose, input) = (prose.to_str().unwrap(), input.to_str().unwrap());
    let cases: [(&[&str], &str); 12] = [
        (&["--from", prose], "is the output of a tool that rxlane knows"),
        (&["--from", "/nonexistent/paste"], "/nonexistent/paste"),
        (&["eth9", "--from", input], "it names enp1s0"),
        (&["--explain", "queue-hot"], "did you mean one-queue-hot?"),
        (&["--apply", "queue-hot"], "did you mean one-queue-hot?"),
        (&["--from", input, "--apply"], "cannot be used with"),
        (&["--from", input, "--persist"], "add --dry-run"),
        (&["--persist"], "it goes with --apply"),
        (&["--dry-run"], "--dry-run goes with --apply"),
        (&["--sample"], "<INTERFACE>"),
        (&["--from", input, "--traffic", "/nonexistent/line.pcap"], "/nonexistent/line.pcap"),
        (&["--seconds", "0"], "'0' for '--seconds <N>': 0.1 to 3600 seconds are possible"),
    ];
    for (arguments, words) in cases {
        rxlane().arg("doctor").args(arguments).output().is(&arguments, 2, words);
    }
    let undo =
        rxlane().args(["doctor", "--undo", "--journal"]).arg(directory.path().join("journal")).output();
    assert_eq!(undo.ends(0).text(), "Nothing to restore.\n");
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let directory = TempDir::new().unwrap();
    let mut bytes = ONE_QUEUE.as_bytes().to_vec();
    bytes.extend([0, 0xff, 0xfe, 0x1b, b'[', b'3', b'1', b'm', 0x80]);
    bytes.extend(std::iter::repeat_n(b'x', 200_000));
    bytes.extend(b"\n$ ethtool -g enp1s0\nRing parameters for \x1b[31menp1s0:\n");
    let output = doctor(&written(&directory, "paste.txt", bytes), &[]);
    output.ends(1);
    assert!(!output.stdout.contains(&0x1b));
    // JSON has them spelled out, those beyond ASCII as well.
    let driver = "igb\u{9b}31m\u{202e}größe";
    let paste = written(&directory, "driver.txt", format!("$ ethtool -i eth0\ndriver: {driver}\n"));
    let text = stdout(&doctor(&paste, &["--json"]));
    assert!(text.contains(r"igb\u009b31m\u202egröße") && !text.contains(['\u{9b}', '\u{202e}']), "{text}");
    let read: Value = serde_json::from_str(&text).unwrap();
    assert!(read.to_string().contains(driver), "{text}");
}

#[test]
fn hundreds_of_interfaces_with_the_same_finding_are_one() {
    let directory = TempDir::new().unwrap();
    let link = |n: u32| {
        format!(
            "{n}: veth{n}: <UP,LOWER_UP> mtu 1500 qdisc noqueue state UP\n    link/ether 02:00:00:00:00:02 promiscuity 0\n    \
             veth addrgenmode eui64 numtxqueues 1 numrxqueues 1\n$ ethtool -l veth{n}\nChannel parameters for veth{n}:\n\
             Pre-set maximums:\nCombined:\t1\nCurrent hardware settings:\nCombined:\t1\n$ ip -d link\n"
        )
    };
    let links: String = (2..302).map(link).collect();
    let paste = written(&directory, "paste.txt", format!("$ uname -sr\nLinux 6.12.9\n$ ip -d link\n{links}"));
    let text = stdout(&doctor(&paste, &["--verbose"]));
    assert_eq!(text.matches("single-queue").count(), 1, "{text}");
    assert!(text.contains("The same of 299 more interfaces: veth3, veth4, veth5"), "{text}");
    assert!(text.lines().count() < 60 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(stdout(&doctor(&paste, &[])).lines().count() <= 12);
    let report = doctor(&paste, &["--json"]).json();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.iter().filter(|finding| finding["id"] == "single-queue").count(), 300);
}

/// Frames lost at a short ring, and both receive interrupts on CPU 0.
const LOSSES: &str = "$ uname -sr\nLinux 6.12.9\n$ ethtool -g enp1s0\nRing parameters for enp1s0:\nPre-set maximums:\nRX:\t\t4096\n\
                      Current hardware settings:\nRX:\t\t256\n$ ethtool -S enp1s0\n     rx_packets: 1000000\n     rx_missed_errors: 5000\n\
                      $ cat /proc/interrupts\n           CPU0       CPU1       CPU2       CPU3\n \
                      120:   90000000          0          0          0   PCI-MSI 524288-edge      enp1s0-rx-0\n \
                      121:   80000000          0          0          0   PCI-MSI 524289-edge      enp1s0-rx-1\n";
const UCI: &str = "$ uci show network\nnetwork.globals=globals\nnetwork.globals.packet_steering='0'\n";

/// rxlane does not run there: the files are for the person to write.
#[test]
fn files_for_the_machine_that_a_text_came_from_are_printed_and_not_written() {
    let directory = TempDir::new().unwrap();
    let print =
        |name: &str, text: &str| doctor(&written(&directory, name, text), &["--persist", "--dry-run"]);
    let linux = print("linux.txt", LOSSES);
    linux.ends(0).says("ring-overflow: ").says("these files are for systemd").says("Nothing was written.");
    linux.says("File /etc/systemd/system/rxlane-settings@enp1s0.service, mode 0644:");
    linux
        .says("    ethtool -G enp1s0 rx 1024 || failed=1")
        .says("    for vector in /proc/irq/*/enp1s0-rx-1; do");
    linux.says("    rm /etc/rxlane/settings-enp1s0 ");
    let openwrt = print("openwrt.txt", &format!("{LOSSES}{UCI}"));
    openwrt
        .ends(0)
        .says("OpenWrt configures the machine.")
        .says("File /etc/hotplug.d/iface/99-rxlane, mode 0755:");
    openwrt.says("    rm /etc/hotplug.d/iface/99-rxlane").omits("systemd");
    // Remedies that are commands of uci change the configuration by themselves.
    let soc = print(
        "soc.txt",
        "DISTRIB_ID='OpenWrt'\nDISTRIB_RELEASE='24.10.2'\n# cat /proc/interrupts\n           CPU0       CPU1       CPU2       CPU3\n \
         23:   11584496          0          0          0  MIPS GIC  10  1e100000.ethernet\n \
         26:    3501910          0          0          0  MIPS GIC  11  mt7615e\n\
         # uci show network\nnetwork.globals.packet_steering='1'\n",
    );
    soc.ends(0).says("Commands:\n    uci set network.globals.packet_steering='2'\n    uci commit network\n");
    soc.says("To take it back:\n    uci set network.globals.packet_steering=1\n    uci commit network\n");
    let freebsd = print(
        "freebsd.txt",
        "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ sysctl net.inet.ip.intr_queue_maxlen net.inet.ip.intr_queue_drops\n\
         net.inet.ip.intr_queue_maxlen: 256\nnet.inet.ip.intr_queue_drops: 48213\n",
    );
    freebsd.ends(0).says("Lines to add to /etc/sysctl.conf:\n    # rxlane: begin. Written by rxlane: ");
    freebsd.says("\n    net.inet.ip.intr_queue_maxlen=512\n    # rxlane: end\n");
    let netbsd = print(
        "netbsd.txt",
        "$ uname -sr\nNetBSD 9.3\n$ sysctl net.inet.ip.ifq\nnet.inet.ip.ifq.len = 0\nnet.inet.ip.ifq.maxlen = 256\n\
         net.inet.ip.ifq.drops = 9241\n",
    );
    netbsd.ends(0).says("\n    net.inet.ip.ifq.maxlen=512\n");
    print("healthy.txt", UNEVEN).ends(0).says("Nothing to make persistent.");
}

/// Part of a remedy is none: without the last command of a flowtable nothing enters it.
#[test]
fn the_short_text_has_all_commands_of_a_remedy() {
    let directory = TempDir::new().unwrap();
    let top = "CPU:   0% usr   2% sys   0% nic   0% idle   0% io   0% irq  98% sirq\n  PID  PPID USER     STAT   VSZ %VSZ %CPU COMMAND\n    \
               9     2 root     RW       0   0%  98% [ksoftirqd/0]\n";
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = |name: &str, text: &str| on_one_line(&stdout(&doctor(&written(&directory, name, text), &[])));
    let top =
        format!("# top -b -n 1\nMem: 61232K used, 58840K free, 720K shrd, 4K buff, 17328K cached\n{top}");
    let forwards = "# sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n";
    let nft = short("nft.txt", &format!("# nft list flowtables\n{forwards}{top}"));
    assert!(nft.contains("flow add @fast"), "{nft}");
    assert!(nft.contains("LAN and WAN are placeholders") && nft.contains("`ip -d link`"), "{nft}");
    let uci = short(
        "uci.txt",
        &format!(
            "root@OpenWrt:~# uci show firewall\nfirewall.@defaults[0]=defaults\nfirewall.@defaults[0].flow_offloading='0'\n\
                  root@OpenWrt:~# ethtool -i eth0\ndriver: mtk_soc_eth\n{forwards}{top}"
        ),
    );
    assert!(uci.contains("service firewall restart") && !uci.contains("LAN"), "{uci}");
    // The reset is in the log; taking the interface down comes with its warning, where it is printed.
    let log = "[ 12.5] NETDEV WATCHDOG: eth0 (igc): transmit queue 0 timed out\n";
    let hang = short("hang.txt", log);
    assert!(hang.contains("Fix: a newer driver or firmware") && !hang.contains("down"), "{hang}");
    let stalled = "$ uname -sr\nFreeBSD 14.1-RELEASE\n$ sysctl dev.igc.0.iflib.txq0.ring_state\n\
                   dev.igc.0.iflib.txq0.ring_state: pidx_head: 0812 pidx_tail: 0812 cidx: 0810 state: STALLED\n";
    let stalled = on_one_line(&stdout(&doctor(&written(&directory, "stalled.txt", stalled), &["--verbose"])));
    assert!(stalled.contains("ifconfig igc0 down && ifconfig igc0 up"), "{stalled}");
    assert!(stalled.contains("from the console"), "{stalled}");
}

/// A vector has one affinity, and RPS does not name the CPUs that get interrupts.
#[test]
fn persistent_affinities_are_one_plan() {
    let directory = TempDir::new().unwrap();
    let capacities = "# cat /sys/devices/system/cpu/cpu*/cpu_capacity\n530\n530\n1024\n1024\n1024\n1024\n";
    let rows = "           CPU0 CPU1 CPU2 CPU3 CPU4 CPU5\n 90:  489123410 0 0 0 0 0   ITS-MSI 570949632 Edge      eth1\n \
                92:  471230091 0 0 0 0 0   ITS-MSI 302514176 Edge      eth2\n";
    let mpstat = "04:51:04 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
                  04:51:05 AM    0    0.00    0.00    2.00    0.00    0.00   98.00    0.00    0.00    0.00    0.00\n";
    for (name, text) in [
        ("calm.txt", format!("# cat /proc/interrupts\n{rows}{capacities}")),
        ("full.txt", format!("{capacities}{mpstat}# cat /proc/interrupts\n{rows}")),
    ] {
        let text = stdout(&doctor(&written(&directory, name, text), &["--persist", "--dry-run"]));
        assert_eq!(text.matches("echo 2 >").count(), 1, "{text}");
        assert_eq!(text.matches("echo 3 >").count(), 1, "{text}");
        assert_eq!(text.matches("smp_affinity_list").count(), 2, "{text}");
        assert!(!text.contains("echo 3c >"), "{text}");
    }
}

/// nftables' own file has a flowtable; what only finds something out is no setting.
#[test]
fn a_flowtable_is_made_persistent_in_the_file_of_nftables() {
    let directory = TempDir::new().unwrap();
    let full = "04:51:04 AM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
                04:51:05 AM    0    0.00    0.00    2.00    0.00    0.00   98.00    0.00    0.00    0.00    0.00\n";
    let top = "# top -b -n 1\n    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND\n     \
               13 root      20   0       0      0      0 R  99.0   0.0   1:23.45 ksoftirqd/0\n";
    let forwards = "# sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n";
    let perf = "# perf report --stdio\n    62.11%  ksoftirqd/5      [kernel.vmlinux]          [k] native_queued_spin_lock_slowpath\n";
    for (name, text) in [
        ("mpstat.txt", format!("# nft list flowtables\n{forwards}{full}{perf}")),
        ("top.txt", format!("{perf}{forwards}{full}# nft list flowtables\n{top}")),
    ] {
        let text = stdout(&doctor(&written(&directory, name, text), &["--persist", "--dry-run"]));
        assert!(text.contains("Lines to add to /etc/nftables.conf:"), "{text}");
        assert!(
            text.contains("    add rule inet rxlane forward") && text.contains("flow add @fast"),
            "{text}"
        );
        assert!(text.contains("nft delete table inet rxlane"), "{text}");
        assert!(text.contains("LAN and WAN are placeholders"), "{text}");
        assert!(!text.contains("no configuration file has it") && !text.contains("perf re"), "{text}");
    }
}

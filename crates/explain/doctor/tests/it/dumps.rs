//! Real outputs of real machines, with the finding that an expert draws from each.
//!
//! `RXLANE_DUMPS` names a folder of such files. A file may begin with comments that say where it comes from; the
//! output starts after a line `# --- raw below ---`. The files belong to their authors and are not in this project;
//! their public sources are named at each expectation.

use rxlane_doctor::finding::{Certainty, Severity};
use rxlane_doctor::report::{Report, Verdict};
use rxlane_doctor::{Case, diagnose};
use std::path::Path;
use testkit::Missing;

const DUMPS: &str = "RXLANE_DUMPS";
const MARKER: &str = "# --- raw below ---\n";

/// What has to come out of a file, or of several that are samples of one machine.
struct Expected {
    files: &'static [&'static str],
    verdict: &'static [Verdict],
    /// Findings that must be there: id, interface where it matters, words of the evidence.
    found: &'static [Found],
    /// The gravest severity allowed for a certain finding.
    gravest: Severity,
}

const CALM: &[Verdict] = &[Verdict::Healthy, Verdict::Unknown];
const LIMITED: &[Verdict] = &[Verdict::Limited];
const EITHER: &[Verdict] = &[Verdict::Limited, Verdict::Unknown];

type Found = (&'static str, Option<&'static str>, &'static str);

const fn calm(files: &'static [&'static str], found: &'static [Found]) -> Expected {
    Expected { files, verdict: CALM, found, gravest: Severity::Info }
}

const fn limited(
    file: &'static [&'static str; 1],
    verdict: &'static [Verdict],
    found: &'static [Found],
) -> Expected {
    Expected { files: file, verdict, found, gravest: Severity::Critical }
}

static EXPECTED: &[Expected] = &[
    // netutils-linux, tests/server-info-show.tests and tests/rss-ladder.tests.
    calm(&["ethtool/1xE3-1271_I217_and_X710_eth0.376.txt"], &[]),
    calm(&["ethtool/1xi3_I211_I219V_eth0.txt"], &[("ring-small", Some("eth0"), "256")]),
    calm(&["ethtool/2xE5-2640_i350_and_82599ES_eth0.txt"], &[("ring-small", Some("eth0"), "256")]),
    calm(&["ethtool/kvm_l3_eth0.txt"], &[]),
    calm(&["interrupts/linux_interrupts_i211_i219.txt"], &[("single-queue", Some("eth1"), "eth1")]),
    calm(&["interrupts/linux_interrupts_i350_balanced_4q.txt"], &[]),
    limited(
        &["interrupts/linux_interrupts_ixgbe_all_on_cpu0.txt"],
        LIMITED,
        &[("irq-one-cpu", Some("eth0"), "eth0-TxRx-")],
    ),
    calm(
        &[
            "interrupts/linux_interrupts_multinic_4cpu_t1.txt",
            "interrupts/linux_interrupts_multinic_4cpu_t5.txt",
        ],
        &[("single-queue", Some("eth0"), "eth0")],
    ),
    limited(
        &["interrupts/linux_interrupts_single_queue_q6700.txt"],
        EITHER,
        &[("single-queue", Some("eth0"), "eth0"), ("single-queue", Some("eth1"), "eth1")],
    ),
    // Public notes on a Linux router.
    limited(&["interrupts/linux_softirqs_net_rx_cpu0.txt"], EITHER, &[("softirq-one-cpu", None, "NET_RX")]),
    // isc-projects/ethq, tests.
    calm(&["ethtool_S/bnx2x.txt"], &[]),
    calm(&["ethtool_S/e1000e.txt"], &[]),
    calm(&["ethtool_S/ena.txt"], &[]),
    calm(&["ethtool_S/i40e.txt"], &[]),
    calm(&["ethtool_S/mlx5_core.txt"], &[]),
    calm(&["ethtool_S/r8169.txt"], &[]),
    calm(&["ethtool_S/sfc.txt"], &[]),
    calm(&["ethtool_S/virtio_net.txt"], &[]),
    calm(&["ethtool_S/vmxnet3.txt"], &[]),
    // intel-wired-lan, 2023-11-16 and 2025-01-02.
    calm(&["ethtool_S/igc_i225_4q_uneven.txt"], &[]),
    calm(&["ethtool_x/ixgbe_63_rings_16_in_table.txt"], &[]),
    // pcengines/apu2-documentation issue 190, netdata issue 17015.
    limited(
        &["rerendered/igb_apu_rx_queue0_only.txt"],
        LIMITED,
        &[("one-queue-hot", Some("enp1s0"), "rx_queue_0_packets: 16630368449")],
    ),
    calm(&["rerendered/virtio_4q_uneven.txt"], &[]),
    // nashant/if_pppoe, tests/perf/fixtures.
    calm(
        &["freebsd/netstat_Q_pppoe_before.txt", "freebsd/netstat_Q_pppoe_after.txt"],
        &[("pppoe-unhashed", None, "pppoe")],
    ),
    calm(&["freebsd/vmstat_i_igc_before.txt", "freebsd/vmstat_i_igc_after.txt"], &[]),
    // stackpath/rxtxcpu, Documentation/case-studies.
    calm(
        &["rss_case_studies/advanced-rss-configuration-rss-hash-fields.txt"],
        &[("udp-two-tuple", Some("ixgbe0"), "")],
    ),
    // Forums and issue trackers.
    limited(&["pastes/01.txt"], LIMITED, &[("cpu-shared", None, "eth0")]),
    limited(
        &["pastes/03.txt"],
        LIMITED,
        &[("cpu-shared", None, "eth2-0"), ("one-queue-hot", Some("eth2"), "eth2-0")],
    ),
    calm(&["pastes/05.txt"], &[("single-queue", Some("eth0"), "eth0")]),
    limited(&["pastes/06.txt"], LIMITED, &[("cpu-shared", None, "mt7615e")]),
    limited(&["pastes/08.txt"], EITHER, &[("napi-thread", None, "napi/mtk_eth-6")]),
    limited(&["pastes/09.txt"], EITHER, &[("softirq-one-cpu", None, "ksoftirqd/0")]),
    limited(&["pastes/10.txt"], LIMITED, &[("cpus-full", None, "97.3% interrupt")]),
    limited(&["pastes/12.txt"], EITHER, &[("softirq-one-cpu", None, "ksoftirqd/10")]),
    limited(&["pastes/14.txt"], LIMITED, &[("transmit-hang", Some("eth0"), "NETDEV WATCHDOG")]),
    limited(&["pastes/15.txt"], LIMITED, &[("ring-overflow", None, "rx_drops_no_frags")]),
    limited(&["pastes/16.txt"], EITHER, &[("transmit-hang", Some("igc0"), "STALLED")]),
    calm(&["pastes/18.txt"], &[]),
    calm(&["pastes/20.txt"], &[]),
    calm(&["pastes/21.txt"], &[]),
    limited(&["pastes/23.txt"], LIMITED, &[("interface-wedged", Some("eth0"), "queue_0_rx_page_alloc_fail")]),
    limited(&["pastes/24.txt"], LIMITED, &[("transmit-hang", Some("eth0"), "wasn't completed")]),
    calm(&["pastes/25.txt"], &[]),
    calm(&["pastes/27.txt"], &[]),
    // Reduced to what matters.
    limited(&["small/ena_pps.txt"], LIMITED, &[("cloud-allowance", None, "pps_allowance_exceeded")]),
    limited(&["small/ena_reset.txt"], LIMITED, &[("transmit-hang", Some("eth0"), "lost tx completions")]),
    calm(&["small/mt7622_txrx.txt"], &[]),
    limited(&["small/napi4.txt"], LIMITED, &[("napi-thread", None, "napi/mtk_eth-6")]),
    limited(&["small/plic_header.txt"], LIMITED, &[("cpu-shared", None, "eth1")]),
    limited(&["small/r8125_hdr.txt"], EITHER, &[("one-queue-hot", Some("eth2"), "eth2-0")]),
    limited(&["small/two_nics_one_cpu.txt"], LIMITED, &[("cpu-shared", None, "eth0")]),
    limited(&["small/wd_one_event.txt"], LIMITED, &[("transmit-hang", Some("eth0"), "NETDEV WATCHDOG")]),
];

fn diagnosed(folder: &Path, files: &[&str]) -> Report {
    let mut reader = host::text::Reader::new();
    for name in files {
        let path = folder.join(name);
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let raw = text.split_once(MARKER).map_or(text.as_str(), |(_, raw)| raw);
        reader.read(name, raw.as_bytes()).expect("memory");
    }
    let snapshot = reader.finish();
    diagnose(&Case::new(&snapshot, None, None).expect("profiles"))
}

fn check(expected: &Expected, report: &Report) -> Vec<String> {
    let files = expected.files.join(", ");
    let mut wrong = Vec::new();
    if !expected.verdict.contains(&report.verdict) {
        wrong.push(format!("{files}: verdict {:?}, not one of {:?}", report.verdict, expected.verdict));
    }
    for (id, interface, words) in expected.found {
        let is_it = report.findings.iter().any(|finding| {
            finding.id == *id
                && interface.is_none_or(|name| finding.interface.as_deref() == Some(name))
                && finding.evidence.iter().any(|line| line.text.contains(words))
        });
        if !is_it {
            wrong.push(format!("{files}: no {id} of {interface:?} with `{words}` in its evidence"));
        }
    }
    for finding in &report.findings {
        if finding.certainty == Certainty::Certain && finding.severity < expected.gravest {
            wrong.push(format!("{files}: {} is {:?}: {:?}", finding.id, finding.severity, finding.facts));
        }
    }
    wrong
}

#[test]
fn real_outputs_give_the_findings_of_an_expert() {
    let folder = std::env::var_os(DUMPS)
        .filter(|folder| !folder.is_empty())
        .ok_or_else(|| Missing(format!("{DUMPS} is not set to a folder of tool outputs")));
    let Some(folder) = testkit::require("dumps", folder) else { return };
    let wrong: Vec<String> = EXPECTED
        .iter()
        .flat_map(|expected| check(expected, &diagnosed(Path::new(&folder), expected.files)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

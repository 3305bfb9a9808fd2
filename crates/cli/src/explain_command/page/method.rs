//! How the figures came about, and how to get them again.

use super::STANDARD_INPUT;
use crate::page::unbroken;
use explain::Report;
use explain::report::{INTERFACE_KEY, LiveSample};
use format::{printable_up_to, quoted, thousands};
use maud::{Markup, html};

/// More files than these are not named in the command.
const FILES: usize = 4;

pub fn method(report: &Report) -> Markup {
    let (nic, queues) = (&report.nic, thousands(report.nic.queues.into()));
    let cpus = thousands(report.steered.cpus.into());
    let sample = report.source.sample.as_ref();
    html! {
        section.method {
            h2 { "How this was computed" }
            dl.rules {
                dt { "The device" }
                dd {
                    (printable_up_to(&nic.title, 160)) " (" code { (printable_up_to(&nic.name, 80)) } ") with " (queues)
                    " receive " (if nic.queues == 1 { "queue" } else { "queues" }) ". "
                    @if nic.assumed {
                        strong { "It was assumed, because none was named: " }
                        "name yours with " code { "--nic" } "; " code { "rxlane nics" } " lists them."
                    } @else if sample.is_some() {
                        "It is that of the interface, as it is set up, or was named with " code { "--nic" } "."
                    } @else {
                        "It was named with " code { "--nic" } "."
                    }
                    " What its parser sees and what it hashes come from its profile, whose claims carry their "
                    "sources. Nothing was measured on a device: this is what it would do with these frames."
                }
                dt { "The hash" }
                dd {
                    "The Toeplitz hash of receive-side scaling over the fields of the frame's hash type; the "
                    "indirection table then names the queue. "
                    @if !report.nic.hash_types.is_empty() {
                        "Enabled here: " (report.nic.hash_types.join(", ")) ". "
                    }
                    @if report.nic.key_given && report.nic.key == INTERFACE_KEY {
                        "The key is that of the interface, which is not shown: who knows it can aim traffic at a queue."
                    } @else if report.nic.key_given {
                        "The key was given with " code { "--key" } "."
                    } @else {
                        "The key is Microsoft's verification key, under which every hash can be checked by "
                        "hand. Most drivers pick a random key at boot: which queue a flow gets then differs, "
                        "how evenly many flows spread does not."
                    }
                }
                dt { "Inner-header steering" }
                dd {
                    "The first IP header behind all tags, MPLS labels and PPPoE is hashed over addresses and "
                    "ports, every fragment and every packet without ports over addresses only. The hash's low "
                    "eight bits choose one of 256 buckets, and the buckets are distributed to " (cpus) " "
                    (if report.steered.cpus == 1 { "CPU" } else { "CPUs" }) " in turn. Frames without an IP "
                    "header (discovery, LCP, ARP) stay on the CPU of the queue on which they arrived, CPU 0 where that queue is "
                    "unknown."
                }
                dt { "The figures" }
                dd {
                    "Bytes are those of the frames on the wire, without FCS. A flow is the five-tuple of frames "
                    "that carry ports; later fragments belong to none. Busiest over mean is 1 where all parts "
                    "carry the same. Effective queues are 1/Σ share²: how many evenly loaded parts the "
                    "distribution is worth."
                }
                @if let Some(sample) = sample {
                    dt { "The sample" }
                    dd { (sampled(sample)) }
                }
            }
            p { "The same figures for programs (with " code { "--reta" } " and " code { "--hash-fields" }
                " where they were given):" }
            pre { code { (unbroken(&command(report))) } }
        }
    }
}

/// How the frames of an interface were taken.
fn sampled(sample: &LiveSample) -> Markup {
    let counts = [
        ("had a VLAN tag that the NIC had stripped, put back here", sample.tags),
        ("were several TCP segments, merged by GRO or LRO", sample.merged),
        ("came too fast and are missing", sample.dropped),
    ];
    html! {
        "Frames that " bdi { (printable_up_to(&sample.interface, 80)) } " received in " (format!("{:.1}", sample.seconds)) " s, "
        (thousands(sample.snap.into())) " bytes of each."
        @for (what, frames) in counts { @if frames > 0 { " " (thousands(frames)) " " (what) "." } }
    }
}

/// The command that prints this report as JSON, to be copied.
fn command(report: &Report) -> String {
    let files: Vec<String> = report.source.files.iter().map(|file| argument(file)).collect();
    let files = if (1..=FILES).contains(&files.len()) { files.join(" ") } else { "FILE…".to_owned() };
    let nic = quoted(&report.nic.name);
    let (queues, cpus) = (report.nic.queues, report.steered.cpus);
    let is_named = report.nic.key_given && report.nic.key != INTERFACE_KEY;
    let key = if is_named { format!(" --key {}", report.nic.key) } else { String::new() };
    format!("rxlane explain {files} --nic {nic} --queues {queues} --cpus {cpus}{key} --json")
}

fn argument(name: &str) -> String {
    match name {
        STANDARD_INPUT => "-".to_owned(),
        dash if dash.starts_with('-') => quoted(&format!("./{dash}")),
        name => quoted(name),
    }
}

#[cfg(test)]
mod tests {
    use super::argument;

    #[test]
    fn a_file_in_the_command_is_one_word_that_is_no_option() {
        assert_eq!(argument("standard input"), "-");
        assert_eq!(argument("dump/a-1.pcap.gz"), "dump/a-1.pcap.gz");
        assert_eq!((argument("-"), argument("--json")), ("./-".to_owned(), "./--json".to_owned()));
        assert_eq!(argument("a\u{1b}[2J"), r"$'a\033[2J'");
    }
}

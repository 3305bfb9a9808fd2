//! How the figures came about, and how to get them again.

use super::STANDARD_INPUT;
use crate::page::format::{count, foreign, turns_or_hides};
use crate::page::unbroken;
use explain::Report;
use maud::{Markup, html};

/// More files than these are not named in the command.
const FILES: usize = 4;

/// The section on assumptions and rules.
pub fn method(report: &Report) -> Markup {
    let (nic, queues) = (&report.nic, count(report.nic.queues.into()));
    let cpus = count(report.steered.cpus.into());
    html! {
        section.method {
            h2 { "How this was computed" }
            dl.rules {
                dt { "The device" }
                dd {
                    (foreign(&nic.title, 160)) " (" code { (foreign(&nic.name, 80)) } ") with " (queues)
                    " receive " (if nic.queues == 1 { "queue" } else { "queues" }) ". "
                    @if nic.assumed {
                        strong { "It was assumed, because none was named: " }
                        "name yours with " code { "--nic" } "; " code { "rxlane nics" } " lists them."
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
                    @if report.nic.key_given {
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
                    "eight bits choose one of 256 buckets, and the buckets are dealt to " (cpus) " "
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
            }
            p { "The same figures for programs (with " code { "--reta" } " and " code { "--hash-fields" }
                " where they were given):" }
            pre { code { (unbroken(&command(report))) } }
        }
    }
}

/// The command that prints this report as JSON. It is meant to be copied, so that a name which a shell or a
/// terminal could take for something else is not in it.
fn command(report: &Report) -> String {
    let files: Option<Vec<String>> = report.source.files.iter().map(|file| argument(file)).collect();
    let files = match files {
        Some(files) if (1..=FILES).contains(&files.len()) => files.join(" "),
        _ => "FILE…".to_owned(),
    };
    let nic = quoted(&report.nic.name).unwrap_or_else(|| "NIC".to_owned());
    let (queues, cpus) = (report.nic.queues, report.steered.cpus);
    let key = if report.nic.key_given { format!(" --key {}", report.nic.key) } else { String::new() };
    format!("rxlane explain {files} --nic {nic} --queues {queues} --cpus {cpus}{key} --json")
}

/// The argument that stands for a capture.
fn argument(name: &str) -> Option<String> {
    if name == STANDARD_INPUT { Some("-".to_owned()) } else { quoted(name) }
}

/// A word of a POSIX shell command; `None` where quoting does not make it safe to look at or to run.
fn quoted(word: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-:@%=,".contains(c);
    if word.is_empty() || word.starts_with('-') || word.len() > 200 || word.chars().any(turns_or_hides) {
        return None;
    }
    if word.chars().all(plain) {
        return Some(word.to_owned());
    }
    Some(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::{argument, quoted};

    #[test]
    fn a_name_in_the_command_is_one_word_of_a_shell_or_left_out() {
        assert_eq!(quoted("dump/a-1.pcap.gz").as_deref(), Some("dump/a-1.pcap.gz"));
        assert_eq!(argument("standard input").as_deref(), Some("-"));
        assert_eq!(quoted("it's; rm -rf ~").as_deref(), Some(r"'it'\''s; rm -rf ~'"));
        assert_eq!(quoted("$(reboot)").as_deref(), Some("'$(reboot)'"));
        for unsafe_to_show in ["", "-", "--json", "a\u{202e}gpj.pcap", "a\nb", "a\u{1b}[2J"] {
            assert_eq!(quoted(unsafe_to_show), None, "{unsafe_to_show:?}");
        }
    }
}

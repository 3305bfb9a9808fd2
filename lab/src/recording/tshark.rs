//! What tshark says of each frame of a capture, field by field: nothing of it comes from the project's own dissection.
//!
//! Reassembly is off: a fragment or segment is what it is on the wire.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// Fields of a frame that are requested (tshark's display filter reference), in this order.
const FIELDS: [&str; 31] = [
    "frame.protocols",
    "_ws.malformed",
    "eth.addr",
    "eth.src",
    "eth.dst",
    "vlan.id",
    "ieee8021ad.id",
    "pppoe.code",
    "pppoe.session_id",
    "pppoed.tags.max_payload",
    "ppp.protocol",
    "ppp.code",
    "pap.code",
    "chap.code",
    "arp.opcode",
    "ip.src",
    "ip.dst",
    "ip.frag_offset",
    "ip.flags.mf",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.fraghdr.offset",
    "ipv6.fraghdr.more",
    "icmp.type",
    "icmpv6.type",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.flags",
    "tcp.len",
    "udp.srcport",
    "udp.dstport",
];

/// Preferences under which a datagram in pieces is not put together.
const PIECES: [&str; 3] = ["ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE"];

/// Preferences under which checksums are verified, those of whole datagrams among them.
const CHECKSUMS: [&str; 3] = ["ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE"];

/// What a recording of two stations on a good cable does not have. tshark derives the first four from the order of
/// segments; they come where a guest was too slow.
const FLAWS: &str = "tcp.analysis.retransmission || tcp.analysis.duplicate_ack || tcp.analysis.out_of_order || \
     tcp.analysis.lost_segment || _ws.malformed || ip.checksum.status == \"Bad\" || tcp.checksum.status == \"Bad\" || \
     udp.checksum.status == \"Bad\" || icmp.checksum.status == \"Bad\" || icmpv6.checksum.status == \"Bad\"";

/// Protocols behind which a stack says nothing more: what they carry is their own business, as the packet that an
/// ICMP error quotes.
const LAST: [&str; 12] =
    ["tcp", "udp", "icmp", "icmpv6", "igmp", "sctp", "esp", "gre", "arp", "lcp", "ipcp", "ipv6cp"];

/// A frame: its fields' values, each list outermost first.
#[derive(Clone, Debug)]
pub(super) struct Fields(Vec<Vec<String>>);

impl Fields {
    fn read(line: &str) -> Result<Fields> {
        let values =
            |field: &str| field.split(',').filter(|value| !value.is_empty()).map(str::to_owned).collect();
        let fields: Vec<Vec<String>> = line.split('\t').map(values).collect();
        ensure!(fields.len() == FIELDS.len(), "{} fields and not {}", fields.len(), FIELDS.len());
        Ok(Fields(fields))
    }

    /// All values of a field.
    pub(super) fn all(&self, name: &str) -> &[String] {
        let place = FIELDS.iter().position(|field| *field == name);
        place.and_then(|place| self.0.get(place)).map_or(&[], Vec::as_slice)
    }

    /// The outermost value.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.all(name).first().map(String::as_str)
    }

    /// The protocols from Ethernet to transport. `ethertype` is a field to tshark's eyes too, and `data` what it cannot
    /// read.
    pub(super) fn stack(&self) -> Result<Vec<&str>> {
        let protocols = self.first("frame.protocols").context("no protocols")?;
        let mut names: Vec<&str> =
            protocols.split(':').filter(|name| !["ethertype", "data"].contains(name)).collect();
        if let Some(last) = names.iter().position(|name| LAST.contains(name)) {
            names.truncate(last + 1);
        }
        Ok(names)
    }

    /// TPID and VLAN ID of each tag, as in `0x88a8/7 0x8100/100`; `untagged` where there is none.
    pub(super) fn tags(&self) -> Result<String> {
        let (mut inner, mut outer) = (self.all("vlan.id").iter(), self.all("ieee8021ad.id").iter());
        let mut tags = Vec::new();
        for name in self.stack()? {
            let (tpid, id) = match name {
                "vlan" => ("0x8100", inner.next()),
                "ieee8021ad" => ("0x88a8", outer.next()),
                _ => continue,
            };
            tags.push(format!("{tpid}/{}", id.context("a tag without an id")?));
        }
        Ok(if tags.is_empty() { "untagged".to_owned() } else { tags.join(" ") })
    }
}

/// All frames of the capture, in order.
///
/// # Errors
///
/// tshark cannot be run, fails, or answers in another form.
pub(super) fn frames(tshark: &Path, capture: &Path) -> Result<Vec<Fields>> {
    let mut arguments = vec!["-T", "fields", "-E", "occurrence=a", "-E", "aggregator=,"];
    arguments.extend(PIECES.iter().flat_map(|preference| ["-o", preference]));
    arguments.extend(FIELDS.iter().flat_map(|field| ["-e", field]));
    let text = run(tshark, capture, &arguments)?;
    let read = |(place, line): (usize, &str)| {
        Fields::read(line).with_context(|| format!("{}: frame {}: {line}", capture.display(), place + 1))
    };
    text.lines().enumerate().map(read).collect()
}

/// Frames that a recording on a good cable does not have, a line each: number, and what tshark calls it.
///
/// # Errors
///
/// As [`frames`].
pub(super) fn flaws(tshark: &Path, capture: &Path) -> Result<Vec<String>> {
    let mut arguments = vec!["-Y", FLAWS, "-T", "fields", "-e", "frame.number", "-e", "_ws.col.Info"];
    arguments.extend(CHECKSUMS.iter().flat_map(|preference| ["-o", preference]));
    Ok(run(tshark, capture, &arguments)?.lines().map(str::to_owned).collect())
}

fn run(tshark: &Path, capture: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(tshark);
    command.arg("-n").arg("-r").arg(capture).args(arguments);
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{}", tshark.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: tshark: {}: {said}", capture.display(), output.status);
    String::from_utf8(output.stdout).context("tshark's answer")
}

/// `tshark` and its release, as in `tshark 4.0.17`.
///
/// # Errors
///
/// It cannot be run, or says none.
pub(super) fn version(tshark: &Path) -> Result<String> {
    let text = crate::packages::output(Command::new(tshark).arg("--version"))?;
    let release = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    Ok(format!("tshark {}", release.context("tshark says no release")?))
}

/// A frame with these values.
#[cfg(test)]
pub(super) fn frame(values: &[(&str, &str)]) -> Fields {
    let value = |name: &&str| values.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
    Fields::read(&FIELDS.iter().map(value).collect::<Vec<_>>().join("\t")).expect("a frame")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_another_form_is_an_error() {
        assert!(Fields::read("eth:ip\t1").is_err());
        assert!(frame(&[]).stack().is_err(), "no protocols");
        assert!(frame(&[("frame.protocols", "eth:vlan:ip:tcp")]).tags().is_err(), "a tag without an id");
    }

    #[test]
    fn a_stack_ends_at_its_transport_and_tags_stand_outermost_first() {
        let protocols = "eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:ip:icmp:ip:udp:data";
        let frame = frame(&[("frame.protocols", protocols), ("vlan.id", "100"), ("ieee8021ad.id", "7")]);
        assert_eq!(frame.stack().expect("a stack"), ["eth", "ieee8021ad", "vlan", "ip", "icmp"]);
        assert_eq!(frame.tags().expect("tags"), "0x88a8/7 0x8100/100");
    }
}

//! What tshark says of a capture, counted in the form that captures in this project are compared with
//! (`NAME.expected.json` beside a capture): nothing of it comes from the project's own dissection.
//!
//! Reassembly is off: a fragment or segment counts as what it is on the wire.

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

/// Fields of a frame that are asked for (tshark's display filter reference), in this order.
const FIELDS: [&str; 19] = [
    "frame.protocols",
    "eth.addr",
    "vlan.id",
    "ieee8021ad.id",
    "pppoe.code",
    "pppoe.session_id",
    "ppp.protocol",
    "ip.src",
    "ip.dst",
    "ip.frag_offset",
    "ip.flags.mf",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.fraghdr.offset",
    "ipv6.fraghdr.more",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
];

/// Preferences under which a datagram in pieces is not put together.
const PIECES: [&str; 3] = ["ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.desegment_tcp_streams:FALSE"];

/// Protocols behind which a stack says nothing more: what they carry is their own business, as the packet that an
/// ICMP error quotes.
const LAST: [&str; 12] =
    ["tcp", "udp", "icmp", "icmpv6", "igmp", "sctp", "esp", "gre", "arp", "lcp", "ipcp", "ipv6cp"];

/// What a tshark program says of the capture.
///
/// # Errors
///
/// It cannot be run, fails, or answers in another form.
pub fn of(tshark: &Path, capture: &Path) -> Result<Value> {
    let mut command = Command::new(tshark);
    command.arg("-n").arg("-r").arg(capture).args([
        "-T",
        "fields",
        "-E",
        "occurrence=a",
        "-E",
        "aggregator=,",
    ]);
    for preference in PIECES {
        command.args(["-o", preference]);
    }
    for field in FIELDS {
        command.args(["-e", field]);
    }
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{}", tshark.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: tshark: {}: {said}", capture.display(), output.status);
    let text = String::from_utf8(output.stdout).context("tshark's answer")?;
    let mut summary = Summary::default();
    for (place, line) in text.lines().enumerate() {
        summary.add(line).with_context(|| format!("{}: frame {}: {line}", capture.display(), place + 1))?;
    }
    let mut json = summary.json();
    let name = capture.file_name().context("a file name")?.to_string_lossy();
    json["file"] = json!(name);
    json["tool"] = json!(version(tshark)?);
    Ok(json)
}

/// `tshark` and its release, as in `tshark 4.0.17`.
fn version(tshark: &Path) -> Result<String> {
    let text = crate::packages::output(Command::new(tshark).arg("--version"))?;
    let release = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    Ok(format!("tshark {}", release.context("tshark says no release")?))
}

/// Addresses, protocol and ports.
type Tuple = (String, String, String, String, String);

#[derive(Debug, Default)]
struct Summary {
    frames: u64,
    stacks: BTreeMap<String, u64>,
    tags: BTreeMap<String, u64>,
    codes: BTreeMap<String, u64>,
    protocols: BTreeMap<String, u64>,
    fragments: BTreeMap<String, u64>,
    extensions: BTreeMap<String, u64>,
    /// Stations in either direction, tags, id.
    sessions: BTreeSet<(BTreeSet<String>, String, String)>,
    tuples: BTreeSet<Tuple>,
}

/// A frame: its fields' values, each list outermost first.
struct Fields<'a>(Vec<Vec<&'a str>>);

impl<'a> Fields<'a> {
    fn read(line: &'a str) -> Result<Fields<'a>> {
        let values = |field: &'a str| field.split(',').filter(|value| !value.is_empty()).collect();
        let fields: Vec<Vec<&str>> = line.split('\t').map(values).collect();
        ensure!(fields.len() == FIELDS.len(), "{} fields and not {}", fields.len(), FIELDS.len());
        Ok(Fields(fields))
    }

    fn all(&self, name: &str) -> &[&'a str] {
        let place = FIELDS.iter().position(|field| *field == name);
        place.and_then(|place| self.0.get(place)).map_or(&[], Vec::as_slice)
    }

    /// The outermost value.
    fn first(&self, name: &str) -> Option<&'a str> {
        self.all(name).first().copied()
    }
}

impl Summary {
    fn add(&mut self, line: &str) -> Result<()> {
        let fields = Fields::read(line)?;
        self.frames += 1;
        let stack = stack(fields.first("frame.protocols").context("no protocols")?);
        let tags = tags(&stack, &fields)?;
        count(&mut self.stacks, &stack.join(":"));
        count(&mut self.tags, &tags);
        if let Some(code) = fields.first("pppoe.code") {
            count(&mut self.codes, code);
        }
        if stack.contains(&"pppoes") {
            let stations = fields.all("eth.addr").iter().map(|&address| address.to_owned()).collect();
            let id = fields.first("pppoe.session_id").context("a session without an id")?;
            self.sessions.insert((stations, tags, id.to_owned()));
        }
        if let Some(protocol) = fields.first("ppp.protocol") {
            count(&mut self.protocols, protocol);
        }
        if let Some(place) = fragment(&fields)? {
            count(&mut self.fragments, place);
        }
        for name in &stack {
            if *name == "ah" || name.starts_with("ipv6.") {
                count(&mut self.extensions, name);
            }
        }
        self.tuples.extend(tuple(&stack, &fields));
        Ok(())
    }

    fn json(&self) -> Value {
        let both: BTreeSet<Tuple> =
            self.tuples.iter().map(|tuple| tuple.clone().min(turned(tuple))).collect();
        json!({
            "frames": self.frames,
            "stacks_to_l4": object(&self.stacks),
            "vlan_tag_stacks": object(&self.tags),
            "pppoe_codes": object(&self.codes),
            "pppoe_distinct_sessions": self.sessions.len(),
            "ppp_protocols": object(&self.protocols),
            "ipv6_ext_headers": object(&self.extensions),
            "fragments": object(&self.fragments),
            "distinct_5tuples_unidirectional": self.tuples.len(),
            "distinct_5tuples_bidirectional": both.len(),
        })
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}

fn object(counts: &BTreeMap<String, u64>) -> Value {
    Value::Object(counts.iter().map(|(name, frames)| (name.clone(), json!(frames))).collect::<Map<_, _>>())
}

fn turned((source, destination, protocol, from, to): &Tuple) -> Tuple {
    (destination.clone(), source.clone(), protocol.clone(), to.clone(), from.clone())
}

/// The protocols from Ethernet to transport. `ethertype` is a field to tshark's eyes too, and `data` what it cannot
/// read.
fn stack(protocols: &str) -> Vec<&str> {
    let mut names: Vec<&str> =
        protocols.split(':').filter(|name| !["ethertype", "data"].contains(name)).collect();
    if let Some(last) = names.iter().position(|name| LAST.contains(name)) {
        names.truncate(last + 1);
    }
    names
}

/// TPID and VLAN ID of each tag, as in `0x88a8/7 0x8100/100`.
fn tags(stack: &[&str], fields: &Fields<'_>) -> Result<String> {
    let (mut inner, mut outer) = (fields.all("vlan.id").iter(), fields.all("ieee8021ad.id").iter());
    let mut tags = Vec::new();
    for name in stack {
        let (tpid, id) = match *name {
            "vlan" => ("0x8100", inner.next()),
            "ieee8021ad" => ("0x88a8", outer.next()),
            _ => continue,
        };
        tags.push(format!("{tpid}/{}", id.context("a tag without an id")?));
    }
    Ok(if tags.is_empty() { "untagged".to_owned() } else { tags.join(" ") })
}

/// Where in a datagram the packet is; `None` for a whole one.
fn fragment(fields: &Fields<'_>) -> Result<Option<&'static str>> {
    let (offset, more) = match fields.first("ip.src") {
        Some(_) => ("ip.frag_offset", "ip.flags.mf"),
        None => ("ipv6.fraghdr.offset", "ipv6.fraghdr.more"),
    };
    let Some(offset) = fields.first(offset) else { return Ok(None) };
    let offset: u32 = offset.parse().context("offset of a fragment")?;
    let more = match fields.first(more) {
        Some("1" | "True") => true,
        Some("0" | "False") => false,
        other => anyhow::bail!("more fragments: {other:?}"),
    };
    Ok(match (offset, more) {
        (0, false) => None,
        (0, true) => Some("first"),
        (_, _) => Some("non_first"),
    })
}

/// Of TCP and UDP only, and not of a packet that an ICMP error quotes.
fn tuple(stack: &[&str], fields: &Fields<'_>) -> Option<Tuple> {
    let protocol = *stack.last().filter(|last| ["tcp", "udp"].contains(last))?;
    let network = *stack.iter().find(|name| ["ip", "ipv6"].contains(name))?;
    let field = |name: String| fields.first(&name).map(str::to_owned);
    Some((
        field(format!("{network}.src"))?,
        field(format!("{network}.dst"))?,
        protocol.to_owned(),
        field(format!("{protocol}.srcport"))?,
        field(format!("{protocol}.dstport"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[(&str, &str)]) -> String {
        let value =
            |name: &&str| values.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value);
        FIELDS.iter().map(value).collect::<Vec<_>>().join("\t")
    }

    fn summary(lines: &[String]) -> Value {
        let mut summary = Summary::default();
        for line in lines {
            summary.add(line).expect("a frame");
        }
        summary.json()
    }

    #[test]
    fn sessions_are_told_by_stations_tags_and_id_in_either_direction() {
        let frame = |stations: &str, id: &str| {
            line(&[
                ("frame.protocols", "eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:pppoes:ppp:lcp"),
                ("eth.addr", stations),
                ("vlan.id", "100"),
                ("ieee8021ad.id", "7"),
                ("pppoe.code", "0x00"),
                ("pppoe.session_id", id),
                ("ppp.protocol", "0xc021"),
            ])
        };
        let json = summary(&[frame("a,b", "0x0001"), frame("b,a", "0x0001"), frame("a,b", "0x0002")]);
        assert_eq!(json["pppoe_distinct_sessions"], 2);
        assert_eq!(json["vlan_tag_stacks"], json!({"0x88a8/7 0x8100/100": 3}));
        assert_eq!(json["stacks_to_l4"], json!({"eth:ieee8021ad:vlan:pppoes:ppp:lcp": 3}));
    }

    #[test]
    fn a_flow_is_that_of_the_packet_and_not_of_one_it_quotes() {
        let packet = |source: &str, destination: &str, from: &str, to: &str| {
            line(&[
                ("frame.protocols", "eth:ethertype:ip:udp:data"),
                ("ip.src", source),
                ("ip.dst", destination),
                ("ip.frag_offset", "0"),
                ("ip.flags.mf", "0"),
                ("udp.srcport", from),
                ("udp.dstport", to),
            ])
        };
        let error = line(&[
            ("frame.protocols", "eth:ethertype:ip:icmp:ip:udp"),
            ("ip.src", "x,a"),
            ("ip.dst", "a,b"),
            ("ip.frag_offset", "0,0"),
            ("ip.flags.mf", "0,1"),
            ("udp.srcport", "9"),
            ("udp.dstport", "9"),
        ]);
        let json = summary(&[packet("a", "b", "1", "2"), packet("b", "a", "2", "1"), error]);
        assert_eq!(json["distinct_5tuples_unidirectional"], 2);
        assert_eq!(json["distinct_5tuples_bidirectional"], 1);
        assert_eq!(json["stacks_to_l4"], json!({"eth:ip:icmp": 1, "eth:ip:udp": 2}));
        assert_eq!(json["fragments"], json!({}));
    }

    #[test]
    fn a_fragment_is_first_or_later_and_an_atomic_one_neither() {
        let fragment = |offset: &str, more: &str| {
            line(&[
                ("frame.protocols", "eth:ethertype:ipv6:ipv6.fraghdr:data"),
                ("ipv6.src", "a"),
                ("ipv6.fraghdr.offset", offset),
                ("ipv6.fraghdr.more", more),
            ])
        };
        let lines = [fragment("0", "1"), fragment("181", "1"), fragment("362", "0"), fragment("0", "0")];
        let json = summary(&lines);
        assert_eq!(json["fragments"], json!({"first": 1, "non_first": 2}));
        assert_eq!(json["ipv6_ext_headers"], json!({"ipv6.fraghdr": 4}));
    }

    #[test]
    fn an_answer_in_another_form_is_an_error() {
        assert!(Summary::default().add("eth:ip\t1").is_err());
        let torn = line(&[("frame.protocols", "eth:vlan:ip:tcp")]);
        assert!(Summary::default().add(&torn).is_err(), "a tag without an id");
    }
}

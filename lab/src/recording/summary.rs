//! What tshark says of a capture, counted in the form that captures in this project are compared with
//! (`NAME.expected.json` next to a capture): nothing of it comes from the project's own dissection.
//!
//! Reassembly is off: a fragment or segment counts as what it is on the wire.

use super::tshark::{self, Fields};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What a tshark program says of the capture.
///
/// # Errors
///
/// It cannot be run, fails, or answers in another form.
pub fn of(tshark: &Path, capture: &Path) -> Result<Value> {
    let mut summary = Summary::default();
    for (place, fields) in tshark::frames(tshark, capture)?.iter().enumerate() {
        summary.add(fields).with_context(|| format!("{}: frame {}", capture.display(), place + 1))?;
    }
    let mut json = summary.json();
    let name = capture.file_name().context("a file name")?.to_string_lossy();
    json["file"] = json!(name);
    json["tool"] = json!(tshark::version(tshark)?);
    Ok(json)
}

/// Addresses, protocol and ports.
type Tuple = (String, String, String, String, String);

#[derive(Debug, Default)]
struct Summary {
    frames: u64,
    malformed: u64,
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

impl Summary {
    fn add(&mut self, fields: &Fields) -> Result<()> {
        self.frames += 1;
        self.malformed += u64::from(fields.first("_ws.malformed").is_some());
        let (stack, tags) = (fields.stack()?, fields.tags()?);
        count(&mut self.stacks, &stack.join(":"));
        count(&mut self.tags, &tags);
        if let Some(code) = fields.first("pppoe.code") {
            count(&mut self.codes, code);
        }
        if stack.contains(&"pppoes") {
            let stations = fields.all("eth.addr").iter().cloned().collect();
            let id = fields.first("pppoe.session_id").context("a session without an id")?;
            self.sessions.insert((stations, tags, id.to_owned()));
        }
        if let Some(protocol) = fields.first("ppp.protocol") {
            count(&mut self.protocols, protocol);
        }
        if let Some(place) = fragment(fields)? {
            count(&mut self.fragments, place);
        }
        for name in &stack {
            if *name == "ah" || name.starts_with("ipv6.") {
                count(&mut self.extensions, name);
            }
        }
        self.tuples.extend(tuple(&stack, fields));
        Ok(())
    }

    fn json(&self) -> Value {
        let both: BTreeSet<Tuple> =
            self.tuples.iter().map(|tuple| tuple.clone().min(turned(tuple))).collect();
        json!({
            "frames": self.frames,
            "frames_malformed_by_tshark": self.malformed,
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

/// Where in a datagram the packet is; `None` for a whole one.
fn fragment(fields: &Fields) -> Result<Option<&'static str>> {
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
fn tuple(stack: &[&str], fields: &Fields) -> Option<Tuple> {
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
    use super::super::tshark::frame;
    use super::*;

    fn summary(frames: &[Fields]) -> Value {
        let mut summary = Summary::default();
        for frame in frames {
            summary.add(frame).expect("a frame");
        }
        summary.json()
    }

    #[test]
    fn sessions_differ_by_stations_tags_and_id_in_either_direction() {
        let session = |stations: &str, id: &str| {
            frame(&[
                ("frame.protocols", "eth:ethertype:ieee8021ad:ethertype:vlan:ethertype:pppoes:ppp:lcp"),
                ("eth.addr", stations),
                ("vlan.id", "100"),
                ("ieee8021ad.id", "7"),
                ("pppoe.code", "0x00"),
                ("pppoe.session_id", id),
                ("ppp.protocol", "0xc021"),
            ])
        };
        let json = summary(&[session("a,b", "0x0001"), session("b,a", "0x0001"), session("a,b", "0x0002")]);
        assert_eq!(json["pppoe_distinct_sessions"], 2);
        assert_eq!(json["vlan_tag_stacks"], json!({"0x88a8/7 0x8100/100": 3}));
        assert_eq!(json["stacks_to_l4"], json!({"eth:ieee8021ad:vlan:pppoes:ppp:lcp": 3}));
    }

    #[test]
    fn a_flow_is_that_of_the_packet_and_not_of_one_it_quotes() {
        let packet = |source: &str, destination: &str, from: &str, to: &str| {
            frame(&[
                ("frame.protocols", "eth:ethertype:ip:udp:data"),
                ("ip.src", source),
                ("ip.dst", destination),
                ("ip.frag_offset", "0"),
                ("ip.flags.mf", "0"),
                ("udp.srcport", from),
                ("udp.dstport", to),
            ])
        };
        let error = frame(&[
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
            frame(&[
                ("frame.protocols", "eth:ethertype:ipv6:ipv6.fraghdr:data"),
                ("ipv6.src", "a"),
                ("ipv6.fraghdr.offset", offset),
                ("ipv6.fraghdr.more", more),
            ])
        };
        let frames = [fragment("0", "1"), fragment("181", "1"), fragment("362", "0"), fragment("0", "0")];
        let json = summary(&frames);
        assert_eq!(json["fragments"], json!({"first": 1, "non_first": 2}));
        assert_eq!(json["ipv6_ext_headers"], json!({"ipv6.fraghdr": 4}));
    }
}

//! What was found, as JSON and as text.

use super::{DiscoverArguments, advice};
use crate::output::Output;
use crate::pppoe_command::{BOLD, POOR};
use anstyle::Style;
use format::{Quotable, printable};
use kernel::netlink::Link;
use pppoe::discovery::PLAIN_PAYLOAD;
use pppoe::discovery::complaint::Complaint;
use pppoe::discovery::offer::Offer;
use pppoe::discovery::probe::{Answer, Probe};
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use wire::Vlans;
use wire::pppoe::TagType;

/// Schema `rxlane.pppoe-discover/1`: fields are added, never renamed. Names and texts of concentrators are escaped as they
/// are displayed.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    interface: String,
    /// As an encapsulation is written; `none`.
    pub vlans: String,
    pub asked: Query,
    seconds: u64,
    pub sent: usize,
    /// Who answered, in the order of the first answers.
    concentrators: Vec<Concentrator>,
    /// Tags of other discovery packets that were seen.
    pub elsewhere: Vec<String>,
    pub ignored: Ignored,
    /// What to do, if no concentrator that fits has answered, and what to know.
    advice: Vec<String>,
}

#[derive(Debug, Serialize)]
pub struct Query {
    /// Empty for any.
    pub service: String,
    pub ac: Option<String>,
    /// Bytes; `null`: not requested.
    pub max_payload: Option<u16>,
}

#[derive(Debug, Serialize)]
pub struct Concentrator {
    ac_name: String,
    mac: String,
    services: Vec<String>,
    /// Whether it is the requested one, serves the service, and says nothing else.
    fits: bool,
    /// Largest PPP payload that it agrees to, bytes.
    max_payload: u16,
    latency: Latency,
    tags: Vec<Tag>,
    pub error: Option<Fault>,
}

/// Milliseconds from a PADI to its PADO.
#[derive(Debug, Serialize)]
struct Latency {
    least: f64,
    median: f64,
    most: f64,
    /// Answers, one a PADI at most.
    answers: usize,
}

#[derive(Debug, Serialize)]
struct Tag {
    /// `0x0101`
    #[serde(rename = "type")]
    kind: String,
    name: Option<&'static str>,
    /// Of its value.
    #[serde(rename = "octets")]
    bytes: u16,
}

/// An error tag in an offer.
#[derive(Debug, Serialize)]
pub struct Fault {
    tag: &'static str,
    text: String,
}

/// Discovery packets with the tags of the line that did not count.
#[derive(Debug, Serialize)]
pub struct Ignored {
    /// To other stations, or from a group.
    addresses: u32,
    /// That contradict themselves.
    malformed: u32,
    /// Answers to somebody else.
    foreign: u32,
    /// No answers at all: other hosts look for a concentrator, too.
    unexpected: u32,
    /// Beyond the bounds of what is kept.
    surplus: u32,
}

impl Report {
    pub fn new(arguments: &DiscoverArguments, parent: &Link, vlans: Vlans, probe: &Probe) -> Report {
        let fits = |offer: &Offer| {
            let is_the_one = arguments.ac.as_ref().is_none_or(|pin| pin.is(offer));
            is_the_one && offer.complaint.is_none() && offer.serves(arguments.service.as_bytes())
        };
        let ignored = probe.ignored();
        let mut report = Report {
            schema: "rxlane.pppoe-discover/1",
            interface: parent.name.clone(),
            vlans: vlans.to_string(),
            asked: Query {
                service: arguments.service.clone(),
                ac: arguments.ac.as_ref().map(|pin| pin.to_string().trim_matches('"').to_owned()),
                max_payload: Some(arguments.max_payload).filter(|bytes| *bytes > PLAIN_PAYLOAD),
            },
            seconds: arguments.seconds,
            sent: probe.sent(),
            concentrators: probe
                .answers()
                .iter()
                .map(|answer| Concentrator::new(answer, fits(&answer.offer)))
                .collect(),
            elsewhere: probe.elsewhere().iter().map(ToString::to_string).collect(),
            ignored: Ignored {
                addresses: ignored.addresses,
                malformed: ignored.malformed,
                foreign: ignored.foreign,
                unexpected: ignored.unexpected,
                surplus: ignored.surplus,
            },
            advice: Vec::new(),
        };
        report.advice = advice::advice(&report, parent, vlans);
        report
    }

    pub fn is_answered(&self) -> bool {
        self.concentrators.iter().any(|concentrator| concentrator.fits)
    }

    pub fn has_answers(&self) -> bool {
        !self.concentrators.is_empty()
    }

    pub fn has_errors(&self) -> bool {
        self.concentrators.iter().any(|concentrator| concentrator.error.is_some())
    }

    /// The largest payload that one agrees to, where that is more than RFC 2516 has.
    pub fn larger_payload(&self) -> Option<u16> {
        let agreed = self.concentrators.iter().map(|concentrator| concentrator.max_payload);
        agreed.max().filter(|bytes| *bytes > PLAIN_PAYLOAD)
    }

    pub fn print(&self, out: &mut Output) -> io::Result<()> {
        let line = match self.vlans.as_str() {
            "none" => "without a VLAN tag".to_owned(),
            vlans => format!("in VLAN {vlans}"),
        };
        let who = match self.concentrators.len() {
            0 => "nobody".to_owned(),
            1 => "1 concentrator".to_owned(),
            count => format!("{count} concentrators"),
        };
        let (name, sent, seconds) = (printable(&self.interface), self.sent, self.seconds);
        let headline = format!("{name} {line}: {who} answered {sent} PADI in {seconds} s.");
        out.hanging("", 0, &headline, BOLD)?;
        if self.has_answers() {
            self.table(out)?;
            out.heading("Tags of their offers, bytes")?;
            for concentrator in &self.concentrators {
                let tags: Vec<String> = concentrator.tags.iter().map(Tag::in_words).collect();
                out.item(19, &concentrator.mac, &tags.join(", "))?;
            }
        }
        if !self.advice.is_empty() {
            out.heading(if self.is_answered() { "Note" } else { "What to do" })?;
        }
        for sentence in &self.advice {
            out.hanging("  - ", 4, &printable(sentence), Style::new())?;
        }
        Ok(())
    }

    fn table(&self, out: &mut Output) -> io::Result<()> {
        writeln!(out)?;
        let mut rows =
            vec![["AC name", "MAC address", "payload", "latency", "services"].map(str::to_owned).to_vec()];
        rows.extend(self.concentrators.iter().map(Concentrator::row));
        crate::nics::table(out, &rows)?;
        for concentrator in self.concentrators.iter().filter(|concentrator| !concentrator.fits) {
            let text = match &concentrator.error {
                Some(Fault { tag, text }) => format!("{} says {tag} \"{text}\"", concentrator.mac),
                None => format!("{} is not what was asked for", concentrator.mac),
            };
            out.hanging("", 0, &text, POOR)?;
        }
        Ok(())
    }
}

impl Concentrator {
    fn new(answer: &Answer, fits: bool) -> Concentrator {
        let offer = &answer.offer;
        let escaped = |bytes: &Vec<u8>| Quotable(bytes).to_string();
        Concentrator {
            ac_name: escaped(&offer.ac_name),
            mac: offer.concentrator.to_string(),
            services: offer.services.iter().map(escaped).collect(),
            fits,
            max_payload: offer.max_payload.unwrap_or(PLAIN_PAYLOAD).max(PLAIN_PAYLOAD),
            latency: Latency::of(&answer.latencies),
            tags: answer.tags.iter().map(|(kind, bytes)| Tag::new(*kind, *bytes)).collect(),
            error: offer
                .complaint
                .as_ref()
                .map(|Complaint { kind, text }| Fault { tag: kind.name(), text: escaped(text) }),
        }
    }

    fn row(&self) -> Vec<String> {
        const LONGEST: usize = 24;
        let mut name: String = self.ac_name.chars().take(LONGEST).collect();
        if name.len() < self.ac_name.len() {
            name.push('…');
        }
        let named: Vec<&str> =
            self.services.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        let services = if named.is_empty() { "one without a name".to_owned() } else { named.join(", ") };
        let latency = format!("{:.2} ms", self.latency.median);
        vec![name, self.mac.clone(), self.max_payload.to_string(), latency, services]
    }
}

impl Latency {
    fn of(latencies: &[Duration]) -> Latency {
        let mut sorted = latencies.to_vec();
        sorted.sort_unstable();
        // To a thousandth: more is not measured.
        let at = |place: usize| {
            let time = sorted.get(place).copied().unwrap_or_default();
            (time.as_secs_f64() * 1e6).round() / 1e3
        };
        let last = sorted.len().saturating_sub(1);
        Latency { least: at(0), median: at(last / 2), most: at(last), answers: sorted.len() }
    }
}

impl Tag {
    fn new(kind: TagType, bytes: u16) -> Tag {
        let name = match kind {
            TagType::SERVICE_NAME => Some("Service-Name"),
            TagType::AC_NAME => Some("AC-Name"),
            TagType::HOST_UNIQ => Some("Host-Uniq"),
            TagType::AC_COOKIE => Some("AC-Cookie"),
            TagType::VENDOR_SPECIFIC => Some("Vendor-Specific"),
            TagType::RELAY_SESSION_ID => Some("Relay-Session-Id"),
            TagType::PPP_MAX_PAYLOAD => Some("PPP-Max-Payload"),
            TagType::SERVICE_NAME_ERROR => Some("Service-Name-Error"),
            TagType::AC_SYSTEM_ERROR => Some("AC-System-Error"),
            TagType::GENERIC_ERROR => Some("Generic-Error"),
            _ => None,
        };
        Tag { kind: format!("{kind:?}"), name, bytes }
    }

    fn in_words(&self) -> String {
        format!("{} {}", self.name.unwrap_or(&self.kind), self.bytes)
    }
}

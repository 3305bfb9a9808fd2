//! Would a device spread such traffic over its queues? The question is put to the same parser model that
//! places real frames: a sample frame of the traffic is dissected and judged.

use crate::parser::{self, ParserDepth, Why};
use crate::receiver::{Receiver, Setup};
use crate::schema::{self, Key};
use crate::{Mode, Profile, Refusal};
use rss::HashType;
use std::fmt;
use std::str::FromStr;
use wire::{Dissection, Link, dissect};

/// A kind of traffic, as `--can` spells it: words joined by commas, `pppoe,qinq`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    tpids: Vec<u16>,
    pppoe: bool,
    mpls: bool,
    llc: bool,
    ipv6: bool,
    udp: bool,
    options: bool,
    extensions: bool,
}

/// The words that [`Traffic`] is made of, with their meaning.
pub const WORDS: &[(&str, &str)] = &[
    ("vlan", "one tag, 0x8100"),
    ("qinq", "two tags, 0x88a8 outside and 0x8100 inside"),
    ("8100.8100", "these tags, outermost first; any TPIDs in hex"),
    ("pppoe", "PPPoE session"),
    ("mpls", "an MPLS label stack"),
    ("llc", "802.3 with LLC and SNAP"),
    ("ipv6", "IPv6 instead of IPv4"),
    ("udp", "UDP instead of TCP"),
    ("options", "IPv4 with options"),
    ("extensions", "IPv6 with an extension header"),
];

impl FromStr for Traffic {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Traffic, Refusal> {
        let mut traffic = Traffic::default();
        for word in text.split(',').map(str::trim) {
            match word {
                "vlan" => traffic.tag(vec![0x8100])?,
                "qinq" => traffic.tag(vec![0x88a8, 0x8100])?,
                "pppoe" => traffic.pppoe = true,
                "mpls" => traffic.mpls = true,
                "llc" => traffic.llc = true,
                "ipv6" => traffic.ipv6 = true,
                "udp" => traffic.udp = true,
                "options" => traffic.options = true,
                "extensions" => (traffic.extensions, traffic.ipv6) = (true, true),
                "ipv4" | "tcp" => {}
                stack => traffic.tag(tpids(stack).ok_or_else(|| {
                    let known: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
                    Refusal(format!("`{word}` is no kind of traffic; known are {}", known.join(", ")))
                })?)?,
            }
        }
        let both = |one, other| Err(Refusal(format!("`{one}` and `{other}` do not go together")));
        match &traffic {
            Traffic { pppoe: true, mpls: true, .. } => both("pppoe", "mpls"),
            Traffic { pppoe: true, llc: true, .. } => both("pppoe", "llc"),
            Traffic { mpls: true, llc: true, .. } => both("mpls", "llc"),
            Traffic { options: true, ipv6: true, .. } => both("options", "ipv6"),
            _ => Ok(traffic),
        }
    }
}

/// TPIDs that count as tags (the others would be taken for payload by any parser).
const TPIDS: [u16; 5] = [0x8100, 0x88a8, 0x9100, 0x9200, 0x9300];

fn tpids(stack: &str) -> Option<Vec<u16>> {
    let hex = |part: &str| u16::from_str_radix(part.strip_prefix("0x").unwrap_or(part), 16).ok();
    let tpid = |part: &str| hex(part).filter(|tpid| TPIDS.contains(tpid));
    stack.split('.').map(tpid).collect::<Option<Vec<u16>>>().filter(|tpids| tpids.len() <= 8)
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = if self.udp { "UDP" } else { "TCP" };
        let network = match (self.ipv6, self.options, self.extensions) {
            (false, true, _) => "IPv4 with options",
            (false, ..) => "IPv4",
            (true, _, true) => "IPv6 with an extension header",
            (true, ..) => "IPv6",
        };
        write!(f, "{transport} over {network}")?;
        let layers = [(self.pppoe, "PPPoE"), (self.mpls, "MPLS"), (self.llc, "LLC/SNAP")];
        for (_, name) in layers.into_iter().filter(|(present, _)| *present) {
            write!(f, " in {name}")?;
        }
        match self.tpids.as_slice() {
            [] => Ok(()),
            [tpid] => write!(f, " under tag {tpid:#06x}"),
            tpids => {
                f.write_str(" under tags")?;
                tpids.iter().try_for_each(|tpid| write!(f, " {tpid:#06x}"))
            }
        }
    }
}

impl Traffic {
    fn tag(&mut self, tpids: Vec<u16>) -> Result<(), Refusal> {
        if !self.tpids.is_empty() {
            return Err(Refusal("tags are given twice; write one stack, such as 88a8.8100".to_owned()));
        }
        self.tpids = tpids;
        Ok(())
    }

    /// A frame of this traffic, without FCS.
    fn sample(&self) -> Vec<u8> {
        let packet = if self.ipv6 { self.ipv6_packet() } else { self.ipv4_packet() };
        let ethertype: u16 = if self.ipv6 { 0x86dd } else { 0x0800 };
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tpid in &self.tpids {
            frame.extend(tpid.to_be_bytes());
            frame.extend([0, 7]);
        }
        let length = |more: usize| ((packet.len() + more) as u16).to_be_bytes();
        if self.pppoe {
            // RFC 2516 section 4: version 1, type 1, code 0, session 1; PPP protocol of RFC 1661 section 2.
            frame.extend([0x88, 0x64, 0x11, 0, 0, 1]);
            frame.extend(length(2));
            frame.extend(if self.ipv6 { [0, 0x57] } else { [0, 0x21] });
        } else if self.mpls {
            // RFC 3032 section 2.1: label 16, bottom of stack, TTL 64.
            frame.extend([0x88, 0x47, 0, 1, 1, 64]);
        } else if self.llc {
            frame.extend(length(8));
            frame.extend([0xaa, 0xaa, 3, 0, 0, 0]);
            frame.extend(ethertype.to_be_bytes());
        } else {
            frame.extend(ethertype.to_be_bytes());
        }
        frame.extend(packet);
        frame
    }

    fn ipv4_packet(&self) -> Vec<u8> {
        let transport = self.transport();
        let options: &[u8] = if self.options { &[1, 1, 1, 0] } else { &[] };
        let length = (20 + options.len() + transport.len()) as u16;
        let mut packet = vec![0x45 + (options.len() / 4) as u8, 0];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, if self.udp { 17 } else { 6 }, 0, 0]);
        packet.extend([192, 0, 2, 1, 198, 51, 100, 1]);
        packet.extend(options);
        packet.extend(transport);
        packet
    }

    fn ipv6_packet(&self) -> Vec<u8> {
        let transport = self.transport();
        let protocol = if self.udp { 17 } else { 6 };
        // A hop-by-hop options header that is all padding (RFC 8200 sections 4.2 and 4.3).
        let extension = if self.extensions { vec![protocol, 0, 1, 4, 0, 0, 0, 0] } else { Vec::new() };
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(((extension.len() + transport.len()) as u16).to_be_bytes());
        packet.extend([if self.extensions { 0 } else { protocol }, 64]);
        for last in [1, 2] {
            packet.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
        }
        packet.extend(extension);
        packet.extend(transport);
        packet
    }

    fn transport(&self) -> Vec<u8> {
        let mut header = vec![0x04, 0x00, 0x01, 0xbb];
        match self.udp {
            true => header.extend([0, 8, 0, 0]),
            false => header.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]),
        }
        header
    }
}

/// Whether a device would spread some traffic over its queues.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words say it")]
pub enum Verdict {
    /// It would, by this hash; [`HashType::None`] where the profile does not name the hash type.
    Yes(HashType),
    No(Reason),
    /// The profile does not say.
    Unknown(Reason),
}

/// Why not, or why nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`Display` has the sentence of each")]
pub enum Reason {
    Parser(Why),
    NoType,
    OneQueue,
    /// The sending side, or the host, chooses the queue.
    Elsewhere(&'static str),
    Lacks(Key),
}

impl Reason {
    /// The claim that decides.
    pub fn key(&self) -> Option<Key> {
        match self {
            Reason::Parser(why) => why.key(),
            Reason::NoType => Some(schema::TYPES_DEFAULT),
            Reason::OneQueue | Reason::Elsewhere(_) => Some(schema::SELECTION),
            Reason::Lacks(key) => Some(*key),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Parser(why) => why.fmt(f),
            Reason::NoType => f.write_str("no hash type for it is enabled"),
            Reason::OneQueue => f.write_str("one receive queue"),
            Reason::Elsewhere(who) => write!(f, "{who} chooses the queue"),
            Reason::Lacks(key) => Why::Lacks(*key).fmt(f),
        }
    }
}

/// The verdict on a device and on each of its modes.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// The device.
    pub profile: &'a Profile,
    /// As it works by default.
    pub verdict: Verdict,
    /// The modes in which it would, where it does not by default.
    pub modes: Vec<&'a Mode>,
}

impl Answer<'_> {
    /// Whether it would as it is, or in a mode that an unmodified driver can be configured to use.
    pub fn is_available(&self) -> bool {
        matches!(self.verdict, Verdict::Yes(_)) || self.modes.iter().any(|mode| mode.available == Some(true))
    }

    /// `yes`, `mode`, `no` or `unknown`; of a `mode` ask [`Answer::is_available`], too.
    pub fn word(&self) -> &'static str {
        match (&self.verdict, self.modes.is_empty()) {
            (Verdict::Yes(_), _) => "yes",
            (_, false) => "mode",
            (Verdict::No(_), true) => "no",
            (Verdict::Unknown(_), true) => "unknown",
        }
    }
}

/// Would `profile` spread `traffic`, by default or in one of its modes?
pub fn answer<'a>(profile: &'a Profile, traffic: &Traffic) -> Answer<'a> {
    let verdict = judge(profile, traffic);
    let would = |mode: &&Mode| {
        let changed = profile.with_mode(&mode.name);
        changed.is_ok_and(|changed| matches!(judge(&changed, traffic), Verdict::Yes(_)))
    };
    let modes = match verdict {
        Verdict::Yes(_) => Vec::new(),
        _ => profile.modes().iter().filter(would).collect(),
    };
    Answer { profile, verdict, modes }
}

/// The verdict on the device as it is.
pub fn judge(profile: &Profile, traffic: &Traffic) -> Verdict {
    match profile.text(schema::SELECTION) {
        Some("rss" | "hash") if profile.int(schema::RX_QUEUES) == Some(1) => Verdict::No(Reason::OneQueue),
        Some("rss" | "hash") => parsed(profile, traffic),
        Some("single") => Verdict::No(Reason::OneQueue),
        Some("sender") => Verdict::Unknown(Reason::Elsewhere("the sending side")),
        Some("host") => Verdict::Unknown(Reason::Elsewhere("the host")),
        _ => Verdict::Unknown(Reason::Lacks(schema::SELECTION)),
    }
}

fn parsed(profile: &Profile, traffic: &Traffic) -> Verdict {
    let frame = traffic.sample();
    let dissection = dissect(Link::Ethernet, &frame, frame.len());
    let (depth, why) = parser::depth(profile, dissection.shape());
    match depth {
        ParserDepth::Nothing => Verdict::No(Reason::Parser(why)),
        ParserDepth::Unknown => Verdict::Unknown(Reason::Parser(why)),
        ParserDepth::Transport | ParserDepth::Addresses => match hash_type(profile, &dissection) {
            Some(HashType::None) => Verdict::No(Reason::NoType),
            Some(hash_type) => Verdict::Yes(hash_type),
            None => Verdict::Yes(HashType::None),
        },
    }
}

/// The hash type by default; `None` where the profile does not say.
fn hash_type(profile: &Profile, dissection: &Dissection) -> Option<HashType> {
    let receiver = Receiver::new(profile.clone(), &Setup::default()).ok()?;
    let disposition = receiver.disposition(dissection);
    (disposition.depth != ParserDepth::Unknown).then_some(disposition.hash_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Word;

    /// The question is put about the traffic that was meant: every sample dissects without a defect into
    /// the stack that its words say.
    #[test]
    fn samples_are_what_they_are_called() {
        let cases = [
            ("tcp", "eth/ipv4/tcp"),
            ("vlan,udp", "eth/vlan/ipv4/udp"),
            ("qinq,pppoe", "eth/vlan/vlan/pppoe/ipv4/tcp"),
            ("9100.8100.8100,ipv6", "eth/vlan/vlan/vlan/ipv6/tcp"),
            ("pppoe,ipv6,udp", "eth/pppoe/ipv6/udp"),
            ("mpls", "eth/mpls/ipv4/tcp"),
            ("llc,vlan", "eth/vlan/llc/ipv4/tcp"),
            ("options", "eth/ipv4/tcp"),
            ("extensions", "eth/ipv6/tcp"),
        ];
        for (words, stack) in cases {
            let traffic: Traffic = words.parse().unwrap();
            let frame = traffic.sample();
            let dissection = dissect(Link::Ethernet, &frame, frame.len());
            assert!(dissection.error().is_none(), "{words}: {:?}", dissection.error());
            assert_eq!(dissection.stack().to_string(), stack, "{words}");
            assert_eq!(dissection.has_ipv4_options(), words == "options");
            assert_eq!(dissection.extensions().is_empty(), words != "extensions");
            assert_eq!(dissection.stack().contains(Word::Pppoe), words.contains("pppoe"));
        }
    }

    #[test]
    fn words_that_do_not_fit_are_errors() {
        let error = |text: &str| text.parse::<Traffic>().unwrap_err().to_string();
        assert!(error("pppo").starts_with("`pppo` is no kind of traffic; known are vlan, qinq"));
        assert!(error("0800").starts_with("`0800` is no kind"));
        assert_eq!(error("pppoe,mpls"), "`pppoe` and `mpls` do not go together");
        assert_eq!(error("vlan,qinq"), "tags are given twice; write one stack, such as 88a8.8100");
        assert!(error("").starts_with("`` is no kind"));
    }

    #[test]
    fn who_spreads_what() {
        for (nic, traffic, word) in [
            ("i210", "tcp", "yes"),
            ("i210", "vlan", "yes"),
            ("i210", "pppoe", "no"),
            ("i210", "qinq", "mode"),
            ("i210+double-vlan", "qinq", "yes"),
            ("i210+double-vlan", "tcp", "no"),
            ("i210", "pppoe,qinq", "no"),
            ("i210", "8100.8100", "mode"),
            ("e810", "pppoe", "mode"),
            ("e810+ddp-comms", "pppoe,udp", "yes"),
            ("i219", "tcp", "no"),
            ("82574", "tcp", "mode"),
            ("82574", "pppoe", "no"),
            ("82599", "qinq", "no"),
            ("x710", "qinq", "unknown"),
            ("x710", "8100.8100", "no"),
            ("x710", "pppoe", "mode"),
        ] {
            let profile = crate::lookup(nic).unwrap();
            let answer = answer(&profile, &traffic.parse().unwrap());
            assert_eq!(answer.word(), word, "{nic} {traffic}");
            // A mode that no driver uses is not available.
            let is_available = word == "yes" || (nic, traffic) == ("e810", "pppoe");
            if nic == "i210" || is_available {
                assert_eq!(answer.is_available(), is_available, "{nic} {traffic}");
            }
        }
    }

    #[test]
    fn udp_on_an_i210_is_spread_by_addresses() {
        let verdict = judge(&crate::lookup("i210").unwrap(), &"udp".parse().unwrap());
        assert_eq!(verdict, Verdict::Yes(HashType::Ipv4));
    }
}

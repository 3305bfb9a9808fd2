//! What a device's parser makes of a frame: which part of it reaches the hash unit, by the profile's claims.

use crate::Profile;
use crate::schema::{self, Key};
use std::fmt;
use wire::extension::Kind;
use wire::{Fragment, Shape, Word};

/// How far into a frame the parser comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the headers that are reached")]
pub enum ParserDepth {
    Transport,
    Addresses,
    Nothing,
    /// The profile does not say.
    Unknown,
}

/// Why a parser comes as far as it does.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "`Display` has the sentence of each")]
pub enum Why {
    Clear,
    Tags(Vec<u16>),
    /// The parser stops at these tags, and would stop at the PPPoE header behind them.
    TagsAndPppoe(Vec<u16>),
    /// The capturing machine sent the frame: it passes no receive queue.
    Outgoing,
    /// The frame was captured above the link layer: a network card never sees it so.
    AboveLink,
    /// The parser stops at what this claim is about: PPPoE, MPLS, LLC/SNAP.
    Header(Key),
    /// This claim says that only the addresses, or nothing, is hashed of such packets.
    Reach(Key),
    /// There is no IP header: the word of what is there.
    NotIp(Option<Word>),
    Lacks(Key),
    /// What this claim says decides, and rxlane does not compute it: another hash function, the sender's queue.
    Uncomputed(Key, String),
}

impl Why {
    /// The claim that decides, to be looked up with its source in the profile.
    pub const fn key(&self) -> Option<Key> {
        match self {
            Why::Clear | Why::NotIp(_) | Why::Outgoing | Why::AboveLink => None,
            Why::Tags(_) | Why::TagsAndPppoe(_) => Some(schema::TAGS_THROUGH),
            Why::Header(key) | Why::Reach(key) | Why::Lacks(key) | Why::Uncomputed(key, _) => Some(*key),
        }
    }
}

/// Tags that a sentence names.
const TAGS_NAMED: usize = 4;

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Clear => f.write_str("the parser reaches the transport header"),
            // A device in a mode for tagged frames alone.
            Why::Tags(tpids) | Why::TagsAndPppoe(tpids) if tpids.is_empty() => {
                f.write_str("the parser expects VLAN tags, and there are none")?;
                let pppoe = matches!(self, Why::TagsAndPppoe(_));
                if pppoe { f.write_str(", nor does it see through PPPoE") } else { Ok(()) }
            }
            Why::Tags(tpids) | Why::TagsAndPppoe(tpids) => {
                let tags: Vec<String> =
                    tpids.iter().take(TAGS_NAMED).map(|tpid| format!("{tpid:#06x}")).collect();
                let noun = if tags.len() == 1 { "VLAN tag" } else { "VLAN tags" };
                write!(f, "the parser does not see through {noun} {}", tags.join(" "))?;
                if tpids.len() > TAGS_NAMED {
                    write!(f, " and {} more", tpids.len() - TAGS_NAMED)?;
                }
                if matches!(self, Why::TagsAndPppoe(_)) { f.write_str(", nor through PPPoE") } else { Ok(()) }
            }
            Why::Outgoing => f.write_str("sent by the capturing machine, so it passes no receive queue"),
            Why::AboveLink => {
                f.write_str("captured behind the encapsulation, where a network card never sees it")
            }
            Why::Header(key) if *key == schema::PPPOE => f.write_str("the parser stops at the PPPoE header"),
            Why::Header(key) if *key == schema::MPLS => {
                f.write_str("the parser stops at the MPLS label stack")
            }
            Why::Header(_) => f.write_str("the parser stops at the LLC/SNAP header"),
            Why::Reach(key) => write!(f, "{}: no ports", key.label),
            Why::NotIp(Some(word)) => write!(f, "it holds no IP packet ({})", word.name()),
            Why::NotIp(None) => f.write_str("it holds no whole IP header"),
            Why::Lacks(key) => write!(f, "the profile does not say: {}", key.label),
            Why::Uncomputed(key, said) => write!(f, "rxlane does not compute it ({}: {said})", key.label),
        }
    }
}

/// What the parser of `profile` makes of frames of `shape`.
pub fn depth(profile: &Profile, shape: &Shape) -> (ParserDepth, Why) {
    if shape.is_outgoing() {
        return (ParserDepth::Unknown, Why::Outgoing);
    }
    if shape.is_above_link() {
        return (ParserDepth::Unknown, Why::AboveLink);
    }
    if let Some((depth, why)) = tags(profile, shape) {
        let twice = shape.stack().contains(Word::Pppoe) && profile.tri(schema::PPPOE) == Some(false);
        return match why {
            Why::Tags(tpids) if twice => (depth, Why::TagsAndPppoe(tpids)),
            why => (depth, why),
        };
    }
    for (word, key) in
        [(Word::Llc, schema::LLC_SNAP), (Word::Pppoe, schema::PPPOE), (Word::Mpls, schema::MPLS)]
    {
        // LLC without an IP header behind it is no question of SNAP.
        let applies = shape.stack().contains(word) && (word != Word::Llc || shape.is_snap());
        match profile.tri(key) {
            Some(true) => {}
            Some(false) if applies => return (ParserDepth::Nothing, Why::Header(key)),
            None if applies && shape.has_flow() => return (ParserDepth::Unknown, Why::Lacks(key)),
            _ => {}
        }
    }
    if !shape.has_flow() {
        let last = shape.stack().last().filter(|word| !matches!(word, Word::Eth | Word::Ipv4 | Word::Ipv6));
        return (ParserDepth::Nothing, Why::NotIp(last));
    }
    reach(profile, shape)
}

/// The TPIDs of a frame, outermost first.
pub(crate) fn tpids(shape: &Shape) -> Vec<u16> {
    shape.tpids().map(|tpid| tpid.0).collect()
}

/// `None` where the tags are seen through.
fn tags(profile: &Profile, shape: &Shape) -> Option<(ParserDepth, Why)> {
    let tpids = tpids(shape);
    let meant = |key: Key| profile.stacks(key).map(|all| all.iter().any(|pattern| pattern.matches(&tpids)));
    if tpids.is_empty() {
        let stops = meant(schema::TAGS_STOP) == Some(true);
        return stops.then_some((ParserDepth::Nothing, Why::Tags(tpids)));
    }
    match (meant(schema::TAGS_THROUGH), meant(schema::TAGS_STOP)) {
        (Some(true), _) => None,
        (_, Some(true)) => Some((ParserDepth::Nothing, Why::Tags(tpids))),
        _ => Some((ParserDepth::Unknown, Why::Lacks(schema::TAGS_THROUGH))),
    }
}

/// The least of what fragments, options and extension headers leave.
fn reach(profile: &Profile, shape: &Shape) -> (ParserDepth, Why) {
    let v6 = shape.is_ipv6();
    let has = |kind| shape.extensions().contains(kind);
    let later = shape.fragment() == Fragment::Later;
    let questions = [
        (shape.has_ipv4_options(), schema::IPV4_OPTIONS),
        (!v6 && shape.fragment() == Fragment::First, schema::IPV4_FRAGMENT_FIRST),
        (!v6 && later, schema::IPV4_FRAGMENT_LATER),
        (
            v6 && (has(Kind::HopByHop) || has(Kind::Routing) || has(Kind::DestinationOptions)),
            schema::IPV6_EXTENSIONS,
        ),
        // A fragment header without fragmentation is parsed like that of a first fragment.
        (v6 && has(Kind::Fragment) && !later, schema::IPV6_FRAGMENT_FIRST),
        (v6 && later, schema::IPV6_FRAGMENT_LATER),
    ];
    let mut answer = (ParserDepth::Transport, Why::Clear);
    for (_, key) in questions.into_iter().filter(|(applies, _)| *applies) {
        match profile.text(key) {
            Some("transport") => {}
            Some("addresses") => answer = (ParserDepth::Addresses, Why::Reach(key)),
            Some("nothing") => return (ParserDepth::Nothing, Why::Reach(key)),
            _ => return (ParserDepth::Unknown, Why::Lacks(key)),
        }
    }
    answer
}

//! What a device's parser makes of a frame: which part of it reaches the hash unit, by the profile's claims.

use crate::Profile;
use crate::schema::{self, Key};
use std::fmt;
use wire::ethernet::EtherType;
use wire::extension::Kind;
use wire::{Dissection, Fragment, Stack, Word};

/// Everything about a frame that decides what a parser makes of it. Frames of one class share hash type,
/// reason and, where they are not hashed, the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    stack: Stack,
    tpids: u32,
    extensions: wire::dissect::Extensions,
    fragment: Fragment,
    bits: u8,
}

const OPTIONS: u8 = 1;
const SNAP: u8 = 2;
const FLOW: u8 = 4;
const PORTS: u8 = 8;

impl Class {
    /// The class of a dissected frame.
    #[inline]
    pub fn of(dissection: &Dissection) -> Class {
        let mut bits = 0;
        if dissection.has_ipv4_options() {
            bits |= OPTIONS;
        }
        if dissection.is_snap() {
            bits |= SNAP;
        }
        if let Some(flow) = dissection.flow() {
            bits |= if flow.has_ports() { FLOW | PORTS } else { FLOW };
        }
        Class {
            stack: dissection.stack(),
            tpids: dissection.tpids(),
            extensions: dissection.extensions(),
            fragment: dissection.fragment(),
            bits,
        }
    }

    /// A few bits that mostly differ between classes, at next to no cost.
    #[inline(always)]
    pub const fn mix(&self) -> u32 {
        self.stack.mix() ^ self.extensions.bits() as u32 ^ ((self.fragment as u32) << 5)
    }

    /// The headers.
    pub const fn stack(&self) -> Stack {
        self.stack
    }

    /// Place among fragments.
    pub const fn fragment(&self) -> Fragment {
        self.fragment
    }

    /// Whether there is an IP header.
    pub const fn has_flow(&self) -> bool {
        self.bits & FLOW != 0
    }

    /// Whether the ports are there, whatever a device makes of them.
    pub const fn has_ports(&self) -> bool {
        self.bits & PORTS != 0
    }

    /// Whether there are extension headers between the IP header and its transport.
    pub const fn has_extensions(&self) -> bool {
        !self.extensions.is_empty()
    }

    /// The TPIDs, outermost first; beyond the eighth tag the last one repeats.
    pub fn tpids(&self) -> Vec<u16> {
        let tpid = |i: u32| EtherType::of_tpid_number(self.tpids >> (4 * i.min(7)) & 15).0;
        (0..u32::from(self.stack.tags())).map(tpid).collect()
    }
}

/// How far into a frame the parser comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sight {
    /// To the transport header.
    Transport,
    /// To the addresses.
    Addresses,
    /// Not to an IP header.
    Nothing,
    /// The profile does not say.
    Unknown,
}

/// Why a parser comes as far as it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing in the way.
    Clear,
    /// The parser stops at these tags.
    Tags(Vec<u16>),
    /// The parser stops at what this claim is about: PPPoE, MPLS, LLC/SNAP.
    Header(Key),
    /// This claim says that only the addresses, or nothing, is hashed of such packets.
    Reach(Key),
    /// There is no IP header: the word of what is there.
    NotIp(Option<Word>),
    /// The profile lacks this claim.
    Lacks(Key),
}

impl Why {
    /// The claim that decides, to be looked up with its source in the profile.
    pub const fn key(&self) -> Option<Key> {
        match self {
            Why::Clear | Why::NotIp(_) => None,
            Why::Tags(_) => Some(schema::TAGS_THROUGH),
            Why::Header(key) | Why::Reach(key) | Why::Lacks(key) => Some(*key),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Clear => f.write_str("the parser reaches the transport header"),
            Why::Tags(tpids) => {
                let tags: Vec<String> = tpids.iter().map(|tpid| format!("{tpid:#06x}")).collect();
                let noun = if tags.len() == 1 { "VLAN tag" } else { "VLAN tags" };
                write!(f, "the parser does not see through {noun} {}", tags.join(" "))
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
        }
    }
}

/// What the parser of `profile` makes of frames of `class`.
pub fn sight(profile: &Profile, class: &Class) -> (Sight, Why) {
    if let Some(stop) = tags(profile, class) {
        return stop;
    }
    for (word, key) in
        [(Word::Llc, schema::LLC_SNAP), (Word::Pppoe, schema::PPPOE), (Word::Mpls, schema::MPLS)]
    {
        // LLC without an IP header behind it is no question of SNAP.
        let asked = class.stack.contains(word) && (word != Word::Llc || class.bits & SNAP != 0);
        match profile.tri(key) {
            Some(true) => {}
            Some(false) if asked => return (Sight::Nothing, Why::Header(key)),
            None if asked && class.has_flow() => return (Sight::Unknown, Why::Lacks(key)),
            _ => {}
        }
    }
    if !class.has_flow() {
        let last = class.stack.last().filter(|word| !matches!(word, Word::Eth | Word::Ipv4 | Word::Ipv6));
        return (Sight::Nothing, Why::NotIp(last));
    }
    reach(profile, class)
}

/// `None` where the tags are seen through.
fn tags(profile: &Profile, class: &Class) -> Option<(Sight, Why)> {
    let tpids = class.tpids();
    let meant = |key: Key| profile.stacks(key).map(|all| all.iter().any(|pattern| pattern.matches(&tpids)));
    if tpids.is_empty() {
        let stops = meant(schema::TAGS_STOP) == Some(true);
        return stops.then_some((Sight::Nothing, Why::Tags(tpids)));
    }
    match (meant(schema::TAGS_THROUGH), meant(schema::TAGS_STOP)) {
        (Some(true), _) => None,
        (_, Some(true)) => Some((Sight::Nothing, Why::Tags(tpids))),
        _ => Some((Sight::Unknown, Why::Lacks(schema::TAGS_THROUGH))),
    }
}

/// The least of what fragments, options and extension headers leave.
fn reach(profile: &Profile, class: &Class) -> (Sight, Why) {
    let v6 =
        class.stack.distinct_words().find(|word| matches!(word, Word::Ipv4 | Word::Ipv6)) == Some(Word::Ipv6);
    let has = |kind| class.extensions.contains(kind);
    let later = class.fragment == Fragment::Later;
    let questions = [
        (class.bits & OPTIONS != 0, schema::IPV4_OPTIONS),
        (!v6 && class.fragment == Fragment::First, schema::IPV4_FRAGMENT_FIRST),
        (!v6 && later, schema::IPV4_FRAGMENT_LATER),
        (
            v6 && (has(Kind::HopByHop) || has(Kind::Routing) || has(Kind::DestinationOptions)),
            schema::IPV6_EXTENSIONS,
        ),
        // A fragment header without fragmentation is parsed like that of a first fragment.
        (v6 && has(Kind::Fragment) && !later, schema::IPV6_FRAGMENT_FIRST),
        (v6 && later, schema::IPV6_FRAGMENT_LATER),
    ];
    let mut answer = (Sight::Transport, Why::Clear);
    for (_, key) in questions.into_iter().filter(|(asked, _)| *asked) {
        match profile.text(key) {
            Some("transport") => {}
            Some("addresses") => answer = (Sight::Addresses, Why::Reach(key)),
            Some("nothing") => return (Sight::Nothing, Why::Reach(key)),
            _ => return (Sight::Unknown, Why::Lacks(key)),
        }
    }
    answer
}

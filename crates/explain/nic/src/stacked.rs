//! What a stack of VLAN devices, with PPPoE on it or without, may offer, given what the device below it and its driver can.
//!
//! Nothing here is a table: each answer is worked out from the features that the driver offers, by the steps that the
//! kernel takes (which features a VLAN device inherits, what is left of them for a frame with so many tags, whether
//! the driver finds IP behind them), and names the rule that decided. The rules of a kernel are data
//! ([`KernelRules`]), so that one can be changed alone.
//!
//! ```
//! use rxlane_nic::stacked::{Adapter, DeviceKind, Feature, KernelRules, Stack, Verdict, answer};
//!
//! let stack: Stack = "ad:100,q:200".parse()?;
//! let rules = KernelRules::v3_10();
//! let rows = answer(&Adapter::of_kind(DeviceKind::HwCsum), &rules, &stack);
//! let gso = rows.iter().find(|row| row.feature == Feature::Gso).unwrap();
//! assert_eq!(gso.decision.verdict, Verdict::No);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contract
//!
//! * "Yes" of a feature that is sent means: a TCP segment given to the topmost device keeps it all the way, and the
//!   device does the work right. "No" means that the kernel does it in software. "Broken" means that frames leave
//!   with a wrong checksum or wrong segments.
//! * Of a [`DeviceKind`] nobody can know the driver or the parser: where they decide, that is the answer. Of a
//!   profile the answer is then "unknown", with the claim that is missing.
//! * Features at their defaults; what `ethtool -K` turns off is off.
//!
//! # Not here
//!
//! Tunnels, MPLS (labels belong to routes, not to a device), SCTP, UDP segmentation, bridges, and devices that are
//! SR-IOV functions in a VLAN of their own.

mod adapter;
mod features;
mod kernel;
mod receive;
mod rule;
mod transmit;

pub use adapter::{Adapter, Check, DeviceKind, Lookup};
pub use features::{Family, Features};
pub(crate) use kernel::{CUSTOMER, SERVICE};
pub use kernel::{KernelRules, TagLimit, Walk};
pub use rule::Rule;

use crate::Refusal;
use crate::schema::Key;
use std::fmt;
use std::str::FromStr;
use transmit::Question;
use wire::emit::{Encapsulation, EncapsulationError};

/// A stack of devices on an adapter, as `--encap` spells it: `ad:100,q:200`, `q:35,pppoe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    encapsulation: Encapsulation,
    tpids: Vec<u16>,
}

impl FromStr for Stack {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Stack, Refusal> {
        let encapsulation: Encapsulation = text.parse().map_err(|problem: EncapsulationError| {
            Refusal(format!("`{text}` is no stack: {problem}; for example ad:100,q:200 or q:35,pppoe"))
        })?;
        if !encapsulation.labels().is_empty() {
            let problem = "MPLS labels are put on by routes, not by a device in the stack; leave mpls out (rxlane nics \
                           --can mpls lists those that spread them)";
            return Err(Refusal(problem.to_owned()));
        }
        let tpids: Vec<u16> = encapsulation.tags().iter().map(|tag| tag.tpid.0).collect();
        match tpids.iter().find(|tpid| ![CUSTOMER, SERVICE].contains(tpid)) {
            Some(tpid) => Err(Refusal(format!(
                "Linux makes VLAN devices of TPID 0x8100 (q:VID) and 0x88a8 (ad:VID) alone, not of {tpid:#06x}"
            ))),
            None => Ok(Stack { encapsulation, tpids }),
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.encapsulation.fmt(f)
    }
}

impl Stack {
    /// TPIDs of the tags, outermost first.
    pub fn tpids(&self) -> &[u16] {
        &self.tpids
    }

    /// Whether a PPPoE session stands on the tags.
    pub fn has_pppoe(&self) -> bool {
        self.encapsulation.pppoe().is_some()
    }

    /// Bytes from the destination address to the end of a packet of `mtu` bytes, without FCS.
    pub fn frame(&self, mtu: u32) -> u32 {
        let head = u32::try_from(self.encapsulation.length()).unwrap_or(u32::MAX);
        mtu.saturating_add(head)
    }
}

/// A feature of the table. Checksums and cuts are the device's, what is generic the kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of ethtool")]
pub enum Feature {
    TxChecksum,
    ScatterGather,
    Gso,
    Tso,
    RxChecksum,
    Rss,
    Rps,
    Gro,
}

/// Each feature with its label and its name in JSON, in the order of the table.
const FEATURES: [(Feature, &str, &str); 8] = [
    (Feature::TxChecksum, "TX checksum", "tx-checksum"),
    (Feature::ScatterGather, "scatter-gather", "scatter-gather"),
    (Feature::Gso, "GSO", "gso"),
    (Feature::Tso, "TSO", "tso"),
    (Feature::RxChecksum, "RX checksum", "rx-checksum"),
    (Feature::Rss, "RSS", "rss"),
    (Feature::Rps, "RPS", "rps"),
    (Feature::Gro, "GRO", "gro"),
];

impl Feature {
    /// All, in the order of the table.
    pub fn all() -> impl Iterator<Item = Feature> {
        FEATURES.into_iter().map(|(feature, ..)| feature)
    }

    /// For a person.
    pub const fn label(self) -> &'static str {
        FEATURES[self as usize].1
    }

    /// For scripts.
    pub const fn name(self) -> &'static str {
        FEATURES[self as usize].2
    }
}

/// The answer about a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It works.
    Yes,
    /// It does not, and the kernel does the work in software where there is any.
    No,
    /// Frames leave wrong.
    Broken,
    /// It depends on the driver.
    Driver,
    /// It depends on the device.
    Device,
    /// The profile does not say.
    Unknown,
}

impl Verdict {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Verdict::Yes => "yes",
            Verdict::No => "no",
            Verdict::Broken => "broken",
            Verdict::Driver => "driver",
            Verdict::Device => "device",
            Verdict::Unknown => "unknown",
        }
    }
}

/// An answer with what decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The answer.
    pub verdict: Verdict,
    /// The rule that decided; `None` where something is missing.
    pub rule: Option<Rule>,
    /// The claim that decided or, without a rule, that is missing.
    pub key: Option<Key>,
}

impl Decision {
    const fn new(verdict: Verdict, rule: Rule) -> Decision {
        Decision { verdict, rule: Some(rule), key: None }
    }

    const fn lacking(verdict: Verdict, key: Key) -> Decision {
        Decision { verdict, rule: None, key: Some(key) }
    }

    const fn unknown(key: Key) -> Decision {
        Decision::lacking(Verdict::Unknown, key)
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The feature.
    pub feature: Feature,
    /// The answer; of what is sent, for TCP over IPv4.
    pub decision: Decision,
    /// The answer for TCP over IPv6 where it is another.
    pub ipv6: Option<Decision>,
}

/// What the topmost device of `stack` may offer on `adapter` under a kernel of `rules`, feature by feature. The
/// adapter is the one that [`Adapter::of`] made for the same stack and rules, or a kind.
pub fn answer(adapter: &Adapter, rules: &KernelRules, stack: &Stack) -> [Row; 8] {
    FEATURES.map(|(feature, ..)| {
        let decision = decide(adapter, rules, stack, feature, Family::V4);
        let ipv6 = decide(adapter, rules, stack, feature, Family::V6);
        Row { feature, decision, ipv6: Some(ipv6).filter(|other| other.verdict != decision.verdict) }
    })
}

fn decide(
    adapter: &Adapter,
    rules: &KernelRules,
    stack: &Stack,
    feature: Feature,
    family: Family,
) -> Decision {
    let (tpids, pppoe) = (stack.tpids(), stack.has_pppoe());
    let sent = |question| transmit::decide(adapter, rules, (tpids, pppoe), question, family);
    match feature {
        Feature::TxChecksum => sent(Question::Checksum),
        Feature::ScatterGather => sent(Question::ScatterGather),
        Feature::Gso => sent(Question::Gso),
        Feature::Tso => sent(Question::Tso),
        Feature::RxChecksum => receive::checksum(adapter, rules, tpids, pppoe),
        Feature::Rss => receive::rss(adapter, pppoe),
        Feature::Rps => receive::rps(adapter, rules, tpids),
        Feature::Gro => receive::gro(adapter, rules, tpids, pppoe),
    }
}

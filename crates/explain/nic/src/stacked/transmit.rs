//! Sending: what the topmost device offers, and what is left of it at each device below.

use super::adapter::{Adapter, CHECKS, Check, LOOKUPS, Lookup};
use super::features::{Family, Features};
use super::kernel::{CUSTOMER, KernelRules, SERVICE, TagLimit};
use super::rule::Rule;
use super::{Decision, Verdict};
use crate::schema;

/// Features that the limit for several tags lets pass.
const UNDER_SEVERAL_TAGS: Features = Features::SG;

/// A frame's way down: the devices of a stack with what each offers, the adapter first.
struct Chain<'a> {
    rules: &'a KernelRules,
    /// Features and `vlan_features`.
    devices: Vec<(Features, Features)>,
    tpids: &'a [u16],
    check: Check,
    /// Of what is in question.
    lookup: Lookup,
}

impl<'a> Chain<'a> {
    fn new(rules: &'a KernelRules, own: (Features, Features), tpids: &'a [u16]) -> Chain<'a> {
        let mut devices = vec![((own.0 | Features::GSO).fixed(), own.1)];
        for _ in tpids {
            let below = devices.last().copied().unwrap_or_default();
            devices.push(vlan_device(rules, below));
        }
        Chain { rules, devices, tpids, check: Check::None, lookup: Lookup::Place }
    }

    fn top(&self) -> Features {
        self.devices.last().map(|(features, _)| *features).unwrap_or_default()
    }

    /// What is left for a frame at device `level`, counted from the adapter, where it has the tags of the devices above;
    /// and what took something away.
    fn at(&self, level: usize, family: Family) -> (Features, Rule) {
        let (own, for_tagged) = self.devices.get(level).copied().unwrap_or_default();
        let tags = self.tpids.len().saturating_sub(level);
        let mut left = own;
        let mut rule = Rule::NotForTagged;
        if tags >= 1 {
            left = self.rules.common(own, for_tagged | Features::TAG_TX);
        }
        let limit = match (self.rules.tag_limit, level, self.check) {
            (TagLimit::Always, _, _) => Some(Rule::StackLimit),
            (_, 1.., _) => Some(Rule::MiddleLimit),
            (_, _, Check::None) => Some(Rule::StackLimit),
            (_, _, Check::Limits) => Some(Rule::DriverLimit),
            (_, _, Check::Keeps) => None,
        };
        if let Some(limit) = limit.filter(|_| tags >= 2) {
            let mask = UNDER_SEVERAL_TAGS | Features::HW_CSUM | Features::TAG_TX;
            let kept = if self.rules.limit_keeps_ip { left.intersect(mask) } else { left & mask };
            if kept != left {
                rule = limit;
            }
            left = kept;
        }
        // `harmonize_features`: what cannot be checksummed cannot be segmented.
        if !left.checksums(family) {
            left = left & !(Features::CHECKSUMS | Features::ALL_TSO);
        }
        (left, rule)
    }

    /// Why the topmost device lacks what the adapter may have.
    fn missing(&self, needed: Features) -> Rule {
        let (own, for_tagged) = self.devices.first().copied().unwrap_or_default();
        let by_version = needed & Features::BY_VERSION != Features::NONE;
        let covers = |set: Features| set.has(needed) || by_version && set.has(Features::HW_CSUM);
        match (covers(own), covers(for_tagged)) {
            (false, _) => Rule::NotOffered,
            (true, false) => Rule::NotForTagged,
            (true, true) => Rule::InheritsNothing,
        }
    }

    /// Whether the driver finds IP in such a frame. The outermost tag travels out of band where the device inserts it.
    fn finds_ip(&self) -> bool {
        let own = self.devices.first().map(|(features, _)| *features).unwrap_or_default();
        let out_of_band = match self.tpids.first() {
            Some(&CUSTOMER) => own.has(Features::CTAG_TX),
            Some(&SERVICE) => own.has(Features::STAG_TX),
            _ => false,
        };
        self.lookup.walk(self.rules).is_none_or(|walk| walk.stops_at(self.tpids, out_of_band).is_none())
    }

    fn checksum(&self, family: Family) -> (Verdict, Rule) {
        if !self.top().checksums(family) {
            return (Verdict::No, self.missing(family.checksum()));
        }
        for level in (0..self.devices.len()).rev() {
            let (left, rule) = self.at(level, family);
            if !left.checksums(family) {
                return (Verdict::No, rule);
            }
        }
        match self.at(0, family).0.has(Features::HW_CSUM) {
            true => (Verdict::Yes, Rule::ByPlace),
            false if self.lookup == Lookup::Place => (Verdict::Yes, Rule::ByPlace),
            false if self.finds_ip() => (Verdict::Yes, Rule::LookupFinds),
            false => (Verdict::Broken, Rule::LookupEnds),
        }
    }

    fn tso(&self, family: Family) -> (Verdict, Rule) {
        if !self.top().has(family.tso()) {
            let rule = match self.missing(family.tso()) {
                Rule::InheritsNothing if self.rules.inherits && !self.top().has(Features::SG) => {
                    Rule::NeedsScatterGather
                }
                Rule::InheritsNothing if self.rules.inherits => Rule::NeedsChecksum,
                rule => rule,
            };
            return (Verdict::No, rule);
        }
        for level in (0..self.devices.len()).rev() {
            let (left, rule) = self.at(level, family);
            if !left.has(family.tso()) {
                let own = self.devices.get(level).map(|(own, _)| *own).unwrap_or_default();
                return (Verdict::No, if own.has(family.tso()) { rule } else { Rule::NotOffered });
            }
        }
        match self.lookup {
            Lookup::Place => (Verdict::Yes, Rule::ByPlace),
            _ if self.finds_ip() => (Verdict::Yes, Rule::LookupFinds),
            _ => (Verdict::Broken, Rule::LookupEnds),
        }
    }

    fn scatter_gather(&self) -> (Verdict, Rule) {
        match self.top().has(Features::SG) {
            true if self.tpids.is_empty() => (Verdict::Yes, Rule::NoTags),
            true => (Verdict::Yes, Rule::PassedOn),
            false => (Verdict::No, self.missing(Features::SG)),
        }
    }

    fn gso(&self) -> (Verdict, Rule) {
        match self.top().has(Features::GSO) {
            true => (Verdict::Yes, Rule::SoftwareSegments),
            false => (Verdict::No, Rule::NeedsScatterGather),
        }
    }
}

/// Features and `vlan_features` of a VLAN device on a device with those `below` (`vlan_dev_init`, `vlan_dev_fix_features`,
/// `netdev_fix_features`).
fn vlan_device(rules: &KernelRules, below: (Features, Features)) -> (Features, Features) {
    let (features, for_tagged) = below;
    let mut own = rules.common(for_tagged, features) & !Features::TAG_TX;
    if rules.generic_checksum && own & Features::BY_VERSION != Features::NONE {
        own = (own & !Features::BY_VERSION) | Features::HW_CSUM;
    }
    own = own | Features::GSO;
    if rules.soft_segmentation {
        own = own | Features::ALL_TSO;
    }
    let passed_on = if rules.inherits { for_tagged } else { Features::NONE };
    (own.fixed(), passed_on)
}

/// What is sent: the four questions of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    Checksum,
    ScatterGather,
    Tso,
    Gso,
}

/// The answer for TCP over `family`, in frames of `tpids`, behind PPPoE or not.
pub(crate) fn decide(
    adapter: &Adapter,
    rules: &KernelRules,
    (tpids, pppoe): (&[u16], bool),
    question: Question,
    family: Family,
) -> Decision {
    if pppoe {
        return behind_pppoe(rules, question);
    }
    let (Some(features), Some(vlan_features)) = (adapter.features, adapter.vlan_features) else {
        let key = if adapter.features.is_none() { schema::TX_FEATURES } else { schema::VLAN_FEATURES };
        return Decision::unknown(key);
    };
    let chain = |check, lookup: Lookup, features| {
        let chain = Chain::new(rules, (features, vlan_features), tpids);
        let chain = Chain { check, lookup, ..chain };
        match question {
            Question::Checksum => chain.checksum(family),
            Question::ScatterGather => chain.scatter_gather(),
            Question::Tso => chain.tso(family),
            Question::Gso => chain.gso(),
        }
    };
    let (lookup, key) = match question {
        Question::Tso => (adapter.tso_lookup, schema::TSO_LOOKUP),
        _ => (adapter.checksum_lookup, schema::CHECKSUM_LOOKUP),
    };
    let checks = adapter.check.map_or(CHECKS.to_vec(), |check| vec![check]);
    let lookups = lookup.map_or(LOOKUPS.to_vec(), |lookup| vec![lookup]);
    let mut offers = vec![features, features | adapter.some_offer];
    offers.dedup();
    // What every completion of the missing facts agrees on is the answer. Else the first fact is named that changes it while
    // the others stay as they are.
    let mut answers = Vec::new();
    for (c, check) in checks.iter().enumerate() {
        for (l, lookup) in lookups.iter().enumerate() {
            for (o, offer) in offers.iter().enumerate() {
                answers.push(([o, c, l], chain(*check, *lookup, *offer)));
            }
        }
    }
    let Some((_, (verdict, rule))) = answers.first().copied() else { return Decision::unknown(key) };
    if answers.iter().all(|(_, (other, _))| *other == verdict) {
        return Decision::new(verdict, rule);
    }
    let changes = |fact: usize| {
        let alike = |a: &[usize; 3], b: &[usize; 3]| (0..3).all(|at| at == fact || a.get(at) == b.get(at));
        answers.iter().any(|(a, (one, _))| answers.iter().any(|(b, (other, _))| alike(a, b) && one != other))
    };
    let facts = [schema::TX_FEATURES, schema::FEATURES_CHECK, key];
    let lacks = facts.into_iter().enumerate().find(|(fact, _)| changes(*fact)).map_or(key, |(_, key)| key);
    Decision::lacking(if adapter.is_kind { Verdict::Driver } else { Verdict::Unknown }, lacks)
}

/// A PPP device stands on top: what it does not offer, the kernel has done before a tag is in sight.
fn behind_pppoe(rules: &KernelRules, question: Question) -> Decision {
    let offered = (rules.ppp_features | Features::GSO).fixed();
    let (needed, yes) = match question {
        Question::Checksum => (Features::IP_CSUM, Rule::PppOffers),
        Question::ScatterGather => (Features::SG, Rule::PppOffers),
        Question::Tso => (Features::TSO, Rule::PppOffers),
        Question::Gso => (Features::GSO, Rule::SoftwareSegments),
    };
    match offered.has(needed) {
        true => Decision::new(Verdict::Yes, yes),
        false => Decision::new(Verdict::No, Rule::PppOffersNot),
    }
}

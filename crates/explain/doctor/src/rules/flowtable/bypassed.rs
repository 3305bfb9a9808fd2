//! `flowtable-bypassed`: connections that do not get into a flowtable, by conntrack's entries or by the rules alone.

use super::{State, is_plain, nft, remedy};
use crate::Case;
use crate::facts::{Bypass, Fact, FlowEffect, FlowFact};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::forwarding;
use crate::load::Limit;
use crate::rule::Judgement;
use host::{Connections, FlowRule, Flowtable, Quote};

/// Established connections below which their number says nothing.
const ENOUGH: u64 = 20;
/// Part of them in the flowtable from which it works: idle ones leave it.
const WORKS: u64 = 10;

/// `flowtable-bypassed`: there is a flowtable, and connections do not get into it.
pub(in crate::rules) fn bypassed(case: &Case<'_>) -> Judgement {
    let netfilter = &case.snapshot().netfilter;
    let is_present = matches!(State::of(case), State::Present);
    if !is_present && (netfilter.listed.is_some() || forwarding::forwards(case) == Some(false)) {
        return Judgement::DoesNotApply;
    }
    let Some(all) = &netfilter.connections else {
        return by_rules(case).map_or(Judgement::lacks(CONNECTIONS), Judgement::from);
    };
    let flows = all.of_flows();
    if !is_present || flows.established < ENOUGH || flows.offloaded.saturating_mul(WORKS) >= flows.established
    {
        return Judgement::Clear;
    }
    let reasons = reasons(case, all);
    if reasons.is_empty() && flows.offloaded > 0 {
        return Judgement::Clear;
    }
    let idle = case.sysctl("net.netfilter.nf_flowtable_tcp_timeout");
    let is_limit = !matches!(Limit::of(case), Limit::NotReached);
    let severity = if is_limit { Severity::Warning } else { Severity::Info };
    let (established, offloaded) = (flows.established, flows.offloaded);
    let is_certain = reasons.iter().any(|reason| reason.is_certain);
    let remedies: Vec<Remedy> = reasons.iter().flat_map(|reason| reason.remedy.clone()).collect();
    found(severity, Fact::Flow(FlowFact::Bypassed { established, offloaded }))
        .says(reasons.iter().map(|reason| Fact::Flow(FlowFact::Bypass(reason.why.clone()))))
        .says(idle.map(|(seconds, _)| Fact::Flow(FlowFact::IdleLeave { seconds })))
        .quotes([&all.quote])
        .quotes(reasons.iter().flat_map(|reason| reason.quotes.iter().copied()))
        .quotes(netfilter.flowtables.iter().map(|one| &one.quote))
        .fix(remedies)
        .possible_if(!is_certain)
        .into()
}

/// What shows which connections are in a flowtable.
const CONNECTIONS: &str = "conntrack -L";

/// What has to be pasted next where there is a flowtable: whether it is used.
pub(in crate::rules) fn follow_up(case: &Case<'_>) -> Option<&'static str> {
    let netfilter = &case.snapshot().netfilter;
    let is_open = !netfilter.flowtables.is_empty() && netfilter.connections.is_none();
    (is_open && by_rules(case).is_none()).then_some(CONNECTIONS)
}

/// Without connections, rules by which none can enter: those that every established packet passes before `flow add`, and none with it.
fn by_rules(case: &Case<'_>) -> Option<Finding> {
    let netfilter = &case.snapshot().netfilter;
    let first = netfilter.flowtables.first()?;
    let mut reasons: Vec<Reason<'_>> = netfilter.flow_rules.iter().filter_map(by_order).collect();
    if reasons.len() < netfilter.flow_rules.len() {
        return None;
    }
    if reasons.is_empty() {
        let listed = netfilter.ruleset.as_ref()?;
        let remedy = rule_behind(case, first);
        reasons.push(Reason { why: Bypass::NoRule, quotes: vec![listed], remedy, is_certain: true });
    }
    let is_limit = !matches!(Limit::of(case), Limit::NotReached);
    let severity = if is_limit { Severity::Warning } else { Severity::Info };
    let finding = found(severity, Fact::Flow(FlowFact::Unreached { flowtable: first.name.clone() }))
        .says(reasons.iter().map(|reason| Fact::Flow(FlowFact::Bypass(reason.why.clone()))))
        .quotes(reasons.iter().flat_map(|reason| reason.quotes.iter().copied()))
        .quotes(netfilter.flowtables.iter().map(|one| &one.quote));
    Some(finding.fix(reasons.into_iter().filter_map(|reason| reason.remedy)))
}

/// Why connections do not get into the flowtable.
struct Reason<'c> {
    why: Bypass,
    quotes: Vec<&'c Quote>,
    remedy: Option<Remedy>,
    /// Whether the rules show it; what connections have in common may be chance.
    is_certain: bool,
}

fn reasons<'c>(case: &Case<'c>, all: &'c Connections) -> Vec<Reason<'c>> {
    let netfilter = &case.snapshot().netfilter;
    let mut reasons: Vec<Reason<'c>> =
        netfilter.flow_rules.iter().filter_map(|rule| of_rule(rule, all)).collect();
    // Another rule may do what one does not.
    if reasons.len() < netfilter.flow_rules.len() {
        reasons.clear();
    }
    if let Some(listed) = netfilter.ruleset.as_ref().filter(|_| netfilter.flow_rules.is_empty()) {
        let remedy = netfilter.flowtables.first().and_then(|one| rule_behind(case, one));
        reasons.push(Reason { why: Bypass::NoRule, quotes: vec![listed], remedy, is_certain: true });
    }
    let flows = all.of_flows();
    let bypassing = flows.established.saturating_sub(flows.offloaded);
    let is_most = |connections: u64| connections.saturating_mul(5) >= bypassing.saturating_mul(4);
    if is_most(all.bypassed_helped) {
        let (why, remedy) =
            (Bypass::Helper { connections: all.bypassed_helped }, remedy(FlowEffect::NoHelper, []));
        reasons.push(Reason { why, quotes: Vec::new(), remedy: Some(remedy), is_certain: true });
    }
    if is_most(all.bypassed_marked) && all.offloaded_marked == 0 && flows.offloaded > 0 {
        let why = Bypass::Marked { connections: all.bypassed_marked };
        reasons.push(Reason { why, quotes: Vec::new(), remedy: None, is_certain: false });
    }
    if let Some((1, quote)) = case.sysctl("net.bridge.bridge-nf-call-iptables") {
        let commands = ["sysctl -w net.bridge.bridge-nf-call-iptables=0".to_owned()];
        let remedy = Some(remedy(FlowEffect::NoBridgeCalls, commands));
        reasons.push(Reason { why: Bypass::Bridged, quotes: vec![quote], remedy, is_certain: false });
    }
    reasons
}

/// Why no established packet comes to a rule.
fn by_order(rule: &FlowRule) -> Option<Reason<'_>> {
    let chain = || format!("{} {}", rule.table, rule.chain);
    let why = match &rule.accepted_before {
        Some(_) => Bypass::RuleOrder { chain: chain() },
        None if rule.only_new => Bypass::OnlyNew { chain: chain() },
        None => return None,
    };
    let quotes = std::iter::once(&rule.quote).chain(&rule.accepted_before).collect();
    Some(Reason { why, quotes, remedy: rule_first(rule), is_certain: true })
}

/// Why a rule takes few connections or none.
fn of_rule<'c>(rule: &'c FlowRule, all: &Connections) -> Option<Reason<'c>> {
    if let Some(reason) = by_order(rule) {
        return Some(reason);
    }
    let without = |protocol: &&String| !rule.protocols.is_empty() && !rule.protocols.contains(protocol);
    let why = if rule.needs_mark {
        Bypass::NeedsMark { chain: format!("{} {}", rule.table, rule.chain) }
    } else {
        let is_most = |name: &&String| {
            let count = all.by_protocol.get(*name).map_or(0, |one| one.established);
            count.saturating_mul(5) >= all.of_flows().established.saturating_mul(4)
        };
        all.by_protocol.keys().filter(without).find(is_most)?;
        Bypass::OnlyProtocols { protocols: rule.protocols.clone() }
    };
    Some(Reason { why, quotes: vec![&rule.quote], remedy: rule_first(rule), is_certain: true })
}

const FLOWS: &str = "meta l4proto { tcp, udp } flow add";

/// The rule before the others of its chain, for all connections or, where it is only in the wrong place, for those of its protocols.
fn rule_first(rule: &FlowRule) -> Option<Remedy> {
    let (table, chain, name) = (&rule.table, &rule.chain, &rule.flowtable);
    let is_plain = [table, chain, name].into_iter().all(|name| is_plain(name));
    let flows = match &rule.protocols[..] {
        [one] if rule.accepted_before.is_some() => format!("meta l4proto {one} flow add"),
        _ => FLOWS.to_owned(),
    };
    let command = || nft(&format!("insert rule {table} {chain} {flows} @{name}"));
    is_plain.then(|| remedy(FlowEffect::Rule { is_there: true }, [command()]))
}

/// A rule of its own for a flowtable that has none, behind the firewall's.
fn rule_behind(case: &Case<'_>, flowtable: &Flowtable) -> Option<Remedy> {
    let (table, name, last) = (&flowtable.table, &flowtable.name, forwarding::last(case));
    let is_plain = is_plain(table) && is_plain(name);
    let commands = || {
        [
            nft(&format!("add chain {table} rxlane {{ type filter hook forward priority {last}; }}")),
            nft(&format!("add rule {table} rxlane {FLOWS} @{name}")),
        ]
    };
    is_plain.then(|| remedy(FlowEffect::Rule { is_there: false }, commands()))
}

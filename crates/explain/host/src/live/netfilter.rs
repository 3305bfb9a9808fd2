//! nftables' flowtables with the rules that put flows there, and how many connections of each kind conntrack has: in the words of
//! `nft list ruleset` without sets and other rules, and as the shell collector counts `/proc/net/nf_conntrack`.

use super::bundle::{Output, Unread, printable};
use kernel::netlink::addresses;
use kernel::netlink::netfilter::conntrack::{self, Connection};
use kernel::netlink::netfilter::nftables::{self, Chain, Expression, Flowtable, Rule, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

/// Rules that are written.
const MOST: usize = 4096;
/// Kinds of connections that are counted.
const KINDS: usize = 1024;

/// Commands with their outputs.
pub(super) fn read() -> Vec<(String, Output)> {
    let mut outputs = vec![("nft list ruleset".to_owned(), ruleset())];
    // Without it nothing tracks connections, and the question would load the module.
    if Path::new("/proc/sys/net/netfilter/nf_conntrack_max").exists() {
        outputs.push(("cat /proc/net/nf_conntrack".to_owned(), connections()));
    }
    outputs
}

fn ruleset() -> Output {
    let (flowtables, chains) = (nftables::flowtables()?, nftables::chains()?);
    let mut rules: BTreeMap<(Table, String), Vec<String>> = BTreeMap::new();
    let mut count = 0;
    nftables::each_rule(|rule| {
        if let Some(text) = statement(&rule).filter(|_| count < MOST) {
            count += 1;
            rules.entry((rule.table, rule.chain)).or_default().push(text);
        }
    })?;
    Ok(listing(&flowtables, &chains, &rules))
}

fn listing(
    flowtables: &[Flowtable],
    chains: &[Chain],
    rules: &BTreeMap<(Table, String), Vec<String>>,
) -> String {
    let tables: BTreeSet<&Table> =
        flowtables.iter().map(|one| &one.table).chain(chains.iter().map(|one| &one.table)).collect();
    let mut out = String::new();
    for table in tables {
        let _ = writeln!(out, "table {} {} {{", table.family_name(), name(&table.name));
        for one in flowtables.iter().filter(|one| one.table == *table) {
            let devices: Vec<String> =
                one.devices.iter().map(|device| format!("\"{}\"", name(device))).collect();
            let _ = writeln!(
                out,
                "\tflowtable {} {{\n\t\thook ingress priority {}",
                name(&one.name),
                one.priority
            );
            let _ = writeln!(out, "\t\tdevices = {{ {} }}", devices.join(", "));
            out.push_str(if one.is_in_hardware() { "\t\tflags offload\n" } else { "" });
            out.push_str(if one.counts() { "\t\tcounter\n" } else { "" });
            out.push_str("\t}\n");
        }
        for one in chains.iter().filter(|one| one.table == *table) {
            chain(one, rules, &mut out);
        }
        out.push_str("}\n");
    }
    out
}

/// A chain that has a rule to show, or is called for packets that are forwarded; its type and hook come first.
fn chain(chain: &Chain, rules: &BTreeMap<(Table, String), Vec<String>>, out: &mut String) {
    /// `NF_INET_*`.
    const HOOKS: [&str; 6] = ["prerouting", "input", "forward", "output", "postrouting", "ingress"];
    const FORWARD: u32 = 2;
    let rules = rules.get(&(chain.table.clone(), chain.name.clone()));
    let is_forward = chain.base.as_ref().is_some_and(|(_, hook, _)| *hook == FORWARD);
    if rules.is_none() && !is_forward {
        return;
    }
    let _ = writeln!(out, "\tchain {} {{", name(&chain.name));
    if let Some((kind, hook, priority)) = &chain.base {
        let hook = usize::try_from(*hook).ok().and_then(|hook| HOOKS.get(hook)).unwrap_or(&"unknown");
        let _ = writeln!(out, "\t\ttype {} hook {hook} priority {priority};", name(kind));
    }
    for rule in rules.into_iter().flatten() {
        let _ = writeln!(out, "\t\t{rule}");
    }
    out.push_str("\t}\n");
}

/// A name without what would end a word or a line.
fn name(name: &str) -> String {
    printable(name.as_bytes()).replace(['"', '{', '}', ';', '#'], "_")
}

/// `NFT_META_*` and `NFT_CT_*`.
const MARK: u32 = 3;
const IIFNAME: u32 = 6;
const OIFNAME: u32 = 7;
const L4PROTO: u32 = 16;
const CT_STATE: u32 = 0;
const CT_MARK: u32 = 3;

/// The rule as `nft` prints it, where it puts flows into a flowtable, or matches states or interfaces.
fn statement(rule: &Rule) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut loaded, mut mask) = (None, None);
    let mut matters = false;
    for expression in &rule.expressions {
        match expression {
            Expression::Meta(_) | Expression::Connection(_) => (loaded, mask) = (Some(expression), None),
            Expression::Mask(bits) => mask = Some(bits),
            Expression::Compare { equal, value } => {
                let (text, is_kept) = compared(loaded, mask, *equal, value);
                words.push(text);
                matters |= is_kept;
            }
            Expression::Verdict(verdict) => words.push(
                match verdict {
                    0 => "drop",
                    1 => "accept",
                    -5 => "return",
                    _ => "jump other",
                }
                .to_owned(),
            ),
            Expression::FlowAdd(table) => {
                words.push(format!("flow add @{}", name(table)));
                matters = true;
            }
            Expression::Other(what) if what == "counter" => words.push("counter".to_owned()),
            Expression::Other(what) => words.push(name(what)),
        }
    }
    matters.then(|| words.join(" "))
}

/// A match in words, and whether it is one that matters.
fn compared(
    loaded: Option<&Expression>,
    mask: Option<&Vec<u8>>,
    equal: bool,
    value: &[u8],
) -> (String, bool) {
    let not = if equal { "" } else { "!= " };
    let number = || value.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes));
    match loaded {
        Some(Expression::Meta(key @ (IIFNAME | OIFNAME))) => {
            let which = if *key == IIFNAME { "iifname" } else { "oifname" };
            let end = value.iter().position(|&byte| byte == 0);
            // Without the zero that ends it, it is the beginning of names.
            let text = String::from_utf8_lossy(value.get(..end.unwrap_or(value.len())).unwrap_or_default());
            (format!("{which} {not}\"{}{}\"", name(&text), if end.is_none() { "*" } else { "" }), true)
        }
        Some(Expression::Meta(L4PROTO)) => match (equal, value.first()) {
            (true, Some(6)) => ("meta l4proto tcp".to_owned(), false),
            (true, Some(17)) => ("meta l4proto udp".to_owned(), false),
            _ => ("l4proto".to_owned(), false),
        },
        Some(Expression::Meta(MARK)) => (format!("meta mark {not}{:#x}", number()), false),
        Some(Expression::Connection(CT_MARK)) => (format!("ct mark {not}{:#x}", number()), false),
        Some(Expression::Connection(CT_STATE)) if !equal => {
            let bits = mask.and_then(|bits| bits.first_chunk()).map_or(0, |bits| u32::from_ne_bytes(*bits));
            (format!("ct state {}", states(bits)), true)
        }
        _ => ("match".to_owned(), false),
    }
}

/// `NF_CT_STATE_BIT()` and its like.
fn states(bits: u32) -> String {
    const STATES: [(u32, &str); 5] =
        [(1, "invalid"), (2, "established"), (4, "related"), (8, "new"), (64, "untracked")];
    let named = STATES.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name);
    named.collect::<Vec<_>>().join(",")
}

/// Whether a connection begins or ends here: another's may be translated to an address of the machine.
fn is_of_the_machine(one: &Connection<'_>, is_own: impl Fn(IpAddr) -> bool) -> bool {
    let (original, reply) = (one.original(), one.reply());
    original.zip(reply).is_some_and(|(original, reply)| {
        is_own(original.source) || is_own(original.destination) && reply.source == original.destination
    })
}

fn connections() -> Output {
    /// `TCP_CONNTRACK_*`.
    const STATES: [&str; 9] = [
        "NONE",
        "SYN_SENT",
        "SYN_RECV",
        "ESTABLISHED",
        "FIN_WAIT",
        "CLOSE_WAIT",
        "LAST_ACK",
        "TIME_WAIT",
        "CLOSE",
    ];
    let addresses: Vec<IpAddr> =
        addresses().unwrap_or_default().into_iter().map(|(_, address)| address).collect();
    let is_own = |address: IpAddr| address.is_loopback() || addresses.contains(&address);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    conntrack::each(|one| {
        let mut kind = match one.protocol() {
            Some(1) => "icmp",
            Some(6) => "tcp",
            Some(17) => "udp",
            Some(47) => "gre",
            Some(58) => "icmpv6",
            _ => "unknown",
        }
        .to_owned();
        let state = one.tcp_state().and_then(|state| STATES.get(usize::from(state)));
        if let Some(state) = state.filter(|_| !one.is_offloaded()) {
            let _ = write!(kind, " {state}");
        }
        let flags = [
            (!one.is_replied(), " [UNREPLIED]"),
            (one.is_in_hardware(), " [HW_OFFLOAD]"),
            (one.is_offloaded() && !one.is_in_hardware(), " [OFFLOAD]"),
            (one.is_assured() && !one.is_offloaded(), " [ASSURED]"),
            (one.mark() != 0, " mark"),
            (one.has_helper(), " helper"),
            (is_of_the_machine(&one, is_own), " own"),
        ];
        flags.iter().filter(|(is_so, _)| *is_so).for_each(|(_, flag)| kind.push_str(flag));
        if kinds.len() < KINDS || kinds.contains_key(&kind) {
            *kinds.entry(kind).or_default() += 1;
        }
    })
    .map_err(Unread::from)?;
    let lines = kinds.iter().map(|(kind, count)| format!("{count:7} {kind}\n"));
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_back() {
        let table = Table { family: 1, name: "fw4".to_owned() };
        let rule = |expressions: Vec<Expression>| Rule {
            table: table.clone(),
            chain: "forward".to_owned(),
            expressions,
        };
        let state = vec![
            Expression::Connection(CT_STATE),
            Expression::Mask(6_u32.to_ne_bytes().to_vec()),
            Expression::Compare { equal: false, value: vec![0; 4] },
            Expression::Other("counter".to_owned()),
            Expression::Verdict(1),
        ];
        let mut lan = b"br-lan".to_vec();
        lan.resize(16, 0);
        let from_lan = vec![
            Expression::Meta(IIFNAME),
            Expression::Compare { equal: true, value: lan },
            Expression::Meta(L4PROTO),
            Expression::Compare { equal: true, value: vec![17] },
            Expression::FlowAdd("ft".to_owned()),
        ];
        let nothing = vec![Expression::Other("counter".to_owned()), Expression::Verdict(0)];
        let statements: Vec<String> =
            [state, nothing, from_lan].into_iter().filter_map(|one| statement(&rule(one))).collect();
        assert_eq!(
            statements,
            [
                "ct state established,related counter accept",
                "iifname \"br-lan\" meta l4proto udp flow add @ft"
            ]
        );
        let chain = Chain {
            table: table.clone(),
            name: "forward".to_owned(),
            base: Some(("filter".to_owned(), 2, 0)),
            is_in_use: true,
            devices: Vec::new(),
        };
        let rules = BTreeMap::from([((table, "forward".to_owned()), statements)]);
        let text = format!("$ nft list ruleset\n{}$ nproc\n4\n", listing(&[], &[chain], &rules));
        let netfilter = crate::text::read(&text).netfilter;
        let [rule] = &netfilter.flow_rules[..] else { panic!("{netfilter:?}") };
        assert_eq!(
            (&*rule.table, &*rule.flowtable, &rule.protocols[..]),
            ("inet fw4", "ft", &["udp".to_owned()][..])
        );
        assert!(rule.accepted_before.is_some() && netfilter.ruleset.is_some());
        assert!(netfilter.routed.contains_key("br-lan"));
    }
}

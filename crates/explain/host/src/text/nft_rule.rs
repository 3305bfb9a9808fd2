//! What a rule of nftables does with flows, from its text as `nft` prints it (nft(8), statements and expressions).

use crate::netfilter::{FlowRule, Netfilter};
use crate::{Fact, Quote, Snapshot};
use std::collections::BTreeMap;

/// A chain: family and name of its table, and its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Chain {
    pub table: String,
    pub name: String,
}

/// What is known of a chain before the next of its rules.
#[derive(Clone, Debug, Default)]
struct Before {
    /// Whether packets that are forwarded pass it, or NAT of these.
    is_forward: bool,
    /// The rule that accepts what is established.
    accepted: Option<Quote>,
    /// Whether it is at the hook `forward` itself.
    is_hooked: bool,
    counted: Counted,
}

/// What the counters of a chain at the hook `forward` say of the packets that passed it.
#[derive(Clone, Debug, Default)]
struct Counted {
    /// Whether its policy drops what no rule accepts.
    drops: bool,
    /// Whether a rule without a counter lets packets pass.
    is_partial: bool,
    /// Packets by the rules that let some pass, with the first of these.
    sum: Option<(u64, Quote)>,
    /// Packets by a rule that every packet comes to and matches.
    all: Option<(u64, Quote)>,
}

impl Counted {
    fn add(&mut self, words: &Words<'_>, quote: &Quote) {
        let passes = || ["accept", "jump", "goto"].iter().any(|verdict| words.all.contains(verdict));
        let count = words.behind("counter", "packets").and_then(|rest| rest.first()?.parse::<u64>().ok());
        match count {
            None => self.is_partial |= passes() || words.all.contains(&"vmap"),
            Some(count) => {
                if self.sum.is_none() && !self.is_partial && words.all.first() == Some(&"counter") {
                    self.all.get_or_insert_with(|| (count, quote.clone()));
                }
                if passes() {
                    let (sum, _) = self.sum.get_or_insert_with(|| (0, quote.clone()));
                    *sum = sum.saturating_add(count);
                }
            }
        }
    }

    /// Packets that passed, where none can have passed uncounted.
    fn packets(&self) -> Option<Fact<u64>> {
        let sum = self.sum.as_ref().filter(|_| self.drops && !self.is_partial);
        let (count, quote) = self.all.as_ref().or(sum)?;
        Some(Fact::new(*count, quote.clone()))
    }
}

/// Chains that are kept.
const CHAINS: usize = 1024;

/// The rules of a listing.
#[derive(Default)]
pub(super) struct Rules {
    chain: Chain,
    before: BTreeMap<Chain, Before>,
}

impl Rules {
    /// The rules that follow are of this chain.
    pub fn begin(&mut self, chain: Chain) {
        if self.before.len() < CHAINS && !self.before.contains_key(&chain) {
            // OpenWrt's chains of zones are called `forward_lan`, `srcnat_wan`.
            let is_forward =
                chain.name.to_ascii_lowercase().contains("forward") || chain.name.starts_with("srcnat");
            self.before.insert(chain.clone(), Before { is_forward, ..Before::default() });
        }
        self.chain = chain;
    }

    /// The hook of the chain (`forward`, `postrouting`), and its priority there.
    pub fn hooked(&mut self, hook: &str, priority: Option<i32>, snapshot: &mut Snapshot) {
        if hook == "forward" {
            let last = &mut snapshot.netfilter.last_forward;
            *last = (*last).max(priority);
        }
        if let Some(before) = self.before.get_mut(&self.chain) {
            before.is_forward |= matches!(hook, "forward" | "postrouting");
            // A chain that is listed again is counted anew.
            *before = Before { is_hooked: hook == "forward", counted: Counted::default(), ..before.clone() };
        }
    }

    /// Whether the chain drops what no rule of it accepts.
    pub fn policy(&mut self, policy: &str, snapshot: &mut Snapshot) {
        if let Some(before) = self.before.get_mut(&self.chain) {
            before.counted.drops = policy == "drop";
        }
        self.count(snapshot);
    }

    fn count(&self, snapshot: &mut Snapshot) {
        let Some(before) = self.before.get(&self.chain).filter(|before| before.is_hooked) else { return };
        let Chain { table, name } = &self.chain;
        let (place, known) = (format!("{table} {name}"), &mut snapshot.netfilter.forwarded);
        match before.counted.packets() {
            Some(packets) => drop(known.insert(place, packets)),
            None => drop(known.remove(&place)),
        }
    }

    /// A statement within a chain: its type and hook, its policy, or a rule.
    pub fn statement(&mut self, text: &str, quote: &Quote, snapshot: &mut Snapshot) {
        let words = Words::of(text);
        if let [kind, _, at, hook, rest @ ..] = &words.all[..]
            && (kind, at) == (&"type", &"hook")
        {
            self.hooked(hook, priority(rest), snapshot);
            return;
        }
        if let ["policy", policy] = words.all[..] {
            self.policy(policy, snapshot);
            return;
        }
        let Some(before) = self.before.get_mut(&self.chain) else { return };
        before.counted.add(&words, quote);
        if let Some(flowtable) = words.flowtable() {
            let rule = FlowRule {
                table: self.chain.table.clone(),
                chain: self.chain.name.clone(),
                flowtable: flowtable.to_owned(),
                protocols: words.protocols(),
                needs_mark: words.matches_mark(),
                only_new: words.states().is_some_and(|states| states.iter().all(|state| *state == "new")),
                accepted_before: before.accepted.clone(),
                quote: quote.clone(),
            };
            note(rule, snapshot);
        } else if words.accepts_established() {
            before.accepted.get_or_insert_with(|| quote.clone());
        }
        if before.is_forward {
            for name in words.interfaces() {
                let routed = &mut snapshot.netfilter.routed;
                if routed.len() < Snapshot::INTERFACES && !routed.contains_key(name) {
                    routed.insert(name.to_owned(), quote.clone());
                }
            }
        }
        self.count(snapshot);
    }
}

/// The priority in `priority filter + 10`, by its name in the families ip, ip6 and inet (nft(8), "Standard priority names").
fn priority(words: &[&str]) -> Option<i32> {
    const NAMES: [(&str, i32); 6] =
        [("raw", -300), ("mangle", -150), ("dstnat", -100), ("filter", 0), ("security", 50), ("srcnat", 100)];
    let at = words.iter().position(|word| *word == "priority")?;
    let (first, rest) = words.get(at + 1..)?.split_first()?;
    let named = NAMES.iter().find(|(name, _)| name == first).map(|(_, priority)| *priority);
    let first = named.or_else(|| first.parse().ok())?;
    match rest {
        ["+", more, ..] => first.checked_add(more.parse().ok()?),
        ["-", less, ..] => first.checked_sub(less.parse().ok()?),
        _ => Some(first),
    }
}

/// A rule that was listed before replaces its former reading.
fn note(rule: FlowRule, snapshot: &mut Snapshot) {
    let known = &mut snapshot.netfilter.flow_rules;
    let is_same = |one: &FlowRule| {
        (&one.table, &one.chain, &one.flowtable, &one.protocols)
            == (&rule.table, &rule.chain, &rule.flowtable, &rule.protocols)
    };
    if let Some(place) = known.iter().position(is_same) {
        known.splice(place..=place, [rule]);
    } else if known.len() < Netfilter::MOST {
        known.push(rule);
    } else {
        snapshot.omitted += 1;
    }
}

/// A rule's words, without quotes, braces and commas; its comment is none of them.
struct Words<'a> {
    all: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Words<'a> {
        let text = text.split("comment \"").next().unwrap_or(text);
        let is_between = |c: char| c.is_whitespace() || matches!(c, ',' | '{' | '}' | '"' | ';');
        Words { all: text.split(is_between).filter(|word| !word.is_empty()).collect() }
    }

    /// The words behind these two.
    fn behind(&self, first: &str, second: &str) -> Option<&[&'a str]> {
        let at = self.all.array_windows().position(|[one, two]| (*one, *two) == (first, second))?;
        self.all.get(at + 2..)
    }

    /// `flow add @ft`; `flow offload @ft` before nftables 0.9.
    fn flowtable(&self) -> Option<&'a str> {
        let rest = self.behind("flow", "add").or_else(|| self.behind("flow", "offload"))?;
        rest.first()?.strip_prefix('@')
    }

    /// The states in `ct state new,established`; `None` where it matches none, or others than these.
    fn states(&self) -> Option<Vec<&'a str>> {
        const STATES: [&str; 5] = ["new", "established", "related", "invalid", "untracked"];
        let states = self.behind("ct", "state")?.iter().copied();
        let states: Vec<&str> = states.take_while(|word| STATES.contains(word)).collect();
        (!states.is_empty()).then_some(states)
    }

    /// Whether it accepts every packet of an established connection: `ct state established,related accept`, also with a
    /// counter, or `ct state vmap { established : accept, … }`.
    fn accepts_established(&self) -> bool {
        let is_first = self.all.first_chunk() == Some(&["ct", "state"]);
        if is_first && self.all.get(2) == Some(&"vmap") {
            return self.all.array_windows().any(|words| *words == ["established", ":", "accept"]);
        }
        let others = self.all.iter().filter(|word| {
            let is_number = word.bytes().all(|digit| digit.is_ascii_digit());
            !is_number && !["ct", "state", "counter", "packets", "bytes", "accept"].contains(word)
        });
        let states = self.states().unwrap_or_default();
        is_first
            && states.contains(&"established")
            && self.all.last() == Some(&"accept")
            && others.count() == states.len()
    }

    /// Protocols of `meta l4proto { tcp, udp }` and `ip protocol tcp`.
    fn protocols(&self) -> Vec<String> {
        let matched = [("meta", "l4proto"), ("ip", "protocol"), ("ip6", "nexthdr")];
        let behind =
            matched.iter().find_map(|(first, second)| self.behind(first, second)).unwrap_or_default();
        let is_protocol = |word: &&&str| ["tcp", "udp", "6", "17"].contains(word);
        let name = |word: &&str| match *word {
            "6" => "tcp".to_owned(),
            "17" => "udp".to_owned(),
            name => name.to_owned(),
        };
        behind.iter().take_while(is_protocol).map(name).collect()
    }

    /// Whether it matches a mark; `meta mark set` is no match.
    fn matches_mark(&self) -> bool {
        let of = |what: &str| self.behind(what, "mark").is_some_and(|rest| rest.first() != Some(&"set"));
        of("meta") || of("ct")
    }

    /// Interfaces that it matches by name, but for the loopback and patterns.
    fn interfaces(&self) -> Vec<&'a str> {
        let mut names = Vec::new();
        let mut is_name = false;
        for word in &self.all {
            if matches!(*word, "iifname" | "oifname" | "iif" | "oif") {
                is_name = true;
                continue;
            }
            // What can stand behind the names is a keyword of a statement or of another match.
            let is_keyword = matches!(
                *word,
                "!=" | "=="
                    | "accept"
                    | "drop"
                    | "jump"
                    | "goto"
                    | "counter"
                    | "masquerade"
                    | "meta"
                    | "ct"
                    | "ip"
                    | "ip6"
                    | "tcp"
                    | "udp"
                    | "snat"
                    | "dnat"
                    | "log"
                    | "return"
                    | "vmap"
                    | "limit"
                    | "icmp"
                    | "th"
                    | "flow"
                    | "queue"
                    | "reject"
                    | "ether"
                    | "vlan"
                    | "mark"
                    | "oiftype"
                    | "iiftype"
                    | "."
            );
            is_name &= !is_keyword || matches!(*word, "!=" | "==");
            if is_name && !is_keyword && *word != "lo" && super::command::is_name(word) {
                names.push(*word);
            }
        }
        names
    }
}

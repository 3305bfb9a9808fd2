//! By what packets are routed that conntrack does not show of a connection: marks, and TOS or traffic class.

use kernel::netlink::Rule;
use std::collections::BTreeSet;

/// The values that rules and routes name. What a rule says of some bits of a mark is tried with the others at 0.
#[derive(Debug, Default)]
pub struct Selectors {
    /// Marks, and which of their bits count.
    marks: BTreeSet<(u32, u32)>,
    rules_tos: BTreeSet<u8>,
    /// Those of routes that were removed stay: they cost a lookup.
    routes_tos: BTreeSet<u8>,
}

impl Selectors {
    /// Routes are now of these TOS.
    pub fn set_route_tos(&mut self, tos: BTreeSet<u8>) {
        self.routes_tos = tos;
    }

    /// Rules are now these.
    pub fn set_rules(&mut self, rules: &[Rule]) {
        self.marks = rules.iter().filter_map(|rule| rule.mark).collect();
        self.rules_tos = rules.iter().map(|rule| rule.tos).filter(|&tos| tos != 0).collect();
    }

    /// There is a route of this TOS. Gives whether it was not known.
    pub fn add_tos(&mut self, tos: u8) -> bool {
        self.routes_tos.insert(tos)
    }

    /// Marks to try: those of rules, and none.
    pub fn marks(&self) -> BTreeSet<u32> {
        let named = self.marks.iter().map(|(mark, _)| *mark);
        if self.marks.is_empty() { BTreeSet::new() } else { named.chain([0]).collect() }
    }

    /// Whether a rule is about packets of this mark.
    pub fn has_mark(&self, mark: u32) -> bool {
        self.marks.iter().any(|(of, mask)| mark & mask == of & mask)
    }

    /// TOS to try.
    pub fn tos(&self) -> impl Iterator<Item = u8> {
        self.rules_tos.union(&self.routes_tos).copied()
    }
}

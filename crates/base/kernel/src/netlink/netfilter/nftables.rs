//! nftables as far as forwarded flows are concerned: flowtables, chains, and rules by their expressions
//! (`include/uapi/linux/netfilter/nf_tables.h`).

use super::{HEADER, request};
use crate::netlink::{Attributes, Netlink, Refusal, until_zero};

/// `NFNL_SUBSYS_NFTABLES`, `NFT_MSG_GET*`.
const SUBSYSTEM: u8 = 10;
const GETCHAIN: u8 = 4;
const GETRULE: u8 = 7;
const GETFLOWTABLE: u8 = 23;

/// The table of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// `NFPROTO_*`.
    pub family: u8,
    /// Its name.
    pub name: String,
}

impl Table {
    fn read(body: &[u8], name: Option<String>) -> Option<Table> {
        Some(Table { family: *body.first()?, name: name? })
    }

    /// The family as `nft` calls it.
    pub const fn family_name(&self) -> &'static str {
        match self.family {
            1 => "inet",
            2 => "ip",
            3 => "arp",
            5 => "netdev",
            7 => "bridge",
            10 => "ip6",
            _ => "unknown",
        }
    }
}

/// A flowtable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flowtable {
    /// Where it is.
    pub table: Table,
    /// Its name.
    pub name: String,
    /// `NF_NETDEV_*`: 0 is ingress.
    pub hook: u32,
    /// Of several functions at the hook the one of the lowest priority is first.
    pub priority: i32,
    /// Interfaces whose packets are looked up.
    pub devices: Vec<String>,
    /// `NFT_FLOWTABLE_*`.
    flags: u32,
}

impl Flowtable {
    /// Whether flows are offered to the devices' hardware (`NFT_FLOWTABLE_HW_OFFLOAD`).
    pub const fn is_in_hardware(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether conntrack goes on counting the packets (`NFT_FLOWTABLE_COUNTER`, Linux 5.7).
    pub const fn counts(&self) -> bool {
        self.flags & 2 != 0
    }

    fn read(body: &[u8]) -> Option<Flowtable> {
        /// `NFTA_FLOWTABLE_*`, `NFTA_FLOWTABLE_HOOK_*`.
        const TABLE: u16 = 1;
        const NAME: u16 = 2;
        const HOOK: u16 = 3;
        const FLAGS: u16 = 7;
        const NUM: u16 = 1;
        const PRIORITY: u16 = 2;
        const DEVS: u16 = 3;
        let attributes = Attributes::behind(HEADER, body);
        let hook = attributes.nest(HOOK)?;
        let devices = hook.nest(DEVS).unwrap_or_default().iter();
        let name = |(_, name)| String::from_utf8_lossy(until_zero(name)).into_owned();
        Some(Flowtable {
            table: Table::read(body, attributes.text(TABLE))?,
            name: attributes.text(NAME)?,
            hook: hook.be32(NUM)?,
            priority: hook.be32(PRIORITY)?.cast_signed(),
            devices: devices.map(name).collect(),
            flags: attributes.be32(FLAGS).unwrap_or_default(),
        })
    }
}

/// A chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Where it is.
    pub table: Table,
    /// Its name.
    pub name: String,
    /// Type, hook (`NF_INET_*`; 2 is forward) and priority of a chain that the kernel itself calls.
    pub base: Option<(String, u32, i32)>,
    /// Whether it does something to packets: it has a rule, or drops what no rule accepts (`NF_DROP`).
    pub is_in_use: bool,
    /// Interfaces at whose ingress or egress the kernel calls it.
    pub devices: Vec<String>,
}

impl Chain {
    fn read(body: &[u8]) -> Option<Chain> {
        /// `NFTA_CHAIN_*`, `NFTA_HOOK_*`.
        const TABLE: u16 = 1;
        const NAME: u16 = 3;
        const HOOK: u16 = 4;
        const POLICY: u16 = 5;
        const USE: u16 = 6;
        const TYPE: u16 = 7;
        const NUM: u16 = 1;
        const PRIORITY: u16 = 2;
        const DEV: u16 = 3;
        const DEVS: u16 = 4;
        let attributes = Attributes::behind(HEADER, body);
        let hook = attributes.nest(HOOK);
        let base = hook.and_then(|hook| {
            Some((attributes.text(TYPE)?, hook.be32(NUM)?, hook.be32(PRIORITY)?.cast_signed()))
        });
        let several = hook.and_then(|hook| hook.nest(DEVS)).unwrap_or_default();
        let name = |(_, name)| String::from_utf8_lossy(until_zero(name)).into_owned();
        Some(Chain {
            table: Table::read(body, attributes.text(TABLE))?,
            name: attributes.text(NAME)?,
            base,
            is_in_use: attributes.be32(USE) != Some(0) || attributes.be32(POLICY) == Some(0),
            devices: hook
                .and_then(|hook| hook.text(DEV))
                .into_iter()
                .chain(several.iter().map(name))
                .collect(),
        })
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where it is.
    pub table: Table,
    /// Its chain.
    pub chain: String,
    /// What it does, in order.
    pub expressions: Vec<Expression>,
}

/// A step of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// Loads what is known of a packet, `NFT_META_*`.
    Meta(u32),
    /// Loads what is known of its connection, `NFT_CT_*`.
    Connection(u32),
    /// Keeps some bits of what was loaded.
    Mask(Vec<u8>),
    /// Goes on where what was loaded is, or is not, this.
    Compare {
        /// Whether it has to be the same.
        equal: bool,
        /// With what.
        value: Vec<u8>,
    },
    /// Ends or leaves the chain: `NF_ACCEPT` is 1.
    Verdict(i32),
    /// Puts the connection into the flowtable of that name.
    FlowAdd(String),
    /// Anything else, by its name in the kernel (`lookup`, `counter`).
    Other(String),
}

impl Expression {
    /// Of a list's element.
    fn read(element: Attributes<'_>) -> Option<Expression> {
        /// `NFTA_EXPR_NAME`, `NFTA_EXPR_DATA`; within it each expression's own attributes.
        const NAME: u16 = 1;
        const DATA: u16 = 2;
        const KEY: u16 = 2;
        const DREG: u16 = 1;
        const IMMEDIATE: u16 = 2;
        const MASK: u16 = 4;
        const OP: u16 = 2;
        const COMPARED: u16 = 3;
        const FLOW: u16 = 1;
        /// `NFTA_DATA_VALUE`, `NFTA_DATA_VERDICT`, `NFTA_VERDICT_CODE`.
        const VALUE: u16 = 1;
        const VERDICT: u16 = 2;
        const CODE: u16 = 1;
        let (name, data) = (element.text(NAME)?, element.nest(DATA).unwrap_or_default());
        let value = |kind: u16| Some(data.nest(kind)?.get(VALUE)?.to_vec());
        let known = match name.as_str() {
            // One that sets has no register to load into.
            "meta" if data.has(DREG) => data.be32(KEY).map(Expression::Meta),
            "ct" if data.has(DREG) => data.be32(KEY).map(Expression::Connection),
            "bitwise" => value(MASK).map(Expression::Mask),
            "cmp" => {
                value(COMPARED).map(|value| Expression::Compare { equal: data.be32(OP) == Some(0), value })
            }
            "immediate" => {
                let verdict = data.nest(IMMEDIATE).and_then(|data| data.nest(VERDICT)?.be32(CODE));
                verdict.map(|code| Expression::Verdict(code.cast_signed()))
            }
            "flow_offload" => data.text(FLOW).map(Expression::FlowAdd),
            _ => None,
        };
        Some(known.unwrap_or(Expression::Other(name)))
    }
}

impl Rule {
    fn read(body: &[u8]) -> Option<Rule> {
        /// `NFTA_RULE_*`.
        const TABLE: u16 = 1;
        const CHAIN: u16 = 2;
        const EXPRESSIONS: u16 = 4;
        let attributes = Attributes::behind(HEADER, body);
        let list = attributes.nest(EXPRESSIONS).unwrap_or_default();
        let expressions = list.iter().filter_map(|(_, element)| Expression::read(Attributes::new(element)));
        Some(Rule {
            table: Table::read(body, attributes.text(TABLE))?,
            chain: attributes.text(CHAIN)?,
            expressions: expressions.collect(),
        })
    }
}

/// All flowtables of this network namespace. Errors: `EPERM`: this process may not; others: this kernel has no nftables.
pub fn flowtables() -> Result<Vec<Flowtable>, Refusal> {
    all(GETFLOWTABLE, Flowtable::read)
}

/// All chains. Errors: those of [`flowtables`].
pub fn chains() -> Result<Vec<Chain>, Refusal> {
    all(GETCHAIN, Chain::read)
}

/// Hands every rule to `take`, chain by chain, without keeping any: there may be a hundred thousand. Errors: those of
/// [`flowtables`].
pub fn each_rule(mut take: impl FnMut(Rule)) -> Result<(), Refusal> {
    Netlink::netfilter()?.each(&request(SUBSYSTEM, GETRULE, 0), |body| _ = Rule::read(body).map(&mut take))
}

fn all<T>(command: u8, read: impl Fn(&[u8]) -> Option<T>) -> Result<Vec<T>, Refusal> {
    let objects = Netlink::netfilter()?.dump(&request(SUBSYSTEM, command, 0))?;
    Ok(objects.iter().filter_map(|body| read(body)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Message;

    fn body(message: &Message) -> Vec<u8> {
        [&[1, 0, 0, 0], message.attributes()].concat()
    }

    #[test]
    fn flowtables_chains_and_rules_are_read_and_no_piece_panics() {
        let number = |number: u32| number.to_be_bytes();
        let devices = |devices: Message| devices.with_text(1, b"lan1").with_text(1, b"wan");
        let flowtable = Message::new(0, &[])
            .with_text(1, b"fw4")
            .with_text(2, b"ft")
            .with(7, &number(3))
            .with_nest(3, |hook| hook.with(1, &number(0)).with(2, &number(5)).with_nest(3, devices));
        let read = Flowtable::read(&body(&flowtable)).expect("a flowtable");
        assert_eq!((read.table.family_name(), &*read.table.name, &*read.name), ("inet", "fw4", "ft"));
        assert_eq!((read.priority, &read.devices[..]), (5, &["lan1".to_owned(), "wan".to_owned()][..]));
        assert!(read.is_in_hardware() && read.counts());
        let chain =
            Message::new(0, &[]).with_text(1, b"fw4").with_text(3, b"forward").with_text(7, b"filter");
        let chain = chain.with_nest(4, |hook| hook.with(1, &number(2)).with(2, &number(u32::MAX)));
        let read = Chain::read(&body(&chain)).expect("a chain");
        assert_eq!(read.base, Some(("filter".to_owned(), 2, -1)));
        let rule = rule();
        let read = Rule::read(&body(&rule)).expect("a rule");
        let expected = [
            Expression::Connection(0),
            Expression::Mask(vec![6, 0, 0, 0]),
            Expression::Compare { equal: false, value: vec![0; 4] },
            Expression::Other("counter".to_owned()),
            Expression::Verdict(1),
            Expression::FlowAdd("ft".to_owned()),
        ];
        assert_eq!(read.expressions, expected);
        for whole in [body(&flowtable), body(&chain), body(&rule)] {
            for end in 0..whole.len() {
                let cut = whole.get(..end).expect("within");
                let _ = (Flowtable::read(cut), Chain::read(cut), Rule::read(cut));
            }
        }
    }

    fn rule() -> Message {
        let number = |number: u32| number.to_be_bytes();
        let element = |list: Message, name: &[u8], build: &dyn Fn(Message) -> Message| {
            list.with_nest(1, |element| element.with_text(1, name).with_nest(2, build))
        };
        Message::new(0, &[]).with_text(1, b"fw4").with_text(2, b"forward").with_nest(4, |list| {
            let list = element(list, b"ct", &|ct| ct.with(1, &number(1)).with(2, &number(0)));
            let mask = |mask: Message| mask.with_nest(4, |data| data.with(1, &[6, 0, 0, 0]));
            let list = element(list, b"bitwise", &mask);
            let compare = |cmp: Message| cmp.with(2, &number(1)).with_nest(3, |data| data.with(1, &[0; 4]));
            let list = element(list, b"cmp", &compare);
            let list = element(list, b"counter", &|counter| counter);
            let verdict = |verdict: Message| verdict.with(1, &number(1));
            let accept = |now: Message| now.with_nest(2, |data| data.with_nest(2, verdict));
            let list = element(list, b"immediate", &accept);
            element(list, b"flow_offload", &|flow| flow.with_text(1, b"ft"))
        })
    }
}

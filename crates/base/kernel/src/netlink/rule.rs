//! Policy routing: the table of a packet (`include/uapi/linux/fib_rules.h`).

use super::{Attributes, Message, Netlink, Refusal};
use libc::RTM_GETRULE;
use wire::IpVersion;

/// Bytes of `struct fib_rule_hdr`: family, bits of destination and source, type of service, table, two reserved, action, flags.
const HEADER: usize = 12;
const TOS: usize = 3;
const TABLE: usize = 4;
/// `FRA_*`.
const FRA_SRC: u16 = 2;
const FRA_IIFNAME: u16 = 3;
const FRA_PRIORITY: u16 = 6;
const FRA_FWMARK: u16 = 10;
const FRA_TABLE: u16 = 15;
const FRA_FWMASK: u16 = 16;
const FRA_IP_PROTO: u16 = 22;
const FRA_SPORT_RANGE: u16 = 23;
const FRA_DPORT_RANGE: u16 = 24;
const FRA_DSCP: u16 = 25;

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Of which packets.
    pub version: IpVersion,
    /// The rule of the lowest is first.
    pub priority: u32,
    /// What the mark has to be, and which of its bits count.
    pub mark: Option<(u32, u32)>,
    /// What TOS or traffic class has to be, without the two bits of ECN; 0: anything, or DSCP 0.
    pub tos: u8,
    /// Name of the interface that the packet has to arrive on; `lo`: this machine sends it.
    pub input: Option<String>,
    /// Whether the source address decides, too.
    pub has_source: bool,
    /// Whether the IP protocol or ports decide, too (Linux 4.17).
    pub has_transport: bool,
    /// The table; 0: it names none.
    pub table: u32,
}

impl Rule {
    fn read(body: &[u8]) -> Option<Rule> {
        let version = match i32::from(*body.first()?) {
            libc::AF_INET => IpVersion::V4,
            libc::AF_INET6 => IpVersion::V6,
            _ => return None,
        };
        let attributes = Attributes::behind(HEADER, body);
        let mark = attributes.u32(FRA_FWMARK).unwrap_or_default();
        let mask = attributes.u32(FRA_FWMASK).unwrap_or(if mark == 0 { 0 } else { u32::MAX });
        let transport = [FRA_IP_PROTO, FRA_SPORT_RANGE, FRA_DPORT_RANGE];
        Some(Rule {
            version,
            priority: attributes.u32(FRA_PRIORITY).unwrap_or_default(),
            mark: (mask != 0).then_some((mark, mask)),
            // `dscp` (Linux 6.14) is the upper six bits of it.
            tos: attributes.u8(FRA_DSCP).map(|dscp| dscp << 2).or(body.get(TOS).copied()).unwrap_or_default(),
            input: attributes.text(FRA_IIFNAME),
            has_source: attributes.has(FRA_SRC),
            has_transport: transport.into_iter().any(|kind| attributes.has(kind)),
            table: attributes
                .u32(FRA_TABLE)
                .unwrap_or_else(|| body.get(TABLE).map_or(0, |&table| table.into())),
        })
    }
}

/// All rules of this network namespace for IPv4 and IPv6, those that every one has included.
pub fn rules() -> Result<Vec<Rule>, Refusal> {
    let mut rules = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut header = [0; HEADER];
        header[0] = family as u8;
        match Netlink::route()?.dump(&Message::new(RTM_GETRULE, &header)) {
            Ok(objects) => rules.extend(objects.iter().filter_map(|object| Rule::read(object))),
            // A kernel without that version, or without policy routing.
            Err(refusal) if lacks_rules(&refusal) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(rules)
}

fn lacks_rules(refusal: &Refusal) -> bool {
    matches!(refusal.error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EOPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::netns::{Namespace, probe};
    use testkit::require;

    #[test]
    fn cut_short_at_any_place_nothing_panics() {
        let mut header = [0; HEADER];
        [header[0], header[TOS], header[TABLE]] = [libc::AF_INET as u8, 0x10, 77];
        let message = Message::new(32, &header)
            .with(FRA_PRIORITY, &9_u32.to_ne_bytes())
            .with(FRA_FWMARK, &5_u32.to_ne_bytes())
            .with(FRA_FWMASK, &0xff_u32.to_ne_bytes())
            .with_text(FRA_IIFNAME, b"lan0");
        let body = message.bytes(0, 0).expect("short").split_off(16);
        let rule = Rule::read(&body).expect("a rule");
        assert_eq!((rule.priority, rule.mark, rule.table, rule.tos), (9, Some((5, 0xff)), 77, 0x10));
        assert_eq!((rule.input.as_deref(), rule.has_source), (Some("lan0"), false));
        for end in 0..body.len() {
            let _ = Rule::read(body.get(..end).expect("within"));
        }
    }

    #[test]
    fn rules_of_a_namespace_are_listed() {
        let Some(()) = require("netns", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        let add = "rule add from 10.0.0.0/8 iif lan0 fwmark 5/0xff tos 0x10 ipproto tcp dport 80 table 777 priority 9";
        namespace.run("ip", &add.split(' ').collect::<Vec<_>>()).expect("a rule");
        let rules = namespace.inside(|| rules().expect("a list"));
        let expected = Rule {
            version: IpVersion::V4,
            priority: 9,
            mark: Some((5, 0xff)),
            tos: 0x10,
            input: Some("lan0".to_owned()),
            has_source: true,
            has_transport: true,
            table: 777,
        };
        assert!(rules.contains(&expected), "{rules:?}");
        let is_main = |rule: &&Rule| rule.version == IpVersion::V4 && rule.table == 254;
        let main = rules.iter().find(is_main).expect("that of the main table");
        assert_eq!((main.priority, main.mark, &main.input, main.has_source), (32766, None, &None, false));
    }
}

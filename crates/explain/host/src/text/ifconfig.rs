//! `ifconfig` of FreeBSD and NetBSD, and what net-tools' on Linux has in common with them.
//!
//! An interface begins with a line `igb0: flags=8843<UP,…> metric 0 mtu 1500` (FreeBSD), `wm0: flags=0x8843<UP,…>
//! mtu 1500` (NetBSD) or `eth0: flags=4163<UP,…>  mtu 1500` (Linux). Lines beneath it say more (`sbin/ifconfig`:
//! `ifmedia.c`, `ifvlan.c`, `ifbridge.c`, `iflagg.c`).

use super::command::is_interface;
use super::line::{is_word_of, one_of_two};
use super::{Line, Outcome, Section, Tool, freebsd_nics, ip_link, sysctl_machine};
use crate::{Fact, Feature, Interface, Kind, Observed, Quote, Snapshot, System};

pub(super) static TOOL: Tool = Tool {
    name: "ifconfig",
    command: |command| command.program == "ifconfig",
    heading: |line| Header::parse(line).is_some(),
    open: |_| Box::new(Listing { interface: None }),
};

/// First words of the lines beneath an interface.
const BENEATH: &str = "options ether inet inet6 media status nd6 groups vlan member laggport laggproto laggoptions \
     hwaddr address capabilities enabled ec_capabilities ec_enabled linkstr description supported \
     id maxage root tunnel Opened ifmaxaddr carp plugged lladdr priority index vendor RX TX loop \
     nd port ppp";

/// The line that an interface begins with.
struct Header<'a> {
    name: &'a str,
    flags: &'a str,
    mtu: Option<u32>,
    system: Option<System>,
}

impl<'a> Header<'a> {
    fn parse(line: &'a str) -> Option<Header<'a>> {
        let (name, rest) = line.split_once(':')?;
        let (number, rest) = rest.strip_prefix(" flags=")?.split_once('<')?;
        let (flags, rest) = rest.split_once('>')?;
        let is_flags = is_interface(name) && number.len() <= 10;
        if !is_flags || !number.bytes().all(|c| c.is_ascii_hexdigit() || c == b'x') {
            return None;
        }
        let mut words = rest.split_whitespace();
        let mtu = words.find(|word| *word == "mtu").and_then(|_| words.next()?.parse().ok());
        let system = if number.starts_with("0x") {
            Some(System::NetBsd)
        } else if rest.starts_with(" metric ") {
            Some(System::FreeBsd)
        } else if rest.starts_with("  mtu ") {
            Some(System::Linux)
        } else {
            None
        };
        Some(Header { name, flags, mtu, system })
    }
}

struct Listing {
    interface: Option<String>,
}

impl Section for Listing {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let text = line.trimmed();
        let quote = line.quote();
        if let Some(header) = Header::parse(text) {
            self.interface = Some(header.name.to_owned());
            begin(&header, &quote, snapshot);
            return Outcome::Taken;
        }
        if text.is_empty() {
            return Outcome::Skipped;
        }
        let Some(name) = self.interface.clone() else { return Outcome::Over };
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        if !is_word_of(BENEATH, word) {
            return Outcome::Over;
        }
        beneath(&name, word, rest, &quote, snapshot);
        Outcome::Taken
    }
}

fn begin(header: &Header<'_>, quote: &Quote, snapshot: &mut Snapshot) {
    if let Some(system) = header.system {
        sysctl_machine::infer(snapshot, system, quote);
    }
    let Some(interface) = snapshot.interface_mut(header.name, quote) else { return };
    let up = header.flags.split(',').any(|flag| flag == "UP");
    Observed::note(&mut interface.up, up, quote);
    Observed::note(&mut interface.mtu, header.mtu, quote);
    if header.system != Some(System::Linux)
        && let Some(kind) = kind_by_name(header.name)
    {
        interface.kind.get_or_insert_with(|| Fact::new(kind, quote.clone()));
    }
    if let Some(driver) = freebsd_nics::driver(header.name) {
        interface.driver.get_or_insert_with(|| Fact::new(driver.to_owned(), quote.clone()));
    }
}

/// What the name of a BSD interface says; a VLAN device may have any name, and its own line says so.
fn kind_by_name(name: &str) -> Option<Kind> {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let other = || Some(Kind::Other(base.to_owned()));
    match base {
        _ if base.len() == name.len() => None,
        // ng is what mpd5 makes; NetBSD's kernel calls its own pppoe.
        "ppp" | "pppoe" | "ng" => Some(Kind::Ppp),
        "bridge" => Some(Kind::Bridge { filtering: None, tpid: None }),
        "epair" => Some(Kind::Veth),
        "lo" | "lagg" | "tun" | "tap" | "wg" | "gif" | "gre" | "enc" | "pflog" | "pfsync" | "agr" => other(),
        _ => freebsd_nics::driver(name).map(|_| Kind::Device),
    }
}

fn beneath(name: &str, word: &str, rest: &str, quote: &Quote, snapshot: &mut Snapshot) {
    match word {
        "member" | "laggport" => master(name, rest, quote, snapshot),
        "vlan" => vlan(name, rest, quote, snapshot),
        _ => {
            let Some(interface) = snapshot.interface_mut(name, quote) else { return };
            match word {
                "media" => media(interface, rest, quote),
                "status" => status(interface, rest, quote),
                "options" | "enabled" => options(interface, word, rest, quote),
                _ => {}
            }
        }
    }
}

/// `: igb1 flags=143<LEARNING,…>` beneath a bridge or lagg.
fn master(name: &str, rest: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let member = rest.trim_start_matches(':').split_whitespace().next().filter(|word| is_interface(word));
    let Some(member) = member else { return };
    if let Some(interface) = snapshot.interface_mut(member, quote) {
        interface.master = Some(Fact::new(name.to_owned(), quote.clone()));
    }
}

/// `: 35 vlanproto: 802.1q vlanpcp: 0 parent interface: igb0`; NetBSD `: 35 parent: wm0`.
fn vlan(name: &str, rest: &str, quote: &Quote, snapshot: &mut Snapshot) {
    let after = |label: &str| rest.split_once(label)?.1.split_whitespace().next();
    let id = rest.trim_start_matches(':').split_whitespace().next().and_then(|id| id.parse().ok());
    let Some(id) = id.filter(|id| *id < 4096) else { return };
    let parent = after("parent interface: ").or_else(|| after("parent: ")).filter(|word| is_interface(word));
    let tpid = after("vlanproto: ").and_then(ip_link::tpid);
    // An id of 0 without a parent is a device that is not set up yet.
    if id == 0 && parent.is_none() {
        return;
    }
    let Some(interface) = snapshot.interface_mut(name, quote) else { return };
    interface.kind = Some(Fact::new(Kind::Vlan { tpid, id: Some(id) }, quote.clone()));
    if let Some(parent) = parent.filter(|parent| *parent != name) {
        interface.parent = Some(Fact::new(parent.to_owned(), quote.clone()));
    }
}

/// `: Ethernet autoselect (1000baseT <full-duplex>)`, NetBSD `(1000baseT full-duplex)`, fixed
/// `: Ethernet 100baseTX <full-duplex>`. What is in parentheses is what was negotiated.
fn media(interface: &mut Interface, rest: &str, quote: &Quote) {
    let active = rest.rsplit_once('(').map_or(rest, |(_, active)| active);
    let words = || active.split([' ', ',', '<', '>', '(', ')', '\t']).filter(|word| !word.is_empty());
    let Some(speed) = words().find_map(speed) else { return };
    Observed::note(&mut interface.link.speed, speed, quote);
    let is_full = words().find_map(|word| one_of_two(word, "full-duplex", "half-duplex"));
    Observed::note(&mut interface.link.full_duplex, is_full, quote);
}

/// Mbit/s of `100baseTX`, `1000baseT`, `2500Base-T`, `10Gbase-SR`.
fn speed(word: &str) -> Option<u32> {
    let digits = word.find(|c: char| !c.is_ascii_digit())?;
    let (number, rest) = word.split_at(digits);
    let number: u32 = number.parse().ok()?;
    let (scale, rest) = match rest.strip_prefix('G') {
        Some(rest) => (1000, rest),
        None => (1, rest),
    };
    let base = rest.get(..4)?;
    base.eq_ignore_ascii_case("base").then(|| number.checked_mul(scale)).flatten()
}

fn status(interface: &mut Interface, rest: &str, quote: &Quote) {
    let up = match rest.trim_start_matches(':').trim() {
        "active" | "associated" => true,
        "no carrier" | "no network" => false,
        _ => return,
    };
    Observed::note(&mut interface.link.up, up, quote);
}

/// Capabilities that are on, and the features by ethtool's names that they are.
const FEATURES: [(&str, &[&str]); 6] = [
    ("rx-checksumming", &["RXCSUM", "IP4CSUM_Rx", "TCP4CSUM_Rx"]),
    ("tx-checksumming", &["TXCSUM", "TCP4CSUM_Tx"]),
    ("tcp-segmentation-offload", &["TSO4", "TSO6"]),
    ("large-receive-offload", &["LRO"]),
    ("rx-vlan-offload", &["VLAN_HWTAGGING"]),
    ("rx-vlan-filter", &["VLAN_HWFILTER"]),
];

/// FreeBSD `options=4e527bb<RXCSUM,TXCSUM,VLAN_MTU,…>`, NetBSD `enabled=7ff80<TSO4,…>`: what is not listed is off.
fn options(interface: &mut Interface, word: &str, rest: &str, quote: &Quote) {
    // A truncated list would make features look off.
    let Some(list) = rest.split_once('<').and_then(|(_, list)| list.strip_suffix('>')) else { return };
    for (feature, names) in FEATURES {
        // NetBSD has VLAN capabilities on a line of their own, and no LRO.
        if word == "enabled" && (feature.contains("vlan") || feature.starts_with("large")) {
            continue;
        }
        let on = list.split(',').any(|one| names.contains(&one));
        let fact = Fact::new(Feature { on, fixed: false }, quote.clone());
        Observed::note_at(&mut interface.features, feature, fact, usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn speeds() {
        for (word, expected) in [
            ("10baseT/UTP", Some(10)),
            ("2500Base-T", Some(2500)),
            ("10Gbase-SR", Some(10_000)),
            ("100GBase-SR4", Some(100_000)),
            ("4294967295Gbase-X", None),
            ("autoselect", None),
            ("1000", None),
            ("10ééé", None),
        ] {
            assert_eq!(super::speed(word), expected, "{word}");
        }
    }
}

//! `ip link` and `ip addr`, with or without `-d` and `-s`, of iproute2 (ip/ipaddress.c, ip/iplink_*.c) and BusyBox:
//! what stands on what, MTU, carrier, XDP, SR-IOV functions, totals.
//!
//! `eth0.35@eth0` names a lower device, `veth0@veth1` a peer, and both look alike. A VLAN, macvlan or DSA port is
//! recognised by its details (`-d`); without them by its name (`eth0.35@eth0`), or by the other's line, which a peer
//! answers with an `@` of its own.

use super::kept::Kept;
use super::line::{is_word_of, one_of_two};
use super::{Line, Outcome, Section, Tool};
use crate::interface::is_plain_name;
use crate::{Counter, Fact, Interface, Kind, Observed, Quote, SHAPERS, Snapshot, Xdp};
use std::collections::BTreeMap;

pub(super) static TOOL: Tool = Tool {
    name: "ip link",
    command: |command| command.program == "ip",
    heading: |line| header(line).is_some(),
    open: |_| Box::new(Links::default()),
};

/// Beginnings of lines that say nothing here, for pastes that lost the indentation.
const OTHERS: [&str; 8] =
    ["valid_lft ", "altname ", "alias ", "bridge_slave ", "bond_slave ", "RX errors:", "TX errors:", "TX:"];

/// Kinds whose word is the whole of what is said of them here, and which have a lower device where `@` names one.
const KINDS: &str =
    "bond dummy dsa geneve gre ifb ipvlan macvlan macvtap sit team tun vrf vxlan wireguard l2tp";

#[derive(Default)]
struct Links {
    /// The interface of the last header.
    current: String,
    /// Whether its header named an XDP program.
    has_xdp: bool,
    functions: Option<(u32, Quote)>,
    /// The columns of the numbers in the next line.
    columns: Columns,
    /// Name after the `@` by interface; `None` for one without.
    lowers: BTreeMap<String, Option<(String, Quote)>>,
    /// The line of an address by interface.
    addresses: BTreeMap<String, Quote>,
    /// Whether addresses of IPv4 are printed.
    has_ipv4: bool,
}

/// What the numbers of a line are.
#[derive(Default)]
enum Columns {
    #[default]
    None,
    Received(Vec<String>),
    ReceivedErrors(Vec<String>),
    Other,
}

struct Header<'a> {
    name: &'a str,
    lower: Option<&'a str>,
    flags: &'a str,
    rest: &'a str,
}

impl Section for Links {
    fn line(&mut self, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        // `ip -o` has a backslash where a line would end.
        let mut outcome = Outcome::Skipped;
        for piece in line.text.split('\\') {
            outcome = self.piece(piece.trim(), line, snapshot);
            if outcome == Outcome::Over {
                break;
            }
        }
        outcome
    }

    fn end(&mut self, snapshot: &mut Snapshot) {
        self.finish_interface(snapshot);
        self.addressing(snapshot);
        self.stacking(snapshot);
    }

    fn cut(&mut self, snapshot: &mut Snapshot) {
        // More functions may have followed.
        self.functions = None;
        self.end(snapshot);
    }
}

impl Links {
    fn piece(&mut self, text: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        if text.is_empty() {
            return Outcome::Skipped;
        }
        if let Some(header) = header(text) {
            self.finish_interface(snapshot);
            self.header(&header, line, snapshot);
            return Outcome::Taken;
        }
        if self.current.is_empty() {
            return if text.starts_with("...") { Outcome::Skipped } else { Outcome::Over };
        }
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        if word.bytes().all(|c| c.is_ascii_digit()) {
            return self.numbers(text, line);
        }
        self.columns = Columns::None;
        match word {
            "RX:" => self.columns = Columns::Received(words(rest)),
            "RX" if rest.starts_with("errors:") => {
                self.columns = Columns::ReceivedErrors(words(rest.trim_start_matches("errors:")));
            }
            "TX:" | "TX" => self.columns = Columns::Other,
            "vf" => self.function(line),
            "inet" | "inet6" => self.address(word, rest, line),
            _ if word.starts_with("link/") => self.link(word, rest, line, snapshot),
            _ => return self.details(word, text, line, snapshot),
        }
        Outcome::Taken
    }

    fn header(&mut self, header: &Header<'_>, line: &Line<'_>, snapshot: &mut Snapshot) {
        let quote = line.quote();
        header.name.clone_into(&mut self.current);
        self.has_xdp = false;
        self.columns = Columns::None;
        let lower = header.lower.map(|lower| (lower.to_owned(), quote.clone()));
        if self.lowers.len() < Snapshot::INTERFACES {
            self.lowers.insert(header.name.to_owned(), lower);
        }
        let Some(interface) = snapshot.interface_mut(header.name, &quote) else { return };
        let flags = || header.flags.split(',');
        let is_up = flags().any(|flag| flag == "UP");
        Observed::note(&mut interface.up, is_up, &quote);
        // A device that is down has no carrier to report.
        if is_up && flags().any(|flag| flag == "LOWER_UP") {
            Observed::note(&mut interface.link.up, true, &quote);
        } else if is_up && flags().any(|flag| flag == "NO-CARRIER") {
            Observed::note(&mut interface.link.up, false, &quote);
        }
        let mut words = header.rest.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "mtu" => {
                    let mtu = words.next().and_then(|mtu| mtu.parse().ok());
                    Observed::note(&mut interface.mtu, mtu, &quote);
                }
                "master" => {
                    let master = words.next().map(|master| Fact::new(master.to_owned(), quote.clone()));
                    interface.master = master.or(interface.master.take());
                }
                "qdisc" => {
                    let shaper = words.next().filter(|kind| SHAPERS.contains(kind));
                    interface.shaper = shaper.map(|kind| Fact::new(kind.to_owned(), quote.clone()));
                }
                word => {
                    let xdp = xdp(word);
                    self.has_xdp |= xdp.is_some();
                    Observed::note(&mut interface.xdp, xdp, &quote);
                }
            }
        }
    }

    /// `link/ether 00:0d:…  promiscuity 0 minmtu 68 maxmtu 9216 … parentbus pci parentdev 0000:03:00.0`.
    fn link(&mut self, word: &str, rest: &str, line: &Line<'_>, snapshot: &mut Snapshot) {
        let quote = line.quote();
        let has_details = rest.contains(" minmtu ") || rest.contains(" gso_max_size ");
        let Some(interface) = snapshot.interface_mut(&self.current, &quote) else { return };
        match word {
            "link/ppp" => set_kind(interface, Kind::Ppp, &quote),
            "link/loopback" => set_kind(interface, Kind::Other("loopback".to_owned()), &quote),
            _ => {}
        }
        link_words(interface, rest, line);
        // Versions of ip that print these details print XDP programs in the line before.
        if has_details && !self.has_xdp {
            Observed::note(&mut interface.xdp, Xdp::Off, &quote);
        }
    }

    /// `inet 192.0.2.1/24 brd 192.0.2.255 scope global eth0`.
    fn address(&mut self, word: &str, rest: &str, line: &Line<'_>) {
        self.has_ipv4 |= word == "inet";
        if !rest.contains("scope link") && self.lowers.contains_key(&self.current) {
            self.addresses.entry(self.current.clone()).or_insert_with(|| line.quote());
        }
    }

    /// What shows addresses of IPv4 shows which interfaces have none: the loopback has one.
    fn addressing(&self, snapshot: &mut Snapshot) {
        let known = snapshot.interfaces.iter_mut();
        for interface in known.filter(|one| self.has_ipv4 && self.lowers.contains_key(&one.name)) {
            interface.note_address(self.addresses.get(&interface.name));
        }
    }

    /// The line of the kind, and lines that say nothing here.
    fn details(&mut self, word: &str, text: &str, line: &Line<'_>, snapshot: &mut Snapshot) -> Outcome {
        let value = |name| value(text, name);
        let kind = match word {
            "vlan" => Some(Kind::Vlan {
                tpid: value("protocol").and_then(tpid),
                id: value("id").and_then(|id| id.parse().ok()),
            }),
            "bridge" => Some(Kind::Bridge {
                filtering: value("vlan_filtering").and_then(|on| one_of_two(on, "1", "0")),
                tpid: value("vlan_protocol").and_then(tpid),
            }),
            "veth" => Some(Kind::Veth),
            "ppp" => Some(Kind::Ppp),
            word if is_word_of(KINDS, word) => Some(Kind::Other(word.to_owned())),
            _ => None,
        };
        let is_indented = line.text.starts_with([' ', '\t']) || line.text.contains('\\');
        let Some(kind) = kind else {
            let is_other =
                OTHERS.iter().any(|other| text.starts_with(other)) || text.starts_with("prog/xdp ");
            return match (is_other, is_indented) {
                (true, _) => Outcome::Taken,
                (false, true) => Outcome::Skipped,
                (false, false) => Outcome::Over,
            };
        };
        let quote = line.quote();
        let lower = self.lowers.get(&self.current).cloned().flatten();
        let has_lower = kind != Kind::Veth;
        if let Some(interface) = snapshot.interface_mut(&self.current, &quote) {
            set_kind(interface, kind, &quote);
            if let Some((lower, quote)) =
                lower.filter(|(lower, _)| has_lower && is_here(lower) && is_plain_name(lower))
            {
                interface.parent = Some(Fact::new(lower, quote));
            }
        }
        Outcome::Taken
    }

    fn function(&mut self, line: &Line<'_>) {
        match &mut self.functions {
            Some((count, _)) => *count = count.saturating_add(1),
            None => self.functions = Some((1, line.quote())),
        }
    }

    fn numbers(&mut self, text: &str, line: &Line<'_>) -> Outcome {
        let columns = std::mem::replace(&mut self.columns, Columns::None);
        let (names, errors) = match columns {
            Columns::None => return Outcome::Over,
            Columns::Other => return Outcome::Taken,
            Columns::Received(names) => (names, false),
            Columns::ReceivedErrors(names) => (names, true),
        };
        let numbers: Option<Vec<u64>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() <= names.len()) else {
            return Outcome::Over;
        };
        let quote = line.quote();
        let mut kept = line.kept();
        let Some(totals) = kept.totals_of(&self.current, TOOL.name) else { return Outcome::Taken };
        for (name, number) in names.iter().zip(numbers) {
            match (name.as_str(), errors) {
                ("packets", false) => Counter::note(&mut totals.packets, number, &quote),
                ("bytes", false) => Counter::note(&mut totals.bytes, number, &quote),
                // `rx_missed_errors`, `rx_fifo_errors` and `rx_over_errors` of rtnl_link_stats64.
                ("missed" | "fifo" | "overrun", _) => {
                    Counter::note_at(&mut totals.overflow, name.clone(), number, quote.clone(), Kept::MOST);
                }
                _ => {}
            }
        }
        Outcome::Taken
    }

    fn finish_interface(&mut self, snapshot: &mut Snapshot) {
        let Some((functions, quote)) = self.functions.take() else { return };
        if let Some(interface) = snapshot.interface_mut(&self.current, &quote) {
            interface.virtual_functions = Some(Fact::new(functions, quote));
        }
    }

    /// Parents that no line of details names.
    fn stacking(&self, snapshot: &mut Snapshot) {
        for (name, lower) in &self.lowers {
            let Some((lower, quote)) = lower else { continue };
            let Some(interface) = snapshot.interfaces.iter_mut().find(|interface| interface.name == *name)
            else {
                continue;
            };
            if interface.parent.is_some() || interface.kind.as_ref().is_some_and(is_alone) {
                continue;
            }
            let id = name
                .strip_prefix(lower.as_str())
                .and_then(|rest| rest.strip_prefix('.')?.parse::<u16>().ok());
            let is_vlan = id.is_some_and(|id| id < 4096);
            // The other end of a veth pair has an `@` of its own; a device has none.
            let is_device = matches!(self.lowers.get(lower), Some(None));
            if is_vlan {
                set_kind(interface, Kind::Vlan { tpid: None, id: None }, quote);
            }
            if (is_vlan || is_device) && is_plain_name(lower) {
                interface.parent = Some(Fact::new(lower.clone(), quote.clone()));
            }
        }
    }
}

/// Kinds that stand on nothing.
fn is_alone(kind: &Fact<Kind>) -> bool {
    matches!(kind.value, Kind::Veth | Kind::Device | Kind::Ppp)
}

/// Whether a name after the `@` is one of this network namespace: `if7` is a number in another, `NONE` nothing.
fn is_here(lower: &str) -> bool {
    lower != "NONE" && lower.strip_prefix("if").is_none_or(|number| number.parse::<u32>().is_err())
}

/// The word behind that one.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_whitespace().skip_while(|word| *word != name).nth(1)
}

fn link_words(interface: &mut Interface, text: &str, line: &Line<'_>) {
    let quote = &line.quote();
    let value = |name| value(text, name);
    // 0 is "no limit given".
    let most = value("maxmtu").and_then(|most| most.parse::<u32>().ok()).filter(|&most| most > 0);
    if let Some(most) = most {
        interface.mtu_most = Some(Fact::new(most, quote.clone()));
    }
    let Some(device) = value("parentdev") else { return };
    match value("parentbus") {
        Some("pci") => {
            interface.bus.get_or_insert_with(|| Fact::new(device.to_owned(), quote.clone()));
            set_kind(interface, Kind::Device, quote);
        }
        Some(_) => {
            let mut kept = line.kept();
            if kept.devices.len() < Kept::MOST {
                kept.devices.insert(interface.name.clone(), device.to_owned());
            }
            set_kind(interface, Kind::Device, quote);
        }
        None => {}
    }
}

/// A kind, where it says as much as the one that is known.
fn set_kind(interface: &mut Interface, kind: Kind, quote: &Quote) {
    let is_poorer = match (&kind, interface.kind.as_ref().map(|kind| &kind.value)) {
        (_, None) => false,
        (Kind::Vlan { tpid, id }, Some(Kind::Vlan { .. })) => tpid.is_none() && id.is_none(),
        (Kind::Bridge { filtering, tpid }, Some(Kind::Bridge { .. })) => {
            filtering.is_none() && tpid.is_none()
        }
        (Kind::Vlan { .. } | Kind::Bridge { .. } | Kind::Veth | Kind::Ppp, Some(_)) => false,
        (Kind::Device | Kind::Other(_), Some(Kind::Device)) => false,
        (Kind::Device | Kind::Other(_), Some(_)) => true,
    };
    if !is_poorer && interface.kind.as_ref().is_none_or(|known| known.value != kind) {
        interface.kind = Some(Fact::new(kind, quote.clone()));
    }
}

/// The TPID that iproute2 and ifconfig call by the standard's name.
pub(super) fn tpid(word: &str) -> Option<u16> {
    match word.to_ascii_lowercase().as_str() {
        "802.1q" => Some(0x8100),
        "802.1ad" => Some(0x88a8),
        _ => None,
    }
}

/// `xdp`, `xdpgeneric/id:12`, `xdpoffload`, `xdpdrv`. Several programs (`xdpmulti`) say not which runs first.
fn xdp(word: &str) -> Option<Xdp> {
    match word.split('/').next()? {
        "xdp" | "xdpdrv" => Some(Xdp::Native),
        "xdpgeneric" => Some(Xdp::Generic),
        "xdpoffload" => Some(Xdp::Offloaded),
        _ => None,
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// `2: eth0.35@eth0: <BROADCAST,UP> mtu 1500 …`.
fn header(text: &str) -> Option<Header<'_>> {
    if !text.as_bytes().first().is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let (index, text) = text.split_once(": ")?;
    let (name, text) = text.split_once(": <")?;
    let (flags, rest) = text.split_once('>')?;
    let (name, lower) = match name.split_once('@') {
        Some((name, lower)) => (name, Some(lower)),
        None => (name, None),
    };
    let is_header = index.bytes().all(|c| c.is_ascii_digit())
        && (1..16).contains(&name.len())
        && !name.contains(char::is_whitespace)
        && rest.trim_start().starts_with("mtu ");
    is_header.then_some(Header { name, lower, flags, rest })
}

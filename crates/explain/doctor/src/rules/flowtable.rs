//! nftables' flowtable, the kernel's fast path for forwarded connections: `flowtable-off`, `flowtable-devices`,
//! `flowtable-bypassed`, `hw-offload-off`.
//!
//! A connection enters it by the expression `flow add` in a chain of the forward hook; packets of it are then taken from the ingress
//! hook of the flowtable's devices straight to the way out (net/netfilter/nf_flow_table_ip.c).

mod bypassed;

pub(super) use bypassed::{bypassed, follow_up};

use crate::Case;
use crate::facts::{Effect, Fact, FastEffect, FastFact, FlowEffect, FlowFact, LookedUp};
use crate::fast_path::{self, Candidate, Counted};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::forwarding::{self, Lookup};
use crate::load::{self, Limit};
use crate::rule::Judgement;
use crate::stacked;
use format::quoted;
use host::{Flowtable, Interface, Kind, Quote};

/// Settings of OpenWrt's firewall.
const SECTION: &str = "firewall.defaults";
const SOFTWARE: &str = "firewall.defaults.flow_offloading";
const HARDWARE: &str = "firewall.defaults.flow_offloading_hw";

/// Whether there is a flowtable.
enum State<'c> {
    Present,
    /// With the line that says so, and whether it is OpenWrt's setting.
    Absent(&'c Quote, bool),
    Unknown,
}

impl<'c> State<'c> {
    fn of(case: &Case<'c>) -> State<'c> {
        let snapshot = case.snapshot();
        let netfilter = &snapshot.netfilter;
        let is_used = netfilter.connections.as_ref().is_some_and(|all| all.of_flows().offloaded > 0);
        if !netfilter.flowtables.is_empty() || is_used {
            return State::Present;
        }
        let set = snapshot.uci.get(SOFTWARE);
        // firewall3 makes a rule of iptables of it, which no listing of nft has.
        if set.is_some_and(|seen| forwarding::is_true(seen.get())) {
            return State::Present;
        }
        match (&netfilter.listed, set.or(snapshot.uci.get(SECTION))) {
            (Some(listed), _) => State::Absent(listed, false),
            (None, Some(seen)) => State::Absent(seen.quote(), true),
            (None, None) => State::Unknown,
        }
    }
}

/// `flowtable-off`: a router whose CPU is the limit takes every packet through all rules.
pub(super) fn off(case: &Case<'_>) -> Judgement {
    let forwards = forwarding::forwards(case);
    if forwards == Some(false) {
        return Judgement::DoesNotApply;
    }
    if Counted::of(case).is_some_and(|counted| counted.works()) {
        return Judgement::Clear;
    }
    let (quote, setting) = match State::of(case) {
        State::Present => return Judgement::Clear,
        State::Absent(quote, setting) => (quote, setting),
        State::Unknown if forwards.is_none() => return Judgement::lacks("sysctl net.ipv4.ip_forward"),
        State::Unknown if matches!(Limit::of(case), Limit::NotReached) => return Judgement::Clear,
        State::Unknown => return Judgement::lacks("nft list flowtables"),
    };
    let reached = match Limit::of(case) {
        Limit::Reached(quotes) => quotes,
        Limit::NotReached => return Judgement::Clear,
        Limit::Unknown => return Judgement::lacks(load::command(case)),
    };
    if let Some((packets, quotes)) = forwards_little(case) {
        // What fills the CPU is something else.
        return found(Severity::Info, Fact::Flow(FlowFact::Off { setting }))
            .says([Fact::Flow(FlowFact::ForwardsLittle { packets })])
            .quotes([quote])
            .quotes(quotes)
            .possible_if(true)
            .into();
    }
    let (remedies, shaped) = with_fast_path(case, switched_on(case));
    let (shaper, shaped) = shaped.unzip();
    let forwarding = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"].map(|name| case.sysctl(name));
    found(Severity::Warning, Fact::Flow(FlowFact::Off { setting }))
        .says(forwards.is_none().then_some(Fact::Flow(FlowFact::ForwardsUnknown)))
        .says(shaped.map(Fact::Fast))
        .quotes([quote])
        .quotes(&reached)
        .quotes(forwarding.into_iter().flatten().filter(|(value, _)| *value > 0).map(|(_, quote)| quote))
        .quotes(shaper)
        .fix(remedies)
        .possible_if(forwards.is_none())
        .into()
}

/// Packets that a forward chain let pass below which something else fills a CPU: a full one forwards as many in a second.
const LITTLE: u64 = 100_000;

/// Packets that the forward chains counted, where they are next to none.
fn forwards_little<'c>(case: &Case<'c>) -> Option<(u64, Vec<&'c Quote>)> {
    let counted = &case.snapshot().netfilter.forwarded;
    let packets = counted.values().map(|packets| packets.value).max().filter(|most| *most < LITTLE)?;
    Some((packets, counted.values().map(|packets| &packets.quote).collect()))
}

/// A flowtable, by the system's own setting where it has one, else by nft.
fn switched_on(case: &Case<'_>) -> Vec<Remedy> {
    let own = || {
        let hardware = hardware_driver(case).is_some();
        let is_on = |name| case.snapshot().uci.get(name).is_some_and(|seen| forwarding::is_true(seen.get()));
        let options =
            [("flow_offloading", !is_on(SOFTWARE)), ("flow_offloading_hw", hardware && !is_on(HARDWARE))];
        let missing = options.into_iter().filter(|(_, is_missing)| *is_missing);
        let commands = missing.map(|(option, _)| format!("uci set firewall.@defaults[0].{option}=1"));
        let last = ["uci commit firewall", "service firewall restart"].map(str::to_owned);
        remedy(FlowEffect::Uci { hardware }, commands.chain(last))
    };
    let by_nft = || {
        let (commands, known) = forwarding::flowtable_commands(case, "LAN, WAN");
        remedy(FlowEffect::Nft { known }, commands)
    };
    if case.snapshot().is_openwrt() { vec![own(), by_nft()] } else { vec![by_nft()] }
}

/// A fast path of rxlane besides, where this machine can have one: before the others where it was measured to be better, behind
/// them where that is not known. What it would send past is stated instead.
fn with_fast_path<'c>(
    case: &Case<'c>,
    mut remedies: Vec<Remedy>,
) -> (Vec<Remedy>, Option<(&'c Quote, FastFact)>) {
    match fast_path::candidate(case) {
        Some(Candidate::On { ports, pppoe }) => {
            let effect = Effect::Fast(FastEffect::Up { measured: pppoe });
            let remedy = Remedy::linux(effect, fast_path::commands(&ports));
            remedies.insert(if pppoe { 0 } else { remedies.len() }, remedy);
            (remedies, None)
        }
        Some(Candidate::Shaped(interface)) => {
            let shaped = interface.shaper.as_ref().map(|shaper| {
                let fact =
                    FastFact::Shaped { interface: interface.name.clone(), qdisc: shaper.value.clone() };
                (&shaper.quote, fact)
            });
            (remedies, shaped)
        }
        None => (remedies, None),
    }
}

fn remedy(effect: FlowEffect, commands: impl IntoIterator<Item = String>) -> Remedy {
    Remedy::linux(Effect::Flow(effect), commands)
}

fn nft(words: &str) -> String {
    format!("nft {}", quoted(words))
}

/// Whether words can stand in a command of nft: text from outside, which might be more than a name or a priority.
fn is_plain(words: &str) -> bool {
    !words.is_empty() && words.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-.+ ".contains(&c))
}

/// What a flowtable names wrongly.
#[derive(Default)]
struct Wrong<'c> {
    facts: Vec<FlowFact>,
    quotes: Vec<&'c Quote>,
    add: Vec<String>,
    remove: Vec<String>,
    /// Whether packets are missed, and not only found at a costlier place.
    misses: bool,
}

/// `flowtable-devices`: it names an interface at which this kernel does not match packets, or leaves one out.
pub(super) fn devices(case: &Case<'_>) -> Judgement {
    let netfilter = &case.snapshot().netfilter;
    let named = || netfilter.flowtables.iter().filter(|one| !one.devices.is_empty());
    if named().next().is_none() {
        let is_none = netfilter.listed.is_some() || forwarding::forwards(case) == Some(false);
        return if is_none { Judgement::DoesNotApply } else { Judgement::lacks("nft list flowtables") };
    }
    // Whether what it leaves out is routed nobody can say without interfaces.
    let is_known = |name: &String| case.snapshot().interface(name).is_some();
    if !named().any(|one| one.devices.iter().any(is_known)) {
        return Judgement::lacks("ip -d link");
    }
    let found = named().filter_map(|one| finding(case, one, &wrong(case, one)));
    // Where packets of a PPP interface are matched is known with the device below.
    let is_without_parent = |one: &Interface| stacked::is_ppp(one) && stacked::parent_of(case, one).is_none();
    let has_unknown = case.snapshot().interfaces.iter().any(is_without_parent);
    Judgement::of(
        found.collect(),
        has_unknown.then(|| "cat /proc/net/pppoe".to_owned()).into_iter().collect(),
    )
}

fn finding(case: &Case<'_>, flowtable: &Flowtable, wrong: &Wrong<'_>) -> Option<Finding> {
    let (first, others) = wrong.facts.split_first()?;
    // The kernel refuses another priority than the present one, and takes away a flag that is not repeated
    // (nft_flowtable_update() in net/netfilter/nf_tables_api.c).
    let priority = flowtable.priority.as_deref().filter(|priority| is_plain(priority)).unwrap_or("filter");
    let offload = if flowtable.hardware == Some(true) { " flags offload;" } else { "" };
    let counter = if flowtable.counter { " counter;" } else { "" };
    let change = |what: &str, names: &[String]| {
        let (table, name, names) = (&flowtable.table, &flowtable.name, forwarding::list(names));
        let text = format!(
            "{what} flowtable {table} {name} {{ hook ingress priority {priority}; devices = {{ {names} }};{offload}{counter} }}"
        );
        nft(&text)
    };
    let is_plain = is_plain(&flowtable.table) && is_plain(&flowtable.name);
    let add = (!wrong.add.is_empty() && is_plain).then(|| change("add", &wrong.add));
    let remove = (!wrong.remove.is_empty() && is_plain).then(|| change("delete", &wrong.remove));
    let effect = FlowEffect::Devices { openwrt: case.snapshot().is_openwrt() };
    let severity = if wrong.misses { Severity::Warning } else { Severity::Info };
    let is_certain = !case.snapshot().netfilter.routed.is_empty() && Lookup::of(case).is_some();
    let finding = found(severity, Fact::Flow(first.clone()))
        .says(others.iter().cloned().map(Fact::Flow))
        .quotes([&flowtable.quote])
        .quotes(wrong.quotes.iter().copied())
        .quotes(case.snapshot().kernel.as_ref().map(|kernel| &kernel.quote))
        .fix([remedy(effect, remove.into_iter().chain(add))])
        .possible_if(!is_certain);
    Some(finding)
}

fn wrong<'c>(case: &Case<'c>, flowtable: &Flowtable) -> Wrong<'c> {
    let mut wrong = Wrong::default();
    let mut missing: Vec<String> = Vec::new();
    let routed = &case.snapshot().netfilter.routed;
    for interface in &case.snapshot().interfaces {
        let is_routed = routed.is_empty() || routed.contains_key(&interface.name);
        if !forwarding::may_work(interface) || !is_routed {
            continue;
        }
        let before = missing.len();
        match crate::case::kind(interface) {
            Some(Kind::Bridge { .. }) => bridge(case, flowtable, interface, &mut missing),
            _ if is_stacked(case, interface) => above(case, flowtable, interface, &mut missing, &mut wrong),
            // What no rule names may be a port for management.
            _ if !routed.is_empty()
                && forwarding::is_port(case, interface)
                && interface.master.is_none()
                && !flowtable.devices.contains(&interface.name) =>
            {
                missing.push(interface.name.clone());
            }
            _ => {}
        }
        if missing.len() > before {
            wrong.quotes.extend(routed.get(&interface.name));
        }
    }
    missing.sort();
    missing.dedup();
    if !missing.is_empty() {
        wrong.misses = true;
        wrong.add.extend(missing.iter().cloned());
        let name = flowtable.name.clone();
        wrong.facts.push(FlowFact::LeavesOut { flowtable: name, devices: missing });
    }
    wrong
}

/// Whether it stands on another: a VLAN device or a PPP interface whose parent is known.
fn is_stacked(case: &Case<'_>, interface: &Interface) -> bool {
    (stacked::is_vlan(interface) || stacked::is_ppp(interface))
        && stacked::parent_of(case, interface).is_some()
}

fn bridge(case: &Case<'_>, flowtable: &Flowtable, bridge: &Interface, missing: &mut Vec<String>) {
    /// fw4 names the radios of a bridge; hardware does without.
    const RADIOS: [&str; 4] = ["wlan", "phy", "ath", "ra"];
    let is_radio = |one: &Interface| RADIOS.iter().any(|radio| one.name.starts_with(radio));
    let is_of = |one: &&Interface| one.master.as_ref().is_some_and(|master| master.value == bridge.name);
    if forwarding::has_containers_only(case, &bridge.name) {
        return;
    }
    let ports = case.snapshot().interfaces.iter().filter(is_of);
    let ports: Vec<&Interface> = ports.filter(|one| forwarding::may_work(one) && !is_radio(one)).collect();
    let names = |name: &String| flowtable.devices.contains(name);
    // Without any port named, the kernel matches at the bridge itself.
    if names(&bridge.name) && !ports.iter().any(|port| names(&port.name)) {
        return;
    }
    missing.extend(ports.iter().map(|port| &port.name).filter(|name| !names(name)).cloned());
}

/// A VLAN device or a PPP interface.
fn above<'c>(
    case: &Case<'c>,
    flowtable: &Flowtable,
    interface: &'c Interface,
    missing: &mut Vec<String>,
    wrong: &mut Wrong<'c>,
) {
    let names = |name: &str| flowtable.devices.iter().any(|device| device == name);
    let (top, below) = (interface.name.as_str(), forwarding::lookup_device(case, &interface.name));
    let is_ppp = stacked::is_ppp(interface);
    let lookup = match Lookup::of(case) {
        Some(Lookup::MissesPppoe) if !is_ppp => Some(Lookup::Physical),
        lookup => lookup,
    };
    let mut other = |named: &str, needed: &str, why: LookedUp| {
        let flowtable = flowtable.name.clone();
        wrong.facts.push(FlowFact::OtherDevice {
            flowtable,
            named: named.to_owned(),
            needed: needed.to_owned(),
            why,
        });
        wrong.quotes.push(&interface.seen);
        if !names(needed) {
            wrong.add.push(needed.to_owned());
        }
        wrong.misses |= why != LookedUp::Below;
    };
    match (lookup, names(top), names(below)) {
        (Some(Lookup::Top), false, true) => other(below, top, LookedUp::TooOld),
        (Some(Lookup::MissesPppoe), _, true) => {
            other(below, top, LookedUp::MissesPppoe);
            wrong.remove.push(below.to_owned());
        }
        (Some(Lookup::Physical), true, false) => other(top, below, LookedUp::Below),
        (Some(Lookup::Top | Lookup::MissesPppoe), false, false) => missing.push(top.to_owned()),
        (_, false, false) => missing.push(below.to_owned()),
        _ => {}
    }
}

/// Drivers whose devices forward flows themselves (`TC_SETUP_FT` in drivers/net/ethernet/mediatek/mtk_ppe_offload.c and
/// airoha/airoha_ppe.c).
const CAN: [&str; 2] = ["mtk_soc_eth", "airoha_eth"];
/// MediaTek's Ethernet in `/proc/interrupts`, by its address in the device tree: mt7621.dtsi, mt7622.dtsi, and mt7981b.dtsi with
/// mt7986a.dtsi and mt7988a.dtsi.
const ON_CHIP: [&str; 3] = ["1e100000.ethernet", "1b100000.ethernet", "15100000.ethernet"];

/// The driver of this machine that can, with the line that shows it.
fn hardware_driver<'c>(case: &Case<'c>) -> Option<(&'c str, &'c Quote)> {
    let snapshot = case.snapshot();
    let mut drivers = snapshot.interfaces.iter().filter_map(|one| one.driver.as_ref());
    let driver = drivers.find(|driver| CAN.contains(&driver.value.as_str()));
    let by_interrupt = || {
        let mut all = snapshot.interrupts.iter();
        let is_such = |action: &str| {
            ON_CHIP.iter().any(|name| action.split([',', ' ']).any(|word| word.trim() == *name))
        };
        Some((CAN[0], &all.find(|one| is_such(&one.action))?.quote))
    };
    driver.map(|driver| (driver.value.as_str(), &driver.quote)).or_else(by_interrupt)
}

/// `hw-offload-off`: the device could forward flows itself, and is not used for it.
pub(super) fn hardware_off(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let netfilter = &snapshot.netfilter;
    if forwarding::forwards(case) == Some(false) {
        return Judgement::DoesNotApply;
    }
    let Some((driver, seen)) = hardware_driver(case) else {
        let unknown = case.devices().find(|device| device.driver_name().is_none());
        return match unknown {
            Some(device) => Judgement::lacks(format!("ethtool -i {}", device.word())),
            None => Judgement::DoesNotApply,
        };
    };
    let is_used = netfilter.connections.as_ref().is_some_and(|all| all.of_flows().hardware > 0);
    let is_set = |name: &str| snapshot.uci.get(name).map(|seen| forwarding::is_true(seen.get()));
    if is_used
        || netfilter.flowtables.iter().any(|one| one.hardware == Some(true))
        || (is_set(SOFTWARE) == Some(true) && is_set(HARDWARE) == Some(true))
    {
        return Judgement::Clear;
    }
    let by_table = netfilter.flowtables.iter().find(|one| one.hardware == Some(false)).map(|one| &one.quote);
    let by_setting = || {
        let setting = [HARDWARE, SOFTWARE, SECTION].into_iter().find_map(|name| snapshot.uci.get(name));
        setting.map(host::Observed::quote)
    };
    let Some(quote) = by_table.or_else(by_setting).or(netfilter.listed.as_ref()) else {
        return Judgement::lacks("nft list flowtables");
    };
    let (severity, reached) = match Limit::of(case) {
        Limit::Reached(quotes) => (Severity::Warning, quotes),
        _ => (Severity::Info, Vec::new()),
    };
    let remedies = match case.snapshot().is_openwrt() {
        true => switched_on(case).into_iter().take(1).collect(),
        false => vec![remedy(FlowEffect::Hardware, [])],
    };
    let flowtable = by_table.is_some();
    found(severity, Fact::Flow(FlowFact::HardwareOff { driver: driver.to_owned(), flowtable }))
        .quotes([quote, seen])
        .quotes(&reached)
        .fix(remedies)
        .into()
}

//! `fastpath-bypassed`: a fast path of rxlane is up, and leaves most packets to the kernel.

use crate::Case;
use crate::facts::{Effect, Fact, FastEffect, FastFact};
use crate::fast_path::{self, Counted};
use crate::finding::{Remedy, Severity, found};
use crate::forwarding;
use crate::rule::Judgement;
use format::quoted;
use host::{Counter, FastPath};

/// What shows a fast path.
const STATUS: &str = "rxlane fastpath status --json";

/// Reasons for connections that are named.
const NAMED: usize = 3;

/// Part of the connections that were left to the kernel from which one reason is that of the packets.
const MOST: f64 = 0.9;

/// Flows that `--flows` gives at most.
const MOST_FLOWS: u64 = 4_194_304;

/// `fastpath-bypassed`.
pub(super) fn bypassed(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let Some(fast_path) = &snapshot.fast_path else {
        let is_unread = snapshot.unread.iter().any(|unread| unread.what == STATUS);
        return if is_unread { Judgement::lacks(STATUS) } else { Judgement::DoesNotApply };
    };
    let Some(counted) = Counted::of(case).filter(|counted| !counted.works()) else {
        return Judgement::Clear;
    };
    let (reason, share) = counted.largest().unwrap_or_default();
    let refused = if reason == "no-entry" { refusals(fast_path) } else { Vec::new() };
    let remedies: Vec<Remedy> = of_reason(fast_path, reason)
        .into_iter()
        .chain(refused.iter().filter_map(|one| of_refusal(case, fast_path, one.reason)))
        .collect();
    // Who brings one up wants it to forward, whether or not a CPU is the limit now.
    let severity = if remedies.is_empty() { Severity::Info } else { Severity::Warning };
    // Connections were counted, and not the packets of each.
    let is_certain = reason != "no-entry" || refused.first().is_some_and(|first| first.share >= MOST);
    let (fast, all, since) = (counted.fast(), counted.all(), counted.since());
    let none = (reason == "no-entry" && refused.is_empty()).then_some(FastFact::NoneRefused);
    found(severity, Fact::Fast(FastFact::Bypassed { fast, all, since }))
        .says([Fact::Fast(FastFact::Left { reason: reason.to_owned(), share })])
        .says(refused.iter().map(|one| Fact::Fast(one.fact())))
        .says(none.map(Fact::Fast))
        .quotes([fast_path.fast.quote()])
        .quotes(fast_path.slow.get(reason).map(Counter::quote))
        .quotes(refused.iter().map(|one| one.counter.quote()))
        .quotes([&fast_path.ports.quote])
        .fix(remedies)
        .possible_if(!is_certain)
        .into()
}

/// Connections that were left to the kernel for a reason.
struct Refused<'c> {
    reason: &'c str,
    counter: &'c Counter,
    of: u64,
    share: f64,
}

impl Refused<'_> {
    fn fact(&self) -> FastFact {
        let connections = self.counter.value();
        FastFact::Refused { reason: self.reason.to_owned(), connections, of: self.of }
    }
}

/// The most frequent first.
fn refusals(fast_path: &FastPath) -> Vec<Refused<'_>> {
    let all = fast_path.refusals.iter().filter(|(_, counter)| counter.value() > 0);
    let of = all.clone().fold(0, |sum: u64, (_, counter)| sum.saturating_add(counter.value()));
    let mut refused: Vec<Refused<'_>> = all
        .map(|(reason, counter)| {
            let share = counter.value() as f64 / of.max(1) as f64;
            Refused { reason, counter, of, share }
        })
        .collect();
    refused.sort_by_key(|one| std::cmp::Reverse(one.counter.value()));
    refused.truncate(NAMED);
    refused
}

fn remedy(effect: FastEffect, commands: impl IntoIterator<Item = String>) -> Remedy {
    Remedy::linux(Effect::Fast(effect), commands)
}

/// It ends, and comes up on these ports with other options.
fn again(ports: &[String], option: &str) -> [String; 2] {
    ["rxlane fastpath down".to_owned(), fast_path::up(ports, option)]
}

/// What helps where packets of connections that are in it go to the kernel.
fn of_reason(fast_path: &FastPath, reason: &str) -> Option<Remedy> {
    let ports = &fast_path.ports.value;
    match reason {
        "daemon-silent" => Some(remedy(FastEffect::Restart, again(ports, ""))),
        "too-long" => {
            Some(remedy(FastEffect::ShorterPackets, SHORTER.map(|words| format!("nft {}", quoted(words)))))
        }
        "checksum" => Some(remedy(FastEffect::CompleteChecksums, [])),
        _ => None,
    }
}

/// The MSS that fits the MTU of the route (nft(8), `rt mtu`).
const SHORTER: [&str; 3] = [
    "add table inet rxlane_mss",
    "add chain inet rxlane_mss forward { type filter hook forward priority mangle; }",
    "add rule inet rxlane_mss forward tcp flags syn tcp option maxseg size set rt mtu",
];

/// What helps where connections do not enter it.
fn of_refusal(case: &Case<'_>, fast_path: &FastPath, reason: &str) -> Option<Remedy> {
    let ports = &fast_path.ports.value;
    match reason {
        "full" => {
            let most = fast_path.flows_most.as_ref().map(|most| most.value.saturating_mul(2).min(MOST_FLOWS));
            let commands = most.map(|flows| again(ports, &format!(" --flows {flows}")));
            Some(remedy(FastEffect::MoreFlows { flows: most }, commands.into_iter().flatten()))
        }
        "no-port" => {
            let is_native = |name: &String| {
                let interface = case.snapshot().interface(name);
                interface.and_then(|one| case.native_xdp(one)) == Some(true)
            };
            let mut others = forwarding::ports(case);
            others.retain(|name| !ports.contains(name) && is_native(name));
            // What a port's bridge has besides is more likely than any other.
            let master = |name: &String| {
                let interface = case.snapshot().interface(name)?;
                interface.master.as_ref().map(|master| master.value.as_str())
            };
            let bridges: Vec<&str> = ports.iter().filter_map(master).collect();
            let is_sibling = |name: &String| master(name).is_some_and(|bridge| bridges.contains(&bridge));
            if others.iter().any(is_sibling) {
                others.retain(is_sibling);
            }
            let known = !others.is_empty();
            let commands = known.then(|| again(&[&ports[..], &others].concat(), ""));
            Some(remedy(FastEffect::MorePorts { known }, commands.into_iter().flatten()))
        }
        "helper" => Some(remedy(FastEffect::NoHelper, [])),
        "elsewhere" => no_flowtable(case),
        "mark" => Some(remedy(FastEffect::SavedMark, [])),
        "vlan-filtering" => Some(remedy(FastEffect::NoVlanFiltering, [])),
        _ => None,
    }
}

/// The end of the flowtable that takes the connections first; `None`: none is known, and a conntrack zone may be what keeps them
/// out.
fn no_flowtable(case: &Case<'_>) -> Option<Remedy> {
    const SETTING: &str = "firewall.defaults.flow_offloading";
    let snapshot = case.snapshot();
    let is_set = snapshot.uci.get(SETTING).is_some_and(|seen| forwarding::is_true(seen.get()));
    let is_own = snapshot.netfilter.flowtables.iter().any(|one| one.table == "inet rxlane");
    let commands: &[&str] = match (is_set, is_own) {
        (true, _) => &[
            "uci set firewall.@defaults[0].flow_offloading=0",
            "uci commit firewall",
            "service firewall restart",
        ],
        (false, true) => &["nft 'delete table inet rxlane'"],
        (false, false) if snapshot.netfilter.flowtables.is_empty() => return None,
        (false, false) => &[],
    };
    Some(remedy(FastEffect::NoFlowtable, commands.iter().map(|command| (*command).to_owned())))
}

//! The rules, in the order of the receive path; each file has those of one subject. Every rule has a page of
//! documentation, `docs/findings/ID.md`.

mod allowance;
mod fastpath;
mod flowtable;
mod frames;
mod interrupts;
pub(crate) mod lacking;
mod link;
mod little;
mod lock;
mod mbufs;
mod moderation;
pub(crate) mod netisr;
mod offloads;
mod processes;
mod queues;
mod reta;
mod ring;
pub(crate) mod sharing;
mod softirq;
mod spreading;
mod tags;
mod udp;
mod unhashed;

use crate::Case;
use crate::Rule;
use crate::facts::{Fact, Insufficient};
use crate::finding::{Evidence, Finding, Severity, found};
use crate::report::{Outcome, RuleRow};
use crate::rule::Judge::{Device, Machine};
use crate::rule::Judgement;

macro_rules! rule {
    ($id:literal, $stage:literal, $judge:expr) => {
        rule!($id, $stage, $judge, false)
    };
    ($id:literal, $stage:literal, Linux, $judge:expr) => {
        rule!($id, $stage, $judge, true)
    };
    ($id:literal, $stage:literal, $judge:expr, $linux:literal) => {
        Rule {
            id: $id,
            stage: $stage,
            page: include_str!(concat!("../../../../../docs/findings/", $id, ".md")),
            linux: $linux,
            judge: $judge,
        }
    };
}

/// Every rule, in the order of the receive path.
pub static RULES: &[Rule] = &[
    rule!("link-speed", "admit", Device(link::speed)),
    rule!("cloud-allowance", "admit", Linux, Device(allowance::exceeded)),
    rule!("frame-oversize", "admit", Device(frames::oversize)),
    rule!("tags-hidden", "parse", Linux, Device(tags::hidden)),
    rule!("pppoe-unhashed", "parse", Machine(unhashed::pppoe)),
    rule!("qinq-unhashed", "parse", Device(unhashed::qinq)),
    rule!("udp-two-tuple", "hash", Linux, Device(udp::two_tuple)),
    rule!("single-queue", "queue", Device(queues::single)),
    rule!("one-queue-hot", "queue", Device(queues::one_busy)),
    rule!("one-flow", "queue", Device(queues::one_flow)),
    rule!("reta-uneven", "queue", Device(reta::uneven)),
    rule!("reta-unused-queue", "queue", Device(reta::unused_queue)),
    rule!("queues-below-cpus", "queue", Linux, Device(queues::below_cpus)),
    rule!("ring-overflow", "queue", Device(ring::overflow)),
    rule!("ring-small", "queue", Device(ring::small)),
    rule!("mbufs-denied", "queue", Machine(mbufs::denied)),
    rule!("interface-wedged", "queue", Machine(link::wedged)),
    rule!("counter-wrap", "queue", Device(link::counter_wrap)),
    rule!("moderation-off", "moderate", Device(moderation::off)),
    rule!("moderation-long", "moderate", Device(moderation::long)),
    rule!("irq-one-cpu", "poll", Device(interrupts::one_cpu)),
    rule!("irq-collision", "poll", Device(interrupts::collision)),
    rule!("irq-floating", "poll", Device(interrupts::floating)),
    rule!("cpu-shared", "poll", Linux, Machine(sharing::shared)),
    rule!("irq-little-cpu", "poll", Linux, Machine(little::little_cpu)),
    rule!("softirq-one-cpu", "poll", Linux, Machine(softirq::one_cpu)),
    rule!("cpus-full", "poll", Machine(softirq::all_full)),
    rule!("napi-thread", "poll", Linux, Machine(processes::napi_thread)),
    rule!("queue-thread", "poll", Machine(processes::queue_thread)),
    rule!("lock-contention", "poll", Linux, Machine(lock::contention)),
    rule!("time-squeeze", "poll", Linux, Machine(softirq::time_squeeze)),
    rule!("rps-off", "steer", Linux, Device(spreading::rps_off)),
    rule!("rps-same-cpu", "steer", Linux, Device(spreading::rps_same_cpu)),
    rule!("xdp-generic-only", "steer", Linux, Device(spreading::xdp_generic)),
    rule!("backlog-drop", "steer", Linux, Machine(spreading::backlog_drop)),
    rule!("netisr-direct", "steer", Machine(netisr::direct)),
    rule!("netisr-unbound", "steer", Machine(netisr::unbound)),
    rule!("gro-off", "coalesce", Linux, Device(offloads::gro_off)),
    rule!("mtu-below-1500", "decap", Machine(frames::mtu_below_1500)),
    rule!("user-space-pppoe", "decap", Machine(processes::pppoe)),
    rule!("input-queue-shallow", "deliver", Machine(netisr::input_queue)),
    rule!("flowtable-off", "deliver", Linux, Machine(flowtable::off)),
    rule!("flowtable-devices", "deliver", Linux, Machine(flowtable::devices)),
    rule!("flowtable-bypassed", "deliver", Linux, Machine(flowtable::bypassed)),
    rule!("fastpath-bypassed", "deliver", Linux, Machine(fastpath::bypassed)),
    rule!("hw-offload-off", "deliver", Linux, Machine(flowtable::hardware_off)),
    rule!("checksum-double-tag", "segment", Linux, Machine(offloads::checksum)),
    rule!("offload-lost", "segment", Linux, Machine(offloads::lost)),
    rule!("transmit-hang", "transmit", Machine(link::transmit_hang)),
    // It looks at what the others lack, after them ([`insufficient`]).
    rule!("insufficient-data", "all", Machine(|_| Judgement::DoesNotApply)),
];

/// The rule of that id.
pub fn by_id(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id == id)
}

/// Commands that the finding on a lack of data names.
const NAMED: usize = 3;

/// The outputs that these rules lack, each once, those first that most rules lack; without those that were tried and refused, and
/// those that are in the text already and would say the same again.
fn lacking_commands(case: &Case<'_>, lacking: &[&RuleRow]) -> Vec<String> {
    let snapshot = case.snapshot();
    let refused = |command: &str| snapshot.unread.iter().any(|unread| unread.what == command);
    // Of the whole machine; of one interface the text may show another.
    let is_read = |command: &str| {
        let tool = command.strip_prefix("cat ").unwrap_or(command);
        let tool = tool.split(" -b").next().unwrap_or(tool);
        snapshot.read.contains_key(tool)
    };
    let mut counted: Vec<(String, usize)> = Vec::new();
    for command in lacking.iter().flat_map(|row| &row.lacks).flat_map(|lacks| alone(lacks)) {
        match counted.iter_mut().find(|(known, _)| known == command) {
            Some((_, count)) => *count += 1,
            None if refused(command) || is_read(command) => {}
            None => counted.push((command.to_owned(), 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let mut commands: Vec<String> = counted.into_iter().map(|(command, _)| command).collect();
    lacking::of_named_interfaces(case, &mut commands);
    commands
}

/// The commands of a list: `ethtool -S IFACE, cat /proc/interrupts` are two, `ethtool -S eth0, twice` is one.
fn alone(lacks: &str) -> Vec<&str> {
    match lacks.split_once(", cat ") {
        Some((first, _)) => vec![first, lacks.get(first.len() + 2..).unwrap_or_default()],
        None => vec![lacks],
    }
}

/// The finding that rules could not decide, where something was read at all, and the outputs that would let them.
pub(crate) fn insufficient(case: &Case<'_>, rules: &[RuleRow]) -> Option<Finding> {
    let lacking: Vec<&RuleRow> =
        rules.iter().filter(|row| row.outcome == Outcome::InsufficientData).collect();
    if lacking.is_empty() {
        return None;
    }
    let snapshot = case.snapshot();
    let mut commands = lacking_commands(case, &lacking);
    for next in [processes::follow_up(case), flowtable::follow_up(case)].into_iter().flatten() {
        commands.retain(|command| command != next);
        commands.insert(0, next.to_owned());
    }
    let unnamed = lacking::unnamed(case, &mut commands);
    let more = commands.len().saturating_sub(NAMED);
    commands.truncate(NAMED);
    let ids = lacking.iter().map(|row| row.id).collect();
    let finding = found(
        Severity::Info,
        Fact::Insufficient(Insufficient { ids, of: rules.len(), commands, more, unnamed }),
    );
    let is_lacking = |what: &str| lacking.iter().flat_map(|row| &row.lacks).any(|lacks| lacks.contains(what));
    let refused = snapshot.unread.iter().filter(|unread| is_lacking(&unread.what));
    let refused = refused
        .map(|unread| Evidence { from: unread.what.clone(), text: format!("not read: {}", unread.why) });
    let evidence: Vec<Evidence> = refused.chain(snapshot.read.values().map(Evidence::from)).collect();
    let id = "insufficient-data";
    (!evidence.is_empty()).then_some(Finding { id, stage: "all", evidence, ..finding })
}

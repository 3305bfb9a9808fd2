//! The link: `link-speed`, `interface-wedged`, `transmit-hang`, and `counter-wrap` of its counters.

use crate::Case;
use crate::device::Device;
use crate::facts::{Effect, Fact, LinkCause};
use crate::finding::{Finding, Remedy, Severity, found};
use crate::rule::Judgement;
use format::quoted;
use host::{Counter, Delta, Fact as Read, LogLine, LogTopic, Quote, System};
use nic::{Profile, schema};

/// Mbit/s from which a slower link than the card's best is likely what was bought.
const USUAL: u32 = 1000;

/// `link-speed`: the link itself is slower than the device, or half duplex.
pub(super) fn speed(device: &Device<'_>) -> Judgement {
    let (link, name) = (&device.link, device.word());
    let Some(speed) = &link.speed else {
        // `Speed: Unknown!` says that there is none: no other output has it.
        if link.no_speed.is_some() {
            return Judgement::DoesNotApply;
        }
        let ifconfig = format!("ifconfig {name}");
        return Judgement::lacks(device.case.by_system(
            format!("ethtool {name}"),
            ifconfig.clone(),
            ifconfig,
        ));
    };
    // What a link had before it went down, or what the driver shows without one, limits nothing.
    if link.up.as_ref().is_some_and(|up| !*up.get()) {
        return Judgement::DoesNotApply;
    }
    let mbps = *speed.get();
    if let Some(duplex) = link.full_duplex.as_ref().filter(|full| !*full.get()) {
        let finding =
            found(Severity::Warning, Fact::HalfDuplex { mbps }).quotes([duplex.quote(), speed.quote()]);
        return with_downs(device, finding).fix([negotiate(device)]).into();
    }
    let Some((most, quote)) = fastest(device).filter(|(most, _)| *most > mbps) else {
        return Judgement::Clear;
    };
    let Some((severity, cause)) = cause(mbps, link.partner.as_ref()) else { return Judgement::Clear };
    let finding = found(severity, Fact::SlowLink { mbps, device: most })
        .says([Fact::SlowLinkCause(cause)])
        .quotes([speed.quote()])
        .quotes(quote)
        .quotes(link.partner.as_ref().map(|partner| &partner.quote));
    with_downs(device, finding).fix((severity == Severity::Warning).then(|| negotiate(device))).into()
}

/// The fastest link of the device, Mbit/s: as the text shows it, or else as its profile says.
fn fastest<'c>(device: &Device<'c>) -> Option<(u32, Option<&'c Quote>)> {
    let by_profile = || {
        let speeds = |profile: &'c Profile| profile.ints(schema::SPEEDS)?.iter().max().copied();
        u32::try_from(device.case.agreed(device, speeds)?).ok()
    };
    let supported = device.interface.link.supported.as_ref();
    supported.map(|most| (most.value, Some(&most.quote))).or_else(|| Some((by_profile()?, None)))
}

/// Times that a link went down from which it is a sign of a bad cable or port: each restart of the interface is one, too.
const DOWNS: u64 = 5;

fn with_downs(device: &Device<'_>, finding: Finding) -> Finding {
    let mut log = device.case.snapshot().log.iter();
    let is_it = |line: &&LogLine| {
        line.topic == LogTopic::LinkDown && line.interface.as_deref() == Some(device.name.as_str())
    };
    let downs = log.find(is_it).filter(|line| line.times >= DOWNS);
    finding
        .says(downs.map(|line| Fact::LinkWentDown { times: line.times }))
        .quotes(downs.map(|line| &line.quote))
}

/// Why a link is slower than the device, and how grave that is; `None` where it is likely what was bought.
fn cause(mbps: u32, partner: Option<&Read<u32>>) -> Option<(Severity, LinkCause)> {
    let is_usual = mbps >= USUAL;
    Some(match partner {
        Some(partner) if partner.value <= mbps && is_usual => return None,
        Some(partner) if partner.value <= mbps => (Severity::Info, LinkCause::Partner),
        Some(_) => (Severity::Warning, LinkCause::CableOrSetting),
        None if is_usual => (Severity::Info, LinkCause::PartnerUnknown),
        None => (Severity::Warning, LinkCause::Any),
    })
}

fn negotiate(device: &Device<'_>) -> Remedy {
    let (case, name) = (device.case, device.word());
    let os = case.system().unwrap_or(System::Linux);
    let bsd = format!("ifconfig {name} media autoselect");
    let command = if case.is_bsd() { bsd } else { format!("ethtool -s {name} autoneg on") };
    Remedy::new(os, Effect::Negotiate, [command])
}

/// `transmit-hang`: frames that a device did not send.
pub(super) fn transmit_hang(case: &Case<'_>) -> Judgement {
    let lines = case.snapshot().log.iter().filter(|line| line.topic == LogTopic::TransmitHang);
    let hung = lines.map(|line| hung(case, line));
    let stalled = stalled(case);
    let lacks = if stalled.is_empty() { lacks_log(case) } else { Vec::new() };
    Judgement::of(hung.chain(stalled).collect(), lacks)
}

/// Drivers whose hangs ended with segmentation offload off: e1000e (github.com/gislab-npo/gislab issue 407,
/// github.com/siutsin/otaru pull request 2637; not in github.com/lxc/incus-os issue 849), r8169 before Linux 5.7, with the PCIe
/// link's power saving off as well (github.com/elrepo/packages issue 243).
const DIVIDES_BADLY: [&str; 2] = ["e1000e", "r8169"];
/// The kernel in which r8169 has TSO and scatter-gather off by default (commit 95099c569a9f).
const R8169_FIXED: (u32, u32) = (5, 7);

/// The driver has reset the device by then, so that down and up is for one that stays silent.
fn hung(case: &Case<'_>, line: &LogLine) -> Finding {
    let fact = Fact::TransmitHung { interface: line.interface.clone(), times: line.times };
    let finding = found(Severity::Warning, fact).quotes([&line.quote]);
    let os = case.system().unwrap_or(System::Linux);
    let interface = line.interface.as_deref().filter(|name| !name.is_empty());
    let known = interface.and_then(|name| case.snapshot().interface(name)?.driver.as_ref());
    let driver = known.map(|driver| driver.value.as_str());
    let is_word = |driver: &&&str| {
        let mut words = line.quote.text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.any(|word| word == **driver)
    };
    let driver = driver.or_else(|| DIVIDES_BADLY.iter().find(is_word).copied());
    let is_known = driver.is_some_and(|driver| DIVIDES_BADLY.contains(&driver))
        && !(driver == Some("r8169") && case.kernel().is_none_or(|kernel| kernel >= R8169_FIXED));
    let offload_off = interface
        .map(quoted)
        .filter(|_| is_known && os == System::Linux)
        .map(|name| Remedy::linux(Effect::NoSegmentation, [format!("ethtool -K {name} tso off gso off")]));
    let cause = Remedy::new(os, Effect::TransmitCause, [""; 0]);
    restart(case, finding.fix(offload_off).fix([cause]), line.interface.as_deref(), true)
}

/// Transmit rings of FreeBSD's iflib that nobody empties: descriptors wait, and the ring's state is STALLED
/// (`state_to_str`, sys/net/mp_ring.c, by `dev.igc.0.iflib.txq0.ring_state`). At one moment that may pass.
fn stalled(case: &Case<'_>) -> Vec<Finding> {
    let rings = case.snapshot().sysctls.iter().filter_map(|(name, value)| {
        let ring = name.strip_prefix("dev.")?.strip_suffix(".ring_state")?;
        let mut words = ring.split('.');
        let interface = format!("{}{}", words.next()?, words.next()?);
        let is_stalled = value.get().split_whitespace().any(|word| word == "STALLED");
        is_stalled.then(|| (interface, words.next_back().unwrap_or_default().to_owned(), value.quote()))
    });
    let finding = |(interface, queue, quote)| {
        let finding = found(Severity::Warning, Fact::TransmitStalled { queue }).quotes([quote]);
        restart(case, finding, Some(interface).as_deref(), false).possible_if(true)
    };
    rings.map(finding).collect()
}

/// A finding for each line of the log about these topics.
fn logged(case: &Case<'_>, topics: &[LogTopic], fact: impl Fn(&LogLine) -> Fact) -> Vec<Finding> {
    let lines = case.snapshot().log.iter().filter(|line| topics.contains(&line.topic));
    let finding = |line: &LogLine| {
        let finding = found(Severity::Warning, fact(line)).quotes([&line.quote]);
        restart(case, finding, line.interface.as_deref(), false)
    };
    lines.map(finding).collect()
}

fn lacks_log(case: &Case<'_>) -> Vec<String> {
    let snapshot = case.snapshot();
    let looked = snapshot.read.contains_key("dmesg") || !snapshot.log.is_empty();
    if looked { Vec::new() } else { vec!["dmesg".to_owned()] }
}

/// `interface-wedged`: a driver that hangs, resets, or takes no more frames.
pub(super) fn wedged(case: &Case<'_>) -> Judgement {
    let mut findings = logged(case, &[LogTopic::FailedLength, LogTopic::Reset], |line| Fact::Hung {
        interface: line.interface.clone(),
        reset: line.topic == LogTopic::Reset,
        times: line.times,
    });
    findings.extend(case.devices().filter_map(|device| stuck(&device)));
    Judgement::of(findings, lacks_log(case))
}

/// Received frames stand still while losses rise.
fn stuck(device: &Device<'_>) -> Option<Finding> {
    let received = device.totals.packets.as_ref().filter(|counter| counter.delta() == Delta::Counted(0))?;
    let (name, lost) =
        device.totals.overflow.iter().find(|(_, counter)| matches!(counter.delta(), Delta::Counted(1..)))?;
    let fact = Fact::Stuck { counter: name.clone(), lost: lost.value().saturating_sub(lost.first()) };
    let finding = found(Severity::Critical, fact).quotes([received, lost].map(Counter::quote));
    Some(restart(device.case, finding, Some(&device.name), false))
}

/// With down and up in one line, which goes on to its end when the session that it is pasted into has lost its link.
fn restart(case: &Case<'_>, mut finding: Finding, interface: Option<&str>, only_if_silent: bool) -> Finding {
    finding.interface = interface.map(str::to_owned);
    let Some(name) = interface.filter(|name| !name.is_empty()).map(quoted) else { return finding };
    let os = case.system().unwrap_or(System::Linux);
    let commands = ["down", "up"].map(|state| match case.is_bsd() {
        true => format!("ifconfig {name} {state}"),
        false => format!("ip link set dev {name} {state}"),
    });
    finding.fix([Remedy::new(os, Effect::Restart { only_if_silent }, [commands.join(" && ")])])
}

/// `counter-wrap`: a counter passed 2³² between the samples.
pub(super) fn counter_wrap(device: &Device<'_>) -> Judgement {
    let queues = device.queues.values().flat_map(|queue| [&queue.packets, &queue.bytes, &queue.drops]);
    let totals = [&device.totals.packets, &device.totals.bytes];
    let counters: Vec<&Counter> = queues
        .chain(totals)
        .flatten()
        .chain(device.totals.overflow.values())
        .chain(device.totals.too_long.values())
        .collect();
    if counters.iter().all(|counter| counter.delta() == Delta::OneSample) {
        let netstat = "netstat -i -b, twice".to_owned();
        let ethtool = format!("ethtool -S {}, twice", device.word());
        return Judgement::lacks(device.case.by_system(ethtool, netstat.clone(), netstat));
    }
    let wrapped = counters.iter().filter(|counter| matches!(counter.delta(), Delta::Wrapped(_)));
    match wrapped.clone().count() {
        0 => Judgement::Clear,
        count => found(Severity::Info, Fact::Wrapped { counters: count, of: counters.len() })
            .quotes(wrapped.map(|counter| counter.quote()))
            .into(),
    }
}

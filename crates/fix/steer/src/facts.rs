//! What an interface and its kernel mean for steering, one fact after the other.

use crate::drivers::{self, Driver};
use doctor::Case;
use doctor::pppoe_gro::PppoeGro;
use host::{Interface, Kind, Observed};
use kernel::netlink::XdpFeatures;
use nic::schema;
use serde::Serialize;
use xdp::{Family, Program};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Good,
    /// Worth knowing: a cost, a condition.
    Note,
    /// Steering is not possible so; the text says what would make it.
    Stops,
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is about: one of `place`, `kernel`, `driver`, `mtu`, `attaching`, `coalescing`, `tags`, `checksums`, `rps`,
    /// `gro`, `program`.
    pub about: &'static str,
    pub level: Level,
    /// A sentence without its full stop, where whoever prints the check has made it.
    pub text: String,
    /// Where that is written: a line of the machine, or a file of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(skip)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The interface is a VLAN device or a PPP interface on another.
    Above {
        ppp: bool,
        below: Option<String>,
    },
    Master {
        kind: String,
        ports: Vec<String>,
    },
    Loopback,
    /// The release of the kernel is older than 5.9.
    KernelTooOld(String),
    /// The release of the kernel is older than 5.19.
    KernelOlder(String),
    Native {
        driver: Option<String>,
        native: Option<bool>,
        generic: bool,
    },
    Mtu(u32, MtuFits),
    /// In generic mode attaching changes nothing of the driver.
    AttachedByKernel,
    /// What a driver does when a program is attached, and again when it is detached.
    Attaching(&'static str, &'static str),
    /// What this driver does then is unknown.
    AttachingUnknown(Option<String>),
    /// Features that merge segments: name, and what `ethtool -K` calls it.
    Coalescing(Vec<(&'static str, &'static str)>),
    /// What local programs at the other end of a veth pair send has no checksum yet.
    VethChecksums,
    /// A veth pair hands tags on as the sending end left them.
    VethTags,
    /// In generic mode the device takes the outer tag off, and frames keep it.
    TagsOfGeneric,
    TagsKept,
    TagsStripped {
        /// By what, as `ethtool -K` calls it.
        set: &'static str,
        fixed: bool,
        tagged: Tagged,
        disable: bool,
    },
    /// RPS distributes the frames of a queue, and of so many more, to CPUs.
    Rps {
        queue: u32,
        more: usize,
        cpus: Vec<u32>,
    },
    /// Whether the CPUs that frames are steered to coalesce, and whether the kernel coalesces what is in PPPoE.
    Gro(bool, Option<PppoeGro>),
    /// Whether the kernel coalesces what is in PPPoE, which the interface carries.
    PppoeGro(Option<PppoeGro>),
    Steered(String),
    Program(Box<Program>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuFits {
    UpTo(&'static str, u32),
    OnePage,
    Frags,
    /// It does not: so much is possible.
    NoFrags(u32),
    Unknown,
}

impl What {
    const fn about(&self) -> &'static str {
        match self {
            What::Above { .. } | What::Master { .. } | What::Loopback => "place",
            What::KernelTooOld(_) | What::KernelOlder(_) => "kernel",
            What::Native { .. } => "driver",
            What::Mtu(..) => "mtu",
            What::AttachedByKernel | What::Attaching(..) | What::AttachingUnknown(_) => "attaching",
            What::Coalescing(_) => "coalescing",
            What::VethChecksums => "checksums",
            What::VethTags | What::TagsOfGeneric | What::TagsKept | What::TagsStripped { .. } => "tags",
            What::Rps { .. } => "rps",
            What::Gro(..) | What::PppoeGro(_) => "gro",
            What::Steered(_) | What::Program(_) => "program",
        }
    }

    fn fact(self, level: Level) -> Fact {
        Fact { about: self.about(), level, text: String::new(), from: None, what: self }
    }
}

impl Fact {
    fn from(self, from: impl Into<String>) -> Fact {
        Fact { from: Some(from.into()), ..self }
    }
}

/// What the facts are drawn from, besides the machine's state.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    pub generic: bool,
    pub disable_rxvlan: bool,
    pub features: Option<XdpFeatures>,
    pub program: Option<&'a Program>,
    pub tagged: Tagged,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    Devices,
    Seen,
    Unseen,
}

/// All facts of a device, those that stop steering first.
pub fn facts(case: &Case<'_>, interface: &Interface, input: &Input<'_>) -> Vec<Fact> {
    let driver = interface.driver.as_ref().and_then(|driver| drivers::driver(&driver.value));
    let place = place(case, interface);
    // No MTU or other setting makes it one that can be steered.
    if let Some(place) = place.as_ref().filter(|place| place.what == What::Loopback) {
        return vec![place.clone()];
    }
    let all = [
        place,
        kernel(case),
        native(case, interface, input),
        mtu(interface, input, driver),
        attaching(interface, input, driver),
        coalescing(interface, input),
        tags(interface, input),
        checksums(interface, input),
        rps(interface),
        gro(case),
        pppoe_gro(case, interface),
        program(input),
    ];
    let mut all: Vec<Fact> = all.into_iter().flatten().collect();
    all.sort_by_key(|fact| fact.level != Level::Stops);
    all
}

/// Where frames arrive: XDP sees them on the physical device, with all their headers.
fn place(case: &Case<'_>, interface: &Interface) -> Option<Fact> {
    let name = &interface.name;
    let below = Some(case.physical(name)).filter(|below| *below != name).map(str::to_owned);
    let what = match interface.kind.as_ref().map(|kind| &kind.value)? {
        Kind::Vlan { .. } => What::Above { ppp: false, below },
        Kind::Ppp => What::Above { ppp: true, below },
        Kind::Bridge { .. } => master(case, name, "bridge"),
        Kind::Other(kind) if kind == "bond" || kind == "team" => master(case, name, kind),
        Kind::Other(kind) if kind == "loopback" => What::Loopback,
        _ if name == "lo" => What::Loopback,
        _ => return None,
    };
    Some(what.fact(Level::Stops))
}

fn master(case: &Case<'_>, name: &str, kind: &str) -> What {
    let ports = case.snapshot().interfaces.iter();
    let ports = ports.filter(|port| port.master.as_ref().is_some_and(|master| master.value == name));
    What::Master { kind: kind.to_owned(), ports: ports.map(|port| port.name.clone()).collect() }
}

/// Entries of a cpumap take a program since 5.9 (commit 9216477449f3); programs take frames of several buffers since
/// 5.18 and read what other CPUs counted since 5.19 ([`xdp::Kernel`]).
fn kernel(case: &Case<'_>) -> Option<Fact> {
    let found = case.snapshot().kernel.as_ref()?.value.clone();
    match case.release()? {
        release if release < (5, 9) => Some(What::KernelTooOld(found).fact(Level::Stops)),
        release if release < (5, 19) => Some(What::KernelOlder(found).fact(Level::Note)),
        _ => None,
    }
}

fn native(case: &Case<'_>, interface: &Interface, input: &Input<'_>) -> Option<Fact> {
    let (native, from) = match input.features {
        Some(features) => {
            (Some(features.is_native() && features.redirects()), "the kernel (netdev netlink)".into())
        }
        None => by_profile(case, interface),
    };
    let level = match (native, input.generic) {
        (Some(true), false) => Level::Good,
        (Some(false), false) => Level::Stops,
        (Some(_), true) => Level::Note,
        (None, _) => Level::Unknown,
    };
    let driver = interface.driver.as_ref().map(|driver| driver.value.clone());
    let fact = What::Native { driver, native, generic: input.generic }.fact(level);
    Some(if from.is_empty() { fact } else { fact.from(from) })
}

/// What the profiles that fit say, with the source of the first.
fn by_profile(case: &Case<'_>, interface: &Interface) -> (Option<bool>, String) {
    let native = case.native_xdp(interface);
    let from = native.and_then(|_| {
        let profiles = case.profiles(interface);
        let claim = profiles.first()?.claim(schema::XDP_NATIVE)?;
        let citation = claim.citations.first()?;
        Some(format!("profile {}: {}", profiles.first()?.name(), citation.place))
    });
    (native, from.unwrap_or_default())
}

/// Drivers give a frame that fills more than one buffer only to programs that know such frames.
fn mtu(interface: &Interface, input: &Input<'_>, driver: Option<&Driver>) -> Option<Fact> {
    /// One page less the headroom of XDP (256 bytes), the end of a socket buffer (320), and Ethernet with two tags.
    const ONE_PAGE: u32 = 4096 - 256 - 320 - 22;
    let mtu = *interface.mtu.as_ref()?.get();
    if input.generic {
        return None;
    }
    if let Some(driver) = driver
        && let Some(most) = driver.mtu_most
    {
        let level = if mtu > most { Level::Stops } else { Level::Good };
        return Some(What::Mtu(mtu, MtuFits::UpTo(driver.name, most)).fact(level).from(driver.source));
    }
    let (level, fits) = match input.features {
        _ if mtu <= ONE_PAGE => (Level::Good, MtuFits::OnePage),
        Some(features) if features.has_frags() => (Level::Good, MtuFits::Frags),
        Some(_) => (Level::Stops, MtuFits::NoFrags(ONE_PAGE)),
        None => (Level::Unknown, MtuFits::Unknown),
    };
    Some(What::Mtu(mtu, fits).fact(level))
}

fn attaching(interface: &Interface, input: &Input<'_>, driver: Option<&Driver>) -> Option<Fact> {
    if input.generic {
        return Some(What::AttachedByKernel.fact(Level::Good));
    }
    Some(match driver {
        Some(driver) => {
            let level = if driver.loses { Level::Note } else { Level::Good };
            What::Attaching(driver.name, driver.attaching).fact(level).from(driver.source)
        }
        None => {
            let driver = interface.driver.as_ref().map(|driver| driver.value.clone());
            What::AttachingUnknown(driver).fact(Level::Unknown)
        }
    })
}

fn is_on(interface: &Interface, feature: &str) -> Option<(bool, bool, String)> {
    let seen = interface.features.get(feature)?;
    let feature = seen.get();
    Some((feature.on, feature.fixed, seen.quote().text.to_string()))
}

/// Segments that the device has merged are no frames: drivers refuse a program with that on, or turn it off.
fn coalescing(interface: &Interface, input: &Input<'_>) -> Option<Fact> {
    if input.generic {
        return None;
    }
    let kinds = [("large-receive-offload", "LRO", "lro"), ("rx-gro-hw", "hardware GRO", "rx-gro-hw")];
    let on = |(feature, name, set): (&str, &'static str, &'static str)| {
        let (on, _, line) = is_on(interface, feature)?;
        on.then_some(((name, set), line))
    };
    let (on, lines): (Vec<_>, Vec<String>) = kinds.into_iter().filter_map(on).unzip();
    let line = lines.into_iter().next()?;
    Some(What::Coalescing(on).fact(Level::Note).from(line))
}

/// The features that take a tag off before a program sees the frame: ethtool's name, and what `ethtool -K` calls it.
pub const STRIPPING: [(&str, &str); 2] =
    [("rx-vlan-offload", "rxvlan"), ("rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse")];

/// What strips tags on this device now: the names for `ethtool -K`, and whether each is fixed.
pub fn stripping(interface: &Interface) -> Vec<(&'static str, bool)> {
    let on = |(feature, set): (&str, &'static str)| {
        let (on, fixed, _) = is_on(interface, feature)?;
        on.then_some((set, fixed))
    };
    STRIPPING.into_iter().filter_map(on).collect()
}

/// A veth pair hands on what the sending end made of the tag, whatever the feature of the receiving end says
/// (`veth_xmit()` in drivers/net/veth.c).
fn is_veth(interface: &Interface) -> bool {
    matches!(interface.kind.as_ref().map(|kind| &kind.value), Some(Kind::Veth))
        || interface.driver.as_ref().is_some_and(|driver| driver.value == "veth")
}

/// A sender at the other end of a veth pair leaves checksums to whoever takes the frame off the machine. That is recorded
/// in the socket buffer, and the frame that a program redirects has no place for the note: where it arrives, its checksum is
/// wrong (`veth_xdp_rcv_skb()` in drivers/net/veth.c, `__xdp_build_skb_from_frame()` in net/core/xdp.c).
fn checksums(interface: &Interface, input: &Input<'_>) -> Option<Fact> {
    // In generic mode the socket buffer itself is queued.
    if input.generic || !is_veth(interface) {
        return None;
    }
    Some(What::VethChecksums.fact(Level::Note))
}

/// A stripped tag is handed to the driver next to the frame, where a program does not see it and a cpumap loses it.
fn tags(interface: &Interface, input: &Input<'_>) -> Option<Fact> {
    if interface.features.is_empty() {
        return None;
    }
    if is_veth(interface) {
        let level = if input.tagged == Tagged::Devices { Level::Note } else { Level::Good };
        return Some(What::VethTags.fact(level));
    }
    let stripping = stripping(interface);
    if input.generic && !stripping.is_empty() && !input.disable_rxvlan {
        // The socket buffer itself is queued, and keeps the tag next to it (cpu_map_generic_redirect).
        return Some(What::TagsOfGeneric.fact(Level::Note));
    }
    let Some(&(set, fixed)) = stripping.first() else {
        return Some(What::TagsKept.fact(Level::Good));
    };
    let (tagged, disable) = (input.tagged, input.disable_rxvlan);
    let loses = tagged != Tagged::Unseen && (fixed || !disable);
    let what = What::TagsStripped { set, fixed, tagged, disable };
    let fact = what.fact(if loses { Level::Stops } else { Level::Note });
    Some(match is_on(interface, "rx-vlan-offload").filter(|(on, ..)| *on) {
        Some((.., line)) => fact.from(line),
        None => fact,
    })
}

/// The queues whose frames RPS distributes, and to how many CPUs.
pub fn rps_queues(interface: &Interface) -> Vec<(u32, Vec<u32>)> {
    let masks = interface.queues.iter().filter_map(|(&number, queue)| Some((number, queue.rps.as_ref()?)));
    masks
        .map(|(number, mask): (u32, &Observed<Vec<u32>>)| (number, mask.get().clone()))
        .filter(|(_, m)| !m.is_empty())
        .collect()
}

fn rps(interface: &Interface) -> Option<Fact> {
    let queues = rps_queues(interface);
    let (first, cpus) = queues.first()?;
    Some(What::Rps { queue: *first, more: queues.len() - 1, cpus: cpus.clone() }.fact(Level::Note))
}

/// `0-3,5`.
pub fn list(cpus: &[u32]) -> String {
    kernel::cpu::CpuSet::new(cpus.iter().copied()).map(|set| set.list()).unwrap_or_default()
}

/// The threads of a cpumap coalesce since 6.15 (`cpu_map_gro_receive()` in kernel/bpf/cpumap.c).
fn gro(case: &Case<'_>) -> Option<Fact> {
    let coalesces = case.release()? >= (6, 15);
    let pppoe = case.pppoe_gro().map(|(kernel, _)| kernel);
    Some(What::Gro(coalesces, pppoe).fact(if coalesces { Level::Good } else { Level::Note }))
}

/// Of an interface with PPPoE sessions of the kernel.
fn pppoe_gro(case: &Case<'_>, interface: &Interface) -> Option<Fact> {
    if !case.ends_pppoe(interface) {
        return None;
    }
    let Some((kernel, quote)) = case.pppoe_gro() else {
        return Some(What::PppoeGro(None).fact(Level::Unknown));
    };
    let level = match kernel {
        kernel if kernel.may_be_backported() => Level::Unknown,
        PppoeGro { coalesces: true, .. } => Level::Good,
        _ => Level::Note,
    };
    Some(What::PppoeGro(Some(kernel)).fact(level).from(quote.text.to_string()))
}

fn program(input: &Input<'_>) -> Option<Fact> {
    let program = input.program?;
    Some(match program.attached_name(Family::Steer) {
        Some(name) => What::Steered(name.to_owned()).fact(Level::Note),
        None => What::Program(Box::new(program.clone())).fact(Level::Stops),
    })
}

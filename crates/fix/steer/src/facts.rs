//! What an interface and its kernel mean for steering, one fact after the other.

use crate::drivers::{self, Driver};
use doctor::Case;
use host::{Interface, Kind, Observed};
use kernel::netlink::XdpFeatures;
use nic::schema;
use serde::Serialize;
use xdp::{AttachedBy, Program};

/// What a fact means for steering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Good,
    /// Worth knowing: a cost, a condition.
    Note,
    /// Steering is not possible so; the text says what would make it.
    Stops,
    /// Nothing says.
    Unknown,
}

/// What steering does without on kernels before 5.19, for which there are programs of their own.
pub const OLDER: &str = "the programs for kernels before 5.19 steer: a bucket keeps the CPU it has (no --rebalance), and \
                         frames in several buffers, which large MTUs need, are not for XDP";

/// A fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// What it is about: one of `place`, `kernel`, `driver`, `mtu`, `attaching`, `coalescing`, `tags`, `rps`, `gro`,
    /// `program`.
    pub about: &'static str,
    /// What it means.
    pub level: Level,
    /// A sentence without its full stop.
    pub text: String,
    /// Where that is written: a line of the machine, or a file of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Fact {
    fn new(about: &'static str, level: Level, text: impl Into<String>) -> Fact {
        Fact { about, level, text: text.into(), from: None }
    }

    fn from(self, from: impl Into<String>) -> Fact {
        Fact { from: Some(from.into()), ..self }
    }
}

/// What the facts are drawn from, besides the machine's state.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Generic mode was asked for.
    pub generic: bool,
    /// Tag stripping may be turned off.
    pub disable_rxvlan: bool,
    /// What the kernel says of the driver.
    pub features: Option<XdpFeatures>,
    /// The XDP program on the interface.
    pub program: Option<&'a Program>,
    /// Whether something says that tagged frames come in.
    pub tagged: Tagged,
}

/// Whether tagged frames come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tagged {
    /// VLAN devices stand on the interface.
    Devices,
    /// Tagged frames were seen.
    Seen,
    /// Nothing says so.
    Unseen,
}

/// All facts of a device, those that stop steering first.
pub fn facts(case: &Case<'_>, interface: &Interface, asked: &Asked<'_>) -> Vec<Fact> {
    let driver = interface.driver.as_ref().and_then(|driver| drivers::driver(&driver.value));
    let all = [
        place(case, interface),
        kernel(case),
        native(case, interface, asked),
        mtu(interface, asked, driver),
        attaching(interface, asked, driver),
        coalescing(interface, asked),
        tags(interface, asked),
        checksums(interface, asked),
        rps(interface),
        gro(case),
        program(interface, asked),
    ];
    let mut all: Vec<Fact> = all.into_iter().flatten().collect();
    all.sort_by_key(|fact| fact.level != Level::Stops);
    all
}

/// The release's first two numbers: `6.12.9-amd64` is 6 and 12.
pub fn release(case: &Case<'_>) -> Option<(u32, u32)> {
    let text = &case.snapshot().kernel.as_ref()?.value;
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Where frames come in: XDP sees them on the physical device, with all their headers.
fn place(case: &Case<'_>, interface: &Interface) -> Option<Fact> {
    let name = &interface.name;
    let below = case.physical(name);
    let attach_to = |to: &str| format!("steer {to} instead, where the frames come in with all their headers");
    let text = match interface.kind.as_ref().map(|kind| &kind.value)? {
        Kind::Vlan { .. } if below != name => {
            format!("{name} is a VLAN device on {below}: {}", attach_to(below))
        }
        Kind::Vlan { .. } => format!("{name} is a VLAN device: {}", attach_to("the device below it")),
        Kind::Ppp if below != name => format!("{name} is a PPP interface on {below}: {}", attach_to(below)),
        Kind::Ppp => format!("{name} is a PPP interface: {}", attach_to("the Ethernet device below it")),
        Kind::Bridge { .. } => under(case, name, "a bridge"),
        Kind::Other(kind) if kind == "bond" || kind == "team" => under(case, name, &format!("a {kind}")),
        Kind::Other(kind) if kind == "loopback" => format!("{name} is the loopback: nothing comes in by it"),
        _ if name == "lo" => format!("{name} is the loopback: nothing comes in by it"),
        _ => return None,
    };
    Some(Fact::new("place", Level::Stops, text))
}

fn under(case: &Case<'_>, name: &str, what: &str) -> String {
    let ports = case.snapshot().interfaces.iter();
    let ports = ports.filter(|port| port.master.as_ref().is_some_and(|master| master.value == name));
    let ports: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
    match ports[..] {
        [] => format!("{name} is {what}: steer its ports instead, where the frames come in"),
        [port] => format!("{name} is {what}: steer its port {port} instead, where the frames come in"),
        _ => format!("{name} is {what}: steer each of its ports instead ({})", ports.join(", ")),
    }
}

/// Entries of a cpumap take a program since 5.9 (commit 9216477449f3); programs take frames of several buffers since
/// 5.18 and read what other CPUs counted since 5.19 ([`xdp::Kernel`]).
fn kernel(case: &Case<'_>) -> Option<Fact> {
    let quote = case.snapshot().kernel.as_ref()?;
    match release(case)? {
        release if release < (5, 9) => {
            let text = format!("Linux {} is too old: steering takes 5.9, best is 6.1 or newer", quote.value);
            Some(Fact::new("kernel", Level::Stops, text))
        }
        release if release < (5, 19) => {
            let text = format!("Linux {}: {OLDER}", quote.value);
            Some(Fact::new("kernel", Level::Note, text))
        }
        _ => None,
    }
}

/// Whether the driver runs XDP programs itself.
fn native(case: &Case<'_>, interface: &Interface, asked: &Asked<'_>) -> Option<Fact> {
    let driver = interface.driver.as_ref().map_or("the driver", |driver| driver.value.as_str());
    let (native, from) = match asked.features {
        Some(features) => {
            (Some(features.is_native() && features.redirects()), "the kernel (netdev netlink)".into())
        }
        None => told_by_profile(case, interface),
    };
    let fact = match (native, asked.generic) {
        (Some(true), false) => {
            Fact::new("driver", Level::Good, format!("{driver} runs XDP programs itself (native)"))
        }
        (Some(true), true) => Fact::new(
            "driver",
            Level::Note,
            format!(
                "{driver} runs XDP programs itself, yet generic mode is asked for, which comes after the socket buffer"
            ),
        ),
        (Some(false), false) => Fact::new(
            "driver",
            Level::Stops,
            format!("{driver} has no native XDP; `--mode generic` works with any driver, but gains little"),
        ),
        (Some(false), true) => Fact::new(
            "driver",
            Level::Note,
            format!(
                "{driver} has no native XDP; in generic mode the interrupt CPU builds the socket buffer first"
            ),
        ),
        (None, _) => Fact::new(
            "driver",
            Level::Unknown,
            format!("whether {driver} runs XDP programs itself shows when the program is attached"),
        ),
    };
    Some(if from.is_empty() { fact } else { fact.from(from) })
}

/// What the profiles that fit say, with the source of the first.
fn told_by_profile(case: &Case<'_>, interface: &Interface) -> (Option<bool>, String) {
    let told = case.agreed(interface, |profile| profile.tri(schema::XDP_NATIVE));
    let from = told.and_then(|_| {
        let profiles = case.profiles(interface);
        let claim = profiles.first()?.claim(schema::XDP_NATIVE)?;
        let citation = claim.citations.first()?;
        Some(format!("profile {}: {}", profiles.first()?.name(), citation.place))
    });
    (told, from.unwrap_or_default())
}

/// Drivers give a frame that fills more than one buffer only to programs that know such frames.
fn mtu(interface: &Interface, asked: &Asked<'_>, driver: Option<&Driver>) -> Option<Fact> {
    /// One page less the headroom of XDP (256 octets), the end of a socket buffer (320), and Ethernet with two tags.
    const ONE_PAGE: u32 = 4096 - 256 - 320 - 22;
    let mtu = *interface.mtu.as_ref()?.get();
    if asked.generic {
        return None;
    }
    if let Some(driver) = driver
        && let Some(most) = driver.mtu_most
    {
        let (level, text) = if mtu > most {
            let lower = format!("`ip link set {} mtu {most}` lowers it", interface.name);
            let text =
                format!("{} takes a program up to MTU {most}, and this is {mtu} ({lower})", driver.name);
            (Level::Stops, text)
        } else {
            (Level::Good, format!("{mtu} ({} takes a program up to {most})", driver.name))
        };
        return Some(Fact::new("mtu", level, text).from(driver.source));
    }
    Some(match asked.features {
        _ if mtu <= ONE_PAGE => Fact::new("mtu", Level::Good, format!("{mtu}: a frame fits one page")),
        Some(features) if features.has_frags() => Fact::new(
            "mtu",
            Level::Good,
            format!("{mtu}: frames of several buffers are taken, as the driver can"),
        ),
        Some(_) => Fact::new(
            "mtu",
            Level::Stops,
            format!(
                "{mtu} is more than one page holds, and the driver has no frames of several buffers (`ip link set {} \
                 mtu {ONE_PAGE}` lowers it)",
                interface.name
            ),
        ),
        None => Fact::new(
            "mtu",
            Level::Unknown,
            format!(
                "{mtu} is more than one page holds; whether the driver takes a program then shows when it is attached"
            ),
        ),
    })
}

/// What attaching costs.
fn attaching(interface: &Interface, asked: &Asked<'_>, driver: Option<&Driver>) -> Option<Fact> {
    if asked.generic {
        let text = "the kernel runs the program on finished socket buffers; the driver is left alone, nothing is lost";
        return Some(Fact::new("attaching", Level::Good, text));
    }
    Some(match driver {
        Some(driver) => {
            let level = if driver.loses { Level::Note } else { Level::Good };
            Fact::new(
                "attaching",
                level,
                format!("{} {}; detaching does so again", driver.name, driver.attaching),
            )
            .from(driver.source)
        }
        None => {
            let driver = interface.driver.as_ref().map_or("this driver", |driver| driver.value.as_str());
            Fact::new(
                "attaching",
                Level::Unknown,
                format!("whether {driver} resets the adapter, and loses frames by it, is not known"),
            )
        }
    })
}

fn is_on(interface: &Interface, feature: &str) -> Option<(bool, bool, String)> {
    let seen = interface.features.get(feature)?;
    let feature = seen.get();
    Some((feature.on, feature.fixed, seen.quote().text.to_string()))
}

/// Segments that the device has merged are no frames: drivers refuse a program with that on, or turn it off.
fn coalescing(interface: &Interface, asked: &Asked<'_>) -> Option<Fact> {
    if asked.generic {
        return None;
    }
    let kinds = [("large-receive-offload", "LRO", "lro"), ("rx-gro-hw", "hardware GRO", "rx-gro-hw")];
    let on: Vec<(&str, &str, String)> = kinds
        .into_iter()
        .filter_map(|(feature, name, set)| {
            let (on, _, line) = is_on(interface, feature)?;
            on.then_some((name, set, line))
        })
        .collect();
    let (_, _, line) = on.first()?;
    let names: Vec<&str> = on.iter().map(|(name, ..)| *name).collect();
    let commands = on.iter().map(|(_, set, _)| format!("`ethtool -K {} {set} off`", interface.name));
    let text = format!(
        "{} on: some drivers refuse a program then ({} if so)",
        if names.len() == 2 {
            "LRO and hardware GRO are".to_owned()
        } else {
            format!("{} is", names.join(""))
        },
        commands.collect::<Vec<_>>().join(", ")
    );
    Some(Fact::new("coalescing", Level::Note, text).from(line.clone()))
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

/// A sender at the other end of a veth pair leaves checksums to whoever takes the frame off the machine. That is noted
/// in the socket buffer, and the frame that a program redirects has no place for the note: where it arrives, its checksum is
/// wrong (`veth_xdp_rcv_skb()` in drivers/net/veth.c, `__xdp_build_skb_from_frame()` in net/core/xdp.c).
fn checksums(interface: &Interface, asked: &Asked<'_>) -> Option<Fact> {
    // In generic mode the socket buffer itself is queued.
    if asked.generic || !is_veth(interface) {
        return None;
    }
    let text = "what local programs at the other end of the veth pair send has no checksum yet, and steered it is dropped for \
                that (TcpInCsumErrors): `ethtool -K PEER tx off` at the other end, or `--mode generic`";
    Some(Fact::new("checksums", Level::Note, text))
}

/// A stripped tag is told to the driver beside the frame, where a program does not see it and a cpumap loses it.
fn tags(interface: &Interface, asked: &Asked<'_>) -> Option<Fact> {
    if interface.features.is_empty() {
        return None;
    }
    if is_veth(interface) {
        let text = "a veth pair hands on tags as the sending end left them: turn off `txvlan` there where VLAN devices \
                    send";
        let level = if asked.tagged == Tagged::Devices { Level::Note } else { Level::Good };
        return Some(Fact::new("tags", level, text));
    }
    let stripping = stripping(interface);
    if asked.generic && !stripping.is_empty() && !asked.disable_rxvlan {
        // The socket buffer itself is queued, and keeps the tag beside it (cpu_map_generic_redirect).
        let text = "the device takes the outer VLAN tag off, so the class of a frame is that without it";
        return Some(Fact::new("tags", Level::Note, text));
    }
    let Some((set, fixed)) = stripping.first() else {
        return Some(Fact::new("tags", Level::Good, "the device leaves VLAN tags in the frame"));
    };
    let from = is_on(interface, "rx-vlan-offload").filter(|(on, ..)| *on).map(|(.., line)| line);
    let seen = match asked.tagged {
        Tagged::Devices => "VLAN devices stand on it",
        Tagged::Seen => "tagged frames come in",
        Tagged::Unseen => "no tagged frame was seen",
    };
    let harm = "a steered frame would lose its VLAN tag";
    let (level, text) = match (fixed, asked.tagged, asked.disable_rxvlan) {
        (true, Tagged::Unseen, _) => (
            Level::Note,
            format!("the device takes VLAN tags off and cannot be told not to; {seen}, else {harm}"),
        ),
        (true, ..) => (
            Level::Stops,
            format!("the device takes VLAN tags off and cannot be told not to; {seen}, so {harm}"),
        ),
        (false, _, true) => (
            Level::Note,
            format!(
                "the device takes VLAN tags off; `ethtool -K {} {set} off` until `steer down`",
                interface.name
            ),
        ),
        (false, Tagged::Unseen, false) => (
            Level::Note,
            format!(
                "the device takes VLAN tags off; {seen}, else {harm}: `--disable-rxvlan` keeps tags in the frame"
            ),
        ),
        (false, ..) => (
            Level::Stops,
            format!(
                "the device takes VLAN tags off before XDP sees the frame; {seen}, so {harm}: add `--disable-rxvlan`"
            ),
        ),
    };
    let fact = Fact::new("tags", level, text);
    Some(match from {
        Some(line) => fact.from(line),
        None => fact,
    })
}

/// The queues whose frames RPS deals on, and to how many CPUs.
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
    let text = format!(
        "RPS is at work on queue {first}{} (CPUs {}); it would move steered frames a second time: turn it off with \
         `echo 0 > /sys/class/net/{}/queues/rx-{first}/rps_cpus`",
        if queues.len() > 1 { format!(" and {} more", queues.len() - 1) } else { String::new() },
        list(cpus),
        interface.name
    );
    Some(Fact::new("rps", Level::Note, text))
}

/// `0-3,5`.
pub fn list(cpus: &[u32]) -> String {
    kernel::cpu::CpuSet::new(cpus.iter().copied()).map(|set| set.list()).unwrap_or_default()
}

/// The threads of a cpumap coalesce since 6.15 (`cpu_map_gro_receive()` in kernel/bpf/cpumap.c).
fn gro(case: &Case<'_>) -> Option<Fact> {
    let release = release(case)?;
    Some(if release >= (6, 15) {
        Fact::new(
            "gro",
            Level::Good,
            "this kernel coalesces segments (GRO) on the CPU that frames are steered to",
        )
    } else {
        let text = "this kernel does not coalesce steered frames (GRO; Linux 6.15 does): plain and single-tagged TCP \
                    loses by that, PPPoE has no GRO to lose";
        Fact::new("gro", Level::Note, text)
    })
}

/// What is on the interface already.
fn program(interface: &Interface, asked: &Asked<'_>) -> Option<Fact> {
    let program = asked.program?;
    if let Some(name) = &program.ours {
        return Some(Fact::new(
            "program",
            Level::Note,
            format!("steered already (`rxlane steer status {name}`)"),
        ));
    }
    let off = match program.attached_by {
        _ if program.envelope.is_some() => {
            let name = program.envelope.as_deref().unwrap_or_default();
            format!("; `rxlane envelope down {name}` ends it")
        }
        Some(AttachedBy::Netlink) => format!("; {} takes it off", program.off(&interface.name)),
        Some(AttachedBy::Link(_)) => "; end the program that holds it".to_owned(),
        None => String::new(),
    };
    Some(Fact::new("program", Level::Stops, format!("another XDP program is attached: {program}{off}")))
}

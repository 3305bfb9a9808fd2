//! The sentences of a check, made of its facts.

use crate::render::prose::coalescing::pppoe_gro;
use doctor::pppoe_gro::PppoeGro;
use format::plural;
use format::quoted;
use std::fmt;
use steer::check::Check;
use steer::error::Error;
use steer::facts::{Fact, MtuFits, Tagged, What, list};
use steer::recommend::{Answer, BusiestCpu, Prediction, Reason};
use steer::ways::{Spread, Way};
use xdp::{AttachedBy, Program};

/// Gives facts and recommendation of a check their sentences.
pub fn complete(check: &mut Check) {
    let interface = check.interface.clone();
    check.facts.iter_mut().for_each(|fact| fact.text = fact_text(fact, &interface));
    check.recommendation.reasons = check.recommendation.why.iter().map(reason).collect();
}

/// An error, with the sentences of the facts that it is about.
#[derive(Debug)]
pub struct Worded(pub Error);

impl fmt::Display for Worded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Error::Misplaced(interface, fact) => f.write_str(&fact_text(fact, interface)),
            Error::Stopped(interface, facts) => {
                let texts: Vec<String> = facts.iter().map(|fact| fact_text(fact, interface)).collect();
                f.write_str(&texts.join("; "))
            }
            other => other.fmt(f),
        }
    }
}

impl std::error::Error for Worded {}

/// The sentence of a fact, without its full stop.
fn fact_text(fact: &Fact, name: &str) -> String {
    let driver_name =
        |driver: &Option<String>, else_: &str| driver.clone().unwrap_or_else(|| else_.to_owned());
    match &fact.what {
        What::Above { .. } | What::Master { .. } | What::Loopback => place(&fact.what, name),
        What::KernelTooOld(release) => {
            format!("Linux {release} is too old: steering needs 5.9, best is 6.1 or newer")
        }
        What::KernelOlder(release) => format!(
            "Linux {release}: the programs for kernels before 5.19 steer: a bucket keeps the CPU it has (no --rebalance), and frames \
             in several buffers, which large MTUs need, are not for XDP"
        ),
        What::Native { driver, native, generic } => {
            let driver = driver_name(driver, "the driver");
            match (native, generic) {
                (Some(true), false) => format!("{driver} runs XDP programs itself (native)"),
                (Some(true), true) => format!(
                    "{driver} runs XDP programs itself, yet generic mode is asked for, which comes after the socket buffer"
                ),
                (Some(false), false) => format!(
                    "{driver} has no native XDP; `--mode generic` works with any driver, but gains little"
                ),
                (Some(false), true) => format!(
                    "{driver} has no native XDP; in generic mode the interrupt CPU builds the socket buffer first"
                ),
                (None, _) => {
                    format!("whether {driver} runs XDP programs itself shows when the program is attached")
                }
            }
        }
        What::Mtu(mtu, fits) => mtu_text(*mtu, *fits, name),
        What::AttachedByKernel => {
            "the kernel runs the program on finished socket buffers; the driver is left alone, nothing is lost".to_owned()
        }
        What::Attaching(driver, effect) => format!("{driver} {effect}; taking the program off does the same"),
        What::AttachingUnknown(driver) => {
            let driver = driver_name(driver, "this driver");
            format!("whether {driver} resets the NIC, and loses frames by it, is unknown")
        }
        What::Coalescing(on) => {
            let names: Vec<&str> = on.iter().map(|(name, _)| *name).collect();
            let are = if names.len() > 1 { "are" } else { "is" };
            let commands: Vec<String> = on.iter().map(|(_, set)| format!("`ethtool -K {quoted_name} {set} off`", quoted_name = quoted(name))).collect();
            format!(
                "{} {are} on: some drivers refuse a program then ({} if so)",
                names.join(" and "),
                commands.join(", ")
            )
        }
        What::VethChecksums => {
            "what local programs at the other end of the veth pair send has no checksum yet, and steered it is dropped for that \
             (TcpInCsumErrors): `ethtool -K PEER tx off` at the other end, or `--mode generic`"
                .to_owned()
        }
        What::VethTags => {
            "a veth pair hands on tags as the sending end left them: turn off `txvlan` there where VLAN devices send".to_owned()
        }
        What::TagsOfGeneric => {
            "the device takes the outer VLAN tag off, so the class of a frame is that without it".to_owned()
        }
        What::TagsKept => "the device leaves VLAN tags in the frame".to_owned(),
        What::TagsStripped { set, fixed, tagged, disable } => stripped(name, set, *fixed, *tagged, *disable),
        What::Rps { queue, more, cpus } => format!(
            "RPS is on for queue {queue}{} (CPUs {}); it would move steered frames a second time: turn it off with `echo 0 > \
             /sys/class/net/{name}/queues/rx-{queue}/rps_cpus`",
            if *more > 0 { format!(" and {more} more") } else { String::new() },
            list(cpus)
        ),
        What::PppoeGro(kernel) => pppoe_gro(*kernel).to_owned(),
        What::Gro(true, _) => "this kernel coalesces segments (GRO) on the CPU that frames are steered to".to_owned(),
        What::Gro(false, kernel) => {
            let pppoe = match kernel {
                Some(PppoeGro { coalesces: true, .. }) => "TCP loses by that, in PPPoE too",
                Some(kernel) if !kernel.may_be_backported() => {
                    "plain and single-tagged TCP loses by that, PPPoE has no GRO to lose"
                }
                _ => "plain and single-tagged TCP loses by that, PPPoE where the kernel coalesces it",
            };
            format!("this kernel does not coalesce steered frames (GRO; Linux 6.15 does): {pppoe}")
        }
        What::Steered(attached) => format!("steered already (`rxlane steer status {quoted_attached}`)", quoted_attached = quoted(attached)),
        What::Program(program) => other_program(program, name),
    }
}

fn place(what: &What, name: &str) -> String {
    let instead = |to: &str| format!("steer {to} instead, where the frames arrive with all their headers");
    match what {
        What::Above { ppp, below } => {
            let (kind, device) = match ppp {
                true => ("PPP interface", "the Ethernet device below it"),
                false => ("VLAN device", "the device below it"),
            };
            match below {
                Some(below) => format!("{name} is a {kind} on {below}: {}", instead(below)),
                None => format!("{name} is a {kind}: {}", instead(device)),
            }
        }
        What::Master { kind, ports } => match &ports[..] {
            [] => format!("{name} is a {kind}: steer its ports instead, where the frames arrive"),
            [port] => format!("{name} is a {kind}: steer its port {port} instead, where the frames arrive"),
            _ => format!("{name} is a {kind}: steer each of its ports instead ({})", ports.join(", ")),
        },
        _ => format!("{name} is the loopback: nothing arrives on it"),
    }
}

fn mtu_text(mtu: u32, fits: MtuFits, name: &str) -> String {
    match fits {
        MtuFits::UpTo(driver, most) if mtu > most => format!(
            "{driver} takes a program up to MTU {most}, and this is {mtu} (`ip link set {quoted_name} mtu {most}` lowers it)",
            quoted_name = quoted(name)
        ),
        MtuFits::UpTo(driver, most) => format!("{mtu} ({driver} takes a program up to {most})"),
        MtuFits::OnePage => format!("{mtu}: a frame fits one page"),
        MtuFits::Frags => format!("{mtu}: frames of several buffers are taken, as the driver can"),
        MtuFits::NoFrags(most) => format!(
            "{mtu} is more than one page holds, and the driver has no frames of several buffers (`ip link set {quoted_name} mtu {most}` \
             lowers it)",
            quoted_name = quoted(name)
        ),
        MtuFits::Unknown => format!(
            "{mtu} is more than one page holds; whether the driver takes a program then shows when it is attached"
        ),
    }
}

fn stripped(name: &str, set: &str, fixed: bool, tagged: Tagged, disable: bool) -> String {
    let seen = match tagged {
        Tagged::Devices => "VLAN devices stand on it",
        Tagged::Seen => "tagged frames arrive",
        Tagged::Unseen => "no tagged frame was seen",
    };
    let harm = "a steered frame would lose its VLAN tag";
    let fixed_off = "the device strips VLAN tags, which cannot be turned off";
    match (fixed, tagged, disable) {
        (true, Tagged::Unseen, _) => format!("{fixed_off}; {seen}, else {harm}"),
        (true, ..) => format!("{fixed_off}; {seen}, so {harm}"),
        (false, _, true) => {
            format!(
                "the device takes VLAN tags off; `ethtool -K {quoted_name} {set} off` until `steer down`",
                quoted_name = quoted(name)
            )
        }
        (false, Tagged::Unseen, false) => format!(
            "the device takes VLAN tags off; {seen}, else {harm}: `--disable-rxvlan` keeps tags in the frame"
        ),
        (false, ..) => format!(
            "the device takes VLAN tags off before XDP sees the frame; {seen}, so {harm}: add `--disable-rxvlan`"
        ),
    }
}

fn other_program(program: &Program, name: &str) -> String {
    let remedy = match (&program.attached_as, program.attached_by) {
        (Some((family, attached)), _) => format!("; `{}` ends it", family.end_command(attached)),
        _ if program.name.as_deref() == Some("fastpath") => {
            return "a fast path is up here (`rxlane fastpath status`): `rxlane fastpath down` ends it"
                .to_owned();
        }
        (None, Some(AttachedBy::Netlink)) => format!("; {} takes it off", program.off(name)),
        (None, Some(AttachedBy::Link(_))) => "; end the program that holds it".to_owned(),
        (None, None) => String::new(),
    };
    format!("another XDP program is attached: {program}{remedy}")
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::OneCpu => "there is one CPU, so there is none to spread to".to_owned(),
        Reason::DeviceSpreads => "the device spreads every class of frames over its queues by itself".to_owned(),
        Reason::FewSelected(share) => {
            format!("of the sampled frames {} are of the selected classes", part(*share))
        }
        Reason::Idle(cpu, idle) => {
            format!("CPU {cpu}, which receives most, is idle {idle:.0} % of the time: it is not the bottleneck")
        }
        Reason::OtherWork(cpu, received) => format!(
            "CPU {cpu}, which receives most, is full, but receives only {received:.0} % of its time: other work fills it"
        ),
        Reason::OneFlow => {
            "nearly all frames are of one flow: nothing can spread one flow without reordering it".to_owned()
        }
        Reason::FewFrames(frames) => {
            format!("{} arrived during the look: look again under load", plural(*frames, "frame"))
        }
        Reason::NotCounted => {
            "frames were not counted twice: look for a second or more (`--seconds 3`), under load".to_owned()
        }
        Reason::ReceiverUnknown => {
            "which CPU receives is unknown: neither queues nor interrupts show it, and other interfaces bring more frames than this \
             one; look again while this one brings most of them (`rxlane top` shows them by CPU)"
                .to_owned()
        }
        Reason::OtherNamespaces => {
            "which CPU receives is unknown: neither queues nor interrupts show it, CPUs count frames for the whole machine, and \
             interfaces of other network namespaces bring most of them; look again while those are idle"
                .to_owned()
        }
        Reason::Receives(BusiestCpu { cpu, share, load }) => {
            let idle =
                load.map_or(String::new(), |load| format!(" and is idle {:.0} % of the time", load.idle));
            format!("CPU {cpu} receives {} of the frames{idle}", part(*share))
        }
        Reason::NoNative => {
            "the driver has no native XDP, and generic mode builds the socket buffer first, as RPS does".to_owned()
        }
        Reason::Buffered => {
            "frames arrive on it in socket buffers, which a program has to have copied: on veth, steering forwarded 0.7 times the \
             frames of no steering, RPS 1.3 times"
                .to_owned()
        }
        Reason::TooLittle(cpus, Prediction { rps, steer }) => format!(
            "with {} RPS leaves the busiest CPU {} of the work of now, steering {}: too little to choose between",
            plural(*cpus as u64, "CPU"),
            part(rps.unwrap_or_default()),
            part(*steer)
        ),
        Reason::Leaves(Prediction { rps, steer }) => {
            let compared = rps.map_or(String::new(), |rps| format!(", RPS {}", part(rps)));
            format!("steering leaves the busiest CPU about {} of the work of now{compared}", part(*steer))
        }
        Reason::KernelWay(cpus, way, steered) => {
            let steered = steered.as_ref().map_or(String::new(), |steered| {
                format!("; {} {} {}", way_words(steered), leaves(steered), part(steered.busiest))
            });
            busiest_words(*cpus, way) + &steered
        }
        Reason::SteerWay(cpus, way, kernel) => {
            let kernel = kernel.as_ref().map_or(String::new(), |kernel| {
                format!(", the best without steering ({}) {}", way_words(kernel), part(kernel.busiest))
            });
            busiest_words(*cpus, way) + &kernel
        }
        Reason::Steered(interface, formerly) => {
            let formerly =
                formerly.as_ref().map(|name| format!(", attached as {name}")).unwrap_or_default();
            format!(
                "rxlane steers it{formerly}; whether that is worth it shows without steering alone: `rxlane steer down \
                 {quoted_interface}`, then check again", quoted_interface = quoted(interface))
        }
    }
}

fn part(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

fn busiest_words(cpus: usize, way: &Way) -> String {
    format!(
        "with {} {} {} the busiest CPU {} of the work of now",
        plural(cpus as u64, "CPU"),
        way_words(way),
        leaves(way),
        part(way.busiest)
    )
}

/// `a flowtable and RPS`; `neither RPS nor steering` where nothing is added.
pub fn way_words(way: &Way) -> String {
    if way.fastpath {
        return "the fast path".to_owned();
    }
    let spreading = match way.spreading {
        Spread::Nothing => None,
        Spread::Rps => Some("RPS"),
        Spread::Steer => Some("steering"),
    };
    let parts = [way.flowtable.then_some("a flowtable"), way.pppoe_gro.then_some("PPPoE GRO"), spreading];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    match &parts[..] {
        [] => "neither RPS nor steering".to_owned(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// The verb of [`way_words`].
fn leaves(way: &Way) -> &'static str {
    let parts = [way.flowtable, way.pppoe_gro, way.spreading != Spread::Nothing];
    if parts.into_iter().filter(|part| *part).count() > 1 { "leave" } else { "leaves" }
}

/// What `up` adds where there is a better way.
pub fn better_way(check: &Check) -> Option<String> {
    let is_better = matches!(check.recommendation.answer, Answer::Kernel | Answer::Fastpath);
    let way = check.recommendation.way.filter(|_| is_better)?;
    Some(format!(
        "On this kernel {} {} the busiest CPU less or as much to do, with less work in all: `rxlane steer check {}` prints the commands.",
        way_words(&way),
        leaves(&way),
        quoted(&check.interface)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use doctor::pppoe_gro::Basis;
    use steer::facts::Level;

    #[test]
    fn places_and_mtus_name_the_way_out() {
        let above = |ppp, below: Option<&str>| What::Above { ppp, below: below.map(str::to_owned) };
        let master = |ports: &[&str]| What::Master {
            kind: "bridge".to_owned(),
            ports: ports.iter().map(|port| (*port).to_owned()).collect(),
        };
        for (what, expected) in [
            (above(false, Some("eth0")), "a VLAN device on eth0: steer eth0 instead"),
            (above(true, None), "a PPP interface: steer the Ethernet device below it instead"),
            (master(&["eth1"]), "a bridge: steer its port eth1 instead"),
            (master(&["eth1", "eth2"]), "steer each of its ports instead (eth1, eth2)"),
            (What::Loopback, "nothing arrives on it"),
        ] {
            assert!(place(&what, "x0").contains(expected), "{}", place(&what, "x0"));
        }
        assert!(
            mtu_text(1508, MtuFits::UpTo("igc", 1500), "x0").contains("up to MTU 1500, and this is 1508")
        );
        assert!(mtu_text(9000, MtuFits::NoFrags(3498), "x0").contains("`ip link set x0 mtu 3498` lowers it"));
    }

    #[test]
    fn stripped_tags_are_named_with_what_keeps_them() {
        for (fixed, tagged, disable, expected) in [
            (true, Tagged::Unseen, false, "no tagged frame was seen, else a steered frame"),
            (true, Tagged::Seen, true, "tagged frames arrive, so a steered frame"),
            (false, Tagged::Devices, true, "`ethtool -K x0 rxvlan off` until `steer down`"),
            (false, Tagged::Unseen, false, "`--disable-rxvlan` keeps tags"),
            (
                false,
                Tagged::Devices,
                false,
                "VLAN devices stand on it, so a steered frame would lose its VLAN tag: add",
            ),
        ] {
            let text = stripped("x0", "rxvlan", fixed, tagged, disable);
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn ways_are_named_by_their_parts() {
        let way = |flowtable, pppoe_gro, spreading| Way {
            pppoe_gro,
            flowtable,
            fastpath: false,
            spreading,
            busiest: 0.3,
            all: 0.8,
        };
        for (way, expected) in [
            (way(false, false, Spread::Nothing), "neither RPS nor steering"),
            (way(false, true, Spread::Nothing), "PPPoE GRO"),
            (way(true, false, Spread::Rps), "a flowtable and RPS"),
            (way(true, true, Spread::Steer), "a flowtable, PPPoE GRO and steering"),
            (Way { fastpath: true, ..way(false, false, Spread::Nothing) }, "the fast path"),
        ] {
            assert_eq!(way_words(&way), expected);
        }
        let (kernel, steered) = (way(true, false, Spread::Rps), way(true, false, Spread::Steer));
        assert_eq!(
            reason(&Reason::KernelWay(4, kernel, Some(steered))),
            "with 4 CPUs a flowtable and RPS leave the busiest CPU 30 % of the work of now; a flowtable and steering leave 30 %"
        );
    }

    #[test]
    fn what_steered_frames_lose_depends_on_the_kernel() {
        let text = |kernel| {
            let fact = Fact {
                about: "gro",
                level: Level::Note,
                text: String::new(),
                from: None,
                what: What::Gro(false, kernel),
            };
            fact_text(&fact, "eth0")
        };
        let found = |coalesces, basis| Some(PppoeGro { coalesces, basis });
        assert!(text(found(false, Basis::Kallsyms)).contains("PPPoE has no GRO to lose"));
        assert!(text(found(true, Basis::Btf)).contains("in PPPoE too"));
        assert!(text(found(false, Basis::Release)).contains("where the kernel coalesces it"));
        assert!(text(None).contains("where the kernel coalesces it"));
    }

    #[test]
    fn reasons_have_their_figures() {
        let half = Prediction { rps: Some(0.5), steer: 0.25 };
        for (of, expected) in [
            (Reason::FewSelected(0.02), "2 % are of the selected"),
            (Reason::FewFrames(12), "12 frames arrived"),
            (Reason::TooLittle(2, half), "with 2 CPUs RPS leaves the busiest CPU 50 %"),
            (Reason::Leaves(half), "about 25 % of the work of now, RPS 50 %"),
            (Reason::Leaves(Prediction { rps: None, steer: 0.25 }), "about 25 % of the work of now"),
            (Reason::Steered("eth0".to_owned(), Some("wan".to_owned())), "attached as wan; whether"),
        ] {
            assert!(reason(&of).contains(expected), "{}", reason(&of));
        }
    }
}

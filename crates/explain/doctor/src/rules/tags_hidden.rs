//! `tags-hidden`: the device strips VLAN tags before an XDP program sees the frame.

use crate::report::{Finding, Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::stacked::{self, Stack};
use crate::{Case, steering};
use host::{Interface, Quote, System, Xdp};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "tags-hidden",
    stage: "parse",
    page: Page {
        title: "The device strips VLAN tags, so that XDP does not see them",
        means: "With receive VLAN offload the device takes the outer tag off and gives it beside the frame. The kernel's \
                VLAN code knows where to look; an XDP program sees a frame without that tag, and takes frames of \
                different VLANs for one kind, unless it asks for the tag (`bpf_xdp_metadata_rx_vlan_tag`, Linux 6.8, few \
                drivers). What it sends on through a cpumap or to another device may have lost its VLAN.",
        shows: "`rx-vlan-offload: on` in `ethtool -k` of a device that carries VLANs and has an XDP program (`ip -d link`).",
        fix: "`ethtool -K IFACE rxvlan off` while a program that reads tags is attached, and on again after it.",
        costs: "The kernel then takes the tag off in software, a few nanoseconds a frame. Some drivers restart the device \
                for a moment.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let stacks = Stack::over(case, interface);
    let tagged: Vec<&Stack<'_>> =
        stacks.iter().filter(|stack| stack.tags().is_some_and(|tags| tags > 0)).collect();
    if tagged.is_empty() {
        return Judgement::DoesNotApply;
    }
    if interface.features.is_empty() {
        return Judgement::lacks(format!("ethtool -k {}", steering::name(interface)));
    }
    let stripped = tagged.iter().find_map(|stack| {
        let (feature, line) =
            case.feature(interface, stripping(stack).feature).filter(|(feature, _)| feature.on)?;
        Some((stack, feature, line))
    });
    let Some((first, strip, strip_line)) = stripped else { return Judgement::Clear };
    let vlans = tagged.iter().flat_map(|stack| stack.quotes()).take(2).collect::<Vec<Quote>>();
    match interface.xdp.as_ref().map(|xdp| (*xdp.get(), xdp.quote())) {
        Some((Xdp::Native, line)) if is_steered(interface) => {
            steered(interface, first, [line, strip_line], &vlans).into()
        }
        Some((Xdp::Native | Xdp::Generic | Xdp::Offloaded, line)) => {
            let explanation = format!(
                "An XDP program is attached and the device strips tags: the program sees frames of {} without the \
                 outer one. A program that tells VLANs apart, or finds IP behind tags, goes wrong; one that asks the \
                 driver for the tag does not.",
                first.top.name
            );
            let finding =
                RULE.finding(Some(&interface.name), Severity::Warning, [line, strip_line], explanation);
            let finding = finding.and(&vlans).possible();
            if strip.fixed { finding } else { unstripped(interface, finding, stripping(first)) }.into()
        }
        Some((Xdp::Off, _)) | None if wants_steering(case, &tagged) => {
            let explanation = format!(
                "{} brings encapsulated traffic in tagged frames, which the device does not spread. Steering it with an \
                 XDP cpumap would be a way, and needs the tags that the device strips now: `rxlane steer up {} \
                 --disable-rxvlan` has them left in. Nothing has to be changed until then.",
                first.top.name,
                steering::name(interface)
            );
            let finding = RULE.finding(Some(&interface.name), Severity::Info, [strip_line], explanation);
            finding.and(&vlans).into()
        }
        _ => Judgement::Clear,
    }
}

/// Whether rxlane's own program is attached in the driver.
fn is_steered(interface: &Interface) -> bool {
    interface.steering.as_ref().is_some_and(|steering| *steering.mode.get() == Xdp::Native)
}

/// rxlane's program with stripped tags. A frame that goes through a cpumap is made into a socket buffer from its octets
/// alone, without the tag that the device put beside it (`__xdp_build_skb_from_frame()` in net/core/xdp.c).
fn steered(interface: &Interface, first: &Stack<'_>, lines: [&Quote; 2], vlans: &[Quote]) -> Finding {
    let mode = interface.steering.as_ref().map(|steering| steering.mode.quote());
    let explanation = format!(
        "rxlane steers this device's frames, and the device strips tags: a frame of {} that is handed to another CPU \
         arrives there without its outer tag, at the wrong interface.",
        first.top.name
    );
    let finding = RULE.finding(Some(&interface.name), Severity::Warning, lines, explanation);
    let name = steering::name(interface);
    finding.and(mode).and(vlans).possible().with(Remedy {
        os: "linux",
        what: "steering attached again with the tags left in the frame".to_owned(),
        commands: vec![
            format!("rxlane steer down {name}"),
            format!("rxlane steer up {name} --disable-rxvlan"),
        ],
        expected: "The program sees all tags; the kernel takes them off in software after it. `rxlane steer down` has the \
                   device strip them again."
            .to_owned(), modelled: None,
})
}

/// A kind of tag that devices strip: ethtool's name of the feature, and what `ethtool -K` calls it.
struct Stripping {
    feature: &'static str,
    set: &'static str,
}

/// What takes off the outer tag of the stack; without a TPID in the text it is the usual one.
fn stripping(stack: &Stack<'_>) -> Stripping {
    match stack.outer_tpid() {
        Some(0x88a8) => Stripping { feature: "rx-vlan-stag-hw-parse", set: "rx-vlan-stag-hw-parse" },
        _ => Stripping { feature: "rx-vlan-offload", set: "rxvlan" },
    }
}

/// PPPoE or a second tag behind the first, and more than one CPU to steer to.
fn wants_steering(case: &Case<'_>, tagged: &[&Stack<'_>]) -> bool {
    let is_deep = |stack: &&Stack<'_>| stack.is_pppoe() || stack.tags().is_some_and(|tags| tags >= 2);
    case.snapshot().cpu_count() != Some(1)
        && tagged.iter().any(is_deep)
        && tagged.iter().any(|s| stacked::is_vlan(s.top))
}

fn unstripped(interface: &Interface, finding: Finding, stripping: Stripping) -> Finding {
    finding.with(Remedy {
        os: "linux",
        what: "tags left in the frame".to_owned(),
        commands: vec![format!("ethtool -K {} {} off", steering::name(interface), stripping.set)],
        expected: "The program sees all tags; the kernel takes them off in software after it.".to_owned(),
        modelled: None,
    })
}

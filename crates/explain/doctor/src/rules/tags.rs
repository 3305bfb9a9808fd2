//! `tags-hidden`: the device strips VLAN tags before an XDP program sees the frame.

use crate::device::Device;
use crate::facts::{Effect, Fact};
use crate::finding::{Remedy, Severity, found};
use crate::rule::Judgement;
use crate::software::steer_again;
use crate::stacked::{self, Stack};
use host::{Quote, Xdp};

pub(super) fn hidden(device: &Device<'_>) -> Judgement {
    let stacks = Stack::over(device.case, device);
    let tagged: Vec<&Stack<'_>> =
        stacks.iter().filter(|stack| stack.tags().is_some_and(|tags| tags > 0)).collect();
    if tagged.is_empty() {
        return Judgement::DoesNotApply;
    }
    if device.features.is_empty() {
        return Judgement::lacks(format!("ethtool -k {}", device.word()));
    }
    let stripped = tagged.iter().find_map(|stack| {
        let (feature, line) = device.case.feature(device.interface, stripping(stack).0)?;
        feature.on.then_some((stack, feature, line))
    });
    let Some((first, strip, strip_line)) = stripped else { return Judgement::Clear };
    let vlans: Vec<Quote> = tagged.iter().flat_map(|stack| stack.quotes()).take(2).collect();
    let name = first.top.name.clone();
    let own = device.steering.as_ref().map(|steering| &steering.mode);
    match device.xdp.as_ref().map(|xdp| (*xdp.get(), xdp.quote())) {
        Some((Xdp::Native, line)) if own.is_some_and(|mode| *mode.get() == Xdp::Native) => {
            // A frame that goes through a cpumap becomes a socket buffer of its bytes alone, without the tag that the
            // device put into its metadata (`__xdp_build_skb_from_frame()` in net/core/xdp.c).
            found(Severity::Warning, Fact::SteeringWithoutTag { name })
                .quotes([line, strip_line])
                .quotes(own.map(host::Observed::quote))
                .quotes(&vlans)
                .possible_if(true)
                .fix([steer_again(device, Effect::SteerWithTags, "--disable-rxvlan")])
                .into()
        }
        Some((Xdp::Native | Xdp::Generic | Xdp::Offloaded, line)) => {
            let set = format!("ethtool -K {} {} off", device.word(), stripping(first).1);
            found(Severity::Warning, Fact::ProgramWithoutTag { name })
                .quotes([line, strip_line])
                .quotes(&vlans)
                .possible_if(true)
                .fix((!strip.fixed).then(|| Remedy::linux(Effect::KeepTags, [set])))
                .into()
        }
        Some((Xdp::Off, _)) | None if is_steerable(device, &tagged) => {
            found(Severity::Info, Fact::StrippedForSteering { name })
                .quotes([strip_line])
                .quotes(&vlans)
                .into()
        }
        _ => Judgement::Clear,
    }
}

/// The feature that takes off the outer tag of the stack, and what `ethtool -K` calls it; without a TPID in the text
/// it is the usual one.
fn stripping(stack: &Stack<'_>) -> (&'static str, &'static str) {
    match stack.outer_tpid() {
        Some(0x88a8) => ("rx-vlan-stag-hw-parse", "rx-vlan-stag-hw-parse"),
        _ => ("rx-vlan-offload", "rxvlan"),
    }
}

/// PPPoE or a second tag behind the first, and more than one CPU to steer to.
fn is_steerable(device: &Device<'_>, tagged: &[&Stack<'_>]) -> bool {
    let is_deep = |stack: &&Stack<'_>| stack.is_pppoe() || stack.tags().is_some_and(|tags| tags >= 2);
    device.case.snapshot().cpu_count() != Some(1)
        && tagged.iter().any(is_deep)
        && tagged.iter().any(|stack| stacked::is_vlan(stack.top))
}

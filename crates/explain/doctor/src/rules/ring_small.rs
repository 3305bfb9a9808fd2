//! `ring-small`: the receive ring holds fewer frames than the driver allows.

use crate::Case;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::steering;
use host::{Interface, System};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "ring-small",
    stage: "queue",
    page: Page {
        title: "The receive ring is smaller than the driver allows",
        means: "The ring is where the device puts frames until the CPU takes them. With 256 entries and full-size \
                frames at 1 Gbit/s it lasts 3 ms; a burst, or a CPU that is away for longer, overflows it. By itself \
                this is a remark: drivers start small, and most machines never notice.",
        shows: "`ethtool -g` shows a current RX value below the pre-set maximum.",
        fix: "Raise it only where frames are lost at the ring (`ring-overflow`): `ethtool -G IFACE rx N`, first to \
              1024 or 2048.",
        costs: "The interface goes down for a moment. Each entry takes a buffer (2 kB and more a frame), and a long \
                ring means that a frame may wait longer and leave the CPU's cache before it is read.",
    },
    judge: Judge::Device(judge),
};

/// Entries below which a driver's default counts as small: what igb, e1000e and many others start with is 256.
const SMALL: u32 = 512;

/// What is offered first; the maximum is rarely the best.
const OFFERED: u32 = 1024;

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    let (ring, name) = (&interface.rings.rx, steering::name(interface));
    let (Some(current), Some(most)) = (&ring.current, &ring.most) else {
        return match case.system() {
            // FreeBSD and NetBSD size rings by loader tunables, which have no maximum to read.
            Some(System::FreeBsd | System::NetBsd) => Judgement::DoesNotApply,
            Some(System::Linux) | None => Judgement::lacks(format!("ethtool -g {name}")),
        };
    };
    let entries = *current.get();
    if entries >= SMALL.min(most.value) {
        return Judgement::Clear;
    }
    let explanation = format!(
        "The receive ring holds {entries} frames of {} possible. That is the usual default and no fault; it matters \
         only if frames are lost at the ring.",
        most.value
    );
    RULE.finding(Some(&interface.name), Severity::Info, [current.quote(), &most.quote], explanation)
        .with(Remedy {
            os: "linux",
            what: "a longer receive ring, if frames are lost at it".to_owned(),
            commands: vec![format!("ethtool -G {name} rx {}", OFFERED.min(most.value))],
            expected:
                "Longer bursts survive; the interface goes down for a moment. It does not spread the load."
                    .to_owned(),
            modelled: None,
        })
        .into()
}

//! `xdp-generic-only`: an XDP program runs after the socket buffer was built.

use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::{Case, steering};
use host::{Interface, System, Xdp};
use nic::schema;

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "xdp-generic-only",
    stage: "steer",
    page: Page {
        title: "The XDP program runs in generic mode",
        means: "In native mode the driver runs an XDP program on the frame in the ring, before anything is allocated. In \
                generic mode the kernel first builds a socket buffer on the receiving CPU, then runs the program, often \
                after copying the frame: what XDP is meant to save has been paid, on the CPU that it is meant to relieve.",
        shows: "`xdpgeneric` in `ip link`, where native mode shows `xdp` and offload to the device `xdpoffload`.",
        fix: "Attach it again in native mode: `ip link set dev IFACE xdpgeneric off`, then its loader with the native (driver) \
              mode. Drivers refuse native mode at large MTUs, with LRO, or with too few queues: the kernel log says which.",
        costs: "Many drivers restart their rings when a program is attached, which loses frames for a moment.",
    },
    judge: Judge::Device(judge),
};

fn judge(case: &Case<'_>, interface: &Interface) -> Judgement {
    if matches!(case.system(), Some(System::FreeBsd | System::NetBsd)) {
        return Judgement::DoesNotApply;
    }
    let Some(xdp) = &interface.xdp else {
        return Judgement::lacks(format!("ip -d link show dev {}", steering::name(interface)));
    };
    if *xdp.get() != Xdp::Generic {
        return Judgement::Clear;
    }
    let native = case.agreed(interface, |profile| profile.tri(schema::XDP_NATIVE));
    let since = case.agreed(interface, |profile| profile.text(schema::XDP_SINCE));
    let generic = "The XDP program runs in generic mode: the receiving CPU builds a socket buffer for every frame first.";
    let (severity, rest) = match native {
        Some(true) => (
            Severity::Warning,
            format!(
                "The driver can run it natively{}.",
                since.map_or(String::new(), |since| format!(" since Linux {since}"))
            ),
        ),
        Some(false) => (
            Severity::Info,
            "The driver has no native mode, so this is all there is; another network card would do better."
                .to_owned(),
        ),
        None => (Severity::Info, "Whether the driver can run it natively is not known.".to_owned()),
    };
    let ours = interface.steering.as_ref().filter(|steering| *steering.mode.get() == Xdp::Generic);
    let steers = match ours {
        Some(_) => " It is rxlane's steering, which then saves that CPU no more than RPS would.",
        None => "",
    };
    let finding = RULE
        .finding(Some(&interface.name), severity, [xdp.quote()], format!("{generic} {rest}{steers}"))
        .and(interface.driver.as_ref().map(|driver| &driver.quote))
        .and(ours.map(|steering| steering.mode.quote()));
    if native != Some(true) {
        return finding.into();
    }
    if ours.is_some() {
        let name = steering::name(interface);
        let remedy = Remedy {
            os: "linux",
            what: "steering attached natively, which is what `rxlane steer up` does unless generic mode is asked for"
                .to_owned(),
            commands: vec![format!("rxlane steer down {name}"), format!("rxlane steer up {name}")],
            expected: "The cost of a socket buffer a frame leaves the receiving CPU. Where the driver refuses, the second \
                       command says why."
                .to_owned(), modelled: None,
};
        return finding.with(remedy).into();
    }
    finding
        .with(Remedy {
            os: "linux",
            what: format!(
                "the program attached natively: `ip link set dev {} xdpgeneric off`, then its loader in native mode (a \
                 program can be attached in one of the two at a time)",
                steering::name(interface)
            ),
            // Taking it off alone would end what it does; how it is put back its loader knows.
            commands: Vec::new(),
            expected: "The cost of a socket buffer a frame leaves the receiving CPU. How much that is cannot be told from \
                       the text."
                .to_owned(), modelled: None,
})
        .into()
}

//! `netisr-direct`: FreeBSD works each packet off on the CPU that took it from the ring.

use super::netisr;
use crate::report::{Remedy, Severity};
use crate::rule::{Judge, Judgement, Page, Rule};
use crate::{Case, steering};

/// The rule.
pub(super) static RULE: Rule = Rule {
    id: "netisr-direct",
    stage: "steer",
    page: Page {
        title: "FreeBSD's netisr dispatches directly",
        means: "With direct dispatch the thread that takes a frame from the ring also carries it through decapsulation, \
                IP and forwarding. That is the best choice where the card spreads frames over queues. Where it \
                cannot, as with PPPoE on a card whose hash stops at that header, one CPU does everything. Deferred \
                dispatch hands the packet to the netisr thread of another CPU, chosen by the flow id that the card computed, or \
                by the interface where there is none.",
        shows: "`netstat -Q` says `Dispatch policy direct`, `sysctl net.isr.dispatch` says `direct`, and under load one \
                CPU's workstreams handle nearly everything.",
        fix: "`sysctl net.isr.dispatch=deferred`, at run time, together with several bound threads (`netisr-unbound`), \
              which takes two lines in /boot/loader.conf and a restart. Packets that the card \
              hashed then spread by flow. PPPoE it did not hash: the header is still taken off on the first CPU, and \
              what was in it is dealt by its interface, so that several sessions can go to several CPUs and one \
              session stays on one, another than the first. A kernel built with `options RSS` hashes such packets \
              itself, by flow.",
        costs: "A queue and a wake-up a packet: higher latency and more work in total. A queue that fills drops \
                packets (`input-queue-shallow`). On a machine that is not limited by one CPU it is a loss.",
    },
    judge: Judge::Machine(judge),
};

fn judge(case: &Case<'_>) -> Judgement {
    let snapshot = case.snapshot();
    let Some((policy, quote)) = netisr::dispatch(snapshot) else {
        return if netisr::is_possible(case) {
            Judgement::lacks("netstat -Q")
        } else {
            Judgement::DoesNotApply
        };
    };
    let own = snapshot.netisr.as_ref().and_then(|netisr| netisr.protocols.get("pppoe"));
    if policy != "direct" || own.is_some_and(|pppoe| matches!(pppoe.dispatch.as_str(), "hybrid" | "deferred"))
    {
        return Judgement::Clear;
    }
    let pppoe = netisr::pppoe(case);
    let (severity, why) = if pppoe.is_empty() {
        (
            Severity::Info,
            "That is right where the card spreads frames over its queues, and a limit where one queue takes all.",
        )
    } else {
        (
            Severity::Warning,
            "This machine carries PPPoE, which most cards deliver to one queue: one CPU does all of it.",
        )
    };
    let explanation = format!("Packets are worked off on the CPU that took them from the ring. {why}");
    let finding = RULE.finding(None, severity, [quote], explanation).and(&pppoe);
    if pppoe.is_empty() {
        return finding.into();
    }
    finding
        .with(Remedy {
            os: "freebsd",
            what: "hand packets to other CPUs, by flow or by interface".to_owned(),
            commands: vec![
                "sysctl net.isr.dispatch=deferred".to_owned(),
                "echo 'net.isr.dispatch=deferred' >> /etc/sysctl.conf".to_owned(),
            ],
            expected: steering::NETISR_SPREADS.to_owned(),
            modelled: None,
        })
        .into()
}

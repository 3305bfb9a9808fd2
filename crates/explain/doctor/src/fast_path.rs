//! `rxlane fastpath`: what one that is up forwards, and whether this machine could have one.

use crate::case::{enough, kind, since};
use crate::device::Device;
use crate::facts::{Fact, FastFact, Since};
use crate::forwarding;
use crate::software::{Software, State};
use crate::{Case, stacked};
use format::quoted;
use host::{Architecture, FastPath, Interface, Kind, Shares, Xdp};

/// Part of the packets that it has to forward.
const WORKS: f64 = 0.5;

/// Part from which the work that is left is little: a packet of the kernel's costs some four times as much
/// (docs/measurements/fastpath.md), and which port the others arrive at is not known.
const ALL_BUT_LITTLE: f64 = 0.95;

/// Linux that has what it needs (docs/fastpath/usage.md).
const SINCE: (u32, u32) = (5, 12);

/// What a fast path did with enough packets to say so.
pub(crate) struct Counted<'c> {
    pub fast_path: &'c FastPath,
    shares: Shares,
}

impl<'c> Counted<'c> {
    /// `None`: none is known to be up, its counters were started anew, or it is idle.
    pub fn of(case: &Case<'c>) -> Option<Counted<'c>> {
        let fast_path = case.snapshot().fast_path.as_ref()?;
        let shares = fast_path.shares(case.snapshot().interval)?;
        (shares.total() >= enough(shares.basis)).then_some(Counted { fast_path, shares })
    }

    /// Packets that it forwarded.
    pub fn fast(&self) -> u64 {
        self.shares.counts.first().copied().unwrap_or(0)
    }

    /// Those, and what it left to the kernel.
    pub fn all(&self) -> u64 {
        self.shares.total()
    }

    /// The former as part of the latter.
    pub fn share(&self) -> f64 {
        self.fast() as f64 / self.all().max(1) as f64
    }

    pub fn since(&self) -> Since {
        since(self.shares.basis)
    }

    /// Whether it does what it is there for.
    pub fn works(&self) -> bool {
        self.share() >= WORKS
    }

    /// The reason for which it left most packets to the kernel, with its part of all.
    pub fn largest(&self) -> Option<(&'c str, f64)> {
        let counts = self.shares.counts.iter().skip(1);
        let (reason, count) = self
            .fast_path
            .slow
            .keys()
            .zip(counts)
            .max_by_key(|(_, count)| **count)
            .filter(|(_, n)| **n > 0)?;
        Some((reason, *count as f64 / self.all().max(1) as f64))
    }
}

/// Whether an interface is a port of the fast path that is up.
pub(crate) fn is_port(case: &Case<'_>, name: &str) -> bool {
    case.snapshot().fast_path.as_ref().is_some_and(|one| one.ports.value.iter().any(|port| port == name))
}

/// The fast path as what takes a device's frames, where hardly any is left for other software: RPS and steering would spread
/// what is not there. In generic mode RPS comes before the program (`netif_receive_skb_internal()` in net/core/dev.c).
pub(crate) fn software(device: &Device<'_>) -> Option<Software> {
    let counted = Counted::of(device.case).filter(|counted| counted.share() >= ALL_BUT_LITTLE)?;
    let FastPath { mode, ports, fast, .. } = counted.fast_path;
    let is_here = is_port(device.case, &device.name) && mode.value == Xdp::Native;
    let fact = FastFact::Forwards { share: counted.share(), since: counted.since() };
    is_here.then(|| Software::new(State::Spreads, Fact::Fast(fact), [fast.quote(), &ports.quote]))
}

/// Whether this machine could have a fast path.
pub(crate) enum Candidate<'c> {
    /// On these ports. `pppoe`: they carry what it was measured with.
    On { ports: Vec<String>, pppoe: bool },
    /// It would send past the shaper of this interface.
    Shaped(&'c Interface),
}

/// A fast path on all ports of a router. `None`: something is in the way or not known, or what the kernel has is as good.
pub(crate) fn candidate<'c>(case: &Case<'c>) -> Option<Candidate<'c>> {
    let ports = forwarding::ports(case);
    let interfaces: Vec<&Interface> =
        ports.iter().filter_map(|name| case.snapshot().interface(name)).collect();
    let is_native = |one: &&Interface| case.native_xdp(one) == Some(true);
    let is_free = |one: &&Interface| one.xdp.as_ref().is_none_or(|xdp| *xdp.get() == Xdp::Off);
    let is_possible = forwarding::forwards(case) == Some(true)
        && case.snapshot().fast_path.is_none()
        && ports.len() > 1
        && interfaces.iter().all(|one| is_native(one) && is_free(one));
    if !is_possible || !runs(case) {
        return None;
    }
    let pppoe = interfaces.iter().any(|one| case.ends_pppoe(one));
    let is_stacked = || case.stacked().any(stacked::is_vlan);
    let is_worth = match pppoe {
        true => !coalesces(case),
        false => is_stacked() || !case.snapshot().netfilter.routed.is_empty(),
    };
    if !is_worth {
        return None;
    }
    let shaped = interfaces.iter().find_map(|port| shaped(case, port));
    Some(shaped.map_or(Candidate::On { ports, pppoe }, Candidate::Shaped))
}

/// The commands that say what a fast path on these ports would send past, and bring it up.
pub fn commands(ports: &[String]) -> [String; 2] {
    [format!("rxlane fastpath check {}", words(ports)), up(ports, "")]
}

/// The command that brings one up on these ports, with an option or none.
pub(crate) fn up(ports: &[String], option: &str) -> String {
    format!("rxlane fastpath up {}{option} --daemon", words(ports))
}

fn words(ports: &[String]) -> String {
    let words: Vec<String> = ports.iter().map(|port| quoted(port)).collect();
    words.join(" ")
}

/// Whether the kernel and the processor are such as the program runs on, and what stands on the ports is what it follows down: no bridge
/// that filters VLANs, and one session, as the kernel does not say which of several a PPP interface has.
fn runs(case: &Case<'_>) -> bool {
    let snapshot = case.snapshot();
    let known = snapshot.architecture.as_ref();
    let filters = |one: &Interface| matches!(kind(one), Some(Kind::Bridge { filtering: Some(true), .. }));
    snapshot.sessions.len() < 2
        && !snapshot.interfaces.iter().any(filters)
        && case.release().is_some_and(|release| release >= SINCE)
        && !case.is_bsd()
        && known.is_none_or(|known| matches!(known.value, Architecture::X86 | Architecture::Arm))
}

/// Whether the kernel joins what PPPoE carries: with that, a flowtable and RPS the busiest CPU has as little to do as with a fast
/// path (docs/measurements/fastpath.md).
fn coalesces(case: &Case<'_>) -> bool {
    case.pppoe_gro().is_some_and(|(kernel, _)| kernel.coalesces)
}

/// The interface on this port, or the port itself, whose shaper a fast path would send past. What an `ifb` shapes comes
/// from some port.
fn shaped<'c>(case: &Case<'c>, port: &Interface) -> Option<&'c Interface> {
    let is_passed = |one: &&Interface| {
        forwarding::lookup_device(case, &one.name) == port.name || one.name.starts_with("ifb")
    };
    case.snapshot().interfaces.iter().filter(|one| one.shaper.is_some()).find(is_passed)
}

impl Case<'_> {
    /// Whether a fast path could take what an interface receives, as it was measured: PPPoE that ends here, on a kernel that
    /// does not join what it carries, with no shaper to send past. Whether its driver runs programs is another question.
    pub fn may_have_fast_path(&self, interface: &Interface) -> bool {
        let is_measured = self.ends_pppoe(interface) && !coalesces(self);
        is_measured && runs(self) && self.snapshot().fast_path.is_none() && shaped(self, interface).is_none()
    }
}

//! Whether the kernel coalesces what is in PPPoE: by the names of its driver's functions where they were listed, else by its release.

use crate::Case;
use host::{Interface, Quote, Symbols};
use serde::Serialize;

/// The first release with `pppoe_gro_receive()` (drivers/net/ppp/pppoe.c). OpenWrt has it in older ones.
pub const SINCE: (u32, u32) = (7, 2);

/// What the answer is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// The symbols of the running kernel, `/proc/kallsyms`.
    Kallsyms,
    /// Its type information, `/sys/kernel/btf`.
    Btf,
    /// Its release alone. That of an older one does not rule out a backport.
    Release,
}

/// Whether the kernel coalesces TCP inside PPPoE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PppoeGro {
    /// The answer.
    pub coalesces: bool,
    /// What it is from.
    pub basis: Basis,
}

impl PppoeGro {
    /// Whether it is no more than likely: an old release may have a backport.
    pub const fn may_be_backported(self) -> bool {
        !self.coalesces && matches!(self.basis, Basis::Release)
    }
}

impl<'a> Case<'a> {
    /// Whether the kernel coalesces TCP inside PPPoE, with the line that says so. `None`: neither functions nor release are known, or
    /// it is no Linux.
    pub fn pppoe_gro(&self) -> Option<(PppoeGro, &'a Quote)> {
        let snapshot = self.snapshot();
        if let Some(driver) = &snapshot.pppoe_driver {
            let basis = match driver.value.symbols {
                Symbols::Kallsyms => Basis::Kallsyms,
                Symbols::Btf => Basis::Btf,
            };
            return Some((PppoeGro { coalesces: driver.value.coalesces, basis }, &driver.quote));
        }
        let kernel = snapshot.kernel.as_ref().filter(|_| !self.is_bsd())?;
        let coalesces = self.release()? >= SINCE;
        Some((PppoeGro { coalesces, basis: Basis::Release }, &kernel.quote))
    }

    /// Whether GRO is on where PPPoE sessions of the kernel arrive, and the kernel coalesces what they carry.
    pub fn coalesces_pppoe(&self, interface: &Interface) -> bool {
        let is_on = self.feature(interface, "generic-receive-offload").is_some_and(|(gro, _)| gro.on);
        is_on && self.ends_pppoe(interface) && self.pppoe_gro().is_some_and(|(kernel, _)| kernel.coalesces)
    }

    /// Whether the threads of a cpumap, to which frames are steered, coalesce (`cpu_map_gro_receive()` in kernel/bpf/cpumap.c).
    pub fn coalesces_steered(&self) -> Option<bool> {
        Some(self.release()? >= (6, 15))
    }
}

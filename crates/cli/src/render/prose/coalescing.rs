//! What the kernel can: sentences that `doctor` and `steer` share.

use doctor::pppoe_gro::{Basis, PppoeGro};

/// Whether the kernel coalesces what PPPoE carries, and how that is known. Without a full stop.
pub fn pppoe_gro(kernel: Option<PppoeGro>) -> &'static str {
    let Some(PppoeGro { coalesces, basis }) = kernel else {
        return "whether this kernel coalesces what PPPoE carries is unknown: `uname -r` shows its release, and `grep \
                pppoe_gro_receive /proc/kallsyms`, once the module pppoe is loaded, whether it has the function";
    };
    match (coalesces, basis) {
        (true, Basis::Kallsyms) => {
            "this kernel coalesces what PPPoE carries: pppoe_gro_receive is among its symbols (/proc/kallsyms)"
        }
        (true, Basis::Btf) => {
            "this kernel coalesces what PPPoE carries: pppoe_gro_receive is in its type information (/sys/kernel/btf)"
        }
        (true, Basis::Release) => {
            "by its release this kernel coalesces what PPPoE carries, as Linux 7.2 and later do while the module pppoe is loaded"
        }
        (false, Basis::Kallsyms) => {
            "this kernel does not coalesce what PPPoE carries: its driver has no pppoe_gro_receive (/proc/kallsyms)"
        }
        (false, Basis::Btf) => {
            "this kernel does not coalesce what PPPoE carries: its driver has no pppoe_gro_receive (/sys/kernel/btf)"
        }
        (false, Basis::Release) => {
            "by its release this kernel does not coalesce what PPPoE carries (Linux 7.2 does), unless that was backported, as in \
             OpenWrt: `grep pppoe_gro_receive /proc/kallsyms` shows it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_release_alone_leaves_backports_open() {
        let found = |coalesces, basis| pppoe_gro(Some(PppoeGro { coalesces, basis }));
        assert!(found(false, Basis::Release).contains("unless that was backported"));
        for basis in [Basis::Kallsyms, Basis::Btf] {
            assert!(found(false, basis).contains("has no pppoe_gro_receive"));
            assert!(found(true, basis).contains("pppoe_gro_receive is"));
        }
        assert!(pppoe_gro(None).contains("unknown"));
    }
}

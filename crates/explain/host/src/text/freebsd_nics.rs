//! Names of the BSDs' network drivers. An interface there is its driver's name and a number (`igb0`), which is
//! how a line about a device, an interrupt or a message shows that it is about an interface.

use super::line::is_word_of;

/// Drivers of Ethernet devices: section 4 of the manuals of FreeBSD 14 and NetBSD 10.
const DRIVERS: &str = "ae age alc ale aq atse aue awge awg axe axen axgbe ax bce bfe bge bnx bnxt bxe cas cc cdce \
     cemac cgem cpsw cue cxgb cxgbe cxl dc dpni dwc dwge em emac ena enet eqos et ex fec ffec fxp \
     gem genet gve hme hn iavf ice igb igc ipheth ix ixg ixgb ixl ixv jme kue lem lge lio mce mcx \
     mlxen mos msk mtkswitch muge mue mvgbe mvneta mvpp mxge my neta nfe nge oce ql qlxgb qlxge \
     re rge rl rtk sfxge sge sis sk smsc ste stge ti tl tlp tx txp udav ure usmsc vge vioif vmx \
     vr vte vtnet wm xennet xl xn ntb sip";

/// Whether a driver of that name makes interfaces of its name.
pub(super) fn is_driver(name: &str) -> bool {
    is_word_of(DRIVERS, name)
}

/// The driver of `igb0`; `None` for what is no Ethernet device (`xhci0`, `lo0`, `igb`).
pub(super) fn driver(interface: &str) -> Option<&str> {
    let name = interface.trim_end_matches(|c: char| c.is_ascii_digit());
    (name.len() < interface.len() && is_driver(name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_number() {
        assert_eq!(driver("igb0"), Some("igb"));
        assert_eq!(driver("wm12"), Some("wm"));
        for other in ["igb", "xhci0", "lo0", "", "0", "igb0.35", "pppoe0"] {
            assert_eq!(driver(other), None, "{other}");
        }
    }
}

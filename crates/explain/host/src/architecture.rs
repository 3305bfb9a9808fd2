//! The machine's architecture, and which interrupts its controllers cannot move to another CPU.

use crate::{Fact, Interrupt, Quote, Snapshot};

/// An architecture of CPUs, 32 and 64 bits alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Architecture {
    /// x86.
    X86,
    /// Arm.
    Arm,
    /// MIPS.
    Mips,
    /// RISC-V.
    RiscV,
    /// Power.
    Power,
}

impl Architecture {
    /// By the word that `uname -m`, FreeBSD's `uname -p`, `lscpu` or OpenWrt's packages have for it: `x86_64`, `amd64`,
    /// `aarch64`, `armv7l`, `mipsel_24kc`, `riscv64`, `ppc64le`.
    pub(crate) fn named(word: &str) -> Option<Architecture> {
        const BEGINNINGS: [(&str, Architecture); 12] = [
            ("x86_64", Architecture::X86),
            ("amd64", Architecture::X86),
            ("i386", Architecture::X86),
            ("i486", Architecture::X86),
            ("i586", Architecture::X86),
            ("i686", Architecture::X86),
            ("aarch64", Architecture::Arm),
            ("arm", Architecture::Arm),
            ("mips", Architecture::Mips),
            ("riscv", Architecture::RiscV),
            ("ppc", Architecture::Power),
            ("powerpc", Architecture::Power),
        ];
        BEGINNINGS.iter().find(|(beginning, _)| word.starts_with(beginning)).map(|(_, found)| *found)
    }

    /// By a controller that machines of no other architecture have.
    pub(crate) fn of_controller(name: &str) -> Option<Architecture> {
        let is = |names: &[&str]| names.iter().any(|one| name.starts_with(one));
        match name {
            _ if is(&["IO-APIC", "IR-IO-APIC", "IR-PCI-MSI", "XT-PIC"]) => Some(Architecture::X86),
            _ if is(&["GIC", "ITS-"]) => Some(Architecture::Arm),
            _ if is(&["MIPS"]) => Some(Architecture::Mips),
            _ if is(&["SiFive PLIC", "RISC-V"]) => Some(Architecture::RiscV),
            _ => None,
        }
    }
}

/// Why the kernel refuses an interrupt another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fixed {
    /// Each CPU has one of its own.
    PerCpu,
    /// Its controller hands on the interrupts of several devices by one interrupt.
    Chained,
    /// The text shows that it did.
    Refused,
}

/// The last interrupt of Marvell's MPIC that each CPU has of its own (`MPIC_PER_CPU_IRQS_NR`,
/// drivers/irqchip/irq-armada-370-xp.c); those of mvneta's ports are among them.
const LAST_OF_MPIC: u64 = 28;

impl Interrupt {
    /// Why its affinity cannot be changed; `None` where it can, or nobody knows.
    ///
    /// MSI controllers of PCIe bridges that are no part of the interrupt controller deliver all messages by one interrupt, and
    /// refuse an affinity (`dw_pci_msi_set_affinity()`, drivers/pci/controller/dwc/pcie-designware-host.c;
    /// `brcm_msi_set_affinity()`, drivers/pci/controller/pcie-brcmstb.c, both return `-EINVAL`). Linux calls such
    /// interrupts `PCI-MSI`, as those of x86, which it can move; on Arm the interrupt controller's own are `ITS-MSI`,
    /// `ITS-PCI-MSI` and `GICv2m-PCI-MSI`. The controller of the Raspberry Pi 5's south bridge has no such function
    /// (github.com/raspberrypi/linux issue 6077).
    pub fn fixed(&self, snapshot: &Snapshot) -> Option<Fixed> {
        let file = format!("/proc/irq/{}/smp_affinity", self.vector);
        let is_refused = |unread: &crate::Unread| {
            let rest = unread.what.split_once(&file).map(|(_, rest)| rest);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '_', '\'', '"']))
                && unread.what.starts_with("echo")
        };
        if snapshot.unread.iter().any(is_refused) {
            return Some(Fixed::Refused);
        }
        // `request_percpu_irq()`, drivers/net/ethernet/marvell/mvneta.c; kernels before 4.7 use the driver's name.
        if self.action == "mvneta" {
            return Some(Fixed::PerCpu);
        }
        let chip = self.chip.as_ref()?;
        let is = |names: &[&str]| names.iter().any(|name| chip.name.starts_with(name));
        if is(&["MPIC", "armada_370_xp_irq"]) && chip.number <= LAST_OF_MPIC {
            return Some(Fixed::PerCpu);
        }
        let is_other = snapshot.architecture.as_ref().is_some_and(|known| known.value != Architecture::X86);
        (is(&["rp1_irq_chip", "BRCM STB PCIe MSI"]) || (is(&["PCI-MSI"]) && is_other))
            .then_some(Fixed::Chained)
    }
}

impl Snapshot {
    /// Notes the architecture, where nothing said it yet.
    pub(crate) fn note_architecture(&mut self, found: Option<Architecture>, quote: &Quote) {
        if self.architecture.is_none() {
            self.architecture = found.map(|found| Fact::new(found, quote.clone()));
        }
    }
}

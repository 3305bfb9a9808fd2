//! What the running kernel can do, found by trying.

use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::error::Error;
use crate::permission::bpf_can_be_used;
use kernel::bpf::{self, Instruction, Map, map_type};

/// What the running kernel can do. `None`: the process may not try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub bpf: bool,
    /// It carries its own types (`/sys/kernel/btf/vmlinux`). Steering does not need them.
    pub btf: bool,
    /// `BPF_MAP_TYPE_CPUMAP` whose entries take a program of their own (5.9); steering needs it.
    pub cpumap_programs: Option<bool>,
    /// Programs may change a shared word and have the value before (`BPF_FETCH`, `BPF_CMPXCHG`, 5.12); what forwards needs
    /// it.
    pub atomics: Option<bool>,
    /// XDP programs may say that they take frames of several buffers (5.18); needed for MTUs above one page in native
    /// mode.
    pub frags: Option<bool>,
    /// A program may read another CPU's value of a per-CPU map (`bpf_map_lookup_percpu_elem`, 5.19).
    pub percpu_lookup: Option<bool>,
}

/// Asks the running kernel. Makes a few maps and programs of a few instructions and lets them go again; attaches
/// nothing.
pub fn kernel() -> Kernel {
    let map = Map::create(map_type::PERCPU_ARRAY, 8, 1, "rxlane_probe");
    Kernel {
        bpf: !is(&map, libc::ENOSYS),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        cpumap_programs: cpumap_programs(),
        atomics: atomics(),
        frags: works(&bpf::load_xdp(&PASS, bpf::XDP_HAS_FRAGS, bpf::ATTACH_XDP)),
        percpu_lookup: map.ok().and_then(|map| percpu_lookup(&map)),
    }
}

/// Loads a program that passes every frame on, and lets it go.
pub(crate) fn smallest_program() -> io::Result<()> {
    bpf::load_xdp(&PASS, 0, 0).map(drop)
}

fn is<T>(tried: &io::Result<T>, number: i32) -> bool {
    tried.as_ref().err().and_then(io::Error::raw_os_error) == Some(number)
}

/// What an attempt says about a feature: refused for want of permission or memory it says nothing.
fn works<T>(tried: &io::Result<T>) -> Option<bool> {
    match tried.as_ref().map_err(io::Error::raw_os_error) {
        Ok(_) => Some(true),
        Err(Some(libc::EINVAL | libc::E2BIG | libc::ENOSYS | libc::EOPNOTSUPP)) => Some(false),
        Err(_) => None,
    }
}

/// `r0 = XDP_PASS; exit`.
const PASS: [Instruction; 2] = [set(0, 2), EXIT];

/// `BPF_ALU64 | BPF_MOV | BPF_K`.
const fn set(register: u8, immediate: i32) -> Instruction {
    Instruction::new(0xb7, register, 0, 0, immediate)
}

/// `BPF_JMP | BPF_EXIT`.
const EXIT: Instruction = Instruction::new(0x95, 0, 0, 0, 0);

fn cpumap_programs() -> Option<bool> {
    // The size of a value says whether there is a place for a program (struct bpf_cpumap_val).
    let map = Map::create(map_type::CPUMAP, 8, 1, "rxlane_probe");
    let program = bpf::load_xdp(&PASS, 0, bpf::ATTACH_CPUMAP);
    Some(works(&map)? && works(&program)?)
}

/// Whether a program that exchanges a word of its stack passes the verifier.
fn atomics() -> Option<bool> {
    /// `BPF_XCHG`, in the place of the immediate value.
    const EXCHANGE: i32 = 0xe1;
    let code = [
        set(0, 2),
        // *(u64 *)(r10 - 8) = 0
        Instruction::new(0x7a, 10, 0, -8, 0),
        // r0 and *(u64 *)(r10 - 8) change places (BPF_STX | BPF_ATOMIC | BPF_DW)
        Instruction::new(0xdb, 10, 0, -8, EXCHANGE),
        set(0, 2),
        EXIT,
    ];
    works(&bpf::load_xdp(&code, 0, 0))
}

/// Makes sure that programs that forward, and their maps, can be made ([`bpf_can_be_used`]).
pub(crate) fn forwarding_is_possible() -> Result<(), Error> {
    bpf_can_be_used()?;
    if atomics() == Some(false) {
        return Err(Error::Lacks(format!(
            "forwarding in XDP takes Linux 5.12 or newer, whose BPF programs can change a shared word and have the value \
             before (BPF_FETCH); this is {}",
            rustix::system::uname().release().to_string_lossy()
        )));
    }
    Ok(())
}

/// Whether a program that calls `bpf_map_lookup_percpu_elem` passes the verifier.
fn percpu_lookup(map: &Map) -> Option<bool> {
    /// `BPF_FUNC_map_lookup_percpu_elem`.
    const LOOKUP: i32 = 195;
    /// `BPF_PSEUDO_MAP_FD`, in the place of the source register.
    const MAP_FD: u8 = 1;
    let code = [
        // *(u32 *)(r10 - 4) = 0
        Instruction::new(0x62, 10, 0, -4, 0),
        // r2 = r10; r2 += -4
        Instruction::new(0xbf, 2, 10, 0, 0),
        Instruction::new(0x07, 2, 0, 0, -4),
        set(3, 0),
        // r1 = the map; two places
        Instruction::new(0x18, 1, MAP_FD, 0, map.fd().as_raw_fd()),
        Instruction::new(0, 0, 0, 0, 0),
        Instruction::new(0x85, 0, 0, 0, LOOKUP),
        set(0, 2),
        EXIT,
    ];
    works(&bpf::load_xdp(&code, 0, bpf::ATTACH_XDP))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where programs may be loaded at all, every question has an answer: the probes are well-formed.
    #[test]
    fn whoever_may_ask_gets_an_answer_to_everything() {
        let kernel = kernel();
        let probed = if kernel.cpumap_programs.is_some() {
            Ok(())
        } else {
            Err(testkit::Missing("BPF programs cannot be loaded here (run the tests as root)".to_owned()))
        };
        let Some(()) = testkit::require("bpf", probed) else { return };
        assert!(kernel.bpf);
        assert!(kernel.frags.is_some() && kernel.percpu_lookup.is_some(), "{kernel:?}");
        // Each came later than the one before.
        assert!(kernel.percpu_lookup != Some(true) || kernel.frags == Some(true), "{kernel:?}");
        assert!(kernel.frags != Some(true) || kernel.atomics == Some(true), "{kernel:?}");
        assert!(kernel.atomics != Some(true) || kernel.cpumap_programs == Some(true), "{kernel:?}");
    }
}

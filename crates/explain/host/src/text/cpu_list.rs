//! Sets of CPUs as the kernel writes them (Documentation/admin-guide/cputopology.rst): lists and masks.

use crate::Snapshot;
use kernel::cpu::{CpuSet, ParseError};

/// `0-3,8`, or `0, 1` as FreeBSD writes it: a list. `None` for what is none, and for CPUs beyond
/// [`Snapshot::CPUS`].
pub(super) fn list(text: &str) -> Option<Vec<u32>> {
    known(CpuSet::parse_list(&text.replace(", ", ","))).filter(|cpus| !cpus.is_empty())
}

/// `00000000,0000000f`: a mask, the highest CPU first, 32 to a group. A mask of nothing but zeros is the empty
/// set. `None` for what is none, and for CPUs beyond [`Snapshot::CPUS`].
pub(super) fn mask(text: &str) -> Option<Vec<u32>> {
    known(CpuSet::parse_mask(text))
}

fn known(cpus: Result<CpuSet, ParseError>) -> Option<Vec<u32>> {
    let cpus: Vec<u32> = cpus.ok()?.iter().collect();
    cpus.last().is_none_or(|&last| (last as usize) < Snapshot::CPUS).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks() {
        assert_eq!(list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("5"), Some(vec![5]));
        assert_eq!(list("0, 1, 2"), Some(vec![0, 1, 2]));
        assert_eq!((list(""), list("3-1"), list("0-99999999"), list("a")), (None, None, None, None));
        assert_eq!(mask("f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(mask("00000001,00000003"), Some(vec![0, 1, 32]));
        assert_eq!(mask("00"), Some(vec![]));
        assert_eq!((mask(""), mask("xyz"), mask("123456789"), mask("+1")), (None, None, None, None));
        assert_eq!(mask(&format!("1{}", ",0".repeat(128))), None);
    }
}

//! Sets of CPUs as the kernel writes them (Documentation/admin-guide/cputopology.rst): lists and masks.

use crate::Snapshot;

/// `0-3,8`: a list. `None` for what is none, and for CPUs beyond [`Snapshot::CPUS`].
pub(super) fn list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last as usize >= Snapshot::CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// `00000000,0000000f`: a mask, the highest CPU first, 32 to a group. A mask of nothing but zeros is the empty
/// set. `None` for what is none, and for CPUs beyond [`Snapshot::CPUS`].
pub(super) fn mask(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for (group, digits) in text.trim().rsplit(',').enumerate() {
        if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let bits = u32::from_str_radix(digits, 16).ok()?;
        let base = u32::try_from(group.checked_mul(32)?).ok()?;
        for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
            let cpu = base.checked_add(bit)?;
            if cpu as usize >= Snapshot::CPUS {
                return None;
            }
            cpus.push(cpu);
        }
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_masks() {
        assert_eq!(list("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("5"), Some(vec![5]));
        assert_eq!((list(""), list("3-1"), list("0-99999999"), list("a")), (None, None, None, None));
        assert_eq!(mask("f"), Some(vec![0, 1, 2, 3]));
        assert_eq!(mask("00000001,00000003"), Some(vec![0, 1, 32]));
        assert_eq!(mask("00"), Some(vec![]));
        assert_eq!((mask(""), mask("xyz"), mask("123456789"), mask("+1")), (None, None, None, None));
        assert_eq!(mask(&format!("1{}", ",0".repeat(128))), None);
    }
}

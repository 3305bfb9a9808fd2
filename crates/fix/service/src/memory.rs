//! Memory that is seen to be there before it is needed: a process whose allocator finds none is ended by it at once, in the middle
//! of whatever it does.
//!
//! What a limit of the process refuses (`RLIMIT_AS`, of ulimit(1) `-v`) is found out so, and what the kernel refuses to promise
//! (`vm.overcommit_memory=2`). A limit of a control group is not: it ends processes when they use what they were promised.

use rustix::process::{Resource, getrlimit};
use std::hint::black_box;

/// Bytes of a thread: its stack as the standard library makes it, and what it allocates first.
pub const THREAD: usize = (2 << 20) + (128 << 10);
/// Bytes that a process takes whose threads are those that say, write and wait, before it moves packets.
pub const BEGINNING: usize = 8 * THREAD;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is too little memory: {}", lack(*needed, *limit))]
pub struct MemoryError {
    /// Bytes besides those that the process has.
    pub needed: u64,
    /// How many it may have in all (RLIMIT_AS); `None`: the machine has no more.
    pub limit: Option<u64>,
}

fn lack(needed: u64, limit: Option<u64>) -> String {
    let needed = needed as f64 / 1e6;
    match limit {
        Some(limit) => format!(
            "{needed:.1} MB more are needed, of {:.1} MB in all that the process may have (RLIMIT_AS); `ulimit -v unlimited` \
             before it is started lifts the limit",
            limit as f64 / 1e6
        ),
        None => format!("the machine has no {needed:.1} MB for this process"),
    }
}

/// Sees that this process can have so many bytes more; what threads allocate is counted once by a limit from then on.
pub fn expect(bytes: usize) -> Result<(), MemoryError> {
    if getrlimit(Resource::As).current.is_some() {
        kernel::process::share_heap();
    }
    let mut reserve: Vec<u8> = Vec::new();
    // Without the box the compiler leaves out what nobody uses, and finds memory without end.
    black_box(&mut reserve)
        .try_reserve_exact(bytes)
        .map_err(|_| MemoryError { needed: bytes as u64, limit: getrlimit(Resource::As).current })?;
    black_box(&reserve);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_is_refused() {
        expect(0).expect("nothing");
        expect(1 << 20).expect("a little");
        let error = expect(1 << 60).expect_err("an exbibyte");
        assert!(error.to_string().contains("1152921504606.8 MB"), "{error}");
    }
}

//! Memory that is seen to be there before it is needed: a process whose allocator finds none is ended by it at once, in the middle
//! of whatever it does.
//!
//! What a limit of the process refuses (`RLIMIT_AS`, of ulimit(1) `-v`) is found out so, and what the kernel refuses to promise
//! (`vm.overcommit_memory=2`). A limit of a control group is not: it ends processes when they use what they were promised.

use crate::error::Error;
use rustix::process::{Resource, getrlimit};
use std::hint::black_box;

/// Octets of a thread: its stack as the standard library makes it, and what it allocates first.
pub const THREAD: usize = (2 << 20) + (128 << 10);
/// Octets of a worker of [`crate::batch`]: its thread, its ring, and its buffers.
pub const WORKER: usize = THREAD + (4 << 20) + (1 << 20);

/// Octets that a process takes whose threads are those that say, write and wait, before it moves packets.
pub const BEGINNING: usize = 8 * THREAD;

/// Sees that this process can have so many octets more.
///
/// # Errors
///
/// [`Error::Memory`].
pub fn expect(octets: usize) -> Result<(), Error> {
    let mut room: Vec<u8> = Vec::new();
    // Without the box the compiler leaves out what nobody uses, and finds memory without end.
    black_box(&mut room)
        .try_reserve_exact(octets)
        .map_err(|_| Error::Memory { needed: octets as u64, limit: getrlimit(Resource::As).current })?;
    black_box(&room);
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
        assert_eq!(error.kind(), crate::error::Kind::Lacks);
    }
}

//! What the kernel demands of a process that makes interfaces and sees frames (capabilities(7)).

use rustix::thread::capabilities;

/// For TUN devices, addresses and routes; for packet sockets.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];

/// Capabilities that the calling thread lacks. One that lacks none may still be refused, where the network namespace belongs
/// to another user namespace than its own.
pub fn missing() -> Vec<&'static str> {
    // Where the kernel does not say, it will say no.
    let Ok(sets) = capabilities(None) else { return Vec::new() };
    let has = |number: u32| sets.effective.bits() & (1 << number) != 0;
    NEEDED.iter().filter(|(number, _)| !has(*number)).map(|(_, name)| *name).collect()
}

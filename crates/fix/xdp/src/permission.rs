//! Why the kernel refused something for want of permission.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::capabilities;

use crate::error::Error;
use crate::features;
use crate::layout::{CPUS, Counts};
use kernel::bpf::{Map, map_type};

/// Capabilities (capabilities(7)) that steering takes: to load programs and read counters, to attach, and, for the
/// verifier, to compare pointers.
const NEEDED: [(u32, &str); 3] = [(12, "CAP_NET_ADMIN"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];
/// Stands for all of the above but `CAP_NET_ADMIN`.
const SYS_ADMIN: u32 = 21;

/// What stands for an error number: that the process may not do it, if that is what the kernel says, and why; else
/// [`Error::System`].
pub(crate) fn refused(doing: String, source: io::Error) -> Error {
    if !matches!(source.raw_os_error(), Some(libc::EPERM | libc::EACCES)) {
        return Error::System { doing, source };
    }
    let mut missing = missing();
    if !has(SYS_ADMIN) {
        missing.push("CAP_SYS_ADMIN");
    }
    if is_in_user_namespace() {
        let doing = format!("{doing} from within a user namespace, whose capabilities do not count for it");
        return Error::NotPermitted { doing, missing };
    }
    if missing.is_empty() {
        return Error::Lacks(format!(
            "the kernel does not let this process {doing} although it has the capabilities: a seccomp filter (containers \
             have one), a security module or lockdown stands in the way"
        ));
    }
    Error::NotPermitted { doing, missing }
}

/// Capabilities that the calling thread lacks, of those that count everywhere.
pub(crate) fn missing() -> Vec<&'static str> {
    let is_missing = |number: u32| !has(number) && (number == 12 || !has(SYS_ADMIN));
    NEEDED.iter().filter(|&&(number, _)| is_missing(number)).map(|&(_, name)| name).collect()
}

/// Whether the calling thread sees all attachments there are: where it may look at none, it is unknown whether an
/// interface has none.
pub(crate) fn sees_all() -> bool {
    missing().is_empty() && has(SYS_ADMIN)
}

/// Capabilities that the calling thread lacks to go to the mount namespace of another process: to look at it
/// (ptrace(2)), and to enter it (setns(2)).
pub(crate) fn missing_to_move() -> Vec<&'static str> {
    let needed = [(19, "CAP_SYS_PTRACE"), (SYS_ADMIN, "CAP_SYS_ADMIN"), (18, "CAP_SYS_CHROOT")];
    needed.into_iter().filter(|&(number, _)| !has(number)).map(|(_, name)| name).collect()
}

fn has(capability: u32) -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.bits() & (1 << capability) != 0)
}

/// Makes sure that maps of the sizes to come and programs can be made, raising the limit of locked memory where the
/// kernel charges maps to it.
pub(crate) fn bpf_can_be_used() -> Result<(), Error> {
    maps_can_be_made()?;
    match features::smallest_program() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) => {
            Err(refused("load BPF programs".to_owned(), error))
        }
        // What else may be wrong shows with the real ones, which the verifier comments on.
        _ => Ok(()),
    }
}

fn maps_can_be_made() -> Result<(), Error> {
    let missing = missing();
    let doing = "make BPF maps";
    if !missing.is_empty() {
        return Err(Error::NotPermitted { doing: doing.to_owned(), missing });
    }
    let Some(error) = refused_map()? else { return Ok(()) };
    let limit = getrlimit(Resource::Memlock);
    let bytes = limit.current.filter(|_| charges_locked_memory() && !is_in_user_namespace());
    let Some(bytes) = bytes else { return Err(refused(doing.to_owned(), error)) };
    // The same number stands for want of capabilities and of memory. Capabilities are there.
    let unlimited = Rlimit { current: None, maximum: None };
    let to_maximum = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let raised = setrlimit(Resource::Memlock, unlimited).or_else(|first| {
        // Without CAP_SYS_RESOURCE the hard limit stays; it may suffice.
        if limit.maximum == limit.current { Err(first) } else { setrlimit(Resource::Memlock, to_maximum) }
    });
    match (refused_map()?, raised) {
        (None, _) => Ok(()),
        (Some(_), Err(source)) => Err(Error::Lacks(format!(
            "the kernel refuses memory for maps although the process has the capabilities: its limit of locked memory is \
             {bytes} bytes and cannot be raised ({source}); `ulimit -l unlimited` before the command raises it, in a \
             systemd unit LimitMEMLOCK=infinity"
        ))),
        (Some(error), Ok(())) => Err(refused(doing.to_owned(), error)),
    }
}

/// Whether this kernel charges maps to `RLIMIT_MEMLOCK`, as all did before 5.11. The version decides, since nothing
/// but a refusal shows it, and filters of containers refuse with the same number.
fn charges_locked_memory() -> bool {
    is_before_5_11(&rustix::system::uname().release().to_string_lossy())
}

fn is_before_5_11(release: &str) -> bool {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit()).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < (5, 11),
        _ => false,
    }
}

/// Tries to make maps as large as those to come; `Some`: they are refused for want of permission or memory.
fn refused_map() -> Result<Option<io::Error>, Error> {
    let counts = size_of::<Counts>() as u32;
    let tried = Map::create(map_type::PERCPU_ARRAY, counts, 1, "rxlane_probe")
        .and_then(|_| Map::create(map_type::ARRAY, 16, CPUS as u32, "rxlane_probe"));
    match tried {
        Ok(_) => Ok(None),
        Err(error) => match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Ok(Some(error)),
            Some(libc::ENOSYS) => Err(Error::Lacks(
                "this kernel has no bpf(2): it takes CONFIG_BPF_SYSCALL, which kernels of distributions have"
                    .to_owned(),
            )),
            _ => Err(Error::system("make a BPF map")(error)),
        },
    }
}

/// Whether this process is in a user namespace below the first, whose capabilities do not count for bpf(2): the first
/// maps all users onto themselves (user_namespaces(7)).
fn is_in_user_namespace() -> bool {
    let Ok(map) = std::fs::read_to_string("/proc/self/uid_map") else { return false };
    let mut fields = map.split_whitespace();
    (fields.next(), fields.next(), fields.next()) != (Some("0"), Some("0"), Some("4294967295"))
}

#[cfg(test)]
mod tests {
    use super::is_before_5_11;

    #[test]
    fn kernels_that_charge_locked_memory_are_known_by_their_release() {
        for release in ["5.10.0-28-amd64", "4.19.0", "5.9.16-200.fc32.x86_64"] {
            assert!(is_before_5_11(release), "{release}");
        }
        for release in ["5.11.0", "6.1.0-18-amd64", "6.18.44-fc-v669", "10.0", "strange"] {
            assert!(!is_before_5_11(release), "{release}");
        }
    }
}

//! Loading the programs, with the maps they share, by aya.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::{Map as AyaMap, MapError};
use aya::programs::{ProgramError, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;
use crate::layout::map;
use crate::permission::refused;
use crate::pins::Folder;
use kernel::bpf::{self, Map};

const SETTINGS: &str = "SETTINGS";

/// Loads a program that steers, with its settings and so many places for CPUs. Its maps are pinned in the folder.
pub(crate) fn steering(
    name: &'static str,
    object: &[u8],
    settings: &[u8],
    cpus: u32,
    folder: &Folder,
) -> Result<OwnedFd, Error> {
    let mut loader = EbpfLoader::new();
    loader.override_global(SETTINGS, settings, true).map_max_entries(map::CPUS, cpus);
    load(name, object, &mut loader, &[map::BUCKETS, map::CPUS, map::COUNTS, map::ARRIVALS], folder)
}

/// Loads a program; its maps are pinned in the folder while they are made.
pub(crate) fn load<'l>(
    name: &'static str,
    object: &[u8],
    loader: &mut EbpfLoader<'l>,
    maps: &[&'l str],
    folder: &Folder,
) -> Result<OwnedFd, Error> {
    // No program reads the kernel's types.
    loader.btf(None);
    for map in maps {
        let path = folder.kernel_path(map).map_err(|source| refused("name pins".to_owned(), source))?;
        loader.map_pin_path(map, std::path::PathBuf::from(path));
    }
    let mut loaded = loader.load(object).map_err(|error| not_loaded(name, error))?;
    load_program(name, &mut loaded)
}

pub(crate) fn load_program(name: &'static str, loaded: &mut Ebpf) -> Result<OwnedFd, Error> {
    let defect = |problem: String| Error::Object { program: name, problem };
    let program = loaded.program_mut(name).ok_or_else(|| defect("it has no such program".to_owned()))?;
    let program: &mut Xdp = program.try_into().map_err(|error: ProgramError| defect(error.to_string()))?;
    bpf::without_signals(|| program.load()).map_err(|error| match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            rejected(name, io_error, &verifier_log.to_string())
        }
        other => defect(other.to_string()),
    })?;
    let fd = program.fd().map_err(|error| defect(error.to_string()))?;
    fd.as_fd().try_clone_to_owned().map_err(Error::system("copy a file descriptor"))
}

/// Takes a map out of what was loaded.
pub(crate) fn take<T: TryFrom<AyaMap, Error = MapError>>(
    ebpf: &mut Ebpf,
    program: &'static str,
    name: &str,
) -> Result<T, Error> {
    let defect = |problem| Error::Object { program, problem };
    let taken = ebpf.take_map(name).ok_or_else(|| defect(format!("it has no map {name}")))?;
    T::try_from(taken).map_err(|error| defect(format!("{name}: {error}")))
}

/// What the kernel says of a map.
pub(crate) fn map_error(doing: &str, error: MapError) -> Error {
    let source = match error {
        MapError::SyscallError(call) => call.io_error,
        other => io::Error::new(io::ErrorKind::InvalidInput, other),
    };
    refused(doing.to_owned(), source)
}

/// The monotonic clock in nanoseconds.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// What the kernel's refusal of a program means: with a log it is the verifier's.
fn rejected(name: &str, error: io::Error, log: &str) -> Error {
    /// The end of the log says what is wrong; before it stands the way there.
    const LINES: usize = 12;
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return refused(format!("load the program `{name}`"), error);
    }
    let last = lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default();
    Error::Lacks(format!(
        "the kernel's verifier refused the program `{name}`; please report it with the kernel's version ({}) and these \
         lines:\n{}",
        rustix::system::uname().release().to_string_lossy(),
        last.join("\n")
    ))
}

pub(crate) fn not_loaded(name: &'static str, error: EbpfError) -> Error {
    if let EbpfError::MapError(MapError::CreateError { name: map, io_error, .. }) = error {
        return refused(format!("make the map {map}"), io_error);
    }
    match system_error(&error) {
        Some(source) => refused(format!("prepare the program `{name}` ({error})"), source),
        None => Error::Object { program: name, problem: error.to_string() },
    }
}

/// The kernel's answer somewhere below an error of aya.
fn system_error(error: &EbpfError) -> Option<io::Error> {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(number) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(io::Error::from_raw_os_error(number));
        }
        cause = error.source();
    }
    None
}

/// Values of a per-CPU map, one after the other, with space for each up to a multiple of eight bytes.
pub(crate) fn stride(map: &Map) -> usize {
    map.value_size.next_multiple_of(8)
}

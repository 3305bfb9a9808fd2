//! Loading the programs, with the maps they share, by aya.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use aya::maps::MapError;
use aya::programs::{ProgramError, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};

use crate::about::settings_to_octets;
use crate::error::Error;
use crate::layout::{Arrivals, BUCKETS, Bucket, Counts, Settings, map};
use crate::object;
use crate::permission::refused;
use crate::pins::{ARRIVE, Locked, STEER};
use crate::sys::{self, Map, map_type};

/// The name of the read-only data.
const SETTINGS: &str = "SETTINGS";

/// Octets of an entry of the map of CPUs: queue size, and the program's file descriptor or number.
pub(crate) const CPU_ENTRY: usize = 8;

/// The maps that both programs use.
#[derive(Debug)]
pub(crate) struct Maps {
    pub(crate) buckets: Map,
    pub(crate) cpus: Map,
    pub(crate) counts: Map,
    pub(crate) arrivals: Map,
}

/// Loaded programs.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) steer: OwnedFd,
    pub(crate) arrive: OwnedFd,
}

impl Maps {
    /// Takes the maps of a source, checking that they are what the layout says. `Err(Ok(…))`: what is wrong.
    pub(crate) fn from(
        mut source: impl FnMut(&'static str) -> io::Result<Option<OwnedFd>>,
    ) -> Result<Maps, Wrong> {
        let mut take = |name, kind, value_size: usize, entries: Option<usize>| {
            let fd = source(name).map_err(Wrong::Refused)?.ok_or(Wrong::Missing(name))?;
            let map = Map::of(fd).map_err(Wrong::Refused)?;
            let fits = entries.is_none_or(|entries| map.entries as usize == entries);
            let is_right = map.kind == kind && map.value_size == value_size && fits;
            if is_right { Ok(map) } else { Err(Wrong::Layout(name)) }
        };
        Ok(Maps {
            buckets: take(map::BUCKETS, map_type::ARRAY, size_of::<Bucket>(), Some(BUCKETS))?,
            cpus: take(map::CPUS, map_type::CPUMAP, CPU_ENTRY, None)?,
            counts: take(map::COUNTS, map_type::PERCPU_ARRAY, size_of::<Counts>(), Some(1))?,
            arrivals: take(map::ARRIVALS, map_type::PERCPU_ARRAY, size_of::<Arrivals>(), Some(1))?,
        })
    }
}

/// What is wrong with maps.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// There is none of this name.
    Missing(&'static str),
    /// It has another type or size.
    Layout(&'static str),
    /// The kernel does not say.
    Refused(io::Error),
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wrong::Missing(name) => write!(f, "there is no {name}"),
            Wrong::Layout(name) => write!(f, "the map {name} is none of the expected type and size"),
            Wrong::Refused(error) => write!(f, "a map cannot be opened: {error}"),
        }
    }
}

/// The objects of both programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Objects {
    pub(crate) steer: &'static [u8],
    pub(crate) arrive: &'static [u8],
}

/// Those for frames of several buffers, or those for older kernels.
pub(crate) fn objects(frags: bool) -> Objects {
    if frags {
        Objects { steer: object::STEER, arrive: object::ARRIVE }
    } else {
        Objects { steer: object::STEER_NOFRAGS, arrive: object::ARRIVE_NOFRAGS }
    }
}

/// Loads both programs. The maps are pinned in `folder` while they are made, which is how aya gives one map to two
/// objects.
pub(crate) fn load(
    objects: Objects,
    settings: &Settings,
    cpus: u32,
    folder: &Locked,
) -> Result<(Programs, Maps), Error> {
    let arrive = load_one(ARRIVE, objects.arrive, settings, cpus, folder)?;
    let steer = load_one(STEER, objects.steer, settings, cpus, folder)?;
    let maps = Maps::from(|name| folder.0.get(name)).map_err(|wrong| match wrong {
        Wrong::Refused(source) => refused("open the maps".to_owned(), source),
        _ => Error::Object { program: STEER, problem: wrong.to_string() },
    })?;
    Ok((Programs { steer, arrive }, maps))
}

fn load_one(
    name: &'static str,
    object: &[u8],
    settings: &Settings,
    cpus: u32,
    folder: &Locked,
) -> Result<OwnedFd, Error> {
    let octets = settings_to_octets(settings);
    let pins: HashMap<&str, String> = [map::BUCKETS, map::CPUS, map::COUNTS, map::ARRIVALS]
        .into_iter()
        .map(|map| Ok((map, folder.0.kernel_path(map)?)))
        .collect::<io::Result<_>>()
        .map_err(|source| refused("name pins".to_owned(), source))?;
    let mut loader = EbpfLoader::new();
    // No program reads the kernel's types.
    loader.btf(None);
    loader.override_global(SETTINGS, octets.as_slice(), true);
    loader.map_max_entries(map::CPUS, cpus);
    for (map, path) in &pins {
        loader.map_pin_path(map, std::path::Path::new(path));
    }
    let mut loaded = loader.load(object).map_err(|error| not_loaded(name, error))?;
    load_program(name, &mut loaded)
}

pub(crate) fn load_program(name: &'static str, loaded: &mut Ebpf) -> Result<OwnedFd, Error> {
    let defect = |problem: String| Error::Object { program: name, problem };
    let program = loaded.program_mut(name).ok_or_else(|| defect("it has no such program".to_owned()))?;
    let program: &mut Xdp = program.try_into().map_err(|error: ProgramError| defect(error.to_string()))?;
    sys::without_signals(|| program.load()).map_err(|error| match error {
        ProgramError::LoadError { io_error, verifier_log } => {
            rejected(name, io_error, &verifier_log.to_string())
        }
        other => defect(other.to_string()),
    })?;
    let fd = program.fd().map_err(|error| defect(error.to_string()))?;
    fd.as_fd()
        .try_clone_to_owned()
        .map_err(|source| Error::System { doing: "copy a file descriptor".to_owned(), source })
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
    Error::Verifier {
        program: name.to_owned(),
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        log: last.join("\n"),
    }
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

/// Values of a per-CPU map, one after the other, with room for each up to a multiple of eight octets.
pub(crate) fn stride(map: &Map) -> usize {
    map.value_size.next_multiple_of(8)
}

//! An envelope: room for headers on an interface without room for longer payloads.
//!
//! IEEE 802.3as calls a frame of up to 2000 octets an envelope frame, of which [`HEADER_MOST`] octets are for
//! encapsulation and the payload is as long as ever. Linux has one number for both, the MTU. Here the MTU is raised by
//! whoever calls, and `bpf/envelope.bpf.c` refuses frames whose payload behind tags and PPPoE exceeds the former MTU.
//!
//! The program sees a frame as the driver gives it. A tag that the network card took off is missing in the headers and in
//! the length alike, so the decision is the same; the frame counts as the kind that is left of it.
//!
//! It stays as the programs that steer do: see the crate's documentation. This module puts the program on and takes it off;
//! the MTU is none of its business.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::SystemTime;

use aya::EbpfLoader;

use crate::attach::{create_link, is_free};
use crate::attachment::{Loaded, damaged, folder_of, remove_all};
use crate::envelope_layout::{COUNTS, Counts, Kind, LIMIT, PLACES};
use crate::error::Error;
use crate::family::Family;
use crate::foreign::since;
use crate::interface::{Interface, Mode};
use crate::kernel::kernel;
use crate::load::{load_program, not_loaded, stride};
use crate::object;
use crate::permission::refused;
use crate::pins::{self, ABOUT, Folder, LINK, Locked};
use crate::sys::{self, Map, map_type};

/// Least octets of encapsulation: one tag.
pub const HEADER_LEAST: u32 = 4;
/// Most octets of encapsulation (IEEE 802.3as: frames of 2000 octets, 1500 of payload, 18 of MAC header and FCS).
pub const HEADER_MOST: u32 = 482;

/// Version of everything that is pinned. Goes up with any change of it.
const VERSION: u32 = 1;
/// The pin of the program, and its name.
const PROGRAM: &str = "envelope";
/// Octets of the record [`ABOUT`]: version, frags, payload, header, index.
const ABOUT_SIZE: usize = 20;

/// What [`attach`] is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where.
    pub interface: Interface,
    /// Run by whom. Never changed silently: what does not work in this mode is an error.
    pub mode: Mode,
    /// Octets of payload that a frame may have: the MTU without the envelope.
    pub payload: u32,
    /// Octets for headers, [`HEADER_LEAST`] to [`HEADER_MOST`]: noted in the pins, for whoever raises the MTU.
    pub header: u32,
}

/// An envelope on an interface, as any process sees it through its pins. It stays when this is dropped and when the process
/// ends.
#[derive(Debug)]
pub struct Envelope {
    interface: Interface,
    folder: Folder,
    about: About,
    counts: Map,
    program: Loaded,
    since: SystemTime,
}

/// Frames since the program was attached, summed over the CPUs that received them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Those that went on to the stack, in the order of [`Kind::ALL`].
    pub passed: [u64; Kind::ALL.len()],
    /// Those that were dropped, in the order of [`Kind::ALL`].
    pub refused: [u64; Kind::ALL.len()],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct About {
    frags: bool,
    payload: u32,
    header: u32,
    /// Of the interface, where it was attached.
    index: u32,
}

/// Puts the program on the interface. From the moment at which it is there, longer payloads are refused.
///
/// In the order of [`crate::attach()`]: the link is made last, so that a process that is killed leaves a whole envelope, or
/// an interface without a program and pins that the next one clears.
///
/// # Errors
///
/// [`Error`]; nothing is left behind.
pub fn attach(plan: &Plan) -> Result<Envelope, Error> {
    check(plan)?;
    let frags = kernel().frags != Some(false);
    let locked = pins::create(Family::Envelope, &plan.interface)?;
    locked.empty()?;
    if let Err(error) = build(plan, frags, &locked) {
        let _ = locked.remove();
        return Err(error);
    }
    let envelope = locked.unlock().and_then(|folder| Envelope::of(plan.interface.clone(), folder));
    envelope.inspect_err(|_| drop(Envelope::remove(&plan.interface)))
}

/// What [`attach`] would find in its way, without changing anything: the driver's refusal shows only when it is asked to
/// attach.
///
/// # Errors
///
/// As [`attach`].
pub fn check(plan: &Plan) -> Result<(), Error> {
    if !(HEADER_LEAST..=HEADER_MOST).contains(&plan.header) {
        let problem = format!("{} octets of headers: there are {HEADER_LEAST} to {HEADER_MOST}", plan.header);
        return Err(Error::Plan(problem));
    }
    is_free(&plan.interface)
}

fn build(plan: &Plan, frags: bool, locked: &Locked) -> Result<(), Error> {
    let folder = &locked.0;
    let program = load(plan.payload, frags, folder)?;
    let about = About { frags, payload: plan.payload, header: plan.header, index: plan.interface.index };
    let record = Map::create(map_type::ARRAY, ABOUT_SIZE as u32, 1, ABOUT)
        .and_then(|map| map.update(0, &about.to_octets()).map(|()| map))
        .map_err(|source| refused(format!("make the map {ABOUT}"), source))?;
    folder.pin(record.fd(), ABOUT)?;
    folder.pin(program.as_fd(), PROGRAM)?;
    // From here to the pin, the program is on the interface only as long as this process lives.
    let link = create_link(&plan.interface, plan.mode, program.as_fd())?;
    folder.pin(link.as_fd(), LINK)
}

/// Loads the program; its map is pinned in the folder.
fn load(limit: u32, frags: bool, folder: &Folder) -> Result<OwnedFd, Error> {
    let octets = if frags { object::ENVELOPE } else { object::ENVELOPE_NOFRAGS };
    let path = folder.kernel_path(COUNTS).map_err(|source| refused("name pins".to_owned(), source))?;
    let mut loader = EbpfLoader::new();
    // No program reads the kernel's types.
    loader.btf(None);
    loader.override_global(LIMIT, &limit, true);
    loader.map_pin_path(COUNTS, std::path::Path::new(&path));
    let mut loaded = loader.load(octets).map_err(|error| not_loaded(PROGRAM, error))?;
    load_program(PROGRAM, &mut loaded)
}

impl About {
    fn to_octets(self) -> Vec<u8> {
        let About { frags, payload, header, index } = self;
        let words = [VERSION, u32::from(frags), payload, header, index];
        words.into_iter().flat_map(u32::to_ne_bytes).collect()
    }

    /// Reads what [`About::to_octets`] made; else the version that is there.
    fn from_octets(octets: &[u8]) -> Result<About, u32> {
        let mut words = octets.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes));
        let mut word = || words.next();
        match word() {
            Some(VERSION) => {}
            other => return Err(other.unwrap_or_default()),
        }
        let mut rest =
            || Some(About { frags: word()? != 0, payload: word()?, header: word()?, index: word()? });
        rest().ok_or(VERSION)
    }
}

impl Envelope {
    /// The envelope on an interface, found by its program and therefore also after it was renamed; `None`: it has none.
    ///
    /// # Errors
    ///
    /// As those of [`Attachment::open`](crate::Attachment::open).
    pub fn open(interface: &Interface) -> Result<Option<Envelope>, Error> {
        let link = interface.link()?;
        let Some(xdp) = link.xdp else { return Ok(None) };
        let Some(folder) = folder_of(Family::Envelope, &xdp, &link.name)? else { return Ok(None) };
        let interface = Interface { name: link.name, ..interface.clone() };
        Envelope::of(interface, folder).map(Some)
    }

    fn of(interface: Interface, folder: Folder) -> Result<Envelope, Error> {
        let unreadable =
            |source: io::Error| refused(format!("open the pins of {}", folder.interface), source);
        let take = |name: &str| {
            let pinned = folder.get(name).map_err(unreadable)?;
            pinned.ok_or_else(|| damaged(&folder, format!("there is no {name}")))
        };
        let about = Map::of(take(ABOUT)?).and_then(|map| map.lookup(0)).map_err(unreadable)?;
        let about = match About::from_octets(&about.unwrap_or_default()) {
            Ok(about) => about,
            Err(VERSION) => return Err(damaged(&folder, format!("{ABOUT} is not {ABOUT_SIZE} octets long"))),
            Err(found) => {
                let interface = folder.interface.clone();
                return Err(Error::OtherVersion { interface, found, known: VERSION, folder: folder.path() });
            }
        };
        let counts = Map::of(take(COUNTS)?).map_err(unreadable)?;
        if (counts.kind, counts.value_size) != (map_type::PERCPU_ARRAY, size_of::<Counts>()) {
            let problem = format!("the map {COUNTS} is none of the expected type and size");
            return Err(damaged(&folder, problem));
        }
        let program = sys::program_info(take(PROGRAM)?.as_fd()).map_err(unreadable)?;
        let since = since(program.loaded_ns);
        let program = Loaded { name: program.name, id: program.id, tag: program.tag };
        Ok(Envelope { interface, folder, about, counts, program, since })
    }

    /// Takes off whatever envelope is on or remains of the interface, a damaged one and what a killed process left
    /// included. `false`: there was nothing.
    ///
    /// # Errors
    ///
    /// As those of [`Attachment::remove`](crate::Attachment::remove).
    pub fn remove(interface: &Interface) -> Result<bool, Error> {
        let mut folders = Vec::new();
        if let Some(xdp) = interface.link()?.xdp {
            folders.extend(folder_of(Family::Envelope, &xdp, &interface.name)?);
        }
        folders.extend(pins::leftovers(Family::Envelope, interface)?);
        remove_all(folders)
    }

    /// The interface, by the name that it had when this was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The name that the interface had when the program was attached, which its pins bear.
    pub fn attached_as(&self) -> &str {
        &self.folder.interface
    }

    /// Where the interface was when the program was attached: the inode of the network namespace, and the index there.
    pub fn attached_at(&self) -> (u64, u32) {
        (self.folder.namespace, self.about.index)
    }

    /// How the program is run, from what the kernel says of the interface.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it is gone; [`Error::Damaged`] where the program is no longer on it.
    pub fn mode(&self) -> Result<Mode, Error> {
        let xdp = self.interface.link()?.xdp.filter(|xdp| xdp.has(self.program.id));
        match xdp {
            Some(xdp) if xdp.native == Some(self.program.id) => Ok(Mode::Native),
            Some(xdp) if xdp.generic == Some(self.program.id) => Ok(Mode::Generic),
            _ => Err(damaged(&self.folder, "the program is no longer on the interface".to_owned())),
        }
    }

    /// Octets of payload that a frame may have: the MTU without the envelope.
    pub fn payload(&self) -> u32 {
        self.about.payload
    }

    /// Octets for headers: what the MTU is to be raised by.
    pub fn header(&self) -> u32 {
        self.about.header
    }

    /// Whether the program takes frames in several buffers. `false` only where the kernel is older than 5.18.
    pub fn frags(&self) -> bool {
        self.about.frags
    }

    /// The program.
    pub fn program(&self) -> &Loaded {
        &self.program
    }

    /// When it was loaded, which is when it was attached.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// What was counted so far.
    ///
    /// # Errors
    ///
    /// [`Error::System`].
    pub fn counts(&self) -> Result<Counted, Error> {
        let read = self.counts.lookup(0);
        let octets = read
            .map_err(|source| refused(format!("read the map {COUNTS} of {}", self.interface.name), source))?;
        let mut counted = Counted::default();
        for one in octets.unwrap_or_default().chunks_exact(stride(&self.counts)) {
            let (passed, refused) = one.split_at_checked(8 * PLACES).unwrap_or_default();
            add(&mut counted.passed, passed);
            add(&mut counted.refused, refused);
        }
        Ok(counted)
    }
}

fn add(sums: &mut [u64], octets: &[u8]) {
    for (sum, word) in sums.iter_mut().zip(octets.chunks_exact(8)) {
        *sum = sum.wrapping_add(word.try_into().map_or(0, u64::from_ne_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;

    #[test]
    fn a_record_is_read_as_it_was_written_and_no_other() {
        let about = About { frags: true, payload: 1500, header: 8, index: 7 };
        let octets = about.to_octets();
        assert_eq!((octets.len(), About::from_octets(&octets)), (ABOUT_SIZE, Ok(about)));
        for end in 0..octets.len() {
            assert!(About::from_octets(&octets[..end]).is_err());
        }
        assert_eq!(About::from_octets(&[9, 0, 0, 0]), Err(u32::from_ne_bytes([9, 0, 0, 0])));
    }

    /// No kernel here is old enough to want it; that it loads, passes the verifier and can be attached is seen here.
    #[test]
    fn the_program_for_older_kernels_is_attached() {
        let Some(()) = require("bpf", probe()) else { return };
        let namespace = Namespace::new().expect("a namespace");
        namespace.veth(&Veth { mtu: 1600, ..Veth::pair("wan0", "peer0") }).expect("a pair");
        let attached = namespace.inside(|| {
            let interface = Interface::find("wan0")?;
            let plan = Plan { interface: interface.clone(), mode: Mode::Native, payload: 1500, header: 8 };
            let locked = pins::create(Family::Envelope, &interface)?;
            build(&plan, false, &locked)?;
            Envelope::of(interface, locked.unlock()?)
        });
        let envelope = attached.expect("attached");
        namespace.send("peer0", [vec![0; 60], vec![0; 1514], vec![0; 1515]]).expect("sent");
        let counted = namespace.inside(|| {
            std::thread::sleep(std::time::Duration::from_millis(200));
            let found = (envelope.frags(), envelope.mode()?, envelope.counts()?);
            assert!(Envelope::remove(envelope.interface())?);
            Ok::<_, Error>(found)
        });
        let (frags, mode, counted) = counted.expect("attached");
        assert_eq!((frags, mode), (false, Mode::Native));
        assert_eq!((counted.passed, counted.refused), ([2, 0, 0], [1, 0, 0]));
    }
}

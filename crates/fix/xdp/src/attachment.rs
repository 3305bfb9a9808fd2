//! Programs on an interface, of either family: put on it, found by any process through their pins, and taken off.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::SystemTime;

use crate::bpffs;
use crate::error::Error;
use crate::family::Family;
use crate::foreign::since;
use crate::interface::{Interface, Mode, namespace};
use crate::link::create_link;
use crate::permission::{bpf_can_be_used, refused, sees_all};
use crate::pins::{self, Folder, LINK, Locked, RECORD};
use kernel::bpf::{self, Map, map_type};
use kernel::netlink::Xdp;

/// Programs of a family on an interface. They stay when this is dropped and when the process ends.
#[derive(Debug)]
pub struct Attachment<P> {
    pub(crate) interface: Interface,
    pub(crate) folder: Folder,
    pub(crate) link: OwnedFd,
    program: Loaded,
    since: SystemTime,
    frags: bool,
    pub(crate) parts: P,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    pub name: String,
    pub id: u32,
    /// The hash of its instructions, as `bpftool prog` prints it.
    pub tag: [u8; 8],
}

/// What a family has pinned: its maps, and what it recorded of itself.
pub trait Parts: Sized {
    const FAMILY: Family;
    /// The program on the interface: its name, and that of its pin.
    const PROGRAM: &'static str;
    /// Version of everything that is pinned: names and layouts of maps, the record. Goes up with any change of them.
    const VERSION: u32 = 1;

    /// Opens the maps of a folder. `record`: what [`Plan::load`] recorded. `None`: it is none of this version.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`], or the kernel's refusal.
    fn open(folder: &Folder, record: &[u8]) -> Result<Option<Self>, Error>;
}

/// What is to be put on an interface.
pub trait Plan {
    type Parts: Parts;

    fn interface(&self) -> &Interface;

    /// Run by whom. Never changed silently: what does not work in this mode is an error.
    fn mode(&self) -> Mode;

    /// Whether it can be carried out on this machine, as far as that can be known without the kernel's bpf(2).
    fn check(&self) -> Result<(), Error>;

    /// Whether the kernel takes the programs for frames of several buffers.
    fn frags(&self) -> Result<bool, Error>;

    /// Loads the programs, fills the maps, and pins all of them. Gives the program for the interface, and what to record.
    fn load(&self, frags: bool, folder: &Folder) -> Result<(OwnedFd, Vec<u8>), Error>;
}

/// Attaches programs.
///
/// Order: checks; lock; leftovers of a killed process cleared; programs loaded; maps filled; maps and programs pinned;
/// link made and pinned, which is the last step. So no frame meets a half-filled map, and a process that is killed at
/// any moment leaves a complete attachment or an interface without a program (and pins that the next `attach`,
/// `Attachment::remove` or [`clear_dead`](crate::clear_dead) clears).
///
/// Frames lost: none by this crate; a driver that resets its rings for XDP loses what they hold.
///
/// The kernel's own preconditions are met where that changes nothing that lasts: the limit of locked memory is raised
/// for this process (only where the kernel wants it, before 5.11), and a BPF file system is mounted on `/sys/fs/bpf`
/// where there is none, in the mount namespace that outlives this process.
///
/// # Errors
///
/// Any of [`Error`]; nothing is left behind.
pub fn attach<T: Plan>(plan: &T) -> Result<Attachment<T::Parts>, Error> {
    let frags = possible(plan)?;
    let interface = plan.interface();
    let locked = pins::create(T::Parts::FAMILY, interface)?;
    // Under the lock and before anything of ours is in it: what is there, a killed process left.
    locked.empty()?;
    // Of two errors the first says more than that of cleaning up behind it.
    if let Err(error) = build(plan, frags, &locked) {
        let _ = locked.remove();
        return Err(error);
    }
    let attachment = locked.unlock().and_then(|folder| Attachment::of(interface.clone(), folder));
    attachment.inspect_err(|_| drop(Attachment::<T::Parts>::remove(interface)))
}

/// What [`attach`] would find in its way, without changing anything: the driver's own refusal shows only when it has
/// to attach it, the verifier's only when programs are loaded.
pub fn check<T: Plan>(plan: &T) -> Result<(), Error> {
    possible(plan).map(drop)
}

fn possible<T: Plan>(plan: &T) -> Result<bool, Error> {
    plan.check()?;
    let interface = plan.interface();
    if interface.namespace != namespace()? {
        let problem = format!("{} is in another network namespace than this thread", interface.name);
        return Err(Error::Plan(problem));
    }
    // Removed, it says so.
    interface.link()?;
    bpf_can_be_used()?;
    bpffs::can_be_used()?;
    interface.is_free()?;
    plan.frags()
}

pub(crate) fn build<T: Plan>(plan: &T, frags: bool, locked: &Locked) -> Result<(), Error> {
    let folder = &locked.0;
    let (program, record) = plan.load(frags, folder)?;
    let words = [T::Parts::VERSION.to_ne_bytes(), u32::from(frags).to_ne_bytes()].concat();
    let record = make_record(&[words, record].concat())
        .map_err(|source| refused(format!("make the map {RECORD}"), source))?;
    folder.pin(record.fd(), RECORD)?;
    folder.pin(program.as_fd(), T::Parts::PROGRAM)?;
    // From here to the pin, the program is on the interface only as long as this process lives.
    let link = create_link(plan.interface(), plan.mode(), program.as_fd())?;
    folder.pin(link.as_fd(), LINK)
}

/// What an attachment says of itself, pinned next to its maps: version, frags, what its family adds. The programs have their
/// settings in read-only data, which bpffs cannot keep under a name that libraries know; and a later process, perhaps of
/// another version, has to know whether it understands the maps before it reads them.
fn make_record(bytes: &[u8]) -> io::Result<Map> {
    let map = Map::create(map_type::ARRAY, bytes.len() as u32, 1, RECORD)?;
    map.update(0, bytes)?;
    Ok(map)
}

impl<P: Parts> Attachment<P> {
    /// The attachment on an interface; `None`: it has none of this family.
    ///
    /// Found by its program and therefore also after it was renamed.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it was removed, [`Error::NotPermitted`], [`Error::OtherVersion`], [`Error::Damaged`],
    /// [`Error::Lacks`], [`Error::System`].
    pub fn open(interface: &Interface) -> Result<Option<Attachment<P>>, Error> {
        let link = interface.link()?;
        let Some(xdp) = link.xdp else { return Ok(None) };
        let Some(folder) = folder_of(P::FAMILY, &xdp, &link.name)? else { return Ok(None) };
        let interface = Interface { name: link.name, ..interface.clone() };
        Attachment::of(interface, folder).map(Some)
    }

    /// Opens everything that is pinned in a folder.
    pub(crate) fn of(interface: Interface, folder: Folder) -> Result<Attachment<P>, Error> {
        let record = Map::of(folder.take(RECORD)?).and_then(|map| map.lookup(0));
        let record = record.map_err(|source| folder.unreadable(source))?.unwrap_or_default();
        let mut words = record.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes));
        let (version, frags) = (words.next().unwrap_or_default(), words.next().unwrap_or_default() != 0);
        if version != P::VERSION {
            let (interface, path) = (folder.interface.clone(), folder.path());
            return Err(Error::OtherVersion { interface, found: version, known: P::VERSION, folder: path });
        }
        let parts = P::open(&folder, record.get(8..).unwrap_or_default())?
            .ok_or_else(|| folder.damaged(format!("{RECORD} has {} bytes", record.len())))?;
        let (program, loaded_ns) = folder.program(P::PROGRAM)?;
        let link = folder.take(LINK)?;
        Ok(Attachment { interface, link, program, since: since(loaded_ns), frags, parts, folder })
    }

    /// Takes off whatever of the family is on or remains of the interface: a complete attachment, one of another version, a
    /// damaged one, or what a killed process left. `false`: there was nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it was removed (then [`clear_dead`](crate::clear_dead) removes its pins),
    /// [`Error::Locked`], [`Error::NotPermitted`], [`Error::Remains`], [`Error::System`].
    pub fn remove(interface: &Interface) -> Result<bool, Error> {
        let mut folders = Vec::new();
        if let Some(xdp) = interface.link()?.xdp {
            folders.extend(folder_of(P::FAMILY, &xdp, &interface.name)?);
        }
        folders.extend(pins::leftovers(P::FAMILY, interface)?);
        let mut removed = false;
        for folder in folders {
            // Removed since, somebody else has done it.
            if let Some(locked) = folder.lock()? {
                locked.remove()?;
                removed = true;
            }
        }
        Ok(removed)
    }

    /// The interface, by the name that it had when this was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The name that the interface had when it was attached, which its pins bear.
    pub fn attached_as(&self) -> &str {
        &self.folder.interface
    }

    /// The inode of the network namespace in which it was attached.
    pub fn attached_in(&self) -> u64 {
        self.folder.namespace
    }

    /// How the program is run, from what the kernel says of the interface.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it was removed; [`Error::Damaged`] where the program is no longer on it.
    pub fn mode(&self) -> Result<Mode, Error> {
        let id = self.program.id;
        match self.interface.link()?.xdp {
            Some(xdp) if xdp.native == Some(id) => Ok(Mode::Native),
            Some(xdp) if xdp.generic == Some(id) => Ok(Mode::Generic),
            _ => Err(self.folder.damaged("the program is no longer on the interface".to_owned())),
        }
    }

    /// Whether the programs are those for frames of several buffers (native mode with MTUs above about one page) and, of
    /// steering, for buckets that move. `false` only where the kernel is older than 5.19.
    pub fn frags(&self) -> bool {
        self.frags
    }

    pub fn program(&self) -> &Loaded {
        &self.program
    }

    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Where the pins are, as seen in the mount namespace that has them.
    pub fn folder(&self) -> PathBuf {
        self.folder.path()
    }

    pub(crate) fn unread(&self, map: &str, source: io::Error) -> Error {
        refused(format!("read the map {map} of {}", self.interface.name), source)
    }
}

impl Folder {
    /// What is pinned in it is not what it should be.
    pub(crate) fn damaged(&self, problem: String) -> Error {
        Error::Damaged { family: self.family, interface: self.interface.clone(), problem }
    }

    /// The kernel refused to open a pin.
    pub(crate) fn unreadable(&self, source: io::Error) -> Error {
        refused(format!("open the pins of {}", self.interface), source)
    }

    /// Opens what has to be pinned under a name.
    pub(crate) fn take(&self, name: &str) -> Result<OwnedFd, Error> {
        let pinned = self.get(name).map_err(|source| self.unreadable(source))?;
        pinned.ok_or_else(|| self.damaged(format!("there is no {name}")))
    }

    /// A pinned program, and when it was loaded, nanoseconds since boot.
    pub(crate) fn program(&self, name: &str) -> Result<(Loaded, u64), Error> {
        let info = bpf::program_info(self.take(name)?.as_fd()).map_err(|source| self.unreadable(source))?;
        Ok((Loaded { name: info.name, id: info.id, tag: info.tag }, info.loaded_ns))
    }

    pub(crate) fn map(
        &self,
        name: &str,
        kind: u32,
        value: usize,
        entries: Option<usize>,
    ) -> Result<Map, Error> {
        let map = Map::of(self.take(name)?).map_err(|source| self.unreadable(source))?;
        let fits = entries.is_none_or(|entries| map.entries as usize == entries);
        if map.kind == kind && map.value_size == value && fits {
            return Ok(map);
        }
        Err(self.damaged(format!("the map {name} is none of the expected type and size")))
    }
}

/// The folder of the program that an interface has; `None`: it is none of that family.
fn folder_of(family: Family, xdp: &Xdp, interface: &str) -> Result<Option<Folder>, Error> {
    match pins::attached_with(family, xdp)? {
        Some((folder, _)) => Ok(Some(folder)),
        None if sees_all() => Ok(None),
        // In a mount namespace of its own without the right to leave it, the process does not find what is there.
        None => {
            let doing = format!("see whose the XDP program of {interface} is");
            Err(refused(doing, io::Error::from_raw_os_error(libc::EPERM)))
        }
    }
}

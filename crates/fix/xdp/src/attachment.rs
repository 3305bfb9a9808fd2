//! Programs on an interface, as any process sees them through their pins.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::about::{About, SIZE, VERSION};
use crate::attach::bucket_to_octets;
use crate::counters::{self, Counters};
use crate::error::Error;
use crate::family::Family;
use crate::foreign::since;
use crate::interface::{Interface, Mode};
use crate::layout::{BUCKETS, Bucket, Settings, map};
use crate::load::{Maps, Wrong};
use crate::permission::{refused, sees_all};
use crate::pins::{self, ABOUT, ARRIVE, Folder, LINK, STEER};
use crate::sys::{self, Map};
use kernel::netlink::Xdp;

/// Steering programs on an interface. They stay when this is dropped and when the process ends.
#[derive(Debug)]
pub struct Attachment {
    interface: Interface,
    folder: Folder,
    link: OwnedFd,
    maps: Maps,
    about: About,
    programs: [Loaded; 2],
    since: SystemTime,
}

/// A loaded program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// The kernel's number of it.
    pub id: u32,
    /// The hash of its instructions, as `bpftool prog` prints it.
    pub tag: [u8; 8],
}

/// What [`Attachment::detach`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    /// The last counters, taken when the program was off the interface and the queues were empty or the wait for that
    /// was over.
    pub counters: Counters,
    /// Frames that were sent and not seen to arrive: they were dropped where a queue was full. (Queues are emptied to
    /// the stack by the kernel when their map goes, so none is lost by detaching.)
    pub unseen: u64,
    /// How long the queues took to fall silent.
    pub waited: Duration,
}

/// Pause between two looks at the counters of an interface that is being detached.
const LOOK: Duration = Duration::from_millis(2);
/// Without an arrival for this long, what is missing will not come: the kernel's threads that empty the queues run
/// whenever there is something in them.
const SILENCE: Duration = Duration::from_millis(100);

impl Attachment {
    /// The attachment on an interface; `None`: it is not steered.
    ///
    /// Found by its program and therefore also after it was renamed.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it is gone, [`Error::NotPermitted`], [`Error::OtherVersion`], [`Error::Damaged`],
    /// [`Error::Bpffs`], [`Error::System`].
    pub fn open(interface: &Interface) -> Result<Option<Attachment>, Error> {
        let link = interface.link()?;
        let Some(xdp) = link.xdp else { return Ok(None) };
        let Some(folder) = folder_of(Family::Steer, &xdp, &link.name)? else { return Ok(None) };
        let interface = Interface { name: link.name, ..interface.clone() };
        Attachment::of(interface, folder).map(Some)
    }

    /// Opens everything that is pinned in a folder.
    pub(crate) fn of(interface: Interface, folder: Folder) -> Result<Attachment, Error> {
        let damaged = |problem: String| damaged(&folder, problem);
        let unreadable =
            |source: io::Error| refused(format!("open the pins of {}", folder.interface), source);
        let take = |name: &str| {
            folder.get(name).map_err(unreadable)?.ok_or_else(|| damaged(format!("there is no {name}")))
        };
        let about =
            Map::of(take(ABOUT)?).and_then(|map| map.lookup(0)).map_err(unreadable)?.unwrap_or_default();
        let about = match About::from_octets(&about) {
            Ok(about) => about,
            Err(VERSION) => return Err(damaged(format!("{ABOUT} is not {SIZE} octets long"))),
            Err(found) => {
                let interface = folder.interface.clone();
                return Err(Error::OtherVersion { interface, found, known: VERSION, folder: folder.path() });
            }
        };
        let maps = Maps::from(|name| folder.get(name)).map_err(|wrong| match wrong {
            Wrong::Refused(source) => unreadable(source),
            _ => damaged(wrong.to_string()),
        })?;
        let steer = take(STEER)?;
        let steer = sys::program_info(steer.as_fd()).map_err(unreadable)?;
        let arrive = take(ARRIVE)?;
        let arrive = sys::program_info(arrive.as_fd()).map_err(unreadable)?;
        let since = since(steer.loaded_ns);
        let programs = [steer, arrive].map(|info| Loaded { name: info.name, id: info.id, tag: info.tag });
        let link = take(LINK)?;
        Ok(Attachment { interface, link, maps, about, programs, since, folder })
    }

    /// Takes off whatever of ours is on or remains of the interface: a complete attachment, one of another version, a
    /// damaged one, or what a killed process left. `false`: there was nothing.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it is gone (then [`clear_dead`](crate::clear_dead) removes its pins),
    /// [`Error::Locked`], [`Error::NotPermitted`], [`Error::Remains`], [`Error::System`].
    pub fn remove(interface: &Interface) -> Result<bool, Error> {
        let mut folders = Vec::new();
        if let Some(xdp) = interface.link()?.xdp {
            folders.extend(folder_of(Family::Steer, &xdp, &interface.name)?);
        }
        folders.extend(pins::leftovers(Family::Steer, interface)?);
        remove_all(folders)
    }

    /// The interface, by the name that it had when this was opened.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The name that the interface had when it was attached, which its pins bear.
    pub fn attached_as(&self) -> &str {
        &self.folder.interface
    }

    /// How the program is run, from what the kernel says of the interface.
    ///
    /// # Errors
    ///
    /// [`Error::NoInterface`] where it is gone; [`Error::Damaged`] where the program is no longer on it.
    pub fn mode(&self) -> Result<Mode, Error> {
        let [steer, _] = &self.programs;
        let xdp = self.interface.link()?.xdp.filter(|xdp| xdp.has(steer.id));
        match xdp {
            Some(xdp) if xdp.native == Some(steer.id) => Ok(Mode::Native),
            Some(xdp) if xdp.generic == Some(steer.id) => Ok(Mode::Generic),
            _ => Err(Error::Damaged {
                family: Family::Steer,
                interface: self.interface.name.clone(),
                problem: "the program is no longer on the interface".to_owned(),
            }),
        }
    }

    /// Whether the programs are those for frames of several buffers (native mode with MTUs above about one page) and
    /// for buckets that move. `false` only where the kernel is older than 5.19.
    pub fn frags(&self) -> bool {
        self.about.frags
    }

    /// The settings of the programs.
    pub fn settings(&self) -> &Settings {
        &self.about.settings
    }

    /// The CPU that each bucket should have, and what is known to be lost of it.
    ///
    /// # Errors
    ///
    /// [`Error::System`].
    pub fn buckets(&self) -> Result<Box<[Bucket; BUCKETS]>, Error> {
        let mut buckets = Box::new([Bucket::default(); BUCKETS]);
        for (number, bucket) in (0..).zip(buckets.iter_mut()) {
            let value =
                self.maps.buckets.lookup(number).map_err(|source| self.unread(map::BUCKETS, source))?;
            *bucket = bucket_from_octets(&value.unwrap_or_default());
        }
        Ok(buckets)
    }

    /// Writes the CPU that a bucket should have, and what is known to be lost of it; the receiving CPUs follow as the
    /// crate's documentation says. The kernel copies the entry in words of 64 bits: CPU and losses are each whole, not
    /// both at once.
    ///
    /// # Errors
    ///
    /// [`Error::Plan`]: there is no such bucket, or the CPU is no target of this attachment; [`Error::System`].
    pub fn set_bucket(&self, bucket: usize, value: Bucket) -> Result<(), Error> {
        let number = u32::try_from(bucket).ok().filter(|&number| (number as usize) < BUCKETS);
        let Some(number) = number else {
            return Err(Error::Plan(format!("there is no bucket {bucket}")));
        };
        if self.queue(value.cpu)?.is_none() {
            return Err(Error::Plan(format!("CPU {} is no target of {}", value.cpu, self.interface.name)));
        }
        let written = self.maps.buckets.update(number, &bucket_to_octets(&value));
        written.map_err(|source| refused(format!("write to the map {}", map::BUCKETS), source))
    }

    /// Frames that the queue to a CPU holds; `None`: it is no target.
    fn queue(&self, cpu: u32) -> Result<Option<u32>, Error> {
        if cpu >= self.maps.cpus.entries {
            return Ok(None);
        }
        let entry = self.maps.cpus.lookup(cpu).map_err(|source| self.unread(map::CPUS, source))?;
        Ok(entry.and_then(|entry| entry.first_chunk().copied()).map(u32::from_ne_bytes))
    }

    /// The target CPUs, and how many frames the queue to each holds.
    ///
    /// # Errors
    ///
    /// [`Error::System`].
    pub fn cpus(&self) -> Result<Vec<(u32, u32)>, Error> {
        let mut found = Vec::new();
        for cpu in 0..self.maps.cpus.entries {
            found.extend(self.queue(cpu)?.map(|queue| (cpu, queue)));
        }
        Ok(found)
    }

    /// All counters, in two system calls and one for each possible CPU.
    ///
    /// # Errors
    ///
    /// [`Error::System`].
    pub fn counts(&self) -> Result<Counters, Error> {
        let targets: Vec<u32> = self.cpus()?.into_iter().map(|(cpu, _)| cpu).collect();
        self.counts_of(&targets)
    }

    fn counts_of(&self, targets: &[u32]) -> Result<Counters, Error> {
        counters::read(&self.maps, targets).map_err(|source| self.unread(map::COUNTS, source))
    }

    fn unread(&self, map: &str, source: io::Error) -> Error {
        refused(format!("read the map {map} of {}", self.interface.name), source)
    }

    /// The programs: `steer`, then `arrive`.
    pub fn programs(&self) -> &[Loaded; 2] {
        &self.programs
    }

    /// When the programs were loaded, which is when the interface was attached.
    pub fn since(&self) -> SystemTime {
        self.since
    }

    /// Where the pins are, as seen in the mount namespace that has them.
    pub fn folder(&self) -> PathBuf {
        self.folder.path()
    }

    /// Takes the program off the interface, waits at most `wait` until the queues have fallen silent, and removes the
    /// pins. The queues empty by themselves in microseconds; the wait is for the counters.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`]: nothing was changed. [`Error::Remains`]: the program is off, but a pin could not be removed.
    pub fn detach(self, wait: Duration) -> Result<Detached, Error> {
        let targets: Vec<u32> = self.cpus()?.into_iter().map(|(cpu, _)| cpu).collect();
        let Attachment { interface, folder, link, maps, .. } = self;
        // `None`: another process has removed it before; then this finds the program off and the queues empty.
        let locked = folder.lock()?;
        let detaching = |source| refused(format!("detach from {}", interface.name), source);
        sys::link_detach(link.as_fd()).map_err(detaching)?;
        let started = Instant::now();
        let reading = |source| refused(format!("read the counters of {}", interface.name), source);
        let mut counters = counters::read(&maps, &targets).map_err(reading)?;
        let mut changed = started;
        while unseen(&counters) > 0 && started.elapsed() < wait && changed.elapsed() < SILENCE {
            thread::sleep(LOOK);
            let later = counters::read(&maps, &targets).map_err(reading)?;
            if later.arrived != counters.arrived || later.sent != counters.sent {
                changed = Instant::now();
            }
            counters = later;
        }
        let waited = started.elapsed();
        if let Some(locked) = locked {
            locked.remove()?;
        }
        Ok(Detached { unseen: unseen(&counters), counters, waited })
    }
}

/// What is pinned in a folder is not what it should be.
pub(crate) fn damaged(folder: &Folder, problem: String) -> Error {
    Error::Damaged { family: folder.family, interface: folder.interface.clone(), problem }
}

/// Takes programs off and removes their pins. `false`: there was nothing.
pub(crate) fn remove_all(folders: Vec<Folder>) -> Result<bool, Error> {
    let mut removed = false;
    for folder in folders {
        // Gone since, somebody else has removed it.
        if let Some(locked) = folder.lock()? {
            locked.remove()?;
            removed = true;
        }
    }
    Ok(removed)
}

/// The folder of the program that an interface has; `None`: it is none of that family.
pub(crate) fn folder_of(family: Family, xdp: &Xdp, interface: &str) -> Result<Option<Folder>, Error> {
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

fn unseen(counters: &Counters) -> u64 {
    let pairs = counters.sent.iter().zip(counters.arrived.iter());
    pairs.map(|(sent, arrived)| sent.saturating_sub(*arrived)).fold(0, u64::saturating_add)
}

fn bucket_from_octets(octets: &[u8]) -> Bucket {
    let word = |from: usize| {
        octets.get(from..from + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    let lost = octets.get(8..16).and_then(|lost| lost.try_into().ok()).map_or(0, u64::from_ne_bytes);
    Bucket { cpu: word(0), spare: word(4), lost }
}

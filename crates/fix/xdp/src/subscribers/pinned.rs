//! What outlives a process that is killed, so that packets go on until the next one has taken its place: the links, and of the
//! memory of the programs what that one reads.
//!
//! Each interface has its folder of pins ([`crate::pins`]). As long as a process has a program there, it holds the lock of the folder. One
//! that nobody holds is the leftover of a killed process.

use crate::dead::{clear_dead, dead};
use crate::error::Error;
use crate::family::Family;
use crate::interface::{Interface, Mode};
use crate::link::create_link;
use crate::load::now_ns;
use crate::permission::refused;
use crate::pins::{self, Folder, LINK, Locked};
use crate::subscribers_layout::{
    CONTROL_WORDS, Control, IS_THERE, Port, SESSION_WORDS, SessionLine, UPLINKS_MOST, map,
};
use kernel::bpf::{self, Map, SharedWords};
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

const FAMILY: Family = Family::Pppoe;

/// A program on an interface. It is off, and its pins are removed, when this is dropped; where the process is killed, it goes on.
#[derive(Debug)]
pub(super) struct Pinned {
    /// `None`: it is off.
    folder: Option<Locked>,
}

impl Pinned {
    /// Puts a program on an interface, in the place of one that a killed process has left there.
    pub(super) fn put(interface: &Interface, program: BorrowedFd<'_>, mode: Mode) -> Result<Pinned, Error> {
        if let Some(leftover) = leftover_on(interface)? {
            let is_same_mode = interface.link()?.xdp.is_some_and(|xdp| match mode {
                Mode::Native => xdp.native.is_some(),
                Mode::Generic => xdp.generic.is_some(),
            });
            let link = leftover.0.get(LINK).ok().flatten().filter(|_| is_same_mode);
            if link.is_some_and(|link| bpf::link_update(link.as_fd(), program).is_ok()) {
                return Ok(Pinned { folder: Some(leftover) });
            }
            leftover.remove()?;
        }
        interface.is_free()?;
        let locked = pins::create(FAMILY, interface)?;
        let made = locked
            .empty()
            .and_then(|()| create_link(interface, mode, program))
            .and_then(|link| locked.0.pin(link.as_fd(), LINK));
        match made {
            Ok(()) => Ok(Pinned { folder: Some(locked) }),
            // Of two errors the first says more than that of cleaning up behind it.
            Err(error) => {
                let _ = locked.remove();
                Err(error)
            }
        }
    }

    /// Pins a map, in the place of one of the same name.
    pub(super) fn pin(&self, map: BorrowedFd<'_>, name: &str) -> Result<(), Error> {
        self.folder.as_ref().map_or(Ok(()), |locked| locked.replace(map, name))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // What cannot be removed has no program any more, and is cleared by the next process.
        let _ = self.folder.take().map(Locked::remove);
    }
}

/// The folder of the program of a killed process on an interface.
///
/// # Errors
///
/// [`Error::Attached`]: the process lives.
fn leftover_on(interface: &Interface) -> Result<Option<Locked>, Error> {
    let Some(xdp) = interface.link()?.xdp else { return Ok(None) };
    let Some((folder, _)) = pins::attached_with(FAMILY, &xdp)? else { return Ok(None) };
    let attached = folder.interface.clone();
    match folder.lock() {
        Err(Error::Locked { .. }) => {
            Err(Error::Attached { family: FAMILY, interface: interface.name.clone(), attached })
        }
        locked => locked,
    }
}

/// The leftover of a process that was killed: its programs, which forward until [`HEARTBEAT_MOST_NS`] after its last heartbeat, and what
/// they have counted.
///
/// [`HEARTBEAT_MOST_NS`]: crate::subscribers_layout::HEARTBEAT_MOST_NS
#[derive(Debug)]
pub struct Leftover {
    lines: Interface,
    sessions: SharedWords,
    control: SharedWords,
}

impl Leftover {
    /// That of the process which served an interface of the calling thread's network namespace. `None`: there is none, or of another
    /// version of the program, or this process may not see it, or the other one lives.
    pub fn by(lines: &Interface) -> Option<Leftover> {
        let folders = pins::folders(FAMILY).ok()?;
        let is_its = |folder: &Folder| {
            folder.namespace == lines.namespace
                && (folder.interface == lines.name || interface_of(folder) == Some(lines.index))
        };
        let folder = folders.into_iter().find(is_its).filter(Folder::share)?;
        let sessions = words(&folder, map::SESSIONS, size_of::<SessionLine>()).ok()??;
        let control = words(&folder, map::CONTROL, size_of::<Control>()).ok()??;
        (control.words().len() == CONTROL_WORDS).then(|| Leftover { lines: lines.clone(), sessions, control })
    }

    fn control(&self, offset: usize) -> Option<&AtomicU64> {
        self.control.words().get(offset / 8)
    }

    /// Number of the interface of all subscribers.
    pub fn interface(&self) -> u32 {
        let word = self.control(offset_of!(Control, interface));
        word.map_or(0, |word| word.load(Ordering::Relaxed) as u32)
    }

    /// It forwards on: a process is about to take its place.
    pub fn beat(&self) {
        if let Some(word) = self.control(offset_of!(Control, heartbeat_ns))
            && word.load(Ordering::Relaxed) != 0
        {
            word.store(now_ns(), Ordering::Release);
        }
    }

    /// Of each session VLANs and station, as [`SessionLine`] has them, and what was counted of it.
    pub fn counted(&self) -> impl Iterator<Item = ([u64; 2], [u64; 4])> + '_ {
        let lines = self.sessions.words().as_chunks::<SESSION_WORDS>().0.iter();
        lines.filter_map(|[state, vlans, station, _, counts @ ..]| {
            let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
            let is_there = read(state) & IS_THERE != 0;
            let counts = counts.first_chunk::<4>()?;
            is_there.then(|| ([read(vlans), read(station)], counts.each_ref().map(read)))
        })
    }

    /// Takes the programs off that nobody has taken the place of, and removes all pins.
    pub fn clear(self) {
        let uplinks = (0..UPLINKS_MOST).filter_map(|place| {
            let port = offset_of!(Control, uplinks) + place * size_of::<Port>();
            self.control(port + offset_of!(Port, interface))
        });
        let uplinks = uplinks.map(|word| word.load(Ordering::Relaxed) as u32).filter(|index| *index != 0);
        let its: Vec<u32> = uplinks.chain([self.lines.index]).collect();
        for folder in pins::folders(FAMILY).unwrap_or_default() {
            let is_its = interface_of(&folder).is_some_and(|index| its.contains(&index));
            let is_here = folder.namespace == self.lines.namespace;
            // Whoever has one in use holds its lock.
            if is_its
                && is_here
                && folder.share()
                && let Ok(Some(locked)) = folder.lock()
            {
                let _ = locked.remove();
            }
        }
        clear_all_dead();
    }
}

/// Index of the interface that has the program of a folder.
fn interface_of(folder: &Folder) -> Option<u32> {
    folder.link().ok().flatten().map(|link| link.interface)
}

/// Removes the pins of interfaces that were removed.
pub(super) fn clear_all_dead() {
    for dead in dead(FAMILY).unwrap_or_default() {
        let _ = clear_dead(&dead);
    }
}

/// The memory of a pinned array; `None`: there is none, or its values have another size.
fn words(folder: &Folder, name: &str, value_size: usize) -> Result<Option<SharedWords>, Error> {
    let open = || -> io::Result<Option<SharedWords>> {
        let Some(map) = folder.get(name)?.map(Map::of).transpose()? else { return Ok(None) };
        if map.value_size != value_size {
            return Ok(None);
        }
        SharedWords::of(map.fd(), map.entries as usize * value_size / 8).map(Some)
    };
    open().map_err(|source| refused(format!("open the pin {}", folder.path().join(name).display()), source))
}

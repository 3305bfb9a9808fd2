//! The programs of a concentrator: packets of its subscribers go from the interface with their lines to an uplink, and back,
//! without the kernel's stack.
//!
//! `bpf/subscribers.h` says what happens to a packet. The sessions are memory that the programs and the caller share
//! ([`Programs::sessions`], as [`SessionLine`](crate::subscribers_layout::SessionLine)), and so is the index of IPv4 ([`Programs::index`]).
//! [`Owners`] has which prefixes there are, and whose those of IPv6 are.
//! The programs are off the interfaces when [`Attached`] is dropped. Where the process is killed, they forward on, until the next one
//! takes their place ([`Leftover`]) or [`HEARTBEAT_MOST_NS`](crate::subscribers_layout::HEARTBEAT_MOST_NS) have passed.
//!
//! # Order of writing
//!
//! A session before its addresses, and the way back in the reverse order. An address whose session is removed leads to a place
//! with another generation, or none, and its packets are left to the caller.

mod owners;
mod pinned;

pub use owners::Owners;
pub use pinned::Leftover;

use crate::error::Error;
use crate::features::forwarding_is_possible;
use crate::interface::{Interface, Mode, namespace};
use crate::load::{load_program, map_error, not_loaded, now_ns, take};
use crate::object;
use crate::permission::refused;
use crate::subscribers_layout::{
    CONTROL_WORDS, Control, Pass, Port, SESSION_WORDS, SubscriberCounts, UPLINKS_MOST, map,
};
use aya::maps::{DevMap, DevMapHash, Map, MapData, PerCpuArray};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use kernel::bpf::SharedWords;
use pinned::{Pinned, clear_all_dead};
use std::fmt;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use wire::ethernet::MacAddress;

const FROM_LINES: &str = "from_lines";
const FROM_UPLINK: &str = "from_uplink";
/// `BPF_NOEXIST` and `BPF_EXIST` of bpf(2) are not used.
const ANY: u64 = 0;

/// An interface that gets a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub interface: Interface,
    pub station: MacAddress,
    /// Whether it is one end of a veth pair: checksums of frames from the other end may be left to a device.
    pub is_virtual: bool,
}

/// Which way packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    FromSubscribers,
    ToSubscribers,
}

/// What the programs did one way since they were loaded, summed over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Packets forwarded.
    pub frames: u64,
    /// Bytes of their frames on the line.
    pub bytes: u64,
    /// Packets dropped by the rate of their session.
    pub limited: u64,
    /// Frames left to the kernel and the caller, in the order of [`Pass::ALL`].
    pub passed: [u64; Pass::ALL.len()],
}

/// The programs, loaded, with their maps.
pub struct Programs {
    sessions: Arc<SharedWords>,
    index: Arc<SharedWords>,
    control: Arc<SharedWords>,
    /// The maps of sessions and control, to be pinned.
    memory: [(OwnedFd, &'static str); 2],
    lines: DevMap<MapData>,
    uplinks: DevMapHash<MapData>,
    counts: PerCpuArray<MapData, [u8; size_of::<SubscriberCounts>()]>,
    from_lines: OwnedFd,
    from_uplink: OwnedFd,
    /// Holds the programs for [`Programs::run`].
    ebpf: Ebpf,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Programs")
    }
}

/// The programs are on their interfaces until this is dropped.
#[derive(Debug)]
pub struct Attached {
    _programs: Vec<Pinned>,
}

impl Programs {
    /// Loads the programs, with space for so many sessions, prefixes of IPv6, and places in the index of IPv4, a power of two. Nothing is forwarded before the first
    /// [`beat`](Programs::beat). Linux 5.12.
    ///
    /// # Errors
    ///
    /// [`Error::NotPermitted`], [`Error::Lacks`], [`Error::System`] (memory), [`Error::Object`].
    pub fn load(sessions: u32, prefixes: u32, places: u32) -> Result<(Programs, Owners), Error> {
        forwarding_is_possible()?;
        let mut loader = EbpfLoader::new();
        // The programs do not read the kernel's types.
        loader.btf(None);
        loader.map_max_entries(map::SESSIONS, sessions);
        loader.map_max_entries(map::OWNERS_IPV6, prefixes);
        loader.map_max_entries(map::INDEX_IPV4, places);
        let mut ebpf = loader.load(object::subscribers()).map_err(|error| not_loaded(FROM_LINES, error))?;
        let from_lines = load_program(FROM_LINES, &mut ebpf)?;
        let from_uplink = load_program(FROM_UPLINK, &mut ebpf)?;
        let (control, control_map) = shared(&mut ebpf, map::CONTROL, CONTROL_WORDS)?;
        let (words, session_map) = shared(&mut ebpf, map::SESSIONS, sessions as usize * SESSION_WORDS)?;
        let control = Arc::new(control);
        let owners = Owners::new(take(&mut ebpf, FROM_LINES, map::OWNERS_IPV6)?, Arc::clone(&control));
        let programs = Programs {
            sessions: Arc::new(words),
            index: Arc::new(shared(&mut ebpf, map::INDEX_IPV4, places as usize)?.0),
            control,
            memory: [(session_map, map::SESSIONS), (control_map, map::CONTROL)],
            lines: take(&mut ebpf, FROM_LINES, map::LINES)?,
            uplinks: take(&mut ebpf, FROM_LINES, map::UPLINKS)?,
            counts: take(&mut ebpf, FROM_LINES, map::FORWARDED)?,
            from_lines,
            from_uplink,
            ebpf,
        };
        Ok((programs, owners))
    }

    /// The sessions: `SESSION_WORDS` words each.
    pub fn sessions(&self) -> Arc<SharedWords> {
        Arc::clone(&self.sessions)
    }

    /// The index of prefixes of IPv4: a word each ([`map::INDEX_IPV4`]).
    pub fn index(&self) -> Arc<SharedWords> {
        Arc::clone(&self.index)
    }

    /// By what the caller hashes prefixes of IPv4 into the index.
    pub fn set_seed(&self, seed: [u64; 2]) {
        let [one, other] = seed;
        let mask = (self.index.words().len() as u64).saturating_sub(1);
        self.write(offset_of!(Control, seed), &[one, other, mask]);
    }

    /// The interface of all subscribers, from which packets seem to come that they send.
    pub fn set_interface(&self, index: u32) {
        self.write(offset_of!(Control, interface), &[index.into()]);
    }

    /// The longest frame that the interface with the lines sends, bytes without FCS.
    pub fn set_longest(&self, bytes: u32) {
        self.write(offset_of!(Control, longest), &[bytes.into()]);
    }

    /// The interface with the lines, by its number and its MAC address now.
    pub fn set_lines(&self, lines: &Place) {
        self.write(offset_of!(Control, lines), &port(lines).words());
    }

    /// The uplinks, as many as [`UPLINKS_MOST`], by their MAC addresses now.
    pub fn set_uplinks(&self, uplinks: &[Place]) {
        let of = |place| uplinks.get(place).map(port).unwrap_or_default();
        let words: [[u64; 2]; UPLINKS_MOST] = std::array::from_fn(|place| of(place).words());
        self.write(offset_of!(Control, uplinks), words.as_flattened());
    }

    /// Puts the programs on interfaces of the calling thread's network namespace, in the place of those that a killed process has left
    /// there.
    ///
    /// # Errors
    ///
    /// [`Error::Attached`] and [`Error::Foreign`] where one has a program already; [`Error::NoInterface`],
    /// [`Error::NotPermitted`], [`Error::Lacks`] in the words of the driver, [`Error::Plan`] in another namespace.
    pub fn attach(&mut self, lines: &Place, uplinks: &[Place], mode: Mode) -> Result<Attached, Error> {
        self.set_lines(lines);
        self.set_uplinks(uplinks);
        self.set_targets(lines, uplinks)?;
        clear_all_dead();
        let mut programs = Vec::new();
        let all = std::iter::once((lines, &self.from_lines));
        for (place, program) in all.chain(uplinks.iter().map(|uplink| (uplink, &self.from_uplink))) {
            let interface = &place.interface;
            if interface.namespace != namespace()? {
                let problem = format!("{} is in another network namespace than this thread", interface.name);
                return Err(Error::Plan(problem));
            }
            let pinned = Pinned::put(interface, program.as_fd(), mode)?;
            if programs.is_empty() {
                self.memory.iter().try_for_each(|(map, name)| pinned.pin(map.as_fd(), name))?;
            }
            programs.push(pinned);
        }
        Ok(Attached { _programs: programs })
    }

    /// Where frames may leave.
    fn set_targets(&mut self, lines: &Place, uplinks: &[Place]) -> Result<(), Error> {
        let failed = |error: aya::maps::xdp::XdpMapError| match error {
            aya::maps::xdp::XdpMapError::MapError(error) => map_error("set an interface", error),
            other => Error::Object { program: FROM_LINES, problem: other.to_string() },
        };
        self.lines.set(0, lines.interface.index, None, ANY).map_err(failed)?;
        for uplink in uplinks {
            let index = uplink.interface.index;
            self.uplinks.insert(index, index, None, ANY).map_err(failed)?;
        }
        Ok(())
    }

    /// The daemon lives now. Due well within [`HEARTBEAT_MOST_NS`](crate::subscribers_layout::HEARTBEAT_MOST_NS).
    pub fn beat(&self) {
        self.write(offset_of!(Control, heartbeat_ns), &[now_ns()]);
    }

    /// Nothing is forwarded until the next [`beat`](Programs::beat).
    pub fn pause(&self) {
        self.write(offset_of!(Control, heartbeat_ns), &[0]);
    }

    fn write(&self, offset: usize, values: &[u64]) {
        let words = self.control.words().get(offset / 8..).unwrap_or_default();
        for (word, value) in words.iter().zip(values) {
            word.store(*value, Ordering::Release);
        }
    }

    /// What the programs did, from subscribers and to them.
    pub fn counts(&self) -> Result<[WayCounts; 2], Error> {
        let mut both = [WayCounts::default(); 2];
        for (way, counts) in (0..).zip(&mut both) {
            let values = self.counts.get(&way, ANY).map_err(|error| map_error("read the counters", error))?;
            for value in values.iter() {
                let mut words = value.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
                let mut add = |sum: &mut u64| *sum = sum.wrapping_add(words.next().unwrap_or_default());
                add(&mut counts.frames);
                add(&mut counts.bytes);
                add(&mut counts.limited);
                // There is none of number 0.
                add(&mut 0);
                counts.passed.iter_mut().for_each(add);
            }
        }
        Ok(both)
    }

    /// Runs a program on a frame (`BPF_PROG_TEST_RUN`) that arrives by an interface of the calling thread's network namespace:
    /// the action (`enum xdp_action`), and the frame as it leaves. For tests: nothing is sent.
    ///
    /// # Errors
    ///
    /// [`Error::System`], `EINVAL` for a frame below 14 bytes or above about 3,500.
    #[doc(hidden)]
    pub fn run(&self, way: Way, frame: &[u8], interface: u32) -> Result<(u32, Vec<u8>), Error> {
        let name = if way == Way::FromSubscribers { FROM_LINES } else { FROM_UPLINK };
        let program = self.ebpf.program(name).and_then(|program| <&Xdp>::try_from(program).ok());
        let problem = || "it is not loaded".to_owned();
        let program = program.ok_or_else(|| Error::Object { program: name, problem: problem() })?;
        // struct xdp_md: data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex.
        let context = [0, frame.len() as u32, 0, interface, 0, 0].map(u32::to_ne_bytes);
        let mut out = vec![0; frame.len() + 256];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut out);
        options.ctx_in = Some(context.as_flattened());
        let result = program.test_run(options).map_err(|error| Error::System {
            doing: format!("run the program `{name}`"),
            source: io::Error::other(error),
        })?;
        out.truncate(result.data_size_out as usize);
        Ok((result.return_value, out))
    }

    /// Frames may leave by these interfaces, as [`attach`](Programs::attach) sets them. For tests.
    #[doc(hidden)]
    pub fn place(&mut self, lines: &Place, uplinks: &[Place]) -> Result<(), Error> {
        self.set_lines(lines);
        self.set_uplinks(uplinks);
        self.set_targets(lines, uplinks)
    }
}

fn port(place: &Place) -> Port {
    Port::new(place.interface.index, place.station, place.is_virtual)
}

/// The memory of an array, and the array.
fn shared(ebpf: &mut Ebpf, name: &'static str, words: usize) -> Result<(SharedWords, OwnedFd), Error> {
    let problem = || format!("it has no array {name}");
    let Some(Map::Array(map)) = ebpf.take_map(name) else {
        return Err(Error::Object { program: FROM_LINES, problem: problem() });
    };
    let fd = map.fd().as_fd();
    let words =
        SharedWords::of(fd, words).map_err(|source| refused(format!("share the map {name}"), source))?;
    Ok((words, fd.try_clone_to_owned().map_err(Error::system("copy a file descriptor"))?))
}

//! An envelope: room for headers on an interface without room for longer payloads.
//!
//! IEEE 802.3as calls a frame of up to 2000 bytes an envelope frame, of which [`HEADER_MOST`] bytes are for
//! encapsulation and the payload is as long as ever. Linux has one number for both, the MTU. Here the MTU is raised by
//! whoever calls, and `bpf/envelope.bpf.c` refuses frames whose payload behind tags and PPPoE exceeds the former MTU.
//!
//! The program sees a frame as the driver gives it. A tag that the NIC took off is missing in the headers and in
//! the length alike, so the decision is the same; the frame counts as the kind that is left of it.
//!
//! This module puts the program on and takes it off; the MTU is none of its business.

use std::os::fd::OwnedFd;

use aya::EbpfLoader;

use crate::attachment::{Attachment, Parts};
use crate::envelope_layout::{COUNTS, Counts, Kind, LIMIT, PLACES};
use crate::error::Error;
use crate::family::Family;
use crate::features::kernel;
use crate::interface::{Interface, Mode};
use crate::load::{load, stride};
use crate::object;
use crate::pins::Folder;
use kernel::bpf::{Map, map_type};

pub use crate::attachment::{attach, check};

/// Least bytes of encapsulation: one tag.
pub const HEADER_LEAST: u32 = 4;
/// Most bytes of encapsulation (IEEE 802.3as: frames of 2000 bytes, 1500 of payload, 18 of MAC header and FCS).
pub const HEADER_MOST: u32 = 482;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub interface: Interface,
    /// Run by whom. Never changed silently: what does not work in this mode is an error.
    pub mode: Mode,
    /// Bytes of payload that a frame may have: the MTU without the envelope.
    pub payload: u32,
    /// Bytes for headers, [`HEADER_LEAST`] to [`HEADER_MOST`]: recorded in the pins, for whoever raises the MTU.
    pub header: u32,
}

/// An envelope on an interface, as any process sees it through its pins.
pub type Envelope = Attachment<Limit>;

#[derive(Debug)]
pub struct Limit {
    counts: Map,
    payload: u32,
    header: u32,
    /// Of the interface, where it was attached.
    index: u32,
}

/// Frames since the program was attached, summed over the CPUs that received them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Those that went on to the stack, in the order of [`Kind::ALL`].
    pub passed: [u64; Kind::ALL.len()],
    /// Those that were dropped, in the order of [`Kind::ALL`].
    pub refused: [u64; Kind::ALL.len()],
}

impl crate::attachment::Plan for Plan {
    type Parts = Limit;

    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn mode(&self) -> Mode {
        self.mode
    }

    fn check(&self) -> Result<(), Error> {
        if (HEADER_LEAST..=HEADER_MOST).contains(&self.header) {
            return Ok(());
        }
        let problem = format!("{} bytes of headers: there are {HEADER_LEAST} to {HEADER_MOST}", self.header);
        Err(Error::Plan(problem))
    }

    fn frags(&self) -> Result<bool, Error> {
        Ok(kernel().frags != Some(false))
    }

    fn load(&self, frags: bool, folder: &Folder) -> Result<(OwnedFd, Vec<u8>), Error> {
        let object = if frags { object::envelope() } else { object::envelope_nofrags() };
        let mut loader = EbpfLoader::new();
        loader.override_global(LIMIT, &self.payload, true);
        let program = load(Limit::PROGRAM, object, &mut loader, &[COUNTS], folder)?;
        let record = [self.payload, self.header, self.interface.index];
        let record = record.into_iter().flat_map(u32::to_ne_bytes).collect();
        Ok((program, record))
    }
}

impl Parts for Limit {
    const FAMILY: Family = Family::Envelope;
    const PROGRAM: &'static str = "envelope";

    fn open(folder: &Folder, record: &[u8]) -> Result<Option<Limit>, Error> {
        let words: Vec<u32> = record
            .chunks_exact(4)
            .filter_map(|word| Some(u32::from_ne_bytes(word.try_into().ok()?)))
            .collect();
        let [payload, header, index] = words[..] else { return Ok(None) };
        let counts = folder.map(COUNTS, map_type::PERCPU_ARRAY, size_of::<Counts>(), None)?;
        Ok(Some(Limit { counts, payload, header, index }))
    }
}

impl Attachment<Limit> {
    /// Where the interface was when the program was attached: the inode of the network namespace, and the index there.
    pub fn attached_at(&self) -> (u64, u32) {
        (self.attached_in(), self.parts.index)
    }

    /// Bytes of payload that a frame may have: the MTU without the envelope.
    pub fn payload(&self) -> u32 {
        self.parts.payload
    }

    /// Bytes for headers: what the MTU is to be raised by.
    pub fn header(&self) -> u32 {
        self.parts.header
    }

    pub fn counts(&self) -> Result<Counted, Error> {
        let counts = &self.parts.counts;
        let bytes = counts.lookup(0).map_err(|source| self.unread(COUNTS, source))?;
        let mut counted = Counted::default();
        for one in bytes.unwrap_or_default().chunks_exact(stride(counts)) {
            let (passed, refused) = one.split_at_checked(8 * PLACES).unwrap_or_default();
            add(&mut counted.passed, passed);
            add(&mut counted.refused, refused);
        }
        Ok(counted)
    }
}

fn add(sums: &mut [u64], bytes: &[u8]) {
    for (sum, word) in sums.iter_mut().zip(bytes.chunks_exact(8)) {
        *sum = sum.wrapping_add(word.try_into().map_or(0, u64::from_ne_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attachment::build;
    use crate::pins;
    use testkit::netns::{Namespace, Veth, probe};
    use testkit::require;

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
        assert_eq!((envelope.payload(), envelope.header()), (1500, 8));
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

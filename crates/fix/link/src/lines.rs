//! One line or many: what stands around the packets of a data path, and whose they are.

use crate::datapath::Line;
use crate::dropped::Dropped;
use crate::framing::{Form, Framing};
use crate::mss::Clamp;
use offload::{NetHeader, Prefix};
use std::fmt;
use std::ops::Range;
use wire::ethernet;

/// What a data path asks about each frame and each packet. A link has one [`Framing`] for all of them, which costs nothing
/// to find; a concentrator looks a session up. What has a default is that of a link, which has no owners to account for.
pub trait Lines: fmt::Debug + Send + Sized + 'static {
    /// Whose a frame or packet is.
    type Owner: Copy + Default + fmt::Debug + Send;

    fn single(&self) -> Option<&Framing>;

    /// What the interface carries.
    fn form(&self) -> Form;

    /// Bytes of the interface's packets or frames in front of the IP packet.
    #[inline]
    fn network_offset(&self) -> usize {
        match self.form() {
            Form::Packets => 0,
            Form::Frames => ethernet::Header::LENGTH,
        }
    }

    /// Where in a received frame, with every tag in its place, the packet or frame for the interface is, and whose it is.
    fn decapsulate(&self, frame: &mut [u8]) -> Result<(Range<usize>, Self::Owner), Dropped>;

    /// What goes in front of a packet of the interface, and whose it is. `space` is for what is not kept.
    fn outward<'p>(
        &'p self,
        packet: &[u8],
        space: &'p mut Prefix,
    ) -> Result<(&'p Prefix, Self::Owner), Dropped>;

    /// How far the segments of TCP are lowered, where `all` is what the data path does.
    #[inline]
    fn clamp(&self, all: Option<Clamp>, _owner: Self::Owner) -> Option<Clamp> {
        all
    }

    /// The longest packet that goes out to an owner, bytes, where `packet` with this header, or one of its segments, is
    /// longer than that.
    #[inline]
    fn exceeded(&self, _owner: Self::Owner, _header: &NetHeader, _packet: &[u8]) -> Option<usize> {
        None
    }

    /// Whether an IP packet of so many bytes to an owner does not exceed what may go there now. It is counted as sent then.
    #[inline]
    fn admits(&self, _owner: Self::Owner, _bytes: u64) -> bool {
        true
    }

    /// A frame of so many bytes, padding not counted, is about to go to the interface. Reported before anybody can have seen it,
    /// so that whoever has, and ends the session, finds it in the account.
    #[inline]
    fn received(&self, _owner: Self::Owner, _bytes: u64) {}

    /// So many frames of so many bytes together are about to go to the parent; reported before, as with those received.
    #[inline]
    fn sent(&self, _owner: Self::Owner, _frames: u64, _bytes: u64) {}

    /// What was reported to go to the interface, or to the parent, did not.
    #[inline]
    fn stayed(&self, _owner: Self::Owner, _is_received: bool, _frames: u64, _bytes: u64) {}

    /// So many that were received for an owner went no further; or that were to be sent.
    #[inline]
    fn dropped(&self, _owner: Self::Owner, _is_received: bool, _frames: u64) {}

    /// The longest frames that a parent of this MTU lets out, bytes without FCS.
    fn longest_frame(&self, parent_mtu: u32) -> u32;
}

impl Lines for Framing {
    type Owner = ();

    #[inline]
    fn single(&self) -> Option<&Framing> {
        Some(self)
    }

    #[inline]
    fn form(&self) -> Form {
        Framing::form(self)
    }

    #[inline]
    fn decapsulate(&self, frame: &mut [u8]) -> Result<(Range<usize>, ()), Dropped> {
        Framing::decapsulate(self, frame).map(|range| (range, ()))
    }

    #[inline]
    fn outward<'p>(&'p self, _: &[u8], _: &'p mut Prefix) -> Result<(&'p Prefix, ()), Dropped> {
        self.prefix().map(|prefix| (prefix, ())).ok_or(Dropped::TooLong)
    }

    fn longest_frame(&self, parent_mtu: u32) -> u32 {
        crate::frame_size::longest_frame(parent_mtu, self.encapsulation())
    }
}

impl<F: Lines> Line<F> {
    /// A received frame of an owner, which was about to go to the interface, does not.
    #[inline]
    pub(crate) fn count_undelivered(&self, owner: F::Owner, bytes: u64) {
        self.framing.stayed(owner, true, 1, bytes);
        self.framing.dropped(owner, true, 1);
    }
}

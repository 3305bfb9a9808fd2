//! What steering by the inner header would do: inner flow to bucket to CPU.
//!
//! 256 buckets, distributed to the CPUs in turn. The bucket of a frame is the low eight bits of a Toeplitz hash
//! over the first IP header behind all encapsulation: addresses and ports, addresses only for every
//! fragment and for packets without ports. The program that steers on a machine keys its hash at random, so
//! which CPU a flow gets differs; how evenly many flows spread does not. Frames without an IP header
//! (discovery, LCP, ARP …) stay on the CPU of the queue on which they arrived.

use rss::{HashKey, Toeplitz};
use wire::{Dissection, FlowKey, Fragment, IpVersion};

/// Buckets that flows fall into.
pub const BUCKETS: usize = 256;

/// Which fields choose a frame's bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fields {
    /// Whole packets with ports.
    AddressesAndPorts,
    /// Fragments, the first included, and packets without ports.
    Addresses,
    /// No IP header: the frame stays where it arrived.
    Local,
    /// The frame did not arrive on a network card.
    NotReceived,
}

impl Fields {
    pub fn of(dissection: &Dissection) -> Fields {
        let shape = dissection.shape();
        match dissection.flow() {
            _ if shape.is_outgoing() || shape.is_above_link() => Fields::NotReceived,
            None => Fields::Local,
            Some(flow) if flow.has_ports() && dissection.fragment() == Fragment::None => {
                Fields::AddressesAndPorts
            }
            Some(_) => Fields::Addresses,
        }
    }
}

/// The hash of a steering program.
pub(crate) struct Steering {
    toeplitz: Toeplitz,
}

impl Steering {
    pub fn new() -> Result<Steering, rss::KeyError> {
        Ok(Steering { toeplitz: Toeplitz::new(&HashKey::MICROSOFT)? })
    }

    /// The bucket, below [`BUCKETS`].
    #[inline]
    pub fn bucket(&self, fields: Fields, flow: &FlowKey) -> u8 {
        let bytes = flow.bytes();
        let hash = match (fields, flow.version()) {
            (Fields::Local | Fields::NotReceived, _) => None,
            (Fields::AddressesAndPorts, IpVersion::V4) => {
                bytes.first_chunk().map(|input| self.toeplitz.hash_12(input))
            }
            (Fields::AddressesAndPorts, IpVersion::V6) => {
                bytes.first_chunk().map(|input| self.toeplitz.hash_36(input))
            }
            (Fields::Addresses, IpVersion::V4) => {
                bytes.first_chunk().map(|input| self.toeplitz.hash_8(input))
            }
            (Fields::Addresses, IpVersion::V6) => {
                bytes.first_chunk().map(|input| self.toeplitz.hash_32(input))
            }
        };
        hash.unwrap_or(0) as u8
    }
}

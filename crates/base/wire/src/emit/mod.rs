//! Writing headers: the counterpart of the views.
//!
//! Each header has a plain representation, a struct of its fields. [`Emit::emit`] writes it, and the header's view
//! reads the same values back; where a representation has a `parse`, it is the inverse. Options, tags and the like are
//! borrowed slices, so nothing is allocated.
//!
//! # Contract
//!
//! - Nothing is written unless everything fits: an [`EmitError`] leaves the buffer as it was.
//! - Numbers that a field cannot hold, and lengths that are no whole number of the field's unit, are errors,
//!   never cut off.
//! - Lengths and next-protocol fields are the caller's: a representation can also say what is wrong, which
//!   tests need. The exceptions are the lengths of a header itself (IHL, data offset, header extension
//!   length), which follow from its options, and the IPv4 header checksum, which covers nothing else.
//! - No panic on any value of any field.
//!
//! Transport checksums are filled in afterwards, when the payload is in place: [`checksum`].

#![allow(missing_docs, reason = "a field that says no more than its name")]

#[macro_use]
mod fields;

pub mod checksum;
mod encapsulation;
mod ethernet;
mod extension;
mod ip;
mod pppoe;
mod transport;

pub use encapsulation::{Encapsulation, EncapsulationError, MAX_LABELS, MAX_TAGS, Pppoe as PppoeSession};
pub use ethernet::{Arp, Ethernet, LinuxCooked, LinuxCooked2, Llc, Mpls, Snap, VlanTag};
pub use extension::{
    Authentication, DestinationOptions, Fragment, HopByHop, Routing, home_address_option,
    jumbo_payload_option,
};
pub use ip::{Ipv4, Ipv6};
pub use pppoe::{ControlPacket, LineIdentification, Ppp, Pppoe, PppoeTag, PppoeTags};
pub use transport::{Icmp, Icmpv6, Sctp, Tcp, Udp};

use crate::error::{Field, Layer};
use core::fmt;

/// Why a header was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitError {
    /// The buffer has `available` bytes, the header needs `needed`.
    BufferShort { layer: Layer, needed: usize, available: usize },
    /// The field cannot hold `found`; `limit` is the largest value that it can.
    TooLarge { layer: Layer, field: Field, found: usize, limit: usize },
    /// A part of the header has `found` bytes, which must be a multiple of `unit` (after `besides` bytes
    /// that stand before it in the same unit).
    NotMultiple { layer: Layer, field: Field, found: usize, besides: usize, unit: usize },
}

impl core::error::Error for EmitError {}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EmitError::BufferShort { layer, needed, available } => {
                write!(f, "{} header takes {needed} bytes, the buffer has {available}", layer.name())
            }
            EmitError::TooLarge { layer, field, found, limit } => {
                write!(f, "{} {}: {found} does not fit, the largest is {limit}", layer.name(), field.name())
            }
            EmitError::NotMultiple { layer, field, found, besides, unit } => write!(
                f,
                "{} {}: {found} bytes and the {besides} before them are no multiple of {unit}",
                layer.name(),
                field.name()
            ),
        }
    }
}

/// A header that can be written.
pub trait Emit {
    /// Bytes that [`Emit::emit`] writes.
    fn length(&self) -> usize;

    /// Writes the header at the start of `buffer` and gives its length. Errors: see [`EmitError`]; the
    /// buffer is then unchanged.
    fn emit(&self, buffer: &mut [u8]) -> Result<usize, EmitError>;
}

/// Writes `headers` one behind the other and gives their length together. On an error the headers before the
/// one that failed have been written.
pub fn headers(headers: &[&dyn Emit], buffer: &mut [u8]) -> Result<usize, EmitError> {
    let mut at = 0;
    for header in headers {
        at += header.emit(buffer.get_mut(at..).unwrap_or_default())?;
    }
    Ok(at)
}

/// The first `length` bytes of `buffer` as a place to write a header.
fn place(layer: Layer, length: usize, buffer: &mut [u8]) -> Result<Bytes<'_>, EmitError> {
    let available = buffer.len();
    match buffer.get_mut(..length) {
        Some(bytes) => Ok(Bytes { rest: bytes, length }),
        None => Err(EmitError::BufferShort { layer, needed: length, available }),
    }
}

/// Checks that `found` is at most `limit`.
fn fits(layer: Layer, field: Field, found: usize, limit: usize) -> Result<(), EmitError> {
    if found <= limit { Ok(()) } else { Err(EmitError::TooLarge { layer, field, found, limit }) }
}

/// Checks that `besides + found` is a multiple of `unit`.
fn multiple(layer: Layer, field: Field, found: usize, besides: usize, unit: usize) -> Result<(), EmitError> {
    if (besides + found).is_multiple_of(unit) {
        return Ok(());
    }
    Err(EmitError::NotMultiple { layer, field, found, besides, unit })
}

/// Bytes being filled from the front. [`place`] made room for all of them, so a value for which no room is
/// left cannot occur; it would be left out.
struct Bytes<'b> {
    rest: &'b mut [u8],
    length: usize,
}

impl<'b> Bytes<'b> {
    #[inline]
    fn put(mut self, bytes: &[u8]) -> Bytes<'b> {
        if let Some((head, rest)) = self.rest.split_at_mut_checked(bytes.len()) {
            head.copy_from_slice(bytes);
            self.rest = rest;
        } else {
            self.rest = &mut [];
        }
        self
    }

    #[inline]
    fn u16(self, value: u16) -> Bytes<'b> {
        self.put(&value.to_be_bytes())
    }

    #[inline]
    fn u32(self, value: u32) -> Bytes<'b> {
        self.put(&value.to_be_bytes())
    }

    #[inline]
    fn length(self) -> usize {
        debug_assert!(self.rest.is_empty(), "a header wrote fewer bytes than its length");
        self.length
    }
}

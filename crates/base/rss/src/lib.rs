//! Receive-side scaling as a network controller does it: which fields of a packet are hashed, with which
//! key, into which value, and which receive queue that value selects.
//!
//! # What a packet goes through
//!
//! 1. [`HashUnit::choose`]: the packet's headers and the enabled [`HashTypes`] select one [`HashType`].
//! 2. [`HashUnit::hash`]: the fields of that type, in network order, go through the [`Toeplitz`] hash under
//!    the [`HashKey`].
//! 3. [`IndirectionTable::lookup`]: the low bits of the hash select an entry, the entry names a queue.
//!    A packet that fits no type has hash 0 and goes where [`Unmatched`] says.
//!
//! ```
//! use rxlane_rss::{HashKey, HashType, HashTypes, HashUnit, IndirectionTable, Packet, TableShape};
//! use wire::flow::FlowKey;
//!
//! let types = HashTypes::from_iter([HashType::Ipv4, HashType::TcpIpv4]);
//! let unit = HashUnit::new(&HashKey::MICROSOFT, types)?;
//! let flow = FlowKey::with_ports([66, 9, 149, 187].into(), 2794, [161, 142, 100, 80].into(), 1766, 6);
//! let (hash_type, hash) = unit.hash(&Packet::of(flow.ok_or("addresses of two versions")?));
//! assert_eq!((hash_type, hash), (HashType::TcpIpv4, 0x51cc_c178));
//!
//! // An I210: 128 entries of 3 bits.
//! let table = IndirectionTable::equal(TableShape::new(128, 3)?, 4, 0)?;
//! assert_eq!(table.lookup(hash), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contract
//!
//! No input makes this crate panic, and none gives a wrong hash: an input longer than the key can cover is
//! an error. Every way of computing the hash ([`Path`]) gives the same value; the scalar reference in
//! [`HashKey::hash`] decides, and property tests hold the others to it. Addresses and ports are taken in
//! network byte order, hash values are `u32` as drivers print them, queue numbers start at 0.
//!
//! # Specifications
//!
//! - Microsoft, "RSS Hashing Functions", "RSS Hashing Types" and "Verifying the RSS Hash Calculation"
//!   (Windows driver documentation): the Toeplitz hash, the hash types, which type wins, the Ex types.
//! - Intel Ethernet Controller I210 datasheet, section 7.1.2.10: UDP types, order of preference,
//!   indirection table, what happens to packets that cannot be decoded.
//!   The 82576, I350 and 82599 datasheets say the same of their hash.
//! - ethtool(8) and the Linux `ETHTOOL_SRXFH`/`ETHTOOL_SRSSH` interface: letters of [`HashFields`],
//!   names of [`FlowType`], how `equal` and `weight` fill a table.
//!
//! # What it deliberately does not do
//!
//! It parses no packets (crate `wire` does) and knows no devices (crate `nic` does): a profile names types,
//! a rule, a table shape. XOR and CRC32 hash functions, symmetric-XOR input transformations, Flow Director,
//! GTP fields and the IPv6 flow label are not modelled; field letters for them are errors, not guesses.
//!
//! `unsafe` lives in the module `simd` alone.

#![deny(unsafe_code)]

#[macro_use]
mod named;

mod error;
mod ethtool;
mod fields;
mod key;
mod simd;
mod table;
mod tables;
mod toeplitz;
mod types;
mod unit;

pub use error::{
    FieldsError, InputTooLong, KeyError, PathUnavailable, PrepareError, PrintedTableError, TableError,
    TypesError, UnitError,
};
pub use ethtool::PrintedTable;
pub use fields::{FlowHash, FlowType, HashFields};
pub use key::{HashKey, Symmetry};
pub use table::{IndirectionTable, TableShape, Unmatched};
pub use toeplitz::{Path, Toeplitz};
pub use types::{HashType, HashTypes};
pub use unit::{HashInput, HashUnit, Packet};

//! Headers of the receive path: Ethernet, VLAN stack, LLC, MPLS, PPPoE, PPP, IPv4, IPv6 and extensions,
//! TCP, UDP, SCTP, ICMP.
//!
//! ```
//! use rxlane_wire::emit::{Encapsulation, Ipv4, Udp, headers};
//! use rxlane_wire::ethernet::MacAddress;
//! use rxlane_wire::{IpProtocol, IpVersion, Link, dissect};
//!
//! let encapsulation: Encapsulation = "q:35,pppoe:7".parse()?;
//! let (to, from) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
//! let ip = Ipv4::new(IpProtocol::UDP, [192, 0, 2, 1].into(), [192, 0, 2, 2].into(), 28);
//! let udp = Udp { source_port: 5000, destination_port: 53, length: 8, checksum: 0 };
//! let mut frame = [0; 60];
//! let at = encapsulation.emit(to, from, IpVersion::V4, 28, &mut frame)?;
//! headers(&[&ip, &udp], &mut frame[at..])?;
//!
//! let seen = dissect(Link::Ethernet, &frame, frame.len());
//! assert_eq!(seen.error(), None);
//! assert_eq!(seen.flow().and_then(|flow| flow.destination_port()), Some(53));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Contract
//!
//! - [`dissect()`] reads a frame from its first byte to its transport header in one pass and gives a flow
//!   key; it allocates nothing and validates every length on the way.
//! - One module a header: a view over its bytes with every field, and the header's rules as `check`
//!   functions with the section of the specification that they follow. An [`Error`] says which header,
//!   which field, which rule.
//! - [`emit`] writes the same headers from plain representations; the views read back what they were.
//! - **No panic on any input.** Every access to bytes is checked (`clippy::indexing_slicing`, `unwrap_used`
//!   and `panic` are denied). What voids it: nothing that a caller can pass; arithmetic on offsets assumes
//!   frames below 4 GiB.
//! - `no_std`, no allocation, no `unsafe`.
//!
//! # Specifications
//!
//! IEEE 802.3-2022, 802.2, 802.1Q-2022 (802.1ad included); RFC 1042 (SNAP), 2516, 4638 and TR-101 (PPPoE),
//! 1661 and 1662 (PPP), 3032 (MPLS), 791 (IPv4), 8200 (IPv6), 2675 (jumbograms), 6275 (home address, type 2
//! routing), 8754 (segment routing), 4302 (AH), 9293 (TCP), 768 (UDP), 9260 (SCTP), 792 and 4443 (ICMP).
//!
//! # Deliberately not here
//!
//! Reassembly; checksum verification (crate `offload`); what stands inside ESP, GRE, or behind an MPLS
//! pseudowire; 802.11; anything above the transport header.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

#[macro_use]
mod tables;

pub mod cooked;
pub mod dissect;
pub mod emit;
pub mod error;
pub mod ethernet;
pub mod extension;
pub mod flow;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod mpls;
pub mod ppp;
pub mod pppoe;
pub mod shape;
pub mod stack;
pub mod transport;
pub mod vlan;
pub mod vlan_pattern;
pub mod vlans;

pub use dissect::{Dissection, Link, dissect, flow_key};
pub use error::{Class, Error, Reason};
pub use flow::{FlowKey, IpVersion};
pub use ip::{Fragment, IpProtocol};
pub use shape::{Extensions, Shape};
pub use stack::{Stack, Word};
pub use vlan_pattern::{VlanPattern, VlanPatternError};
pub use vlans::Vlans;

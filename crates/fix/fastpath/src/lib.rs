//! The fast path: packets of established connections leave from XDP, before there is a socket buffer.
//!
//! # Contract
//!
//! * The kernel stays in charge. It routes, filters, translates and counts the first packets of every connection; once conntrack
//!   says that one is established (TCP) or answered (UDP), this process queries the kernel for the routes of both directions
//!   ([`resolve`]), and writes them into the maps of the program (`xdp::forward`). What the program does not know goes to the
//!   kernel, unchanged.
//! * A flow is true as long as all that it stands on is: each event of conntrack, interfaces, addresses, routes, rules, neighbours
//!   and bridges removes, rewrites or re-resolves what depends on it ([`engine`]). Where too much depends on it to be rewritten at
//!   once, a new generation has the program pass everything until it is.
//! * Program and maps live as long as this process: one that is killed takes its program off the ports with it. One that is
//!   stopped is taken for dead after two seconds, and packets go to the kernel.
//! * conntrack goes on living: active connections have their timeouts renewed, and TCP connections are marked liberal, so that
//!   packets which come back to the kernel are valid whatever their windows.
//!
//! # Which connections
//!
//! TCP and UDP that this machine forwards, over Ethernet, up to two VLAN tags, bridges, the kernel's PPPoE, and rxlane's own links
//! and sessions; IPv4 with translated addresses and without, IPv6 without. Others are left to the kernel, with an [`Obstacle`].
//!
//! # Reading on
//!
//! `running.rs` is the life of the process, `engine.rs` what it does with every event, `resolve.rs` and `topology.rs` how a
//! connection becomes frames. The program itself is in crate `xdp`, `bpf/forward.h`.

#![forbid(unsafe_code)]

pub mod bypass;
mod connection;
mod counted;
pub mod engine;
mod error;
mod flows;
mod next_hops;
mod obstacle;
mod overlay;
mod ports;
pub mod resolve;
mod running;
mod selectors;
pub mod status;
pub mod topology;

pub use counted::Removal;
pub use error::Error;
pub use obstacle::Obstacle;
pub use ports::Port;
pub use running::{Checked, Down, NAME, Request, Running, check, recover};

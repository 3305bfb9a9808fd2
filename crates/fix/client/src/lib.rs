//! The running PPPoE client: a session of a provider as a network interface of this machine, kept up until somebody asks for its
//! end.
//!
//! What is said to a concentrator is decided by crate `pppoe`, packets move as in crate `link`; here are the event loop of both,
//! and what a session has on this machine: addresses, default routes, name servers, scripts.
//!
//! * [`Connection`](connection::Connection) is a client from its start to its end. A session that ends is followed by the next, and
//!   each [`Event`](connection::Event) is reported to the caller.
//! * [`probe`] lists the concentrators that answer on a line, without a session.
//! * [`status`] is the answer to `rxlane pppoe status`, schema `rxlane.pppoe/1`.
//!
//! ```no_run
//! use link::running::Means;
//! use pppoe::client::{Config, Reconnect};
//! use pppoe::session::{self, Host, Method, Role, Timers};
//! use rxlane_client::connection::{Connection, Event, Start};
//! use rxlane_client::network::Request;
//! use service::{Instances, Kind, StateDir};
//! use std::net::Ipv4Addr;
//! use std::os::unix::net::UnixStream;
//! use std::path::Path;
//!
//! let host = Host {
//!     user: b"user@isp".to_vec(),
//!     secret: b"secret".to_vec(),
//!     methods: vec![Method::ChapMd5],
//!     ipv4: Some(Ipv4Addr::UNSPECIFIED),
//!     dns: false,
//!     ipv6: Some(0),
//! };
//! let session = session::Config { role: Role::Host(host), timers: Timers::DEFAULT };
//! let state = Path::new("/run/rxlane");
//! let request = Request {
//!     name: "ppp0".to_owned(),
//!     parent: "eth0".to_owned(),
//!     means: Means::Simple,
//!     mss_clamp: true,
//!     default_route: Some(0),
//!     dns: false,
//!     up_script: None,
//!     down_script: None,
//!     state: state.to_owned(),
//! };
//! let start = Start {
//!     request,
//!     // The provider's VLAN.
//!     tags: "q:7".parse()?,
//!     has_mtu: false,
//!     user: Some("user@isp".to_owned()),
//!     config: Config { discovery: Default::default(), session: session.into(), reconnect: Reconnect::DEFAULT },
//! };
//! // A byte written to `ask` ends the client, with a Terminate-Request and a PADT.
//! let (stop, ask) = UnixStream::pair()?;
//! let sockets = Instances::new(Kind::Session, StateDir::at(state))?;
//! let over = Connection::begin(start, &sockets, stop, ask)?.run(&mut |event| {
//!     if let Event::Open(status) = event {
//!         println!("{} has {:?}", status.interface, status.local);
//!     }
//! })?;
//! println!("{over:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Deliberately not here
//!
//! Router Advertisements and DHCPv6-PD on the session: programs of their own, which the interface serves as any other. RFC 2516,
//! RFC 1661 and those above them: crate `pppoe`.

#![allow(missing_docs, reason = "a name and its type say most; comments say the rest")]
#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic))]

pub mod connection;
mod error;
mod name_servers;
pub mod network;
pub mod probe;
mod process_group;
pub mod resolver;
pub mod script;
pub mod status;

pub use error::Error;

//! The lab: real drivers in a virtual machine. A guest with Debian's stock kernel and emulated network adapters boots
//! in seconds, takes frames, runs commands, and hands back what happened as data.
//!
//! ```no_run
//! use rxlane_lab::{Lab, Model, Nic, Series, Spec};
//! use std::time::Duration;
//!
//! # fn test() -> anyhow::Result<()> {
//! let Some(lab) = Lab::require() else { return Ok(()) };
//! let guest = lab.boot(&Spec { nics: vec![Nic::new("wan", Model::Igb)], ..Spec::new(Series::V6_12) })?;
//! guest.sh("ip link set wan promisc on up")?;
//! guest.await_carrier("wan")?;
//! guest.port("wan")?.inject([[0_u8; 60]; 10], 1000)?;
//! assert_eq!(guest.await_counter("wan", "rx_packets", 10, Duration::from_secs(5))?, 10);
//! # Ok(())
//! # }
//! ```
//!
//! # Contract
//!
//! - Nothing is installed: kernels and tools are packages unpacked below [`packages::Cache`], and the guest sees the
//!   machine's own files read-only. What it writes is lost when it ends.
//! - A guest ends with its [`Guest`], with the process that booted it however that ends, and with its own kernel's
//!   panic.
//! - No port of the machine is taken: frames go over Unix sockets in a folder of each guest's own, so any number of
//!   labs run side by side.
//! - A frame that was injected has reached the adapter or is still queued before it: [`Port`] is never the place where
//!   frames are lost. The adapter drops what finds no receive descriptor, as hardware does, and counts it.
//!
//! # Where the lab differs from hardware
//!
//! - The emulated 82576 looks behind two VLAN tags in any mode; the hardware does in its double-VLAN mode only.
//! - The emulated 82576 makes fragments of one datagram where it is to make datagrams of one super-packet
//!   (`tx-udp-segmentation`).
//! - With two tags of 0x8100 in the frame, `e1000e` fills no transport checksum in (`tx`), whoever sends: the kernel's own
//!   `8021q` fails so with `txvlan off`, and works while the adapter puts the outer tag on. Whether silicon does so too is
//!   not known; the driver gives it places, not headers.
//! - The emulated adapters do not fill short frames up to 60 bytes, and count them as errors where they arrive.
//! - Instructions are counted, not cycles: a cache miss costs nothing here.
//! - Virtual CPUs share the cores of the machine, so throughput says nothing about scaling.
//!
//! # Sources
//!
//! QEMU 10's manual (`-netdev dgram`, `-virtfs`, plugin API), the kernel's `Documentation/filesystems/9p.rst` and
//! `Documentation/driver-api/early-userspace/buffer-format.rst`.

pub mod agent;
mod apt;
mod boot;
pub mod built;
pub mod bzimage;
mod cpio;
mod guest;
pub mod image;
pub mod instructions;
mod machine;
mod monitor;
pub mod packages;
mod port;
pub mod recording;
pub mod session;
pub mod transfer;

pub use agent::Output;
pub use boot::Lab;
pub use guest::Guest;
pub use image::First;
pub use machine::{Clock, Model, Nic, Spec, emulator};
pub use packages::{Extra, Series};
pub use port::Port;

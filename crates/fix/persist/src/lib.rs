//! Settings that helped, as the machine's own configuration: files that its system reads at every boot.
//!
//! # Contract
//!
//! * [`machine`](mod@machine) finds which program configures an interface at boot, and how that was seen ([`Machine`]).
//! * [`plan::linux`], [`plan::other`] and [`steering::plan`] turn settings into files. They read nothing and write nothing, so
//!   that what is printed before is what is written.
//! * Every file has a line with [`MARKER`], the command that wrote it, and the one that removes it. A file without it is not
//!   rxlane's and is never overwritten.
//! * [`Store`] writes each file as a whole, after it has recorded all of them; so what a killed process left is removed, too.
//!   A file that somebody changed since is neither overwritten nor removed.
//! * What no file of the system can express is in [`Plan::excluded`] with the reason.
//!
//! # Which file has which setting
//!
//! | in charge of the interface | setting | file |
//! | --- | --- | --- |
//! | udev of systemd | what systemd.link(5) of the installed version has an option for | `/etc/systemd/network/00-rxlane-IFACE.link` |
//! | | the rest: RETA, hash fields, RPS, interrupt affinity | a script, run by a unit that is bound to the device |
//! | NetworkManager | all | `/etc/NetworkManager/dispatcher.d/90-rxlane-IFACE` |
//! | udev without systemd | all but interrupt affinity | a script, run by a rule |
//! | OpenWrt | RPS | `uci`: `network.globals.packet_steering` |
//! | | the rest | `/etc/hotplug.d/iface/99-rxlane` |
//! | any of these | sysctls | `/etc/sysctl.d/99-rxlane.conf` |
//! | FreeBSD, NetBSD | sysctls, loader tunables, `ifconfig` | lines of `sysctl.conf`, `loader.conf`, `rc.conf` |
//!
//! # Deliberately not here
//!
//! Whether a setting helped, and what a command prints: crate `cli`.

mod file;
mod format;
mod lasting;
pub mod machine;
pub mod plan;
pub mod steering;
mod store;

pub use file::{Content, File, MARKER, Origin};
pub use lasting::{Lasting, Vector};
pub use machine::{Evidence, Identity, Interface, LinkFile, Machine, Manager, System};
pub use plan::{Excluded, Lines, Plan, Reason};
pub use store::{Checked, Error, Outcome, Removed, State, Store};

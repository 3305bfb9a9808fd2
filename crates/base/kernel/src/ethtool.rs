//! What drivers say of a network interface, by the two ways of ethtool(8): [`Generic`] (ethtool netlink, Linux 5.6 and later) and
//! [`Ioctl`], which every kernel has. Only what reads.

mod generic;
mod ioctl;
mod sys;

pub use generic::{Bit, Generic, Get, bits};
pub use ioctl::{Ioctl, StringSet, bounded, short, word, words};
pub use sys::Command;

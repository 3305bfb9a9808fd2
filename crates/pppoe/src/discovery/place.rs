//! Where a packet came in: what sessions, cookies and rates are bound to besides a MAC address.

use wire::Vlans;

/// A port and the VLAN tags on it: one line, or one that several subscribers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The caller's number of the port, that of the interface for example.
    pub port: u32,
    /// Tags, whose priority does not matter.
    pub vlans: Vlans,
}

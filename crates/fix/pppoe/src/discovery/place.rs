//! Where a packet came in: what sessions, cookies and rates are bound to besides a MAC address.

use std::fmt;
use wire::Vlans;

/// A port and the VLAN tags on it: one line, or one that several subscribers share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The caller's number of the port, that of the interface for example.
    pub port: u32,
    /// Tags, whose priority does not matter.
    pub vlans: Vlans,
}

impl fmt::Display for Place {
    /// `untagged`, or the tags; the port only where it is another than the first, since most callers have one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.port != 0 {
            write!(f, "at port {} ", self.port)?;
        }
        match self.vlans == Vlans::NONE {
            true => f.write_str("untagged"),
            false => self.vlans.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ethernet::EtherType;
    use wire::vlan::{Tag, Tci};

    #[test]
    fn a_place_is_named_by_what_distinguishes_it() {
        let tagged = Vlans::of([Tag { tpid: EtherType(0x8100), tci: Tci(35) }]).expect("one");
        for (port, vlans, text) in
            [(0, Vlans::NONE, "untagged"), (0, tagged, "q:35"), (2, Vlans::NONE, "at port 2 untagged")]
        {
            assert_eq!(Place { port, vlans }.to_string(), text);
        }
    }
}

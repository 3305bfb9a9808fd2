//! Filters for frames of PPPoE under many VLANs: programs of classic BPF, as [`crate::parent`] has one for a single line.
//!
//! Both look at tags, at the EtherType under them, at the destination, and at the protocol field of PPP; everything else is for who
//! receives.

use super::vlan_pattern::VlanPattern;
use crate::parent::filter::ppp_protocol;
use kernel::socket::filter::{Instruction, Program, TagMatch, To};
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};

/// Which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSet {
    /// Discovery, and what in a session is neither IP nor compressed.
    Control,
    /// IP in a session; and compressed protocol fields, which who receives refuses and counts.
    Data,
}

/// The program for frames to `local` on the lines of `vlans`.
pub fn program(frames: FrameSet, local: MacAddress, vlans: &VlanPattern) -> Vec<Instruction> {
    let mut program = Program::received();
    match vlans {
        VlanPattern::Any => program.any_tags(Vlans::MOST),
        VlanPattern::Stack(levels) => {
            let tags = levels.iter().map(|level| (level.tpid, level.vid));
            program.tags(&tags.collect::<Vec<TagMatch>>());
        }
    }
    program.load_behind(0);
    match frames {
        FrameSet::Control => {
            let session = program.label();
            program.equals(EtherType::PPPOE_SESSION.0, To::Label(session), To::Next);
            program.equals(EtherType::PPPOE_DISCOVERY.0, To::Next, To::Refuse);
            let broadcast = program.label();
            program.destination(local, To::Accept, To::Label(broadcast));
            program.here(broadcast);
            program.destination(MacAddress::BROADCAST, To::Accept, To::Refuse);
            program.here(session);
            program.destination(local, To::Next, To::Refuse);
            ppp_protocol(&mut program, To::Refuse, To::Refuse, To::Accept);
        }
        FrameSet::Data => {
            program.equals(EtherType::PPPOE_SESSION.0, To::Next, To::Refuse);
            program.destination(local, To::Next, To::Refuse);
            ppp_protocol(&mut program, To::Accept, To::Accept, To::Refuse);
        }
    }
    program.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_reaches() {
        for frames in [FrameSet::Control, FrameSet::Data] {
            for pattern in ["any", "none", "35", "*.*.*.*", "1.2.3.4"] {
                let program = program(frames, MacAddress([2; 6]), &pattern.parse().expect("a pattern"));
                assert!(program.len() < 250, "{pattern}: {}", program.len());
            }
        }
    }
}

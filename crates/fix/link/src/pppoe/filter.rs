//! Filters for frames of PPPoE under many VLANs: programs of classic BPF, as [`crate::parent`] has one for a single line.
//!
//! Where the EtherType is depends on the frame, so its place is kept in the index register. Both filters look at tags, at
//! the EtherType under them, at the destination, and at the protocol field of PPP; everything else is for who receives.

use super::vlan_pattern::{Level, VlanPattern};
use crate::parent::filter::{
    ALL, AND, BITS, COMPRESSED, EQUAL, LOAD_HALF, LOAD_WORD, PACKET_TYPE, RETURN, TPIDS, VID, VLAN_TAG,
    VLAN_TAG_PRESENT, VLAN_TPID,
};
use crate::parent::sys::Instruction;
use wire::Vlans;
use wire::ethernet::{EtherType, MacAddress};
use wire::ppp::PppProtocol;
use wire::vlan::TAG_LENGTH;

/// Two octets at a place counted from the index register; the register itself.
const LOAD_HALF_INDEXED: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
const SET_INDEX: u16 = (libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM) as u16;
const TO_INDEX: u16 = (libc::BPF_MISC | libc::BPF_TAX) as u16;
const FROM_INDEX: u16 = (libc::BPF_MISC | libc::BPF_TXA) as u16;
const ADD: u16 = (libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K) as u16;
const GO: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;

/// Where the EtherType is in an untagged frame, and the protocol field of PPP under it.
const ETHERTYPE: u32 = 12;
const PPP_PROTOCOL: u32 = ETHERTYPE + 2 + 6;

/// Which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Discovery, and what in a session is neither IP nor compressed.
    Control,
    /// IP in a session; and compressed protocol fields, which who receives refuses and counts.
    Data,
}

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Next,
    Accept,
    Refuse,
    Label(usize),
}

/// Instructions with jumps whose places are not known yet.
#[derive(Debug, Default)]
struct Assembly {
    steps: Vec<(u16, u32, To, To)>,
    labels: Vec<Option<usize>>,
}

/// The program for frames to `local` on the lines of `vlans`.
pub fn program(wanted: Wanted, local: MacAddress, vlans: &VlanPattern) -> Vec<Instruction> {
    let mut assembly = Assembly::default();
    assembly.load(LOAD_WORD, PACKET_TYPE);
    assembly.compare(EQUAL, libc::PACKET_OUTGOING.into(), To::Refuse, To::Next);
    match vlans {
        VlanPattern::Any => assembly.any_tags(),
        VlanPattern::Stack(levels) => assembly.tags(levels),
    }
    assembly.load(LOAD_HALF_INDEXED, ETHERTYPE);
    match wanted {
        Wanted::Control => {
            let session = assembly.label();
            assembly.compare(EQUAL, EtherType::PPPOE_SESSION.0.into(), To::Label(session), To::Next);
            assembly.compare(EQUAL, EtherType::PPPOE_DISCOVERY.0.into(), To::Next, To::Refuse);
            let broadcast = assembly.label();
            assembly.destination(local, To::Accept, To::Label(broadcast));
            assembly.here(broadcast);
            assembly.destination(MacAddress::BROADCAST, To::Accept, To::Refuse);
            assembly.here(session);
            assembly.destination(local, To::Next, To::Refuse);
            assembly.protocol(To::Refuse, To::Refuse, To::Accept);
        }
        Wanted::Data => {
            assembly.compare(EQUAL, EtherType::PPPOE_SESSION.0.into(), To::Next, To::Refuse);
            assembly.destination(local, To::Next, To::Refuse);
            assembly.protocol(To::Accept, To::Accept, To::Refuse);
        }
    }
    assembly.finish()
}

impl Assembly {
    fn load(&mut self, code: u16, k: u32) {
        self.steps.push((code, k, To::Next, To::Next));
    }

    fn compare(&mut self, code: u16, k: u32, yes: To, no: To) {
        self.steps.push((code, k, yes, no));
    }

    fn label(&mut self) -> usize {
        self.labels.push(None);
        self.labels.len() - 1
    }

    fn here(&mut self, label: usize) {
        if let Some(place) = self.labels.get_mut(label) {
            *place = Some(self.steps.len());
        }
    }

    /// Leads to `yes` where the accumulator is a TPID, on where it is not.
    fn is_tag(&mut self, yes: To) {
        for number in TPIDS {
            self.compare(EQUAL, EtherType::of_tpid_number(number).0.into(), yes, To::Next);
        }
    }

    /// Steps over whatever tags there are in the frame; who receives counts the one beside it.
    fn any_tags(&mut self) {
        self.load(SET_INDEX, 0);
        let under = self.label();
        for _ in 0..Vlans::MOST {
            let tag = self.label();
            self.load(LOAD_HALF_INDEXED, ETHERTYPE);
            self.is_tag(To::Label(tag));
            self.compare(GO, 0, To::Label(under), To::Next);
            self.here(tag);
            self.load(FROM_INDEX, 0);
            self.load(ADD, TAG_LENGTH as u32);
            self.load(TO_INDEX, 0);
        }
        self.here(under);
    }

    /// Demands these tags. The kernel took the outermost off; or it is in the frame, as are those of TPIDs that it does not
    /// know.
    fn tags(&mut self, levels: &[Level]) {
        self.load(LOAD_WORD, VLAN_TAG_PRESENT);
        let Some((outer, inner)) = levels.split_first() else {
            self.compare(EQUAL, 0, To::Next, To::Refuse);
            self.load(SET_INDEX, 0);
            return;
        };
        let (inside, under) = (self.label(), self.label());
        self.compare(EQUAL, 0, To::Label(inside), To::Next);
        if let Some(tpid) = outer.tpid {
            self.load(LOAD_WORD, VLAN_TPID);
            self.compare(EQUAL, tpid.0.into(), To::Next, To::Refuse);
        }
        if let Some(vid) = outer.vid {
            self.load(LOAD_WORD, VLAN_TAG);
            self.load(AND, VID);
            self.compare(EQUAL, vid.into(), To::Next, To::Refuse);
        }
        self.in_frame(inner);
        self.compare(GO, 0, To::Label(under), To::Next);
        self.here(inside);
        self.in_frame(levels);
        self.here(under);
    }

    /// Demands tags behind the addresses.
    fn in_frame(&mut self, levels: &[Level]) {
        let mut at = ETHERTYPE;
        for level in levels {
            self.load(LOAD_HALF, at);
            if let Some(tpid) = level.tpid {
                self.compare(EQUAL, tpid.0.into(), To::Next, To::Refuse);
            } else {
                let tag = self.label();
                self.is_tag(To::Label(tag));
                self.compare(GO, 0, To::Refuse, To::Next);
                self.here(tag);
            }
            if let Some(vid) = level.vid {
                self.load(LOAD_HALF, at + 2);
                self.load(AND, VID);
                self.compare(EQUAL, vid.into(), To::Next, To::Refuse);
            }
            at += TAG_LENGTH as u32;
        }
        self.load(SET_INDEX, at - ETHERTYPE);
    }

    fn destination(&mut self, address: MacAddress, yes: To, no: To) {
        let [a, b, c, d, e, f] = address.0;
        self.load(LOAD_WORD, 0);
        self.compare(EQUAL, u32::from_be_bytes([a, b, c, d]), To::Next, no);
        self.load(LOAD_HALF, 4);
        self.compare(EQUAL, u16::from_be_bytes([e, f]).into(), yes, no);
    }

    /// The end: by the protocol field of PPP.
    fn protocol(&mut self, ip: To, compressed: To, other: To) {
        self.load(LOAD_HALF_INDEXED, PPP_PROTOCOL);
        self.compare(EQUAL, PppProtocol::IPV4.0.into(), ip, To::Next);
        self.compare(EQUAL, PppProtocol::IPV6.0.into(), ip, To::Next);
        self.compare(BITS, COMPRESSED, compressed, other);
    }

    /// With both ends behind it. The longest program, of four tags of any TPID, is shorter than a jump reaches.
    fn finish(self) -> Vec<Instruction> {
        let count = self.steps.len();
        let place = |to: To| match to {
            To::Next => None,
            To::Accept => Some(count),
            To::Refuse => Some(count + 1),
            To::Label(label) => self.labels.get(label).copied().flatten(),
        };
        let over = |from: usize, to: To| place(to).map_or(0, |place| place.saturating_sub(from + 1));
        let resolved = |(from, step): (usize, &(u16, u32, To, To))| {
            let (code, k, yes, no) = *step;
            if code == GO {
                return Instruction { code, jt: 0, jf: 0, k: over(from, yes) as u32 };
            }
            let [jt, jf] = [yes, no].map(|to| u8::try_from(over(from, to)).unwrap_or(u8::MAX));
            Instruction { code, jt, jf, k }
        };
        let mut program: Vec<Instruction> = self.steps.iter().enumerate().map(resolved).collect();
        program.extend([ALL, 0].map(|k| Instruction { code: RETURN, jt: 0, jf: 0, k }));
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_reaches() {
        for wanted in [Wanted::Control, Wanted::Data] {
            for pattern in ["any", "none", "35", "*.*.*.*", "1.2.3.4"] {
                let program = program(wanted, MacAddress([2; 6]), &pattern.parse().expect("a pattern"));
                assert!(program.len() < 250, "{pattern}: {}", program.len());
                for (from, step) in program.iter().enumerate() {
                    let most = program.len() - from - 1;
                    assert!(usize::from(step.jt.max(step.jf)) <= most, "{pattern} {from}");
                    assert!(step.code != GO || step.k as usize <= most, "{pattern} {from}");
                }
            }
        }
    }
}

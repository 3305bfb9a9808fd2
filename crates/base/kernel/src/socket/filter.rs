//! Filters of packet sockets: programs of classic BPF (linux/filter.h, `Documentation/networking/filter.rst`).
//!
//! Where the EtherType is depends on the tags of a frame, so its place is kept in the index register: what is loaded with
//! [`Program::load_behind`] counts from it.
//!
//! ```
//! use rxlane_kernel::socket::filter::{Program, To};
//! use wire::ethernet::EtherType;
//! use wire::vlan_pattern::Level;
//!
//! let mut program = Program::received();
//! program.tags(&[Level { tpid: None, vids: Some((35, 35)) }]);
//! program.load_behind(0);
//! program.equals(EtherType::PPPOE_SESSION.0, To::Accept, To::Refuse);
//! assert!(program.finish().len() < 40);
//! ```

use wire::ethernet::{EtherType, MacAddress};
use wire::vlan::TAG_LENGTH;
use wire::vlan_pattern::Level;

/// An instruction.
pub type Instruction = libc::sock_filter;

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
/// Two bytes at a place counted from the index register; the register itself.
const LOAD_HALF_INDEXED: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_IND) as u16;
const SET_INDEX: u16 = (libc::BPF_LDX | libc::BPF_W | libc::BPF_IMM) as u16;
const TO_INDEX: u16 = (libc::BPF_MISC | libc::BPF_TAX) as u16;
const FROM_INDEX: u16 = (libc::BPF_MISC | libc::BPF_TXA) as u16;
const ADD: u16 = (libc::BPF_ALU | libc::BPF_ADD | libc::BPF_K) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const MORE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const BITS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const GO: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// linux/filter.h: `SKF_AD_OFF` and the numbers behind it: whether the frame was sent or received, and the tag that the kernel
/// took off.
const ANCILLARY: u32 = -0x1000_i32 as u32;
const PACKET_TYPE: u32 = ANCILLARY + 4;
const VLAN_TAG: u32 = ANCILLARY + 44;
const VLAN_TAG_PRESENT: u32 = ANCILLARY + 48;
const VLAN_TPID: u32 = ANCILLARY + 60;

/// Where the source address is.
const SOURCE: u32 = 6;
/// Where the EtherType is in an untagged frame.
const ETHERTYPE: u32 = 12;
/// The VLAN identifier in a TCI.
const VID: u32 = 0x0fff;
/// The five TPIDs.
const TPIDS: std::ops::RangeInclusive<u32> = 1..=5;

/// Where a jump leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// To the next instruction.
    Next,
    /// The frame is received.
    Accept,
    /// The frame is not received.
    Refuse,
    /// To a place with a [label](Program::label).
    Label(usize),
}

/// A program as it is written: instructions with jumps whose places are not known yet.
#[derive(Debug, Default)]
pub struct Program {
    steps: Vec<(u16, u32, To, To)>,
    labels: Vec<Option<usize>>,
}

/// A program that lets every frame through, or none.
pub const fn all_or_none(all: bool) -> [Instruction; 1] {
    [Instruction { code: RETURN, jt: 0, jf: 0, k: if all { u32::MAX } else { 0 } }]
}

/// A program for netlink sockets: refuses messages whose header names this port as the source (`nlmsg_pid` in `struct nlmsghdr`).
pub fn netlink_source_is_not(port: u32) -> Vec<Instruction> {
    const SOURCE: u32 = 12;
    let mut program = Program::default();
    program.push(LOAD_WORD, SOURCE);
    // A program loads in network byte order; the header is in the machine's.
    program.equals(u32::from_be_bytes(port.to_ne_bytes()), To::Refuse, To::Accept);
    program.finish()
}

impl Program {
    /// A program that refuses frames which this machine sends.
    pub fn received() -> Program {
        let mut program = Program::default();
        program.push(LOAD_WORD, PACKET_TYPE);
        program.equals(libc::PACKET_OUTGOING, To::Refuse, To::Next);
        program
    }

    /// A place to be named as [`To::Label`], which [`Program::here`] gives to it.
    pub fn label(&mut self) -> usize {
        self.labels.push(None);
        self.labels.len() - 1
    }

    /// The next instruction is the place of a label.
    pub fn here(&mut self, label: usize) {
        if let Some(place) = self.labels.get_mut(label) {
            *place = Some(self.steps.len());
        }
    }

    /// Loads two bytes so far behind the EtherType.
    pub fn load_behind(&mut self, bytes: u32) {
        self.push(LOAD_HALF_INDEXED, ETHERTYPE + bytes);
    }

    /// Compares what was loaded with this.
    pub fn equals(&mut self, value: impl Into<u32>, yes: To, no: To) {
        self.steps.push((EQUAL, value.into(), yes, no));
    }

    /// Whether what was loaded has any of these bits.
    pub fn has_bits(&mut self, bits: u32, yes: To, no: To) {
        self.steps.push((BITS, bits, yes, no));
    }

    /// Whether what was loaded is a TPID.
    pub fn is_tpid(&mut self, yes: To, no: To) {
        for number in TPIDS {
            let is_last = number == *TPIDS.end();
            self.equals(EtherType::of_tpid_number(number).0, yes, if is_last { no } else { To::Next });
        }
    }

    /// Whether the frame is for this address.
    pub fn destination(&mut self, address: MacAddress, yes: To, no: To) {
        self.address(0, address, yes, no);
    }

    /// Whether the frame is for this address, or from it.
    pub fn station(&mut self, address: MacAddress, yes: To, no: To) {
        let source = self.label();
        self.address(0, address, yes, To::Label(source));
        self.here(source);
        self.address(SOURCE, address, yes, no);
    }

    fn address(&mut self, at: u32, MacAddress([a, b, c, d, e, f]): MacAddress, yes: To, no: To) {
        self.push(LOAD_WORD, at);
        self.equals(u32::from_be_bytes([a, b, c, d]), To::Next, no);
        self.push(LOAD_HALF, at + 4);
        self.equals(u16::from_be_bytes([e, f]), yes, no);
    }

    /// Steps over whatever tags there are in the frame, `most` at most; who receives counts the one in the ancillary data.
    pub fn any_tags(&mut self, most: usize) {
        self.push(SET_INDEX, 0);
        let under = self.label();
        for _ in 0..most {
            let tag = self.label();
            self.load_behind(0);
            self.is_tpid(To::Label(tag), To::Next);
            self.go(To::Label(under));
            self.here(tag);
            self.push(FROM_INDEX, 0);
            self.push(ADD, TAG_LENGTH as u32);
            self.push(TO_INDEX, 0);
        }
        self.here(under);
    }

    /// Demands these tags, outermost first. The kernel took the outermost off; or it is in the frame, as are those of TPIDs that
    /// it does not know.
    pub fn tags(&mut self, tags: &[Level]) {
        self.push(LOAD_WORD, VLAN_TAG_PRESENT);
        let Some((outermost, inner)) = tags.split_first() else {
            self.equals(0_u32, To::Next, To::Refuse);
            self.push(SET_INDEX, 0);
            return;
        };
        let (inside, under) = (self.label(), self.label());
        self.equals(0_u32, To::Label(inside), To::Next);
        if let Some(tpid) = outermost.tpid {
            self.push(LOAD_WORD, VLAN_TPID);
            self.equals(tpid.0, To::Next, To::Refuse);
        }
        self.vid(outermost, LOAD_WORD, VLAN_TAG);
        self.in_frame(inner);
        self.go(To::Label(under));
        self.here(inside);
        self.in_frame(tags);
        self.here(under);
    }

    /// Demands tags behind the addresses.
    fn in_frame(&mut self, tags: &[Level]) {
        let mut at = ETHERTYPE;
        for level in tags {
            self.push(LOAD_HALF, at);
            match level.tpid {
                Some(tpid) => self.equals(tpid.0, To::Next, To::Refuse),
                None => {
                    let tag = self.label();
                    self.is_tpid(To::Label(tag), To::Refuse);
                    self.here(tag);
                }
            }
            self.vid(level, LOAD_HALF, at + 2);
            at += TAG_LENGTH as u32;
        }
        self.push(SET_INDEX, at - ETHERTYPE);
    }

    /// Demands the VLAN identifier of a tag, which `load` gets from there.
    fn vid(&mut self, level: &Level, load: u16, from: u32) {
        let Some((first, last)) = level.vids else { return };
        self.push(load, from);
        self.push(AND, VID);
        if first == last {
            self.equals(first, To::Next, To::Refuse);
        } else {
            self.steps.push((AT_LEAST, first.into(), To::Next, To::Refuse));
            self.steps.push((MORE, last.into(), To::Refuse, To::Next));
        }
    }

    fn push(&mut self, code: u16, value: u32) {
        self.steps.push((code, value, To::Next, To::Next));
    }

    fn go(&mut self, to: To) {
        self.steps.push((GO, 0, to, To::Next));
    }

    /// With both ends behind it. A comparison reaches 255 instructions: a program is shorter, eight tags take fewer than 100.
    pub fn finish(self) -> Vec<Instruction> {
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
        program.extend(all_or_none(true).into_iter().chain(all_or_none(false)));
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_reaches() {
        let fixed = Level { tpid: Some(EtherType::VLAN), vids: Some((7, 7)) };
        let range = Level { tpid: None, vids: Some((7, 9)) };
        for tags in [&[][..], &[Level::default(); 4], &[fixed], &[fixed; 8], &[range; 4]] {
            let mut program = Program::received();
            program.tags(tags);
            program.load_behind(0);
            program.is_tpid(To::Refuse, To::Next);
            program.destination(MacAddress([2; 6]), To::Accept, To::Refuse);
            let program = program.finish();
            assert!(program.len() < 250, "{}", program.len());
            for (from, step) in program.iter().enumerate() {
                let most = program.len() - from - 1;
                assert!(usize::from(step.jt.max(step.jf)) <= most, "{from}");
                assert!(step.code != GO || step.k as usize <= most, "{from}");
            }
        }
    }
}

//! The filter of a link's packet socket: a program of classic BPF (linux/filter.h, `Documentation/networking/filter.rst`)
//! that accepts the frames of the link.
//!
//! It looks at tags, the EtherType under them, and of PPPoE at the session and the destination address, and at the protocol of
//! PPP where the session is managed ([`Framing::managed`]). Everything else
//! is for [`Framing::decapsulate`] to refuse and to count, a frame of the session from another station among it.

use super::sys::Instruction;
use crate::framing::{Form, Framing};
use wire::ethernet::EtherType;
use wire::ppp::PppProtocol;
use wire::vlan::{TAG_LENGTH, Tag};

/// Loads: four, two octets of the frame; or what the kernel knows beside it.
pub const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub const LOAD_HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
pub const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
pub const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub const BITS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
pub const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// linux/filter.h: `SKF_AD_OFF` and the numbers behind it.
const BESIDE: u32 = -0x1000_i32 as u32;
pub const PACKET_TYPE: u32 = BESIDE + 4;
pub const VLAN_TAG: u32 = BESIDE + 44;
pub const VLAN_TAG_PRESENT: u32 = BESIDE + 48;
pub const VLAN_TPID: u32 = BESIDE + 60;

/// As many octets as there are.
pub const ALL: u32 = u32::MAX;
/// The VLAN identifier in a TCI.
pub const VID: u32 = 0x0fff;
/// Set in the first octet of a compressed PPP protocol field (RFC 1661 section 6.5).
pub const COMPRESSED: u32 = 0x0100;
pub const TPIDS: std::ops::RangeInclusive<u32> = 1..=5;

/// A step of the program.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Anything that goes on with the next.
    Do(u16, u32),
    /// Goes on if the accumulator is this, refuses the frame if not.
    Demand(u32),
    /// Refuses the frame if the accumulator is this.
    Refuse(u32),
    /// Accepts the frame if the accumulator is this.
    Accept(u32),
    /// Goes on if the accumulator has any of these bits, refuses the frame if not.
    DemandBits(u32),
}

/// A program that lets no frame through.
pub fn nothing() -> Vec<Instruction> {
    vec![instruction(RETURN, 0)]
}

pub fn program(framing: &Framing) -> Vec<Instruction> {
    let tags = framing.encapsulation().tags();
    let outgoing = [Step::Do(LOAD_WORD, PACKET_TYPE), Step::Refuse(libc::PACKET_OUTGOING.into())];
    // The kernel took the outermost tag off; or it is in the frame, as are those of TPIDs that it does not know.
    let beside = tags.split_first().map(|(outer, inner)| {
        let mut steps = vec![Step::Do(LOAD_WORD, VLAN_TPID), Step::Demand(outer.tpid.0.into())];
        steps.extend([
            Step::Do(LOAD_WORD, VLAN_TAG),
            Step::Do(AND, VID),
            Step::Demand(outer.tci.vid().into()),
        ]);
        steps.extend(in_frame(framing, inner));
        steps
    });
    let inside = in_frame(framing, tags);
    let mut program = assembled(&outgoing);
    program.push(instruction(LOAD_WORD, VLAN_TAG_PRESENT));
    let beside = beside.map_or(vec![instruction(RETURN, 0)], |steps| accepting(&steps));
    // Both parts are shorter than a jump reaches: 8 tags take 4 steps each, the rest 12.
    let over = u8::try_from(beside.len()).unwrap_or(u8::MAX);
    program.push(Instruction { code: EQUAL, jt: over, jf: 0, k: 0 });
    program.extend(beside);
    program.extend(accepting(&inside));
    program
}

/// Looks for `tags` behind the addresses, and then for what the link has under them.
fn in_frame(framing: &Framing, tags: &[Tag]) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = 12;
    for tag in tags {
        steps.extend([Step::Do(LOAD_HALF, at), Step::Demand(tag.tpid.0.into())]);
        steps.extend([Step::Do(LOAD_HALF, at + 2), Step::Do(AND, VID), Step::Demand(tag.tci.vid().into())]);
        at += TAG_LENGTH as u32;
    }
    steps.push(Step::Do(LOAD_HALF, at));
    match (framing.form(), framing.encapsulation().pppoe().and_then(|pppoe| pppoe.session)) {
        (Form::Packets, Some(session)) => {
            let [a, b, c, d, e, f] = framing.local().0;
            steps.push(Step::Demand(EtherType::PPPOE_SESSION.0.into()));
            steps.extend([Step::Do(LOAD_HALF, at + 4), Step::Demand(session.into())]);
            steps.extend([Step::Do(LOAD_WORD, 0), Step::Demand(u32::from_be_bytes([a, b, c, d]))]);
            steps.extend([Step::Do(LOAD_HALF, 4), Step::Demand(u16::from_be_bytes([e, f]).into())]);
            if framing.is_managed() {
                // A compressed protocol field is for the data path to count.
                steps.push(Step::Do(LOAD_HALF, at + 8));
                steps.extend([PppProtocol::IPV4, PppProtocol::IPV6].map(|ip| Step::Accept(ip.0.into())));
                steps.push(Step::DemandBits(COMPRESSED));
            }
        }
        // Frames with more tags are another link's.
        _ => steps.extend(TPIDS.map(|number| Step::Refuse(EtherType::of_tpid_number(number).0.into()))),
    }
    steps
}

/// The steps, and then the frame is accepted.
fn accepting(steps: &[Step]) -> Vec<Instruction> {
    let mut program = assembled(steps);
    program.push(instruction(RETURN, ALL));
    program
}

/// Each refusal returns on the spot, so that jumps go over one instruction only.
fn assembled(steps: &[Step]) -> Vec<Instruction> {
    let mut program = Vec::new();
    for step in steps {
        match *step {
            Step::Do(code, k) => program.push(instruction(code, k)),
            Step::Demand(k) => {
                program.push(Instruction { code: EQUAL, jt: 1, jf: 0, k });
                program.push(instruction(RETURN, 0));
            }
            Step::Refuse(k) => {
                program.push(Instruction { code: EQUAL, jt: 0, jf: 1, k });
                program.push(instruction(RETURN, 0));
            }
            Step::Accept(k) => {
                program.push(Instruction { code: EQUAL, jt: 0, jf: 1, k });
                program.push(instruction(RETURN, ALL));
            }
            Step::DemandBits(k) => {
                program.push(Instruction { code: BITS, jt: 1, jf: 0, k });
                program.push(instruction(RETURN, 0));
            }
        }
    }
    program
}

const fn instruction(code: u16, k: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ethernet::MacAddress;

    #[test]
    fn the_longest_program_has_jumps_that_reach() {
        let tags: Vec<String> = (1..=8).map(|vid| format!("ad:{vid}")).collect();
        for end in ["", ",pppoe:7@02:00:5e:00:00:02"] {
            let text = tags.join(",") + end;
            let encapsulation = text.parse().expect("an encapsulation");
            let framing = Framing::new(&encapsulation, MacAddress([2; 6])).expect("a link");
            let program = program(&framing);
            let jump = program.iter().position(|step| step.jt > 1).expect("the jump over a part");
            let to = jump + 1 + usize::from(program[jump].jt);
            // What stands before the part that is jumped to is the end of the other one.
            assert_eq!((program[to - 1].code, program[to - 1].k), (RETURN, ALL));
            assert!(program.len() < 200, "{}", program.len());
        }
    }
}

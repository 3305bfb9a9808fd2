//! The filter of a link's packet socket: a program of classic BPF (linux/filter.h, `Documentation/networking/filter.rst`)
//! that accepts the frames of the link.
//!
//! It looks at tags, the EtherType under them, and of PPPoE at the session and the destination address, and at the protocol of
//! PPP where the session is managed ([`Framing::managed`]). Everything else
//! is for [`Framing::decapsulate`] to refuse and to count, a frame of the session from another station among it.

use crate::framing::{Form, Framing};
use kernel::socket::filter::{Instruction, Program, To};
use wire::ethernet::EtherType;
use wire::ppp::PppProtocol;
use wire::vlan_pattern::Level;

/// Set in the first byte of a compressed PPP protocol field (RFC 1661 section 6.5).
const COMPRESSED: u32 = 0x0100;
/// Where session and protocol of PPP are, counted from the EtherType of a PPPoE frame.
const SESSION: u32 = 2 + 2;
pub(crate) const PPP_PROTOCOL: u32 = 2 + 6;

pub(crate) fn program(framing: &Framing) -> Vec<Instruction> {
    let mut program = Program::received();
    program.tags(&framing.encapsulation().tags().iter().map(|tag| Level::from(*tag)).collect::<Vec<_>>());
    program.load_behind(0);
    match (framing.form(), framing.encapsulation().pppoe().and_then(|pppoe| pppoe.session)) {
        (Form::Packets, Some(session)) => {
            program.equals(EtherType::PPPOE_SESSION.0, To::Next, To::Refuse);
            program.load_behind(SESSION);
            program.equals(session, To::Next, To::Refuse);
            let all = if framing.is_managed() { To::Next } else { To::Accept };
            program.destination(framing.local(), all, To::Refuse);
            // A compressed protocol field is for the data path to count.
            ppp_protocol(&mut program, To::Accept, To::Accept, To::Refuse);
        }
        // Frames with more tags are another link's.
        _ => program.is_tpid(To::Refuse, To::Accept),
    }
    program.finish()
}

/// The end of a program: by the protocol field of PPP.
pub(crate) fn ppp_protocol(program: &mut Program, ip: To, compressed: To, other: To) {
    program.load_behind(PPP_PROTOCOL);
    program.equals(PppProtocol::IPV4.0, ip, To::Next);
    program.equals(PppProtocol::IPV6.0, ip, To::Next);
    program.has_bits(COMPRESSED, compressed, other);
}

//! Filters for frames of PPPoE under many VLANs: programs of classic BPF, as [`crate::parent`] has one for a single line.
//!
//! Both look at tags, at the EtherType under them, at the destination, and at the protocol field of PPP; that for control packets also at
//! what makes a packet of IPv6 one of host configuration. Everything else is for who receives.

use super::control_socket::{DHCPV6_SERVER_PORT, ICMPV6_FROM_LINK, LINK_MULTICAST, ROUTER_SOLICITATION};
use crate::parent::filter::{PPP_PROTOCOL, ppp_protocol};
use kernel::socket::filter::{Instruction, Program, To};
use wire::ethernet::{EtherType, MacAddress};
use wire::ppp::PppProtocol;
use wire::{VlanPattern, Vlans};

/// Which frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSet {
    /// Discovery, and what in a session is neither IP nor compressed; and what a host requests of its router by IPv6: Router Solicitations
    /// (RFC 4861) and DHCPv6 (RFC 8415).
    Control,
    /// IP in a session; and compressed protocol fields, which who receives refuses and counts.
    Data,
}

/// The program for frames to `local` on the lines of `vlans`.
pub fn program(frames: FrameSet, local: MacAddress, vlans: &VlanPattern) -> Vec<Instruction> {
    let mut program = Program::received();
    match vlans {
        VlanPattern::Any => program.any_tags(Vlans::MOST),
        VlanPattern::Stack(_) => program.tags(&vlans.levels().collect::<Vec<_>>()),
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
            host_configuration(&mut program);
        }
        FrameSet::Data => {
            program.equals(EtherType::PPPOE_SESSION.0, To::Next, To::Refuse);
            program.destination(local, To::Next, To::Refuse);
            ppp_protocol(&mut program, To::Accept, To::Accept, To::Refuse);
        }
    }
    program.finish()
}

/// Bytes of an IPv6 packet behind the EtherType of its frame: behind the PPPoE header and the protocol field of PPP.
const IPV6: u32 = PPP_PROTOCOL + 2;
/// Next header and hop limit, destination, and what follows the header.
const NEXT_HEADER: u32 = IPV6 + 6;
const DESTINATION: u32 = IPV6 + 24;
const PAYLOAD: u32 = IPV6 + 40;

/// The end of a program: what PPP negotiates, and what a host requests of its router by IPv6.
fn host_configuration(program: &mut Program) {
    let (ipv6, solicitation) = (program.label(), program.label());
    program.load_behind(PPP_PROTOCOL);
    program.equals(PppProtocol::IPV6.0, To::Label(ipv6), To::Next);
    ppp_protocol(program, To::Refuse, To::Refuse, To::Accept);
    program.here(ipv6);
    program.load_behind(NEXT_HEADER);
    program.equals(ICMPV6_FROM_LINK, To::Label(solicitation), To::Next);
    // Whether it is UDP is for who receives: hardly anything else goes there.
    program.load_behind(DESTINATION);
    program.equals(LINK_MULTICAST, To::Next, To::Refuse);
    program.load_behind(PAYLOAD + 2);
    program.equals(DHCPV6_SERVER_PORT, To::Accept, To::Refuse);
    program.here(solicitation);
    program.load_behind(PAYLOAD);
    program.equals(ROUTER_SOLICITATION, To::Accept, To::Refuse);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_jump_reaches() {
        for frames in [FrameSet::Control, FrameSet::Data] {
            for pattern in ["any", "none", "35", "*.*.*.*", "1.2.3.4", "1-2.3-4.5-6.7-8"] {
                let program = program(frames, MacAddress([2; 6]), &pattern.parse().expect("a pattern"));
                assert!(program.len() < 250, "{pattern}: {}", program.len());
            }
        }
    }
}

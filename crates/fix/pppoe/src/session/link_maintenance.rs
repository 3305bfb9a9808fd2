//! The packets of LCP that keep a link rather than negotiate it: Protocol-Reject, Echo, Discard-Request (RFC 1661 sections 5.7
//! to 5.9), Identification, Time-Remaining (RFC 1570).

use super::Remark;
use super::machine::Machine;
use crate::control::{ControlError, code};
use crate::turn::Turn;
use wire::emit::ControlPacket;
use wire::ppp::PppProtocol;

impl Machine {
    /// Echo-Request to Time-Remaining. All begin with the sender's magic number, which is zero where none was negotiated.
    pub(super) fn maintain(
        &mut self,
        packet: ControlPacket<'_>,
        turn: &mut Turn<'_>,
    ) -> Result<(), ControlError> {
        let ControlPacket { code, identifier, data } = packet;
        let Some((magic, rest)) = data.split_first_chunk::<4>() else {
            return Err(ControlError::Data { code, found: data.len(), least: 4 });
        };
        // RFC 1661 section 6.4: who hears its own magic number hears itself. It says nothing about the peer.
        if self.lcp.magic != 0 && u32::from_be_bytes(*magic) == self.lcp.magic {
            turn.remark(Remark::OwnEcho);
            return Ok(());
        }
        self.keepalive.heard(turn.now);
        if !self.lcp_negotiation.is_open() {
            return Ok(());
        }
        match code {
            code::ECHO_REQUEST => {
                let reply = [&self.lcp.magic.to_be_bytes()[..], rest].concat();
                turn.send_cut(PppProtocol::LCP, code::ECHO_REPLY, identifier, &reply);
            }
            code::ECHO_REPLY => self.keepalive.replied(turn.now, identifier),
            code::IDENTIFICATION => turn.remark(Remark::Identification { message: rest.to_vec() }),
            code::TIME_REMAINING => {
                let Some((seconds, message)) = rest.split_first_chunk::<4>() else {
                    return Err(ControlError::Data { code, found: data.len(), least: 8 });
                };
                let seconds = u32::from_be_bytes(*seconds);
                turn.remark(Remark::TimeRemaining { seconds, message: message.to_vec() });
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn send_echo(&self, turn: &mut Turn<'_>) {
        let magic = self.lcp.magic.to_be_bytes();
        turn.send(PppProtocol::LCP, code::ECHO_REQUEST, self.keepalive.identifier, &magic);
    }

    /// Rejects a protocol, with as much of the packet as the peer receives (RFC 1661 section 5.7).
    pub(super) fn reject_protocol(&mut self, protocol: PppProtocol, data: &[u8], turn: &mut Turn<'_>) {
        turn.remark(Remark::UnknownProtocol { protocol });
        if turn.courtesy() {
            self.reject_identifier = self.reject_identifier.wrapping_add(1);
            let rejected = [&protocol.0.to_be_bytes()[..], data].concat();
            turn.send_cut(PppProtocol::LCP, code::PROTOCOL_REJECT, self.reject_identifier, &rejected);
        }
    }
}

//! The kernel's answers, datagram by datagram.

use super::Refusal;
use super::message::{Attributes, HEADER};
use netlink_packet_core::{
    NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP_INTR, NLMSG_DONE, NLMSG_ERROR, NetlinkBuffer,
};
use std::io;

/// `NLMSGERR_ATTR_MSG` (`include/uapi/linux/netlink.h`).
const MESSAGE: u16 = 1;

/// The messages of a datagram: type, flags, sequence number, payload. Ends at the first that is cut off.
pub(super) fn messages(mut datagram: &[u8]) -> impl Iterator<Item = (u16, u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(datagram).ok()?;
        let length = usize::try_from(message.length()).ok()?;
        let payload = datagram.get(HEADER..length)?;
        datagram = datagram.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((message.message_type(), message.flags(), message.sequence_number(), payload))
    })
}

/// How far the answers to one request have come.
#[derive(Debug)]
pub(super) struct Answers {
    sequence: u32,
    /// The table changed while it was read.
    pub(super) interrupted: bool,
    pub(super) complete: bool,
}

impl Answers {
    pub(super) const fn new(sequence: u32) -> Answers {
        Answers { sequence, interrupted: false, complete: false }
    }

    /// Hands on the payloads of a datagram. Answers to an earlier request are passed over.
    pub(super) fn take(&mut self, datagram: &[u8], take: &mut dyn FnMut(&[u8])) -> Result<(), Refusal> {
        for (kind, flags, sequence, payload) in messages(datagram) {
            if sequence != self.sequence {
                continue;
            }
            self.interrupted |= flags & NLM_F_DUMP_INTR != 0;
            match kind {
                NLMSG_DONE | NLMSG_ERROR => {
                    self.complete = true;
                    if let Some(refusal) = refusal(kind, flags, payload) {
                        return Err(refusal);
                    }
                }
                _ => take(payload),
            }
        }
        Ok(())
    }
}

/// What a message that ends an exchange has instead of success.
pub(super) fn refusal(kind: u16, flags: u16, payload: &[u8]) -> Option<Refusal> {
    let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
    (code != 0).then(|| Refusal {
        error: io::Error::from_raw_os_error(code.saturating_neg()),
        message: explanation(kind, flags, payload),
    })
}

/// What stands behind an error's number: behind the header of the request that an error repeats, or the whole request where it
/// is not capped (`netlink_ack` in `net/netlink/af_netlink.c`).
fn explanation(kind: u16, flags: u16, payload: &[u8]) -> Option<String> {
    if flags & NLM_F_ACK_TLVS == 0 {
        return None;
    }
    let behind = match kind {
        NLMSG_DONE => 4,
        _ if flags & NLM_F_CAPPED != 0 => 4 + HEADER,
        _ => {
            let repeated = u32::from_ne_bytes(*payload.get(4..)?.first_chunk()?);
            4usize.checked_add(usize::try_from(repeated).ok()?)?.checked_next_multiple_of(4)?
        }
    };
    Attributes::new(payload.get(behind..)?).text(MESSAGE).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::Message;
    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Message::new(kind, payload).bytes(flags, sequence).expect("short");
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn take(answers: &mut Answers, datagram: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut payloads = Vec::new();
        answers.take(datagram, &mut |payload| payloads.push(payload.to_vec())).map(|()| payloads)
    }

    #[test]
    fn a_dump_ends_with_done_and_says_when_it_was_interrupted() {
        let mut answers = Answers::new(7);
        let first = [message(16, 2, 7, b"abcd"), message(16, 2, 6, b"late"), message(16, 0x12, 7, b"efg")];
        let payloads = take(&mut answers, &first.concat()).expect("no error");
        assert!(!answers.complete && answers.interrupted);
        assert_eq!(payloads, [b"abcd".to_vec(), b"efg".to_vec()]);
        take(&mut answers, &message(NLMSG_DONE, 2, 7, &0i32.to_ne_bytes())).expect("no error");
        assert!(answers.complete);
    }

    #[test]
    fn an_error_has_the_kernels_explanation() {
        let text = Message::new(0, &[]).with(MESSAGE, b"no rings here\0");
        let payload = [&(-libc::EOPNOTSUPP).to_ne_bytes()[..], &[0; HEADER], text.attributes()].concat();
        let bytes = message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, 1, &payload);
        let refusal = take(&mut Answers::new(1), &bytes).expect_err("refused");
        assert_eq!(refusal.to_string(), "Operation not supported (os error 95): no rings here");
        // Without the flag, what follows the number is the request and no attribute.
        let refusal = take(&mut Answers::new(1), &message(NLMSG_ERROR, 0, 1, &payload)).expect_err("refused");
        assert_eq!(refusal.message, None);
    }

    #[test]
    fn no_datagram_panics() {
        let payload = [(-libc::EPERM).to_ne_bytes().to_vec(), vec![0xff; 40]].concat();
        for flags in [0, NLM_F_CAPPED, NLM_F_ACK_TLVS, NLM_F_CAPPED | NLM_F_ACK_TLVS] {
            let bytes = message(NLMSG_ERROR, flags, 1, &payload);
            for end in 0..=bytes.len() {
                let _ = take(&mut Answers::new(1), bytes.get(..end).expect("within"));
            }
        }
    }
}

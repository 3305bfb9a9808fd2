//! Requests over netlink: one message or a dump, with the kernel's own words where it refuses.

use super::attributes::{Attributes, attribute, until_zero};
use super::bundle::{Unread, printable, reason};
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NetlinkBuffer,
};
use netlink_sys::{Socket, SocketAddr};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io;
use std::time::Duration;

/// Header of a netlink message, bytes.
const HEADER: usize = 16;
/// `NLMSGERR_ATTR_MSG`: the kernel's explanation of an error.
const MESSAGE: u32 = 1;
/// Dumps of a table that keeps changing before the last one is taken as it is.
const ATTEMPTS: u32 = 5;
/// The kernel answers at once; a machine that does not is not waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a request failed.
#[derive(Debug)]
pub(super) struct Refusal {
    /// The error.
    pub error: io::Error,
    /// The kernel's explanation, where it gave one.
    pub message: Option<String>,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        Refusal { error, message: None }
    }
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Unread {
        let reason = reason(&refusal.error);
        Unread(match refusal.message {
            Some(message) if message != reason => format!("{reason}: {message}"),
            _ => reason,
        })
    }
}

/// A netlink socket.
pub(super) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a socket of a netlink protocol (`NETLINK_ROUTE`, `NETLINK_GENERIC`).
    pub(super) fn open(protocol: isize) -> io::Result<Netlink> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
        // Kernels before 4.12 have neither; their errors are plain numbers.
        let _ = socket.set_ext_ack(true);
        let _ = socket.set_cap_ack(true);
        Ok(Netlink { socket, sequence: 0 })
    }

    /// The answer to a request for one object: its payload.
    pub(super) fn get(&mut self, kind: u16, payload: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (answers, _) = self.exchange(kind, NLM_F_ACK, payload)?;
        answers.into_iter().next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel answered without data").into()
        })
    }

    /// The message type of a family of generic netlink, on a socket of `NETLINK_GENERIC`; `name` ends in a zero.
    /// `GENL_ID_CTRL`, `CTRL_CMD_GETFAMILY`, `CTRL_ATTR_FAMILY_ID`, `CTRL_ATTR_FAMILY_NAME`
    /// (`include/uapi/linux/genetlink.h`).
    pub(super) fn family(&mut self, name: &[u8]) -> Result<u16, Refusal> {
        const CONTROL: u16 = 0x10;
        const GET_FAMILY: u8 = 3;
        const FAMILY_ID: u32 = 1;
        const FAMILY_NAME: u32 = 2;
        let request = [vec![GET_FAMILY, 1, 0, 0], attribute(FAMILY_NAME, name)].concat();
        let answer = self.get(CONTROL, &request)?;
        // Behind the generic header: command, version, two reserved.
        let family = Attributes::new(answer.get(4..).unwrap_or_default()).u16(FAMILY_ID);
        Ok(family.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?)
    }

    /// All objects of a table, each as its payload. A dump that the kernel marks as interrupted is taken again.
    pub(super) fn dump(&mut self, kind: u16, payload: &[u8]) -> Result<Vec<Vec<u8>>, Refusal> {
        for _ in 1..ATTEMPTS {
            let (objects, interrupted) = self.exchange(kind, NLM_F_DUMP, payload)?;
            if !interrupted {
                return Ok(objects);
            }
        }
        self.exchange(kind, NLM_F_DUMP, payload).map(|(objects, _)| objects)
    }

    fn exchange(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<(Vec<Vec<u8>>, bool), Refusal> {
        self.sequence = self.sequence.wrapping_add(1);
        self.socket.send(&request(kind, flags, self.sequence, payload)?, 0)?;
        let mut answers = Answers::new(self.sequence);
        while !answers.complete {
            let (datagram, from) = self.socket.recv_from_full()?;
            // Only the kernel has port 0; another process may send to this socket, too.
            if from.port_number() == 0 {
                answers.take(&datagram)?;
            }
        }
        Ok((answers.payloads, answers.interrupted))
    }
}

fn request(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> io::Result<Vec<u8>> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "the request is too long");
    let length = u32::try_from(HEADER + payload.len()).map_err(too_long)?;
    let mut bytes = vec![0; HEADER];
    let mut header = NetlinkBuffer::new(&mut bytes);
    header.set_length(length);
    header.set_message_type(kind);
    header.set_flags(NLM_F_REQUEST | flags);
    header.set_sequence_number(sequence);
    bytes.extend_from_slice(payload);
    Ok(bytes)
}

/// What came back so far.
struct Answers {
    sequence: u32,
    payloads: Vec<Vec<u8>>,
    interrupted: bool,
    complete: bool,
}

impl Answers {
    fn new(sequence: u32) -> Answers {
        Answers { sequence, payloads: Vec::new(), interrupted: false, complete: false }
    }

    /// Takes the messages of one datagram. Answers to an earlier request, and what is cut off, are passed over.
    fn take(&mut self, mut datagram: &[u8]) -> Result<(), Refusal> {
        while let Ok(message) = NetlinkBuffer::new_checked(datagram) {
            let length = usize::try_from(message.length()).unwrap_or(usize::MAX);
            if message.sequence_number() == self.sequence {
                let payload = datagram.get(HEADER..length).unwrap_or_default();
                self.message(message.message_type(), message.flags(), payload)?;
            }
            let Some(rest) = length.checked_next_multiple_of(4).and_then(|next| datagram.get(next..)) else {
                break;
            };
            datagram = rest;
        }
        Ok(())
    }

    fn message(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<(), Refusal> {
        self.interrupted |= flags & NLM_F_DUMP_INTR != 0;
        match kind {
            NLMSG_DONE | NLMSG_ERROR => {
                self.complete = true;
                let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                if code != 0 {
                    let message = explanation(kind, flags, payload);
                    return Err(Refusal {
                        error: io::Error::from_raw_os_error(code.saturating_neg()),
                        message,
                    });
                }
            }
            _ => self.payloads.push(payload.to_vec()),
        }
        Ok(())
    }
}

/// The kernel's words behind an error's number: behind the header of the request that an error repeats, or the
/// whole request where it is not capped (`netlink_ack` in `net/netlink/af_netlink.c`).
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
    let text = Attributes::new(payload.get(behind..)?).get(MESSAGE)?;
    Some(printable(until_zero(text))).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = request(kind, flags, sequence, payload).expect("short");
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_dump_ends_with_done_and_says_when_it_was_interrupted() {
        let mut answers = Answers::new(7);
        let first = [message(16, 2, 7, b"abcd"), message(16, 2, 6, b"late"), message(16, 0x12, 7, b"efg")];
        answers.take(&first.concat()).expect("no error");
        assert!(!answers.complete && answers.interrupted);
        assert_eq!(answers.payloads, [b"abcd".to_vec(), b"efg".to_vec()]);
        answers.take(&message(NLMSG_DONE, 2, 7, &0i32.to_ne_bytes())).expect("no error");
        assert!(answers.complete);
    }

    #[test]
    fn an_error_is_told_in_the_kernels_words() {
        let payload = [
            (-libc::EOPNOTSUPP).to_ne_bytes().to_vec(),
            vec![0; HEADER],
            attribute(MESSAGE, b"no rings here\0"),
        ];
        let bytes = message(NLMSG_ERROR, NLM_F_CAPPED | NLM_F_ACK_TLVS, 1, &payload.concat());
        let refusal = Answers::new(1).take(&bytes).expect_err("refused");
        assert_eq!(Unread::from(refusal).0, "Operation not supported: no rings here");
        // Without the flag, what follows the number is the request and no attribute.
        let plain = message(NLMSG_ERROR, 0, 1, &payload.concat());
        let refusal = Answers::new(1).take(&plain).expect_err("refused");
        assert_eq!(Unread::from(refusal).0, "Operation not supported");
    }

    #[test]
    fn no_datagram_panics() {
        let payload = [(-libc::EPERM).to_ne_bytes().to_vec(), vec![0xff; 40]].concat();
        for flags in [0, NLM_F_CAPPED, NLM_F_ACK_TLVS, NLM_F_CAPPED | NLM_F_ACK_TLVS] {
            let bytes = message(NLMSG_ERROR, flags, 1, &payload);
            for end in 0..=bytes.len() {
                let _ = Answers::new(1).take(bytes.get(..end).expect("within"));
            }
        }
    }
}

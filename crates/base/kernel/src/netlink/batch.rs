//! Many requests in one datagram: the kernel works through all of them before sendmsg(2) returns (`netlink_rcv_skb()` in
//! net/netlink/af_netlink.c).

use super::answers::{messages, refusal};
use super::{Message, Netlink, Refusal, set_receive_buffer, uninterrupted};
use crate::socket::{BATCH, Incoming};
use netlink_packet_core::{NLM_F_ACK, NLMSG_ERROR};
use std::io;

/// Bytes of an answer that are read: an acknowledgement, or one object of some hundred bytes.
const ANSWER: usize = 2048;
/// The answers to a datagram wait in the receive buffer; the kernel counts some 1,000 bytes for each.
const BUFFER: usize = 1 << 18;

/// What is done with the answer to the request at a place.
type TakeAnswer<'a> = dyn FnMut(usize, Result<&[u8], Refusal>) + 'a;

/// A socket whose requests go [`BATCH`] a datagram.
#[derive(Debug)]
pub(super) struct Batches {
    netlink: Netlink,
    datagram: Vec<u8>,
    incoming: Incoming,
}

impl Batches {
    pub(super) fn new(netlink: Netlink) -> io::Result<Batches> {
        set_receive_buffer(&netlink.socket, BUFFER)?;
        Ok(Batches { netlink, datagram: Vec::new(), incoming: Incoming::new(BATCH, ANSWER) })
    }

    /// The port of this socket, which the kernel names as the source of the changes that it makes.
    pub(super) fn port(&self) -> io::Result<u32> {
        let mut address = netlink_sys::SocketAddr::new(0, 0);
        self.netlink.socket.get_address(&mut address)?;
        Ok(address.port_number())
    }

    /// Sends the message of each item, and hands the number of an item to `take` with the object that answers it, or the refusal.
    /// An item that is changed without an answer is not handed on. Error: those of the socket; nothing more is known of the items
    /// that were not handed on.
    pub(super) fn exchange<T>(
        &mut self,
        items: &[T],
        message: impl Fn(&T) -> Message,
        mut take: impl FnMut(usize, Result<&[u8], Refusal>),
    ) -> io::Result<()> {
        for (number, chunk) in items.chunks(BATCH).enumerate() {
            self.datagram.clear();
            let first = self.netlink.sequence.wrapping_add(1);
            let last = chunk.len() - 1;
            for (position, item) in chunk.iter().enumerate() {
                // Refusals come unrequested. The last acknowledgement says that all is done.
                let flags = if position == last { NLM_F_ACK } else { 0 };
                let sequence = self.netlink.next_sequence();
                message(item).append(&mut self.datagram, flags, sequence)?;
            }
            uninterrupted(|| self.netlink.socket.send(&self.datagram, 0))?;
            self.receive(first, last, &mut |position, answer| take(number * BATCH + position, answer))?;
        }
        Ok(())
    }

    /// Takes answers up to the acknowledgement of the last request.
    fn receive(&mut self, first: u32, last: usize, take: &mut TakeAnswer<'_>) -> io::Result<()> {
        let mut complete = false;
        while !complete {
            uninterrupted(|| self.incoming.wait(&self.netlink.socket))?;
            // Only the kernel has port 0.
            for datagram in self.incoming.messages().filter(|datagram| datagram.netlink_port() == 0) {
                complete |= take_answers(datagram.bytes, first, last, take);
            }
        }
        Ok(())
    }
}

/// Hands on the answers in a datagram; whether the last request is among them. Answers to earlier requests are passed over.
fn take_answers(datagram: &[u8], first: u32, last: usize, take: &mut TakeAnswer<'_>) -> bool {
    let mut complete = false;
    for (kind, flags, sequence, payload) in messages(datagram) {
        let position = sequence.wrapping_sub(first) as usize;
        if position > last {
            continue;
        }
        if kind != NLMSG_ERROR {
            take(position, Ok(payload));
            continue;
        }
        if let Some(refusal) = refusal(kind, flags, payload) {
            take(position, Err(refusal));
        }
        complete |= position == last;
    }
    complete
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_find_their_requests_and_no_piece_panics() {
        let error = |code: i32| [&code.to_ne_bytes()[..], &[0; 16]].concat();
        let mut datagram = Vec::new();
        for (kind, sequence, payload) in [
            (24, u32::MAX, b"late".to_vec()),
            (NLMSG_ERROR, 1, error(-libc::ENOENT)),
            (24, 2, b"here".to_vec()),
            (24, 9, b"other".to_vec()),
            (NLMSG_ERROR, 3, error(0)),
        ] {
            Message::new(kind, &payload).append(&mut datagram, 0, sequence).expect("short");
        }
        let mut taken = Vec::new();
        let mut take = |position, answer: Result<&[u8], Refusal>| {
            taken
                .push((position, answer.map(<[u8]>::to_vec).map_err(|refusal| refusal.error.raw_os_error())));
        };
        assert!(take_answers(&datagram, 0, 3, &mut take));
        assert_eq!(taken, [(1, Err(Some(libc::ENOENT))), (2, Ok(b"here".to_vec()))]);
        for end in 0..datagram.len() {
            let cut = datagram.get(..end).expect("within");
            assert!(!take_answers(cut, 0, 3, &mut |_, _| {}), "{end}");
        }
    }
}

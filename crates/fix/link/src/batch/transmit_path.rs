//! The two ways out of the parent: a packet socket, or the transmit ring of an XDP socket.

use super::frames::{BATCH, Frames};
use super::xsk::Xsk;
use crate::datapath::Line;
use crate::dropped::Dropped;
use crate::framing::{Form, Framing};
use crate::lines::Lines;
use crate::parent;
use kernel::socket::{Flag, Outgoing, Packet};
use std::io;
use std::ops::Range;
use wire::ethernet::EtherType;
use wire::vlan::Tag;

#[derive(Debug)]
pub(crate) enum TransmitPath {
    /// sendmmsg(2).
    Packet {
        socket: Packet,
        messages: Outgoing<2>,
        /// Whether a virtio header stands in front of every frame.
        has_header: bool,
        /// Whether the kernel or the card takes super-packets apart.
        takes_super_packets: bool,
    },
    Xdp(Box<Xsk>),
}

impl TransmitPath {
    /// By a packet socket. With tags alone the kernel segments, if it knows their TPIDs (`eth_type_vlan()`); behind PPPoE
    /// it cannot (`skb_mac_gso_segment()` has no handler for EtherType 0x8864, and sendmsg(2) fails with `ENOMEM`).
    /// `framing`: that of all frames; `None`: they are of many sessions of PPPoE.
    pub(crate) fn packet(interface: u32, framing: Option<&Framing>) -> io::Result<TransmitPath> {
        let is_known = |tag: &Tag| matches!(tag.tpid, EtherType::VLAN | EtherType::SERVICE_VLAN);
        let tagged = framing.filter(|framing| framing.form() == Form::Frames);
        let has_header = tagged.is_some_and(|framing| framing.encapsulation().tags().iter().all(is_known));
        let socket = parent::sender(interface)?;
        if has_header {
            socket.turn_on(Flag::NetHeader)?;
        }
        let messages = Outgoing::new(BATCH);
        Ok(TransmitPath::Packet { socket, messages, has_header, takes_super_packets: has_header })
    }

    pub(crate) const fn has_header(&self) -> bool {
        matches!(self, TransmitPath::Packet { has_header: true, .. })
    }

    pub(crate) const fn takes_super_packets(&self) -> bool {
        matches!(self, TransmitPath::Packet { takes_super_packets: true, .. })
    }

    /// Sends all frames, and counts what became of each. It waits for room where the parent's queue is full, for 20 ms at
    /// most.
    pub(crate) fn send<F: Lines>(&mut self, line: &Line<F>, frames: &Frames<F::Owner>, read: &[u8]) {
        match self {
            TransmitPath::Packet { socket, messages, takes_super_packets, .. } => {
                *takes_super_packets &= send_messages(socket, messages, line, frames, read);
            }
            TransmitPath::Xdp(xsk) => xsk.send(line, frames, read),
        }
    }
}

/// Sends all frames; whether super-packets may come again. Where the kernel takes none, the first is lost.
fn send_messages<F: Lines>(
    socket: &Packet,
    messages: &mut Outgoing<2>,
    line: &Line<F>,
    frames: &Frames<F::Owner>,
    read: &[u8],
) -> bool {
    let list = frames.list();
    let mut takes_super_packets = true;
    for frame in list {
        line.framing.sent(frame.owner, frame.count.into(), frame.bytes.into());
    }
    let pieces = |at: usize| list.get(at).map(|frame| frames.pieces(frame, read)).unwrap_or_default();
    let sent = |range: Range<usize>| {
        for frame in list.get(range).unwrap_or_default() {
            line.counters.sent.add(frame.count.into(), frame.bytes.into());
        }
    };
    parent::send_all(socket, messages, list.len(), pieces, sent, |at, why| {
        let Some(frame) = list.get(at) else { return };
        takes_super_packets &= frame.count == 1 || why != Dropped::ParentRefused;
        line.counters.dropped(why, frame.count.into());
        line.framing.stayed(frame.owner, false, frame.count.into(), frame.bytes.into());
        line.framing.dropped(frame.owner, false, frame.count.into());
    });
    takes_super_packets
}

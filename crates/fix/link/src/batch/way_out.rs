//! The two ways out of the parent: a packet socket, or the transmit ring of an XDP socket.

use super::frames::{BATCH, Frames};
use super::xsk::Xsk;
use crate::datapath::Line;
use crate::dropped::Dropped;
use crate::framing::{Form, Framing};
use crate::lines::Lines;
use crate::parent::{self, wait_for_room};
use kernel::socket::{Flag, Outgoing, Packet};
use rustix::io::Errno;
use std::io;
use std::time::Duration;
use wire::ethernet::EtherType;
use wire::vlan::Tag;

/// How often a batch waits for room in the queue of the parent, and how long each time: 20 ms in all.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_micros(200);

/// A way out.
#[derive(Debug)]
pub(crate) enum WayOut {
    /// sendmmsg(2).
    Packet {
        /// The socket.
        socket: Packet,
        /// Its arguments.
        messages: Outgoing<2>,
        /// Whether a virtio header stands in front of every frame.
        has_header: bool,
        /// Whether the kernel or the card takes super-packets apart.
        takes_super_packets: bool,
    },
    Xdp(Box<Xsk>),
}

impl WayOut {
    /// By a packet socket. With tags alone the kernel segments, if it knows their TPIDs (`eth_type_vlan()`); behind PPPoE
    /// it cannot (`skb_mac_gso_segment()` has no handler for EtherType 0x8864, and sendmsg(2) fails with `ENOMEM`).
    pub(crate) fn packet(interface: u32, framing: &Framing) -> io::Result<WayOut> {
        let is_known = |tag: &Tag| matches!(tag.tpid, EtherType::VLAN | EtherType::SERVICE_VLAN);
        let has_header =
            framing.form() == Form::Frames && framing.encapsulation().tags().iter().all(is_known);
        WayOut::by_packet(interface, has_header)
    }

    /// The same of frames behind PPPoE, whatever their tags.
    pub(crate) fn pppoe(interface: u32) -> io::Result<WayOut> {
        WayOut::by_packet(interface, false)
    }

    fn by_packet(interface: u32, has_header: bool) -> io::Result<WayOut> {
        let socket = parent::sender(interface)?;
        if has_header {
            socket.turn_on(Flag::NetHeader)?;
        }
        let messages = Outgoing::new(BATCH);
        Ok(WayOut::Packet { socket, messages, has_header, takes_super_packets: has_header })
    }

    /// Whether frames have a virtio header in front.
    pub(crate) const fn has_header(&self) -> bool {
        matches!(self, WayOut::Packet { has_header: true, .. })
    }

    /// Whether frames may be super-packets.
    pub(crate) const fn takes_super_packets(&self) -> bool {
        matches!(self, WayOut::Packet { takes_super_packets: true, .. })
    }

    /// Sends all frames, and counts what became of each. It waits for room where the parent's queue is full, for 20 ms at
    /// most.
    pub(crate) fn send<F: Lines>(&mut self, line: &Line<F>, frames: &Frames<F::Owner>, read: &[u8]) {
        match self {
            WayOut::Packet { socket, messages, takes_super_packets, .. } => {
                *takes_super_packets &= send_messages(socket, messages, line, frames, read);
            }
            WayOut::Xdp(xsk) => xsk.send(line, frames, read),
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
        line.framing.sent(frame.owner, frame.count.into(), frame.octets.into());
    }
    let mut at = 0;
    let mut tries = TRIES;
    while let Some(rest) = list.get(at..).filter(|rest| !rest.is_empty()) {
        let pieces = rest.iter().take(BATCH).map(|frame| frames.pieces(frame, read));
        let error = match messages.send(socket, pieces) {
            Ok(sent) => {
                for frame in rest.iter().take(sent) {
                    line.counters.sent_many(frame.count.into(), frame.octets.into());
                }
                at += sent;
                continue;
            }
            Err(error) => error,
        };
        let why = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::INTR) => continue,
            Some(error @ (Errno::AGAIN | Errno::NOBUFS)) if tries > 0 => {
                tries -= 1;
                wait_for_room(socket, error, PAUSE);
                continue;
            }
            Some(error) => parent::refusal(error),
            None => Dropped::ParentRefused,
        };
        let count = rest.first().map_or(1, |frame| frame.count);
        takes_super_packets &= count == 1 || why != Dropped::ParentRefused;
        line.counters.dropped_many(why, count.into());
        if let Some(first) = rest.first() {
            line.framing.stayed(first.owner, false, count.into(), first.octets.into());
            line.framing.dropped(first.owner, false, count.into());
        }
        at += 1;
    }
    takes_super_packets
}

//! From the parent to the interface: frames are taken from the ring, checked, put together into super-packets, and written.
//! No payload is copied here: what is written points into the ring.

use super::ring::{Ring, Slot};
use crate::datapath::{Line, PathError};
use crate::dropped::Dropped;
use crate::framing::Form;
use crate::inbound::{HEADERS, Undelivered, behind, complete, inside, is_ip, lower_mss, take_apart, write};
use crate::lines::Lines;
use crate::mss::Checksum;
use crate::parent::{self, Arrival};
use kernel::tun::{Offloads, Tun};
use offload::coalesce::{Delivery, Limits, Packet};
use offload::{Coalescer, NetHeader};
use rustix::net::sockopt;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::time::{Duration, Instant};
use wire::ethernet;

/// Frames that are put together at once.
pub(crate) const BATCH: usize = 256;
/// Batches that one way may take before the other has its turn.
const TURN: usize = 4;
/// Packets of a super-packet, so that one of 64 KiB of full-size frames is whole.
const SEGMENTS: u32 = 64;
/// Pieces of a write: virtio header, addresses, headers, and the payload of each packet.
const PIECES: usize = SEGMENTS as usize + 4;
/// Frames come densely when at least one in this time came on average, over a window that is at least so long: waking this
/// thread for each costs more, here and where they are sent or received, than they do themselves.
const DENSELY: Duration = Duration::from_micros(10);
const WINDOW: Duration = Duration::from_micros(150);

#[derive(Clone, Copy, Debug)]
struct Place<O> {
    /// Where the frame starts and ends that is looked at for coalescing; of no bytes where it is not.
    looked_at: (usize, usize),
    /// Where the packet or frame for the interface starts and ends.
    inner: (usize, usize),
    /// Bytes on the line.
    bytes: u32,
    /// The same without padding.
    unpadded: u32,
    owner: O,
}

/// What ends a batch before the next frame can be looked at.
enum Alone {
    /// A super-packet in a slot: the frame and what the kernel says about it.
    InSlot(Range<usize>, NetHeader),
    /// A frame in the queue of the socket.
    InQueue,
}

/// The way from the parent to the interface.
#[derive(Debug)]
pub(crate) struct Incoming<O = ()> {
    ring: Ring,
    coalescer: Coalescer,
    places: Vec<Place<O>>,
    offloads: Offloads,
    /// For a frame that is longer than a slot.
    buffer: Box<[u8]>,
    headers: Box<[u8; HEADERS]>,
    /// The window over which frames are counted.
    since: Instant,
    count: u32,
    is_dense: bool,
}

impl<O: Copy> Incoming<O> {
    /// From a ring to an interface that takes what `offloads` says.
    pub(crate) fn new(ring: Ring, offloads: Offloads) -> Incoming<O> {
        let limits = Limits { segments: if offloads.tcp { SEGMENTS } else { 1 }, udp: offloads.udp };
        Incoming {
            ring,
            coalescer: Coalescer::new(limits),
            places: Vec::with_capacity(BATCH),
            offloads,
            buffer: parent::buffer(),
            headers: Box::new([0; HEADERS]),
            since: Instant::now(),
            count: 0,
            is_dense: false,
        }
    }

    pub(crate) const fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Whether frames come so densely that it is cheaper to look for them after a pause than to be woken.
    pub(crate) const fn is_dense(&self) -> bool {
        self.is_dense
    }

    pub(crate) fn receive_some<F: Lines<Owner = O>>(
        &mut self,
        tun: &Tun,
        line: &Line<F>,
    ) -> Result<(), PathError> {
        for turn in 0..TURN {
            let (taken, alone) = self.collect(line);
            if taken == 0 {
                self.found_nothing();
                if turn == 0 {
                    // Woken for nothing: the parent went down, which would wake this thread until it is read.
                    let _ = sockopt::socket_error(self.ring.socket());
                }
                return Ok(());
            }
            self.count = self.count.saturating_add(taken as u32);
            let delivered = self.deliver(tun, line).and_then(|()| self.deliver_alone(tun, line, alone));
            self.ring.release(taken);
            match delivered {
                Ok(()) => {}
                Err(Stopped::InterfaceRemoved) => return Err(PathError::InterfaceRemoved),
                Err(Stopped::Parent(error)) => return Err(PathError::Parent(error)),
            }
        }
        Ok(())
    }

    /// Decides whether it is worth being woken for the next frame. A look that finds nothing soon after another is no sign:
    /// who takes frames faster than they come finds nothing after each.
    fn found_nothing(&mut self) {
        let now = Instant::now();
        let time = now.duration_since(self.since);
        if time >= WINDOW {
            self.is_dense = time < DENSELY * self.count;
            (self.since, self.count) = (now, 0);
        }
    }

    /// Looks at the next frames: how many slots they take, and the one that cannot be put together with others.
    fn collect<F: Lines<Owner = O>>(&mut self, line: &Line<F>) -> (usize, Option<Alone>) {
        self.places.clear();
        for ahead in 0..BATCH {
            let (start, length, header) = match self.ring.look(ahead) {
                None => return (ahead, None),
                Some(Slot::InQueue) => return (ahead + 1, Some(Alone::InQueue)),
                Some(Slot::Lost) => {
                    line.counters.dropped(Dropped::SocketFull, 1);
                    continue;
                }
                Some(Slot::Frame { start, length, header }) => (start, length, header),
            };
            if header.is_super_packet() {
                return (ahead + 1, Some(Alone::InSlot(start..start + length, header)));
            }
            match prepare(line, self.ring.bytes_mut(start, length), header) {
                Ok(Prepared { looked_at, inner, owner }) => self.places.push(Place {
                    looked_at: (start + looked_at.start, start + looked_at.end),
                    inner: (start + inner.start, start + inner.end),
                    bytes: length as u32,
                    unpadded: inner.end as u32,
                    owner,
                }),
                Err(why) => line.counters.dropped(why, 1),
            }
        }
        (BATCH, None)
    }

    fn deliver<F: Lines<Owner = O>>(&mut self, tun: &Tun, line: &Line<F>) -> Result<(), Stopped> {
        let ring = &self.ring;
        let bytes = |(start, end): (usize, usize)| ring.bytes(start, end - start);
        let mut frames: [&[u8]; BATCH] = [&[]; BATCH];
        for (frame, place) in frames.iter_mut().zip(&self.places) {
            *frame = bytes(place.looked_at);
        }
        let frames = frames.get(..self.places.len()).unwrap_or_default();
        let places = &self.places;
        // Before they are written: see `Lines::received`.
        for place in places {
            line.framing.received(place.owner, place.unpadded.into());
        }
        let received = |number: usize| {
            if let Some(place) = places.get(number) {
                line.counters.received.add(1, place.bytes.into());
            }
        };
        let lost = |number: usize, why: Dropped| {
            line.counters.dropped(why, 1);
            if let Some(place) = places.get(number) {
                line.count_undelivered(place.owner, place.unpadded.into());
            }
        };
        for delivery in self.coalescer.coalesce(frames) {
            let written = match &delivery {
                Delivery::Packet(packet) => write_packet(tun, line, packet, frames),
                Delivery::Frame(number) => {
                    let inner = places.get(*number).map(|place| bytes(place.inner)).unwrap_or_default();
                    write(tun, &[IoSlice::new(&NetHeader::default().bytes()), IoSlice::new(inner)])
                }
            };
            match (written, &delivery) {
                (Ok(()), Delivery::Packet(packet)) => {
                    line.counters.delivered(packet.segments() as u64);
                    packet.frames().for_each(received);
                }
                (Ok(()), Delivery::Frame(number)) => {
                    line.counters.delivered(1);
                    received(*number);
                }
                (Err(Undelivered::InterfaceRemoved), _) => return Err(Stopped::InterfaceRemoved),
                (Err(Undelivered::Dropped(why)), Delivery::Packet(packet)) => {
                    packet.frames().for_each(|number| lost(number, why));
                }
                (Err(Undelivered::Dropped(why)), Delivery::Frame(number)) => lost(*number, why),
            }
        }
        Ok(())
    }

    fn deliver_alone<F: Lines<Owner = O>>(
        &mut self,
        tun: &Tun,
        line: &Line<F>,
        alone: Option<Alone>,
    ) -> Result<(), Stopped> {
        let (frame, header) = match alone {
            None => return Ok(()),
            Some(Alone::InSlot(range, header)) => (self.ring.bytes_mut(range.start, range.len()), header),
            Some(Alone::InQueue) => match in_queue(&self.ring, &mut self.buffer).map_err(Stopped::Parent)? {
                Arrival::Frame(received) => (received.frame, received.header),
                Arrival::Lost(why) => {
                    line.counters.dropped(why, 1);
                    return Ok(());
                }
                Arrival::Nothing | Arrival::Down => {
                    line.counters.dropped(Dropped::SocketFull, 1);
                    return Ok(());
                }
            },
        };
        match take(line, tun, self.offloads, frame, header, &mut *self.headers) {
            Ok(()) => Ok(()),
            Err(Undelivered::Dropped(why)) => {
                line.counters.dropped(why, 1);
                Ok(())
            }
            Err(Undelivered::InterfaceRemoved) => Err(Stopped::InterfaceRemoved),
        }
    }
}

fn in_queue<'b>(ring: &Ring, buffer: &'b mut [u8]) -> io::Result<Arrival<'b>> {
    // That the parent went down is reported once, instead of the frame, which would then be taken for the next one.
    let _ = sockopt::socket_error(ring.socket());
    parent::receive(ring.socket(), buffer)
}

enum Stopped {
    InterfaceRemoved,
    Parent(io::Error),
}

struct Prepared<O> {
    /// Which bytes are looked at for coalescing.
    looked_at: Range<usize>,
    inner: Range<usize>,
    owner: O,
}

/// Checks a frame, and completes its checksum.
fn prepare<F: Lines>(
    line: &Line<F>,
    frame: &mut [u8],
    header: NetHeader,
) -> Result<Prepared<F::Owner>, Dropped> {
    let length = frame.len();
    let (inner, owner) = line.framing.decapsulate(frame)?;
    let header = inside(header, &inner, line)?;
    let packet = frame.get_mut(inner.clone()).unwrap_or_default();
    complete(&header, packet.get_mut(line.framing.network_offset()..).unwrap_or_default())?;
    lower_mss(line, owner, packet, Checksum::Whole);
    let looked_at = match line.framing.form() {
        Form::Packets => 0..length,
        // A PPPoE session inside a link with tags alone must not lose its header.
        Form::Frames if is_ip(packet) => inner.clone(),
        Form::Frames => 0..0,
    };
    Ok(Prepared { looked_at, inner, owner })
}

fn write_packet<F: Lines>(
    tun: &Tun,
    line: &Line<F>,
    packet: &Packet<'_, &[u8]>,
    frames: &[&[u8]],
) -> Result<(), Undelivered> {
    let front = match line.framing.form() {
        Form::Packets => &[][..],
        Form::Frames => {
            let first = frames.get(packet.frame()).copied().unwrap_or_default();
            first.get(..ethernet::Header::LENGTH).unwrap_or_default()
        }
    };
    let header = behind(packet.header(), front.len()).bytes();
    let mut pieces = [IoSlice::new(&[]); PIECES];
    let mut count = 0;
    let all = [&header[..], front].into_iter().chain(packet.pieces());
    for (place, piece) in pieces.iter_mut().zip(all) {
        *place = IoSlice::new(piece);
        count += 1;
    }
    write(tun, pieces.get(..count).unwrap_or_default())
}

/// Hands a super-packet that the kernel had put together to the interface: as it is, where that takes such.
fn take<F: Lines>(
    line: &Line<F>,
    tun: &Tun,
    offloads: Offloads,
    frame: &mut [u8],
    header: NetHeader,
    headers: &mut [u8],
) -> Result<(), Undelivered> {
    let length = frame.len();
    if !header.is_super_packet() {
        let Prepared { inner, owner, .. } = prepare(line, frame, header)?;
        let unpadded = inner.end as u64;
        let packet = frame.get(inner).unwrap_or_default();
        line.framing.received(owner, unpadded);
        write(tun, &[IoSlice::new(&NetHeader::default().bytes()), IoSlice::new(packet)])
            .inspect_err(|_| line.count_undelivered(owner, unpadded))?;
        line.counters.delivered(1);
        line.counters.received.add(1, length as u64);
        return Ok(());
    }
    let (range, owner) = line.framing.decapsulate(frame)?;
    let header = inside(header, &range, line)?;
    let unpadded = range.end as u64;
    let packet = frame.get_mut(range).unwrap_or_default();
    line.framing.received(owner, unpadded);
    let before = line.framing.network_offset();
    let kind = header.gso_type & !NetHeader::ECN;
    let is_taken = header.needs_checksum()
        && match kind {
            NetHeader::TCP_IPV4 | NetHeader::TCP_IPV6 => offloads.tcp,
            NetHeader::UDP => offloads.udp,
            _ => false,
        };
    if is_taken {
        let header = behind(header, before).bytes();
        if write(tun, &[IoSlice::new(&header), IoSlice::new(packet)]).is_ok() {
            line.counters.delivered(1);
            line.counters.received.add(1, length as u64);
            return Ok(());
        }
    }
    take_apart(line, tun, &NetHeader::default().bytes(), &header, packet, headers)
        .inspect_err(|_| line.count_undelivered(owner, unpadded))?;
    line.counters.received.add(1, length as u64);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::framing::Head;
    use crate::parent::Admission;
    use crate::tests::{Unfinished, emitted, framings, ipv4, line, tcp, with_pair};
    use kernel::socket::Transmit;
    use wire::IpProtocol;
    use wire::emit::Ipv4;

    const PAYLOAD: usize = 1400;

    /// A segment of a TCP connection, with its checksums.
    fn segment(number: u16) -> Vec<u8> {
        let ip = |length| emitted(&Ipv4 { identification: number, ..ipv4(IpProtocol::TCP, length) });
        let tcp = tcp(u32::from(number) * PAYLOAD as u32, 0x10, &[]);
        Unfinished::new(ip, &tcp, &[0; PAYLOAD]).finished()
    }

    #[test]
    fn payloads_are_written_from_the_ring() {
        with_pair(1600, |[near, _], macs| {
            let [framing, far] = framings("ad:100,q:200,pppoe:7@PEER", macs);
            let ring = Ring::open(near.index, &Admission::of(&framing), near.mtu, None).expect("a ring");
            let mut incoming = Incoming::new(ring, Offloads { tcp: true, udp: true });
            let mut transmit = Transmit::open("far0").expect("a socket");
            for number in 0..20 {
                let (packet, mut head) = (segment(number), Head::new());
                let rest = far.encapsulate(&packet, &mut head).expect("a frame");
                transmit.send(&[&[head.bytes(), rest].concat()]).expect("sent");
            }
            let line = line(framing, 1600);
            let (taken, alone) = incoming.collect(&line);
            assert!(taken == 20 && alone.is_none(), "{taken}");
            let (ring, places) = (&incoming.ring, &incoming.places);
            let frames: Vec<&[u8]> = places
                .iter()
                .map(|place| ring.bytes(place.looked_at.0, place.looked_at.1 - place.looked_at.0))
                .collect();
            let whole = ring.bytes(0, 4 << 20).as_ptr_range();
            let mut deliveries = incoming.coalescer.coalesce(&frames);
            let Some(Delivery::Packet(packet)) = deliveries.next() else { panic!("no packet") };
            assert_eq!((packet.segments(), deliveries.next().is_none()), (20, true));
            let outside: usize =
                packet.pieces().filter(|piece| !whole.contains(&piece.as_ptr())).map(<[u8]>::len).sum();
            // The headers of the super-packet, which are no frame's.
            assert_eq!(outside, 40);
            assert_eq!(packet.length(), 40 + 20 * PAYLOAD);
        });
    }
}

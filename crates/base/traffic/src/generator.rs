//! Frames, one after the other.

use crate::arrival::Clock;
use crate::below;
use crate::control::Line;
use crate::flow::{Flow, Flows, mix};
use crate::popularity::Sampler;
use crate::{Class, Direction, Scenario, Sizes};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::net::IpAddr;
use std::ops::Range;
use wire::emit::checksum::Sum;
use wire::emit::{self, Emit, EmitError, Encapsulation};
use wire::ethernet::MacAddress;
use wire::{FlowKey, IpProtocol, IpVersion};

/// One frame, in the generator's own buffer.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// When it arrives, nanoseconds since 1970-01-01 UTC.
    pub timestamp_ns: u64,
    /// From MAC header to the end of payload or padding, without FCS.
    pub bytes: &'a [u8],
    /// The flow that it belongs to; `None` of a control frame.
    pub flow: Option<u32>,
}

/// Generates the frames of a [`Scenario`], without end.
#[derive(Clone, Debug)]
pub struct Generator {
    scenario: Scenario,
    flows: Flows,
    weights: u32,
    random: Xoshiro256PlusPlus,
    sampler: Sampler,
    clock: Clock,
    /// Next TCP sequence number of each flow.
    sequences: Vec<u32>,
    /// The payload pattern behind room for headers, which end where the pattern starts.
    buffer: Vec<u8>,
    /// Sums of the pattern's first 0, 2, 4 … bytes.
    sums: Vec<u16>,
    /// Control frames and later fragments.
    aside: Vec<u8>,
    pending: Option<Pending>,
    frames: u64,
    controls: u32,
    fragmented: u32,
}

/// The second fragment of a packet whose first one was sent.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u32,
    flow: Flow,
    identification: u32,
    /// Bytes of the IP payload in the first fragment.
    first: usize,
}

/// Room for every header that can stand before a payload: MAC header, eight tags, four labels or PPPoE, IPv6
/// with fragment header, TCP.
const HEADROOM: usize = 192;
/// IP payload in second fragments, bytes.
const SECOND: usize = 200;
/// IP payload in first fragments, at most.
const FIRST_MAX: usize = 60_000;

/// The side of the servers, unless PPPoE names a peer.
const GATEWAY_MAC: MacAddress = MacAddress([0x02, 0, 0, 0, 0, 0x01]);

const TTL: u8 = 57;

impl Generator {
    /// The scenario must have passed its check.
    pub(crate) fn new(scenario: Scenario, seed: u64) -> Generator {
        let flows = Flows {
            seed,
            subscribers: scenario.subscribers,
            ipv6_percent: scenario.ipv6_percent,
            udp_percent: scenario.udp_percent,
            direction: scenario.direction,
        };
        let pattern = usize::from(scenario.mtu) + SECOND;
        let buffer: Vec<u8> = (0..HEADROOM).map(|_| 0).chain((0..pattern).map(|place| place as u8)).collect();
        let mut sum = Sum::ZERO;
        let pairs = buffer[HEADROOM..].chunks_exact(2).map(|pair| {
            sum = sum.bytes(pair);
            sum.folded()
        });
        let sums = [0].into_iter().chain(pairs).collect();
        Generator {
            flows,
            weights: scenario.classes.iter().map(|class| class.weight).sum(),
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            sampler: Sampler::new(scenario.popularity, scenario.flows),
            clock: Clock::new(scenario.arrival),
            sequences: (0..scenario.flows).map(|number| mix(seed ^ u64::from(number)) as u32).collect(),
            buffer,
            sums,
            aside: vec![0; HEADROOM + SECOND],
            pending: None,
            frames: 0,
            controls: 0,
            fragmented: 0,
            scenario,
        }
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Number of flows. Flows count from 0.
    pub fn flows(&self) -> u32 {
        self.scenario.flows
    }

    /// The 5-tuple of a flow, as a dissector sees it; `None` for a number that is not below
    /// [`Generator::flows`].
    pub fn flow(&self, number: u32) -> Option<FlowKey> {
        (number < self.flows()).then(|| self.flows.flow(number).key()).flatten()
    }

    /// The encapsulation of a flow's frames.
    pub fn encapsulation(&self, number: u32) -> Option<Encapsulation> {
        (number < self.flows()).then(|| self.line(&self.flows.flow(number)).encapsulation)
    }

    /// The next frame.
    pub fn next_frame(&mut self) -> Frame<'_> {
        let timestamp_ns = self.clock.tick(&mut self.random);
        let event = below(&mut self.random, 1_000_000) as u32;
        let number = self.sampler.draw(&mut self.random);
        let size = self.scenario.sizes.draw(&mut self.random);
        self.frames += 1;
        let written = self.write(event, number, size);
        let (place, flow) = written.expect("room for every header was made");
        let bytes = match place {
            Place::Buffer(range) => &self.buffer[range],
            Place::Aside(length) => &self.aside[..length],
        };
        Frame { timestamp_ns, bytes, flow }
    }

    fn write(&mut self, event: u32, number: u32, size: u16) -> Result<(Place, Option<u32>), EmitError> {
        if let Some(pending) = self.pending.take() {
            return Ok((Place::Aside(self.later_fragment(&pending)?), Some(pending.number)));
        }
        let flow = self.flows.flow(number);
        let line = self.line(&flow);
        let control = self.scenario.control_per_million;
        if event < control {
            self.controls = self.controls.wrapping_add(1);
            return Ok((Place::Aside(line.write(self.controls - 1, &mut self.aside)?), None));
        }
        let range = if event - control < self.scenario.fragments_per_million {
            self.first_fragment(number, flow, &line)?
        } else {
            self.whole(number, &flow, &line, size)?
        };
        Ok((Place::Buffer(range), Some(number)))
    }

    fn line(&self, flow: &Flow) -> Line {
        let encapsulation = self.class(flow).of_subscriber(flow.subscriber);
        let [a, b, c, d] = flow.subscriber.to_be_bytes();
        Line {
            encapsulation,
            subscriber: flow.subscriber,
            subscriber_mac: MacAddress([0x02, 0x01, a, b, c, d]),
            gateway_mac: encapsulation.pppoe().and_then(|pppoe| pppoe.peer).unwrap_or(GATEWAY_MAC),
        }
    }

    fn class(&self, flow: &Flow) -> &Class {
        let mut place = ((u64::from(flow.random) * u64::from(self.weights)) >> 32) as u32;
        let classes = &self.scenario.classes;
        let of = classes.iter().find(|class| {
            let here = place < class.weight;
            place = place.saturating_sub(class.weight);
            here
        });
        of.unwrap_or(&classes[0])
    }

    /// What an IP packet may take in this encapsulation.
    fn mtu(&self, encapsulation: &Encapsulation) -> usize {
        usize::from(self.scenario.mtu) - if encapsulation.pppoe().is_some() { 8 } else { 0 }
    }

    fn whole(&mut self, number: u32, flow: &Flow, line: &Line, size: u16) -> Result<Range<usize>, EmitError> {
        let headers = ip_header(flow) + transport_header(flow);
        let largest = self.mtu(&line.encapsulation);
        let packet = usize::from(size - Sizes::ETHERNET).clamp(headers, largest);
        let payload = packet - headers;
        let transport = HEADROOM - transport_header(flow);
        self.transport(number, flow, payload)?;
        let start = transport - ip_header(flow) - line.encapsulation.length();
        let ip =
            Ip { flow, payload: packet - ip_header(flow), identification: self.frames as u32, part: None };
        ip.emit_behind(line, self.scenario.direction, &mut self.buffer[start..])?;
        Ok(start..HEADROOM + payload)
    }

    fn first_fragment(&mut self, number: u32, flow: Flow, line: &Line) -> Result<Range<usize>, EmitError> {
        let extra = if flow.source.is_ipv6() { 8 } else { 0 };
        let room = self.mtu(&line.encapsulation) - ip_header(&flow) - extra;
        let first = room.min(FIRST_MAX) & !7;
        let transport = HEADROOM - transport_header(&flow);
        self.transport(number, &flow, first + SECOND - transport_header(&flow))?;
        let start = transport - ip_header(&flow) - extra - line.encapsulation.length();
        self.fragmented = self.fragmented.wrapping_add(1);
        let identification = self.fragmented;
        let part = Some(Part { offset: 0, more: true });
        let ip = Ip { flow: &flow, payload: first, identification, part };
        ip.emit_behind(line, self.scenario.direction, &mut self.buffer[start..])?;
        self.pending = Some(Pending { number, flow, identification, first });
        Ok(start..transport + first)
    }

    fn later_fragment(&mut self, pending: &Pending) -> Result<usize, EmitError> {
        let Pending { flow, identification, first, .. } = pending;
        let line = self.line(flow);
        let part = Some(Part { offset: (first / 8) as u16, more: false });
        let ip = Ip { flow, payload: SECOND, identification: *identification, part };
        let at = ip.emit_behind(&line, self.scenario.direction, &mut self.aside)?;
        let from = HEADROOM - transport_header(flow) + first;
        self.aside[at..at + SECOND].copy_from_slice(&self.buffer[from..from + SECOND]);
        Ok(at + SECOND)
    }

    /// Writes the transport header before the pattern, for `payload` bytes of it.
    fn transport(&mut self, number: u32, flow: &Flow, payload: usize) -> Result<(), EmitError> {
        let length = transport_header(flow) + payload;
        let at = HEADROOM - transport_header(flow);
        let (source_port, destination_port) = (flow.source_port, flow.destination_port);
        let place = &mut self.buffer[at..HEADROOM];
        let checksum_at = if flow.protocol == IpProtocol::UDP {
            emit::Udp { source_port, destination_port, length: length as u16, checksum: 0 }.emit(place)?;
            6
        } else {
            let sequence = self.sequences[number as usize];
            self.sequences[number as usize] = sequence.wrapping_add(payload as u32);
            let header = emit::Tcp {
                source_port,
                destination_port,
                sequence,
                acknowledgment: 1,
                flags: emit::Tcp::ACK,
                window: 0xffff,
                ..emit::Tcp::default()
            };
            header.emit(place)?;
            16
        };
        let pseudo = Sum::pseudo_header(flow.source, flow.destination, flow.protocol, length);
        let mut sum = pseudo.unwrap_or_default().bytes(place).word(self.sums[payload / 2]);
        if payload % 2 == 1 {
            sum = sum.word(u16::from(self.buffer[HEADROOM + payload - 1]) << 8);
        }
        let checksum = match sum.finish() {
            0 if flow.protocol == IpProtocol::UDP => 0xffff, // RFC 768: zero would mean none
            checksum => checksum,
        };
        self.buffer[at + checksum_at..at + checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        Ok(())
    }
}

enum Place {
    Buffer(Range<usize>),
    Aside(usize),
}

fn ip_header(flow: &Flow) -> usize {
    if flow.source.is_ipv4() { 20 } else { 40 }
}

fn transport_header(flow: &Flow) -> usize {
    if flow.protocol == IpProtocol::UDP { 8 } else { 20 }
}

/// The place of a fragment, offset in units of eight bytes.
#[derive(Clone, Copy)]
struct Part {
    offset: u16,
    more: bool,
}

struct Ip<'a> {
    flow: &'a Flow,
    /// Bytes behind IP and fragment header.
    payload: usize,
    identification: u32,
    part: Option<Part>,
}

impl Ip<'_> {
    /// Writes everything from the MAC header to the IP header and gives its length.
    fn emit_behind(&self, line: &Line, direction: Direction, buffer: &mut [u8]) -> Result<usize, EmitError> {
        let (destination_mac, source_mac) = match direction {
            Direction::Downstream => (line.subscriber_mac, line.gateway_mac),
            Direction::Upstream => (line.gateway_mac, line.subscriber_mac),
        };
        let flow = self.flow;
        let fragment_header = match self.part {
            Some(_) if flow.source.is_ipv6() => 8,
            _ => 0,
        };
        let packet = ip_header(flow) + fragment_header + self.payload;
        let version = if flow.source.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 };
        let at = line.encapsulation.emit(destination_mac, source_mac, version, packet, buffer)?;
        let length = match (flow.source, flow.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let part = self.part.unwrap_or(Part { offset: 0, more: false });
                let header = emit::Ipv4 {
                    identification: self.identification as u16,
                    dont_fragment: self.part.is_none(),
                    more_fragments: part.more,
                    fragment_offset: part.offset,
                    ttl: TTL,
                    ..emit::Ipv4::new(flow.protocol, source, destination, packet as u16)
                };
                header.emit(&mut buffer[at..])?
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let protocol = if self.part.is_some() { IpProtocol::FRAGMENT } else { flow.protocol };
                let header = emit::Ipv6 {
                    flow_label: flow.random & 0xf_ffff,
                    hop_limit: TTL,
                    ..emit::Ipv6::new(protocol, source, destination, (packet - 40) as u16)
                };
                let length = header.emit(&mut buffer[at..])?;
                match self.part {
                    Some(Part { offset, more }) => {
                        let (next_header, identification) = (flow.protocol, self.identification);
                        let fragment = emit::Fragment { next_header, offset, more, identification };
                        length + fragment.emit(&mut buffer[at + length..])?
                    }
                    None => length,
                }
            }
            _ => 0,
        };
        Ok(at + length)
    }
}

//! Which receive queue each flow of a scenario comes to: looked up in the device with a frame of the flow.

use super::format::{self, Flow};
use crate::plan::FlowPlan;
use nic::document::FileError;
use nic::{Profile, Receiver, Setup};
use std::net::IpAddr;
use traffic::{Class, Popularity, Scenario, Sizes};
use wire::emit::{self, Emit, Encapsulation};
use wire::ethernet::MacAddress;
use wire::{IpProtocol, IpVersion, Link, dissect};

/// An interface's device.
pub(super) struct Device {
    /// `None`: flows are spread over the queues in turn, and frames of every length are let in.
    pub(super) profile: Option<Profile>,
    pub(super) setup: Setup,
    pub(super) queues: u16,
    /// Number of its first queue among those of all interfaces.
    pub(super) first: u32,
}

impl Device {
    pub(super) fn receiver(&self, name: &str) -> Result<Option<Receiver>, FileError> {
        let receiver = self.profile.clone().map(|profile| Receiver::new(profile, &self.setup)).transpose();
        receiver.map_err(|error| FileError::of(format!("interface.{name}"), error.to_string()))
    }
}

/// What becomes of the flows of a traffic.
pub(super) struct Landing {
    pub(super) flows: Box<[FlowPlan]>,
    /// Longest frame let in, bytes without FCS.
    pub(super) longest: u32,
    /// Bytes of the encapsulation.
    pub(super) overhead: u32,
}

impl Default for Landing {
    fn default() -> Landing {
        Landing { flows: Box::default(), longest: u32::MAX, overhead: 0 }
    }
}

/// Lands a frame of each flow. `key` is for messages. Errors: the encapsulation is none, or the device's profile does not
/// say where such frames go.
pub(super) fn land(
    key: &str,
    traffic: &format::Traffic,
    device: &Device,
    seed: u64,
    inputs: usize,
) -> Result<Landing, FileError> {
    let key = key.trim_end_matches('.');
    let encapsulation: Encapsulation = match traffic.encap.as_deref() {
        None => Encapsulation::NONE,
        Some(text) => {
            text.parse().map_err(|error| FileError::of(format!("{key}.encap"), format!("{error}")))?
        }
    };
    if let Some(queue) = traffic.queue
        && queue >= device.queues
    {
        let problem = format!("expected 0 to {}, found {queue}", device.queues - 1);
        return Err(FileError::of(format!("{key}.queue"), problem));
    }
    let receiver = device.receiver(&traffic.interface)?;
    let mut landing = Landing { overhead: encapsulation.overhead() as u32, ..Landing::default() };
    let mut flows = Vec::new();
    let number = |flow: usize| (flow as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let mut take = |frame: &[u8], flow: usize| -> Result<(), FileError> {
        let queue = match (traffic.queue, &receiver) {
            (Some(queue), _) => queue,
            (None, None) => (flow % usize::from(device.queues)) as u16,
            (None, Some(receiver)) => queue_of(receiver, frame, key)?,
        };
        if let Some(receiver) = &receiver {
            let disposition = receiver.disposition(&dissect(Link::Ethernet, frame, frame.len()));
            landing.longest = landing.longest.min(disposition.longest.unwrap_or(u32::MAX));
        }
        let input = number(flow) % inputs.max(1) as u64;
        flows.push(FlowPlan { queue: device.first + u32::from(queue), input: input as u32 });
        Ok(())
    };
    if traffic.flow.is_empty() {
        let mut generator = scenario(traffic, encapsulation)
            .generate(seed)
            .map_err(|error| FileError::of(key, error.to_string()))?;
        for flow in 0..traffic.flows as usize {
            take(generator.next_frame().bytes, flow)?;
        }
    } else {
        for (at, flow) in traffic.flow.iter().enumerate() {
            let frame = frame(&encapsulation, flow).ok_or_else(|| {
                FileError::of(format!("{key}.flow"), "two addresses of one version make a flow")
            })?;
            take(&frame, at)?;
        }
    }
    landing.flows = flows.into();
    Ok(landing)
}

fn queue_of(receiver: &Receiver, frame: &[u8], key: &str) -> Result<u16, FileError> {
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let disposition = receiver.disposition(&seen);
    receiver.land(&disposition, frame, &seen).queue.ok_or_else(|| {
        let (nic, why) = (receiver.profile().name(), &disposition.why);
        let problem =
            format!("the profile of {nic} does not say to which queue these frames go ({why}): say it, as in queue = 0");
        FileError::of(format!("{key}.queue"), problem)
    })
}

/// Traffic of which each frame is the next flow's.
fn scenario(traffic: &format::Traffic, encapsulation: Encapsulation) -> Scenario {
    let mut scenario = Scenario::new(encapsulation).data_only().with_flows(traffic.flows);
    scenario.classes = vec![Class { weight: 1, encapsulation, tags_per_subscriber: traffic.own_tags }];
    scenario.subscribers = traffic.subscribers;
    scenario.popularity = Popularity::RoundRobin;
    scenario.sizes = Sizes::Fixed(Sizes::LEAST);
    scenario.ipv6_percent = traffic.ipv6_percent;
    scenario.udp_percent = traffic.udp_percent;
    scenario
}

/// A frame of a flow that is written out in the scenario.
fn frame(encapsulation: &Encapsulation, flow: &Flow) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 256];
    let (protocol, transport) = if flow.tcp { (IpProtocol::TCP, 20) } else { (IpProtocol::UDP, 8) };
    let (version, header) = if flow.source.is_ipv4() { (IpVersion::V4, 20) } else { (IpVersion::V6, 40) };
    let packet = header + transport;
    let (to, from) = (MacAddress([2, 0, 0, 0, 0, 1]), MacAddress([2, 0, 0, 0, 0, 2]));
    let mut at = encapsulation.emit(to, from, version, packet, &mut buffer).ok()?;
    at += match (flow.source, flow.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total_length = packet as u16;
            let header = emit::Ipv4::new(protocol, source, destination, total_length);
            header.emit(buffer.get_mut(at..)?).ok()?
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let header = emit::Ipv6 {
                traffic_class: 0,
                flow_label: 0,
                payload_length: transport as u16,
                next_header: protocol,
                hop_limit: 64,
                source,
                destination,
            };
            header.emit(buffer.get_mut(at..)?).ok()?
        }
        _ => return None,
    };
    let (source_port, destination_port) = (flow.source_port, flow.destination_port);
    at += if flow.tcp {
        emit::Tcp { source_port, destination_port, ..emit::Tcp::default() }
            .emit(buffer.get_mut(at..)?)
            .ok()?
    } else {
        let header = emit::Udp { source_port, destination_port, length: transport as u16, checksum: 0 };
        header.emit(buffer.get_mut(at..)?).ok()?
    };
    buffer.truncate(at);
    Some(buffer)
}

//! Who talks to whom: flows as a function of seed and number, so that none has to be stored.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::{FlowKey, IpProtocol};

/// Which way the frames go. A receive path sees one way of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From servers to subscribers: what the port towards the network of a subscriber's router receives.
    Downstream,
    /// From subscribers to servers: what the port towards the subscribers of a concentrator receives.
    Upstream,
}

/// What the flows of a scenario are drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flows {
    pub(crate) seed: u64,
    pub(crate) subscribers: u32,
    /// Of 100 flows.
    pub(crate) ipv6_percent: u8,
    /// Of 100 flows.
    pub(crate) udp_percent: u8,
    pub(crate) direction: Direction,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) protocol: IpProtocol,
    pub(crate) subscriber: u32,
    pub(crate) random: u32,
}

impl Flow {
    pub(crate) fn key(&self) -> Option<FlowKey> {
        let (source, destination) = (self.source, self.destination);
        FlowKey::with_ports(source, self.source_port, destination, self.destination_port, self.protocol.0)
    }
}

/// The most subscribers: what 100.64.0.0/10 holds, less two for network and gateway.
pub(crate) const MAX_SUBSCRIBERS: u32 = (1 << 22) - 2;

impl Flows {
    /// Flow `number`. Distinct numbers have distinct pairs of server and subscriber's port, hence distinct
    /// 5-tuples.
    pub(crate) fn flow(&self, number: u32) -> Flow {
        let pair = scramble(number ^ mix(self.seed) as u32);
        let (server, client_port) = (pair & 0x1_ffff, 0x8000 | (pair >> 17) as u16);
        let random = mix(self.seed.rotate_left(32) ^ 0x5851_f42d_4c95_7f2d ^ u64::from(number));
        let percent = |bits: u64| (((bits & 0xffff) * 100) >> 16) as u8;
        let is_udp = percent(random >> 16) < self.udp_percent;
        let subscriber = (((random >> 32) * u64::from(self.subscribers)) >> 32) as u32;
        let further = mix(random);
        let (server_ip, client_ip): (IpAddr, IpAddr) = if percent(random) < self.ipv6_percent {
            (server_v6(server, further).into(), subscriber_v6(subscriber).into())
        } else {
            (server_v4(server).into(), subscriber_v4(subscriber).into())
        };
        let ports = if is_udp { UDP_PORTS } else { TCP_PORTS };
        let server_port = ports[(further >> 60) as usize & 3];
        let server = (server_ip, server_port);
        let client = (client_ip, client_port);
        let (source, destination) = match self.direction {
            Direction::Downstream => (server, client),
            Direction::Upstream => (client, server),
        };
        Flow {
            source: source.0,
            destination: destination.0,
            source_port: source.1,
            destination_port: destination.1,
            protocol: if is_udp { IpProtocol::UDP } else { IpProtocol::TCP },
            subscriber,
            random: (further >> 20) as u32,
        }
    }
}

/// Servers' ports, of which a quarter of the flows each.
const TCP_PORTS: [u16; 4] = [443, 443, 443, 80];
/// No port whose protocol a dissector would look for in the payload, which is a mere pattern.
const UDP_PORTS: [u16; 4] = [40_000, 40_001, 40_002, 40_003];

fn server_v4(server: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(198, 18, 0, 0)) | server)
}

pub(crate) fn subscriber_v4(subscriber: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(100, 64, 0, 0)) | (subscriber + 2))
}

pub(crate) const GATEWAY_V4: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);

fn server_v6(server: u32, random: u64) -> Ipv6Addr {
    let network = 0x2001_0db8_0000_0000 | u64::from(server);
    Ipv6Addr::from(u128::from(network) << 64 | u128::from(random))
}

fn subscriber_v6(subscriber: u32) -> Ipv6Addr {
    let network = 0x2001_0db8_8000_0000 | u64::from(subscriber);
    Ipv6Addr::from(u128::from(network) << 64 | 2)
}

/// A permutation of the 32-bit numbers: multiplications by odd numbers and shifted exclusive ors can all be
/// undone.
fn scramble(mut value: u32) -> u32 {
    value ^= value >> 16;
    value = value.wrapping_mul(0x7feb_352d);
    value ^= value >> 15;
    value = value.wrapping_mul(0x846c_a68b);
    value ^ value >> 16
}

/// The output function of SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const FLOWS: Flows = Flows {
        seed: 1,
        subscribers: 1,
        ipv6_percent: 25,
        udp_percent: 20,
        direction: Direction::Downstream,
    };

    #[test]
    fn flows_are_distinct() {
        let keys: HashSet<_> = (0..300_000).filter_map(|number| FLOWS.flow(number).key()).collect();
        assert_eq!(keys.len(), 300_000);
    }

    #[test]
    fn shares_are_as_requested() {
        let all = || (0..100_000).map(|number| FLOWS.flow(number));
        let ipv6 = all().filter(|flow| flow.source.is_ipv6()).count();
        let udp = all().filter(|flow| flow.protocol == IpProtocol::UDP).count();
        let both = all().filter(|f| f.source.is_ipv6() && f.protocol == IpProtocol::UDP).count();
        assert!(ipv6.abs_diff(25_000) < 700 && udp.abs_diff(20_000) < 700 && both.abs_diff(5_000) < 350);
        let none = Flows { ipv6_percent: 0, udp_percent: 100, ..FLOWS };
        assert!((0..1000).map(|n| none.flow(n)).all(|f| f.source.is_ipv4() && f.protocol == IpProtocol::UDP));
    }

    #[test]
    fn upstream_is_downstream_reversed() {
        let upstream = Flows { direction: Direction::Upstream, ..FLOWS };
        for number in 0..100 {
            let down = FLOWS.flow(number).key();
            assert_eq!(upstream.flow(number).key(), down.map(|key| key.reversed()));
        }
    }

    #[test]
    fn subscribers_all_occur_and_keep_their_address() {
        let flows = Flows { subscribers: 10, ipv6_percent: 0, ..FLOWS };
        let seen: HashSet<_> =
            (0..1000).map(|n| flows.flow(n)).map(|f| (f.subscriber, f.destination)).collect();
        assert_eq!(seen.len(), 10);
    }
}

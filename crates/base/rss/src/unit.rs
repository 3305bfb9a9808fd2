//! A hash unit: which hash type fits a packet, and its hash.

use crate::{FlowHash, FlowType, HashFields, HashKey, HashType, HashTypes, Path, Toeplitz, UnitError};
use wire::flow::{FlowKey, IpVersion};

/// IP protocol numbers (IANA "Assigned Internet Protocol Numbers").
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// What a hash unit has seen of a packet's IP header and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Addresses, protocol and, where a transport header was seen, ports.
    pub flow: FlowKey,
    /// Whether the packet is a fragment, the first one included.
    pub fragment: bool,
    /// The address of a home address option in an IPv6 destination options header (RFC 6275, section 6.3).
    pub home_address: Option<[u8; 16]>,
    /// The address of a type 2 routing header (RFC 6275, section 6.4).
    pub routing2_destination: Option<[u8; 16]>,
}

impl Packet {
    /// An unfragmented packet without the extension headers that Ex types look for.
    pub const fn of(flow: FlowKey) -> Packet {
        Packet { flow, fragment: false, home_address: None, routing2_destination: None }
    }
}

/// The bytes that are hashed for a packet, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashInput {
    bytes: [u8; 36],
    length: usize,
}

impl HashInput {
    const EMPTY: HashInput = HashInput { bytes: [0; 36], length: 0 };

    fn push(&mut self, bytes: &[u8]) {
        let end = self.length + bytes.len();
        if let Some(place) = self.bytes.get_mut(self.length..end) {
            place.copy_from_slice(bytes);
            self.length = end;
        }
    }

    /// The bytes; none for [`HashType::None`].
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// The hash unit of a device as it is set up: key, enabled types, fields per type.
#[derive(Clone, Debug)]
pub struct HashUnit {
    types: HashTypes,
    /// The types whose fields are not those of the specification, with their fields: few, mostly none.
    narrowed: Vec<(HashType, HashFields)>,
    toeplitz: Toeplitz,
}

impl HashUnit {
    /// A unit with these types enabled, each over the fields that define it. Errors: a key that does not
    /// cover addresses and ports of IPv6.
    pub fn new(key: &HashKey, types: HashTypes) -> Result<HashUnit, UnitError> {
        Ok(HashUnit { types, narrowed: Vec::new(), toeplitz: Toeplitz::new(key)? })
    }

    /// The enabled types.
    pub const fn types(&self) -> HashTypes {
        self.types
    }

    /// The hash function.
    pub const fn toeplitz(&self) -> &Toeplitz {
        &self.toeplitz
    }

    /// The path by which hashes are computed.
    pub const fn path(&self) -> Path {
        self.toeplitz.path()
    }

    /// Applies a setting of `ethtool -N … rx-flow-hash`.
    ///
    /// `udp4=sdfn` enables the type (the Ex type where Ex types are enabled). `udp4=sd` disables it where
    /// the type of plain IP is enabled, so that UDP is hashed as any other IP packet: what Linux's igb and
    /// ixgbe do. Where it is not, and for fields between the two, the type stays and hashes the fields that
    /// are selected, in their usual order and with the others left out; which input a device really forms
    /// for such a selection, no specification says. AH and ESP packets are hashed as plain IP.
    ///
    /// Errors: fields other than addresses and ports, or AH and ESP while plain IP is not hashed.
    pub fn set_flow(&mut self, setting: FlowHash) -> Result<(), UnitError> {
        let FlowHash { flow, fields } = setting;
        if !fields.within(HashFields::ADDRESSES_AND_PORTS) {
            return Err(UnitError::Undefined { flow, fields });
        }
        let plain = self.plain(flow);
        let Some(hash_type) = self.type_of(flow) else {
            if fields != HashFields::ADDRESSES {
                return Err(UnitError::Undefined { flow, fields });
            }
            return match self.types.contains(plain) {
                true => Ok(()),
                false => Err(UnitError::NeedsType { flow, fields, needs: plain }),
            };
        };
        self.narrowed.retain(|(narrowed, _)| *narrowed != hash_type);
        if hash_type != plain && fields == HashFields::ADDRESSES && self.types.contains(plain) {
            self.types.remove(hash_type);
            return Ok(());
        }
        self.types.insert(hash_type);
        if fields != default_fields(hash_type) {
            self.narrowed.push((hash_type, fields));
        }
        Ok(())
    }

    fn uses_ex(&self) -> bool {
        self.types.iter().any(HashType::is_ex)
    }

    /// The type of plain IP for a flow type.
    fn plain(&self, flow: FlowType) -> HashType {
        use FlowType::*;
        match flow {
            Tcp4 | Udp4 | Sctp4 | Ah4 | Esp4 | Ip4 => HashType::Ipv4,
            Tcp6 | Udp6 | Sctp6 | Ah6 | Esp6 | Ip6 if self.uses_ex() => HashType::Ipv6Ex,
            Tcp6 | Udp6 | Sctp6 | Ah6 | Esp6 | Ip6 => HashType::Ipv6,
        }
    }

    /// The hash type that a flow type's fields belong to; AH and ESP have none of their own.
    fn type_of(&self, flow: FlowType) -> Option<HashType> {
        Some(match flow {
            FlowType::Tcp4 => HashType::TcpIpv4,
            FlowType::Udp4 => HashType::UdpIpv4,
            FlowType::Sctp4 => HashType::SctpIpv4,
            FlowType::Tcp6 if self.uses_ex() => HashType::TcpIpv6Ex,
            FlowType::Tcp6 => HashType::TcpIpv6,
            FlowType::Udp6 if self.uses_ex() => HashType::UdpIpv6Ex,
            FlowType::Udp6 => HashType::UdpIpv6,
            FlowType::Sctp6 => HashType::SctpIpv6,
            FlowType::Ip4 | FlowType::Ip6 => self.plain(flow),
            FlowType::Ah4 | FlowType::Esp4 | FlowType::Ah6 | FlowType::Esp6 => return None,
        })
    }

    /// The hash type that the device uses for a packet.
    ///
    /// The type of the transport protocol wins over the type of the IP version, an Ex type over its plain
    /// one (I210 datasheet, section 7.1.2.10.1). A fragment, even the first with a whole transport header,
    /// is hashed as plain IP (Microsoft, "RSS Hashing Types", note on `NDIS_HASH_IPV4`). A packet of a
    /// transport whose type is not enabled is hashed as plain IP too, or not at all where that is off.
    #[inline]
    pub fn choose(&self, packet: &Packet) -> HashType {
        let protocol = packet.flow.protocol();
        let with_ports = packet.flow.has_ports() && !packet.fragment;
        let order: [HashType; 4] = match (packet.flow.version(), protocol) {
            (IpVersion::V4, TCP) if with_ports => [HashType::TcpIpv4, HashType::Ipv4, NO, NO],
            (IpVersion::V4, UDP) if with_ports => [HashType::UdpIpv4, HashType::Ipv4, NO, NO],
            (IpVersion::V4, SCTP) if with_ports => [HashType::SctpIpv4, HashType::Ipv4, NO, NO],
            (IpVersion::V4, _) => [HashType::Ipv4, NO, NO, NO],
            (IpVersion::V6, TCP) if with_ports => {
                [HashType::TcpIpv6Ex, HashType::TcpIpv6, HashType::Ipv6Ex, HashType::Ipv6]
            }
            (IpVersion::V6, UDP) if with_ports => {
                [HashType::UdpIpv6Ex, HashType::UdpIpv6, HashType::Ipv6Ex, HashType::Ipv6]
            }
            (IpVersion::V6, SCTP) if with_ports => [HashType::SctpIpv6, HashType::Ipv6Ex, HashType::Ipv6, NO],
            (IpVersion::V6, _) => [HashType::Ipv6Ex, HashType::Ipv6, NO, NO],
        };
        order.into_iter().find(|hash_type| self.types.contains(*hash_type)).unwrap_or(HashType::None)
    }

    /// The fields that a type hashes.
    pub fn fields(&self, hash_type: HashType) -> HashFields {
        let narrowed = self.narrowed.iter().find(|(narrowed, _)| *narrowed == hash_type);
        narrowed.map_or(default_fields(hash_type), |(_, fields)| *fields)
    }

    /// The bytes that are hashed for a packet under a type.
    pub fn input(&self, packet: &Packet, hash_type: HashType) -> HashInput {
        let mut input = HashInput::EMPTY;
        if hash_type == HashType::None {
            return input;
        }
        let fields = self.fields(hash_type);
        let (source, destination) = addresses(packet, hash_type);
        let (_, ports) = packet.flow.addresses_and_ports().split_at(packet.flow.addresses().len());
        let (source_port, destination_port) = ports.split_at(ports.len() / 2);
        let parts = [
            (HashFields::SOURCE, source),
            (HashFields::DESTINATION, destination),
            (HashFields::SOURCE_PORT, source_port),
            (HashFields::DESTINATION_PORT, destination_port),
        ];
        parts.iter().filter(|(field, _)| fields.contains(*field)).for_each(|(_, bytes)| input.push(bytes));
        input
    }

    /// The hash type of a packet and its hash; 0 for [`HashType::None`].
    #[inline]
    pub fn hash(&self, packet: &Packet) -> (HashType, u32) {
        let hash_type = self.choose(packet);
        if hash_type == HashType::None {
            return (hash_type, 0);
        }
        let replaced =
            hash_type.is_ex() && (packet.home_address.is_some() || packet.routing2_destination.is_some());
        if replaced || !self.narrowed.is_empty() {
            return (hash_type, self.hash_input(packet, hash_type));
        }
        // The usual case: the input is a prefix of the flow key.
        let bytes = packet.flow.bytes();
        let hash = match (packet.flow.version(), hash_type.has_ports()) {
            (IpVersion::V4, true) => bytes.first_chunk().map(|input| self.toeplitz.hash_12(input)),
            (IpVersion::V4, false) => bytes.first_chunk().map(|input| self.toeplitz.hash_8(input)),
            (IpVersion::V6, true) => bytes.first_chunk().map(|input| self.toeplitz.hash_36(input)),
            (IpVersion::V6, false) => bytes.first_chunk().map(|input| self.toeplitz.hash_32(input)),
        };
        (hash_type, hash.unwrap_or(0))
    }

    #[cold]
    fn hash_input(&self, packet: &Packet, hash_type: HashType) -> u32 {
        // 36 bytes at most, which the key covers (`HashUnit::new`).
        self.toeplitz.hash(self.input(packet, hash_type).bytes()).unwrap_or(0)
    }
}

const NO: HashType = HashType::None;

const fn default_fields(hash_type: HashType) -> HashFields {
    if hash_type.has_ports() { HashFields::ADDRESSES_AND_PORTS } else { HashFields::ADDRESSES }
}

/// Source and destination address as the type takes them.
fn addresses(packet: &Packet, hash_type: HashType) -> (&[u8], &[u8]) {
    let plain = packet.flow.addresses();
    let (source, destination) = plain.split_at(plain.len() / 2);
    if !hash_type.is_ex() {
        return (source, destination);
    }
    let home = packet.home_address.as_ref().map_or(source, |address| address.as_slice());
    let routed = packet.routing2_destination.as_ref().map_or(destination, |address| address.as_slice());
    (home, routed)
}

//! A device as it is set up on one machine: which queue each frame lands on, and which frames are let in.

use crate::parser::{self, ParserDepth, Why};
use crate::schema::{self, Key};
use crate::{Profile, Value, admission};
use rss::{
    FlowHash, HashFields, HashKey, HashType, HashTypes, HashUnit, IndirectionTable, Packet, TableError,
    TableShape, UnitError, Unmatched,
};
use wire::{Dissection, IpVersion, Shape};

/// Queues that are assumed where neither the caller nor the profile says fewer: a quad-core router's.
pub const USUAL_QUEUES: u16 = 4;

/// How the device is set up, as far as it differs from the profile's defaults.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Receive queues in use.
    pub queues: Option<u16>,
    /// Hash key; without one, Microsoft's verification key, under which results can be checked by hand.
    pub key: Option<HashKey>,
    /// Content of the indirection table, one queue an entry.
    pub table: Option<Vec<u16>>,
    /// Hash fields per flow type.
    pub fields: Vec<FlowHash>,
}

/// What cannot be set up on a device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// More queues than the device has, or none.
    #[error("{nic} has 1 to {most} receive queues for RSS, not {asked}")]
    Queues {
        /// Device.
        nic: String,
        /// Its queues.
        most: u64,
        /// What was asked for.
        asked: u16,
    },
    /// The driver does not let the fields of this flow type be changed.
    #[error("{nic}: hash fields of {flow} cannot be changed (those of {settable} can)")]
    Fields {
        /// Device.
        nic: String,
        /// What was asked for.
        flow: String,
        /// What can be changed.
        settable: String,
    },
    /// The table does not fit the device.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Key or fields do not fit the hash unit.
    #[error(transparent)]
    Unit(#[from] UnitError),
}

/// Where a frame lands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// Type, [`HashType::None`] where the frame is not hashed.
    pub hash_type: HashType,
    /// Value, 0 where the frame is not hashed.
    pub hash: u32,
    /// Queue; `None` where the profile does not say.
    pub queue: Option<u16>,
}

/// What happens to all frames of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disposition {
    /// How far the parser comes.
    pub depth: ParserDepth,
    /// Why.
    pub why: Why,
    /// Type of hash.
    pub hash_type: HashType,
    /// The longest frame let in, bytes without FCS; `None` where the profile does not say.
    pub longest: Option<u32>,
    /// The input of the hash, where it is a prefix of the flow key for every frame of the shape.
    prefix: Option<Prefix>,
}

/// How much of a flow key is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    Ipv4,
    Ipv4Ports,
    Ipv6,
    Ipv6Ports,
}

/// A device as it is set up.
pub struct Receiver {
    profile: Profile,
    unit: Option<HashUnit>,
    table: Result<IndirectionTable, Option<u16>>,
    unmatched: Option<Unmatched>,
    queues: u16,
    key: HashKey,
    key_given: bool,
}

impl Receiver {
    /// Sets the device up. Errors: what the device or its driver would refuse.
    pub fn new(profile: Profile, setup: &Setup) -> Result<Receiver, SetupError> {
        let most = profile.int(schema::RX_QUEUES);
        let queues = setup.queues.unwrap_or_else(|| {
            let most = most.unwrap_or(u64::from(USUAL_QUEUES));
            u16::try_from(most).unwrap_or(USUAL_QUEUES).min(USUAL_QUEUES)
        });
        if queues == 0 || most.is_some_and(|most| u64::from(queues) > most) {
            let (nic, most) = (profile.name(), most.unwrap_or(u64::from(u16::MAX)));
            return Err(SetupError::Queues { nic, most, asked: queues });
        }
        let key = setup.key.clone().unwrap_or(HashKey::MICROSOFT);
        let unit = unit(&profile, &key, &setup.fields)?;
        let table = match profile.text(schema::SELECTION) {
            Some("rss") => Ok(table(&profile, queues, setup.table.as_deref())?),
            Some("single") => Err(Some(0)),
            _ if queues == 1 => Err(Some(0)),
            _ => Err(None),
        };
        let unmatched = match profile.text(schema::UNHASHED_FRAMES) {
            Some("entry-0") => Some(Unmatched::EntryZero),
            Some("queue-0") => Some(Unmatched::QueueZero),
            _ => None,
        };
        let key_given = setup.key.is_some();
        Ok(Receiver { profile, unit, table, unmatched, queues, key, key_given })
    }

    /// The device.
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Receive queues in use.
    pub const fn queues(&self) -> u16 {
        self.queues
    }

    /// The hash key in use.
    pub const fn key(&self) -> &HashKey {
        &self.key
    }

    /// Whether the caller named the key.
    pub const fn key_given(&self) -> bool {
        self.key_given
    }

    /// The enabled hash types; none where the profile does not say what is hashed.
    pub fn hash_types(&self) -> impl Iterator<Item = HashType> {
        self.unit.iter().flat_map(|unit| unit.types().iter())
    }

    /// The indirection table; `None` where the device has none that chooses the queue.
    pub fn table(&self) -> Option<&IndirectionTable> {
        self.table.as_ref().ok()
    }

    /// What happens to frames of the shape of `dissection`.
    pub fn disposition(&self, dissection: &Dissection) -> Disposition {
        let shape = dissection.shape();
        let (mut depth, mut why) = parser::depth(&self.profile, shape);
        let mut hash_type = HashType::None;
        let mut prefix = None;
        match (depth, &self.unit) {
            (ParserDepth::Transport | ParserDepth::Addresses, Some(unit)) => {
                if let Some(packet) = packet(depth, dissection, &[]) {
                    hash_type = unit.choose(&packet);
                    prefix = hashed_prefix(unit, &packet, hash_type, shape);
                }
            }
            (ParserDepth::Transport | ParserDepth::Addresses, None) => {
                (depth, why) = (ParserDepth::Unknown, Why::Lacks(self.lacking_hash()));
            }
            _ => {}
        }
        let received = !matches!(why, Why::Outgoing | Why::AboveLink);
        let longest = self.longest(shape).filter(|_| received);
        Disposition { depth, why, hash_type, longest, prefix }
    }

    /// Where `frame` lands, whose shape has this disposition.
    #[inline]
    pub fn land(&self, disposition: &Disposition, frame: &[u8], dissection: &Dissection) -> Landing {
        let nowhere = Landing { hash_type: HashType::None, hash: 0, queue: None };
        if matches!(disposition.why, Why::Outgoing | Why::AboveLink) {
            return nowhere;
        }
        let table = match &self.table {
            Ok(table) => table,
            Err(queue) => return Landing { queue: *queue, ..nowhere },
        };
        match (&self.unit, disposition.hash_type) {
            _ if disposition.depth == ParserDepth::Unknown => nowhere,
            (Some(unit), hash_type) if hash_type != HashType::None => {
                if let Some(hash) =
                    disposition.prefix.and_then(|prefix| hash_prefix(unit, prefix, dissection))
                {
                    return Landing { hash_type, hash, queue: Some(table.lookup(hash)) };
                }
                let Some(packet) = packet(disposition.depth, dissection, frame) else { return nowhere };
                let (hash_type, hash) = unit.hash(&packet);
                Landing { hash_type, hash, queue: Some(table.lookup(hash)) }
            }
            _ => Landing { queue: self.unmatched.map(|rule| table.unmatched(rule)), ..nowhere },
        }
    }

    /// The claim for want of which it is unknown what is hashed.
    fn lacking_hash(&self) -> Key {
        match self.profile.words(schema::HASH_FUNCTIONS) {
            Some([first, ..]) if first == "toeplitz" => schema::TYPES_DEFAULT,
            _ => schema::HASH_FUNCTIONS,
        }
    }

    fn longest(&self, shape: &Shape) -> Option<u32> {
        admission::longest(&self.profile, &parser::tpids(shape)).ok()
    }
}

/// What the hash unit sees of a packet.
#[inline]
fn packet(depth: ParserDepth, dissection: &Dissection, frame: &[u8]) -> Option<Packet> {
    let flow = *dissection.flow()?;
    Some(Packet {
        flow,
        // A parser that does not reach the ports sees what it sees of a fragment; what it makes of real
        // fragments is a claim of its own, and part of `depth` already.
        fragment: depth == ParserDepth::Addresses,
        home_address: dissection.home_address(frame),
        routing2_destination: dissection.routing2_destination(frame),
    })
}

/// `None` where the frames of the shape may need more than the flow key: selected fields, or addresses that
/// an Ex type takes from extension headers.
fn hashed_prefix(unit: &HashUnit, packet: &Packet, hash_type: HashType, shape: &Shape) -> Option<Prefix> {
    let usual = match hash_type.has_ports() {
        true => HashFields::ADDRESSES_AND_PORTS,
        false => HashFields::ADDRESSES,
    };
    let replaced = hash_type.is_ex() && !shape.extensions().is_empty();
    if hash_type == HashType::None || unit.fields(hash_type) != usual || replaced {
        return None;
    }
    Some(match (packet.flow.version(), hash_type.has_ports()) {
        (IpVersion::V4, false) => Prefix::Ipv4,
        (IpVersion::V4, true) => Prefix::Ipv4Ports,
        (IpVersion::V6, false) => Prefix::Ipv6,
        (IpVersion::V6, true) => Prefix::Ipv6Ports,
    })
}

#[inline]
fn hash_prefix(unit: &HashUnit, prefix: Prefix, dissection: &Dissection) -> Option<u32> {
    let bytes = dissection.flow()?.octets();
    let toeplitz = unit.toeplitz();
    match prefix {
        Prefix::Ipv4 => bytes.first_chunk().map(|input| toeplitz.hash_8(input)),
        Prefix::Ipv4Ports => bytes.first_chunk().map(|input| toeplitz.hash_12(input)),
        Prefix::Ipv6 => bytes.first_chunk().map(|input| toeplitz.hash_32(input)),
        Prefix::Ipv6Ports => bytes.first_chunk().map(|input| toeplitz.hash_36(input)),
    }
}

/// The hash unit at its defaults, then as set up; `None` where the profile does not say what is hashed, or
/// where it is no Toeplitz hash.
fn unit(profile: &Profile, key: &HashKey, fields: &[FlowHash]) -> Result<Option<HashUnit>, SetupError> {
    if profile.words(schema::HASH_FUNCTIONS).and_then(|functions| functions.first()).map(String::as_str)
        != Some("toeplitz")
    {
        return Ok(None);
    }
    let Some(types) = default_types(profile) else { return Ok(None) };
    let mut unit = HashUnit::new(key, types)?;
    for setting in fields {
        check_settable(profile, setting)?;
        unit.set_flow(*setting)?;
    }
    Ok(Some(unit))
}

const FIELD_KEYS: [(Key, HashType, HashType); 6] = [
    (schema::FIELDS_TCP4, HashType::TcpIpv4, HashType::Ipv4),
    (schema::FIELDS_UDP4, HashType::UdpIpv4, HashType::Ipv4),
    (schema::FIELDS_SCTP4, HashType::SctpIpv4, HashType::Ipv4),
    (schema::FIELDS_TCP6, HashType::TcpIpv6, HashType::Ipv6),
    (schema::FIELDS_UDP6, HashType::UdpIpv6, HashType::Ipv6),
    (schema::FIELDS_SCTP6, HashType::SctpIpv6, HashType::Ipv6),
];

/// The enabled types: as claimed, or where only the default fields are claimed, those that they imply.
fn default_types(profile: &Profile) -> Option<HashTypes> {
    if let Some(words) = profile.words(schema::TYPES_DEFAULT) {
        return Some(HashTypes::from_iter(words.iter().filter_map(|word| hash_type(word))));
    }
    let mut types = HashTypes::NONE;
    for (key, with_ports, plain) in FIELD_KEYS {
        match profile.text(key).map(str::parse::<HashFields>) {
            Some(Ok(fields)) if fields.contains(HashFields::ADDRESSES_AND_PORTS) => types.insert(with_ports),
            Some(Ok(fields)) if fields.contains(HashFields::ADDRESSES) => types.insert(plain),
            _ => {}
        }
    }
    (!types.is_empty()).then_some(types)
}

fn hash_type(word: &str) -> Option<HashType> {
    Some(match word {
        "ip4" => HashType::Ipv4,
        "tcp4" => HashType::TcpIpv4,
        "udp4" => HashType::UdpIpv4,
        "sctp4" => HashType::SctpIpv4,
        "ip6" => HashType::Ipv6,
        "tcp6" => HashType::TcpIpv6,
        "udp6" => HashType::UdpIpv6,
        "sctp6" => HashType::SctpIpv6,
        "ip6ex" => HashType::Ipv6Ex,
        "tcp6ex" => HashType::TcpIpv6Ex,
        "udp6ex" => HashType::UdpIpv6Ex,
        _ => return None,
    })
}

/// Whether the driver would take the setting: it can be changed, or is the default already.
fn check_settable(profile: &Profile, setting: &FlowHash) -> Result<(), SetupError> {
    let Some(settable) = profile.words(schema::FIELDS_SETTABLE) else { return Ok(()) };
    let flow = setting.flow.name();
    let claimed = |name: &str| match profile.claim(schema::find(schema::Stage::Hash, name)?)?.value {
        Value::Text(ref fields) => fields.parse::<HashFields>().ok(),
        _ => None,
    };
    let default = claimed(&format!("fields_{flow}"));
    if settable.iter().any(|name| name == flow) || default == Some(setting.fields) {
        return Ok(());
    }
    let settable = if settable.is_empty() { "no flow type".to_owned() } else { settable.join(", ") };
    Err(SetupError::Fields { nic: profile.name(), flow: flow.to_owned(), settable })
}

/// The indirection table: as given, or as the driver fills it. An unknown way of filling is taken for the
/// kernel's own (`ethtool_rxfh_indir_default`, striped).
fn table(profile: &Profile, queues: u16, given: Option<&[u16]>) -> Result<IndirectionTable, SetupError> {
    let sizes = profile.ints(schema::TABLE_SIZES).unwrap_or(&[128]);
    let default = sizes.first().copied().unwrap_or(128) as usize;
    let entries = match given {
        Some(given) if sizes.contains(&(given.len() as u64)) => given.len(),
        _ => default,
    };
    let bits = profile.int(schema::ENTRY_BITS).and_then(|bits| u32::try_from(bits).ok()).unwrap_or(16);
    let shape = TableShape::new(entries, bits.min(16))?;
    let table = match (given, profile.text(schema::TABLE_DEFAULT)) {
        (Some(given), _) => IndirectionTable::explicit(shape, given)?,
        (None, Some("blocks")) => {
            let blocks: Vec<u16> =
                (0..entries).map(|entry| (entry * usize::from(queues) / entries) as u16).collect();
            IndirectionTable::explicit(shape, &blocks)?
        }
        (None, _) => IndirectionTable::equal(shape, u32::from(queues), 0)?,
    };
    table.check_queues(u32::from(queues))?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Link, dissect};

    fn frame(tags: &[u16], pppoe: bool, ports: (u16, u16)) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tpid in tags {
            frame.extend(tpid.to_be_bytes());
            frame.extend([0, 7]);
        }
        if pppoe {
            frame.extend([0x88, 0x64, 0x11, 0, 0, 9, 0, 42, 0, 0x21]);
        } else {
            frame.extend([8, 0]);
        }
        frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 66, 9, 149, 187, 161, 142, 100, 80]);
        frame.extend(ports.0.to_be_bytes());
        frame.extend(ports.1.to_be_bytes());
        frame.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
        frame
    }

    fn land(receiver: &Receiver, frame: &[u8]) -> (Disposition, Landing) {
        let dissection = dissect(Link::Ethernet, frame, frame.len());
        assert!(dissection.error().is_none(), "{:?}", dissection.error());
        let disposition = receiver.disposition(&dissection);
        let landing = receiver.land(&disposition, frame, &dissection);
        (disposition, landing)
    }

    fn i210(setup: &Setup) -> Receiver {
        Receiver::new(crate::lookup("i210").unwrap(), setup).unwrap()
    }

    #[test]
    fn an_i210_hashes_tcp_and_puts_pppoe_on_queue_0() {
        let receiver = i210(&Setup::default());
        let (disposition, landing) = land(&receiver, &frame(&[], false, (2794, 1766)));
        assert_eq!(
            (disposition.why, landing.hash_type, landing.hash),
            (Why::Clear, HashType::TcpIpv4, 0x51cc_c178)
        );
        // Index 0x78 = 120 of 128 in four blocks.
        assert_eq!(landing.queue, Some(3));
        let (disposition, landing) = land(&receiver, &frame(&[], true, (2794, 1766)));
        assert_eq!(disposition.why, Why::Header(schema::PPPOE));
        assert_eq!(landing, Landing { hash_type: HashType::None, hash: 0, queue: Some(0) });
    }

    #[test]
    fn an_i210_sees_through_one_tag_and_stops_at_two() {
        let receiver = i210(&Setup::default());
        assert_eq!(land(&receiver, &frame(&[0x8100], false, (1, 2))).1.hash_type, HashType::TcpIpv4);
        let (disposition, landing) = land(&receiver, &frame(&[0x88a8, 0x8100], false, (1, 2)));
        assert_eq!(disposition.why, Why::Tags(vec![0x88a8, 0x8100]));
        assert_eq!(landing.queue, Some(0));
    }

    #[test]
    fn a_table_and_a_key_of_ones_own() {
        let setup = Setup { queues: Some(2), table: Some([1; 128].into()), ..Setup::default() };
        assert_eq!(land(&i210(&setup), &frame(&[], false, (1, 2))).1.queue, Some(1));
        let wrong = Setup { queues: Some(2), table: Some([3; 128].into()), ..Setup::default() };
        let error = Receiver::new(crate::lookup("i210").unwrap(), &wrong).err().unwrap();
        assert_eq!(error.to_string(), "indirection table: entry 0 names queue 3, and there are 2");
    }

    #[test]
    fn what_the_driver_refuses_is_refused() {
        let refuse =
            |setup: Setup| Receiver::new(crate::lookup("i210").unwrap(), &setup).err().unwrap().to_string();
        assert_eq!(
            refuse(Setup { queues: Some(8), ..Setup::default() }),
            "i210 has 1 to 4 receive queues for RSS, not 8"
        );
        assert_eq!(
            refuse(Setup { fields: vec!["tcp4=sd".parse().unwrap()], ..Setup::default() }),
            "i210: hash fields of tcp4 cannot be changed (those of udp4, udp6 can)"
        );
    }
}

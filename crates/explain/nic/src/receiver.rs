//! A device as it is set up on one machine: which queue each frame lands on, and which frames are let in.

use crate::parser::{self, ParserDepth, Why};
use crate::schema::{self, Key};
use crate::{Profile, Refusal, Value, admission};
use rss::{
    FlowHash, HashFields, HashKey, HashType, HashTypes, HashUnit, IndirectionTable, Packet, TableShape,
    Unmatched,
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
    pub fn new(profile: Profile, setup: &Setup) -> Result<Receiver, Refusal> {
        let most = profile.int(schema::RX_QUEUES);
        let queues = setup.queues.unwrap_or_else(|| {
            let most = most.unwrap_or(u64::from(USUAL_QUEUES));
            u16::try_from(most).unwrap_or(USUAL_QUEUES).min(USUAL_QUEUES)
        });
        if queues == 0 || most.is_some_and(|most| u64::from(queues) > most) {
            let (nic, most) = (profile.name(), most.unwrap_or(u64::from(u16::MAX)));
            return Err(Refusal(format!("{nic} has 1 to {most} receive queues for RSS, not {queues}")));
        }
        let key = setup.key.clone().unwrap_or(HashKey::MICROSOFT);
        let unit = unit(&profile, &key, &setup.fields)?;
        let table = match profile.text(schema::SELECTION) {
            Some("rss") => table(&profile, queues, setup.table.as_deref())?.ok_or(None),
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
                (depth, why) = (ParserDepth::Unknown, self.unknown_hash());
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

    /// Why the queue of frames with this disposition is unknown; `None` where it is known, or the frames pass no queue.
    pub fn unknown_queue(&self, disposition: &Disposition) -> Option<Why> {
        let is_unhashed = disposition.hash_type == HashType::None;
        match (&self.table, disposition.depth) {
            _ if matches!(disposition.why, Why::Outgoing | Why::AboveLink) => None,
            (Err(Some(_)), _) => None,
            (_, ParserDepth::Unknown) => Some(disposition.why.clone()),
            (Err(None), _) => Some(self.unknown(undecided(&self.profile))),
            (Ok(_), _) if is_unhashed && self.unmatched.is_none() => {
                Some(self.unknown(schema::UNHASHED_FRAMES))
            }
            (Ok(_), _) => None,
        }
    }

    /// The claim for want of which it is unknown what is hashed.
    fn unknown_hash(&self) -> Why {
        match self.profile.words(schema::HASH_FUNCTIONS) {
            Some([first, ..]) if first == "toeplitz" => self.unknown(schema::TYPES_DEFAULT),
            _ => self.unknown(schema::HASH_FUNCTIONS),
        }
    }

    /// What this claim leaves open: it is missing, or says something that is not computed here.
    fn unknown(&self, key: Key) -> Why {
        let said = match self.profile.words(key) {
            Some(words) => words.first().map(String::as_str),
            None => self.profile.text(key),
        };
        said.map_or(Why::Lacks(key), |said| Why::Uncomputed(key, said.to_owned()))
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
    let bytes = dissection.flow()?.bytes();
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
fn unit(profile: &Profile, key: &HashKey, fields: &[FlowHash]) -> Result<Option<HashUnit>, Refusal> {
    if profile.words(schema::HASH_FUNCTIONS).and_then(|functions| functions.first()).map(String::as_str)
        != Some("toeplitz")
    {
        return Ok(None);
    }
    let Some(types) = default_types(profile) else { return Ok(None) };
    let mut unit = HashUnit::new(key, types).map_err(Refusal::of)?;
    for setting in fields {
        check_settable(profile, setting)?;
        unit.set_flow(*setting).map_err(Refusal::of)?;
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
fn check_settable(profile: &Profile, setting: &FlowHash) -> Result<(), Refusal> {
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
    let nic = profile.name();
    Err(Refusal(format!("{nic}: hash fields of {flow} cannot be changed (those of {settable} can)")))
}

/// The claim for want of which it is unknown which queue a hash is for.
fn undecided(profile: &Profile) -> Key {
    match (profile.text(schema::SELECTION), profile.ints(schema::TABLE_SIZES)) {
        (Some("rss"), None) => schema::TABLE_SIZES,
        (Some("rss"), Some(_)) => schema::TABLE_DEFAULT,
        _ => schema::SELECTION,
    }
}

/// The indirection table: as given, or as the driver fills it; `None`: the profile does not say how many entries there are, or what is
/// in them.
fn table(profile: &Profile, queues: u16, given: Option<&[u16]>) -> Result<Option<IndirectionTable>, Refusal> {
    let entries = match (given, profile.ints(schema::TABLE_SIZES)) {
        (Some(given), Some(sizes)) if !sizes.contains(&(given.len() as u64)) => sizes.first().copied(),
        (Some(given), _) => Some(given.len() as u64),
        (None, sizes) => sizes.and_then(|sizes| sizes.first().copied()),
    };
    let Some(entries) = entries.and_then(|entries| usize::try_from(entries).ok()) else { return Ok(None) };
    let bits = profile.int(schema::ENTRY_BITS).and_then(|bits| u32::try_from(bits).ok()).unwrap_or(16);
    let shape = TableShape::new(entries, bits.min(16)).map_err(Refusal::of)?;
    let table = match (given, profile.text(schema::TABLE_DEFAULT)) {
        (Some(given), _) => IndirectionTable::explicit(shape, given),
        (None, Some("blocks")) => {
            let blocks: Vec<u16> =
                (0..entries).map(|entry| (entry * usize::from(queues) / entries) as u16).collect();
            IndirectionTable::explicit(shape, &blocks)
        }
        (None, Some("striped")) => IndirectionTable::equal(shape, u32::from(queues), 0),
        (None, _) => return Ok(None),
    };
    let table = table.map_err(Refusal::of)?;
    table.check_queues(u32::from(queues)).map_err(Refusal::of)?;
    Ok(Some(table))
}

//! `rxlane rss hash`.

use super::{frame, hex, key_name};
use crate::arguments::device::{self, DeviceArguments, Reta};
use crate::output::{CommandResult, Outcome, Output};
use anstyle::Style;
use anyhow::{anyhow, bail};
use nic::USUAL_QUEUES;
use nic::{Landing, ParserDepth, Profile, schema};
use rss::{
    HashFields, HashKey, HashType, HashTypes, HashUnit, IndirectionTable, Packet, TableShape, Unmatched,
};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use wire::flow::{FlowKey, IpVersion};
use wire::{Link, dissect};

#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane rss hash --src 66.9.149.187 --dst 161.142.100.80 --sport 2794 --dport 1766 --proto tcp
  rxlane rss hash --src 10.0.0.1 --dst 10.0.0.2 --sport 5000 --dport 53 --proto udp --hash-fields udp4=sdfn
  rxlane rss hash --nic i210 --src 10.0.0.1 --dst 10.0.0.2 --sport 5000 --dport 443
  ethtool -x eth0 | rxlane rss hash --src 10.0.0.1 --dst 10.0.0.2 --proto icmp --reta -

With --nic the packet is taken as an untagged frame, and table, hash types and what the parser sees are the \
device's, as in rxlane explain. Without it, what is not given is assumed, and the output says so.

Hash types: ipv4 tcp-ipv4 udp-ipv4 sctp-ipv4 ipv6 tcp-ipv6 udp-ipv6 sctp-ipv6 ipv6-ex tcp-ipv6-ex udp-ipv6-ex.
Hash fields are those of ethtool -N … rx-flow-hash: s, d addresses, f, n ports.")]
pub struct HashArguments {
    /// Source address
    #[arg(long, value_name = "ADDRESS")]
    src: IpAddr,

    /// Destination address
    #[arg(long, value_name = "ADDRESS")]
    dst: IpAddr,

    /// Source port
    #[arg(long, value_name = "PORT", requires = "dport")]
    sport: Option<u16>,

    /// Destination port
    #[arg(long, value_name = "PORT", requires = "sport")]
    dport: Option<u16>,

    /// tcp, udp, sctp, icmp, icmpv6, gre, esp, ah or a protocol number
    #[arg(long, value_name = "PROTOCOL", default_value = "tcp")]
    proto: Protocol,

    /// The packet is a fragment, be it the first
    #[arg(long)]
    fragment: bool,

    /// Address of a home address option (IPv6, for the -ex types)
    #[arg(long, value_name = "ADDRESS")]
    home_address: Option<Ipv6Addr>,

    /// Address of a type 2 routing header (IPv6, for the -ex types)
    #[arg(long, value_name = "ADDRESS")]
    routing2: Option<Ipv6Addr>,

    #[command(flatten)]
    device: DeviceArguments,

    /// Enabled hash types, joined by commas; none for none [default: ipv4,tcp-ipv4,ipv6,tcp-ipv6, or the device's]
    #[arg(long, value_name = "TYPES", conflicts_with = "nic")]
    types: Option<HashTypes>,

    /// Entries of the table [default: 128]
    #[arg(long, value_name = "N", conflicts_with = "nic")]
    table_size: Option<usize>,

    /// Where a packet goes that no type fits: queue-0 (Intel), entry-0, or a queue number [default: queue-0]
    #[arg(long, value_name = "RULE", conflicts_with = "nic")]
    unmatched: Option<UnmatchedArgument>,

    /// Print JSON (schema rxlane.rss-hash/1)
    #[arg(long)]
    json: bool,
}

/// An IP protocol number (IANA "Assigned Internet Protocol Numbers").
#[derive(Clone, Copy)]
struct Protocol(u8);

const PROTOCOLS: [(&str, u8); 8] = [
    ("tcp", 6),
    ("udp", 17),
    ("sctp", 132),
    ("icmp", 1),
    ("icmpv6", 58),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
];

impl Protocol {
    const fn has_ports(self) -> bool {
        matches!(self.0, 6 | 17 | 132)
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Protocol, String> {
        let named = PROTOCOLS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        match named {
            Some((_, number)) => Ok(Protocol(*number)),
            None => text.parse().map(Protocol).map_err(|_| {
                let names: Vec<&str> = PROTOCOLS.iter().map(|(name, _)| *name).collect();
                format!("neither a protocol number (0 to 255) nor one of {}", names.join(", "))
            }),
        }
    }
}

impl Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match PROTOCOLS.iter().find(|(_, number)| *number == self.0) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "protocol {}", self.0),
        }
    }
}

#[derive(Clone, Copy)]
struct UnmatchedArgument(Unmatched);

impl FromStr for UnmatchedArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<UnmatchedArgument, String> {
        match text {
            "queue-0" => Ok(UnmatchedArgument(Unmatched::QueueZero)),
            "entry-0" => Ok(UnmatchedArgument(Unmatched::EntryZero)),
            number => match number.parse() {
                Ok(queue) => Ok(UnmatchedArgument(Unmatched::Queue(queue))),
                Err(_) => Err("neither queue-0, entry-0 nor a queue number".to_owned()),
            },
        }
    }
}

struct WorkedOut {
    packet: Packet,
    device: Option<(String, String)>,
    unit: HashUnit,
    types_from: String,
    table: IndirectionTable,
    table_from: String,
    hash_type: HashType,
    why: String,
    hash: u32,
    /// `None` where the table was not used.
    entry: Option<usize>,
    /// `None` where the profile does not say.
    queue: Option<u16>,
}

/// The types that Linux drivers enable most often.
const USUAL_TYPES: [HashType; 4] = [HashType::Ipv4, HashType::TcpIpv4, HashType::Ipv6, HashType::TcpIpv6];
const USUAL_ENTRIES: usize = 128;

impl HashArguments {
    pub fn run(self, out: &mut Output) -> CommandResult {
        let worked_out = self.work_out()?;
        match self.json {
            true => out.json(&worked_out.json(self.proto))?,
            false => worked_out.print(out, self.proto)?,
        }
        Ok(Outcome::Success)
    }

    fn packet(&self) -> anyhow::Result<Packet> {
        let flow = match (self.sport, self.dport) {
            (Some(source), Some(destination)) if self.proto.has_ports() => {
                FlowKey::with_ports(self.src, source, self.dst, destination, self.proto.0)
            }
            (None, None) if !self.proto.has_ports() || self.fragment => {
                FlowKey::without_ports(self.src, self.dst, self.proto.0)
            }
            (None, None) => bail!("{} packets have ports: give --sport and --dport", self.proto),
            _ => bail!("--sport and --dport belong to tcp, udp and sctp, not to {}", self.proto),
        };
        let flow = flow.ok_or_else(|| {
            anyhow!("--src {} and --dst {} are of different IP versions", self.src, self.dst)
        })?;
        if flow.version() == IpVersion::V4 && (self.home_address.is_some() || self.routing2.is_some()) {
            bail!("--home-address and --routing2 belong to IPv6");
        }
        Ok(Packet {
            flow,
            fragment: self.fragment,
            home_address: self.home_address.map(|address| address.octets()),
            routing2_destination: self.routing2.map(|address| address.octets()),
        })
    }

    fn work_out(&self) -> anyhow::Result<WorkedOut> {
        let packet = self.packet()?;
        match &self.device.nic {
            Some(name) => self.on_device(packet, device::profile(name)?),
            None => self.by_rule(packet),
        }
    }

    fn on_device(&self, packet: Packet, profile: Profile) -> anyhow::Result<WorkedOut> {
        let device = (profile.name(), profile.title.clone());
        let name = &device.0;
        let fields = &self.device.hash_fields;
        let receiver = self.device.receiver(profile)?;
        let types = HashTypes::from_iter(receiver.hash_types());
        let table = match receiver.table() {
            Some(table) if !types.is_empty() => table.clone(),
            Some(_) => bail!("the profile of {name} does not say what it hashes (rxlane nics {name})"),
            None if receiver.queues() == 1 => bail!("{name} has one receive queue in use: nothing to spread"),
            None => bail!("{name} has no indirection table that chooses the queue (rxlane nics {name})"),
        };
        let mut unit = HashUnit::new(receiver.key(), types)?;
        for setting in fields {
            unit.set_flow(*setting)?;
        }
        let frame = frame::of(&packet)?;
        let dissection = dissect(Link::Ethernet, &frame, frame.len());
        let disposition = receiver.disposition(&dissection);
        let Landing { hash_type, hash, queue } = receiver.land(&disposition, &frame, &dissection);
        let uses_table = hash_type != HashType::None
            || receiver.profile().text(schema::UNHASHED_FRAMES) == Some("entry-0");
        let why = match disposition.depth {
            ParserDepth::Nothing | ParserDepth::Unknown => disposition.why.to_string(),
            ParserDepth::Addresses if !packet.fragment => disposition.why.to_string(),
            ParserDepth::Addresses | ParserDepth::Transport => why(&packet, hash_type).to_owned(),
        };
        let filled = match receiver.profile().text(schema::TABLE_DEFAULT) {
            Some("blocks") => format!("in blocks over {} (default of the {name})", queues(receiver.queues())),
            Some("striped") => format!("in turn over {} (default of the {name})", queues(receiver.queues())),
            _ => format!("in turn over {} (assumed: the profile does not say)", queues(receiver.queues())),
        };
        Ok(WorkedOut {
            packet,
            unit,
            types_from: self.changed(&format!("default of the {name}")),
            entry: uses_table.then(|| table.index(hash)),
            table,
            table_from: self
                .device
                .reta
                .as_ref()
                .map_or(filled, |reta| given(reta, u32::from(receiver.queues()))),
            hash_type,
            why,
            hash,
            queue,
            device: Some(device),
        })
    }

    /// What was given, and assumptions for the rest.
    fn by_rule(&self, packet: Packet) -> anyhow::Result<WorkedOut> {
        let (table, printed_key, table_from) = self.table()?;
        let key = self.device.key.clone().or(printed_key).unwrap_or(HashKey::MICROSOFT);
        let types = self.types.unwrap_or_else(|| HashTypes::from_iter(USUAL_TYPES));
        let mut unit = HashUnit::new(&key, types)?;
        for setting in &self.device.hash_fields {
            unit.set_flow(*setting)?;
        }
        let types_from = if self.types.is_some() { "--types" } else { "assumed: no --nic, no --types" };
        let (hash_type, hash) = unit.hash(&packet);
        let unmatched = self.unmatched.map_or(Unmatched::QueueZero, |rule| rule.0);
        let (entry, queue) = match (hash_type, unmatched) {
            (HashType::None, rule @ (Unmatched::QueueZero | Unmatched::Queue(_))) => {
                (None, table.unmatched(rule))
            }
            _ => (Some(table.index(hash)), table.lookup(hash)),
        };
        Ok(WorkedOut {
            unit,
            types_from: self.changed(types_from),
            table,
            table_from,
            hash_type,
            why: why(&packet, hash_type).to_owned(),
            hash,
            entry,
            queue: Some(queue),
            device: None,
            packet,
        })
    }

    /// The table without a device, the key that was printed with it, and what to call it.
    fn table(&self) -> anyhow::Result<(IndirectionTable, Option<HashKey>, String)> {
        let Some(reta) = &self.device.reta else {
            let shape = TableShape::new(self.table_size.unwrap_or(USUAL_ENTRIES), 16)?;
            let in_use = self.device.queues.unwrap_or(USUAL_QUEUES);
            let table = IndirectionTable::equal(shape, u32::from(in_use), 0)?;
            let assumed = format!("in turn over {} (no --nic, no --reta)", queues(in_use));
            return Ok((table, None, assumed));
        };
        let filled = reta.fill(Some(self.table_size.unwrap_or(USUAL_ENTRIES)))?;
        let shape = TableShape::new(self.table_size.unwrap_or(filled.queues.len()), 16)?;
        let table = IndirectionTable::explicit(shape, &filled.queues)?;
        let needed = filled.rings.unwrap_or(0).max(filled.needs());
        let in_use = self.device.queues.map_or(needed, u32::from);
        if filled.needs() > in_use {
            bail!("--reta: {reta} names {} queues, and --queues says {in_use}", filled.needs());
        }
        Ok((table, filled.key, given(reta, in_use)))
    }

    /// Where types come from, once --hash-fields had its say.
    fn changed(&self, from: &str) -> String {
        if self.device.hash_fields.is_empty() {
            from.to_owned()
        } else {
            format!("{from}, then --hash-fields")
        }
    }
}

fn queues(number: impl Into<u32>) -> String {
    match number.into() {
        1 => "1 queue".to_owned(),
        number => format!("{number} queues"),
    }
}

fn given(reta: &Reta, in_use: u32) -> String {
    format!("of --reta ({reta}) over {}", queues(in_use))
}

/// Why a type was chosen, of the packet alone.
fn why(packet: &Packet, hash_type: HashType) -> &'static str {
    match hash_type {
        HashType::None => "no enabled type fits this packet",
        HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex if packet.fragment => {
            "fragments are never hashed with ports"
        }
        HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex if packet.flow.has_ports() => {
            "the type of its transport protocol is not enabled"
        }
        HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex => "no ports",
        _ => "the transport protocol's type wins",
    }
}

impl WorkedOut {
    /// The bytes that were hashed in groups of their fields.
    fn input(&self) -> String {
        let input = self.unit.input(&self.packet, self.hash_type);
        let bytes: Vec<String> = input.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        bytes.join(" ")
    }

    fn fields(&self) -> Vec<&'static str> {
        let fields = self.unit.fields(self.hash_type);
        let names = [
            (HashFields::SOURCE, "source address"),
            (HashFields::DESTINATION, "destination address"),
            (HashFields::SOURCE_PORT, "source port"),
            (HashFields::DESTINATION_PORT, "destination port"),
        ];
        let chosen = names.into_iter().filter(|(field, _)| fields.contains(*field)).map(|(_, name)| name);
        if self.hash_type == HashType::None { Vec::new() } else { chosen.collect() }
    }

    fn json(&self, protocol: Protocol) -> Value {
        let flow = &self.packet.flow;
        json!({
            "schema": "rxlane.rss-hash/1",
            "packet": {
                "source": flow.source(),
                "destination": flow.destination(),
                "source_port": flow.source_port(),
                "destination_port": flow.destination_port(),
                "protocol": protocol.0,
                "fragment": self.packet.fragment,
            },
            "nic": self.device.as_ref().map(|(name, _)| name),
            "types": self.unit.types().iter().map(HashType::name).collect::<Vec<_>>(),
            "types_from": self.types_from,
            "hash_type": self.hash_type.name(),
            "why": self.why,
            "fields": self.fields(),
            "key": self.unit.toeplitz().key().to_string(),
            "input": self.input().replace(' ', ""),
            "hash": hex(self.hash),
            "entries": self.table.shape().entries(),
            "table_from": self.table_from,
            "entry": self.entry,
            "queue": self.queue,
        })
    }

    fn print(&self, out: &mut Output, protocol: Protocol) -> io::Result<()> {
        let fragment = if self.packet.fragment { ", a fragment" } else { "" };
        line(out, "packet", format!("{}, {protocol}{fragment}", self.packet.flow))?;
        if let Some((name, title)) = &self.device {
            line(out, "device", format!("{name}: {title}"))?;
        }
        line(out, "enabled", format!("{} ({})", self.unit.types(), self.types_from))?;
        line(out, "hash type", format!("{} ({})", self.hash_type, self.why))?;
        if self.hash_type != HashType::None {
            line(out, "fields", self.fields().join(", "))?;
            line(out, "input", wrapped(&self.input()))?;
            let key = self.unit.toeplitz().key();
            let name = key_name(key).map_or(String::new(), |name| format!(", {name}"));
            line(out, "key", format!("{} bytes{name}\n{}", key.bytes().len(), wrapped(&key.to_string())))?;
        }
        line(out, "hash", format!("{:#010x}", self.hash))?;
        let shape = self.table.shape();
        line(out, "table", format!("{} entries {}", shape.entries(), self.table_from))?;
        let entry = match (self.entry, shape.index_bits()) {
            (None, _) => "none: the table is not read".to_owned(),
            (Some(entry), Some(bits)) => {
                format!("{entry} of {} (the low {bits} bits of the hash)", shape.entries())
            }
            (Some(entry), None) => {
                format!("{entry} of {} (the hash modulo their number)", shape.entries())
            }
        };
        line(out, "entry", entry)?;
        let queue = match self.queue {
            Some(queue) => out.styled(Style::new().bold(), queue),
            None => "unknown: the profile does not say where such frames go".to_owned(),
        };
        line(out, "queue", queue)
    }
}

/// Sixteen bytes to a line.
fn wrapped(bytes: &str) -> String {
    let groups = bytes.as_bytes().chunks(16 * 3).map(String::from_utf8_lossy);
    groups.map(|group| group.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// A labelled value; its further lines stand below the first.
fn line(out: &mut Output, label: &str, value: impl Display) -> io::Result<()> {
    for (i, text) in value.to_string().lines().enumerate() {
        let label = if i == 0 { label } else { "" };
        writeln!(out, "{label:<10} {text}")?;
    }
    Ok(())
}

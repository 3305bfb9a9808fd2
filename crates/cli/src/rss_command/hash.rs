//! `rxlane rss hash`.

use super::{hex, key_name, print_json};
use crate::output::{CommandResult, Outcome, Output};
use crate::rss_arguments::{self, Reta};
use anstyle::Style;
use anyhow::{anyhow, bail};
use rss::{
    FlowHash, HashFields, HashKey, HashType, HashTypes, HashUnit, IndirectionTable, Packet, TableShape,
    Unmatched,
};
use serde_json::{Value, json};
use std::fmt::Display;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;
use wire::flow::{FlowKey, IpVersion};

/// Arguments of `rxlane rss hash`.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  rxlane rss hash --src 66.9.149.187 --dst 161.142.100.80 --sport 2794 --dport 1766 --proto tcp
  rxlane rss hash --src 10.0.0.1 --dst 10.0.0.2 --sport 5000 --dport 53 --proto udp --hash-fields udp4=sdfn
  ethtool -x eth0 | rxlane rss hash --src 10.0.0.1 --dst 10.0.0.2 --proto icmp --reta -

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

    /// microsoft, symmetric, or the key in colon form [default: the key of --reta where it has one, or microsoft]
    #[arg(long, value_name = "KEY", value_parser = rss_arguments::key)]
    key: Option<HashKey>,

    /// Enabled hash types, joined by commas; none for none
    #[arg(long, value_name = "TYPES", default_value = "ipv4,tcp-ipv4,ipv6,tcp-ipv6")]
    types: HashTypes,

    /// Fields of a flow type, as udp4=sdfn; several joined by commas
    #[arg(long, value_name = "FLOW=FIELDS", value_delimiter = ',')]
    hash_fields: Vec<FlowHash>,

    /// Receive queues in turn through the table
    #[arg(long, value_name = "N", default_value_t = 4, conflicts_with = "reta")]
    queues: u32,

    /// Entries of the table
    #[arg(long, value_name = "N", default_value_t = 128, conflicts_with = "reta")]
    table_size: usize,

    /// Indirection table: equal:N, weight:W0,W1,…, the queues of all entries joined by commas, or a file with the
    /// output of ethtool -x (- is standard input)
    #[arg(long, value_name = "TABLE")]
    reta: Option<Reta>,

    /// Where a packet goes that no type fits: queue-0 (Intel), entry-0, or a queue number
    #[arg(long, value_name = "RULE", default_value = "queue-0")]
    unmatched: UnmatchedArgument,

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

/// Everything that was worked out of a packet.
struct WorkedOut {
    packet: Packet,
    unit: HashUnit,
    table: IndirectionTable,
    hash_type: HashType,
    hash: u32,
    /// `None` where the table was not asked.
    entry: Option<usize>,
    queue: u16,
}

impl HashArguments {
    /// Runs the command.
    pub fn run(self, out: &mut Output) -> CommandResult {
        let worked_out = self.work_out()?;
        match self.json {
            true => print_json(out, &worked_out.json(self.proto))?,
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

    /// The table, and the key that was printed with it.
    fn table(&self) -> anyhow::Result<(IndirectionTable, Option<HashKey>)> {
        let Some(reta) = &self.reta else {
            let shape = TableShape::new(self.table_size, 16)?;
            return Ok((IndirectionTable::equal(shape, self.queues, 0)?, None));
        };
        let filled = reta.fill(self.table_size)?;
        let shape = TableShape::new(filled.queues.len(), 16)?;
        Ok((IndirectionTable::explicit(shape, &filled.queues)?, filled.key))
    }

    fn work_out(&self) -> anyhow::Result<WorkedOut> {
        let packet = self.packet()?;
        let (table, printed_key) = self.table()?;
        let key = self.key.clone().or(printed_key).unwrap_or(HashKey::MICROSOFT);
        let mut unit = HashUnit::new(&key, self.types)?;
        for setting in &self.hash_fields {
            unit.set_flow(*setting)?;
        }
        let (hash_type, hash) = unit.hash(&packet);
        let (entry, queue) = match (hash_type, self.unmatched.0) {
            (HashType::None, rule @ (Unmatched::QueueZero | Unmatched::Queue(_))) => {
                (None, table.unmatched(rule))
            }
            _ => (Some(table.index(hash)), table.lookup(hash)),
        };
        Ok(WorkedOut { packet, unit, table, hash_type, hash, entry, queue })
    }
}

impl WorkedOut {
    /// The octets that were hashed in groups of their fields.
    fn input(&self) -> String {
        let input = self.unit.input(&self.packet, self.hash_type);
        let octets: Vec<String> = input.octets().iter().map(|octet| format!("{octet:02x}")).collect();
        octets.join(" ")
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

    /// Why the type was chosen.
    fn why(&self) -> &'static str {
        let has_ports = self.packet.flow.has_ports();
        match self.hash_type {
            HashType::None => "no enabled type fits this packet",
            HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex if self.packet.fragment => {
                "fragments are never hashed with ports"
            }
            HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex if has_ports => {
                "the type of its transport protocol is not enabled"
            }
            HashType::Ipv4 | HashType::Ipv6 | HashType::Ipv6Ex => "no ports",
            _ => "the transport protocol's type wins",
        }
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
            "types": self.unit.types().iter().map(HashType::name).collect::<Vec<_>>(),
            "hash_type": self.hash_type.name(),
            "why": self.why(),
            "fields": self.fields(),
            "key": self.unit.toeplitz().key().to_string(),
            "input": self.input().replace(' ', ""),
            "hash": hex(self.hash),
            "entries": self.table.shape().entries(),
            "entry": self.entry,
            "queue": self.queue,
        })
    }

    fn print(&self, out: &mut Output, protocol: Protocol) -> io::Result<()> {
        let fragment = if self.packet.fragment { ", a fragment" } else { "" };
        line(out, "packet", format!("{}, {protocol}{fragment}", self.packet.flow))?;
        line(out, "enabled", self.unit.types())?;
        line(out, "hash type", format!("{} ({})", self.hash_type, self.why()))?;
        if self.hash_type != HashType::None {
            line(out, "fields", self.fields().join(", "))?;
            line(out, "input", wrapped(&self.input()))?;
            let key = self.unit.toeplitz().key();
            let name = key_name(key).map_or(String::new(), |name| format!(", {name}"));
            line(out, "key", format!("{} octets{name}\n{}", key.octets().len(), wrapped(&key.to_string())))?;
        }
        line(out, "hash", format!("{:#010x}", self.hash))?;
        let shape = self.table.shape();
        let entry = match (self.entry, shape.index_bits()) {
            (None, _) => "none: the table is not asked".to_owned(),
            (Some(entry), Some(bits)) => {
                format!("{entry} of {} (the low {bits} bits of the hash)", shape.entries())
            }
            (Some(entry), None) => {
                format!("{entry} of {} (the hash modulo their number)", shape.entries())
            }
        };
        line(out, "entry", entry)?;
        let queue = self.queue;
        let bold = out.styled(Style::new().bold(), queue);
        line(out, "queue", bold)
    }
}

/// Sixteen octets to a line.
fn wrapped(octets: &str) -> String {
    let groups = octets.as_bytes().chunks(16 * 3).map(String::from_utf8_lossy);
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

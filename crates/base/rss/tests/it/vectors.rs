//! Published hashes, and queues seen on hardware: `vectors/rss` (each file names its source).

use crate::paths::paths;
use rxlane_rss::{FlowHash, HashKey, HashType, HashTypes, HashUnit, IndirectionTable, Packet, TableShape};
use std::net::IpAddr;
use wire::flow::{FlowKey, IpVersion};

const UDP: u8 = 17;
const TCP: u8 = 6;

/// The rows of a vector file below its heading, split into fields.
fn rows(file: &str) -> Vec<Vec<String>> {
    let path = format!("{}/../../../vectors/rss/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

fn hex(text: &str) -> u32 {
    u32::from_str_radix(text.strip_prefix("0x").unwrap(), 16).unwrap()
}

/// The flow of the first four fields: source, source port, destination, destination port.
fn flow(row: &[String], protocol: u8) -> FlowKey {
    let address = |i: usize| row[i].parse::<IpAddr>().unwrap();
    let port = |i: usize| row[i].parse::<u16>().unwrap();
    FlowKey::with_ports(address(0), port(1), address(2), port(3), protocol).unwrap()
}

fn check_flows(file: &str, key: &HashKey, expected_rows: usize) {
    let rows = rows(file);
    assert_eq!(rows.len(), expected_rows, "{file}");
    for row in rows {
        let (flow, addresses, ports) = (flow(&row, TCP), hex(&row[4]), hex(&row[5]));
        for toeplitz in paths(key) {
            assert_eq!(toeplitz.hash(flow.addresses()), Ok(addresses), "{row:?}");
            assert_eq!(toeplitz.hash(flow.addresses_and_ports()), Ok(ports), "{row:?}");
        }
        let unit = |types: &[HashType]| HashUnit::new(key, types.iter().copied().collect()).unwrap();
        let both = unit(&[HashType::Ipv4, HashType::TcpIpv4, HashType::Ipv6, HashType::TcpIpv6]);
        let plain = unit(&[HashType::Ipv4, HashType::Ipv6]);
        let (with_ports, without) = match flow.version() {
            IpVersion::V4 => (HashType::TcpIpv4, HashType::Ipv4),
            IpVersion::V6 => (HashType::TcpIpv6, HashType::Ipv6),
        };
        assert_eq!(both.hash(&Packet::of(flow)), (with_ports, ports), "{row:?}");
        assert_eq!(plain.hash(&Packet::of(flow)), (without, addresses), "{row:?}");
    }
}

#[test]
fn microsoft() {
    check_flows("microsoft.csv", &HashKey::MICROSOFT, 8);
}

#[test]
fn symmetric_key_both_directions() {
    let key = HashKey::symmetric(40).unwrap();
    check_flows("symmetric-6d5a.csv", &key, 8);
    for row in rows("symmetric-6d5a.csv") {
        let back = flow(&row, TCP).reversed();
        assert_eq!(key.hash(back.addresses()), Ok(hex(&row[4])));
        assert_eq!(key.hash(back.addresses_and_ports()), Ok(hex(&row[5])));
    }
}

#[test]
fn every_length_up_to_what_the_key_covers() {
    let bytes = HashKey::MICROSOFT.bytes().repeat(6);
    let key = HashKey::from_bytes(&bytes).unwrap();
    let input: Vec<u8> = (0..=255).collect();
    let rows = rows("lengths.csv");
    assert_eq!(rows.len(), 236);
    for row in rows {
        let length: usize = row[0].parse().unwrap();
        for toeplitz in paths(&key) {
            let path = toeplitz.path();
            assert_eq!(toeplitz.hash(&input[..length]), Ok(hex(&row[1])), "{path} {length}");
        }
    }
}

#[test]
fn queues_seen_on_an_82599() {
    let table = IndirectionTable::equal(TableShape::new(128, 4).unwrap(), 16, 0).unwrap();
    let types = [HashType::Ipv4, HashType::TcpIpv4];
    let rows = rows("observed-82599.csv");
    assert_eq!(rows.len(), 10);
    for row in rows {
        let mut unit = HashUnit::new(&HashKey::MICROSOFT, HashTypes::from_iter(types)).unwrap();
        let setting: FlowHash = row[4].parse().unwrap();
        unit.set_flow(setting).unwrap();
        let (hash_type, hash) = unit.hash(&Packet::of(flow(&row, UDP)));
        assert_eq!(hash_type.has_ports(), row[4] == "udp4=sdfn");
        assert_eq!(hash, hex(&row[5]), "{row:?}");
        assert_eq!(table.index(hash).to_string(), row[6], "{row:?}");
        assert_eq!(table.lookup(hash).to_string(), row[7], "{row:?}");
    }
}

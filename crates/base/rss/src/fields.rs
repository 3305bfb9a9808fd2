//! Hash fields as `ethtool -N … rx-flow-hash` spells them: `udp4 sdfn`.

use crate::FieldsError;
use std::fmt;
use std::str::FromStr;

/// Which fields of a packet enter the hash (ethtool(8), `rx-flow-hash`; `RXH_*` in linux/ethtool.h).
///
/// | letter | field |
/// | --- | --- |
/// | `m` | destination MAC address |
/// | `v` | VLAN tag |
/// | `t` | layer 3 protocol |
/// | `s`, `d` | source, destination IP address |
/// | `f`, `n` | bytes 0 and 1, bytes 2 and 3 of the layer 4 header: the ports |
/// | `r` | the packets are discarded; stands alone |
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HashFields(u8);

/// The letters in the order in which they are printed; the bit of a field is its place here.
const LETTERS: [char; 8] = ['m', 'v', 't', 's', 'd', 'f', 'n', 'r'];

impl HashFields {
    /// `v`.
    pub const VLAN: HashFields = HashFields(1 << 1);
    /// `s`.
    pub const SOURCE: HashFields = HashFields(1 << 3);
    /// `d`.
    pub const DESTINATION: HashFields = HashFields(1 << 4);
    /// `f`.
    pub const SOURCE_PORT: HashFields = HashFields(1 << 5);
    /// `n`.
    pub const DESTINATION_PORT: HashFields = HashFields(1 << 6);
    /// `r`.
    pub const DISCARD: HashFields = HashFields(1 << 7);
    /// `sd`: the 2-tuple.
    pub const ADDRESSES: HashFields = HashFields(0b0001_1000);
    /// `fn`.
    pub const PORTS: HashFields = HashFields(0b0110_0000);
    /// `sdfn`: the 4-tuple.
    pub const ADDRESSES_AND_PORTS: HashFields = HashFields(0b0111_1000);

    /// Whether all of `fields` are selected.
    pub const fn contains(self, fields: HashFields) -> bool {
        self.0 & fields.0 == fields.0
    }

    /// Whether any of `fields` is selected.
    pub const fn intersects(self, fields: HashFields) -> bool {
        self.0 & fields.0 != 0
    }

    /// Whether nothing but `fields` is selected.
    pub const fn within(self, fields: HashFields) -> bool {
        self.0 & !fields.0 == 0
    }
}

impl FromStr for HashFields {
    type Err = FieldsError;

    fn from_str(text: &str) -> Result<HashFields, FieldsError> {
        let mut fields = 0;
        for (position, found) in (1..).zip(text.chars()) {
            let bit = LETTERS.iter().position(|letter| *letter == found);
            let bit = 1 << bit.ok_or(FieldsError::Letter { position, found })?;
            if fields & bit != 0 {
                return Err(FieldsError::Twice { found });
            }
            fields |= bit;
        }
        match HashFields(fields) {
            HashFields(0) => Err(FieldsError::Empty),
            fields if fields.intersects(HashFields::DISCARD) && fields != HashFields::DISCARD => {
                Err(FieldsError::DiscardWithFields)
            }
            fields => Ok(fields),
        }
    }
}

impl fmt::Display for HashFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selected = (0..).zip(LETTERS).filter(|(bit, _)| self.0 >> bit & 1 == 1);
        f.pad(&selected.map(|(_, letter)| letter).collect::<String>())
    }
}

impl fmt::Debug for HashFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashFields({self})")
    }
}

named! {
    /// A kind of packet whose hash fields can be set (ethtool(8), `rx-flow-hash`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    FlowType[12] {
        /// TCP over IPv4.
        Tcp4 = "tcp4",
        /// UDP over IPv4.
        Udp4 = "udp4",
        /// SCTP over IPv4.
        Sctp4 = "sctp4",
        /// IPsec authentication header over IPv4.
        Ah4 = "ah4",
        /// IPsec encapsulating security payload over IPv4.
        Esp4 = "esp4",
        /// Any other IPv4 packet.
        Ip4 = "ip4",
        /// TCP over IPv6.
        Tcp6 = "tcp6",
        /// UDP over IPv6.
        Udp6 = "udp6",
        /// SCTP over IPv6.
        Sctp6 = "sctp6",
        /// IPsec authentication header over IPv6.
        Ah6 = "ah6",
        /// IPsec encapsulating security payload over IPv6.
        Esp6 = "esp6",
        /// Any other IPv6 packet.
        Ip6 = "ip6",
    }
}

impl FlowType {
    /// All of them.
    pub const ALL: [FlowType; 12] = FlowType::EVERY;

    /// Whether packets of this kind start their layer 4 header with two ports.
    pub const fn has_ports(self) -> bool {
        matches!(
            self,
            FlowType::Tcp4
                | FlowType::Udp4
                | FlowType::Sctp4
                | FlowType::Tcp6
                | FlowType::Udp6
                | FlowType::Sctp6
        )
    }
}

impl FromStr for FlowType {
    type Err = FieldsError;

    fn from_str(text: &str) -> Result<FlowType, FieldsError> {
        FlowType::ALL
            .into_iter()
            .find(|flow| flow.name() == text)
            .ok_or_else(|| FieldsError::FlowType { name: text.to_owned() })
    }
}

/// The hash fields of one flow type, written `udp4=sdfn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowHash {
    /// Which packets.
    pub flow: FlowType,
    /// Which fields of them.
    pub fields: HashFields,
}

impl FromStr for FlowHash {
    type Err = FieldsError;

    /// Errors: not `FLOW=FIELDS`, an unknown name or letter, ports of packets without ports (what Linux
    /// drivers answer with `EINVAL`).
    fn from_str(text: &str) -> Result<FlowHash, FieldsError> {
        let form = || FieldsError::Form { text: text.to_owned() };
        let (flow, fields) = text.split_once('=').ok_or_else(form)?;
        let (flow, fields): (FlowType, HashFields) = (flow.trim().parse()?, fields.trim().parse()?);
        if !flow.has_ports() && fields.intersects(HashFields::PORTS) {
            return Err(FieldsError::NoPorts { flow, fields });
        }
        Ok(FlowHash { flow, fields })
    }
}

impl fmt::Display for FlowHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.flow, self.fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_round_trip() {
        for text in ["m", "v", "t", "s", "d", "f", "n", "r", "sd", "sdfn", "mvtsdfn", "vsd"] {
            assert_eq!(text.parse::<HashFields>().map(|fields| fields.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("nfds".parse(), Ok(HashFields::ADDRESSES_AND_PORTS));
        assert_eq!("sd".parse(), Ok(HashFields::ADDRESSES));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let fields = |text: &str| text.parse::<HashFields>().unwrap_err();
        assert_eq!(fields("sdx"), FieldsError::Letter { position: 3, found: 'x' });
        assert_eq!(fields("sds"), FieldsError::Twice { found: 's' });
        assert_eq!(fields(""), FieldsError::Empty);
        assert_eq!(fields("sdr"), FieldsError::DiscardWithFields);
        assert!(fields("sdl").to_string().contains("not modelled"));
        let flow = |text: &str| text.parse::<FlowHash>().unwrap_err();
        assert_eq!(flow("udp4"), FieldsError::Form { text: "udp4".into() });
        assert_eq!(flow("udp5=sd"), FieldsError::FlowType { name: "udp5".into() });
        let fields = HashFields::ADDRESSES_AND_PORTS;
        assert_eq!(flow("esp4=sdfn"), FieldsError::NoPorts { flow: FlowType::Esp4, fields });
    }

    #[test]
    fn settings_round_trip() {
        for flow in FlowType::ALL {
            let text = format!("{flow}=sd");
            assert_eq!(text.parse::<FlowHash>().unwrap().to_string(), text);
        }
    }
}

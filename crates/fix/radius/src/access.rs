//! Who a subscriber is (RFC 2865): the request, and what the answer grants.

use crate::attribute::*;
use crate::exchange::Request;
use crate::packet::{Code, Draft, NoRoom, Packet};
use crate::rates::Rates;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Service-Type: Framed.
const FRAMED: u32 = 2;
/// Framed-Protocol: PPP.
const PPP: u32 = 1;
/// NAS-Port-Type by the number of VLAN tags: PPPoE over Ethernet, over VLAN, over QinQ.
const PORT_TYPES: [u32; 3] = [32, 33, 34];
/// The server leaves the address to the host, or to this end (RFC 2865 section 5.8).
const ADDRESS_OF_HOST: Ipv4Addr = Ipv4Addr::BROADCAST;
const ADDRESS_OF_NAS: Ipv4Addr = Ipv4Addr::new(255, 255, 255, 254);

/// The concentrator, as servers know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nas {
    /// NAS-Identifier.
    pub identifier: Vec<u8>,
    /// NAS-IP-Address, or NAS-IPv6-Address.
    pub address: Option<IpAddr>,
}

impl Nas {
    pub(crate) fn describe(&self, draft: &mut Draft) -> Result<(), NoRoom> {
        draft.add(NAS_IDENTIFIER, &self.identifier)?;
        self.address().map_or(Ok(()), |(kind, address)| draft.add(kind, &address))
    }

    /// The attribute of its address.
    pub(crate) fn address(&self) -> Option<(u8, Vec<u8>)> {
        Some(match self.address? {
            IpAddr::V4(address) => (NAS_IP_ADDRESS, address.octets().to_vec()),
            IpAddr::V6(address) => (NAS_IPV6_ADDRESS, address.octets().to_vec()),
        })
    }
}

/// A session, as every request describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'s> {
    /// User-Name, as the host wrote it.
    pub user: &'s [u8],
    /// Acct-Session-Id: the same from the first request to the last record.
    pub id: &'s str,
    /// NAS-Port-Id: interface and VLANs.
    pub port: &'s str,
    /// VLAN tags of the line.
    pub tags: usize,
    /// MAC address of the host.
    pub station: [u8; 6],
    /// Agent-Circuit-Id and Agent-Remote-Id of the access node (TR-101 section 3.9), where it says them.
    pub line: Option<(&'s [u8], &'s [u8])>,
}

impl Session<'_> {
    pub(crate) fn describe(&self, draft: &mut Draft, nas: &Nas) -> Result<(), NoRoom> {
        draft.add(USER_NAME, self.user)?;
        nas.describe(draft)?;
        draft.add(NAS_PORT_ID, self.port.as_bytes())?;
        let port_type = PORT_TYPES.get(self.tags).or(PORT_TYPES.last());
        port_type.map_or(Ok(()), |kind| draft.add_number(NAS_PORT_TYPE, *kind))?;
        draft.add_number(SERVICE_TYPE, FRAMED)?;
        draft.add_number(FRAMED_PROTOCOL, PPP)?;
        // In the form of RFC 3580 section 3.21.
        let station: Vec<String> = self.station.iter().map(|byte| format!("{byte:02X}")).collect();
        draft.add(CALLING_STATION_ID, station.join("-").as_bytes())?;
        draft.add(ACCT_SESSION_ID, self.id.as_bytes())?;
        if let Some((circuit, remote)) = self.line {
            for (kind, text) in [(AGENT_CIRCUIT_ID, circuit), (AGENT_REMOTE_ID, remote)] {
                if !text.is_empty() {
                    draft.add_vendor(ADSL_FORUM, kind, text)?;
                }
            }
        }
        Ok(())
    }
}

/// What a host showed for its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Evidence<'e> {
    /// PAP: the password.
    Pap(&'e [u8]),
    /// CHAP with MD5 (RFC 1994).
    ChapMd5 {
        /// Of the challenge.
        identifier: u8,
        /// The challenge.
        challenge: &'e [u8],
        /// What the host made of it.
        response: &'e [u8; 16],
    },
    /// MS-CHAPv2 (RFC 2759).
    MsChapV2 {
        /// Of the challenge.
        identifier: u8,
        /// That of this end.
        challenge: &'e [u8; 16],
        /// That of the host.
        peer_challenge: &'e [u8; 16],
        /// What the host made of both.
        response: &'e [u8; 24],
    },
}

/// An Access-Request.
///
/// # Errors
///
/// Something is too long for its attribute.
pub fn request(nas: &Nas, session: &Session<'_>, evidence: Evidence<'_>) -> Result<Request, NoRoom> {
    let mut draft = Draft::new(Code::ACCESS_REQUEST);
    session.describe(&mut draft, nas)?;
    let mut password = None;
    match evidence {
        Evidence::Pap(text) => password = Some(text.to_vec()),
        Evidence::ChapMd5 { identifier, challenge, response } => {
            draft.add(CHAP_PASSWORD, &[&[identifier][..], response].concat())?;
            draft.add(CHAP_CHALLENGE, challenge)?;
        }
        Evidence::MsChapV2 { identifier, challenge, peer_challenge, response } => {
            draft.add_vendor(MICROSOFT, MS_CHAP_CHALLENGE, challenge)?;
            // RFC 2548 section 2.3.2: identifier, flags, the host's challenge, eight zeros, response.
            let value = [&[identifier, 0][..], peer_challenge, &[0; 8], response].concat();
            draft.add_vendor(MICROSOFT, MS_CHAP2_RESPONSE, &value)?;
        }
    }
    Ok(Request { draft, password })
}

/// What a server decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Access-Accept.
    Accepted(Box<Accepted>),
    /// Access-Reject; or an Access-Challenge, which PPP cannot pass on.
    Rejected {
        /// Reply-Message, for the subscriber.
        message: Vec<u8>,
    },
}

/// The IPv4 address of a subscriber.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Address {
    /// One of the pool.
    #[default]
    Pool,
    /// This one.
    Fixed(Ipv4Addr),
}

/// What a server grants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Framed-IP-Address.
    pub address: Address,
    /// Framed-Pool (RFC 2869 section 5.18): of which pool.
    pub pool: Option<String>,
    /// Framed-Route and Framed-IPv6-Route: address and bits of the networks behind the host.
    pub routes: Vec<(IpAddr, u8)>,
    /// Framed-IPv6-Prefix: address and bits.
    pub prefix: Option<(Ipv6Addr, u8)>,
    /// Delegated-IPv6-Prefix (RFC 4818): that of the networks behind the host.
    pub delegated: Option<(Ipv6Addr, u8)>,
    /// Session-Timeout.
    pub session_timeout: Option<Duration>,
    /// Idle-Timeout.
    pub idle_timeout: Option<Duration>,
    /// Framed-MTU, bytes: the longest IP packet to the host.
    pub mtu: Option<u16>,
    /// Filter-Id, and what vendors have.
    pub rates: Rates,
    /// Acct-Interim-Interval.
    pub interim: Option<Duration>,
    /// Class, which every record of accounting has to carry (RFC 2865 section 5.25).
    pub class: Vec<Vec<u8>>,
    /// Reply-Message.
    pub message: Vec<u8>,
    /// MS-CHAPv2: what shows the host that the server knows the password, without the identifier.
    pub ms_chap_success: Option<Vec<u8>>,
    /// Attributes whose values cannot be read, by their numbers: the subscriber gets what the others say.
    pub unread: Vec<u8>,
}

/// Reads an answer that [`crate::Exchange::receive`] found to be of the server.
pub fn decision(answer: &Packet<'_>) -> Decision {
    let message = answer.values(REPLY_MESSAGE).collect::<Vec<_>>().concat();
    if answer.code() != Code::ACCESS_ACCEPT {
        return Decision::Rejected { message };
    }
    let mut accepted = Accepted { message, ..Accepted::default() };
    for (kind, value) in answer.attributes() {
        if accepted.take(kind, value).is_none() {
            accepted.unread.push(kind);
        }
    }
    let success = answer.vendor_values(MICROSOFT, MS_CHAP2_SUCCESS).next();
    accepted.ms_chap_success = success.and_then(|value| value.get(1..)).map(<[u8]>::to_vec);
    Decision::Accepted(Box::new(accepted))
}

impl Accepted {
    /// Takes an attribute; `None`: its value is none.
    pub(crate) fn take(&mut self, kind: u8, value: &[u8]) -> Option<()> {
        let number = || value.try_into().ok().map(u32::from_be_bytes);
        let seconds = || number().map(|seconds| Duration::from_secs(seconds.into()));
        match kind {
            FRAMED_IP_ADDRESS => {
                self.address = match Ipv4Addr::from(number()?) {
                    ADDRESS_OF_HOST | ADDRESS_OF_NAS => Address::Pool,
                    address => Address::Fixed(address),
                }
            }
            FRAMED_POOL => {
                self.pool = Some(std::str::from_utf8(value).ok().filter(|name| !name.is_empty())?.to_owned())
            }
            FRAMED_ROUTE | FRAMED_IPV6_ROUTE => self.routes.push(network(value)?),
            FRAMED_IPV6_PREFIX => self.prefix = Some(prefix(value)?),
            DELEGATED_IPV6_PREFIX => self.delegated = Some(prefix(value)?),
            SESSION_TIMEOUT => self.session_timeout = Some(seconds()?),
            IDLE_TIMEOUT => self.idle_timeout = Some(seconds()?),
            // RFC 2865 section 5.12 has 64; every link of IPv4 takes 68 (RFC 791 section 3.2).
            FRAMED_MTU => self.mtu = Some(number()?.try_into().ok().filter(|mtu| *mtu >= 68)?),
            // None would be records without end.
            ACCT_INTERIM_INTERVAL => self.interim = Some(seconds().filter(|interval| !interval.is_zero())?),
            CLASS => self.class.push(value.to_vec()),
            VENDOR_SPECIFIC => drop(self.rates.take_of_vendor(value)?),
            _ => drop(self.rates.take(kind, value)),
        }
        Some(())
    }
}

/// `10.1.0.0/24 0.0.0.0 1`: the network, a gateway and metrics (RFC 2865 section 5.22, RFC 3162 section 2.5). The gateway is the host,
/// whatever it says.
fn network(value: &[u8]) -> Option<(IpAddr, u8)> {
    let network = std::str::from_utf8(value).ok()?.split_whitespace().next()?;
    let (address, bits) = match network.split_once('/') {
        Some((address, bits)) => (address.parse().ok()?, Some(bits.parse().ok()?)),
        None => (network.parse().ok()?, None),
    };
    let most = if IpAddr::is_ipv4(&address) { 32 } else { 128 };
    Some((address, bits.unwrap_or(most))).filter(|(_, bits)| *bits <= most)
}

/// RFC 3162 section 2.3: a reserved byte, the length in bits, as many bytes as that takes or more.
fn prefix(value: &[u8]) -> Option<(Ipv6Addr, u8)> {
    let [_, bits, address @ ..] = value else { return None };
    let mut bytes = [0; 16];
    bytes.get_mut(..address.len())?.copy_from_slice(address);
    (*bits <= 128 && usize::from(bits.div_ceil(8)) <= address.len()).then(|| (bytes.into(), *bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION: Session<'_> = Session {
        user: b"nemo",
        id: "00000000000000a1",
        port: "eth1 7.35",
        tags: 2,
        station: [2, 0, 0, 0, 0xab, 1],
        line: Some((b"dslam 1/2/3", b"")),
    };

    fn nas() -> Nas {
        Nas { identifier: b"bras1".to_vec(), address: Some([10, 0, 0, 1].into()) }
    }

    fn request_of(evidence: Evidence<'_>) -> Request {
        request(&nas(), &SESSION, evidence).expect("room")
    }

    #[test]
    fn a_request_describes_the_line() {
        let request = request_of(Evidence::Pap(b"secret"));
        let packet = Packet::parse(&request.draft.bytes).expect("a packet");
        let one = |kind| packet.values(kind).next();
        assert_eq!(request.password.as_deref(), Some(&b"secret"[..]));
        assert_eq!(one(USER_NAME), Some(&b"nemo"[..]));
        assert_eq!(one(NAS_IP_ADDRESS), Some(&[10, 0, 0, 1][..]));
        assert_eq!(one(NAS_PORT_ID), Some(&b"eth1 7.35"[..]));
        assert_eq!(one(NAS_PORT_TYPE), Some(&[0, 0, 0, 34][..]));
        assert_eq!(one(CALLING_STATION_ID), Some(&b"02-00-00-00-AB-01"[..]));
        assert_eq!(one(ACCT_SESSION_ID), Some(&b"00000000000000a1"[..]));
        assert_eq!(packet.vendor_values(ADSL_FORUM, AGENT_CIRCUIT_ID).next(), Some(&b"dslam 1/2/3"[..]));
        assert_eq!(packet.vendor_values(ADSL_FORUM, AGENT_REMOTE_ID).next(), None);
    }

    #[test]
    fn evidence_is_passed_on_as_the_specifications_say() {
        let chap = request_of(Evidence::ChapMd5 { identifier: 9, challenge: &[1; 16], response: &[2; 16] });
        let packet = Packet::parse(&chap.draft.bytes).expect("a packet");
        assert_eq!(packet.values(CHAP_PASSWORD).next(), Some(&[&[9][..], &[2; 16]].concat()[..]));
        assert_eq!(packet.values(CHAP_CHALLENGE).next(), Some(&[1; 16][..]));
        let (challenge, peer_challenge, response) = (&[1; 16], &[2; 16], &[3; 24]);
        let ms = request_of(Evidence::MsChapV2 { identifier: 9, challenge, peer_challenge, response });
        let packet = Packet::parse(&ms.draft.bytes).expect("a packet");
        let value = packet.vendor_values(MICROSOFT, MS_CHAP2_RESPONSE).next().expect("a response");
        assert_eq!(
            (value.len(), &value[..3], &value[18..27]),
            (50, &[9, 0, 2][..], &[0, 0, 0, 0, 0, 0, 0, 0, 3][..])
        );
    }

    fn read(attributes: &[(u8, &[u8])]) -> Accepted {
        let mut draft = Draft::new(Code::ACCESS_ACCEPT);
        attributes.iter().for_each(|(kind, value)| draft.add(*kind, value).expect("room"));
        match decision(&Packet::parse(&draft.bytes).expect("a packet")) {
            Decision::Accepted(accepted) => *accepted,
            rejected => panic!("{rejected:?}"),
        }
    }

    #[test]
    fn an_answer_grants_what_it_says() {
        let accepted = read(&[
            (FRAMED_IP_ADDRESS, &[10, 1, 2, 3]),
            (FRAMED_POOL, b"gold"),
            (FRAMED_ROUTE, b"10.9.0.0/24 0.0.0.0 1"),
            (FRAMED_ROUTE, b"10.8.0.1"),
            (FRAMED_IPV6_ROUTE, b"fd00:1::/48 :: 1"),
            (FRAMED_IPV6_PREFIX, &[0, 64, 0xfd, 0, 0, 2, 0, 0, 0, 1]),
            (DELEGATED_IPV6_PREFIX, &[0, 56, 0xfd, 0, 0, 3, 0, 0, 0]),
            (SESSION_TIMEOUT, &[0, 0, 0, 60]),
            (IDLE_TIMEOUT, &[0, 0, 0, 90]),
            (FRAMED_MTU, &[0, 0, 5, 0xd4]),
            (ACCT_INTERIM_INTERVAL, &[0, 0, 1, 44]),
            (CLASS, b"gold"),
            (REPLY_MESSAGE, b"hello "),
            (REPLY_MESSAGE, b"nemo"),
        ]);
        let routes = ["10.9.0.0/24", "10.8.0.1/32", "fd00:1::/48"];
        let found: Vec<String> =
            accepted.routes.iter().map(|(address, bits)| format!("{address}/{bits}")).collect();
        assert_eq!(found, routes);
        assert_eq!(accepted.address, Address::Fixed([10, 1, 2, 3].into()));
        assert_eq!(accepted.prefix, Some(("fd00:2:0:1::".parse().expect("an address"), 64)));
        assert_eq!(accepted.pool.as_deref(), Some("gold"));
        assert_eq!(accepted.delegated, Some(("fd00:3::".parse().expect("an address"), 56)));
        let seconds = Duration::from_secs;
        assert_eq!((accepted.session_timeout, accepted.interim), (Some(seconds(60)), Some(seconds(300))));
        assert_eq!((accepted.idle_timeout, accepted.mtu), (Some(seconds(90)), Some(1492)));
        assert_eq!(
            (&accepted.class[..], &accepted.message[..]),
            (&[b"gold".to_vec()][..], &b"hello nemo"[..])
        );
        assert!(accepted.unread.is_empty());
    }

    #[test]
    fn values_that_are_none_are_named_and_the_others_count() {
        for (kind, value) in [
            (FRAMED_IP_ADDRESS, &[10, 1, 2][..]),
            (FRAMED_ROUTE, b"10.0.0.0/33"),
            (FRAMED_ROUTE, b"\xff"),
            (FRAMED_POOL, b""),
            (FRAMED_POOL, b"\xff"),
            (FRAMED_ROUTE, b""),
            (FRAMED_IPV6_PREFIX, &[0, 129]),
            (FRAMED_IPV6_PREFIX, &[0, 64, 1]),
            (FRAMED_IPV6_PREFIX, &[0; 19]),
            (SESSION_TIMEOUT, &[0; 5]),
            (FRAMED_MTU, &[0, 0, 0, 63]),
            (FRAMED_MTU, &[0, 1, 0, 0]),
            (ACCT_INTERIM_INTERVAL, &[0; 4]),
        ] {
            let accepted = read(&[(CLASS, b"c"), (kind, value)]);
            assert_eq!((accepted.unread, accepted.class.len()), (vec![kind], 1), "{value:?}");
        }
        assert_eq!(read(&[(FRAMED_IP_ADDRESS, &[255, 255, 255, 254])]).address, Address::Pool);
    }

    #[test]
    fn what_is_no_accept_is_a_refusal() {
        for code in [Code::ACCESS_REJECT, Code::ACCESS_CHALLENGE] {
            let mut draft = Draft::new(code);
            draft.add(REPLY_MESSAGE, b"not today").expect("room");
            let decision = decision(&Packet::parse(&draft.bytes).expect("a packet"));
            assert_eq!(decision, Decision::Rejected { message: b"not today".to_vec() });
        }
    }
}

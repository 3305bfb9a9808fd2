//! An offer: what a concentrator says of itself in a PADO.

use super::complaint::Complaint;
use super::message::Message;
use format::Quotable;
use std::fmt;
use std::str::FromStr;
use wire::ethernet::MacAddress;

/// Most services that are kept of one offer.
pub(crate) const MOST_SERVICES: usize = 32;

/// A PADO that answers a PADI of this host, as much as is kept of it: at most what one frame holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub concentrator: MacAddress,
    /// AC-Name; empty where there is none.
    pub ac_name: Vec<u8>,
    /// Service-Names, in order, each once; at most `MOST_SERVICES`.
    pub services: Vec<Vec<u8>>,
    /// AC-Cookie, which belongs into the PADR.
    pub cookie: Option<Vec<u8>>,
    /// Relay-Session-Id, which belongs into the PADR.
    pub relay: Option<Vec<u8>>,
    /// PPP-Max-Payload, bytes.
    pub max_payload: Option<u16>,
    pub complaint: Option<Complaint>,
}

impl Offer {
    /// What a packet offers that came from this address.
    pub fn new(concentrator: MacAddress, message: &Message<'_>) -> Offer {
        let mut services: Vec<Vec<u8>> = Vec::new();
        for name in message.service_names() {
            if services.len() < MOST_SERVICES && !services.iter().any(|known| known == name) {
                services.push(name.to_vec());
            }
        }
        Offer {
            concentrator,
            ac_name: message.ac_name().unwrap_or_default().to_vec(),
            services,
            cookie: message.cookie().map(<[u8]>::to_vec),
            relay: message.relay_session_id().map(<[u8]>::to_vec),
            max_payload: message.max_payload(),
            complaint: Complaint::of(message),
        }
    }

    /// Whether it serves this service. An empty name asks for any, and is offered by who serves any.
    pub fn serves(&self, service: &[u8]) -> bool {
        service.is_empty() || self.services.iter().any(|name| name.is_empty() || name == service)
    }

    /// Its services in words. One without a name answers a host that requested none, and is not listed with named ones.
    pub(crate) fn services_in_words(&self) -> String {
        let named = self.services.iter().filter(|name| !name.is_empty());
        let words: Vec<String> = named.map(|name| format!("\"{}\"", Quotable(name))).collect();
        match (words.is_empty(), self.services.is_empty()) {
            (false, _) => words.join(", "),
            (true, false) => "one without a name".to_owned(),
            (true, true) => "none".to_owned(),
        }
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" ({})", Quotable(&self.ac_name), self.concentrator)
    }
}

/// The one concentrator that is requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pin {
    Name(Vec<u8>),
    Mac(MacAddress),
}

impl Pin {
    /// Whether it is this one.
    pub fn is(&self, offer: &Offer) -> bool {
        match self {
            Pin::Name(name) => *name == offer.ac_name,
            Pin::Mac(address) => *address == offer.concentrator,
        }
    }
}

impl FromStr for Pin {
    type Err = std::convert::Infallible;

    /// Six bytes in hexadecimal with colons are a MAC address, everything else a name.
    fn from_str(text: &str) -> Result<Pin, Self::Err> {
        Ok(text.parse().map_or_else(|_| Pin::Name(text.as_bytes().to_vec()), Pin::Mac))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pin::Name(name) => write!(f, "\"{}\"", Quotable(name)),
            Pin::Mac(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_bytes_are_an_address_and_everything_else_is_a_name() {
        let read = |text: &str| text.parse::<Pin>().expect("never fails");
        assert_eq!(read("02:00:5E:00:00:01"), Pin::Mac(MacAddress([2, 0, 0x5e, 0, 0, 1])));
        for name in
            ["bras1", "02:00:5e:00:00", "02:00:5e:00:00:01:02", "02:00:5e:00:00:+1", "2:0:5e:0:0:1", ""]
        {
            assert_eq!(read(name), Pin::Name(name.as_bytes().to_vec()));
        }
    }

    #[test]
    fn an_empty_service_is_any() {
        let mut offer = Offer {
            concentrator: MacAddress([2; 6]),
            ac_name: b"bras1".to_vec(),
            services: vec![b"internet".to_vec()],
            cookie: None,
            relay: None,
            max_payload: None,
            complaint: None,
        };
        assert!(offer.serves(b"") && offer.serves(b"internet") && !offer.serves(b"voice"));
        assert_eq!(offer.services_in_words(), "\"internet\"");
        offer.services.push(Vec::new());
        assert!(offer.serves(b"voice"));
        assert_eq!(offer.services_in_words(), "\"internet\"");
        offer.services.clear();
        assert!(offer.serves(b"") && !offer.serves(b"voice"));
        assert_eq!(offer.services_in_words(), "none");
    }
}

//! IPv6 extension headers (RFC 8200 section 4), and the authentication header, which IPv4 shares.

use crate::error::{Error, Field, Layer, Rule};
use crate::ip::{Fragment, IpProtocol, MAX_LENGTH};

/// Kinds of extension header. ESP is not among them: nothing behind it can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Hop-by-hop options, RFC 8200 section 4.3.
    HopByHop,
    /// Routing, RFC 8200 section 4.4.
    Routing,
    /// Fragment, RFC 8200 section 4.5.
    Fragment,
    /// Destination options, RFC 8200 section 4.6.
    DestinationOptions,
    /// Authentication header, RFC 4302.
    Authentication,
}

impl Kind {
    /// The kind that a next header number announces; `None` where no extension header follows.
    #[inline(always)]
    pub const fn of(next: IpProtocol) -> Option<Kind> {
        Some(match next {
            IpProtocol::HOP_BY_HOP => Kind::HopByHop,
            IpProtocol::ROUTING => Kind::Routing,
            IpProtocol::FRAGMENT => Kind::Fragment,
            IpProtocol::DESTINATION_OPTIONS => Kind::DestinationOptions,
            IpProtocol::AH => Kind::Authentication,
            _ => return None,
        })
    }

    /// The name in errors.
    pub const fn layer(self) -> Layer {
        match self {
            Kind::HopByHop => Layer::HopByHop,
            Kind::Routing => Layer::Routing,
            Kind::Fragment => Layer::Fragment,
            Kind::DestinationOptions => Layer::DestinationOptions,
            Kind::Authentication => Layer::Authentication,
        }
    }
}

/// One extension header, checked: whole, within the packet.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// What it is.
    pub kind: Kind,
    /// All its bytes, at least eight.
    pub bytes: &'a [u8],
}

impl<'a> Header<'a> {
    /// The header of `kind` at the start of `bytes`, of which `available` belong to the packet (fewer may
    /// have been captured). Errors: not whole, or longer than the packet.
    #[inline]
    pub fn parse(kind: Kind, bytes: &'a [u8], available: usize) -> Result<Header<'a>, Error> {
        let error = |field, rule, found, limit| Err(Error::new(kind.layer(), field, rule, found, limit));
        let Some(&[_, length, ..]) = bytes.first_chunk::<8>() else {
            return error(Field::Header, Rule::Cut, bytes.len(), 8);
        };
        let length = match kind {
            Kind::Fragment => 8,
            Kind::Authentication => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        if kind == Kind::Authentication && length < 12 {
            return error(Field::HeaderLength, Rule::Below, length, 12);
        }
        if length > available {
            return error(Field::HeaderLength, Rule::Exceeds, length, available);
        }
        match bytes.get(..length) {
            Some(bytes) => Ok(Header { kind, bytes }),
            None => error(Field::Header, Rule::Cut, bytes.len(), length),
        }
    }

    /// Protocol of what follows.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.byte(0))
    }

    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or_default()
    }

    /// Place among fragments, of a fragment header: offset in the upper 13 bits of bytes 2 and 3, the more
    /// flag in the lowest.
    pub fn fragment(&self) -> Fragment {
        let field = u16::from_be_bytes([self.byte(2), self.byte(3)]);
        Fragment::of(field >> 3, field & 1 != 0)
    }

    /// Identification, of a fragment header.
    pub fn identification(&self) -> u32 {
        u32::from_be_bytes([self.byte(4), self.byte(5), self.byte(6), self.byte(7)])
    }

    /// Routing type, of a routing header: 0 (RFC 2460, deprecated by RFC 5095), 2 (RFC 6275), 4 (RFC 8754).
    pub fn routing_type(&self) -> u8 {
        self.byte(2)
    }

    /// Segments left, of a routing header.
    pub fn segments_left(&self) -> u8 {
        self.byte(3)
    }

    /// Checks the type-specific rules of a routing header: segments left may not exceed the addresses in
    /// the header. Unknown types pass, since RFC 8200 section 4.4 lets a node ignore them when no segment
    /// is left, and only a destination decides otherwise.
    pub fn check_routing(&self) -> Result<(), Error> {
        let list = self.bytes.len().saturating_sub(8);
        let addresses = list / 16;
        let left = usize::from(self.segments_left());
        let error = |field, rule, found, limit| Err(Error::new(Layer::Routing, field, rule, found, limit));
        match self.routing_type() {
            // RFC 2460 section 4.4: the extension length is even, two units an address.
            0 if !list.is_multiple_of(16) => error(Field::HeaderLength, Rule::NotMultiple, list, 16),
            0 if left > addresses => error(Field::Count, Rule::Exceeds, left, addresses),
            // RFC 6275 section 6.4.1: length 2, one segment left.
            2 if self.bytes.len() != 24 => error(Field::HeaderLength, Rule::MustBe, self.bytes.len(), 24),
            2 if left != 1 => error(Field::Count, Rule::MustBe, left, 1),
            // RFC 8754 section 2: the last entry's index bounds the segment list.
            4 if usize::from(self.byte(4)) + 1 > addresses => {
                error(Field::Count, Rule::Exceeds, usize::from(self.byte(4)) + 1, addresses)
            }
            4 if left > usize::from(self.byte(4)) => {
                error(Field::Count, Rule::Exceeds, left, usize::from(self.byte(4)))
            }
            _ => Ok(()),
        }
    }

    /// The home address in a type 2 routing header (RFC 6275 section 6.4): the final destination.
    pub fn routing2_destination(&self) -> Option<[u8; 16]> {
        let present = self.kind == Kind::Routing && self.routing_type() == 2;
        present.then(|| self.bytes.get(8..)?.first_chunk().copied()).flatten()
    }

    /// The options of a hop-by-hop or destination options header.
    pub fn options(&self) -> Options<'a> {
        Options { bytes: self.bytes, at: 2 }
    }

    /// Checks the options: each whole within the header.
    pub fn check_options(&self) -> Result<(), Error> {
        self.options().try_for_each(|option| match option {
            Ok(_) => Ok(()),
            Err(mut error) => {
                error.layer = self.kind.layer();
                Err(error)
            }
        })
    }

    /// The home address option of a destination options header (RFC 6275 section 6.3): type 0xC9, 16 bytes.
    pub fn home_address(&self) -> Option<[u8; 16]> {
        if self.kind != Kind::DestinationOptions {
            return None;
        }
        self.options()
            .filter_map(Result::ok)
            .find(|option| option.kind == HOME_ADDRESS)
            .and_then(|option| option.value.try_into().ok())
    }

    /// The jumbo payload option of a hop-by-hop header (RFC 2675 section 2): bytes behind the IPv6 header.
    /// Error: a wrong option length, or a value that the ordinary length field could have said.
    pub fn jumbo_payload(&self) -> Result<Option<u32>, Error> {
        if self.kind != Kind::HopByHop {
            return Ok(None);
        }
        let Some(option) = self.options().filter_map(Result::ok).find(|o| o.kind == JUMBO_PAYLOAD) else {
            return Ok(None);
        };
        let error =
            |rule, found, limit| Err(Error::new(Layer::HopByHop, Field::JumboPayload, rule, found, limit));
        let Ok(value) = <[u8; 4]>::try_from(option.value) else {
            return error(Rule::MustBe, option.value.len(), 4);
        };
        match u32::from_be_bytes(value) {
            length if length as usize > MAX_LENGTH => Ok(Some(length)),
            length => error(Rule::Below, length as usize, MAX_LENGTH + 1),
        }
    }
}

/// Option type of the jumbo payload option.
pub const JUMBO_PAYLOAD: u8 = 0xc2;
/// Option type of the home address option.
pub const HOME_ADDRESS: u8 = 0xc9;
const PAD1: u8 = 0;

/// One option (RFC 8200 section 4.2), padding left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionItem<'a> {
    /// Option type; its upper two bits say what a node does that does not know it.
    pub kind: u8,
    /// Option data.
    pub value: &'a [u8],
}

/// Iterator over options; an option that does not fit ends it with an error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<OptionItem<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        const PADN: u8 = 1;
        loop {
            let rest = self.bytes.get(self.at..)?;
            match *rest {
                [] => return None,
                [PAD1, ..] => self.at += 1,
                [kind, length, ref data @ ..] => match data.get(..usize::from(length)) {
                    Some(value) => {
                        self.at += 2 + value.len();
                        if kind != PADN {
                            return Some(Ok(OptionItem { kind, value }));
                        }
                    }
                    None => return self.fail(Rule::Exceeds, usize::from(length), data.len()),
                },
                [_] => return self.fail(Rule::Cut, 1, 2),
            }
        }
    }
}

impl<'a> Options<'a> {
    fn fail(&mut self, rule: Rule, found: usize, limit: usize) -> Option<<Self as Iterator>::Item> {
        self.at = self.bytes.len();
        Some(Err(Error::new(Layer::HopByHop, Field::Option, rule, found, limit)))
    }
}

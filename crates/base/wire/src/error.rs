//! What is wrong with a frame: which header, which field, which rule.

use core::fmt;

named! {
    /// The header that an [`Error`] is about. Names are those of messages.
    Layer {
        Ethernet = "Ethernet",
        LinuxCooked = "Linux cooked",
        Vlan = "VLAN",
        /// IEEE 802.2, with SNAP where present.
        Llc = "LLC",
        Mpls = "MPLS",
        Pppoe = "PPPoE",
        /// Tag of a PPPoE discovery packet.
        PppoeTag = "PPPoE tag",
        /// PPP protocol field.
        Ppp = "PPP",
        /// LCP, IPCP, IPV6CP, PAP or CHAP packet inside PPP.
        PppControl = "PPP control",
        /// A bare IP packet whose version is not yet known.
        Ip = "IP",
        Ipv4 = "IPv4",
        Ipv6 = "IPv6",
        HopByHop = "IPv6 hop-by-hop options",
        DestinationOptions = "IPv6 destination options",
        Routing = "IPv6 routing",
        Fragment = "IPv6 fragment",
        Authentication = "AH",
        Esp = "ESP",
        Tcp = "TCP",
        Udp = "UDP",
        Sctp = "SCTP",
        Icmp = "ICMP",
        Icmpv6 = "ICMPv6",
    }
}

named! {
    /// The field that an [`Error`] is about. Names are those of messages.
    Field {
        /// The header as a whole.
        Header = "header",
        Version = "version",
        /// PPPoE type.
        Type = "type",
        /// PPPoE code.
        Code = "code",
        /// Length of the payload or of the whole packet.
        Length = "length",
        /// Length of the header itself (IHL, data offset, header extension length).
        HeaderLength = "header length",
        EtherType = "EtherType",
        /// Protocol or next header number.
        Protocol = "protocol",
        /// Jumbo payload option (RFC 2675).
        JumboPayload = "jumbo payload length",
        /// Option inside the header.
        Option = "option",
        FragmentOffset = "fragment offset",
        /// Number or count inside the header.
        Count = "count",
    }
}

/// The rule that a field breaks. `found` and `limit` of the [`Error`] are its two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rule {
    /// The frame ends inside the header: `found` bytes of the `limit` needed.
    Cut,
    /// The frame was longer, but the capture kept only its beginning: `found` of `limit` bytes.
    CaptureCut,
    /// The field claims `found` bytes where `limit` follow.
    Exceeds,
    /// The field says `found` where at least `limit` is required.
    Below,
    /// The field says `found` where `limit` is the only legal value.
    MustBe,
    /// The value `found` is undefined here.
    Undefined,
    /// The value `found` must be a multiple of `limit`.
    NotMultiple,
    /// The header may not stand here: hop-by-hop options behind another extension header (RFC 8200
    /// section 4.1), a fragment header in a jumbogram (RFC 2675 section 3).
    OutOfPlace,
    /// A one-byte protocol field (RFC 1661 section 6.5), which PPPoE forbids (RFC 2516 section 7).
    Compressed,
}

/// Whether a frame lacks bytes or contradicts itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Bytes are missing: a header is not whole, or a length reaches past the end of the frame.
    Truncated,
    /// A field has a value that its specification rules out.
    Malformed,
}

/// A defect of a frame. Numbers are in bytes unless the field is a number of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "what says no more than its name")]
pub struct Error {
    pub layer: Layer,
    pub field: Field,
    pub rule: Rule,
    /// Where the header starts, in bytes from the start of the frame.
    pub offset: u32,
    pub found: u32,
    /// What the rule allows or requires.
    pub limit: u32,
}

impl Error {
    /// A defect at byte `offset` of the frame.
    pub const fn new(layer: Layer, field: Field, rule: Rule, found: usize, limit: usize) -> Error {
        Error { layer, field, rule, offset: 0, found: found as u32, limit: limit as u32 }
    }

    /// The same defect of a header that starts at byte `offset`.
    #[must_use]
    pub const fn at(mut self, offset: usize) -> Error {
        self.offset = offset as u32;
        self
    }

    /// Missing bytes or contradiction.
    pub const fn class(&self) -> Class {
        self.reason().class()
    }

    /// The defect without its numbers, to count by: the same for every frame with the same defect.
    pub const fn reason(&self) -> Reason {
        Reason { layer: self.layer, field: self.field, rule: self.rule }
    }
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { layer, field, rule, offset, found, limit } = *self;
        write!(f, "{} at byte {offset}: ", layer.name())?;
        let field = field.name();
        match rule {
            Rule::Cut => write!(f, "the frame ends after {found} of the {limit} bytes of the {field}"),
            Rule::CaptureCut => {
                write!(f, "the capture kept {found} of the {limit} bytes of the {field}")
            }
            Rule::Exceeds => write!(f, "{field} {found} exceeds the {limit} bytes that follow"),
            Rule::Below => write!(f, "{field} {found} is below the least possible, {limit}"),
            Rule::MustBe => write!(f, "{field} {found} where only {limit} is defined"),
            Rule::Undefined => write!(f, "{field} {found:#x} is undefined"),
            Rule::NotMultiple => write!(f, "{field} {found} is not a multiple of {limit}"),
            Rule::OutOfPlace => f.write_str("may not stand behind the headers before it"),
            Rule::Compressed => write!(f, "compressed {field} {found:#04x}, which PPPoE forbids"),
        }
    }
}

/// A kind of defect, as counted in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "what says no more than its name")]
pub struct Reason {
    pub layer: Layer,
    pub field: Field,
    pub rule: Rule,
}

impl Reason {
    /// Missing bytes or contradiction.
    pub const fn class(&self) -> Class {
        match self.rule {
            Rule::Cut | Rule::CaptureCut | Rule::Exceeds => Class::Truncated,
            _ => Class::Malformed,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (layer, field) = (self.layer.name(), self.field.name());
        match self.rule {
            Rule::Cut => write!(f, "{layer} {field} cut off by the end of the frame"),
            Rule::CaptureCut => write!(f, "{layer} {field} cut off by the capture"),
            Rule::Exceeds => write!(f, "{layer} {field} exceeds the frame"),
            Rule::Below => write!(f, "{layer} {field} too small"),
            Rule::MustBe | Rule::Undefined => write!(f, "{layer} {field} undefined"),
            Rule::NotMultiple => write!(f, "{layer} {field} not a multiple"),
            Rule::OutOfPlace => write!(f, "{layer} {field} out of place"),
            Rule::Compressed => write!(f, "{layer} {field} compressed"),
        }
    }
}

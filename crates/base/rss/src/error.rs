//! What can be wrong with a key, a set of types, a field selection, a table or an input.

use crate::{FlowType, HashFields, HashType, Path};
use thiserror::Error;

/// A text or length that is no hash key. Positions are characters, the first is 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Something other than a hexadecimal digit where a digit has to stand.
    #[error("hash key: {found:?} at character {position} is no hexadecimal digit")]
    Digit {
        /// Where.
        position: usize,
        /// What stands there.
        found: char,
    },
    /// Two digits are not followed by a colon although the key is in colon form.
    #[error("hash key: {found:?} at character {position} where a colon has to stand after two digits")]
    Colon {
        /// Where.
        position: usize,
        /// What stands there.
        found: char,
    },
    /// The text ends in the middle of an byte.
    #[error("hash key: ends after character {position} in the middle of an byte")]
    Unfinished {
        /// The last character.
        position: usize,
    },
    /// More or fewer bytes than a key may have.
    #[error(
        "hash key: {octets} bytes; a key has {} to {} (40 and 52 are usual)",
        crate::HashKey::MIN_OCTETS,
        crate::HashKey::MAX_OCTETS
    )]
    Length {
        /// How many there are.
        octets: usize,
    },
    /// The key cannot cover the addresses and ports of IPv6.
    #[error(
        "hash key: {octets} bytes cover inputs of {} bytes; addresses and ports of IPv6 are 36 and need a \
         key of 40",
        octets.saturating_sub(4)
    )]
    TooShort {
        /// How many there are.
        octets: usize,
    },
}

/// A hash input that the key does not cover: each input bit is combined with the 32 key bits that start at
/// its position, so a key of `n` bytes covers `n - 4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("hash input of {input} bytes: this key covers {covered} (its length less 4)")]
pub struct InputTooLong {
    /// Bytes of the input.
    pub input: usize,
    /// Bytes that the key covers.
    pub covered: usize,
}

/// This processor cannot compute the hash in the way that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the {path} path needs {} and this processor lacks some of it", path.needs())]
pub struct PathUnavailable {
    /// What was asked for.
    pub path: Path,
}

/// Why a key cannot be prepared for a path of one's own choice.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// The key is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The processor lacks what the path needs.
    #[error(transparent)]
    Path(#[from] PathUnavailable),
}

/// A name that is no hash type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?} is no hash type; there are {}", names())]
pub struct TypesError {
    /// What was given.
    pub name: String,
}

fn names() -> String {
    HashType::ALL.map(HashType::name).join(", ")
}

/// Two hash types that a device does not enable together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "hash types {plain} and {ex} exclude each other on this device: either any of ipv6, tcp-ipv6, udp-ipv6 \
     or any of ipv6-ex, tcp-ipv6-ex, udp-ipv6-ex (I210 datasheet, section 7.1.2.10.1)"
)]
pub struct CombinationError {
    /// The offender among the plain IPv6 types.
    pub plain: HashType,
    /// The offender among the Ex types.
    pub ex: HashType,
}

/// A field selection that ethtool would not take or that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldsError {
    /// A letter that selects no field.
    #[error(
        "hash fields: {found:?} at position {position} is none of m, v, t, s, d, f, n, r (ethtool -N … \
         rx-flow-hash){}", hint(*.found)
    )]
    Letter {
        /// Which letter of the selection, the first is 1.
        position: usize,
        /// The letter.
        found: char,
    },
    /// A letter twice.
    #[error("hash fields: {found:?} stands twice")]
    Twice {
        /// The letter.
        found: char,
    },
    /// No letter at all.
    #[error("hash fields: none given; sd selects the addresses, sdfn addresses and ports")]
    Empty,
    /// `r` beside other letters.
    #[error("hash fields: r discards the packets, so no other letter can stand beside it")]
    DiscardWithFields,
    /// A name that is no flow type.
    #[error("{name:?} is no flow type; there are {}", flow_names())]
    FlowType {
        /// What was given.
        name: String,
    },
    /// Not of the form `udp4=sdfn`.
    #[error("{text:?} is not of the form FLOW=FIELDS, as in udp4=sdfn")]
    Form {
        /// What was given.
        text: String,
    },
    /// Ports of a flow type that has none.
    #[error("{flow}={fields}: {flow} packets have no ports to hash; {flow}=sd selects the addresses")]
    NoPorts {
        /// The flow type.
        flow: FlowType,
        /// What was selected.
        fields: HashFields,
    },
}

fn hint(found: char) -> &'static str {
    match found {
        'e' | 'l' => "; GTP tunnel identifiers (e) and IPv6 flow labels (l) are not modelled",
        _ => "",
    }
}

fn flow_names() -> String {
    FlowType::ALL.map(FlowType::name).join(", ")
}

/// A setting that a hash unit cannot follow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The key is unusable.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The fields are no Toeplitz input that any specification defines.
    #[error(
        "{flow}={fields}: only addresses and ports (s, d, f, n) have a place in the Toeplitz input that a \
         specification defines"
    )]
    Undefined {
        /// The flow type.
        flow: FlowType,
        /// What was selected.
        fields: HashFields,
    },
    /// The flow type is hashed as plain IP, and hashing plain IP is off.
    #[error("{flow}={fields}: hashed as plain IP, and the hash type {needs} is off")]
    NeedsType {
        /// The flow type.
        flow: FlowType,
        /// What was selected.
        fields: HashFields,
        /// The type that has to be enabled.
        needs: HashType,
    },
}

/// A table that a device could not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// A size outside what exists.
    #[error("indirection table: {entries} entries; there are 1 to {}", crate::TableShape::MAX_ENTRIES)]
    Entries {
        /// How many were asked for.
        entries: usize,
    },
    /// An entry width outside 1 to 16 bits.
    #[error("indirection table: entries of {bits} bits; there are 1 to 16")]
    EntryBits {
        /// What was asked for.
        bits: u32,
    },
    /// A list of another length than the table.
    #[error("indirection table: {given} entries given, the table has {expected}")]
    Count {
        /// How many were given.
        given: usize,
        /// How many the table has.
        expected: usize,
    },
    /// A queue that does not fit into an entry.
    #[error(
        "indirection table: queue {queue} in entry {entry} does not fit into {bits} bits (highest {highest})"
    )]
    Width {
        /// The entry.
        entry: usize,
        /// The queue.
        queue: u32,
        /// Width of an entry.
        bits: u32,
        /// The highest queue that fits.
        highest: u32,
    },
    /// `equal 0`.
    #[error("indirection table: equal 0 leaves no queue; at least 1")]
    NoQueues,
    /// Weights that are all zero.
    #[error("indirection table: at least one weight has to be above zero")]
    NoWeight,
    /// Weights beyond the table, as ethtool refuses them.
    #[error("indirection table: the weights add up to {sum}, more than the {entries} entries")]
    WeightSum {
        /// Their sum.
        sum: u64,
        /// Entries of the table.
        entries: usize,
    },
    /// A queue that the device does not have.
    #[error("indirection table: entry {entry} names queue {queue}, and there are {queues}")]
    NoSuchQueue {
        /// The entry.
        entry: usize,
        /// The queue it names.
        queue: u16,
        /// Queues of the device.
        queues: u32,
    },
}

/// Text that is not what `ethtool -x` prints. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PrintedTableError {
    /// The line that opens the table is missing.
    #[error("no line \"RX flow hash indirection table for … with … RX ring(s):\" (output of ethtool -x)")]
    NoHeader,
    /// The table has no rows.
    #[error("line {line}: the indirection table has no rows")]
    NoRows {
        /// The line of the header.
        line: usize,
    },
    /// A row starts with another index than the entries before it make up.
    #[error("line {line}: the row is labelled {found}, and {expected} entries stand before it")]
    RowLabel {
        /// The line.
        line: usize,
        /// The label.
        found: usize,
        /// Entries so far.
        expected: usize,
    },
    /// Something other than a queue number.
    #[error("line {line}: {found:?} is no queue number (0 to 65535)")]
    Queue {
        /// The line.
        line: usize,
        /// What stands there.
        found: String,
    },
    /// The entries make no table.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The hash key after the table is none.
    #[error("line {line}: {error}")]
    Key {
        /// The line.
        line: usize,
        /// Why.
        error: KeyError,
    },
}

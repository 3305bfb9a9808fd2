//! What can be wrong with a key, a set of types, a field selection, a table or an input.

use crate::{FlowType, HashFields, HashType, Path};
use thiserror::Error;

/// A text or length that is no hash key. Positions are characters, the first is 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum KeyError {
    #[error("hash key: {found:?} at character {position} is no hexadecimal digit")]
    Digit { position: usize, found: char },
    #[error("hash key: {found:?} at character {position} where a colon has to stand after two digits")]
    Colon { position: usize, found: char },
    #[error("hash key: ends after character {position} in the middle of a byte")]
    Unfinished { position: usize },
    #[error(
        "hash key: {bytes} bytes; a key has {} to {} (40 and 52 are usual)",
        crate::HashKey::MIN_LENGTH,
        crate::HashKey::MAX_LENGTH
    )]
    Length { bytes: usize },
    #[error(
        "hash key: {bytes} bytes cover inputs of {} bytes; addresses and ports of IPv6 are 36 and need a \
         key of 40",
        bytes.saturating_sub(4)
    )]
    TooShort { bytes: usize },
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

/// This processor cannot compute the hash in the way that was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the {path} path needs {} and this processor lacks some of it", path.needs())]
pub struct PathUnavailable {
    /// What was requested.
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

/// A field selection that ethtool would not take or that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum FieldsError {
    #[error(
        "hash fields: {found:?} at position {position} is none of m, v, t, s, d, f, n, r (ethtool -N … \
         rx-flow-hash){}", hint(*.found)
    )]
    Letter { position: usize, found: char },
    #[error("hash fields: {found:?} stands twice")]
    Twice { found: char },
    #[error("hash fields: none given; sd selects the addresses, sdfn addresses and ports")]
    Empty,
    #[error("hash fields: r discards the packets, so no other letter can stand beside it")]
    DiscardWithFields,
    #[error("{name:?} is no flow type; there are {}", flow_names())]
    FlowType { name: String },
    #[error("{text:?} is not of the form FLOW=FIELDS, as in udp4=sdfn")]
    Form { text: String },
    #[error("{flow}={fields}: {flow} packets have no ports to hash; {flow}=sd selects the addresses")]
    NoPorts { flow: FlowType, fields: HashFields },
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
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum UnitError {
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(
        "{flow}={fields}: only addresses and ports (s, d, f, n) have a place in the Toeplitz input that a \
         specification defines"
    )]
    Undefined { flow: FlowType, fields: HashFields },
    #[error("{flow}={fields}: hashed as plain IP, and the hash type {needs} is off")]
    NeedsType { flow: FlowType, fields: HashFields, needs: HashType },
}

/// A table that a device could not hold.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum TableError {
    #[error("indirection table: {entries} entries; there are 1 to {}", crate::TableShape::MAX_ENTRIES)]
    Entries { entries: usize },
    #[error("indirection table: entries of {bits} bits; there are 1 to 16")]
    EntryBits { bits: u32 },
    #[error("indirection table: {given} entries given, the table has {expected}")]
    Count { given: usize, expected: usize },
    #[error(
        "indirection table: queue {queue} in entry {entry} does not fit into {bits} bits (highest {highest})"
    )]
    Width { entry: usize, queue: u32, bits: u32, highest: u32 },
    #[error("indirection table: equal 0 leaves no queue; at least 1")]
    NoQueues,
    #[error("indirection table: at least one weight has to be above zero")]
    NoWeight,
    #[error("indirection table: the weights add up to {sum}, more than the {entries} entries")]
    WeightSum { sum: u64, entries: usize },
    #[error("indirection table: entry {entry} names queue {queue}, and there are {queues}")]
    NoSuchQueue { entry: usize, queue: u16, queues: u32 },
}

/// Text that is not what `ethtool -x` prints. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the message says what its values are")]
pub enum PrintedTableError {
    #[error("no line \"RX flow hash indirection table for … with … RX ring(s):\" (output of ethtool -x)")]
    NoHeader,
    #[error("line {line}: the indirection table has no rows")]
    NoRows { line: usize },
    #[error("line {line}: the row is labelled {found}, and {expected} entries stand before it")]
    RowLabel { line: usize, found: usize, expected: usize },
    #[error("line {line}: {found:?} is no queue number (0 to 65535)")]
    Queue { line: usize, found: String },
    /// The entries make no table.
    #[error(transparent)]
    Table(#[from] TableError),
    #[error("line {line}: {error}")]
    Key { line: usize, error: KeyError },
}

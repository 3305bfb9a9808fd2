//! What the `SIOCETHTOOL` ioctl answers, taken apart: structures of `include/uapi/linux/ethtool.h`, whose numbers
//! are in the machine's byte order.

use super::sys::{Caller, Command};
use crate::netlink::until_zero;
use std::io;

/// Bytes of a name in a string set (`ETH_GSTRING_LEN`).
const NAME: usize = 32;
/// Names or counters of one device that are read at most.
const MOST: u32 = 1 << 20;
/// Times that names and counters are read again when their number changed in between.
const ATTEMPTS: u32 = 4;

/// String sets (`enum ethtool_stringset`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "what says no more than its name")]
pub enum StringSet {
    Statistics = 1,
    Features = 4,
    /// Names of RSS hash functions.
    HashFunctions = 5,
    LinkModes = 9,
}

/// The ioctl for one interface after the other.
#[derive(Debug)]
pub struct Ioctl {
    caller: Caller,
}

impl Ioctl {
    /// Opens a socket.
    pub fn open() -> io::Result<Ioctl> {
        Ok(Ioctl { caller: Caller::open()? })
    }

    /// The 32-bit numbers of a structure that consists of them, `count` of them behind the command.
    pub fn numbers(
        &mut self,
        name: &[u8],
        command: Command,
        question: &[u32],
        count: usize,
    ) -> io::Result<Vec<u32>> {
        let room = count.saturating_mul(4).saturating_add(4);
        let bytes = self.caller.ask(name, command, &bytes(question), room)?;
        Ok(words(bytes.get(4..room).unwrap_or_default()))
    }

    /// A structure as its bytes, from the command on.
    pub fn bytes(
        &mut self,
        name: &[u8],
        command: Command,
        question: &[u32],
        room: usize,
    ) -> io::Result<&[u8]> {
        let bytes = self.caller.ask(name, command, &bytes(question), room)?;
        Ok(bytes.get(..room).unwrap_or(bytes))
    }

    /// The number of strings in a set; none where the driver does not have the set.
    fn string_count(&mut self, name: &[u8], set: StringSet) -> io::Result<u32> {
        // cmd, reserved, sset_mask (64 bits), then one number for each bit set in the mask.
        let mut question = vec![0];
        question.extend(words(&(1u64 << set as u32).to_ne_bytes()));
        let answer = self.bytes(name, Command::StringCounts, &question, 20)?;
        let known =
            answer.get(8..16).and_then(|mask| mask.first_chunk()).map(|mask| u64::from_ne_bytes(*mask));
        match known {
            Some(0) => Ok(0),
            Some(_) => word(answer, 16).ok_or_else(short),
            None => Err(short()),
        }
    }

    /// The strings of a set, in order.
    pub fn strings(&mut self, name: &[u8], set: StringSet) -> io::Result<Vec<Vec<u8>>> {
        let count = bounded(self.string_count(name, set)?)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        let room = count.saturating_mul(NAME).saturating_add(12);
        // cmd, string_set, len, then the strings.
        let question = [set as u32, u32::try_from(count).unwrap_or(u32::MAX)];
        let answer = self.bytes(name, Command::Strings, &question, room)?;
        let count = count.min(usize::try_from(word(answer, 8).ok_or_else(short)?).unwrap_or(usize::MAX));
        let strings = answer.get(12..).unwrap_or_default();
        Ok(strings.chunks_exact(NAME).take(count).map(|string| until_zero(string).to_vec()).collect())
    }

    /// Statistics with their names. A driver whose number of statistics changes between the two calls is read
    /// again.
    pub fn statistics(&mut self, name: &[u8]) -> io::Result<Vec<(Vec<u8>, u64)>> {
        for _ in 0..ATTEMPTS {
            let names = match self.strings(name, StringSet::Statistics) {
                // More names than a moment ago, which the buffer had no room for.
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => continue,
                names => names?,
            };
            if names.is_empty() {
                return Err(io::Error::other("no stats available"));
            }
            let room = names.len().saturating_mul(8).saturating_add(8);
            let question = [u32::try_from(names.len()).unwrap_or(u32::MAX)];
            let answer = match self.bytes(name, Command::Statistics, &question, room) {
                Err(error) if error.raw_os_error() == Some(libc::EFAULT) => continue,
                answer => answer?,
            };
            if word(answer, 4).map(usize::try_from) != Some(Ok(names.len())) {
                continue;
            }
            let values = answer.get(8..).unwrap_or_default().chunks_exact(8);
            let values =
                values.filter_map(|value| value.first_chunk().map(|value| u64::from_ne_bytes(*value)));
            return Ok(names.into_iter().zip(values).collect());
        }
        Err(io::Error::other("the number of statistics kept changing while they were read"))
    }
}

/// The 32-bit number at `at`.
pub fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// 32-bit numbers, one after the other.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks_exact(4)
        .filter_map(|word| word.first_chunk().map(|word| u32::from_ne_bytes(*word)))
        .collect()
}

/// An answer shorter than its structure.
pub fn short() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "the kernel's answer is too short")
}

/// A count that a device claims, where it is one that can be.
pub fn bounded(count: u32) -> io::Result<usize> {
    let too_many =
        || io::Error::new(io::ErrorKind::InvalidData, format!("the driver claims {count} entries"));
    if count > MOST { Err(too_many()) } else { usize::try_from(count).map_err(|_| too_many()) }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

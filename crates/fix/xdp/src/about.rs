//! What an attachment says of itself, pinned beside the maps: how it was made, and its settings.
//!
//! The programs have the settings in read-only data, which bpffs cannot keep under a name that libraries know; and a
//! later process, perhaps of another version, has to know whether it understands the maps before it reads them.

use crate::layout::{KEY_WORDS, Settings};

/// Version of everything that is pinned: names and layouts of maps, this record. Goes up with any change of them.
pub(crate) const VERSION: u32 = 1;

/// Octets of the record: version, frags, settings.
pub(crate) const SIZE: usize = 8 + size_of::<Settings>();

/// How an attachment was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// Whether the programs are those for frames of several buffers and for buckets that move.
    pub(crate) frags: bool,
    pub(crate) settings: Settings,
}

impl About {
    pub(crate) fn to_octets(&self) -> Vec<u8> {
        let mut octets = VERSION.to_ne_bytes().to_vec();
        octets.extend(u32::from(self.frags).to_ne_bytes());
        octets.extend(settings_to_octets(&self.settings));
        octets
    }

    /// Reads what [`About::to_octets`] made; else the version that is there.
    pub(crate) fn from_octets(octets: &[u8]) -> Result<About, u32> {
        let version = octets.first_chunk().map_or(0, |version| u32::from_ne_bytes(*version));
        if version != VERSION {
            return Err(version);
        }
        let frags = octets.get(4..8).is_some_and(|flag| flag != [0; 4]);
        let settings = octets.get(8..).and_then(settings_from_octets).ok_or(version)?;
        Ok(About { frags, settings })
    }
}

/// The settings as the programs have them in memory: there is no padding.
pub(crate) fn settings_to_octets(settings: &Settings) -> Vec<u8> {
    let &Settings { key, classes, symmetric, cpus, spare, hold_ns } = settings;
    let words = key.into_iter().chain([classes, symmetric, cpus, spare]);
    let mut octets: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    octets.extend(hold_ns.to_ne_bytes());
    octets
}

fn settings_from_octets(octets: &[u8]) -> Option<Settings> {
    let (words, hold_ns) = octets.split_at_checked(4 * (KEY_WORDS + 4))?;
    let mut words = words.chunks_exact(4).map(|word| word.try_into().map_or(0, u32::from_ne_bytes));
    let mut key = [0; KEY_WORDS];
    for place in &mut key {
        *place = words.next()?;
    }
    Some(Settings {
        key,
        classes: words.next()?,
        symmetric: words.next()?,
        cpus: words.next()?,
        spare: words.next()?,
        hold_ns: u64::from_ne_bytes(hold_ns.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> About {
        let key = std::array::from_fn(|index| 0x0102_0304 * (index as u32 + 1));
        let settings = Settings { key, classes: 0x1e, symmetric: 1, cpus: 8, spare: 0, hold_ns: 1 << 40 };
        About { frags: true, settings }
    }

    #[test]
    fn what_was_written_is_read() {
        let octets = about().to_octets();
        assert_eq!(octets.len(), SIZE);
        assert_eq!(About::from_octets(&octets), Ok(about()));
    }

    #[test]
    fn another_version_and_a_short_record_are_told_apart_from_ours() {
        let mut octets = about().to_octets();
        assert_eq!(About::from_octets(&octets[..SIZE - 1]), Err(VERSION));
        octets[0] = 9;
        assert_eq!(About::from_octets(&octets), Err(9));
        assert_eq!(About::from_octets(&[]), Err(0));
    }
}

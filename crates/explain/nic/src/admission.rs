//! Which frames a device lets in, by their length and tags.
//!
//! The limits at the driver's defaults and MTU 1500 are claims of the profile (`frame_untagged`, `frame_one_tag`,
//! `frame_two_tags`, the outer TPIDs for which the longer ones hold, and `outer_stag`); what a larger MTU does to them is one, too
//! (`frame_beyond`). Lengths are bytes without FCS; IEEE 802.3 counts it, and so do most reports: 4 more.

use crate::Profile;
use crate::schema::{self, Key};

/// TPID of an S-tag (IEEE 802.1Q-2022, table 9-1).
const STAG: u16 = 0x88a8;
/// The usual MTU, for which the limits are claimed.
pub const USUAL_MTU: u32 = 1500;
/// Bytes of the frame check sequence.
pub const FCS: u32 = 4;
/// Longest envelope frame without FCS (IEEE 802.3-2012, 1.4.184: 2000 bytes at most, of which 482 are for encapsulation).
pub const ENVELOPE: u32 = 2000 - FCS;

/// The longest frame with these TPIDs (outermost first) that is let in at MTU 1500, bytes without FCS; 0: none is. Error:
/// the claim for want of which it is unknown.
pub fn longest(profile: &Profile, tpids: &[u16]) -> Result<u32, Key> {
    if is_refused(profile, tpids) {
        return Ok(0);
    }
    let key = limit_key(profile, tpids);
    profile.int(key).and_then(|longest| u32::try_from(longest).ok()).ok_or(key)
}

/// Whether the device receives no frames with these TPIDs, however short.
fn is_refused(profile: &Profile, tpids: &[u16]) -> bool {
    tpids.first() == Some(&STAG) && profile.tri(schema::OUTER_STAG) == Some(false)
}

/// The claim that holds for frames with these TPIDs.
pub fn limit_key(profile: &Profile, tpids: &[u16]) -> Key {
    if is_refused(profile, tpids) {
        return schema::OUTER_STAG;
    }
    let allowed = match (profile.ints(schema::TAG_ALLOWANCE), tpids.first()) {
        (Some(allowed), Some(outer)) => allowed.contains(&u64::from(*outer)),
        _ => true,
    };
    match tpids.len() {
        _ if !allowed => schema::FRAME_UNTAGGED,
        0 => schema::FRAME_UNTAGGED,
        1 => schema::FRAME_ONE_TAG,
        _ => schema::FRAME_TWO_TAGS,
    }
}

/// The same at another MTU of the device. An MTU below 1500 is taken for 1500: that it lowers a limit is not claimed of
/// any device.
pub fn longest_at(profile: &Profile, tpids: &[u16], mtu: u32) -> Result<u32, Key> {
    if is_refused(profile, tpids) {
        return Ok(0);
    }
    let from = profile.int(schema::FRAME_BEYOND_MTU).unwrap_or(u64::from(USUAL_MTU));
    if mtu <= USUAL_MTU || u64::from(mtu) <= from {
        return longest(profile, tpids);
    }
    let most = profile.int(schema::FRAME_MAX).and_then(|most| u32::try_from(most).ok());
    match profile.text(schema::FRAME_BEYOND) {
        Some("same") => longest(profile, tpids),
        Some("max") => most.ok_or(schema::FRAME_MAX),
        Some("mtu") => longest(profile, tpids).map(|usual| usual.saturating_add(mtu - USUAL_MTU)),
        _ => Err(schema::FRAME_BEYOND),
    }
}

/// A frame that a network may carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameClass {
    /// What it is.
    pub name: &'static str,
    /// Its tags, outermost first.
    pub tpids: Vec<u16>,
    /// Bytes without FCS.
    pub length: u32,
}

/// The frames whose admission distinguishes devices, from the plain full frame up.
pub fn frame_classes() -> Vec<FrameClass> {
    let class = |name, tpids: &[u16], length| FrameClass { name, tpids: tpids.to_vec(), length };
    let full = 14 + USUAL_MTU;
    vec![
        class("full frame", &[], full),
        class("802.1Q tag", &[0x8100], full + 4),
        class("802.1ad tag", &[0x88a8], full + 4),
        class("two 802.1Q tags", &[0x8100, 0x8100], full + 8),
        class("802.1ad and 802.1Q", &[0x88a8, 0x8100], full + 8),
        // RFC 4638: PPPoE with an MTU of 1500 inside.
        class("PPPoE, MTU 1500", &[], full + 8),
        class("PPPoE, MTU 1500, 802.1Q", &[0x8100], full + 12),
        class("baby jumbo", &[], 1600 - FCS),
        class("envelope (802.3as)", &[], ENVELOPE),
        class("envelope, 802.1ad", &[0x88a8, 0x8100], ENVELOPE),
        class("jumbo", &[], 14 + 9000),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = r#"
schema = 1
name = "x"
title = "X"
vendor = "X"
aliases = []
pci = []
[source.ds]
kind = "datasheet"
title = "X"
[admit]
frame_untagged = { is = 1514, source = "ds: 1" }
frame_one_tag = { is = 1518, source = "ds: 1" }
frame_two_tags = { is = 1520, source = "ds: 1" }
frame_max = { is = 9014, source = "ds: 1" }
tag_allowance_tpids = { is = [0x8100], source = "ds: 1" }
frame_beyond = { is = "mtu", source = "ds: 1" }
frame_beyond_mtu = { is = 1510, source = "ds: 1" }
"#;

    fn with(beyond: &str) -> Profile {
        Profile::parse("x.toml", "x", &PROFILE.replace("\"mtu\"", beyond)).unwrap()
    }

    #[test]
    fn the_outer_tpid_chooses_the_limit() {
        let profile = with("\"mtu\"");
        assert_eq!(longest(&profile, &[]), Ok(1514));
        assert_eq!(longest(&profile, &[0x8100]), Ok(1518));
        assert_eq!(longest(&profile, &[0x88a8]), Ok(1514));
        assert_eq!(longest(&profile, &[0x88a8, 0x8100]), Ok(1514));
        assert_eq!(longest(&profile, &[0x8100; 3]), Ok(1520));
    }

    #[test]
    fn a_larger_mtu_does_what_is_claimed() {
        for (mtu, limit) in [(576, 1518), (1500, 1518), (1510, 1518), (1511, 1529), (9000, 9018)] {
            assert_eq!(longest_at(&with("\"mtu\""), &[0x8100], mtu), Ok(limit), "{mtu}");
        }
        assert_eq!(longest_at(&with("\"max\""), &[], 1511), Ok(9014));
        assert_eq!(longest_at(&with("\"same\""), &[], 9000), Ok(1514));
        let silent = Profile::parse(
            "x.toml",
            "x",
            &PROFILE.replace("frame_beyond = { is = \"mtu\", source = \"ds: 1\" }", ""),
        );
        assert_eq!(longest_at(&silent.unwrap(), &[], 9000), Err(schema::FRAME_BEYOND));
        assert_eq!(longest_at(&with("\"mtu\""), &[], u32::MAX), Ok(u32::MAX));
    }

    #[test]
    fn classes_are_named_once() {
        let classes = frame_classes();
        let mut names: Vec<_> = classes.iter().map(|class| class.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), classes.len());
    }
}

//! Admission by frame size, as seen in the field: T. Makita, Stacked Vlan, "Size of vlan packets". The report counts the
//! FCS, the profiles do not.

use rxlane_nic::admission::{ENVELOPE, frame_classes, longest, longest_at};
use rxlane_nic::{builtin, lookup, schema};

const FCS: u32 = 4;

/// Whether a frame of that length with FCS is let in; `None` where that is unknown.
fn admits(name: &str, tpids: &[u16], with_fcs: u32, mtu: u32) -> Option<bool> {
    longest_at(&lookup(name).unwrap(), tpids, mtu).ok().map(|longest| with_fcs - FCS <= longest)
}

const TAGS: [&[u16]; 5] = [&[], &[0x8100], &[0x88a8], &[0x8100, 0x8100], &[0x88a8, 0x8100]];

#[test]
fn bnx2x_and_ixgbe_let_customer_tags_be_four_longer_and_no_others() {
    for name in ["bnx2x", "82599", "x540"] {
        for tags in TAGS {
            let limit = if tags.first() == Some(&0x8100) { 1522 } else { 1518 };
            assert_eq!(admits(name, tags, limit, 1500), Some(true), "{name} {tags:x?}");
            assert_eq!(admits(name, tags, limit + 1, 1500), Some(false), "{name} {tags:x?}");
            // A full frame with two tags comes in once the MTU is raised by as much as it is too long.
            let lacking = 1526 - limit;
            assert_eq!(admits(name, tags, 1526, 1500 + lacking), Some(true), "{name} {tags:x?}");
            assert_eq!(admits(name, tags, 1526, 1500 + lacking - 1), Some(false), "{name} {tags:x?}");
        }
    }
}

/// Of e1000e's there is one limit for all once larger frames are allowed. Of igb's the report saw about 9 kB by default on
/// 3.10 and 4.7; drivers with build_skb are limited to their buffer until the MTU is raised.
#[test]
fn others_have_one_limit_whatever_the_tags() {
    const IGB: &[&str] = &["82576", "i210", "i211", "i350"];
    for (names, with_fcs, mtu, is_let_in) in [
        (&["82574", "i219"][..], 1522, 1500, true),
        (&["82574", "i219"], 1523, 1500, false),
        (&["82574", "i219"], 2000, 1504, true),
        (&["connectx-3"], 1526, 1500, true),
        (&["connectx-3"], 1527, 1500, false),
        (&["sfc"], 1544, 1500, true),
        (&["sfc"], 1545, 1500, false),
        (IGB, 1526, 1500, true),
        (IGB, 2000, 1510, false),
        (IGB, 9728, 1511, true),
        (IGB, 9729, 9000, false),
    ] {
        for (name, tags) in names.iter().flat_map(|name| TAGS.map(|tags| (name, tags))) {
            let admitted = admits(name, tags, with_fcs, mtu);
            assert_eq!(admitted, Some(is_let_in), "{name} {tags:x?} {with_fcs} at MTU {mtu}");
        }
    }
}

/// Raising the MTU for the sake of envelope frames lets untagged jumbo frames in, on every device where both are known.
#[test]
fn envelope_frames_cannot_be_had_without_untagged_jumbo_frames() {
    let mut seen = 0;
    for profile in builtin().unwrap() {
        let tagged = [0x8100, 0x88a8];
        let (Ok(before), Ok(after)) = (longest(profile, &tagged), longest_at(profile, &tagged, 1900)) else {
            continue;
        };
        let untagged = longest_at(profile, &[], 1900);
        if before < ENVELOPE && after >= ENVELOPE {
            assert!(untagged.unwrap() >= 1914, "{}", profile.name());
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

/// Its profile: frames with an outer 0x88a8 are received with VLAN stripping off alone.
#[test]
fn e810_receives_no_service_tags() {
    let e810 = builtin().unwrap().iter().find(|profile| profile.name() == "e810").unwrap();
    assert_eq!(longest_at(e810, &[0x88a8, 0x8100], 9000), Ok(0));
    assert_eq!(longest_at(e810, &[0x8100, 0x8100], 9000), Ok(9724));
}

/// Unknown limits name the claim; known ones never exceed what the device can be set to.
#[test]
fn every_profile_answers_for_every_class() {
    for profile in builtin().unwrap() {
        for class in frame_classes() {
            for mtu in [1500, 1504, 9000] {
                match longest_at(profile, &class.tpids, mtu) {
                    Err(key) => assert_eq!(key.stage, schema::FRAME_UNTAGGED.stage),
                    Ok(0) => assert_eq!(class.tpids.first(), Some(&0x88a8), "{}", profile.name()),
                    Ok(limit) => assert!(limit >= 1514, "{} {}", profile.name(), class.name),
                }
            }
        }
    }
}

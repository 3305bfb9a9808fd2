//! How long a frame a device lets in, as its profile says for MTU 1500, and what follows from that for another MTU.

use crate::stacked::{ETHERNET, TAG, USUAL_MTU};
use nic::{Profile, schema};

/// What a device lets in, as far as its profile says: bytes without FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub at_least: Option<u32>,
    pub at_most: Option<u32>,
}

impl Limit {
    /// What one profile says of frames with so many tags and that TPID outside. Where the device's `mtu` is not known,
    /// it is `least` at least.
    pub fn of(profile: &Profile, tags: u32, outer: Option<u16>, mtu: Option<u32>, least: u32) -> Limit {
        let claim = claimed(profile, tags, outer);
        let known = mtu.unwrap_or(least);
        // A driver accepts an untagged packet of its MTU; whichever way it counts, a frame no longer than that is let in.
        let by_mtu = known.checked_add(ETHERNET);
        // No driver accepts less at a larger MTU.
        let by_claim = claim.filter(|_| known >= USUAL_MTU);
        // A limit of "MTU, header and tags" moves with the MTU; one with more room to spare need not.
        let follows = claim
            .filter(|claim| known > USUAL_MTU && claim.saturating_sub(USUAL_MTU + ETHERNET) <= 2 * TAG)
            .and_then(|claim| claim.checked_add(known - USUAL_MTU));
        let at_least = by_mtu.into_iter().chain(by_claim).chain(follows).max();
        let at_most = claim.filter(|_| mtu.is_some_and(|mtu| mtu <= USUAL_MTU));
        Limit { at_least, at_most }
    }

    /// Whether a frame of that length is let in.
    pub fn accepts(self, frame: u32) -> Option<bool> {
        if self.at_least.is_some_and(|least| frame <= least) {
            return Some(true);
        }
        self.at_most.and_then(|most| (frame > most).then_some(false))
    }

    /// The limit, where both bounds agree.
    pub fn exact(self) -> Option<u32> {
        self.at_most.filter(|_| self.at_least == self.at_most)
    }
}

/// The profile's claim at MTU 1500 for frames with so many tags, bytes without FCS.
fn claimed(profile: &Profile, tags: u32, outer: Option<u16>) -> Option<u32> {
    let key = match (tags, profile.ints(schema::TAG_ALLOWANCE), outer) {
        (0, _, _) => schema::FRAME_UNTAGGED,
        (_, Some(allowed), Some(outer)) if !allowed.contains(&u64::from(outer)) => schema::FRAME_UNTAGGED,
        // A limit that depends on a TPID that the text does not name.
        (_, Some(_), None) => return None,
        (1, _, _) => schema::FRAME_ONE_TAG,
        _ => schema::FRAME_TWO_TAGS,
    };
    u32::try_from(profile.int(key)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, tags: u32, outer: Option<u16>, mtu: u32) -> (Option<u32>, Option<u32>) {
        let limit = Limit::of(&nic::lookup(name).expect("a profile"), tags, outer, Some(mtu), mtu);
        (limit.at_least, limit.at_most)
    }

    #[test]
    fn the_claim_holds_at_the_usual_mtu() {
        assert_eq!(limit("i210", 2, None, 1500), (Some(1532), Some(1532)));
        assert_eq!(limit("82599", 1, Some(0x8100), 1500), (Some(1518), Some(1518)));
        assert_eq!(limit("82599", 1, Some(0x88a8), 1500), (Some(1514), Some(1514)));
        // The limit depends on a TPID that is unknown: a packet of the MTU without a tag fits, that is all.
        assert_eq!(limit("82599", 1, None, 1500), (Some(1514), None));
    }

    #[test]
    fn at_another_mtu_bounds_follow() {
        // MTU + 18 moves with the MTU; what is longer nobody knows.
        assert_eq!(limit("82599", 1, Some(0x8100), 1508), (Some(1526), None));
        // igb keeps 1532 up to MTU 1510.
        assert_eq!(limit("i210", 1, None, 1508), (Some(1532), None));
        assert_eq!(limit("i210", 1, None, 9000), (Some(9014), None));
        // A smaller MTU: what the device refuses at 1500 it refuses there, too.
        assert_eq!(limit("i219", 2, None, 1400), (Some(1414), Some(1518)));
    }
}

//! AC-Cookies (RFC 2516 appendix A): what a concentrator gives away with an offer instead of remembering it.
//!
//! A cookie shows that who sends a PADR has received the PADO, so that a session costs an address that is really there. It
//! is `generation (1) | issued (4) | nonce (8) | tag (16)`, the tag the first half of HMAC-SHA-256 (RFC 2104, truncated as
//! its section 5 allows) over everything before it, the host's MAC address, port and VLAN tags. It is good for a bounded
//! time, at that place alone, and under the present key or the one before it. It is compared in constant time. The nonce
//! makes every offer's cookie another one: PADR with the same cookie are one request, sent again.

use super::concentrator::Reason;
use super::place::Place;
use crate::{Random, Time, draw};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::time::Duration;
use wire::ethernet::MacAddress;

const HEAD: usize = 1 + 4 + 8;
const TAG: usize = 16;

/// A cookie that was good: the name of the request, the same for each repetition of it and for no other.
pub(crate) type Cookie = [u8; HEAD + TAG];

/// How old a cookie may be. A host repeats its PADR for half a minute.
const LIFETIME: Duration = Duration::from_secs(60);
/// How long a key makes cookies; never shorter than a cookie lives.
const ROTATION: Duration = Duration::from_secs(3600);

/// The keys. Memory: two of them, whatever is requested.
pub(crate) struct Cookies {
    generation: u8,
    /// The present one and the one before, each already in its place in an HMAC.
    keys: [Hmac<Sha256>; 2],
    /// When the present key was drawn.
    rotated: Time,
}

impl std::fmt::Debug for Cookies {
    /// Without the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookies").finish_non_exhaustive()
    }
}

impl Cookies {
    /// Draws the first key.
    pub(crate) fn new(now: Time, random: &mut dyn Random) -> Cookies {
        Cookies { generation: 0, keys: [key(random), key(random)], rotated: now }
    }

    /// A cookie for this host at this place.
    pub(crate) fn make(
        &mut self,
        now: Time,
        host: MacAddress,
        place: &Place,
        random: &mut dyn Random,
    ) -> Cookie {
        if now.saturating_sub(self.rotated) >= ROTATION {
            self.rotate(now, random);
        }
        let mut cookie = [0; HEAD + TAG];
        let issued = seconds(now).to_be_bytes();
        let nonce: [u8; 8] = draw(random);
        let head = [self.generation].into_iter().chain(issued).chain(nonce);
        cookie.iter_mut().zip(head).for_each(|(byte, value)| *byte = value);
        let Some((head, tag)) = cookie.split_first_chunk_mut::<HEAD>() else { return cookie };
        let code = code(&self.keys[0], head, host, place).finalize().into_bytes();
        tag.iter_mut().zip(code).for_each(|(byte, value)| *byte = value);
        cookie
    }

    fn rotate(&mut self, now: Time, random: &mut dyn Random) {
        self.keys.swap(0, 1);
        self.keys[0] = key(random);
        self.generation = self.generation.wrapping_add(1);
        self.rotated = now;
    }

    /// Whether a cookie was made for this host at this place, not too long ago; otherwise it is forged or expired.
    pub(crate) fn check(
        &self,
        now: Time,
        host: MacAddress,
        place: &Place,
        bytes: &[u8],
    ) -> Result<Cookie, Reason> {
        let cookie: &Cookie = bytes.try_into().map_err(|_| Reason::Forged)?;
        let (head, tag) = cookie.split_first_chunk::<HEAD>().ok_or(Reason::Forged)?;
        let [generation, a, b, c, d, ..] = *head;
        let key = match self.generation.wrapping_sub(generation) {
            0 => &self.keys[0],
            1 => &self.keys[1],
            _ => return Err(Reason::Forged),
        };
        // In constant time.
        code(key, head, host, place).verify_truncated_left(tag).map_err(|_| Reason::Forged)?;
        let age = seconds(now).wrapping_sub(u32::from_be_bytes([a, b, c, d]));
        if Duration::from_secs(age.into()) > LIFETIME {
            return Err(Reason::Expired);
        }
        Ok(*cookie)
    }
}

/// Whole seconds; they begin anew after 136 years, and the difference holds.
fn seconds(time: Time) -> u32 {
    time.as_secs() as u32
}

/// A new key, as long as a block of the hash.
fn key(random: &mut dyn Random) -> Hmac<Sha256> {
    Hmac::new(&draw::<64>(random).into())
}

fn code(key: &Hmac<Sha256>, head: &[u8; HEAD], host: MacAddress, place: &Place) -> Hmac<Sha256> {
    // The length of each part is fixed, so that no two sets of parts are the same bytes.
    let mut code = key.clone();
    code.update(head);
    code.update(&host.0);
    code.update(&place.port.to_be_bytes());
    code.update(&place.vlans.number().to_be_bytes());
    code
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Seeded, vlans};
    use wire::Vlans;

    const HOST: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const NOW: Time = Duration::from_secs(1000);

    /// Attack 9: a cookie that was overheard is good for nobody else, nowhere else, and not for long.
    #[test]
    fn a_cookie_is_bound_to_host_place_and_time() {
        let random = &mut Seeded::new(1);
        let mut cookies = Cookies::new(NOW, random);
        let place = Place { port: 3, vlans: vlans(35) };
        let [cookie, other] = [(); 2].map(|()| cookies.make(NOW, HOST, &place, random));
        let check = |now, host, place, bytes: &[u8]| cookies.check(now, host, &place, bytes);
        assert_ne!(cookie, other, "every offer has another one");
        assert_eq!(check(NOW, HOST, place, &cookie), Ok(cookie));
        assert_eq!(check(NOW, HOST, place, &other), Ok(other));
        assert_eq!(check(NOW + Duration::from_secs(60), HOST, place, &cookie), Ok(cookie));
        assert_eq!(check(NOW + Duration::from_secs(61), HOST, place, &cookie), Err(Reason::Expired));
        let forged = Err(Reason::Forged);
        assert_eq!(check(NOW, MacAddress([2, 0, 0, 0, 0, 2]), place, &cookie), forged);
        assert_eq!(check(NOW, HOST, Place { port: 4, ..place }, &cookie), forged);
        assert_eq!(check(NOW, HOST, Place { vlans: vlans(36), ..place }, &cookie), forged);
        assert_eq!(check(NOW, HOST, Place { vlans: Vlans::NONE, ..place }, &cookie), forged);
        for byte in 0..cookie.len() {
            for bit in 0..8 {
                let mut other = cookie;
                other[byte] ^= 1 << bit;
                assert_eq!(check(NOW, HOST, place, &other), forged, "byte {byte}");
            }
            assert_eq!(check(NOW, HOST, place, &cookie[..byte]), forged);
        }
        assert_eq!(check(NOW, HOST, place, &[&cookie[..], &[0]].concat()), forged);
    }

    #[test]
    fn keys_rotate_and_a_cookie_outlives_one_rotation() {
        let random = &mut Seeded::new(1);
        let mut cookies = Cookies::new(NOW, random);
        let place = Place::default();
        let at = |seconds: u64| NOW + Duration::from_secs(seconds);
        let first = cookies.make(at(3599), HOST, &place, random);
        let second = cookies.make(at(3600), HOST, &place, random);
        assert_ne!(first[0], second[0], "another generation");
        assert_eq!(cookies.check(at(3650), HOST, &place, &first), Ok(first));
        assert_eq!(cookies.check(at(3660), HOST, &place, &first), Err(Reason::Expired));
        cookies.make(at(7200), HOST, &place, random);
        // Its key is removed, so that it is unknown.
        assert_eq!(cookies.check(at(7200), HOST, &place, &first), Err(Reason::Forged));
        assert_eq!(cookies.check(at(3660), HOST, &place, &second), Ok(second));
        // Hours pass at once.
        let late = cookies.make(at(20_000), HOST, &place, random);
        assert_eq!(cookies.check(at(20_000), HOST, &place, &second), Err(Reason::Forged));
        assert_eq!(cookies.check(at(20_001), HOST, &place, &late), Ok(late));
    }
}

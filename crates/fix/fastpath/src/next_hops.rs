//! Next hops: each is a place in the map of the program, shared by all flows that leave by it.

use crate::obstacle::Obstacle;
use crate::resolve::Side;
use foldhash::HashMap;
use std::collections::VecDeque;
use std::net::IpAddr;
use xdp::forward::NextHop;

/// By what a next hop is known: the interface that routes name, the station, and the longest packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The interface.
    pub interface: u32,
    /// The station.
    pub next: IpAddr,
    /// The longest packet, bytes.
    pub largest: u32,
}

impl Key {
    /// That of packets that leave by a side.
    pub fn of(side: &Side) -> Key {
        Key { interface: side.interface, next: side.next, largest: side.largest }
    }
}

/// What is in the map.
#[derive(Debug)]
struct Known {
    place: u32,
    side: Side,
    /// Whether it stands in the map; it does not while the station is not known.
    is_written: bool,
    /// Flows that leave by it.
    flows: usize,
}

/// The next hops in use.
#[derive(Debug, Default)]
pub struct NextHops {
    known: HashMap<Key, Known>,
    /// Places that were given back, the oldest first: one that was just used may be written only after a while.
    free: VecDeque<u32>,
    /// The first place that was never given.
    first: u32,
    most: u32,
}

impl NextHops {
    /// None, with as many places as there are in the map.
    pub fn with_places(most: u32) -> NextHops {
        NextHops { most, ..NextHops::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Counts another flow that leaves by a side; the place, and whether it has to be written.
    ///
    /// # Errors
    ///
    /// [`Obstacle::Full`].
    pub fn add(&mut self, side: &Side) -> Result<(u32, bool), Obstacle> {
        let key = Key::of(side);
        if let Some(known) = self.known.get_mut(&key) {
            known.flows += 1;
            let is_new = !known.is_written || known.side != *side;
            known.side = side.clone();
            known.is_written = true;
            return Ok((known.place, is_new));
        }
        let place = match self.free.pop_front() {
            Some(place) => place,
            None if self.first < self.most => {
                self.first += 1;
                self.first - 1
            }
            None => return Err(Obstacle::Full),
        };
        self.known.insert(key, Known { place, side: side.clone(), is_written: true, flows: 1 });
        Ok((place, true))
    }

    /// A flow leaves by it no more. After the last one its place is free; what stands there no flow leads to.
    pub fn remove(&mut self, key: &Key) {
        let Some(known) = self.known.get_mut(key) else { return };
        known.flows = known.flows.saturating_sub(1);
        if known.flows == 0 {
            let place = known.place;
            self.known.remove(key);
            self.free.push_back(place);
        }
    }

    /// All of them: key, place, and the side by which packets leave.
    pub fn iter(&self) -> impl Iterator<Item = (Key, u32, &Side)> {
        self.known.iter().map(|(key, known)| (*key, known.place, &known.side))
    }

    /// Whether it stands in the map with this side.
    pub fn is_written(&self, key: &Key, side: &Side) -> bool {
        self.known.get(key).is_some_and(|known| known.is_written && known.side == *side)
    }

    /// It stands in the map with this side now.
    pub fn set(&mut self, key: &Key, side: Side) {
        if let Some(known) = self.known.get_mut(key) {
            known.side = side;
            known.is_written = true;
        }
    }

    /// It was taken out of the map: whatever side it has next has to be written.
    pub fn unset(&mut self, key: &Key) {
        if let Some(known) = self.known.get_mut(key) {
            known.is_written = false;
        }
    }
}

/// As the program takes it. `port`: the place of the port in its map.
pub fn next_hop(side: &Side, port: u32) -> NextHop {
    let way = &side.way;
    NextHop {
        port,
        largest: u16::try_from(side.largest).unwrap_or(u16::MAX),
        source: way.own,
        destination: way.destination,
        tags: way.tags,
        session: way.session.map(|session| session.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Way;
    use wire::ethernet::MacAddress;

    fn side(last: u8) -> Side {
        let next = IpAddr::from([192, 0, 2, 1]);
        let way = Way {
            port: 2,
            tags: [None, None],
            session: None,
            own: MacAddress([2, 0, 0, 0, 0, 1]),
            destination: MacAddress([2, 0, 0, 0, 0, last]),
            mtu: 1500,
        };
        Side { interface: 2, next, way, largest: 1500 }
    }

    #[test]
    fn what_was_taken_out_of_the_map_is_written_again_with_the_same_side() {
        let mut hops = NextHops::with_places(1);
        let (one, key) = (side(7), Key::of(&side(7)));
        assert_eq!(hops.add(&one), Ok((0, true)));
        assert_eq!(hops.add(&one), Ok((0, false)));
        assert!(hops.is_written(&key, &one) && !hops.is_written(&key, &side(8)));
        hops.unset(&key);
        assert!(!hops.is_written(&key, &one));
        assert_eq!(hops.add(&one), Ok((0, true)));
        hops.unset(&key);
        hops.set(&key, side(8));
        assert!(hops.is_written(&key, &side(8)));
        assert_eq!(hops.add(&side(8)), Ok((0, false)));
    }

    #[test]
    fn a_place_is_free_after_the_last_flow() {
        let mut hops = NextHops::with_places(1);
        let other = Side { next: IpAddr::from([192, 0, 2, 2]), ..side(8) };
        assert_eq!(hops.add(&side(7)), Ok((0, true)));
        assert_eq!(hops.add(&side(7)), Ok((0, false)));
        assert_eq!(hops.add(&other), Err(Obstacle::Full));
        hops.remove(&Key::of(&side(7)));
        assert_eq!(hops.add(&other), Err(Obstacle::Full));
        hops.remove(&Key::of(&side(7)));
        assert_eq!(hops.add(&other), Ok((0, true)));
        assert_eq!(hops.len(), 1);
    }
}

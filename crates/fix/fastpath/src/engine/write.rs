//! Flows in the maps of the program, with the next hops by which they leave.

use super::Engine;
use super::keep::update;
use crate::connection::{Established, TCP, Tuple};
use crate::counted::Removal;
use crate::error::Error;
use crate::flows::Installed;
use crate::next_hops::{self, next_hop};
use crate::obstacle::Obstacle;
use crate::resolve::{Resolved, Side};
use kernel::netlink::netfilter::conntrack::Update;
use std::net::{SocketAddr, SocketAddrV4};
use std::time::Instant;
use xdp::forward::{self, Key};

impl Engine {
    /// Puts both directions into the maps. `known`: they are there already, and stay counted.
    pub(super) fn write(
        &mut self,
        connection: Established,
        resolved: &Resolved,
        known: Option<Installed>,
    ) -> Result<(), Error> {
        let Resolved { inside, outside } = resolved;
        let has_place = known.is_some() || self.flows.len() < self.most;
        let places = if has_place { self.places(inside, outside)? } else { None };
        let Some((to_inside, to_outside)) = places else {
            if let Some(known) = known {
                self.take_out(&known)?;
                self.counted.remove(Removal::Rerouted);
            }
            self.wait(connection, Obstacle::Full);
            return Ok(());
        };
        let keys = [key(&connection.original, inside), key(&connection.reply, outside)];
        let flows = [
            self.flow((&connection.original, &connection.reply), inside, outside, to_outside),
            self.flow((&connection.reply, &connection.original), outside, inside, to_inside),
        ];
        let is_same = known.as_ref().is_some_and(|known| known.keys == keys);
        if let Some(known) = known.as_ref().filter(|_| !is_same) {
            self.take_out(known)?;
        }
        for (key, flow) in keys.iter().zip(&flows) {
            let written =
                if is_same { self.program.renew(key, flow) } else { self.program.insert(key, flow) };
            written?;
        }
        if known.is_none() {
            self.hand_over(&connection);
            self.counted.installs += 1;
        }
        let renewed = known.map_or_else(Instant::now, |known| known.renewed);
        let next_hops = [next_hops::Key::of(outside), next_hops::Key::of(inside)];
        self.waiting.remove(&connection.original);
        self.hindered.remove(&connection.original);
        self.flows.insert(Installed { connection, keys, next_hops, renewed });
        Ok(())
    }

    /// The places of the next hops of both sides; `None`: there are not as many left.
    pub(super) fn places(&mut self, inside: &Side, outside: &Side) -> Result<Option<(u32, u32)>, Error> {
        let Some(to_inside) = self.leave_by(inside)? else { return Ok(None) };
        let to_outside = self.leave_by(outside)?;
        if to_outside.is_none() {
            self.leave(&[next_hops::Key::of(inside)]);
        }
        Ok(to_outside.map(|to_outside| (to_inside, to_outside)))
    }

    /// The place of the next hop for packets that leave by a side; `None`: there is none left.
    pub(super) fn leave_by(&mut self, side: &Side) -> Result<Option<u32>, Error> {
        let Ok((place, is_new)) = self.next_hops.add(side) else { return Ok(None) };
        if is_new {
            let port = self.ports.place(side.way.port).unwrap_or_default();
            self.program.set_next_hop(place, Some(&next_hop(side, port)))?;
        }
        Ok(Some(place))
    }

    pub(super) fn flow(
        &self,
        (from, other): (&Tuple, &Tuple),
        arrives: &Side,
        leaves: &Side,
        next_hop: u32,
    ) -> forward::Flow {
        // What leaves is the other direction, reversed.
        let translated = || Some((v4(other.destination)?, v4(other.source)?));
        let is_translated = from.source != other.destination || from.destination != other.source;
        forward::Flow {
            next_hop,
            generation: self.generation,
            own: arrives.way.own,
            translated: is_translated.then(translated).flatten(),
            verified: self.ports.is_verified(arrives.way.port),
            limit: self.ports.limit(arrives.way.port, leaves.way.port),
        }
    }

    /// conntrack does not see the packets any more: it is to take those that come back to the kernel, whatever their windows.
    pub(super) fn hand_over(&mut self, connection: &Established) {
        if connection.original.protocol == TCP {
            self.updates.push(Update { timeout: None, liberal: true, ..update(&connection.original) });
        }
    }

    pub(super) fn take_out(&mut self, installed: &Installed) -> Result<(), Error> {
        for key in &installed.keys {
            self.program.remove(key)?;
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, next_hops: &[next_hops::Key]) {
        next_hops.iter().for_each(|key| self.next_hops.remove(key));
    }

    pub(super) fn remove(&mut self, tuple: &Tuple, why: Removal) -> Result<(), Error> {
        let Some(installed) = self.flows.remove(tuple) else { return Ok(()) };
        self.undo(&installed, why)
    }

    /// Takes out of the maps what is no flow any more.
    pub(super) fn undo(&mut self, installed: &Installed, why: Removal) -> Result<(), Error> {
        self.take_out(installed)?;
        self.leave(&installed.next_hops);
        self.counted.remove(why);
        Ok(())
    }
}

/// Under what packets of a direction stand in the map that arrive by a side.
fn key(tuple: &Tuple, side: &Side) -> Key {
    Key {
        port: side.way.port,
        tags: side.way.tags,
        session: side.way.session,
        protocol: tuple.protocol,
        source: tuple.source,
        destination: tuple.destination,
    }
}

fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}

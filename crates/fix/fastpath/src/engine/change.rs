//! Interfaces, neighbours, bridges, addresses, routes and rules change: what stands on them is removed, rewritten or resolved anew.

use super::{Engine, PIECE};
use crate::connection::{Established, Tuple};
use crate::counted::Removal;
use crate::error::Error;
use crate::next_hops::{self, next_hop};
use crate::obstacle::Obstacle;
use crate::resolve::{Resolved, Side};
use kernel::netlink::Change;
use std::net::IpAddr;

/// Flows under a changed route from which all are passed to the kernel at once and then resolved anew: one write instead of many.
const MANY: usize = 2048;

impl Engine {
    /// Interfaces, neighbours, routes or rules changed.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map, or to answer a query.
    pub fn change(&mut self, change: Change) -> Result<(), Error> {
        match change {
            Change::Link(link) => {
                if self.topology.set_link(link) {
                    self.start_over()?;
                }
            }
            Change::LinkRemoved(index) => {
                if self.topology.remove_link(index) {
                    self.start_over()?;
                }
            }
            Change::Lost => {
                self.read_route_tos()?;
                self.start_over()?;
            }
            Change::Address(_) | Change::Rule | Change::NextHop | Change::Setting => self.start_over()?,
            Change::Route { destination, tos, .. } => {
                if tos.is_some_and(|tos| self.selectors.add_tos(tos)) {
                    self.start_over()?;
                }
                self.route(destination)?;
            }
            Change::Neighbour(neighbour) => {
                let (interface, address) = (neighbour.interface, neighbour.address);
                if self.topology.set_neighbour(neighbour) {
                    self.station(|key| (key.interface, key.next) == (interface, address))?;
                }
            }
            Change::NeighbourRemoved(neighbour) => {
                if self.topology.remove_neighbour(&neighbour) {
                    let (interface, address) = (neighbour.interface, neighbour.address);
                    self.station(|key| (key.interface, key.next) == (interface, address))?;
                }
            }
            Change::BridgePort(port) => {
                if self.topology.set_bridge_port(port) {
                    self.station(|_| true)?;
                }
            }
            Change::BridgeEntry(entry) => {
                if self.topology.set_bridge_entry(&entry) {
                    self.station(|_| true)?;
                }
            }
            Change::BridgeEntryRemoved(entry) => {
                if self.topology.remove_bridge_entry(&entry) {
                    self.station(|_| true)?;
                }
            }
        }
        Ok(())
    }

    /// Everything may be otherwise: from this write on all packets go to the kernel, until their flow is resolved anew.
    pub(super) fn start_over(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.is_outdated, true) {
            self.generation = self.generation.wrapping_add(1).max(1);
            self.beat()?;
        }
        Ok(())
    }

    /// Has everything resolved anew, where changes before this call want it.
    ///
    /// # Errors
    ///
    /// The kernel does not say what stands on what.
    pub fn finish_changes(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.is_outdated) {
            self.read_machine()?;
            self.again = self.flows.iter().map(|one| one.connection.original).collect();
            self.again.extend(self.waiting.keys().chain(self.hindered.keys()));
        }
        Ok(())
    }

    /// Events were lost: no flow is taken for true until it is seen to be.
    ///
    /// # Errors
    ///
    /// As [`Engine::finish_changes`].
    pub fn distrust(&mut self) -> Result<(), Error> {
        self.start_over()?;
        self.finish_changes()
    }

    /// Counts that events were lost.
    pub fn note_lost(&mut self) {
        self.counted.lost += 1;
    }

    pub(super) fn route(&mut self, destination: Option<(IpAddr, u8)>) -> Result<(), Error> {
        let Some(network) = destination.filter(|(_, bits)| *bits > 0) else { return self.start_over() };
        let under = self.flows.within(network);
        self.again.extend(self.hindered.keys());
        if under.len() > MANY {
            return self.start_over();
        }
        self.resolve_again(&under)
    }

    /// The way to some next hops may be another one.
    pub(super) fn station(&mut self, is_such: impl Fn(&next_hops::Key) -> bool) -> Result<(), Error> {
        let such: Vec<(next_hops::Key, u32, Side)> = self
            .next_hops
            .iter()
            .filter(|(key, ..)| is_such(key))
            .map(|(key, place, side)| (key, place, side.clone()))
            .collect();
        for (key, place, former) in such {
            let ports = &self.ports;
            let is_port = |interface| ports.place(interface).is_some();
            let Ok(way) = self.topology.way(key.interface, key.next, is_port) else {
                self.program.set_next_hop(place, None)?;
                self.next_hops.unset(&key);
                let flows = self.flows.of_next_hop(&key);
                self.again.extend(flows);
                continue;
            };
            let side = Side { way, ..former.clone() };
            if self.next_hops.is_written(&key, &side) {
                continue;
            }
            let port = ports.place(side.way.port).unwrap_or_default();
            self.program.set_next_hop(place, Some(&next_hop(&side, port)))?;
            // Packets of the other direction arrive from there.
            let arrives = |side: &Side| (side.way.port, side.way.tags, side.way.session, side.way.own);
            if arrives(&side) != arrives(&former) {
                let flows = self.flows.of_next_hop(&key);
                self.again.extend(flows);
            }
            self.next_hops.set(&key, side);
        }
        Ok(())
    }

    /// Resolves connections anew: their flows are written again, or removed.
    pub(super) fn resolve_again(&mut self, tuples: &[Tuple]) -> Result<(), Error> {
        let connections: Vec<Established> = tuples.iter().filter_map(|tuple| self.known(tuple)).collect();
        for (connection, resolved) in connections.iter().zip(self.resolve(&connections)) {
            let known = self.flows.remove(&connection.original);
            let is_moved = |resolved: &Resolved| known.as_ref().is_some_and(|known| known.is_moved(resolved));
            let resolved = resolved.and_then(|resolved| {
                // Its next packet is the kernel's, which decides whether it goes on.
                if is_moved(&resolved) { Err(Obstacle::Moved) } else { Ok(resolved) }
            });
            match resolved {
                Ok(resolved) => {
                    let former = known.as_ref().map(|known| known.next_hops);
                    self.write(*connection, &resolved, known)?;
                    self.leave(former.as_ref().map_or(&[], |former| former.as_slice()));
                }
                Err(obstacle) => {
                    if let Some(known) = known {
                        self.undo(&known, Removal::Rerouted)?;
                    }
                    self.wait(*connection, obstacle);
                }
            }
        }
        self.send_updates();
        Ok(())
    }

    /// Resolves some of the connections anew that have to be, or looks at some of those that were listed. `true`: there are more.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map.
    pub fn work(&mut self) -> Result<bool, Error> {
        let piece = self.again.split_off(self.again.len().saturating_sub(PIECE));
        if piece.is_empty() {
            self.take_listed()?;
        } else {
            self.resolve_again(&piece)?;
        }
        Ok(!self.again.is_empty() || !self.listed.is_empty())
    }
}

//! Connections begin, change and end: the flows follow conntrack.

use super::{Engine, PIECE};
use crate::connection::{Established, Found, Tuple};
use crate::counted::Removal;
use crate::error::Error;
use crate::flows::Installed;
use crate::obstacle::Obstacle;
use crate::resolve::{Resolved, Resolver};
use foldhash::{HashMap, HashMapExt};
use kernel::netlink::netfilter::conntrack::{self, ConnectionChange};
use std::time::Instant;

/// Connections that wait for a neighbour or a place.
const WAITING: usize = 65_536;
/// Connections that are queried, since no event may come of their end.
const SILENT: usize = 4096;

impl Engine {
    /// All that conntrack knows at this moment: for the start, and after events were lost.
    ///
    /// # Errors
    ///
    /// conntrack cannot be read, or the kernel refuses to write a map.
    pub fn take_all(&mut self) -> Result<(), Error> {
        let mut all = HashMap::new();
        conntrack::each(|connection| {
            if let Some(found) = Found::of(&connection) {
                all.insert(*found.tuple(), found);
            }
        })
        .map_err(Error::asking("connections"))?;
        let is_gone =
            |one: &&Installed| !matches!(all.get(&one.connection.original), Some(Found::Established(_)));
        let ended: Vec<Tuple> =
            self.flows.iter().filter(is_gone).map(|one| one.connection.original).collect();
        for tuple in ended {
            self.remove(&tuple, Removal::Ended)?;
        }
        self.waiting.retain(|tuple, _| matches!(all.get(tuple), Some(Found::Established(_))));
        self.hindered.retain(|tuple, _| matches!(all.get(tuple), Some(Found::Established(_))));
        let found: Vec<Found> = all.into_values().collect();
        for piece in found.chunks(PIECE) {
            // No event may come of these, not even of their end.
            self.take(piece, true)?;
        }
        Ok(())
    }

    /// Connections changed, or ended.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map, or to answer a query.
    pub fn connections(&mut self, changes: &[(ConnectionChange, Found)]) -> Result<(), Error> {
        // Of several changes of one connection the last one counts.
        let mut last: HashMap<Tuple, (ConnectionChange, Found)> = HashMap::new();
        for (change, found) in changes {
            let is_known = matches!(found, Found::Unsaid(_)) && *change == ConnectionChange::Changed;
            if !is_known || !last.contains_key(found.tuple()) {
                last.insert(*found.tuple(), (*change, *found));
            }
        }
        let mut established = Vec::new();
        let mut unsaid = Vec::new();
        for (tuple, (change, found)) in last {
            match (change, found) {
                (ConnectionChange::Destroyed, _) => self.end(&tuple)?,
                (_, Found::Unsaid(_)) if self.flows.get(&tuple).is_none() => {}
                (_, Found::Unsaid(_)) => unsaid.push(tuple),
                // A notification does not say whether there is a helper.
                (_, Found::Established(one)) if self.is_new(&one) => unsaid.push(tuple),
                (_, found) => established.push(found),
            }
        }
        established.extend(self.query(&unsaid)?);
        self.take(&established, false)
    }

    pub(super) fn is_new(&self, connection: &Established) -> bool {
        self.known(&connection.original) != Some(*connection)
    }

    /// A connection that is installed, or will be when it can.
    pub(super) fn known(&self, tuple: &Tuple) -> Option<Established> {
        let installed = self.flows.get(tuple).map(|installed| installed.connection);
        let waiting = || self.waiting.get(tuple).map(|(connection, _)| *connection);
        installed.or_else(waiting).or_else(|| self.hindered.get(tuple).copied())
    }

    /// The state of these in conntrack; one that has ended is none any more.
    pub(super) fn query(&mut self, tuples: &[Tuple]) -> Result<Vec<Found>, Error> {
        let keys: Vec<conntrack::Key> = tuples.iter().map(Tuple::key).collect();
        let mut found: Vec<Found> = tuples.iter().map(|tuple| Found::Not(*tuple, None)).collect();
        self.keep
            .query(&keys, |place, connection| {
                if let Some((known, now)) = found.get_mut(place).zip(Found::of(&connection)) {
                    *known = now;
                }
            })
            .map_err(Error::asking("connections"))?;
        Ok(found)
    }

    pub(super) fn end(&mut self, tuple: &Tuple) -> Result<(), Error> {
        self.waiting.remove(tuple);
        self.hindered.remove(tuple);
        self.remove(tuple, Removal::Ended)
    }

    /// `silent`: of their end no event may come.
    pub(super) fn take(&mut self, found: &[Found], silent: bool) -> Result<(), Error> {
        let mut new = Vec::new();
        for found in found {
            match found {
                Found::Established(connection) => {
                    if self.is_new(connection) {
                        self.remove(&connection.original, Removal::Changed)?;
                        new.push(*connection);
                    }
                }
                Found::Not(tuple, obstacle) => {
                    if let Some(obstacle) = obstacle {
                        self.counted.refuse(*obstacle);
                    }
                    self.end(tuple)?;
                }
                Found::Unsaid(_) => {}
            }
        }
        self.install(&new, silent)
    }

    pub(super) fn install(&mut self, connections: &[Established], silent: bool) -> Result<(), Error> {
        for (connection, resolved) in connections.iter().zip(self.resolve(connections)) {
            match resolved {
                Ok(_) if silent && self.silent.len() >= SILENT => self.counted.refuse(Obstacle::Full),
                Ok(resolved) => {
                    self.write(*connection, &resolved, None)?;
                    if silent {
                        self.silent.push(connection.original);
                    }
                }
                Err(obstacle) => {
                    self.wait(*connection, obstacle);
                    let is_known = self.known(&connection.original).is_some();
                    if is_known && silent && self.silent.len() < SILENT {
                        self.silent.push(connection.original);
                    }
                }
            }
        }
        self.send_updates();
        Ok(())
    }

    /// Asks conntrack for connections of whose end no event may come.
    ///
    /// # Errors
    ///
    /// As [`Engine::connections`].
    pub fn poll(&mut self) -> Result<(), Error> {
        let mut silent = std::mem::take(&mut self.silent);
        silent.retain(|tuple| self.known(tuple).is_some());
        let found = self.query(&silent)?;
        self.silent = silent;
        self.take(&found, true)
    }

    /// Whether there are such connections.
    pub fn has_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Keeps a connection in mind whose obstacle may go by itself.
    pub(super) fn wait(&mut self, connection: Established, obstacle: Obstacle) {
        let is_known = self.waiting.contains_key(&connection.original);
        let was_hindered = self.hindered.remove(&connection.original).is_some();
        if !is_known && !was_hindered {
            self.counted.refuse(obstacle);
        }
        if obstacle.may_change() && self.hindered.len() < WAITING {
            self.hindered.insert(connection.original, connection);
        }
        if obstacle.is_temporary() && (is_known || self.waiting.len() < WAITING) {
            let now = Instant::now();
            self.waiting.entry(connection.original).or_insert((connection, now)).0 = connection;
        } else {
            self.waiting.remove(&connection.original);
        }
    }

    pub(super) fn resolve(&mut self, connections: &[Established]) -> Vec<Result<Resolved, Obstacle>> {
        let ports = &self.ports;
        let mut resolver =
            Resolver { routes: &mut self.routes, topology: &self.topology, marks: &self.marks };
        resolver.resolve(connections, |interface| ports.place(interface).is_some())
    }

    /// Removes all flows, and installs anew those of connections that are established.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map.
    pub fn flush(&mut self) -> Result<usize, Error> {
        let all: Vec<Tuple> = self.flows.iter().map(|one| one.connection.original).collect();
        for tuple in &all {
            self.remove(tuple, Removal::Flushed)?;
        }
        self.take_all()?;
        Ok(all.len())
    }
}

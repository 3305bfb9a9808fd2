//! Connections begin, change and end: the flows follow conntrack.

use super::{Engine, PIECE};
use crate::connection::{Established, Found, Tuple};
use crate::counted::Removal;
use crate::error::Error;
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
    /// Lists what conntrack knows at this moment, at the start and after events were lost; [`Engine::work`] looks at it.
    ///
    /// # Errors
    ///
    /// conntrack cannot be read, or the kernel refuses to write a map.
    pub fn list(&mut self) -> Result<(), Error> {
        let mut all = HashMap::new();
        conntrack::each(|connection| {
            if let Some(found) = Found::of(&connection) {
                all.insert(*found.tuple(), found);
            }
        })
        .map_err(Error::asking("connections"))?;
        let is_there = |tuple: &Tuple| matches!(all.get(tuple), Some(Found::Established(_)));
        let ended: Vec<Tuple> =
            self.flows.iter().map(|one| one.connection.original).filter(|tuple| !is_there(tuple)).collect();
        for tuple in ended {
            self.remove(&tuple, Removal::Ended)?;
        }
        self.waiting.retain(|tuple, _| is_there(tuple));
        self.hindered.retain(|tuple, _| is_there(tuple));
        self.earlier.retain(|tuple| all.contains_key(tuple));
        self.listed = all;
        Ok(())
    }

    /// Looks at some of those that were listed.
    pub(super) fn take_listed(&mut self) -> Result<(), Error> {
        let tuples: Vec<Tuple> = self.listed.keys().take(PIECE).copied().collect();
        let piece: Vec<Found> = tuples.iter().filter_map(|tuple| self.listed.remove(tuple)).collect();
        self.take(&piece)
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
            // It says more than the list.
            let is_listed = self.listed.remove(&tuple).is_some();
            self.earlier.remove(&tuple);
            match (change, found) {
                (ConnectionChange::Destroyed, _) => self.end(&tuple)?,
                (_, Found::Unsaid(_)) if !is_listed && self.flows.get(&tuple).is_none() => {}
                (_, Found::Unsaid(_)) => unsaid.push(tuple),
                // A notification does not say whether there is a helper.
                (_, Found::Established(one)) if self.is_new(&one) => unsaid.push(tuple),
                (_, found) => established.push(found),
            }
        }
        for (found, seconds) in self.query(&unsaid)? {
            if let (Found::Established(_), Some(seconds)) = (found, seconds) {
                self.timeouts.note(found.tuple(), seconds);
            }
            established.push(found);
        }
        self.take(&established)
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

    /// The state of these in conntrack, and after how many seconds without a packet it ends; one that has ended is none any more.
    pub(super) fn query(&mut self, tuples: &[Tuple]) -> Result<Vec<(Found, Option<u32>)>, Error> {
        let keys: Vec<conntrack::Key> = tuples.iter().map(Tuple::key).collect();
        let mut found: Vec<(Found, Option<u32>)> =
            tuples.iter().map(|tuple| (Found::Not(*tuple, None), None)).collect();
        self.keep
            .query(&keys, |place, connection| {
                if let Some((known, now)) = found.get_mut(place).zip(Found::of(&connection)) {
                    *known = (now, connection.timeout());
                }
            })
            .map_err(Error::asking("connections"))?;
        Ok(found)
    }

    pub(super) fn end(&mut self, tuple: &Tuple) -> Result<(), Error> {
        self.waiting.remove(tuple);
        self.hindered.remove(tuple);
        self.earlier.remove(tuple);
        self.remove(tuple, Removal::Ended)
    }

    /// Takes connections for what was found of them.
    pub(super) fn take(&mut self, found: &[Found]) -> Result<(), Error> {
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
        self.install(&new)
    }

    pub(super) fn install(&mut self, connections: &[Established]) -> Result<(), Error> {
        for (connection, resolved) in connections.iter().zip(self.resolve(connections)) {
            let silent = self.earlier.contains(&connection.original);
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
        let found: Vec<Found> = self.query(&silent)?.into_iter().map(|(found, _)| found).collect();
        self.silent = silent;
        self.take(&found)
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
            Resolver { routes: &mut self.routes, topology: &self.topology, selectors: &self.selectors };
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
        self.list()?;
        // Few are looked at before it answers.
        self.work()?;
        Ok(all.len())
    }
}

//! What the daemon does with every event: the flows that are installed follow conntrack, and all that routes and frames depend
//! on.

use crate::connection::{Established, Found, Tuple};
use crate::counted::{Counted, Removal};
use crate::error::Error;
use crate::flows::{Flows, Installed};
use crate::next_hops::{self, NextHops, next_hop};
use crate::obstacle::Obstacle;
use crate::ports::Ports;
use crate::resolve::{Resolved, Resolver, Side};
use crate::topology::{Overlay, Topology};
use kernel::netlink::netfilter::conntrack::{self, ConnectionChange, Keep, Update};
use kernel::netlink::{self, Change, Routes};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, SocketAddrV4};
use std::time::{Duration, Instant};
use xdp::forward::{self, Forwarding, Key};

/// Connections that wait for a neighbour or a place.
const WAITING: usize = 65_536;
/// How long one waits.
const PATIENCE: Duration = Duration::from_secs(60);
/// Tries of those that wait, in a second.
const TRIES: usize = 4096;
/// Connections that are asked for since no event may come of their end.
const SILENT: usize = 4096;
/// Flows under a changed route from which all are passed to the kernel at once and then resolved anew: one write instead of many.
const MANY: usize = 2048;
/// Flows that are resolved anew between two looks at what else happened.
const PIECE: usize = 512;
/// Flows of which the use is read between two looks at what else happened.
const SLICE: usize = 4096;

/// What is below the interfaces of rxlane's own programs.
pub type Overlays = Box<dyn Fn(&str) -> Option<Overlay> + Send>;

/// The flows, and what they stand on.
pub struct Engine {
    program: Forwarding,
    ports: Ports,
    topology: Topology,
    routes: Routes,
    keep: Keep,
    /// What is to be said to conntrack.
    updates: Vec<Update>,
    marks: Vec<u32>,
    overlays: Overlays,
    flows: Flows,
    next_hops: NextHops,
    most: usize,
    /// Flows of another generation are passed to the kernel.
    generation: u32,
    /// Whether changes are known after which everything has to be resolved anew.
    is_outdated: bool,
    /// Connections to be resolved anew, and the timeout that conntrack has for each protocol.
    again: Vec<Tuple>,
    waiting: HashMap<Tuple, (Established, Instant)>,
    /// Connections whose obstacle goes with a change of interfaces, routes or rules: a line that is down is up again.
    hindered: HashMap<Tuple, Established>,
    /// Connections of whose end no event may come.
    silent: Vec<Tuple>,
    timeouts: Timeouts,
    /// Up to which number the use of flows was read in this turn.
    read_to: usize,
    counted: Counted,
}

/// After what time without a packet conntrack forgets a connection.
#[derive(Clone, Copy, Debug)]
struct Timeouts {
    tcp: u32,
    udp: u32,
}

impl Timeouts {
    /// Those of this network namespace.
    fn read() -> Timeouts {
        let read = |name: &str, usual| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"));
            text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(usual)
        };
        Timeouts { tcp: read("tcp_timeout_established", 432_000), udp: read("udp_timeout_stream", 120) }
    }

    fn of(&self, tuple: &Tuple) -> u32 {
        if tuple.protocol == crate::connection::TCP { self.tcp } else { self.udp }
    }

    /// How often a flow's use is read: so that one that is in use never comes near its timeout.
    fn interval(&self, tuple: &Tuple) -> Duration {
        Duration::from_secs(u64::from((self.of(tuple) / 4).clamp(1, 300)))
    }
}

impl Engine {
    /// With a program that is on no port yet.
    ///
    /// # Errors
    ///
    /// The kernel does not say what stands on what.
    pub fn new(
        program: Forwarding,
        ports: Ports,
        most: usize,
        overlays: Overlays,
        keep: Keep,
    ) -> Result<Engine, Error> {
        let mut engine = Engine {
            program,
            ports,
            topology: Topology::default(),
            routes: Routes::open().map_err(|error| Error::asking("routes")(error.into()))?,
            keep,
            updates: Vec::new(),
            marks: Vec::new(),
            overlays,
            flows: Flows::default(),
            next_hops: NextHops::with_places(next_hop_places(most)),
            most,
            generation: 1,
            is_outdated: false,
            again: Vec::new(),
            waiting: HashMap::new(),
            hindered: HashMap::new(),
            silent: Vec::new(),
            timeouts: Timeouts::read(),
            read_to: 0,
            counted: Counted::default(),
        };
        engine.read_machine()?;
        engine.beat()?;
        Ok(engine)
    }

    fn read_machine(&mut self) -> Result<(), Error> {
        self.topology = Topology::read(&self.overlays).map_err(Error::asking("interfaces"))?;
        let rules = netlink::rules().map_err(Error::asking("rules of routing"))?;
        self.marks = rules.iter().filter_map(|rule| rule.mark).map(|(mark, _)| mark).collect();
        self.marks.sort_unstable();
        self.marks.dedup();
        self.ports.find_lines(&self.topology);
        Ok(())
    }

    /// Says to the program that this process is alive.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write the map.
    pub fn beat(&mut self) -> Result<(), Error> {
        Ok(self.program.beat(self.generation)?)
    }

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
    /// The kernel refuses to write a map, or to be asked.
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

    fn is_new(&self, connection: &Established) -> bool {
        self.known(&connection.original) != Some(*connection)
    }

    /// A connection that is installed, or will be when it can.
    fn known(&self, tuple: &Tuple) -> Option<Established> {
        let installed = self.flows.get(tuple).map(|installed| installed.connection);
        let waiting = || self.waiting.get(tuple).map(|(connection, _)| *connection);
        installed.or_else(waiting).or_else(|| self.hindered.get(tuple).copied())
    }

    /// What conntrack says of these; one that has ended is none any more.
    fn query(&mut self, tuples: &[Tuple]) -> Result<Vec<Found>, Error> {
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

    fn end(&mut self, tuple: &Tuple) -> Result<(), Error> {
        self.waiting.remove(tuple);
        self.hindered.remove(tuple);
        self.remove(tuple, Removal::Ended)
    }

    /// `silent`: of their end no event may come.
    fn take(&mut self, found: &[Found], silent: bool) -> Result<(), Error> {
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

    fn install(&mut self, connections: &[Established], silent: bool) -> Result<(), Error> {
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
    fn wait(&mut self, connection: Established, obstacle: Obstacle) {
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

    fn resolve(&mut self, connections: &[Established]) -> Vec<Result<Resolved, Obstacle>> {
        let ports = &self.ports;
        let mut resolver =
            Resolver { routes: &mut self.routes, topology: &self.topology, marks: &self.marks };
        resolver.resolve(connections, |interface| ports.place(interface).is_some())
    }

    /// Puts both directions into the maps. `known`: they are there already, and stay counted.
    fn write(
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
    fn places(&mut self, inside: &Side, outside: &Side) -> Result<Option<(u32, u32)>, Error> {
        let Some(to_inside) = self.leave_by(inside)? else { return Ok(None) };
        let to_outside = self.leave_by(outside)?;
        if to_outside.is_none() {
            self.leave(&[next_hops::Key::of(inside)]);
        }
        Ok(to_outside.map(|to_outside| (to_inside, to_outside)))
    }

    /// The place of the next hop for packets that leave by a side; `None`: there is none left.
    fn leave_by(&mut self, side: &Side) -> Result<Option<u32>, Error> {
        let Ok((place, is_new)) = self.next_hops.add(side) else { return Ok(None) };
        if is_new {
            let port = self.ports.place(side.way.port).unwrap_or_default();
            self.program.set_next_hop(place, Some(&next_hop(side, port)))?;
        }
        Ok(Some(place))
    }

    fn flow(
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
    fn hand_over(&mut self, connection: &Established) {
        if connection.original.protocol == crate::connection::TCP {
            self.updates.push(Update { timeout: None, liberal: true, ..update(&connection.original) });
        }
    }

    fn take_out(&mut self, installed: &Installed) -> Result<(), Error> {
        for key in &installed.keys {
            self.program.remove(key)?;
        }
        Ok(())
    }

    fn leave(&mut self, next_hops: &[next_hops::Key]) {
        next_hops.iter().for_each(|key| self.next_hops.remove(key));
    }

    fn remove(&mut self, tuple: &Tuple, why: Removal) -> Result<(), Error> {
        let Some(installed) = self.flows.remove(tuple) else { return Ok(()) };
        self.undo(&installed, why)
    }

    /// Takes out of the maps what is no flow any more.
    fn undo(&mut self, installed: &Installed, why: Removal) -> Result<(), Error> {
        self.take_out(installed)?;
        self.leave(&installed.next_hops);
        self.counted.remove(why);
        Ok(())
    }

    /// Interfaces, neighbours, routes or rules changed.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map, or to be asked.
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
            Change::Address(_) | Change::Rule | Change::Lost => self.start_over()?,
            Change::Route { destination, .. } => self.route(destination)?,
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
    fn start_over(&mut self) -> Result<(), Error> {
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

    fn route(&mut self, destination: Option<(IpAddr, u8)>) -> Result<(), Error> {
        let Some(network) = destination.filter(|(_, bits)| *bits > 0) else { return self.start_over() };
        let under = self.flows.within(network);
        self.again.extend(self.hindered.keys());
        if under.len() > MANY {
            return self.start_over();
        }
        self.resolve_again(&under)
    }

    /// The way to some next hops may be another one.
    fn station(&mut self, is_such: impl Fn(&next_hops::Key) -> bool) -> Result<(), Error> {
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
    fn resolve_again(&mut self, tuples: &[Tuple]) -> Result<(), Error> {
        let connections: Vec<Established> = tuples.iter().filter_map(|tuple| self.known(tuple)).collect();
        for (connection, resolved) in connections.iter().zip(self.resolve(&connections)) {
            let known = self.flows.remove(&connection.original);
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

    /// Resolves some of the connections anew that have to be. `true`: there are more.
    ///
    /// # Errors
    ///
    /// The kernel refuses to write a map.
    pub fn work(&mut self) -> Result<bool, Error> {
        let piece = self.again.split_off(self.again.len().saturating_sub(PIECE));
        if !piece.is_empty() {
            self.resolve_again(&piece)?;
        }
        Ok(!self.again.is_empty())
    }

    /// What is due every second.
    ///
    /// # Errors
    ///
    /// The kernel refuses to read or write a map.
    pub fn tick(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        self.waiting.retain(|_, (_, since)| now.duration_since(*since) < PATIENCE);
        let tries: Vec<Tuple> = self.waiting.keys().take(TRIES).copied().collect();
        self.again.extend(tries);
        self.verify_neighbours();
        self.keep_alive(now)
    }

    /// The kernel sees no packets to these stations any more, and would never ask whether they are still there.
    fn verify_neighbours(&mut self) {
        for (key, ..) in self.next_hops.iter() {
            if self.topology.is_stale(key.interface, key.next) {
                // What comes of it is an event.
                let _ = netlink::refresh(key.interface, key.next);
            }
        }
    }

    /// Renews the timeouts of connections whose flows are in use, some at a time.
    fn keep_alive(&mut self, now: Instant) -> Result<(), Error> {
        let end = self.read_to.saturating_add(SLICE.max(self.flows.numbers() / 8));
        let due: Vec<(Tuple, [Key; 2], Duration)> = self
            .flows
            .slice(self.read_to..end.min(self.flows.numbers()))
            .map(|one| (one, now.duration_since(one.renewed)))
            .filter(|(one, since)| *since >= self.timeouts.interval(&one.connection.original))
            .map(|(one, since)| (one.connection.original, one.keys, since))
            .collect();
        self.read_to = if end >= self.flows.numbers() { 0 } else { end };
        for (tuple, keys, since) in due {
            let mut last = 0;
            for key in &keys {
                last = last.max(self.program.used(key)?.map_or(0, |used| used.used_ns));
            }
            let is_used = now_ns().saturating_sub(last) < since.as_nanos() as u64;
            if let Some(installed) = self.flows.get_mut(&tuple) {
                installed.renewed = now;
            }
            if is_used {
                self.updates.push(Update {
                    timeout: Some(self.timeouts.of(&tuple)),
                    liberal: false,
                    ..update(&tuple)
                });
            }
        }
        self.send_updates();
        Ok(())
    }

    /// Tells conntrack what was decided.
    fn send_updates(&mut self) {
        if !self.updates.is_empty() {
            // A connection that has ended meanwhile is none of these errors; for the others the kernel's own timeouts hold.
            if self.keep.update(&self.updates).is_err() {
                self.counted.failed_updates += 1;
            }
            self.updates.clear();
        }
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

    /// The program.
    pub fn program(&self) -> &Forwarding {
        &self.program
    }

    /// The flows that are installed.
    pub fn flows(&self) -> &Flows {
        &self.flows
    }

    /// What was counted.
    pub fn counted(&self) -> &Counted {
        &self.counted
    }

    /// The ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// The name of an interface.
    pub fn name(&self, interface: u32) -> String {
        let link = self.topology.links.get(&interface);
        link.map_or_else(|| interface.to_string(), |link| link.name.clone())
    }

    /// How many connections wait for a neighbour or a place, and how many next hops there are.
    pub fn waiting(&self) -> (usize, usize) {
        (self.waiting.len(), self.next_hops.len())
    }
}

/// Places for next hops: stations are far fewer than flows.
pub fn next_hop_places(flows: usize) -> u32 {
    u32::try_from(flows / 4).unwrap_or(u32::MAX).clamp(1024, 65_536)
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

/// The monotonic clock, by which the program says when a flow was used: nanoseconds.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec as u64)
}

/// Of a connection in no zone, nothing.
fn update(tuple: &Tuple) -> Update {
    let conntrack::Key { original, protocol, zone } = tuple.key();
    Update { original, protocol, zone, timeout: None, liberal: false }
}

fn v4(address: SocketAddr) -> Option<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Some(address),
        SocketAddr::V6(_) => None,
    }
}

//! An access concentrator from its start to its end: one interface for all subscribers, one thread for what they negotiate,
//! others for their packets.

mod carried;
mod desk;
mod handover;
mod negotiator;
mod prepared;
mod record;
mod room;
mod routes;
mod taken_back;

use crate::error::Error;
use crate::event::{Event, Takeover};
use crate::subscribers::Subscribers;
use handover::Successor;
use kernel::netlink;
use kernel::netlink::link_local;
use link::pppoe::VlanPattern;
use link::running::{Ended, Event as ParentEvent};
use negotiator::Negotiator;
use pppoe::concentrator::Config;
use pppoe::concentrator::secrets::Secrets;
use service::control::Server;
use service::event_loop::ready;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use taken_back::{Asked, take_back};

pub use desk::{ConcentratorStatus, Disconnected, SCHEMA, SubscriberStatus};
pub use handover::Withheld;
pub use prepared::Prepared;

/// How often it is looked whose data came, so that who sends some is asked for no echo; half of the least interval of echoes.
const SWEEP: Duration = Duration::from_secs(5);
const PORT: u32 = 0;

/// What a concentrator is started with.
#[derive(Debug)]
pub struct Start {
    /// Name of the interface with the lines.
    pub parent: String,
    /// Name of the interface of all subscribers.
    pub name: String,
    pub vlans: VlanPattern,
    pub workers: usize,
    /// Whether the maximum segment size of TCP is lowered to what fits each subscriber.
    pub mss_clamp: bool,
    pub config: Config,
    pub secrets: Secrets,
    /// Whether it goes on with the sessions of the process that serves the interface now, if one does.
    pub is_takeover: bool,
    /// Records of accounting that no file took, which are counted by whoever writes them.
    pub records_lost: Arc<AtomicU64>,
}

/// Why a concentrator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Asked,
    /// Another process goes on with its sessions.
    HandedOver,
    /// Another process was to go on with its sessions and is gone, and this one could not again, for the reason that was told;
    /// subscribers were told, too.
    Orphaned,
    /// The interface with the lines was removed, or went to another network namespace.
    ParentRemoved,
    /// Somebody deleted the interface of the subscribers.
    InterfaceDeleted,
}

/// Where events go.
type Tell<'a> = &'a mut dyn FnMut(&Event);
/// Where other secrets come from.
type Reread<'a> = &'a mut dyn FnMut() -> Option<Result<Secrets, String>>;

/// A concentrator that runs. See the module.
#[derive(Debug)]
pub struct Serving {
    // Dropped in this order: who asks is answered as long as there is an interface.
    server: Server,
    path: Subscribers,
    negotiator: Negotiator,
    stop: UnixStream,
    bell: UnixStream,
    swept: Instant,
    parent: u32,
    asked: Asked,
}

/// Why the loop came to its end.
enum Next {
    Over(Over),
    /// Another process has all of the sessions in place.
    Serves(Successor),
}

/// What came of leaving the sessions to another process.
enum Left {
    Over(Over),
    /// It is gone, and this one serves.
    Again(Box<Serving>),
}

impl Serving {
    /// Serves until the end. `reread` gives other secrets, or why there are none; `None`: nobody asked for any.
    ///
    /// # Errors
    ///
    /// The machine refuses what subscribers need.
    pub fn run(mut self, tell: Tell<'_>, reread: Reread<'_>) -> Result<Over, Error> {
        loop {
            let over = match self.serve(tell, reread) {
                Ok(Next::Serves(successor)) => match self.leave_to(successor, tell) {
                    Left::Over(over) => return Ok(over),
                    Left::Again(serving) => {
                        self = *serving;
                        continue;
                    }
                },
                Ok(Next::Over(over)) => Ok(over),
                Err(error) => Err(error),
            };
            self.end(tell);
            return over;
        }
    }

    fn end(mut self, tell: Tell<'_>) {
        self.negotiator.act(tell, |machine, turn, actions| machine.shut_down(turn, actions));
        let waiting = self.server.close();
        drop(self);
        // Who waits for the end may bring the same up again.
        drop(waiting);
    }

    /// Ends without a word, since another process goes on; where that is gone before all is in its place, this one goes on
    /// again. Where it cannot, subscribers are told.
    fn leave_to(self, mut successor: Successor, tell: Tell<'_>) -> Left {
        let Serving { mut server, path, mut negotiator, stop, bell, swept, parent, asked } = self;
        let wish = path.wish().clone();
        // What its threads have counted is all then, and the name of the interface is free. Packets are lost from here on until
        // the other process hears of it.
        let sockets = path.down_but_sockets();
        let now = negotiator.clock.now();
        let counted = negotiator.inner().turn(now, |machine, turn| machine.counted(turn));
        let released = successor.release(&counted);
        drop(sockets);
        let over = match released {
            Ok(()) => Over::HandedOver,
            Err(why) => {
                let successor_pid = successor.pid();
                successor_pid.into_iter().for_each(|pid| server.remove_with_own(pid));
                drop(successor);
                match take_back(&wish, successor_pid, &mut server, &asked, &mut negotiator, tell) {
                    Ok(path) => {
                        tell(&Event::Takeover(Takeover::Resumed { successor: successor_pid, why }));
                        let again = Serving { server, path, negotiator, stop, bell, swept, parent, asked };
                        return Left::Again(Box::new(again));
                    }
                    Err(error) => {
                        let error = Box::new(error);
                        tell(&Event::Takeover(Takeover::Lost { successor: successor_pid, why, error }));
                    }
                }
                negotiator.act(tell, |machine, turn, actions| machine.shut_down(turn, actions));
                Over::Orphaned
            }
        };
        let waiting = server.close();
        drop(negotiator);
        drop(waiting);
        Left::Over(over)
    }

    /// Other subscribers from now on; what changed, and sessions that do not agree with it.
    fn reload(&self, secrets: Secrets) -> Vec<Event> {
        let mut inner = self.negotiator.inner();
        let now = self.negotiator.clock.now();
        let reloaded = inner.machine.reload(secrets);
        let disagrees = |(id, why)| {
            let user = inner.machine.session(now, id)?.user.to_vec();
            Some(Event::Disagrees { parent: self.negotiator.desk.parent().to_owned(), id, user, why })
        };
        let read = Event::SecretsRead(reloaded.difference);
        std::iter::once(read).chain(reloaded.disagreeing.into_iter().filter_map(disagrees)).collect()
    }

    fn serve(&mut self, tell: Tell<'_>, reread: Reread<'_>) -> Result<Next, Error> {
        loop {
            let [received, changed, stopped, asked, failed] = self.wait()?;
            if asked {
                let mut rung = [0; 64];
                // What was asked stands at the desk.
                let _ = self.bell.read(&mut rung);
                match reread() {
                    Some(Ok(secrets)) => self.reload(secrets).iter().for_each(&mut *tell),
                    Some(Err(text)) => tell(&Event::SecretsUnread(text)),
                    None => {}
                }
            }
            if stopped {
                return Ok(Next::Over(Over::Asked));
            }
            if failed {
                return self.failed().map(Next::Over);
            }
            if changed && let Some(over) = self.changed(tell)? {
                return Ok(Next::Over(over));
            }
            if let Some(successor) = self.offer(tell) {
                return Ok(Next::Serves(successor));
            }
            if received {
                self.negotiator.receive(self.path.parent_mtu(), tell)?;
            }
            if self.swept.elapsed() >= SWEEP {
                self.swept = Instant::now();
                self.negotiator.sweep(tell);
            }
            self.negotiator.act(tell, |machine, turn, actions| {
                if machine.deadline().is_some_and(|deadline| deadline <= turn.now) {
                    machine.tick(turn, actions);
                }
            });
        }
    }

    /// Gives the sessions to another process, where one wants them, and waits until it serves them; `None`: nobody wants them,
    /// or nothing came of it. Frames of negotiation wait in the queue of the socket meanwhile, packets go on.
    fn offer(&mut self, tell: Tell<'_>) -> Option<Successor> {
        let stream = self.negotiator.inner().successor.take()?;
        // What was asked for before is done before.
        self.negotiator.act(tell, |_, _, _| ());
        let offered =
            Successor::new(stream).map_err(|error| (None, error.into())).and_then(|mut successor| {
                let now = self.negotiator.clock.now();
                let snapshot = self.negotiator.inner().turn(now, |machine, turn| machine.snapshot(turn));
                match successor.offer(&snapshot, self.stop.as_fd()) {
                    Ok(()) => Ok(successor),
                    Err(why) => {
                        successor.pid().into_iter().for_each(|pid| self.server.remove_with_own(pid));
                        Err((successor.pid(), why))
                    }
                }
            });
        match offered {
            Ok(successor) => Some(successor),
            Err((successor, why)) => {
                self.negotiator.inner().is_offered = false;
                tell(&Event::Takeover(Takeover::Withheld { successor, why }));
                None
            }
        }
    }

    /// Why the data path cannot go on.
    fn failed(&mut self) -> Result<Over, Error> {
        let name = self.negotiator.desk.name();
        match self.path.failure() {
            link::datapath::PathError::InterfaceGone => Ok(Over::InterfaceDeleted),
            link::datapath::PathError::Interface(source) | link::datapath::PathError::Parent(source) => {
                Err(link::Error::Kernel { what: format!("move packets of {name}"), source }.into())
            }
            link::datapath::PathError::Worker => Err(link::Error::worker(&name).into()),
        }
    }

    /// Which of lines, changes of interfaces, stop, desk and workers have something.
    fn wait(&self) -> Result<[bool; 5], Error> {
        let deadline = self.negotiator.inner().machine.deadline();
        let until_swept = (self.swept + SWEEP).saturating_duration_since(Instant::now());
        let now = self.negotiator.clock.now();
        let wait = deadline.map_or(until_swept, |at| at.saturating_sub(now).min(until_swept));
        let sources = [
            self.negotiator.socket.as_fd(),
            self.path.changes(),
            self.stop.as_fd(),
            self.bell.as_fd(),
            self.path.failures(),
        ];
        ready(sources.map(Some), Some(wait)).map_err(Error::kernel("wait for frames of the lines"))
    }

    fn changed(&mut self, tell: Tell<'_>) -> Result<Option<Over>, Error> {
        let seen = self.path.look()?;
        for event in &seen.events {
            if *event == ParentEvent::ParentMac
                && let Some(own) = netlink::link_by_index(self.parent).ok().and_then(|link| link.mac)
            {
                let heard = self.negotiator.socket.set_local(own);
                heard.map_err(Error::kernel("receive frames of the lines"))?;
                self.path.set_local(own)?;
                self.negotiator.inner().carried.set_local(own);
            }
            let name = self.negotiator.desk.parent().to_owned();
            tell(&Event::Parent { name, change: event.clone() });
        }
        Ok(seen.ended.map(|ended| match ended {
            Ended::Asked => Over::Asked,
            Ended::ParentRemoved => Over::ParentRemoved,
            Ended::InterfaceDeleted => Over::InterfaceDeleted,
        }))
    }
}

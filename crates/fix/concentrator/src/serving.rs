//! An access concentrator from its start to its end: one interface for all subscribers, one thread for what they negotiate,
//! others for their packets.

mod carried;
mod control;
mod handover;
mod kept;
mod leftover;
mod negotiator;
mod prepared;
mod status;

use crate::error::Error;
use crate::event::{Event, Takeover};
use crate::radius::Servers;
use crate::subscribers::{self, BEAT, Forwarding, Subscribers};
use handover::Successor;
use kernel::netlink::{self, link_by_name};
use link::running::{Ended, Event as ParentEvent};
use negotiator::Negotiator;
use pppoe::concentrator::secrets::Secrets;
use pppoe::concentrator::{Concentrator, Config};
use prepared::standby_name;
use service::Instances;
use service::control::Server;
use service::event_loop::ready;
use service::process::wait_until_removed;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use wire::VlanPattern;

pub(crate) use control::Control;
pub use handover::Withheld;
pub use leftover::clear_leftover;
pub use prepared::Prepared;
pub use status::{ConcentratorStatus, Disconnected, SubscriberStatus, Unwritten, XdpStatus, XdpWay};

/// How often sessions with new data are read, so that those need no echo; half of the least interval of echoes.
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
    /// Interfaces to the rest of the world between which and the parent programs in XDP forward packets; none: the workers move all.
    pub uplinks: Vec<String>,
    /// Whether the maximum segment size of TCP is lowered to what fits each subscriber.
    pub mss_clamp: bool,
    pub config: Config,
    pub secrets: Secrets,
    /// Who says who a subscriber is that the secrets do not name, and who gets records.
    pub radius: Option<Servers>,
    /// Whether it goes on with the sessions of the process that serves the interface now, if one does.
    pub is_takeover: bool,
    /// Records of accounting that no file took, which are counted by whoever writes them.
    pub records_lost: Arc<AtomicU64>,
}

/// Why a concentrator ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    Requested,
    /// Another process goes on with its sessions.
    HandedOver,
    /// Another process was to go on with its sessions and has ended, and this one could not again, for the reason that was reported;
    /// subscribers were notified, too.
    Orphaned,
    /// The interface with the lines was removed, or went to another network namespace.
    ParentRemoved,
    /// Somebody deleted the interface of the subscribers.
    InterfaceDeleted,
}

/// An end.
#[derive(Debug)]
pub struct End {
    pub over: Over,
    /// Who waits for it, until this is dropped ([`service::control::report_end`]).
    pub waiting: Vec<UnixStream>,
}

/// Where events go.
type Report<'a> = &'a mut dyn FnMut(&Event);
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
    /// The other end of `stop`.
    ask: UnixStream,
    wakeup: UnixStream,
    swept: Instant,
    parent: u32,
    sockets: Instances,
}

/// Why the loop came to its end.
enum Next {
    Over(Over),
    /// Another process has all of the sessions in place.
    Serves(Successor),
}

impl Serving {
    /// Serves until the end. `reread` gives other secrets, or why there are none; `None`: none were requested.
    ///
    /// # Errors
    ///
    /// The machine refuses what subscribers need.
    pub fn run(mut self, report: Report<'_>, reread: Reread<'_>) -> Result<End, Error> {
        loop {
            match self.serve(report, reread) {
                Ok(Next::Serves(successor)) => match self.leave_to(successor, report) {
                    Ok(again) => self = again,
                    Err(end) => return Ok(end),
                },
                Ok(Next::Over(over)) => {
                    return Ok(End { over, waiting: self.end(report) });
                }
                Err(error) => {
                    self.end(report);
                    return Err(error);
                }
            }
        }
    }

    fn end(mut self, report: Report<'_>) -> Vec<UnixStream> {
        self.negotiator.act(report, Concentrator::shut_down);
        self.negotiator.finish(true, report);
        self.negotiator.kept.remove();
        // Who waits for the end may bring the same up again: all is removed before they hear of it.
        self.server.close()
    }

    /// Ends without a word, since another process goes on; where that ends before all is in its place, this one goes on
    /// again. Where it cannot, subscribers are notified.
    fn leave_to(mut self, mut successor: Successor, report: Report<'_>) -> Result<Serving, End> {
        let config = self.path.config().clone();
        // What its threads have counted is all then, and the name of the interface is free. Packets are lost from here on until
        // the other process hears of it.
        let sockets = self.path.down_but_sockets();
        let counted = self.negotiator.control.step(|machine, step| machine.counted(step));
        let released = successor.release(&counted);
        drop(sockets);
        let over = match released {
            Ok(()) => {
                self.negotiator.finish(false, report);
                Over::HandedOver
            }
            Err(why) => {
                let pid = successor.pid();
                pid.into_iter().for_each(|pid| self.server.remove_with_own(pid));
                drop(successor);
                match take_back(
                    &config,
                    pid,
                    &mut self.server,
                    &self.sockets,
                    &self.ask,
                    &self.negotiator,
                    report,
                ) {
                    Ok(path) => {
                        self.negotiator.keep(report);
                        report(&Event::Takeover(Takeover::Resumed { successor: pid, why }));
                        return Ok(Serving { path, ..self });
                    }
                    Err(error) => {
                        let error = Box::new(error);
                        report(&Event::Takeover(Takeover::Lost { successor: pid, why, error }));
                    }
                }
                self.negotiator.act(report, Concentrator::shut_down);
                self.negotiator.finish(true, report);
                self.negotiator.kept.remove();
                Over::Orphaned
            }
        };
        let waiting = self.server.close();
        drop(self.negotiator);
        Err(End { over, waiting })
    }

    /// Other subscribers from now on; what changed, and sessions that do not agree with it.
    fn reload(&self, secrets: Secrets) -> Vec<Event> {
        let control = &self.negotiator.control;
        let (now, mut state) = (control.clock.now(), control.state());
        let reloaded = state.step(now, |machine, step| machine.reload(step, secrets));
        let disagrees = |(id, why)| {
            let user = state.machine.session(now, id)?.identity.user().to_vec();
            Some(Event::Disagrees { parent: control.parent.clone(), id, user, why })
        };
        let read = Event::SecretsRead(reloaded.difference);
        std::iter::once(read).chain(reloaded.disagreeing.into_iter().filter_map(disagrees)).collect()
    }

    fn serve(&mut self, report: Report<'_>, reread: Reread<'_>) -> Result<Next, Error> {
        loop {
            let [received, changed, stopped, woken, failed] = self.wait()?;
            if woken {
                // How often it was woken does not matter: what is to be done is pending.
                let _ = self.wakeup.read(&mut [0; 64]);
                self.negotiator.control.events().iter().for_each(&mut *report);
                match reread() {
                    Some(Ok(secrets)) => self.reload(secrets).iter().for_each(&mut *report),
                    Some(Err(text)) => report(&Event::SecretsUnread(text)),
                    None => {}
                }
            }
            if stopped {
                return Ok(Next::Over(Over::Requested));
            }
            if failed {
                return self.failed().map(Next::Over);
            }
            if changed && let Some(over) = self.changed(report)? {
                return Ok(Next::Over(over));
            }
            if let Some(successor) = self.offer(report) {
                return Ok(Next::Serves(successor));
            }
            self.path.tick().map(Event::Forwarding).iter().for_each(&mut *report);
            if received {
                self.negotiator.receive(self.path.parent_mtu(), report)?;
            }
            if self.swept.elapsed() >= SWEEP {
                self.swept = Instant::now();
                self.negotiator.sweep(report);
            }
            self.negotiator.act(report, |machine, step| {
                if machine.deadline().is_some_and(|deadline| deadline <= step.now) {
                    machine.tick(step);
                }
            });
        }
    }

    /// Gives the sessions to another process, where one wants them, and waits until it serves them; `None`: nobody wants them,
    /// or nothing came of it. Frames of negotiation wait in the queue of the socket meanwhile, packets go on.
    fn offer(&mut self, report: Report<'_>) -> Option<Successor> {
        let stream = self.negotiator.control.state().successor.take()?;
        // What was requested before is done before.
        self.negotiator.act(report, |_, _| ());
        let offered =
            Successor::new(stream).map_err(|error| (None, error.into())).and_then(|mut successor| {
                let snapshot = self.negotiator.control.step(|machine, step| machine.snapshot(step));
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
                self.negotiator.control.state().is_offered = false;
                report(&Event::Takeover(Takeover::Withheld { successor, why }));
                None
            }
        }
    }

    /// Why the data path cannot go on.
    fn failed(&mut self) -> Result<Over, Error> {
        let name = self.negotiator.control.name();
        match self.path.failure() {
            link::datapath::PathError::InterfaceRemoved => Ok(Over::InterfaceDeleted),
            link::datapath::PathError::Interface(source) | link::datapath::PathError::Parent(source) => {
                Err(link::Error::Kernel { what: format!("move packets of {name}"), source }.into())
            }
            link::datapath::PathError::Worker => Err(link::Error::worker(&name).into()),
        }
    }

    /// Which of lines, changes of interfaces, stop, control socket and workers have something.
    fn wait(&self) -> Result<[bool; 5], Error> {
        let control = &self.negotiator.control;
        let (deadline, now) = (control.state().machine.deadline(), control.clock.now());
        let until_swept = (self.swept + SWEEP).saturating_duration_since(Instant::now());
        let wait = deadline.map_or(until_swept, |at| at.saturating_sub(now).min(until_swept));
        // Programs in XDP hear that this process lives.
        let wait = if self.path.has_programs() { wait.min(BEAT) } else { wait };
        let sources = [
            self.negotiator.socket.as_fd(),
            self.path.changes(),
            self.stop.as_fd(),
            self.wakeup.as_fd(),
            self.path.failures(),
        ];
        ready(sources.map(Some), Some(wait)).map_err(Error::kernel("wait for frames of the lines"))
    }

    fn changed(&mut self, report: Report<'_>) -> Result<Option<Over>, Error> {
        let seen = self.path.poll_changes()?;
        for event in &seen.events {
            if *event == ParentEvent::ParentMac
                && let Some(own) = netlink::link_by_index(self.parent).ok().and_then(|link| link.mac)
            {
                let heard = self.negotiator.socket.set_local(own);
                heard.map_err(Error::kernel("receive frames of the lines"))?;
                self.path.set_local(own)?;
                self.negotiator.control.state().carried.set_local(own);
            }
            let name = self.negotiator.control.parent.clone();
            report(&Event::Parent { name, change: event.clone() });
        }
        if let Some(is_up) = seen.interface {
            let control = &self.negotiator.control;
            report(&Event::Interface { name: control.name(), is_up });
            let lacking = if is_up { control.state().carried.route_again() } else { Vec::new() };
            lacking.into_iter().for_each(|lacking| report(&Event::Uncarried(lacking)));
        }
        Ok(seen.ended.map(|ended| match ended {
            Ended::Requested => Over::Requested,
            Ended::ParentRemoved => Over::ParentRemoved,
            Ended::InterfaceDeleted => Over::InterfaceDeleted,
        }))
    }
}

/// Has packets forwarded in XDP where that is requested; where it cannot be, it is tried again later.
fn forward(path: &Subscribers, report: Report<'_>) {
    let happened = match path.forward() {
        Ok(started) => started.map(Forwarding::Started),
        Err(why) => Some(Forwarding::Paused(why)),
    };
    happened.map(Event::Forwarding).iter().for_each(report);
}

/// Goes on with sessions that were given away, where the process that was to have them (`successor`) has ended: by a data path made
/// anew, with all of them. Answers for the interface again.
///
/// # Errors
///
/// The machine refuses it, or yet another process has begun to serve.
fn take_back(
    config: &subscribers::Config,
    successor: Option<u32>,
    server: &mut Server,
    sockets: &Instances,
    ask: &UnixStream,
    negotiator: &Negotiator,
    report: Report<'_>,
) -> Result<Subscribers, Error> {
    let control = &negotiator.control;
    let ask = ask.try_clone().map_err(Error::kernel("listen to questions"))?;
    // First, since who answers there serves.
    server.retake_place(sockets, &control.parent, Arc::clone(control), ask)?;
    // It may have begun to forward.
    clear_leftover(&control.parent);
    // That of the other process may still be on its way out, under either name, and has the same routes until then.
    for name in successor.map(standby_name).iter().chain([&config.name]) {
        // A busy machine takes its time, and it is worth to be waited for: subscribers know of nothing yet.
        (0..3).take_while(|_| link_by_name(name).is_ok()).for_each(|_| wait_until_removed(name));
    }
    let (path, registry) = Subscribers::up(config)?;
    forward(&path, report);
    let installed = control.step(|machine, step| machine.carried_anew(step));
    let mut state = control.state();
    state.carried = state.carried.anew(registry, path.index()).map_err(Error::kernel("add routes"))?;
    let mut lacking = state.carried.route_again();
    installed.iter().for_each(|installed| lacking.extend(state.carried.install(installed)));
    state.is_offered = false;
    drop(state);
    lacking.into_iter().for_each(|lacking| report(&Event::Uncarried(lacking)));
    Ok(path)
}

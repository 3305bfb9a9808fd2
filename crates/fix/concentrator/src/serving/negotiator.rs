//! What is negotiated with subscribers: the machine that stands at the desk, and the socket by which it speaks.

use super::desk::{Desk, Inner};
use super::{PORT, Tell, record, room::room_behind};
use crate::error::Error;
use crate::event::Event;
use link::pppoe::ControlSocket;
use link::pppoe::kernel::Clock;
use pppoe::concentrator::accounting::{Ended, Event as Recorded};
use pppoe::concentrator::{Action, Concentrator, Turn};
use pppoe::discovery::Packet;
use pppoe::discovery::concentrator::Arrival;
use pppoe::discovery::place::Place;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::SystemTime;

/// See the [module](self).
#[derive(Debug)]
pub struct Negotiator {
    pub desk: Arc<Desk>,
    pub socket: ControlSocket,
    pub clock: Clock,
}

impl Negotiator {
    pub fn inner(&self) -> MutexGuard<'_, Inner> {
        self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the machine do something, and does what comes of it, and what somebody asked for before.
    pub fn act(
        &mut self,
        tell: Tell<'_>,
        with: impl FnOnce(&mut Concentrator, &mut Turn<'_>, &mut Vec<Action>),
    ) {
        let mut guard = self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        let mut actions = std::mem::take(&mut inner.pending);
        let mut stopped = None;
        inner.turn(self.clock.now(), |machine, turn| with(machine, turn, &mut actions));
        for action in actions {
            match action {
                Action::Send { place, destination, stage, payload } => {
                    // What the line does not take is sent again, as what gets lost on it.
                    let _ = self.socket.put(destination, place.vlans, stage, &payload);
                }
                Action::Installed(installed) => {
                    for lacking in inner.carried.install(&installed) {
                        tell(&Event::Uncarried(lacking));
                    }
                }
                Action::Removed(id) => inner.carried.remove(id),
                Action::Account(record) => {
                    if record.event == Recorded::Start {
                        tell(&Event::Opened(record.clone()));
                    }
                    tell(&Event::Account(record::record(&record, SystemTime::now())));
                    if matches!(record.event, Recorded::Stop(_)) {
                        stopped = Some(record.id);
                    }
                }
                // Why a subscriber was refused was told with the refusal; that a session began is told with its end.
                Action::Ended(end) if matches!(end.cause, Ended::Refused(_)) && stopped != Some(end.id) => {}
                Action::Ended(end) => tell(&Event::Ended(end)),
                Action::Remark(remark) => tell(&Event::Machine(remark)),
            }
        }
        drop(guard);
        let _ = self.socket.flush();
    }

    /// Takes the frames that are there, of lines over a parent of this MTU.
    ///
    /// What is left behind is taken in the next turn: whoever sends as fast as frames are read must not keep timers, signals and
    /// questions waiting.
    pub fn receive(&mut self, parent_mtu: u32, tell: Tell<'_>) -> Result<(), Error> {
        for _ in 0..ControlSocket::BATCHES {
            let (own, now) = (self.socket.local(), self.clock.now());
            let mut guard = self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let inner = &mut *guard;
            let mut actions = Vec::new();
            let taken = inner.turn(now, |machine, turn| {
                self.socket.receive(|frame| {
                    let packet = Packet {
                        source: frame.source,
                        destination: frame.destination,
                        payload: frame.payload,
                    };
                    let place = Place { port: PORT, vlans: frame.vlans };
                    let room = room_behind(frame.vlans, parent_mtu);
                    machine.receive(turn, frame.stage, &Arrival { place, own, room, packet }, &mut actions);
                })
            });
            inner.pending.extend(actions);
            drop(guard);
            let taken = taken.map_err(Error::kernel("receive frames of the lines"))?;
            self.act(tell, |_, _, _| ());
            if taken < ControlSocket::BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Tells the machine whose data came, and of data of sessions that there are not.
    pub fn sweep(&mut self, tell: Tell<'_>) {
        let mut guard = self.desk.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *guard;
        let now = self.clock.now();
        for id in inner.carried.heard() {
            inner.machine.heard(now, id);
        }
        let mut actions = Vec::new();
        for stray in inner.carried.strays() {
            let place = Place { port: PORT, vlans: stray.vlans };
            inner.machine.stray(now, place, stray.source, stray.session, &mut actions);
        }
        inner.pending.extend(actions);
        drop(guard);
        self.act(tell, |_, _, _| ());
    }
}

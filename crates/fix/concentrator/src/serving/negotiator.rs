//! What is negotiated with subscribers: the machine, and the socket by which it speaks.

use super::control::{Control, State};
use super::kept::Kept;
use super::prepared::longest_behind;
use super::{PORT, Report, status};
use crate::error::Error;
use crate::event::Event;
use crate::radius::Radius;
use kernel::process::trim_heap;
use link::pppoe::ControlSocket;
use pppoe::concentrator::accounting::{Ended, Event as Recorded};
use pppoe::concentrator::{Action, Concentrator, Step};
use pppoe::discovery::Packet;
use pppoe::discovery::concentrator::Arrival;
use pppoe::discovery::place::Place;
use std::sync::Arc;
use std::time::SystemTime;

#[derive(Debug)]
pub(super) struct Negotiator {
    pub(super) control: Arc<Control>,
    pub(super) socket: ControlSocket,
    /// Who authenticates in the place of the secrets, and gets records.
    pub(super) radius: Option<Radius>,
    /// What the next process goes on with where this one is killed.
    pub(super) kept: Kept,
    pub(super) trimming: Trimming,
}

/// When the memory of ended sessions goes to the system: when many have ended, since the C library looks through the whole heap for it;
/// and once at first, since reading the secrets took some.
#[derive(Debug)]
pub(super) struct Trimming {
    /// The most sessions since that was last done.
    most: usize,
}

impl Trimming {
    /// Fewer that ended are not worth it.
    const MANY: usize = 1000;

    pub(super) const fn new() -> Trimming {
        Trimming { most: usize::MAX }
    }

    /// Whether it is to be done, with so many sessions now.
    fn is_due(&mut self, sessions: usize) -> bool {
        self.most = self.most.max(sessions);
        let is_due = self.most - sessions >= Trimming::MANY.max(self.most / 4);
        if is_due {
            self.most = sessions;
        }
        is_due
    }
}

impl Negotiator {
    /// Has the machine do something, and does what comes of it, and of its steps before.
    pub(super) fn act(&mut self, report: Report<'_>, with: impl FnOnce(&mut Concentrator, &mut Step<'_>)) {
        let mut state = self.control.state();
        state.step(self.control.clock.now(), with);
        let (mut stopped, mut changed, mut is_radius_due) = (None, Vec::new(), false);
        for action in std::mem::take(&mut state.pending) {
            match action {
                Action::Send { place, destination, stage, payload } => {
                    // What the line does not take is sent again, as what gets lost on it.
                    let _ = self.socket.put(destination, place.vlans, stage, &payload);
                }
                Action::Installed(installed) => {
                    changed.push(installed.identity.id);
                    for lacking in state.carried.install(&installed) {
                        report(&Event::Uncarried(lacking));
                    }
                }
                Action::Changed(id) => changed.push(id),
                Action::Draining(draining) => self.kept.set_draining(draining),
                Action::Removed(id) => state.carried.remove(id),
                Action::Ask(question) => {
                    if let Some(radius) = &self.radius {
                        radius.ask(question);
                        is_radius_due = true;
                    }
                }
                Action::Account(record) => {
                    if let Some(radius) = &self.radius {
                        radius.account(record.clone());
                        is_radius_due = true;
                    }
                    if record.event == Recorded::Start {
                        report(&Event::Opened(record.clone()));
                    }
                    report(&Event::Account(status::record(&record, SystemTime::now())));
                    if matches!(record.event, Recorded::Stop(_)) {
                        self.kept.ended(record.identity.accounting);
                        stopped = Some(record.identity.id);
                    }
                }
                // Why a subscriber was refused was reported with the refusal; that a session began is reported with its end.
                Action::Ended(end)
                    if matches!(end.cause, Ended::Refused(_)) && stopped != Some(end.identity.id) => {}
                Action::Ended(end) => report(&Event::Ended(end)),
                Action::Notice(notice) => report(&Event::Machine(notice)),
            }
        }
        let now = self.control.clock.now();
        let saved =
            changed.into_iter().filter_map(|id| state.step(now, |machine, step| machine.saved(step, id)));
        saved.for_each(|session| self.kept.opened(&session));
        drop(state);
        if is_radius_due {
            self.radius.iter().for_each(Radius::wake);
        }
        let _ = self.socket.flush();
        self.kept.flush().map(Event::Unkept).iter().for_each(&mut *report);
        if self.kept.is_outgrown() {
            self.keep(report);
        }
    }

    /// Writes all sessions for the next process.
    pub(super) fn keep(&mut self, report: Report<'_>) {
        let snapshot = self.control.step(|machine, step| machine.snapshot(step));
        self.kept.renew(&snapshot.into_sessions()).map(Event::Unkept).iter().for_each(report);
    }

    /// Waits until records of accounting are where they belong, if somebody takes them. `is_over`: no other process goes on with the sessions.
    pub(super) fn finish(&mut self, is_over: bool, report: Report<'_>) {
        if let Some(radius) = self.radius.take() {
            radius.finish(is_over);
        }
        self.control.events().iter().for_each(report);
    }

    /// Takes the frames that are there, of lines over a parent of this MTU.
    ///
    /// What is left behind is taken in the next step: whoever sends as fast as frames are read must not keep timers, signals and
    /// questions waiting.
    pub(super) fn receive(&mut self, parent_mtu: u32, report: Report<'_>) -> Result<(), Error> {
        for _ in 0..ControlSocket::BATCHES {
            let own = self.socket.local();
            let taken = self.control.step(|machine, step| {
                self.socket.receive(|frame| {
                    let packet = Packet {
                        source: frame.source,
                        destination: frame.destination,
                        payload: frame.payload,
                    };
                    let place = Place { port: PORT, vlans: frame.vlans };
                    let max_payload = longest_behind(frame.vlans, parent_mtu);
                    machine.receive(step, frame.stage, &Arrival { place, own, max_payload, packet });
                })
            });
            let taken = taken.map_err(Error::kernel("receive frames of the lines"))?;
            self.act(report, |_, _| ());
            if taken < ControlSocket::BATCH {
                break;
            }
        }
        Ok(())
    }

    /// Reports to the machine the sessions that received data, and data of sessions that do not exist.
    pub(super) fn sweep(&mut self, report: Report<'_>) {
        let mut state = self.control.state();
        let State { machine, carried, .. } = &mut *state;
        let now = self.control.clock.now();
        carried.heard().into_iter().for_each(|id| machine.heard(now, id));
        let strays = carried.strays();
        let is_trimming_due = self.trimming.is_due(machine.len());
        if is_trimming_due {
            machine.shrink();
            carried.shrink();
        }
        drop(state);
        if is_trimming_due {
            trim_heap();
        }
        if self.kept.is_due() {
            self.kept.count(self.control.step(|machine, step| machine.counted(step)));
        }
        self.act(report, |machine, step| {
            for stray in strays {
                let place = Place { port: PORT, vlans: stray.vlans };
                machine.stray(step, place, stray.source, stray.session);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_to_the_system_once_for_many_sessions_that_ended() {
        let mut trimming = Trimming::new();
        let mut due = |sessions| trimming.is_due(sessions);
        assert!(due(0), "what the secrets took");
        assert!(![999, 0, 999, 0].map(&mut due).contains(&true), "a few");
        assert_eq!([60_000, 46_000, 45_000, 44_000].map(&mut due), [false, false, true, false]);
        assert_eq!([0, 0, 1000, 1, 0, 0].map(&mut due), [true, false, false, false, true, false]);
    }
}

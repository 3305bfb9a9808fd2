//! What becomes of the parent, and of the interface of the link.

use super::{Ended, Event};
use crate::status::Shared;
use kernel::netlink::{self, Change, Events, Link};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;

/// Notifications, and what is known so far.
#[derive(Debug)]
pub struct Watch {
    monitor: Events,
    parent: Link,
    interface: u32,
    /// `None`: it has not been up yet.
    interface_is_up: Option<bool>,
    /// Whether this process has set it down, and up again: notifications of that are still to come.
    is_own_pause: bool,
    needed: u32,
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Seen {
    pub events: Vec<Event>,
    /// The interface was set down (`false`), or up again, which had taken its routes and IPv6 addresses.
    pub interface: Option<bool>,
    /// Why there is nothing left to move packets between.
    pub ended: Option<Ended>,
}

impl Watch {
    /// Of a parent that is now so, and an interface of this number, whose packets need this MTU of the parent.
    pub fn new(monitor: Events, parent: Link, interface: u32, needed: u32) -> Watch {
        Watch { monitor, parent, interface, interface_is_up: None, is_own_pause: false, needed }
    }

    /// This process has set the interface down and sets it up again itself, which is not reported.
    pub const fn pass_over_pause(&mut self) {
        self.is_own_pause = true;
    }

    /// What changed since the last call.
    pub fn look(&mut self) -> io::Result<Seen> {
        let mut seen = Seen::default();
        for change in self.monitor.changes()? {
            self.take(change, &mut seen)?;
        }
        Ok(seen)
    }

    fn take(&mut self, change: Change, seen: &mut Seen) -> io::Result<()> {
        match change {
            Change::Link(link) if link.index == self.parent.index => self.compare(link, &mut seen.events),
            Change::Link(link) if link.index == self.interface => {
                let is_up = link.flags & libc::IFF_UP as u32 != 0;
                match self.interface_is_up {
                    Some(true) if !is_up && self.is_own_pause => {
                        (self.interface_is_up, self.is_own_pause) = (None, false);
                    }
                    Some(before) if before != is_up => {
                        (self.interface_is_up, seen.interface) = (Some(is_up), Some(is_up));
                    }
                    None if is_up => self.interface_is_up = Some(true),
                    _ => {}
                }
            }
            Change::LinkRemoved(index) if index == self.parent.index => {
                seen.ended = Some(Ended::ParentRemoved)
            }
            Change::LinkRemoved(index) if index == self.interface => {
                seen.ended = Some(Ended::InterfaceDeleted)
            }
            Change::Lost => {
                self.is_own_pause = false;
                for index in [self.interface, self.parent.index] {
                    let change = match netlink::link_by_index(index) {
                        Ok(link) => Change::Link(link),
                        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {
                            Change::LinkRemoved(index)
                        }
                        Err(error) => return Err(error),
                    };
                    self.take(change, seen)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn compare(&mut self, now: Link, events: &mut Vec<Event>) {
        if now.works() != self.parent.works() {
            events.push(if now.works() { Event::ParentUp } else { Event::ParentDown });
        }
        if now.mtu != self.parent.mtu {
            events.push(Event::ParentMtu { now: now.mtu, needed: self.needed });
        }
        if now.mac != self.parent.mac {
            events.push(Event::ParentMac);
        }
        self.parent = now;
    }

    /// Writes down how the parent is now.
    pub(crate) fn note(&self, shared: &Shared) {
        shared.parent_works.store(self.parent.works(), Ordering::Relaxed);
        shared.parent_mtu.store(self.parent.mtu, Ordering::Relaxed);
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.monitor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ethernet::MacAddress;

    fn watch() -> Watch {
        let flags = (libc::IFF_UP | libc::IFF_LOWER_UP) as u32;
        let mac = Some(MacAddress([2, 0, 0, 0, 0, 1]));
        let parent = Link { index: 1_000_000, flags, mtu: 1508, mac, ..Link::default() };
        Watch::new(Events::of_links().expect("a socket"), parent, 1_000_001, 1508)
    }

    fn seen(watch: &mut Watch, change: Change) -> Seen {
        let mut seen = Seen::default();
        watch.take(change, &mut seen).expect("looked at");
        seen
    }

    #[test]
    fn what_becomes_of_the_parent_is_reported_once() {
        let mut watch = watch();
        let up = watch.parent.clone();
        let down = Link { flags: libc::IFF_UP as u32, ..up.clone() };
        let events = |watch: &mut Watch, link: &Link| seen(watch, Change::Link(link.clone())).events;
        assert_eq!(events(&mut watch, &up), []);
        assert_eq!(events(&mut watch, &down), [Event::ParentDown]);
        assert_eq!(events(&mut watch, &down), []);
        let short = Link { mtu: 1500, ..up.clone() };
        assert_eq!(
            events(&mut watch, &short),
            [Event::ParentUp, Event::ParentMtu { now: 1500, needed: 1508 }]
        );
        let other = Link { mac: None, ..short };
        assert_eq!(events(&mut watch, &other), [Event::ParentMac]);
        let another = Link { index: 5, mtu: 9, ..up };
        assert_eq!(events(&mut watch, &another), []);
    }

    #[test]
    fn what_this_process_does_to_the_interface_is_not_reported() {
        let mut watch = watch();
        let look = |watch: &mut Watch, flags: i32| {
            let link = Link { index: 1_000_001, flags: flags as u32, ..Link::default() };
            seen(watch, Change::Link(link)).interface
        };
        let (up, down) = (libc::IFF_UP, 0);
        watch.pass_over_pause();
        // The first are of the time before, when it was made.
        let own = [down, up, up, down, down, up, up].map(|flags| look(&mut watch, flags));
        assert_eq!(own, [None; 7]);
        let others = [down, down, up].map(|flags| look(&mut watch, flags));
        assert_eq!(others, [Some(false), None, Some(true)]);
    }

    #[test]
    fn the_end_is_seen_also_where_notifications_were_lost() {
        let mut watch = watch();
        assert_eq!(seen(&mut watch, Change::LinkRemoved(7)).ended, None);
        assert_eq!(seen(&mut watch, Change::LinkRemoved(1_000_000)).ended, Some(Ended::ParentRemoved));
        assert_eq!(seen(&mut watch, Change::LinkRemoved(1_000_001)).ended, Some(Ended::InterfaceDeleted));
        // There are no interfaces of these numbers.
        assert_eq!(seen(&mut watch, Change::Lost).ended, Some(Ended::ParentRemoved));
    }
}

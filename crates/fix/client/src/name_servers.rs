//! The thread that makes a session's name servers the machine's, and takes them back.
//!
//! # Contract
//!
//! * What was ordered last is what is done: an order that comes while another is carried out takes the place of one that waits,
//!   and the same one again is none. Whoever orders without end, as a concentrator may have it, has no queue grow. A program that hangs, or a file system, holds up nothing but what was ordered after
//!   it: the concentrator's echoes are answered by another thread.
//! * What went wrong is said, in sentences.

use super::resolver::{self, Back, Place, Resolver};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long what was ordered may take at the end of the program.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    Set { interface: String, servers: Vec<IpAddr> },
    TakeBack,
}

/// See the [module](self).
#[derive(Debug)]
pub struct NameServers {
    /// Wakes the thread for `next`.
    orders: Sender<()>,
    /// What is to be done next, and how many orders have come until it.
    next: Arc<Mutex<Option<(u64, Order)>>>,
    /// How many orders are done with one, and what went wrong.
    results: Receiver<(u64, Option<String>)>,
    bell: UnixStream,
    last: Option<Order>,
    /// Orders that have come, and how many of them are done.
    ordered: u64,
    done: u64,
    /// What went wrong with the last that is done.
    trouble: Option<String>,
}

impl NameServers {
    /// With what has to be remembered in the folder `state`.
    pub fn new(state: &Path) -> io::Result<NameServers> {
        NameServers::at(Place::of_machine(state))
    }

    fn at(place: Place) -> io::Result<NameServers> {
        let (bell, mut ring) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        // Nobody may be listening any more.
        ring.set_nonblocking(true)?;
        let (orders, taken) = channel();
        let next = Arc::new(Mutex::new(None::<(u64, Order)>));
        let waiting = Arc::clone(&next);
        let (done, results) = channel();
        let work = move || {
            let mut resolver = None;
            for () in taken {
                let Some((number, order)) = waiting.lock().unwrap_or_else(PoisonError::into_inner).take()
                else {
                    continue;
                };
                let result = carry_out(order, &place, &mut resolver);
                if done.send((number, result)).is_err() {
                    return;
                }
                let _ = ring.write_all(&[0]);
            }
        };
        thread::Builder::new().name("name servers".to_owned()).spawn(work)?;
        Ok(NameServers { orders, next, results, bell, last: None, ordered: 0, done: 0, trouble: None })
    }

    /// Makes `servers` the machine's, as the session of `interface` announced them.
    pub fn set(&mut self, interface: &str, servers: &[IpAddr]) {
        self.order(Order::Set { interface: interface.to_owned(), servers: servers.to_vec() });
    }

    /// Takes them back, if any are.
    pub fn take_back(&mut self) {
        self.order(Order::TakeBack);
    }

    fn order(&mut self, order: Order) {
        if self.last.as_ref() == Some(&order) {
            return;
        }
        self.last = Some(order.clone());
        let number = self.ordered + 1;
        let former = self.next.lock().unwrap_or_else(PoisonError::into_inner).replace((number, order));
        // The thread got the former one, and looks yet.
        if former.is_some() || self.orders.send(()).is_ok() {
            self.ordered = number;
        }
    }

    /// Whether all that was ordered is done.
    pub const fn is_idle(&self) -> bool {
        self.done >= self.ordered
    }

    /// Why the name servers that were ordered last are not the machine's; `None`: they are, or will be, or none are ordered.
    pub fn trouble(&self) -> Option<&str> {
        let is_set = matches!(self.last, Some(Order::Set { .. })) && self.is_idle();
        self.trouble.as_deref().filter(|_| is_set)
    }

    /// What went wrong since the last call.
    pub fn said(&mut self) -> Vec<String> {
        // As often as it rang: the results say what it was.
        while matches!(self.bell.read(&mut [0; 64]), Ok(count) if count > 0) {}
        let results: Vec<_> = self.results.try_iter().collect();
        if let Some((number, said)) = results.last() {
            self.done = *number;
            self.trouble.clone_from(said);
        }
        results.into_iter().filter_map(|(_, said)| said).collect()
    }

    /// Waits until all that was ordered is done, for half a minute at most; what went wrong.
    pub fn finish(self) -> Vec<String> {
        self.finish_within(PATIENCE)
    }

    fn finish_within(mut self, patience: Duration) -> Vec<String> {
        let mut said = self.said();
        let until = Instant::now() + patience;
        while !self.is_idle() {
            match self.results.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok((number, result)) => {
                    self.done = number;
                    said.extend(result);
                }
                Err(_) => {
                    said.push(format!(
                        "the former name servers may not be back: what sets them was not done after {} s",
                        patience.as_secs()
                    ));
                    break;
                }
            }
        }
        said
    }
}

impl AsFd for NameServers {
    /// Readable when an order is done: [`NameServers::said`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// Does it; what went wrong.
fn carry_out(order: Order, place: &Place, resolver: &mut Option<Resolver>) -> Option<String> {
    match order {
        Order::Set { interface, servers } => match Resolver::set(&interface, &servers, place.clone()) {
            Ok(set) => {
                *resolver = Some(set);
                None
            }
            Err(error) => Some(format!("the name servers of {interface} are not this machine's: {error}")),
        },
        Order::TakeBack => match resolver.take()?.take_back() {
            Ok(Back::Done) => None,
            Ok(Back::Changed) => {
                Some(format!("{} was written by somebody else meanwhile and stays as it is", resolver::PATH))
            }
            Err(error) => Some(format!("the former name servers are not back: {error}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A file that whoever opens it hangs in: a named pipe that nobody reads.
    fn hanging(folder: &Path) -> std::path::PathBuf {
        let file = folder.join("resolv.conf");
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.expect("mkfifo").success());
        file
    }

    /// Waits until all is done; what went wrong.
    fn all_said(name_servers: &mut NameServers) -> Vec<String> {
        let until = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        while !name_servers.is_idle() {
            assert!(Instant::now() < until, "{said:?}");
            said.extend(name_servers.said());
            thread::yield_now();
        }
        said
    }

    #[test]
    fn the_last_order_is_done_and_failures_said() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, note) = (folder.path().join("resolv.conf"), folder.path().to_owned());
        let before = "nameserver 198.51.100.1\n";
        fs::write(&file, before).expect("written");
        let mut name_servers = NameServers::at(Place::at(&file, &note)).expect("a thread");
        let server = "192.0.2.53".parse().expect("an address");
        name_servers.set("ppp0", &[server]);
        assert_eq!(all_said(&mut name_servers), [""; 0]);
        assert!(fs::read_to_string(&file).expect("there").ends_with("\nnameserver 192.0.2.53\n"));
        for _ in 0..5 {
            name_servers.take_back();
            name_servers.set("ppp0", &[server]);
        }
        name_servers.take_back();
        name_servers.take_back();
        assert_eq!(name_servers.finish(), [""; 0]);
        assert_eq!(fs::read_to_string(&file).expect("there"), before);
        // Where it cannot be.
        let nowhere = Place::at(&folder.path().join("nowhere/resolv.conf"), &note);
        let mut name_servers = NameServers::at(nowhere).expect("a thread");
        name_servers.set("ppp0", &[server]);
        let said = all_said(&mut name_servers);
        assert!(said.len() == 1 && said[0].contains("nowhere/resolv.conf"), "{said:?}");
    }

    /// What a concentrator that begins IPCP anew without end has ordered: nothing is left for the end of the session.
    #[test]
    fn orders_without_end_are_not_a_queue() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = hanging(folder.path());
        let mut name_servers = NameServers::at(Place::at(&file, folder.path())).expect("a thread");
        let server = |last| IpAddr::from([192, 0, 2, last]);
        name_servers.set("ppp0", &[server(53)]);
        let until = Instant::now() + PATIENCE;
        // The thread hangs in it.
        while name_servers.next.lock().expect("no panic").is_some() {
            assert!(Instant::now() < until);
            thread::yield_now();
        }
        for last in 0..=250 {
            name_servers.set("ppp0", &[server(last)]);
            name_servers.set("ppp0", &[server(last)]);
        }
        name_servers.take_back();
        assert_eq!(name_servers.ordered, 253);
        // It goes on with another file, and has one order left.
        let writer = fs::File::options().write(true).open(&file).expect("a pipe that is read");
        fs::remove_file(&file).expect("removed");
        drop(writer);
        assert_eq!(all_said(&mut name_servers), [""; 0]);
        assert_eq!(fs::read_to_string(&file).expect("there"), "");
    }

    #[test]
    fn what_hangs_holds_nobody_up() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = hanging(folder.path());
        let place = Place::at(&file, folder.path());
        let mut name_servers = NameServers::at(place).expect("a thread");
        name_servers.set("ppp0", &["192.0.2.53".parse().expect("an address")]);
        assert!(name_servers.said().is_empty() && !name_servers.is_idle());
        let said = name_servers.finish_within(Duration::from_millis(50));
        assert!(said.len() == 1 && said[0].contains("may not be back"), "{said:?}");
        // Lets the thread go on, and end.
        fs::write(&file, "").expect("written");
    }
}

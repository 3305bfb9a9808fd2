//! What an open session has on this machine: an interface with its addresses, default routes, scripts; and the order for its
//! name servers.
//!
//! All of it goes with [`Network::down`]; interface, addresses and routes also with the process, however that ends.

use super::name_servers::NameServers;
use super::script::{Notice, Occasion, Scripts};
use super::status::DefaultRoute;
use format::quoted;
use kernel::netlink::{self, Address, Gateway, Netlink, Refusal, Route, link_local};
use link::Error;
use link::running::{Ended, Means, Observer, Running};
use link::status::Status;
use pppoe::session::{Family, Ipv4, Ipv6};
use std::io::Write;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::Instant;
use wire::IpVersion;
use wire::emit::Encapsulation;

/// What is said of one session, sentences at most.
const NOTICES: usize = 16;
const IPV4: &str = "ipv4";
const IPV6: &str = "ipv6";

/// What is requested on this machine.
#[derive(Clone, Debug)]
pub struct Request {
    pub name: String,
    pub parent: String,
    pub means: Means,
    /// Whether to lower the maximum segment size of TCP to what fits the MTU.
    pub mss_clamp: bool,
    /// Default routes through the session, of this metric; for IPv6 at least 1, since the kernel takes 0 for 1024 there
    /// (`IP6_RT_PRIO_USER` of net/ipv6_route.h).
    pub default_route: Option<u32>,
    /// Whether the name servers of the concentrator become the machine's.
    pub dns: bool,
    pub up_script: Option<PathBuf>,
    pub down_script: Option<PathBuf>,
    /// Folder of what has to be remembered.
    pub state: PathBuf,
}

/// Whose session it is, for scripts.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// Name of the concentrator, escaped.
    pub name: String,
    pub mac: String,
    pub user: String,
}

/// What a session has. See the [module](self).
#[derive(Debug)]
pub struct Network {
    request: Request,
    observer: Observer,
    /// Written to, it ends the data path.
    stop: UnixStream,
    /// At its end when the data path has ended.
    ended: UnixStream,
    thread: Option<JoinHandle<Result<Ended, Error>>>,
    addresses: Vec<(Family, Address)>,
    routes: Vec<DefaultRoute>,
    ipv4: Option<Ipv4>,
    ipv6: Option<Ipv6>,
    notice: Notice,
    is_announced: bool,
    since: Instant,
    said: Vec<String>,
}

impl Network {
    /// Brings up the interface, without addresses yet. `after_kill`: a process that had it was killed just now.
    pub fn up(
        request: &Request,
        encapsulation: Encapsulation,
        mtu: u32,
        peer: Peer,
        after_kill: bool,
    ) -> Result<Network, Error> {
        let link = link::running::Request {
            name: request.name.clone(),
            parent: request.parent.clone(),
            encapsulation,
            addresses: Vec::new(),
            mtu: Some(mtu),
            mss_clamp: request.mss_clamp,
            means: request.means,
            is_managed: true,
        };
        let pair = || UnixStream::pair().map_err(Error::kernel("watch the data path"));
        let ((stop, stopped), (ended, end)) = (pair()?, pair()?);
        let mut running = Running::up_without_socket(&link, after_kill, stopped)?;
        let observer = running.observer();
        let moves = move || {
            let result = running.run(&mut |_| ());
            running.down();
            drop(end);
            result
        };
        let thread = thread::Builder::new().name("packets".to_owned()).spawn(moves);
        let notice = Notice {
            interface: request.name.clone(),
            parent: request.parent.clone(),
            peer: peer.name,
            user: peer.user,
            mac: peer.mac,
            mtu,
            ..Notice::default()
        };
        Ok(Network {
            request: request.clone(),
            observer,
            stop,
            ended,
            thread: Some(thread.map_err(Error::kernel("start a thread"))?),
            addresses: Vec::new(),
            routes: Vec::new(),
            ipv4: None,
            ipv6: None,
            notice,
            is_announced: false,
            since: Instant::now(),
            said: Vec::new(),
        })
    }

    /// How the interface stands.
    pub fn status(&self) -> Status {
        self.observer.status()
    }

    /// What reports its status, from any thread.
    pub fn observer(&self) -> Observer {
        self.observer.clone()
    }

    /// Frames received so far.
    pub fn received(&self) -> u64 {
        self.observer.received()
    }

    fn ipv4(&mut self, ipv4: &Ipv4, name_servers: Option<&mut NameServers>) -> Result<Vec<String>, Error> {
        let address = Address { local: ipv4.local.into(), prefix: 32, peer: ipv4.peer.map(IpAddr::from) };
        self.add(Family::Ipv4, address)?;
        self.notice.local = Some(ipv4.local.into());
        self.notice.remote = ipv4.peer.map(IpAddr::from);
        self.notice.dns = ipv4.dns.iter().flatten().map(|server| IpAddr::from(*server)).collect();
        let mut said = Vec::new();
        said.extend(self.route(IpVersion::V4));
        if let Some(name_servers) = name_servers {
            if self.notice.dns.is_empty() {
                said.push(
                    "the concentrator named no name servers: those of this machine stay as they are"
                        .to_owned(),
                );
            } else {
                name_servers.set(&self.request.name, &self.notice.dns);
            }
        }
        Ok(said)
    }

    fn ipv6(&mut self, ipv6: &Ipv6) -> Result<Vec<String>, Error> {
        let local = link_local(ipv6.local);
        self.add(Family::Ipv6, Address { local: local.into(), prefix: 64, peer: None })?;
        self.notice.link_local = Some((local.into(), link_local(ipv6.peer).into()));
        Ok(self.route(IpVersion::V6).into_iter().collect())
    }

    /// Whether the interface has an address of this kind.
    pub fn has(&self, family: Family) -> bool {
        self.addresses.iter().any(|(of, _)| *of == family)
    }

    /// What is up now, and what is not. What could not be done as requested is said in sentences; with `wants_ipv4` also that the
    /// interface takes no IPv6 address: many machines have IPv6 turned off.
    pub fn set(
        &mut self,
        ipv4: Option<Ipv4>,
        ipv6: Option<Ipv6>,
        wants_ipv4: bool,
        name_servers: Option<&mut NameServers>,
    ) -> Result<Vec<String>, Error> {
        let mut said = Vec::new();
        if ipv4 != self.ipv4 {
            match ipv4 {
                Some(ipv4) => said.extend(self.ipv4(&ipv4, name_servers)?),
                None => self.without(Family::Ipv4),
            }
            self.ipv4 = ipv4;
        }
        if ipv6 != self.ipv6 {
            match ipv6 {
                Some(ipv6) => match self.ipv6(&ipv6) {
                    Err(error) if wants_ipv4 => said.push(format!("no IPv6: {error}")),
                    done => said.extend(done?),
                },
                None => self.without(Family::Ipv6),
            }
            self.ipv6 = ipv6;
        }
        // Protocols may be begun anew often, and each sentence is worth reading once a session.
        said.retain(|text| self.said.len() < NOTICES && !self.said.contains(text));
        self.said.extend(said.iter().cloned());
        Ok(said)
    }

    fn add(&mut self, family: Family, address: Address) -> Result<(), Error> {
        self.without(family);
        let interface = self.observer.interface();
        netlink::add_address(interface, &address)
            .map_err(|refusal| Error::address(interface, &self.request.name, address, refusal))?;
        self.addresses.push((family, address));
        Ok(())
    }

    /// A protocol is down, its addresses go.
    fn without(&mut self, family: Family) {
        let interface = self.observer.interface();
        self.addresses.retain(|(of, address)| {
            if *of == family {
                // Whoever took it away before has done what is requested.
                let _ = netlink::remove_address(interface, address);
            }
            *of != family
        });
        let family = if family == Family::Ipv4 { IPV4 } else { IPV6 };
        self.routes.retain(|route| route.family != family);
    }

    /// Adds the default route of a protocol, where one is requested; why that could not be done.
    fn route(&mut self, version: IpVersion) -> Option<String> {
        let metric = self.request.default_route?;
        let (family, option, metric) = match version {
            IpVersion::V4 => (IPV4, "-4", metric),
            IpVersion::V6 => (IPV6, "-6", metric.max(1)),
        };
        let name = &self.request.name;
        let route = Route { version, destination: None, interface: self.observer.interface(), metric };
        let added = Netlink::route().map_err(Refusal::from).and_then(|mut netlink| netlink.add_route(&route));
        let refusal = added.err();
        let missing = refusal.map(|refusal| match refusal.error.raw_os_error() {
            Some(libc::EEXIST) => {
                let other = netlink::default_route(version, metric).ok().flatten();
                in_the_way(option, name, metric, other)
            }
            _ => refusal.to_string(),
        });
        let said = missing.as_ref().map(|why| format!("no default route through {name}: {why}"));
        self.routes.retain(|route| route.family != family);
        self.routes.push(DefaultRoute { family: family.to_owned(), metric, missing });
        self.routes.sort_by(|one, other| one.family.cmp(&other.family));
        said
    }

    pub fn routes(&self) -> &[DefaultRoute] {
        &self.routes
    }

    /// Runs the script of a session that is up, once.
    pub fn run_up_script(&mut self, scripts: &mut Scripts) -> Option<String> {
        if std::mem::replace(&mut self.is_announced, true) {
            return None;
        }
        let script = self.request.up_script.as_ref()?;
        scripts.start(Occasion::Up, script, &self.notice).err().map(|error| error.to_string())
    }

    /// Takes it all away; what went wrong, in sentences.
    pub fn down(mut self, scripts: &mut Scripts) -> Vec<String> {
        let status = self.observer.status();
        let mut said = Vec::new();
        if let Err(error) = self.end() {
            said.push(error.to_string());
        }
        if let Some(script) = self.request.down_script.as_ref().filter(|_| self.is_announced) {
            let seconds = self.since.elapsed().as_secs();
            self.notice.totals = Some((seconds, status.counted.sent.bytes, status.counted.received.bytes));
            said.extend(
                scripts.start(Occasion::Down, script, &self.notice).err().map(|error| error.to_string()),
            );
        }
        said
    }

    /// Ends the data path, and the interface with it.
    fn end(&mut self) -> Result<(), Error> {
        // It may have ended already.
        let _ = self.stop.write_all(&[0]);
        self.ended().map(drop)
    }

    /// Why the data path ended, after it did.
    pub fn ended(&mut self) -> Result<Ended, Error> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(Error::worker(&self.request.name)),
            None => Ok(Ended::Requested),
        }
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl AsFd for Network {
    /// Readable when the data path has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}

/// That a default route of this metric is there already, and what puts that of the interface `name` in its place; `option` is that
/// of ip(8).
pub(super) fn in_the_way(option: &str, name: &str, metric: u32, other: Option<Gateway>) -> String {
    let (named, delete) = match other {
        Some(Gateway { address, interface }) => {
            let via = address.map_or(String::new(), |address| format!(" via {address}"));
            let link = netlink::link_by_index(interface).map(|link| format!(" dev {}", quoted(&link.name)));
            let route = format!("default{via}{}", link.unwrap_or_default());
            (format!("`{route}`"), format!("`ip {option} route del {route} metric {metric}`"))
        }
        None => ("another one".to_owned(), format!("deleting it (`ip {option} route show default`)")),
    };
    // Nothing comes before the least.
    let is_least = metric == 0 || option == "-6" && metric == 1;
    let lower = if is_least { "" } else { "; a lower `--metric` comes before it" };
    format!(
        "{named} has the metric {metric} already; {delete} and `ip {option} route add default dev {quoted_name} metric {metric}` put this \
         one in its place{lower}",
        quoted_name = quoted(name)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_room_for_a_default_route_is_said() {
        let other = Some(Gateway { address: Some([192, 0, 2, 1].into()), interface: 1 });
        assert_eq!(
            in_the_way("-4", "ppp0", 0, other),
            "`default via 192.0.2.1 dev lo` has the metric 0 already; `ip -4 route del default via 192.0.2.1 dev lo metric 0` and \
             `ip -4 route add default dev ppp0 metric 0` put this one in its place"
        );
        // A lower one is advised only where there is one.
        assert!(!in_the_way("-6", "ppp0", 1, None).contains("--metric"));
        assert!(in_the_way("-4", "ppp0", 1, None).contains("a lower `--metric`"));
    }

    #[test]
    fn identifiers_become_link_local_addresses() {
        assert_eq!(link_local(0x0200_5eff_fe00_5301).to_string(), "fe80::200:5eff:fe00:5301");
        assert_eq!(link_local(1).to_string(), "fe80::1");
    }
}

//! What stands at both ends of the line: clients and concentrators, started and ended.

use crate::topology::{BARE, End, GATEWAY, Topology};
use anyhow::{Context, Result};
use rxlane_lab::Guest;
use std::time::Duration;

/// What is at the subscriber's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// Nothing: the line itself.
    Bare,
    /// The line itself, every packet by itself through the stack, as those of a PPPoE interface go.
    BareWithout,
    Batch,
    Simple,
    /// `pppd` with the kernel's PPPoE.
    Kernel,
    /// `pppd` behind a pseudo-terminal with rp-pppoe's program.
    Asynchronous,
    /// The same with `n_hdlc`, in which a read is a packet.
    Synchronous,
}

/// What is at the provider's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    Serve,
    /// Debian's `pppoe-server`.
    Debian,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub client: Client,
    pub server: Server,
}

impl Way {
    pub const ALL: [Way; 9] = [
        Way { client: Client::Bare, server: Server::Serve },
        Way { client: Client::BareWithout, server: Server::Serve },
        Way { client: Client::Batch, server: Server::Serve },
        Way { client: Client::Simple, server: Server::Serve },
        Way { client: Client::Kernel, server: Server::Serve },
        Way { client: Client::Asynchronous, server: Server::Serve },
        Way { client: Client::Synchronous, server: Server::Serve },
        Way { client: Client::Batch, server: Server::Debian },
        Way { client: Client::Kernel, server: Server::Debian },
    ];

    pub fn name(self) -> String {
        let client = match self.client {
            Client::Bare => "no PPPoE",
            Client::BareWithout => "no PPPoE, no offloads",
            Client::Batch => "connect, batch",
            Client::Simple => "connect, simple",
            Client::Kernel => "pppd, kernel",
            Client::Asynchronous => "pppd, pppoe async",
            Client::Synchronous => "pppd, pppoe sync",
        };
        match self.server {
            Server::Serve => client.to_owned(),
            Server::Debian => format!("{client}; pppoe-server"),
        }
    }

    pub fn is_bare(self) -> bool {
        matches!(self.client, Client::Bare | Client::BareWithout)
    }
}

const OUTPUT: [&str; 2] = ["/tmp/home.output", "/tmp/isp.output"];

/// Both ends of a way, while it has its turn.
pub struct Ends<'a> {
    guest: &'a Guest,
    is_whole: bool,
    /// The client, then the concentrator.
    pids: Vec<u32>,
    /// Addresses of the subscriber and of the provider.
    pub addresses: [String; 2],
    /// The interface whose frames are counted.
    pub interface: &'static str,
}

impl<'a> Ends<'a> {
    pub fn new(topology: &'a Topology, way: Way) -> Result<Ends<'a>> {
        Ends::within(topology, way, None)
    }

    /// With the client in a control group.
    pub fn within(topology: &'a Topology, way: Way, group: Option<&str>) -> Result<Ends<'a>> {
        let mut ends = Ends {
            guest: &topology.guest,
            is_whole: way.client == Client::BareWithout,
            pids: Vec::new(),
            addresses: BARE.map(str::to_owned),
            interface: "bare0",
        };
        if way.is_bare() {
            ends.offloads(way.client == Client::Bare)?;
            return Ok(ends);
        }
        ends.interface = "wan0";
        ends.serve(topology, way.server)?;
        let mut command = client(topology, way.client)?;
        if let Some(group) = group {
            let enter = format!("echo $$ >{group}/cgroup.procs; exec \"$@\"");
            command.splice(0..0, ["sh".to_owned(), "-c".to_owned(), enter, "sh".to_owned()]);
        }
        ends.pids.insert(0, topology.guest.start(&command, OUTPUT[0])?);
        ends.await_address()?;
        Ok(ends)
    }

    fn offloads(&self, are_on: bool) -> Result<()> {
        let word = if are_on { "on" } else { "off" };
        for (namespace, device) in [("home", "bare0"), ("isp", "bare1")] {
            self.guest.sh(&format!(
                "ip netns exec {namespace} ethtool -K {device} tso {word} gso {word} gro off"
            ))?;
        }
        Ok(())
    }

    fn serve(&mut self, topology: &Topology, server: Server) -> Result<()> {
        let device = topology.device(End::Isp);
        let pools = "--local 198.51.100.1 --pool 198.51.100.10-198.51.100.13";
        let command = match server {
            Server::Serve => format!("{} pppoe serve line0 --anybody --vlan any {pools}", topology.rxlane),
            Server::Debian => {
                let options = "/etc/ppp/measured-server";
                topology.guest.write("/etc/ppp/options", b"")?;
                topology
                    .guest
                    .write(options, b"noauth\nnodefaultroute\nnoproxyarp\nnobsdcomp\nnodeflate\nnoccp\n")?;
                format!("pppoe-server -F -N 4 -L {GATEWAY} -R 198.51.100.10 -O {options} -I {device}")
            }
        };
        // What the kernel queues for any CPU is for pseudo-terminals, which one of both ends has: its CPU takes it.
        let pty_end = if server == Server::Serve { End::Home } else { End::Isp };
        topology.guest.sh(&format!("echo {} >/sys/devices/virtual/workqueue/cpumask", 1 << pty_end.cpu()))?;
        let words = format!("{} {command}", End::Isp.prefix());
        self.pids.push(topology.guest.start(&words.split(' ').collect::<Vec<_>>(), OUTPUT[1])?);
        if server == Server::Serve {
            let ready = format!("timeout 40 sh -c 'until grep -q serves {}; do sleep 0.1; done'", OUTPUT[1]);
            topology.guest.sh(&ready).with_context(|| self.said(1))?;
        }
        Ok(())
    }

    fn await_address(&mut self) -> Result<()> {
        let up = "timeout 50 sh -c 'until ip -n home -4 -o addr show dev ppp0 2>/dev/null | grep peer; do sleep 0.1; done'";
        let said =
            self.guest.sh(up).with_context(|| format!("no address: {}{}", self.said(0), self.said(1)))?;
        let mut words = said.split_whitespace();
        let own = words.find(|word| *word == "inet").and_then(|_| words.next()).context("no address")?;
        self.addresses = [own.to_owned(), GATEWAY.to_owned()];
        let ping =
            format!("timeout 30 sh -c 'until ip netns exec home ping -c 1 -W 1 {GATEWAY}; do :; done'");
        self.guest.sh(&ping).with_context(|| format!("no answer: {}{}", self.said(0), self.said(1)))?;
        Ok(())
    }

    fn said(&self, end: usize) -> String {
        let bytes = self.guest.read(OUTPUT[end]).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn end(&mut self) -> Result<()> {
        if self.is_whole {
            self.offloads(true)?;
        }
        for pid in self.pids.drain(..) {
            self.guest.signal(pid, libc::SIGTERM, true)?;
        }
        // Debian's server leaves processes of its sessions.
        let sweep = "for n in home isp; do until [ -z \"$(ip netns pids $n)\" ]; do \
                    ip netns pids $n | xargs -r kill 2>/dev/null; sleep 0.2; done; done";
        self.guest.run_with(&["sh", "-c", sweep], &[], Duration::from_secs(20))?;
        Ok(())
    }
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("an end of the line does not end: {error:#}");
        }
    }
}

/// The command of a client.
fn client(topology: &Topology, client: Client) -> Result<Vec<String>> {
    let device = topology.device(End::Home);
    let vlan = if topology.tags.is_empty() { "" } else { " --vlan 100.200" };
    let connect = |path: &str| format!("{} pppoe connect wan0{vlan} --datapath {path}", topology.rxlane);
    let usual = "nodetach noauth noipdefault nodefaultroute nodeflate nobsdcomp noccp mtu 1492 mru 1492";
    topology.guest.sh("mkdir -p /etc/ppp /var/run/ppp")?;
    topology.guest.write("/etc/ppp/options", b"")?;
    // What rp-pppoe's own script pppoe-connect has.
    let user = "default-asyncmap noaccomp nopcomp novj novjccomp";
    let (command, pty) = match client {
        Client::Bare | Client::BareWithout => anyhow::bail!("the bare line has no client"),
        Client::Batch => (connect("batch"), None),
        Client::Simple => (connect("simple"), None),
        Client::Kernel => (format!("pppd plugin rp-pppoe.so {device} {usual}"), None),
        Client::Asynchronous => {
            (format!("pppd {usual} {user} pty"), Some(format!("pppoe -I {device} -T 80")))
        }
        Client::Synchronous => {
            (format!("pppd {usual} {user} sync pty"), Some(format!("pppoe -s -I {device} -T 80")))
        }
    };
    let words = format!("{} {command}", End::Home.prefix());
    Ok(words.split(' ').map(str::to_owned).chain(pty).collect())
}

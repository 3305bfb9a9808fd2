//! Two namespaces with a veth pair between them, and a PPPoE session on it.

use crate::load;
use anyhow::{Context, bail};
use rxlane_testkit::netns::{Namespace, Veth};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::spawn;

/// Of the IP packets of all ways, octets.
pub const MTU: u32 = 1492;
/// Of the pair below a session: room for two tags.
const BELOW: u32 = 1508;
/// Of the client and the concentrator.
const ADDRESSES: [&str; 2] = ["10.64.0.2", "10.64.0.1"];

/// What packets go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Batch,
    Simple,
    BareWithout,
    Bare,
}

impl Way {
    pub const ALL: [Way; 4] = [Way::Batch, Way::Simple, Way::BareWithout, Way::Bare];

    pub fn name(self) -> &'static str {
        match self {
            Way::Batch => "connect, batch",
            Way::Simple => "connect, simple",
            Way::BareWithout => "veth, no offloads",
            Way::Bare => "veth",
        }
    }

    /// The data path of `connect`; `None`: no session.
    fn path(self) -> Option<&'static str> {
        match self {
            Way::Batch => Some("batch"),
            Way::Simple => Some("simple"),
            Way::BareWithout | Way::Bare => None,
        }
    }
}

/// Both ends of a way.
pub struct Scene {
    /// The concentrator, then the client; dropped before the namespaces.
    programs: Vec<Child>,
    ends: [Namespace; 2],
    _state: tempfile::TempDir,
}

impl Scene {
    pub fn new(way: Way, rxlane: &Path, vlans: Option<&str>) -> anyhow::Result<Scene> {
        let ends = [Namespace::new()?, Namespace::new()?];
        let mtu = if way.path().is_some() { BELOW } else { MTU };
        ends[0].veth(&Veth { mtu, peer: Some(&ends[1]), ..Veth::pair("wan0", "wan0") })?;
        let mut scene = Scene { programs: Vec::new(), _state: tempfile::tempdir()?, ends };
        match way.path() {
            None => scene.bare(way)?,
            Some(path) => {
                let serve = "serve wan0 --anybody --vlan any --local 10.64.0.1 --pool 10.64.0.2-10.64.0.2";
                scene.start(1, rxlane, serve, "serves")?;
                let vlans = vlans.map(|vlans| format!(" --vlan {vlans}")).unwrap_or_default();
                scene.start(0, rxlane, &format!("connect wan0 --datapath {path}{vlans}"), ": open")?;
            }
        }
        Ok(scene)
    }

    fn bare(&self, way: Way) -> anyhow::Result<()> {
        for (end, address) in self.ends.iter().zip(ADDRESSES) {
            if way == Way::BareWithout {
                end.run("ethtool", &["-K", "wan0", "tso", "off", "gso", "off", "gro", "off"])?;
            }
            end.run("ip", &["addr", "add", &format!("{address}/24"), "dev", "wan0"])?;
        }
        Ok(())
    }

    /// Starts `rxlane pppoe` at an end, and waits for what it says when it is ready.
    fn start(&mut self, end: usize, rxlane: &Path, words: &str, ready: &str) -> anyhow::Result<()> {
        let mut command = self.ends[end].command(rxlane);
        command.arg("pppoe").args(words.split(' ')).args(["--ipv6", "false"]);
        command.arg("--state").arg(self._state.path().join(end.to_string()));
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().context("rxlane pppoe")?;
        let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
        self.programs.push(child);
        let mut said = String::new();
        for line in lines.by_ref() {
            said.push_str(&line?);
            if said.contains(ready) {
                // It may say more, and must not wait for a reader.
                spawn(move || lines.for_each(drop));
                return Ok(());
            }
        }
        bail!("rxlane pppoe {words}: {said}")
    }

    /// Process ids of the client and of the concentrator. ip-netns(8) becomes the program that it starts.
    pub fn pids(&self) -> Option<[u32; 2]> {
        match &self.programs[..] {
            [serve, connect] => Some([connect.id(), serve.id()]),
            _ => None,
        }
    }

    /// Mean round trip, microseconds.
    pub fn round_trip(&self) -> anyhow::Result<f64> {
        load::round_trip(&self.ends[0], ADDRESSES[1])
    }

    /// Bit/s of payload that arrived over so many connections, and its octets: from the client, or to it.
    pub fn tcp(&self, is_down: bool, flows: u32, seconds: u32) -> anyhow::Result<(f64, f64)> {
        let flows = flows.to_string();
        let more: &[&str] = if is_down { &["-P", &flows, "-R"] } else { &["-P", &flows] };
        load::arrived(&load::iperf(&self.ends, ADDRESSES[1], more, seconds)?)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for mut program in self.programs.drain(..).rev() {
            // SIGTERM, so that nothing of it is left.
            let _ = Command::new("kill").arg(program.id().to_string()).status();
            let _ = program.wait();
        }
    }
}

//! Two namespaces with a veth pair between them, and a PPPoE session on it.

use anyhow::{Context, bail, ensure};
use rxlane_testkit::netns::{Namespace, Veth};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{sleep, spawn};
use std::time::Duration;

/// Of the IP packets of all ways, octets.
pub const MTU: u32 = 1492;
/// Of the pair below a session: room for two tags.
const BELOW: u32 = 1508;
/// Of the client and the concentrator.
const ADDRESSES: [&str; 2] = ["10.64.0.2", "10.64.0.1"];
/// Round trips that are averaged, and seconds between them.
const PINGS: &str = "300";
const INTERVAL: &str = "0.002";

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
        let ping = |count: &str| {
            self.ends[0].run("ping", &["-q", "-c", count, "-i", INTERVAL, ADDRESSES[1]]).context("ping")
        };
        // Neighbours have to be asked for first.
        ping("20")?;
        let said = ping(PINGS)?;
        // rtt min/avg/max/mdev = 0.022/0.026/0.120/0.009 ms
        let times =
            said.lines().find_map(|line| line.strip_prefix("rtt ")?.split_once("= ")).context("no time")?;
        let mean = times.1.split('/').nth(1).context("no mean")?;
        Ok(mean.parse::<f64>()? * 1e3)
    }

    /// Bit/s of payload that arrived over so many connections, and its octets: from the client, or to it.
    pub fn tcp(&self, is_down: bool, flows: u32, seconds: u32) -> anyhow::Result<(f64, f64)> {
        let mut server = self.ends[1]
            .command("iperf3")
            .args(["-s", "-1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("iperf3")?;
        sleep(Duration::from_millis(250));
        let mut client = self.ends[0].command("iperf3");
        client.args(["-c", ADDRESSES[1], "-J", "-t", &seconds.to_string(), "-P", &flows.to_string()]);
        client.args(["--connect-timeout", "3000"]).args(is_down.then_some("-R"));
        let output = client.output();
        let _ = server.kill();
        let _ = server.wait();
        let answer: Value =
            serde_json::from_slice(&output.context("iperf3")?.stdout).context("what iperf3 says")?;
        let sum = &answer["end"]["sum_received"];
        ensure!(sum["bytes"].is_number(), "iperf3: {}", answer["error"]);
        let figure = |name: &str| sum[name].as_f64().with_context(|| format!("iperf3 tells no {name}"));
        Ok((figure("bits_per_second")?, figure("bytes")?))
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

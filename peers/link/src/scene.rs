//! Two namespaces with a veth pair between them, and what stands on it.

use crate::load;
use anyhow::{Context, ensure};
use rxlane_testkit::netns::{Namespace, Veth};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Of the IP packets of all ways, octets.
pub const MTU: u32 = 1500;
/// Of the pair below a link: room for every encapsulation.
const BELOW: u32 = 1532;
const MACS: [&str; 2] = ["02:00:5e:00:00:01", "02:00:5e:00:00:02"];
const ADDRESSES: [&str; 2] = ["10.9.0.1", "10.9.0.2"];
const IPV6: [&str; 2] = ["fd09::1", "fd09::2"];

/// What packets go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Simple,
    Batch,
    BatchXdp,
    BareWithout,
    Bare,
}

impl Way {
    pub const ALL: [Way; 5] = [Way::Simple, Way::Batch, Way::BatchXdp, Way::BareWithout, Way::Bare];

    pub fn name(self) -> &'static str {
        match self {
            Way::Simple => "simple",
            Way::Batch => "batch",
            Way::BatchXdp => "batch, af-xdp",
            Way::BareWithout => "veth, no offloads",
            Way::Bare => "veth",
        }
    }

    /// Arguments of `link up`; `None`: no link.
    fn arguments(self) -> Option<&'static [&'static str]> {
        match self {
            Way::Simple => Some(&["--datapath", "simple"]),
            Way::Batch => Some(&["--datapath", "batch"]),
            Way::BatchXdp => Some(&["--datapath", "batch", "--io", "af-xdp"]),
            Way::BareWithout | Way::Bare => None,
        }
    }
}

/// The IP version of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V4,
    V6,
}

impl Version {
    /// UDP payload of the longest packet, octets.
    pub const fn longest_datagram(self) -> u32 {
        let ip = match self {
            Version::V4 => 20,
            Version::V6 => 40,
        };
        MTU - ip - 8
    }
}

/// Both ends of a way.
pub struct Scene {
    // Dropped before the namespaces.
    links: Vec<Child>,
    ends: [Namespace; 2],
    processes: Vec<u32>,
    _state: tempfile::TempDir,
}

impl Scene {
    pub fn new(way: Way, rxlane: &Path, encapsulation: &str) -> anyhow::Result<Scene> {
        let ends = [Namespace::new()?, Namespace::new()?];
        let state = tempfile::tempdir()?;
        let [near, far] = &ends;
        let mtu = if way.arguments().is_some() { BELOW } else { MTU };
        near.veth(&Veth { mtu, peer: Some(far), ..Veth::pair("wan0", "wan0") })?;
        let mut scene = Scene { links: Vec::new(), processes: Vec::new(), _state: state, ends };
        for (place, mac) in MACS.into_iter().enumerate() {
            scene.ends[place].run("ip", &["link", "set", "wan0", "address", mac])?;
        }
        for (place, address) in IPV6.into_iter().enumerate() {
            scene.ends[place].inside(|| -> std::io::Result<()> {
                std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0")?;
                for (setting, value) in [("disable_ipv6", "0"), ("accept_dad", "0"), ("dad_transmits", "0")] {
                    std::fs::write(format!("/proc/sys/net/ipv6/conf/default/{setting}"), value)?;
                }
                if way.arguments().is_none() {
                    std::fs::write("/proc/sys/net/ipv6/conf/wan0/disable_ipv6", "0")?;
                }
                Ok(())
            })?;
            if way.arguments().is_none() {
                scene.ends[place]
                    .run("ip", &["addr", "add", &format!("{address}/64"), "dev", "wan0", "nodad"])?;
            }
        }
        for place in 0..2 {
            match way.arguments() {
                Some(arguments) => scene.link(place, rxlane, encapsulation, arguments)?,
                None => scene.bare(place, way)?,
            }
        }
        Ok(scene)
    }

    fn bare(&self, place: usize, way: Way) -> anyhow::Result<()> {
        let end = &self.ends[place];
        if way == Way::BareWithout {
            end.run("ethtool", &["-K", "wan0", "tso", "off", "gso", "off", "gro", "off"])?;
        }
        end.run("ip", &["addr", "add", &format!("{}/24", ADDRESSES[place]), "dev", "wan0"])?;
        Ok(())
    }

    fn link(
        &mut self,
        place: usize,
        rxlane: &Path,
        encapsulation: &str,
        more: &[&str],
    ) -> anyhow::Result<()> {
        let state = self._state.path().join(place.to_string());
        let mut command = self.ends[place].command(rxlane);
        command.args(["link", "up", "--parent", "wan0", "--name", "sub0", "--mtu", &MTU.to_string()]);
        command.args(["--encap", &encapsulation.replace("PEER", MACS[1 - place])]);
        command.args(["--address", &format!("{}/24", ADDRESSES[place])]);
        command.args(["--address", &format!("{}/64", IPV6[place])]).args(more);
        command.arg("--state").arg(state).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("rxlane link up")?;
        let mut first = String::new();
        let stdout = child.stdout.take().context("its output")?;
        BufReader::new(stdout).read_line(&mut first)?;
        // ip-netns(8) becomes the program that it starts.
        self.processes.push(child.id());
        self.links.push(child);
        ensure!(first.contains("is up over"), "the link does not come up: {first}");
        Ok(())
    }

    /// Processes of links.
    pub fn processes(&self) -> &[u32] {
        &self.processes
    }

    /// Mean round trip, microseconds.
    pub fn round_trip(&self) -> anyhow::Result<f64> {
        load::round_trip(&self.ends[0], ADDRESSES[1])
    }

    /// Bit/s of payload that arrived over so many connections, and its octets.
    pub fn tcp(&self, version: Version, flows: u32, seconds: u32) -> anyhow::Result<(f64, f64)> {
        load::arrived(&self.iperf(version, &["-P", &flows.to_string()], seconds)?)
    }

    /// Datagrams of so many octets that arrived a second.
    pub fn udp(&self, version: Version, octets: u32, seconds: u32) -> anyhow::Result<f64> {
        let answer = self.iperf(version, &["-u", "-l", &octets.to_string(), "-b", "0"], seconds)?;
        let sum = &answer["end"]["sum"];
        let figure =
            |name: &str| sum[name].as_f64().with_context(|| format!("iperf3 tells no {name}: {answer}"));
        Ok((figure("packets")? - figure("lost_packets")?) / figure("seconds")?)
    }

    fn iperf(&self, version: Version, more: &[&str], seconds: u32) -> anyhow::Result<Value> {
        let address = if version == Version::V4 { ADDRESSES[1] } else { IPV6[1] };
        load::iperf(&self.ends, address, more, seconds)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for link in &mut self.links {
            // SIGTERM, so that nothing of it is left.
            let _ = Command::new("kill").arg(link.id().to_string()).status();
            let _ = link.wait();
        }
    }
}

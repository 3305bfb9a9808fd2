//! A link between two namespaces, or the bare pair.

use anyhow::Context;
use serde_json::Value;
use std::path::Path;
use veth::ends::{Ends, WAN};
use veth::load;

/// Of the IP packets of all ways, bytes.
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
    /// UDP payload of the longest packet, bytes.
    pub const fn longest_datagram(self) -> u32 {
        let ip = match self {
            Version::V4 => 20,
            Version::V6 => 40,
        };
        MTU - ip - 8
    }
}

/// Both ends of a way.
pub struct Topology(Ends);

impl Topology {
    pub fn new(way: Way, rxlane: &Path, encapsulation: &str) -> anyhow::Result<Topology> {
        let arguments = way.arguments();
        let mut ends = Ends::new(if arguments.is_some() { BELOW } else { MTU })?;
        for (end, mac) in ends.namespaces.iter().zip(MACS) {
            end.run("ip", &["link", "set", WAN, "address", mac])?;
        }
        for (end, address) in ends.namespaces.iter().zip(IPV6) {
            end.inside(|| -> std::io::Result<()> {
                std::fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "0")?;
                for (setting, value) in [("disable_ipv6", "0"), ("accept_dad", "0"), ("dad_transmits", "0")] {
                    std::fs::write(format!("/proc/sys/net/ipv6/conf/default/{setting}"), value)?;
                }
                if arguments.is_none() {
                    std::fs::write(format!("/proc/sys/net/ipv6/conf/{WAN}/disable_ipv6"), "0")?;
                }
                Ok(())
            })?;
            if arguments.is_none() {
                end.run("ip", &["addr", "add", &format!("{address}/64"), "dev", WAN, "nodad"])?;
            }
        }
        match arguments {
            Some(arguments) => {
                for end in 0..2 {
                    link(&mut ends, end, rxlane, encapsulation, arguments)?;
                }
            }
            None => {
                if way == Way::BareWithout {
                    ends.without_offloads()?;
                }
                ends.give_addresses(ADDRESSES)?;
            }
        }
        Ok(Topology(ends))
    }

    /// Processes of links.
    pub fn pids(&self) -> Vec<u32> {
        self.0.pids()
    }

    /// Mean round trip, microseconds.
    pub fn round_trip(&self) -> anyhow::Result<f64> {
        load::round_trip(&self.0.namespaces[0], ADDRESSES[1])
    }

    /// Bit/s of payload that arrived over so many connections, and its bytes.
    pub fn tcp(&self, version: Version, flows: u32, seconds: u32) -> anyhow::Result<(f64, f64)> {
        load::arrived(&self.iperf(version, &["-P", &flows.to_string()], seconds)?)
    }

    /// Datagrams of so many bytes that arrived a second.
    pub fn udp(&self, version: Version, bytes: u32, seconds: u32) -> anyhow::Result<f64> {
        let answer = self.iperf(version, &["-u", "-l", &bytes.to_string(), "-b", "0"], seconds)?;
        let sum = &answer["end"]["sum"];
        let figure =
            |name: &str| sum[name].as_f64().with_context(|| format!("iperf3 says no {name}: {answer}"));
        Ok((figure("packets")? - figure("lost_packets")?) / figure("seconds")?)
    }

    fn iperf(&self, version: Version, more: &[&str], seconds: u32) -> anyhow::Result<Value> {
        let address = if version == Version::V4 { ADDRESSES[1] } else { IPV6[1] };
        load::iperf(&self.0.namespaces, address, more, seconds)
    }
}

fn link(
    ends: &mut Ends,
    end: usize,
    rxlane: &Path,
    encapsulation: &str,
    more: &[&str],
) -> anyhow::Result<()> {
    let mtu = MTU.to_string();
    let encapsulation = encapsulation.replace("PEER", MACS[1 - end]);
    let (v4, v6) = (format!("{}/24", ADDRESSES[end]), format!("{}/64", IPV6[end]));
    let state = ends.state(end).display().to_string();
    let mut words = vec!["link", "up", "--parent", WAN, "--name", "sub0", "--mtu", &mtu];
    words.extend(["--encap", &encapsulation, "--address", &v4, "--address", &v6, "--state", &state]);
    words.extend(more);
    ends.start(end, rxlane, &words, "is up over")
}

//! A line between two namespaces of a guest: at `own` a link of rxlane, at `peer` devices of the kernel.

use super::offloads::Offloads;
use crate::until;
use anyhow::{Context, Result, ensure};
use rxlane_lab::{Guest, Output};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};
use wire::emit::Encapsulation;
use wire::ethernet::EtherType;

/// The link's interface.
const LINK: &str = "link0";
/// Bytes behind the Ethernet header that the wire has room for: two tags and PPPoE around packets of 1492, or tags
/// alone around 1500, as `rxlane link check` counts them.
const WIRE_MTU: u32 = 1516;
const OUTPUT: &str = "/tmp/link.output";
const ADDRESSES: [(&str, &str); 2] = [("10.9.0.1", "10.9.0.2"), ("fd09::1", "fd09::2")];
/// Sizes of pings and datagrams: nothing, padded ones, the last before a fragment and the first, many fragments.
const PING_SIZES: &str = "0 1472 4000";
const DATAGRAM_SIZES: &str = "0,1,19,1444,1445,1452,1453,1464,1465,1472,1473,4000,20000";

/// The interfaces at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    pub own: &'static str,
    pub peer: &'static str,
}

impl Wire {
    /// Moves both ends to their namespaces and brings them up. Segments of UDP stay the kernel's business: the emulated
    /// 82576 makes fragments of one datagram of what it should make datagrams of.
    pub fn take(self, guest: &Guest) -> Result<()> {
        let Wire { own, peer } = self;
        guest.sh(&format!(
            "for end in own/{own} peer/{peer}; do n=${{end%/*}} i=${{end#*/}}; ip link set $i netns $n; \
             ip netns exec $n ethtool -G $i rx 4096 tx 4096; \
             ip netns exec $n ethtool -K $i tx-udp-segmentation off 2>/dev/null || :; \
             ip -n $n link set $i mtu {WIRE_MTU} up; done"
        ))?;
        for (namespace, interface) in [("own", own), ("peer", peer)] {
            let has = until(&format!("[ $(cat /sys/class/net/{interface}/carrier) = 1 ]"));
            guest.sh(&format!("ip netns exec {namespace} {has}"))?;
        }
        Ok(())
    }
}

/// Both namespaces and the wire of veth between them. Addresses are usable at once, and nobody looks for routers.
pub fn namespaces(guest: &Guest) -> Result<()> {
    guest
        .sh(&format!(
            "modprobe -a tun veth 8021q pppoe; \
             for n in own peer; do ip netns add $n; ip -n $n link set lo up; \
             ip netns exec $n sh -c 'cd /proc/sys/net/ipv6/conf/default; echo 0 >accept_dad; \
             echo 0 >router_solicitations'; done; \
             ip link add veth0 netns own type veth peer name veth1 netns peer; \
             ip -n own link set veth0 mtu {WIRE_MTU} up; ip -n peer link set veth1 mtu {WIRE_MTU} up"
        ))
        .map(drop)
}

/// Removes both with all that is in them.
pub fn no_namespaces(guest: &Guest) -> Result<()> {
    guest.sh("ip netns del own; ip netns del peer").map(drop)
}

pub struct Line<'a> {
    guest: &'a Guest,
    rxlane: &'a str,
    wire: Wire,
    encapsulation: &'a str,
    datapath: &'a str,
    /// The peer's devices, lowest first; the last one has the addresses.
    devices: Vec<String>,
    session: Option<u32>,
    link: u32,
    is_up: bool,
}

impl Drop for Line<'_> {
    /// After a failure, so that the next line finds nothing of this one.
    fn drop(&mut self) {
        if self.is_up {
            let _ = self.end();
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}, {}", self.encapsulation, self.wire.own, self.datapath)
    }
}

impl<'a> Line<'a> {
    /// Brings both ends up with addresses.
    pub fn up(
        guest: &'a Guest,
        rxlane: &'a str,
        wire: Wire,
        encapsulation: &'a str,
        datapath: &'a str,
    ) -> Result<Line<'a>> {
        let parsed: Encapsulation = encapsulation.parse()?;
        let mut devices = tagged(guest, wire, &parsed)?;
        let (session, stack) = match parsed.pppoe() {
            None => (None, encapsulation.to_owned()),
            Some(pppoe) => {
                let below = devices.last().map_or(wire.peer, String::as_str);
                let number = pppoe.session.context("a session")?;
                let (own, peer) = (mac(guest, "own", wire.own)?, mac(guest, "peer", wire.peer)?);
                let (pid, interface) = session(guest, below, number, &own)?;
                devices.push(interface);
                (Some(pid), format!("{encapsulation}@{peer}"))
            }
        };
        let top = devices.last().context("a device")?;
        let mtu = if session.is_some() { 1492 } else { 1500 };
        let mut up = format!("ip -n peer link set {top} mtu {mtu} up");
        let mut words: Vec<String> =
            ["ip", "netns", "exec", "own", rxlane, "link", "up", "--parent", wire.own]
                .into_iter()
                .chain(["--name", LINK, "--encap", &stack, "--datapath", datapath])
                .map(str::to_owned)
                .collect();
        for (own, peer) in ADDRESSES {
            // A session has two ends and no network.
            if session.is_some() {
                up.push_str(&format!("; ip -n peer addr add {peer} peer {own} dev {top}"));
                words.extend(["--address", own, "--peer", peer].map(str::to_owned));
            } else {
                let bits = if own.contains(':') { "64" } else { "24" };
                up.push_str(&format!("; ip -n peer addr add {peer}/{bits} dev {top}"));
                words.extend(["--address".to_owned(), format!("{own}/{bits}")]);
            }
        }
        guest.sh(&up)?;
        let link = guest.start(&words, OUTPUT)?;
        await_output(guest, OUTPUT, " is up over ")?;
        let line = Line { guest, rxlane, wire, encapsulation, datapath, devices, session, link, is_up: true };
        line.await_routes()?;
        Ok(line)
    }

    /// The kernel takes IPv6 addresses in a moment after they were given, and routes with them.
    fn await_routes(&self) -> Result<()> {
        let [_, (own, peer)] = ADDRESSES;
        let has = |namespace, far, device| {
            until(&format!("ip -n {namespace} route get {far} 2>&1 | grep -q \"dev {device} \""))
        };
        let top = self.devices.last().map_or("", String::as_str);
        let script = [has("own", peer, LINK), has("peer", own, top)].join("; ");
        let waited = self.guest.sh(&script);
        waited.map(drop).with_context(|| {
            let now = self.guest.sh("ip -n own addr; ip -n own -6 route").unwrap_or_default();
            format!("{self}: no route to the other end: {now}")
        })
    }

    /// Ends both ends, and the link's exit code is 0.
    pub fn down(mut self) -> Result<()> {
        let ended = self.rxlane(&["link", "down", LINK])?;
        ensure!(ended.status == 0, "link down: {}{}", ended.text(), ended.errors());
        let status = self.end()?;
        let said = String::from_utf8(self.guest.read(OUTPUT)?)?;
        ensure!(status == Some(0), "the link ended with {status:?}: {said}");
        Ok(())
    }

    /// Gives the link's exit code, if it has ended already.
    fn end(&mut self) -> Result<Option<i32>> {
        self.is_up = false;
        let status = self.guest.signal(self.link, libc::SIGTERM, true)?;
        if let Some(session) = self.session {
            self.guest.signal(session, libc::SIGTERM, true)?;
        }
        if let Some(lowest) = self.devices.first().filter(|lowest| lowest.starts_with("tag")) {
            self.guest.sh(&format!("ip -n peer link del {lowest}"))?;
        }
        Ok(status)
    }

    fn rxlane(&self, words: &[&str]) -> Result<Output> {
        let inside = ["ip", "netns", "exec", "own", self.rxlane];
        self.guest.run(&[&inside[..], words].concat())
    }

    /// What the link says of itself.
    pub fn status(&self) -> Result<Value> {
        let output = self.rxlane(&["link", "status", LINK, "--json", "--interval", "0"])?;
        ensure!(output.status == 0, "link status: {}", output.errors());
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// An answer to a ping of every size, of both versions of IP.
    pub fn pings(&self) -> Result<()> {
        let [(_, four), (_, six)] = ADDRESSES;
        self.guest.sh(&format!(
            "ip netns exec own sh -ec 'for size in {PING_SIZES}; do for far in {four} {six}; do \
             busybox ping -q -c 1 -W 10 -s $size $far; done; done'"
        ))?;
        Ok(())
    }

    /// The offloads at each end: at its parent, which takes them all, and at the device with the addresses, which may
    /// lack some.
    pub fn set(&self, offloads: Offloads) -> Result<()> {
        let top = self.devices.last().map_or("", String::as_str);
        let script =
            [("own", self.wire.own, LINK, offloads.own), ("peer", self.wire.peer, top, offloads.peer)].map(
                |(namespace, parent, top, at)| {
                    let words = at.words();
                    format!(
                        "ip netns exec {namespace} sh -c 'for device in {parent} {top}; do \
                     ethtool -K $device {words} >/dev/null 2>&1; done; ethtool -k {parent}'\n"
                    )
                },
            );
        let said = self.guest.sh(&script.concat())?;
        let mut halves = said.split("Features for ").skip(1);
        for at in [offloads.own, offloads.peer] {
            let now = halves.next().unwrap_or_default();
            let has = |feature: &str| now.lines().any(|line| line.starts_with(&format!("{feature}: on")));
            let [gso, tso, gro, tx] = at.0;
            // A device segments only what it may fill checksums in of.
            ensure!(
                has("generic-segmentation-offload") == gso
                    && has("tcp-segmentation-offload") == (tso && tx)
                    && has("generic-receive-offload") == gro
                    && has("tx-checksumming") == tx,
                "not taken: {}: {now}",
                at.words()
            );
        }
        Ok(())
    }

    /// Bytes over TCP each way, and datagrams, over both versions of IP.
    pub fn transfer(&self, bytes: u32) -> Result<()> {
        let agent = env!("CARGO_BIN_EXE_rxlane-lab");
        let (own, peer): (Vec<&str>, Vec<&str>) = ADDRESSES.into_iter().unzip();
        let (bytes, own, peer) = (bytes.to_string(), own.join(","), peer.join(","));
        let output = self.guest.run(&[
            agent,
            "transfer",
            &bytes,
            DATAGRAM_SIZES,
            "own",
            own.as_str(),
            "peer",
            peer.as_str(),
        ])?;
        ensure!(output.status == 0, "{}", output.errors());
        Ok(())
    }

    /// Everything that counts something wrong at either end, but for frames of a wrong length: the emulated adapters do not
    /// fill short frames up, and count them where they arrive.
    pub fn errors(&self) -> Result<BTreeMap<String, u64>> {
        // The stack has no taker for tags and sessions of the link, and counts each such frame once the packet socket of
        // the link has it.
        let untaken = format!("own {}-rx_dropped", self.wire.own);
        let mut errors = BTreeMap::new();
        for namespace in ["own", "peer"] {
            // One program for all files: each that is started takes a guest a tenth of a second.
            let said = self.guest.sh(&format!(
                "ip netns exec {namespace} sh -c 'cd /sys/class/net; \
                 grep . [!l]*/statistics/[rt]x_errors [!l]*/statistics/[rt]x_dropped \
                 [!l]*/statistics/rx_length_errors; cat /proc/net/snmp6 /proc/net/snmp'"
            ))?;
            errors.extend(wrong(&said).map(|(name, count)| (format!("{namespace} {name}"), count)));
        }
        errors.retain(|name, _| *name != untaken);
        Ok(errors)
    }
}

/// A VLAN device of the kernel for each tag.
fn tagged(guest: &Guest, wire: Wire, encapsulation: &Encapsulation) -> Result<Vec<String>> {
    let tags = encapsulation.tags();
    let mut devices: Vec<String> = Vec::new();
    for (place, tag) in tags.iter().enumerate() {
        let below = devices.last().map_or(wire.peer, String::as_str);
        let protocol = if tag.tpid == EtherType::VLAN { "802.1Q" } else { "802.1ad" };
        let device = format!("tag{place}");
        // Room for the tags above.
        let mtu = 1500 + 4 * (tags.len() - place - 1);
        guest.sh(&format!(
            "ip -n peer link add link {below} name {device} type vlan proto {protocol} id {}; \
             ip -n peer link set {device} mtu {mtu} up",
            tag.tci.vid()
        ))?;
        devices.push(device);
    }
    Ok(devices)
}

/// A session of the kernel that nobody negotiates: its process and its interface.
fn session(guest: &Guest, below: &str, number: u16, far: &str) -> Result<(u32, String)> {
    const SAID: &str = "/tmp/session.output";
    let (agent, number) = (env!("CARGO_BIN_EXE_rxlane-lab"), number.to_string());
    let pid =
        guest.start(&["ip", "netns", "exec", "peer", agent, "session", below, number.as_str(), far], SAID)?;
    let said = await_output(guest, SAID, "ppp")?;
    Ok((pid, said.trim().to_owned()))
}

fn await_output(guest: &Guest, path: &str, text: &str) -> Result<String> {
    let start = Instant::now();
    loop {
        let said = String::from_utf8(guest.read(path)?)?;
        if said.contains(text) && said.ends_with('\n') {
            return Ok(said);
        }
        ensure!(start.elapsed() < crate::LONG, "no {text:?}: {said}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn mac(guest: &Guest, namespace: &str, interface: &str) -> Result<String> {
    let said = guest.sh(&format!("ip netns exec {namespace} cat /sys/class/net/{interface}/address"))?;
    Ok(said.trim().to_owned())
}

/// Counters of errors among those of interfaces (`INTERFACE/statistics/COUNTER:NUMBER`), of `/proc/net/snmp6` (a name and
/// a number a line), and of `/proc/net/snmp` (a line of names, a line of numbers).
fn wrong(said: &str) -> impl Iterator<Item = (String, u64)> {
    const WRONG: [&str; 11] = [
        "CsumErrors",
        "InErrors",
        "InErrs",
        "InHdrErrors",
        "InTruncatedPkts",
        "ReasmFails",
        "FragFails",
        "rx_errors",
        "tx_errors",
        "rx_dropped",
        "tx_dropped",
    ];
    let mut pairs: BTreeMap<String, u64> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let pair = match words.as_slice() {
            [protocol, rest @ ..] if protocol.ends_with(':') && names.first() == Some(protocol) => {
                let numbered = names.iter().skip(1).zip(rest);
                let counted = numbered.map(|(name, number)| (format!("{protocol}{name}"), number.parse()));
                pairs.extend(counted.filter_map(|(name, number)| Some((name, number.ok()?))));
                continue;
            }
            [protocol, ..] if protocol.ends_with(':') => {
                names = words;
                continue;
            }
            [name, number] => Some((*name, *number)),
            [one] => one.split_once(':'),
            _ => None,
        };
        if let Some((name, Ok(number))) = pair.map(|(name, number)| (name, number.parse())) {
            pairs.insert(name.replace("/statistics/", "-"), number);
        }
    }
    // Frames of a wrong length are among the errors.
    let lengths: Vec<(String, u64)> = pairs
        .iter()
        .filter_map(|(name, count)| Some((name.strip_suffix("rx_length_errors")?.to_owned(), *count)))
        .collect();
    for (interface, count) in lengths {
        if let Some(errors) = pairs.get_mut(&format!("{interface}rx_errors")) {
            *errors -= count;
        }
    }
    pairs.into_iter().filter(|(name, _)| WRONG.iter().any(|end| name.ends_with(end)))
}

#[test]
fn counters_of_errors_are_found_and_wrong_lengths_are_none() {
    let said = "igb0/statistics/rx_errors:7\nigb0/statistics/tx_errors:1\nigb0/statistics/rx_dropped:0\n\
        igb0/statistics/rx_length_errors:5\nIp6InHdrErrors                  \t3\nIp6InReceives \t9\n\
        Icmp: InMsgs InErrors InCsumErrors\nIcmp: 8 2 4\nUdp: InDatagrams InErrors\nUdp: 6 0\n";
    let found: Vec<(String, u64)> = wrong(said).collect();
    let expected = [
        ("Icmp:InCsumErrors", 4),
        ("Icmp:InErrors", 2),
        ("Ip6InHdrErrors", 3),
        ("Udp:InErrors", 0),
        ("igb0-rx_dropped", 0),
        ("igb0-rx_errors", 2),
        ("igb0-tx_errors", 1),
    ];
    assert_eq!(found, expected.map(|(name, count)| (name.to_owned(), count)));
}

/// Reasons for which the link dropped what came or went, but for those that say that somebody was slow.
pub fn refused(status: &Value) -> Vec<String> {
    const SLOW: [&str; 2] = ["socket-full", "parent-full"];
    let drops = status["drops"].as_array().into_iter().flatten();
    let wrong = drops.filter(|drop| drop["frames"] != 0 && !SLOW.iter().any(|slow| drop["reason"] == *slow));
    wrong.map(Value::to_string).collect()
}

/// Whether the link got super-packets of the kernel: it made segments of them, or they show in the mean length.
pub fn came_together(status: &Value) -> bool {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let [frames, bytes] = ["frames", "octets"].map(|field| number(&status["received"][field]));
    number(&status["segments"]) > 0 || bytes > frames * u64::from(WIRE_MTU)
}

/// The link's counters in a line.
pub fn summary(status: &Value) -> String {
    let drops: Vec<String> = status["drops"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|drop| drop["frames"] != 0)
        .map(Value::to_string)
        .collect();
    format!(
        "received {}, sent {} frames, segments {}, interface full {}, drops {drops:?}",
        status["received"]["frames"], status["sent"]["frames"], status["segments"], status["interface_full"]
    )
}

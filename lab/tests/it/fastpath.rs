//! `rxlane fastpath` on stock `igb`, with PPPoE and VLAN devices of the kernel: the program is loaded and attached, and what
//! leaves is byte for byte what the kernel sends, in both directions.

use crate::pool::Taken;
use crate::steer::rxlane;
use crate::{LONG, RATE, newer, until};
use anyhow::{Context, Result, ensure};
use rxlane_lab::built::program;
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};
use traffic::{Direction, Popularity, Scenario, Sizes};

/// Connections, a packet each in a burst: IPv4 and IPv6, TCP and UDP.
const FLOWS: usize = 64;
const SEED: u64 = 11;
/// The station behind `wan`: the other end of the session, and the router behind the VLAN devices.
const GATEWAY: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
/// The host behind `lan`.
const HOST: [u8; 6] = [0x02, 0, 0, 0, 0, 2];
/// How long after the last frame none is expected any more.
const SILENCE: Duration = Duration::from_secs(20);
/// Bytes of the MAC addresses of a frame.
const ADDRESSES: usize = 12;

/// What stands between the router and [`GATEWAY`].
#[derive(Clone, Copy)]
enum Line {
    /// A PPPoE session of this number in VLAN 35.
    Pppoe(u16),
    /// VLAN 200 in the service VLAN 100.
    QinQ,
    /// Nothing: it is the LAN.
    Plain,
}

impl Line {
    /// What is before an IP packet there, behind the MAC addresses.
    fn header(self, packet: &[u8]) -> Vec<u8> {
        let is_ipv6 = is_ipv6(packet);
        let ethertype = if is_ipv6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        match self {
            Line::Plain => ethertype.to_vec(),
            Line::QinQ => [&[0x88, 0xa8, 0, 100, 0x81, 0x00, 0, 200], &ethertype[..]].concat(),
            Line::Pppoe(number) => {
                let (session, length) = (number.to_be_bytes(), (packet.len() as u16 + 2).to_be_bytes());
                let protocol = [0x00, if is_ipv6 { 0x57 } else { 0x21 }];
                [&[0x81, 0x00, 0, 35, 0x88, 0x64, 0x11, 0x00][..], &session, &length, &protocol].concat()
            }
        }
    }

    fn frame(self, to: [u8; 6], from: [u8; 6], packet: &[u8]) -> Vec<u8> {
        [&to[..], &from, &self.header(packet), packet].concat()
    }

    /// The IP packet of a frame there; `None`: it is not of a connection, but the kernel's own.
    fn packet(self, frame: &[u8]) -> Option<&[u8]> {
        // The length of the header does not depend on the packet.
        let packet = frame.get(ADDRESSES + self.header(&[0x45]).len()..)?;
        let protocol = packet.get(if is_ipv6(packet) { 6 } else { 9 });
        matches!(protocol, Some(6 | 17)).then_some(packet)
    }
}

fn is_ipv6(packet: &[u8]) -> bool {
    packet.first().is_some_and(|first| first >> 4 == 6)
}

/// A router between a line over `wan` and the host behind `lan`, in a network namespace of its own: it ends with that.
struct Router {
    guest: Taken,
    rxlane: String,
    /// MAC addresses of `wan` and `lan`.
    wan: [u8; 6],
    lan: [u8; 6],
    /// Frames that were sent to its adapters.
    injected: Cell<u64>,
    /// A packet of each connection, as the host sends it.
    requests: Vec<Vec<u8>>,
}

impl Router {
    fn new(guest: Taken, rxlane: String) -> Result<Router> {
        guest.sh(
            "modprobe -a pppoe 8021q nf_conntrack; [ -c /dev/ppp ] || mknod /dev/ppp c 108 0; ip netns add router; \
                  for nic in wan lan; do ip link set $nic netns router; done",
        )?;
        let (wan, lan) = (guest.mac("wan")?.0, guest.mac("lan")?.0);
        let router = Router { guest, rxlane, wan, lan, injected: Cell::default(), requests: requests()? };
        // Nobody answers for the stations, and the carrier goes when the program is attached, with all that was learned.
        router.sh(
            "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 \
               net.ipv4.conf.default.rp_filter=0; \
             for name in udp_timeout udp_timeout_stream; do sysctl -qw net.netfilter.nf_conntrack_$name=900; done; \
             ip link set lo up; ip link set lan promisc on up; ip link set wan promisc on up; \
             ip addr add 100.64.0.1/10 dev lan; ip -6 addr add 2001:db8:8000::1/64 dev lan nodad; \
             ip neigh add 100.64.0.2 lladdr 02:00:00:00:00:02 dev lan; \
             ip neigh add 2001:db8:8000::2 lladdr 02:00:00:00:00:02 dev lan; \
             ip link add link wan name vlan35 type vlan id 35; ip link set vlan35 up; \
             ip link add link wan name outer type vlan protocol 802.1ad id 100; \
             ip link add link outer name inner type vlan id 200; ip link set outer up; ip link set inner up; \
             nft 'table inet router { \
               chain forward { type filter hook forward priority filter; policy drop; ct state invalid drop; \
                 ct state established,related accept; iifname \"lan\" accept; }; \
               chain nat { type nat hook postrouting priority srcnat; oifname \"ppp0\" meta nfproto ipv4 masquerade; }; }'",
        )?;
        router.await_carriers()?;
        Ok(router)
    }

    /// Runs a script where the router is.
    fn sh(&self, script: &str) -> Result<String> {
        let output = self.guest.run(&["ip", "netns", "exec", "router", "sh", "-ec", script])?;
        ensure!(output.status == 0, "{script}: {}{}", output.text(), output.errors());
        Ok(output.text())
    }

    /// Those of the adapters and of what stands on them, which gets its own later.
    fn await_carriers(&self) -> Result<()> {
        for nic in ["wan", "lan", "vlan35", "outer", "inner"] {
            self.sh(&until(&format!("[ \"$(cat /sys/class/net/{nic}/carrier)\" = 1 ]")))?;
        }
        Ok(())
    }

    /// A PPPoE session of the kernel in VLAN 35, over which the default routes lead; the process that has it.
    fn session(&self, number: u16) -> Result<u32> {
        let (agent, number) = (program("rxlane-lab")?.display().to_string(), number.to_string());
        let words =
            ["ip", "netns", "exec", "router", &agent, "session", "vlan35", &number, "02:00:00:00:00:01"];
        self.sh("rm -f /tmp/session")?;
        let pid = self.guest.start(&words, "/tmp/session")?;
        self.sh(&until("[ -s /tmp/session ]"))?;
        self.sh("[ $(cat /tmp/session) = ppp0 ]; \
                 ip link set ppp0 mtu 1492 up; ip addr add 203.0.113.9 peer 203.0.113.1 dev ppp0; \
                 ip route add default dev ppp0; ip -6 route add default dev ppp0")?;
        Ok(pid)
    }

    /// The VLAN devices in the place of the session, routed without translation.
    fn qinq(&self) -> Result<()> {
        self.sh("ip addr add 203.0.113.9/24 dev inner; ip -6 addr add 2001:db8:ffff::9/64 dev inner nodad; \
                 ip neigh add 203.0.113.1 lladdr 02:00:00:00:00:01 dev inner; \
                 ip neigh add 2001:db8:ffff::1 lladdr 02:00:00:00:00:01 dev inner; \
                 ip route replace default via 203.0.113.1; ip -6 route replace default via 2001:db8:ffff::1")
            .map(drop)
    }

    fn command(&self, words: &str) -> Result<String> {
        self.sh(&format!("{} fastpath {words}", self.rxlane))
    }

    fn status(&self) -> Result<Value> {
        let text = self.command("status --json")?;
        serde_json::from_str(&text).with_context(|| text)
    }

    /// Packets that the program has forwarded.
    fn fast(&self) -> Result<u64> {
        self.status()?["packets"]["fast"].as_u64().context("no number")
    }

    /// Waits until all connections are installed.
    fn await_flows(&self) -> Result<()> {
        let start = Instant::now();
        loop {
            let status = self.status()?;
            if status["flows"] == FLOWS {
                return Ok(());
            }
            ensure!(start.elapsed() < LONG, "{status}\n{}", self.sh("cat /proc/net/nf_conntrack; ip route")?);
            // The pause between two queries: what ends the wait is the status.
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends frames to an adapter; the packets of connections that leave by the other one, each once, in an order that does not
    /// depend on who sent them. A guest without CPU time loses one now and then (its queueing discipline drops what has waited): then
    /// all are sent again.
    fn pass(&self, from: &str, (to, line): (&str, Line), frames: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
        let (source, out) = (self.guest.port(from)?, self.guest.port(to)?);
        out.collect();
        let (start, mut left) = (Instant::now(), BTreeSet::new());
        while left.len() < frames.len() && start.elapsed() < LONG {
            source.inject(frames, RATE)?;
            self.injected.set(self.injected.get() + frames.len() as u64);
            let mut last = Instant::now();
            while left.len() < frames.len() && last.elapsed() < SILENCE {
                for frame in out.collect().into_iter().filter(|frame| line.packet(frame).is_some()) {
                    last = Instant::now();
                    left.insert(frame);
                }
                // The pause between two reads of the port: what ends the wait is the number of frames, or that none comes.
                thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(left.into_iter().collect())
    }

    /// A packet of each connection to the line, and the answer to each of `answered`: the frames that leave.
    fn exchange(&self, line: Line, answered: &[Vec<u8>]) -> Result<[Vec<Vec<u8>>; 2]> {
        let frames: Vec<Vec<u8>> =
            self.requests.iter().map(|packet| Line::Plain.frame(self.lan, HOST, packet)).collect();
        let requests = self.pass("lan", ("wan", line), &frames)?;
        let answers: Vec<Vec<u8>> =
            answered.iter().map(|packet| line.frame(self.wan, GATEWAY, &answer(packet))).collect();
        Ok([requests, self.pass("wan", ("lan", Line::Plain), &answers)?])
    }

    /// Exchanges until all connections are in the fast path, then once more: what leaves is that, and no packet passed the kernel.
    fn goes_fast(&self, line: Line, sent: &[Vec<u8>], received: &[Vec<u8>]) -> Result<()> {
        let expected = [
            sorted(sent.iter().map(|packet| line.frame(GATEWAY, self.wan, packet))),
            sorted(received.iter().map(|packet| Line::Plain.frame(HOST, self.lan, packet))),
        ];
        // The kernel's, where a connection is new.
        ensure!(self.exchange(line, sent)? == expected, "frames are others while connections are installed");
        self.await_flows()?;
        let before = (self.fast()?, self.injected.get());
        ensure!(self.exchange(line, sent)? == expected, "frames of the fast path are others");
        let (fast, injected) = (self.fast()? - before.0, self.injected.get() - before.1);
        ensure!(
            (2 * FLOWS as u64..=injected).contains(&fast),
            "{fast} packets of {injected}: {}",
            self.status()?
        );
        Ok(())
    }
}

impl Drop for Router {
    /// The adapters are where they were; they lose what the namespace has put on them.
    fn drop(&mut self) {
        let _ = self.guest.sh(
            "ip netns pids router | xargs -r kill; for nic in vlan35 outer; do ip -n router link del $nic; done; \
             for nic in wan lan; do ip -n router link set $nic down; ip -n router link set $nic promisc off netns 1; done; \
             ip netns del router",
        );
    }
}

fn requests() -> Result<Vec<Vec<u8>>> {
    let mut scenario = Scenario::new("none".parse()?).with_flows(FLOWS as u32).data_only();
    scenario.direction = Direction::Upstream;
    scenario.subscribers = 1;
    scenario.popularity = Popularity::RoundRobin;
    (scenario.ipv6_percent, scenario.udp_percent) = (50, 50);
    scenario.sizes = Sizes::Range(100, 1400);
    let mut generator = scenario.generate(SEED)?;
    let packet = |_| {
        let frame = generator.next_frame().bytes.to_vec();
        Line::Plain.packet(&frame).map(<[u8]>::to_vec).context("no packet of a connection")
    };
    (0..FLOWS).map(packet).collect()
}

/// Addresses, ports and numbers of TCP swapped, which leaves the checksums as they are.
fn answer(packet: &[u8]) -> Vec<u8> {
    let (addresses, length, header) = if is_ipv6(packet) { (8, 16, 40) } else { (12, 4, 20) };
    let is_tcp = packet[if is_ipv6(packet) { 6 } else { 9 }] == 6;
    let mut answer = packet.to_vec();
    answer[addresses..addresses + 2 * length].rotate_left(length);
    answer[header..header + 4].rotate_left(2);
    if is_tcp {
        answer[header + 4..header + 12].rotate_left(4);
    }
    answer
}

/// A packet behind a router that translates nothing: TTL or hop limit is one less (RFC 1624, equation 3, for the checksum).
fn routed(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if is_ipv6(&packet) {
        packet[7] -= 1;
        return packet;
    }
    packet[8] -= 1;
    packet[10..12].fill(0);
    let checksum = !sum(&packet[..20]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet
}

/// The sum of 16-bit words in ones' complement (RFC 1071).
fn sum(words: &[u8]) -> u16 {
    let word = |two: &[u8]| u32::from(two[0]) << 8 | u32::from(two.get(1).copied().unwrap_or_default());
    let mut sum: u32 = words.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Whether the checksum of TCP or UDP is right.
fn is_intact(packet: &[u8]) -> bool {
    let (addresses, header, protocol) =
        if is_ipv6(packet) { (8..40, 40, packet[6]) } else { (12..20, 20, packet[9]) };
    let length = (packet.len() - header) as u16;
    let pseudo = [&packet[addresses], &length.to_be_bytes(), &[0, protocol]].concat();
    sum(&[&pseudo, &packet[header..]].concat()) == 0xffff
}

fn sorted(frames: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut frames: Vec<Vec<u8>> = frames.collect();
    frames.sort_unstable();
    frames
}

/// The packets of frames.
fn packets(frames: &[Vec<u8>], line: Line) -> Vec<Vec<u8>> {
    frames.iter().filter_map(|frame| line.packet(frame)).map(<[u8]>::to_vec).collect()
}

/// What the kernel makes of requests and of answers over a session with masquerade.
fn reference(router: &Router, line: Line) -> Result<[Vec<Vec<u8>>; 2]> {
    let [requests, _] = router.exchange(line, &[])?;
    let sent = packets(&requests, line);
    let [again, answers] = router.exchange(line, &sent)?;
    let received = packets(&answers, Line::Plain);
    ensure!((sent.len(), received.len()) == (FLOWS, FLOWS), "{} and {}", sent.len(), received.len());
    let others: Vec<_> = again.iter().filter(|frame| !requests.contains(frame)).collect();
    ensure!(again == requests, "the kernel sends {} frames again, of them others {others:02x?}", again.len());
    let translated =
        sent.iter().filter(|packet| !is_ipv6(packet) && packet[12..16] == [203, 0, 113, 9]).count();
    let ipv4 = router.requests.iter().filter(|packet| !is_ipv6(packet)).count();
    ensure!(ipv4 > FLOWS / 4 && translated == ipv4, "{translated} of {ipv4} are translated");
    ensure!(sent.iter().chain(&received).all(|packet| is_intact(packet)), "checksums of the reference");
    Ok([sent, received])
}

fn is_stripping(router: &Router) -> Result<bool> {
    Ok(router.sh("ethtool -k wan | grep rx-vlan-offload")?.contains(": on"))
}

fn forwards(router: &Router) -> Result<()> {
    ensure!(is_stripping(router)?);
    let session = router.session(1)?;
    let [sent, received] = reference(router, Line::Pppoe(1))?;
    println!("{}", router.command("up wan lan --daemon --disable-rxvlan")?);
    router.await_carriers()?;
    ensure!(!is_stripping(router)? && router.status()?["mode"] == "native");
    // Connections from before are installed without a packet.
    router.await_flows()?;
    router.goes_fast(Line::Pppoe(1), &sent, &received)?;

    // The line was cut: the session has another number, and masquerade has forgotten its connections.
    router.guest.signal(session, libc::SIGTERM, true)?;
    let session = router.session(2)?;
    router.goes_fast(Line::Pppoe(2), &sent, &received)?;

    router.guest.signal(session, libc::SIGTERM, true)?;
    router.qinq()?;
    let untranslated: Vec<Vec<u8>> = router.requests.iter().map(|packet| routed(packet)).collect();
    router.goes_fast(Line::QinQ, &untranslated, &received)?;
    println!("{}", router.command("status")?);

    // The program waits ten seconds for the daemon's end, which an emulated machine next to others does not keep.
    router.sh(&until(&format!("{0} fastpath down || ! {0} fastpath status", router.rxlane)))?;
    router.await_carriers()?;
    ensure!(is_stripping(router)? && !router.sh("ip link show wan")?.contains("xdp"));
    // The connections go on by the kernel, whose windows of TCP are not what they were.
    let expected = sorted(untranslated.iter().map(|packet| Line::QinQ.frame(GATEWAY, router.wan, packet)));
    let [left, _] = router.exchange(Line::QinQ, &untranslated)?;
    let is_missing = |frame: &&Vec<u8>| !left.contains(frame);
    let missing: Vec<&Vec<u8>> = expected.iter().filter(is_missing).collect();
    ensure!(
        left == expected,
        "after the end {} frames leave; {} are missing, as {:02x?}\n{}",
        left.len(),
        missing.len(),
        missing.first(),
        router.sh(
            "ip -s link; ip neigh; ip route; cat /proc/net/nf_conntrack; cat /proc/net/stat/nf_conntrack"
        )?
    );
    Ok(())
}

#[test]
fn established_connections_leave_as_the_kernel_sends_them() {
    let (Some(rxlane), Some(guest)) = (rxlane(), newer()) else { return };
    let router = Router::new(guest, rxlane).expect("a router");
    forwards(&router).expect("forwarded");
}

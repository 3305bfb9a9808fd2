//! The remedies of `flowtable-off`, `flowtable-devices` and `flowtable-bypassed` on a stock kernel: a router with PPPoE of
//! the kernel over `igb`, the commands that doctor prints, and which way packets take before and after.

use crate::pool::Turn;
use crate::steer::rxlane;
use crate::{LONG, RATE};
use anyhow::{Context, Result, ensure};
use rxlane_lab::built::program;
use rxlane_lab::{Guest, Lab, Model, Nic, Series, Spec};
use serde_json::Value;
use traffic::{Popularity, Scenario, Sizes};

/// Flows, one packet each in a burst.
const FLOWS: u64 = 64;
const SEED: u64 = 5;
const FLOW_ADD: &str = "meta l4proto { tcp, udp } flow add @f";
/// The other end of the session, whose frames are injected.
const GATEWAY: &str = "02:00:00:00:00:01";
/// A full CPU, as a text shows it: how busy a guest is depends on the machine below it.
const FULL: &str = "$ mpstat -P ALL 1 1\n\
    12:00:01     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n\
    12:00:02       0    0.00    0.00    1.00    0.00    0.00   98.00    0.00    0.00    0.00    1.00\n\
    12:00:02       1    0.00    0.00    1.00    0.00    0.00    1.00    0.00    0.00    0.00   98.00\n";

/// A router between a PPPoE session over `wan`, whose frames are injected, and `lan`.
struct Router {
    guest: Guest,
    rxlane: String,
    burst: Vec<Vec<u8>>,
    answers: Vec<Vec<u8>>,
}

impl Router {
    fn boot() -> Result<Option<Router>> {
        let (Some(lab), Some(rxlane)) = (Lab::require(), rxlane()) else { return Ok(None) };
        let nics = vec![Nic::new("wan", Model::Igb), Nic::new("lan", Model::Igb)];
        let guest = lab.boot(&Spec { cpus: 2, nics, ..Spec::new(Series::V6_12) })?;
        // A connection that conntrack forgets while doctor runs (30 s without an answer) would begin anew, and not enter.
        guest.sh(
            "modprobe pppoe; sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0; \
             modprobe nf_flow_table; for name in flowtable_udp_timeout conntrack_udp_timeout conntrack_udp_timeout_stream; \
             do sysctl -qw net.netfilter.nf_$name=900; done; ip link set wan up; ip link set lan up",
        )?;
        guest.await_carrier("wan")?;
        guest.await_carrier("lan")?;
        let session = [program("rxlane-lab")?.display().to_string().as_str(), "session", "wan", "1", GATEWAY]
            .map(str::to_owned);
        guest.start(&session, "/tmp/session")?;
        // A firewall as many have it, which counts what passes it. Its rule on states makes the kernel track connections.
        guest.sh(
            "until [ -s /tmp/session ]; do sleep 0.1; done; ip link set $(cat /tmp/session) mtu 1492 up; \
             ip addr add 192.0.2.1/24 dev lan; ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev lan; \
             ip route add 100.64.0.0/10 via 192.0.2.2; ip route add 198.18.0.0/15 dev ppp0; \
             nft 'table inet filter { chain forward { type filter hook forward priority filter; policy drop; \
                  ct state invalid drop; iifname \"ppp0\" oifname \"lan\" counter accept; iifname \"lan\" oifname \"ppp0\" accept; }; }'",
        )?;
        let burst = frames(&guest)?;
        let station = guest.mac("lan")?.0;
        let answers = burst.iter().map(|frame| answer(frame, station)).collect();
        guest.write("/tmp/full", FULL.as_bytes())?;
        Ok(Some(Router { guest, rxlane, burst, answers }))
    }

    /// A packet of each flow; gives how many of them passed the rules of the forward chain.
    fn send(&self) -> Result<u64> {
        let before = (self.guest.counter("lan", "tx_packets")?, self.passed()?);
        self.guest.port("wan")?.inject(&self.burst, RATE)?;
        self.guest.await_counter("lan", "tx_packets", before.0 + FLOWS, LONG)?;
        Ok(self.passed()? - before.1)
    }

    /// A packet of each flow back, so that conntrack has seen both ends.
    fn answer(&self) -> Result<()> {
        let before = self.guest.counter("wan", "tx_packets")?;
        self.guest.port("lan")?.inject(&self.answers, RATE)?;
        self.guest.await_counter("wan", "tx_packets", before + FLOWS, LONG).map(drop)
    }

    /// Packets that the rule of the firewall has counted.
    fn passed(&self) -> Result<u64> {
        let text = self.guest.sh("nft list chain inet filter forward")?;
        let count =
            text.split_once("counter packets ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        count.with_context(|| format!("no counter: {text}"))
    }

    /// Sees that flows enter the flowtable with one burst, and the next bypasses the rules; doctor has nothing to say of it.
    fn expect_offload(&self) {
        assert_eq!(self.send().expect("sent"), FLOWS);
        assert_eq!(self.send().expect("sent"), 0, "packets that pass the rules");
        let offloaded = self.guest.sh("grep -c OFFLOAD /proc/net/nf_conntrack").expect("entries");
        assert_eq!(offloaded.trim(), FLOWS.to_string());
        for id in ["flowtable-off", "flowtable-devices", "flowtable-bypassed"] {
            assert_eq!(self.findings(id).expect("a report"), Vec::<Value>::new(), "{id}");
        }
    }

    /// Puts a firewall with a flowtable of both devices and these rules first in place of all others.
    fn filter(&self, rules: &str) -> Result<()> {
        self.guest.sh(&format!(
            "nft 'flush ruleset; table inet filter {{ \
                 flowtable f {{ hook ingress priority filter; devices = {{ wan, lan }}; }}; \
                 chain forward {{ type filter hook forward priority filter; policy drop; {rules}; \
                 iifname \"ppp0\" oifname \"lan\" accept; iifname \"lan\" oifname \"ppp0\" accept; }}; }}'; \
             while grep -q OFFLOAD /proc/net/nf_conntrack; do sleep 0.1; done"
        ))?;
        // What leaves a flowtable may expire with that (flow_offload_fixup_ct()): connections begin anew.
        self.send()?;
        self.answer()
    }

    fn nft(&self, words: &str) {
        self.guest.sh(&format!("nft '{words}'")).expect("nft");
    }

    /// The findings of that id on the guest's bundle, and a full CPU with it.
    fn findings(&self, id: &str) -> Result<Vec<Value>> {
        let rxlane = &self.rxlane;
        self.guest.sh(&format!("{rxlane} collect --seconds 0 --force -o /tmp/bundle"))?;
        let doctor =
            self.guest.run(&[rxlane, "doctor", "--from", "/tmp/bundle", "--from", "/tmp/full", "--json"])?;
        let report: Value = serde_json::from_str(&doctor.text()).with_context(|| doctor.errors())?;
        let findings = report["findings"].as_array().context("no findings")?;
        Ok(findings.iter().filter(|finding| finding["id"] == id).cloned().collect())
    }

    /// Applies exactly what the only finding of that id prints, of its remedies that of nft.
    fn applies(&self, id: &str) -> Result<()> {
        let findings = self.findings(id)?;
        ensure!(findings.len() == 1, "{id}: {findings:?}");
        let remedies = findings[0]["remedies"].as_array().context("no remedies")?;
        let mut commands = remedies.iter().filter_map(|remedy| remedy["commands"].as_array());
        let is_nft = |commands: &&Vec<Value>| {
            commands.first().and_then(Value::as_str).is_some_and(|first| first.starts_with("nft "))
        };
        let commands = commands.find(is_nft).with_context(|| format!("no command of nft: {remedies:?}"))?;
        for command in commands.iter().filter_map(Value::as_str) {
            println!("{id}: {command}");
            self.guest.sh(command)?;
        }
        Ok(())
    }
}

/// UDP, whose flows enter with their second packet.
fn frames(guest: &Guest) -> Result<Vec<Vec<u8>>> {
    let mut scenario =
        Scenario::new(format!("pppoe:1@{GATEWAY}").parse()?).with_flows(FLOWS as u32).data_only();
    scenario.popularity = Popularity::RoundRobin;
    scenario.ipv6_percent = 0;
    scenario.udp_percent = 100;
    scenario.sizes = Sizes::Fixed(200);
    let mut generator = scenario.generate(SEED)?;
    let station = guest.mac("wan")?;
    let frame = |_| {
        let mut frame = generator.next_frame().bytes.to_vec();
        frame[..6].copy_from_slice(&station.0);
        frame
    };
    Ok((0..FLOWS).map(frame).collect())
}

/// The answer to a frame of the session: addresses and ports swapped, which leaves the checksums as they are.
fn answer(frame: &[u8], station: [u8; 6]) -> Vec<u8> {
    // Ethernet, PPPoE and PPP headers of 14, 6 and 2 bytes; an IPv4 header of 20.
    let mut packet = frame[22..].to_vec();
    for at in 0..4 {
        packet.swap(12 + at, 16 + at);
    }
    packet.swap(20, 22);
    packet.swap(21, 23);
    [&station[..], &[0x02, 0, 0, 0, 0, 2, 0x08, 0x00], &packet].concat()
}

#[test]
#[ignore = "make nightly"]
fn the_printed_commands_put_pppoe_into_the_flowtable() {
    let _turn = Turn::take();
    let Some(router) = Router::boot().expect("a router") else { return };
    // Every packet passes the rules, and doctor says what is missing.
    assert_eq!(router.send().expect("sent"), FLOWS);
    router.answer().expect("answered");
    assert_eq!(router.send().expect("sent"), FLOWS);
    router.applies("flowtable-off").expect("applied");
    router.expect_offload();
    println!("{}", router.guest.sh("grep -A30 'nft list ruleset' /tmp/bundle").expect("the bundle"));

    // Without the device on which they arrive, packets pass the rules though their connections are in the flowtable.
    router.nft("delete flowtable inet rxlane fast { hook ingress priority filter; devices = { wan }; }");
    assert_eq!(router.send().expect("sent"), FLOWS);
    router.applies("flowtable-devices").expect("applied");
    assert_eq!(router.findings("flowtable-devices").expect("a report"), Vec::<Value>::new());
    router.send().expect("sent");
    assert_eq!(router.send().expect("sent"), 0, "packets that pass the rules");

    // A flowtable whose rule no established packet comes to, and one whose rule takes none.
    let accept = "ct state established,related counter accept";
    for rules in [format!("{accept}; {FLOW_ADD}"), format!("ct state new {FLOW_ADD}; {accept}")] {
        router.filter(&rules).expect("a firewall");
        assert_eq!(router.send().expect("sent"), FLOWS, "{rules}");
        router.applies("flowtable-bypassed").expect("applied");
        router.expect_offload();
    }
}

//! A transfer through a router whose line is PPPoE in a VLAN, while everything below it changes and fails.
//!
//! Each fault comes once; `RXLANE_SECONDS` says for how long all are repeated (`make nightly`: ten minutes).

use super::ended::forget;
use super::links::link;
use super::router::{BEHIND, CLIENT, FAR, LAN, PORT, Router, WAN, at, ip, mac};
use super::sniffer::{Sniffer, TCP};
use super::transfer::Transfer;
use crate::process::Process;
use crate::run::Ended;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::{require, wait_until};

/// The second line to the server, without tags.
const SECOND: &str = "wan1";
const SECOND_FAR: &str = "eth1";
const SECOND_OUTSIDE: &str = "10.3.0.1";
/// The router's address on the PPPoE line, and the next one.
const OUTSIDE: [&str; 2] = ["10.9.0.1", "10.9.0.7"];
const PPPOE_SERVER: &str = "10.9.0.2";
/// Bytes after which a transfer goes on.
const SOME: u64 = 1 << 18;
/// A stopped daemon, where faults are repeated.
const STOPPED: Duration = Duration::from_secs(10);

/// Where faults happen.
struct Site {
    router: Router,
    transfer: Transfer,
    up: RefCell<Option<Process>>,
    line: RefCell<Vec<Process>>,
    session: RefCell<u8>,
    is_long: bool,
}

impl Site {
    fn new(is_long: bool) -> Option<Site> {
        require("tun", crate::machine::tun())?;
        let mut router = Router::with_line(1516)?;
        router.line_to_server(SECOND, SECOND_FAR, 1500);
        router.address(&router.router, SECOND, &[&format!("{SECOND_OUTSIDE}/24")]);
        router.address(&router.server, SECOND_FAR, &["10.3.0.2/24"]);
        router.address(&router.server, "lo", &[&format!("{BEHIND}/32")]);
        // Packets whose connection conntrack does not know are the router's own: it is not to answer them with RST.
        router.nft(
            "table inet own {
            chain input { type filter hook input priority 0; ip saddr 10.99.0.1 drop; }
        }",
        );
        let site = Site {
            router,
            transfer: Transfer::default(),
            up: RefCell::new(None),
            line: RefCell::new(Vec::new()),
            session: RefCell::new(6),
            is_long,
        };
        site.connect(OUTSIDE[0]);
        site.come_up();
        Some(site)
    }

    /// Another PPPoE session, with this address.
    fn connect(&self, address: &str) {
        for end in self.line.borrow_mut().drain(..) {
            end.interrupted();
        }
        let session = self.session.replace_with(|session| *session % 200 + 1);
        let Router { router, server, .. } = &self.router;
        let encapsulation = |peer: [u8; 6]| {
            let peer = peer.map(|byte| format!("{byte:02x}")).join(":");
            format!("q:35,pppoe:{session}@{peer}")
        };
        let near = encapsulation(mac(server, FAR));
        let far = encapsulation(mac(router, WAN));
        let near = link(&self.router, router, WAN, &near, &format!("{address}/24"));
        let far = link(&self.router, server, FAR, &far, &format!("{PPPOE_SERVER}/24"));
        self.line.borrow_mut().extend([near, far]);
        self.route_by(PPPOE_SERVER);
    }

    fn route_by(&self, server: &str) {
        self.router.ip(&["route", "replace", BEHIND, "via", server]);
    }

    fn come_up(&self) {
        let up = self.router.up_on(&[LAN, "sub0", SECOND], &["--disable-rxvlan"]);
        self.up.replace(Some(up));
    }

    fn daemon(&self) -> Process {
        self.up.take().expect("it is up")
    }

    /// The transfer goes on, and the program forwards its packets.
    #[track_caller]
    fn is_fast(&self) {
        let (bytes, what) = (self.transfer.downloaded(), || self.router.status());
        wait_until(std::fmt::from_fn(|f| write!(f, "it is fast: {:#}", what())), || {
            let fast = self.router.fast();
            self.goes_on();
            self.router.fast() > fast + 50
        });
        assert!(self.transfer.downloaded() > bytes);
    }

    #[track_caller]
    fn goes_on(&self) {
        let bytes = self.transfer.downloaded();
        wait_until("the transfer goes on", || self.transfer.downloaded() > bytes + SOME);
    }

    fn forget(&self) -> bool {
        forget(&self.router, TCP, self.transfer.client(), at(BEHIND, PORT))
    }

    /// Something that ends the connection by the kernel alone, too: another one takes its place.
    #[track_caller]
    fn ends_by(&self, fault: impl FnOnce()) {
        let connections = self.transfer.connections();
        fault();
        wait_until("another connection", || self.transfer.connections() > connections);
    }
}

type Fault = (&'static str, fn(&Site));

const FAULTS: [Fault; 11] = [
    ("a neighbour's MAC address", neighbour),
    ("another session", |site| site.connect(OUTSIDE[0])),
    ("another session and address", |site| {
        for address in [OUTSIDE[1], OUTSIDE[0]] {
            site.ends_by(|| site.connect(address));
            site.is_fast();
        }
    }),
    ("a route by another port", |site| {
        for server in ["10.3.0.2", PPPOE_SERVER] {
            // The address of a masquerade is that of its interface: the kernel ends the connection (`nf_nat_oif_changed()`).
            site.ends_by(|| site.route_by(server));
            site.is_fast();
        }
    }),
    ("a rule that drops", rule),
    ("a connection that conntrack forgets", |site| assert!(site.forget())),
    ("a port that is down", |site| {
        for port in [LAN, WAN] {
            site.router.ip(&["link", "set", port, "down"]);
            site.router.wait_for_flows(0);
            site.router.ip(&["link", "set", port, "up"]);
            if port == WAN {
                // Its link has lost nothing.
                site.route_by(PPPOE_SERVER);
            }
            site.is_fast();
        }
    }),
    ("a daemon that is killed", |site| {
        site.daemon().killed();
        site.goes_on();
        site.router.run(&["status"]).ends(1);
        site.come_up();
    }),
    ("a daemon that is stopped", stopped),
    ("flush", |site| {
        site.router.run(&["flush"]).ends(0).says("removed");
    }),
    ("down and up", |site| {
        site.router.run(&["down"]).ends(0).says("The fast path is off.");
        site.daemon().ended().ends(0);
        assert!(!site.router.has_program(LAN) && !site.router.has_program(WAN));
        site.goes_on();
        site.come_up();
    }),
];

fn neighbour(site: &Site) {
    let Router { client, router, .. } = &site.router;
    let former = mac(client, FAR).map(|byte| format!("{byte:02x}")).join(":");
    for address in ["02:00:00:00:00:77", &former] {
        ip(client, &["link", "set", FAR, "address", address]);
        ip(router, &["neigh", "replace", "10.1.0.2", "lladdr", address, "dev", LAN, "nud", "reachable"]);
        site.is_fast();
    }
}

/// It stops the transfer once the connection is forgotten, for as long as the rule is there.
fn rule(site: &Site) {
    let router = &site.router;
    router.nft(
        "table inet forbidden {
        counter dropped { }
        chain forward { type filter hook forward priority -1; ip daddr 10.99.0.1 counter name dropped drop; }
    }",
    );
    let ended = router.removed("ended");
    assert!(site.forget());
    wait_until("its entry is removed", || router.removed("ended") > ended);
    let mut outside = Sniffer::on(&router.server, FAR);
    let fast = router.fast();
    wait_until("the rule drops", || {
        let listed = router.router.run("nft", &["list", "counter", "inet", "forbidden", "dropped"]);
        !listed.expect("nft").contains("packets 0 ")
    });
    let passed = outside.packets().into_iter().filter(|packet| packet.destination == at(BEHIND, PORT));
    assert_eq!(passed.count(), 0, "packets behind the rule");
    assert_eq!(router.fast(), fast);
    router.router.run("nft", &["delete", "table", "inet", "forbidden"]).expect("nft");
}

fn stopped(site: &Site) {
    let router = &site.router;
    let up = site.daemon();
    up.signal("STOP");
    let (since, before) = (Instant::now(), router.forwarded_by_kernel());
    wait_until("the kernel forwards", || {
        let is_over = !site.is_long || since.elapsed() > STOPPED;
        router.forwarded_by_kernel() >= before + 10 && is_over
    });
    site.goes_on();
    up.signal("CONT");
    site.up.replace(Some(up));
}

/// Looks at every packet that arrives at both ends until it is over: checksums, addresses, ports. They are counted in `packets`.
fn watch(router: &Router, is_over: &AtomicBool, packets: &AtomicU64) {
    let mut client = Sniffer::on(&router.client, FAR);
    let lines = [(FAR, &OUTSIDE[..]), (SECOND_FAR, &[SECOND_OUTSIDE][..])];
    let mut servers = lines.map(|(name, outside)| (Sniffer::on(&router.server, name), outside));
    let own = at(CLIENT, 0).ip();
    while !is_over.load(Ordering::Relaxed) {
        for packet in client.packets().into_iter().filter(|packet| packet.protocol == TCP) {
            assert_eq!((packet.source, packet.destination.ip()), (at(BEHIND, PORT), own), "{packet:?}");
            packets.fetch_add(1, Ordering::Relaxed);
        }
        for (sniffer, outside) in &mut servers {
            for packet in sniffer.packets().into_iter().filter(|packet| packet.protocol == TCP) {
                assert_eq!(packet.destination, at(BEHIND, PORT), "{packet:?}");
                let source = packet.source.ip().to_string();
                assert!(outside.contains(&source.as_str()), "{packet:?}");
                packets.fetch_add(1, Ordering::Relaxed);
            }
        }
        // The pause between two looks at what sniffers hold: the end is that of the transfer.
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_transfer_survives_all_faults() {
    let seconds = std::env::var("RXLANE_SECONDS").ok().map(|text| text.parse().expect("RXLANE_SECONDS"));
    let until = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let Some(site) = Site::new(until.is_some()) else { return };
    let (is_over, packets) = (AtomicBool::new(false), AtomicU64::new(0));
    let Site { router, transfer, .. } = &site;
    thread::scope(|scope| {
        scope.spawn(|| transfer.run(router));
        let watched = scope.spawn(|| watch(router, &is_over, &packets));
        // Whatever fails here, the threads end.
        let work = catch_unwind(AssertUnwindSafe(|| {
            site.is_fast();
            let (start, mut rounds) = (Instant::now(), 0);
            loop {
                for (name, fault) in FAULTS {
                    fault(&site);
                    site.is_fast();
                    assert!(!watched.is_finished(), "the sniffer has failed");
                    eprintln!("{:.1} s: {name}", start.elapsed().as_secs_f64());
                }
                rounds += 1;
                if until.is_none_or(|until| Instant::now() > until) {
                    let (bytes, connections) = (transfer.downloaded(), transfer.connections());
                    let packets = packets.load(Ordering::Relaxed);
                    let seconds = start.elapsed().as_secs();
                    eprintln!(
                        "{rounds} rounds of {} faults, {seconds} s, {bytes} bytes, {packets} packets examined, {connections} connections",
                        FAULTS.len()
                    );
                    break;
                }
            }
        }));
        transfer.end();
        is_over.store(true, Ordering::Relaxed);
        work.unwrap_or_else(|panic| resume_unwind(panic));
    });
    site.router.assert_counters_add_up();
}

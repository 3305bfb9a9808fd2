//! A client, a router with the fast path, and a server, each in a network namespace of its own.

use crate::machine::speak_ipv6;
use crate::process::Process;
use crate::run::{BINARY, Ended};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Output, Stdio};
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require, wait_until};
use xdp::forward::{Forwarding, Port};
use xdp::{Interface, Mode};

use super::sniffer::Sniffer;
use super::traffic::Datagrams;

/// Ports of the router.
pub const LAN: &str = "lan0";
pub const WAN: &str = "wan0";
/// The interface of the client, and that of the server.
pub const FAR: &str = "eth0";

pub const CLIENT: &str = "10.1.0.2";
pub const SERVER: &str = "10.2.0.2";
/// The router's address towards the server.
pub const OUTSIDE: &str = "10.2.0.1";
pub const CLIENT_IPV6: &str = "fd01::2";
pub const SERVER_IPV6: &str = "fd02::2";
/// An address of the server that stands on no line.
pub const BEHIND: &str = "10.99.0.1";
/// Where servers listen.
pub const PORT: u16 = 7777;

/// Rules that let the client begin connections, and the server where `dnat` sends it; what is forwarded by the kernel is counted.
const FILTER: &str = "table inet filter {
 counter forwarded { }
 chain forward {
  type filter hook forward priority filter; policy drop;
  counter name forwarded
  ct state established,related accept
  iifname lan0 accept
  iifname br0 accept
  ct status dnat accept
 }
}";

/// Translation of the client's addresses, and of a port to the client.
const TRANSLATION: &str = "table ip nat {
 chain pre {
  type nat hook prerouting priority dstnat;
  ip daddr 10.2.0.1 udp dport 7777 dnat to 10.1.0.2
  ip daddr 10.2.0.1 tcp dport 7777 dnat to 10.1.0.2
 }
 chain post {
  type nat hook postrouting priority srcnat;
  ip saddr 10.1.0.0/24 oifname != lan0 masquerade
 }
}";

/// What address and port are.
pub fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// Takes what a fast path redirects to an interface: a veth does so with a program at its other end (Linux drivers/net/veth.c,
/// `veth_xdp_xmit`). This one passes everything.
struct Receiver {
    _port: Port,
    _program: Forwarding,
}

pub struct Router {
    receivers: Vec<Receiver>,
    pub client: Namespace,
    pub router: Namespace,
    pub server: Namespace,
    folder: tempfile::TempDir,
}

impl Router {
    /// Addresses are routed as they are. `None` where it cannot be made.
    pub fn routed() -> Option<Router> {
        let router = Router::bare(1500)?;
        router.nft(FILTER);
        Some(router)
    }

    /// Those of the client are translated.
    pub fn translating() -> Option<Router> {
        Router::with_line(1500)
    }

    /// The same with a line to the server that has this MTU.
    pub fn with_line(mtu: u32) -> Option<Router> {
        let router = Router::bare(mtu)?;
        router.nft(FILTER);
        router.nft(TRANSLATION);
        Some(router)
    }

    /// Without rules. `mtu`: that of the line to the server.
    fn bare(mtu: u32) -> Option<Router> {
        require("nft", program("nft"))?;
        require("ethtool", program("ethtool"))?;
        require("netns", probe())?;
        let loaded = Forwarding::load(1, 1).map(drop).map_err(|error| Missing(error.to_string()));
        require("bpf", loaded)?;
        let [client, router, server] = std::array::from_fn(|_| Namespace::new().expect("a namespace"));
        let tracked = router.inside(|| kernel::netlink::netfilter::conntrack::each(|_| ()));
        require("conntrack", tracked.map_err(|error| Missing(error.to_string())))?;
        for namespace in [&client, &router, &server] {
            speak_ipv6(namespace);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let mut made = Router { receivers: Vec::new(), client, router, server, folder };
        made.router.inside(|| {
            let forwarding = ["ipv4/ip_forward", "ipv6/conf/all/forwarding"];
            for setting in forwarding {
                fs::write(format!("/proc/sys/net/{setting}"), "1").expect("a setting");
            }
            for scope in ["all", "default"] {
                fs::write(format!("/proc/sys/net/ipv4/conf/{scope}/rp_filter"), "0").expect("a setting");
            }
        });
        made.line_to_client(LAN, FAR);
        made.line_to_server(WAN, FAR, mtu);
        made.address(&made.client, FAR, &["10.1.0.2/24", "fd01::2/64"]);
        made.address(&made.router, LAN, &["10.1.0.1/24", "fd01::1/64"]);
        made.address(&made.router, WAN, &["10.2.0.1/24", "fd02::1/64"]);
        made.address(&made.server, FAR, &["10.2.0.2/24", "fd02::2/64"]);
        for (namespace, via) in
            [(&made.client, ["10.1.0.1", "fd01::1"]), (&made.server, ["10.2.0.1", "fd02::1"])]
        {
            for via in via {
                ip(namespace, &["route", "add", "default", "via", via]);
            }
        }
        Some(made)
    }

    /// A line from the router to the client, and one to the server.
    pub fn line_to_client(&mut self, near: &str, far: &str) {
        let pair = Veth { peer: Some(&self.client), ..Veth::pair(near, far) };
        self.router.veth(&pair).expect("a pair");
        let receiver = receive(&self.client, far);
        self.receivers.push(receiver);
        complete(&self.router, near);
    }

    pub fn line_to_server(&mut self, near: &str, far: &str, mtu: u32) {
        let pair = Veth { mtu, peer: Some(&self.server), ..Veth::pair(near, far) };
        self.router.veth(&pair).expect("a pair");
        let receiver = receive(&self.server, far);
        self.receivers.push(receiver);
        complete(&self.router, near);
    }

    /// Client and server take nothing that is redirected to them any more, unless they join what they receive (GRO).
    pub fn stop_receivers(&mut self) {
        self.receivers.clear();
    }

    pub fn address(&self, namespace: &Namespace, interface: &str, addresses: &[&str]) {
        for address in addresses {
            ip(namespace, &["address", "add", address, "dev", interface]);
        }
    }

    /// The router's rules get these, too.
    pub fn nft(&self, rules: &str) {
        let path = self.folder.path().join("rules");
        fs::write(&path, rules).expect("a file");
        self.router.run("nft", &["-f", path.to_str().expect("UTF-8")]).expect("rules");
    }

    /// ip(8) on the router.
    pub fn ip(&self, arguments: &[&str]) -> String {
        ip(&self.router, arguments)
    }

    pub fn command(&self, command: &str, arguments: &[&str]) -> Command {
        let mut built = self.router.command(BINARY);
        built.arg(command).args(arguments).arg("--state-dir").arg(self.state());
        built.stdin(Stdio::null()).env("COLUMNS", "80");
        built
    }

    pub fn state(&self) -> String {
        self.folder.path().join("state").display().to_string()
    }

    /// `rxlane fastpath` on the router.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command("fastpath", arguments).output().expect("it starts")
    }

    /// The same of one that does not come up; one that does is an error, not a wait without end.
    pub fn refused(&self, arguments: &[&str]) -> Output {
        Process::start(&mut self.command("fastpath", arguments)).ended()
    }

    /// Starts it, and waits until it is up.
    pub fn up_on(&self, ports: &[&str], more: &[&str]) -> Process {
        let arguments = [&["up"], ports, more].concat();
        let mut up = Process::start(&mut self.command("fastpath", &arguments));
        assert!(up.says_before_its_end("is up on"), "{}", up.said());
        up
    }

    pub fn up(&self) -> Process {
        self.up_on(&[LAN, WAN], &[])
    }

    pub fn status(&self) -> Value {
        self.run(&["status", "--json"]).ends(0).json()
    }

    /// Packets that the program forwarded.
    pub fn fast(&self) -> u64 {
        self.status()["packets"]["fast"].as_u64().expect("a number")
    }

    /// Those that it left to the kernel for a reason.
    pub fn slow(&self, reason: &str) -> u64 {
        self.status()["packets"]["slow"][reason].as_u64().unwrap_or(0)
    }

    pub fn flows(&self) -> u64 {
        self.status()["flows"].as_u64().expect("a number")
    }

    /// Connections that were removed for a reason.
    pub fn removed(&self, why: &str) -> u64 {
        self.status()["removals"][why].as_u64().unwrap_or(0)
    }

    /// Waits until so many connections are installed.
    #[track_caller]
    pub fn wait_for_flows(&self, flows: u64) {
        let what = std::fmt::from_fn(|f| write!(f, "{flows} connections, of {:#}", self.status()));
        wait_until(what, || self.flows() == flows);
    }

    /// A connection to an address of the server that is installed, and of which the program forwards both directions.
    #[track_caller]
    pub fn fast_datagrams(&self, server: &str) -> Datagrams {
        let mut datagrams = Datagrams::through(self, server, PORT);
        datagrams.exchange();
        self.wait_for_flows(1);
        self.becomes_fast(&mut datagrams);
        datagrams
    }

    /// Datagrams go back and forth until the program forwards both directions.
    #[track_caller]
    pub fn becomes_fast(&self, datagrams: &mut Datagrams) {
        let what = std::fmt::from_fn(|f| write!(f, "it is fast: {:#}", self.status()));
        wait_until(what, || {
            let before = self.fast();
            datagrams.exchange();
            self.fast() >= before + 2
        });
    }

    /// They go back and forth while the program forwards none of their packets, until it is so.
    #[track_caller]
    pub fn exchanges_slowly(&self, datagrams: &mut Datagrams) {
        let what = std::fmt::from_fn(|f| write!(f, "it is slow: {:#}", self.status()));
        wait_until(what, || {
            let before = self.fast();
            datagrams.exchange();
            self.fast() == before
        });
    }

    /// Packets that the kernel has forwarded, those of the fast path not among them.
    pub fn forwarded_by_kernel(&self) -> u64 {
        let listed = self.router.run("nft", &["-j", "list", "counter", "inet", "filter", "forwarded"]);
        let listed: Value = serde_json::from_str(&listed.expect("nft")).expect("JSON");
        let items = listed["nftables"].as_array().expect("a list");
        let counter = items.iter().find_map(|item| item["counter"]["packets"].as_u64());
        counter.expect("a number")
    }

    /// Whether a program is on an interface of the router.
    pub fn has_program(&self, interface: &str) -> bool {
        show(&self.router, interface)["xdp"].is_object()
    }

    /// What arrives at the client, and at the server.
    pub fn sniffers(&self) -> [Sniffer; 2] {
        [Sniffer::on(&self.client, FAR), Sniffer::on(&self.server, FAR)]
    }

    /// Installs that are neither there nor removed.
    pub fn assert_counters_add_up(&self) {
        let status = self.status();
        let removals: u64 =
            status["removals"].as_object().expect("an object").values().filter_map(Value::as_u64).sum();
        let (installs, flows) = (status["installs"].as_u64(), status["flows"].as_u64());
        assert_eq!(installs, flows.map(|flows| flows + removals), "{status:#}");
    }
}

pub fn ip(namespace: &Namespace, arguments: &[&str]) -> String {
    namespace.run("ip", arguments).expect("ip")
}

/// What ip(8) shows of an interface.
pub fn show(namespace: &Namespace, interface: &str) -> Value {
    let output = ip(namespace, &["-j", "-d", "link", "show", "dev", interface]);
    let links: Value = serde_json::from_str(&output).expect("JSON");
    links[0].clone()
}

/// The MAC address of an interface.
pub fn mac(namespace: &Namespace, interface: &str) -> [u8; 6] {
    let link = show(namespace, interface);
    let text = link["address"].as_str().expect("an address");
    let bytes: Vec<u8> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal")).collect();
    bytes.try_into().expect("six bytes")
}

fn receive(namespace: &Namespace, interface: &str) -> Receiver {
    let receiver = namespace.inside(|| {
        let program = Forwarding::load(1, 1).expect("a program");
        let found = Interface::find(interface).expect("an interface");
        let port = program.attach(&found, Mode::Native).expect("attached");
        Receiver { _port: port, _program: program }
    });
    complete(namespace, interface);
    // Every packet is seen as it arrives.
    namespace.run("ethtool", &["-K", interface, "gro", "off"]).expect("no GRO");
    receiver
}

/// What an interface sends has complete checksums, and tags where a program sees them.
fn complete(namespace: &Namespace, interface: &str) {
    namespace.run("ethtool", &["-K", interface, "tx", "off", "txvlan", "off"]).expect("complete frames");
}

impl Drop for Router {
    fn drop(&mut self) {
        // A daemon would keep the namespace.
        if std::path::Path::new(&self.state()).exists() {
            let _ = self.command("fastpath", &["down"]).output();
        }
        self.receivers.clear();
    }
}

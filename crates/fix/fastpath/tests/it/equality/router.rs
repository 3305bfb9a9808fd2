//! The two routers.

use super::background::Background;
use super::ends::End;
use super::flow::FORWARDED_PORT;
use link::running::{Means, Request as LinkRequest, Running as Link};
use rxlane_fastpath::{NAME, Request, Running, check};
use serde_json::Value;
use service::{Instances, Kind as Service, StateDir};
use std::fs;
use std::sync::Arc;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require, wait_until};
use xdp::forward::{Forwarding, Port};
use xdp::{Interface, Mode};

/// The PPPoE session.
pub const SESSION: u16 = 0x1234;
/// MAC addresses: of the router towards clients and towards the server, and of those.
const LAN_MAC: [u8; 6] = [2, 0, 0, 0, 1, 1];
const WAN_MAC: [u8; 6] = [2, 0, 0, 0, 2, 1];
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 2, 0x11];
/// The interface of `rxlane link`.
const LINE: &str = "line0";

const fn client_mac(place: u8) -> [u8; 6] {
    [2, 0, 0, 0, 1, 0x11 + place]
}

/// Where frames arrive and leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// A port of the LAN.
    Lan(u8),
    Wan,
}

impl Side {
    /// Its place among the ends of a router.
    pub fn place(self) -> usize {
        match self {
            Side::Lan(place) => usize::from(place) + 1,
            Side::Wan => 0,
        }
    }
}

/// What the ports of the routers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An Ethernet interface at each side.
    Plain,
    /// A bridge with two ports for the LAN.
    Bridge,
    /// Two tags towards the server, by a link of rxlane.
    Qinq,
    /// A tag and PPPoE towards the server, by a link of rxlane.
    Pppoe,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Plain, Kind::Bridge, Kind::Qinq, Kind::Pppoe];

    pub const fn name(self) -> &'static str {
        match self {
            Kind::Plain => "Ethernet",
            Kind::Bridge => "bridge",
            Kind::Qinq => "QinQ",
            Kind::Pppoe => "VLAN, PPPoE",
        }
    }

    pub const fn lan_ports(self) -> u8 {
        if matches!(self, Kind::Bridge) { 2 } else { 1 }
    }

    /// The sides by which frames can arrive.
    pub fn sides(self) -> Vec<Side> {
        [Side::Wan].into_iter().chain((0..self.lan_ports()).map(Side::Lan)).collect()
    }

    /// MAC addresses and tags of a frame that arrives.
    pub fn head(self, at: Side) -> Vec<u8> {
        let mut head = match at {
            Side::Lan(place) => [LAN_MAC, client_mac(place)].concat(),
            Side::Wan => [WAN_MAC, SERVER_MAC].concat(),
        };
        match (self, at) {
            (Kind::Qinq, Side::Wan) => head.extend([0x88, 0xa8, 0, 100, 0x81, 0, 0, 200]),
            (Kind::Pppoe, Side::Wan) => head.extend([0x81, 0, 0, 35]),
            _ => {}
        }
        head
    }

    /// Whether packets arrive in PPPoE.
    pub fn is_pppoe(self, at: Side) -> bool {
        self == Kind::Pppoe && at == Side::Wan
    }

    /// Bytes before the IP packet of a frame that arrives.
    pub fn packet_at(self, at: Side) -> usize {
        self.head(at).len() + if self.is_pppoe(at) { 10 } else { 2 }
    }

    /// The interface towards clients, and that towards the server.
    const fn lan(self) -> &'static str {
        if matches!(self, Kind::Bridge) { "br0" } else { "lan0" }
    }

    const fn wan(self) -> &'static str {
        if matches!(self, Kind::Qinq | Kind::Pppoe) { LINE } else { "wan0" }
    }

    fn encapsulation(self) -> Option<String> {
        let [a, b, c, d, e, f] = SERVER_MAC;
        let peer = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        match self {
            Kind::Plain | Kind::Bridge => None,
            Kind::Qinq => Some("ad:100,q:200".to_owned()),
            Kind::Pppoe => Some(format!("q:35,pppoe:{SESSION}@{peer}")),
        }
    }

    /// Translation, and rules for new connections. A connection that would get a random port, since another one has the same
    /// addresses and ports behind the router, is not let through: the two routers would choose different ones.
    fn rules(self) -> String {
        let (lan, wan) = (self.lan(), self.wan());
        format!(
            "table ip nat {{
 chain pre {{
  type nat hook prerouting priority dstnat;
  iifname {wan} ip daddr 10.2.0.1 meta l4proto {{ tcp, udp }} th dport {FORWARDED_PORT} dnat to 10.1.0.5:8080
  iifname {wan} ip daddr 10.2.0.1 meta l4proto {{ tcp, udp }} th dport {second} dnat to 10.1.1.5:8080
  iifname {lan} ip saddr {{ 10.1.0.4, 10.1.1.4 }} ip daddr 10.9.0.1 meta l4proto {{ tcp, udp }} dnat to 10.3.0.3
 }}
 chain post {{
  type nat hook postrouting priority srcnat;
  oifname {wan} ip saddr 10.1.0.3 masquerade
  oifname {wan} ip saddr 10.1.1.3 snat to 10.2.0.8
  oifname {wan} ip saddr 10.1.0.4 snat to 10.2.0.9
  oifname {wan} ip saddr 10.1.1.4 snat to 10.2.0.10
 }}
}}
table inet filter {{
 chain input {{
  type filter hook input priority filter; policy drop;
 }}
 chain forward {{
  type filter hook forward priority filter; policy drop;
  ct state established,related,invalid,untracked accept
  iifname {lan} ip saddr {{ 10.1.0.2, 10.1.1.2 }} accept
  iifname {lan} ip saddr {{ 10.1.0.3, 10.1.1.3 }} meta l4proto {{ tcp, udp }} th sport {FORWARDED_PORT}-{second} drop
  iifname {lan} oifname {wan} ip saddr {{ 10.1.0.3, 10.1.1.3 }} accept
  iifname {lan} ip saddr {{ 10.1.0.4, 10.1.1.4 }} ct status dnat accept
  iifname {wan} ip daddr {{ 10.1.0.2, 10.1.1.2 }} accept
  iifname {wan} ct status dnat accept
  ip6 saddr fd00::/8 accept
 }}
}}",
            second = FORWARDED_PORT + 1
        )
    }
}

/// A router with the ends of its lines.
pub struct Router {
    router: Arc<Namespace>,
    outside: Namespace,
    state: StateDir,
    /// In the order of [`Side::place`].
    receivers: Vec<(Port, Forwarding)>,
    link: Option<Background>,
}

impl Router {
    fn new(kind: Kind, state: StateDir) -> Router {
        let [router, outside] = std::array::from_fn(|_| Namespace::new().expect("a namespace"));
        let router = Arc::new(router);
        let mut made = Router { router, outside, state, receivers: Vec::new(), link: None };
        made.router.inside(set);
        let lans = (0..kind.lan_ports()).map(|place| (format!("lan{place}"), format!("far{}", place + 1)));
        let lines: Vec<_> = [("wan0".to_owned(), "far0".to_owned())].into_iter().chain(lans).collect();
        for (near, far) in &lines {
            made.line(near, far);
        }
        if kind == Kind::Bridge {
            made.bridge();
        } else {
            made.set_mac("lan0", LAN_MAC);
        }
        made.set_mac("wan0", WAN_MAC);
        // Without waiting for other machines to answer for an address, which are not there.
        made.router.inside(quiet);
        made.link(kind);
        made.addresses(kind);
        made.nft(&kind.rules());
        made
    }

    /// A line, with a program at the other end, without which a veth takes no frames that a program redirects to it
    /// (`veth_xdp_xmit()` of drivers/net/veth.c).
    fn line(&mut self, near: &str, far: &str) {
        self.router.veth(&Veth { peer: Some(&self.outside), ..Veth::pair(near, far) }).expect("a pair");
        let receiver = self.outside.inside(|| {
            let program = Forwarding::load(1, 1).expect("a program");
            let found = Interface::find(far).expect("an interface");
            (program.attach(&found, Mode::Native).expect("attached"), program)
        });
        self.receivers.push(receiver);
        // What leaves is complete, and every frame is seen as it arrives.
        let off = ["tx", "off", "rx-gro-list", "off", "gro", "off", "txvlan", "off", "rxvlan", "off"];
        self.router.run("ethtool", &[&["-K", near][..], &off].concat()).expect("settings");
        self.outside.run("ethtool", &["-K", far, "gro", "off", "txvlan", "off"]).expect("settings");
    }

    /// It learns no addresses, which hostile frames have.
    fn bridge(&self) {
        let mac = mac(LAN_MAC);
        self.ip(&["link", "add", "br0", "address", &mac, "type", "bridge", "mcast_snooping", "0"]);
        for place in 0..2 {
            let (port, client) = (format!("lan{place}"), self::mac(client_mac(place)));
            self.ip(&["link", "set", "dev", &port, "master", "br0"]);
            let learning = ["link", "set", "dev", &port, "learning", "off"];
            self.router.run("bridge", &learning).expect("bridge");
            let entry = ["fdb", "add", &client, "dev", &port, "master", "static"];
            self.router.run("bridge", &entry).expect("bridge");
        }
        self.ip(&["link", "set", "dev", "br0", "up"]);
        let up = || self.ip(&["link", "show", "dev", "br0"]).contains(" state UP ");
        wait_until("the bridge is up", up);
    }

    fn link(&mut self, kind: Kind) {
        let Some(encapsulation) = kind.encapsulation() else { return };
        let request = LinkRequest {
            name: LINE.to_owned(),
            parent: "wan0".to_owned(),
            encapsulation: encapsulation.parse().expect("an encapsulation"),
            is_managed: false,
            addresses: Vec::new(),
            mtu: None,
            mss_clamp: false,
            means: Means::Simple,
        };
        let state = self.state.clone();
        self.link = Some(Background::start(&self.router, move |stop, ask, up| {
            let links = Instances::new(Service::Link, state).expect("a state folder");
            let mut link = Link::up(&request, &links, stop, ask).expect("a link");
            up.send(()).expect("somebody waits");
            link.run(&mut |_| ()).expect("it works until its end");
            link.down();
        }));
    }

    fn addresses(&self, kind: Kind) {
        let (lan, wan) = (kind.lan(), kind.wan());
        for (device, address) in
            [(lan, "10.1.0.1/32"), (wan, "10.2.0.1/32"), (lan, "fd01::1/128"), (wan, "fd02::1/128")]
        {
            self.ip(&["address", "add", address, "dev", device, "nodad"]);
        }
        // Packets to whatever address there is behind a station go to it: nobody has to be found first, which takes time.
        for place in 0..2 {
            let mac = mac(client_mac(place));
            let (v4, v6) = (format!("10.1.{place}.254"), format!("fd01:0:0:{place}::fe"));
            for station in [&v4, &v6] {
                self.ip(&["neighbour", "add", station, "lladdr", &mac, "dev", lan]);
            }
            // Less than the interface takes.
            let via = |to: &str, station: &str| {
                self.ip(&["route", "add", to, "via", station, "dev", lan, "onlink", "mtu", "1420"]);
            };
            via(&format!("10.1.{place}.0/24"), &v4);
            via(&format!("fd01:0:0:{place}::/64"), &v6);
        }
        let server = mac(SERVER_MAC);
        // There is a way to every address of IPv4: the errors where there is none have a rate of their own, which is that of the
        // whole machine (`ip_error()` of net/ipv4/route.c).
        for (to, station) in [("default", "10.2.0.254"), ("fd03::/64", "fd02::fe")] {
            if kind == Kind::Pppoe {
                self.ip(&["route", "add", to, "dev", wan]);
            } else {
                self.ip(&["neighbour", "add", station, "lladdr", &server, "dev", wan]);
                self.ip(&["route", "add", to, "via", station, "dev", wan, "onlink"]);
            }
        }
    }

    fn set_mac(&self, interface: &str, address: [u8; 6]) {
        self.ip(&["link", "set", "dev", interface, "address", &mac(address)]);
    }

    fn ip(&self, arguments: &[&str]) -> String {
        self.router.run("ip", arguments).expect("ip")
    }

    fn nft(&self, rules: &str) {
        fs::create_dir_all(self.state.path()).expect("a folder");
        let path = self.state.path().join("rules");
        fs::write(&path, rules).expect("a file");
        self.router.run("nft", &["-f", path.to_str().expect("UTF-8")]).expect("rules");
    }

    /// The far ends of its lines, in the order of [`Side::place`].
    pub fn ends(&self) -> Vec<End> {
        let open = |place: usize| self.outside.inside(|| End::open(&format!("far{place}")));
        (0..self.receivers.len()).map(open).collect()
    }
}

/// Both of them.
pub struct Pair {
    daemon: Option<Background>,
    fast_path: Instances,
    /// The kernel alone, and the fast path.
    pub routers: [Router; 2],
    _folder: tempfile::TempDir,
}

impl Pair {
    /// `None` where something is missing.
    pub fn new(kind: Kind) -> Option<Pair> {
        require("nft", program("nft"))?;
        require("ethtool", program("ethtool"))?;
        require("netns", probe())?;
        let loaded = Forwarding::load(1, 1).map(drop).map_err(|error| Missing(error.to_string()));
        require("bpf", loaded)?;
        let namespace = Namespace::new().expect("a namespace");
        let tracked = namespace.inside(|| kernel::netlink::netfilter::conntrack::each(|_| ()));
        require("conntrack", tracked.map_err(|error| Missing(error.to_string())))?;
        let folder = tempfile::tempdir().expect("a folder");
        let routers = ["a", "b"].map(|name| Router::new(kind, StateDir::at(folder.path().join(name))));
        let (router, state) = (&routers[1].router, routers[1].state.clone());
        let fast_path = router.inside(|| Instances::new(Service::Fastpath, state).expect("a state folder"));
        let daemon = Some(daemon(router, kind, fast_path.clone()));
        Some(Pair { daemon, fast_path, routers, _folder: folder })
    }

    /// What the daemon says.
    pub fn status(&self) -> Value {
        self.fast_path.ask(NAME, "status").expect("it answers")
    }

    /// Packets that the program has forwarded.
    pub fn fast(&self) -> u64 {
        self.status()["packets"]["fast"].as_u64().expect("a number")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.daemon.take();
    }
}

fn daemon(router: &Arc<Namespace>, kind: Kind, instances: Instances) -> Background {
    let lans = (0..kind.lan_ports()).map(|place| format!("lan{place}"));
    let request = Request {
        ports: lans.chain(["wan0".to_owned()]).collect(),
        generic: false,
        flows: 65_536,
        limits: (None, None),
        bypass_qdisc: false,
        disable_rxvlan: true,
    };
    Background::start(router, move |stop, ask, up| {
        let checked = check(&request, instances.state()).expect("nothing is in the way");
        let mut running = Running::up(&request, &checked, &instances, stop, ask).expect("it comes up");
        up.send(()).expect("somebody waits");
        running.run().expect("it works until its end");
        running.down().expect("it ends");
    })
}

fn mac([a, b, c, d, e, f]: [u8; 6]) -> String {
    format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}")
}

fn write(setting: &str, value: &str) {
    let path = format!("/proc/sys/net/{setting}");
    fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
}

/// What makes a router forward, and the same each time: no error is withheld for its rate, and no timeout ends during the test.
fn set() {
    for scope in ["all", "default"] {
        write(&format!("ipv6/conf/{scope}/disable_ipv6"), "0");
        write(&format!("ipv4/conf/{scope}/rp_filter"), "0");
        write(&format!("ipv4/conf/{scope}/send_redirects"), "0");
        // No link-local addresses: no redirects of IPv6, either.
        write(&format!("ipv6/conf/{scope}/addr_gen_mode"), "1");
        write(&format!("ipv6/conf/{scope}/accept_ra"), "0");
    }
    write("ipv4/ip_forward", "1");
    write("ipv6/conf/all/forwarding", "1");
    write("ipv6/auto_flowlabels", "0");
    write("ipv4/icmp_ratemask", "0");
    write("ipv4/icmp_ratelimit", "0");
    write("ipv6/icmp/ratelimit", "0");
    for (setting, value) in [
        ("ipv4/icmp_msgs_per_sec", "1000000"),
        ("ipv4/icmp_msgs_burst", "1000000"),
        ("ipv6/icmp/ratemask", ""),
        ("bridge/bridge-nf-call-iptables", "0"),
        ("bridge/bridge-nf-call-ip6tables", "0"),
        ("bridge/bridge-nf-call-arptables", "0"),
    ] {
        // Not there for a namespace of its own in every kernel.
        let _ = fs::write(format!("/proc/sys/net/{setting}"), value);
    }
    write("ipv4/ipfrag_time", "86400");
    write("ipv4/ipfrag_high_thresh", "268435456");
}

/// Of connections: nothing of their windows counts, which the kernel does not see where the fast path forwards.
fn quiet() {
    write("netfilter/nf_conntrack_tcp_be_liberal", "1");
    write("netfilter/nf_conntrack_checksum", "1");
    for name in fs::read_dir("/proc/sys/net/netfilter").expect("a folder").flatten() {
        let name = name.file_name().into_string().expect("UTF-8");
        if name.contains("_timeout") {
            let _ = fs::write(format!("/proc/sys/net/netfilter/{name}"), "86400");
        }
    }
    let _ = fs::write("/proc/sys/net/netfilter/nf_conntrack_frag6_high_thresh", "268435456");
}

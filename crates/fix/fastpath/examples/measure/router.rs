//! A router with the fast path, and both ends of its lines, to be measured: the daemon is a process of its own, which is this very program
//! once more.

use rxlane_fastpath::status::Status;
use rxlane_fastpath::{NAME, Request, Running, check};
use service::{Instances, Kind as Service, StateDir};
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Stdio};
use testkit::frames::Frames;
use testkit::netns::{Namespace, Veth, probe};
use testkit::{Missing, program, require};
use xdp::forward::{Forwarding, Port};
use xdp::{Interface, Mode};

/// Interfaces of the router, each with the other end of its line.
const LINES: [(&str, &str); 3] = [("lan0", "far0"), ("wan0", "far1"), ("wan1", "far2")];
/// The first argument of the daemon, before its state folder, the number of connections, and a limit.
pub const DAEMON: &str = "daemon";
pub const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// The kernel marks what it forwards itself; the fast path leaves the byte of DSCP and ECN as it is.
const KERNEL: u8 = 4;
const RULES: &str = "table ip router {
 chain forward {
  type filter hook forward priority filter; policy drop;
  ip dscp set 1
  ct state established,related accept
  iifname lan0 accept
 }
 chain post {
  type nat hook postrouting priority srcnat;
  ip daddr 10.97.0.0/16 snat to 10.2.0.1
 }
}";
/// The rule of [`RULES`] that marks.
const MARK: &str = "  ip dscp set 1\n";
/// Bytes before the UDP header.
const UDP_AT: usize = 34;

/// A UDP packet that has left the router.
pub struct Left {
    pub is_fast: bool,
    pub source: SocketAddrV4,
    /// Bytes from the IP header on.
    pub length: usize,
}

pub struct Router {
    daemon: Option<Child>,
    _receivers: Vec<(Port, Forwarding)>,
    instances: Instances,
    pub router: Namespace,
    pub outside: Namespace,
    /// The far ends of the lines: to the client, and the two to the servers.
    pub ends: [Frames; 3],
    folder: tempfile::TempDir,
}

impl Router {
    /// With a daemon for so many connections, and a limit for both directions, bits a second. `None`: the machine lacks something.
    pub fn new(flows: usize, limit: Option<u64>) -> Option<Router> {
        let mut router = Router::kernel(RULES)?;
        let own = std::env::current_exe().expect("a path");
        let state = router.folder.path().join("state");
        let mut command = router.router.command(own);
        command.arg(DAEMON).arg(state).arg(flows.to_string());
        command.args(limit.map(|limit| limit.to_string())).stdout(Stdio::piped());
        let daemon = router.daemon.insert(command.spawn().expect("it starts"));
        let mut line = String::new();
        let output = daemon.stdout.take().expect("an output");
        BufReader::new(output).read_line(&mut line).expect("a line");
        assert_eq!(line, "up\n", "the daemon has ended");
        Some(router)
    }

    /// Without a daemon, and without a mark on what the kernel forwards.
    pub fn plain() -> Option<Router> {
        Router::kernel(&RULES.replace(MARK, ""))
    }

    /// Without a daemon.
    fn kernel(rules: &str) -> Option<Router> {
        require("nft", program("nft"))?;
        require("netns", probe())?;
        let loaded = Forwarding::load(1, 1).map(drop).map_err(|error| Missing(error.to_string()));
        require("bpf", loaded)?;
        let [router, outside] = std::array::from_fn(|_| Namespace::new().expect("a namespace"));
        let receivers = LINES.map(|(near, far)| line(&router, &outside, near, far)).into();
        let folder = tempfile::tempdir().expect("a folder");
        set_up(&router, folder.path(), rules);
        let state = folder.path().join("state");
        let instances = router
            .inside(|| Instances::new(Service::Fastpath, StateDir::at(&state)).expect("a state folder"));
        let ends = LINES.map(|(_, far)| outside.inside(|| Frames::open(far).expect("a socket")));
        Some(Router { daemon: None, _receivers: receivers, instances, router, outside, ends, folder })
    }

    pub fn status(&self) -> Status {
        let status = self.instances.ask(NAME, "status").expect("it answers");
        serde_json::from_value(status).expect("a status")
    }

    /// The daemon's process.
    pub fn process(&self) -> u32 {
        self.daemon.as_ref().expect("a daemon").id()
    }
}

/// What has left the router at an end of a line since the last call.
pub fn left(end: &mut Frames, mut each: impl FnMut(Left)) {
    let read = &mut |frame: &[u8]| {
        if frame.len() >= UDP_AT + 8 && frame[12..14] == [8, 0] && frame[23] == 17 {
            let address: [u8; 4] = frame[26..30].try_into().expect("four bytes");
            let port = u16::from_be_bytes([frame[UDP_AT], frame[UDP_AT + 1]]);
            each(Left {
                length: usize::from(u16::from_be_bytes([frame[16], frame[17]])),
                is_fast: frame[15] != KERNEL,
                source: SocketAddrV4::new(address.into(), port),
            });
        }
    };
    end.receive(read).expect("frames");
}

impl Drop for Router {
    fn drop(&mut self) {
        if let Some(daemon) = &mut self.daemon {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// The fast path on the router, until it is killed.
pub fn daemon(state: &Path, flows: usize, limit: Option<u64>) {
    let instances = Instances::new(Service::Fastpath, StateDir::at(state)).expect("a state folder");
    let request = Request {
        ports: LINES.map(|(near, _)| near.to_owned()).into(),
        generic: false,
        flows,
        limits: (limit, limit),
        bypass_qdisc: false,
        disable_rxvlan: false,
    };
    let (stop, ask) = UnixStream::pair().expect("a pair of sockets");
    let checked = check(&request, instances.state()).expect("nothing is in the way");
    let mut running = Running::up(&request, &checked, &instances, stop, ask).expect("it comes up");
    println!("up");
    running.run().expect("it works until it is killed");
}

/// With a program at the other end, without which a veth takes no frames that a program redirects to it (`veth_xdp_xmit()` of
/// drivers/net/veth.c).
fn line(router: &Namespace, outside: &Namespace, near: &str, far: &str) -> (Port, Forwarding) {
    router.veth(&Veth { peer: Some(outside), ..Veth::pair(near, far) }).expect("a pair");
    for (namespace, name) in [(router, near), (outside, far)] {
        namespace.run("ip", &["link", "set", name, "address", &text(mac(name))]).expect("ip");
    }
    outside.inside(|| {
        let program = Forwarding::load(1, 1).expect("a program");
        let found = Interface::find(far).expect("an interface");
        (program.attach(&found, Mode::Native).expect("attached"), program)
    })
}

/// Servers are behind a gateway at the first line; for those in 10.97.0.0/16 clients are translated.
fn set_up(router: &Namespace, folder: &Path, rules: &str) {
    let ip = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        router.run("ip", &arguments).expect("ip")
    };
    router.inside(|| {
        let write = |setting: &str, value| {
            let path = format!("/proc/sys/net/{setting}");
            fs::write(&path, value).unwrap_or_else(|error| panic!("{path}: {error}"));
        };
        write("ipv4/ip_forward", "1");
        for scope in ["all", "default", "lan0", "wan0", "wan1"] {
            write(&format!("ipv4/conf/{scope}/rp_filter"), "0");
        }
    });
    for (number, (near, far)) in LINES.iter().enumerate() {
        let network = number + 1;
        ip(&format!("address add 10.{network}.0.1/24 dev {near}"));
        ip(&format!("neighbour replace 10.{network}.0.2 lladdr {} dev {near}", text(mac(far))));
    }
    ip("route add default via 10.2.0.2");
    let path = folder.join("rules");
    fs::write(&path, rules).expect("a file");
    router.run("nft", &["-f", path.to_str().expect("UTF-8")]).expect("rules");
    // No connection ends by itself meanwhile.
    router.inside(|| {
        for name in ["udp_timeout", "udp_timeout_stream"] {
            fs::write(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"), "3600").expect("a setting");
        }
    });
}

/// The MAC address of an interface.
pub fn mac(name: &str) -> [u8; 6] {
    let place = LINES.iter().position(|(near, far)| [near, far].contains(&&name)).expect("an interface");
    [2, 0, 0, 0, u8::from(name.starts_with("far")), place as u8 + 1]
}

pub fn text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// A datagram that arrives at the router from the far end of a line, without a checksum of UDP.
pub fn frame(far: &str, source: SocketAddrV4, destination: SocketAddrV4) -> Vec<u8> {
    frame_of(far, source, destination, 18)
}

/// The same with so many bytes behind the header of UDP.
pub fn frame_of(far: &str, source: SocketAddrV4, destination: SocketAddrV4, payload: usize) -> Vec<u8> {
    let (near, _) = LINES.iter().find(|line| line.1 == far).expect("a line");
    let length = |above: usize| ((above + 8 + payload) as u16).to_be_bytes();
    let mut ip = [&[0x45, 0][..], &length(20), &[0, 0, 0, 0, 64, 17, 0, 0]].concat();
    ip.extend(source.ip().octets());
    ip.extend(destination.ip().octets());
    let sum: u32 = ip.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    let ports = [source.port().to_be_bytes(), destination.port().to_be_bytes()].concat();
    [&mac(near)[..], &mac(far), &[8, 0], &ip, &ports, &length(0), &[0, 0], &vec![0x5a; payload]].concat()
}

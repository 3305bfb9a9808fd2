//! How many connections a second the fast path installs, and what memory they take.
//!
//! Each is a UDP connection by two real packets through the kernel's routing and conntrack, which run on the same CPUs. The next piece is
//! sent when the daemon has caught up, so that the rate is one that can last.

use super::router::{CLIENT, Router, frame, left};
use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};
use testkit::PATIENCE;
use testkit::frames::Frames;

/// Connections that are made at a time.
const PIECE: usize = 2_000;
/// Those that the daemon may be behind.
const BEHIND: usize = 8_000;
/// Ports of a server's connections.
const PORTS: usize = 50_000;
/// Between two looks at what has come, short since the time until then is the subject.
const PAUSE: Duration = Duration::from_micros(200);
/// `USER_HZ` of Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Makes so many, and prints it.
pub fn measure(flows: usize) {
    let Some(mut router) = Router::new(flows, None) else { return };
    let most: usize = router.router.inside(|| read("/proc/sys/net/netfilter/nf_conntrack_max"));
    assert!(
        most > flows,
        "conntrack takes {most} connections here: give fewer, or `sysctl -w net.netfilter.nf_conntrack_max={}` in the initial network namespace",
        flows + 1000
    );
    let before = Used::of(router.process());
    let start = Instant::now();
    for first in (0..flows).step_by(PIECE) {
        let numbers = first..(first + PIECE).min(flows);
        let both = || numbers.clone().map(|number| (client(number), server(number)));
        let requests: Vec<_> = both().map(|(client, server)| frame("far0", client, server)).collect();
        let answers: Vec<_> = both().map(|(client, server)| frame("far1", server, client)).collect();
        let [inside, outside, _] = &mut router.ends;
        // Every one has a connection before it is answered.
        pass(inside, outside, &requests);
        pass(outside, inside, &answers);
        wait(&router, numbers.end.saturating_sub(BEHIND));
    }
    wait(&router, flows);
    let took = start.elapsed().as_secs_f64();
    let after = Used::of(router.process());
    let cpu = after.cpu - before.cpu;
    let status = router.status();
    println!(
        "{} connections of {flows} installed in {took:.1} s, {:.0} a second; events lost {} times",
        status.flows,
        flows as f64 / took,
        status.lost
    );
    println!(
        "daemon: {cpu:.1} s of CPU time, {:.1} µs a connection, {:.0} a second of it",
        cpu / flows as f64 * 1e6,
        flows as f64 / cpu
    );
    for (name, before, after) in
        [("daemon, VmRSS", before.resident, after.resident), ("maps", before.maps, after.maps)]
    {
        let each = (after as f64 - before as f64) / flows as f64;
        println!("{name}: {before} bytes without connections, {after} with them, {each:.0} for each");
    }
}

fn client(number: usize) -> SocketAddrV4 {
    SocketAddrV4::new(CLIENT, (10_000 + number % PORTS) as u16)
}

fn server(number: usize) -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 98, 0, (number / PORTS) as u8 + 1), 9)
}

/// Sends frames by one end, and waits until all of them have arrived at the other.
fn pass(from: &mut Frames, to: &mut Frames, frames: &[Vec<u8>]) {
    let (mut arrived, start) = (0, Instant::now());
    for piece in frames.chunks(64) {
        let piece: Vec<&[u8]> = piece.iter().map(Vec::as_slice).collect();
        from.send_all(&piece).expect("sent");
        left(to, |_| arrived += 1);
    }
    while arrived < frames.len() {
        assert!(start.elapsed() < PATIENCE, "{arrived} of {} arrived", frames.len());
        thread::sleep(PAUSE);
        left(to, |_| arrived += 1);
    }
}

fn wait(router: &Router, installs: usize) {
    let start = Instant::now();
    while router.status().installs < installs as u64 {
        let status = router.status();
        assert!(start.elapsed() < PATIENCE, "not {installs} installed: {status:#?}");
        thread::sleep(PAUSE);
    }
}

/// What a process has used.
struct Used {
    /// Seconds.
    cpu: f64,
    /// Bytes.
    resident: u64,
    /// Bytes of its eBPF maps.
    maps: u64,
}

impl Used {
    fn of(process: u32) -> Used {
        let text = |name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).expect("a file");
        let stat = text("stat");
        // Behind the name, which may have spaces, `utime` and `stime` are the 12th and 13th field (proc_pid_stat(5)).
        let fields: Vec<&str> =
            stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).expect("a name");
        let ticks: f64 = fields[11..13].iter().map(|field| field.parse::<f64>().expect("a number")).sum();
        let folder = fs::read_dir(format!("/proc/{process}/fdinfo")).expect("a folder");
        let infos = folder.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
        let maps = infos.filter(|info| info.contains("map_type:")).map(|info| value(&info, "memlock:")).sum();
        Used { cpu: ticks / TICKS_PER_SECOND, resident: value(&text("status"), "VmRSS:") * 1024, maps }
    }
}

fn value(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn read(path: &str) -> usize {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.trim().parse().expect("a number")
}

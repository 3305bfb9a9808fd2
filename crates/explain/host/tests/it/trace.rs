//! Traces of this machine while it drops packets in namespaces of the tests' own. Reasons are of the whole machine, so that
//! others may add to a count; counters are those of the test.

use rxlane_host::live::trace::Tracer;
use rxlane_host::trace::{DropReason, Place, Trace};
use std::net::UdpSocket;
use std::time::Duration;
use testkit::netns::{Namespace, addressed_pair, probe};
use testkit::{Missing, program, require, wait_until};

const PACKETS: u64 = 300;

/// `wan0` and `far0` with addresses, in a namespace each.
struct Line {
    near: Namespace,
    far: Namespace,
}

impl Line {
    fn new() -> Option<Line> {
        require("netns", probe())?;
        let [near, far] = addressed_pair().expect("a pair");
        let lacks = near.inside(|| Tracer::open(None).not_opened().to_vec());
        let traced = if lacks.is_empty() { Ok(()) } else { Err(Missing(format!("not opened: {lacks:?}"))) };
        require("perf", traced)?;
        let line = Line { near, far };
        // The neighbour is known from here on.
        line.send(9, 1);
        Some(line)
    }

    /// What is traced while `work` runs once, in the namespace of `wan0`.
    fn traced(&self, work: impl FnOnce() + Send) -> Trace {
        let mut work = Some(work);
        self.near.inside(move || {
            Tracer::open(Some("wan0"))
                .run(Duration::from_mins(10), &mut |_| work.take().map(|work| work()).is_some())
        })
    }

    /// Sends datagrams to a port of `wan0`.
    fn send(&self, port: u16, packets: u64) {
        self.far.inside(|| {
            let socket = UdpSocket::bind("10.7.0.2:0").expect("a socket");
            for _ in 0..packets {
                // That the port is closed is an error of the next call.
                while socket.send_to(&[0; 100], ("10.7.0.1", port)).is_err() {}
            }
        });
    }
}

fn row<'t>(trace: &'t Trace, reason: &str) -> &'t DropReason {
    let rows = &trace.drops.as_ref().expect("drops").reasons;
    rows.iter()
        .find(|row| row.reason.starts_with(reason))
        .unwrap_or_else(|| panic!("no {reason}: {trace:#?}"))
}

fn counted(trace: &Trace, place: Place, of: &str, counter: &str) -> u64 {
    let rows = trace.counters.iter().filter(|row| row.place == place && row.of.as_deref() == Some(of));
    rows.filter(|row| row.counter.starts_with(counter)).map(|row| row.packets).sum()
}

#[test]
fn a_closed_port_is_a_reason_with_its_function_and_protocol() {
    let Some(line) = Line::new() else { return };
    let trace = line.traced(|| line.send(9, PACKETS));
    let row = row(&trace, "NO_SOCKET");
    assert!(row.packets >= PACKETS && row.stage == Some("deliver"), "{row:?}");
    assert!(row.functions.iter().any(|function| function.packets >= PACKETS), "{row:?}");
    assert!(row.protocols.iter().any(|protocol| protocol.name == "0x0800"), "{row:?}");
}

#[test]
fn a_full_socket_is_a_reason() {
    let Some(line) = Line::new() else { return };
    // Nobody receives from it.
    let socket = line.near.inside(|| UdpSocket::bind("10.7.0.1:7").expect("a socket"));
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 4096).expect("a size");
    let errors = || -> u64 {
        let snmp = line.near.run("cat", &["/proc/net/snmp"]).expect("counters");
        let mut rows = snmp.lines().filter_map(|row| row.strip_prefix("Udp: ")).map(str::split_whitespace);
        let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
        let (_, value) = names.zip(values).find(|(name, _)| *name == "RcvbufErrors").expect("a counter");
        value.parse().expect("a number")
    };
    let before = errors();
    let trace = line.traced(|| line.send(7, PACKETS));
    let lost = errors() - before;
    let row = row(&trace, "SOCKET_RCVBUFF");
    assert!(lost > PACKETS / 2 && row.packets >= lost, "{lost} lost: {row:?}");
}

#[test]
fn a_queueing_discipline_is_a_reason_and_a_counter() {
    let Some(line) = Line::new() else { return };
    let Some(_) = require("tc", program("tc")) else { return };
    // Two datagrams fit, and the next leaves after seconds.
    let tbf = "qdisc add dev wan0 root handle 1: tbf rate 1kbit burst 400 limit 400";
    line.near.run("tc", &tbf.split(' ').collect::<Vec<_>>()).expect("a token bucket");
    let send = || {
        let socket = UdpSocket::bind("10.7.0.1:0").expect("a socket");
        for _ in 0..PACKETS {
            // What the discipline drops is an error (`ENOBUFS`) where the socket reports it.
            let _ = socket.send_to(&[0; 100], ("10.7.0.2", 9));
        }
    };
    let trace = line.traced(send);
    let (row, dropped) = (row(&trace, "QDISC_"), counted(&trace, Place::Qdisc, "wan0", "tbf 1: drops"));
    assert!(dropped > PACKETS / 2 && dropped <= PACKETS, "{trace:#?}");
    assert!(row.packets >= dropped && row.stage == Some("transmit"), "{row:?}");
}

#[test]
fn a_filter_is_a_reason() {
    let Some(line) = Line::new() else { return };
    let Some(_) = require("nft", program("nft")) else { return };
    let rules = "add table inet t; add chain inet t c { type filter hook input priority 0; policy drop; }";
    line.near.run("nft", &[rules]).expect("a rule");
    let row_of = |trace: &Trace| row(trace, "NETFILTER_DROP").packets;
    let packets = row_of(&line.traced(|| line.send(9, PACKETS)));
    assert!(packets >= PACKETS, "{packets}");
}

#[test]
fn cpu_time_has_stages_and_functions() {
    let Some(line) = Line::new() else { return };
    // Next to other work on the CPUs, the functions with most of the time may all be of that.
    wait_until("the receive path among the functions of a trace", || {
        let time = line.traced(|| line.send(9, 100 * PACKETS)).cpu_time.expect("samples");
        assert!(time.samples > 0 && time.cpus.iter().map(|cpu| cpu.samples).sum::<u64>() == time.samples);
        let mut stages = time.cpus.iter().flat_map(|cpu| &cpu.stages);
        let mut functions = time.cpus.iter().flat_map(|cpu| &cpu.functions);
        let delivers = stages.any(|stage| stage.stage == "deliver" && stage.share > 0.0);
        delivers && functions.any(|row| row.stage.is_some() && !row.function.is_empty())
    });
}

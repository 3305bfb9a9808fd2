//! Bursts on both sides of a router with PPPoE in a VLAN, masquerade and a filter on states: the driver is always behind, and
//! polls whole batches.

use crate::connections::{forwarded, print_share};
use crate::count::{count, idle, print};
use crate::forwarded::burst;
use crate::mode::{Mode, Spreading, enter, leave, selected};
use crate::routed::{STATEFUL, write_rules};
use crate::tagged::Direction;
use anyhow::{Result, ensure};
use rxlane_lab::Guest;
use rxlane_lab::built::program;
use traffic::{Popularity, Scenario, Sizes};

const SEED: u64 = 2;
/// Connections, one packet each in a burst.
const FLOWS: usize = 1000;
/// Of the frames inside, as RFC 2544 has it.
const SIZE: u16 = 1400;
const BURSTS: usize = 8;
/// Bytes of the MAC addresses, and of these with a tag, PPPoE and PPP.
const ETHERNET: usize = 14;
const TUNNELED: usize = ETHERNET + 4 + 8;
/// Of the line and inside.
const PORTS: [&str; 2] = ["wan", "lan"];
/// The other end of the session, and the host inside.
const GATEWAY: &str = "02:00:00:00:00:01";
const HOST: [u8; 6] = [0x02, 0, 0, 0, 0, 2];

/// The session over `wan` in VLAN 35, and the host behind `lan`.
fn connect(guest: &Guest) -> Result<()> {
    guest.sh(
        "modprobe -a 8021q nf_conntrack; ip link add link wan name wan35 type vlan id 35; ip link set wan35 up; \
         for name in udp_timeout udp_timeout_stream; do sysctl -qw net.netfilter.nf_conntrack_$name=3000; done; \
         modprobe nf_flow_table; sysctl -qw net.netfilter.nf_flowtable_udp_timeout=3000",
    )?;
    let agent = program("rxlane-lab")?.display().to_string();
    guest.start(&[agent.as_str(), "session", "wan35", "1", GATEWAY], "/tmp/session")?;
    guest.sh(
        "until [ -s /tmp/session ]; do sleep 0.1; done; ip link set ppp0 mtu 1492 txqueuelen 10000 up; \
         ip addr add 203.0.113.9 peer 203.0.113.1 dev ppp0; ip route add default dev ppp0; \
         ip addr add 100.64.0.1/10 dev lan; ip neigh add 100.64.0.2 lladdr 02:00:00:00:00:02 dev lan",
    )?;
    write_rules(guest, PORTS, STATEFUL)
}

/// A frame of each connection as the host sends it: UDP, whose packets of a burst the kernel does not put together.
fn requests(guest: &Guest) -> Result<Vec<Vec<u8>>> {
    let mut scenario = Scenario::new("none".parse()?).with_flows(FLOWS as u32).data_only();
    scenario.direction = traffic::Direction::Upstream;
    scenario.subscribers = 1;
    scenario.popularity = Popularity::RoundRobin;
    (scenario.ipv6_percent, scenario.udp_percent) = (0, 100);
    scenario.sizes = Sizes::Fixed(SIZE);
    let mut generator = scenario.generate(SEED)?;
    let station = guest.mac("lan")?;
    let frame = |_| {
        let frame = generator.next_frame().bytes.to_vec();
        [&station.0[..], &HOST, frame.get(12..).unwrap_or_default()].concat()
    };
    Ok((0..FLOWS).map(frame).collect())
}

/// The answer to a frame that left: MAC addresses, addresses and ports swapped, which leaves the checksums as they are.
fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let mut answer = frame.to_vec();
    answer.get_mut(..12)?.rotate_left(6);
    answer.get_mut(TUNNELED + 12..TUNNELED + 20)?.rotate_left(4);
    answer.get_mut(TUNNELED + 20..TUNNELED + 24)?.rotate_left(2);
    Some(answer)
}

/// Every mode in turn, in both directions.
pub fn measure(guest: &Guest, cpus: usize) -> Result<()> {
    connect(guest)?;
    let mask = (1 << cpus) - 2;
    let of = |spreading: &Spreading, flowtable| Mode { flowtable, ..Mode::from(spreading.clone()) };
    // The fast path first: it is to see how connections begin.
    let mut modes = vec![Mode::from(Spreading::Fastpath)];
    for flowtable in [false, true] {
        modes.extend([Spreading::Off, Spreading::Rps(mask)].map(|spreading| of(&spreading, flowtable)));
    }
    // And what is left of it without looking at packets.
    modes.push(Mode::from(Spreading::Port));
    let modes = selected(modes);
    let requests = requests(guest)?;
    println!(
        "saturated, frames of {SIZE} bytes, PPPoE in a VLAN with masquerade and a filter on states, {FLOWS} connections; \
         instructions per forwarded packet on CPUs 0 to {}",
        cpus - 1
    );
    for mode in &modes {
        let is_least = mode.spreading == Spreading::Port;
        let answered = if is_least { answers(guest, &requests)? } else { Vec::new() };
        enter(guest, PORTS, mode, cpus)?;
        let answers = if is_least { answered } else { answers(guest, &requests)? };
        if mode.spreading == Spreading::Fastpath {
            await_connections(guest)?;
        }
        let directions = if is_least { &Direction::ALL[..1] } else { &Direction::ALL };
        for &direction in directions.iter().chain(directions) {
            row(guest, cpus, mode, direction, (&requests, &answers))?;
        }
        leave(guest, PORTS, mode)?;
    }
    Ok(())
}

/// What the other end sends back, behind a packet of each connection that has left. It is sent, too, once.
fn answers(guest: &Guest, requests: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let [line, inside] = PORTS;
    guest.port(line)?.collect();
    let mut answers = Vec::new();
    // A burst of new connections is much work: some packets of it may be lost.
    for _ in 0..5 {
        let left = burst(guest, [inside, line], requests)?;
        let packets = left.iter().filter(|frame| frame.len() > TUNNELED + 28);
        answers = packets.filter_map(|frame| answer(frame)).collect::<Vec<Vec<u8>>>();
        if answers.len() == FLOWS {
            break;
        }
    }
    ensure!(answers.len() == FLOWS, "{} of {FLOWS} packets left", answers.len());
    burst(guest, PORTS, &answers)?;
    Ok(answers)
}

fn await_connections(guest: &Guest) -> Result<()> {
    let program = program("rxlane")?.display().to_string();
    let script = format!(
        "until {program} fastpath status --json | grep -q '\"flows\": *{FLOWS},'; do sleep 0.5; done"
    );
    let status = format!("timeout 50 sh -c \"$0\" || {program} fastpath status");
    guest.run(&["sh", "-c", &status, &script]).map(|output| print!("{}", output.text()))
}

fn row(
    guest: &Guest,
    cpus: usize,
    mode: &Mode,
    direction: Direction,
    (requests, answers): (&[Vec<u8>], &[Vec<u8>]),
) -> Result<()> {
    let [line, inside] = PORTS;
    let (ports, frames) = match direction {
        Direction::Download => ([line, inside], answers),
        Direction::Upload => ([inside, line], requests),
    };
    // The first packets fill caches.
    burst(guest, ports, frames)?;
    let idle = idle(guest)?;
    let before = forwarded(guest, mode)?;
    let work = count(guest, &idle, || {
        let mut left = 0;
        for _ in 0..BURSTS {
            left += burst(guest, ports, frames)?.len() as u64;
        }
        let sent = (BURSTS * frames.len()) as u64;
        Ok((left, format!("({}, {} lost)", direction.name(), sent.saturating_sub(left))))
    })?;
    print(&mode.name(), &work, cpus);
    print_share(before, forwarded(guest, mode)?);
    Ok(())
}

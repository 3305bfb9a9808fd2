//! TCP segments of many flows in a PPPoE session, injected, and forwarded without NAT.

use crate::count::{count, idle, print};
use crate::mode::{Mode, enter, leave, selected, spreading};
use anyhow::Result;
use rxlane_lab::Guest;
use rxlane_lab::built::program;
use std::thread;
use std::time::{Duration, Instant};
use traffic::{Popularity, Scenario, Sizes};

const SEED: u64 = 1;
/// Flows that are forwarded.
const FLOWS: u32 = 2000;
/// Frames of a burst: fewer than the ring has descriptors, so that none is lost.
const BURST: usize = 3000;
const BURSTS: usize = 6;
/// Where frames arrive, and leave.
const PORTS: [&str; 2] = ["wan", "lan"];
/// The other end of the session whose frames are injected.
const GATEWAY: &str = "02:00:00:00:00:01";

/// A burst of TCP segments of [`FLOWS`] flows in session 1, with frames of so many bytes.
pub fn pppoe(guest: &Guest, size: u16) -> Result<Vec<Vec<u8>>> {
    let mut scenario = Scenario::new(format!("pppoe:1@{GATEWAY}").parse()?).with_flows(FLOWS).data_only();
    scenario.popularity = Popularity::RoundRobin;
    scenario.ipv6_percent = 0;
    scenario.udp_percent = 0;
    scenario.sizes = Sizes::Fixed(size);
    let mut generator = scenario.generate(SEED)?;
    let station = guest.mac("wan")?;
    let frame = |_| {
        let mut frame = generator.next_frame().bytes.to_vec();
        frame[..6].copy_from_slice(&station.0);
        frame
    };
    Ok((0..BURST).map(frame).collect())
}

/// TCP segments of many flows in a PPPoE session, taken out of it and sent on through the other adapter.
pub fn measure(guest: &Guest, cpus: usize) -> Result<()> {
    let session = guest.start(
        &[program("rxlane-lab")?.display().to_string().as_str(), "session", "wan", "1", GATEWAY],
        "/tmp/session",
    )?;
    guest.sh(
        "until [ -s /tmp/session ]; do sleep 0.1; done; ip link set $(cat /tmp/session) mtu 1492 up; \
         ip addr add 192.0.2.1/24 dev lan; ip neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev lan; \
         ip route add 100.64.0.0/10 via 192.0.2.2; ip route add 198.18.0.0/15 dev ppp0",
    )?;
    for size in [1400_u16, 90] {
        let frames = pppoe(guest, size)?;
        println!(
            "forwarded, frames of {size} bytes, {FLOWS} flows; instructions per packet on CPUs 0 to {}",
            cpus - 1
        );
        for mode in selected(spreading(cpus).into_iter().map(Mode::from).collect()) {
            enter(guest, PORTS, &mode, cpus)?;
            // The first packets fill caches.
            burst(guest, PORTS, &frames)?;
            let idle = idle(guest)?;
            let work = count(guest, &idle, || {
                let before = guest.port("lan")?.received();
                for _ in 0..BURSTS {
                    burst(guest, PORTS, &frames)?;
                }
                let passed = guest.port("lan")?.received() - before;
                let sent = (BURSTS * frames.len()) as u64;
                Ok((passed, format!("({} lost)", sent.saturating_sub(passed))))
            })?;
            print(&mode.name(), &work, cpus);
            leave(guest, PORTS, &mode)?;
        }
    }
    guest.signal(session, 15, true)?;
    Ok(())
}

/// Sends a burst and waits until all or nothing more comes out of the other side: that.
pub fn burst(guest: &Guest, [port, out]: [&str; 2], frames: &[Vec<u8>]) -> Result<Vec<Vec<u8>>> {
    let (port, out) = (guest.port(port)?, guest.port(out)?);
    let before = out.received();
    port.inject(frames, 0)?;
    let mut last = (out.received(), Instant::now());
    loop {
        // A lost frame is no event: a burst is over when nothing more has come for a while.
        thread::sleep(Duration::from_millis(5));
        let now = out.received();
        if now != last.0 {
            last = (now, Instant::now());
        }
        if now - before >= frames.len() as u64 || last.1.elapsed() > Duration::from_millis(1500) {
            return Ok(out.collect());
        }
    }
}

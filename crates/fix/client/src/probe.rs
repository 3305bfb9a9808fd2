//! Looks who answers to PPPoE discovery on an interface, and how fast: the sockets and clocks of [`pppoe::discovery::probe`].
//!
//! One PADI a second goes out with the tags of the line. All discovery packets are looked at that come for this station or for
//! all, whatever their tags, so that what is in another VLAN can be reported; the interface is promiscuous meanwhile. Answers are
//! timed by when the kernel received them. No session is requested, so that a concentrator keeps no state.

use crate::error::Error;
use kernel::netlink::Link;
use link::pppoe::ControlSocket;
use pppoe::Random;
use pppoe::discovery::Packet;
use pppoe::discovery::probe::{Probe, Question};
use rustix::time::{ClockId, clock_gettime};
use service::event_loop::ready;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use wire::ethernet::MacAddress;
use wire::pppoe::Stage;
use wire::{VlanPattern, Vlans};

const INTERVAL: Duration = Duration::from_secs(1);

/// Asks for `time` on an Ethernet interface, and gives what came.
///
/// # Errors
///
/// Without CAP_NET_RAW; [`Error::Discovery`] where the service name is too long, [`Error::NotSent`] where the interface does
/// not take a PADI; what else the kernel says.
pub fn run(
    parent: &Link,
    vlans: Vlans,
    question: Question,
    time: Duration,
    random: &mut dyn Random,
) -> Result<Probe, Error> {
    let local = parent.mac.unwrap_or_default();
    let what = || format!("look for concentrators on {}", parent.name);
    let kernel = |source| link::Error::Kernel { what: what(), source };
    let socket = ControlSocket::open(parent.index, local, VlanPattern::Any);
    let mut socket = socket.map_err(link::Error::packet_socket(&parent.name))?;
    // Without them the time at which the frame is read will do.
    let _ = socket.enable_timestamps();
    let mut probe = Probe::new(question, local, random);
    let begin = clock(ClockId::Monotonic);
    let (mut next, end) = (begin, begin.saturating_add(time));
    loop {
        let now = clock(ClockId::Monotonic);
        if now >= end {
            return Ok(probe);
        }
        if now >= next {
            initiate(&mut probe, &mut socket, vlans, parent)?;
            next = now.saturating_add(INTERVAL);
        }
        let wait = next.min(end).saturating_sub(clock(ClockId::Monotonic));
        ready([Some(socket.as_fd())], Some(wait)).map_err(kernel)?;
        receive(&mut probe, &mut socket, vlans).map_err(kernel)?;
    }
}

fn initiate(probe: &mut Probe, socket: &mut ControlSocket, vlans: Vlans, parent: &Link) -> Result<(), Error> {
    let padi = probe.padi(clock(ClockId::Monotonic))?;
    socket
        .send(MacAddress::BROADCAST, vlans, Stage::Discovery, &padi)
        .map_err(|unsent| Error::NotSent { parent: parent.name.clone(), why: unsent.why })
}

fn receive(probe: &mut Probe, socket: &mut ControlSocket, vlans: Vlans) -> io::Result<()> {
    let (now, wall) = (clock(ClockId::Monotonic), clock(ClockId::Realtime));
    socket
        .receive(|frame| {
            if frame.stage != Stage::Discovery {
                return;
            }
            if frame.vlans != vlans {
                return probe.seen_elsewhere(frame.vlans);
            }
            // By the clock that can be set the kernel reports how long ago it was; a clock that was set meanwhile does not count.
            let age = frame.time.and_then(|time| wall.checked_sub(time)).filter(|age| *age < INTERVAL);
            let at = now.saturating_sub(age.unwrap_or_default());
            let packet =
                Packet { source: frame.source, destination: frame.destination, payload: frame.payload };
            probe.receive(at, packet);
        })
        .map(drop)
}

fn clock(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

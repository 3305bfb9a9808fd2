//! In the guest: UDP packets through the sessions, all of them in turn, no more under way than a ring of veth has room for.

use crate::hosts::frame;
use crate::topology::{CORE, LINE, SERVER, UPLINK};
use anyhow::{Context, Result};
use kernel::socket::Transmit;
use pppoe::framing::wrapped;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};
use wire::IpProtocol;
use wire::emit::{Emit, Ipv4, Udp};

/// Packets under way (a ring of veth has 256 places), and at once.
const WINDOW: u64 = 192;
const BURST: usize = 32;
/// After so long without an arrival, packets under way are taken for lost.
const LATE: Duration = Duration::from_millis(500);

/// From the subscribers (`is_up`), whose namespace this runs in then, or to them, from `core`; IP packets of `size` bytes.
/// Prints packets sent, packets arrived and seconds.
pub fn forward(is_up: bool, size: usize, seconds: f64, lines: &str) -> Result<()> {
    let text = std::fs::read_to_string(lines)?;
    let frames = text.lines().map(|line| -> Result<Vec<u8>> {
        let mut words = line.split(' ');
        let mut word = || words.next().context("a line");
        let (host, session, address): (u32, u16, Ipv4Addr) =
            (word()?.parse()?, word()?.parse()?, word()?.parse()?);
        if is_up {
            let packet = [&[0, 0x21][..], &datagram(address, SERVER.into(), size)?].concat();
            return Ok(frame(LINE, host, [0x88, 0x64], &wrapped(session, &packet)));
        }
        let packet = datagram(SERVER.into(), address, size)?;
        Ok([&UPLINK[..], &CORE, &[8, 0], &packet].concat())
    });
    let frames = frames.collect::<Result<Vec<_>>>()?;
    let (own, far, namespace) = if is_up { ("wan0", "core0", "core") } else { ("core0", "wan0", "lines") };
    let mut counter = counter(namespace)?;
    let mut transmit = Transmit::open(own)?;
    let mut all = frames.iter().map(Vec::as_slice).cycle();
    let first = received(&mut counter, far)?;
    let (start, mut sent, mut lost, mut arrived) = (Instant::now(), 0, 0, 0);
    let mut progress = Instant::now();
    loop {
        let now = received(&mut counter, far)? - first;
        if now > arrived {
            (arrived, progress) = (now, Instant::now());
        }
        let is_over = start.elapsed().as_secs_f64() > seconds;
        if progress.elapsed() > LATE {
            lost = sent - arrived;
            progress = Instant::now();
        }
        let under_way = sent - (arrived + lost).min(sent);
        if is_over && under_way == 0 {
            break;
        }
        if !is_over && under_way + BURST as u64 <= WINDOW {
            transmit.send(&all.by_ref().take(BURST).collect::<Vec<_>>())?;
            sent += BURST as u64;
        } else {
            // The window is full: the CPU is for those who carry the packets.
            sleep(Duration::from_micros(50));
        }
    }
    println!("{sent} {arrived} {}", start.elapsed().as_secs_f64());
    Ok(())
}

fn datagram(source: Ipv4Addr, destination: Ipv4Addr, size: usize) -> Result<Vec<u8>> {
    let mut packet = vec![0x5a; size];
    Ipv4::new(IpProtocol::UDP, source, destination, u16::try_from(size)?).emit(&mut packet)?;
    let udp = Udp { source_port: 1, destination_port: 7000, length: u16::try_from(size - 20)?, checksum: 0 };
    udp.emit(packet.get_mut(20..).context("room")?)?;
    Ok(packet)
}

/// The counters of another namespace's interfaces.
fn counter(namespace: &str) -> Result<File> {
    let namespace = File::open(format!("/run/netns/{namespace}"))?;
    let inside = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        File::open("/proc/thread-self/net/dev")
    };
    let opened = thread::scope(|scope| scope.spawn(inside).join());
    Ok(opened.unwrap_or_else(|_| Err(io::Error::other("panicked")))?)
}

fn received(counter: &mut File, interface: &str) -> Result<u64> {
    let mut text = String::new();
    counter.rewind()?;
    counter.read_to_string(&mut text)?;
    let line = text.lines().find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).context("no count of packets")
}

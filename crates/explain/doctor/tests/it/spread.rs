//! Rules about how frames spread over queues and CPUs. The fixtures follow the layout of ethtool 6.x, `/proc/interrupts`
//! and `/proc/softirqs` (fs/proc), `/proc/net/pppoe` (drivers/net/ppp/pppoe.c, pppoe_seq_show), procps-ng's top, and
//! FreeBSD's `netstat -Q` and `pciconf -lv`; their values are made up except where a test names its source.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod boards;
mod interrupts;
mod queues;
mod software;
mod steered;
mod unhashed;

use crate::findings::*;
use capture::{LinkType, Resolution, Writer};
use host::System;
use rxlane_doctor::Report;
use rxlane_doctor::facts::{Assumption, Effect, Forecast, Model, Modelled};
use rxlane_doctor::finding::{Finding, Remedy, Severity};
use rxlane_doctor::report::{Outcome, Verdict};
use std::fmt::Write;

fn pcap<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::pcap(&mut bytes, LinkType::Ethernet, Resolution::Nanoseconds).unwrap();
    for (at, frame) in (0..).zip(frames) {
        writer.write(at, frame, u32::try_from(frame.len()).unwrap()).unwrap();
    }
    writer.finish().unwrap();
    bytes
}

/// 4,000 frames of a named scenario.
fn scenario(name: &str, flows: u32) -> Vec<u8> {
    let mut generator = traffic::Scenario::named(name).unwrap().with_flows(flows).generate(7).unwrap();
    let frames: Vec<Vec<u8>> = (0..4000).map(|_| generator.next_frame().bytes.to_vec()).collect();
    pcap(frames.iter().map(Vec::as_slice))
}

fn effects(finding: &Finding) -> Vec<Effect> {
    finding.remedies.iter().map(|remedy| remedy.effect.clone()).collect()
}

fn modelled(remedy: &Remedy) -> Modelled {
    let Some(Model::Expected(modelled)) = &remedy.model else { panic!("no model: {remedy:#?}") };
    modelled.clone()
}

/// Counters as igb names them.
fn queues(name: &str, packets: &[u64]) -> String {
    let mut text = statistics(name, &[]);
    for (queue, packets) in packets.iter().enumerate() {
        writeln!(text, "     rx_queue_{queue}_packets: {packets}\n     rx_queue_{queue}_drops: 0").unwrap();
    }
    text
}

/// Four vectors of a device, one a CPU.
pub fn one_each(name: &str) -> String {
    vectors((40..44).zip(0..).map(|(vector, queue)| {
        let mut counts = [12; 4];
        counts[queue] = 5_000_000;
        (vector, counts, format!("{name}-rx-{queue}"))
    }))
}

/// A line of top: softirq and idle, per cent.
fn load(cpu: u32, softirq: f64, idle: f64) -> String {
    format!(
        "$ top -b -n 1\n%Cpu{cpu}  :  0.5 us,  1.0 sy,  0.0 ni, {idle:4.1} id,  0.0 wa,  0.0 hi, {softirq:4.1} si,  0.0 st\n"
    )
}

fn channels(name: &str, most: u32, current: u32) -> String {
    format!(
        "$ ethtool -l {name}\nChannel parameters for {name}:\nPre-set maximums:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\n\
         Combined:\t{most}\nCurrent hardware settings:\nRX:\t\tn/a\nTX:\t\tn/a\nOther:\t\t1\nCombined:\t{current}\n"
    )
}

/// `ethtool -x`: the queue of each entry.
fn table(name: &str, rings: u32, entries: impl Iterator<Item = u32>) -> String {
    let entries: Vec<u32> = entries.collect();
    let mut text =
        format!("$ ethtool -x {name}\nRX flow hash indirection table for {name} with {rings} RX ring(s):\n");
    for (row, queues) in entries.chunks(8).enumerate() {
        write!(text, "{:>5}: ", row * 8).unwrap();
        for queue in queues {
            write!(text, " {queue:>5}").unwrap();
        }
        text.push('\n');
    }
    text.push_str(
        "RSS hash key:\nOperation not supported\nRSS hash function:\n    toeplitz: on\n    xor: off\n",
    );
    text
}

fn fields(name: &str, flow: &str, with_ports: bool) -> String {
    let title = if flow == "udp4" { "UDP over IPV4" } else { "UDP over IPV6" };
    let ports = "L4 bytes 0 & 1 [TCP/UDP src port]\nL4 bytes 2 & 3 [TCP/UDP dst port]\n";
    format!(
        "$ ethtool -n {name} rx-flow-hash {flow}\n{title} flows use these fields for computing Hash flow key:\nIP SA\n\
         IP DA\n{}\n",
        if with_ports { ports } else { "" }
    )
}

fn mask(name: &str, queue: u32, mask: &str) -> String {
    format!("$ cat /sys/class/net/{name}/queues/rx-{queue}/rps_cpus\n{mask}\n")
}

fn session(name: &str) -> String {
    format!(
        "$ cat /proc/net/pppoe\nId       Address              Device\n00002A00 02:00:00:00:00:01    {name:>8}\n"
    )
}

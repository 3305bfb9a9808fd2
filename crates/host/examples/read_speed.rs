//! How long the text reader takes for a long paste: `cargo run --release -p rxlane-host --example read_speed`.
//!
//! Each kind of text is repeated up to 100 MB and read; the time is for all of it, memory not included.

use rxlane_host::text::Reader;
use std::io::{self, Write};
use std::time::Instant;

const OCTETS: usize = 100_000_000;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for (name, unit) in kinds() {
        let text = unit.repeat(OCTETS / unit.len());
        let lines = text.lines().count();
        let start = Instant::now();
        let mut reader = Reader::new();
        reader.read(name, text.as_bytes())?;
        let snapshot = reader.finish();
        let time = start.elapsed();
        let each = time.as_nanos() / lines as u128;
        writeln!(
            out,
            "{name}: {lines} lines in {:.2} s, {each} ns a line; {} tools read",
            time.as_secs_f64(),
            snapshot.read.len()
        )?;
    }
    Ok(())
}

fn kinds() -> Vec<(&'static str, String)> {
    let prose = "I looked at my router again, 5 queues of the card get 100 % of the frames: why is that?\n";
    let mut statistics = "$ ethtool -S eth0\nNIC statistics:\n".to_owned();
    for queue in 0..8 {
        for what in ["packets", "bytes", "drops", "csum_err", "alloc_failed"] {
            statistics.push_str(&format!("     rx_queue_{queue}_{what}: 1234567{queue}\n"));
        }
    }
    let mut interrupts = format!("{:11}CPU0       CPU1       CPU2       CPU3\n", "");
    for vector in 50..90 {
        let name = format!("eth{}-TxRx-{}", vector / 60, vector % 8);
        interrupts.push_str(&format!(
            " {vector}: {vector:10} {:10} {:10} {:10}   PCI-MSI {vector}-edge      {name}\n",
            12345, 0, 77
        ));
    }
    let mut link = String::new();
    for index in 2..6 {
        link.push_str(&format!(
            "{index}: eth{index}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group \
             default qlen 1000\n    link/ether 02:00:00:00:00:0{index} brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu \
             68 maxmtu 9216 numtxqueues 4\n    RX: bytes packets errors dropped missed mcast\n    1 2 3 4 5 6\n    \
             TX: bytes packets errors dropped carrier collsns\n    1 2 3 4 5 6\n"
        ));
    }
    let softnet = "0000b032 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
                   00000000 00000000 00000001\n\n";
    vec![
        ("prose", prose.to_owned()),
        ("ethtool -S", statistics),
        ("/proc/interrupts", interrupts),
        ("ip -d -s link", link),
        ("softnet_stat", softnet.to_owned()),
    ]
}

//! How long the text reader takes for a long paste: `cargo run --release -p rxlane-host --example paste_speed`.
//!
//! Each kind of text is repeated up to 100 MB and read; the time is for all of it, memory not included. With
//! a folder, and a number of bytes where 100 MB are too many, the texts are written there instead, for
//! `rxlane doctor --from`.

use rxlane_host::text::Reader;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Instant;

const BYTES: usize = 100_000_000;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next();
    let bytes = arguments.next().and_then(|bytes| bytes.parse().ok()).unwrap_or(BYTES);
    for (name, unit) in kinds() {
        let text = unit.repeat((bytes / unit.len()).max(1));
        match &folder {
            Some(folder) => std::fs::write(format!("{folder}/{name}"), text)?,
            None => measure(name, &text)?,
        }
    }
    Ok(())
}

fn measure(name: &str, text: &str) -> io::Result<()> {
    let lines = text.lines().count();
    let start = Instant::now();
    let mut reader = Reader::new();
    reader.read(name, text.as_bytes())?;
    let snapshot = reader.finish();
    let time = start.elapsed();
    let each = time.as_nanos() / lines as u128;
    writeln!(
        io::stdout().lock(),
        "{name}: {lines} lines in {:.2} s, {each} ns a line; {} tools read",
        time.as_secs_f64(),
        snapshot.read.len()
    )
}

fn kinds() -> Vec<(&'static str, String)> {
    let prose = "I looked at my router again, 5 queues of the card get 100 % of the frames: why is that?\n";
    let samples = format!(
        "# sample 1 at 100.0\n{}# sample 2 at 103.0\n{}",
        statistics(16, 8, 12_345_678),
        statistics(16, 8, 12_399_999)
    );
    let link = link(16);
    let softnet = "0000b032 00000000 00000001 00000000 00000000 00000000 00000000 00000000 00000000 00000000 \
                   00000000 00000000 00000001\n";
    let mixed = format!(
        "{}{}$ cat /proc/interrupts\n{}$ ip -d -s link\n{link}$ cat /proc/net/softnet_stat\n{}",
        prose.repeat(10),
        statistics(2, 4, 12_345_678),
        interrupts(8, 30),
        softnet.repeat(8)
    );
    vec![
        ("prose", prose.to_owned()),
        ("statistics", samples),
        ("interrupts", format!("$ cat /proc/interrupts\n{}", interrupts(128, 200))),
        ("link", link),
        ("softnet", softnet.to_owned()),
        ("mixed", mixed),
    ]
}

/// `ethtool -S` of many interfaces, by the names of igb.
fn statistics(interfaces: u64, queues: u64, value: u64) -> String {
    const TOTALS: [&str; 16] = [
        "rx_packets",
        "tx_packets",
        "rx_bytes",
        "tx_bytes",
        "rx_broadcast",
        "rx_multicast",
        "collisions",
        "rx_crc_errors",
        "rx_no_buffer_count",
        "rx_missed_errors",
        "tx_aborted_errors",
        "tx_deferred_ok",
        "rx_long_length_errors",
        "rx_errors",
        "rx_length_errors",
        "rx_fifo_errors",
    ];
    let mut text = String::new();
    for interface in 0..interfaces {
        let _ = write!(text, "$ ethtool -S eth{interface}\nNIC statistics:\n");
        for name in TOTALS {
            let _ = writeln!(text, "     {name}: {}", value * 7);
        }
        for (direction, counters) in [
            ("tx", &["packets", "bytes", "restart"][..]),
            ("rx", &["packets", "bytes", "drops", "csum_err", "alloc_failed"]),
        ] {
            for queue in 0..queues {
                for counter in counters {
                    let _ = writeln!(text, "     {direction}_queue_{queue}_{counter}: {}", value + queue);
                }
            }
        }
    }
    text
}

fn interrupts(cpus: usize, vectors: usize) -> String {
    let mut text = format!("{:12}", "");
    (0..cpus).for_each(|cpu| text.push_str(&format!("CPU{cpu:<8}")));
    text.push('\n');
    for vector in 0..vectors {
        let _ = write!(text, "{:4}: ", vector + 50);
        for cpu in 0..cpus {
            let _ = write!(text, "{:10} ", if cpu == vector % cpus { 12_345 } else { 0 });
        }
        let (interface, queue) = (vector / 64, vector % 64);
        let _ = writeln!(text, " IR-PCI-MSIX-0000:01:00.0 {vector}-edge eth{interface}-TxRx-{queue}");
    }
    text
}

fn link(interfaces: u32) -> String {
    let mut text = String::new();
    for index in 2..2 + interfaces {
        let _ = write!(
            text,
            "{index}: eth{index}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group \
             default qlen 1000\n    link/ether 02:00:00:00:00:{index:02x} brd ff:ff:ff:ff:ff:ff promiscuity 0 minmtu \
             68 maxmtu 9216 numtxqueues 4\n    RX: bytes packets errors dropped missed mcast\n    1 2 3 4 5 6\n    \
             TX: bytes packets errors dropped carrier collsns\n    1 2 3 4 5 6\n"
        );
    }
    text
}

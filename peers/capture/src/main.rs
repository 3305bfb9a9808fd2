//! Megabytes per second of reading a capture: plain read, this crate with one and two threads, pcap-parser.
//!
//! `cargo run --release -p bench-capture -- [MEGABYTES [REPETITIONS [CHUNK_KIB]]]`
//!
//! Writes a temporary file of frames of about 400 bytes, reads it from the page cache, all readers in turn, and
//! prints the median and the range of each. Every reader sums frames, lengths and one byte of each frame.

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::time::Instant;

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{LegacyPcapReader, PcapBlockOwned, PcapError, PcapNGReader};
use rxlane_capture::{Batch, Capture, LinkType, Resolution, Writer};

type Sums = (u64, u64, u64);

fn generate(path: &Path, megabytes: u64, ng: bool) {
    let file = File::create(path).expect("temporary file");
    let mut writer = if ng {
        Writer::pcapng(file, LinkType::Ethernet, Resolution::Nanoseconds)
    } else {
        Writer::pcap(file, LinkType::Ethernet, Resolution::Microseconds)
    }
    .expect("header");
    let data: Vec<u8> = (0..1514).map(|at| at as u8).collect();
    let (mut written, mut random, mut time) = (0, 0x9e37_79b9_7f4a_7c15_u64, 1_700_000_000_000_000_000);
    while written < megabytes * 1_000_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // 7:4:1 of 60, 590 and 1514 bytes would be 357; 20 % large ones make it about 400.
        let size = match random % 10 {
            0..=5 => 60 + (random >> 32) as usize % 20,
            6 | 7 => 240 + (random >> 32) as usize % 100,
            _ => 1414 + (random >> 32) as usize % 100,
        };
        writer.write(time, &data[..size], size as u32).expect("write");
        time += 1_000;
        written += size as u64 + 16;
    }
    writer.finish().expect("flush");
}

fn plain_read(path: &Path) -> Sums {
    let mut file = File::open(path).expect("open");
    let mut buf = vec![0; 1 << 20];
    loop {
        let read = file.read(&mut buf).expect("read");
        if read == 0 {
            return (0, 0, 0);
        }
        black_box(&buf[..read]);
    }
}

fn sum(sums: &mut Sums, batch: &Batch) {
    for frame in batch.frames() {
        sums.0 += 1;
        sums.1 += u64::from(frame.wire_len);
        sums.2 += u64::from(frame.data[12]);
    }
}

fn in_order(path: &Path, chunk: usize) -> Sums {
    let mut capture = Capture::open(path).expect("capture");
    capture.set_chunk_size(chunk);
    let (mut batch, mut sums) = (Batch::new(), (0, 0, 0));
    while capture.next_batch(&mut batch) {
        sum(&mut sums, &batch);
    }
    sums
}

fn parallel(path: &Path, chunk: usize) -> Sums {
    let mut capture = Capture::open(path).expect("capture");
    capture.set_chunk_size(chunk);
    let (sums, _) = capture.read_parallel(2, |_| (0, 0, 0), sum);
    sums.iter().fold((0, 0, 0), |all, one| (all.0 + one.0, all.1 + one.1, all.2 + one.2))
}

fn with_pcap_parser(path: &Path, ng: bool) -> Sums {
    let file = File::open(path).expect("open");
    let mut reader: Box<dyn PcapReaderIterator> = if ng {
        Box::new(PcapNGReader::new(1 << 20, file).expect("pcapng"))
    } else {
        Box::new(LegacyPcapReader::new(1 << 20, file).expect("pcap"))
    };
    let mut sums = (0, 0, 0);
    loop {
        match reader.next() {
            Ok((used, block)) => {
                let frame = match &block {
                    PcapBlockOwned::Legacy(record) => Some((record.origlen, record.data)),
                    PcapBlockOwned::NG(pcap_parser::Block::EnhancedPacket(packet)) => {
                        Some((packet.origlen, packet.data))
                    }
                    _ => None,
                };
                if let Some((origlen, data)) = frame {
                    sums.0 += 1;
                    sums.1 += u64::from(origlen);
                    sums.2 += u64::from(data[12]);
                }
                reader.consume(used);
            }
            Err(PcapError::Eof) => return sums,
            Err(PcapError::Incomplete(_)) => reader.refill().expect("refill"),
            Err(error) => panic!("{error}"),
        }
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().expect("a number"));
    let megabytes = arguments.next().unwrap_or(200);
    let repetitions = arguments.next().unwrap_or(11) as usize;
    let chunk = arguments.next().unwrap_or(256) as usize * 1024;
    let folder = tempfile::tempdir().expect("temporary directory");
    for ng in [false, true] {
        let path = folder.path().join(if ng { "speed.pcapng" } else { "speed.pcap" });
        generate(&path, megabytes, ng);
        let size = path.metadata().expect("size").len() as f64;
        let readers: [(&str, &dyn Fn() -> Sums); 4] = [
            ("read, 1 MiB", &|| plain_read(&path)),
            ("rxlane, 1 thread", &|| in_order(&path, chunk)),
            ("rxlane, 2 threads", &|| parallel(&path, chunk)),
            ("pcap-parser", &|| with_pcap_parser(&path, ng)),
        ];
        let mut rates = vec![Vec::new(); readers.len()];
        let expected = with_pcap_parser(&path, ng);
        for _ in 0..repetitions {
            for (at, (name, reader)) in readers.iter().enumerate() {
                let start = Instant::now();
                let sums = reader();
                rates[at].push(size / 1e6 / start.elapsed().as_secs_f64());
                assert!(at == 0 || sums == expected, "{name}: {sums:?} instead of {expected:?}");
            }
        }
        println!("{} ({} frames, {:.0} MB)", if ng { "pcapng" } else { "pcap" }, expected.0, size / 1e6);
        for ((name, _), rates) in readers.iter().zip(&mut rates) {
            rates.sort_by(f64::total_cmp);
            let (low, high) = (rates[0], rates[rates.len() - 1]);
            println!("  {name:<18} {:>6.0} MB/s ({low:.0} to {high:.0})", rates[rates.len() / 2]);
        }
    }
}

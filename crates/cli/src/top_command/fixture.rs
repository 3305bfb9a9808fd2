//! Machines for the tests: texts as `host::live::Counters` writes them.

use super::model::{IpCounts, Material};
use super::steering::{OFF, Readings};
use super::traffic::{Sampling, Tally};
use host::text::Reader;
use std::time::Duration;
use steer::status::{BucketRow, CpuRow, ReasonRow, Status};
use traffic::Scenario;

/// Two samples of a router whose igb has everything on queue 0, since it is PPPoE.
pub const IGB: [&str; 3] = [
    include_str!("fixtures/igb.settings.txt"),
    include_str!("fixtures/igb.first.txt"),
    include_str!("fixtures/igb.latest.txt"),
];
/// Two samples of a veth interface in a container, of which little can be read.
pub const VETH: [&str; 3] = [
    include_str!("fixtures/veth.settings.txt"),
    include_str!("fixtures/veth.first.txt"),
    include_str!("fixtures/veth.latest.txt"),
];

/// The material of `interface` in these texts, nothing steered.
pub fn material(texts: &[&str], interface: &str) -> Material {
    let mut reader = Reader::new();
    for text in texts {
        reader.read("fixture", text.as_bytes()).expect("memory");
    }
    Material {
        interface: interface.to_owned(),
        snapshot: reader.finish(),
        ip: [
            Some(IpCounts { received: 1_000_000, discarded: 4 }),
            Some(IpCounts { received: 1_060_000, discarded: 4 }),
        ],
        fastpath: None,
        steering: Readings { former: Some(off()), latest: Ok(off()), between: Duration::from_secs(1) },
        left_out: 0,
    }
}

fn off() -> Status {
    Status { mode: OFF, complete: true, ..Status::default() }
}

/// The igb with frames steered to three CPUs; in the second between the readings.
pub fn steered() -> Material {
    let cpu = |(cpu, rate): (u32, u64), frames: u64| CpuRow {
        cpu,
        frames: 5 * rate + rate * frames,
        drops: 3 * u64::from(cpu == 2) * frames,
        ..CpuRow::default()
    };
    let bucket =
        |bucket: usize| BucketRow { bucket, cpu: bucket as u32 % 3 + 1, frames: 0, lost: 0, waiting: false };
    let status = |frames: u64| Status {
        mode: "native",
        complete: true,
        cpus: [(1, 20_000), (2, 21_000), (3, 20_800)].map(|of| cpu(of, frames)).into(),
        reasons: [("steered", 61_800), ("pppoe-control", 1), ("arp", 2), ("class-off", 1202)]
            .map(|(reason, rate)| ReasonRow { reason, frames: rate * (frames + 5), per_second: None })
            .into(),
        buckets: (0..256).map(bucket).collect(),
        moves: 7,
        ..Status::default()
    };
    let readings =
        Readings { former: Some(status(0)), latest: Ok(status(1)), between: Duration::from_secs(1) };
    Material { steering: readings, ..material(&IGB, "wan0") }
}

/// A sample of seeded traffic.
pub fn sampling(scenario: &str, frames: usize) -> Sampling {
    let scenario = Scenario::named(scenario).expect("a scenario").with_flows(50);
    let mut generator = scenario.generate(3).expect("a generator");
    let mut tally = Tally { looked: Duration::from_millis(48), merged: 12, ..Tally::default() };
    for _ in 0..frames {
        let frame = generator.next_frame();
        tally.frame(frame.bytes, frame.bytes.len());
    }
    Sampling::Taken(tally)
}

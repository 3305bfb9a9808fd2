//! Reports to draw: an everyday one and the edges of what a capture can lead to.

use explain::Report;
use explain::report::*;
use std::collections::BTreeMap;

/// A file name, a stack or whatever a hostile capture or a hostile file system brings along.
pub const HOSTILE: &str = "<script>alert('1')</script><img src=http://e.vil/x onerror=a>&\"\u{202e}\u{7}";

fn map(entries: &[(&str, u64)]) -> BTreeMap<String, u64> {
    entries.iter().map(|(name, frames)| ((*name).to_owned(), *frames)).collect()
}

fn stack(stack: &str, frames: u64, types: &[(&str, u64)], why: &str, sources: &[&str]) -> StackRow {
    StackRow {
        stack: stack.to_owned(),
        frames,
        bytes: frames * 611,
        hash_type: types.first().map_or("none", |(name, _)| name).to_owned(),
        why: why.to_owned(),
        sources: sources.iter().map(|source| (*source).to_owned()).collect(),
        hash_types: map(types),
    }
}

/// The report with these frames per queue and per CPU.
pub fn spread(mut report: Report, queues: &[u64], unplaced: u64, cpus: &[u64]) -> Report {
    let row = |(queue, frames): (u16, &u64)| QueueRow {
        queue,
        frames: *frames,
        bytes: frames * 611,
        flows: frames / 40,
    };
    report.source.frames = queues.iter().sum::<u64>() + unplaced;
    report.source.wire_bytes = report.source.frames * 611;
    report.queues = (0..).zip(queues).map(row).collect();
    report.imbalance = Imbalance::of(queues);
    report.nic.queues = queues.len() as u16;
    report.nic.unplaced = unplaced;
    let Imbalance { max_over_mean, effective_queues } = Imbalance::of(cpus);
    report.steered = Steered {
        cpus: cpus.len() as u16,
        per_cpu: (0..).zip(cpus).map(|(cpu, frames)| CpuRow { cpu, frames: *frames }).collect(),
        max_over_mean,
        effective_queues,
        left_alone: 64,
    };
    report
}

/// Nothing was read.
pub fn empty() -> Report {
    Report {
        schema: Report::SCHEMA,
        source: Source { files: vec!["empty.pcap".to_owned()], bytes: 24, ..Source::default() },
        stacks: Vec::new(),
        tags: Vec::new(),
        pppoe: Pppoe::default(),
        flows: Flows::default(),
        fragments: Fragments::default(),
        extension_headers: BTreeMap::new(),
        bad: Bad::default(),
        nic: Nic {
            name: "i210".to_owned(),
            title: "Intel Ethernet Controller I210".to_owned(),
            queues: 4,
            assumed: true,
            unplaced: 0,
            unknown: Vec::new(),
            table_queues: 4,
            better_modes: Vec::new(),
            key: "6d:5a:6d:5a:6d:5a:6d:5a".to_owned(),
            key_given: false,
            hash_types: vec!["ipv4", "tcp-ipv4"],
        },
        queues: (0..4).map(|queue| QueueRow { queue, frames: 0, bytes: 0, flows: 0 }).collect(),
        imbalance: Imbalance::default(),
        steered: Steered {
            cpus: 4,
            per_cpu: (0..4).map(|cpu| CpuRow { cpu, frames: 0 }).collect(),
            max_over_mean: 0.0,
            effective_queues: 0.0,
            left_alone: 0,
        },
        admission: Admission::default(),
        top_flows: Vec::new(),
    }
}

/// A stack, its frames by hash type, why that is so, and who says so.
type Stack = (&'static str, &'static [(&'static str, u64)], &'static str, &'static [&'static str]);

/// PPPoE behind two tags with everything a report can hold.
pub fn usual() -> Report {
    const DATASHEET: &str =
        "Intel Ethernet Controller I210 Datasheet (333016): 7.1.2.10 (the hash types begin with IP)";
    const STORY: &str = "A Sad Slow PPPoE Story: all PPPoE on one queue of an I210AT";
    const TAGS: &str = "Intel Ethernet Controller I210 Datasheet (333016): 7.4.5 Double VLAN Support";
    const STOPS: &str = "the parser stops at the PPPoE header";
    const STACKS: [Stack; 5] = [
        (
            "eth/vlan/vlan/pppoe/ipv4/tcp",
            &[("none", 61_204)],
            "the parser does not see through VLAN tags 0x88a8 0x8100",
            &[TAGS],
        ),
        ("eth/vlan/pppoe/ipv6/tcp", &[("none", 20_118)], STOPS, &[DATASHEET, STORY]),
        ("eth/vlan/pppoe/ipv4/udp", &[("none", 12_126)], STOPS, &[DATASHEET, STORY]),
        ("eth/ipv4/tcp", &[("tcp-ipv4", 4_280), ("ipv4", 32)], "hashed over addresses and ports", &[]),
        ("eth/arp", &[("none", 2_240)], "arp is not an IP packet", &[]),
    ];
    const REASONS: [(&str, u64, u64); 2] =
        [("ipv4: total length exceeds the frame", 3, 8_812), ("pppoe: version is not 1", 1, 91_004)];
    const FLOWS: [(&str, Option<u16>); 2] = [
        ("[2001:db8:1:2:3:4:5:6]:443 > [2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff]:60122", Some(0)),
        ("198.51.100.4:4500 > 100.64.3.7:4500", None),
    ];
    let mut report = spread(empty(), &[93_512, 2_210, 2_140, 2_138], 0, &[25_802, 24_731, 24_990, 24_477]);
    let file = "/var/tmp/captures/evening-peak.pcapng.gz".to_owned();
    report.source = Source {
        files: vec![file.clone()],
        frames: 100_000,
        bytes: 63_102_024,
        captured_bytes: 61_502_000,
        wire_bytes: 61_100_000,
        seconds: Some(8.214),
        link_types: map(&[("Ethernet", 100_000)]),
        problems: vec![format!("{file}: frame 100001, offset 63102024: 12 bytes are missing")],
        ..Source::default()
    };
    let frames = |types: &[(&str, u64)]| types.iter().map(|(_, frames)| frames).sum();
    let row = |(name, types, why, sources)| stack(name, frames(types), types, why, sources);
    report.stacks = STACKS.map(row).to_vec();
    report.tags = [("0x88a8/3704 0x8100/2474", 61_204), ("0x8100/35", 32_244), ("untagged", 6_552)]
        .map(|(tags, frames)| TagRow { tags: tags.to_owned(), frames })
        .to_vec();
    report.pppoe = Pppoe {
        sessions: 312,
        codes: map(&[("session", 93_436), ("padi", 8), ("pado", 4)]),
        ppp: map(&[("0x0021", 73_218), ("0x0057", 20_118), ("0xc021", 100)]),
    };
    report.flows = Flows { unidirectional: 2_418, bidirectional: 1_212, two_way: 1_206 };
    report.fragments = Fragments { ipv4_first: 31, ipv4_later: 31, ipv6_first: 0, ipv6_later: 0 };
    report.extension_headers = BTreeMap::from([("fragment", 12), ("hop-by-hop", 3)]);
    let first =
        |(reason, _, frame): (&str, _, _)| (reason.to_owned(), FirstFrame { file: file.clone(), frame });
    report.bad = Bad {
        truncated: 3,
        malformed: 1,
        cut_by_capture: 0,
        reasons: map(&REASONS.map(|(reason, frames, _)| (reason, frames))),
        first: REASONS.map(first).into(),
    };
    report.admission = Admission { accepted: 99_988, unknown: 0, dropped: vec![dropped(STACKS[0].0, 12)] };
    let flow = |(flow, queue): (&str, _)| {
        let (flow, protocol, frames) = (flow.to_owned(), "tcp", 4_117);
        FlowRow { flow, protocol, frames, bytes: frames * 1_480, queue, cpu: 3 }
    };
    report.top_flows = FLOWS.map(flow).to_vec();
    report
}

fn dropped(stack: &str, frames: u64) -> Dropped {
    Dropped { stack: stack.to_owned(), limit: 1528, frames, bytes: frames * 2_512, largest: 2_512 }
}

/// Every string that can come from outside is hostile.
pub fn hostile() -> Report {
    let mut report = usual();
    let own = || HOSTILE.to_owned();
    report.source.files = vec![format!("/tmp/{HOSTILE}"), "'; rm -rf ~ #.pcap".to_owned()];
    report.source.problems = vec![own()];
    report.source.link_types = BTreeMap::from([(own(), 100_000)]);
    for row in &mut report.stacks {
        (row.stack, row.why, row.hash_type, row.sources) = (own(), own(), own(), vec![own()]);
        row.hash_types = BTreeMap::from([(own(), row.frames), ("none".to_owned(), 1)]);
    }
    report.tags.iter_mut().for_each(|row| row.tags = own());
    report.pppoe.codes = BTreeMap::from([(own(), 1)]);
    report.pppoe.ppp = BTreeMap::from([(own(), 1)]);
    report.bad.reasons = BTreeMap::from([(own(), 4)]);
    report.bad.first = BTreeMap::from([(own(), FirstFrame { file: own(), frame: 1 })]);
    (report.nic.name, report.nic.title) = (own(), own());
    report.admission.dropped.iter_mut().for_each(|row| row.stack = own());
    report.top_flows.iter_mut().for_each(|row| row.flow = own());
    report
}

/// Thousands of everything that a capture can hold thousands of.
pub fn crowded() -> Report {
    let mut report = usual();
    let number = |at: u64| 10_000_000_000 / (at + 1);
    let many = |prefix: &str| -> BTreeMap<String, u64> {
        (0..5_000).map(|at| (format!("{prefix}{at:04x}"), number(at))).collect()
    };
    report.source.files = (0..5_000).map(|at| format!("dump/{at:05}.pcap")).collect();
    report.source.problems = report.source.files.iter().map(|file| format!("{file}: cut short")).collect();
    report.source.link_types = many("link ");
    report.stacks = (0..5_000)
        .map(|at| {
            let stack_name = format!("eth{}/ipv4/tcp", "/vlan".repeat(at as usize % 200));
            let source = format!("Datasheet {at}: section {at}");
            stack(&stack_name, number(at), &[("none", number(at))], "why not", &[&source])
        })
        .collect();
    report.tags = (0..5_000)
        .map(|at| TagRow { tags: format!("0x8100/{at} ").repeat(1 + at as usize % 300), frames: number(at) })
        .collect();
    report.source.frames = report.stacks.iter().map(|row| row.frames).sum();
    report.pppoe = Pppoe { sessions: 65_535, codes: many("0x"), ppp: many("0x") };
    report.bad.reasons = many("reason ");
    report.admission.unknown = 12;
    report.admission.dropped = (0..5_000).map(|at| dropped(&format!("eth/{at}"), number(at))).collect();
    let flow = report.top_flows[0].clone();
    report.top_flows = vec![flow; 5_000];
    let frames: Vec<u64> = (0..4_096).map(|at| (at * 7_919) % 1_000).collect();
    let total = report.source.frames;
    let mut report = spread(report, &frames, 4_000, &frames);
    report.source.frames = total;
    report
}

/// 128 queues, of which the table fills 64, and 16 CPUs.
pub fn wide() -> Report {
    let queue = |at: u64| if at.is_multiple_of(2) { 200 + (at * 7_919) % 390 } else { 0 };
    let queues: Vec<u64> = (0..128).map(queue).collect();
    let total: u64 = queues.iter().sum();
    let cpus: Vec<u64> = (0..16).map(|at| total / 16 + at * 20 - 150).collect();
    spread(usual(), &queues, 0, &cpus)
}

/// The profile does not say where a part of the frames lands.
pub fn unknown() -> Report {
    let mut report = spread(usual(), &[9_000, 8_000, 1_000, 0], 82_000, &[25_802, 24_731, 24_990, 24_477]);
    report.stacks[0].hash_type = "unknown".to_owned();
    report.stacks[0].why = "the profile does not say: headers after PPPoE".to_owned();
    report.stacks[0].hash_types = map(&[("unknown", 61_204)]);
    report.admission.unknown = 61_204;
    report.nic.unknown = vec![UnknownRow {
        key: "parse.pppoe".to_owned(),
        why: report.stacks[0].why.clone(),
        frames: 82_000,
        one_queue: false,
    }];
    report
}

//! Writes a small corpus for every fuzz target, so that ten seconds of fuzzing start from valid input:
//! `seeds DIRECTORY`, which `make fuzz` runs.
//!
//! The bytes come from the project's own generator, captures and data files; the same version writes the same files.

use rxlane_capture::{Capture, LinkType, Resolution, Writer};
use rxlane_traffic::{NAMED, Scenario, Sizes};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

type Done = Result<(), Box<dyn Error>>;

struct Corpus(PathBuf);

impl Corpus {
    fn put(&self, target: &str, name: &str, bytes: &[u8]) -> Done {
        let folder = self.0.join(target);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(name), bytes)?;
        Ok(())
    }

    fn put_texts(&self, target: &str, texts: &[&str]) -> Done {
        texts
            .iter()
            .enumerate()
            .try_for_each(|(i, text)| self.put(target, &format!("seed-{i}"), text.as_bytes()))
    }
}

/// Frames of every scenario, control frames and fragments among them.
fn frames() -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut frames = Vec::new();
    for named in &NAMED {
        let mut scenario = Scenario::named(named.name)?.with_flows(8);
        scenario.control_per_million = 300_000;
        scenario.fragments_per_million = 200_000;
        let mut traffic = scenario.generate(1)?;
        frames.extend((0..24).map(|_| traffic.next_frame().bytes.iter().copied().take(160).collect()));
    }
    Ok(frames)
}

/// Every third frame of the project's own captures, cut as those of the scenarios are.
fn recorded(folder: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pcap"));
    paths.sort();
    let mut frames = Vec::new();
    for path in paths {
        let mut capture = Capture::open(&path)?;
        let mut of_capture = Vec::new();
        while let Some(frame) = capture.next_frame() {
            of_capture.push(frame.data.iter().copied().take(160).collect());
        }
        frames.extend(of_capture.into_iter().step_by(3));
    }
    Ok(frames)
}

fn dissect(corpus: &Corpus, frames: &[Vec<u8>]) -> Done {
    for (i, frame) in frames.iter().enumerate() {
        // Link type, bytes missing, bytes kept of a second capture; see the target.
        let missing = [0, if frame.len() == 160 { 4 } else { 0 }, 0];
        corpus.put("dissect", &format!("frame-{i}"), &[&[0], &missing[..], frame].concat())?;
        // Classes that are steered, bytes in the first buffer.
        corpus.put("steering", &format!("frame-{i}"), &[&[0x1f, 0, 40], &frame[..]].concat())?;
        if let (Some(ip), Some(pppoe)) = (frame.get(14..), frame.get(22..)) {
            corpus.put("dissect", &format!("ip-{i}"), &[&[3, 5, 0, 64], ip].concat())?;
            corpus.put("dissect", &format!("pppoe-{i}"), &[&[5, 0, 0, 30], pppoe].concat())?;
        }
    }
    Ok(())
}

/// PPPoE tags, PPP control packets and extension headers, by hand from their RFCs.
fn headers(corpus: &Corpus) -> Done {
    let line = b"\x01\x05\x00\x15\x00\x00\x0d\xe9\x01\x05eth 1\x02\x08customer";
    let tags: [&[u8]; 4] = [
        b"\x01\x01\x00\x00\x01\x03\x00\x04\x00\x00\x00\x2a\x01\x20\x00\x02\x05\xdc",
        b"\x01\x01\x00\x08internet\x01\x02\x00\x02ac\x01\x04\x00\x04cook\x00\x00\x00\x00",
        line,
        b"\x02\x03\x00\x05no AC\x01\x10\x00\x0crelay-id-012",
    ];
    for (i, tag) in tags.iter().enumerate() {
        corpus.put("pppoe_tags", &format!("seed-{i}"), tag)?;
    }
    let control: [&[u8]; 5] = [
        b"\xc0\x21\x01\x01\x00\x0e\x01\x04\x05\xd4\x05\x06\x12\x34\x56\x78",
        b"\x01\x01\x00\x0e\x01\x04\x05\xd4\x05\x06\x12\x34\x56\x78",
        b"\x09\x02\x00\x08\x12\x34\x56\x78\x00\x00",
        b"\x21\x45\x00\x00\x14",
        b"\x01\x01\x00\x0a\x03\x06\xc0\x00\x02\x01",
    ];
    for (i, packet) in control.iter().enumerate() {
        corpus.put("ppp_control", &format!("seed-{i}"), packet)?;
    }
    let home = [&[60u8, 6, 2, 1, 2, 0, 0, 0xc9, 16][..], &[0x20; 16]].concat();
    let segments = [&[43u8, 17, 4, 4, 1, 1, 0, 0, 0][..], &[0xfd; 32], &[0, 53, 0, 53, 0, 8, 0, 0]].concat();
    let mobile = [&[43u8, 6, 2, 2, 1, 0, 0, 0, 0][..], &[0xfd; 16], &[0; 20]].concat();
    let chains: [&[u8]; 6] = [
        b"\x00\x06\x00\x05\x02\x00\x00\x01\x00\x00\x50\x01\xbb\0\0\0\0\0\0\0\0\x50\x10\0\0\0\0\0\0",
        b"\x00\x11\x00\xc2\x04\x00\x01\x00\x00\x00\x35\x00\x35\x00\x08\x00\x00",
        b"\x2c\x11\x00\x00\x01\x00\x00\x00\x07\x00\x35\x00\x35\x00\x10\x00\x00",
        b"\x33\x06\x04\x00\x00\x00\x00\x01\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
        &segments,
        &mobile,
    ];
    for (i, chain) in chains.iter().chain([&&home[..]]).enumerate() {
        corpus.put("ipv6_extensions", &format!("seed-{i}"), chain)?;
    }
    Ok(())
}

/// Sessions of host and concentrator with each method, as either end saw them: see the target.
fn sessions(corpus: &Corpus) -> Done {
    let control: [&[u8]; 5] = [
        b"\x01\x04\x05\xd4\x03\x05\xc2\x23\x81\x05\x06\x12\x34\x56\x78",
        b"\x08user@isp\x06secret",
        b"\x10\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0fname",
        b"S=407A5589115FD0D6209F510FE9C04566932CDA56 M=hello",
        b"E=691 R=0 C=5B5D7C7D7B3F2F3E3C2C602132262628 V=3 M=no",
    ];
    for (number, data) in control.iter().enumerate() {
        corpus.put("ppp_control", &format!("data-{number}"), data)?;
    }
    let (lcp, pap, ipcp, ipv6cp) = (b"\xc0\x21", b"\xc0\x23", b"\x80\x21", b"\x80\x57");
    let packet = |protocol: &[u8; 2], code: u8, identifier: u8, data: &[u8]| -> Vec<u8> {
        let length = data.len() as u8 + 4;
        [&[length + 2], &protocol[..], &[code, identifier, 0, length], data].concat()
    };
    // Magic numbers and identifiers are those of the target's own random numbers; what is not right is dropped.
    let exchanges: [Vec<Vec<u8>>; 4] = [
        vec![
            packet(lcp, 1, 1, b"\x01\x04\x05\xd4\x03\x04\xc0\x23\x05\x06\x12\x34\x56\x78"),
            packet(lcp, 4, 1, b"\x01\x04\x05\xd4"),
            packet(lcp, 3, 2, b"\x05\x06\0\0\0\0"),
            packet(pap, 2, 1, b"\x05hello"),
            packet(ipcp, 1, 1, b"\x03\x06\xc0\x00\x02\x01"),
            packet(ipcp, 3, 1, b"\x03\x06\xc0\x00\x02\x02"),
            packet(ipv6cp, 1, 1, b"\x01\x0a\0\0\0\0\0\0\0\x01"),
            vec![0xf0, 0xf0, 0xf5],
            packet(lcp, 9, 1, b"\x12\x34\x56\x78"),
            packet(lcp, 5, 1, b"bye"),
            vec![0xf0, 0xf0],
        ],
        vec![
            packet(lcp, 1, 1, b"\x01\x04\x05\xd4"),
            packet(lcp, 4, 1, b"\x05\x06\0\0\0\0"),
            packet(pap, 1, 1, b"\x08user@isp\x06secret"),
            vec![0xfe, 0],
            packet(ipcp, 1, 1, b"\x03\x06\0\0\0\0\x81\x06\0\0\0\0"),
            packet(ipcp, 1, 2, b"\x03\x06\xc0\x00\x02\x02"),
            packet(b"\x80\xfd", 1, 1, b"\x1a\x04\x78\x00"),
            packet(lcp, 8, 1, b"\x80\x57\x01\x01\0\x04"),
            vec![0xff, 0xf0, 0xf0, 0xf0],
        ],
        vec![
            packet(lcp, 1, 1, b"\x05\x06\x12\x34\x56\x78"),
            packet(b"\xc2\x23", 2, 1, b"\x10................user@isp"),
            vec![0xfe, 1, 0xf0, 0xf0],
        ],
        vec![vec![0xf0; 12]],
    ];
    for (number, exchange) in exchanges.iter().enumerate() {
        for choice in 0..8 {
            corpus.put(
                "ppp_session",
                &format!("{number}-{choice}"),
                &[&[choice], &exchange.concat()[..]].concat(),
            )?;
        }
    }
    whole_sessions(corpus)
}

/// What each end of a good session received, from the random numbers of the target.
fn whole_sessions(corpus: &Corpus) -> Done {
    use rxlane_pppoe::session::*;
    use std::{net::Ipv4Addr, sync::Arc, time::Duration};
    let all = [Method::MsChapV2, Method::ChapMd5, Method::Pap];
    for choice in 0..4_u8 {
        let methods = all.get(usize::from(choice)..).unwrap_or_default().to_vec();
        let host = Host {
            user: b"user@isp".to_vec(),
            secret: b"secret".to_vec(),
            methods: methods.clone(),
            ipv4: Some(Ipv4Addr::UNSPECIFIED),
            dns: true,
            ipv6: Some(0),
        };
        let concentrator = Concentrator { name: b"ac".to_vec(), methods };
        let mut counters = [choice << 1, choice << 1 | 1];
        let mut inputs = [vec![choice << 1], vec![choice << 1 | 1]];
        let mut ends = [Role::Host(host), Role::Concentrator(concentrator)].map(|role| {
            let config = Arc::new(Config { role, timers: Timers::DEFAULT });
            Session::new(config, 1492)
        });
        let now = Duration::ZERO;
        let mut actions = [Vec::new(), Vec::new()];
        for round in 0..30 {
            for (end, (session, counter)) in ends.iter_mut().zip(&mut counters).enumerate() {
                let mut random = |bytes: &mut [u8]| {
                    for byte in bytes {
                        *counter = counter.wrapping_mul(29).wrapping_add(71);
                        *byte = *counter;
                    }
                };
                if round == 0 {
                    session.start(now, &mut random, &mut actions[end]);
                    continue;
                }
                for action in std::mem::take(&mut actions[1 - end]) {
                    if let Action::Send(bytes) = action {
                        inputs[end].push(u8::try_from(bytes.len())?);
                        inputs[end].extend(&bytes);
                        session.receive(now, &bytes, &mut random, &mut actions[end]);
                    }
                }
                let claims: Vec<Claim> = actions[end]
                    .iter()
                    .filter_map(|action| match action {
                        Action::Authenticate(claim) => Some(claim.clone()),
                        _ => None,
                    })
                    .collect();
                for claim in claims {
                    inputs[end].extend([0xfe, 0]);
                    let ipv4 = Some((Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)));
                    let dns = [Some(Ipv4Addr::new(192, 0, 2, 53)), None];
                    let grant = Grant { ipv4, dns, ipv6: Some((1, 2)) };
                    let proof = claim.proof(b"secret").ok_or("the secret is wrong")?;
                    let verdict = Verdict::Accepted { grant, proof, message: b"words".to_vec() };
                    session.authenticated(now, verdict, &mut random, &mut actions[end]);
                }
            }
        }
        if ends.iter().any(|end| end.ipv4().is_none()) {
            return Err("the seeds of ppp_session do not come up".into());
        }
        for (end, input) in inputs.iter().enumerate() {
            corpus.put("ppp_session", &format!("whole-{choice}-{end}"), input)?;
        }
    }
    Ok(())
}

/// Runs of discovery packets as the target reads them: `how | from | length | bytes`, with the Host-Uniq (0x10) and cookie
/// (0x20) that the machines wait for, and time that passes (0x40).
fn discovery(corpus: &Corpus) -> Done {
    let (pado, pads, padt, padi, padr) = (0x10, 0x11, 2, 0x13, 0x34);
    let step = |how: u8, from: u8, tags: &[u8]| [&[how, from, tags.len() as u8], tags].concat();
    let name = b"\x01\x01\0\0\x01\x02\0\x02ac\x01\x04\0\x04cook";
    let payload = b"\x01\x01\0\0\x01\x20\0\x02\x05\xdc";
    let line = b"\x01\x05\0\x15\0\0\x0d\xe9\x01\x05eth 1\x02\x08customer";
    let runs = [
        // To a session, and its end.
        [step(pado | 0x40, 1, name), step(pads, 1, payload), step(padt, 1, b""), step(0x80, 1, b"")].concat(),
        // Two offers, a refusal.
        [step(pado, 1, name), step(pado | 0x40, 2, name), step(pads, 1, b"\x02\x02\0\x04full")].concat(),
        // The concentrator's side.
        [step(padi, 1, payload), step(padr, 1, payload), step(padr, 1, line), step(padt, 7, b"")].concat(),
        // Nobody answers.
        vec![step(0x47, 0, b"\x11\x09"); 80].concat(),
    ];
    for (i, run) in runs.iter().enumerate() {
        corpus.put("pppoe_discovery", &format!("seed-{i}"), run)?;
    }
    let packet = [&b"\x11\x07\0\0\0\x12"[..], name].concat();
    corpus.put("pppoe_discovery", "packet", &packet)
}

/// Sessions that come up by PAP, are talked to, restarted and ended; see the target.
fn concentrators(corpus: &Corpus) -> Done {
    // Discovery, the host's Configure-Request, its Ack, name and password, Acks of both network protocols, IPCP of the host.
    let up = |host: u8| {
        let lcp = [1, host, 12, 0xc0, 0x21, 1, 1, 0, 10, 5, 6, 9, 8, 7, host];
        let ipcp = [1, host, 12, 0x80, 0x21, 1, 1, 0, 10, 3, 6, 10, 0, 0, 2];
        let steps: [&[u8]; 6] = [&[0, host], &lcp, &[2, host], &[3, host], &[2, host], &ipcp];
        steps.concat()
    };
    let end = [1, 0, 6, 0xc0, 0x21, 5, 9, 0, 4];
    // A Solicit for an address and a prefix, and a Router Solicitation.
    let solicit =
        [&[9, 0, 50][..], b"\x01abc\0\x01\0\x0a\0\x03\0\x01\x02\0\0\0\0\x01\0\x03\0\x0c\0\0\0\x01", &[0; 8]]
            .concat();
    let prefix = [&b"\0\x19\0\x0c\0\0\0\x02"[..], &[0; 8]].concat();
    let sequences: [Vec<u8>; 7] = [
        up(0),
        [&up(0)[..], &up(1), &up(4), &[5, 40, 4, 0, 4, 1]].concat(),
        [&up(0)[..], &[6, 0], &[5, 90]].concat(),
        [&up(0)[..], &[7, 0], &up(1), &end, &[5, 3]].concat(),
        [&up(0)[..], &[8, 0], &[5, 20]].concat(),
        [&[0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 5, 70][..], &[10, 0, 12, 0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0, 0, 0]]
            .concat(),
        [&up(0)[..], &solicit, &prefix, &[9, 128, 4, 0, 0, 0, 0, 5, 60]].concat(),
    ];
    for (i, sequence) in sequences.iter().enumerate() {
        corpus.put("pppoe_concentrator", &format!("seed-{i}"), sequence)?;
    }
    // To a client: PADO, PADS, an open session; and what becomes of it.
    let up: &[u8] = &[0, 0, 5, 3, 0, 0, 3, 0, 2, 0, 3, 1, 2, 0, 3, 2, 2, 0];
    let sequences: [&[u8]; 6] =
        [&[], &[4, 0, 5, 2], &[6, 0, 5, 200, 6, 1, 5, 5], &[7, 9, 5, 3], &[5, 255], &[8, 0, 5, 9, 8, 1]];
    for (i, sequence) in sequences.iter().enumerate() {
        corpus.put("pppoe_client", &format!("seed-{i}"), &[up, sequence].concat())?;
    }
    Ok(())
}

/// Frames of every link of the target, from its peer to it, and what its interface hands over: packets and frames, some of
/// them SYN segments.
fn links(corpus: &Corpus) -> Done {
    const LINKS: [&str; 5] = ["q:35", "ad:100,q:200", "0x9100:5,q:6,q:7", "pppoe:7", "ad:100,q:200,pppoe:7"];
    let stations = [[2, 0, 0x5e, 0, 0, 1], [2, 0, 0x5e, 0, 0, 2]].concat();
    for (link, text) in (0_u8..).zip(LINKS) {
        let mut scenario = Scenario::new(text.parse()?).with_flows(8);
        scenario.sizes = Sizes::Fixed(90);
        scenario.fragments_per_million = 200_000;
        scenario.control_per_million = 200_000;
        let mut traffic = scenario.generate(1)?;
        for number in 0..16 {
            let frame = traffic.next_frame().bytes;
            let bytes = [&[link], &stations[..], frame.get(12..).unwrap_or_default()].concat();
            corpus.put("link_frames", &format!("{link}-{number}"), &bytes)?;
        }
        for (number, packet) in SYNS.iter().enumerate() {
            corpus.put("link_frames", &format!("{link}-syn-{number}"), &[&[link], *packet].concat())?;
            let ethertype: [u8; 2] = if number == 0 { [0x08, 0] } else { [0x86, 0xdd] };
            let frame = [&[link], &stations[..], &ethertype, packet].concat();
            corpus.put("link_frames", &format!("{link}-syn-frame-{number}"), &frame)?;
        }
    }
    Ok(())
}

/// SYN segments over IPv4 and IPv6 with maximum segment size, SACK, timestamps and window scale (RFC 9293, 2018, 7323);
/// the first has the maximum segment size twice, the second time lower.
const SYNS: [&[u8]; 2] = [
    b"\x45\0\0\x3c\0\x01\x40\0\x40\x06\0\0\x0a\x09\0\x01\x0a\x09\0\x02\xc0\0\0\x50\0\0\0\x01\0\0\0\0\xa0\x02\xff\xff\0\0\0\0\
      \x02\x04\x05\xb4\x01\x01\x04\x02\x02\x04\x02\x18\x01\x03\x03\x07\0\0\0\0",
    b"\x60\0\0\0\0\x28\x06\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\
      \xc0\0\0\x50\0\0\0\x01\0\0\0\0\xa0\x02\xff\xff\0\0\0\0\
      \x02\x04\x05\xa0\x04\x02\x08\x0a\0\0\0\x01\0\0\0\0\x01\x03\x03\x07",
];

/// Batches of a frame that goes on, and the same packets as super-packets.
fn offloads(corpus: &Corpus, frames: &[Vec<u8>]) -> Done {
    for (i, frame) in frames.iter().enumerate().filter(|(_, frame)| frame.len() < 160) {
        let length = u8::try_from(frame.len())?;
        // A frame, two that continue it, one that differs, another frame padded.
        let steps = [&[128, 0, length], &frame[..], &[1, 1, 3, 14, 1, 0x40, length], frame, &[1]].concat();
        corpus.put("segment_coalesce", &format!("frames-{i}"), &steps)?;
        if let Some(packet) = frame.get(14..) {
            let header = [1, 1, 54, 0, 10, 0, 20, 0, 16, 0];
            corpus.put(
                "segment_coalesce",
                &format!("packet-{i}"),
                &[&[0, 1], &header[..], packet].concat(),
            )?;
        }
    }
    Ok(())
}

fn captures(corpus: &Corpus, frames: &[Vec<u8>]) -> Done {
    let few = || frames.iter().step_by(7).zip(0i64..);
    for (name, resolution) in [("micro", Resolution::Microseconds), ("nano", Resolution::Nanoseconds)] {
        for ng in [false, true] {
            let mut writer = match ng {
                false => Writer::pcap(Vec::new(), LinkType::Ethernet, resolution)?,
                true => Writer::pcapng(Vec::new(), LinkType::Ethernet, resolution)?,
            };
            for (frame, at) in few() {
                writer.write(1_700_000_000_000_000_000 + at * 1000, frame, frame.len() as u32 + 4)?;
            }
            let file = writer.finish()?;
            let name = format!("{name}-{ng}");
            // The target's first bytes say how the input is read.
            corpus.put("capture_reader", &name, &[&[64, 0], &file[..]].concat())?;
            corpus.put("explain", &name, &file)?;
        }
    }
    Ok(())
}

fn texts(corpus: &Corpus, frames: &[Vec<u8>], project: &Path) -> Done {
    let key =
        "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c";
    let table = "RX flow hash indirection table for eth0 with 4 RX ring(s):\n    0:      0     1     2     3     0     1     2     3\n    8:      0     1     2     3     0     1     2     3\nRSS hash key:\n6d:5a:56:da:25:5b:0e:c2\nRSS hash function:\n    toeplitz: on\n";
    corpus.put_texts("rss_text", &[key, "sdfn", "udp4=sdfn", "tcp-ipv4,ipv6-ex", "none", table])?;
    let mut stacks: Vec<&str> =
        NAMED.iter().flat_map(|named| named.encapsulations).map(|(_, text)| *text).collect();
    stacks.push("ad:100,q:200,pppoe:1234@02:00:5e:00:00:01");
    stacks.push("0x9100:7,q:4094,mpls:16,mpls:1048575");
    corpus.put_texts("encapsulation_text", &stacks)?;
    let router = fs::read_to_string(project.join("docs/model/router.toml"))?;
    let coalesce = "moderation = { kind = \"coalesce\", us = 50, frames = 4, segments = 8 }";
    let interrupt = "driver = { kind = \"interrupt\" }\nhand_over = { cpus = [0, 1], depth = 50 }\ncpus";
    let polling = "driver = { kind = \"polling\", hz = 1000000 }\ngro_frames = 8\ncpus";
    let window = "arrival = { kind = \"window\", frames = 8, back_us = 3 }";
    let scenarios = [
        router.clone(),
        router
            .replace("moderation = { kind = \"igb\" }", coalesce)
            .replace("\ncpus", &format!("\n{interrupt}")),
        router
            .replace("arrival = { kind = \"poisson\", pps = 300000 }", window)
            .replace("\ncpus", &format!("\n{polling}")),
        router.replace("\"out:lan\"", "\"ppp\"")
            + "[application.ppp]\ncall = 500\nuser = 200\nnext = \"out:lan\"\n",
    ];
    corpus.put_texts("model_scenario", &scenarios.each_ref().map(String::as_str))?;
    for entry in fs::read_dir(project.join("crates/explain/nic/profiles"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let text =
                fs::read_to_string(&path)?.replacen(&format!("name = \"{stem}\""), "name = \"fuzz\"", 1);
            let frame = frames.first().map(Vec::as_slice).unwrap_or_default();
            corpus.put("nic_profile", &stem, &[text.as_bytes(), &[0], frame].concat())?;
        }
    }
    Ok(())
}

/// Whole machines, and single outputs.
fn machines(corpus: &Corpus, fuzz: &Path) -> Done {
    for folder in ["seeds/doctor", "seeds/host_text"] {
        for entry in fs::read_dir(fuzz.join(folder))? {
            let path = entry?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            corpus.put("doctor", &stem, &fs::read(&path)?)?;
        }
    }
    Ok(())
}

/// Outputs of tools, one a file, and all of them one after another.
fn outputs(corpus: &Corpus, folder: &Path) -> Done {
    let mut all = Vec::new();
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, std::io::Error>>()?;
    paths.sort();
    for path in paths {
        let text = fs::read(&path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        corpus.put("host_text", &stem, &text)?;
        all.extend(text);
    }
    corpus.put("host_text", "all", &all)
}

fn main() -> Done {
    let folder = std::env::args_os().nth(1).ok_or("usage: seeds DIRECTORY")?;
    let corpus = Corpus(folder.into());
    let project = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let fuzz = project.join("fuzz");
    let frames = frames()?;
    dissect(&corpus, &[frames.as_slice(), &recorded(&project.join("captures"))?].concat())?;
    offloads(&corpus, &frames)?;
    links(&corpus)?;
    concentrators(&corpus)?;
    headers(&corpus)?;
    sessions(&corpus)?;
    discovery(&corpus)?;
    captures(&corpus, &frames)?;
    outputs(&corpus, &fuzz.join("seeds/host_text"))?;
    machines(&corpus, &fuzz)?;
    texts(&corpus, &frames, project)
}

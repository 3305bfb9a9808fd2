//! The program that keeps an envelope, its C compiled for this machine, and the Rust reference: one answer.

use crate::programs::kernel::{self, LEAST, PASS, add};
use crate::programs::native::{Native, native};
use crate::programs::packet::{Packet, Place, UDP, eth};
use aya::maps::PerCpuArray;
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rxlane_xdp::envelope_layout::{COUNTS, Counts, Kind, LIMIT, PLACES};
use rxlane_xdp::envelope_reference::decide;
use rxlane_xdp::object;
use std::mem::size_of;
use testkit::require;

/// Return value of XDP programs.
const DROP: u32 = 1;

const PAYLOAD: u32 = 1500;

/// The program in the kernel, and what it should have counted.
struct Program {
    ebpf: Ebpf,
    passed: [u64; PLACES],
    refused: [u64; PLACES],
}

impl Program {
    fn load(object: &[u8]) -> Option<Program> {
        require("bpf", kernel::probe())?;
        let mut ebpf =
            EbpfLoader::new().override_global(LIMIT, &PAYLOAD, true).load(object).expect("an object");
        let program: &mut Xdp = ebpf.program_mut("envelope").expect("there").try_into().expect("XDP");
        program.load().expect("the verifier takes it");
        Some(Program { ebpf, passed: [0; PLACES], refused: [0; PLACES] })
    }

    #[track_caller]
    fn check(&mut self, frame: &[u8], kind: Kind, refused: bool) {
        let program: &mut Xdp = self.ebpf.program_mut("envelope").expect("there").try_into().expect("XDP");
        let mut out = vec![0; frame.len()];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut out);
        let result = program.test_run(options).expect("a run");
        assert_eq!(result.return_value, if refused { DROP } else { PASS }, "{kind:?}, {}", frame.len());
        assert_eq!(out, frame);
        let counts = if refused { &mut self.refused } else { &mut self.passed };
        counts[kind as usize] += 1;
    }

    /// Counters, against what was expected of every frame.
    fn finish(self) {
        let map = self.ebpf.map(COUNTS).expect("the map");
        let counts: PerCpuArray<_, [u8; size_of::<Counts>()]> = PerCpuArray::try_from(map).expect("per CPU");
        let (mut passed, mut refused) = ([0; PLACES], [0; PLACES]);
        for value in counts.get(&0, 0).expect("an entry").iter() {
            add(&mut passed, &value[..8 * PLACES]);
            add(&mut refused, &value[8 * PLACES..]);
        }
        assert_eq!((passed, refused), (self.passed, self.refused));
    }
}

fn tags(count: u16) -> Packet {
    (0..count).fold(eth(), |packet, tag| {
        packet.tag([0x88a8, 0x8100, 0x9100, 0x9200, 0x9300][usize::from(tag) % 5], tag)
    })
}

/// Headers, and what they make of a frame: its kind, and how many bytes are no payload.
fn cases() -> Vec<(&'static str, Packet, Kind, usize)> {
    let odd = eth().pppoe().ppp(0x2145);
    vec![
        ("IPv4", eth().ipv4(UDP), Kind::Untagged, 14),
        ("ARP", eth().ethertype(0x0806), Kind::Untagged, 14),
        ("MPLS is payload", eth().mpls(16, true).ipv4(UDP), Kind::Untagged, 14),
        ("PPPoE discovery", eth().ethertype(0x8863), Kind::Untagged, 14),
        ("an EtherType that nobody knows", eth().ethertype(0x8101), Kind::Untagged, 14),
        ("one tag", tags(1).ipv4(UDP), Kind::Tagged, 18),
        ("two tags", tags(2).ipv6(UDP), Kind::Tagged, 22),
        ("five tags, each of another TPID", tags(5).ipv4(UDP), Kind::Tagged, 34),
        ("eight tags", tags(8).ipv4(UDP), Kind::Tagged, 46),
        ("the ninth tag is payload", tags(9).ipv4(UDP), Kind::Tagged, 46),
        ("PPPoE under the ninth tag is payload", tags(9).pppoe().ipv4(UDP), Kind::Tagged, 46),
        ("PPPoE", eth().pppoe().ipv4(UDP), Kind::Pppoe, 22),
        (
            "PPPoE with a short length",
            { eth().pppoe().ipv4(UDP).set(Place::Pppoe, 4, &[0, 40]) },
            Kind::Pppoe,
            22,
        ),
        (
            "PPPoE with a length beyond the frame",
            { eth().pppoe().ipv4(UDP).set(Place::Pppoe, 4, &[0xff, 0xff]) },
            Kind::Pppoe,
            22,
        ),
        ("LCP", eth().pppoe().ppp(0xc021), Kind::Pppoe, 22),
        ("tag, PPPoE", tags(1).pppoe().ipv6(UDP), Kind::Pppoe, 26),
        ("eight tags, PPPoE", tags(8).pppoe().ipv4(UDP), Kind::Pppoe, 54),
        ("PPPoE of version 2", tags(1).pppoe().ipv4(UDP).set(Place::Pppoe, 0, &[0x21]), Kind::Tagged, 18),
        ("PPPoE with a code", eth().pppoe().ipv4(UDP).set(Place::Pppoe, 1, &[0xa7]), Kind::Untagged, 14),
        ("a compressed PPP protocol", odd, Kind::Untagged, 14),
    ]
}

/// The headers, and a payload that makes the frame so long.
fn of_length(packet: &Packet, length: usize) -> Vec<u8> {
    let headers = packet.clone().bare().len();
    packet.clone().payload(length - headers).bare()
}

/// Lengths around the limit, the least, and the longest of one buffer and of several.
fn lengths(headers: usize, several: bool) -> Vec<usize> {
    let limit = headers + PAYLOAD as usize;
    let longest = if several { 9014 } else { 3000 };
    vec![128, limit - 1, limit, limit + 1, limit + 4, limit + 8, longest]
}

#[test]
fn payload_behind_tags_and_pppoe_has_a_limit() {
    for (object, several) in [(object::ENVELOPE, true), (object::ENVELOPE_NOFRAGS, false)] {
        let mut program = Program::load(object);
        let mut native = require("cc", native());
        for (name, packet, kind, headers) in cases() {
            for length in lengths(headers, several) {
                let frame = of_length(&packet, length);
                let refused = length > headers + PAYLOAD as usize;
                assert_eq!(decide(&frame, length, PAYLOAD), (kind, refused), "{name}, {length}");
                if let Some(native) = &mut native {
                    let found = native.envelope(&frame, length, PAYLOAD);
                    assert_eq!(found, (kind as u32, refused), "{name}, {length}");
                }
                if let Some(program) = &mut program {
                    program.check(&frame, kind, refused);
                }
            }
        }
        if let Some(program) = program {
            program.finish();
        }
    }
}

#[test]
fn a_frame_that_is_cut_anywhere_is_no_longer_than_it_is() {
    let frame = tags(3).pppoe().ipv4(UDP).payload(40).bare();
    let (mut program, mut native) = (Program::load(object::ENVELOPE), require("cc", native()));
    for end in 0..frame.len() {
        let part = &frame[..end];
        let kind = match end {
            0..18 => Kind::Untagged,
            18..34 => Kind::Tagged,
            _ => Kind::Pppoe,
        };
        assert_eq!(decide(part, end, PAYLOAD), (kind, false), "{end}");
        if let Some(native) = &mut native {
            assert_eq!(native.envelope(part, end, PAYLOAD), (kind as u32, false), "{end}");
            // The rest stands in other buffers: what cannot be read is payload.
            let length = PAYLOAD as usize + 14 + 3 * 4 + 8;
            assert_eq!(native.envelope(part, length, PAYLOAD), (kind as u32, end < 34), "{end}");
            assert_eq!(decide(part, length, PAYLOAD), (kind, end < 34), "{end}");
        }
        if let Some(program) = program.as_mut().filter(|_| end >= LEAST) {
            program.check(part, kind, false);
        }
    }
    if let Some(program) = program {
        program.finish();
    }
}

/// Values that mean something in headers.
const OCTETS: [u8; 12] = [0x81, 0x00, 0x88, 0xa8, 0x91, 0x92, 0x93, 0x64, 0x63, 0x11, 0x21, 0xc0];

#[test]
fn changed_frames_have_one_decision() {
    const FRAMES: u32 = 40_000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut below = move |most: usize| (random.next_u64() % most as u64) as usize;
    let mut program = Program::load(object::ENVELOPE);
    let mut native: Option<Native> = require("cc", native());
    let cases = cases();
    let mut refusals = 0;
    for _ in 0..FRAMES {
        let (_, packet, ..) = &cases[below(cases.len())];
        let mut frame = of_length(packet, PAYLOAD as usize + 14 + below(48));
        for _ in 0..below(5) {
            let value = OCTETS[below(OCTETS.len())];
            frame[12 + below(48)] = value;
        }
        let (kind, refused) = decide(&frame, frame.len(), PAYLOAD);
        refusals += u32::from(refused);
        if let Some(native) = &mut native {
            assert_eq!(native.envelope(&frame, frame.len(), PAYLOAD), (kind as u32, refused), "{frame:02x?}");
            let first = below(64);
            let (kind, refused) = decide(&frame[..first], frame.len(), PAYLOAD);
            let found = native.envelope(&frame[..first], frame.len(), PAYLOAD);
            assert_eq!(found, (kind as u32, refused), "{first} of {frame:02x?}");
        }
        if let Some(program) = &mut program {
            program.check(&frame, kind, refused);
        }
    }
    assert!(refusals > FRAMES / 10 && refusals < FRAMES * 9 / 10, "{refusals}");
    if let Some(program) = program {
        program.finish();
    }
}

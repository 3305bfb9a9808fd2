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

/// The program in the kernel, what it should have counted, and the native parser; with what of it there is.
struct Agreement {
    ebpf: Option<Ebpf>,
    /// Frames by kind, passed and refused.
    expected: [[u64; PLACES]; 2],
    native: Option<Native>,
}

impl Agreement {
    fn new(object: &[u8]) -> Agreement {
        let load = |()| {
            let mut ebpf =
                EbpfLoader::new().override_global(LIMIT, &PAYLOAD, true).load(object).expect("an object");
            let program: &mut Xdp = ebpf.program_mut("envelope").expect("there").try_into().expect("XDP");
            program.load().expect("the verifier takes it");
            ebpf
        };
        let ebpf = require("bpf", kernel::probe()).map(load);
        Agreement { ebpf, expected: [[0; PLACES]; 2], native: require("cc", native()) }
    }

    /// Holds all to this decision about a frame.
    #[track_caller]
    fn check(&mut self, frame: &[u8], kind: Kind, refused: bool) {
        self.check_buffers(frame, frame.len(), kind, refused);
        let Some(ebpf) = self.ebpf.as_mut().filter(|_| frame.len() >= LEAST) else { return };
        let program: &mut Xdp = ebpf.program_mut("envelope").expect("there").try_into().expect("XDP");
        let mut out = vec![0; frame.len()];
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.data_out = Some(&mut out);
        let result = program.test_run(options).expect("a run");
        assert_eq!(result.return_value, if refused { DROP } else { PASS }, "{kind:?}, {frame:02x?}");
        assert_eq!(out, frame);
        self.expected[usize::from(refused)][kind as usize] += 1;
    }

    /// Holds reference and native parser to it, of whose frame only the first bytes can be read.
    #[track_caller]
    fn check_buffers(&mut self, first: &[u8], length: usize, kind: Kind, refused: bool) {
        assert_eq!(decide(first, length, PAYLOAD), (kind, refused), "{length} bytes, {first:02x?}");
        if let Some(native) = &mut self.native {
            let found = native.envelope(first, length, PAYLOAD);
            assert_eq!(found, (kind as u32, refused), "{length} bytes, {first:02x?}");
        }
    }

    /// Compares the counters.
    fn finish(self) {
        let Some(ebpf) = self.ebpf else { return };
        let map = ebpf.map(COUNTS).expect("the map");
        let counts: PerCpuArray<_, [u8; size_of::<Counts>()]> = PerCpuArray::try_from(map).expect("per CPU");
        let mut found = [[0; PLACES]; 2];
        for value in counts.get(&0, 0).expect("an entry").iter() {
            found.iter_mut().zip(value.chunks(8 * PLACES)).for_each(|(found, value)| add(found, value));
        }
        assert_eq!(found, self.expected);
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

#[test]
fn payload_behind_tags_and_pppoe_has_a_limit() {
    for (object, longest) in [(object::envelope(), 9014), (object::envelope_nofrags(), 3000)] {
        let mut agreement = Agreement::new(object);
        for (name, packet, kind, headers) in cases() {
            println!("{name}");
            let limit = headers + PAYLOAD as usize;
            for length in [128, limit - 1, limit, limit + 1, limit + 4, limit + 8, longest] {
                agreement.check(&of_length(&packet, length), kind, length > limit);
            }
        }
        agreement.finish();
    }
}

#[test]
fn a_frame_that_is_cut_anywhere_is_no_longer_than_it_is() {
    let frame = tags(3).pppoe().ipv4(UDP).payload(40).bare();
    let mut agreement = Agreement::new(object::envelope());
    for end in 0..frame.len() {
        let kind = match end {
            0..18 => Kind::Untagged,
            18..34 => Kind::Tagged,
            _ => Kind::Pppoe,
        };
        agreement.check(&frame[..end], kind, false);
        // The rest stands in other buffers: what cannot be read is payload.
        agreement.check_buffers(&frame[..end], PAYLOAD as usize + 14 + 3 * 4 + 8, kind, end < 34);
    }
    agreement.finish();
}

/// Values that mean something in headers.
const BYTES: [u8; 12] = [0x81, 0x00, 0x88, 0xa8, 0x91, 0x92, 0x93, 0x64, 0x63, 0x11, 0x21, 0xc0];

#[test]
fn changed_frames_have_one_decision() {
    const FRAMES: u32 = 40_000;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
    let mut below = move |most: usize| (random.next_u64() % most as u64) as usize;
    let mut agreement = Agreement::new(object::envelope());
    let cases = cases();
    let mut refusals = 0;
    for _ in 0..FRAMES {
        let (_, packet, ..) = &cases[below(cases.len())];
        let mut frame = of_length(packet, PAYLOAD as usize + 14 + below(48));
        for _ in 0..below(5) {
            let value = BYTES[below(BYTES.len())];
            frame[12 + below(48)] = value;
        }
        let (kind, refused) = decide(&frame, frame.len(), PAYLOAD);
        refusals += u32::from(refused);
        agreement.check(&frame, kind, refused);
        let first = &frame[..below(64)];
        let (kind, refused) = decide(first, frame.len(), PAYLOAD);
        agreement.check_buffers(first, frame.len(), kind, refused);
    }
    assert!(refusals > FRAMES / 10 && refusals < FRAMES * 9 / 10, "{refusals}");
    agreement.finish();
}

//! Any bytes as a frame, whole or in several buffers: no panic, the flow of a frame without a defect is the one that its
//! dissection reports, what is missing from a first buffer only makes a frame one that is not read, and both directions of
//! a flow have one bucket where that is requested. (The programs and the C parser are held to the same decisions by the
//! tests of crate xdp.)

use rxlane_wire::{Fragment, Link, dissect};
use rxlane_xdp::hash::bucket;
use rxlane_xdp::layout::{Reason, Settings};
use rxlane_xdp::reference::{decide, decide_in_buffers};

pub fn run(bytes: &[u8]) {
    let Some((&[classes, cut_high, cut_low], frame)) = bytes.split_first_chunk() else { return };
    let key = std::array::from_fn(|word| 0x9e37_79b1_u32.wrapping_mul(word as u32 + 1));
    let symmetric =
        Settings { key, classes: u32::from(classes), symmetric: 1, cpus: 1, spare: 0, hold_ns: 0 };
    let settings = Settings { symmetric: 0, ..symmetric };
    let decision = decide(frame, &settings);
    assert_eq!(decision.flow.is_some(), decision.reason == Reason::Steered);
    assert_ne!(decision.reason, Reason::NotLinear);
    let seen = dissect(Link::Ethernet, frame, frame.len());
    if let Some((flow, _)) = decision.flow {
        assert_eq!(bucket(&flow, &symmetric), bucket(&flow.reversed(), &symmetric));
        assert_eq!(decide(frame, &symmetric).flow.map(|(flow, _)| flow), Some(flow));
        if let (None, Some(dissected)) = (seen.error(), seen.flow()) {
            assert_eq!((flow.source(), flow.destination()), (dissected.source(), dissected.destination()));
            let port = if seen.fragment() == Fragment::None { dissected.source_port() } else { None };
            assert_eq!(flow.source_port(), port);
        }
    }
    let first = usize::from(u16::from_be_bytes([cut_high, cut_low])).min(frame.len());
    let in_buffers = decide_in_buffers(&frame[..first], frame.len(), &settings);
    assert!(in_buffers == decision || in_buffers.reason == Reason::NotLinear, "{in_buffers:?} {decision:?}");
}

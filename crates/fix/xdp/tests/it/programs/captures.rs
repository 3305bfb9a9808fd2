//! Frames of captures: the project's own, and the folder that `RXLANE_CAPTURES` names.

use crate::programs::agreement::Agreement;
use crate::programs::settings;
use capture::{Capture, LinkType};
use rxlane_xdp::layout::Settings;
use rxlane_xdp::reference::decide;
use std::path::Path;
use testkit::captures;
use wire::{Fragment, Link, dissect};

/// Calls `seen` with the bytes of every Ethernet frame and its length on the wire.
pub fn frames(path: &Path, mut seen: impl FnMut(&[u8], usize)) {
    let Ok(mut capture) = Capture::open(path) else { return };
    while let Some(frame) = capture.next_frame() {
        if frame.interface().link_type == LinkType::Ethernet {
            seen(frame.data, frame.wire_len as usize);
        }
    }
}

#[test]
fn every_captured_frame_has_one_decision() {
    let mut agreement = Agreement::new();
    for sample in captures::corpus() {
        frames(&sample.capture, |bytes, length| {
            agreement.check(bytes, 0);
            agreement.check(bytes, 1);
            agreement.check_buffers(bytes, length, 0);
            as_dissected(bytes);
        });
    }
    agreement.finish();
    println!("{} frames, {} of them steered", agreement.frames, agreement.steered);
    assert!(agreement.steered > 0);
}

/// The flow of a frame without a defect is the one that its dissection reports.
pub fn as_dissected(bytes: &[u8]) {
    let seen = dissect(Link::Ethernet, bytes, bytes.len());
    let decision = decide(bytes, &Settings { symmetric: 0, ..settings() });
    if let (None, Some(flow), Some((found, _))) = (seen.error(), seen.flow(), decision.flow) {
        assert_eq!((found.source(), found.destination()), (flow.source(), flow.destination()));
        let ports = if seen.fragment() == Fragment::None { flow.source_port() } else { None };
        assert_eq!(found.source_port(), ports, "{flow}");
    }
}

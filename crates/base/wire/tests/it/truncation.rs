//! Every prefix of every kind of frame: the header that is cut is the one that is named.

use crate::frames::{Built, Region, corpus};
use rxlane_wire::error::{Class, Layer, Rule};
use rxlane_wire::{Word, dissect};

/// What follows an MPLS label stack or the last tag of a discovery packet is announced by nothing: there, and
/// only there, a frame may end without a defect in its headers.
fn may_end_before(frame: &Built, index: usize) -> bool {
    let layer = frame.regions[index].layer;
    let behind_labels = index > 0 && frame.regions[index - 1].layer == Layer::Mpls && layer != Layer::Mpls;
    behind_labels || layer == Layer::PppoeTag
}

/// The header that the first `length` bytes break off in.
fn broken_at(frame: &Built, length: usize) -> Option<(usize, &Region)> {
    frame.regions.iter().enumerate().find(|(_, region)| length < region.end)
}

#[test]
fn a_frame_that_ends_early_names_the_outermost_header_that_lacks_bytes() {
    for frame in corpus() {
        let whole = dissect(frame.link, &frame.bytes, frame.bytes.len()).stack();
        for length in 0..frame.bytes.len() {
            let seen = dissect(frame.link, &frame.bytes[..length], length);
            let place = format!("{} cut to {length}", frame.name);
            // Headers before the cut are in the stack; behind them, what could not be read may be `other`.
            let before = seen.stack().words().zip(whole.words()).take_while(|(a, b)| a == b).count();
            let rest: Vec<Word> = seen.stack().words().skip(before).collect();
            assert!(rest.is_empty() || rest == [Word::Other], "{place}: {}", seen.stack());
            // The first header that is not whole, or whose length reaches beyond the end.
            let expected = frame.regions.iter().enumerate().find(|(_, region)| {
                length < region.end || region.reaches.is_some_and(|reaches| reaches > length)
            });
            let Some((index, region)) = expected else {
                assert_eq!(seen.error(), None, "{place}: only padding is missing");
                continue;
            };
            let Some(error) = seen.error() else {
                assert!(length == region.start && may_end_before(&frame, index), "{place}: no error");
                continue;
            };
            assert_eq!(error.class(), Class::Truncated, "{place}: {error}");
            // Without its first byte the version of a bare IP packet is not known.
            let layer = if length == 0 && frame.name == "raw ip" { Layer::Ip } else { region.layer };
            assert_eq!(error.layer, layer, "{place}: {error}");
            assert_eq!(error.offset as usize, region.start, "{place}: {error}");
            if error.rule == Rule::Cut {
                assert_eq!(error.found as usize, length - region.start, "{place}: {error}");
                assert!(error.found < error.limit, "{place}: {error}");
            } else {
                assert_eq!(error.rule, Rule::Exceeds, "{place}: {error}");
                assert!(error.found > error.limit, "{place}: {error}");
            }
        }
    }
}

#[test]
fn a_capture_that_ends_early_differs_from_a_frame_that_does() {
    for frame in corpus() {
        let whole = dissect(frame.link, &frame.bytes, frame.bytes.len());
        for length in 0..frame.bytes.len() {
            let seen = dissect(frame.link, &frame.bytes[..length], frame.bytes.len());
            let place = format!("{} captured to {length}", frame.name);
            let Some((index, region)) = broken_at(&frame, length) else {
                assert_eq!(seen.error(), None, "{place}");
                assert_eq!(seen.stack(), whole.stack(), "{place}");
                assert_eq!(seen.flow(), whole.flow(), "{place}");
                continue;
            };
            let Some(error) = seen.error() else {
                assert!(length == region.start && may_end_before(&frame, index), "{place}: no error");
                continue;
            };
            let layer = if length == 0 && frame.name == "raw ip" { Layer::Ip } else { region.layer };
            assert_eq!((error.layer, error.class()), (layer, Class::Truncated), "{place}: {error}");
            assert_eq!(error.rule, Rule::CaptureCut, "{place}: {error}");
            assert_eq!(error.offset as usize, region.start, "{place}: {error}");
        }
    }
}

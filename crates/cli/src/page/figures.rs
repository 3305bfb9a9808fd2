//! Figures as a page has them: with no-break spaces.

use format::{Share, unbroken};

/// `1 frame`, `2 frames`.
pub fn counted(number: u64, singular: &str) -> String {
    unbroken(&format::plural(number, singular))
}

pub fn bytes(bytes: u64) -> String {
    unbroken(&format::size(bytes))
}

/// Bits a second over `seconds`; `None` where they give no rate.
pub fn bit_rate(bytes: u64, seconds: f64) -> Option<String> {
    let rate = bytes as f64 * 8.0 / seconds;
    (seconds > 0.0 && rate.is_finite()).then(|| unbroken(&format::bit_rate(rate)))
}

/// Frames a second over `seconds`; `None` where they give no rate.
pub fn frame_rate(frames: u64, seconds: f64) -> Option<String> {
    let rate = frames as f64 / seconds;
    (seconds > 0.0 && rate.is_finite()).then(|| unbroken(&format!("{} frames/s", format::figure(rate))))
}

/// `12.3 %`.
pub fn share(part: u64, whole: u64) -> String {
    unbroken(&Share::of(part, whole).to_string())
}

pub fn duration(seconds: f64) -> String {
    unbroken(&format::duration(seconds))
}

//! The `rxlane` binary.
fn main() {}

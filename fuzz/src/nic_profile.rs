//! Any text as a NIC profile, and any frame on the device that it describes, in every mode: no panic, an error
//! that names the file, and a queue that the device has. Text and frame are parted by a zero byte.

use rxlane_nic::{Profile, Receiver, Setup};
use rxlane_wire::{Link, dissect};

fn land(profile: Profile, frame: &[u8]) {
    let Ok(receiver) = Receiver::new(profile, &Setup::default()) else { return };
    let seen = dissect(Link::Ethernet, frame, frame.len());
    let disposition = receiver.disposition(&seen);
    let landing = receiver.land(&disposition, frame, &seen);
    assert!(landing.queue.is_none_or(|queue| queue < receiver.queues()), "{landing:?}");
}

pub fn run(input: &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let Ok(text) = str::from_utf8(parts.next().unwrap_or_default()) else { return };
    let frame = parts.next().unwrap_or_default();
    let profile = match Profile::parse("fuzz.toml", "fuzz", text) {
        Ok(profile) => profile,
        Err(error) => return assert!(error.to_string().starts_with("fuzz.toml: "), "{error}"),
    };
    for mode in profile.modes() {
        let mode = mode.name.as_str();
        land(profile.with_mode(mode).unwrap_or_else(|error| panic!("{mode}: {error}")), frame);
    }
    land(profile, frame);
}

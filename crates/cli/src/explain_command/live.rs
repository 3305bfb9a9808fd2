//! A sample of what an interface receives, in place of a capture; and the device below it as it is set up.

use crate::live_sample;
use crate::output::Lacks;
use crate::progress::Progress;
use crate::signals::stop_by_signals;
use anyhow::Context;
use capture::Capture;
use doctor::Case;
use explain::report::LiveSample;
use format::{duration, plural, printable, quoted};
use host::live::{self, Options};
use host::sample::End;
pub use host::sample::Limits;
use host::text::Reader;
use nic::{Profile, Setup};
use std::io::Cursor;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The device below an interface, as it is set up now.
pub struct Present {
    pub profile: Profile,
    pub setup: Setup,
}

/// The device below an interface, where one profile fits it.
pub fn present(name: &str) -> Option<Present> {
    let options =
        Options { interval: Duration::ZERO, interfaces: Some(vec![name.to_owned()]), with_hash_key: true };
    let mut bundle = Vec::new();
    live::collect(&options, &mut bundle, &mut |_| {}).ok()?;
    let mut reader = Reader::new();
    reader.read("this machine", bundle.as_slice()).ok()?;
    let snapshot = reader.finish();
    let case = Case::new(&snapshot, None, Some(name)).ok()?;
    let device = snapshot.interface(case.physical(name))?;
    let [profile] = case.profiles(device)[..] else { return None };
    Some(Present { profile: profile.clone(), setup: doctor::setup(device, &case) })
}

/// What continues a sentence that says that there is no such file: that there is no such interface either.
pub fn nor(name: &str) -> String {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.map(|name| printable(&name)).collect();
    names.sort();
    format!(", and {}", steer::error::unknown(name, &names))
}

/// Samples an interface until a limit is reached or a signal ends it. Errors: there is no such interface, it is down, its
/// frames are not those of Ethernet; a privilege is missing, which is exit 3.
pub fn take(name: &str, limits: &Limits) -> anyhow::Result<(Capture, LiveSample)> {
    let stop = stop_by_signals()?;
    let mut line = Progress::new();
    let all = duration(limits.duration.as_secs_f64());
    let taken = live_sample::take(name, limits, &mut |taken| {
        let frames = plural(taken.frames, "frame");
        line.show(&format!("{frames} in {:.1} s of {all}; ^C explains them", taken.elapsed.as_secs_f64()));
        !stop.load(Ordering::Relaxed)
    });
    drop(line);
    let (pcap, taken) = taken.map_err(|error| match live_sample::lacks_privilege(&error) {
        true => {
            let (word, name) = (quoted(name), printable(name));
            Lacks(format!(
                "sampling {name} requires CAP_NET_RAW: run it as root (sudo rxlane explain {word}), or let root record a \
                 file (tcpdump -Q in -i {word} -c 100000 -s 256 -w FILE) and explain that: rxlane explain FILE"
            ))
            .into()
        }
        false => error,
    })?;
    let sample = LiveSample {
        interface: name.to_owned(),
        direction: "received",
        seconds: taken.elapsed.as_secs_f64(),
        snap: limits.snap,
        dropped: taken.dropped,
        merged: taken.merged,
        tags: taken.tags,
        end: match taken.end {
            End::Time => "time",
            End::Frames => "frames",
            End::Bytes => "bytes",
            End::Down => "down",
            End::Requested => "requested",
        },
    };
    let capture = Capture::from_reader(Cursor::new(pcap), name).context("the sample")?;
    Ok((capture, sample))
}

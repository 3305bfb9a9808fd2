//! The live sample, of frames that the traffic generator sends over a veth pair in a namespace of the test's own.

use capture::Capture;
use rxlane_host::sample::{End, Error, Limits, Sample, sample, sample_with};
use rxlane_host::setting::InterfaceName;
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Cursor};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use testkit::netns::{Namespace, Veth, probe};
use testkit::require;
use traffic::Scenario;

fn name(text: &str) -> InterfaceName {
    text.parse().expect("a name")
}

/// `out0` and `in0`, with room for two tags.
fn pair() -> Option<Namespace> {
    require("netns", probe())?;
    let namespace = Namespace::new().expect("a namespace");
    namespace.veth(&Veth { queues: 2, mtu: 1600, ..Veth::pair("out0", "in0") }).expect("a pair");
    Some(namespace)
}

fn limits(frames: u64) -> Limits {
    Limits { duration: Duration::from_secs(20), frames, snap: 65_535, ..Limits::default() }
}

/// Samples `in0` in a thread while `send` runs, which is called once the socket receives.
fn sample_during(
    namespace: &Namespace,
    limits: &Limits,
    send: impl FnOnce(),
) -> (Result<Sample, Error>, Vec<u8>) {
    // The socket of the sample before may still be there: what another test forks off has it until it has become the program
    // that it is to be.
    let before = namespace.inside(listening);
    thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            namespace.inside(|| {
                let mut file = Vec::new();
                (sample(&name("in0"), limits, &mut file), file)
            })
        });
        namespace.inside(|| {
            let until = Instant::now() + testkit::PATIENCE;
            while listening().is_subset(&before) && !sampler.is_finished() {
                assert!(Instant::now() < until, "no packet socket");
                thread::sleep(Duration::from_millis(2));
            }
        });
        send();
        sampler.join().expect("no panic")
    })
}

/// A sample while these frames arrive on `in0`, and the file of it.
fn sample_of(namespace: &Namespace, limits: &Limits, frames: &[Vec<u8>]) -> (Sample, Vec<u8>) {
    let (sampled, file) = sample_during(namespace, limits, || {
        namespace.send("out0", frames).expect("sent");
    });
    (sampled.expect("a sample"), file)
}

/// Packet sockets of all protocols that are bound to `in0`, by their inodes (columns `Proto`, `Iface` and `Inode`).
fn listening() -> BTreeSet<String> {
    let index = fs::read_to_string("/sys/class/net/in0/ifindex").expect("a number");
    let sockets = fs::read_to_string("/proc/thread-self/net/packet").expect("the list");
    let rows = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<&str>>());
    let ours = rows.filter(|row| row.get(3) == Some(&"0003") && row.get(4) == Some(&index.trim()));
    ours.filter_map(|row| row.get(8).map(|inode| (*inode).to_owned())).collect()
}

/// The frames of a scenario, which names how many it makes.
fn frames(scenario: &str, count: usize) -> Vec<Vec<u8>> {
    let mut scenario = Scenario::named(scenario).expect("a scenario").with_flows(50);
    scenario.control_per_million = 20_000;
    scenario.fragments_per_million = 20_000;
    let mut traffic = scenario.generate(3).expect("a generator");
    (0..count).map(|_| traffic.next_frame().bytes.to_vec()).collect()
}

/// Bytes, full length and time of every frame of a capture.
fn read(file: Vec<u8>) -> Vec<(Vec<u8>, u32, i64)> {
    let mut capture = Capture::from_reader(Cursor::new(file), "sample").expect("a capture");
    let mut frames = Vec::new();
    while let Some(frame) = capture.next_frame() {
        assert_eq!(frame.link_type(), capture::LinkType::Ethernet);
        frames.push((frame.data.to_vec(), frame.wire_len, frame.timestamp_ns().expect("a time")));
    }
    assert!(capture.report().problems.is_empty());
    frames
}

#[test]
fn frames_arrive_byte_for_byte_with_every_tag() {
    let Some(namespace) = pair() else { return };
    for scenario in ["untagged", "vlan", "qinq", "pppoe-qinq", "mixed"] {
        let sent = frames(scenario, 2000);
        let (sampled, file) = sample_of(&namespace, &limits(2000), &sent);
        let tagged = |frame: &&Vec<u8>| matches!(frame[12..14], [0x81, 0] | [0x88, 0xa8]);
        assert_eq!((sampled.frames, sampled.dropped, sampled.end), (2000, 0, End::Frames), "{scenario}");
        assert_eq!(sampled.tags, sent.iter().filter(tagged).count() as u64, "{scenario}");
        assert_eq!(sampled.bytes, sent.iter().map(|frame| frame.len() as u64).sum::<u64>());
        let read = read(file);
        for ((bytes, length, _), frame) in read.iter().zip(&sent) {
            assert_eq!((bytes, *length as usize), (frame, frame.len()), "{scenario}");
        }
        assert!(read.is_sorted_by_key(|(_, _, at)| *at));
    }
}

#[test]
fn long_frames_are_cut_and_keep_their_length() {
    let Some(namespace) = pair() else { return };
    let sent = frames("qinq", 300);
    let few = Limits { snap: 100, ..limits(300) };
    let (sampled, file) = sample_of(&namespace, &few, &sent);
    assert_eq!(sampled.frames, 300);
    assert!(sent.iter().any(|frame| frame.len() > 1000) && sent.iter().any(|frame| frame.len() < 100));
    for ((bytes, length, _), frame) in read(file).iter().zip(&sent) {
        assert_eq!((bytes.as_slice(), *length as usize), (&frame[..frame.len().min(100)], frame.len()));
    }
}

#[test]
fn a_sample_ends_with_its_bytes_or_its_time() {
    let Some(namespace) = pair() else { return };
    let sent = vec![vec![7_u8; 84]; 400];
    let bytes = Limits { bytes: 24 + 250 * 100 + 99, ..limits(1000) };
    let (sampled, file) = sample_of(&namespace, &bytes, &sent);
    assert_eq!((sampled.frames, sampled.end, file.len()), (250, End::Bytes, 24 + 250 * 100));

    let short = Limits { duration: Duration::from_millis(600), ..limits(1000) };
    let (sampled, _) = sample_of(&namespace, &short, &sent);
    assert_eq!((sampled.frames, sampled.end), (400, End::Time));
    assert!(sampled.elapsed >= Duration::from_millis(600), "{:?}", sampled.elapsed);
}

#[test]
fn who_watches_a_sample_sees_its_frames_and_ends_it() {
    let Some(namespace) = pair() else { return };
    let (started, starts) = mpsc::channel();
    let (sampled, file) = thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            namespace.inside(move || {
                let mut file = Vec::new();
                let sampled = sample_with(&name("in0"), &limits(1000), &mut file, &mut |taken| {
                    // Nobody listens any more after the first time.
                    let _ = started.send(());
                    taken.frames < 7
                });
                (sampled, file)
            })
        });
        starts.recv().expect("the sampler watches");
        namespace.send("out0", vec![[3_u8; 60]; 7]).expect("sent");
        sampler.join().expect("no panic")
    });
    let sampled = sampled.expect("a sample");
    assert_eq!((sampled.frames, sampled.end, read(file).len()), (7, End::Requested, 7));
}

#[test]
fn frames_that_are_sent_are_left_out() {
    let Some(namespace) = pair() else { return };
    let (sampled, file) = sample_during(&namespace, &limits(5), || {
        namespace.send("in0", vec![[1_u8; 60]; 5]).expect("sent");
        namespace.send("out0", vec![[2_u8; 60]; 5]).expect("sent");
    });
    assert_eq!(sampled.expect("a sample").frames, 5);
    assert!(read(file).iter().all(|(bytes, ..)| bytes == &[2; 60]));
}

#[test]
fn an_interface_that_goes_down_ends_the_sample() {
    let Some(namespace) = pair() else { return };
    let (sampled, file) = sample_during(&namespace, &limits(1000), || {
        namespace.send("out0", vec![[2_u8; 60]; 5]).expect("sent");
        thread::sleep(Duration::from_millis(200));
        namespace.run("ip", &["link", "set", "dev", "in0", "down"]).expect("down");
    });
    let sampled = sampled.expect("a sample");
    assert_eq!((sampled.frames, sampled.end, read(file).len()), (5, End::Down, 5));
    let again = namespace.inside(|| sample(&name("in0"), &limits(1), &mut io::sink()));
    assert!(matches!(again, Err(Error::Down { .. })), "{again:?}");
}

#[test]
fn what_cannot_be_sampled_is_named() {
    let Some(namespace) = pair() else { return };
    let of = |interface: &str| namespace.inside(|| sample(&name(interface), &limits(1), &mut io::sink()));
    assert!(matches!(of("nothing0"), Err(Error::NoInterface { .. })));
    namespace.run("ip", &["tuntap", "add", "dev", "tun0", "mode", "tun"]).expect("a TUN device");
    namespace.run("ip", &["link", "set", "dev", "tun0", "up"]).expect("up");
    let error = of("tun0").expect_err("no Ethernet");
    assert!(matches!(error, Error::NotEthernet { kind: 65_534, .. }), "{error:?}");
}

#[test]
fn without_the_capability_it_is_permission_that_is_missing() {
    let Some(namespace) = pair() else { return };
    let error = namespace.inside(|| {
        use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
        let none = CapabilitySet::empty();
        let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
        set_capabilities(None, sets).expect("given up");
        sample(&name("in0"), &limits(1), &mut io::sink()).expect_err("no privilege")
    });
    let Error::Privilege { source, .. } = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("CAP_NET_RAW"), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_ends_the_sample() {
    let Some(namespace) = pair() else { return };
    let mut full = fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    let error = namespace.inside(|| sample(&name("in0"), &limits(1), &mut full)).expect_err("a full disk");
    assert!(matches!(error, Error::Write(source) if source.kind() == io::ErrorKind::StorageFull));
}

#[test]
fn what_the_kernel_drops_is_counted() {
    /// Waits at the first bytes until everything was sent.
    struct Slow(Option<std::sync::mpsc::Receiver<()>>);
    impl io::Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(sent) = self.0.take() {
                sent.recv().expect("sent");
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    const SENT: u64 = 60_000;
    let Some(namespace) = pair() else { return };
    let (sent, wait) = std::sync::mpsc::channel();
    let short = Limits { duration: Duration::from_secs(2), ..limits(SENT) };
    let sampled = thread::scope(|scope| {
        let mut slow = Slow(Some(wait));
        let sampler = scope
            .spawn(|| namespace.inside(move || sample(&name("in0"), &short, &mut slow).expect("a sample")));
        while namespace.inside(listening).is_empty() && !sampler.is_finished() {
            thread::sleep(Duration::from_millis(2));
        }
        namespace.send("out0", (0..SENT).map(|_| [0_u8; 1500])).expect("sent");
        sent.send(()).expect("waited for");
        sampler.join().expect("no panic")
    });
    assert!(sampled.dropped > 0 && sampled.frames > 0, "{sampled:?}");
    assert!(sampled.frames + sampled.dropped <= SENT, "{sampled:?}");
}

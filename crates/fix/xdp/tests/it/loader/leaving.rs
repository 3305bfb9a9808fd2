//! What stays when a process or an interface goes: attachments of processes that ended, were killed or ran in a mount
//! namespace of their own, and pins of interfaces that were removed.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aya::maps::{Array, Map, MapData};
use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, Protocol, RecvFlags, SocketType, recv, socket, sockopt};
use rxlane_xdp::layout::BUCKETS;
use rxlane_xdp::{Attachment, Counters, Error, Family, Stale, attach, clear_dead};
use testkit::{program, wait_until};

use crate::loader::child::{answer, arguments, work};
use crate::loader::machine::{Machine, PEER, SOON, WAN, find, plan, pppoe, settled};

/// The process runs in `ip netns exec`, which has a mount namespace and a `/sys` of its own.
fn child(machine: &Machine) -> Command {
    let arguments = arguments();
    let mut command = machine.namespace.command(&arguments[0]);
    command.args(&arguments[1..]);
    command
}

#[test]
fn an_attachment_outlives_its_process_and_another_ends_it() {
    let Some(machine) = Machine::new() else { return };
    let said = answer(work(&mut child(&machine), "attach"));
    assert!(said.starts_with("ok /sys/fs/bpf/rxlane/steer/"), "{said}");
    let attachment = machine.open().expect("still there");
    let sent = machine.namespace.send(PEER, (0..100).map(|flow| pppoe(flow, 100))).expect("sent");
    settled(&attachment, sent);
    assert_eq!(answer(work(&mut child(&machine), "detach")), "ok 0");
    machine.assert_clean(WAN);
    assert_eq!(answer(work(&mut child(&machine), "open")), "ok false");
    assert_eq!(answer(work(&mut child(&machine), "remove")), "ok false");
}

#[test]
fn pins_of_a_removed_interface_are_dead_and_are_cleared() {
    let Some(machine) = Machine::new() else { return };
    let attachment = machine.attached();
    assert_eq!(machine.dead(), []);
    machine.namespace.run("ip", &["link", "del", WAN]).expect("removed");
    assert!(matches!(machine.namespace.inside(|| attachment.mode()), Err(Error::NoInterface { .. })));
    drop(attachment);
    let dead = machine.dead();
    let [only] = &dead[..] else { panic!("{dead:?}") };
    assert_eq!((only.interface.as_str(), only.why), (WAN, Stale::Removed));
    // They do not stand in the way of a new interface of this name.
    machine.namespace.run("ip", &["link", "add", WAN, "type", "veth"]).expect("made");
    assert!(machine.open().is_none());
    drop(machine.attached());
    assert_eq!((machine.folders().len(), machine.dead()), (1, Vec::new()));
    machine.namespace.run("ip", &["link", "del", WAN]).expect("removed");
    let dead = machine.dead();
    assert!(clear_dead(&dead[0]).expect("cleared"));
    assert_eq!(machine.folders(), Vec::<PathBuf>::new());
    assert!(!clear_dead(&dead[0]).expect("nothing there"));
}

/// A process is killed as soon as it has pinned one thing more than in the round before; then at the end, where nothing
/// more is pinned but the link, at times that differ by fractions of a millisecond.
#[test]
fn killed_at_any_moment_there_is_a_whole_attachment_or_none() {
    let Some(machine) = Machine::new() else { return };
    let folder = PathBuf::from(format!("/sys/fs/bpf/rxlane/steer/{}/{WAN}", machine.inode));
    let pins = ["BUCKETS", "COUNTS", "ABOUT", "arrive", "steer", "link"];
    let (mut whole, mut beginnings) = (0, 0);
    // Once at each pin; then, since a busy machine kills later than requested, until both outcomes were seen.
    for round in 0..60 {
        if round >= pins.len() + 2 && whole > 0 && beginnings > 2 {
            break;
        }
        let (pin, microseconds) = match pins.get(round) {
            Some(&pin) => (pin, 0),
            None if beginnings <= 2 => (pins[round % pins.len()], 0),
            None => ("ABOUT", 150 * (round - pins.len()) as u64),
        };
        let mut command = child(&machine);
        let mut victim = work(&mut command, "attach").stdout(Stdio::null()).spawn().expect("started");
        let until = Instant::now() + SOON * 2;
        loop {
            // Looked at in this order: it may make its last pin and end between the two.
            let is_over = victim.try_wait().expect("its state").is_some() || Instant::now() >= until;
            if folder.join(pin).exists() {
                break;
            }
            assert!(!is_over, "no {pin}");
            std::hint::spin_loop();
        }
        spin(Duration::from_micros(microseconds));
        victim.kill().expect("killed");
        victim.wait().expect("its end");

        let program = machine.namespace.inside(|| find(WAN).program()).expect("queried");
        match machine.open() {
            Some(attachment) => {
                let attached_as = program.and_then(|program| program.attached_as);
                assert_eq!(attached_as, Some((Family::Steer, WAN.to_owned())));
                machine.namespace.inside(|| attachment.mode()).expect("whole");
                assert_eq!(
                    attachment.cpus().expect("read"),
                    machine.namespace.inside(|| plan(find(WAN))).cpus
                );
                assert_eq!(machine.dead(), []);
                whole += 1;
                machine.namespace.inside(|| attachment.detach(SOON)).expect("detached");
            }
            None => {
                assert_eq!(program, None, "killed at {pin}");
                let dead = machine.dead();
                assert!(matches!(&dead[..], [dead] if dead.why == Stale::Unfinished), "{dead:?}");
                beginnings += 1;
                // Every second beginning is left to the next round, which has to cope.
                if beginnings % 2 == 0 {
                    assert!(machine.namespace.inside(|| Attachment::remove(&find(WAN))).expect("removed"));
                    machine.assert_clean(WAN);
                }
            }
        }
    }
    assert!(whole > 0 && beginnings > 2, "{whole} whole, {beginnings} begun");
}

/// Sleeping takes longer than what is to be distinguished.
fn spin(time: Duration) {
    let started = Instant::now();
    while started.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let Some(machine) = Machine::new() else { return };
    let attaching = || {
        let mut command = child(&machine);
        work(&mut command, "attach").stdout(Stdio::piped()).spawn().expect("started")
    };
    let processes = [attaching(), attaching()];
    let answers = processes.map(|process| {
        let output = process.wait_with_output().expect("its end");
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let won = answers.iter().filter(|answer| answer.contains("ANSWER ok")).count();
    let lost = answers.iter().filter(|answer| {
        let is_clear = answer.contains("is steered already") || answer.contains("at this moment: try again");
        answer.contains("ANSWER lacks=false") && is_clear
    });
    assert_eq!((won, lost.count()), (1, 1), "{answers:?}");
    machine.open().expect("attached");
    assert_eq!(machine.folders().len(), 1);
}

#[test]
fn a_folder_that_somebody_works_on_is_left_alone() {
    let Some(machine) = Machine::new() else { return };
    // As a process that has begun to attach has it; where no BPF file system is, one is mounted by the first attempt.
    drop(machine.attached());
    let [folder] = &machine.folders()[..] else { panic!("one folder") };
    let lock = File::open(folder).expect("opened");
    flock(&lock, FlockOperation::LockExclusive).expect("locked");
    let attachment = machine.open().expect("attached");
    let error = machine.namespace.inside(|| attachment.detach(SOON)).expect_err("locked");
    assert!(matches!(error, Error::Locked { .. }) && !error.lacks(), "{error}");
    let error = machine.namespace.inside(|| Attachment::remove(&find(WAN))).expect_err("locked");
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    machine.namespace.run("ip", &["link", "del", WAN]).expect("removed");
    assert_eq!(machine.dead(), []);
    // A program that another test has just forked off holds the descriptor, too, and by it the lock.
    flock(&lock, FlockOperation::Unlock).expect("unlocked");
    assert_eq!(machine.dead().len(), 1);
}

#[test]
fn who_looks_at_leftovers_does_not_hide_them_from_others() {
    let Some(machine) = Machine::new() else { return };
    drop(machine.attached());
    machine.namespace.run("ip", &["link", "del", WAN]).expect("removed");
    let [folder] = &machine.folders()[..] else { panic!("one folder") };
    // As another process has it that looks for leftovers at this moment.
    let observer = File::open(folder).expect("opened");
    flock(&observer, FlockOperation::LockShared).expect("shared");
    let dead = machine.dead();
    let [only] = &dead[..] else { panic!("one of them: {dead:?}") };
    assert!(!clear_dead(only).expect("waited"), "while somebody looks");
    flock(&observer, FlockOperation::Unlock).expect("unlocked");
    assert!(clear_dead(only).expect("cleared"));
    assert_eq!(machine.dead(), []);
}

#[test]
fn pins_of_another_version_and_damaged_ones_are_not_used_and_can_be_removed() {
    let Some(machine) = Machine::new() else { return };
    let open = || machine.namespace.inside(|| Attachment::open(&find(WAN)));
    let folder = machine.attached().folder();
    let about = MapData::from_pin(folder.join("ABOUT")).expect("opened");
    let mut about: Array<_, [u8; 80]> = Map::Array(about).try_into().expect("an array");
    let ours = about.get(&0, 0).expect("read");
    let mut another = ours;
    another[..4].copy_from_slice(&7_u32.to_ne_bytes());
    about.set(0, another, 0).expect("written");
    let error = open().expect_err("not understood");
    assert!(matches!(error, Error::OtherVersion { found: 7, .. }) && !error.lacks(), "{error}");

    about.set(0, ours, 0).expect("written");
    open().expect("understood").expect("attached");
    std::fs::remove_file(folder.join("COUNTS")).expect("removed");
    let error = open().expect_err("not whole");
    assert!(matches!(error, Error::Damaged { .. }) && error.to_string().contains("no COUNTS"), "{error}");

    assert!(machine.namespace.inside(|| Attachment::remove(&find(WAN))).expect("removed"));
    machine.assert_clean(WAN);
}

/// In a mount and process namespace without a BPF file system, whose first process is a shell.
#[test]
fn a_bpf_file_system_is_mounted_where_it_outlives_the_command() {
    let Some(machine) = Machine::new() else { return };
    let Some(unshare) = testkit::require("unshare", program("unshare")) else { return };
    // Where none is mounted yet, there is nothing to take away.
    let script = r#"
        while umount /sys/fs/bpf 2>/dev/null; do :; done
        ip netns exec "$0" env RXLANE_TEST_LOADER=attach "$@"
        ls -d /sys/fs/bpf/rxlane/steer/*/wan0/link
        ip netns exec "$0" env RXLANE_TEST_LOADER=detach "$@"
        ls -R /sys/fs/bpf
    "#;
    let mut command = Command::new(unshare);
    command.args([
        "--mount",
        "--pid",
        "--fork",
        "--mount-proc",
        "sh",
        "-c",
        script,
        machine.namespace.name(),
    ]);
    let output = command.args(arguments()).stdin(Stdio::null()).output().expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    let (attached, rest) =
        text.split_once("\n/sys/fs/bpf/rxlane/steer/").unwrap_or_else(|| panic!("{output:?}"));
    assert!(attached.contains("ANSWER ok /sys/fs/bpf/rxlane/steer/"), "{text}");
    assert!(
        rest.starts_with(&format!("{}/wan0/link", machine.inode)) && rest.contains("ANSWER ok 0"),
        "{text}"
    );
    assert!(!rest.ends_with("wan0:\n") && !rest.contains("\nrxlane"), "{text}");
    // Nothing of it was to be seen outside.
    assert_eq!(machine.folders(), Vec::<PathBuf>::new());
}

/// While frames come in all the time, attaching and detaching lose none on a veth pair: all reach the stack, where a
/// packet socket counts them.
#[test]
fn nothing_is_lost_while_attaching_and_detaching() {
    let Some(machine) = Machine::new() else { return };
    let stack = machine.namespace.inside(listen);
    let stop = AtomicBool::new(false);
    let (sent, detached) = thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let flows = (0..=u16::MAX).cycle().take(1_000_000).take_while(|_| !stop.load(Ordering::Relaxed));
            // Some thousand frames a second, so that no queue is full.
            let paced = flows.map(|flow| {
                spin(Duration::from_micros(200));
                pppoe(flow, 100)
            });
            machine.namespace.send(PEER, paced)
        });
        let attachment = machine.namespace.inside(|| attach(&plan(find(WAN))));
        let detached = attachment.and_then(|attachment| {
            wait_until("200 steered frames", || steered(&attachment.counts().expect("counted")) > 200);
            machine.namespace.inside(|| attachment.detach(SOON))
        });
        stop.store(true, Ordering::Relaxed);
        (sender.join().expect("joined").expect("sent"), detached.expect("detached"))
    });
    assert_eq!(detached.unseen, 0);
    let steered = steered(&detached.counters);
    assert!(steered > 200 && steered < sent, "{steered} of {sent}");
    let mut received = 0;
    let until = Instant::now() + SOON;
    while received < sent {
        match recv(&stack, &mut [0; 256], RecvFlags::DONTWAIT) {
            Ok(_) => received += 1,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
        assert!(Instant::now() < until, "{received} of {sent} came to the stack, {steered} of them steered");
    }
}

fn steered(counters: &Counters) -> u64 {
    (0..BUCKETS).map(|bucket| counters.frames(bucket)).sum()
}

/// A socket that gets every PPPoE session frame that the stack of this namespace receives.
fn listen() -> OwnedFd {
    let session = Protocol::from_raw(u32::from(0x8864_u16.to_be()).try_into().expect("not zero"));
    let socket = socket(AddressFamily::PACKET, SocketType::RAW, Some(session)).expect("a socket");
    sockopt::set_socket_recv_buffer_size_force(&socket, 256 << 20).expect("room");
    socket
}

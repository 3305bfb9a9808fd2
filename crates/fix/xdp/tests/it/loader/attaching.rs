//! Attaching, counting, moving buckets, detaching.

use std::time::{Duration, Instant};

use rxlane_xdp::layout::{BUCKETS, Bucket, Reason};
use rxlane_xdp::{Attachment, Error, Mode, Plan, attach};
use testkit::netns::{Namespace, Veth};

use crate::loader::machine::{Machine, PEER, SOON, WAN, cpus, find, plan, pppoe, settled};

#[test]
fn frames_go_to_the_cpus_of_their_buckets_and_are_counted() {
    let Some(machine) = Machine::new() else { return };
    let attachment = machine.attached();
    assert_eq!((attachment.attached_as(), attachment.frags()), (WAN, true));
    assert_eq!(machine.namespace.inside(|| attachment.mode()).expect("queried"), Mode::Native);
    let sent = machine.namespace.send(PEER, (0..4000).map(|flow| pppoe(flow, 100))).expect("sent");
    let arp = [vec![0xff; 6], vec![2, 0, 0, 0, 0, 2, 8, 6], vec![0; 46]].concat();
    machine.namespace.send(PEER, [arp]).expect("sent");
    let counters = settled(&attachment, sent);
    assert_eq!(counters.reason(Reason::Steered), 4000);
    assert_eq!(counters.reason(Reason::NotIp), 1);
    let targets: Vec<u32> = counters.targets.iter().map(|target| target.cpu).collect();
    assert_eq!(targets, cpus());
    let mean = 4000 / targets.len() as u64;
    for target in &counters.targets {
        assert_eq!((target.sent, target.strange), (target.arrivals(), 0));
        assert!(target.frames().abs_diff(mean) < mean / 5, "{} of {mean}", target.frames());
        // Buckets are on CPUs in turn.
        let others = target
            .arrived
            .iter()
            .enumerate()
            .filter(|(bucket, arrived)| **arrived > 0 && cpus()[bucket % cpus().len()] != target.cpu);
        assert_eq!(others.count(), 0);
        let receiver =
            counters.receivers.iter().find(|receiver| receiver.cpu == target.cpu).expect("possible");
        for bucket in 0..BUCKETS {
            let is_own = cpus()[bucket % cpus().len()] == receiver.cpu;
            let queued_and_kept = (receiver.sent[bucket] > 0, receiver.kept[bucket] > 0);
            assert!(if is_own { !queued_and_kept.0 } else { !queued_and_kept.1 }, "{bucket}: {receiver:?}");
        }
    }
    assert!((0..BUCKETS).filter(|&bucket| counters.frames(bucket) > 0).count() > 250);
    let detached = machine.namespace.inside(|| attachment.detach(SOON)).expect("detached");
    assert_eq!((detached.unseen, detached.counters.reason(Reason::Steered)), (0, 4000));
    machine.assert_clean(WAN);
}

#[test]
fn another_opener_sees_the_plan_and_moves_a_bucket() {
    let Some(machine) = Machine::new() else { return };
    drop(machine.attached());
    let planned = machine.namespace.inside(|| plan(find(WAN)));
    let attachment = machine.open().expect("still there");
    let settings = attachment.settings();
    assert_eq!((settings.key, settings.classes), (planned.settings.key, planned.settings.classes));
    assert_eq!((settings.hold_ns, settings.symmetric), (planned.settings.hold_ns, 0));
    assert_eq!(attachment.cpus().expect("read"), planned.cpus);
    let age = attachment.since().elapsed().expect("in the past");
    assert!(age < Duration::from_secs(120), "{age:?}");
    let names = attachment.programs().each_ref().map(|program| program.name.as_str());
    assert_eq!(names, ["steer", "arrive"]);
    let buckets = attachment.buckets().expect("read");
    assert_eq!(buckets.map(|bucket| bucket.cpu), planned.buckets);

    let refused = |bucket, cpu| attachment.set_bucket(bucket, Bucket { cpu, spare: 0, lost: 0 });
    assert!(matches!(refused(BUCKETS, 0), Err(Error::Plan(_))));
    assert!(matches!(refused(0, 1023), Err(Error::Plan(_))));
    if cpus().len() == 1 {
        return;
    }
    // All frames of one flow, whose bucket is that which counts.
    machine.namespace.send(PEER, [pppoe(1, 100)]).expect("sent");
    let counters = settled(&attachment, 1);
    let bucket = (0..BUCKETS).find(|&bucket| counters.frames(bucket) == 1).expect("sent");
    let old = buckets[bucket].cpu;
    let new = cpus().into_iter().find(|&cpu| cpu != old).expect("another");
    attachment.set_bucket(bucket, Bucket { cpu: new, spare: 0, lost: 0 }).expect("written");
    let until = Instant::now() + SOON;
    let mut sent = 1;
    loop {
        sent += machine.namespace.send(PEER, [pppoe(1, 100)]).expect("sent");
        let counters = settled(&attachment, sent);
        let queued = counters.targets.iter().any(|target| target.cpu == new && target.arrived[bucket] > 0);
        let kept = counters.receivers.iter().any(|receiver| receiver.cpu == new && receiver.kept[bucket] > 0);
        if queued || kept {
            assert!(counters.receivers.iter().any(|receiver| receiver.current[bucket] == new));
            break;
        }
        assert!(Instant::now() < until, "bucket {bucket} stays on CPU {old}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn frames_of_several_buffers_are_steered_and_so_are_all_in_generic_mode() {
    for (mode, mtu, length) in [(Mode::Native, 9000, 9014), (Mode::Generic, 1500, 100)] {
        let pair = Veth { queues: 4, mtu, ..Veth::pair(WAN, PEER) };
        let Some(machine) = Machine::with(&pair) else { return };
        let attachment = machine.namespace.inside(|| attach(&Plan { mode, ..plan(find(WAN)) }));
        let attachment = attachment.expect("attached");
        assert_eq!(machine.namespace.inside(|| attachment.mode()).expect("known"), mode);
        let sent = machine.namespace.send(PEER, (0..200).map(|flow| pppoe(flow, length))).expect("sent");
        let counters = settled(&attachment, sent);
        assert_eq!(counters.reason(Reason::Steered), 200, "{mode:?}: {:?}", counters.reasons);
    }
}

/// The kernel keeps names with dots under bpffs for itself.
#[test]
fn a_name_with_dots_can_be_pinned() {
    let Some(machine) = Machine::with(&Veth::pair("wan.35", PEER)) else { return };
    let attachment = machine.namespace.inside(|| attach(&plan(find("wan.35")))).expect("attached");
    assert_eq!(attachment.attached_as(), "wan.35");
    assert!(attachment.folder().ends_with("wan:35"), "{:?}", attachment.folder());
    assert!(machine.namespace.inside(|| Attachment::remove(&find("wan.35"))).expect("removed"));
    machine.assert_clean("wan.35");
}

#[test]
fn a_renamed_interface_is_found_and_its_old_name_is_free() {
    let Some(machine) = Machine::new() else { return };
    drop(machine.attached());
    let name = machine.namespace.name();
    let ip = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        machine.namespace.run("ip", &words).expect(name)
    };
    ip("link set dev wan0 down");
    ip("link set dev wan0 name old0");
    ip("link set dev old0 up");
    let opened =
        machine.namespace.inside(|| Attachment::open(&find("old0"))).expect("opened").expect("attached");
    assert_eq!((opened.interface().name.as_str(), opened.attached_as()), ("old0", WAN));
    let error = machine.namespace.inside(|| attach(&plan(find("old0")))).expect_err("attached already");
    assert!(matches!(&error, Error::Attached { attached, .. } if attached == WAN), "{error}");

    ip("link add wan0 type veth peer name peer1");
    let second = machine.attached();
    assert_eq!(second.attached_as(), WAN);
    assert_ne!(second.folder(), opened.folder());
    assert_eq!(machine.folders().len(), 2);
    machine.namespace.inside(|| second.detach(SOON)).expect("detached");
    assert!(machine.namespace.inside(|| Attachment::open(&find("old0"))).expect("opened").is_some());
    machine.namespace.inside(|| opened.detach(SOON)).expect("detached");
    machine.assert_clean("old0");
}

#[test]
fn an_interface_that_went_to_another_namespace_is_found_there() {
    let Some(machine) = Machine::new() else { return };
    drop(machine.attached());
    let other = Namespace::new().expect("a namespace");
    machine.namespace.run("ip", &["link", "set", "dev", WAN, "netns", other.name()]).expect("moved");
    let opened = other.inside(|| Attachment::open(&find(WAN))).expect("opened").expect("attached");
    assert_eq!(opened.interface().namespace, other.inside(|| find(WAN)).namespace);
    assert_eq!(machine.dead(), []);
    other.inside(|| opened.detach(SOON)).expect("detached");
    assert_eq!(machine.folders(), Vec::<std::path::PathBuf>::new());
}

//! Commands of one interface that run at the same time, of steering and of envelopes.

use crate::machine::{Machine, WAN};
use crate::run::Ended;
use std::process::{Child, Stdio};
use steer::record::Records;
use xdp::Interface;

fn machines() -> impl Iterator<Item = (Machine, service::Kind)> {
    let kinds = [(Machine::steer(), service::Kind::Steer), (Machine::envelope(), service::Kind::Envelope)];
    kinds.into_iter().filter_map(|(machine, kind)| Some((machine?, kind)))
}

fn start(machine: &Machine, arguments: &[&str]) -> Child {
    let mut command = machine.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
}

#[test]
fn of_several_up_at_once_one_wins_and_the_others_change_nothing() {
    for (machine, kind) in machines() {
        let before = machine.state();
        let setting: &[&str] = if kind == service::Kind::Steer { &["--disable-rxvlan"] } else { &[] };
        let up = [&machine.up_arguments(WAN)[..], setting].concat();
        for _ in 0..3 {
            let children = [(); 3].map(|()| start(&machine, &up));
            let ended = children.map(|child| child.wait_with_output().expect("an end"));
            let (won, lost): (Vec<_>, Vec<_>) = ended.iter().partition(|ended| ended.code() == 0);
            assert_eq!((won.len(), lost.len()), (1, 2), "{ended:?}");
            for lost in lost {
                lost.ends(1).omits("no longer attached");
                let text = lost.text();
                assert!(
                    text.contains("another rxlane is bringing up") || text.contains(" already"),
                    "{text}"
                );
            }
            assert!(machine.is_up(WAN));
            // What a loser took back was not the winner's.
            assert!(setting.is_empty() || machine.features().contains("rx-vlan-offload: off"));
            machine.run(&["down", WAN]).ends(0);
            assert_eq!(machine.state(), before);
            machine.assert_nothing_left();
        }
    }
}

#[test]
fn up_refuses_while_another_is_at_work_and_down_waits() {
    for (machine, kind) in machines() {
        let before = machine.state();
        let lock = || {
            let interface = Interface::find(WAN).expect("the interface");
            Records::new(machine.journal()).lock(kind, &interface).expect("free")
        };
        let held = machine.inside(lock);
        machine.up(WAN).ends(1).says("another rxlane is bringing up the").says("of wan0");
        assert_eq!(machine.state(), before);
        drop(held);
        machine.up(WAN).ends(0);
        let held = machine.inside(lock);
        let mut down = start(&machine, &["down", WAN]);
        for _ in 0..3 {
            assert!(machine.is_up(WAN), "{kind}");
        }
        assert!(down.try_wait().expect("a status").is_none());
        drop(held);
        down.wait_with_output().expect("an end").ends(0);
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    }
}

#[test]
fn status_during_down_is_that_before_or_after() {
    for (machine, kind) in machines() {
        let is_steer = kind == service::Kind::Steer;
        let status: &[&str] = if is_steer { &["status", WAN, "--interval", "0"] } else { &["status", WAN] };
        let off = if is_steer { "wan0: not steered" } else { "wan0: no envelope" };
        for _ in 0..3 {
            machine.up(WAN).ends(0);
            let mut down = start(&machine, &["down", WAN]);
            while down.try_wait().expect("a status").is_none() {
                let status = machine.run(status);
                let text = status.ends(0).text();
                assert!(text.contains(" native mode") || text.trim() == off, "{text}");
            }
            down.wait_with_output().expect("an end").ends(0);
        }
    }
}

//! What is there for the process that stays, and that it stays.

use crate::machine::{Machine, WAN, online_cpus, signal};
use crate::run::{BINARY, Ended};
use std::net::TcpListener;
use std::process::Command;
use steer::record::{Records, instance_of};
use testkit::wait_until;
use xdp::{Attachment, Interface};

#[test]
fn what_was_planned_is_noted_for_one_that_starts_later() {
    let Some(machine) = Machine::steer() else { return };
    machine.run(&["up", WAN, "--seconds", "0", "--cpus", &online_cpus()]).ends(0);
    let (place, program, cpus) = machine.inside(|| {
        let interface = Interface::find(WAN).expect("the interface");
        let attachment = Attachment::open(&interface).expect("its pins").expect("steered");
        (instance_of(&attachment), attachment.programs()[0].id, attachment.cpus().expect("CPUs"))
    });
    let records = Records::new(machine.journal());
    let planned = records.planned(&place).expect("read").expect("noted");
    assert_eq!(planned.program, program);
    assert!(planned.shares.iter().map(|(cpu, _)| cpu).eq(cpus.iter().map(|(cpu, _)| cpu)), "{planned:?}");
    let all: f64 = planned.shares.iter().map(|(_, share)| share).sum();
    assert!((all - 1.0).abs() < 1e-9, "{planned:?}");
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(records.planned(&place).expect("read"), None);
    machine.assert_nothing_left();
}

/// A namespace with a name, which `ip netns del` takes away while somebody is in it.
struct Named(String);

impl Drop for Named {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

#[test]
fn it_does_not_keep_a_namespace_that_was_deleted() {
    let Some(machine) = Machine::steer() else { return };
    let named = Named(format!("rxlane-test-{}", std::process::id()));
    let ip = |arguments: &str| {
        Command::new("ip").args(arguments.split(' ')).output().expect("it starts").is(&arguments, 0, "");
    };
    let name = &named.0;
    ip(&format!("netns add {name}"));
    ip(&format!("-n {name} link add {WAN} numrxqueues 2 type veth peer name far0"));
    let mut up = Command::new("ip");
    up.args(["netns", "exec", name]).arg(BINARY);
    up.args(["steer", "up", WAN, "--seconds", "0", "--rebalance", "--journal", machine.journal()]);
    up.output().expect("it starts").ends(0);
    let kept = || machine.left().iter().filter(|name| name.ends_with(".daemon")).count();
    assert_eq!(kept(), 1);
    ip(&format!("netns del {name}"));
    wait_until("the process ends", || kept() == 0);
    // The next command clears what it left, as soon as nothing keeps the namespace: mount namespaces of other tests may.
    wait_until("the next command clears what it left", || {
        machine.run(&["up", WAN, "--seconds", "0"]).ends(0);
        machine.run(&["down", WAN]).ends(0);
        machine.left().is_empty()
    });
    machine.assert_nothing_left();
}

#[test]
fn in_the_foreground_it_stays_though_nobody_reads() {
    let Some(machine) = Machine::steer() else { return };
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut child = machine
        .command(&["up", WAN, "--seconds", "0", "--foreground"])
        .stdout(writer)
        .spawn()
        .expect("it starts");
    machine.wait_until_steered();
    let status = machine.status_of(WAN);
    assert_eq!((status["mode"].as_str(), status["keeper"]["alive"].as_bool()), (Some("native"), Some(true)));
    signal(child.id(), "TERM");
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    machine.assert_nothing_left();
}

#[test]
fn a_bpf_file_system_that_was_mounted_for_it_goes_with_the_last_that_was_steered() {
    let Some(machine) = Machine::steer() else { return };
    let script = r#"
        mounted() { grep -c ' /sys/fs/bpf bpf ' /proc/mounts; }
        $steer up wan0 --seconds 0 --foreground $journal &
        until $steer status wan0 --interval 0 $journal | grep -q native; do sleep 0.1; done
        echo "foreground $(mounted)"
        kill -TERM $!; wait $!
        echo "ended $(mounted)"
        $steer up wan0 --seconds 0 --rebalance $journal
        echo "background $(mounted)"
        $steer down wan0 $journal
        echo "down $(mounted)"
    "#;
    let Some(output) = machine.in_own_mounts(script) else { return };
    let text = output.text();
    let counts: Vec<&str> = text
        .lines()
        .filter(|line| {
            ["foreground ", "ended ", "background ", "down "].iter().any(|word| line.starts_with(word))
        })
        .collect();
    assert_eq!(counts, ["foreground 1", "ended 0", "background 1", "down 0"], "{text}");
}

#[test]
fn an_address_that_cannot_be_served_is_told_with_the_reason() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    let taken = machine.inside(|| TcpListener::bind("127.0.0.1:9144")).expect("a port of the namespace");
    for (address, reason) in [
        ("127.0.0.1:9144", "another program has port 9144 there already (`ss -ltnp sport = :9144` names it)"),
        ("192.0.2.1:9144", "no interface of this network namespace has the address 192.0.2.1"),
    ] {
        let up = machine.run(&["up", WAN, "--seconds", "0", "--disable-rxvlan", "--metrics", address]);
        assert_eq!(up.ends(3).says(reason).text().lines().count(), 1, "{}", up.text());
        assert_eq!(machine.state(), before);
        machine.assert_nothing_left();
    }
    drop(taken);
}

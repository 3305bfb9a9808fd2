//! What is there for the daemon, and that it keeps running.

use crate::machine::{Machine, WAN, signal};
use crate::run::Ended;
use std::net::TcpListener;

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
fn an_address_that_cannot_be_served_is_reported_with_the_reason() {
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

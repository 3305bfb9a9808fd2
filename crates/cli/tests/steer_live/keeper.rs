//! What is there for the process that stays, and that it stays.

use crate::steer_machine::{Machine, WAN, code, said};
use steer::record::{Place, Records};
use xdp::{Attachment, Interface};

#[test]
fn what_was_planned_is_noted_for_one_that_starts_later() {
    let Some(machine) = Machine::new() else { return };
    let up = machine.run(&["up", WAN, "--seconds", "0", "--cpus", machine.cpus()]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    let (place, program, cpus) = machine.inside(|| {
        let interface = Interface::find(WAN).expect("the interface");
        let attachment = Attachment::open(&interface).expect("its pins").expect("steered");
        (Place::of(&attachment), attachment.programs()[0].id, attachment.cpus().expect("CPUs"))
    });
    let records = Records::new(machine.journal());
    let planned = records.planned(&place).expect("read").expect("noted");
    assert_eq!(planned.program, program);
    assert!(planned.shares.iter().map(|(cpu, _)| cpu).eq(cpus.iter().map(|(cpu, _)| cpu)), "{planned:?}");
    let all: f64 = planned.shares.iter().map(|(_, share)| share).sum();
    assert!((all - 1.0).abs() < 1e-9, "{planned:?}");
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert_eq!(records.planned(&place).expect("read"), None);
    machine.assert_nothing_left();
}

#[test]
fn in_the_foreground_it_stays_though_nobody_reads() {
    let Some(machine) = Machine::new() else { return };
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
    machine.signal(&child, "TERM");
    assert_eq!(child.wait().expect("an end").code(), Some(0));
    machine.assert_nothing_left();
}

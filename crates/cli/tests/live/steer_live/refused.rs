//! What stands in the way: a sentence with the way out, an exit code, and nothing left behind.

use crate::machine::{Machine, WAN};
use crate::run::Ended;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;
use testkit::{program, require};
use xdp::{Attachment, Interface};

const UP: [&str; 4] = ["up", WAN, "--seconds", "0"];

#[test]
fn a_limit_of_locked_memory_is_raised_or_does_not_count() {
    let Some(machine) = Machine::steer() else { return };
    let Some(()) = require("prlimit", program("prlimit").map(|_| ())) else { return };
    machine.run_by(&["prlimit", "--memlock=0:0"], &UP).ends(0);
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

/// The kernel refuses one call of bpf(2) as an older one would that does not know it.
#[test]
fn a_kernel_without_queues_in_front_of_cpus_is_refused_with_what_it_takes() {
    const CALLS: usize = 20;
    /// More than there are, and as many as strace can count.
    const NONE: usize = 65_535;
    let Some(machine) = Machine::steer() else { return };
    let Some(()) = require("strace", program("strace").map(|_| ())) else { return };
    // Pins in other namespaces are looked at first, so that other tests move the call.
    for _ in 0..CALLS {
        let makes_queues = |call: &String| call.contains("map_type=BPF_MAP_TYPE_CPUMAP");
        let (_, calls) = refused(&machine, NONE);
        let call = calls.iter().position(makes_queues).expect("a queue in front of each CPU");
        let (up, calls) = refused(&machine, call + 1);
        machine.assert_nothing_left();
        if calls.get(call).is_some_and(makes_queues) {
            up.ends(3).says("(BPF_MAP_TYPE_CPUMAP): it takes Linux 5.9");
            return;
        }
    }
    panic!("the calls were others in each of {CALLS} tries");
}

/// `up` whose call of that number, from 1, is refused; and its calls of bpf(2).
fn refused(machine: &Machine, call: usize) -> (Output, Vec<String>) {
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("trace");
    let refuse = format!("inject=bpf:error=EINVAL:when={call}");
    let written = file.to_str().expect("a path");
    let by = ["strace", "-f", "-qq", "-o", written, "-e", "trace=bpf", "-e", &refuse];
    let up = machine.run_by(&by, &UP);
    match up.code() {
        0 => assert_eq!(machine.run(&["down", WAN]).code(), 0),
        1 | 3 => {}
        other => panic!("call {call}: exit {other}: {}", up.text()),
    }
    assert!(!up.text().contains("panicked"), "call {call}: {}", up.text());
    let trace = std::fs::read_to_string(&file).expect("the trace");
    (up, trace.lines().map(str::to_owned).collect())
}

#[test]
fn a_program_that_another_process_holds_by_a_link_is_left_to_it() {
    let Some(machine) = Machine::steer() else { return };
    machine.run(&UP).ends(0);
    // Held by this process alone, and without pins, it is nobody's that rxlane knows.
    let held = machine.inside(|| {
        let interface = Interface::find(WAN).expect("the interface");
        Attachment::open(&interface).expect("its pins").expect("steered")
    });
    let folder = machine.inside(|| held.folder());
    remove(&folder);
    let before = machine.state();
    machine
        .run(&UP)
        .ends(1)
        .says("has an XDP program already")
        .says("held by link")
        .says(&format!("({})", std::process::id()))
        .says("bpftool link detach id");
    machine.run(&["check", WAN, "--seconds", "0"]).ends(1);
    let status = machine.status_of(WAN);
    assert_eq!(status["mode"], "off");
    assert!(
        status["remarks"].to_string().contains("another XDP program is attached"),
        "{}",
        status["remarks"]
    );
    machine.run(&["down", WAN]).ends(0);
    assert_eq!(machine.state(), before);
    // It goes with who holds it, and then the interface is free.
    drop(held);
    machine.run(&UP).ends(0);
    machine.run(&["down", WAN]).ends(0);
    machine.assert_nothing_left();
}

/// Pins have no contents, and their folder no folders.
fn remove(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("the pins") {
        std::fs::remove_file(entry.expect("a pin").path()).expect("removed");
    }
    std::fs::remove_dir(folder).expect("removed");
}

#[test]
fn records_that_cannot_be_written_leave_no_program_behind() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    // A file where the folder should be.
    std::fs::write(machine.journal(), "").expect("a file");
    machine.run(&UP).ends(3).says("journal").says("is no folder; remove it");
    assert_eq!(machine.state(), before);
    std::fs::remove_file(machine.journal()).expect("removed");
    machine.assert_nothing_left();
}

#[test]
fn without_sysfs_nothing_is_done_and_one_sentence_says_so() {
    let Some(machine) = Machine::steer() else { return };
    let before = machine.state();
    for command in ["check", "up"] {
        let script = "umount -l /sys && exec \"$@\"";
        let output =
            machine.run_by(&["unshare", "-m", "sh", "-c", script, "sh"], &[command, WAN, "--seconds", "0"]);
        let text = output.is(&command, 3, "").text();
        assert!(text.contains("/sys is not mounted") && text.contains("mount -t sysfs sysfs /sys"), "{text}");
        assert_eq!(text.lines().count(), 1, "{command}: {text}");
    }
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

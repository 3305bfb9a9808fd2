//! What stands in the way: a sentence with the way out, an exit code, and nothing left behind.

use crate::steer_machine::{Machine, WAN, code, said};
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;
use testkit::{program, require};
use xdp::{Attachment, Interface};

const UP: [&str; 4] = ["up", WAN, "--seconds", "0"];

#[test]
fn a_missing_capability_is_named() {
    let Some(machine) = Machine::new() else { return };
    let Some(()) = require("setpriv", program("setpriv").map(|_| ())) else { return };
    let before = machine.state();
    // CAP_SYS_ADMIN stands for two of them.
    for (without, named) in [
        ("-net_admin", "missing: CAP_NET_ADMIN"),
        ("-bpf,-sys_admin", "missing: CAP_BPF"),
        ("-perfmon,-sys_admin", "missing: CAP_PERFMON"),
    ] {
        let up = machine.run_by(&["setpriv", "--bounding-set", without, "--inh-caps", without], &UP);
        assert_eq!(code(&up), 3, "{without}: {}", said(&up));
        assert!(
            said(&up).contains(named) && said(&up).contains("run it as root"),
            "{without}: {}",
            said(&up)
        );
        assert_eq!(said(&up).lines().count(), 1, "{without}: {}", said(&up));
        assert_eq!(machine.state(), before, "{without}");
        machine.assert_nothing_left();
    }
}

#[test]
fn a_limit_of_locked_memory_is_raised_or_does_not_count() {
    let Some(machine) = Machine::new() else { return };
    let Some(()) = require("prlimit", program("prlimit").map(|_| ())) else { return };
    let up = machine.run_by(&["prlimit", "--memlock=0:0"], &UP);
    assert_eq!(code(&up), 0, "{}", said(&up));
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

/// The kernel refuses one call of bpf(2) as an older one would that does not know it.
#[test]
fn a_kernel_without_queues_in_front_of_cpus_is_told_what_it_takes() {
    const CALLS: usize = 20;
    /// More than there are, and as many as strace can count.
    const NONE: usize = 65_535;
    let Some(machine) = Machine::new() else { return };
    let Some(()) = require("strace", program("strace").map(|_| ())) else { return };
    // Pins in other namespaces are looked at first, so that other tests move the call.
    for _ in 0..CALLS {
        let makes_queues = |call: &String| call.contains("map_type=BPF_MAP_TYPE_CPUMAP");
        let (_, calls) = refused(&machine, NONE);
        let call = calls.iter().position(makes_queues).expect("a queue in front of each CPU");
        let (up, calls) = refused(&machine, call + 1);
        machine.assert_nothing_left();
        if calls.get(call).is_some_and(makes_queues) {
            assert_eq!(code(&up), 3, "{}", said(&up));
            assert!(said(&up).contains("(BPF_MAP_TYPE_CPUMAP): it takes Linux 5.9"), "{}", said(&up));
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
    match code(&up) {
        0 => assert_eq!(code(&machine.run(&["down", WAN])), 0),
        1 | 3 => {}
        other => panic!("call {call}: exit {other}: {}", said(&up)),
    }
    assert!(!said(&up).contains("panicked"), "call {call}: {}", said(&up));
    let trace = std::fs::read_to_string(&file).expect("the trace");
    (up, trace.lines().map(str::to_owned).collect())
}

#[test]
fn a_program_that_another_process_holds_by_a_link_is_left_to_it() {
    let Some(machine) = Machine::new() else { return };
    let up = machine.run(&UP);
    assert_eq!(code(&up), 0, "{}", said(&up));
    // Held by this process alone, and without pins, it is nobody's that rxlane knows.
    let held = machine.inside(|| {
        let interface = Interface::find(WAN).expect("the interface");
        Attachment::open(&interface).expect("its pins").expect("steered")
    });
    let folder = machine.inside(|| held.folder());
    remove(&folder);
    let before = machine.state();
    let again = machine.run(&UP);
    assert_eq!(code(&again), 1, "{}", said(&again));
    let text = said(&again);
    assert!(text.contains("has an XDP program already") && text.contains("held by link"), "{text}");
    assert!(
        text.contains(&format!("({})", std::process::id())) && text.contains("bpftool link detach id"),
        "{text}"
    );
    let check = machine.run(&["check", WAN, "--seconds", "0"]);
    assert_eq!(code(&check), 1, "{}", said(&check));
    let status = machine.status_of(WAN);
    assert_eq!(status["mode"], "off");
    assert!(
        status["remarks"].to_string().contains("another XDP program is attached"),
        "{}",
        status["remarks"]
    );
    let down = machine.run(&["down", WAN]);
    assert_eq!(code(&down), 0, "{}", said(&down));
    assert_eq!(machine.state(), before);
    // It goes with who holds it, and then the interface is free.
    drop(held);
    let up = machine.run(&UP);
    assert_eq!(code(&up), 0, "{}", said(&up));
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
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
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    // A file where the folder should be.
    std::fs::write(machine.journal(), "").expect("a file");
    let up = machine.run(&UP);
    assert_eq!(code(&up), 3, "{}", said(&up));
    assert!(said(&up).contains("journal") && said(&up).contains("is no folder; remove it"), "{}", said(&up));
    assert_eq!(machine.state(), before);
    std::fs::remove_file(machine.journal()).expect("removed");
    machine.assert_nothing_left();
}

#[test]
fn without_sysfs_nothing_is_done_and_one_sentence_says_so() {
    let Some(machine) = Machine::new() else { return };
    let before = machine.state();
    for command in ["check", "up"] {
        let script = "umount -l /sys && exec \"$@\"";
        let output =
            machine.run_by(&["unshare", "-m", "sh", "-c", script, "sh"], &[command, WAN, "--seconds", "0"]);
        let text = said(&output);
        assert_eq!(code(&output), 3, "{command}: {text}");
        assert!(text.contains("/sys is not mounted") && text.contains("mount -t sysfs sysfs /sys"), "{text}");
        assert_eq!(text.lines().count(), 1, "{command}: {text}");
    }
    assert_eq!(machine.state(), before);
    machine.assert_nothing_left();
}

#[test]
fn who_may_not_take_steering_off_ends_no_process() {
    let Some(machine) = Machine::new() else { return };
    let Some(()) = require("setpriv", program("setpriv").map(|_| ())) else { return };
    let up = machine.run(&["up", WAN, "--seconds", "0", "--rebalance"]);
    assert_eq!(code(&up), 0, "{}", said(&up));
    let pid = machine.status_of(WAN)["keeper"]["pid"].clone();
    // In a mount namespace of its own, as `ip netns exec` makes one, pins are those of process 1.
    let without = "-sys_ptrace";
    let starter = ["setpriv", "--bounding-set", without, "--inh-caps", without];
    let down = machine.run_by(&starter, &["down", WAN]);
    assert_eq!(code(&down), 3, "{}", said(&down));
    assert!(said(&down).contains("missing: CAP_SYS_PTRACE"), "{}", said(&down));
    let status = machine.status_of(WAN);
    assert_eq!(status["mode"], "native");
    assert_eq!((&status["keeper"]["pid"], &status["keeper"]["alive"]), (&pid, &true.into()), "{status:#}");
    assert_eq!(code(&machine.run(&["down", WAN])), 0);
    machine.assert_nothing_left();
}

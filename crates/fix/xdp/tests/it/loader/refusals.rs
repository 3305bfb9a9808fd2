//! What stands in the way: each a clear sentence, and nothing left behind.

use std::process::Command;

use rxlane_xdp::layout::Class;
use rxlane_xdp::{Attachment, Error, Interface, Mode, Plan, Program, attach};
use testkit::{program, require};

use crate::loader::child::{answer, arguments, deny, work};
use crate::loader::machine::{Machine, PEER, WAN, find, plan};

#[test]
fn a_program_of_another_tool_is_named() {
    let Some(machine) = Machine::new() else { return };
    // Any program that takes no map will do: iproute2 loads and attaches it.
    let Some(clang) = require("clang", program("clang")) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (source, object) = (folder.path().join("other.c"), folder.path().join("other.o"));
    let text = r#"__attribute__((section("xdp"))) int somebody_else(void *context) { return 2; }
        char terms[] __attribute__((section("license"), used)) = "MIT";"#;
    std::fs::write(&source, text).expect("written");
    let mut compiler = Command::new(clang);
    compiler.args(["-O2", "-g", "-target", "bpf", "-c"]).arg(&source).arg("-o").arg(&object);
    assert!(compiler.status().expect("started").success());
    let object = object.display().to_string();
    let set = ["link", "set", "dev", WAN, "xdpdrv", "obj", &object, "sec", "xdp"];
    machine.namespace.run("ip", &set).expect("attached");

    let error = machine.namespace.inside(|| attach(&plan(find(WAN)))).expect_err("busy");
    assert!(matches!(error, Error::Foreign { .. }) && !error.lacks(), "{error}");
    let said = error.to_string();
    for word in
        ["wan0 has an XDP program already", "`somebody_else`", "native", "`ip link set dev wan0 xdp off`"]
    {
        assert!(said.contains(word), "{said}");
    }
    let program = machine.namespace.inside(|| find(WAN).program()).expect("queried").expect("there");
    assert_eq!((program.mode, &program.attached_as), (Some(Mode::Native), &None));
    assert_eq!(program.attached_by, Some(rxlane_xdp::AttachedBy::Netlink));
    let off = |program: Program| {
        let command = program.off(WAN);
        let words: Vec<&str> = command.trim_matches('`').split(' ').skip(1).collect();
        machine.namespace.run("ip", &words).expect("off");
        let left = machine.namespace.inside(|| find(WAN).program()).expect("queried");
        assert_eq!(left, None, "{command}");
    };
    off(program);
    let set = ["link", "set", "dev", WAN, "xdpgeneric", "obj", &object, "sec", "xdp"];
    machine.namespace.run("ip", &set).expect("attached");
    let program = machine.namespace.inside(|| find(WAN).program()).expect("queried").expect("there");
    assert_eq!(program.mode, Some(Mode::Generic));
    off(program);
    machine.assert_clean(WAN);
}

#[test]
fn a_driver_without_native_xdp_differs_from_one_that_refuses() {
    let Some(machine) = Machine::new() else { return };
    let error = machine.namespace.inside(|| attach(&plan(find("lo")))).expect_err("no native XDP");
    let said = error.to_string();
    assert!(error.lacks(), "{said}");
    assert!(
        said.contains("the driver of lo has no native XDP, it says \"") && said.contains("`--mode generic`"),
        "{said}"
    );
    assert!(said.contains("native mode"), "the kernel's own words are missing: {said}");
    machine.assert_clean("lo");
    let generic = machine.namespace.inside(|| attach(&Plan { mode: Mode::Generic, ..plan(find("lo")) }));
    assert_eq!(
        machine.namespace.inside(|| generic.expect("attached").mode()).expect("queried"),
        Mode::Generic
    );
}

/// A veth takes no XDP program whose peer's frames would not fit into one buffer, unless it takes several: those for
/// older kernels do not. Here the limit is reached otherwise: veth wants as many receive queues as the peer transmits.
#[test]
fn a_drivers_refusal_is_quoted() {
    let Some(machine) = Machine::new() else { return };
    let add =
        "link add few0 numrxqueues 1 numtxqueues 1 type veth peer name many0 numrxqueues 8 numtxqueues 8";
    machine.namespace.run("ip", &add.split(' ').collect::<Vec<_>>()).expect("made");
    let error = machine.namespace.inside(|| attach(&plan(find("few0")))).expect_err("refused");
    let said = error.to_string();
    assert!(error.lacks(), "{said}");
    assert!(said.contains("few0 (veth) refuses the program in native mode, it says \""), "{said}");
    machine.assert_clean("few0");
}

#[test]
fn what_is_not_there_is_named() {
    let Some(machine) = Machine::new() else { return };
    let error = machine.namespace.inside(|| Interface::find("wan7")).expect_err("not there");
    assert!(matches!(error, Error::NoInterface { .. }), "{error}");
    assert!(error.to_string().contains("`wan7`"), "{error}");

    let error = machine.namespace.inside(|| {
        let mut plan = plan(find(WAN));
        plan.cpus.push((1023, 512));
        attach(&plan)
    });
    let error = error.expect_err("no such CPU");
    assert!(error.lacks() && error.to_string().starts_with("there is no CPU 1023: "), "{error}");

    let elsewhere = plan(machine.namespace.inside(|| find(WAN)));
    assert!(matches!(attach(&elsewhere), Err(Error::Plan(_))));
    let none = machine.namespace.inside(|| {
        let mut plan = plan(find(WAN));
        plan.settings.classes = 0;
        attach(&plan)
    });
    assert!(matches!(none, Err(Error::Plan(_))), "{none:?}");

    let removed = machine.namespace.inside(|| plan(find(WAN)));
    machine.namespace.run("ip", &["link", "del", PEER]).expect("removed");
    let error = machine.namespace.inside(|| attach(&removed)).expect_err("removed");
    assert!(matches!(error, Error::NoInterface { .. }), "{error}");
    assert_eq!(machine.folders(), Vec::<std::path::PathBuf>::new());
    assert_eq!(Class::ALL.len(), 5);
}

#[test]
fn a_mount_namespace_that_cannot_be_left_is_said() {
    let Some(machine) = Machine::new() else { return };
    let Some(setpriv) = require("setpriv", program("setpriv")) else { return };
    // What is left suffices for everything but the way to the pins.
    let mut command = machine.namespace.command(setpriv);
    command.args(["--bounding-set=-all,+bpf,+net_admin,+perfmon", "--inh-caps=-all"]).args(arguments());
    let said = answer(work(&mut command, "attach"));
    assert!(said.starts_with("lacks=true no BPF file system for pins: "), "{said}");
    assert!(said.contains("(missing: ") && said.contains("CAP_SYS_ADMIN, CAP_SYS_CHROOT)"), "{said}");
    machine.assert_clean(WAN);
}

/// `ip netns exec` gives a mount namespace of its own, with which pins would go; without CAP_SYS_PTRACE that of process 1
/// is not to be found.
#[test]
fn a_mount_namespace_that_cannot_be_found_is_said() {
    let Some(machine) = Machine::new() else { return };
    let Some(setpriv) = require("setpriv", program("setpriv")) else { return };
    let work_without_ptrace = |work_to_do: &str| {
        let mut command = machine.namespace.command(&setpriv);
        command.arg("--bounding-set=-sys_ptrace").args(arguments());
        answer(work(&mut command, work_to_do))
    };
    let assert_refused = |said: &str| {
        assert!(said.starts_with("lacks=true no BPF file system for pins: "), "{said}");
        assert!(
            said.contains("(missing: CAP_SYS_PTRACE)") && said.contains("give it CAP_SYS_PTRACE"),
            "{said}"
        );
    };
    assert_refused(&work_without_ptrace("attach"));
    machine.assert_clean(WAN);
    // What is attached is not taken for something that is not.
    let attachment = machine.attached();
    for work_to_do in ["open", "remove"] {
        assert_refused(&work_without_ptrace(work_to_do));
    }
    assert!(machine.open().is_some_and(|found| found.programs()[0].id == attachment.programs()[0].id));
}

/// Without CAP_SYS_PTRACE, too, it is to be seen whether pins last: in the mount namespace of process 1, and in a copy of
/// it, which has the same BPF file system.
#[test]
fn a_mount_namespace_with_the_lasting_file_system_needs_not_be_left() {
    let Some(machine) = Machine::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let Some(_other) = Machine::with_pins() else { return };
    let remove = || machine.namespace.inside(|| Attachment::remove(&find(WAN)));
    let network = format!("--net=/run/netns/{}", machine.namespace.name());
    for before in [&["env"][..], &["env", unshare.to_str().expect("UTF-8"), "--mount"]] {
        let mut command = Command::new(before[0]);
        command.args(&before[1..]).args(["nsenter", &network, "setpriv", "--bounding-set=-sys_ptrace"]);
        let said = answer(work(command.args(arguments()), "attach"));
        assert!(said.starts_with("ok /sys/fs/bpf/rxlane/steer/"), "{said}");
        assert!(machine.open().is_some(), "{before:?}");
        assert!(remove().expect("removed"));
    }
}

#[test]
fn a_read_only_bpf_file_system_is_said_to_be_one() {
    let Some(machine) = Machine::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let Some(_other) = Machine::with_pins() else { return };
    // Process 1 there is the shell, so that its mounts are those that last.
    let mut command = Command::new(unshare);
    command.args(["--mount", "--pid", "--fork", "--mount-proc", "sh", "-c"]);
    command.arg("mount -o remount,bind,ro /sys/fs/bpf && ip netns exec \"$0\" \"$@\"; exit $?");
    let said = answer(work(command.arg(machine.namespace.name()).args(arguments()), "attach"));
    assert!(said.starts_with("lacks=true no BPF file system for pins: "), "{said}");
    assert!(said.contains("read-only") && said.contains("remount,rw"), "{said}");
    machine.assert_clean(WAN);
}

#[test]
fn root_of_a_user_namespace_learns_that_it_is_none_here() {
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let arguments = arguments();
    let mut command = Command::new(unshare);
    command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
    command.arg("ip link add wan0 type veth peer name peer0 && exec \"$@\"").arg("sh").args(arguments);
    let probed = Command::new("unshare").args(["--user", "--map-root-user", "--net", "true"]).status();
    let probed = match probed {
        Ok(status) if status.success() => Ok(()),
        other => Err(testkit::Missing(format!("no user namespace can be made here ({other:?})"))),
    };
    let Some(()) = require("userns", probed) else { return };
    let said = answer(work(&mut command, "attach"));
    assert!(said.starts_with("lacks=true no permission to make BPF maps"), "{said}");
    assert!(said.contains("user namespace"), "{said}");
}

/// Attaches in a process to which the kernel refuses some commands of bpf(2).
fn denied(machine: &Machine, commands: &str, number: i32) -> String {
    let arguments = arguments();
    let mut command = machine.namespace.command(&arguments[0]);
    command.args(&arguments[1..]);
    answer(deny(work(&mut command, "attach"), commands, number))
}

/// Whatever the kernel refuses, at whatever step: nothing is left behind. Where bpf(2) is refused as if by the driver (EINVAL)
/// and netlink is not, the program does not stay attached by netlink.
#[test]
fn nothing_is_left_whichever_step_is_refused() {
    let Some(machine) = Machine::new() else { return };
    let not_permitted = ["the kernel does not let this process ", "a seccomp filter"];
    let refused = ["wan0 (veth) refuses the program in native mode", "is too long for XDP (it is 1500)"];
    let cases = [
        ("0", libc::EPERM, not_permitted, "make BPF maps although"),
        ("5", libc::EPERM, not_permitted, "load BPF programs although"),
        ("6", libc::EPERM, not_permitted, "pinning failed) although"),
        ("7", libc::EPERM, not_permitted, "open the pin /sys/fs/bpf/rxlane/steer/"),
        ("15", libc::EPERM, not_permitted, "make BPF maps although"),
        ("28", libc::EPERM, not_permitted, "attach to wan0 although"),
        ("28", libc::EINVAL, refused, "LRO"),
        ("all", libc::ENOSYS, ["this kernel has no bpf(2)", ""], "it takes CONFIG_BPF_SYSCALL"),
    ];
    for (command, number, [start, way_out], doing) in cases {
        let said = denied(&machine, command, number);
        assert!(said.starts_with(&format!("lacks=true {start}")), "bpf({command}): {said}");
        assert!(said.contains(doing) && said.contains(way_out), "bpf({command}): {said}");
        machine.assert_clean(WAN);
    }
}

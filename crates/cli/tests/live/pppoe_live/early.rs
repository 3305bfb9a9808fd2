//! What can never work is refused before anything is requested of anybody; what arrives too early ends in order.

use super::line::{GATEWAY, Line, WAN};
use crate::machine::until_enough;
use crate::run::{BINARY, Ended};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, Permissions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Output};
use testkit::netns::Namespace;
use testkit::{program, require, wait_until};

pub fn fifo(line: &Line, name: &str) -> String {
    mkfifoat(CWD, line.path(name), Mode::RUSR | Mode::WUSR).expect("a FIFO");
    line.text(name)
}

/// A file of another user.
fn theirs(line: &Line) -> String {
    let path = line.write("theirs", "alice * wonderland\n");
    std::os::unix::fs::chown(&path, Some(12345), None).expect("an owner");
    line.text("theirs")
}

#[test]
fn a_client_that_cannot_have_what_it_wants_asks_nobody() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    line.write("plain", "no program\n");
    let (long, plain, fifo) = ("s".repeat(2000), line.text("plain"), fifo(&line, "fifo"));
    // Attack: what another user can change decides what root does.
    let (theirs, writable) = (theirs(&line), line.write("writable", "#!/bin/sh\n"));
    fs::set_permissions(&writable, Permissions::from_mode(0o722)).expect("a mode");
    let writable = writable.display().to_string();
    for (more, expected, reason) in [
        (&["--ifname", "lo"][..], 1, "there is an interface lo already"),
        (
            &["--service", &long],
            2,
            "--service: the name of the service has 2000 bytes, and a PADI has room for 1454",
        ),
        (&["--up-script", "/none"], 2, "/none cannot be run: No such file"),
        (&["--down-script", &plain], 2, "plain cannot be run: Permission denied"),
        (&["--up-script", &plain, "--daemon"], 2, "plain cannot be run: Permission denied"),
        (&["--config", &fifo], 2, "it is a FIFO: expected a regular file"),
        (&["--config", "/dev/zero"], 2, "it is a device: expected a regular file"),
        (&["--up-script", &theirs], 2, "user 12345 owns "),
        (&["--down-script", &writable, "--dry-run"], 2, "(mode 0722)"),
        (&["--config", &theirs], 2, "user 12345 owns "),
        (&["--log", &theirs, "--daemon"], 2, "below /etc\n"),
    ] {
        line.start_to_connect("alice", more).ended().ends(expected).says(reason);
    }
    line.near(&["connect", WAN, "--user", "alice", "--password-file", &fifo])
        .ends(2)
        .says("cannot read the password in");
    line.near(&["discover", WAN, "--service", &long]).ends(2);
    let counters = &line.concentrator()["counters"];
    assert_eq!((&counters["offers"], &counters["confirmed"]), (&0.into(), &0.into()), "{counters:#}");
}

#[test]
fn a_concentrator_that_could_serve_nobody_does_not_begin() {
    let Some(line) = Line::new() else { return };
    for (more, reason) in [
        (&["--local", "127.0.0.1"][..], "127.0.0.1 cannot be the own address (--local)"),
        (&["--local", "224.0.0.1"], "224.0.0.1 cannot be the own address (--local)"),
        (&["--local", "0.0.0.0"], "0.0.0.0 cannot be the own address (--local)"),
        (&["--local", "255.255.255.255"], "255.255.255.255 cannot be the own address (--local)"),
        (&["--dns", "127.0.0.53"], "127.0.0.53 cannot be a name server of subscribers (--dns)"),
        (&["--pool", "10.64.0.2-240.0.0.1"], "has addresses of 127.0.0.0/8 (loopback)"),
        (&["--prefix", "::/0"], "the network ::/0 has addresses of ::/8"),
        (&["--prefix", "fe80::/48"], "link-local"),
        (&["--prefix", "ff00::/8"], "multicast"),
        (&["--name", ""], "--name: the name is empty"),
        (&["--name", "\u{1b}[31mred"], "--name: \"\\u{1b}[31mred\" has control characters"),
        (&["--service", "a\nb"], "--service: \"a\\u{a}b\" has control characters"),
        (&["--sessions-per-mac", "0"], "invalid value '0' for '--sessions-per-mac"),
        (&["--sessions-per-user", "0"], "invalid value '0' for '--sessions-per-user"),
        (&["--accounting", "/none", "--interim", "0"], "invalid value '0' for '--interim"),
        (&["--ipv6", "false", "--prefix", "2001:db8:100::/48"], "contradict each other"),
    ] {
        line.serve_in_vain(more).is(&more, 2, reason).omits("\u{1b}");
    }
    let table = |key: &str| format!("[[subscriber]]\nuser = 'alice'\npassword = 'wonderland'\n{key}\n");
    for (text, reason) in [
        (
            table("address = '10.64.0.1'"),
            "line 4 (user \"alice\", [[subscriber]] in line 1): 10.64.0.1 is the concentrator's own",
        ),
        (table("routes = ['0.0.0.0/0']"), "0.0.0.0/0 is a default route"),
        (table("routes = ['::/0']"), "::/0 is a default route"),
        (table("prefix = 'fe80::/64'"), "link-local"),
        ("alice * wonderland 10.64.0.1\n".to_owned(), "line 1: 10.64.0.1 is the concentrator's own"),
        ("[[subscriber]]\nuser alice\n".to_owned(), "line 2: this is no TOML: "),
    ] {
        line.write("secrets", &text);
        line.serve_in_vain(&[]).ends(2).says(reason).omits("wonderland");
    }
    let (fifo, theirs) = (fifo(&line, "fifo"), theirs(&line));
    for (secrets, reason) in [
        (&*fifo, "it is a FIFO"),
        ("/dev/zero", "it is a device"),
        ("/", "it is a folder"),
        (&theirs, "user 12345 owns"),
    ] {
        line.far(&["serve", WAN, "--local", GATEWAY, "--secrets", secrets]).ends(2).says(reason);
    }
    line.write("secrets", "alice * wonderland\n");
    let regular = "expected a regular file";
    for (accounts, reason) in [(&*fifo, regular), ("/dev/full", regular), ("/", regular), (&theirs, "12345")]
    {
        let refused = line.serve_in_vain(&["--accounting", accounts]);
        refused.is(&accounts, 2, "cannot write accounts to").says(reason);
    }
    for dry_run in [&["--dry-run"][..], &[]] {
        let more = [&["--accounting", "/none/accounts"], dry_run].concat();
        line.serve_in_vain(&more).is(&dry_run, 2, "there is no folder /none: `mkdir -p /none` makes it");
    }
    line.far(&["serve", WAN, "--local", GATEWAY]).ends(2).says("`--anybody` takes everybody");
    assert!(line.far.run("ip", &["link", "show", "pppoe0"]).is_err());
}

/// Attack: names that any user can take in the network namespace keep nobody from serving.
#[test]
fn nobody_without_privilege_keeps_a_concentrator_from_beginning() {
    let Some(line) = Line::new() else { return };
    let taken = line.far.inside(|| {
        let name =
            |index: u32| SocketAddr::from_abstract_name(format!("rxlane-serve-{index}")).expect("a name");
        (1..=20).map(|index| UnixDatagram::bind_addr(&name(index)).expect("free")).collect::<Vec<_>>()
    });
    let serving = line.serve(&[]);
    drop(taken);
    serving.interrupted().ends(0);
    assert_eq!(fs::read_dir(line.path("state")).expect("a folder").count(), 0);
}

#[test]
fn the_own_address_in_a_pool_is_given_to_nobody() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&["--pool", "10.64.0.1-10.64.0.2"]);
    serving
        .hear("note: 10.64.0.1 of the pool 10.64.0.1-10.64.0.2 is the own address, and given to nobody", 1);
    let _alice = line.connect("alice", &[]);
    assert_eq!(line.status("ppp0")["local"], "10.64.0.2");
    line.connect_in_vain("bob", &["--ifname", "ppp1"]).says("all addresses are in use");
}

#[test]
fn a_client_that_is_disconnected_before_it_is_open_says_so() {
    let Some(line) = Line::new() else { return };
    // Nobody answers.
    for more in [&["--daemon"][..], &[]] {
        let client = line.start_to_connect("alice", more);
        let what = std::fmt::from_fn(|f| write!(f, "it looks for a concentrator:\n{}", client.said()));
        wait_until(what, || line.status_if_any("ppp0").is_some());
        line.near(&["disconnect", "ppp0"]).ends(0);
        let said = client.ended().ends(0).text();
        let last = "ppp0 is over: its end was requested before a session was open.\n";
        // Who started it in the background and reads no terminal gets the result alone.
        let first =
            if more.is_empty() { "looking for a concentrator on wan0 (47 s at most) …\n" } else { "" };
        assert_eq!(said, format!("{first}{last}"));
    }
}

#[test]
fn in_the_background_the_first_try_is_reported_and_others_follow() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    line.write("alice", "wrong\n");
    let log = line.text("log");
    line.connect_command("alice", &["--daemon", "--log", &log])
        .output()
        .expect("it runs")
        .ends(1)
        .says("closed: authentication failed")
        .says("tried again in the background: `rxlane pppoe status ppp0`");
    let status = line.status("ppp0");
    let error = status["last_error"].as_str().expect("an error");
    assert!(error.contains("authentication failed") && status["next_try"].as_f64() > Some(1.0), "{status:#}");
    line.near(&["disconnect", "ppp0"]).ends(0);
    assert!(fs::read_to_string(&log).expect("a log").contains("before a session was open"));
}

#[test]
fn a_message_says_who_has_to_be_named_to_be_disconnected() {
    let Some(line) = Line::new() else { return };
    line.far(&["disconnect", "--all"]).ends(1).says("no interface is served");
    let _serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    line.far(&["disconnect"]).ends(2).says("what is to end?");
    let both = line.far(&["disconnect", "ppp0", "--all"]);
    let usage = "rxlane pppoe disconnect [--concentrator IFACE] --id ID|--user NAME|--address ADDRESS|--mac MAC|--vlan VLANS|--line ID|--all";
    both.ends(2).says(usage);
    for name in ["pppoe0", WAN] {
        let output = line.far(&["disconnect", name]);
        let hint = "`rxlane pppoe disconnect --concentrator wan0` ends that";
        output.ends(1).says(hint);
    }
    assert!(!client.said().contains("closed"), "{}", client.said());
    // The only one needs no name.
    line.far(&["disconnect", "--user", "alice"]).ends(0).says("1 session: end requested");
    client.hear("disconnected by the operator", 1);
}

/// The state folder takes no changes, and has the socket of a killed process.
#[test]
fn a_read_only_state_folder_is_reported() {
    let Some(line) = Line::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let serving = line.serve(&[]);
    line.connect("alice", &[]).killed();
    const READ_ONLY: &str =
        "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" \"$0\" && exec \"$@\"";
    let run = |arguments: &[&str]| -> Output {
        let mut command = line.near.command(&unshare);
        command.args(["--mount", "sh", "-c", READ_ONLY, &line.text("state"), BINARY, "pppoe"]);
        command.args(arguments).args(["--state", &line.text("state")]).output().expect("it runs")
    };
    for (arguments, expected) in
        [(&["status", "ppp0"][..], 1), (&["status"], 1), (&["disconnect", "ppp0"], 1)]
    {
        let output = run(arguments);
        let text = output.text();
        assert!(output.code() == expected && text.contains("was killed"), "{arguments:?}: {text}");
        assert!(text.contains("Read-only file system") && text.contains("has to be writable"), "{text}");
    }
    let alice = line.text("alice");
    run(&["connect", WAN, "--user", "alice", "--password-file", &alice])
        .ends(3)
        .says("the folder has to be writable");
    serving.interrupted().ends(0);
}

/// In every little memory in which the program can be started at all, up to as much as it takes.
#[test]
fn too_little_memory_is_reported_before_any_request() {
    let Some(line) = Line::new() else { return };
    let Some(prlimit) = require("prlimit", program("prlimit")) else { return };
    let limited = |namespace: &Namespace, megabytes: u32, command: Option<&Command>| {
        let mut limited = namespace.command(&prlimit);
        limited.arg(format!("--as={megabytes}000000")).arg(BINARY);
        let is_program = |argument: &&std::ffi::OsStr| *argument != BINARY;
        match command {
            Some(command) => limited.args(command.get_args().skip_while(is_program).skip(1)),
            None => limited.arg("--version"),
        };
        limited.output().expect("it runs")
    };
    // Less has no room for the program and its libraries: the loader ends it.
    let least = (10..500).step_by(2).find(|&megabytes| limited(&line.far, megabytes, None).code() == 0);
    let least = least.expect("enough") + 2;
    let serve = line.serve_command(&["--workers", "2", "--daemon"]);
    let connect = line.connect_command("alice", &["--daemon"]);
    let takeover = line.serve_command(&["--workers", "2", "--daemon", "--takeover"]);
    let until_it_runs = |namespace, command| {
        let mut short = false;
        let run = |megabytes| limited(namespace, megabytes, Some(command));
        until_enough((least..1000).step_by(2), run, |megabytes, output| {
            let text = output.text();
            assert!(output.code() == 3 && text.starts_with("rxlane: "), "{megabytes}: {text}");
            short |= text.contains("there is too little memory: ");
        });
        assert!(short);
    };
    until_it_runs(&line.far, &serve);
    until_it_runs(&line.near, &connect);
    let counters = &line.concentrator()["counters"];
    assert_eq!((&counters["requests"], &counters["opened"]), (&1.into(), &1.into()), "{counters:#}");
    until_it_runs(&line.far, &takeover);
    line.ping(&line.near, GATEWAY, 1492);
    line.near(&["disconnect", "ppp0"]).ends(0);
    line.far(&["disconnect", "--concentrator", WAN]).ends(0);
}

//! What can never work is refused before anybody is asked for anything; what arrives too early ends in order.

use super::line::{GATEWAY, Line, WAN, code, said};
use super::process::{Process, wait};
use rustix::fs::{CWD, Mode, mkfifoat};
use std::fs::{self, Permissions};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::process::{Command, Output};
use testkit::netns::Namespace;
use testkit::{program, require};

fn fifo(line: &Line, name: &str) -> String {
    mkfifoat(CWD, line.path(name), Mode::RUSR | Mode::WUSR).expect("a FIFO");
    line.text(name)
}

#[test]
fn a_client_that_cannot_have_what_it_wants_asks_nobody() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    line.write("plain", "no program\n");
    let (long, plain, fifo) = ("s".repeat(2000), line.text("plain"), fifo(&line, "fifo"));
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
    ] {
        let (code, said) = line.start_to_connect("alice", more).ended();
        assert!(code == expected && said.contains(reason), "{more:?}: {code} {said}");
    }
    let fifo = line.near(&["connect", WAN, "--user", "alice", "--password-file", &fifo]);
    assert!(code(&fifo) == 2 && said(&fifo).contains("cannot read the password in"), "{}", said(&fifo));
    let discover = line.near(&["discover", WAN, "--service", &long]);
    assert!(code(&discover) == 2, "{}", said(&discover));
    let counters = &line.concentrator()["counters"];
    assert_eq!((&counters["offers"], &counters["confirmed"]), (&0.into(), &0.into()), "{counters:#}");
}

/// `serve` that is to end at once, with what it says.
fn refused(line: &Line, more: &[&str]) -> (i32, String) {
    Process::start(&mut line.serve_command(more)).ended()
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
        let (code, said) = refused(&line, more);
        assert!(code == 2 && said.contains(reason) && !said.contains('\u{1b}'), "{more:?}: {code} {said}");
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
        let (code, said) = refused(&line, &[]);
        assert!(code == 2 && said.contains(reason) && !said.contains("wonderland"), "{code} {said}");
    }
    let fifo = fifo(&line, "fifo");
    for (secrets, reason) in
        [(&*fifo, "it is a FIFO"), ("/dev/zero", "it is a device"), ("/", "it is a folder")]
    {
        let output = line.far(&["serve", WAN, "--local", GATEWAY, "--secrets", secrets]);
        assert!(code(&output) == 2 && said(&output).contains(reason), "{}", said(&output));
    }
    line.write("secrets", "alice * wonderland\n");
    for accounts in [&*fifo, "/dev/full", "/"] {
        let (code, said) = refused(&line, &["--accounting", accounts]);
        let is_told = said.contains("cannot write accounts to") && said.contains("expected a regular file");
        assert!(code == 2 && is_told, "{code} {said}");
    }
    let nobody = line.far(&["serve", WAN, "--local", GATEWAY]);
    assert!(code(&nobody) == 2 && said(&nobody).contains("`--anybody` takes everybody"), "{}", said(&nobody));
    assert!(line.far.run("ip", &["link", "show", "pppoe0"]).is_err());
}

#[test]
fn secrets_of_nobody_are_told() {
    let Some(line) = Line::new() else { return };
    line.write("secrets", "# nobody yet\n");
    line.serve(&[]).hear("there is no subscriber in", 1);
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
    assert_eq!(serving.interrupted().0, 0);
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
    let said = line.connect_in_vain("bob", &["--ifname", "ppp1"]);
    assert!(said.contains("all addresses are in use"), "{said}");
}

/// Attack: what takes the place of the secrets stops no concentrator.
#[test]
fn secrets_that_never_end_are_not_read_again() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    fs::remove_file(line.path("secrets")).expect("removed");
    fifo(&line, "secrets");
    serving.signal("USR1");
    serving.hear(
        "it is a FIFO: expected a regular file, or a symbolic link to one; the secrets stay as they were",
        1,
    );
    line.ping(&line.near, GATEWAY, 1492);
    fs::remove_file(line.path("secrets")).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", line.path("secrets")).expect("a link");
    serving.signal("USR1");
    serving.hear("it is a device", 1);
    assert_eq!(line.sessions().len(), 1);
    assert!(!client.said().contains("closed"), "{}", client.said());
}

#[test]
fn secrets_that_others_may_read_and_new_ones_are_told() {
    let Some(line) = Line::new() else { return };
    let secrets = line.path("secrets");
    fs::set_permissions(&secrets, Permissions::from_mode(0o644)).expect("a mode");
    let serving = line.serve(&[]);
    serving.hear("rxlane: others may read the passwords in", 1);
    let _alice = line.connect("alice", &[]);
    serving.hear(" untagged session ", 1);
    serving.hear(" alice: open, 10.64.0.2", 1);
    serving.signal("USR1");
    serving.hear("the secrets were read again: 2 subscribers, nothing changed", 1);
    line.write(
        "secrets",
        "[[subscriber]]\nuser = 'bob'\npassword = 'x'\n[[subscriber]]\nuser = 'carol'\npassword = 'y'\n",
    );
    serving.signal("USR1");
    serving.hear("the secrets were read again: 2 subscribers (1 new, 1 changed, 1 gone)", 1);
    assert_eq!(serving.interrupted().0, 0);
}

#[test]
fn a_client_that_is_disconnected_before_it_is_open_says_so() {
    let Some(line) = Line::new() else { return };
    // Nobody answers.
    for more in [&["--daemon"][..], &[]] {
        let client = line.start_to_connect("alice", more);
        wait("it looks for a concentrator", || line.status_if_any("ppp0").is_some());
        let done = line.near(&["disconnect", "ppp0"]);
        assert_eq!(code(&done), 0, "{}", said(&done));
        let (code, said) = client.ended();
        assert!(code == 0, "{said}");
        let last = "ppp0 is over: somebody asked for the end before a session was open.\n";
        // Who started it in the background and reads no terminal is told what came of it alone.
        let first =
            if more.is_empty() { "looking for a concentrator on wan0 (47 s at most) …\n" } else { "" };
        assert_eq!(said, format!("{first}{last}"));
    }
}

#[test]
fn in_the_background_the_first_try_is_told_and_others_follow() {
    let Some(line) = Line::new() else { return };
    let _serving = line.serve(&[]);
    line.write("alice", "wrong\n");
    let log = line.text("log");
    let output = line.connect_command("alice", &["--daemon", "--log", &log]).output().expect("it runs");
    assert_eq!(code(&output), 1, "{}", said(&output));
    let text = said(&output);
    assert!(text.contains("closed: authentication failed"), "{text}");
    assert!(text.contains("tried again in the background: `rxlane pppoe status ppp0`"), "{text}");
    let status = line.status("ppp0");
    let error = status["last_error"].as_str().expect("an error");
    assert!(error.contains("authentication failed") && status["next_try"].as_f64() > Some(1.0), "{status:#}");
    assert_eq!(code(&line.near(&["disconnect", "ppp0"])), 0);
    assert!(fs::read_to_string(&log).expect("a log").contains("before a session was open"));
}

#[test]
fn who_is_to_be_disconnected_is_asked_for_in_words() {
    let Some(line) = Line::new() else { return };
    let none = line.far(&["disconnect", "--all"]);
    assert!(code(&none) == 1 && said(&none).contains("no interface is served"), "{}", said(&none));
    let _serving = line.serve(&[]);
    let client = line.connect("alice", &[]);
    let nobody = line.far(&["disconnect"]);
    assert!(code(&nobody) == 2 && said(&nobody).contains("what is to end?"), "{}", said(&nobody));
    let both = line.far(&["disconnect", "ppp0", "--all"]);
    let usage = "rxlane pppoe disconnect [--concentrator IFACE] --id ID|--user NAME|--address ADDRESS|--mac MAC|--all";
    assert!(code(&both) == 2 && said(&both).contains(usage), "{}", said(&both));
    for name in ["pppoe0", WAN] {
        let output = line.far(&["disconnect", name]);
        let hint = "`rxlane pppoe disconnect --concentrator wan0` ends that";
        assert!(code(&output) == 1 && said(&output).contains(hint), "{}", said(&output));
    }
    assert!(!client.said().contains("closed"), "{}", client.said());
    // The only one needs no name.
    let output = line.far(&["disconnect", "--user", "alice"]);
    assert!(code(&output) == 0 && said(&output).contains("1 session: end requested"), "{}", said(&output));
    client.hear("disconnected by the operator", 1);
}

/// The state folder takes no changes, and has the socket of a killed process.
#[test]
fn a_read_only_state_folder_is_told() {
    let Some(line) = Line::new() else { return };
    let Some(unshare) = require("unshare", program("unshare")) else { return };
    let serving = line.serve(&[]);
    line.connect("alice", &[]).killed();
    const READ_ONLY: &str =
        "mount --bind \"$0\" \"$0\" && mount -o remount,ro,bind \"$0\" \"$0\" && exec \"$@\"";
    let run = |arguments: &[&str]| -> Output {
        let mut command = line.near.command(&unshare);
        command.args([
            "--mount",
            "sh",
            "-c",
            READ_ONLY,
            &line.text("state"),
            env!("CARGO_BIN_EXE_rxlane"),
            "pppoe",
        ]);
        command.args(arguments).args(["--state", &line.text("state")]).output().expect("it runs")
    };
    for (arguments, expected) in
        [(&["status", "ppp0"][..], 1), (&["status"], 1), (&["disconnect", "ppp0"], 1)]
    {
        let output = run(arguments);
        let text = said(&output);
        assert!(code(&output) == expected && text.contains("was killed"), "{arguments:?}: {text}");
        assert!(text.contains("Read-only file system") && text.contains("has to be writable"), "{text}");
    }
    let alice = line.text("alice");
    let output = run(&["connect", WAN, "--user", "alice", "--password-file", &alice]);
    let text = said(&output);
    assert!(code(&output) == 3 && text.contains("the folder has to be writable"), "{text}");
    assert_eq!(serving.interrupted().0, 0);
}

/// In every little memory in which the program can be started at all, up to as much as it takes.
#[test]
fn too_little_memory_is_told_before_anybody_is_asked() {
    let Some(line) = Line::new() else { return };
    let Some(prlimit) = require("prlimit", program("prlimit")) else { return };
    let limited = |namespace: &Namespace, megabytes: u32, command: Option<&Command>| {
        let mut limited = namespace.command(&prlimit);
        limited.arg(format!("--as={megabytes}000000")).arg(env!("CARGO_BIN_EXE_rxlane"));
        let is_program = |argument: &&std::ffi::OsStr| *argument != env!("CARGO_BIN_EXE_rxlane");
        match command {
            Some(command) => limited.args(command.get_args().skip_while(is_program).skip(1)),
            None => limited.arg("--version"),
        };
        limited.output().expect("it runs")
    };
    // Less has no room for the program and its libraries: the loader ends it.
    let least = (10..500).step_by(2).find(|&megabytes| code(&limited(&line.far, megabytes, None)) == 0);
    let least = least.expect("enough") + 2;
    let serve = line.serve_command(&["--workers", "2", "--daemon"]);
    let connect = line.connect_command("alice", &["--daemon"]);
    let takeover = line.serve_command(&["--workers", "2", "--daemon", "--takeover"]);
    let until_it_runs = |namespace, command| {
        let mut refused = 0;
        let success = (least..1000).step_by(2).find(|&megabytes| {
            let output = limited(namespace, megabytes, Some(command));
            let text = said(&output);
            if code(&output) == 0 {
                return true;
            }
            assert!(code(&output) == 3 && text.starts_with("rxlane: "), "{megabytes}: {text}");
            refused += u32::from(text.contains("there is too little memory: "));
            false
        });
        assert!(success.is_some() && refused > 0, "{success:?} {refused}");
    };
    until_it_runs(&line.far, &serve);
    until_it_runs(&line.near, &connect);
    let counters = &line.concentrator()["counters"];
    assert_eq!((&counters["requests"], &counters["opened"]), (&1.into(), &1.into()), "{counters:#}");
    until_it_runs(&line.far, &takeover);
    line.ping(&line.near, GATEWAY, 1492);
    assert_eq!(code(&line.near(&["disconnect", "ppp0"])), 0);
    assert_eq!(code(&line.far(&["disconnect", "--concentrator", WAN])), 0);
}

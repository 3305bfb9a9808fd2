//! The secrets of a concentrator: what is said of them, and how they are read again.

use super::early::fifo;
use super::line::{GATEWAY, Line};
use crate::process::Process;
use crate::run::{BINARY, Ended};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use testkit::{program, require};

#[test]
fn secrets_of_pppds_form_are_read() {
    let Some(line) = Line::new() else { return };
    let text = "# client server secret addresses\n\"alice\" * \"wonderland\" 10.99.0.7\nbob other * *\n";
    line.write("secrets", text);
    let serving = line.serve(&["--auth", "ms-chap-v2,chap"]);
    let _client = line.connect("alice", &[]);
    assert_eq!(line.status("ppp0")["local"], "10.99.0.7");
    // An address of no pool is routed, too.
    line.ping(&line.near, GATEWAY, 1492);
    line.connect_in_vain("bob", &["--ifname", "ppp1"]).says("authentication failed");
    serving.hear("the secrets have no such user", 1);
}

#[test]
fn secrets_that_give_nothing_or_to_everybody_are_reported() {
    let Some(line) = Line::new() else { return };
    for (text, mode, message) in [
        ("# nobody yet\n", 0o600, "there is no subscriber in"),
        (
            "alice other wonderland *\nbob * 'the builder' *\n",
            0o600,
            "1 line is for another server than rxlane (--name)",
        ),
        ("alice * wonderland *\n", 0o644, "rxlane: others may read the passwords in"),
    ] {
        let secrets = line.write("secrets", text);
        fs::set_permissions(&secrets, Permissions::from_mode(mode)).expect("a mode");
        let serving = line.serve(&[]);
        serving.hear(message, 1);
        serving.interrupted().ends(0);
    }
}

/// A file whose subscribers take more memory than there may be, which the allocator would end the process for.
#[test]
fn secrets_without_room_stay_as_they_were() {
    let Some(line) = Line::new() else { return };
    let Some(prlimit) = require("prlimit", program("prlimit")) else { return };
    let serve = line.serve_command(&["--workers", "1"]);
    let mut limited = line.far.command(&prlimit);
    limited.arg("--as=200000000").arg(BINARY);
    limited.args(serve.get_args().skip_while(|argument| *argument != BINARY).skip(1));
    let serving = Process::start(&mut limited);
    serving.hear("disconnect --concentrator", 1);
    let _client = line.connect("alice", &[]);
    for text in [
        "alice * wonderland *\n".repeat(400_000),
        "[[subscriber]]\nuser = 'x'\npassword = 'y'\n".repeat(100_000),
    ] {
        line.write("secrets", &text);
        serving.signal("USR1");
    }
    serving.hear("there is too little memory", 1);
    line.ping(&line.near, GATEWAY, 1492);
    serving.interrupted().ends(0);
    limited.output().expect("it runs").ends(3).says("there is too little memory").says(&line.text("secrets"));
}

#[test]
fn a_signal_has_the_secrets_read_again() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let again = |message: &str| {
        serving.signal("USR1");
        serving.hear(message, 1);
    };
    let client = line.connect("alice", &[]);
    serving.hear(" untagged session ", 1);
    serving.hear(" alice: open, 10.64.0.2", 1);
    again("the secrets were read again: 2 subscribers, nothing changed");
    let subscriber =
        |user: &str, password| format!("[[subscriber]]\nuser = '{user}'\npassword = '{password}'\n");
    line.write("secrets", &(subscriber("bob", "x") + &subscriber("carol", "christmas")));
    line.write("carol", "christmas\n");
    line.connect_in_vain("carol", &["--ifname", "ppp1"]);
    again("the secrets were read again: 2 subscribers (1 new, 1 changed, 1 removed)");
    // Sessions that exist stay, and the operator sees a note.
    serving.hear("of alice goes on, but", 1);
    let _carol = line.connect("carol", &["--ifname", "ppp1"]);
    line.connect_in_vain("bob", &["--ifname", "ppp2"]);
    line.write("secrets", "[[subscriber]]\nuser = \n");
    again("the secrets stay as they were");
    line.write("secrets", "");
    again("the file of the secrets is empty; the secrets stay as they were");
    // Attack: what takes the place of the secrets stops no concentrator.
    fs::remove_file(line.path("secrets")).expect("removed");
    fifo(&line, "secrets");
    again("it is a FIFO: expected a regular file, or a symbolic link to one; the secrets stay as they were");
    line.ping(&line.near, GATEWAY, 1492);
    fs::remove_file(line.path("secrets")).expect("removed");
    std::os::unix::fs::symlink("/dev/zero", line.path("secrets")).expect("a link");
    again("it is a device");
    assert_eq!(line.sessions().len(), 2);
    assert!(!client.said().contains("closed"), "{}", client.said());
    // Subscribers get its end.
    let said = serving.interrupted().ends(0).text();
    assert!(said.ends_with("rxlane serves no more.\n"), "{said}");
    client.hear("PADT", 1);
    client.hear("is being shut down", 1);
    assert!(line.far.run("ip", &["link", "show", "pppoe0"]).is_err());
}

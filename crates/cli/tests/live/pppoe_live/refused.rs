//! Who gets no session, and the reason that they get.

use super::line::{GATEWAY, Line, WAN};
use crate::process::Process;
use crate::run::{BINARY, Ended};

#[test]
fn a_wrong_password_and_an_unknown_user_are_reported() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    line.write("mallory", "guess\n");
    for method in ["chap", "pap", "ms-chap-v2"] {
        line.write("alice", "wrong\n");
        let said = line.connect_in_vain("alice", &["--auth", method]).text();
        assert!(said.contains("authentication failed"), "{said}");
        assert!(said.contains("check user name and password"), "{said}");
        // Whether there is such a user is nobody's business at this end.
        assert_eq!(reason(&line.connect_in_vain("mallory", &["--auth", method]).text()), reason(&said));
        assert!(!line.has("ppp0"));
    }
    serving.hear("\"alice\" was refused", 3);
    serving.hear("the password is wrong", 3);
    serving.hear("the secrets have no such user", 3);
    assert!(!serving.said().contains("wonderland"));
    // Once each.
    assert!(!serving.said().contains("the subscriber was refused"), "{}", serving.said());
    // The sixth of this host begins to cost something.
    serving.hear("Too many wrong passwords: for 2 s no password of ", 1);
    let text = serving.said();
    assert!(text.contains(" untagged is checked.") && !text.contains("port 0"), "{text}");
    line.write("alice", "wonderland\n");
    line.connect("alice", &[]);
}

/// The last word on standard error, which may come before what standard output says.
fn reason(said: &str) -> &str {
    said.lines().find(|line| line.starts_with("rxlane: ")).expect("a reason")
}

#[test]
fn discovery_is_answered_at_the_rates_that_are_set() {
    let Some(line) = Line::new() else { return };
    for (rate, is_exceeded) in [("1:1", true), ("10:100", false)] {
        let serving = line.serve(&["--host-rate", rate]);
        // Six PADI of one host.
        let clients: Vec<Process> = (0..6)
            .map(|_| {
                let mut command = line.near.command(BINARY);
                Process::start(command.args(["pppoe", "discover", WAN, "--seconds", "1"]))
            })
            .collect();
        clients.into_iter().for_each(|client| drop(client.ended()));
        let counters = &line.concentrator()["counters"];
        let count = |name: &str| counters[name].as_u64().unwrap_or_default();
        assert_eq!(count("ignored_host_rate") > 0, is_exceeded, "{counters:#}");
        assert_eq!(count("offers") + count("ignored_host_rate"), 6, "{counters:#}");
        serving.interrupted().ends(0);
    }
    line.serve_in_vain(&["--line-rate", "0"]).ends(2).says("`0` is no rate");
}

#[test]
fn who_gives_no_name_or_allows_no_method_gets_advice() {
    let Some(line) = Line::new() else { return };
    for method in ["chap", "pap"] {
        let serving = line.serve(&["--auth", method]);
        let command = &mut line.command(&line.near, &["connect", WAN, "--reconnect", "false"]);
        Process::start(command)
            .ended()
            .ends(1)
            .says("no name to give")
            .says("`--user` and `--password-file`")
            .omits("does not allow");
        let other = if method == "pap" {
            ["chap", "demands PAP", "allowed: CHAP-MD5"]
        } else {
            ["pap", "", "allowed: PAP"]
        };
        let refused = line.connect_in_vain("alice", &["--auth", other[0]]);
        refused.says(other[1]).says(other[2]).says("`--auth` allows it");
        serving.interrupted().ends(0);
    }
}

#[test]
fn a_full_pool_refuses_until_somebody_leaves() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&["--pool", "10.64.0.2-10.64.0.2"]);
    let first = line.connect("alice", &[]);
    let said = line.connect_in_vain("bob", &["--ifname", "ppp1"]).text();
    assert!(said.contains("all addresses are in use"), "{said}");
    // Name and password were right.
    assert!(!said.contains("check user name"), "{said}");
    let by_code = line.connect_in_vain("bob", &["--ifname", "ppp1", "--auth", "ms-chap-v2"]).text();
    assert_eq!(reason(&by_code), reason(&said));
    serving.hear("a larger pool takes more subscribers", 2);
    first.interrupted().ends(0);
    let _second = line.connect("bob", &["--ifname", "ppp1"]);
    assert_eq!(line.status("ppp1")["local"], "10.64.0.2");
}

#[test]
fn one_more_session_of_a_user_replaces_the_first_or_is_refused() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&["--same-user", "refuse"]);
    let first = line.connect("alice", &[]);
    line.connect_in_vain("alice", &["--ifname", "ppp1"])
        .says("as many sessions as allowed already")
        .says("end the user's other session")
        .omits("password");
    assert_eq!(line.status("ppp0")["sessions"], 1);
    assert!(!first.said().contains("closed"), "{}", first.said());
    first.interrupted().ends(0);
    serving.interrupted().ends(0);
    let _serving = line.serve(&[]);
    let first = line.start_to_connect("alice", &["--reconnect", "false"]);
    first.hear(": open", 1);
    let _second = line.connect("alice", &["--ifname", "ppp1"]);
    first.ended().ends(1).says("the same user").omits("closed: ").omits("tried again");
    assert!(!line.has("ppp0") && line.has("ppp1"));
    line.wait_for_sessions(1);
    line.ping(&line.near, GATEWAY, 1492);
}

#[test]
fn a_name_that_is_taken_is_reported() {
    let Some(line) = Line::new() else { return };
    let serving = line.serve(&[]);
    let first = line.connect("alice", &[]);
    line.connect_in_vain("bob", &[])
        .says("a PPPoE session of this name")
        .says("`--ifname` takes another name")
        .says("`rxlane pppoe status ppp0` shows it, `rxlane pppoe disconnect ppp0` ends it");
    assert_eq!(line.status("ppp0")["user"], "alice");
    line.serve_in_vain(&[]).ends(1).says("serves wan0 already").says("--takeover");
    // An interface that is another program's is taken, too.
    line.ip(&["link", "add", "other0", "type", "veth", "peer", "name", "other1"]);
    line.connect_in_vain("bob", &["--ifname", "other0"])
        .says("there is an interface other0 already; choose a name that is free");
    assert!(line.has("other0"));
    for running in [first, serving] {
        running.interrupted().ends(0);
    }
}

#[test]
fn a_password_is_no_argument() {
    let Some(line) = Line::new() else { return };
    line.near(&["connect", WAN, "--user", "alice", "--password", "wonderland"])
        .ends(2)
        .says("unexpected argument '--password'");
    // It comes from a file or the environment, and an empty one is sent to nobody.
    let serving = line.serve(&[]);
    let connect = |password: &str, more: &[&str]| {
        let usual = ["connect", WAN, "--user", "alice"];
        let mut command = line.command(&line.near, &[&usual, more].concat());
        Process::start(command.env("RXLANE_PPPOE_PASSWORD", password))
    };
    connect("", &[]).ended().ends(2).says("the password of alice is empty");
    assert!(!serving.said().contains("refused"), "{}", serving.said());
    let client = connect("wonderland", &[]);
    client.hear(": open", 1);
    let arguments = std::fs::read(format!("/proc/{}/cmdline", client.process())).expect("arguments");
    assert!(!String::from_utf8_lossy(&arguments).contains("wonderland"));
    let all = line.near(&["status", "--json"]).json();
    assert_eq!(all["clients"].as_array().map(Vec::len), Some(1), "{all:#}");
    assert!(!all.to_string().contains("wonderland") && !serving.said().contains("wonderland"));
    client.interrupted().ends(0);
    connect("wonderland", &["--daemon"]).ended().ends(0);
    let environment =
        std::fs::read(format!("/proc/{}/environ", line.status("ppp0")["pid"])).expect("variables");
    assert!(!String::from_utf8_lossy(&environment).contains("wonderland"));
    line.near(&["disconnect", "ppp0"]).ends(0);
}

//! Subscribers and their accounts by a FreeRADIUS that the test starts.

use super::line::{GATEWAY, Line};
use crate::process::Process;
use crate::run::{Ended, Report};
use serde_json::json;
use std::fs;
use std::process::{Output, Stdio};
use std::time::SystemTime;
use testkit::netns::Namespace;
use testkit::{program, require, wait_until};

const SECRET: &str = "testing123 with blanks";

/// Configuration of FreeRADIUS 3: two users, records of accounting into a file of its own.
const SERVER: &str = "\
prefix = /usr
libdir = /usr/lib/freeradius
logdir = FOLDER
raddbdir = FOLDER
pidfile = FOLDER/pid
security {
    allow_core_dumps = no
    status_server = yes
}
client all {
    ipaddr = 0.0.0.0/0
    secret = \"SECRET\"
    require_message_authenticator = yes
}
modules {
    pap {
    }
    chap {
    }
    mschap {
    }
    files {
        filename = FOLDER/users
    }
    detail {
        filename = FOLDER/detail
        permissions = 0600
    }
}
server default {
    listen {
        type = auth
        ipaddr = 127.0.0.1
        port = 1812
    }
    listen {
        type = acct
        ipaddr = 127.0.0.1
        port = 1813
    }
    authorize {
        files
        chap
        mschap
        pap
    }
    authenticate {
        Auth-Type PAP {
            pap
        }
        Auth-Type CHAP {
            chap
        }
        Auth-Type MS-CHAP {
            mschap
        }
    }
    # What FreeRADIUS from 3.2.5 on does by itself.
    post-auth {
        update reply {
            &Message-Authenticator := 0x00
        }
        Post-Auth-Type REJECT {
            update reply {
                &Message-Authenticator := 0x00
            }
        }
    }
    accounting {
        detail
    }
}
";

const USERS: &str = "\
nemo Cleartext-Password := \"arctangent\"
\tFramed-IP-Address = 10.99.0.9,
\tFramed-Route = \"10.98.0.0/24 0.0.0.0 1\",
\tFramed-IPv6-Prefix = fd00:99:0:9::/64,
\tClass = \"gold\"

brief Cleartext-Password := \"arctangent\"
\tFramed-IP-Address = 255.255.255.254,
\tSession-Timeout = 2

slow Cleartext-Password := \"arctangent\"
\tMikrotik-Rate-Limit = \"800k/1600k\",
\tFilter-Id = \"unheard of\",
\tDelegated-IPv6-Prefix = fd00:88::/56
";

/// A server on the concentrator's loopback interface, and a file that names it behind one that nobody listens to.
fn server(line: &Line) -> Option<Process> {
    let freeradius = require("freeradius", program("freeradius"))?;
    let folder = line.path("radius");
    fs::create_dir(&folder).expect("a folder");
    let place = folder.display().to_string();
    let file = |name: &str, text: &str| {
        fs::write(folder.join(name), text.replace("FOLDER", &place).replace("SECRET", SECRET))
            .expect("written");
    };
    file("radiusd.conf", SERVER);
    file("users", USERS);
    file("dictionary", "$INCLUDE /usr/share/freeradius/dictionary\n");
    let mut command = line.far.command(&freeradius);
    let log = folder.join("log");
    let server = Process::start(command.args(["-f", "-l", &log.display().to_string(), "-d", &place]));
    wait_until("FreeRADIUS is ready", || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("Ready to process requests"))
    });
    Some(server)
}

/// A file that names servers at these addresses. `keys`: what else stands in it; FOLDER is that of the line.
fn names(line: &Line, keys: &str, servers: &[&str]) -> String {
    let tables: String = servers
        .iter()
        .map(|address| format!("[[server]]\naddress = \"{address}\"\nsecret = \"{SECRET}\"\n"))
        .collect();
    let keys = keys.replace("FOLDER", &line.text(""));
    let text = format!("identifier = \"bras1\"\ntimeout = 0.3\ntries = 2\n{keys}\n{tables}");
    line.write("radius.toml", &text);
    line.text("radius.toml")
}

/// A line, its FreeRADIUS, and a concentrator that queries servers at these addresses; the password of `user` is in its file.
fn served(user: &str, keys: &str, servers: &[&str], more: &[&str]) -> Option<(Line, Process, Process)> {
    let line = Line::new()?;
    let server = server(&line)?;
    line.write(user, "arctangent\n");
    let file = names(&line, keys, servers);
    let serving = line.serve(&[&["--radius", &file], more].concat());
    Some((line, server, serving))
}

fn wait_for_record(line: &Line, text: &str) {
    wait_until(format!("a record with {text}"), || records(line).iter().any(|record| record.contains(text)));
}

/// What the server wrote of each record: `name = value` by line.
fn records(line: &Line) -> Vec<String> {
    let text = fs::read_to_string(line.path("radius").join("detail")).unwrap_or_default();
    text.split("\n\n").filter(|record| record.contains("Acct-Status-Type")).map(str::to_owned).collect()
}

fn value<'r>(record: &'r str, name: &str) -> &'r str {
    let line = record.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(" = "));
    line.unwrap_or_else(|| panic!("{name}: {record}"))
}

#[test]
fn freeradius_says_who_a_subscriber_is_and_gets_its_accounts() {
    for method in ["pap", "chap", "ms-chap-v2"] {
        // Nobody listens at the first one.
        let servers = ["127.0.0.2", "127.0.0.1"];
        let served = served("nemo", "", &servers, &["--auth", method, "--interim", "1"]);
        let Some((line, _server, serving)) = served else { return };
        let client = line.connect("nemo", &[]);
        assert_eq!(line.status("ppp0")["local"], "10.99.0.9");
        line.ping(&line.near, GATEWAY, 1492);
        let session = line.sessions()[0].clone();
        session.has(json!({"user": "nemo", "peer": "10.99.0.9", "prefix": "fd00:99:0:9::/64"}));
        let route = line.far.run("ip", &["route", "get", "10.98.0.7"]).expect("a route");
        assert!(route.contains("dev pppoe0"), "{route}");
        wait_for_record(&line, "Acct-Status-Type = Interim-Update");
        // A user of the secrets takes no server.
        let own = line.connect("alice", &["--ifname", "ppp1"]);
        own.interrupted().ends(0);
        client.interrupted().ends(0);
        line.wait_for_sessions(0);
        // A wrong password.
        line.write("nemo", "tangent\n");
        line.connect_in_vain("nemo", &[]).says("authentication failed");
        serving.hear("RADIUS refuses the user", 1);
        serving.interrupted().ends(0);

        let records = records(&line);
        let of = |status: &str| -> Vec<&String> {
            records.iter().filter(|record| value(record, "Acct-Status-Type") == status).collect()
        };
        assert_eq!((of("Accounting-On").len(), of("Accounting-Off").len()), (1, 1), "{records:#?}");
        let nemo = |record: &&&String| record.contains("User-Name = \"nemo\"");
        let (start, stop) = (of("Start"), of("Stop"));
        let (start, stop) =
            (start.iter().find(nemo).expect("a start"), stop.iter().find(nemo).expect("a stop"));
        assert_eq!(value(start, "Acct-Session-Id"), value(stop, "Acct-Session-Id"));
        assert_eq!(value(stop, "Class"), "0x676f6c64");
        assert_eq!(value(stop, "NAS-Identifier"), "\"bras1\"");
        assert_eq!(value(stop, "Framed-IP-Address"), "10.99.0.9");
        assert_eq!(value(stop, "Acct-Terminate-Cause"), "User-Request");
        assert!(value(stop, "Acct-Input-Octets").parse::<u64>().expect("a number") >= 3 * 1492, "{stop}");
        assert_eq!(value(stop, "Acct-Input-Gigawords"), "0");
    }
}

#[test]
fn a_dry_run_says_which_servers_answer() {
    let Some(line) = Line::new() else { return };
    let Some(_server) = server(&line) else { return };
    let check = |secret: &str, servers: &[&str]| {
        let file = names(&line, "", servers);
        let text = fs::read_to_string(&file).expect("a file").replace(SECRET, secret);
        line.write("radius.toml", &text);
        line.serve_in_vain(&["--radius", &file, "--dry-run"])
    };
    let some = check(SECRET, &["127.0.0.2", "127.0.0.1"]);
    some.ends(0).says("127.0.0.2:1812 (no answer), 127.0.0.1:1812 (answers)");
    some.says("127.0.0.2:1813 (no answer), 127.0.0.1:1813 (answers)");
    for (keys, expected) in [
        ("records = \"/nowhere/records\"", "/nowhere/records: its folder has to be there (mkdir -p)"),
        ("records = \"/dev/zero\"", "/dev/zero: it is a device: expected a regular file"),
        ("dynamic-authorization.listen = \"10.99.9.9\"", "10.99.9.9 is no address of this machine"),
    ] {
        let file = names(&line, keys, &["127.0.0.1"]);
        line.serve_in_vain(&["--radius", &file, "--dry-run"]).ends(2).says(expected);
    }
    let file = names(&line, "", &["127.0.0.1"]);
    let text = fs::read_to_string(&file).expect("a file");
    line.write("radius.toml", &format!("{text}accounting = 1812\n"));
    let misplaced = line.serve_in_vain(&["--radius", &file, "--dry-run"]);
    misplaced.ends(1).says("127.0.0.1:1812 (answers, but as one of the other kind: look at the port)");
    misplaced.says("no RADIUS server that gets records answers");
    check("another", &["127.0.0.1"])
        .ends(1)
        .says("127.0.0.1:1812 (no answer)")
        .says("no RADIUS server answers");
}

#[test]
fn records_wait_for_a_server_and_none_is_lost_or_comes_twice() {
    let Some((line, first, serving)) = served("nemo", "", &["127.0.0.1"], &[]) else { return };
    let client = line.connect("nemo", &[]);
    wait_for_record(&line, "= Start");
    first.interrupted();
    client.interrupted().ends(0);
    line.wait_for_sessions(0);
    serving.hear("no RADIUS server takes records of accounting", 1);
    // Nobody can say who it is.
    line.connect_in_vain("nemo", &[]);
    serving.hear("no RADIUS server answers", 1);
    fs::rename(line.path("radius"), line.path("earlier")).expect("moved");
    let Some(_second) = server(&line) else { return };
    wait_for_record(&line, "= Stop");
    serving.hear("a RADIUS server takes records of accounting again", 1);
    serving.interrupted().ends(0);
    let stops = records(&line).iter().filter(|record| record.contains("= Stop")).count();
    assert_eq!(stops, 1);
}

/// The server is down for longer than the concentrator lives, which is killed.
#[test]
fn records_in_a_file_outlive_the_process() {
    let keys = "records = \"FOLDER/records\"";
    let Some((line, first, serving)) = served("nemo", keys, &["127.0.0.1"], &[]) else { return };
    let client = line.connect("nemo", &[]);
    wait_for_record(&line, "= Start");
    first.interrupted();
    client.interrupted().ends(0);
    line.wait_for_sessions(0);
    serving.hear("they wait in the file of records", 1);
    serving.killed();
    fs::rename(line.path("radius"), line.path("earlier")).expect("moved");
    let Some(_second) = server(&line) else { return };
    let serving = line.serve(&["--radius", &line.text("radius.toml")]);
    wait_for_record(&line, "= Stop");
    wait_for_record(&line, "= Accounting-On");
    assert_eq!(records(&line).len(), 2, "none comes twice");
    wait_until("all are taken", || fs::metadata(line.path("records")).is_ok_and(|file| file.len() == 24));
    serving.interrupted().ends(0);
}

/// A concentrator is killed while a session is open, and the next one goes on: for the server nothing has happened.
#[test]
fn a_session_that_outlives_its_concentrator_has_one_account() {
    let keys = "records = \"FOLDER/records\"";
    let Some((line, _server, serving)) = served("nemo", keys, &["127.0.0.1"], &[]) else { return };
    let client = line.connect("nemo", &[]);
    wait_for_record(&line, "= Start");
    serving.killed();
    let serving = line.serve(&["--radius", &line.text("radius.toml")]);
    line.ping(&line.near, GATEWAY, 1492);
    client.interrupted().ends(0).omits("closed: ");
    wait_for_record(&line, "= Stop");
    serving.interrupted().ends(0);
    let records = records(&line);
    let status: Vec<&str> = records.iter().map(|record| value(record, "Acct-Status-Type")).collect();
    assert_eq!(status, ["Accounting-On", "Start", "Stop", "Accounting-Off"]);
    assert_eq!(value(&records[1], "Acct-Session-Id"), value(&records[2], "Acct-Session-Id"));
}

#[test]
fn the_time_that_is_granted_ends_a_session() {
    let Some((line, _server, serving)) = served("brief", "", &["127.0.0.1"], &[]) else { return };
    let client = line.connect("brief", &["--reconnect", "false"]);
    assert_eq!(line.status("ppp0")["local"], "10.64.0.2");
    client.ended().ends(1);
    serving.hear("the time that RADIUS granted is over", 1);
    wait_for_record(&line, "Acct-Terminate-Cause = Session-Timeout");
    serving.interrupted().ends(0);
}

/// What FreeRADIUS's client says of a request (`coa`, `disconnect`) with these attributes and this secret, and of its answer, if there is
/// one in so many seconds.
fn request(line: &Line, kind: &str, attributes: &str, secret: &str, seconds: &str) -> Option<Output> {
    let radclient = require("radclient", program("radclient"))?;
    line.write("request", attributes);
    let mut command = line.far.command(radclient);
    command.args([
        "-x",
        "-r",
        "1",
        "-t",
        seconds,
        "-f",
        &line.text("request"),
        "127.0.0.1:3799",
        kind,
        secret,
    ]);
    Some(command.stdin(Stdio::null()).output().expect("an end"))
}

fn now() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_secs()
}

#[test]
fn a_server_changes_sessions_and_ends_them_and_nobody_else_does() {
    let keys = "dynamic-authorization.listen = \"127.0.0.1\"";
    let Some((line, _server, serving)) = served("nemo", keys, &["127.0.0.1"], &[]) else { return };
    let client = line.connect("nemo", &["--reconnect", "false"]);
    wait_for_record(&line, "= Start");
    let start = records(&line).into_iter().find(|record| record.contains("= Start")).expect("a start");
    let session = format!("Acct-Session-Id = {}", value(&start, "Acct-Session-Id"));
    let made = format!("Event-Timestamp = {}", now());
    let answer = |kind: &str, attributes: &str| {
        let answer = request(&line, kind, attributes, SECRET, "30")?;
        Some(String::from_utf8_lossy(&answer.stdout).into_owned())
    };
    let expect = |kind: &str, attributes: &str, expected: &[&str]| {
        let Some(answer) = answer(kind, attributes) else { return false };
        assert!(expected.iter().all(|text| answer.contains(text)), "{attributes}: {answer}");
        true
    };

    // Records from now on, with another class.
    let records_every_second = format!("{session}, Acct-Interim-Interval = 1, Class = \"red\", {made}");
    if !expect("coa", &records_every_second, &["Received CoA-ACK"]) {
        return;
    }
    wait_for_record(&line, "Class = 0x726564");
    serving.hear("the RADIUS server 127.0.0.1:", 1);
    // What cannot be.
    for (kind, attributes, expected) in [
        ("coa", format!("{session}, Framed-MTU = 1400, {made}"), "Unsupported-Attribute"),
        ("coa", format!("{session}, Session-Timeout = 9"), "Missing-Attribute"),
        (
            "disconnect",
            format!("User-Name = nemo, NAS-Identifier = bras2, {made}"),
            "NAS-Identification-Mismatch",
        ),
        ("disconnect", format!("User-Name = nemo, Acct-Session-Id = 0, {made}"), "Session-Context-Not-Found"),
        (
            "disconnect",
            format!("User-Name = nemo, NAS-Port-Id = \"eth9\", {made}"),
            "Session-Context-Not-Found",
        ),
        ("disconnect", made.clone(), "Missing-Attribute"),
    ] {
        expect(kind, &attributes, &["-NAK", expected]);
    }
    // Without the secret, from elsewhere, or too late: no answer.
    let old = format!("User-Name = nemo, Event-Timestamp = {}", now() - 1000);
    let elsewhere = format!("User-Name = nemo, Packet-Src-IP-Address = 127.0.0.9, {made}");
    let nemo = format!("User-Name = nemo, {made}");
    for (attributes, secret) in [(&nemo, "another"), (&old, SECRET), (&elsewhere, SECRET)] {
        let said = request(&line, "disconnect", attributes, secret, "1").expect("radclient");
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(!said.contains("ACK") && !said.contains("NAK"), "{attributes}: {said}");
    }
    serving.hear("gets no answer: its authenticator does not fit", 1);
    assert_eq!(line.sessions().len(), 1);

    expect("disconnect", &nemo, &["Received Disconnect-ACK"]);
    client.ended().ends(1);
    wait_for_record(&line, "Acct-Terminate-Cause = Admin-Reset");
    serving.hear("ends 1 session nemo", 1);
    serving.interrupted().ends(0);
}

#[test]
fn rates_hold_and_change_without_a_flap() {
    let keys = "rate = [{ name = \"gold\", upload = \"40M\" }]\ndynamic-authorization.listen = \"127.0.0.1\"";
    let Some((line, _server, serving)) = served("slow", keys, &["127.0.0.1"], &["--download", "9M"]) else {
        return;
    };
    let client = line.connect("slow", &["--reconnect", "false"]);
    let before = line.sessions()[0].clone();
    before.has(
        json!({"download": 1_600_000, "upload": 800_000, "delegated": "fd00:88::/56", "received_dropped": 0}),
    );
    // 140,000 bytes at once are more than the bucket has, 20,000 and 15,000 bytes, and what a slow machine takes for it.
    let flood = |from: &Namespace, to: &str| {
        let _ = from.run("ping", &["-q", "-A", "-l", "100", "-c", "100", "-W", "1", "-s", "1372", to]);
    };
    flood(&line.near, GATEWAY);
    flood(&line.far, "10.64.0.2");
    let session = line.sessions()[0].clone();
    let dropped = |key: &str| session[key].as_u64().expect("a number");
    assert!(dropped("received_dropped") > 10 && dropped("sent_dropped") > 10, "{session:#}");
    // Another user's rates are another matter.
    let alice = line.connect("alice", &["--ifname", "ppp1"]);
    let of = |user: &str| {
        line.sessions().into_iter().find(|session| session["user"] == user).expect("it is there")
    };
    of("alice").has(json!({"download": 9_000_000, "upload": null}));

    let change = |attributes: &str| {
        let attributes = format!("User-Name = slow, {attributes}, Event-Timestamp = {}", now());
        let answer = request(&line, "coa", &attributes, SECRET, "30")?;
        Some(String::from_utf8_lossy(&answer.stdout).into_owned())
    };
    for (attributes, download, upload) in [
        ("WISPr-Bandwidth-Max-Down = 70000000", json!(70_000_000), json!(800_000)),
        ("Filter-Id = gold", json!(null), json!(40_000_000)),
        ("ERX-Ingress-Policy-Name = gold, Mikrotik-Rate-Limit = 0", json!(null), json!(null)),
    ] {
        let Some(said) = change(attributes) else { return };
        assert!(said.contains("Received CoA-ACK"), "{attributes}: {said}");
        of("slow").has(json!({"download": download, "upload": upload, "session_id": before["session_id"]}));
    }
    let said = change("Filter-Id = silver").expect("radclient");
    assert!(said.contains("CoA-NAK") && said.contains("Error-Cause = Invalid-Attribute-Value"), "{said}");
    line.ping(&line.near, GATEWAY, 1492);
    assert_eq!(client.said().matches(": open").count(), 1);
    serving.hear("no [[rate]] has this name", 1);
    alice.interrupted().ends(0);
    client.interrupted().ends(0);
    serving.interrupted().ends(0);
}
